/* Queues, classes and lanes: found or created by name, remembered by this handle. Their rows are
 * never deleted and their names never change, so what is remembered stays true; only a rollback of
 * the transaction that created them makes it void. */
#include "internal.h"

static size_t hash_names(struct sv queue, struct sv kind, struct sv host)
{
    uint64_t h = 1469598103934665603u;
    struct sv parts[] = {queue, kind, host};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        for (size_t k = 0; k < parts[i].n; k++)
            h = (h ^ (unsigned char)parts[i].p[k]) * 1099511628211u;
        h = (h ^ 0xff) * 1099511628211u;
    }
    return (size_t)(h ^ h >> 29);
}

static size_t hash_id(int64_t id)
{
    uint64_t h = (uint64_t)id * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 32);
}

static bool lane_is(const struct lane_entry *l, struct sv queue, struct sv kind, struct sv host)
{
    return sv_eq(l->host, host) && sv_eq(l->cls->kind, kind) && sv_eq(l->cls->queue, queue);
}

static void put(struct lane_entry **table, size_t cap, size_t hash, struct lane_entry *l)
{
    size_t i = hash & (cap - 1);
    while (table[i])
        i = (i + 1) & (cap - 1);
    table[i] = l;
}

static void grow(struct names *n)
{
    size_t cap = n->cap_lanes ? n->cap_lanes * 2 : 256;
    struct lane_entry **by_id = mem_zalloc(cap, sizeof(struct lane_entry *));
    struct lane_entry **by_name = mem_zalloc(cap, sizeof(struct lane_entry *));
    for (size_t i = 0; i < n->cap_lanes; i++) {
        struct lane_entry *l = n->lanes[i];
        if (!l)
            continue;
        put(by_id, cap, hash_id(l->id), l);
        put(by_name, cap, hash_names(l->cls->queue, l->cls->kind, l->host), l);
    }
    free(n->lanes);
    free(n->by_name);
    n->lanes = by_id;
    n->by_name = by_name;
    n->cap_lanes = cap;
}

static struct lane_entry *remember(struct names *n, int64_t id, struct class_entry *cls,
                                   struct sv host)
{
    if (n->n_lanes * 2 >= n->cap_lanes)
        grow(n);
    struct lane_entry *l = arena_zalloc(&n->arena, 1, sizeof(*l));
    l->id = id;
    l->cls = cls;
    l->host = sv_make(arena_strndup(&n->arena, host.p, host.n), host.n);
    put(n->lanes, n->cap_lanes, hash_id(id), l);
    put(n->by_name, n->cap_lanes, hash_names(cls->queue, cls->kind, host), l);
    n->n_lanes++;
    return l;
}

static struct class_entry *known_class(const struct names *n, int64_t id)
{
    if (!n->cap_classes)
        return NULL;
    size_t i = hash_id(id) & (n->cap_classes - 1);
    for (; n->classes[i]; i = (i + 1) & (n->cap_classes - 1))
        if (n->classes[i]->id == id)
            return n->classes[i];
    return NULL;
}

static void put_class(struct class_entry **table, size_t cap, struct class_entry *c)
{
    size_t i = hash_id(c->id) & (cap - 1);
    while (table[i])
        i = (i + 1) & (cap - 1);
    table[i] = c;
}

static void grow_classes(struct names *n)
{
    size_t cap = n->cap_classes ? n->cap_classes * 2 : 64;
    struct class_entry **table = mem_zalloc(cap, sizeof(struct class_entry *));
    for (size_t i = 0; i < n->cap_classes; i++)
        if (n->classes[i])
            put_class(table, cap, n->classes[i]);
    free(n->classes);
    n->classes = table;
    n->cap_classes = cap;
}

static struct class_entry *remember_class(struct names *n, int64_t id, int64_t queue_id,
                                          struct sv queue, struct sv kind)
{
    struct class_entry *c = known_class(n, id);
    if (c)
        return c;
    if (n->n_classes * 2 >= n->cap_classes)
        grow_classes(n);
    c = arena_zalloc(&n->arena, 1, sizeof(*c));
    c->id = id;
    c->queue_id = queue_id;
    c->queue = sv_make(arena_strndup(&n->arena, queue.p, queue.n), queue.n);
    c->kind = sv_make(arena_strndup(&n->arena, kind.p, kind.n), kind.n);
    put_class(n->classes, n->cap_classes, c);
    n->n_classes++;
    return c;
}

int names_queue(struct sq *q, struct sv name, int64_t *out_id, bool *out_paused,
                struct pawl_err *err)
{
    AUTO_STMT find = stmt_get(q, STMT_QUEUE_FIND, err);
    AUTO_STMT insert = stmt_get(q, STMT_QUEUE_INSERT, err);
    if (!find || !insert)
        return err->code;
    bind_sv(find, 1, name);
    int rc = stmt_step(q, find, err, "queue");
    if (rc == 1) {
        *out_id = sqlite3_column_int64(find, 0);
        *out_paused = sqlite3_column_int(find, 1);
        return 0;
    }
    bind_sv(insert, 1, name);
    if (rc < 0 || stmt_run(q, insert, err, "queue") < 0)
        return err->code;
    *out_id = sqlite3_last_insert_rowid(q->db);
    *out_paused = false;
    return 0;
}

