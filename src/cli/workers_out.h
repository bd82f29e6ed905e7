/* How a worker is written, for workers and status. */
#ifndef PAWL_CLI_WORKERS_OUT_H
#define PAWL_CLI_WORKERS_OUT_H

#include "cli.h"
#include "mem.h"

/* Jobs it holds now, as far as the status tells: a session's own count is as old as its last
 * renewal. */
int64_t worker_running(const struct status_view *status, const struct session_view *s);
/* The members of its object, without the braces. */
void worker_write(struct jw *w, const struct status_view *status, const struct session_view *s);
/* The i-th kind whose preflight fails on a live worker, and why, in the arena (NULL: only whether
 * there is one). False: there is no i-th. */
bool worker_preflight(const struct session_view *s, size_t i, struct arena *a, struct sv *kind,
                      struct sv *why);
/* idle, busy, paused …, dead */
const char *worker_state(const struct status_view *status, const struct session_view *s);

enum { WORKERS_RUNNING_MAX = 10000 }; /* running jobs to ask of the status */

#endif
