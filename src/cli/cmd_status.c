/* pawl status: one page. */
#include "job_out.h"
#include "spark.h"
#include "table.h"
#include "text.h"
#include "watch.h"
#include "workers_out.h"

enum { RUNNING_SHOWN = 20 };

static const struct opt opts[] = {
    {"watch", 0, NULL, "live, over the whole terminal; without one the page again and again"},
    {"interval", 0, "DUR", "with --watch: at least this often; 1s unless given"},
    {"count", 0, "N", "with --watch: the page N times, one below the other"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "something to see"},
    {"pawl status", "the page for people"},
    {"pawl status --json", "the same for a script"},
    {"pawl status --watch --count 2 --interval 100ms", "twice, for a log"},
    EXAMPLE_END,
};

static const struct column queue_columns[] = {
    {"QUEUE", false, 32, false}, {"BLOCKED", true, 0, true}, {"QUEUED", true, 0, true},
    {"WAITING", true, 0, true},  {"RUNNING", true, 0, true}, {"DONE", true, 0, false},
    {"SKIPPED", true, 0, true},  {"FAILED", true, 0, true},  {"CANCELLED", true, 0, true},
    {"RATE", true, 0, true},     {"MEAN", true, 0, true},    {"RETRIES", true, 0, true},
    {"ETA", true, 0, false},
};
static const struct column running_columns[] = {
    {"WORKER", false, 32, false}, {"JOB", true, 0, false},       {"QUEUE", false, 24, false},
    {"KIND", false, 16, false},   {"KEY", false, 32, false},     {"TRY", true, 0, false},
    {"AGE", true, 0, false},      {"PROGRESS", false, 0, false},
};
static const struct column last_columns[] = {
    {"JOB", true, 0, false},   {"QUEUE", false, 24, false}, {"KIND", false, 16, false},
    {"KEY", false, 32, false}, {"AGO", true, 0, false},     {"ERROR", false, 0, false},
};

static void put_totals(struct str *s, const struct queue_row *rows, size_t n, bool zeros,
                       bool color)
{
    const char *sep = "";
    for (int k = 0; k < N_JOB_STATES; k++) {
        int64_t total = 0;
        for (size_t i = 0; i < n; i++)
            total += rows[i].n[k];
        if (!total && !zeros)
            continue;
        str_addf(s, "%s%lld ", sep, (long long)total);
        out_styled(s, color, total ? job_state_style((enum job_state)k) : STYLE_NONE,
                   sv_of(job_state_name((enum job_state)k)));
        sep = ", ";
    }
}

/* Every state; on a terminal too narrow for that only those that have jobs. */
static void print_header(struct cli *c, const struct queue_row *rows, size_t n)
{
    AUTO_STR struct str plain = STR_INIT(STR_LINE), s = STR_INIT(STR_LINE);
    put_totals(&plain, rows, n, true, false);
    bool fits = !c->out.width || plain.len <= (size_t)c->out.width;
    put_totals(&s, rows, n, fits || n == 0, c->out.color);
    str_addc(&s, '\n');
    out_put(&c->out, str_sv(&s));
}

static void put_rate(struct table *t, double rate)
{
    AUTO_STR struct str s = STR_INIT(64);
    rate_format(rate, &s);
    table_text(t, str_sv(&s));
}

static void print_queues(struct cli *c, const struct queue_row *rows, size_t n)
{
    struct table t;
    if (!n)
        return;
    out_put(&c->out, SV("\n"));
    table_begin(&t, &c->out, queue_columns, ARRAY_LEN(queue_columns));
    for (size_t i = 0; i < n; i++) {
        table_styled(&t, rows[i].queue, rows[i].paused ? STYLE_YELLOW : STYLE_NONE);
        for (int k = 0; k < N_JOB_STATES; k++)
            table_count(&t, rows[i].n[k]);
        put_rate(&t, rows[i].rate_now);
        put_rate(&t, rows[i].rate_mean);
        table_count(&t, rows[i].retries);
        if (rows[i].paused)
            table_styled(&t, SV("paused"), STYLE_YELLOW);
        else
            table_dur(&t, rows[i].eta);
    }
    table_end(&t);
}

static void put_running(struct table *t, const struct session_view *s, const struct job_view *job,
                        struct wall now)
{
    table_styled(t, s->name, s->alive ? STYLE_NONE : STYLE_RED);
    table_int(t, job->id.v);
    table_text(t, job->queue);
    table_text(t, job->kind);
    table_text(t, job->key);
    table_int(t, job->attempt);
    table_dur(t, DUR_US(now.us - job->claimed_at.us));
    table_text(t, job->progress);
}

