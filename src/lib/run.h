/* One attempt of a C handler: what the function sees and what it leaves behind. */
#ifndef PAWL_LIB_RUN_H
#define PAWL_LIB_RUN_H

#include "api.h"
#include "handler.h"
#include "loop.h"
#include <stdatomic.h>

struct thread_pool;

struct pawl_run {
    struct held held;
    struct arena arena; /* texts of the lease, of children */
    struct thread_pool *pool;
    pawl_handler *fn;
    void *arg;
    struct boot deadline;  /* of the attempt; us 0: none */
    _Atomic int cancel;    /* enum pawl_cancel */
    struct pawl_run *next; /* in the list that holds it, under the pool's lock */

    /* the loop's */
    struct run *run;
    struct timer timeout;
    struct pawl_run *older, *newer;

    /* the thread's until the function returned, then the loop's */
    int outcome; /* enum pawl_outcome, if it is one */
    char *result, *error;
    struct dur asked; /* us < 0: not said */
    bool throttled;
    struct job_spec *children;
    size_t n_children, cap_children;

    /* under the pool's lock */
    size_t n_progress; /* 0: nothing new */
    char progress[PROGRESS_MAX_BYTES];
};

struct pawl_run *run_new(struct run *run, pawl_handler *fn, void *arg);
void run_free(struct pawl_run *r);
/* What the function returned and said, for the worker. `text` has room for a message of ours. */
void run_result(struct pawl_run *r, char *text, size_t n_text, struct run_result *out);

/* thread_pool.c */
int run_sleep(struct pawl_run *r, struct dur d); /* enum pawl_cancel */
void run_progress(struct pawl_run *r, struct sv json);

#endif
