/* The status view, from counters and small indexes: its cost does not grow with history. */
#include "pg_limits.h"

static int read_classes(struct pg *p, struct arena *a, struct status_view *out,
                        struct pawl_err *err)
{
    AUTO_ARGS x;
    AUTO_RESULT r = NULL;
    args_init(&x);
    arg_i64(&x, out->now.us / THROUGHPUT_SLOT_US - 5); /* this slot and five before */
    int rc = db_query(p, STMT_STATUS_CLASSES, &x, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct class_view *v = arena_zalloc(a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++) {
        v[i] = (struct class_view){.queue = res_copy(r, i, 0, a),
                                   .kind = res_copy(r, i, 1, a),
                                   .paused = res_int(r, i, 2),
                                   .retries = res_i64(r, i, 11),
                                   .first_created_at = {res_i64(r, i, 12)},
                                   .done_last_minute = res_i64(r, i, 13)};
        for (int k = 0; k < N_JOB_STATES; k++)
            v[i].n[k] = res_i64(r, i, 3 + k);
    }
    out->classes = v;
    out->n_classes = (size_t)n;
    return 0;
}

int pg_sessions_read(struct pg *p, struct arena *a, struct session_view **out, size_t *out_n,
                     struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_STATUS_SESSIONS, NULL, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct session_view *v = arena_zalloc(a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        v[i] = (struct session_view){.id = {res_i64(r, i, 0)},
                                     .uid = res_copy(r, i, 1, a),
                                     .name = res_copy(r, i, 2, a),
                                     .host = res_copy(r, i, 3, a),
                                     .pools = res_copy(r, i, 4, a),
                                     .filter = res_copy(r, i, 5, a),
                                     .pid = res_int(r, i, 6),
                                     .slots = res_int(r, i, 7),
                                     .running = res_int(r, i, 8),
                                     .started_at = {res_i64(r, i, 9)},
                                     .renewed_at = {res_i64(r, i, 10)},
                                     .lease_until = {res_i64(r, i, 11)},
                                     .command = (enum worker_command)res_int(r, i, 12),
                                     .alive = res_int(r, i, 13),
                                     .preflight = res_copy(r, i, 14, a)};
    *out = v;
    *out_n = (size_t)n;
    return 0;
}

static int read_sessions(struct pg *p, struct arena *a, struct status_view *out,
                         struct pawl_err *err)
{
    struct session_view *v;
    int rc = pg_sessions_read(p, a, &v, &out->n_sessions, err);
    if (rc == 0)
        out->sessions = v;
    return rc;
}

static int read_jobs(struct pg *p, enum stmt_id id, struct args *x, struct arena *a,
                     const struct job_view **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, id, x, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct job_view *v = arena_zalloc(a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        pg_job_view_read(r, i, false, a, &v[i]);
    *out = v;
    *out_n = (size_t)n;
    return 0;
}

static int read_running(struct pg *p, int max, struct arena *a, struct status_view *out,
                        struct pawl_err *err)
{
    AUTO_ARGS x;
    args_init(&x);
    arg_i64(&x, max);
    return read_jobs(p, STMT_STATUS_RUNNING, &x, a, &out->running, &out->n_running, err);
}

static int read_last(struct pg *p, enum job_state state, struct arena *a,
                     const struct job_view **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_ARGS x;
    args_init(&x);
    arg_int(&x, (int)state);
    return read_jobs(p, STMT_STATUS_LAST, &x, a, out, out_n, err);
}

static int read_poison(struct pg *p, int64_t *out, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_STATUS_POISON, NULL, &r, err);
    if (rc == 0)
        *out = res_i64(r, 0, 0);
    return rc;
}

static int read_metrics(struct pg *p, int64_t out[N_METRICS], struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_METRIC_SUM, NULL, &r, err);
    for (int row = 0; rc == 0 && row < PQntuples(r); row++)
        for (int i = 0; i < N_METRICS; i++) {
            char name[64];
            metric_slot_name(i, name);
            if (sv_eq(res_sv(r, row, 0), sv_of(name)))
                out[i] = res_i64(r, row, 1);
        }
    return rc;
}

static int read_status(struct pg *p, int max_running, struct arena *a, struct status_view *out,
                       struct pawl_err *err)
{
    if (read_classes(p, a, out, err) < 0 || read_sessions(p, a, out, err) < 0)
        return err->code;
    if (max_running <= 0)
        return 0;
    if (read_running(p, max_running, a, out, err) < 0 ||
        read_last(p, JOB_DONE, a, &out->last_done, &out->n_last_done, err) < 0 ||
        read_last(p, JOB_FAILED, a, &out->last_failed, &out->n_last_failed, err) < 0 ||
        read_poison(p, &out->poisoned, err) < 0 || read_metrics(p, out->metrics, err) < 0)
        return err->code;
    return 0;
}

int pg_status(struct store *s, int max_running, struct arena *a, struct status_view *out,
              struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    struct status_view v = {.now = pg_now(s)};
    rc = read_status(p, max_running, a, &v, err);
    pg_read_end(p);
    if (rc == 0)
        *out = v;
    return rc;
}
