/* The limits as this handle knows them, and which gates a lane has. Both follow from the rows of
 * `limits` alone, so what was worked out stays true until meta.policy, which every change of them
 * raises, has another number. That, and whether anybody else has written at all, is looked at once
 * in each transaction. */
#include "internal.h"

static void drop(struct policy_cache *p)
{
    arena_done(&p->arena);
    arena_init(&p->arena);
    p->limits = NULL;
    p->specs = NULL;
    p->n = 0;
    p->valid = false;
}

void policy_forget(struct sq *q)
{
    gates_forget(q);
    drop(&q->policy);
}

static int read_limits(struct sq *q, struct pawl_err *err)
{
    struct policy_cache *p = &q->policy;
    AUTO_STMT s = stmt_get(q, STMT_LIMITS_HELD, err);
    if (!s)
        return err->code;
    AUTO_FREE struct limit_entry *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    while ((rc = stmt_step(q, s, err, "limits")) == 1) {
        struct limit_entry e = {.id = sqlite3_column_int64(s, 0)};
        if (limit_read(column_copy(s, 1, &p->arena), &p->arena, &e.spec, err) < 0)
            return err_wrap(err, "%s: limit %lld", q->path, (long long)e.id);
        e.params = limit_params(&e.spec);
        e.hosts = e.spec.n_hosts || e.spec.each == EACH_HOST;
        ARRAY_GROW(v, n, cap);
        v[n++] = e;
    }
    p->limits = arena_alloc(&p->arena, (n + 1) * sizeof(*p->limits));
    p->specs = arena_alloc(&p->arena, (n + 1) * sizeof(*p->specs));
    for (size_t i = 0; i < n; i++) {
        p->limits[i] = v[i];
        p->specs[i] = v[i].spec;
    }
    p->n = n;
    return rc;
}

/* A number that changes when another connection has committed: until then all that is known holds.
 */
static int read_version(struct sq *q, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_DATA_VERSION, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "version");
    if (rc == 1)
        *out = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : 0;
}

static int read_policy(struct sq *q, struct pawl_err *err)
{
    struct policy_cache *p = &q->policy;
    int64_t number = 0, order = 0;
    if (meta_get(q, "policy", &number, err) < 0)
        return err->code;
    if (p->valid && p->number == number)
        return 0;
    policy_forget(q);
    if (meta_get(q, "claim_order", &order, err) < 0 || read_limits(q, err) < 0)
        return err->code;
    p->number = number;
    p->order = (enum claim_order)order;
    p->valid = true;
    p->made++;
    return 0;
}

int policy_load(struct sq *q, struct pawl_err *err)
{
    struct policy_cache *p = &q->policy;
    int64_t version = 0;
    if (p->valid && q->in_tx && p->checked == q->tx_no)
        return 0;
    if (q->in_tx && read_version(q, &version, err) < 0)
        return err->code;
    if (!p->valid || version != p->version || !q->in_tx) {
        q->gates_no++;
        if (read_policy(q, err) < 0)
            return err->code;
        p->version = version;
    }
    p->checked = q->tx_no;
    return 0;
}

int policy_bump(struct sq *q, struct pawl_err *err)
{
    sqlite3_stmt *next = stmt_get(q, STMT_POLICY_NEXT, err);
    sqlite3_stmt *look = stmt_get(q, STMT_GATES_LOOK_ANEW, err);
    if (!next || !look || gates_flush(q, err) < 0 || stmt_run(q, next, err, "limits") < 0 ||
        stmt_run(q, look, err, "limits") < 0)
        return err->code;
    policy_forget(q);
    q->wake = true;
    return 0;
}

const struct limit_entry *policy_limit(const struct sq *q, int64_t id)
{
    for (size_t i = 0; i < q->policy.n; i++)
        if (q->policy.limits[i].id == id)
            return &q->policy.limits[i];
    return NULL;
}

const struct limit_entry *policy_limit_named(const struct sq *q, struct sv name)
{
    for (size_t i = 0; i < q->policy.n; i++)
        if (sv_eq(q->policy.specs[i].name, name))
            return &q->policy.limits[i];
    return NULL;
}

static size_t hash_gate(const struct limit_entry *limit, struct sv value)
{
    uint64_t h = 1469598103934665603u ^ (uint64_t)limit->id;
    for (size_t i = 0; i < value.n; i++)
        h = (h ^ (unsigned char)value.p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

static void put(struct gate_entry **table, size_t cap, struct gate_entry *g)
{
    size_t i = hash_gate(g->limit, g->value) & (cap - 1);
    while (table[i])
        i = (i + 1) & (cap - 1);
    table[i] = g;
}

static void grow(struct gates *t)
{
    size_t cap = t->cap ? t->cap * 2 : 64;
    struct gate_entry **table = mem_zalloc(cap, sizeof(struct gate_entry *));
    for (size_t i = 0; i < t->cap; i++)
        if (t->by_name[i])
            put(table, cap, t->by_name[i]);
    free(t->by_name);
    t->by_name = table;
    t->cap = cap;
}

struct gate_entry *gate_of(struct sq *q, const struct limit_entry *limit, struct sv value)
{
    struct gates *t = &q->gates;
    if (t->n * 2 >= t->cap)
        grow(t);
    size_t i = hash_gate(limit, value) & (t->cap - 1);
    for (; t->by_name[i]; i = (i + 1) & (t->cap - 1))
        if (t->by_name[i]->limit == limit && sv_eq(t->by_name[i]->value, value))
            return t->by_name[i];
    struct gate_entry *g = arena_zalloc(&t->arena, 1, sizeof(*g));
    g->limit = limit;
    g->value = sv_make(arena_strndup(&t->arena, value.p ? value.p : "", value.n), value.n);
    g->wake_at = WAKE_NONE;
    put(t->by_name, t->cap, g);
    t->n++;
    return g;
}

size_t host_gates(struct sq *q, const struct class_entry *c, struct sv host,
                  struct gate_entry ***out)
{
    struct policy_cache *p = &q->policy;
    *out = NULL;
    if (!p->n)
        return 0;
    AUTO_FREE size_t *at = mem_zalloc(p->n, sizeof(*at));
    AUTO_FREE struct sv *values = mem_zalloc(p->n, sizeof(*values));
    size_t n = limits_of(p->specs, p->n, c->queue, c->kind, host, at, values);
    if (n)
        *out = mem_zalloc(n, sizeof(struct gate_entry *));
    for (size_t i = 0; i < n; i++)
        (*out)[i] = gate_of(q, &p->limits[at[i]], values[i]);
    return n;
}

void lane_gates(struct sq *q, struct lane_entry *l)
{
    AUTO_FREE struct gate_entry **gates = NULL;
    if (l->mapped == q->policy.made)
        return;
    l->mapped = q->policy.made;
    l->n_gates = host_gates(q, l->cls, l->host, &gates);
    if (!l->n_gates)
        return;
    l->gates = arena_alloc(&q->gates.arena, l->n_gates * sizeof(struct gate_entry *));
    memcpy(l->gates, gates, l->n_gates * sizeof(struct gate_entry *));
}
