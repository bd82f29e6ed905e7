/* pawl run: one worker in this process. */
#include "cli.h"
#include "mem.h"
#include "report.h"
#include "run_job.h"
#include <stdio.h>
#include <unistd.h>

enum { SLOTS_MAX = 100000 };

static const struct opt opts[] = {
    {"slots", 0, "N", "jobs at a time in the pool for all kinds"},
    {"pool", 0, "KIND=N", "N slots of its own for KIND; '*' for the rest; repeatable"},
    {"queue", 0, "QUEUE", "only jobs of this queue; repeatable"},
    {"kind", 0, "KIND", "only jobs of this kind; repeatable"},
    {"drain", 0, NULL, "end when nothing is left to do"},
    {"no-fail", 0, NULL, "with --drain: exit status 0 though jobs failed"},
    {"patience", 0, "DUR", "with --drain: how long to wait for what is stuck"},
    {"stop-after", 0, "N|DUR", "end after N jobs or after DUR"},
    {"job", 0, "ID",
     "just this job, its output on standard output; its outcome is the exit status"},
    {"log", 0, "FORMAT", "log lines as text or json", .choices = "text|json"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a job"},
    {"pawl run --drain", "run what is there and end"},
    {"pawl run --slots 4 --queue default --stop-after 1s", "four at a time, for a second"},
    {"pawl run --job $(pawl add -- echo hello)", "one job, watched"},
    EXAMPLE_END,
};

/* Everything a request points to. */
struct run_flags {
    struct run_request req;
    struct pool_conf *pools;
    struct sv *queues;
    const char **kinds;
    struct logger log;
};

static void run_flags_done(struct run_flags *f)
{
    for (size_t i = 0; i < f->req.n_pools; i++)
        free(f->pools[i].kind);
    free(f->pools);
    free(f->queues);
    free(f->kinds);
}

static int read_pool(const char *word, struct pool_conf *out, struct pawl_err *err)
{
    struct sv number;
    int64_t n;
    struct sv kind = sv_cut(sv_of(word), '=', &number);
    if (!kind.n || !number.p || sv_to_i64(number, 1, SLOTS_MAX, &n) < 0)
        return err_set(err, PAWL_EUSAGE, "--pool is '%s'; KIND=N with N from 1 to %d is expected",
                       word, SLOTS_MAX);
    *out = (struct pool_conf){mem_dup(kind.p, kind.n), (int)n};
    return 0;
}

static int read_pools(const struct cli *c, struct run_flags *f, struct pawl_err *err)
{
    const char *word;
    int64_t slots = 0;
    f->pools = mem_zalloc(c->args.n_given + 1, sizeof(*f->pools));
    f->req.pools = f->pools;
    for (size_t i = 0; (word = args_nth(&c->args, "pool", i)) != NULL; i++) {
        if (read_pool(word, &f->pools[i], err) < 0)
            return PAWL_EUSAGE;
        f->req.n_pools++;
        if (!strcmp(f->pools[i].kind, "*") && args_has(&c->args, "slots"))
            return err_set(err, PAWL_EUSAGE, "--slots and --pool '*=N' exclude each other");
    }
    if (args_int(&c->args, "slots", 1, SLOTS_MAX, &slots, err) < 0)
        return PAWL_EUSAGE;
    if (slots)
        f->pools[f->req.n_pools++] = (struct pool_conf){mem_strdup("*"), (int)slots};
    return 0;
}

static void read_filters(const struct cli *c, struct run_flags *f)
{
    const char *word;
    f->queues = mem_zalloc(c->args.n_given + 1, sizeof(*f->queues));
    f->kinds = mem_zalloc(c->args.n_given + 1, sizeof(*f->kinds));
    for (size_t i = 0; (word = args_nth(&c->args, "queue", i)) != NULL; i++)
        f->queues[f->req.n_queues++] = sv_of(word);
    for (size_t i = 0; (word = args_nth(&c->args, "kind", i)) != NULL; i++)
        f->kinds[f->req.n_kinds++] = word;
    f->req.queues = f->queues;
    f->req.kinds = f->kinds;
}

static int read_stop_after(const struct cli *c, struct run_request *r, struct pawl_err *err)
{
    const char *word = args_get(&c->args, "stop-after");
    if (!word || sv_to_i64(sv_of(word), 1, INT64_MAX / 2, &r->stop_after_jobs) == 0)
        return 0;
    if (dur_parse(sv_of(word), false, &r->stop_after, NULL) == 0 && r->stop_after.us > 0)
        return 0;
    return err_set(err, PAWL_EUSAGE,
                   "--stop-after is '%s'; a number of jobs or a length such as "
                   "10m is expected",
                   word);
}

static int read_ending(const struct cli *c, struct run_request *r, struct pawl_err *err)
{
    r->drain = args_has(&c->args, "drain");
    r->no_fail = args_has(&c->args, "no-fail");
    r->patience = DUR_NONE;
    if (!r->drain && (r->no_fail || args_has(&c->args, "patience")))
        return err_set(err, PAWL_EUSAGE, "--%s has no effect without --drain",
                       r->no_fail ? "no-fail" : "patience");
    if (args_dur(&c->args, "patience", false, &r->patience, err) < 0)
        return PAWL_EUSAGE;
    return read_stop_after(c, r, err);
}

static int read_log(struct cli *c, struct run_flags *f, struct pawl_err *err)
{
    static const char *const formats[] = {"text", "json", NULL};
    int format = 0;
    if (args_choice(&c->args, "log", formats, &format, err) < 0)
        return PAWL_EUSAGE;
    f->log = (struct logger){.fd = STDERR_FILENO, .json = format == 1};
    f->log.level = c->quiet ? LOG_WARN : c->verbose ? LOG_DEBUG : LOG_INFO;
    f->log.color = c->color_err && !f->log.json;
    f->log.journal = notify_is_journal(STDERR_FILENO);
    f->req.log = &f->log;
    if (c->quiet)
        f->req.progress = PROGRESS_NONE;
    else
        f->req.progress = c->talk && !f->log.json ? PROGRESS_BAR : PROGRESS_LINES;
    return 0;
}

static void print_json(struct cli *c, const struct worker_report *r, struct dur took)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "done", r->done);
    jw_kint(&w, "skipped", r->skipped);
    jw_kint(&w, "failed", r->failed);
    jw_kint(&w, "retried", r->retried);
    jw_kint(&w, "released", r->released);
    jw_kint(&w, "stale", r->stale);
    jw_kint(&w, "stuck", r->stuck);
    jw_kbool(&w, "drained", r->drained);
    jw_kms(&w, "took_ms", took);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static void say_summary(struct cli *c, const struct worker_report *r, struct dur took)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    int64_t ended = r->done + r->skipped + r->failed;
    str_addf(&s, "%lld done, %lld skipped, %lld failed, %lld retried, %lld released in ",
             (long long)r->done, (long long)r->skipped, (long long)r->failed, (long long)r->retried,
             (long long)r->released);
    dur_human(took, &s);
    if (took.us > 0 && ended)
        str_addf(&s, " (%.1f/s)", (double)ended * 1e6 / (double)took.us);
    if (r->stale)
        str_addf(&s, "; %lld came too late and changed nothing", (long long)r->stale);
    cli_say(c, "%s", str_cstr(&s));
}

