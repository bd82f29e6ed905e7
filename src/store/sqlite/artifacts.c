/* Artifacts: looking at them, and what happens when their bytes are gone. */
#include "internal.h"

typedef bool each_fn(void *arg, const struct artifact_view *v);

/* Strings last until the next step. */
static void read_artifact(sqlite3_stmt *s, struct artifact_view *out)
{
    *out = (struct artifact_view){.id = sqlite3_column_int64(s, 0),
                                  .job = {sqlite3_column_int64(s, 1)},
                                  .fence = {sqlite3_column_int64(s, 2)},
                                  .created_at = {sqlite3_column_int64(s, 3)},
                                  .a = {.name = column_sv(s, 4),
                                        .type = column_sv(s, 5),
                                        .size = sqlite3_column_int64(s, 7),
                                        .stored = sqlite3_column_int64(s, 8),
                                        .codec = (enum codec)sqlite3_column_int(s, 9),
                                        .place = column_sv(s, 10)},
                                  .queue = column_sv(s, 11),
                                  .url = column_sv(s, 12),
                                  .status = sqlite3_column_int(s, 13)};
    if (sqlite3_column_bytes(s, 6) == SHA256_LEN)
        memcpy(out->a.sha256, sqlite3_column_blob(s, 6), SHA256_LEN);
}

static int walk(struct sq *q, const struct artifact_filter *f, each_fn *each, void *arg,
                struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, f->job.v ? STMT_ARTIFACTS_OF_JOB : STMT_ARTIFACTS_BY_ID, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, f->job.v);
    bind_sv(s, 2, f->queue);
    bind_sv(s, 3, f->name);
    sqlite3_bind_int(s, 4, f->newest);
    sqlite3_bind_int64(s, 5, f->after);
    sqlite3_bind_int64(s, 6, f->limit ? f->limit : -1);
    int rc;
    while ((rc = stmt_step(q, s, err, "artifacts")) == 1) {
        struct artifact_view v;
        read_artifact(s, &v);
        if (!each(arg, &v))
            return 0;
    }
    return rc;
}

int store_artifacts(struct store *s, const struct artifact_filter *f, each_fn *each, void *arg,
                    struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = walk(q, f, each, arg, err);
    read_end(q);
    return rc;
}

/* ---- bytes that are gone ---- */

struct lost {
    job_id job;
    fence_no fence;
    char detail[64 + ARTIFACT_NAME_MAX + 2 * SHA256_LEN];
};

static void describe(sqlite3_stmt *s, struct lost *out)
{
    char hash[2 * SHA256_LEN + 1];
    struct sv name = column_sv(s, 2);
    hex_encode(sqlite3_column_blob(s, 3), (size_t)sqlite3_column_bytes(s, 3), hash);
    out->job.v = sqlite3_column_int64(s, 0);
    out->fence.v = sqlite3_column_int64(s, 1);
    sqlite3_snprintf(sizeof(out->detail), out->detail, "{\"name\":\"%.*s\",\"sha256\":\"%s\"}",
                     (int)name.n, name.p, hash);
}

/* 1 = the row was there. Checked names and hashes are written: nothing to be escaped. */
static int drop_row(struct sq *q, int64_t id, struct lost *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_ARTIFACT_DROP, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id);
    int rc = stmt_step(q, s, err, "repair");
    if (rc != 1)
        return rc;
    describe(s, out);
    rc = stmt_step(q, s, err, "repair"); /* to its end, or the row is not gone */
    return rc < 0 ? rc : 1;
}

/* The record of its fetch stays as long as the attempt does. */
static int part_from_fetch(struct sq *q, int64_t id, const struct lost *l, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_FETCH_LOST, STMT_FETCH_LEFT_OVER};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        AUTO_STMT s = stmt_get(q, steps[i], err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, l->job.v);
        sqlite3_bind_int64(s, 2, l->fence.v);
        if (steps[i] == STMT_FETCH_LOST)
            sqlite3_bind_int64(s, 3, id);
        if (stmt_run(q, s, err, "repair") < 0)
            return err->code;
    }
    return 0;
}

