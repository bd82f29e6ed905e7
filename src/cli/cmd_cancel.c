/* pawl cancel: unfinished jobs end. */
#include "mem.h"
#include "select.h"

static const struct opt opts[] = {SELECT_OPTS, BULK_OPTS, OPT_END};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job"},
    {"pawl cancel 1", "one job by its id"},
    {"pawl cancel --queue default --state queued --yes", "whatever waits in a queue"},
    EXAMPLE_END,
};

static const struct act_words words = {
    .doing = "cancel",
    .done = "cancelled",
    .states = 1u << JOB_BLOCKED | 1u << JOB_QUEUED | 1u << JOB_WAITING | 1u << JOB_RUNNING,
};

/* A running job is only asked: say so. */
static int say_asked(struct cli *c, struct selection sel, struct pawl_err *err)
{
    int64_t n;
    if (sel.states && !(sel.states >> JOB_RUNNING & 1))
        return 0;
    sel.states = 1u << JOB_RUNNING;
    int rc = c->store->ops->count(c->store, &sel, &n, err);
    if (rc == 0 && n)
        cli_say(c, "%lld of them are running and end as soon as their processes are gone",
                (long long)n);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    if (!selection_given(c)) {
        err_set(err, PAWL_EUSAGE, "cancel which jobs?");
        return err_hint(err, "name ids, or select with --queue, --kind, --state …");
    }
    if (selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (sel.states & states_terminal())
        return err_set(err, PAWL_EUSAGE, "--state: finished jobs cannot be cancelled");
    if (!sel.states)
        sel.states = words.states;
    int rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc < 0)
        return rc;
    struct act_request req = {.act = ACT_CANCEL, .select = sel};
    rc = act_on_jobs(c, &req, 1, &words, err);
    if (rc < 0 || c->exit_status || args_has(&c->args, "dry-run") || out_is_json(&c->out))
        return rc;
    return say_asked(c, sel, err);
}

const struct cmd cmd_cancel = {
    .name = "cancel",
    .usage = "ID… | OPTION…",
    .about = "Cancels jobs that are not finished. A running one is asked to end: its processes "
             "get SIGTERM, then SIGKILL, and it is cancelled when they are gone.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
