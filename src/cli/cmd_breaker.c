/* pawl breaker: what is shut because it kept failing. */
#include "fields.h"
#include "gates_out.h"
#include "limits_out.h"
#include "select.h"

static const struct opt opts[] = {
    {"all", 0, NULL, "with list: closed ones too"},
    {"for", 0, "DUR", "with open: for so long; unless given until it is closed by hand"},
    {"reason", 0, "TEXT", "with open: why, for those who ask"},
    {"yes", 'y', NULL, "do not ask when it is about several"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl limit set api --host api.example.org --breaker 5", "a limit with a breaker"},
    {"pawl add --host api.example.org -- true; pawl run --drain -q", "a job that it covers"},
    {"pawl breaker list --all", "every breaker and its state"},
    {"pawl breaker open api --for 1h --reason 'maintenance'", "nothing of it starts for an hour"},
    {"pawl breaker show api", "why, since when, until when"},
    {"pawl breaker close api", "it goes on"},
    EXAMPLE_END,
};

static void put_breaker(struct str *s, const struct gate_view *g, bool color)
{
    const struct gate_state *b = &g->state;
    field_text(s, "limit", g->limit);
    field_text(s, "value", g->value.n ? g->value : SV_NONE);
    str_addf(s, "%-13s", "breaker");
    out_styled(s, color, b->breaker == BREAKER_CLOSED ? STYLE_GREEN : STYLE_RED,
               sv_of(breaker_state_name(b->breaker)));
    str_addc(s, '\n');
    field_time(s, "since", (struct wall){b->since});
    if (b->breaker == BREAKER_OPEN && b->until == INT64_MAX)
        field_text(s, "until", SV("closed by hand"));
    else if (b->breaker == BREAKER_OPEN)
        field_time(s, "until", (struct wall){b->until});
    if (b->breaker == BREAKER_HALF_OPEN && b->probe_job)
        str_addf(s, "%-13s%lld\n", "probe", (long long)b->probe_job);
    field_text(s, "why", g->why);
    str_addf(s, "%-13s%d in a row", "failures", b->failures);
    if (g->params.threshold)
        str_addf(s, ", %d open it", g->params.threshold);
    str_addf(s, "\n%-13s%lld lane%s parked\n", "waiting", (long long)g->parked,
             g->parked == 1 ? "" : "s");
}

static void print_json(struct cli *c, const struct gate_list *g)
{
    for (size_t i = 0; i < g->n; i++) {
        AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
        struct jw w = jw_make(&s);
        gate_write(&w, &g->v[i]);
        out_item(&c->out, str_sv(&s));
    }
    out_items_end(&c->out);
}

static void print_table(struct cli *c, const struct gate_list *g)
{
    struct table t;
    struct wall now = c->store->ops->now(c->store);
    table_begin(&t, &c->out, gate_columns, n_gate_columns);
    for (size_t i = 0; i < g->n; i++)
        gate_row(&t, &g->v[i], now);
    table_end(&t);
    if (g->gates > (int64_t)g->n)
        cli_say(c, "… %lld more", (long long)(g->gates - (int64_t)g->n));
}

/* ---- looking ---- */

struct listing {
    struct cli *c;
    struct table table;
    struct wall now;
    bool all;
    int64_t n;
};

static bool list_gate(void *arg, const struct gate_view *g)
{
    struct listing *l = arg;
    if (!l->all && g->state.breaker == BREAKER_CLOSED)
        return true;
    if (!l->n++ && !out_is_json(&l->c->out))
        table_begin(&l->table, &l->c->out, gate_columns, n_gate_columns);
    if (!out_is_json(&l->c->out)) {
        gate_row(&l->table, g, l->now);
        return !l->c->out.failed;
    }
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    gate_write(&w, g);
    out_item(&l->c->out, str_sv(&s));
    return !l->c->out.failed;
}

static int list(struct cli *c, struct arena *a, struct pawl_err *err)
{
    (void)a;
    const struct gate_filter f = {.breaker = true};
    struct listing l = {
        .c = c, .now = c->store->ops->now(c->store), .all = args_has(&c->args, "all")};
    int rc = c->store->ops->gates(c->store, &f, list_gate, &l, err);
    if (out_is_json(&c->out))
        out_items_end(&c->out);
    else if (l.n)
        table_end(&l.table);
    if (rc == 0 && l.n == 0)
        cli_say(c, l.all ? "no breaker yet: no job has met a limit" : "no breaker is open");
    return rc;
}

static struct gate_filter named(const struct cli *c)
{
    return (struct gate_filter){.limit = sv_of(c->args.pos[1]),
                                .value = c->args.n_pos > 2 ? sv_of(c->args.pos[2]) : SV_NONE};
}

/* The gates that the line names; NOTFOUND if there is none. */
static int find(struct cli *c, struct arena *a, struct gate_list *out, struct pawl_err *err)
{
    struct limits l;
    struct gate_filter f = named(c);
    struct gate_list g;
    int rc = limits_load(c, a, &l, err);
    if (rc == 0 && !limits_find(&l, f.limit))
        return limit_unknown(&l, c->args.pos[1], err);
    if (rc == 0)
        rc = gates_collect(c, &f, GATES_LISTED, a, &g, err);
    if (rc < 0)
        return rc;
    if (!g.gates) {
        err_set(err, PAWL_ENOTFOUND, "limit '%s' has no gate%s%s%s yet", c->args.pos[1],
                f.value.p ? " for '" : "", f.value.p ? c->args.pos[2] : "", f.value.p ? "'" : "");
        return err_hint(err, "it gets one when the first job that it covers is met by a worker");
    }
    *out = g;
    return 0;
}

static int show(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct gate_list g;
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    int rc = find(c, a, &g, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out)) {
        print_json(c, &g);
    } else if (g.n == 1) {
        put_breaker(&s, &g.v[0], c->out.color);
        out_put(&c->out, str_sv(&s));
    } else {
        print_table(c, &g);
    }
    return 0;
}

