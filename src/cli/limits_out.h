/* The store's limits, for the commands that name one. */
#ifndef PAWL_CLI_LIMITS_OUT_H
#define PAWL_CLI_LIMITS_OUT_H

#include "cli.h"
#include "mem.h"

struct limits {
    struct limit_view *v; /* by name, in the arena */
    size_t n;
    struct sv *unset; /* names of those that were removed by hand */
    size_t n_unset;
    enum claim_order order;
    struct dur aging;
};
PAWL_MUST_USE int limits_load(struct cli *c, struct arena *a, struct limits *out,
                              struct pawl_err *err);
/* The configured breaker: that of a limit which says nothing of its own. */
struct breaker_spec limits_breaker(const struct config *config);
/* NULL: there is none of that name. */
const struct limit_view *limits_find(const struct limits *l, struct sv name);
bool limits_unset(const struct limits *l, struct sv name);
/* NOTFOUND naming the nearest. */
int limit_unknown(const struct limits *l, const char *name, struct pawl_err *err);

/* What `limit set` says, over what *spec holds: only the flags that were given. Views point into
 * argv and the arena. */
PAWL_MUST_USE int limit_flags(const struct cli *c, struct arena *a, struct limit_spec *spec,
                              struct pawl_err *err);
/* Was any of them given? */
bool limit_flags_given(const struct cli *c);
/* Their rows of an option table. */
#define LIMIT_OPTS                                                                                 \
    {"host", 0, "HOST", "jobs for this host; * stands for any characters"},                        \
        {"hosts", 0, "HOST", "for any of these, with commas; !HOST excludes"},                     \
        {"queue", 0, "QUEUE", "jobs of this queue"}, {"kind", 0, "KIND", "jobs of this kind"},     \
        {"each", 0, "WHAT", "counted for each host, queue or kind by itself; none: together",      \
         .choices = "host|queue|kind|none"},                                                       \
        {"replaces", 0, NULL, "its jobs are not counted by limits with --each"},                   \
        {"no-replaces", 0, NULL, "they are"},                                                      \
        {"concurrency", 0, "N", "so many run at a time; none: any number"},                        \
        {"rate", 0, "N/PERIOD", "so many start in a period: 200/min, 3/10s; none: any number"},    \
        {"burst", 0, "N", "so many may start at once after a rest; 1 unless given"},               \
        {"adaptive", 0, NULL, "the rate falls on 429, 503 and timeouts and rises again slowly"},   \
        {"no-adaptive", 0, NULL, "the rate stays as it is"},                                       \
        {"min-rate", 0, "N/PERIOD", "with --adaptive: never slower; a tenth of the rate"},         \
        {"retry-after", 0, NULL, "a throttled answer holds all its jobs back (the usual)"},        \
        {"no-retry-after", 0, NULL, "it holds back the job that got it"},                          \
        {"pause", 0, "DUR", "how long, where the answer does not say; doubles; 5s unless given"},  \
        {"max-pause", 0, "DUR", "never longer, whatever the answer says; 1h unless given"},        \
        {"breaker", 0, "N", "opens after N transient failures in a row; none: never"},             \
        {"breaker-pause", 0, "DUR", "before one job tries again; doubles"},                        \
    {                                                                                              \
        "breaker-rate", 0, "P%", "opens also when P% of a window's jobs fail; none: never"         \
    }

/* "each host, queue pages"; "all jobs". */
void limit_covers(const struct limit_spec *s, struct str *out);
/* "3 at a time, 200/min burst 10, breaker after 5". */
void limit_says(const struct limit_spec *s, struct str *out);

#endif
