/* pawl limit: how many run and start at a time. */
#include "fields.h"
#include "gates_out.h"
#include "limits_out.h"
#include "select.h"

static const struct opt opts[] = {
    LIMIT_OPTS,
    {"all", 0, NULL, "with reset: every limit set by hand that the configuration has too"},
    {"yes", 'y', NULL, "do not ask"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl limit set api --host api.example.org --concurrency 3 --rate 200/min",
     "one host: three at a time, two hundred a minute"},
    {"pawl limit set polite --each host --concurrency 1", "every host by itself, one at a time"},
    {"pawl limit set polite --concurrency 2", "changed: what is not named stays"},
    {"pawl limit list", "all of them, what they cover and how much of it is used"},
    {"pawl limit show api", "one, with the gates it has"},
    {"pawl limit unset api", "gone"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"LIMIT", false, 32, false}, {"COVERS", false, 48, false}, {"HOLDS", false, 60, false},
    {"GATES", true, 0, false},   {"USED", true, 0, false},     {"SHUT", true, 0, false},
    {"FROM", false, 0, false},
};

/* Use of each limit's gates, in the order of the limits. */
struct use {
    int64_t gates, used, shut, parked;
};
struct counting {
    const struct limits *limits;
    struct use *use;
};

static bool count_gate(void *arg, const struct gate_view *g)
{
    struct counting *k = arg;
    const struct limit_view *l = limits_find(k->limits, g->limit);
    if (l) {
        struct use *u = &k->use[l - k->limits->v];
        u->gates++;
        u->used += g->used;
        u->shut += g->room.n <= 0;
        u->parked += g->parked;
    }
    return true;
}

static const char *origin(const struct limit_view *l)
{
    return l->by_operator ? "by hand" : l->built_in ? "built in" : "config";
}

static void write_limit(struct jw *w, const struct limit_view *l, const struct use *u)
{
    AUTO_STR struct str spec = STR_INIT(LIMIT_TEXT_MAX);
    limit_text(&l->spec, &spec);
    jw_kstring(w, "name", l->spec.name);
    jw_name(w, "spec");
    jw_raw(w, str_sv(&spec));
    jw_kstring(w, "origin",
               l->by_operator ? SV("operator")
               : l->built_in  ? SV("built_in")
                              : SV("config"));
    jw_kbool(w, "in_config", l->in_config && !l->built_in);
    jw_kwall(w, "changed_at", l->changed_at);
    jw_name(w, "use");
    jw_object(w);
    jw_kint(w, "gates", u->gates);
    jw_kint(w, "used", u->used);
    jw_kint(w, "shut", u->shut);
    jw_kint(w, "parked", u->parked);
    jw_end_object(w);
}

static void print_json(struct cli *c, const struct limits *l, const struct use *use)
{
    for (size_t i = 0; i < l->n; i++) {
        AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
        struct jw w = jw_make(&s);
        jw_object(&w);
        write_limit(&w, &l->v[i], &use[i]);
        jw_end_object(&w);
        out_item(&c->out, str_sv(&s));
    }
    out_items_end(&c->out);
}

static void print_table(struct cli *c, const struct limits *l, const struct use *use)
{
    struct table t;
    if (!l->n) {
        cli_say(c, "no limits; 'pawl limit set NAME …' adds one");
        return;
    }
    table_begin(&t, &c->out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < l->n; i++) {
        AUTO_STR struct str covers = STR_INIT(STR_LINE), says = STR_INIT(STR_LINE);
        limit_covers(&l->v[i].spec, &covers);
        limit_says(&l->v[i].spec, &says);
        table_text(&t, l->v[i].spec.name);
        table_text(&t, str_sv(&covers));
        table_text(&t, str_sv(&says));
        table_count(&t, use[i].gates);
        table_count(&t, use[i].used);
        table_count(&t, use[i].shut);
        table_text(&t, sv_of(origin(&l->v[i])));
    }
    table_end(&t);
}

static void say_order(struct cli *c, const struct limits *l)
{
    AUTO_STR struct str aging = STR_INIT(64);
    if (l->order == ORDER_FAIR)
        cli_say(c, "order within a priority: fair");
    if (l->aging.us > 0) {
        dur_format(l->aging, &aging);
        cli_say(c, "a ready job gains one priority every %s", str_cstr(&aging));
    }
}

