/* What a store shows, and which of it: jobs, events, workers, counts, gates, locks, artifacts. All
 * texts are borrowed: for the callback that got the view, or from the arena that was given. */
#ifndef PAWL_CORE_VIEWS_H
#define PAWL_CORE_VIEWS_H

#include "artifact.h"
#include "job.h"
#include "limit.h"
#include "metrics.h"

struct lease_ref {
    job_id id;
    fence_no fence;
};

/* ---- jobs, events, workers ------------------------------------------------------------------ */

/* Which jobs. Everything given must hold; nothing given selects all. */
struct selection {
    const job_id *ids; /* n_ids != 0: only these */
    size_t n_ids;
    struct sv queue, kind, host, key; /* p NULL: any */
    unsigned states;                  /* bit per enum job_state; 0: any */
    struct sv error;                  /* substring of the last error; p NULL: any */
    uint32_t error_low, error_high;   /* fingerprint of the last error; high 0: any */
    struct wall since;                /* created at or after; us 0: any */
    int64_t limit;                    /* 0: no limit */
    job_id after;                     /* only ids above: the cursor */
};

struct attempt_view {
    int attempt;
    fence_no fence;
    struct sv worker;
    struct wall started_at, finished_at;
    enum outcome outcome;
    enum fail_class cls;
    struct sv error; /* p NULL: none */
    int exit_code;   /* -1: none */
    int64_t log_bytes;
};
struct job_view {
    job_id id;
    struct sv queue, kind, key, host, lock, payload, result, progress; /* p NULL: none */
    int priority, attempt, max_attempts, transient, lost;
    enum job_state state;
    fence_no fence;
    struct sv worker;                                                           /* while running */
    struct wall claimed_at, lease_until, available_at, created_at, finished_at; /* us 0: none */
    enum wait_reason wait_reason;
    bool cancel_asked;
    struct dur timeout;
    enum fail_class cls; /* of the last failure */
    struct sv error;
    int exit_code;
    uint32_t fingerprint; /* of the last failure; 0: none */
    job_id parent;
    const struct attempt_view *attempts; /* job_get only, oldest first */
    size_t n_attempts;
};

/* Types of events that are few beside the others: a filter for some of these walks over no others.
 */
#define EVENTS_RARE                                                                                \
    (1u << EVENT_FAILED | 1u << EVENT_LOST | 1u << EVENT_WORKER_LOST |                             \
     1u << EVENT_BREAKER_OPENED | 1u << EVENT_BREAKER_PROBED | 1u << EVENT_BREAKER_CLOSED |        \
     1u << EVENT_LIMIT_SET | 1u << EVENT_LIMIT_UNSET | 1u << EVENT_LOCK_RELEASED |                 \
     1u << EVENT_DISK_LOW | 1u << EVENT_DRAINED | 1u << EVENT_DRAIN_STUCK)

struct event_view {
    int64_t id;
    struct wall at;
    enum event_type type;
    job_id job;                                 /* v 0: none */
    fence_no fence;                             /* v 0: none */
    struct sv queue, kind, key, worker, detail; /* detail: JSON object; p NULL: none */
};
/* Where a follower of the events stands; all zero: before the first. */
struct event_cursor {
    int64_t v;
};
struct event_filter {
    int64_t after; /* ids above this one */
    /* Not NULL: only events from here on that no commit still under way can precede; moved behind
     * those given. Events with lower ids than some given before may follow, none is left out. Once
     * it has moved, `after` and `last` do not count; a call that `each` or `limit` ends before its
     * time does not move it. */
    struct event_cursor *follow;
    job_id job; /* v 0: any */
    struct sv queue;
    unsigned types; /* bit per enum event_type; 0: any */
    struct wall since;
    int64_t limit; /* 0: no limit */
    int64_t last;  /* != 0: only the newest so many (still in rising order) */
};

enum worker_command { COMMAND_NONE, COMMAND_PAUSE, COMMAND_RESUME, COMMAND_DRAIN, COMMAND_STOP };
const char *worker_command_name(enum worker_command c);
/* No claim of a session that was asked this takes anything, whether its worker has heard it or not.
 */
bool worker_command_holds(enum worker_command c);

struct session_view {
    session_id id;
    struct sv uid, name, host, pools, filter;
    struct sv preflight; /* JSON object kind -> why it fails */
    int pid, slots, running;
    struct wall started_at, renewed_at, lease_until;
    enum worker_command command; /* what was asked last */
    bool alive;                  /* false: nobody of that session lives, or its lease is over */
};

/* Counts of one (queue, kind). */
struct class_view {
    struct sv queue, kind;
    bool paused; /* the queue */
    int64_t n[N_JOB_STATES];
    int64_t retries;              /* attempts that failed and were repeated, ever */
    int64_t done_last_minute;     /* jobs that ended done or skipped in the last 60 s */
    struct wall first_created_at; /* of the class's oldest job still there; us 0: unknown */
};

