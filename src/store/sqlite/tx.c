/* Transactions. A writing operation waits for its turn, runs in BEGIN IMMEDIATE … COMMIT, and lets
 * the turn go. In a group many operations share one transaction, each under a savepoint. */
#include "internal.h"

enum { CHECKPOINT_BYTES = 16 << 20, FRAME_BYTES = 4096 + 24 };

static int run(struct sq *q, enum stmt_id id, struct pawl_err *err, const char *doing)
{
    sqlite3_stmt *s = stmt_get(q, id, err);
    return s ? stmt_run(q, s, err, doing) : err->code;
}

int refuse_broken(struct sq *q, struct pawl_err *err)
{
    return err_set(err, PAWL_EBROKEN, "%s: not used any more after: %s", q->path, q->cause.msg);
}

static int tx_begin(struct sq *q, struct pawl_err *err)
{
    if (q->broken)
        return refuse_broken(q, err);
    int rc = turnstile_enter(q, err);
    if (rc < 0)
        return rc;
    rc = run(q, STMT_BEGIN, err, "begin");
    if (rc < 0) {
        turnstile_leave(q);
        return rc;
    }
    if (q->names.n_lanes > NAMES_MAX) {
        names_forget(q);
        gates_forget(q);
    }
    q->in_tx = true;
    q->wake = false;
    q->tx_no++;
    q->now = sq_now(q);
    return 0;
}

static void forget(struct sq *q)
{
    q->tx_no++;
    heads_drop(q);
    names_forget(q);
    policy_forget(q);
    q->next_dirty = false;
    q->n_events = 0;
    q->metrics_of.v = 0; /* what a renewal wrote may be gone: send all again */
}

static void tx_rollback(struct sq *q)
{
    /* After FULL or IOERR SQLite may have rolled back by itself; then there is nothing to undo and
     * asking would hide the real cause. */
    if (!sqlite3_get_autocommit(q->db))
        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
    forget(q);
    q->in_tx = false;
    turnstile_leave(q);
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct sq *q = arg;
    (void)db;
    (void)name;
    q->log_frames = frames;
    return SQLITE_OK;
}

void tx_watch_log(struct sq *q)
{
    sqlite3_wal_hook(q->db, on_commit, q);
}

/* Between transactions, under the write lock, so that nobody commits meanwhile. A reader that pins
 * the log only postpones it, and so does a full disk. What was committed stands in any case; a
 * write or sync that failed breaks the handle for the next operation (I12). The file keeps its
 * length: a commit over blocks that it has needs no journal of the file system's, and takes two
 * thirds of the time of one that has to get them. */
