/* libpawl: a durable work queue inside your program. Jobs are added to a store (SQLite on one
 * machine, PostgreSQL on many), claimed under leases and settled once. docs/library.md has the
 * whole picture and an example.
 *
 * Returns. A function that can fail returns 0, or a negative PAWL_ERROR_… with the reason in
 * *err, which is the caller's and may be NULL. On failure all other out-parameters are untouched.
 *
 * Structs that begin with `size` are made with their PAWL_…_INIT, so that later versions can append
 * fields; a zero field means "the default". Structs that the library hands out are read through
 * pointers and may grow too. The others stay as they are while the soname is libpawl.so.0.
 *
 * Texts are UTF-8 and end with NUL; those you pass are copied or used during the call only. JSON is
 * kept byte for byte. Lengths of time and points in time are milliseconds; points count from 1970.
 *
 * Threads. Every function may be called from any thread. Calls on one pawl_store (and on its
 * sessions) wait for each other; different handles are independent. Nothing of the process is
 * touched: no signal, mask, locale, environment, umask or folder. Without memory the library calls
 * abort(); what the store acknowledged survives that. Handles do not survive a fork(). */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0
#define PAWL_VERSION       "0.1.0"

#if defined(__GNUC__)
#define PAWL_API     __attribute__((visibility("default")))
#define PAWL_CHECKED __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is linked, as PAWL_VERSION is that of the header. */
PAWL_API const char *pawl_version(void);

/* ---- errors ---- */

/* In brackets the exit status that the command `pawl` has for it. */
enum pawl_error_code {
    PAWL_ERROR_INTERNAL = -1,     /* [1] a bug, or broken pieces of another version */
    PAWL_ERROR_IO = -2,           /* [1] */
    PAWL_ERROR_FAILED = -3,       /* [1] */
    PAWL_ERROR_USAGE = -4,        /* [2] a call that makes no sense: NULL, wrong size, bad URL */
    PAWL_ERROR_NOTFOUND = -5,     /* [3] no such job, no store there */
    PAWL_ERROR_INPUT = -6,        /* [4] a job out of bounds, invalid JSON */
    PAWL_ERROR_CONFIG = -7,       /* [4] an option or setting out of bounds */
    PAWL_ERROR_SCHEMA = -8,       /* [4] the store is of another version: `pawl migrate` */
    PAWL_ERROR_CORRUPT = -9,      /* [4] the store is damaged, or not pawl's */
    PAWL_ERROR_CONFLICT = -10,    /* [5] */
    PAWL_ERROR_LOCKED = -11,      /* [5] others held the store for longer than the timeout */
    PAWL_ERROR_STALE = -12,       /* [5] the lease is no longer held: nothing was changed */
    PAWL_ERROR_UNREACHABLE = -13, /* [6] the store cannot be reached or written */
    PAWL_ERROR_FULL = -14,        /* [6] no space left */
    PAWL_ERROR_UNCERTAIN = -15,   /* [6] whether the commit took place is unknown */
    PAWL_ERROR_BROKEN = -16,      /* [6] an earlier failure broke the connection */
    PAWL_ERROR_JOBS_FAILED = -17, /* [7] */
    PAWL_ERROR_TIMEOUT = -18      /* [8] */
};

typedef struct pawl_error {
    int code;          /* PAWL_ERROR_… */
    int exit_status;   /* that the command would have */
    int sys_errno;     /* errno behind it, or 0 */
    char message[384]; /* WHAT: WHY, one line */
    char hint[192];    /* what could be done about it; may be empty */
} pawl_error;

PAWL_API const char *pawl_error_name(int code); /* "not_found"; "ok" for 0 */
PAWL_API int pawl_error_exit_status(int code);  /* 0 for 0 */

/* ---- stores ---- */

typedef struct pawl_store pawl_store;

enum pawl_open_mode {
    PAWL_OPEN_CREATE = 0, /* set the store up if there is none */
    PAWL_OPEN_WRITE = 1,  /* NOTFOUND if there is none */
    PAWL_OPEN_READ = 2    /* the same, and only look */
};
enum pawl_durability {
    PAWL_DURABILITY_DEFAULT = 0, /* full */
    PAWL_DURABILITY_FULL = 1,    /* what was acknowledged survives power loss */
    PAWL_DURABILITY_RELAXED = 2  /* a power loss may cost the last seconds */
};

