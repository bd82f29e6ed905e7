/* pawl resume: a paused queue goes on. */
#include "pause.h"

static const struct opt opts[] = {PAUSE_OPTS, OPT_END};
static const struct example examples[] = {
    {"pawl add --queue nightly -- echo hello", "a queue with a job"},
    {"pawl pause nightly", "held"},
    {"pawl resume nightly", "and let go"},
    EXAMPLE_END,
};

static int run(struct cli *c, struct pawl_err *err)
{
    return pause_queues(c, false, err);
}

const struct cmd cmd_resume = {
    .name = "resume",
    .usage = "QUEUE…\n--all",
    .about = "Lets paused queues go on; idle workers take up their jobs at once.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
