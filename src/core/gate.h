/* A gate: one limit applied to one value. Everything it decides is here, as pure functions from
 * what the store keeps to what it keeps next; SQLite calls them, PostgreSQL says the same in SQL
 * (sql/functions.sql), and the tests compare. Times are the store's clock (I13). All of it survives
 * the death of every worker, because all of it is a row. */
#ifndef PAWL_CORE_GATE_H
#define PAWL_CORE_GATE_H

#include "job.h"

/* From the limit. Whole numbers throughout: both stores must come to the same. */
struct gate_params {
    int cap;                  /* permits at a time; 0: no bound */
    int64_t interval_us;      /* between two starts; 0: no rate */
    int burst;                /* starts at once after a rest */
    bool adaptive;            /* interval between interval_us and */
    int64_t slowest_us;       /* this */
    bool respect_retry_after; /* throttled answers hold the gate */
    int64_t pause_us;         /* first one without Retry-After; doubles */
    int64_t max_pause_us;     /* bound of those, and of what is asked for */
    int threshold;            /* consecutive transient failures that open the breaker; 0: none */
    int percent, min_calls;   /* of a window; 0: not looked at */
    int64_t window_us;
    int64_t open_us, max_open_us; /* how long it stays open; doubles */
};

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
const char *breaker_state_name(enum breaker_state s); /* "closed", "open", "half-open" */

/* In the store, a column each. */
struct gate_state {
    int64_t tat;         /* GCRA: theoretical time of the next start */
    int64_t interval_us; /* adaptive: what holds now; 0: the limit's */
    int64_t cut_at;      /* adaptive: last made slower */
    int64_t raised_at;   /* adaptive: last made faster */
    int64_t held_until;  /* throttled answers */
    int64_t held_at;     /* when the last of them was counted */
    int held_n;          /* in a row without Retry-After */
    bool held_asked;     /* the peer named the time */
    enum breaker_state breaker;
    int64_t since; /* of the breaker's state; results of jobs claimed before do not count */
    int64_t until; /* open: when a probe may go; INT64_MAX: when an operator says so */
    int failures;  /* consecutive */
    int opens;     /* in a row, without a good probe between */
    int64_t epoch; /* grows with every opening */
    int64_t probe_job, probe_fence; /* half-open: the one that decides */
    int64_t window_at;              /* beginning of the window */
    int window_calls, window_failures;
    int64_t pace_us; /* starts are at least so far apart, whatever the limit says; 0: as it says */
};

/* What the end of a lease says about the peer behind the gate. */
enum gate_signal {
    SIGNAL_NONE,      /* released, at once or until later; cancelled: nothing */
    SIGNAL_OK,        /* done or skipped */
    SIGNAL_OTHER,     /* error or fatal: the peer answered */
    SIGNAL_TRANSIENT, /* it did not */
    SIGNAL_TIMEOUT,   /* transient, by time */
    SIGNAL_THROTTLED, /* it asked for fewer: 429, 503 */
    SIGNAL_LOST,      /* the worker died */
};
enum gate_signal gate_signal_of(const struct settle *s, enum outcome in_fact);
/* The same end for a gate whose host it does not tell of: that one has answered well before. */
enum gate_signal gate_signal_aside(enum gate_signal s);

/* Why a gate is shut. */
enum gate_shut {
    SHUT_NOT,
    SHUT_FULL,    /* all permits out: until one is freed */
    SHUT_RATE,    /* until a time */
    SHUT_HELD,    /* throttled: until a time */
    SHUT_BREAKER, /* open: until a time, or an operator (until INT64_MAX) */
    SHUT_PROBING, /* half-open, the probe is out: until it ends */
};
const char *gate_shut_name(enum gate_shut s); /* "full", "rate", …; NULL for SHUT_NOT */

struct gate_room {
    int n;              /* how many may start now */
    enum gate_shut why; /* n 0: why; else what shuts it after n */
    int64_t until;      /* when time opens it; 0: not time but an end of a lease does */
};
/* Between two starts now: the limit's, an adaptive one, or a slower pace; 0: no rate. */
int64_t gate_interval(const struct gate_params *p, const struct gate_state *s);
/* Its pace is slower than what the limit says. */
bool gate_is_paced(const struct gate_params *p, const struct gate_state *s);
/* How many of `want` may start now, with `used` permits out. Changes nothing. */
struct gate_room gate_room(const struct gate_params *p, const struct gate_state *s, int used,
                           int64_t now, int want);

/* n ≥ 1 of those start now, the first of them being (job, fence). Returns whether the breaker
 * became half-open with that one as its probe. */
bool gate_take(const struct gate_params *p, struct gate_state *s, int n, int64_t job, int64_t fence,
               int64_t now);

/* From now on starts are at least `apart_us` from each other, the next one from now; 0: as the
 * limit says. */
void gate_pace(const struct gate_params *p, struct gate_state *s, int64_t apart_us, int64_t now);

enum gate_change {
    GATE_SAME,    /* nothing to write */
    GATE_CHANGED, /* something to write */
    GATE_OPENED,  /* and an event to tell of each of these */
    GATE_CLOSED,
};
/* A lease under this gate ended. hold: this gate is one of those that throttled answers hold.
 * retry_after_us < 0: not said. */
enum gate_change gate_result(const struct gate_params *p, struct gate_state *s,
                             enum gate_signal signal, bool hold, int64_t retry_after_us,
                             int64_t claimed_at, int64_t job, int64_t fence, int64_t now);

/* What an operator does. `for_us` 0: until closed by hand. */
void gate_open(struct gate_state *s, int64_t for_us, int64_t now);
void gate_close(struct gate_state *s, int64_t now);
void gate_reset(struct gate_state *s, int64_t now); /* forget all: rates, pace, holds, breaker */

#endif
