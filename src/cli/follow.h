/* A job's output, as it grows and over its attempts: for logs, add --follow and run --job. Bytes
 * go as they are into a pipe or file and harmless to a terminal, unless raw (I14). */
#ifndef PAWL_CLI_FOLLOW_H
#define PAWL_CLI_FOLLOW_H

#include "cli.h"
#include "joblog.h"

struct follow {
    struct cli *c;
    job_id id;
    int64_t attempt;   /* just this one; 0: the last one and all that follow it */
    struct wall since; /* every attempt that started then or later; us 0: as above */
    int64_t tail;      /* of each attempt just so many lines at first; 0: all */
    bool all;          /* from the first attempt on */
    bool tell;         /* say "attempt N" on stderr when a later one begins */
    bool raw;

    /* Set by looking. */
    enum job_state state;
    bool finished;  /* no more output can come */
    bool found;     /* an attempt was there */
    fence_no fence; /* the attempt being read; earlier ones are over */
    struct joblog_cursor cursor;
    int64_t skip; /* lines of it still to be passed over */
    struct {
        char p[4]; /* the beginning of a character whose rest has not come yet */
        size_t n;
    } held;
    bool started;
};

/* Print what is new. NOTFOUND for an unknown job or attempt. */
PAWL_MUST_USE int follow_look(struct follow *f, struct pawl_err *err);
/* Only what attempts after those known now write: for a job that was queued again. */
PAWL_MUST_USE int follow_from_now(struct follow *f, struct pawl_err *err);
/* Look until the job is finished, a signal comes, stdout fails or the other end of `lifeline` (-1:
 * none) closes. */
PAWL_MUST_USE int follow_to_end(struct follow *f, int lifeline, struct pawl_err *err);
/* 0 for done and skipped, JOBS_FAILED with the last error for failed and cancelled, CONFLICT for a
 * job that is not finished. */
PAWL_MUST_USE int job_verdict(struct cli *c, job_id id, struct pawl_err *err);

#endif
