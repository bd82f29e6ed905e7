/* The loop thread's view of a worker: its pools, runs, the turn being filled, and its timers.
 * Everything here is touched by the loop thread only. */
#ifndef PAWL_WORKER_INTERNAL_H
#define PAWL_WORKER_INTERNAL_H

#include "alerts.h"
#include "asks.h"
#include "keep_thread.h"
#include "lake_hold.h"
#include "preflight.h"
#include "progress.h"
#include "renew_thread.h"
#include "service.h"
#include "store_thread.h"
#include "turn.h"
#include "worker.h"
#include <stddef.h>

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

enum {
    CLAIM_MAX = 4096, /* jobs of one claim; adapted down to keep transactions short */
    CLAIM_MIN = 512,
    HELD_MAX = 2 * CLAIM_MAX, /* one batch being run, one being claimed */
    PUMP_MAX = 1024,          /* jobs started before the loop looks at its descriptors again */
    HELD_BYTES_MAX = 8 << 20, /* prefetched payloads */
    PREFETCH_MS = 100,        /* what is held should end within this */
    SLOW_MS = 50,             /* kinds slower than this are not prefetched */
    GIVE_BACK_MS = 1000,      /* a prefetched job that did not start by then goes back */
    GIVE_BACK_HINT_MS = 100,  /* the same when something changed in the store */
    WARY_MS = 10000,          /* no prefetch after a job that was lost before */
    N_TURNS = 3,              /* filled by the loop, at the store, being taken in */
};

struct kind {
    struct sv name;
    struct handler *handler;
    struct dur timeout;
    int max_attempts;
    struct pool *pool;
    bool timed;     /* mean_us is known */
    double mean_us; /* moving average of its attempts */
    struct boot last_end;
    struct preflight *preflight; /* NULL: none */
    bool keeps;                  /* its jobs leave bytes in the lake: said, or seen */
    double mean_kept;            /* moving average of what they left */
    int running;
};

/* A claimed job that has not started. */
struct ready {
    struct lease *lease;
    struct batch *batch;
};

struct pool {
    const char *name;
    struct sv *kinds;
    struct kind **members;
    size_t n_kinds;
    int slots, running;
    struct ready *ring; /* claimed and waiting for a slot, in claim order */
    size_t head, n_ready, cap;
    size_t window;     /* jobs it may hold beyond its slots; doubles while claims come back full */
    double mean_us;    /* moving average over its kinds */
    double mean_bytes; /* of what a held job weighs */
    bool dry;          /* the last claim found nothing for it */
    bool no_ahead;     /* the last claim for more than its slots found nothing: what there is needs
                          permits or locks */
    struct boot wary;  /* until then nothing is held beyond the slots: a job that cost an earlier
                          worker its life must not take bystanders along (I8) */
};

/* One attempt under way. */
struct attempt {
    struct run run; /* first: what the handler sees */
    struct worker *w;
    struct kind *kind;
    struct pool *pool;
    const struct lease *lease;
    struct batch *batch;
    struct boot started;
    int slot;
    bool dropped;   /* its lease is lost: the result will be discarded */
    bool cancelled; /* a cancel was sent: */
    enum cancel_why why;
    uint64_t progress_turn;
    size_t progress_at;
    struct attempt *prev, *next;
    char log_name[64];
};

enum stopping {
    GO_ON,
    STOP_CLAIMING, /* running jobs may end until the stop timer */
    STOP_NOW,      /* running jobs were told to end */
};

struct http;

struct worker {
    const struct worker_options *o;
    struct loop *loop;
    struct logger log; /* a copy: `around` is the progress bar's */
    struct metrics metrics;
    struct worker_report report;

    struct kind *kinds; /* sorted by name */
    size_t n_kinds;
    struct pool *pools;
    size_t n_pools;
    struct policy policy;
    struct arena policy_arena;
    struct http *http;          /* made when first needed */
    struct alerts *alerts;      /* NULL: none */
    struct claim_request claim; /* queues and `only`: the same in every claim */
    int64_t slots;

    struct attempt running; /* ring of attempts under way, itself the anchor */
    size_t n_running, n_ready;
    struct attempt *free_attempts;
    uint64_t *slots_used; /* bit per slot number less one */
    size_t n_slot_words;
    struct attempt **slabs;
    size_t n_slabs, cap_slabs;
    struct batch *free_batches;

    struct turn turns[N_TURNS];
    struct turn *filling; /* settles go here */
    struct turn *away;    /* at the store thread; NULL: it is idle */
    struct turn *coming;  /* being taken in */
    struct note note;     /* for the next turn */
    size_t claim_max;
    uint64_t hints;            /* reasons to look again, counted */
    struct boot claim_failing; /* since when every claim failed; us 0: the last one did not */

    struct ask_list asks; /* of runs, for the next turn */
    struct store_thread store;
    struct renew_thread renew;
    struct keeping keep;
    struct lake_hold hold;
    struct session session; /* id.v 0: none at the moment */
    bool lost;              /* the session is lost, its runs are ending */
    bool store_open, store_down;
    char store_id[STORE_ID_LEN + 1]; /* known once a turn has come back */
    int log_dir;
    struct watch wake, signals;

