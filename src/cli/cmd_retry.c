/* pawl retry: failed jobs go again. */
#include "mem.h"
#include "select.h"

static const struct opt opts[] = {
    SELECT_OPTS,
    {"max-attempts", 0, "N", "grant N more attempts instead of a fresh budget"},
    BULK_OPTS,
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --max-attempts 1 -- false", "a job that fails"},
    {"pawl run --drain --no-fail", "let it fail"},
    {"pawl retry --state failed --dry-run", "how many would it be?"},
    {"pawl retry --queue default --yes", "every failed job of a queue"},
    EXAMPLE_END,
};

static const struct act_words words = {
    .doing = "retry",
    .done = "retried",
    .states = 1u << JOB_FAILED | 1u << JOB_CANCELLED,
    .other = "failed and cancelled jobs can be retried",
};

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    int64_t grant = 0;
    if (args_int(&c->args, "max-attempts", 1, ATTEMPTS_MAX, &grant, err) < 0 ||
        selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (!sel.states)
        sel.states = sel.n_ids ? words.states : 1u << JOB_FAILED;
    if (sel.states & ~states_terminal())
        return err_set(err, PAWL_EUSAGE, "--state: only finished jobs can be retried");
    int rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc < 0)
        return rc;
    struct act_request req = {.act = ACT_RETRY, .select = sel, .grant_attempts = (int)grant};
    return act_on_jobs(c, &req, 1, &words, err);
}

const struct cmd cmd_retry = {
    .name = "retry",
    .usage = "[ID]… [OPTION]…",
    .about = "Queues failed jobs again, with a fresh budget of attempts or, with --max-attempts, "
             "N more than they have used. Nothing given means every failed job; a cancelled one "
             "is retried by its id or --state cancelled.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
