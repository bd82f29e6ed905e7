/* The PostgreSQL store's table of operations, its making and its end. */
#include "pg_limits.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define CLOCK_KEPT DUR_S(60)

static void close_store(struct store *s)
{
    struct pg *p = pg_of(s);
    pg_listener_close(&p->listener);
    db_disconnect(p); /* an open transaction ends with it */
    fd_closep(&p->log_dir_fd);
    for (size_t i = 0; i < N_STMTS; i++)
        free(p->texts[i]);
    pg_conninfo_free(p->conn_keys, p->conn_values);
    free(p->place);
    free(p->schema);
    free(p->log_root);
    free(p);
}

void pg_clock_set(struct pg *p, struct boot asked, int64_t server_us)
{
    p->clock_at = clock_boot();
    p->clock_offset = server_us - (asked.us + p->clock_at.us) / 2;
    p->clock_set = true;
}

/* Clocks drift apart, and after a failover the server has another one. */
static void refresh_clock(struct pg *p)
{
    AUTO_RESULT r = NULL;
    struct pawl_err ignored;
    struct boot asked = clock_boot();
    if (asked.us - p->clock_at.us < CLOCK_KEPT.us || !p->conn || p->begun || p->in_group)
        return;
    if (db_query_alone(p, STMT_CLOCK, NULL, &r, &ignored) == 0)
        pg_clock_set(p, asked, res_i64(r, 0, 0));
}

struct wall pg_now(struct store *s)
{
    struct pg *p = pg_of(s);
    refresh_clock(p);
    if (!p->clock_set)
        return clock_wall();
    return (struct wall){clock_boot().us + p->clock_offset};
}

static void pg_effort(struct store *s, struct store_effort *out)
{
    *out = pg_of(s)->effort;
}

/* ---- logs of attempts: files of this machine ---- */

static void default_root(struct str *out)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        str_addf(out, "%s/pawl", state);
    else if (home && home[0] == '/')
        str_addf(out, "%s/.local/state/pawl", home);
    else
        str_adds(out, "/var/lib/pawl"); /* a service without a home */
}

/* Every folder of the path that is missing, for its owner alone. */
static int make_folders(char *path, struct pawl_err *err)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        int failed = mkdir(path, 0700) < 0 && errno != EEXIST ? errno : 0;
        if (slash)
            *slash = '/';
        if (failed) {
            err_errno(err, PAWL_EUNREACHABLE, failed, "cannot make the folder %s", path);
            return err_hint(err, "log.root names another place for the output of attempts");
        }
        if (!slash)
            return 0;
    }
}

/* The store's own id keeps apart what several stores leave on one machine. */
static void log_path(const struct pg *p, struct str *out)
{
    if (p->log_root)
        str_adds(out, p->log_root);
    else
        default_root(out);
    str_addf(out, "/%s-%s", p->schema, p->store_id);
}

static int open_log_dir(struct pg *p, struct pawl_err *err)
{
    AUTO_STR struct str path = STR_INIT(STR_LINE);
    log_path(p, &path);
    int rc = p->options.mode == STORE_READ ? 0 : make_folders(path.p, err);
    if (rc < 0)
        return rc;
    p->log_dir_fd = open(path.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (p->log_dir_fd < 0)
        return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EUNREACHABLE, errno,
                         "cannot open %s", path.p);
    return 0;
}

int pg_log_dir(struct store *s, int *out_fd, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = p->log_dir_fd < 0 ? open_log_dir(p, err) : 0;
    if (rc == 0)
        *out_fd = p->log_dir_fd;
    return rc;
}

static void limit(struct store *s, struct dur timeout)
{
    struct pg *p = pg_of(s);
    if (timeout.us < p->options.timeout.us)
        p->options.timeout = timeout;
}

