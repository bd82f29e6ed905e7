/* How a worker is written, for workers and status. */
#ifndef PAWL_CLI_WORKERS_OUT_H
#define PAWL_CLI_WORKERS_OUT_H

#include "cli.h"

/* The members of its object, without the braces. */
void worker_write(struct jw *w, const struct session_view *s);
const char *worker_state(const struct session_view *s); /* idle, busy, paused …, dead */

#endif
