/* pawl release: waiting jobs become ready, running ones are taken away from their worker. */
#include "mem.h"
#include "select.h"

static const struct opt opts[] = {
    SELECT_OPTS,
    {"force", 0, NULL, "also running jobs whose worker lives: their processes are ended"},
    BULK_OPTS,
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --in 1h -- echo hello", "a job that waits"},
    {"pawl release 1", "no longer: it is ready now"},
    {"pawl release --queue default --state running --force --yes",
     "whatever runs goes back to the queue"},
    EXAMPLE_END,
};

static const struct act_words words = {
    .doing = "release",
    .done = "released",
    .states = 1u << JOB_WAITING | 1u << JOB_RUNNING,
    .other = "only waiting and running jobs can be released",
};

/* Running jobs of live workers that the request leaves alone. */
static int count_refused(struct cli *c, struct act_request req, int64_t *out, struct pawl_err *err)
{
    struct act_sum sum;
    req.select.states &= 1u << JOB_RUNNING;
    if (!req.select.states) {
        *out = 0;
        return 0;
    }
    int rc = act_count(c, req, &sum, err);
    if (rc == 0)
        *out = sum.matched - sum.changed;
    return rc;
}

static int refuse(int64_t n, struct pawl_err *err)
{
    err_set(err, PAWL_ECONFLICT, "%lld running job%s not released: a live worker holds %s",
            (long long)n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
    return err_hint(err, "--force ends the processes and queues the job again, no attempt spent");
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    if (!selection_given(c)) {
        err_set(err, PAWL_EUSAGE, "release which jobs?");
        return err_hint(err, "name ids, or select with --queue, --kind, --state …");
    }
    if (selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (sel.states & ~words.states)
        return err_set(err, PAWL_EUSAGE, "--state: only waiting and running jobs can be released");
    if (!sel.states)
        sel.states = words.states;
    int64_t refused = 0;
    int rc = cli_open(c, STORE_WRITE, err);
    struct act_request req = {.act = ACT_RELEASE, .force = args_has(&c->args, "force")};
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    req.select = sel;
    if (rc == 0)
        rc = count_refused(c, req, &refused, err);
    if (rc < 0)
        return rc;
    if (refused && sel.n_ids)
        return refuse(refused, err);
    rc = act_on_jobs(c, &req, 1, &words, err);
    return rc == 0 && refused && !args_has(&c->args, "dry-run") ? refuse(refused, err) : rc;
}

const struct cmd cmd_release = {
    .name = "release",
    .usage = "ID… [--force]\nOPTION… [--force]",
    .about = "Makes waiting jobs ready now, whatever they wait for: a time, a pause after a "
             "failure, Retry-After. A running job is fenced off and queued again without costing "
             "an attempt: whatever its worker still reports changes nothing. That is meant for "
             "workers that cannot be reached; one that lives needs --force, and ends the job's "
             "processes. Exit status 5: running jobs were left alone.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
