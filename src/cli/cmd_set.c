/* pawl set: new values for jobs that have not started. */
#include "mem.h"
#include "payload.h"
#include "select.h"

static const struct opt opts[] = {
    {"priority", 0, "N", "higher runs first"},
    {"in", 0, "DUR", "not before DUR from now; 0s for now"},
    {"at", 0, "TIME", "not before TIME: RFC 3339, HH:MM or @unix"},
    {"timeout", 0, "DUR", "end an attempt that takes longer; 'none' for no limit"},
    {"max-attempts", 0, "N", "fail for good after N attempts"},
    {"payload", 0, "JSON|@FILE|-", "the data of one job, from the line, a file or stdin"},
    SELECT_OPTS,
    BULK_OPTS,
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --queue nightly --in 1h -- echo hello", "a job that waits"},
    {"pawl set 1 --priority 10 --in 0s", "first, and now"},
    {"pawl set --queue nightly --timeout 5m --max-attempts 3 --yes", "limits for a whole queue"},
    {"pawl set 1 --payload '{\"command\":[\"echo\",\"goodbye\"]}'", "another command"},
    EXAMPLE_END,
};

static const struct act_words words = {
    .doing = "change",
    .done = "changed",
    .states = 1u << JOB_QUEUED | 1u << JOB_WAITING,
    .other = "only jobs that have not started can be changed",
};

static int read_time(const struct cli *c, struct job_change *ch, struct pawl_err *err)
{
    const char *at = args_get(&c->args, "at");
    if (args_exclude(&c->args, "in", "at", err) < 0 ||
        args_dur(&c->args, "in", false, &ch->delay, err) < 0)
        return PAWL_EUSAGE;
    ch->has_time = at || args_has(&c->args, "in");
    if (!at || wall_parse(sv_of(at), clock_wall(), &ch->at, err) == 0)
        return 0;
    err_wrap(err, "--at");
    return err->code = PAWL_EUSAGE;
}

static int read_numbers(const struct cli *c, struct job_change *ch, struct pawl_err *err)
{
    int64_t priority = 0, attempts = 0;
    if (args_int(&c->args, "priority", PRIORITY_MIN, PRIORITY_MAX, &priority, err) < 0 ||
        args_int(&c->args, "max-attempts", 1, ATTEMPTS_MAX, &attempts, err) < 0 ||
        args_dur(&c->args, "timeout", true, &ch->timeout, err) < 0)
        return PAWL_EUSAGE;
    ch->has_priority = args_has(&c->args, "priority");
    ch->has_max_attempts = args_has(&c->args, "max-attempts");
    ch->has_timeout = args_has(&c->args, "timeout");
    ch->priority = (int)priority;
    ch->max_attempts = (int)attempts;
    if (ch->has_timeout && ch->timeout.us == 0)
        return err_set(err, PAWL_EUSAGE, "--timeout is zero; write none for no limit");
    return 0;
}

static int read_change(const struct cli *c, struct job_change *ch, struct str *payload,
                       struct pawl_err *err)
{
    const char *text = args_get(&c->args, "payload");
    if (read_numbers(c, ch, err) < 0 || read_time(c, ch, err) < 0)
        return PAWL_EUSAGE;
    if (!text && !ch->has_priority && !ch->has_max_attempts && !ch->has_timeout && !ch->has_time) {
        err_set(err, PAWL_EUSAGE, "set what?");
        return err_hint(err, "--priority, --in, --at, --timeout, --max-attempts or --payload");
    }
    if (!selection_given(c)) {
        err_set(err, PAWL_EUSAGE, "of which jobs?");
        return err_hint(err, "name ids, or select with --queue, --kind, --state …");
    }
    int rc = text ? payload_read(text, payload, err) : 0;
    if (rc == 0 && text)
        ch->payload = sv_trim(str_sv(payload));
    return rc;
}

struct checking {
    struct cli *c;
    struct sv payload;
    int64_t n;
    int rc;
    struct pawl_err *err;
};

static bool check_job(void *arg, const struct job_view *job)
{
    struct checking *k = arg;
    struct job_spec spec = job_spec_default();
    spec.kind = job->kind;
    spec.payload = k->payload;
    if (k->n++ == 0)
        k->rc = cli_check(k->c, &spec, k->err);
    return k->rc == 0 && k->n < 2;
}

/* New data is for one job, whose handler would run it. */
static int check_payload(struct cli *c, const struct selection *sel, struct sv payload,
                         struct pawl_err *err)
{
    struct checking k = {.c = c, .payload = payload, .err = err};
    int rc = c->store->ops->list(c->store, sel, false, check_job, &k, err);
    if (rc < 0 || k.rc < 0)
        return rc < 0 ? rc : k.rc;
    if (k.n > 1)
        return err_set(err, PAWL_EUSAGE, "--payload is for one job; several are selected");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    AUTO_STR struct str payload = STR_INIT(PAYLOAD_MAX_BYTES);
    struct job_change change = {0};
    int rc = read_change(c, &change, &payload, err);
    if (rc < 0)
        return rc;
    if (selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    if (sel.states & ~words.states)
        return err_set(err, PAWL_EUSAGE, "--state: only queued and waiting jobs can be changed");
    if (!sel.states)
        sel.states = words.states;
    rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc == 0 && change.payload.p)
        rc = check_payload(c, &sel, change.payload, err);
    if (rc < 0)
        return rc;
    struct act_request req = {.act = ACT_SET, .select = sel, .change = &change};
    return act_on_jobs(c, &req, 1, &words, err);
}

const struct cmd cmd_set = {
    .name = "set",
    .usage = "ID… OPTION…\n--queue QUEUE … OPTION…",
    .about = "Changes jobs that have not started: their priority, when they may start, their "
             "limits, or the data of one. What is not named stays as it is. A job that runs or "
             "has ended is not touched; one that a worker takes meanwhile is left out.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
