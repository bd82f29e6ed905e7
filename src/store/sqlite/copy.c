/* Copying stores (copy.h): this one as source and as target. */
#include "internal.h"

#include "copy.h"
#include "digest.h"
#include <stdio.h>

static const struct {
    enum stmt_id read, last, put[3]; /* put: in this order, each with all parameters */
    int n_put;
} statements[N_COPY_TABLES] = {
#define PLAIN(t) [COPY_##t] = {STMT_COPY_READ_##t, STMT_COPY_LAST_##t, {STMT_COPY_PUT_##t}, 1}
    PLAIN(SESSION),
    PLAIN(CLASS),
    PLAIN(PAUSE),
    PLAIN(POLICY),
    PLAIN(LIMIT),
    PLAIN(GATE),
    [COPY_JOB] = {STMT_COPY_READ_JOB,
                  STMT_COPY_LAST_JOB,
                  {STMT_COPY_PUT_BODY, STMT_COPY_PUT_JOB, STMT_COPY_PUT_DUE},
                  3},
    PLAIN(RESULT),
    PLAIN(POISON),
    PLAIN(CANCEL_ASK),
    PLAIN(KEY),
    PLAIN(ATTEMPT),
    PLAIN(ARTIFACT),
    PLAIN(FETCH),
    PLAIN(MEMORY),
    PLAIN(EVENT),
    PLAIN(METRIC),
    PLAIN(THROUGHPUT),
#undef PLAIN
};

static void bind_value(sqlite3_stmt *s, int i, char type, const struct copy_value *v)
{
    if (v->null)
        sqlite3_bind_null(s, i);
    else if (type == 'i')
        sqlite3_bind_int64(s, i, v->i);
    else if (type == 't')
        bind_sv(s, i, v->s);
    else
        sqlite3_bind_blob(s, i, v->s.p, (int)v->s.n, SQLITE_STATIC);
}

static size_t column_value(sqlite3_stmt *s, int i, char type, struct arena *a,
                           struct copy_value *out)
{
    *out = (struct copy_value){.null = sqlite3_column_type(s, i) == SQLITE_NULL};
    if (out->null)
        return 0;
    if (type == 'i') {
        out->i = sqlite3_column_int64(s, i);
        return 0;
    }
    const char *p =
        type == 't' ? (const char *)sqlite3_column_text(s, i) : sqlite3_column_blob(s, i);
    size_t n = (size_t)sqlite3_column_bytes(s, i);
    out->s = sv_make(arena_strndup(a, p ? p : "", n), n);
    return n;
}

/* ---- the source ---- */

static int copy_read_begin(struct store *s, struct pawl_err *err)
{
    return read_begin(sq_of(s), err);
}

static void copy_read_end(struct store *s)
{
    read_end(sq_of(s));
}

static int copy_read(struct store *store, enum copy_table t, const struct copy_value *after,
                     struct arena *a, struct copy_rows *out, struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    const struct copy_shape *shape = &copy_shapes[t];
    AUTO_STMT s = stmt_get(q, statements[t].read, err);
    if (!s)
        return err->code;
    for (int i = 0; i < shape->n_keys; i++)
        bind_value(s, i + 1, shape->types[i], &after[i]);
    sqlite3_bind_int(s, shape->n_keys + 1, COPY_PAGE_ROWS);
    struct copy_rows rows = {
        .v = arena_alloc(a, (size_t)shape->n_columns * COPY_PAGE_ROWS * sizeof(*rows.v))};
    size_t bytes = 0;
    int rc = 0;
    while (bytes < COPY_PAGE_BYTES && rows.n < COPY_PAGE_ROWS &&
           (rc = stmt_step(q, s, err, "copy")) == 1) {
        struct copy_value *row = rows.v + rows.n++ * (size_t)shape->n_columns;
        for (int i = 0; i < shape->n_columns; i++)
            bytes += column_value(s, i, shape->types[i], a, &row[i]);
    }
    if (rc < 0)
        return rc;
    *out = rows;
    return 0;
}

