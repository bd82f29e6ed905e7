/* A worker on a fake store with scripted handlers, and a record of what they ran. */
#ifndef PAWL_TESTS_WORKER_RIG_H
#define PAWL_TESTS_WORKER_RIG_H

#include "fake_store.h"
#include "worker.h"

enum { RIG_JOBS_MAX = 300000 };

/* Kinds: "sync" ends within start, "timer" after 1 ms, "hang" only when cancelled, "error" and
 * "transient" fail, "skip" is skipped, "refuse" fails in start, "slow" takes 300 ms. */
struct rig {
    struct fake fake;
    struct config config;
    struct loop *loop;
    struct logger log;
    struct worker_kind kinds[8];
    struct worker_options options;
    struct worker_report report;
    struct pawl_err err;
    struct handler handler; /* embedded: rig_handler() */
    int32_t *runs;          /* starts of each job id */
    int started;            /* under fake.lock; fake.changed is signalled */
    int running, most_running;
    int running_of[8], most_of[8]; /* by kind index */
    int sessions;
    enum cancel_why last_cancel;
    int cancels;
    int64_t deadlines;
    void (*on_start)(struct rig *r, struct run *run);
    void (*on_cancel)(struct rig *r, struct run *run, enum cancel_why why);
    int (*on_hang_cancel_end)(struct rig *r); /* what a cancelled "hang" reports; NULL: CANCELLED */
    void *arg;
    struct dur throttled; /* "transient" says that it was, asking for this; us 0: it does not */
    int unfit;            /* so many starts find that the kind cannot run here */
    /* checks of kinds with a preflight: how many were bad at first (-1: all), how many there were;
     * an answer takes a millisecond unless they hang */
    int bad_checks, checks;
    bool hang_checks;
};

void rig_init(struct rig *r);
int rig_run(struct rig *r);
void rig_done(struct rig *r);
void rig_add(struct rig *r, int n, const char *queue, const char *kind);
int rig_kind_index(struct sv kind);

#endif
