/* What pause and resume share. */
#ifndef PAWL_CLI_PAUSE_H
#define PAWL_CLI_PAUSE_H

#include "cli.h"

#define PAUSE_OPTS                                                                                 \
    {                                                                                              \
        "all", 0, NULL, "every queue that has jobs"                                                \
    }
/* The queues named, or --all. Says the new state of each. */
PAWL_MUST_USE int pause_queues(struct cli *c, bool paused, struct pawl_err *err);

#endif