static int count_running(struct sq *q, struct copy_facts *out, struct pawl_err *err)
{
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_COPY_OWNERS, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "copy")) == 1) {
        int64_t n = sqlite3_column_int64(s, 1);
        int alive = session_alive_now(q, (session_id){sqlite3_column_int64(s, 0)}, err);
        if (alive < 0)
            return alive;
        out->running += n;
        out->held += alive ? n : 0;
    }
    return rc;
}

static int count_workers(struct sq *q, int64_t *out, struct pawl_err *err)
{
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_SESSIONS_LIVE, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "copy")) == 1) {
        int alive = session_alive_now(q, (session_id){sqlite3_column_int64(s, 0)}, err);
        if (alive < 0)
            return alive;
        *out += alive;
    }
    return rc;
}

static int read_facts(struct sq *q, struct copy_facts *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_COPY_FACTS, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "copy");
    if (rc < 0)
        return rc;
    snprintf(out->id, sizeof(out->id), SV_FMT, SV_ARG(column_sv(s, 0)));
    snprintf(out->stamp, sizeof(out->stamp), SV_FMT, SV_ARG(column_sv(s, 1)));
    out->next_job = sqlite3_column_int64(s, 2);
    out->logs = sqlite3_column_int(s, 3);
    return 0;
}

static int copy_facts(struct store *store, struct copy_facts *out, struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    struct copy_facts facts = {0};
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_facts(q, &facts, err);
    if (rc == 0)
        rc = count_running(q, &facts, err);
    if (rc == 0)
        rc = count_workers(q, &facts.workers, err);
    read_end(q);
    if (rc == 0)
        *out = facts;
    return rc;
}

/* ---- the target ---- */

static int run(struct sq *q, enum stmt_id id, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, id, err);
    return s ? stmt_run(q, s, err, "copy") : err->code;
}

/* 1 = there is a mark, and what it means. */
static int look_at_mark(struct sq *q, const struct copy_facts *source, enum copy_begun *out,
                        struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("copy"));
    int rc = stmt_step(q, s, err, "copy");
    if (rc == 1)
        *out = copy_mark_meaning(column_sv(s, 0), source);
    return rc;
}

static int holds_anything(struct sq *q, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_COPY_ANY, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "copy");
    return rc == 1 ? sqlite3_column_int(s, 0) : rc;
}

static int set_mark(struct sq *q, const struct copy_facts *source, struct pawl_err *err)
{
    AUTO_STR struct str mark = STR_INIT(STR_LINE);
    AUTO_STMT s = stmt_get(q, STMT_META_SET, err);
    if (!s)
        return err->code;
    copy_mark(source, &mark);
    bind_sv(s, 1, SV("copy"));
    bind_sv(s, 2, str_sv(&mark));
    return stmt_run(q, s, err, "copy");
}

