/* Private to src/store/sqlite. One struct for the handle; each .c file keeps one concern of it. */
#ifndef PAWL_STORE_SQLITE_INTERNAL_H
#define PAWL_STORE_SQLITE_INTERNAL_H

#include "sql.h"
#include "store_sqlite.h"
#include <sqlite3.h>

#define THROUGHPUT_SLOT_US  ((int64_t)10 * 1000000)
#define PAWL_APPLICATION_ID 0x7061776c /* "pawl" */

/* The best ready job of a lane or class: higher priority first, then lower id. */
struct head {
    int64_t id; /* 0: none */
    int priority;
};

struct class_entry;

/* A lane as this handle knows it. Names never change; the head is valid for one transaction. */
struct lane_entry {
    int64_t id;
    struct class_entry *cls;
    struct sv host; /* n 0: none */
    struct head head;
    uint64_t loaded;    /* transaction in which head was read; else stale */
    bool dirty;         /* head must be written before the operation ends */
    uint64_t copied;    /* claim in whose arena `names` lie */
    struct sv names[3]; /* queue, kind, host */
};

struct class_entry {
    int64_t id, queue_id;
    struct sv queue, kind;
    int64_t delta[N_JOB_STATES]; /* counts to be added before the operation ends */
    struct ended {
        int64_t done, skipped, failed, retried, lost, backoff_us, retry_after_us;
    } ended;          /* what this operation ended, for rates and reports */
    bool recompute;   /* a lane's head changed */
    bool dirty;       /* in names.dirty_classes */
    uint64_t checked; /* claim for which `pool` holds */
    int pool;
};

struct names {
    struct class_entry **classes; /* hash by id */
    size_t n_classes, cap_classes;
    struct class_entry **dirty_classes;
    size_t n_dirty_classes, cap_dirty_classes;
    struct lane_entry **lanes; /* hash by id */
    size_t n_lanes, cap_lanes;
    struct lane_entry **by_name; /* hash by (queue, kind, host) */
    struct lane_entry *last;     /* most recently found */
    struct lane_entry **dirty;
    size_t n_dirty, cap_dirty;
    struct arena arena;
};

/* Events of the running operation that have no detail; written many at a time. */
struct event_row {
    int64_t v[5]; /* at, type, job, fence, session; 0 = null */
};
enum { EVENTS_AT_ONCE = 16, ATTEMPTS_AT_ONCE = 16 };

struct sq {
    struct store base; /* first */
    sqlite3 *db;
    sqlite3_stmt *stmts[N_STMTS];
    char *path;
    struct store_options options;
    int turn_fd, write_fd, wake_fd; /* side files */
    int notify_fd;                  /* inotify; -1 until asked for */
    int log_dir_fd;                 /* -1 until asked for */
    bool locked;                    /* the write lock is held */
    bool in_group;
    bool in_tx;
    int reading; /* depth of read_begin */
    bool wake;   /* somebody must hear of this transaction */
    bool broken; /* I12: a commit failed; `cause` says why */
    struct pawl_err cause;
    uint64_t tx_no; /* grows with every transaction and rollback */
    uint64_t claim_no;
    struct wall now;              /* the store's time in this transaction */
    int64_t base_wall, base_boot; /* I13 */
    int64_t next_id;              /* valid while next_loaded == tx_no */
    uint64_t next_loaded;
    bool next_dirty;
    struct names names;
    struct store_effort effort; /* rows are SQLite's own count */
    struct event_row events[EVENTS_AT_ONCE];
    int n_events;
    int64_t metrics_sent[N_METRICS]; /* what `renew` wrote last */
    session_id metrics_of;
};

static inline struct sq *sq_of(struct store *s)
{
    return (struct sq *)s;
}

/* conn.c */
int conn_open(struct sq *q, struct pawl_err *err);
void conn_close(struct sq *q);
struct wall sq_now(const struct sq *q);
/* Map an SQLite result to an error that says what was being done. Marks the handle broken where
 * I12 asks for it. */
int sq_fail(struct sq *q, int rc, struct pawl_err *err, const char *doing);

/* turnstile.c: whose turn it is to write, over all processes. */
int turnstile_open(struct sq *q, struct pawl_err *err);
int turnstile_enter(struct sq *q, struct pawl_err *err);
void turnstile_leave(struct sq *q);
void turnstile_close(struct sq *q);