/* Exit status by DESIGN §6: a signal, then what is stuck, then what failed. */
static int conclude(struct cli *c, const struct run_request *q, const struct worker_report *r,
                    struct pawl_err *err)
{
    if (r->signal) {
        c->exit_status = 128 + r->signal;
        return 0;
    }
    if (q->drain && r->stuck) {
        err_set(err, PAWL_ETIMEOUT, "%lld job%s cannot go on by themselves", (long long)r->stuck,
                r->stuck == 1 ? "" : "s");
        return err_hint(err, "'pawl status' says what they need");
    }
    if (q->drain && r->failed && !q->no_fail) {
        err_set(err, PAWL_EJOBS_FAILED, "%lld job%s failed", (long long)r->failed,
                r->failed == 1 ? "" : "s");
        return err_hint(err, "'pawl list --state failed' shows them, 'pawl retry' runs them again");
    }
    return 0;
}

/* --job: its output is what is to be seen, so the worker itself says little. */
static int run_only(struct cli *c, struct run_flags *f, struct pawl_err *err)
{
    static const char *const others[] = {"drain", "stop-after", "queue", "kind", "slots", "pool"};
    job_id id;
    if (cli_job_id(args_get(&c->args, "job"), &id, err) < 0)
        return PAWL_EUSAGE;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (args_exclude(&c->args, "job", others[i], err) < 0)
            return PAWL_EUSAGE;
    if (out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "a log is text: --job has no -o json");
    f->log.level = c->verbose ? LOG_DEBUG : LOG_WARN;
    f->req.progress = PROGRESS_NONE;
    return run_job(c, id, &f->req, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(run_flags_done) struct run_flags f = {0};
    struct worker_report report = {0};
    read_filters(c, &f);
    if (read_pools(c, &f, err) < 0 || read_ending(c, &f.req, err) < 0 || read_log(c, &f, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    f.req.config = c->config;
    if (args_has(&c->args, "job"))
        return run_only(c, &f, err);
    struct boot start = clock_boot();
    rc = c->app->run_worker(&f.req, &report, err);
    if (rc < 0)
        return rc;
    struct dur took = DUR_US(clock_boot().us - start.us);
    if (out_is_json(&c->out))
        print_json(c, &report, took);
    say_summary(c, &report, took);
    report_drained(c, &f.req, &report, took);
    return conclude(c, &f.req, &report, err);
}

const struct cmd cmd_run = {
    .name = "run",
    .usage = "[OPTION]…",
    .about = "Runs a worker: it takes jobs from the store, highest priority first, and runs as "
             "many at a time as it has slots. Several workers on one store are fine.\n\n"
             "SIGTERM or Ctrl-C: no new jobs, running ones may end within worker.stop_timeout, "
             "then they are ended and given back. A second one: at once.\n\n"
             "With --drain it ends when no job it may run is queued, waiting or running anywhere. "
             "Exit status 7: jobs failed meanwhile. 8: jobs are left that only a person can move. "
             "After ten seconds or 100 jobs a short 'pawl report' of the run's time and queues "
             "follows on stderr, unless -q, --json or --log json was given.\n\n"
             "With --job it takes that job by the same rules, prints its output and ends with it, "
             "after its last attempt: 0 if it is done or skipped, 7 if it failed, 5 if it cannot "
             "be taken now, with the reason.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
