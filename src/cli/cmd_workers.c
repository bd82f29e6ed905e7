/* pawl workers: who is at work, and asking something of them. */
#include "mem.h"
#include "table.h"
#include "workers_out.h"

static const struct opt opts[] = {
    {"all", 0, NULL, "ask every live worker"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a store"},
    {"pawl workers", "every worker with its slots, jobs and last sign of life"},
    {"pawl workers --json", "the same for a script"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"WORKER", false, 0, false}, {"STATE", false, 0, false},    {"SLOTS", true, 0, false},
    {"RUNNING", true, 0, false}, {"UP", true, 0, false},        {"SEEN", true, 0, false},
    {"POOLS", false, 40, false}, {"PREFLIGHT", false, 0, true},
};

int64_t worker_running(const struct status_view *status, const struct session_view *s)
{
    int64_t listed = 0, all = 0;
    for (size_t i = 0; i < status->n_running; i++)
        listed += sv_eq(status->running[i].worker, s->name);
    for (size_t i = 0; i < status->n_classes; i++)
        all += status->classes[i].n[JOB_RUNNING];
    bool complete = all == (int64_t)status->n_running;
    return complete || listed > s->running ? listed : s->running;
}

void worker_write(struct jw *w, const struct status_view *status, const struct session_view *s)
{
    jw_kint(w, "id", s->id.v);
    jw_kstring(w, "name", s->name);
    jw_kstring_or_null(w, "host", s->host);
    jw_kint(w, "pid", s->pid);
    jw_kbool(w, "alive", s->alive);
    jw_kint(w, "slots", s->slots);
    jw_kint(w, "running", worker_running(status, s));
    jw_kraw_or_null(w, "pools", s->pools);
    jw_name(w, "preflight");
    jw_raw(w, s->preflight.n ? s->preflight : SV("{}"));
    jw_kwall(w, "started_at", s->started_at);
    jw_kwall(w, "renewed_at", s->renewed_at);
    jw_kwall(w, "lease_until", s->lease_until);
    jw_kstring_or_null(w, "command", s->command ? sv_of(worker_command_name(s->command)) : SV_NONE);
}

bool worker_preflight(const struct session_view *s, size_t i, struct arena *a, struct sv *kind,
                      struct sv *why)
{
    AUTO_JSON struct json doc = {0};
    if (!s->alive || !s->preflight.n || json_parse(&doc, s->preflight, NULL) < 0 ||
        json_type(&doc, 0) != JSON_OBJECT || i >= doc.nodes[0].count)
        return false;
    if (!a)
        return true;
    uint32_t k = json_first(&doc, 0);
    while (i--)
        k = json_after(&doc, k + 1);
    struct sv name = json_string(&doc, k, a);
    struct sv text = json_type(&doc, k + 1) == JSON_STRING ? json_string(&doc, k + 1, a)
                                                           : json_source(&doc, k + 1);
    *kind = sv_make(arena_strndup(a, name.p, name.n), name.n);
    *why = sv_make(arena_strndup(a, text.p, text.n), text.n);
    return true;
}

const char *worker_state(const struct status_view *status, const struct session_view *s)
{
    if (!s->alive)
        return "dead";
    switch (s->command) {
    case COMMAND_PAUSE:
        return "paused";
    case COMMAND_DRAIN:
        return "draining";
    case COMMAND_STOP:
        return "stopping";
    default:
        return worker_running(status, s) ? "busy" : "idle";
    }
}

static void print_json(struct cli *c, const struct status_view *status)
{
    for (size_t i = 0; i < status->n_sessions; i++) {
        AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
        struct jw w = jw_make(&s);
        jw_object(&w);
        worker_write(&w, status, &status->sessions[i]);
        jw_end_object(&w);
        out_item(&c->out, str_sv(&s));
    }
    out_items_end(&c->out);
}

static void print_table(struct cli *c, const struct status_view *status)
{
    struct table t;
    if (!status->n_sessions) {
        cli_say(c, "no worker; 'pawl run' starts one");
        return;
    }
    table_begin(&t, &c->out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < status->n_sessions; i++) {
        const struct session_view *s = &status->sessions[i];
        table_text(&t, s->name);
        table_styled(&t, sv_of(worker_state(status, s)), s->alive ? STYLE_NONE : STYLE_RED);
        table_int(&t, s->slots);
        table_count(&t, worker_running(status, s));
        table_dur(&t, DUR_US(status->now.us - s->started_at.us));
        table_dur(&t, DUR_US(status->now.us - s->renewed_at.us));
        table_text(&t, s->pools);
        bool fails = worker_preflight(s, 0, NULL, NULL, NULL);
        table_styled(&t, fails ? s->preflight : SV_NONE, STYLE_RED);
    }
    table_end(&t);
}

static int list_workers(struct cli *c, struct pawl_err *err)
{
    struct arena a;
    struct status_view status;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    rc = c->store->ops->status(c->store, WORKERS_RUNNING_MAX, &a, &status, err);
    if (rc == 0 && out_is_json(&c->out))
        print_json(c, &status);
    else if (rc == 0)
        print_table(c, &status);
    arena_done(&a);
    return rc;
}

static void report_asked(struct cli *c, enum worker_command what, int n)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!out_is_json(&c->out)) {
        cli_say(c, "%d worker%s asked to %s", n, n == 1 ? "" : "s", worker_command_name(what));
        return;
    }
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kstring(&w, "command", sv_of(worker_command_name(what)));
    jw_kint(&w, "asked", n);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static int ask(struct cli *c, enum worker_command what, struct sv name, struct pawl_err *err)
{
    int n;
    int rc = cli_open(c, STORE_WRITE, err);
    if (rc == 0)
        rc = c->store->ops->worker_ask(c->store, name, what, &n, err);
    if (rc < 0)
        return rc;
    if (n == 0) {
        err_set(err, PAWL_ENOTFOUND, "no live worker%s" SV_FMT, name.p ? " named " : "",
                SV_ARG(name));
        return err_hint(err, "'pawl workers' lists them");
    }
    report_asked(c, what, n);
    return 0;
}