/* Running jobs grouped by worker; an idle worker has a row too. */
static void print_running(struct cli *c, const struct status_view *s)
{
    struct table t;
    if (!s->n_sessions)
        return;
    out_put(&c->out, SV("\n"));
    table_begin(&t, &c->out, running_columns, ARRAY_LEN(running_columns));
    for (size_t i = 0; i < s->n_sessions; i++) {
        size_t shown = 0;
        for (size_t k = 0; k < s->n_running; k++)
            if (sv_eq(s->running[k].worker, s->sessions[i].name)) {
                put_running(&t, &s->sessions[i], &s->running[k], s->now);
                shown++;
            }
        if (shown)
            continue;
        table_text(&t, s->sessions[i].name);
        for (size_t k = 1; k + 1 < ARRAY_LEN(running_columns); k++)
            table_text(&t, SV_NONE);
        table_text(&t, sv_of(worker_state(s, &s->sessions[i])));
    }
    table_end(&t);
}

static void print_last(struct cli *c, const char *title, const struct job_view *jobs, size_t n,
                       struct wall now)
{
    struct table t;
    if (!n)
        return;
    out_putf(&c->out, "\n%s\n", title);
    table_begin(&t, &c->out, last_columns, ARRAY_LEN(last_columns));
    for (size_t i = 0; i < n; i++) {
        table_int(&t, jobs[i].id.v);
        table_text(&t, jobs[i].queue);
        table_text(&t, jobs[i].kind);
        table_text(&t, jobs[i].key);
        table_dur(&t, DUR_US(now.us - jobs[i].finished_at.us));
        table_text(&t, jobs[i].error);
    }
    table_end(&t);
}

static void print_attention(struct cli *c, struct sv line)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    out_styled(&s, c->out.color, STYLE_YELLOW, SV("! "));
    text_safe(&s, line, 0);
    str_addc(&s, '\n');
    out_put(&c->out, str_sv(&s));
}

static void print_page(struct cli *c, const struct status_view *s, const struct queue_row *rows,
                       size_t n, const struct gate_list *gates)
{
    print_header(c, rows, n);
    status_attention(c, s, rows, n, gates, print_attention);
    print_queues(c, rows, n);
    status_limited(&c->out, gates, s->now);
    print_running(c, s);
    print_last(c, "last done", s->last_done, s->n_last_done, s->now);
    print_last(c, "last failed", s->last_failed, s->n_last_failed, s->now);
}

static int show(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct status_view s;
    struct gate_list gates;
    size_t n;
    bool json = out_is_json(&c->out);
    int rc =
        c->store->ops->status(c->store, json ? WORKERS_RUNNING_MAX : RUNNING_SHOWN, a, &s, err);
    if (rc == 0)
        rc = status_gates(c, a, &gates, err);
    if (rc < 0)
        return rc;
    struct queue_row *rows = status_rows(&s, a, &n);
    if (!json) {
        print_page(c, &s, rows, n, &gates);
        return 0;
    }
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&text);
    status_write(&w, &s, rows, n, &gates);
    out_object(&c->out, str_sv(&text));
    return 0;
}

static int page(struct cli *c, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a);
    int rc = show(c, &a, err);
    arena_done(&a);
    return rc;
}

static int read_watch(const struct cli *c, struct watch_options *o, struct pawl_err *err)
{
    static const char *const parts[] = {"interval", "count"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (args_has(&c->args, parts[i]) && !args_has(&c->args, "watch"))
            return err_set(err, PAWL_EUSAGE, "--%s has no effect without --watch", parts[i]);
    if (args_dur(&c->args, "interval", false, &o->interval, err) < 0 ||
        args_int(&c->args, "count", 1, INT64_MAX / 2, &o->count, err) < 0)
        return PAWL_EUSAGE;
    if (o->interval.us < DUR_MS(100).us)
        return err_set(err, PAWL_EUSAGE, "--interval is less than 100ms");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct watch_options o = {.interval = DUR_S(1)};
    int rc = read_watch(c, &o, err);
    if (rc == 0)
        rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    return args_has(&c->args, "watch") ? watch_run(c, &o, page, err) : page(c, err);
}

const struct cmd cmd_status = {
    .name = "status",
    .usage = "[--watch [--interval DUR] [--count N]]",
    .about = "One page: jobs by state, a line for each thing that needs you with the command to "
             "paste, a row for each queue, which limits are shut, what is running where and for "
             "how long, and the last "
             "jobs done and failed.\n\n"
             "RATE is jobs done in the last minute, MEAN since the oldest job still there was "
             "added, ETA what is left at that rate.\n\n"
             "With --watch the page is live and fills the terminal. Keys: q quits, j and k or the "
             "arrows select a queue, p pauses or resumes it, f shows all, running or failed, / "
             "only what has a text in its queue, kind or key, ? explains. Without a terminal, or "
             "with --count, the page is printed again and again; with --json one object a line.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