static int list(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    const struct gate_filter every = {0};
    int rc = limits_load(c, a, &l, err);
    if (rc < 0)
        return rc;
    struct counting k = {&l, arena_zalloc(a, l.n + 1, sizeof(struct use))};
    rc = c->store->ops->gates(c->store, &every, count_gate, &k, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out)) {
        print_json(c, &l, k.use);
        return 0;
    }
    print_table(c, &l, k.use);
    say_order(c, &l);
    return 0;
}

static void put_limit(struct str *s, const struct limit_view *l, const struct gate_list *g)
{
    AUTO_STR struct str covers = STR_INIT(LIMIT_TEXT_MAX), says = STR_INIT(STR_LINE);
    limit_covers(&l->spec, &covers);
    limit_says(&l->spec, &says);
    field_text(s, "limit", l->spec.name);
    field_text(s, "covers", str_sv(&covers));
    field_text(s, "holds", str_sv(&says));
    if (l->spec.respect_retry_after) {
        field_dur(s, "pause", l->spec.pause);
        field_dur(s, "max pause", l->spec.max_pause);
    } else {
        field_text(s, "Retry-After", SV("is for the job alone"));
    }
    bool returns = l->by_operator && l->in_config;
    str_addf(s, "%-13s%s%s%s\n", "from", origin(l),
             returns ? "; 'pawl limit reset' returns to " : "",
             !returns      ? ""
             : l->built_in ? "what is built in"
                           : "config");
    field_time(s, "changed", l->changed_at);
    str_addf(s, "%-13s%lld, %lld shut, %lld in use, %lld lane%s parked\n", "gates",
             (long long)g->gates, (long long)g->shut, (long long)g->used, (long long)g->parked,
             g->parked == 1 ? "" : "s");
}

static void show_json(struct cli *c, const struct limit_view *l, const struct gate_list *g)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    const struct use use = {g->gates, g->used, g->shut, g->parked};
    jw_object(&w);
    write_limit(&w, l, &use);
    jw_name(&w, "gates");
    jw_array(&w);
    for (size_t i = 0; i < g->n; i++)
        gate_write(&w, &g->v[i]);
    jw_end_array(&w);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static void show_table(struct cli *c, const struct limit_view *l, const struct gate_list *g)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct table t;
    struct wall now = c->store->ops->now(c->store);
    put_limit(&s, l, g);
    out_put(&c->out, str_sv(&s));
    if (!g->n)
        return;
    out_put(&c->out, SV("\n"));
    table_begin(&t, &c->out, gate_columns, n_gate_columns);
    for (size_t i = 0; i < g->n; i++)
        gate_row(&t, &g->v[i], now);
    table_end(&t);
    if (g->gates > (int64_t)g->n)
        cli_say(c, "… %lld more gate%s", (long long)(g->gates - (int64_t)g->n),
                g->gates - (int64_t)g->n == 1 ? "" : "s");
}

static int show(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    struct gate_list gates;
    const char *name = c->args.pos[1];
    struct gate_filter f = {.limit = sv_of(name)};
    int rc = limits_load(c, a, &l, err);
    if (rc < 0)
        return rc;
    const struct limit_view *found = limits_find(&l, f.limit);
    if (!found)
        return limit_unknown(&l, name, err);
    rc = gates_collect(c, &f, GATES_LISTED, a, &gates, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out))
        show_json(c, found, &gates);
    else
        show_table(c, found, &gates);
    return 0;
}

/* ---- changing ---- */

static void report(struct cli *c, struct sv name, const char *what, bool changed,
                   const struct limit_spec *spec)
{
    AUTO_STR struct str s = STR_INIT(LIMIT_TEXT_MAX + STR_LINE), text = STR_INIT(LIMIT_TEXT_MAX);
    struct jw w = jw_make(&s);
    if (!out_is_json(&c->out)) {
        if (spec) {
            limit_covers(spec, &text);
            str_adds(&text, ": ");
            limit_says(spec, &text);
        }
        cli_say(c, "limit " SV_FMT " %s%s%s", SV_ARG(name), changed ? what : "was so already",
                spec ? ": " : "", str_cstr(&text));
        return;
    }
    jw_object(&w);
    jw_kstring(&w, "name", name);
    jw_kbool(&w, "changed", changed);
    jw_name(&w, "spec");
    if (spec) {
        limit_text(spec, &text);
        jw_raw(&w, str_sv(&text));
    } else {
        jw_null(&w);
    }
    jw_end_object(&w);
    out_item(&c->out, str_sv(&s));
}

