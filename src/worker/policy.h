/* The configured limits and order, as a store takes them (store.h: policy_apply). */
#ifndef PAWL_WORKER_POLICY_H
#define PAWL_WORKER_POLICY_H

#include "config.h"
#include "limit.h"
#include "mem.h"
#include "store.h"

/* The breaker of limits that do not say otherwise. */
struct breaker_spec policy_breaker(const struct config *c);
/* Everything lives in the arena or in the configuration. *out_text is what the policy was made
 * from: equal configurations give equal texts. CONFIG with file and line if a limit contradicts
 * itself. */
PAWL_MUST_USE int policy_make(const struct config *c, struct arena *a, struct policy *out,
                              struct sv *out_text, struct pawl_err *err);
/* What a worker does at its start, for whoever adds work of a kind that has a built-in limit: the
 * configured limits hold from here on, or, if the configuration says nothing, the built-in ones. */
PAWL_MUST_USE int policy_bring(const struct config *c, struct store *s, struct pawl_err *err);

#endif
