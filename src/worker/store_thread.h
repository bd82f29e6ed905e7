/* The store thread: owns the one handle that settles, sweeps and claims. It takes a turn, does all
 * of it in one transaction and gives it back only after the commit (I12). When the store fails it
 * closes the handle, reopens it with backoff for up to store_timeout and reads back. */
#ifndef PAWL_WORKER_STORE_THREAD_H
#define PAWL_WORKER_STORE_THREAD_H

#include "lake.h"
#include "turn.h"
#include "worker.h"
#include <pthread.h>

/* What the thread says besides turns; each field is taken once by the loop. */
struct store_news {
    bool opened;               /* a handle is open, for the first time or again: */
    int wake_fd;               /* its wake descriptor, duplicated for the loop; -1: none */
    int log_dir;               /* duplicated; -1: none */
    char id[STORE_ID_LEN + 1]; /* of the store */
    bool down;                 /* the store failed; err says how; retrying */
    struct pawl_err err;
};

struct store_thread {
    const struct worker_options *o;
    struct metrics *metrics;
    const struct claim_request *claim; /* queues and `only` of every claim */
    bool apply_policy;                 /* before the first claim */
    const struct policy *policy;       /* NULL: only what is built in */
    struct sv policy_text;
    struct lake *lake;      /* the thread's own, for artifacts that waited long; NULL until then */
    size_t prune_at;        /* the thread's own: next rule of the round under way, */
    struct boot limits_due; /* the thread's own: before that, limits are not looked at again */
    bool prune_more;        /* which left something of one before */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    struct turn *in, *out;
    bool quit, hurry;
    struct boot ending; /* since when the worker is to end; us 0: it is not */
    struct store_news news;
    struct store *store; /* written by the thread under the lock; NULL while there is none */
};

PAWL_MUST_USE int store_thread_start(struct store_thread *st, struct pawl_err *err);
/* Finishes the turn in hand, closes the handle and joins. Harmless when not started. */
void store_thread_stop(struct store_thread *st);
/* Stop waiting for a store that failed: the turn in hand is given up. */
void store_thread_hurry(struct store_thread *st);
/* The worker is to end: from now on a remote store that failed is waited for no longer than others.
 */
void store_thread_ending(struct store_thread *st);
struct boot store_thread_ends_since(struct store_thread *st); /* us 0: it does not */
/* Loop thread; there is at most one turn under way. */
void store_thread_give(struct store_thread *st, struct turn *t);
struct turn *store_thread_take(struct store_thread *st); /* a finished turn or NULL */
struct store_news store_thread_news(struct store_thread *st);
/* Loop thread: clear the wake descriptor; false while no handle is open. */
bool store_thread_wake_clear(struct store_thread *st);

/* The store cannot work on: reopen it (or give up), rather than blame the request. */
bool store_failed(int code);
/* No use in trying again. */
bool store_lost_for_good(int code);

#endif
