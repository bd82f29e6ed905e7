/* The report: what happened since a time, from slots, small indexes and a bounded look at
 * durations. */
#include "internal.h"

static int read_slots(struct sq *q, struct sv queue, struct arena *a, struct report_view *out,
                      struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_REPORT_SLOTS, err);
    if (!s)
        return err->code;
    AUTO_FREE struct report_slot *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, out->since.us / THROUGHPUT_SLOT_US);
    bind_sv(s, 2, queue);
    while ((rc = stmt_step(q, s, err, "report")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n] = (struct report_slot){.at = {sqlite3_column_int64(s, 0) * THROUGHPUT_SLOT_US},
                                    .done = sqlite3_column_int64(s, 1),
                                    .skipped = sqlite3_column_int64(s, 2),
                                    .failed = sqlite3_column_int64(s, 3),
                                    .retried = sqlite3_column_int64(s, 4),
                                    .lost = sqlite3_column_int64(s, 5)};
        out->total.done += v[n].done;
        out->total.skipped += v[n].skipped;
        out->total.failed += v[n].failed;
        out->total.retried += v[n].retried;
        out->total.lost += v[n].lost;
        out->backoff.us += sqlite3_column_int64(s, 6);
        out->retry_after.us += sqlite3_column_int64(s, 7);
        n++;
    }
    struct report_slot *kept = arena_alloc(a, (n + 1) * sizeof(*kept));
    if (n)
        memcpy(kept, v, n * sizeof(*kept));
    out->slots = kept;
    out->n_slots = n;
    return rc;
}

static int read_message(struct sq *q, struct report_error *e, struct arena *a, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_JOB_GET, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, e->sample.v);
    int rc = stmt_step(q, s, err, "report");
    if (rc == 1)
        e->message = column_copy(s, 25, a);
    return rc < 0 ? rc : 0;
}

static int read_errors(struct sq *q, struct sv queue, struct arena *a, struct report_view *out,
                       struct pawl_err *err)
{
    enum { MOST = 20 };
    AUTO_STMT s = stmt_get(q, STMT_REPORT_ERRORS, err);
    if (!s)
        return err->code;
    struct report_error *v = arena_zalloc(a, MOST, sizeof(*v));
    size_t n = 0;
    int rc;
    sqlite3_bind_int64(s, 1, out->since.us);
    bind_sv(s, 2, queue);
    sqlite3_bind_int(s, 3, MOST);
    while ((rc = stmt_step(q, s, err, "report")) == 1 && n < MOST)
        v[n++] = (struct report_error){.fingerprint = (uint32_t)sqlite3_column_int64(s, 0),
                                       .cls = (enum fail_class)sqlite3_column_int(s, 1),
                                       .count = sqlite3_column_int64(s, 2),
                                       .sample = {sqlite3_column_int64(s, 3)}};
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = read_message(q, &v[i], a, err);
    out->errors = v;
    out->n_errors = n;
    return rc < 0 ? rc : 0;
}

static int read_slowest(struct sq *q, struct sv queue, struct arena *a, struct report_view *out,
                        struct pawl_err *err)
{
    enum { MOST = 5 };
    AUTO_STMT s = stmt_get(q, STMT_REPORT_SLOWEST, err);
    if (!s)
        return err->code;
    struct report_slow *v = arena_zalloc(a, MOST, sizeof(*v));
    size_t n = 0;
    int rc;
    sqlite3_bind_int64(s, 1, out->since.us);
    bind_sv(s, 2, queue);
    while ((rc = stmt_step(q, s, err, "report")) == 1 && n < MOST)
        v[n++] = (struct report_slow){.id = {sqlite3_column_int64(s, 0)},
                                      .queue = column_copy(s, 1, a),
                                      .kind = column_copy(s, 2, a),
                                      .key = column_copy(s, 3, a),
                                      .took = {sqlite3_column_int64(s, 4)}};
    out->slowest = v;
    out->n_slowest = n;
    return rc < 0 ? rc : 0;
}

static int read_cancelled(struct sq *q, struct sv queue, struct report_view *out,
                          struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_REPORT_CANCELLED, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, out->since.us);
    bind_sv(s, 2, queue);
    int rc = stmt_step(q, s, err, "report");
    if (rc == 1)
        out->cancelled = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : 0;
}

static int read_workers(struct sq *q, struct report_view *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_REPORT_SESSIONS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, out->since.us);
    int rc = stmt_step(q, s, err, "report");
    if (rc == 1) {
        out->workers_ended = sqlite3_column_int64(s, 0);
        out->workers_lost = sqlite3_column_int64(s, 1);
    }
    return rc < 0 ? rc : 0;
}

int store_report(struct store *s, struct wall since, struct sv queue, struct arena *a,
                 struct report_view *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct report_view v = {.now = sq_now(q), .since = since};
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_slots(q, queue, a, &v, err);
    if (rc == 0)
        rc = read_errors(q, queue, a, &v, err);
    if (rc == 0)
        rc = read_slowest(q, queue, a, &v, err);
    if (rc == 0)
        rc = read_cancelled(q, queue, &v, err);
    if (rc == 0)
        rc = read_workers(q, &v, err);
    read_end(q);
    if (rc == 0)
        *out = v;
    return rc;
}