static int wipe(struct sq *q, struct pawl_err *err)
{
    static const enum stmt_id all[] = {
        STMT_COPY_WIPE_SESSION, STMT_COPY_WIPE_THROUGHPUT, STMT_COPY_WIPE_LANE,
        STMT_COPY_WIPE_CLASS,   STMT_COPY_WIPE_QUEUE,      STMT_COPY_WIPE_BODY,
        STMT_COPY_WIPE_JOB,     STMT_COPY_WIPE_DUE,        STMT_COPY_WIPE_CANCEL_ASK,
        STMT_COPY_WIPE_REVOKED, STMT_COPY_WIPE_PROGRESS,   STMT_COPY_WIPE_POISON,
        STMT_COPY_WIPE_RESULT,  STMT_COPY_WIPE_KEY,        STMT_COPY_WIPE_ATTEMPT,
        STMT_COPY_WIPE_EVENT,   STMT_COPY_WIPE_METRIC,     STMT_COPY_WIPE_POLICY,
        STMT_COPY_WIPE_LIMIT,   STMT_COPY_WIPE_GATE,       STMT_COPY_WIPE_PERMIT,
        STMT_COPY_WIPE_DUTY,    STMT_COPY_WIPE_ARTIFACT,   STMT_COPY_WIPE_FETCH,
        STMT_COPY_WIPE_MEMORY,  STMT_COPY_WIPE_ADMITTED,
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (run(q, all[i], err) < 0)
            return err->code;
    names_forget(q);
    policy_forget(q);
    return 0;
}

/* May a copy begin in a store without a mark? COPY_BEGUN: yes. */
static int look_at_target(struct sq *q, bool replace, enum copy_begun *out, struct pawl_err *err)
{
    int64_t workers = 0;
    int any = holds_anything(q, err);
    if (any < 0 || count_workers(q, &workers, err) < 0)
        return err->code;
    *out = any && !replace ? COPY_NOT_EMPTY : workers ? COPY_IN_USE : COPY_BEGUN;
    return 0;
}

static int begin_in_op(struct sq *q, const struct copy_begin *how, enum copy_begun *out,
                       struct pawl_err *err)
{
    int rc = look_at_mark(q, how->source, out, err);
    if (rc < 0 || (rc == 1 && !how->replace))
        return rc < 0 ? rc : 0;
    if (rc == 0 && look_at_target(q, how->replace, out, err) < 0)
        return err->code;
    if (rc == 0 && *out != COPY_BEGUN)
        return 0;
    *out = COPY_BEGUN;
    return wipe(q, err) < 0 ? err->code : set_mark(q, how->source, err);
}

static int copy_begin(struct store *store, const struct copy_begin *how, enum copy_begun *out,
                      struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    enum copy_begun begun = COPY_BEGUN;
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, begin_in_op(q, how, &begun, err), err);
    if (rc == 0)
        *out = begun;
    return rc;
}

static int copy_last(struct store *store, enum copy_table t, struct arena *a,
                     struct copy_value *out_key, bool *out_any, struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    AUTO_STMT s = stmt_get(q, statements[t].last, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "copy");
    if (rc < 0)
        return rc;
    *out_any = rc == 1;
    for (int i = 0; rc == 1 && i < copy_shapes[t].n_keys; i++)
        column_value(s, i, copy_shapes[t].types[i], a, &out_key[i]);
    return 0;
}

enum { COPY_JOB_LOCK = 13, COPY_KEPT_QUEUE = 3 }; /* columns of copy.def */

/* The store's own id for the names in a row; 0 where it needs none. */
static int place_of(struct sq *q, enum copy_table t, const struct copy_value *row, int64_t *out,
                    struct pawl_err *err)
{
    struct lane_entry *lane;
    bool paused;
    *out = 0;
    if (t == COPY_CLASS)
        return names_queue(q, row[0].s, out, &paused, err);
    if (t == COPY_ARTIFACT || t == COPY_FETCH)
        return names_queue(q, row[COPY_KEPT_QUEUE].s, out, &paused, err);
    if (t != COPY_JOB)
        return 0;
    int rc = names_lane(q, row[1].s, row[2].s, row[3].s, &lane, err);
    if (rc == 0)
        *out = lane->id;
    return rc;
}

static int put_row(struct sq *q, enum copy_table t, const struct copy_value *row,
                   struct pawl_err *err)
{
    const struct copy_shape *shape = &copy_shapes[t];
    int64_t place;
    int rc = place_of(q, t, row, &place, err);
    for (int k = 0; rc == 0 && k < statements[t].n_put; k++) {
        AUTO_STMT s = stmt_get(q, statements[t].put[k], err);
        if (!s)
            return err->code;
        for (int i = 0; i < shape->n_columns; i++)
            bind_value(s, i + 1, shape->types[i], &row[i]);
        if (place)
            sqlite3_bind_int64(s, shape->n_columns + 1, place);
        if (t == COPY_JOB && !row[COPY_JOB_LOCK].null)
            sqlite3_bind_int64(s, shape->n_columns + 2, lock_digest(row[COPY_JOB_LOCK].s));
        rc = stmt_run(q, s, err, "copy");
    }
    return rc;
}

