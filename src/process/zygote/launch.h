/* Starting a job's program. */
#ifndef PAWL_ZYGOTE_LAUNCH_H
#define PAWL_ZYGOTE_LAUNCH_H

#include "request.h"
#include <sys/types.h>

struct launch {
    int fds[4];               /* what the program gets as 0, 1, 2, 3; above 3 themselves */
    enum process_step failed; /* out: STEP_NONE when the program runs */
    int error;                /* out: errno */
};

/* Start r->argv: own session and process group, only descriptors 0 to 3, no signal blocked or
 * ignored. Whether the program could be executed is known on return: launch->failed. Returns the
 * child, which exists (and must be reaped) even when executing failed; -1 if there is none. */
pid_t launch(const struct request *r, struct launch *l);

#endif
