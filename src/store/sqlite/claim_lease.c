/* Leasing what was chosen (I2, I3, I7): rows are read and changed by the stretch, permits and
 * events follow, and shut gates keep their lanes. Also what a session holds, for reading back. */
#include "claim.h"

/* Names are copied once per lane and claim; the leases outlive this handle's memory of lanes. */
static void copy_names(struct sq *q, struct lane_entry *l, struct arena *a, struct lease *out)
{
    if (l->copied != q->claim_no) {
        struct sv from[3] = {l->cls->queue, l->cls->kind, l->host};
        for (int i = 0; i < 3; i++)
            l->names[i] = sv_make(arena_strndup(a, from[i].p, from[i].n), from[i].n);
        l->copied = q->claim_no;
    }
    out->queue = l->names[0];
    out->kind = l->names[1];
    out->host = l->host.n ? l->names[2] : SV_NONE;
}

static void read_lease(sqlite3_stmt *s, struct arena *a, struct lease *out)
{
    out->priority = sqlite3_column_int(s, 0);
    out->attempt = sqlite3_column_int(s, 1);
    out->transient = sqlite3_column_int(s, 2);
    out->lost = sqlite3_column_int(s, 3);
    out->fence.v = sqlite3_column_int64(s, 4);
    out->ready_at.us = sqlite3_column_int64(s, 5);
    out->key = column_copy(s, 6, a);
    out->payload = column_copy(s, 7, a);
    out->created_at.us = sqlite3_column_int64(s, 8);
    out->max_attempts = sqlite3_column_int(s, 9);
    out->timeout.us = sqlite3_column_int64(s, 10);
}

/* Picks that one statement reads and one takes: consecutive ids, of whatever lanes, or a gapless
 * part of the ready jobs of one lane at one priority. */
struct stretch {
    const struct picked *p;
    size_t n;
    bool dense; /* consecutive ids */
};

static struct stretch stretch_of(const struct picked *p, size_t max)
{
    size_t dense = 1, same = 1;
    while (dense < max && p[dense].id == p[0].id + (int64_t)dense)
        dense++;
    while (same < max && p[same].lane == p->lane && p[same].priority == p->priority)
        same++;
    return dense >= same ? (struct stretch){p, dense, true} : (struct stretch){p, same, false};
}

static void bind_stretch(sqlite3_stmt *s, const struct stretch *t)
{
    const struct picked *first = &t->p[0], *last = &t->p[t->n - 1];
    sqlite3_bind_int64(s, 1, first->id);
    sqlite3_bind_int64(s, 2, last->id);
    if (t->dense)
        return;
    sqlite3_bind_int64(s, 3, first->lane->id);
    sqlite3_bind_int(s, 4, first->priority);
}

static struct lease_hint hint_of(struct claim *c, const struct picked *p, const struct lease *l,
                                 int64_t lock)
{
    int64_t policy = c->q->policy.number;
    return (struct lease_hint){.lane = p->lane->id,
                               .session = c->req->session->id,
                               .claimed_at = c->q->now,
                               .attempt = l->attempt,
                               .priority = l->priority,
                               .policy = lock || p->lane->n_gates ? -policy - 1 : policy,
                               .lock = lock};
}

static bool is_picked(sqlite3_stmt *s, const struct picked *p)
{
    return sqlite3_column_int64(s, 11) == p->id && sqlite3_column_int64(s, 13) == p->lane->id &&
           sqlite3_column_int(s, 14) == p->priority;
}

