/* Retry policy: pure functions from budgets and a failure to a decision. I8. */
#ifndef PAWL_CORE_RETRY_H
#define PAWL_CORE_RETRY_H

#include "job.h"

struct retry_policy {
    int max_attempts;           /* attempt budget */
    int transient_max_attempts; /* transient budget */
    int max_lost;               /* lost leases until a job is poison */
    struct dur base, max;       /* exponential backoff */
    bool respect_retry_after;
};

/* What a handler reports about a failed attempt. */
struct failure {
    enum fail_class cls;    /* TRANSIENT, ERROR or FATAL */
    struct dur retry_after; /* the peer asked for it; us < 0: not said */
    struct dur asked; /* the job itself asked for it (outcome retry in …); us < 0: not said */
};

struct retry_decision {
    enum outcome outcome; /* OUTCOME_RETRY or OUTCOME_FAILED */
    struct dur delay;
    enum wait_reason reason;
    bool refund_attempt, count_transient;
    const char *why; /* "attempts used up (3)", … static text class for messages */
};

/* Full jitter: uniform in [0, min(max, base·2^(n-1))], saturating; n counts failures from 1.
 * `random` is uniform in [0, 2^32). */
struct dur retry_backoff(const struct retry_policy *p, int n, uint32_t random);
/* The decision for an attempt (counted from 1) of a job that had `transient` transient failures
 * before. Retry-After beats backoff but is clamped to 24 h. */
struct retry_decision retry_decide(const struct retry_policy *p, int attempt, int transient,
                                   const struct failure *f, uint32_t random);

/* Seconds of the last "Retry-After: N" line in a log tail (case-insensitive); us < 0 if none. */
struct dur retry_after_in_log(struct sv tail);

#endif
