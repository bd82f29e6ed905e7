/* THE store interface: a durable queue at the level of the domain, never of SQL. Two stores exist
 * (SQLite, PostgreSQL); both pass the same conformance suite and mean the same.
 *
 * Each operation says: does / atomic with / outcomes / errors. Expected outcomes are values in
 * out-parameters; an error (negative return, err set) is what the caller cannot decide. After an
 * error nothing of the operation has happened, except UNCERTAIN (the outcome of a commit is
 * unknown: read back) and BROKEN (an earlier commit failed; only store_close is left). Any
 * operation may return LOCKED (beyond store_timeout), FULL, UNREACHABLE, CORRUPT, BROKEN.
 *
 * A store handle belongs to one thread at a time. Several handles on one store, in one process or
 * many, are a supported use. Times are the store's clock (I13). */
#ifndef PAWL_CORE_STORE_H
#define PAWL_CORE_STORE_H

#include "artifact.h"
#include "job.h"
#include "limit.h"
#include "mem.h"
#include "metrics.h"
#include "views.h"

struct copy_ops;
struct store;
struct str;

/* ---- opening ------------------------------------------------------------------------------- */

enum store_mode {
    STORE_READ,   /* look only: NOTFOUND if there is no store, SCHEMA if it is not for us */
    STORE_WRITE,  /* as READ, but may write */
    STORE_CREATE, /* set up an empty store first, safely when several start at once */
    STORE_COPY,   /* as CREATE, and a store into which a copy is under way is accepted (copy.h) */
    STORE_MIGRATE /* as CREATE, and an older schema is accepted: for store_migrate() only */
};
enum durability { DURABILITY_FULL, DURABILITY_RELAXED };

struct store_options {
    enum store_mode mode;
    struct dur timeout; /* how long to wait for a lock: LOCKED beyond it */
    enum durability durability;
    struct dur keep_keys; /* how long a key outlives its pruned job */
    /* Of a store on a server; borrowed for the call that opens it. */
    const char *schema;   /* NULL: "pawl" */
    const char *log_root; /* folder for logs of attempts on this machine; NULL: a default */
    bool no_notify;       /* neither send nor wait for hints: polling alone */
    bool no_prepare;      /* no named statements: behind a transaction pooler */
};

/* ---- adding -------------------------------------------------------------------------------- */

enum on_duplicate { DUPLICATE_SKIP, DUPLICATE_REQUEUE, DUPLICATE_FAIL };
enum add_outcome {
    ADD_CREATED,  /* also by REQUEUE where the key is all that is left of a pruned job */
    ADD_EXISTS,   /* same (queue, key): skipped, id is the existing job's */
    ADD_REQUEUED, /* was terminal: queued again with the new payload, fresh budgets, fence kept */
    ADD_REPLACED, /* was queued or waiting: payload, priority and times are the new ones */
    ADD_RUNNING,  /* requeue asked, but it is running: unchanged */
    ADD_CONFLICT, /* DUPLICATE_FAIL and it exists: unchanged */
};
struct add_result {
    job_id id;
    enum add_outcome outcome;
    enum job_state state; /* of the existing job, before */
};

/* ---- sessions and leases ------------------------------------------------------------------- */

struct session_spec {
    const char *name; /* "host:pid" */
    const char *host;
    int pid;
    int slots;
    const char *pools;  /* JSON object kind -> slots */
    const char *filter; /* JSON {"queues":[…],"kinds":[…]} */
    struct dur lease;
};
struct session {
    session_id id;
    char uid[33]; /* random per start */
    int lock_fd;  /* SQLite: kernel lock on the session's file, to be inherited by supervisors and
                     by nobody else; owned by the store until session_end. -1 elsewhere */
};

/* What an operator asked of a worker; the latest wins. */
struct progress {
    job_id id;
    fence_no fence;
    struct sv json;
};
struct renew_request {
    struct session *session;
    struct dur lease;
    const int64_t *metrics;          /* N_METRICS values, or NULL */
    const struct progress *progress; /* fenced: stale ones are ignored */
    size_t n_progress;
    int running; /* jobs in hand, for display */
    /* JSON object kind -> why its preflight fails, "{}" for none; NULL: as it was. */
    const char *preflight;
};
struct renew_result {
    bool stale; /* the session had expired: drop everything, start a new one */
    enum worker_command command;
    const job_id *cancels; /* running jobs of this session that should end, in the arena */
    size_t n_cancels;
    const struct lease_ref *revoked; /* leases taken away by an operator: end them, told once */
    size_t n_revoked;
};