static int find_class(struct sq *q, struct sv queue, struct sv kind, struct class_entry **out,
                      struct pawl_err *err)
{
    int64_t queue_id, id;
    bool paused;
    AUTO_STMT find = stmt_get(q, STMT_CLASS_FIND, err);
    AUTO_STMT insert = stmt_get(q, STMT_CLASS_INSERT, err);
    if (!find || !insert || names_queue(q, queue, &queue_id, &paused, err) < 0)
        return err->code;
    sqlite3_bind_int64(find, 1, queue_id);
    bind_sv(find, 2, kind);
    int rc = stmt_step(q, find, err, "class");
    if (rc < 0)
        return rc;
    if (rc == 1) {
        id = sqlite3_column_int64(find, 0);
    } else {
        sqlite3_bind_int64(insert, 1, queue_id);
        bind_sv(insert, 2, kind);
        sqlite3_bind_int64(insert, 3, q->now.us);
        if (stmt_run(q, insert, err, "class") < 0)
            return err->code;
        id = sqlite3_last_insert_rowid(q->db);
    }
    *out = remember_class(&q->names, id, queue_id, queue, kind);
    return 0;
}

static int find_lane(struct sq *q, struct class_entry *cls, struct sv host, int64_t *out,
                     struct pawl_err *err)
{
    AUTO_STMT find = stmt_get(q, STMT_LANE_FIND, err);
    AUTO_STMT insert = stmt_get(q, STMT_LANE_INSERT, err);
    if (!find || !insert)
        return err->code;
    sqlite3_bind_int64(find, 1, cls->id);
    bind_sv(find, 2, host);
    int rc = stmt_step(q, find, err, "lane");
    if (rc == 1)
        *out = sqlite3_column_int64(find, 0);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    sqlite3_bind_int64(insert, 1, cls->id);
    bind_sv(insert, 2, host);
    if (stmt_run(q, insert, err, "lane") < 0)
        return err->code;
    *out = sqlite3_last_insert_rowid(q->db);
    return 0;
}

int names_lane(struct sq *q, struct sv queue, struct sv kind, struct sv host,
               struct lane_entry **out, struct pawl_err *err)
{
    struct names *n = &q->names;
    if (!host.p)
        host = SV("");
    if (n->last && lane_is(n->last, queue, kind, host)) {
        *out = n->last;
        return 0;
    }
    if (n->cap_lanes) {
        size_t i = hash_names(queue, kind, host) & (n->cap_lanes - 1);
        for (; n->by_name[i]; i = (i + 1) & (n->cap_lanes - 1))
            if (lane_is(n->by_name[i], queue, kind, host)) {
                *out = n->last = n->by_name[i];
                return 0;
            }
    }
    struct class_entry *cls = NULL;
    int64_t id = 0;
    if (find_class(q, queue, kind, &cls, err) < 0 || find_lane(q, cls, host, &id, err) < 0)
        return err->code;
    *out = n->last = remember(n, id, cls, host);
    return 0;
}

static struct lane_entry *known(struct names *n, int64_t id)
{
    if (!n->cap_lanes)
        return NULL;
    size_t i = hash_id(id) & (n->cap_lanes - 1);
    for (; n->lanes[i]; i = (i + 1) & (n->cap_lanes - 1))
        if (n->lanes[i]->id == id)
            return n->lanes[i];
    return NULL;
}

int names_lane_by_id(struct sq *q, int64_t id, struct lane_entry **out, struct pawl_err *err)
{
    struct names *n = &q->names;
    if (n->last && n->last->id == id) {
        *out = n->last;
        return 0;
    }
    struct lane_entry *l = known(n, id);
    if (!l) {
        AUTO_STMT s = stmt_get(q, STMT_LANE_BY_ID, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, id);
        int rc = stmt_step(q, s, err, "lane");
        if (rc < 0)
            return rc;
        if (rc == 0)
            return err_set(err, PAWL_ECORRUPT, "%s: lane %lld is missing", q->path, (long long)id);
        struct class_entry *cls =
            remember_class(n, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 3),
                           column_sv(s, 4), column_sv(s, 2));
        l = remember(n, id, cls, column_sv(s, 1));
    }
    *out = n->last = l;
    return 0;
}

int names_class_by_id(struct sq *q, int64_t id, struct class_entry **out, struct pawl_err *err)
{
    struct names *n = &q->names;
    struct class_entry *found = known_class(n, id);
    if (found) {
        *out = found;
        return 0;
    }
    AUTO_STMT s = stmt_get(q, STMT_CLASS_BY_ID, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id);
    int rc = stmt_step(q, s, err, "class");
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(err, PAWL_ECORRUPT, "%s: class %lld is missing", q->path, (long long)id);
    *out = remember_class(n, id, sqlite3_column_int64(s, 1), column_sv(s, 2), column_sv(s, 0));
    return 0;
}

void names_forget(struct sq *q)
{
    struct names *n = &q->names;
    free(n->classes);
    free(n->dirty_classes);
    free(n->lanes);
    free(n->by_name);
    free(n->dirty);
    arena_done(&n->arena);
    *n = (struct names){0};
}