typedef struct pawl_open_options {
    size_t size;
    int mode;           /* enum pawl_open_mode */
    int durability;     /* enum pawl_durability */
    int64_t timeout_ms; /* how long to wait for a locked store; 10 s */
    /* More, each "key=value" with a key of pawl.yaml (docs/config.md): "retention.keys=7d". */
    const char *const *settings;
    size_t n_settings;
} pawl_open_options;
#define PAWL_OPEN_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .size = sizeof(pawl_open_options)                                                          \
    }

/* URL: sqlite:FILE, or a path alone; postgres://USER@HOST/DATABASE. Neither pawl.yaml nor PAWL_…
 * variables are read, by libpq its own. A handle whose connection broke opens it again at the next
 * call. */
PAWL_API PAWL_CHECKED int pawl_open(const char *url, const pawl_open_options *options,
                                    pawl_store **out, pawl_error *err);
/* Ends the sessions that are left. NULL is fine. No other thread may be in a call on it. */
PAWL_API void pawl_close(pawl_store *store);

/* ---- adding ---- */

/* A job to be added. */
typedef struct pawl_job {
    size_t size;
    const char *queue;   /* NULL: "default" */
    const char *kind;    /* which handler; required */
    const char *key;     /* your name for it, unique in its queue; NULL: none */
    const char *host;    /* who is being hit; NULL: none */
    const char *payload; /* JSON; NULL: null */
    size_t payload_len;  /* 0: up to the NUL */
    int priority;        /* higher first */
    int max_attempts;    /* 0: the worker's */
    int64_t timeout_ms;  /* of an attempt; 0: the worker's; -1: none */
    int64_t delay_ms;    /* not before so long from now */
    int64_t at_ms;       /* not before this time; 0: none */
    const char *lock;    /* of the jobs with this lock one runs at a time; NULL: none */
} pawl_job;
#define PAWL_JOB_INIT                                                                              \
    {                                                                                              \
        .size = sizeof(pawl_job)                                                                   \
    }

/* What to do when (queue, key) exists. */
enum pawl_on_duplicate {
    PAWL_DUPLICATE_SKIP = 0,    /* leave it */
    PAWL_DUPLICATE_REQUEUE = 1, /* ended: run it again; not started: replace it */
    PAWL_DUPLICATE_FAIL = 2     /* leave it and say so */
};
enum pawl_add_outcome {
    PAWL_ADD_CREATED = 0,
    PAWL_ADD_EXISTS = 1,   /* skipped; id is the existing job's */
    PAWL_ADD_REQUEUED = 2, /* had ended: queued again with the new payload */
    PAWL_ADD_REPLACED = 3, /* had not started: has the new payload, priority and time */
    PAWL_ADD_RUNNING = 4,  /* requeue was asked, but it runs: unchanged */
    PAWL_ADD_CONFLICT = 5  /* PAWL_DUPLICATE_FAIL: unchanged */
};
typedef struct pawl_added {
    int64_t id;
    int outcome; /* enum pawl_add_outcome */
    int state;   /* enum pawl_state of the existing job before; -1: it is new */
} pawl_added;

/* One job. When it returns 0 the job survives whatever comes. `out` may be NULL. */
PAWL_API PAWL_CHECKED int pawl_add(pawl_store *store, const pawl_job *job, int on_duplicate,
                                   pawl_added *out, pawl_error *err);
/* n jobs in one transaction: all or none. `out` has room for n, or is NULL. Some thousand at a time
 * are fast and hold up nobody. */
PAWL_API PAWL_CHECKED int pawl_add_many(pawl_store *store, const pawl_job *jobs, size_t n,
                                        int on_duplicate, pawl_added *out, pawl_error *err);

/* ---- looking ---- */

enum pawl_state {
    PAWL_STATE_BLOCKED = 0,
    PAWL_STATE_QUEUED = 1,
    PAWL_STATE_WAITING = 2,
    PAWL_STATE_RUNNING = 3,
    PAWL_STATE_DONE = 4,
    PAWL_STATE_SKIPPED = 5,
    PAWL_STATE_FAILED = 6,
    PAWL_STATE_CANCELLED = 7
};
PAWL_API const char *pawl_state_name(int state); /* "queued"; NULL for no state */
PAWL_API bool pawl_state_is_final(int state);    /* done, skipped, failed, cancelled */