/* stmt.c: statements by name, prepared at first use and kept. */
sqlite3_stmt *stmt_get(struct sq *q, enum stmt_id id, struct pawl_err *err);
void stmt_done_all(struct sq *q);
/* Bind NULL for an sv whose p is NULL. */
void bind_sv(sqlite3_stmt *s, int i, struct sv v);
void bind_i64_or_null(sqlite3_stmt *s, int i, int64_t v, bool null);
struct sv column_sv(sqlite3_stmt *s, int i);                    /* until the next step */
struct sv column_copy(sqlite3_stmt *s, int i, struct arena *a); /* p NULL for NULL */
/* Run a statement that returns no rows, then reset it. */
int stmt_run(struct sq *q, sqlite3_stmt *s, struct pawl_err *err, const char *doing);
/* 1 = a row, 0 = no (more) row (reset already), < 0 = error (reset already). */
int stmt_step(struct sq *q, sqlite3_stmt *s, struct pawl_err *err, const char *doing);
static inline void stmt_resetp(sqlite3_stmt **s)
{
    if (*s) {
        sqlite3_reset(*s);
        sqlite3_clear_bindings(*s);
    }
}
#define AUTO_STMT __attribute__((cleanup(stmt_resetp))) sqlite3_stmt *

/* tx.c: a writing operation is begun and ended by these; inside a group they are savepoints.
 * op_end takes the operation's result, commits or rolls back, and returns the final result. */
int op_begin(struct sq *q, struct pawl_err *err);
int op_end(struct sq *q, int rc, struct pawl_err *err);
int group_begin(struct store *s, struct pawl_err *err);
int group_commit(struct store *s, struct pawl_err *err);
void group_abort(struct store *s);
/* A consistent snapshot for several reads; may be nested. */
int read_begin(struct sq *q, struct pawl_err *err);
void read_end(struct sq *q);
int refuse_broken(struct sq *q, struct pawl_err *err); /* BROKEN, with the cause */
int meta_get(struct sq *q, const char *key, int64_t *out,
             struct pawl_err *err); /* 1 found, 0 not */
int meta_set(struct sq *q, const char *key, int64_t v, struct pawl_err *err);
int next_job_id(struct sq *q, int64_t *out, struct pawl_err *err);
/* Events are kept back and written together; op_end writes the rest. */
int write_events(struct sq *q, struct pawl_err *err);
int add_event(struct sq *q, enum event_type type, job_id job, fence_no fence, session_id session,
              struct sv detail, struct pawl_err *err);

/* migrate.c */
int migrate_create(struct sq *q, struct pawl_err *err);
int migrate_check(struct sq *q, int *out_version, struct pawl_err *err);
int store_migrate(struct store *s, int *out_from, int *out_to, struct pawl_err *err);

/* names.c: queues, classes and lanes by name and id, created as needed. */
int names_lane(struct sq *q, struct sv queue, struct sv kind, struct sv host,
               struct lane_entry **out, struct pawl_err *err);
int names_lane_by_id(struct sq *q, int64_t id, struct lane_entry **out, struct pawl_err *err);
int names_class_by_id(struct sq *q, int64_t id, struct class_entry **out, struct pawl_err *err);
int names_queue(struct sq *q, struct sv name, int64_t *out_id, bool *out_paused,
                struct pawl_err *err);
/* After a rollback (ids may be gone), when very many are remembered, and at the end. */
void names_forget(struct sq *q);
enum { NAMES_MAX = 200000 };

/* heads.c: exact heads and counts, kept in memory during an operation, written by heads_flush. */
static inline bool head_beats(struct head a, struct head b)
{
    return a.id && (!b.id || a.priority > b.priority || (a.priority == b.priority && a.id < b.id));
}
int head_load(struct sq *q, struct lane_entry *l, struct pawl_err *err);
/* A job of the lane became ready / left the ready state / was taken and `next` is now best. */
int head_add(struct sq *q, struct lane_entry *l, struct head job, struct pawl_err *err);
int head_remove(struct sq *q, struct lane_entry *l, int64_t job, struct pawl_err *err);
void head_set(struct sq *q, struct lane_entry *l, struct head next);
void count_move(struct sq *q, struct lane_entry *l, int from, int to); /* -1: outside */
/* A lease of this lane ended so; `delay` is what a retry will wait. */
void count_end(struct lane_entry *l, enum outcome outcome, struct dur delay, enum wait_reason why);
int heads_flush(struct sq *q, struct pawl_err *err);
void heads_drop(struct sq *q);