static int read_stretch(struct claim *c, const struct stretch *t, struct lease *out)
{
    struct sq *q = c->q;
    AUTO_STMT s = stmt_get(q, t->dense ? STMT_CLAIM_RANGE : STMT_CLAIM_ROWS, c->err);
    if (!s)
        return c->err->code;
    bind_stretch(s, t);
    size_t i = 0;
    int rc;
    while ((rc = stmt_step(q, s, c->err, "claim")) == 1) {
        const struct picked *p = &t->p[i];
        if (i == t->n || !is_picked(s, p))
            break;
        struct lease *l = &out[i++];
        *l = (struct lease){.id = {p->id}, .pool = p->pool, .claimed_at = q->now};
        read_lease(s, c->arena, l);
        copy_names(q, p->lane, c->arena, l);
        l->fence.v++; /* I2: grows with every claim */
        l->attempt++;
        l->hint = hint_of(c, p, l, sqlite3_column_int64(s, 12));
    }
    if (rc < 0)
        return rc;
    if (rc == 1 || i < t->n)
        return err_set(c->err, PAWL_ECORRUPT, "%s: lane %lld and its jobs do not agree", q->path,
                       (long long)t->p[i < t->n ? i : 0].lane->id);
    return 0;
}

static int take_stretch(struct claim *c, const struct stretch *t, const struct lease *leases)
{
    struct sq *q = c->q;
    sqlite3_stmt *s = stmt_get(q, t->dense ? STMT_TAKE_RANGE : STMT_TAKE_ROWS, c->err);
    if (!s)
        return c->err->code;
    bind_stretch(s, t);
    sqlite3_bind_int64(s, 5, c->req->session->id.v);
    sqlite3_bind_int64(s, 6, q->now.us);
    if (stmt_run(q, s, c->err, "claim") < 0)
        return c->err->code;
    if ((size_t)sqlite3_changes(q->db) != t->n)
        return err_set(c->err, PAWL_EINTERNAL, "%s: claimed %d of %zu jobs", q->path,
                       sqlite3_changes(q->db), t->n);
    for (size_t i = 0; i < t->n; i++) {
        count_move(q, t->p[i].lane, JOB_QUEUED, JOB_RUNNING);
        if (add_event(q, EVENT_CLAIMED, leases[i].id, leases[i].fence, c->req->session->id, SV_NONE,
                      c->err) < 0)
            return c->err->code;
    }
    return 0;
}

/* A part of what was read: taken, and moved behind what is kept already. */
static int keep(struct claim *c, const struct stretch *t, const struct lease *leases,
                struct claim_result *out)
{
    if (!t->n)
        return 0;
    if (take_stretch(c, t, leases) < 0)
        return c->err->code;
    memmove(&out->leases[out->n], leases, t->n * sizeof(*leases));
    for (size_t i = 0; i < t->n; i++)
        c->lanes[out->n++] = t->p[i].lane;
    return 0;
}

/* A lock is seen only with the row. Where nothing with one is wanted any more, the job stays ready
 * and the others of the stretch are taken. */
static int take_wanted(struct claim *c, const struct stretch *t, const struct lease *leases,
                       struct claim_result *out)
{
    size_t from = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct picked *p = &t->p[i];
        if (!leases[i].hint.lock || p->lane->n_gates || c->left[p->pool].gated-- > 0)
            continue;
        struct stretch part = {&t->p[from], i - from, t->dense};
        if (keep(c, &part, &leases[from], out) < 0 ||
            head_add(c->q, p->lane, (struct head){p->id, p->priority}, c->err) < 0)
            return c->err->code;
        from = i + 1;
    }
    struct stretch rest = {&t->p[from], t->n - from, t->dense};
    return keep(c, &rest, &leases[from], out);
}

int claim_lease(struct claim *c, struct claim_result *out)
{
    out->leases = arena_alloc(c->arena, (c->n_picked + 1) * sizeof(*out->leases));
    out->n = 0;
    for (size_t from = 0; from < c->n_picked;) {
        struct stretch t = stretch_of(&c->picked[from], c->n_picked - from);
        struct lease *read = &out->leases[from]; /* never before what is kept */
        if (read_stretch(c, &t, read) < 0 || take_wanted(c, &t, read, out) < 0)
            return c->err->code;
        from += t.n;
    }
    return 0;
}

