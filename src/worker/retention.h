/* What the configuration does not keep: the one place that reads retention.*, for workers and for
 * `pawl prune`. */
#ifndef PAWL_WORKER_RETENTION_H
#define PAWL_WORKER_RETENTION_H

#include "config.h"
#include "mem.h"
#include "store.h"

/* The acts that let go of finished jobs, for every queue the store has, in the arena; `max` is left
 * to the caller. */
PAWL_MUST_USE int retention_rules(const struct config *c, struct store *s, struct arena *a,
                                  struct act_request **out, size_t *out_n, struct pawl_err *err);

#endif
