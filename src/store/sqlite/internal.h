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

/* A limit as this handle knows it; valid while meta.policy stays the same. */
struct limit_entry {
    int64_t id;
    struct limit_spec spec;
    struct gate_params params;
    bool hosts; /* about hosts: throttled answers hold its gates */
};

/* All limits, read anew when meta.policy has another number. */
struct policy_cache {
    uint64_t checked; /* transaction in which `number` was read */
    uint64_t made;    /* grows with every reading of the limits */
    bool valid;
    int64_t number;  /* meta.policy */
    int64_t version; /* of the data, when they were read */
    enum claim_order order;
    struct limit_entry *limits; /* by id */
    struct limit_spec *specs;   /* the same, for limits_of() */
    size_t n;
    struct arena arena;
};

/* gate.wake_at says whether lanes are parked on the gate and when to look at it: null: none are;
 * 0: unpark them all, whatever its state (the limits have changed); WAKE_NEVER: only the end of a
 * lease or an operator opens it; else a time. So a gate with parked lanes is never forgotten. */
#define WAKE_NONE  INT64_MIN /* null in the row */
#define WAKE_NEVER INT64_MAX

/* A gate as this handle knows it. Which gates a lane has stays true while meta.policy is the same;
 * the state is valid until somebody else writes. Rows are made when there is something to keep and
 * deleted only together with a change of meta.policy. */
struct gate_entry {
    int64_t id; /* 0: no row yet */
    const struct limit_entry *limit;
    struct sv value;
    struct gate_state state;
    int64_t wake_at;
    uint64_t loaded;  /* gates_no with which state and wake_at were read */
    uint64_t counted; /* the same, `used` */
    int used;
    bool dirty;            /* state or wake_at must be written before the operation ends */
    bool ended;            /* a lease under it ended: unpark before the operation ends */
    uint64_t claim;        /* claim for which the rest holds */
    struct gate_room room; /* n: what is left of it */
    int taken;
    job_id first_job;
    fence_no first_fence;
};

struct gates {
    struct gate_entry **by_name; /* hash by (limit, value) */
    size_t n, cap;
    struct gate_entry **dirty, **ended;
    size_t n_dirty, cap_dirty, n_ended, cap_ended;
    struct arena arena;
};

