/* Jobs behind a breaker that an operator opened without an end: only a person can move them. */
#ifndef PAWL_WORKER_BEHIND_H
#define PAWL_WORKER_BEHIND_H

#include "turn.h"

/* How many queued jobs of each class of seen->status are, into seen->behind (in the arena); left
 * NULL where there is no such breaker. `only`: v != 0: of just this job. */
PAWL_MUST_USE int behind_count(struct store *s, const struct sv *queues, size_t n_queues,
                               job_id only, struct arena *a, struct look *seen,
                               struct pawl_err *err);

#endif
