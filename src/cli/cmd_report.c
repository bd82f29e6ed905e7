/* pawl report: the morning's one screen. */
#include "mem.h"
#include "report.h"

static const struct opt opts[] = {
    {"since", 0, "DUR|TIME", "from TIME on, or the last DUR; 12h unless given"},
    {"queue", 0, "QUEUE", "only this queue"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job"},
    {"pawl run --drain", "a night"},
    {"pawl report", "the morning"},
    {"pawl report --since 1h --json", "the last hour for a script"},
    EXAMPLE_END,
};

static int look(struct cli *c, struct wall since, struct arena *a, struct report_data *d,
                struct pawl_err *err)
{
    struct store *s = c->store;
    int rc = s->ops->status(s, 0, a, &d->status, err);
    if (rc < 0)
        return rc;
    if (!out_is_json(&c->out)) {
        report_print_now(&c->out, d, since);
        out_flush(&c->out);
    }
    rc = s->ops->report(s, since, d->queue, a, &d->view, err);
    if (rc == 0)
        rc = s->ops->fetch_totals(s, since, d->queue, &d->fetches, err);
    if (rc == 0)
        rc = s->ops->info(s, &d->info, err);
    if (rc == 0)
        d->logs = report_logs(s);
    return rc;
}

static int show(struct cli *c, struct wall since, struct arena *a, struct pawl_err *err)
{
    struct report_data d = {.queue = sv_of(args_get(&c->args, "queue"))};
    int rc = look(c, since, a, &d, err);
    if (rc < 0)
        return rc;
    if (!out_is_json(&c->out)) {
        report_print_rest(&c->out, &d);
        return 0;
    }
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    report_write(&w, &d);
    out_object(&c->out, str_sv(&s));
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct arena a;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    struct wall now = c->store->ops->now(c->store);
    struct wall since = {now.us - DUR_S(12 * 3600).us};
    rc = cli_since(c, "since", now, &since, err);
    if (rc < 0)
        return rc;
    if (since.us >= now.us)
        return err_set(err, PAWL_EUSAGE, "--since is in the future");
    arena_init(&a);
    rc = show(c, since, &a, err);
    arena_done(&a);
    return rc;
}

const struct cmd cmd_report = {
    .name = "report",
    .usage = "[--since DUR|TIME] [--queue QUEUE]",
    .about = "One screen about a period, the last 12 hours unless told: what ended and how, the "
             "rate over time, retries and how long they waited for what, workers that ended or "
             "were lost, what was fetched, disk, the slowest jobs, and the errors of failed jobs "
             "in groups, each "
             "with the command to paste.\n\n"
             "The same failure with another number, path or id is one group. Counts start at the "
             "ten seconds that --since falls into; the slowest jobs are those of the newest "
             "100000 done, cancelled ones and errors are counted among the newest 100000. A rate "
             "counts jobs done or skipped.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