/* A lane as this handle knows it. Names never change; the head is valid for one transaction. */
struct lane_entry {
    int64_t id;
    struct class_entry *cls;
    struct sv host; /* n 0: none */
    struct head head;
    uint64_t loaded;           /* transaction in which head was read; else stale */
    bool dirty;                /* head must be written before the operation ends */
    uint64_t copied;           /* claim in whose arena `names` lie */
    struct sv names[3];        /* queue, kind, host */
    struct gate_entry **gates; /* valid while mapped == policy.made */
    size_t n_gates;
    uint64_t mapped;
    int64_t turn; /* != 0: served in fair order, must be written with the head */
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
    int log_frames; /* of the write-ahead log, all processes' together, after our last commit */
    uint64_t tx_no; /* grows with every transaction and rollback */
    uint64_t claim_no;
    uint64_t gates_no;            /* grows when what is known of gates may be void */
    struct wall now;              /* the store's time in this transaction */
    int64_t base_wall, base_boot; /* I13 */
    int64_t last_turn;            /* fair order: the last one given */
    int64_t next_id;              /* valid while next_loaded == tx_no */
    uint64_t next_loaded;
    bool next_dirty;
    struct names names;
    struct policy_cache policy;
    struct gates gates;
    uint64_t admitted_no;       /* gates_no with which `admitted` was read */
    bool admitted;              /* some job was admitted to some host */
    struct store_effort effort; /* rows are SQLite's own count */
    struct event_row events[EVENTS_AT_ONCE];
    int n_events;
    int64_t metrics_sent[N_METRICS]; /* what `renew` wrote last */
    session_id metrics_of;
    int64_t age_after; /* lane behind which `age` goes on */
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
void tx_watch_log(struct sq *q); /* after the settings, which take such watchers away */
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

/* policy.c: the limits, and which gates a lane has. */
/* Make q->policy that of this transaction (or read snapshot). Cheap when called again. First thing
 * in an operation: entries of gates known before are gone if the limits have changed. */
int policy_load(struct sq *q, struct pawl_err *err);
/* The limits, their order or aging have been changed in this operation: the next number, and all
 * parked lanes are to be looked at anew. Permits of running jobs are the caller's: between
 * policy_load() with the old limits and with the new ones (call it again after this). */
int policy_bump(struct sq *q, struct pawl_err *err);
void policy_forget(struct sq *q);
/* The limit of that id or name, NULL if none holds. */
const struct limit_entry *policy_limit(const struct sq *q, int64_t id);
const struct limit_entry *policy_limit_named(const struct sq *q, struct sv name);
/* After policy_load(): the gates of (queue, kind, host) by limit; the array is the caller's to
 * free. */
size_t host_gates(struct sq *q, const struct class_entry *c, struct sv host,
                  struct gate_entry ***out);
/* After policy_load(): l->gates, l->n_gates. Writes nothing, so also good in a read snapshot. */
void lane_gates(struct sq *q, struct lane_entry *l);
/* The one gate of a limit for a value; remembered, not yet read. */
struct gate_entry *gate_of(struct sq *q, const struct limit_entry *limit, struct sv value);

/* gate_rows.c: rows of gates and permits. Changes of g->state are the caller's, who then calls
 * gate_mark(); op_end writes them (gates_flush). */
int gate_load(struct sq *q, struct gate_entry *g, struct pawl_err *err);   /* state, wake_at */
int gate_count(struct sq *q, struct gate_entry *g, struct pawl_err *err);  /* used; loads too */
int gate_ensure(struct sq *q, struct gate_entry *g, struct pawl_err *err); /* has a row: id */
void gate_mark(struct sq *q, struct gate_entry *g);
/* Its state was changed so that it may have opened: before the operation ends, as many lanes are
 * unparked as there is room for. Loaded entries only. */
void gate_reopened(struct sq *q, struct gate_entry *g);
/* Permits of a job; the gate's `used` follows. add: the row is made if need be. */
int permit_add(struct sq *q, struct gate_entry *g, int64_t job, struct pawl_err *err);
/* Many at a time; gates that have a row and are counted, jobs that have no permit yet. */
enum { PERMITS_AT_ONCE = 16 };
struct permit_row {
    struct gate_entry *gate;
    int64_t job;
};
int permits_add(struct sq *q, const struct permit_row *v, size_t n, struct pawl_err *err);
int permit_drop(struct sq *q, struct gate_entry *g, int64_t first_job, int64_t last_job,
                struct pawl_err *err);
/* How a lease ended, for one gate. hold: it is one of those that throttled answers hold. since:
 * when the job began to count under it. */
int gate_tell(struct sq *q, struct gate_entry *g, const struct settle *v,
              const struct lease_hint *h, enum gate_signal signal, bool hold, int64_t since,
              struct pawl_err *err);
/* A lease of this lane ended: permits of `n` consecutive jobs from v on are dropped, the gates told
 * of each result, lanes unparked before the operation ends. */
int gates_lease_ended(struct sq *q, struct lane_entry *l, const struct settle *v, size_t n,
                      enum outcome in_fact, const struct lease_hint *h, struct pawl_err *err);
/* Park a lane on a shut gate (direct write; the class head follows). */
int gate_park(struct sq *q, struct lane_entry *l, struct gate_entry *g, struct pawl_err *err);
/* When to look at a gate with parked lanes again, from its state now. */
int gate_set_wake(struct sq *q, struct gate_entry *g, struct pawl_err *err);
/* Gates whose time has come: unpark what there is room for. At the beginning of a claim. */
int gates_wake_due(struct sq *q, struct pawl_err *err);
/* breaker_opened, _probed, _closed with its detail. why p NULL: none. */
int gate_event(struct sq *q, enum event_type type, const struct gate_entry *g, job_id job,
               fence_no fence, session_id session, struct sv why, struct pawl_err *err);
int gate_set_why(struct sq *q, struct gate_entry *g, struct sv why, struct pawl_err *err);
int gates_flush(struct sq *q, struct pawl_err *err);
void gates_forget(struct sq *q);

/* admit.c: hosts beside its lane's that a running job asks. */
int store_admit(struct store *s, const struct lease_ref *job, struct sv host, struct arena *a,
                struct admission *out, struct pawl_err *err);
int store_pace(struct store *s, const struct lease_ref *job, struct sv host, struct dur apart,
               int *out_gates, struct pawl_err *err);
/* 1 = some job was admitted to some host. Asked once until somebody writes. */
int admitted_any(struct sq *q, struct pawl_err *err);
int admitted_between(struct sq *q, job_id first, job_id last, struct pawl_err *err);
/* As gates_lease_ended(), for one job that may have been admitted to other hosts, or whose end
 * tells of one (v->peer): what it says goes to the gates of that host, and the others that it had a
 * permit of hear that theirs was well. */
int gates_hosts_ended(struct sq *q, struct lane_entry *l, const struct settle *v,
                      enum outcome in_fact, const struct lease_hint *h, struct pawl_err *err);
/* After permits were dropped: those of admitted jobs again, under the limits of now. */
int admitted_renew(struct sq *q, struct pawl_err *err);
/* 1 = the job has a permit of that gate; gates without a row: 0. */
int permit_has(struct sq *q, const struct gate_entry *g, int64_t job, struct pawl_err *err);

/* lock_turn.c: whose turn it is. Every job that becomes queued and has a lock is first put into
 * state STATE_HELD without touching heads; every change to a job with a lock ends with lock_turn(),
 * which makes the best of the waiting ones ready if none is ready or running, or swaps it with a
 * worse one that is ready. Heads follow. Counts do not: held is queued. */
enum { STATE_HELD = -1 };
int lock_turn(struct sq *q, int64_t lock, struct pawl_err *err);
/* State of a row as everybody else sees it. */
static inline enum job_state shown_state(int state)
{
    return state == STATE_HELD ? JOB_QUEUED : (enum job_state)state;
}

/* heads.c: exact heads and counts, kept in memory during an operation, written by heads_flush. */
static inline bool head_beats(struct head a, struct head b)
{
    return a.id && (!b.id || a.priority > b.priority || (a.priority == b.priority && a.id < b.id));
}
/* The class must look for its best lane again (a lane was parked or unparked). */
void head_recompute(struct sq *q, struct class_entry *c);
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
int store_claim_jobs(struct store *s, const struct claim_request *req, struct arena *a,
                     struct claim_result *out, struct pawl_err *err);
int store_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
               size_t *out_n, struct pawl_err *err);