/* A permit for each gate of each job (I7), in the order of the jobs. */
static int take_permits(struct claim *c, const struct claim_result *r)
{
    AUTO_FREE struct permit_row *v = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < c->lanes[i]->n_gates; k++) {
            struct gate_entry *g = c->lanes[i]->gates[k];
            if (gate_ensure(c->q, g, c->err) < 0)
                return c->err->code;
            if (!g->taken++) {
                g->first_job = r->leases[i].id;
                g->first_fence = r->leases[i].fence;
            }
            ARRAY_GROW(v, n, cap);
            v[n++] = (struct permit_row){g, r->leases[i].id.v};
        }
    return n ? permits_add(c->q, v, n, c->err) : 0;
}

/* What was taken is told to the gate: its rate goes on, an open breaker has its probe (I8). */
static int pass(struct claim *c, struct gate_entry *g)
{
    struct sq *q = c->q;
    const struct gate_params *p = &g->limit->params;
    if (!g->taken)
        return 0;
    bool probe = gate_take(p, &g->state, g->taken, g->first_job.v, g->first_fence.v, q->now.us);
    if (p->interval_us || g->state.pace_us || probe)
        gate_mark(q, g);
    return probe ? gate_event(q, EVENT_BREAKER_PROBED, g, g->first_job, g->first_fence,
                              c->req->session->id, SV_NONE, c->err)
                 : 0;
}

int claim_close_gates(struct claim *c, const struct claim_result *r)
{
    if (take_permits(c, r) < 0)
        return c->err->code;
    for (size_t i = 0; i < c->n_gates; i++)
        if (pass(c, c->gates[i]) < 0)
            return c->err->code;
    for (size_t i = 0; i < c->n_parkings; i++)
        if (gate_park(c->q, c->parkings[i].lane, c->parkings[i].gate, c->err) < 0)
            return c->err->code;
    for (size_t i = 0; i < c->n_gates; i++)
        if (c->gates[i]->wake_at != WAKE_NONE && gate_set_wake(c->q, c->gates[i], c->err) < 0)
            return c->err->code;
    return gates_flush(c->q, c->err);
}

static int read_held(struct sq *q, const struct session *session, struct arena *a,
                     struct lease **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_STMT ids = stmt_get(q, STMT_HELD, err);
    AUTO_STMT row = stmt_get(q, STMT_HELD_ROW, err);
    if (!ids || !row)
        return err->code;
    AUTO_FREE struct lease *v = NULL;
    size_t n = 0, cap = 0;
    q->claim_no++;
    sqlite3_bind_int64(ids, 1, session->id.v);
    int rc;
    while ((rc = stmt_step(q, ids, err, "held")) == 1) {
        struct lease l = {.id = {sqlite3_column_int64(ids, 0)}};
        struct lane_entry *lane;
        sqlite3_bind_int64(row, 1, l.id.v);
        rc = stmt_step(q, row, err, "held");
        if (rc < 0)
            return rc;
        if (rc == 0)
            return err_set(err, PAWL_ECORRUPT, "%s: job %lld has no body", q->path,
                           (long long)l.id.v);
        if (names_lane_by_id(q, sqlite3_column_int64(row, 11), &lane, err) < 0)
            return err->code;
        read_lease(row, a, &l);
        l.claimed_at.us = sqlite3_column_int64(row, 12);
        sqlite3_reset(row);
        copy_names(q, lane, a, &l);
        ARRAY_GROW(v, n, cap);
        v[n++] = l;
    }
    if (rc < 0)
        return rc;
    *out = arena_alloc(a, (n + 1) * sizeof(**out));
    if (n)
        memcpy(*out, v, n * sizeof(*v));
    *out_n = n;
    return 0;
}

int store_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
               size_t *out_n, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_held(q, session, a, out, out_n, err);
    read_end(q);
    return rc;
}
