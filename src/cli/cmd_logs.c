/* pawl logs: what an attempt wrote. */
#include "cli.h"
#include "joblog.h"
#include "mem.h"
#include "text.h"
#include <poll.h>

enum { POLL_MS = 100 };

static const struct opt opts[] = {
    {"attempt", 0, "N", "of the N-th attempt; the last unless given"},
    {"follow", 'f', NULL, "go on until the job is finished"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job with output"},
    {"pawl run --drain", "run it"},
    {"pawl logs 1", "what it wrote"},
    {"pawl logs -f --attempt 1 1", "follow one attempt to its end"},
    EXAMPLE_END,
};

struct reading {
    struct cli *c;
    int64_t attempt; /* 0: the last */
    fence_no fence;  /* the one being read */
    struct joblog_cursor cursor;
    bool running, finished; /* the attempt; the job */
};

/* Bytes as they are into a pipe or file, harmless on a terminal (I14). */
static void emit(void *arg, struct sv bytes)
{
    struct out *o = arg;
    if (!o->terminal) {
        out_put(o, bytes);
        return;
    }
    AUTO_STR struct str safe = STR_INIT(STR_OUTPUT);
    text_safe_lines(&safe, bytes);
    out_put(o, str_sv(&safe));
}

static int pick(struct reading *r, const struct job_view *job, struct pawl_err *err)
{
    const struct attempt_view *found = NULL;
    for (size_t i = 0; i < job->n_attempts; i++)
        if (!r->attempt || job->attempts[i].attempt == r->attempt)
            found = &job->attempts[i];
    bool live = job->state == JOB_RUNNING && (!r->attempt || r->attempt == job->attempt);
    if (!found && !live && r->attempt)
        return err_set(err, PAWL_ENOTFOUND, "job %lld has no attempt %lld", (long long)job->id.v,
                       (long long)r->attempt);
    fence_no fence = live ? job->fence : found ? found->fence : (fence_no){0};
    if (fence.v != r->fence.v)
        r->cursor = (struct joblog_cursor){0};
    r->fence = fence;
    r->running = live;
    r->finished = job_state_terminal(job->state) || (r->attempt && !live);
    return 0;
}

/* The job as it is now, then what is new in the log. In this order: output written before the end
 * is read after the end was seen. */
static int look(struct reading *r, job_id id, struct pawl_err *err)
{
    struct arena a;
    struct job_view job;
    char name[64];
    arena_init(&a);
    int rc = r->c->store->ops->job_get(r->c->store, id, &a, &job, err);
    if (rc == 0)
        rc = pick(r, &job, err);
    arena_done(&a);
    if (rc < 0 || !r->fence.v)
        return rc;
    int dir; /* made when the first job runs */
    rc = r->c->store->ops->log_dir(r->c->store, &dir, err);
    if (rc < 0)
        return rc == PAWL_ENOTFOUND ? 0 : rc;
    store_log_name(id, r->fence, name);
    return joblog_read(dir, name, &r->cursor, emit, &r->c->out, err);
}

static int follow(struct reading *r, job_id id, struct pawl_err *err)
{
    int rc = 0;
    cli_catch_signals();
    while (rc == 0 && !r->finished && !cli_signal() && !r->c->out.failed) {
        out_flush(&r->c->out);
        poll(NULL, 0, POLL_MS);
        rc = look(r, id, err);
    }
    if (cli_signal())
        r->c->exit_status = 128 + cli_signal();
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    job_id id;
    struct reading r = {.c = c};
    if (cli_job_id(c->args.pos[0], &id, err) < 0 ||
        args_int(&c->args, "attempt", 1, ATTEMPTS_MAX, &r.attempt, err) < 0)
        return PAWL_EUSAGE;
    if (out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "a log is text: logs has no -o json");
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = look(&r, id, err);
    if (rc < 0)
        return rc;
    if (args_has(&c->args, "follow"))
        return follow(&r, id, err);
    if (!r.fence.v)
        cli_say(c, "job %lld has not run yet", (long long)id.v);
    return 0;
}

const struct cmd cmd_logs = {
    .name = "logs",
    .usage = "[-f] [--attempt N] ID",
    .about = "Prints what a job wrote to its standard output and error. Of long logs the beginning "
             "and the end are kept and the gap is marked. On a terminal control characters are "
             "shown as escapes; into a file or pipe the bytes go as they are.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