int store_settle_jobs(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
                      struct pawl_err *err);
/* What the row of a lease says; 1 if (id, fence) is running, 0 if stale. */
int lease_find(struct sq *q, job_id id, fence_no fence, struct lease_hint *out,
               struct pawl_err *err);
/* End one lease inside an operation; what both settle and sweep do. */
int settle_in_op(struct sq *q, const struct settle *v, enum settle_outcome *out,
                 struct pawl_err *err);
/* keep.c: what a settle leaves behind besides the job; the gate is passed. */
static inline bool leaves_something(const struct settle *v)
{
    return v->n_artifacts || v->fetch;
}
int keep_left(struct sq *q, const struct settle *v, const struct lane_entry *lane,
              struct pawl_err *err);
int store_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                        struct pawl_err *err);
int store_session_end(struct store *s, struct session *session, struct pawl_err *err);
int store_renew(struct store *s, const struct renew_request *req, struct arena *a,
                struct renew_result *out, struct pawl_err *err);
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
    enum job_state state; /* as shown */
    bool held;            /* queued, but not its lock's turn */
    int64_t lock;         /* 0: none */
    struct wall finished_at;
    bool due;      /* waits for the wall clock */
    struct sv key; /* in the caller's arena */
};
/* act.c: 1 = there is such a job. */
int target_read(struct sq *q, job_id id, struct arena *a, struct target *out, struct pawl_err *err);
void attempt_log_remove(struct sq *q, job_id id, fence_no fence);
/* A job that has ended is queued again with a fresh budget or `grant` attempts more. */
int retry_one(struct sq *q, job_id id, const struct target *t, int grant, struct pawl_err *err);
/* Pages that pruning freed go back to the file system, some at a time. */
int pages_give_back(struct sq *q, struct pawl_err *err);
/* change.c: acts on jobs that have not ended. */
/* Its row says so already: held if it has a lock. */
int became_queued(struct sq *q, job_id id, const struct target *t, int priority,
                  struct pawl_err *err);
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
int store_advise(struct store *s, store_advice_fn *say, void *arg, struct pawl_err *err);
/* Sessions that have not ended, by id, alive or not. */
int session_views(struct sq *q, struct wall now, struct arena *a, struct session_view **out,
                  size_t *out_n, struct pawl_err *err);