/* 1 = it had ended and is queued again. */
static int requeue(struct sq *q, job_id id, struct pawl_err *err)
{
    struct target t;
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    int rc = target_read(q, id, &a, &t, err);
    if (rc != 1 || !job_state_terminal(t.state))
        return rc < 0 ? rc : 0;
    return retry_one(q, id, &t, 0, err) < 0 ? err->code : 1;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int lost_in_op(struct sq *q, int64_t *ids, size_t n, int64_t *rows, int64_t *jobs,
                      struct pawl_err *err)
{
    size_t n_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        struct lost l;
        int rc = drop_row(q, ids[i], &l, err);
        if (rc == 0)
            continue;
        if (rc < 0 || part_from_fetch(q, ids[i], &l, err) < 0 ||
            add_event(q, EVENT_ARTIFACT_LOST, l.job, l.fence, (session_id){0}, sv_of(l.detail),
                      err) < 0)
            return err->code;
        ids[n_jobs++] = l.job.v;
    }
    *rows = (int64_t)n_jobs;
    qsort(ids, n_jobs, sizeof(*ids), compare);
    for (size_t i = 0; i < n_jobs; i++) {
        int rc = i && ids[i] == ids[i - 1] ? 0 : requeue(q, (job_id){ids[i]}, err);
        if (rc < 0)
            return rc;
        *jobs += rc;
    }
    return 0;
}

int store_artifacts_lost(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                         int64_t *out_jobs, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int64_t rows = 0, jobs = 0;
    AUTO_FREE int64_t *sorted = mem_zalloc(n + 1, sizeof(*sorted));
    if (n)
        memcpy(sorted, ids, n * sizeof(*ids));
    qsort(sorted, n, sizeof(*sorted), compare);
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, lost_in_op(q, sorted, n, &rows, &jobs, err), err);
    if (rc < 0)
        return rc;
    *out_rows = rows;
    *out_jobs = jobs;
    return 0;
}

/* ---- bytes that lie elsewhere ---- */

static int move_in_op(struct sq *q, const struct artifact_move *v, size_t n, int64_t *moved,
                      struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        AUTO_STMT s = stmt_get(q, STMT_ARTIFACT_MOVE, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, v[i].id);
        bind_sv(s, 2, v[i].from);
        bind_sv(s, 3, v[i].to);
        sqlite3_bind_int64(s, 4, v[i].stored);
        sqlite3_bind_int(s, 5, v[i].codec);
        if (stmt_run(q, s, err, "artifacts") < 0)
            return err->code;
        *moved += sqlite3_changes(q->db);
    }
    return 0;
}

int store_artifacts_move(struct store *s, const struct artifact_move *v, size_t n,
                         int64_t *out_moved, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int64_t moved = 0;
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, move_in_op(q, v, n, &moved, err), err);
    if (rc == 0)
        *out_moved = moved;
    return rc;
}

/* ---- old ones ---- */

static int find_old(struct sq *q, struct wall before, int max, int64_t *ids, int *out_n,
                    struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_ARTIFACTS_OLD, err);
    int rc;
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, before.us);
    sqlite3_bind_int(s, 2, max);
    while ((rc = stmt_step(q, s, err, "retention")) == 1) {
        if (sqlite3_column_int(s, 1))
            ids[(*out_n)++] = sqlite3_column_int64(s, 0);
    }
    return rc;
}

static int expire_in_op(struct sq *q, struct wall before, int max, int64_t *rows, bool *more,
                        struct pawl_err *err)
{
    AUTO_FREE int64_t *ids = mem_zalloc((size_t)max + 1, sizeof(*ids));
    int n = 0, rc = find_old(q, before, max, ids, &n, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        struct lost l;
        rc = drop_row(q, ids[i], &l, err);
        if (rc == 1)
            rc = part_from_fetch(q, ids[i], &l, err);
    }
    *rows = n;
    *more = n == max;
    return rc < 0 ? rc : 0;
}

int store_artifacts_expire(struct store *s, struct wall before, int max, int64_t *out_rows,
                           bool *out_more, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int64_t rows = 0;
    bool more = false;
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, expire_in_op(q, before, max, &rows, &more, err), err);
    if (rc < 0)
        return rc;
    *out_rows = rows;
    *out_more = more;
    return 0;
}
