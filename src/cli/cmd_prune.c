/* pawl prune: finished jobs are deleted. */
#include "mem.h"
#include "select.h"

static const struct opt opts[] = {
    SELECT_OPTS,
    {"older-than", 0, "DUR", "finished longer ago than DUR"},
    BULK_OPTS,
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job"},
    {"pawl run --drain", "finish it"},
    {"pawl prune --yes", "what retention of the configuration lets go"},
    {"pawl prune --state done --older-than 0s --yes", "every job that is done"},
    EXAMPLE_END,
};

static const struct act_words words = {
    .doing = "prune",
    .done = "pruned",
    .states = 1u << JOB_DONE | 1u << JOB_SKIPPED | 1u << JOB_FAILED | 1u << JOB_CANCELLED,
    .other = "only finished jobs can be pruned",
};

/* Jobs of the selection in these states that ended longer ago than `age` (us < 0: whenever). */
static struct act_request rule(const struct cli *c, const struct selection *sel, unsigned states,
                               struct dur age)
{
    struct act_request req = {.act = ACT_PRUNE, .select = *sel};
    req.select.states = states;
    if (age.us >= 0)
        req.finished_before = (struct wall){c->store->ops->now(c->store).us - age.us};
    return req;
}

/* As the configuration says: done and failed jobs have their own age; "none" keeps them. */
static int prune_by_retention(struct cli *c, const struct selection *sel, struct pawl_err *err)
{
    const struct config *conf = c->config;
    struct act_request reqs[2];
    size_t n = 0;
    if (conf->retention_done.us >= 0)
        reqs[n++] = rule(c, sel, states_terminal() & ~(1u << JOB_FAILED), conf->retention_done);
    if (conf->retention_failed.us >= 0)
        reqs[n++] = rule(c, sel, 1u << JOB_FAILED, conf->retention_failed);
    return act_on_jobs(c, reqs, n, &words, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    struct dur age = DUR_NONE;
    if (args_dur(&c->args, "older-than", false, &age, err) < 0 ||
        selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (sel.states & ~states_terminal())
        return err_set(err, PAWL_EUSAGE, "--state: only finished jobs can be pruned");
    int rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc < 0)
        return rc;
    if (age.us < 0 && !selection_given(c))
        return prune_by_retention(c, &sel, err);
    struct act_request req = rule(c, &sel, sel.states ? sel.states : states_terminal(), age);
    return act_on_jobs(c, &req, 1, &words, err);
}

const struct cmd cmd_prune = {
    .name = "prune",
    .usage = "[ID]… [OPTION]…",
    .about = "Deletes finished jobs with their attempts. Nothing given applies retention.done and "
             "retention.failed of the configuration. A pruned job's key stays taken for "
             "retention.keys.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