/* ---- acting ---- */

static void report(struct cli *c, const char *done, int n)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    if (!out_is_json(&c->out)) {
        cli_say(c, "%d breaker%s %s", n, n == 1 ? "" : "s", done);
        return;
    }
    jw_object(&w);
    jw_kstring(&w, "limit", sv_of(c->args.pos[1]));
    jw_kstring_or_null(&w, "value", c->args.n_pos > 2 ? sv_of(c->args.pos[2]) : SV_NONE);
    jw_kstring(&w, "done", sv_of(done));
    jw_kint(&w, "breakers", n);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static int act(struct cli *c, struct arena *a, enum breaker_act what, struct pawl_err *err)
{
    static const char *const doing[] = {"open", "close", "reset"};
    static const char *const done[] = {"opened", "closed", "reset"};
    struct gate_list g;
    struct gate_filter f = named(c);
    struct dur pause = DUR_US(0);
    int n;
    if (args_dur(&c->args, "for", false, &pause, err) < 0)
        return PAWL_EUSAGE;
    int rc = find(c, a, &g, err);
    if (rc == 0 && g.gates > 1)
        rc = act_confirm(c, doing[what], done[what], "breaker", g.gates, err);
    else if (rc == 0)
        rc = 1;
    if (rc <= 0)
        return rc;
    rc = c->store->ops->breaker_act(c->store, &f, what, pause, sv_of(args_get(&c->args, "reason")),
                                    &n, err);
    if (rc == 0)
        report(c, done[what], n);
    return rc;
}

static int open_breaker(struct cli *c, struct arena *a, struct pawl_err *err)
{
    return act(c, a, BREAKER_DO_OPEN, err);
}

static int close_breaker(struct cli *c, struct arena *a, struct pawl_err *err)
{
    return act(c, a, BREAKER_DO_CLOSE, err);
}

static int reset_breaker(struct cli *c, struct arena *a, struct pawl_err *err)
{
    return act(c, a, BREAKER_DO_RESET, err);
}

/* ---- the line ---- */

static const char *const words[] = {"list", "show", "open", "close", "reset", NULL};
static const struct {
    bool names; /* a limit, and a value */
    enum store_mode mode;
    const char *flags; /* that it takes */
    int (*run)(struct cli *c, struct arena *a, struct pawl_err *err);
} verbs[] = {
    {false, STORE_READ, "all", list},
    {true, STORE_READ, "", show},
    {true, STORE_WRITE, "for reason yes", open_breaker},
    {true, STORE_WRITE, "reason yes", close_breaker},
    {true, STORE_WRITE, "reason yes", reset_breaker},
};

static int check_line(const struct cli *c, int verb, struct pawl_err *err)
{
    const char *name = words[verb];
    for (const struct opt *o = opts; o->name; o++)
        if (args_has(&c->args, o->name) && !strstr(verbs[verb].flags, o->name))
            return err_set(err, PAWL_EUSAGE, "--%s has no effect with 'breaker %s'", o->name, name);
    if (verbs[verb].names && c->args.n_pos < 2)
        return err_set(err, PAWL_EUSAGE, "breaker %s: of which limit?", name);
    if (!verbs[verb].names && c->args.n_pos > 1)
        return err_set(err, PAWL_EUSAGE, "breaker %s: unexpected '%s'", name, c->args.pos[1]);
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    int verb = args_verb(&c->args, "breaker", words, err);
    struct arena a;
    if (verb < 0 || check_line(c, verb, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, verbs[verb].mode, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    rc = verbs[verb].run(c, &a, err);
    arena_done(&a);
    return rc;
}

const struct cmd cmd_breaker = {
    .name = "breaker",
    .usage = "[list [--all]]\nshow LIMIT [VALUE]\nopen LIMIT [VALUE] [--for DUR] [--reason TEXT]\n"
             "close LIMIT [VALUE]\nreset LIMIT [VALUE]",
    .about =
        "Each gate of a limit has a breaker. It opens after several transient failures in a row "
        "(or, with --breaker-rate, when too many of a window fail): from then on no job behind it "
        "starts, on any worker, and none loses an attempt. After a pause one job tries, one over "
        "all workers; if it goes well the breaker closes, if not the pause doubles.\n\n"
        "list shows those that are open, show one with its reason. open shuts a gate by hand, "
        "close lets it go on at once, reset also forgets throttled answers and what an adaptive "
        "rate has learnt. VALUE is the host, queue or kind of a limit with --each; without one "
        "all of them are meant, which asks first.",
    .opts = opts,
    .examples = examples,
    .max_args = 3,
    .run = run,
};
