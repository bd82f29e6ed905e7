/* pawl logs: what attempts wrote. */
#include "follow.h"
#include "mem.h"

static const struct opt opts[] = {
    {"attempt", 0, "N", "of the N-th attempt; the last unless given"},
    {"since", 0, "DUR|TIME", "of every attempt that started since"},
    {"tail", 0, "N", "only the last N lines"},
    {"follow", 'f', NULL, "go on until the job is finished"},
    {"raw", 0, NULL, "the bytes as they are, on a terminal too"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job with output"},
    {"pawl run --drain", "run it"},
    {"pawl logs 1", "what it wrote"},
    {"pawl logs --tail 20 --since 1h 1", "the last lines of every attempt of the last hour"},
    {"pawl logs -f --attempt 1 1", "follow one attempt to its end"},
    EXAMPLE_END,
};

static int read_flags(struct cli *c, struct follow *f, struct pawl_err *err)
{
    if (cli_job_id(c->args.pos[0], &f->id, err) < 0 ||
        args_int(&c->args, "attempt", 1, ATTEMPTS_MAX, &f->attempt, err) < 0 ||
        args_int(&c->args, "tail", 1, INT64_MAX / 2, &f->tail, err) < 0 ||
        args_exclude(&c->args, "attempt", "since", err) < 0 ||
        cli_since(c, "since", clock_wall(), &f->since, err) < 0)
        return PAWL_EUSAGE;
    f->raw = args_has(&c->args, "raw");
    if (out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "a log is text: logs has no -o json");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct follow f = {.c = c, .tell = true};
    if (read_flags(c, &f, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    if (args_has(&c->args, "follow")) {
        cli_catch_signals();
        rc = follow_to_end(&f, -1, err);
        c->exit_status = cli_signal() ? 128 + cli_signal() : 0;
        return rc;
    }
    rc = follow_look(&f, err);
    if (rc == 0 && !f.found)
        cli_say(c,
                f.since.us ? "no attempt of job %lld started since then"
                           : "job %lld has not run yet",
                (long long)f.id.v);
    return rc;
}

const struct cmd cmd_logs = {
    .name = "logs",
    .usage = "[-f] [--attempt N | --since DUR|TIME] [--tail N] [--raw] ID",
    .about = "Prints what a job wrote to its standard output and error: its last attempt, or "
             "those asked for. With -f it goes on through the attempts until the job is finished. "
             "Of long logs the beginning and the end are kept and the gap is marked.\n\n"
             "On a terminal control characters are shown as escapes; --raw passes them, and what "
             "they do to the terminal is up to the job. Into a file or pipe the bytes go as they "
             "are.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