/* The operations, one file each. */
int store_enqueue_jobs(struct store *s, const struct job_spec *specs, size_t n,
                       enum on_duplicate dup, struct add_result *out, struct pawl_err *err);
/* The same inside an operation that is already begun. */
int enqueue_in_op(struct sq *q, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                  struct add_result *out, struct pawl_err *err);
/* A job waits for the wall clock; forget that it does. */
int due_add(struct sq *q, job_id id, struct wall at, struct pawl_err *err);
int due_drop(struct sq *q, job_id id, struct pawl_err *err);
void key_digest(struct sv queue, struct sv key, unsigned char out[16]);
int store_claim_jobs(struct store *s, const struct claim_request *req, struct arena *a,
                     struct claim_result *out, struct pawl_err *err);
int store_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
               size_t *out_n, struct pawl_err *err);
int store_settle_jobs(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
                      struct pawl_err *err);
/* End one lease inside an operation; what both settle and sweep do. */
int settle_in_op(struct sq *q, const struct settle *v, enum settle_outcome *out,
                 struct pawl_err *err);
int store_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                        struct pawl_err *err);
int store_session_end(struct store *s, struct session *session, struct pawl_err *err);
int store_renew(struct store *s, const struct renew_request *req, struct arena *a,
                struct renew_result *out, struct pawl_err *err);
int session_file(struct sq *q, const char *uid, bool create, int *out_fd, struct pawl_err *err);
bool session_file_free(struct sq *q, const char *uid);
/* Does anybody of that session live? 1 yes, 0 no. */
int session_alive_now(struct sq *q, session_id id, struct pawl_err *err);
void session_file_remove(struct sq *q, const char *uid);
int session_fold(struct sq *q, session_id id, struct pawl_err *err);
int store_sweep(struct store *s, const struct sweep_request *req, struct sweep_result *out,
                struct pawl_err *err);
/* A job an operator acts on, as it stands. */
struct target {
    struct lane_entry *lane;
    session_id owner; /* while running */
    int64_t fence;
    int priority, attempt;
    enum job_state state;
    struct wall finished_at;
    bool due;      /* waits for the wall clock */
    struct sv key; /* in the caller's arena */
};
/* change.c: acts on jobs that have not ended. */
int release_applies(struct sq *q, const struct target *t, bool force, struct pawl_err *err);
int release_one(struct sq *q, job_id id, const struct target *t, struct pawl_err *err);
int set_one(struct sq *q, job_id id, const struct target *t, const struct job_change *c,
            struct pawl_err *err);
int store_act(struct store *s, const struct act_request *req, struct act_result *out,
              struct pawl_err *err);
int store_pause(struct store *s, struct sv queue, bool paused, bool *out_changed,
                struct pawl_err *err);
int store_worker_ask(struct store *s, struct sv name, enum worker_command c, int *out_n,
                     struct pawl_err *err);
int store_job_get(struct store *s, job_id id, struct arena *a, struct job_view *out,
                  struct pawl_err *err);
int store_list(struct store *s, const struct selection *sel, bool full,
               bool (*each)(void *arg, const struct job_view *job), void *arg,
               struct pawl_err *err);
int store_count(struct store *s, const struct selection *sel, int64_t *out, struct pawl_err *err);
int store_events(struct store *s, const struct event_filter *f,
                 bool (*each)(void *arg, const struct event_view *e), void *arg,
                 struct pawl_err *err);
int store_status(struct store *s, int max_running, struct arena *a, struct status_view *out,
                 struct pawl_err *err);
/* Read a row of the job columns (list.sql) into a view. */
void job_view_read(sqlite3_stmt *st, bool full, struct arena *a, struct job_view *out);
int store_report(struct store *s, struct wall since, struct sv queue, struct arena *a,
                 struct report_view *out, struct pawl_err *err);
int store_info(struct store *s, struct store_info *out, struct pawl_err *err);
int store_check(struct store *s, struct str *out, struct pawl_err *err);
int store_backup(struct store *s, const char *file, struct pawl_err *err);
int store_wake_fd(struct store *s);
void store_wake_clear(struct store *s);
void wake_others(struct sq *q);
int store_log_dir(struct store *s, int *out_fd, struct pawl_err *err);
/* path + suffix, in the arena-free form: caller frees. */
char *side_path(const struct sq *q, const char *suffix);

#endif