static int unknown_verb(const char *word, struct pawl_err *err)
{
    static const char *const verbs[] = {"list", "pause", "resume", "drain", "stop"};
    const char *near = sv_nearest(sv_of(word), verbs, ARRAY_LEN(verbs));
    err_set(err, PAWL_EUSAGE, "workers: unknown word '%s'", word);
    if (near)
        return err_hint(err, "did you mean '%s'?", near);
    return err_hint(err, "list, pause, resume, drain or stop");
}

static int run(struct cli *c, struct pawl_err *err)
{
    const char *verb = c->args.n_pos ? c->args.pos[0] : "list";
    bool all = args_has(&c->args, "all");
    if (!strcmp(verb, "list") && c->args.n_pos < 2 && !all)
        return list_workers(c, err);
    for (enum worker_command w = COMMAND_PAUSE; w <= COMMAND_STOP; w++) {
        if (strcmp(verb, worker_command_name(w)) != 0)
            continue;
        if (all == (c->args.n_pos == 2))
            return err_set(err, PAWL_EUSAGE, "workers %s: name a worker or say --all", verb);
        return ask(c, w, all ? SV_NONE : sv_of(c->args.pos[1]), err);
    }
    if (!strcmp(verb, "list"))
        return err_set(err, PAWL_EUSAGE, "workers list takes nothing more");
    return unknown_verb(verb, err);
}

const struct cmd cmd_workers = {
    .name = "workers",
    .usage = "[list]\npause|resume|drain|stop NAME\npause|resume|drain|stop --all",
    .about =
        "Lists the workers of the store, or asks one of them, by its name: pause takes no "
        "more jobs until resume; drain ends when nothing is left to do; stop ends as on "
        "SIGTERM. No claim made after pause or stop takes anything; the worker itself hears it "
        "at its next renewal or wake-up. PREFLIGHT are the kinds that a worker does not take "
        "up because the check before them fails, and why.",
    .opts = opts,
    .examples = examples,
    .max_args = 2,
    .run = run,
};
