/* The resident supervisor of one job. */
#ifndef PAWL_ZYGOTE_SUPERVISOR_H
#define PAWL_ZYGOTE_SUPERVISOR_H

#include "request.h"

/* What a supervisor inherits from the zygote. */
struct inherited {
    const struct wire_page *page;
    int signals; /* signalfd for SIGCHLD; answers for the process that reads it */
    int null;    /* /dev/null, read-only */
};

/* Run the job to its end in the calling process, a fresh child of the zygote, and report it. */
void supervisor_run(struct request *r, const struct inherited *in);
/* Tell the worker that a job could not even get a supervisor. */
void supervisor_refuse(int control, enum process_step step, int error);

#endif