static void checkpoint(struct sq *q)
{
    struct pawl_err cause;
    if ((int64_t)q->log_frames * FRAME_BYTES <= CHECKPOINT_BYTES)
        return;
    /* Without a busy time-out: waiting for a slow reader would hold up every writer behind us. */
    sqlite3_busy_timeout(q->db, 0);
    int rc = sqlite3_wal_checkpoint_v2(q->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    q->effort.syncs += 2;
    if (rc == SQLITE_OK)
        q->log_frames = 0;
    sqlite3_busy_timeout(q->db, (int)(q->options.timeout.us / 1000));
    if ((rc & 0xff) == SQLITE_IOERR)
        sq_fail(q, rc, &cause, "checkpoint");
}

static int tx_commit(struct sq *q, struct pawl_err *err)
{
    struct pawl_err local;
    int rc = run(q, STMT_COMMIT, &local, "commit");
    q->effort.syncs++;
    if (rc < 0) {
        /* I12: whatever the reason, this handle is not used again. A failed sync, also one for want
         * of space, leaves it open whether the transaction is in the log. */
        if (rc == PAWL_EUNREACHABLE || q->broken)
            local.code = PAWL_EUNCERTAIN;
        q->broken = true;
        q->cause = local;
        if (err)
            *err = local;
        tx_rollback(q);
        return local.code;
    }
    q->in_tx = false;
    checkpoint(q);
    turnstile_leave(q);
    if (q->wake)
        wake_others(q);
    return 0;
}

static int write_next_id(struct sq *q, struct pawl_err *err)
{
    if (!q->next_dirty)
        return 0;
    q->next_dirty = false;
    return meta_set(q, "next_job", q->next_id, err);
}

int op_begin(struct sq *q, struct pawl_err *err)
{
    q->n_events = 0;
    if (!q->in_group)
        return tx_begin(q, err);
    if (q->broken)
        return refuse_broken(q, err);
    return run(q, STMT_SAVEPOINT, err, "savepoint");
}

static int savepoint_end(struct sq *q, int rc, struct pawl_err *err)
{
    if (rc == 0)
        return run(q, STMT_RELEASE, err, "release");
    forget(q);
    if (!sqlite3_get_autocommit(q->db)) {
        sqlite3_exec(q->db, "ROLLBACK TO op; RELEASE op", NULL, NULL, NULL);
        return rc;
    }
    q->broken = true; /* the whole group is gone, not just this operation */
    q->cause = *err;
    return rc;
}

int op_end(struct sq *q, int rc, struct pawl_err *err)
{
    struct pawl_err local = {0};
    struct pawl_err *e = err ? err : &local;
    if (rc == 0)
        rc = write_events(q, e);
    if (rc == 0)
        rc = gates_flush(q, e);
    if (rc == 0)
        rc = heads_flush(q, e);
    if (rc == 0)
        rc = write_next_id(q, e);
    if (q->in_group)
        return savepoint_end(q, rc, e);
    if (rc == 0)
        return tx_commit(q, e);
    tx_rollback(q);
    return rc;
}

int group_begin(struct store *s, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = tx_begin(q, err);
    if (rc == 0)
        q->in_group = true;
    return rc;
}

int group_commit(struct store *s, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    q->in_group = false;
    if (q->broken) {
        tx_rollback(q);
        if (err)
            *err = q->cause;
        return q->cause.code;
    }
    return tx_commit(q, err);
}

void group_abort(struct store *s)
{
    struct sq *q = sq_of(s);
    q->in_group = false;
    tx_rollback(q);
}

int read_begin(struct sq *q, struct pawl_err *err)
{
    if (q->broken)
        return refuse_broken(q, err);
    int rc = q->in_tx || q->reading ? 0 : run(q, STMT_BEGIN_READ, err, "begin");
    if (rc == 0)
        q->reading++;
    return rc;
}

void read_end(struct sq *q)
{
    if (--q->reading == 0 && !q->in_tx && !sqlite3_get_autocommit(q->db))
        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
}

int meta_get(struct sq *q, const char *key, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, sv_of(key));
    int rc = stmt_step(q, s, err, "meta");
    if (rc == 1)
        *out = sqlite3_column_int64(s, 0);
    return rc;
}

int meta_set(struct sq *q, const char *key, int64_t v, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_SET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, sv_of(key));
    sqlite3_bind_int64(s, 2, v);
    return stmt_run(q, s, err, "meta");
}

int next_job_id(struct sq *q, int64_t *out, struct pawl_err *err)
{
    if (q->next_loaded != q->tx_no) {
        q->next_id = 1;
        int rc = meta_get(q, "next_job", &q->next_id, err);
        if (rc < 0)
            return rc;
        q->next_loaded = q->tx_no;
    }
    *out = q->next_id++;
    q->next_dirty = true;
    return 0;
}

static void bind_event(sqlite3_stmt *s, int at, const struct event_row *e)
{
    for (int i = 0; i < 5; i++)
        bind_i64_or_null(s, at + i, e->v[i], e->v[i] == 0);
}

static int write_event(struct sq *q, const struct event_row *e, struct sv detail,
                       struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_EVENT_INSERT, err);
    if (!s)
        return err->code;
    bind_event(s, 1, e);
    bind_sv(s, 6, detail);
    return stmt_run(q, s, err, "event");
}

int write_events(struct sq *q, struct pawl_err *err)
{
    int n = q->n_events;
    q->n_events = 0;
    if (n < EVENTS_AT_ONCE) {
        for (int i = 0; i < n; i++)
            if (write_event(q, &q->events[i], SV_NONE, err) < 0)
                return err->code;
        return 0;
    }
    sqlite3_stmt *s = stmt_get(q, STMT_EVENTS_INSERT, err);
    if (!s)
        return err->code;
    for (int i = 0; i < EVENTS_AT_ONCE; i++)
        bind_event(s, 1 + 5 * i, &q->events[i]);
    return stmt_run(q, s, err, "event");
}

int add_event(struct sq *q, enum event_type type, job_id job, fence_no fence, session_id session,
              struct sv detail, struct pawl_err *err)
{
    struct event_row e = {{q->now.us, (int64_t)type, job.v, fence.v, session.v}};
    if (detail.p) /* the order of events is the order of their ids */
        return write_events(q, err) < 0 ? err->code : write_event(q, &e, detail, err);
    q->events[q->n_events++] = e;
    return q->n_events == EVENTS_AT_ONCE ? write_events(q, err) : 0;
}