typedef struct pawl_attempt {
    int attempt; /* from 1 */
    int exit_code;
    int64_t fence;
    int64_t started_at_ms, finished_at_ms;
    const char *worker;
    const char *outcome;     /* "done", "retry", "lost", … */
    const char *error_class; /* "transient", "error", "fatal", "lost"; NULL: none */
    const char *error;       /* NULL: none */
} pawl_attempt;

/* A job as it is. NULL and 0 where there is nothing to tell. */
typedef struct pawl_job_info {
    int64_t id, fence, parent;
    int state; /* enum pawl_state */
    int priority, attempt, max_attempts, transient_attempts, lost;
    bool cancel_asked;
    const char *queue, *kind, *key, *host, *worker;
    const char *payload, *result, *progress; /* JSON; payload and result not in pawl_list() */
    const char *error, *error_class;         /* of the last failure */
    const char *wait_reason;
    int64_t created_at_ms, available_at_ms, claimed_at_ms, lease_until_ms, finished_at_ms;
    const pawl_attempt *const *attempts; /* oldest first; not in pawl_list() */
    size_t n_attempts;
    const char *lock;
} pawl_job_info;

/* By id, or by queue (NULL: "default") and key. NOTFOUND if there is none. The caller frees *out.
 */
PAWL_API PAWL_CHECKED int pawl_job_get(pawl_store *store, int64_t id, pawl_job_info **out,
                                       pawl_error *err);
PAWL_API PAWL_CHECKED int pawl_job_find(pawl_store *store, const char *queue, const char *key,
                                        pawl_job_info **out, pawl_error *err);
PAWL_API void pawl_job_free(pawl_job_info *job); /* NULL is fine */

typedef struct pawl_counts {
    size_t size;
    int64_t blocked, queued, waiting, running, done, skipped, failed, cancelled;
} pawl_counts;
#define PAWL_COUNTS_INIT                                                                           \
    {                                                                                              \
        .size = sizeof(pawl_counts)                                                                \
    }
/* How many jobs are in each state, in one queue and of one kind (NULL: all). From counters: cheap
 * with any number of jobs. */
PAWL_API PAWL_CHECKED int pawl_count(pawl_store *store, const char *queue, const char *kind,
                                     pawl_counts *out, pawl_error *err);

/* Which jobs. Everything given must hold; nothing given selects all. */
typedef struct pawl_selection {
    size_t size;
    const int64_t *ids;
    size_t n_ids;
    const char *queue, *kind, *host, *key;
    const char *error; /* part of the last error */
    unsigned states;   /* bits: 1u << PAWL_STATE_FAILED; 0: any */
    int64_t since_ms;  /* created at or after */
    int64_t limit;
    int64_t after; /* only ids above */
} pawl_selection;
#define PAWL_SELECTION_INIT                                                                        \
    {                                                                                              \
        .size = sizeof(pawl_selection)                                                             \
    }
/* Each selected job in order of id until `each` returns false. The info lasts for the call of
 * `each`, which must not call the same store (USAGE). */
PAWL_API PAWL_CHECKED int pawl_list(pawl_store *store, const pawl_selection *selection,
                                    bool (*each)(void *arg, const pawl_job_info *job), void *arg,
                                    pawl_error *err);

/* ---- acting ---- */

enum pawl_act {
    PAWL_ACT_RETRY = 1,  /* ended: queued again with a fresh budget */
    PAWL_ACT_CANCEL = 2, /* not ended: cancelled; running: asked to end */
    PAWL_ACT_PRUNE = 3,  /* ended: gone */
    PAWL_ACT_RELEASE =
        4,              /* waiting: ready now; running, its worker being gone: back to the queue */
    PAWL_ACT_REVOKE = 5 /* the same, but also taken away from workers that live */
};
/* What the selection allows; jobs in another state are passed over. *out_changed may be NULL. */
PAWL_API PAWL_CHECKED int pawl_act(pawl_store *store, int act, const pawl_selection *selection,
                                   int64_t *out_changed, pawl_error *err);
/* Jobs of a paused queue are not claimed. A queue without jobs can be paused too. */
PAWL_API PAWL_CHECKED int pawl_pause(pawl_store *store, const char *queue, bool paused,
                                     pawl_error *err);

/* ---- how an attempt ends ---- */

