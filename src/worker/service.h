/* What a service manager is told about the worker (base/notify.h): ready with the first session,
 * its state in a line, stopping; and the watchdog's beat. On the loop thread. */
#ifndef PAWL_WORKER_SERVICE_H
#define PAWL_WORKER_SERVICE_H

#include "loop.h"
#include <stdbool.h>

struct worker;

struct service {
    struct timer beat;
    bool ready; /* was told */
};

void service_init(struct worker *w);
void service_done(struct worker *w);
void service_ready(struct worker *w);    /* a session began */
void service_stopping(struct worker *w); /* no more jobs are claimed */

#endif
