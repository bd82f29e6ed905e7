/* Words for tests of what operators see and set: limits, gates, locks, events. */
#ifndef PAWL_TESTS_OPERATING_H
#define PAWL_TESTS_OPERATING_H

#include "gating.h"

/* A limit of that concurrency, without a breaker. */
struct limit_spec capped(const char *name, int concurrency);
/* The outcome of an act on a limit; by name alone for those that need no more. */
enum limit_outcome change(struct fixture *f, enum limit_act act, const struct limit_spec *s);
enum limit_outcome act_on(struct fixture *f, enum limit_act act, const char *name);

/* All limits and the order. */
struct limits {
    struct limit_view *v;
    size_t n;
    enum claim_order order;
    struct dur aging;
};
struct limits limits(struct fixture *f); /* without those that are built in */
struct limits all_limits(struct fixture *f);
bool apply(struct fixture *f, const struct policy *p, const char *text);

/* How many events of that type there are, and the last of them. */
struct last {
    struct arena *a;
    int n;
    struct event_view e;
};
struct last events(struct fixture *f, enum event_type type);
void assert_says(struct sv detail, const char *text);

/* The first gates and locks; filter NULL, key NULL: all. */
struct gate_list {
    struct arena *a;
    struct gate_view v[16];
    int n;
};
struct gate_list gates(struct fixture *f, const struct gate_filter *filter);
/* Act on the breakers of that limit; how many there were. */
int breaker(struct fixture *f, const char *name, enum breaker_act act, struct dur pause,
            const char *reason);
struct lock_list {
    struct arena *a;
    struct lock_view v[16];
    int n;
};
struct lock_list locks(struct fixture *f, const char *key);

job_id add_host(struct fixture *f, const char *host, int priority);
struct explain_view explain(struct fixture *f, job_id id);

/* A copy of the whole store into another one, opened; the caller closes it. */
struct store *copy_all(struct fixture *f, char path[80]);

#endif
