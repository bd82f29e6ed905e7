/* Everything that decides whether a job runs now, in one snapshot; what it means is said in
 * core/explain.h. */
#include "internal.h"

enum { POSITION_MAX = 100000 };

struct place {
    int state;
    int priority; /* with what it gained by waiting */
    int64_t queue;
    struct sv lock;
};

static int read_place(struct sq *q, job_id id, struct arena *a, struct place *p,
                      struct explain_view *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_EXPLAIN_PLACE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "explain");
    if (rc != 1)
        return rc;
    *p = (struct place){.state = sqlite3_column_int(s, 0),
                        .priority = sqlite3_column_int(s, 1),
                        .queue = sqlite3_column_int64(s, 2),
                        .lock = column_copy(s, 4, a)};
    out->paused = sqlite3_column_type(s, 3) != SQLITE_NULL;
    out->paused_at.us = sqlite3_column_int64(s, 3);
    return 0;
}

static int read_position(struct sq *q, job_id id, const struct place *p, struct explain_view *out,
                         struct pawl_err *err)
{
    if (p->state != JOB_QUEUED)
        return 0;
    AUTO_STMT s = stmt_get(q, STMT_EXPLAIN_AHEAD, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, p->queue);
    sqlite3_bind_int(s, 2, p->priority);
    sqlite3_bind_int64(s, 3, id.v);
    sqlite3_bind_int(s, 4, POSITION_MAX);
    int rc = stmt_step(q, s, err, "explain");
    if (rc != 1)
        return rc;
    int64_t ahead = sqlite3_column_int64(s, 0);
    out->position_more = ahead == POSITION_MAX;
    out->position = out->position_more ? POSITION_MAX : ahead + 1;
    return 0;
}

/* A lock that nobody holds or waits for can still be that of a job which waits for its time. */
static int read_lock(struct sq *q, const struct place *p, struct arena *a, struct explain_view *out,
                     struct pawl_err *err)
{
    if (!p->lock.p)
        return 0;
    int rc = lock_view_of(q, p->lock, a, &out->lock, err);
    if (rc == 0)
        out->lock = (struct lock_view){.key = p->lock};
    return rc < 0 ? rc : 0;
}

static int read_holders(struct sq *q, int64_t gate, struct arena *a, struct gate_view *out,
                        struct pawl_err *err)
{
    enum { HOLDERS_MAX = 5 };
    struct lease_ref *v = arena_alloc(a, HOLDERS_MAX * sizeof(*v));
    size_t n = 0;
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_EXPLAIN_HOLDERS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, gate);
    sqlite3_bind_int(s, 2, HOLDERS_MAX);
    while (n < HOLDERS_MAX && (rc = stmt_step(q, s, err, "explain")) == 1)
        v[n++] = (struct lease_ref){{sqlite3_column_int64(s, 0)}, {sqlite3_column_int64(s, 1)}};
    out->holders = v;
    out->n_holders = n;
    return n < HOLDERS_MAX ? rc : 0;
}

/* The gate of a limit for a value; one that nobody met yet lets all through that its limit does. */
static int read_gate(struct sq *q, const struct limit_spec *limit, struct sv value, int64_t now,
                     struct arena *a, struct gate_view *out, struct pawl_err *err)
{
    const struct gate_params params = limit_params(limit);
    AUTO_STMT s = stmt_get(q, STMT_EXPLAIN_GATE, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, limit->name);
    bind_sv(s, 2, value);
    int rc = stmt_step(q, s, err, "explain");
    if (rc < 0)
        return rc;
    if (rc == 1) {
        if (gate_view_read(q, s, &params, now, a, out, err) < 0)
            return err->code;
        return read_holders(q, sqlite3_column_int64(s, 0), a, out, err);
    }
    *out = (struct gate_view){.limit = limit->name,
                              .value = sv_make(arena_strndup(a, value.p, value.n), value.n),
                              .params = params};
    out->room = gate_room(&params, &out->state, 0, now, 1);
    return 0;
}

/* Worked out from the limits, not from what a claim has met. */
static int read_gates(struct sq *q, struct arena *a, struct explain_view *out, struct pawl_err *err)
{
    struct limit_view *limits;
    size_t n, held = 0;
    enum claim_order order;
    struct dur aging;
    if (store_policy(&q->base, a, &limits, &n, &order, &aging, err) < 0)
        return err->code;
    struct limit_spec *specs = arena_alloc(a, (n + 1) * sizeof(*specs));
    AUTO_FREE size_t *which = mem_zalloc(n + 1, sizeof(*which));
    AUTO_FREE struct sv *values = mem_zalloc(n + 1, sizeof(*values));
    for (size_t i = 0; i < n; i++)
        if (!limits[i].unset)
            specs[held++] = limits[i].spec;
    const struct job_view *j = &out->job;
    size_t found = limits_of(specs, held, j->queue, j->kind, j->host, which, values);
    struct gate_view *gates = arena_alloc(a, (found + 1) * sizeof(*gates));
    for (size_t i = 0; i < found; i++)
        if (read_gate(q, &specs[which[i]], values[i], out->now.us, a, &gates[i], err) < 0)
            return err->code;
    out->gates = gates;
    out->n_gates = found;
    return 0;
}

static int read_sessions(struct sq *q, struct arena *a, struct explain_view *out,
                         struct pawl_err *err)
{
    struct session_view *v;
    int rc = session_views(q, out->now, a, &v, &out->n_sessions, err);
    if (rc == 0)
        out->sessions = v;
    return rc;
}

static int read_held(struct sq *q, job_id id, struct arena *a, struct explain_view *out,
                     struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_EXPLAIN_HELD, err);
    if (!s)
        return err->code;
    AUTO_FREE struct held_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, id.v);
    while ((rc = stmt_step(q, s, err, "explain")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n] = (struct held_view){.session = {sqlite3_column_int64(s, 0)},
                                  .kind = column_copy(s, 1, a),
                                  .n = sqlite3_column_int64(s, 2)};
        if (sqlite3_column_int(s, 3))
            out->owner = v[n].session;
        n++;
    }
    struct held_view *kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    if (n)
        memcpy(kept, v, n * sizeof(*kept));
    out->held = kept;
    out->n_held = n;
    return rc;
}

static int explain_in(struct sq *q, job_id id, struct arena *a, struct explain_view *out,
                      struct pawl_err *err)
{
    struct place p = {0};
    if (store_job_get(&q->base, id, a, &out->job, err) < 0 ||
        read_place(q, id, a, &p, out, err) < 0 || read_position(q, id, &p, out, err) < 0 ||
        read_lock(q, &p, a, out, err) < 0 || read_gates(q, a, out, err) < 0 ||
        read_held(q, id, a, out, err) < 0)
        return err->code;
    return read_sessions(q, a, out, err);
}

int store_explain(struct store *s, job_id id, struct arena *a, struct explain_view *out,
                  struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct explain_view v = {.now = sq_now(q)};
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = explain_in(q, id, a, &v, err);
    read_end(q);
    if (rc == 0)
        *out = v;
    return rc;
}