/* limits.c, gates.c, locks.c, explain.c, duty.c, history.c */
int store_policy_apply(struct store *s, const struct policy *p, struct sv text, bool *out_changed,
                       struct pawl_err *err);
int store_policy(struct store *s, struct arena *a, struct limit_view **out, size_t *out_n,
                 enum claim_order *out_order, struct dur *out_aging, struct pawl_err *err);
int store_limit_act(struct store *s, enum limit_act act, const struct limit_spec *spec,
                    enum limit_outcome *out, struct pawl_err *err);
int store_gates(struct store *s, const struct gate_filter *f,
                bool (*each)(void *arg, const struct gate_view *g), void *arg,
                struct pawl_err *err);
/* Read a row of gates_list or explain_gate. */
int gate_view_read(struct sq *q, sqlite3_stmt *s, const struct gate_params *params, int64_t now,
                   struct arena *a, struct gate_view *out, struct pawl_err *err);
int store_breaker_act(struct store *s, const struct gate_filter *f, enum breaker_act act,
                      struct dur pause, struct sv reason, int *out_n, struct pawl_err *err);
int store_locks(struct store *s, struct sv key, bool (*each)(void *arg, const struct lock_view *l),
                void *arg, struct pawl_err *err);
/* 1 = it is held or wanted. */
int lock_view_of(struct sq *q, struct sv key, struct arena *a, struct lock_view *out,
                 struct pawl_err *err);
int store_lock_release(struct store *s, struct sv key, bool force, struct sv reason,
                       enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err);
int store_explain(struct store *s, job_id id, struct arena *a, struct explain_view *out,
                  struct pawl_err *err);
/* artifacts.c, fetches.c, memory.c */
int store_artifacts(struct store *s, const struct artifact_filter *f,
                    bool (*each)(void *arg, const struct artifact_view *v), void *arg,
                    struct pawl_err *err);
int store_artifacts_move(struct store *s, const struct artifact_move *v, size_t n,
                         int64_t *out_moved, struct pawl_err *err);
int store_artifacts_expire(struct store *s, struct wall before, int max, int64_t *out_rows,
                           bool *out_more, struct pawl_err *err);
int store_artifacts_lost(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                         int64_t *out_jobs, struct pawl_err *err);
int store_fetches(struct store *s, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
                  void *arg, struct pawl_err *err);
int store_fetch_totals(struct store *s, struct wall since, struct sv queue,
                       struct fetch_totals *out, struct pawl_err *err);
int store_remember(struct store *s, struct sv key, struct sv value, struct dur ttl,
                   struct pawl_err *err);
int store_recall(struct store *s, struct sv key, struct arena *a, struct sv *out,
                 struct pawl_err *err);
/* Of what was remembered and whose time is over, so much at most. */
int memory_drop(struct sq *q, int max, struct pawl_err *err);
int store_duty(struct store *s, struct sv name, const struct session *session, struct dur ttl,
               int64_t done, bool *out_mine, int64_t *out_done, struct pawl_err *err);
int store_note(struct store *s, enum event_type type, const struct session *session,
               struct sv detail, struct pawl_err *err);
int store_prune_history(struct store *s, struct wall events_before, struct wall attempts_before,
                        int max, bool *out_more, struct pawl_err *err);
int store_age(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err);
/* copy.c: the operations of copy.h; and CONFLICT while a copy into this store is not finished. */
extern const struct copy_ops sq_copy_ops;
int copy_check_mark(struct sq *q, struct pawl_err *err);
int store_identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err);
int store_backup(struct store *s, const char *file, struct pawl_err *err);
int store_wake_fd(struct store *s);
void store_wake_clear(struct store *s);
void wake_others(struct sq *q);
int store_log_dir(struct store *s, int *out_fd, struct pawl_err *err);
/* path + suffix, in the arena-free form: caller frees. */
char *side_path(const struct sq *q, const char *suffix);

#endif