struct status_view {
    struct wall now;
    const struct class_view *classes; /* by queue, kind */
    size_t n_classes;
    const struct session_view *sessions; /* by id */
    size_t n_sessions;
    const struct job_view *running; /* by claim time, at most as many as asked */
    size_t n_running;
    const struct job_view *last_done, *last_failed; /* newest first, 5 at most */
    size_t n_last_done, n_last_failed;
    int64_t poisoned;           /* failed because they killed their workers, still there */
    int64_t metrics[N_METRICS]; /* over all workers, ended ones too */
};

/* What happened since a time. */
struct report_slot {
    struct wall at; /* its beginning; ten seconds long */
    int64_t done, skipped, failed, retried, lost;
};
struct report_error {
    uint32_t fingerprint;
    enum fail_class cls;
    int64_t count; /* jobs that failed for good with it */
    job_id sample; /* the newest */
    struct sv message;
};
struct report_slow {
    job_id id;
    struct sv queue, kind, key;
    struct dur took;
};
struct report_view {
    struct wall now, since;
    struct report_slot total;
    int64_t cancelled;               /* of the newest 100 000 cancelled */
    struct dur backoff, retry_after; /* what retries wait or waited */
    const struct report_slot *slots; /* rising; without the empty ones */
    size_t n_slots;
    const struct report_error *errors; /* most frequent of the newest 100 000, 20 at most */
    size_t n_errors;
    const struct report_slow *slowest; /* of the newest 100 000 done, 5 at most */
    size_t n_slowest;
    int64_t workers_ended, workers_lost;
};

/* ---- limits, gates, locks ------------------------------------------------------------------- */

struct limit_view {
    struct limit_spec spec; /* what holds */
    bool unset;             /* removed by hand: nothing holds, spec has its name only */
    bool by_operator;       /* set by hand: the configuration's does not count */
    bool in_config;         /* `limit reset` has something to return to */
    bool built_in;          /* what it returns to is pawl's own (limits_built_in()) */
    struct wall changed_at;
};
struct gate_filter {
    struct sv limit, value; /* p NULL: any */
    bool shut;              /* only those that let nothing through now */
    bool breaker; /* only those whose limit has a breaker, or whose breaker is not closed */
};
struct gate_view {
    struct sv limit, value; /* value n 0: the limit has one gate */
    struct gate_params params;
    struct gate_state state;
    int used;
    struct gate_room room;           /* for one more, now */
    int64_t parked;                  /* lanes that wait for it */
    struct sv why;                   /* of the breaker's last opening; p NULL: none */
    const struct lease_ref *holders; /* explain only: oldest first, 5 at most */
    size_t n_holders;
};
struct lock_view {
    struct sv key;
    struct lease_ref holder; /* id.v 0: free */
    struct sv worker;
    struct wall since, until; /* of the holder's lease */
    int64_t waiting;          /* queued jobs that want it */
    job_id next;              /* the one that gets it; v 0: none */
};
/* Everything that decides whether a job runs now, in one snapshot. */
struct held_view {
    session_id session;
    struct sv kind;
    int64_t n; /* jobs of that kind it holds */
};
struct explain_view {
    struct wall now;
    struct job_view job;
    session_id owner; /* of a running job; v 0: it does not run */
    bool paused;      /* its queue */
    struct wall paused_at;
    const struct gate_view *gates; /* of its lane, all */
    size_t n_gates;
    struct lock_view lock; /* key p NULL: it has none */
    int64_t position;      /* from 1: its place among the ready jobs of its queue; 0: not ready */
    bool position_more;    /* counted up to 100 000 only */
    const struct session_view *sessions; /* not ended, dead ones too; by id */
    size_t n_sessions;
    const struct held_view *held; /* by session */
    size_t n_held;
};

/* ---- artifacts and fetches ------------------------------------------------------------------ */

struct artifact_view {
    int64_t id; /* rises with time of writing */
    job_id job; /* may have been pruned since: artifacts stay */
    fence_no fence;
    struct wall created_at;
    struct artifact a;
    struct sv queue, url; /* url: of the fetch that made it; p NULL: it was none */
    int status;           /* of that fetch; 0: none */
};
struct artifact_filter {
    job_id job;      /* v 0: any */
    struct sv queue; /* p NULL: any */
    struct sv name;  /* p NULL: any */
    bool newest;     /* of each (job, name) only the newest */
    int64_t after;   /* ids above: the cursor */
    int64_t limit;   /* 0: no limit */
};
struct fetch_view {
    job_id job;
    fence_no fence;
    struct wall at;   /* when it was settled */
    int64_t artifact; /* id; 0: nothing was kept */
    struct fetch_record f;
};
/* What fetches did since a time, over one queue or all. */
struct fetch_totals {
    int64_t fetched, not_modified, failed; /* attempts: kept, 304 and no failure, the rest */
    int64_t wire_bytes, body_bytes;
};

#endif
