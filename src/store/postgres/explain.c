/* Everything that decides whether a job runs now, read in one snapshot. */
#include "pg_limits.h"

#include "digest.h"

enum { POSITION_MAX = 100000 };

struct explaining {
    struct pg *p;
    struct arena *a;
    struct explain_view *out;
};

static int read_job(const struct explaining *x, job_id id, struct pawl_err *err)
{
    return pg_job_read(x->p, id, x->a, &x->out->job, err);
}

static int read_pause(const struct explaining *x, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_text(&a, x->out->job.queue);
    int rc = db_query(x->p, STMT_EXPLAIN_PAUSE, &a, &r, err);
    if (rc < 0)
        return rc;
    x->out->paused = PQntuples(r) == 1;
    if (x->out->paused)
        x->out->paused_at.us = res_i64(r, 0, 0);
    return 0;
}

/* ---- gates ---- */

/* The limits that hold, and where each was in the rows. */
static size_t holding(const struct limit_row *rows, size_t n, struct limit_spec *specs,
                      size_t *where)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].text.p) {
            specs[kept] = rows[i].spec;
            where[kept++] = i;
        }
    return kept;
}

static void read_holders(const PGresult *r, int row, struct arena *a, struct gate_view *g)
{
    size_t n, m;
    int64_t *jobs = res_i64s(r, row, GATE_COLUMNS + 1, a, &n);
    int64_t *fences = res_i64s(r, row, GATE_COLUMNS + 2, a, &m);
    struct lease_ref *v = arena_zalloc(a, n + 1, sizeof(*v));
    for (size_t i = 0; i < n && i < m; i++)
        v[i] = (struct lease_ref){{jobs[i]}, {fences[i]}};
    g->holders = v;
    g->n_holders = n;
}

/* The gates of the job's lane, worked out from the limits: its own may be those of earlier ones. */
static int read_gates(const struct explaining *x, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    const struct job_view *job = &x->out->job;
    struct limit_row *rows;
    size_t n;
    args_init(&a);
    if (pg_limits_read(x->p, x->a, &rows, &n, err) < 0)
        return err->code;
    struct limit_spec *specs = arena_alloc(x->a, (n + 1) * sizeof(*specs));
    size_t *where = arena_alloc(x->a, (n + 1) * sizeof(*where));
    size_t *which = arena_alloc(x->a, (n + 1) * sizeof(*which));
    struct sv *values = arena_alloc(x->a, (n + 1) * sizeof(*values));
    int64_t *ids = arena_alloc(x->a, (n + 1) * sizeof(*ids));
    n = limits_of(specs, holding(rows, n, specs, where), job->queue, job->kind, job->host, which,
                  values);
    if (!n)
        return 0;
    for (size_t i = 0; i < n; i++)
        ids[i] = gate_digest(rows[where[which[i]]].name, values[i]);
    arg_i64s(&a, ids, n, NULL);
    if (db_query(x->p, STMT_EXPLAIN_GATES, &a, &r, err) < 0)
        return err->code;
    struct gate_view *v = arena_zalloc(x->a, n, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        pg_gate_read(r, (int)i, &rows[where[which[i]]], &v[i]);
        v[i].value = values[i];
        v[i].why = res_copy(r, (int)i, 21, x->a);
        read_holders(r, (int)i, x->a, &v[i]);
    }
    x->out->gates = v;
    x->out->n_gates = n;
    return 0;
}

/* ---- lock, place, workers ---- */

static int read_lock(const struct explaining *x, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    if (!x->out->job.lock.p)
        return 0;
    arg_i64(&a, lock_digest(x->out->job.lock));
    int rc = db_query(x->p, STMT_LOCK_ONE, &a, &r, err);
    if (rc < 0)
        return rc;
    if (PQntuples(r)) {
        pg_lock_read(r, 0, &x->out->lock);
        x->out->lock.worker = res_copy(r, 0, 3, x->a);
    }
    x->out->lock.key = x->out->job.lock;
    return 0;
}

static int read_position(const struct explaining *x, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    if (x->out->job.state != JOB_QUEUED)
        return 0;
    arg_i64(&a, x->out->job.id.v);
    arg_text(&a, x->out->job.queue);
    int rc = db_query(x->p, STMT_EXPLAIN_POSITION, &a, &r, err);
    if (rc < 0)
        return rc;
    if (!PQntuples(r) || res_int(r, 0, 0) != JOB_QUEUED)
        return 0; /* its lock is not free */
    int64_t before = res_i64(r, 0, 1);
    x->out->position_more = before == POSITION_MAX;
    x->out->position = before + !x->out->position_more;
    return 0;
}

static int read_sessions(const struct explaining *x, struct pawl_err *err)
{
    struct session_view *v;
    int rc = pg_sessions_read(x->p, x->a, &v, &x->out->n_sessions, err);
    if (rc == 0)
        x->out->sessions = v;
    return rc;
}

static int read_held(const struct explaining *x, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, x->out->job.id.v);
    int rc = db_query(x->p, STMT_EXPLAIN_HELD, &a, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct held_view *v = arena_zalloc(x->a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++) {
        v[i] = (struct held_view){
            .session = {res_i64(r, i, 0)}, .kind = res_copy(r, i, 1, x->a), .n = res_i64(r, i, 2)};
        if (res_int(r, i, 3))
            x->out->owner = v[i].session;
    }
    x->out->held = v;
    x->out->n_held = (size_t)n;
    return 0;
}

int pg_explain(struct store *s, job_id id, struct arena *a, struct explain_view *out,
               struct pawl_err *err)
{
    static int (*const steps[])(const struct explaining *, struct pawl_err *) = {
        read_pause, read_gates, read_lock, read_position, read_sessions, read_held};
    struct explain_view v = {.now = pg_now(s)};
    struct explaining x = {.p = pg_of(s), .a = a, .out = &v};
    int rc = pg_read_begin(x.p, err);
    if (rc < 0)
        return rc;
    rc = pg_by_index(x.p, err);
    if (rc == 0)
        rc = read_job(&x, id, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
        rc = steps[i](&x, err);
    pg_read_end(x.p);
    if (rc == 0)
        *out = v;
    return rc;
}