static const struct store_ops ops = {
    .name = "postgres",
    .remote = true,
    .close = close_store,
    .migrate = pg_migrate,
    .info = pg_info,
    .check = pg_check,
    .advise = pg_advise,
    .identity = pg_identity,
    .backup = pg_backup,
    .copy = &pg_copy_ops,
    .now = pg_now,
    .effort = pg_effort,
    .limit = limit,
    .group_begin = pg_group_begin,
    .group_commit = pg_group_commit,
    .group_abort = pg_group_abort,
    .enqueue = pg_enqueue,
    .session_begin = pg_session_begin,
    .session_end = pg_session_end,
    .renew = pg_renew,
    .claim = pg_claim,
    .settle = pg_settle,
    .sweep = pg_sweep,
    .held = pg_held,
    .act = pg_act,
    .pause = pg_pause,
    .worker_ask = pg_worker_ask,
    .job_get = pg_job_get,
    .list = pg_list,
    .count = pg_count,
    .events = pg_events,
    .status = pg_status,
    .report = pg_report,
    .policy_apply = pg_policy_apply,
    .policy = pg_policy,
    .limit_act = pg_limit_act,
    .gates = pg_gates,
    .breaker_act = pg_breaker_act,
    .locks = pg_locks,
    .lock_release = pg_lock_release,
    .explain = pg_explain,
    .admit = pg_admit,
    .pace = pg_pace,
    .remember = pg_remember,
    .recall = pg_recall,
    .artifacts = pg_artifacts,
    .artifacts_lost = pg_artifacts_lost,
    .artifacts_move = pg_artifacts_move,
    .artifacts_expire = pg_artifacts_expire,
    .fetches = pg_fetches,
    .fetch_totals = pg_fetch_totals,
    .duty = pg_duty,
    .note = pg_note,
    .prune_history = pg_prune_history,
    .age = pg_age,
    .wake_fd = pg_wake_fd,
    .wake_clear = pg_wake_clear,
    .log_dir = pg_log_dir,
};

static int pg_new(const char *url, const struct store_options *o, struct pg **out,
                  struct pawl_err *err)
{
    struct pg *p = mem_zalloc(1, sizeof(*p));
    p->base.ops = &ops;
    p->options = *o;
    p->schema = mem_strdup(o->schema ? o->schema : "pawl");
    p->log_root = o->log_root && o->log_root[0] ? mem_strdup(o->log_root) : NULL;
    p->options.schema = p->options.log_root = NULL; /* were borrowed */
    p->log_dir_fd = p->listener.epoll_fd = p->listener.timer_fd = -1;
    int rc = pg_conninfo(p, url, err);
    if (rc < 0)
        close_store(&p->base);
    else
        *out = p;
    return rc;
}

int store_postgres_open(const char *url, const struct store_options *o, struct store **out,
                        struct pawl_err *err)
{
    struct pg *p;
    int rc = pg_new(url, o, &p, err);
    if (rc < 0)
        return rc;
    rc = pg_prepare(p, err);
    if (rc < 0)
        close_store(&p->base);
    else
        *out = &p->base;
    return rc;
}

int store_postgres_script(const char *url, const struct store_options *o, int from, struct str *out,
                          struct pawl_err *err)
{
    struct pg *p;
    int rc = pg_new(url, o, &p, err);
    if (rc < 0)
        return rc;
    if (from < 0)
        rc = pg_version_now(p, &from, err);
    if (rc == 0)
        rc = pg_script(p, from, out, err);
    close_store(&p->base);
    return rc;
}

static int drop(struct pg *p, struct pawl_err *err)
{
    char sql[96];
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    snprintf(sql, sizeof(sql), "DROP SCHEMA %s CASCADE", p->schema);
    return pg_op_end(p, db_script(p, sql, err), err);
}

int store_postgres_drop(const char *url, const struct store_options *o, struct pawl_err *err)
{
    AUTO_STR struct str logs = STR_INIT(STR_LINE);
    AUTO_STORE struct store *s = NULL;
    int rc = store_postgres_open(url, o, &s, err);
    if (rc < 0)
        return rc;
    log_path(pg_of(s), &logs);
    rc = drop(pg_of(s), err);
    if (rc == 0)
        (void)rmdir(str_cstr(&logs)); /* where a job has left output, that stays */
    return rc;
}
