/* The worker: claims jobs from a store, hands them to handlers, settles what they report.
 * One call runs one worker until it is drained, stopped or broken. */
#ifndef PAWL_WORKER_WORKER_H
#define PAWL_WORKER_WORKER_H

#include "clock.h"
#include "config.h"
#include "err.h"
#include "handler.h"
#include "log.h"
#include "loop.h"
#include "notify.h"
#include "store.h"
#include <signal.h>
#include <stdatomic.h>

/* A kind the worker can run: its handler and its resolved settings. */
struct worker_kind {
    const char *name;
    struct handler *handler; /* borrowed */
    struct dur timeout;      /* us < 0: none */
    int max_attempts;
    bool preflight;            /* claimed only while its check (handler_ops.check) is good, */
    const char *preflight_url; /* and this URL, if not NULL, answers 2xx */
    struct dur preflight_ttl, preflight_timeout;
    bool keeps; /* its jobs leave bytes in the lake: claimed only while that takes some */
};

/* How an attempt ended, for whoever runs the worker. Views last for the call. */
struct attempt_end {
    const struct lease *job;
    enum outcome outcome; /* RETRY, RELEASED: not the last word */
    struct sv error;      /* p NULL: none */
    int exit_code;        /* -1: none */
    int signal;           /* 0: none */
    int slot;             /* as in struct run; 0: it never started */
    struct wall started_at;
    struct dur took; /* us < 0: it never started */
    int64_t log_bytes;
    int log_dir; /* borrowed */
    bool stale;  /* the lease was no longer held: nothing changed */
};
enum worker_verdict { WORKER_GO_ON, WORKER_STOP_SOON, WORKER_STOP_NOW };

/* Somebody who takes part in a worker's life; all called on the loop thread, all may be NULL. */
struct worker_guest {
    void *arg;
    /* An attempt is about to start: its time limit, given the one it would have. */
    struct dur (*limit)(void *arg, const struct lease *job, struct dur limit);
    /* An attempt ended, nothing is committed yet, its slot is still empty. */
    enum worker_verdict (*on_result)(void *arg, const struct attempt_end *end);
    /* Its end is committed. */
    enum worker_verdict (*on_end)(void *arg, const struct attempt_end *end);
    /* Will more jobs be added by this process? A drain goes on until not; loop_wake() then. */
    bool (*more)(void *arg);
};

/* A command of the configuration run beside the jobs. Borrowed for the call that starts it. */
struct aside {
    const struct string_list *command;
    struct sv input; /* its standard input */
    struct dur timeout;
};
struct aside_run;
/* It has ended, and its run is gone. error NULL: with exit status 0. */
typedef void aside_done_fn(void *arg, const char *error);

enum worker_progress { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_LINES };

struct worker_options {
    const struct config *config;
    const char *name;  /* NULL: host:pid */
    struct loop *loop; /* made by the caller, because handlers hang on it too */
    /* Opens one more handle on the store; called on the thread that will own it. */
    int (*open_store)(void *arg, struct store **out, struct pawl_err *err);
    void *open_arg;
    const struct worker_kind *kinds; /* everything this worker can run */
    size_t n_kinds;
    bool only_kinds; /* --kind: jobs of other kinds are none of this worker's business */
    const struct pool_conf *pools; /* resolved; "*" included */
    size_t n_pools;
    const struct sv *queues; /* --queue; n 0: all */
    size_t n_queues;
    bool drain, no_fail;
    struct dur patience;     /* drain: how long what is stuck may hold it; us < 0: not given */
    int64_t stop_after_jobs; /* 0: no limit */
    struct dur stop_after;   /* us 0: no limit */
    job_id only;             /* v != 0: just this job */
    const struct logger *log;
    bool no_policy; /* leave the store's limits as they are, whatever the configuration says */
    bool no_logs;   /* no handler keeps output: the folder for it is not made */
    enum worker_progress progress;
    /* The session's lock descriptor, once there is one and again after each new session: to be
     * handed to supervisors. May be NULL. */
    void (*on_session)(void *arg, const struct session *session);
    /* The lease deadline moved (any thread): to be published to supervisors. May be NULL. */
    void (*on_deadline)(void *arg, struct boot deadline);
    /* N_METRICS values after each renewal and once at the end (loop thread). May be NULL. */
    void (*on_metrics)(void *arg, const int64_t *values);
    void *on_arg;
    /* Start a command on the loop, given on_arg; `done` comes once, later. NULL: not possible. */
    int (*run_aside)(void *arg, const struct aside *a, aside_done_fn *done, void *done_arg,
                     struct aside_run **out, struct pawl_err *err);
    void (*end_aside)(struct aside_run *run); /* kill it: `done` comes soon */
    const struct worker_guest *guest;         /* NULL: none */
    const struct notify *notify;              /* the service manager; NULL: none. Borrowed */
    sigset_t signals; /* blocked by the caller before any thread; read here by signalfd. Empty: a
                         worker that minds no signal */
    /* How often it was asked to stop, counted by others, who call loop_wake() then: 1 means as
     * after the first SIGTERM, 2 as after the second. NULL: nobody asks. */
    const _Atomic int *stop;
};

struct worker_report {
    int64_t done, skipped, failed, retried, released, stale;
    int signal;    /* that ended it, or 0 */
    bool drained;  /* nothing left that this worker could do */
    int64_t stuck; /* jobs only a person can move: listed on stderr */
};

/* 0 when it ended as asked (the report says how); LOCKED, FULL, … when the store failed for longer
 * than store_timeout. Running jobs were ended and released, or settled, before it returns. */
PAWL_MUST_USE int worker_run(const struct worker_options *o, struct worker_report *out,
                             struct pawl_err *err);

#endif
