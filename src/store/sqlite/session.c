/* Sessions: one row and one locked file per running worker (I2, I4). The kernel lock says at once
 * what the lease says after its time: nobody of that session lives. */
#include "internal.h"

#include "fd.h"
#include "hash.h"
#include "json.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static char *session_path(struct sq *q, const char *uid)
{
    struct str s = STR_INIT(STR_LINE);
    str_addf(&s, "%s-sessions/%s", q->path, uid ? uid : "");
    return s.p;
}

static int make_session_file(struct sq *q, const char *uid, int *out_fd, struct pawl_err *err)
{
    AUTO_FREE char *dir = session_path(q, NULL);
    AUTO_FREE char *path = session_path(q, uid);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot make the folder %s", dir);
    AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_errno(err, PAWL_ELOCKED, errno, "cannot lock %s", path);
    *out_fd = TAKE_FD(fd);
    return 0;
}

bool session_file_free(struct sq *q, const char *uid)
{
    AUTO_FREE char *path = session_path(q, uid);
    /* Read-only: the close must not look like the end of a session to those who watch for one. */
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

int session_alive_now(struct sq *q, session_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_ONE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "session");
    if (rc != 1)
        return rc;
    return sqlite3_column_int64(s, 1) > sq_now(q).us && !session_file_free(q, column_sv(s, 0).p);
}

void session_file_remove(struct sq *q, const char *uid)
{
    AUTO_FREE char *path = session_path(q, uid);
    (void)unlink(path);
}

static int insert_session(struct sq *q, const struct session_spec *spec, struct session *out,
                          struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_SESSION_INSERT, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, sv_of(out->uid));
    bind_sv(s, 2, sv_of(spec->name));
    bind_sv(s, 3, sv_of(spec->host));
    sqlite3_bind_int(s, 4, spec->pid);
    sqlite3_bind_int64(s, 5, q->now.us);
    sqlite3_bind_int64(s, 6, q->now.us + spec->lease.us);
    sqlite3_bind_int(s, 7, spec->slots);
    bind_sv(s, 8, sv_of(spec->pools ? spec->pools : "{}"));
    bind_sv(s, 9, sv_of(spec->filter ? spec->filter : "{}"));
    if (stmt_run(q, s, err, "session") < 0)
        return err->code;
    out->id.v = sqlite3_last_insert_rowid(q->db);
    return add_event(q, EVENT_WORKER_STARTED, (job_id){0}, (fence_no){0}, out->id, SV_NONE, err);
}

int store_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                        struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct session made = {.lock_fd = -1};
    rand_id(made.uid);
    int rc = make_session_file(q, made.uid, &made.lock_fd, err);
    if (rc < 0)
        return rc;
    rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, insert_session(q, spec, &made, err), err);
    if (rc < 0) {
        session_file_remove(q, made.uid);
        close(made.lock_fd);
        return rc;
    }
    *out = made;
    return 0;
}

int session_fold(struct sq *q, session_id id, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_METRIC_FOLD, STMT_METRIC_DROP, STMT_REVOKED_DROP};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        AUTO_STMT s = stmt_get(q, steps[i], err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, id.v);
        if (stmt_run(q, s, err, "metrics") < 0)
            return err->code;
    }
    return 0;
}

/* Whatever the session still holds goes back unspent. */
static int release_held(struct sq *q, session_id id, struct pawl_err *err)
{
    enum { BATCH = 500 };
    for (;;) {
        struct settle back[BATCH];
        int n = 0, rc;
        AUTO_STMT s = stmt_get(q, STMT_OWNER_JOBS, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, id.v);
        sqlite3_bind_int(s, 2, BATCH);
        while ((rc = stmt_step(q, s, err, "session end")) == 1)
            back[n++] = (struct settle){.id = {sqlite3_column_int64(s, 0)},
                                        .fence = {sqlite3_column_int64(s, 1)},
                                        .outcome = OUTCOME_RELEASED,
                                        .exit_code = -1};
        for (int i = 0; i < n && rc == 0; i++) {
            enum settle_outcome out;
            rc = settle_in_op(q, &back[i], &out, err);
        }
        if (rc < 0 || n < BATCH)
            return rc;
    }
}

