/* The SQLite store's table of operations, its making and its end. */
#include "internal.h"

#include "fd.h"

static void close_store(struct store *s)
{
    struct sq *q = sq_of(s);
    if (q->in_tx)
        group_abort(s);
    conn_close(q);
    names_forget(q);
    policy_forget(q);
    fd_closep(&q->notify_fd);
    fd_closep(&q->log_dir_fd);
    free(q->path);
    free(q);
}

static struct wall store_now(struct store *s)
{
    return sq_now(sq_of(s));
}

static void store_effort(struct store *s, struct store_effort *out)
{
    struct sq *q = sq_of(s);
    *out = q->effort;
    out->rows = sqlite3_total_changes64(q->db);
}

static const struct store_ops ops = {
    .name = "sqlite",
    .close = close_store,
    .migrate = store_migrate,
    .info = store_info,
    .check = store_check,
    .advise = store_advise,
    .identity = store_identity,
    .backup = store_backup,
    .copy = &sq_copy_ops,
    .now = store_now,
    .effort = store_effort,
    .group_begin = group_begin,
    .group_commit = group_commit,
    .group_abort = group_abort,
    .enqueue = store_enqueue_jobs,
    .session_begin = store_session_begin,
    .session_end = store_session_end,
    .renew = store_renew,
    .claim = store_claim_jobs,
    .settle = store_settle_jobs,
    .sweep = store_sweep,
    .held = store_held,
    .act = store_act,
    .pause = store_pause,
    .worker_ask = store_worker_ask,
    .job_get = store_job_get,
    .list = store_list,
    .count = store_count,
    .events = store_events,
    .status = store_status,
    .report = store_report,
    .policy_apply = store_policy_apply,
    .policy = store_policy,
    .limit_act = store_limit_act,
    .gates = store_gates,
    .breaker_act = store_breaker_act,
    .locks = store_locks,
    .lock_release = store_lock_release,
    .explain = store_explain,
    .admit = store_admit,
    .pace = store_pace,
    .remember = store_remember,
    .recall = store_recall,
    .artifacts = store_artifacts,
    .artifacts_lost = store_artifacts_lost,
    .artifacts_move = store_artifacts_move,
    .artifacts_expire = store_artifacts_expire,
    .fetches = store_fetches,
    .fetch_totals = store_fetch_totals,
    .duty = store_duty,
    .note = store_note,
    .prune_history = store_prune_history,
    .age = store_age,
    .wake_fd = store_wake_fd,
    .wake_clear = store_wake_clear,
    .log_dir = store_log_dir,
};

void store_sqlite_process_init(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int store_sqlite_open(const char *path, const struct store_options *o, struct store **out,
                      struct pawl_err *err)
{
    struct sq *q = mem_zalloc(1, sizeof(*q));
    q->base.ops = &ops;
    q->path = mem_strdup(path);
    q->options = *o;
    q->turn_fd = q->write_fd = q->wake_fd = q->notify_fd = q->log_dir_fd = -1;
    int rc = conn_open(q, err);
    if (rc < 0) {
        close_store(&q->base);
        return rc;
    }
    *out = &q->base;
    return 0;
}