/* ---- claiming ------------------------------------------------------------------------------ */

struct claim_pool {
    const struct sv *kinds; /* every kind the pool may take; a kind is in one pool at most */
    size_t n_kinds;
    int want;  /* at most this many */
    int ahead; /* of these so many are to wait in the worker: only jobs without gate or lock */
};
struct claim_request {
    const struct session *session;
    const struct claim_pool *pools;
    size_t n_pools;
    const struct sv *queues; /* only these; n 0: every queue */
    size_t n_queues;
    job_id only; /* v != 0: just this job, by the normal rules */
};
struct claim_result {
    struct lease *leases; /* by (priority desc, id), in the arena */
    size_t n;
    bool session_stale; /* nothing claimed: the own session has expired */
    /* Until time makes another claim worth while: a waiting job is due or a shut gate opens, in any
     * queue; us < 0: never. */
    struct dur next_due;
    bool busy; /* a gate or lane was just in use by another claim: look again in milliseconds */
};

enum settle_outcome { SETTLE_OK, SETTLE_STALE };

/* ---- sweeping ------------------------------------------------------------------------------ */

struct sweep_request {
    const struct session *self; /* never swept; NULL outside a worker */
    int max_sessions, max_jobs; /* bounds of one call */
    int max_lost;               /* poison after this many lost leases */
    struct dur lost_delay;      /* pause before a lost job may run again; 0: at once */
};
struct sweep_result {
    int sessions; /* dead ones swept */
    int requeued, poisoned;
    bool more; /* a bound was reached: call again */
};

/* ---- the store itself ---------------------------------------------------------------------- */

/* What a handle has done since it was opened. */
struct store_effort {
    int64_t statements, rows, syncs;
};

enum { STORE_ID_LEN = 32 };
struct store_info {
    char kind[16];      /* "sqlite" */
    char location[512]; /* path or URL without password */
    char version[64];   /* of the engine */
    int schema, schema_known;
    int64_t bytes, log_bytes_pending; /* size; size of the write-ahead log */
    enum durability durability;
    int64_t free_bytes; /* on its file system; -1 unknown */
};

/* What an operator should know of the engine and its surroundings. */
enum advice { ADVICE_OK, ADVICE_WARN, ADVICE_FAIL };
typedef void store_advice_fn(void *arg, enum advice verdict, const char *what, struct sv text);

/* ---- acting -------------------------------------------------------------------------------- */

enum act {
    ACT_RETRY,   /* terminal → queued */
    ACT_CANCEL,  /* not terminal → cancelled; running: asked to end */
    ACT_PRUNE,   /* terminal → gone */
    ACT_RELEASE, /* waiting → queued now; running → fenced off and queued, no attempt spent */
    ACT_SET,     /* queued or waiting: `change` */
};
/* New values for a job that has not started. */
struct job_change {
    bool has_priority, has_max_attempts, has_timeout, has_time;
    int priority, max_attempts;
    struct dur timeout;
    struct dur delay;  /* has_time: from now, unless */
    struct wall at;    /* us != 0: a time on the wall clock */
    struct sv payload; /* p NULL: unchanged */
};
struct act_request {
    enum act act;
    struct selection select;
    bool dry_run;       /* count only */
    int grant_attempts; /* ACT_RETRY: N more attempts on top of those used; 0: fresh budget */
    struct wall finished_before; /* ACT_PRUNE: only jobs that ended before; us 0: any */
    int64_t keep_newest; /* ACT_PRUNE: leave so many of the newest ended ones; 0: none. Needs a
                            queue and states in `select` */
    bool force;          /* ACT_RELEASE: also jobs whose worker lives */
    const struct job_change *change; /* ACT_SET */
    int max; /* bound of one call (transactions stay short); call again while more */
};
struct act_result {
    int64_t matched; /* in this call */
    int64_t changed; /* less than matched: some were in a state the act does not apply to */
    job_id cursor;   /* pass as select.after to go on */
    bool more;
};

/* ---- limits, locks, artifacts --------------------------------------------------------------- */

