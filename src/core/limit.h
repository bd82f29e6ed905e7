/* Limits: caps on what runs and starts at a time, named over sets of lanes or over each value of a
 * name. Pure: no SQL, no clock. The text form (one JSON object) is what the stores keep and what is
 * shown; the words are those of the configuration file. */
#ifndef PAWL_CORE_LIMIT_H
#define PAWL_CORE_LIMIT_H

#include "gate.h"
#include "job.h"
#include "mem.h"

enum limit_each { EACH_NONE, EACH_HOST, EACH_QUEUE, EACH_KIND };
const char *limit_each_name(enum limit_each e); /* NULL for EACH_NONE */
enum { LIMITS_MAX = 1000, LIMIT_HOSTS_MAX = 1000, LIMIT_TEXT_MAX = 256 << 10 };

/* So many per period: 200/min. count 0: no rate. */
struct rate {
    int64_t count;
    struct dur per;
};

struct breaker_spec {
    int threshold;        /* consecutive transient failures that open it; 0: never by these */
    int percent;          /* transient failures of the calls in a window that open it; 0: never */
    int min_calls;        /* a window with fewer says nothing */
    struct dur window;    /* length of one */
    struct dur pause;     /* open for so long; doubles with each failed probe, up to */
    struct dur max_pause; /* this */
};

/* Selectors AND together; one that is not given selects all. Views are borrowed. */
struct limit_spec {
    struct sv name;
    struct sv queue, kind;  /* p NULL: any */
    const struct sv *hosts; /* patterns: any of them, and none that begins with '!'; '*' stands for
                               any run of characters. Only such with '!': all but these */
    size_t n_hosts;
    enum limit_each
        each;        /* one gate for each value met; a lane without that value is not limited */
    bool replaces;   /* its lanes are not limited by any `each` limit of others */
    int concurrency; /* 0: none */
    struct rate rate;
    int burst;            /* 1 or more: how many may start at once after a rest */
    bool adaptive;        /* the rate follows what the peer stands */
    struct rate min_rate; /* adaptive: never slower; count 0: a tenth of `rate` */
    bool respect_retry_after;
    struct dur pause, max_pause; /* after a throttled answer without Retry-After; doubles */
    struct breaker_spec breaker;
};

/* Limits that hold unless the configuration or an operator says otherwise of one of that name. */
const struct limit_spec *limits_built_in(size_t *out_n);
const struct limit_spec *limit_built_in(struct sv name); /* NULL: there is none of that name */
/* Is that the canonical text of the built-in limit of that name? */
bool limit_is_built_in(struct sv name, struct sv text);

/* The defaults of all that a user need not say. `breaker`: the configured one, or NULL for 5 and 60
 * s. */
struct limit_spec limit_default(const struct breaker_spec *breaker);
/* Bounds, names, at least one of concurrency, rate and breaker. INPUT naming the member. */
PAWL_MUST_USE int limit_check(const struct limit_spec *s, struct pawl_err *err);

/* "200/min", "1/s", "3/10s", "5/2h". INPUT with the text otherwise. */
PAWL_MUST_USE int rate_parse(struct sv text, struct rate *out, struct pawl_err *err);
void rate_text(struct rate r, struct str *out);
/* Microseconds between two starts, rounded up: never faster than was said. */
int64_t rate_interval(struct rate r);

/* The canonical text: one JSON object with fixed order of members; equal specs give equal texts. */
void limit_text(const struct limit_spec *s, struct str *out);
/* The same back. Views point into the arena. Unknown members: INPUT. */
PAWL_MUST_USE int limit_read(struct sv text, struct arena *a, struct limit_spec *out,
                             struct pawl_err *err);

/* What a gate of this limit goes by. */
struct gate_params limit_params(const struct limit_spec *s);

/* One host pattern: '*' stands for any run of characters, also none; all else for itself. In a
 * pattern that begins with a digit and has nothing but digits, dots and stars it stands for digits
 * and dots alone: "127.*" is about addresses, and no name is one. */
bool host_matches(struct sv pattern, struct sv host);
/* A limit's patterns, as in struct limit_spec. None: every host, and none at all; else a lane
 * without a host is not meant. */
bool hosts_match(const struct sv *patterns, size_t n, struct sv host);
/* Does the limit hold for that lane? *out_value: which of its gates ("" where there is one). Does
 * not know of `replaces`. host n 0: none. */
bool limit_matches(const struct limit_spec *s, struct sv queue, struct sv kind, struct sv host,
                   struct sv *out_value);
/* Indexes of the limits that hold for the lane, `replaces` included, in rising order. `out` and
 * `values` have room for n. Returns how many. */
size_t limits_of(const struct limit_spec *v, size_t n, struct sv queue, struct sv kind,
                 struct sv host, size_t *out, struct sv *values);

/* How jobs are ordered within one priority, and what they all go by; the store is the truth. */
enum claim_order { ORDER_FIFO, ORDER_FAIR };
struct policy {
    const struct limit_spec *limits;
    size_t n_limits;
    enum claim_order order;
    struct dur aging; /* a ready job gains one priority for each such time; us 0: never */
};

#endif