static int set(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    enum limit_outcome outcome;
    struct sv name = sv_of(c->args.pos[1]);
    int rc = limits_load(c, a, &l, err);
    if (rc < 0)
        return rc;
    const struct limit_view *old = limits_find(&l, name);
    struct breaker_spec usual = limits_breaker(c->config);
    const struct limit_spec *built_in = limit_built_in(name);
    struct limit_spec spec = old ? old->spec : built_in ? *built_in : limit_default(&usual);
    spec.name = name;
    if (limit_flags(c, a, &spec, err) < 0)
        return PAWL_EUSAGE;
    if (limit_check(&spec, err) < 0)
        return err_wrap(err, "limit '%s'", c->args.pos[1]);
    rc = c->store->ops->limit_act(c->store, LIMIT_SET, &spec, &outcome, err);
    if (rc == 0)
        report(c, name, old ? "changed" : "set", outcome == LIMIT_OK, &spec);
    return rc;
}

static int unset(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    enum limit_outcome outcome;
    struct limit_spec spec = {.name = sv_of(c->args.pos[1])};
    int rc = limits_load(c, a, &l, err);
    if (rc == 0)
        rc = c->store->ops->limit_act(c->store, LIMIT_UNSET, &spec, &outcome, err);
    if (rc < 0)
        return rc;
    if (outcome == LIMIT_NOT_FOUND)
        return limit_unknown(&l, c->args.pos[1], err);
    report(c, spec.name, "removed", outcome == LIMIT_OK, NULL);
    const struct limit_view *old = limits_find(&l, spec.name);
    if (out_is_json(&c->out))
        return 0;
    if (old ? old->built_in : limit_built_in(spec.name) != NULL)
        cli_say(c, "it is built in: 'pawl limit reset' brings it back");
    else if (old && old->in_config)
        cli_say(c, "the configuration has it: it comes back when its text there changes, or by "
                   "'pawl limit reset'");
    return 0;
}

static int reset_one(struct cli *c, struct sv name, enum limit_outcome *out, struct pawl_err *err)
{
    struct limit_spec spec = {.name = name};
    return c->store->ops->limit_act(c->store, LIMIT_RESET, &spec, out, err);
}

static int report_reset(struct cli *c, struct arena *a, struct sv name, enum limit_outcome outcome,
                        struct pawl_err *err)
{
    struct limits l;
    int rc = limits_load(c, a, &l, err);
    const struct limit_view *now = rc == 0 ? limits_find(&l, name) : NULL;
    if (rc == 0)
        report(c, name, now && now->built_in ? "is as built in" : "is as configured",
               outcome == LIMIT_OK, now ? &now->spec : NULL);
    return rc;
}

static int reset(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    enum limit_outcome outcome;
    struct sv name = sv_of(c->args.pos[1]);
    int rc = limits_load(c, a, &l, err);
    if (rc == 0)
        rc = reset_one(c, name, &outcome, err);
    if (rc < 0)
        return rc;
    if (outcome != LIMIT_NOT_FOUND)
        return report_reset(c, a, name, outcome, err);
    if (!limits_find(&l, name))
        return limit_unknown(&l, c->args.pos[1], err);
    err_set(err, PAWL_ENOTFOUND, "limit '%s' is not in the configuration", c->args.pos[1]);
    return err_hint(err, "'pawl limit unset' removes it");
}

