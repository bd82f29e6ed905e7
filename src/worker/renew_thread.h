/* The renew thread: owns the session and its own store handle. It begins the session, renews it
 * every heartbeat and whenever asked, publishes the lease deadline, and ends the session at the
 * very end. A lost lease is told to the loop, which drops its runs and then asks for a new session.
 */
#ifndef PAWL_WORKER_RENEW_THREAD_H
#define PAWL_WORKER_RENEW_THREAD_H

#include "worker.h"
#include <pthread.h>
#include <stdatomic.h>

/* What the loop finds in the mailbox; each is taken once. */
struct renew_news {
    bool new_session;
    struct session session; /* a copy; lock_fd is open until the session ends */
    bool renewed;           /* told only when somebody wants the metrics then */
    bool lost;              /* the lease is over: drop everything, then renew_thread_restart() */
    enum worker_command command; /* COMMAND_NONE: nothing new */
    job_id *cancels;             /* malloc'd, the taker frees */
    size_t n_cancels;
    struct lease_ref *revoked; /* likewise: leases an operator took away */
    size_t n_revoked;
    int rc; /* < 0: no session can be had; err says why */
    struct pawl_err err;
};

struct pending_progress {
    job_id id;
    fence_no fence;
    size_t n;
    char json[PROGRESS_MAX_BYTES];
};

struct renew_thread {
    const struct worker_options *o;
    struct metrics *metrics;
    struct session_spec spec;
    _Atomic int64_t deadline; /* CLOCK_BOOTTIME in µs: after it every lease counts as lost */
    _Atomic int running;      /* jobs in hand, for display */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    bool asked, restart, quit;
    struct boot asked_at;
    struct renew_news news;
    size_t cap_cancels, cap_revoked;
    struct pending_progress *progress;
    size_t n_progress, cap_progress;
    char *preflight;        /* renew_request.preflight; NULL: nothing to say */
    uint64_t progress_turn; /* grows when the pending list was taken */

    /* the thread's own */
    struct store *store;
    struct session session;
    int lock_fd; /* duplicate of the session's lock: it outlives a reopened handle */
    struct boot last_renewal;
    struct dur ask_gap; /* least time between renewals on request */
    struct pending_progress *sending;
    size_t n_sending, cap_sending;
};

PAWL_MUST_USE int renew_thread_start(struct renew_thread *rt, struct pawl_err *err);
/* A last renewal with the final metrics, the end of the session, join. Harmless when not started.
 */
void renew_thread_stop(struct renew_thread *rt);
struct renew_news renew_thread_news(struct renew_thread *rt);
/* Renew soon: somebody may have asked something of this worker. */
void renew_thread_ask(struct renew_thread *rt);
/* Nothing of the lost session runs any more: end it and begin a new one. */
void renew_thread_restart(struct renew_thread *rt);
/* Keep the latest progress of a job until the next renewal. `turn` and `at` are the run's memory of
 * where its pending entry is; both start as 0. */
void renew_thread_progress(struct renew_thread *rt, const struct lease *job, struct sv json,
                           uint64_t *turn, size_t *at);
/* What renewals say about preflights from now on; told soon. */
void renew_thread_preflight(struct renew_thread *rt, const char *json);

#endif
