/* The report: what happened since a time, from slots, small indexes and a bounded look at
 * durations. */
#include "pg.h"

struct asking {
    struct pg *p;
    struct sv queue;
    struct arena *a;
    struct report_view *out;
};

/* $1 since, $2 queue; $3 if not 0. */
static int ask(struct asking *k, enum stmt_id id, int64_t most, PGresult **out,
               struct pawl_err *err)
{
    AUTO_ARGS x;
    args_init(&x);
    arg_i64(&x, k->out->since.us);
    if (id != STMT_REPORT_SESSIONS)
        arg_text(&x, k->queue);
    if (most)
        arg_i64(&x, most);
    return db_query(k->p, id, &x, out, err);
}

static void read_slot(const PGresult *r, int row, struct report_view *out, struct report_slot *v)
{
    *v = (struct report_slot){.at = {res_i64(r, row, 0) * THROUGHPUT_SLOT_US},
                              .done = res_i64(r, row, 1),
                              .skipped = res_i64(r, row, 2),
                              .failed = res_i64(r, row, 3),
                              .retried = res_i64(r, row, 4),
                              .lost = res_i64(r, row, 5)};
    out->total.done += v->done;
    out->total.skipped += v->skipped;
    out->total.failed += v->failed;
    out->total.retried += v->retried;
    out->total.lost += v->lost;
    out->backoff.us += res_i64(r, row, 6);
    out->retry_after.us += res_i64(r, row, 7);
}

static int read_slots(struct asking *k, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = ask(k, STMT_REPORT_SLOTS, 0, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct report_slot *v = arena_zalloc(k->a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        read_slot(r, i, k->out, &v[i]);
    k->out->slots = v;
    k->out->n_slots = (size_t)n;
    return 0;
}

static int read_errors(struct asking *k, struct pawl_err *err)
{
    enum { MOST = 20 };
    AUTO_RESULT r = NULL;
    int rc = ask(k, STMT_REPORT_ERRORS, MOST, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct report_error *v = arena_zalloc(k->a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        v[i] = (struct report_error){.fingerprint = (uint32_t)res_i64(r, i, 0),
                                     .cls = (enum fail_class)res_int(r, i, 1),
                                     .count = res_i64(r, i, 2),
                                     .sample = {res_i64(r, i, 3)},
                                     .message = res_copy(r, i, 4, k->a)};
    k->out->errors = v;
    k->out->n_errors = (size_t)n;
    return 0;
}

static int read_slowest(struct asking *k, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = ask(k, STMT_REPORT_SLOWEST, 0, &r, err);
    if (rc < 0)
        return rc;
    int n = PQntuples(r);
    struct report_slow *v = arena_zalloc(k->a, (size_t)n + 1, sizeof(*v));
    for (int i = 0; i < n; i++)
        v[i] = (struct report_slow){.id = {res_i64(r, i, 0)},
                                    .queue = res_copy(r, i, 1, k->a),
                                    .kind = res_copy(r, i, 2, k->a),
                                    .key = res_copy(r, i, 3, k->a),
                                    .took = {res_i64(r, i, 4)}};
    k->out->slowest = v;
    k->out->n_slowest = (size_t)n;
    return 0;
}

static int read_ends(struct asking *k, struct pawl_err *err)
{
    AUTO_RESULT cancelled = NULL;
    AUTO_RESULT workers = NULL;
    if (ask(k, STMT_REPORT_CANCELLED, 0, &cancelled, err) < 0 ||
        ask(k, STMT_REPORT_SESSIONS, 0, &workers, err) < 0)
        return err->code;
    k->out->cancelled = res_i64(cancelled, 0, 0);
    k->out->workers_ended = res_i64(workers, 0, 0);
    k->out->workers_lost = res_i64(workers, 0, 1);
    return 0;
}

int pg_report(struct store *s, struct wall since, struct sv queue, struct arena *a,
              struct report_view *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    struct report_view v = {.now = pg_now(s), .since = since};
    struct asking k = {.p = p, .queue = queue, .a = a, .out = &v};
    if (pg_by_index(p, err) < 0 || read_slots(&k, err) < 0 || read_errors(&k, err) < 0 ||
        read_slowest(&k, err) < 0 || read_ends(&k, err) < 0)
        rc = err->code;
    pg_read_end(p);
    if (rc == 0)
        *out = v;
    return rc;
}