static int end_session(struct sq *q, session_id id, struct pawl_err *err)
{
    if (release_held(q, id, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, STMT_SESSION_END, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, q->now.us);
    sqlite3_bind_int(s, 3, false);
    if (stmt_run(q, s, err, "session end") < 0)
        return err->code;
    if (sqlite3_changes(q->db) == 0)
        return 0; /* swept already */
    if (session_fold(q, id, err) < 0)
        return err->code;
    return add_event(q, EVENT_WORKER_ENDED, (job_id){0}, (fence_no){0}, id, SV_NONE, err);
}

int store_session_end(struct store *s, struct session *session, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, end_session(q, session->id, err), err);
    if (session->lock_fd >= 0) {
        if (rc == 0)
            session_file_remove(q, session->uid);
        close(session->lock_fd);
        session->lock_fd = -1;
    }
    return rc;
}

static int write_progress(struct sq *q, const struct renew_request *r, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_PROGRESS_SET, err);
    if (!s)
        return err->code;
    for (size_t i = 0; i < r->n_progress; i++) {
        sqlite3_bind_int64(s, 1, r->progress[i].id.v);
        sqlite3_bind_int64(s, 2, r->progress[i].fence.v);
        bind_sv(s, 3, r->progress[i].json);
        if (stmt_run(q, s, err, "progress") < 0)
            return err->code;
    }
    return 0;
}

/* Only what changed since the last renewal is written. */
static int write_metrics(struct sq *q, const struct renew_request *r, struct pawl_err *err)
{
    if (!r->metrics)
        return 0;
    if (q->metrics_of.v != r->session->id.v) {
        memset(q->metrics_sent, 0, sizeof(q->metrics_sent));
        q->metrics_of = r->session->id;
    }
    sqlite3_stmt *s = stmt_get(q, STMT_METRIC_SET, err);
    if (!s)
        return err->code;
    for (int i = 0; i < N_METRICS; i++) {
        if (r->metrics[i] == q->metrics_sent[i])
            continue;
        char name[64];
        metric_slot_name(i, name);
        sqlite3_bind_int64(s, 1, r->session->id.v);
        bind_sv(s, 2, sv_of(name));
        sqlite3_bind_int64(s, 3, r->metrics[i]);
        if (stmt_run(q, s, err, "metrics") < 0)
            return err->code;
    }
    return 0;
}

static int read_cancels(struct sq *q, session_id id, struct arena *a, struct renew_result *out,
                        struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_CANCELS, err);
    if (!s)
        return err->code;
    AUTO_FREE job_id *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, id.v);
    while ((rc = stmt_step(q, s, err, "renew")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n++] = (job_id){sqlite3_column_int64(s, 0)};
    }
    if (rc == 0 && n) {
        job_id *ids = arena_alloc(a, n * sizeof(*ids));
        memcpy(ids, v, n * sizeof(*ids));
        out->cancels = ids;
        out->n_cancels = n;
    }
    return rc;
}

/* Told once: the rows go in the transaction that answers. */
static int read_revoked(struct sq *q, session_id id, struct arena *a, struct renew_result *out,
                        struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_REVOKED_READ, err);
    sqlite3_stmt *drop = stmt_get(q, STMT_REVOKED_DROP, err);
    if (!s || !drop)
        return err->code;
    AUTO_FREE struct lease_ref *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, id.v);
    while ((rc = stmt_step(q, s, err, "renew")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n++] = (struct lease_ref){{sqlite3_column_int64(s, 0)}, {sqlite3_column_int64(s, 1)}};
    }
    if (rc < 0 || n == 0)
        return rc;
    struct lease_ref *kept = arena_alloc(a, n * sizeof(*kept));
    memcpy(kept, v, n * sizeof(*kept));
    out->revoked = kept;
    out->n_revoked = n;
    sqlite3_bind_int64(drop, 1, id.v);
    return stmt_run(q, drop, err, "renew");
}

