/* THE handler interface: what executes a job. Handlers live on the worker's loop thread, never
 * block, never see the store. A handler is made once per worker and runs many jobs at a time. */
#ifndef PAWL_CORE_HANDLER_H
#define PAWL_CORE_HANDLER_H

#include "job.h"
#include "mem.h"

struct handler;
struct run;
struct loop;

enum cancel_why { CANCEL_ASKED, CANCEL_SHUTDOWN, CANCEL_LEASE_LOST };

/* How an attempt ended. All views are borrowed for the call of run->finish only. */
struct run_result {
    enum {
        RUN_DONE,
        RUN_SKIPPED,
        RUN_FAILED,
        RUN_CANCELLED /* ended because of handler_ops.cancel; the worker knows why */
    } end;
    enum fail_class cls;    /* RUN_FAILED */
    struct sv reason;       /* error message, or why it was skipped; p NULL: none */
    int exit_code;          /* -1: none */
    int signal;             /* that ended the job's process; 0: none */
    struct sv result;       /* JSON text; p NULL: none */
    struct dur retry_after; /* us < 0: none */
    struct dur asked;       /* the job asked to be retried after this; us < 0: none */
    int64_t log_bytes;
    const struct job_spec *children;
    size_t n_children;
};

/* One attempt. Owned by the worker; the handler may use it until it calls finish. */
struct run {
    const struct lease *job;
    struct boot lease_deadline; /* when the lease would end if never renewed */
    struct dur timeout;         /* resolved; us < 0: none */
    int slot;                   /* from 1, the lowest that no other run of this worker has */
    const char *log_name;       /* relative path of the attempt's log inside log_dir */
    int log_dir;                /* directory fd, borrowed */
    void *state;                /* the handler's own */
    /* Ends the attempt, exactly once, on the loop thread, also from within start. The run is gone
     * when it returns. */
    void (*finish)(struct run *r, const struct run_result *result);
    /* Latest progress (JSON text, at most PROGRESS_MAX_BYTES), kept until the next renewal. */
    void (*progress)(struct run *r, struct sv json);
};

struct handler_ops {
    const char *name;
    /* Is this payload one the handler can run? INPUT naming the member otherwise. Any thread. */
    int (*validate)(const struct handler *h, struct sv kind, struct sv payload,
                    struct pawl_err *err);
    /* Begin. On error nothing was started and finish is not called; the worker settles the failure
     * as CLASS_ERROR (INPUT: CLASS_FATAL). */
    int (*start)(struct handler *h, struct run *r, struct pawl_err *err);
    /* End the run soon: the handler still calls finish (with RUN_CANCELLED, or with the real end if
     * that came first). CANCEL_LEASE_LOST and a second call mean: at once, no grace. */
    void (*cancel)(struct handler *h, struct run *r, enum cancel_why why);
    /* Free the handler; no runs are left. */
    void (*free)(struct handler *h);
};

/* Embedded first in each handler. */
struct handler {
    const struct handler_ops *ops;
};

#endif
