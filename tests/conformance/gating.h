/* Words for tests of limits, gates and locks. */
#ifndef PAWL_TESTS_GATING_H
#define PAWL_TESTS_GATING_H

#include "fixture.h"

/* A limit with that name, `each` and concurrency, without a breaker. */
struct limit_spec cap_of(const char *name, enum limit_each each, int concurrency);
struct limit_spec breaker_of(const char *name, int threshold, struct dur pause);
void set_limit(struct fixture *f, const struct limit_spec *s);
void unset_limit(struct fixture *f, const char *name);
void set_order(struct fixture *f, enum claim_order order);

/* n jobs of queue "q" and kind "k" for that host (NULL: none); ids follow each other. */
job_id add_hosted(struct fixture *f, const char *host, int priority, int n);
job_id add_locked(struct fixture *f, const char *lock, int priority);
/* As claim() of kind "k", again while the store says that something was just in use. */
struct claim_result take(struct fixture *f, const struct session *w, int want);
/* take() until it gives so many in all or the time is over; returns how many. */
int take_for(struct fixture *f, const struct session *w, int want, struct dur time);
void nap(struct dur time);

/* The one gate of a limit for a value, without its names; fails if there is none. */
struct gate_view gate(struct fixture *f, const char *limit, const char *value);
int used(struct fixture *f, const char *limit, const char *value); /* 0 if there is no gate */
/* End a lease as a transient failure to be retried after `delay`. */
void fail_transient(struct fixture *f, const struct lease *l, struct dur delay);
/* The same after the peer asked for fewer; retry_after us < 0: without a time. */
void fail_throttled(struct fixture *f, const struct lease *l, struct dur retry_after);
/* End leases in every way there is. Each is begun by `begin`, which takes the one permit of that
 * gate; afterwards it is free and the store is clean. */
typedef struct lease begin_fn(struct fixture *f, const struct session *w);
void end_in_every_way(struct fixture *f, begin_fn *begin, const char *limit, const char *value);
/* Events of a type, over all jobs. */
int n_all(struct fixture *f, enum event_type type);

#endif