enum pawl_outcome {
    PAWL_DONE = 0,
    PAWL_SKIPPED = 1,         /* there was nothing to do */
    PAWL_FAILED = 2,          /* for good: no other attempt */
    PAWL_RETRY = 3,           /* failed; again later while attempts are left, else for good */
    PAWL_RETRY_TRANSIENT = 4, /* not the job's fault (throttled, timed out): the transient budget */
    PAWL_RELEASE = 5,         /* given back as if never claimed, ready at once */
    PAWL_CANCELLED = 6        /* ended because it was told to */
};

/* A job under a lease. The fence grows with every claim of the job: pass it on to whatever the job
 * writes to, and a late run can be told from the current one. */
typedef struct pawl_lease {
    int64_t id, fence;
    const char *queue, *kind;
    const char *key, *host; /* NULL: none */
    const char *payload;    /* JSON */
    size_t payload_len;
    int priority;
    int attempt; /* this one, from 1 */
    int transient_attempts, lost;
    int max_attempts;   /* 0: the worker's */
    int64_t timeout_ms; /* as given when it was added */
    int64_t created_at_ms, ready_at_ms, claimed_at_ms;
} pawl_lease;

/* ---- claiming by hand ---- */

/* A session holds leases and must be renewed before its lease is over, else all of them are lost.
 * Most programs want a worker (below), which does this by itself. */
typedef struct pawl_session pawl_session;

typedef struct pawl_session_options {
    size_t size;
    const char *name; /* shown by `pawl workers`; NULL: host:pid */
    int64_t lease_ms; /* 30 s; from 1 s */
    /* "key=value" of pawl.yaml, those of retry.*: they decide about PAWL_RETRY. */
    const char *const *settings;
    size_t n_settings;
} pawl_session_options;
#define PAWL_SESSION_OPTIONS_INIT                                                                  \
    {                                                                                              \
        .size = sizeof(pawl_session_options)                                                       \
    }

PAWL_API PAWL_CHECKED int pawl_session_begin(pawl_store *store, const pawl_session_options *options,
                                             pawl_session **out, pawl_error *err);

/* What a renewal brought; the lists last until the next call on the session. */
typedef struct pawl_renewal {
    size_t size;
    const int64_t *cancels; /* jobs of this session that somebody wants to end */
    size_t n_cancels;
    const int64_t *revoked; /* jobs that were taken away from it: end them, nothing to settle */
    size_t n_revoked;
    bool stop; /* an operator asked this worker to stop or to drain */
} pawl_renewal;
#define PAWL_RENEWAL_INIT                                                                          \
    {                                                                                              \
        .size = sizeof(pawl_renewal)                                                               \
    }
/* The lease counts from now again; at the latest every third of it is sound. STALE: it was over,
 * all leases are lost; only pawl_session_end() is left. `out` may be NULL. */
PAWL_API PAWL_CHECKED int pawl_session_renew(pawl_session *session, pawl_renewal *out,
                                             pawl_error *err);
/* Gives back what is still held, without spending attempts, and frees the session, also when it
 * returns an error. Leases that were claimed under it must not be settled afterwards. */
PAWL_API int pawl_session_end(pawl_session *session, pawl_error *err);

typedef struct pawl_claim_options {
    size_t size;
    const char *const *kinds; /* required */
    size_t n_kinds;
    const char *const *queues; /* none: every queue */
    size_t n_queues;
    int max; /* jobs at most; 0: one */
} pawl_claim_options;
#define PAWL_CLAIM_OPTIONS_INIT                                                                    \
    {                                                                                              \
        .size = sizeof(pawl_claim_options)                                                         \
    }
typedef struct pawl_claimed {
    const pawl_lease *const *leases; /* best first */
    size_t n;                        /* 0: nothing is ready */
    int64_t next_due_ms; /* until the next waiting job of any queue is due; -1: there is none */
} pawl_claimed;
/* Takes the best ready jobs, by priority, then age. Jobs of workers that died are put back on the
 * way, every few seconds. STALE: the session's lease was over. The caller frees *out, when the last
 * of its leases is settled or given up. */
PAWL_API PAWL_CHECKED int pawl_claim(pawl_session *session, const pawl_claim_options *options,
                                     pawl_claimed **out, pawl_error *err);
PAWL_API void pawl_claimed_free(pawl_claimed *claimed); /* NULL is fine */

