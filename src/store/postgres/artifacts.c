/* Artifacts: looking at them in pages by id, and what happens when their bytes are gone. */
#include "pg.h"

enum { PAGE_FIRST = 100, PAGE = 1000 };

typedef bool each_fn(void *arg, const struct artifact_view *v);

static void read_artifact(const PGresult *r, int row, struct artifact_view *out)
{
    *out = (struct artifact_view){.id = res_i64(r, row, 2),
                                  .job = {res_i64(r, row, 3)},
                                  .fence = {res_i64(r, row, 4)},
                                  .created_at = {res_i64(r, row, 5)},
                                  .a = {.name = res_sv(r, row, 6),
                                        .type = res_sv(r, row, 7),
                                        .size = res_i64(r, row, 9),
                                        .stored = res_i64(r, row, 10),
                                        .codec = (enum codec)res_int(r, row, 11),
                                        .place = res_sv(r, row, 12)},
                                  .queue = res_sv(r, row, 13),
                                  .url = res_sv(r, row, 14),
                                  .status = res_int(r, row, 15)};
    struct sv hash = res_sv(r, row, 8);
    if (hash.n == SHA256_LEN)
        memcpy(out->a.sha256, hash.p, SHA256_LEN);
}

static int read_page(struct pg *p, const struct artifact_filter *f, int64_t after, int64_t page,
                     PGresult **out, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, f->job.v);
    arg_text(&a, f->queue);
    arg_text(&a, f->name);
    arg_bool(&a, f->newest);
    arg_i64(&a, after);
    arg_i64(&a, page);
    return pg_look(p, f->job.v ? STMT_ARTIFACTS_OF_JOB : STMT_ARTIFACTS_BY_ID, &a, out, err);
}

int pg_artifacts(struct store *s, const struct artifact_filter *f, each_fn *each, void *arg,
                 struct pawl_err *err)
{
    int64_t after = f->after, left = f->limit ? f->limit : INT64_MAX;
    for (int64_t page = PAGE_FIRST;; page = PAGE) {
        AUTO_RESULT r = NULL;
        int rc = read_page(pg_of(s), f, after, page, &r, err);
        if (rc < 0)
            return rc;
        for (int i = 0; i < PQntuples(r); i++) {
            struct artifact_view v;
            if (res_null(r, i, 2))
                continue;
            read_artifact(r, i, &v);
            if (!each(arg, &v) || --left == 0)
                return 0;
        }
        if (res_i64(r, 0, 1) < page)
            return 0;
        after = res_i64(r, 0, 0);
    }
}

/* ---- bytes that are gone ---- */

static int jobs_of(struct pg *p, const int64_t *ids, size_t n, int64_t *out, size_t *out_n,
                   struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64s(&a, ids, n, NULL);
    int rc = db_query(p, STMT_LOST_JOBS, &a, &r, err);
    if (rc < 0)
        return rc;
    *out_n = (size_t)PQntuples(r);
    for (int i = 0; i < PQntuples(r); i++)
        out[i] = res_i64(r, i, 0);
    return 0;
}

static int lock_ended(struct pg *p, const int64_t *ids, size_t n, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64s(&a, ids, n, NULL);
    return db_query(p, STMT_ACT_LOCK_ENDED, &a, NULL, err);
}

static int drop_rows(struct pg *p, const int64_t *ids, size_t n, int64_t *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64s(&a, ids, n, NULL);
    int rc = db_query(p, STMT_ARTIFACTS_LOST, &a, &r, err);
    if (rc == 0)
        *out = res_i64(r, 0, 0);
    return rc;
}

/* Jobs are locked before what belongs to them, in the order of their ids, as by every act. A job
 * whose row somebody else has removed meanwhile is queued again by him. */
static int lost_in_op(struct pg *p, const int64_t *ids, size_t n, int64_t *rows, int64_t *jobs,
                      struct pawl_err *err)
{
    AUTO_FREE int64_t *of = mem_zalloc(n + 1, sizeof(*of));
    size_t n_jobs = 0;
    if (pg_by_index(p, err) < 0 || jobs_of(p, ids, n, of, &n_jobs, err) < 0)
        return err->code;
    if (!n_jobs)
        return 0;
    if (lock_ended(p, of, n_jobs, err) < 0 || drop_rows(p, ids, n, rows, err) < 0)
        return err->code;
    return *rows ? pg_retry_ended(p, of, n_jobs, jobs, err) : 0;
}

int pg_artifacts_lost(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                      int64_t *out_jobs, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int64_t rows = 0, jobs = 0;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, n ? lost_in_op(p, ids, n, &rows, &jobs, err) : 0, err);
    if (rc < 0)
        return rc;
    *out_rows = rows;
    *out_jobs = jobs;
    return 0;
}

/* ---- bytes that lie elsewhere, and old ones ---- */

/* One number, the first of the answer, out of an operation of its own. */
static int counted(struct pg *p, int stmt, struct args *a, int64_t *out, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_by_index(p, err);
    if (rc == 0)
        rc = db_query(p, stmt, a, &r, err);
    int64_t n = rc == 0 ? res_i64(r, 0, 0) : 0;
    rc = pg_op_end(p, rc, err);
    if (rc == 0)
        *out = n;
    return rc;
}

int pg_artifacts_move(struct store *s, const struct artifact_move *v, size_t n, int64_t *out_moved,
                      struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    int64_t *ids = arena_alloc(&a.arena, (n + 1) * sizeof(*ids));
    int64_t *stored = arena_alloc(&a.arena, (n + 1) * sizeof(*stored));
    struct sv *from = arena_alloc(&a.arena, (n + 1) * sizeof(*from));
    struct sv *to = arena_alloc(&a.arena, (n + 1) * sizeof(*to));
    int *codecs = arena_alloc(&a.arena, (n + 1) * sizeof(*codecs));
    for (size_t i = 0; i < n; i++) {
        ids[i] = v[i].id;
        stored[i] = v[i].stored;
        from[i] = v[i].from;
        to[i] = v[i].to;
        codecs[i] = v[i].codec;
    }
    arg_i64s(&a, ids, n, NULL);
    arg_texts(&a, from, n);
    arg_texts(&a, to, n);
    arg_i64s(&a, stored, n, NULL);
    arg_ints(&a, codecs, n, NULL);
    return counted(pg_of(s), STMT_ARTIFACTS_MOVE, &a, out_moved, err);
}

int pg_artifacts_expire(struct store *s, struct wall before, int max, int64_t *out_rows,
                        bool *out_more, struct pawl_err *err)
{
    AUTO_ARGS a;
    int64_t n = 0;
    args_init(&a);
    arg_i64(&a, before.us);
    arg_int(&a, max);
    int rc = counted(pg_of(s), STMT_ARTIFACTS_EXPIRE, &a, &n, err);
    if (rc < 0)
        return rc;
    *out_rows = n;
    *out_more = n == max;
    return 0;
}
