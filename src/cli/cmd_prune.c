/* pawl prune: finished jobs are deleted. */
#include "mem.h"
#include "retention.h"
#include "select.h"

static const struct opt opts[] = {
    SELECT_OPTS,
    {"older-than", 0, "DUR", "finished longer ago than DUR"},
    {"keep", 0, "N", "with --queue: leave the newest N"},
    BULK_OPTS,
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job"},
    {"pawl run --drain", "finish it"},
    {"pawl prune --yes", "what retention of the configuration lets go"},
    {"pawl prune --state done --older-than 0s --yes", "every job that is done"},
    {"pawl prune --queue default --keep 1000 -n", "how many there are beyond the newest thousand"},
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

/* As the configuration says, and as workers do. */
static int prune_by_retention(struct cli *c, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct act_request *reqs;
    size_t n;
    arena_init(&a);
    int rc = retention_rules(c->config, c->store, &a, &reqs, &n, err);
    return rc < 0 ? rc : act_on_jobs(c, reqs, n, &words, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    struct dur age = DUR_NONE;
    int64_t keep = 0;
    if (args_int(&c->args, "keep", 1, INT64_MAX / 2, &keep, err) < 0 ||
        args_dur(&c->args, "older-than", false, &age, err) < 0 ||
        selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (sel.states & ~states_terminal())
        return err_set(err, PAWL_EUSAGE, "--state: only finished jobs can be pruned");
    if (keep && !sel.queue.p) {
        err_set(err, PAWL_EUSAGE, "--keep counts the jobs of one queue");
        return err_hint(err, "name it with --queue");
    }
    int rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc < 0)
        return rc;
    if (age.us < 0 && !selection_given(c))
        return prune_by_retention(c, err);
    struct act_request req = rule(c, &sel, sel.states ? sel.states : states_terminal(), age);
    req.keep_newest = keep;
    return act_on_jobs(c, &req, 1, &words, err);
}

const struct cmd cmd_prune = {
    .name = "prune",
    .usage = "[ID]… [OPTION]…",
    .about =
        "Deletes finished jobs with their attempts. Nothing given applies retention.done and "
        "retention.failed of the configuration, as workers do by themselves. --keep leaves the "
        "newest of a queue, whatever else is given. A pruned job's key stays taken for "
        "retention.keys.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