typedef struct pawl_settlement {
    size_t size;
    int outcome;              /* enum pawl_outcome */
    const char *result;       /* JSON; NULL: none */
    const char *error;        /* what went wrong, or why it was skipped; NULL: none */
    int64_t delay_ms;         /* PAWL_RETRY…: after so long; 0: by the settings of retry.* */
    const pawl_job *children; /* added in the same transaction */
    size_t n_children;
} pawl_settlement;
#define PAWL_SETTLEMENT_INIT                                                                       \
    {                                                                                              \
        .size = sizeof(pawl_settlement)                                                            \
    }
/* Ends the lease; state, event, result and children are written together. STALE: it was no longer
 * held, and nothing was changed. After UNCERTAIN or another failure of the store the same call may
 * be repeated: if the first one did take place, it answers 0. */
PAWL_API PAWL_CHECKED int pawl_settle(pawl_session *session, const pawl_lease *lease,
                                      const pawl_settlement *how, pawl_error *err);

/* Sleeps until something may have become ready, for so long at most (-1: no limit), and may return
 * early. Other calls on the store are possible meanwhile. */
PAWL_API PAWL_CHECKED int pawl_wait_for_work(pawl_store *store, int64_t timeout_ms,
                                             pawl_error *err);

/* ---- a worker ---- */

typedef struct pawl_worker pawl_worker;
typedef struct pawl_run pawl_run; /* one attempt, as its handler sees it */

/* Runs one attempt and returns an enum pawl_outcome. Called on a thread of the worker's own,
 * several at a time. It should look at pawl_run_cancelled() now and then: a thread cannot be
 * killed. */
typedef int pawl_handler(pawl_run *run, void *arg);

enum pawl_log_level {
    PAWL_LOG_ERROR = 1,
    PAWL_LOG_WARN = 2,
    PAWL_LOG_INFO = 3, /* one line for each attempt that ended */
    PAWL_LOG_DEBUG = 4
};
/* One event, "EVENT name=value …" without line feed, everything in it escaped. */
typedef void pawl_log_fn(void *arg, int level, const char *line);

enum pawl_metric_type { PAWL_METRIC_COUNTER = 1, PAWL_METRIC_HISTOGRAM = 2 };
typedef struct pawl_metric {
    const char *name, *help;
    int type;                 /* enum pawl_metric_type */
    int64_t value;            /* the counter; of a histogram how many values it has */
    int64_t sum_us;           /* of a histogram's values */
    size_t n_buckets;         /* histogram: */
    const int64_t *buckets;   /* values in each, not cumulated; the last takes the rest */
    const int64_t *bounds_us; /* upper bound of each; of the last INT64_MAX */
} pawl_metric;
/* Everything the worker has counted since it began to run. */
typedef void pawl_metrics_fn(void *arg, const pawl_metric *const *metrics, size_t n);

typedef struct pawl_worker_options {
    size_t size;
    const char *url;           /* of the store, as for pawl_open(); set up if there is none */
    const char *name;          /* shown by `pawl workers`; NULL: host:pid */
    const char *const *queues; /* none: every queue */
    size_t n_queues;
    int slots; /* jobs at a time, of all kinds that have no slots of their own; 0: one per CPU */
    int durability; /* enum pawl_durability */
    bool drain;     /* return when no job of its kinds and queues is left that can move by itself */
    int64_t stop_after_jobs; /* return after so many */
    int64_t patience_ms;     /* drain: how long jobs that only a person can move may hold it up */
    /* 0: as `pawl run` has them without configuration (docs/config.md). */
    int64_t store_timeout_ms;
    int64_t lease_ms, heartbeat_ms, poll_interval_ms, sweep_interval_ms;
    int64_t stop_timeout_ms; /* how long handlers may go on after the first pawl_worker_stop() */
    int64_t timeout_ms;      /* of an attempt, unless its job or kind has one; -1: none */
    int max_attempts, transient_max_attempts, max_lost;
    int64_t retry_base_ms, retry_max_ms;
    /* More, each "key=value" with a key of pawl.yaml: "retention.done=7d". */
    const char *const *settings;
    size_t n_settings;
    /* Both are called on the thread that is in pawl_worker_run() and should return soon. */
    pawl_log_fn *log; /* NULL: nothing is logged */
    void *log_arg;
    int log_level;            /* enum pawl_log_level; 0: PAWL_LOG_INFO */
    pawl_metrics_fn *metrics; /* after each renewal of the lease and once at the end */
    void *metrics_arg;
} pawl_worker_options;
#define PAWL_WORKER_OPTIONS_INIT                                                                   \
    {                                                                                              \
        .size = sizeof(pawl_worker_options)                                                        \
    }