static int copy_write(struct store *store, enum copy_table t, const struct copy_rows *rows,
                      struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < rows->n; i++)
        rc = put_row(q, t, copy_row(t, rows, i), err);
    return op_end(q, rc, err);
}

/* ---- the end ---- */

static int release_running(struct sq *q, int64_t *out, struct pawl_err *err)
{
    enum { BATCH = 500 };
    struct settle v[BATCH];
    int n, rc;
    do {
        AUTO_STMT s = stmt_get(q, STMT_COPY_RUNNING, err);
        if (!s)
            return err->code;
        sqlite3_bind_int(s, 1, BATCH);
        n = 0;
        while ((rc = stmt_step(q, s, err, "copy")) == 1)
            v[n++] = (struct settle){.id = {sqlite3_column_int64(s, 0)},
                                     .fence = {sqlite3_column_int64(s, 1)},
                                     .outcome = OUTCOME_RELEASED,
                                     .cls = CLASS_LOST,
                                     .error = SV("the store was copied while it ran"),
                                     .exit_code = -1};
        for (int i = 0; rc == 0 && i < n; i++) {
            enum settle_outcome outcome;
            rc = settle_in_op(q, &v[i], &outcome, err);
        }
        *out += n;
    } while (rc == 0 && n == BATCH);
    return rc;
}

static int end_session(struct sq *q, session_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_END, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, q->now.us);
    sqlite3_bind_int(s, 3, true);
    if (stmt_run(q, s, err, "copy") < 0 || session_fold(q, id, err) < 0)
        return err->code;
    return add_event(q, EVENT_WORKER_LOST, (job_id){0}, (fence_no){0}, id, SV_NONE, err);
}

static int end_sessions(struct sq *q, struct pawl_err *err)
{
    AUTO_FREE session_id *ids = NULL;
    size_t n = 0, cap = 0;
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_SESSIONS_LIVE, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "copy")) == 1) {
        ARRAY_GROW(ids, n, cap);
        ids[n++].v = sqlite3_column_int64(s, 0);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = end_session(q, ids[i], err);
    return rc;
}

static int finish_in_op(struct sq *q, int64_t next_job, int64_t *out_released, struct pawl_err *err)
{
    static const enum stmt_id rebuild[] = {STMT_COPY_POLICY,      STMT_COPY_LOCKS,
                                           STMT_COPY_COUNTS,      STMT_COPY_LANE_HEADS,
                                           STMT_COPY_CLASS_HEADS, STMT_COPY_MARK_DROP};
    for (size_t i = 0; i < ARRAY_LEN(rebuild); i++)
        if (run(q, rebuild[i], err) < 0)
            return err->code;
    if (sqlite3_changes(q->db) == 0)
        return err_set(err, PAWL_ECONFLICT, "%s: no copy into this store is under way", q->path);
    if (meta_set(q, "next_job", next_job, err) < 0 || policy_bump(q, err) < 0 ||
        policy_load(q, err) < 0 || release_running(q, out_released, err) < 0)
        return err->code;
    q->wake = true;
    return end_sessions(q, err);
}

static int copy_finish(struct store *store, int64_t next_job, int64_t *out_released,
                       struct pawl_err *err)
{
    struct sq *q = sq_of(store);
    int64_t released = 0;
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, finish_in_op(q, next_job, &released, err), err);
    if (rc == 0)
        *out_released = released;
    return rc;
}

const struct copy_ops sq_copy_ops = {
    .facts = copy_facts,
    .read_begin = copy_read_begin,
    .read_end = copy_read_end,
    .read = copy_read,
    .begin = copy_begin,
    .last = copy_last,
    .write = copy_write,
    .finish = copy_finish,
};

int copy_check_mark(struct sq *q, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("copy"));
    int rc = stmt_step(q, s, err, "open");
    return rc == 1 ? copy_refuse(q->path, err) : rc;
}