    bool stepping, step_again;
    bool paused, draining;
    bool all_in;                /* no more jobs will come from the guest */
    enum worker_command obeyed; /* the last one: renewals repeat it */
    enum stopping stopping;
    struct boot signalled; /* the last ending signal */
    int stops;             /* of worker_options.stop, heeded */
    bool broken;           /* the store is given up; error below */
    struct pawl_err error;
    bool finished; /* nothing is left to do: the loop ends */

    int64_t started_jobs, ended_jobs; /* for stop_after_jobs */
    bool only_ended;                  /* worker_options.only: it came to an end */
    bool sweep_due, look_due, prune_due;
    struct boot last_sweep, last_prune, last_age, last_look;
    int64_t busy_us;       /* span of the pause after a claim that met others at work */
    struct dur idle_delay; /* grows while due times prove fruitless */
    bool base_known;
    int64_t failed_base;
    struct boot stuck_since;
    const int64_t *behind; /* of the look being judged */
    struct look_summary {
        int64_t left, failed, stuck;
        int64_t ended; /* by this worker when it looked */
        bool known;
    } seen;

    struct limited limited; /* as the last look that knew it saw it */

    struct timer soon, poll, sweep_timer, prune_timer, age, stop, after, lease;
    struct progress_display progress;
    struct service service;
};

/* worker.c */
void worker_soon(struct worker *w); /* have worker_step() run when the current callback is over */
void worker_break(struct worker *w, const struct pawl_err *cause); /* give up: end everything */
bool worker_idle(const struct worker *w); /* nothing running, held or waiting to be settled */

/* slots.c: pools, prefetch, refill */
void slots_init(struct worker *w);
void slots_done(struct worker *w);
struct kind *slots_kind(struct worker *w, struct sv name); /* NULL if unknown */
void slots_take_in(struct worker *w, struct turn *t);      /* claimed leases become ready */
bool slots_pump(struct worker *w);                         /* start what can start; true: more */
void slots_plan(struct worker *w, struct turn *t);         /* what to claim */
void slots_wet(struct worker *w);                          /* look for work again in every pool */
void slots_freed(struct worker *w); /* the same, for what needed a permit or a lock */
void slots_give_back(struct worker *w, struct dur older_than); /* us 0: all that is ready */
/* What is ready of it; `why` is a static text. */
void slots_give_back_kind(struct worker *w, struct sv kind, const char *why);
void slots_drop(struct worker *w);                           /* forget what is ready: lease lost */
void slots_revoke(struct worker *w, struct lease_ref lease); /* taken away before it started */
bool slots_cancel(struct worker *w, job_id id);              /* a job that has not started */
void slots_observe(struct kind *k, struct boot now, struct dur took);
void batch_put(struct worker *w, struct batch *b);
void batch_unref(struct worker *w, struct batch *b); /* put back with its last lease */

/* runs.c: one attempt from start to its settle */
void runs_init(struct worker *w);
void runs_done(struct worker *w);
void runs_start(struct worker *w, struct ready r);
void runs_cancel_all(struct worker *w, enum cancel_why why);
bool runs_cancel(struct worker *w, job_id id);
void runs_drop(struct attempt *a);                          /* its lease is lost */
bool runs_revoke(struct worker *w, struct lease_ref lease); /* the same for one, by an operator */
void runs_drop_all(struct worker *w);

/* settle_queue.c: ends of attempts on their way to the store */
enum worker_verdict settle_result(struct attempt *a, const struct run_result *res, struct boot now);
enum worker_verdict settle_start_failure(struct attempt *a, const struct pawl_err *err);
void settle_unstarted(struct worker *w, struct ready r, enum outcome outcome, const char *why);
void settle_committed(struct worker *w, struct turn *t); /* count and log */

/* turns.c: handing turns over and taking them in */
void turns_init(struct worker *w);
void turns_done(struct worker *w);
void turns_send(struct worker *w);
void turns_receive(struct worker *w);
void turns_hello(struct worker *w); /* an empty turn: the store thread opens its handle */

/* housekeeping.c: what happens by time or hint rather than by a job */
void housekeeping_init(struct worker *w);
void housekeeping_done(struct worker *w);
void housekeeping_plan(struct worker *w, struct turn *t);
void housekeeping_after(struct worker *w, const struct turn *t, size_t claimed);
void housekeeping_store_news(struct worker *w);

/* readback.c: after the store failed, bring both views of this session together. I12 */
void readback(struct worker *w, struct turn *t);

/* lease.c: the session as the loop sees it */
void lease_init(struct worker *w);
void lease_news(struct worker *w);
void lease_dropped(struct worker *w); /* a run of the lost session has ended */
void lease_lost(struct worker *w);
void lease_metrics(struct worker *w); /* to whoever wants them */

/* drain.c */
void drain_judge(struct worker *w, const struct turn *t);
void drain_report(struct worker *w); /* the final count of failures */

/* signals.c: signals, commands, limits: everything that ends a worker */
PAWL_MUST_USE int signals_init(struct worker *w, struct pawl_err *err);
void signals_done(struct worker *w);
void stop_claiming(struct worker *w);
void stop_as(struct worker *w, enum worker_verdict verdict); /* a guest's wish */
void stop_asked(struct worker *w);                           /* worker_options.stop */

#endif
