/* THE handler interface: what executes a job. Handlers live on the worker's loop thread, never
 * block, never see the store. A handler is made once per worker and runs many jobs at a time. */
#ifndef PAWL_CORE_HANDLER_H
#define PAWL_CORE_HANDLER_H

#include "artifact.h"
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
        RUN_RELEASED, /* given back unfinished: no attempt spent, claimable at once or, with
                         retry_after, then; says nothing of the peer */
        RUN_CANCELLED /* ended because of handler_ops.cancel; the worker knows why */
    } end;
    enum fail_class cls; /* RUN_FAILED */
    struct sv reason;    /* error message, or why it was skipped; p NULL: none */
    bool unfit;          /* RUN_RELEASED: no job of the kind can run here now; `reason` says why */
    int exit_code;       /* -1: none */
    int signal;          /* that ended the job's process; 0: none */
    struct sv result;    /* JSON text; p NULL: none */
    bool throttled;      /* CLASS_TRANSIENT: the peer asked for fewer (429, 503) */
    bool timed_out;      /* CLASS_TRANSIENT: it did not answer in time */
    struct dur retry_after; /* us < 0: none */
    struct dur asked;       /* the job asked to be retried after this; us < 0: none */
    int64_t log_bytes;
    const struct job_spec *children;
    size_t n_children;
    const struct artifact *artifacts; /* kept by run_services.keep; rows come with the settle */
    size_t n_artifacts;
    const struct fetch_record *fetch; /* NULL: none */
    struct sv peer; /* the host that `cls` tells of, if it is not the job's own; p NULL: it is */
};

/* Bytes on their way into the lake: given piece by piece on the loop, in memory while they are few,
 * else in a temporary file. Owned by the handler until it is kept or dropped. */
struct sink;

/* What the lake says of bytes that are now complete, durable and named (I10). Lasts for the call.
 */
struct kept {
    int rc;               /* < 0: not kept; FULL: the lake takes nothing now, nobody's fault */
    const char *message;  /* of the error */
    struct artifact what; /* name and type as they were given */
};
typedef void kept_fn(void *arg, const struct kept *k);

typedef void admission_fn(void *arg, const struct admission *a);

/* What the store remembers for handlers under a key until a time. p NULL: nothing. */
typedef void remembered_fn(void *arg, struct sv value);
/* The newest record of the job whose body was kept and is still there; NULL: none. */
typedef void previous_fn(void *arg, const struct fetch_record *f);

/* What a worker does for a run beyond starting and ending it. All on the loop thread; answers come
 * later, never from within the call, and exactly once, also if the lease is lost meanwhile. A run
 * must not finish while an answer is outstanding. rc < 0 of a question to the store that failed is
 * told as the answer that changes least: ADMIT_STALE, nothing, none. */
struct run_services {
    /* Begin to collect bytes. */
    struct sink *(*sink_open)(struct run *r);
    /* FULL, IO: they cannot be held; the sink is still to be dropped. */
    int (*sink_write)(struct sink *s, struct sv bytes, struct pawl_err *err);
    void (*sink_drop)(struct sink *s);
    /* Where the bytes came from, before they are kept; copied. NULL: this worker's lake keeps no
     * records of that. */
    void (*about)(struct sink *s, const struct exchange *x);
    /* Keep a record that what the job fetched and kept before has not changed; it has no row.
     * NULL as `about`. An error is no reason for anything. */
    void (*confirm)(struct run *r, const struct exchange *x, kept_fn *done, void *arg);
    /* Make what was written durable; the sink is gone with the answer. */
    void (*keep)(struct sink *s, struct sv name, struct sv type, kept_fn *done, void *arg);
    /* The same for a regular file, which is copied. */
    void (*keep_file)(struct run *r, const char *path, struct sv name, struct sv type,
                      kept_fn *done, void *arg);
    void (*admit)(struct run *r, struct sv host, admission_fn *done, void *arg);
    /* From now on starts at this host are at least so far apart (Crawl-delay); 0: as limits say.
     * Heeded by the gates of limits on each host, for all workers. No answer. */
    void (*pace)(struct run *r, struct sv host, struct dur apart);
    void (*recall)(struct run *r, struct sv key, remembered_fn *done, void *arg);
    void (*remember)(struct run *r, struct sv key, struct sv value, struct dur ttl); /* no answer */
    void (*previous)(struct run *r, previous_fn *done, void *arg);
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
    const struct run_services *services; /* NULL: this worker offers none */
    /* Latest progress (JSON text, at most PROGRESS_MAX_BYTES), kept until the next renewal. */
    void (*progress)(struct run *r, struct sv json);
};

/* A look whether jobs of a kind could run here now. Owned by the worker. */
struct kind_check {
    struct sv kind;
    struct dur timeout; /* longer: not good */
    void *state;        /* the handler's own */
    /* Ends the check, exactly once, on the loop thread, also from within check. `why` is borrowed
     * for the call. */
    void (*finish)(struct kind_check *c, bool good, struct sv why);
};

struct handler_ops {
    const char *name;
    /* Is this payload one the handler can run? INPUT naming the member otherwise; CONFIG if its
     * configuration is in the way, not the payload. Any thread. */
    int (*validate)(const struct handler *h, struct sv kind, struct sv payload,
                    struct pawl_err *err);
    /* Whom a job with this payload, which validate() has passed, talks to: appended to `out` in the
     * form that limits know. Nothing is appended where the payload does not tell. Asked for jobs
     * that are added without a host; the run still has to pass the gates of whom it really asks.
     * NULL: no payload tells. Any thread. */
    void (*host)(const struct handler *h, struct sv kind, struct sv payload, struct str *out);
    /* Begin. On error nothing was started and finish is not called; the worker settles the failure
     * as CLASS_ERROR (INPUT: CLASS_FATAL). */
    int (*start)(struct handler *h, struct run *r, struct pawl_err *err);
    /* End the run soon: the handler still calls finish (with RUN_CANCELLED, or with the real end if
     * that came first). CANCEL_LEASE_LOST and a second call mean: at once, no grace. */
    void (*cancel)(struct handler *h, struct run *r, enum cancel_why why);
    /* Begin a check of a kind whose configuration asks for one. NULL: there is nothing to check. */
    void (*check)(struct handler *h, struct kind_check *c);
    /* End it at once; finish still comes. */
    void (*check_cancel)(struct handler *h, struct kind_check *c);
    /* Free the handler; no runs are left. */
    void (*free)(struct handler *h);
};

/* Embedded first in each handler. */
struct handler {
    const struct handler_ops *ops;
};

#endif
