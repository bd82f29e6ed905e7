/* The configured limits and order, as a store takes them (store.h: policy_apply). */
#ifndef PAWL_WORKER_POLICY_H
#define PAWL_WORKER_POLICY_H

#include "config.h"
#include "limit.h"
#include "mem.h"
#include "store.h"

/* Everything lives in the arena or in the configuration. *out_text is what the policy was made
 * from: equal configurations give equal texts. CONFIG with file and line if a limit contradicts
 * itself. */
PAWL_MUST_USE int policy_make(const struct config *c, struct arena *a, struct policy *out,
                              struct sv *out_text, struct pawl_err *err);

#endif
