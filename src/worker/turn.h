/* What the loop and the store thread hand each other. A turn is everything asked of the store
 * between two commits; it belongs to one thread at a time and carries its own memory, so that
 * nothing is allocated per job. The loop fills one turn while the store thread works on another. */
#ifndef PAWL_WORKER_TURN_H
#define PAWL_WORKER_TURN_H

#include "asks.h"
#include "clock.h"
#include "limited.h"
#include "mem.h"
#include "store.h"

/* Leases of one claim and the memory behind them. `refs` is the loop's: one for each lease that is
 * not settled yet. */
struct batch {
    struct arena arena;
    struct lease *leases;
    size_t n;
    struct boot at; /* when the claim was made */
    struct boot
        taken; /* when the loop got it: its age counts from here, whatever the commit took */
    size_t refs;
    struct batch *next; /* in the free list */
};

/* Beside each settle: what the log line needs once it is committed. */
struct ended {
    const struct lease *lease;
    struct batch *batch;
    struct dur took; /* us < 0: it never started */
    const char *why; /* static text; NULL: none */
    int slot, signal;
    struct boot kept; /* when its artifacts were known to be in the lake; us 0: it has none */
};

/* A look at the whole store: for drain and progress. */
struct look {
    int rc; /* < 0: not available this time */
    struct status_view status;
    int64_t *behind;        /* per class of status: behind.h; NULL: none */
    struct limited limited; /* not known: as it was */
    bool job_gone;          /* worker_options.only: it does not exist */
    struct job_view job;    /* worker_options.only */
};

/* An event of this worker to be recorded. */
struct note {
    enum event_type type; /* 0: none */
    struct str detail;
};

struct turn {
    /* asked by the loop */
    struct session session; /* a copy; id.v 0 while there is none: no claim, no sweep */
    struct settle *settles;
    struct ended *ended;
    enum settle_outcome *outcomes; /* answered */
    size_t n_settles, cap_settles;
    struct arena texts;   /* strings, children and artifacts of the settles */
    struct ask_list asks; /* answered in place */
    struct claim_pool *pools;
    size_t n_pools;
    size_t want;    /* sum over pools; 0: no claim */
    uint64_t hints; /* the loop's count when the claim was planned */
    bool sweep, look, prune;
    bool age;     /* sweep: raise the priority of what waits long, too */
    bool drain;   /* look: is anything left that moves by itself? */
    bool judging; /* look: only for that */
    struct note note;
    bool all_in;         /* when it left, no more jobs were to come from worker_options.more */
    struct dur ready_in; /* a settle makes a job ready after this; us < 0: none does */

    /* answered by the store thread */
    int rc; /* < 0: given up, nothing of it happened as far as the store knows */
    struct pawl_err err;
    struct batch *batch; /* room for what the claim returns; given by the loop when want > 0 */
    int claim_rc;        /* < 0: the claim alone failed */
    struct pawl_err claim_err;
    bool session_stale;
    bool busy; /* the claim met another one at work: worth another look in milliseconds */
    struct dur next_due;
    struct sweep_result swept;
    struct look seen;
    struct arena seen_arena;
    bool prune_more;
    struct dur prune_took;
    bool recovered;     /* the store failed on the way; the claim was not made, and: */
    struct batch *held; /* what the store thinks this session runs; NULL without a session */
    struct dur took;
};

#endif