enum limit_act {
    LIMIT_SET,   /* add or change, by hand */
    LIMIT_UNSET, /* remove, until the configuration's text for it changes */
    LIMIT_RESET, /* back to what the configuration says */
};
enum limit_outcome {
    LIMIT_OK,
    LIMIT_SAME,      /* it was so already */
    LIMIT_NOT_FOUND, /* no limit of that name; nothing to return to */
};
enum breaker_act { BREAKER_DO_OPEN, BREAKER_DO_CLOSE, BREAKER_DO_RESET };
enum lock_outcome {
    LOCK_RELEASED, /* its holder is fenced off and queued again, no attempt spent */
    LOCK_HELD,     /* not without force: its holder lives */
    LOCK_FREE,     /* nobody holds it */
};

/* An artifact whose bytes now lie elsewhere. */
struct artifact_move {
    int64_t id;
    struct sv from, to; /* places */
    int64_t stored;
    enum codec codec;
};

/* ---- the operations ------------------------------------------------------------------------ */

struct store_ops {
    const char *name;
    bool remote; /* an outage passes: workers wait for its end as long as it takes */
    void (*close)(struct store *s);

    /* does: bring an older schema up to date; report versions before and after. STORE_MIGRATE. */
    int (*migrate)(struct store *s, int *out_from, int *out_to, struct pawl_err *err);
    int (*info)(struct store *s, struct store_info *out, struct pawl_err *err);
    /* does: the store's id, random and its own for as long as it is there; a backup of it, and
     * what it was copied to, have others. */
    int (*identity)(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err);
    /* does: the engine's own integrity check plus pawl's cross-table checks; appends one line per
     * finding to `out`, none when all is well. */
    int (*check)(struct store *s, struct str *out, struct pawl_err *err);
    /* does: call `say` for every fact that only this kind of store has. May be NULL. */
    int (*advise)(struct store *s, store_advice_fn *say, void *arg, struct pawl_err *err);
    /* does: a consistent copy into a new file, while others write. errors: CONFLICT if it exists.
     */
    int (*backup)(struct store *s, const char *file, struct pawl_err *err);
    const struct copy_ops *copy; /* copy.h */
    struct wall (*now)(struct store *s);
    /* does: from now on no operation of this handle waits longer. NULL: not needed. */
    void (*limit)(struct store *s, struct dur timeout);
    void (*effort)(struct store *s, struct store_effort *out);

    /* Group commit. Between begin and commit every writing operation is part of one transaction,
     * each under its own savepoint: one that fails leaves the others whole. Nothing may be reported
     * to the outside before commit returned 0. Without a group each operation commits by itself. */
    int (*group_begin)(struct store *s, struct pawl_err *err);
    int (*group_commit)(struct store *s, struct pawl_err *err);
    void (*group_abort)(struct store *s);

    /* does: add n jobs. atomic with: events, counters, keys; all n or none. outcomes: one per spec.
     * errors: INPUT if a spec is out of bounds. I1. */
    int (*enqueue)(struct store *s, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                   struct add_result *out, struct pawl_err *err);

    int (*session_begin)(struct store *s, const struct session_spec *spec, struct session *out,
                         struct pawl_err *err);
    /* does: give back what the session still holds (no attempt spent) and end it. */
    int (*session_end)(struct store *s, struct session *session, struct pawl_err *err);
    /* does: extend the session's lease, if and only if it is unexpired; store metrics, progress.
     * outcomes: stale; what was asked of this worker. */
    int (*renew)(struct store *s, const struct renew_request *req, struct arena *a,
                 struct renew_result *out, struct pawl_err *err);
    /* does: take the best ready jobs; none once the session was asked to pause or stop. atomic
     * with: state, fence, attempt, session, event. I2, I3. */
    int (*claim)(struct store *s, const struct claim_request *req, struct arena *a,
                 struct claim_result *out, struct pawl_err *err);
    /* does: end leases, gated on (id, fence, running). atomic with: attempt, event, children,
     * counters. outcomes: one per settle; STALE changed nothing. I2, I9. */
    int (*settle)(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
                  struct pawl_err *err);
    /* does: requeue, poison or cancel what dead sessions held. I4, I6. */
    int (*sweep)(struct store *s, const struct sweep_request *req, struct sweep_result *out,
                 struct pawl_err *err);
    /* does: running jobs of this session as the store sees them, for reading back. */
    int (*held)(struct store *s, const struct session *session, struct arena *a, struct lease **out,
                size_t *out_n, struct pawl_err *err);

    int (*act)(struct store *s, const struct act_request *req, struct act_result *out,
               struct pawl_err *err);
    /* outcome: *out_changed false if it was so already. A queue without jobs can be paused. */
    int (*pause)(struct store *s, struct sv queue, bool paused, bool *out_changed,
                 struct pawl_err *err);
    /* does: ask all live sessions of that name (p NULL: all). outcome: how many were asked. */
    int (*worker_ask)(struct store *s, struct sv name, enum worker_command c, int *out_n,
                      struct pawl_err *err);

