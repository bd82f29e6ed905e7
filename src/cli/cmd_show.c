/* pawl show: everything about one job. */
#include "artifacts_out.h"
#include "clipboard.h"
#include "fields.h"
#include "fingerprint.h"
#include "job_out.h"
#include "mem.h"
#include "text.h"

static const struct opt opts[] = {
    {"copy", 0, NULL, "put the JSON into the clipboard instead of printing"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "something to show"},
    {"pawl show 1", "state, times, attempts"},
    {"pawl show 1 --json", "the same for a script"},
    EXAMPLE_END,
};

static void put_state(struct str *s, const struct job_view *job, bool color)
{
    str_addf(s, "%-13s", "state");
    out_styled(s, color, job_state_style(job->state), sv_of(job_state_name(job->state)));
    if (job->cancel_asked && !job_state_terminal(job->state))
        str_adds(s, ", cancel asked");
    if (job->wait_reason && job->state == JOB_WAITING)
        str_addf(s, " (%s)", wait_reason_name(job->wait_reason));
    str_addc(s, '\n');
}

static void put_error(struct str *s, const struct job_view *job)
{
    if (job->cls == CLASS_NONE && !job->error.p)
        return;
    const char *cls = fail_class_name(job->cls);
    str_addf(s, "%-13s%s%s", "error", cls ? cls : "", cls ? ": " : "");
    text_safe(s, job->error, 0);
    if (job->exit_code >= 0)
        str_addf(s, " (exit %d)", job->exit_code);
    str_addc(s, '\n');
    if (job->fingerprint) {
        char print[FINGERPRINT_TEXT];
        fingerprint_format(job->fingerprint, print);
        field_text(s, "fingerprint", sv_of(print));
    }
}

static void put_counts(struct str *s, const struct job_view *job, const struct config *config)
{
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    str_addf(s, "%-13s%d of %d", "attempt", job->attempt, job_max_attempts(job, config));
    if (job->transient)
        str_addf(s, ", %d transient", job->transient);
    if (job->lost)
        str_addf(s, ", %d lost", job->lost);
    str_addf(s, "\n%-13s%lld\n", "fence", (long long)job->fence.v);
    dur_format(job_timeout(job, config), &text);
    field_text(s, "timeout", str_sv(&text));
}

static void put_attempt(struct str *s, const struct attempt_view *a)
{
    str_addf(s, "  %d  fence %lld  ", a->attempt, (long long)a->fence.v);
    wall_format(a->started_at, s);
    str_addf(s, "  %s", a->finished_at.us ? outcome_name(a->outcome) : "running");
    if (a->finished_at.us) {
        str_adds(s, " after ");
        dur_human(DUR_US(a->finished_at.us - a->started_at.us), s);
    }
    str_adds(s, "  on ");
    text_safe(s, a->worker.p ? a->worker : SV("-"), 0);
    if (a->log_bytes)
        str_addf(s, "  %lld byte%s of output", (long long)a->log_bytes,
                 a->log_bytes == 1 ? "" : "s");
    if (a->error.p) {
        str_adds(s, "\n     ");
        text_safe(s, a->error, 0);
    }
    str_addc(s, '\n');
}

static void put_job(struct str *s, const struct job_view *job, const struct cli *c)
{
    str_addf(s, "%-13s%lld\n", "job", (long long)job->id.v);
    field_text(s, "queue", job->queue);
    field_text(s, "kind", job->kind);
    field_text(s, "key", job->key);
    field_text(s, "host", job->host);
    field_text(s, "lock", job->lock);
    str_addf(s, "%-13s%d\n", "priority", job->priority);
    put_state(s, job, c->out.color);
    put_counts(s, job, c->config);
    field_text(s, "worker", job->worker);
    field_time(s, "created", job->created_at);
    field_time(s, "available", job->available_at);
    field_time(s, "claimed", job->claimed_at);
    field_time(s, "lease until", job->lease_until);
    field_time(s, "finished", job->finished_at);
    if (job->parent.v)
        str_addf(s, "%-13s%lld\n", "parent", (long long)job->parent.v);
    field_text(s, "payload", job->payload);
    field_text(s, "progress", job->progress);
    field_text(s, "result", job->result);
    put_error(s, job);
    if (job->n_attempts)
        str_adds(s, "attempts\n");
    for (size_t i = 0; i < job->n_attempts; i++)
        put_attempt(s, &job->attempts[i]);
}

/* A job and what it left. */
struct shown {
    struct job_view job;
    struct artifact_list artifacts; /* the newest of each name */
    struct fetch_view fetch;
    bool fetched;
};

static int load(struct cli *c, job_id id, struct arena *a, struct shown *out, struct pawl_err *err)
{
    const struct artifact_filter newest = {.job = id, .newest = true};
    int rc = c->store->ops->job_get(c->store, id, a, &out->job, err);
    if (rc == 0)
        rc = artifacts_load(c, &newest, a, &out->artifacts, err);
    return rc < 0 ? rc : fetch_load(c, id, a, &out->fetch, &out->fetched, err);
}

static void write_all(struct str *s, const struct shown *x, const struct config *config)
{
    struct jw w = jw_make(s);
    jw_object(&w);
    job_members(&w, &x->job, JOB_COMPLETE, config);
    fetch_write(&w, x->fetched ? &x->fetch : NULL);
    artifacts_write(&w, &x->artifacts);
    jw_end_object(&w);
}

static void print(struct cli *c, const struct shown *x)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT * 2);
    if (out_is_json(&c->out)) {
        write_all(&s, x, c->config);
        out_object(&c->out, str_sv(&s));
        return;
    }
    put_job(&s, &x->job, c);
    if (x->fetched)
        fetch_put(&s, &x->fetch);
    artifacts_put(&s, &x->artifacts);
    out_put(&c->out, str_sv(&s));
}

static int copy(struct cli *c, const struct shown *x, struct pawl_err *err)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT * 2);
    const char *how = NULL;
    write_all(&s, x, c->config);
    int rc = clipboard_put(str_sv(&s), &how, err);
    if (rc == 0)
        cli_say(c, "job %lld copied: %zu bytes, by %s", (long long)x->job.id.v, s.len, how);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    job_id id;
    AUTO(arena_done) struct arena a;
    struct shown x = {0};
    arena_init(&a);
    if (cli_job_id(c->args.pos[0], &id, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = load(c, id, &a, &x, err);
    if (rc == 0 && args_has(&c->args, "copy"))
        rc = copy(c, &x, err);
    else if (rc == 0)
        print(c, &x);
    return rc;
}

const struct cmd cmd_show = {
    .name = "show",
    .usage = "ID [--copy]",
    .about = "Shows one job: its state and why, its data, result and last error, and every "
             "attempt with worker, times and outcome; of a fetch the last exchange, and the "
             "artifacts that it kept.\n\n"
             "--copy puts it as JSON into the clipboard: through the terminal (OSC 52, also over "
             "ssh), or with wl-copy, xclip or pbcopy.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