static int renew_in_op(struct sq *q, const struct renew_request *r, struct arena *a,
                       struct renew_result *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_RENEW, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, r->session->id.v);
    sqlite3_bind_int64(s, 2, q->now.us + r->lease.us);
    sqlite3_bind_int64(s, 3, q->now.us);
    sqlite3_bind_int(s, 4, r->running);
    bind_sv(s, 5, sv_of(r->preflight));
    int rc = stmt_step(q, s, err, "renew");
    if (rc < 0)
        return rc;
    if (rc == 0) {
        out->stale = true;
        return 0;
    }
    out->command = (enum worker_command)sqlite3_column_int(s, 0);
    sqlite3_reset(s);
    if (write_progress(q, r, err) < 0 || write_metrics(q, r, err) < 0)
        return err->code;
    if (read_cancels(q, r->session->id, a, out, err) < 0)
        return err->code;
    return read_revoked(q, r->session->id, a, out, err);
}

int store_renew(struct store *s, const struct renew_request *req, struct arena *a,
                struct renew_result *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct renew_result result = {0};
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, renew_in_op(q, req, a, &result, err), err);
    if (rc < 0)
        return rc;
    if (req->metrics && !result.stale)
        memcpy(q->metrics_sent, req->metrics, sizeof(q->metrics_sent));
    *out = result;
    return 0;
}

int store_worker_ask(struct store *s, struct sv name, enum worker_command c, int *out_n,
                     struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    AUTO_FREE session_id *asked = NULL;
    int n = 0, cap = 0;
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    AUTO_STMT st = stmt_get(q, STMT_SESSION_ASK, err);
    rc = st ? 0 : err->code;
    if (rc == 0) {
        bind_sv(st, 1, name);
        sqlite3_bind_int(st, 2, (int)c);
        while ((rc = stmt_step(q, st, err, "ask")) == 1) {
            ARRAY_GROW(asked, n, cap);
            asked[n++].v = sqlite3_column_int64(st, 0);
        }
    }
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    str_addf(&detail, "{\"command\":\"%s\"}", worker_command_name(c));
    for (int i = 0; i < n && rc == 0; i++)
        rc = add_event(q, EVENT_WORKER_ASKED, (job_id){0}, (fence_no){0}, asked[i], str_sv(&detail),
                       err);
    q->wake = true;
    rc = op_end(q, rc, err);
    if (rc == 0)
        *out_n = n;
    return rc;
}

static int pause_in_op(struct sq *q, struct sv queue, bool paused, bool *out_changed,
                       struct pawl_err *err)
{
    int64_t id;
    bool was;
    if (names_queue(q, queue, &id, &was, err) < 0)
        return err->code;
    *out_changed = was != paused;
    if (was == paused)
        return 0;
    sqlite3_stmt *row = stmt_get(q, STMT_QUEUE_PAUSE, err);
    sqlite3_stmt *classes = stmt_get(q, STMT_CLASS_PAUSE, err);
    if (!row || !classes)
        return err->code;
    sqlite3_bind_int64(row, 1, id);
    bind_i64_or_null(row, 2, q->now.us, !paused);
    sqlite3_bind_int64(classes, 1, id);
    sqlite3_bind_int(classes, 2, paused);
    if (stmt_run(q, row, err, "pause") < 0 || stmt_run(q, classes, err, "pause") < 0)
        return err->code;
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "queue", queue);
    jw_end_object(&w);
    q->wake = true;
    return add_event(q, paused ? EVENT_QUEUE_PAUSED : EVENT_QUEUE_RESUMED, (job_id){0},
                     (fence_no){0}, (session_id){0}, str_sv(&detail), err);
}

int store_pause(struct store *s, struct sv queue, bool paused, bool *out_changed,
                struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    bool changed = false;
    int rc = op_begin(q, err);
    if (rc == 0)
        rc = op_end(q, pause_in_op(q, queue, paused, &changed, err), err);
    if (rc == 0)
        *out_changed = changed;
    return rc;
}