    /* errors: NOTFOUND */
    int (*job_get)(struct store *s, job_id id, struct arena *a, struct job_view *out,
                   struct pawl_err *err);
    /* does: each selected job in order of id until `each` returns false. The view and its strings
     * last for the call. No payload or result unless `full`. */
    int (*list)(struct store *s, const struct selection *sel, bool full,
                bool (*each)(void *arg, const struct job_view *job), void *arg,
                struct pawl_err *err);
    int (*count)(struct store *s, const struct selection *sel, int64_t *out, struct pawl_err *err);
    int (*events)(struct store *s, const struct event_filter *f,
                  bool (*each)(void *arg, const struct event_view *e), void *arg,
                  struct pawl_err *err);
    int (*status)(struct store *s, int max_running, struct arena *a, struct status_view *out,
                  struct pawl_err *err);

    /* does: what happened since a time, in one queue or (p NULL) all. */
    int (*report)(struct store *s, struct wall since, struct sv queue, struct arena *a,
                  struct report_view *out, struct pawl_err *err);

    /* does: make the configured limits and order hold: adds, changes and removes what came from an
     * earlier configuration, leaves what an operator set. Built-in limits (limit.h) hold where they
     * are not named. Nothing if `text`, from which they were made, is what was applied last. p
     * NULL, nothing is configured: only the built-in limits of which the store knows nothing.
     * atomic with: event. */
    int (*policy_apply)(struct store *s, const struct policy *p, struct sv text, bool *out_changed,
                        struct pawl_err *err);
    /* does: all limits by name, those removed by hand too, and the order. */
    int (*policy)(struct store *s, struct arena *a, struct limit_view **out, size_t *out_n,
                  enum claim_order *out_order, struct dur *out_aging, struct pawl_err *err);
    /* does: change one limit by hand; SET takes spec whole, the others its name. Holds for every
     * claim that begins after it; running jobs count under the new limit at once. atomic with:
     * event (limit_set, limit_unset). */
    int (*limit_act)(struct store *s, enum limit_act act, const struct limit_spec *spec,
                     enum limit_outcome *out, struct pawl_err *err);
    /* does: each gate by limit and value until `each` returns false. */
    int (*gates)(struct store *s, const struct gate_filter *f,
                 bool (*each)(void *arg, const struct gate_view *g), void *arg,
                 struct pawl_err *err);
    /* does: open, close or reset the breakers of all gates that match (gate_open() …). atomic with:
     * event with the reason. outcome: how many. A value for which there is no gate yet: 0. */
    int (*breaker_act)(struct store *s, const struct gate_filter *f, enum breaker_act act,
                       struct dur pause, struct sv reason, int *out_n, struct pawl_err *err);
    /* does: each lock that is held or wanted, by key (p NULL: all), until `each` returns false. */
    int (*locks)(struct store *s, struct sv key, bool (*each)(void *arg, const struct lock_view *l),
                 void *arg, struct pawl_err *err);
    /* does: take a lock from the job that holds it; without `force` only if its worker is dead.
     * atomic with: event lock_released with the reason, attempt, next waiter. I2. */
    int (*lock_release)(struct store *s, struct sv key, bool force, struct sv reason,
                        enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err);
    /* errors: NOTFOUND */
    int (*explain)(struct store *s, job_id id, struct arena *a, struct explain_view *out,
                   struct pawl_err *err);

    /* does: permits of the gates of (the job's queue, its kind, `host`) for a job under its fence,
     * besides those it has; all or none. They count as a start at that host and end with the lease
     * (I3, I7). outcomes: OK (also where nothing limits it); STALE; SHUT with `wait` and `gate`, in
     * the arena. */
    int (*admit)(struct store *s, const struct lease_ref *job, struct sv host, struct arena *a,
                 struct admission *out, struct pawl_err *err);
    /* does: starts at `host` in gates of `each: host` limits that (queue, kind) of the job has are
     * from now on at least `apart` from each other, counted from now; 0: as the limit says. Gated
     * on the job's fence. outcome: how many gates hold it; 0 also where none exists. */
    int (*pace)(struct store *s, const struct lease_ref *job, struct sv host, struct dur apart,
                int *out_gates, struct pawl_err *err);