static int reset_all(struct cli *c, struct arena *a, struct pawl_err *err)
{
    struct limits l;
    int64_t n = 0;
    int rc = limits_load(c, a, &l, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < l.n; i++)
        n += l.v[i].by_operator && l.v[i].in_config;
    rc = act_confirm(c, "reset", "reset", "limit", n, err);
    if (rc <= 0)
        return rc;
    for (size_t i = 0; rc >= 0 && i < l.n; i++) {
        enum limit_outcome outcome;
        if (!l.v[i].by_operator || !l.v[i].in_config)
            continue;
        rc = reset_one(c, l.v[i].spec.name, &outcome, err);
        if (rc == 0)
            rc = report_reset(c, a, l.v[i].spec.name, outcome, err);
    }
    if (rc >= 0 && n == 0)
        cli_say(c, "no limit was set by hand that the configuration has too");
    return rc < 0 ? rc : 0;
}

/* ---- the line ---- */

static const char *const names[] = {"list", "show", "set", "unset", "reset", NULL};
static const struct {
    size_t args; /* the verb included */
    enum store_mode mode;
    bool flags; /* takes those of a limit */
    int (*run)(struct cli *c, struct arena *a, struct pawl_err *err);
} verbs[] = {
    {1, STORE_READ, false, list},   {2, STORE_READ, false, show},   {2, STORE_CREATE, true, set},
    {2, STORE_WRITE, false, unset}, {2, STORE_WRITE, false, reset},
};

static int check_line(const struct cli *c, int verb, bool all, struct pawl_err *err)
{
    const char *name = names[verb];
    if (all && (strcmp(name, "reset") != 0 || c->args.n_pos > 1))
        return err_set(err, PAWL_EUSAGE, "--all belongs to 'limit reset' without a name");
    if (!all && c->args.n_pos > verbs[verb].args)
        return err_set(err, PAWL_EUSAGE, "limit %s: unexpected '%s'", name,
                       c->args.pos[verbs[verb].args]);
    if (!all && c->args.n_pos < verbs[verb].args && verbs[verb].args > 1)
        return err_set(err, PAWL_EUSAGE, "limit %s: which one?", name);
    if (!verbs[verb].flags && limit_flags_given(c))
        return err_set(err, PAWL_EUSAGE, "limit %s takes no settings; 'limit set' does", name);
    if (verbs[verb].flags && !limit_flags_given(c)) {
        err_set(err, PAWL_EUSAGE, "limit set: nothing to set");
        return err_hint(err, "--concurrency, --rate, --breaker, --each …; see 'pawl help limit'");
    }
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    bool all = args_has(&c->args, "all");
    int verb = args_verb(&c->args, "limit", names, err);
    AUTO(arena_done) struct arena a;
    struct limit_spec readable = limit_default(NULL);
    arena_init(&a);
    if (verb < 0 || check_line(c, verb, all, err) < 0 || limit_flags(c, &a, &readable, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, verbs[verb].mode, err);
    if (rc < 0)
        return rc;
    rc = all ? reset_all(c, &a, err) : verbs[verb].run(c, &a, err);
    if (rc == 0 && verbs[verb].mode != STORE_READ && out_is_json(&c->out))
        out_items_end(&c->out);
    return rc;
}

const struct cmd cmd_limit = {
    .name = "limit",
    .usage = "[list]\nshow LIMIT\nset LIMIT [OPTION]…\nunset LIMIT\nreset LIMIT\nreset --all",
    .about =
        "A limit caps how many jobs run at a time, how many start in a period, or both, over all "
        "workers of the store. It covers the jobs that match every selector given; with --each "
        "every host, queue or kind is counted by itself, as one gate. Where several limits cover "
        "a job, all must let it through; one with --replaces takes its jobs out of those with "
        "--each. A selector that is empty (--queue=) covers all again.\n\n"
        "set adds a limit or changes what is named of one; it holds for every claim from then on, "
        "running jobs are counted but never ended. Limits of the configuration come into force "
        "with 'pawl run'; one that was set or unset by hand stays so until reset, or until its "
        "text in the configuration changes. Limit 'every-host' is built in: jobs of kind fetch, "
        "two at a time and one a second for each host but this machine, unless the configuration "
        "or an operator says otherwise of it.\n\n"
        "Every limit has a breaker for each gate unless --breaker none: after 5 transient failures "
        "in a row nothing of it starts for a minute, then one job tries. See 'pawl help breaker', "
        "and docs/limits.md for all of it.",
    .opts = opts,
    .examples = examples,
    .max_args = 2,
    .run = run,
};
