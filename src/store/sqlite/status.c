/* The status view, from counters and small indexes: its cost does not grow with history. */
#include "internal.h"

static int read_classes(struct sq *q, struct arena *a, struct status_view *out,
                        struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_STATUS_CLASSES, err);
    if (!s)
        return err->code;
    AUTO_FREE struct class_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, out->now.us / THROUGHPUT_SLOT_US - 5); /* this slot and five before */
    while ((rc = stmt_step(q, s, err, "status")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n] = (struct class_view){.queue = column_copy(s, 0, a),
                                   .kind = column_copy(s, 1, a),
                                   .paused = sqlite3_column_int(s, 2),
                                   .retries = sqlite3_column_int64(s, 11),
                                   .first_created_at = {sqlite3_column_int64(s, 12)},
                                   .done_last_minute = sqlite3_column_int64(s, 13)};
        for (int i = 0; i < N_JOB_STATES; i++)
            v[n].n[i] = sqlite3_column_int64(s, 3 + i);
        n++;
    }
    struct class_view *kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    if (n)
        memcpy(kept, v, n * sizeof(*kept));
    out->classes = kept;
    out->n_classes = n;
    return rc;
}

int session_views(struct sq *q, struct wall now, struct arena *a, struct session_view **out,
                  size_t *out_n, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSIONS_VIEW, err);
    if (!s)
        return err->code;
    AUTO_FREE struct session_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    while ((rc = stmt_step(q, s, err, "status")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n] = (struct session_view){
            .id = {sqlite3_column_int64(s, 0)},
            .uid = column_copy(s, 1, a),
            .name = column_copy(s, 2, a),
            .host = column_copy(s, 3, a),
            .pools = column_copy(s, 4, a),
            .filter = column_copy(s, 5, a),
            .pid = sqlite3_column_int(s, 6),
            .slots = sqlite3_column_int(s, 7),
            .running = sqlite3_column_int(s, 8),
            .started_at = {sqlite3_column_int64(s, 9)},
            .renewed_at = {sqlite3_column_int64(s, 10)},
            .lease_until = {sqlite3_column_int64(s, 11)},
            .command = (enum worker_command)sqlite3_column_int(s, 12),
            .preflight = column_copy(s, 13, a),
        };
        v[n].alive = v[n].lease_until.us > now.us && !session_file_free(q, v[n].uid.p);
        n++;
    }
    struct session_view *kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    if (n)
        memcpy(kept, v, n * sizeof(*kept));
    *out = kept;
    *out_n = n;
    return rc;
}

static int read_sessions(struct sq *q, struct arena *a, struct status_view *out,
                         struct pawl_err *err)
{
    struct session_view *v;
    int rc = session_views(q, out->now, a, &v, &out->n_sessions, err);
    if (rc == 0)
        out->sessions = v;
    return rc;
}

static int read_jobs(struct sq *q, enum stmt_id id, int parameter, struct arena *a,
                     const struct job_view **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, id, err);
    if (!s)
        return err->code;
    AUTO_FREE struct job_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int(s, 1, parameter);
    while ((rc = stmt_step(q, s, err, "status")) == 1) {
        ARRAY_GROW(v, n, cap);
        job_view_read(s, false, a, &v[n++]);
    }
    struct job_view *kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    if (n)
        memcpy(kept, v, n * sizeof(*kept));
    *out = kept;
    *out_n = n;
    return rc;
}

static int read_poison(struct sq *q, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_STATUS_POISON, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "status");
    if (rc == 1)
        *out = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : 0;
}

static int read_metrics(struct sq *q, int64_t out[N_METRICS], struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_METRIC_SUM, err);
    if (!s)
        return err->code;
    int rc;
    while ((rc = stmt_step(q, s, err, "status")) == 1)
        for (int i = 0; i < N_METRICS; i++) {
            char name[64];
            metric_slot_name(i, name);
            if (sv_eq(column_sv(s, 0), sv_of(name)))
                out[i] = sqlite3_column_int64(s, 1);
        }
    return rc;
}

int store_status(struct store *s, int max_running, struct arena *a, struct status_view *out,
                 struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct status_view v = {.now = sq_now(q)};
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_classes(q, a, &v, err);
    if (!rc)
        rc = read_sessions(q, a, &v, err);
    if (!rc && max_running > 0) {
        rc = read_jobs(q, STMT_STATUS_RUNNING, max_running, a, &v.running, &v.n_running, err);
        if (!rc)
            rc = read_jobs(q, STMT_STATUS_LAST, JOB_DONE, a, &v.last_done, &v.n_last_done, err);
        if (!rc)
            rc = read_jobs(q, STMT_STATUS_LAST, JOB_FAILED, a, &v.last_failed, &v.n_last_failed,
                           err);
        if (!rc)
            rc = read_poison(q, &v.poisoned, err);
        if (!rc)
            rc = read_metrics(q, v.metrics, err);
    }
    read_end(q);
    if (rc == 0)
        *out = v;
    return rc;
}