    /* does: remember a text under a key until `ttl` from now; p NULL: forget it. */
    int (*remember)(struct store *s, struct sv key, struct sv value, struct dur ttl,
                    struct pawl_err *err);
    /* outcome: the text in the arena; p NULL: none, or its time is over. */
    int (*recall)(struct store *s, struct sv key, struct arena *a, struct sv *out,
                  struct pawl_err *err);

    /* does: each artifact by id until `each` returns false. */
    int (*artifacts)(struct store *s, const struct artifact_filter *f,
                     bool (*each)(void *arg, const struct artifact_view *v), void *arg,
                     struct pawl_err *err);
    /* does: remove the rows of artifacts whose bytes are gone, and queue their jobs again where
     * they have ended and are still there (fence kept, fresh budgets). atomic with: event
     * artifact_lost. outcomes: how many rows went, how many jobs were queued. */
    int (*artifacts_lost)(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                          int64_t *out_jobs, struct pawl_err *err);
    /* does: the rows of artifacts name the new places; one whose place is no longer `from`, or that
     * is gone, stays as it is. outcome: how many were changed. */
    int (*artifacts_move)(struct store *s, const struct artifact_move *v, size_t n,
                          int64_t *out_moved, struct pawl_err *err);
    /* does: remove rows of artifacts written before a time, the lowest ids first; their jobs stay
     * as they are. At most `max` in one call. outcomes: how many; *out_more, call again. */
    int (*artifacts_expire)(struct store *s, struct wall before, int max, int64_t *out_rows,
                            bool *out_more, struct pawl_err *err);
    /* does: the records of a job, newest first, until `each` returns false. */
    int (*fetches)(struct store *s, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
                   void *arg, struct pawl_err *err);
    int (*fetch_totals)(struct store *s, struct wall since, struct sv queue,
                        struct fetch_totals *out, struct pawl_err *err);

    /* does: take or keep a duty that one session has at a time, for `ttl`; `done` ≥ 0 is kept as
     * how far it came. outcomes: mine; the last `done` of whoever had it, 0 at first. */
    int (*duty)(struct store *s, struct sv name, const struct session *session, struct dur ttl,
                int64_t done, bool *out_mine, int64_t *out_done, struct pawl_err *err);
    /* does: record an event of a worker that changes no job (disk_low, drained, drain_stuck). */
    int (*note)(struct store *s, enum event_type type, const struct session *session,
                struct sv detail, struct pawl_err *err);

    /* does: delete history: events older than events_before, but never the newest of all; of jobs
     * that ended before attempts_before all attempts but the last, with their logs. us 0: not
     * those. At most `max` of each in one call. outcome: *out_more, call again. */
    int (*prune_history)(struct store *s, struct wall events_before, struct wall attempts_before,
                         int max, bool *out_more, struct pawl_err *err);
    /* does: ready jobs gain one priority for each full `aging` (struct policy) since they became
     * ready, 1000 and PRIORITY_MAX at most, until they are put back; the priority shown stays. In
     * each lane and priority the jobs with the lowest ids, up to the first whose time has not come.
     * outcome: how many, max_jobs at most. */
    int (*age)(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err);

    /* A descriptor that becomes readable when another handle made jobs ready, asked something of a
     * worker or ended; -1 if there is none. A hint only. */
    int (*wake_fd)(struct store *s);
    void (*wake_clear)(struct store *s);
    /* Folder for the logs of attempts, created on demand; a directory fd owned by the store. */
    int (*log_dir)(struct store *s, int *out_fd, struct pawl_err *err);
};

struct store {
    const struct store_ops *ops;
};

/* The only callers of ops; they check arguments and outcomes. */
void store_close(struct store *s); /* NULL is fine */
static inline void store_closep(struct store **s)
{
    store_close(*s);
}
#define AUTO_STORE __attribute__((cleanup(store_closep)))
PAWL_MUST_USE int store_enqueue(struct store *s, const struct job_spec *specs, size_t n,
                                enum on_duplicate dup, struct add_result *out,
                                struct pawl_err *err);
PAWL_MUST_USE int store_claim(struct store *s, const struct claim_request *req, struct arena *a,
                              struct claim_result *out, struct pawl_err *err);
PAWL_MUST_USE int store_settle(struct store *s, const struct settle *v, size_t n,
                               enum settle_outcome *out, struct pawl_err *err);
/* Relative path of an attempt's log inside log_dir: "00/00/12.3.log". */
void store_log_name(job_id id, fence_no fence, char out[64]);

#endif