typedef struct pawl_kind_options {
    size_t size;
    int slots;          /* jobs of this kind at a time; 0: shares the worker's slots */
    int max_attempts;   /* 0: the worker's */
    int64_t timeout_ms; /* 0: the worker's; -1: none */
} pawl_kind_options;
#define PAWL_KIND_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .size = sizeof(pawl_kind_options)                                                          \
    }

/* A worker that does not run yet. It opens its own connections to the store. */
PAWL_API PAWL_CHECKED int pawl_worker_new(const pawl_worker_options *options, pawl_worker **out,
                                          pawl_error *err);
/* Before it runs: jobs of this kind are given to `handler`. `options` may be NULL. */
PAWL_API PAWL_CHECKED int pawl_worker_handle(pawl_worker *worker, const char *kind,
                                             pawl_handler *handler, void *arg,
                                             const pawl_kind_options *options, pawl_error *err);

typedef struct pawl_worker_report {
    size_t size;
    int64_t done, skipped, failed, retried, released, stale; /* ends of attempts */
    int64_t stuck; /* drained, but so many jobs only a person can move */
    bool drained;  /* nothing was left */
} pawl_worker_report;
#define PAWL_WORKER_REPORT_INIT                                                                    \
    {                                                                                              \
        .size = sizeof(pawl_worker_report)                                                         \
    }
/* Works on the calling thread, and on threads of its own, until it is stopped, drained, or the
 * store failed for longer than store_timeout (then with that error; a server that is away is waited
 * for). No handler runs any more when it returns. `out` may be NULL. May be called again. */
PAWL_API PAWL_CHECKED int pawl_worker_run(pawl_worker *worker, pawl_worker_report *out,
                                          pawl_error *err);
/* Any thread, and signal handlers. First: nothing new is started, and what runs may end within
 * stop_timeout, then it is cancelled. Second: it is cancelled at once. Before the run: that run
 * returns at once. */
PAWL_API void pawl_worker_stop(pawl_worker *worker);
/* Not while it runs. NULL is fine. */
PAWL_API void pawl_worker_free(pawl_worker *worker);

/* ---- for handlers, on the handler's thread until it returns ---- */

PAWL_API const pawl_lease *pawl_run_lease(const pawl_run *run); /* lasts until it returns */

enum pawl_cancel {
    PAWL_GO_ON = 0,
    PAWL_CANCEL_ASKED = 1,      /* somebody cancelled the job */
    PAWL_CANCEL_SHUTDOWN = 2,   /* the worker stops: return PAWL_CANCELLED, and it runs elsewhere */
    PAWL_CANCEL_LEASE_LOST = 3, /* it is another worker's by now: whatever is returned is ignored */
    PAWL_CANCEL_TIMEOUT = 4     /* its time is up; PAWL_CANCELLED counts as a failed attempt */
};
/* Should it end? enum pawl_cancel. Cheap. */
PAWL_API int pawl_run_cancelled(const pawl_run *run);
/* Sleeps for so long, less if it is cancelled meanwhile; returns what pawl_run_cancelled() does. */
PAWL_API int pawl_run_sleep(pawl_run *run, int64_t ms);
/* Until the attempt's timeout; -1: it has none. */
PAWL_API int64_t pawl_run_time_left_ms(const pawl_run *run);

/* JSON of at most 1 KiB, shown by `pawl show` while the job runs; the latest counts. */
PAWL_API int pawl_run_progress(pawl_run *run, const char *json, pawl_error *err);
/* JSON of at most 1 MiB, kept with the job. */
PAWL_API int pawl_run_result(pawl_run *run, const char *json, pawl_error *err);
/* What went wrong, or why it was skipped. Any bytes; cut at 4 KiB. */
PAWL_API void pawl_run_error(pawl_run *run, const char *message);
/* PAWL_RETRY…: not before so long from now, instead of the usual backoff. */
PAWL_API void pawl_run_retry_after(pawl_run *run, int64_t ms);
/* PAWL_RETRY…: the peer asked for fewer requests (429, 503). The failure counts as transient, and
 * the job's limits hold back others for as long as pawl_run_retry_after() says, or a usual pause.
 */
PAWL_API void pawl_run_throttled(pawl_run *run);
/* A job that is added together with the end of this one; not if it is to be tried again. */
PAWL_API int pawl_run_add_child(pawl_run *run, const pawl_job *job, pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
