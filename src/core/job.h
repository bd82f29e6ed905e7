/* The domain's words as types: jobs, their states, outcomes and failures. No I/O, no SQL. */
#ifndef PAWL_CORE_JOB_H
#define PAWL_CORE_JOB_H

#include "clock.h"
#include "err.h"
#include "str.h"
#include <stdbool.h>
#include <stdint.h>

/* Value types that cannot be mixed up. All below 2^53. */
typedef struct {
    int64_t v;
} job_id;
typedef struct {
    int64_t v;
} fence_no;
typedef struct {
    int64_t v;
} session_id;

enum job_state {
#define X(name, number, text, terminal) JOB_##name = (number),
#include "states.def"
#undef X
    N_JOB_STATES
};
const char *job_state_name(enum job_state s);
bool job_state_terminal(enum job_state s);
PAWL_MUST_USE int job_state_parse(struct sv name, enum job_state *out); /* -1 if unknown */

enum event_type {
#define X(name, number, text, terminal, act) EVENT_##name = (number),
#include "events.def"
#undef X
};
const char *event_name(enum event_type t);
bool event_terminal(enum event_type t);
bool event_operator_act(enum event_type t);
PAWL_MUST_USE int event_parse(struct sv name, enum event_type *out); /* -1 if unknown */

/* How a failure counts. */
enum fail_class {
    CLASS_NONE,
    CLASS_TRANSIENT, /* costs the transient budget */
    CLASS_ERROR,     /* costs the attempt budget */
    CLASS_FATAL,     /* fails at once */
    CLASS_LOST,      /* the lease was lost; costs the lost budget */
};
const char *fail_class_name(enum fail_class c); /* NULL for CLASS_NONE */

/* How a lease ends. */
enum outcome {
    OUTCOME_DONE,
    OUTCOME_SKIPPED,
    OUTCOME_FAILED,
    OUTCOME_RETRY,    /* back to waiting until `delay` from now */
    OUTCOME_RELEASED, /* back to queued, attempt refunded */
    OUTCOME_CANCELLED,
    OUTCOME_LOST, /* written by the sweeper only */
};
const char *outcome_name(enum outcome o);

/* Why a waiting job waits. */
enum wait_reason { WAIT_NONE, WAIT_DELAY, WAIT_BACKOFF, WAIT_RETRY_AFTER, WAIT_ASKED, WAIT_LOST };
const char *wait_reason_name(enum wait_reason r); /* NULL for WAIT_NONE */

/* Bounds of the input, checked by job_spec_check() (S16–S19) and again by the stores. */
enum {
    NAME_MAX_BYTES = 255, /* queue, kind, host, lock */
    KEY_MAX_BYTES = 1024,
    PAYLOAD_MAX_BYTES = 16 << 20,
    RESULT_MAX_BYTES = 1 << 20,
    ERROR_MAX_BYTES = 4096,
    PROGRESS_MAX_BYTES = 1024,
    CHILDREN_MAX = 10000,
};
#define PRIORITY_MIN (-1000000)
#define PRIORITY_MAX 1000000
#define ATTEMPTS_MAX 1000000

/* A job to be added. Views are borrowed. */
struct job_spec {
    struct sv queue, kind;
    struct sv key, host, lock; /* p NULL: none */
    struct sv payload;         /* valid JSON text, kept verbatim */
    int priority;
    int max_attempts;   /* 0: the kind's or the configured default, resolved by the worker */
    struct dur timeout; /* us 0: the kind's; DUR_NONE: no limit */
    struct dur delay;   /* --in */
    struct wall at;     /* --at, wall clock; us 0: not given */
    job_id parent;      /* v 0: none */
};
/* Defaults filled in: queue "default", kind "exec", payload "null". */
struct job_spec job_spec_default(void);
/* Bounds, UTF-8, no NUL, no control characters in names. The message names the field. */
PAWL_MUST_USE int job_spec_check(const struct job_spec *s, struct pawl_err *err);
/* A name as above: 1 to NAME_MAX_BYTES bytes; p NULL is fine. */
PAWL_MUST_USE int name_check(struct sv name, const char *field, struct pawl_err *err);
/* Read one job from a JSON object (the JSON lines of DESIGN §6): queue, kind, key, host, priority,
 * payload, max_attempts, timeout, lock, at, in. Unknown or mistyped fields: INPUT naming the field.
 * Fields present override what *spec holds. Views point into doc or arena. `now` resolves "at". */
struct json;
struct arena;
PAWL_MUST_USE int job_spec_from_json(const struct json *doc, uint32_t object, struct wall now,
                                     struct arena *a, struct job_spec *spec, struct pawl_err *err);

/* What a claim knew of the job. Handed back with the settle it saves the store a look-up; it cannot
 * lie, because it stays true as long as the fence does. All zero: unknown. */
struct lease_hint {
    int64_t lane;
    session_id session;
    struct wall claimed_at;
    int attempt, priority;
    int64_t policy; /* the limits that held at the claim; negative: the job has permits or a lock */
    int64_t lock;   /* digest of the job's lock, where the store knows it; 0: none */
};

/* A job that a worker holds under a lease. Views live in the claim's arena. */
struct lease {
    job_id id;
    fence_no fence;
    struct sv queue, kind, key, host, payload; /* key, host: p NULL when none */
    int priority;
    int attempt;        /* this one, counted from 1 */
    int transient;      /* transient failures so far */
    int lost;           /* leases lost so far */
    int max_attempts;   /* 0: default */
    struct dur timeout; /* as in job_spec */
    struct wall created_at, ready_at, claimed_at;
    int pool;               /* index into the claim request's pools */
    struct lease_hint hint; /* for struct settle */
};

/* Whether a running job may also ask another host: the gates of (its queue, its kind, that host).
 */
struct admission {
    enum { ADMIT_OK, ADMIT_STALE, ADMIT_SHUT } outcome;
    struct dur wait; /* ADMIT_SHUT: until it is worth asking again */
    struct sv gate;  /* ADMIT_SHUT: which, for people; "every-host=example.org" */
};

struct artifact;
struct fetch_record;

/* The end of a lease, as the worker reports it. Views borrowed. */
struct settle {
    job_id id;
    fence_no fence;
    enum outcome outcome;
    enum fail_class cls; /* OUTCOME_RETRY without one: given back until later, nobody failed */
    struct sv error;     /* p NULL: none; at most ERROR_MAX_BYTES */
    int exit_code;       /* -1: none */
    struct sv result;    /* JSON text; p NULL: none */
    struct dur delay;    /* OUTCOME_RETRY */
    enum wait_reason reason;
    bool refund_attempt; /* transient failures and releases do not cost an attempt */
    bool count_transient;
    bool throttled;         /* transient: the peer asked for fewer (429, 503) */
    bool timed_out;         /* transient: it did not answer in time */
    struct dur retry_after; /* throttled: what the peer asked for; us < 0: not said */
    int64_t log_bytes;      /* true size of the output */
    struct wall started_at; /* us 0: the claim's time */
    struct lease_hint hint; /* the lease's, or all zero */
    const struct job_spec *children;
    size_t n_children;
    const struct artifact *artifacts; /* artifact.h; complete and durable in the lake (I10) */
    size_t n_artifacts;
    const struct fetch_record *fetch; /* NULL: none */
    struct sv peer; /* the host that the end tells of, if it is not the job's own; p NULL: it is.
                       Gates of which the job has a permit hear it, so it was admitted there */
};

#endif
