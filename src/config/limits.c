/* limits: caps on what runs and starts at a time, by name. Members come from limits.def; what they
 * mean together is checked here as far as one entry goes, and by core once it is a limit_spec. */
#include "reading.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { LIMIT_NAME_MAX = 255, LIMIT_ENTRIES_MAX = 1000, LIMIT_COUNT_MAX = 1000000 };

/* One limit being read. */
struct reading_limit {
    struct reading r; /* first: readers get it */
    struct limit_conf *limit;
    bool given_host, given_hosts;
};

static struct limit_conf *limit_of(struct reading *r)
{
    return ((struct reading_limit *)r)->limit;
}

static bool bad_name(struct sv name)
{
    bool bad = !name.n || name.n > LIMIT_NAME_MAX || text_bad_utf8(name) < name.n;
    for (size_t i = 0; i < name.n; i++)
        bad = bad || (unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f;
    return bad;
}

static int read_named(struct reading *r, const struct yaml_node *n, const char *what, char **out)
{
    char shown[SHORT_TEXT];
    if (reading_text(r, n, what, out) < 0)
        return PAWL_ECONFIG;
    if (bad_name(sv_of(*out)))
        return load_fail(r->l, n, r->key, "\"%s\" is not a name", short_text(sv_of(*out), shown));
    return 0;
}

static int read_name(struct reading *r, const struct yaml_node *n)
{
    struct config *c = r->l->c;
    struct limit_conf *limit = limit_of(r);
    char shown[SHORT_TEXT];
    if (read_named(r, n, "a name", &limit->name) < 0)
        return PAWL_ECONFIG;
    for (struct limit_conf *other = c->limits; other != limit; other++)
        if (!strcmp(other->name, limit->name))
            return load_fail(r->l, n, "limits", "\"%s\" twice; first at %s",
                             short_text(sv_of(limit->name), shown), other->origin);
    return 0;
}

static int read_queue(struct reading *r, const struct yaml_node *n)
{
    return read_named(r, n, "a queue", &limit_of(r)->queue);
}

static int read_kind(struct reading *r, const struct yaml_node *n)
{
    return read_named(r, n, "a kind", &limit_of(r)->kind);
}

/* '!' excludes what follows it. */
static bool bad_host(struct sv pattern)
{
    return bad_name(pattern) || sv_eq(pattern, SV("!"));
}

static int read_host(struct reading *r, const struct yaml_node *n)
{
    struct reading_limit *x = (struct reading_limit *)r;
    AUTO_FREE char *host = NULL;
    if (x->given_hosts)
        return load_fail(r->l, n, r->key, "there is hosts already");
    if (read_named(r, n, "a host", &host) < 0)
        return PAWL_ECONFIG;
    if (bad_host(sv_of(host)))
        return load_fail(r->l, n, r->key, "\"%s\" is not a host", host);
    x->given_host = true;
    string_list_add(&x->limit->hosts, sv_of(host));
    return 0;
}

static int read_hosts(struct reading *r, const struct yaml_node *n)
{
    struct reading_limit *x = (struct reading_limit *)r;
    struct string_list *hosts = &x->limit->hosts;
    char shown[SHORT_TEXT];
    if (x->given_host)
        return load_fail(r->l, n, r->key, "there is host already");
    if (reading_texts(r, n, hosts) < 0)
        return PAWL_ECONFIG;
    if (!hosts->n)
        return load_fail(r->l, n, r->key, "the list is empty");
    for (size_t i = 0; i < hosts->n; i++)
        if (bad_host(sv_of(hosts->v[i])))
            return load_fail(r->l, n, r->key, "\"%s\" is not a host",
                             short_text(sv_of(hosts->v[i]), shown));
    x->given_hosts = true;
    return 0;
}

static int read_each(struct reading *r, const struct yaml_node *n)
{
    static const char *const names[] = {"host", "queue", "kind"};
    struct file_text v;
    char shown[SHORT_TEXT];
    if (reading_scalar(r, n, "host, queue or kind", &v) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (sv_eq(v.text, sv_of(names[i]))) {
            limit_of(r)->each = LIMIT_EACH_HOST + i;
            str_adds(&r->show, names[i]);
            return 0;
        }
    return load_fail(r->l, n, r->key, "\"%s\" is not allowed; allowed host|queue|kind",
                     short_text(reading_masked(&v), shown));
}

static int read_replaces(struct reading *r, const struct yaml_node *n)
{
    return reading_bool(r, n, &limit_of(r)->replaces);
}

static int read_count(struct reading *r, const struct yaml_node *n, int64_t min, int *out)
{
    int64_t v;
    if (reading_number(r, n, min, LIMIT_COUNT_MAX, &v) < 0)
        return PAWL_ECONFIG;
    *out = (int)v;
    return 0;
}

static int read_concurrency(struct reading *r, const struct yaml_node *n)
{
    return read_count(r, n, 1, &limit_of(r)->concurrency);
}

/* "min" stands for 1m and so on; else a length such as 10s. */
static int period(struct sv text, struct dur *out)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"s", 1},       {"sec", 1},  {"second", 1},  {"m", 60},    {"min", 60},
                 {"minute", 60}, {"h", 3600}, {"hour", 3600}, {"d", 86400}, {"day", 86400}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (sv_eq(text, sv_of(units[i].name))) {
            *out = DUR_S(units[i].seconds);
            return 0;
        }
    return dur_parse(text, false, out, NULL);
}

static int rate_of(struct sv text, struct rate_conf *out)
{
    struct sv per, count = sv_cut(text, '/', &per);
    struct rate_conf rate;
    if (!per.p || sv_to_i64(count, 1, LIMIT_COUNT_MAX, &rate.count) < 0 ||
        period(per, &rate.per) < 0 || rate.per.us < 1000 || rate.per.us > DUR_S(86400).us ||
        rate.per.us < rate.count)
        return -1;
    *out = rate;
    return 0;
}

static int read_rate_into(struct reading *r, const struct yaml_node *n, struct rate_conf *out)
{
    struct file_text v;
    char shown[SHORT_TEXT];
    if (reading_scalar(r, n, "a rate", &v) < 0)
        return PAWL_ECONFIG;
    if (rate_of(v.text, out) < 0)
        return load_fail(r->l, n, r->key, "\"%s\" is not a rate; write 200/min, 1/s or 3/10s",
                         short_text(reading_masked(&v), shown));
    str_add(&r->show, reading_masked(&v));
    return 0;
}

static int read_rate(struct reading *r, const struct yaml_node *n)
{
    return read_rate_into(r, n, &limit_of(r)->rate);
}

static int read_burst(struct reading *r, const struct yaml_node *n)
{
    return read_count(r, n, 1, &limit_of(r)->burst);
}

static int read_adaptive(struct reading *r, const struct yaml_node *n)
{
    return reading_bool(r, n, &limit_of(r)->adaptive);
}

static int read_min_rate(struct reading *r, const struct yaml_node *n)
{
    return read_rate_into(r, n, &limit_of(r)->min_rate);
}

static int read_respect(struct reading *r, const struct yaml_node *n)
{
    bool yes;
    if (reading_bool(r, n, &yes) < 0)
        return PAWL_ECONFIG;
    limit_of(r)->ignore_retry_after = !yes;
    return 0;
}

static int read_pause(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "1ms", "1d", false, &limit_of(r)->pause);
}

static int read_max_pause(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "1ms", "1d", false, &limit_of(r)->max_pause);
}

/* ---- the breaker of one limit: the same members and bounds as the section of that name ---- */

static int read_breaker_dur(struct reading *r, const struct yaml_node *n, enum option_id id,
                            struct dur *out)
{
    return reading_dur(r, n, options[id].min, options[id].max, false, out);
}

static int read_breaker_member(struct reading *r, const struct yaml_node *n, struct breaker_conf *b)
{
    static const char *const names[] = {"threshold", "percent", "min_calls",
                                        "window",    "pause",   "max_pause"};
    int64_t percent;
    if (sv_eq(n->name, SV("threshold")))
        return read_count(r, n, 0, &b->threshold);
    if (sv_eq(n->name, SV("min_calls")))
        return read_count(r, n, 1, &b->min_calls);
    if (sv_eq(n->name, SV("window")))
        return read_breaker_dur(r, n, OPTION_breaker_window, &b->window);
    if (sv_eq(n->name, SV("pause")))
        return read_breaker_dur(r, n, OPTION_breaker_pause, &b->pause);
    if (sv_eq(n->name, SV("max_pause")))
        return read_breaker_dur(r, n, OPTION_breaker_max_pause, &b->max_pause);
    if (!sv_eq(n->name, SV("percent")))
        return reading_unknown(r, n, names, ARRAY_LEN(names));
    if (reading_number(r, n, 0, 100, &percent) < 0)
        return PAWL_ECONFIG;
    b->percent = (int)percent;
    return 0;
}

static int read_breaker_members(struct reading *r, const struct yaml_node *n)
{
    size_t end = strlen(r->key);
    str_addc(&r->show, '{');
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        str_addf(&r->show, "%s" SV_FMT ": ", m == n->first ? "" : ", ", SV_ARG(m->name));
        snprintf(r->key + end, sizeof(r->key) - end, ".%.*s",
                 (int)(m->name.n > 60 ? 60 : m->name.n), m->name.p);
        if (read_breaker_member(r, m, &limit_of(r)->breaker) < 0)
            return PAWL_ECONFIG;
        r->key[end] = '\0';
    }
    str_addc(&r->show, '}');
    return 0;
}

static int read_breaker(struct reading *r, const struct yaml_node *n)
{
    struct breaker_conf *b = &limit_of(r)->breaker;
    if (n->type == YAML_TEXT && sv_eq(n->text, SV("none"))) {
        b->threshold = b->percent = 0;
        str_adds(&r->show, "none");
        return 0;
    }
    if (reading_want(r, n, YAML_MAP, "a mapping or none") < 0)
        return PAWL_ECONFIG;
    return read_breaker_members(r, n);
}

/* ---- one entry ---- */

static const struct limit_key {
    const char *name;
    int (*read)(struct reading *r, const struct yaml_node *n);
    const char *doc;
} limit_keys[] = {
#define KEY(name_, read_, type_, bounds_, doc_) {#name_, read_, doc_},
#include "limits.def"
#undef KEY
};

static int unknown_member(struct reading *r, const struct yaml_node *n)
{
    const char *names[ARRAY_LEN(limit_keys)];
    for (size_t i = 0; i < ARRAY_LEN(limit_keys); i++)
        names[i] = limit_keys[i].name;
    return reading_unknown(r, n, names, ARRAY_LEN(limit_keys));
}

static int read_member(struct reading *r, const struct yaml_node *n)
{
    const struct limit_conf *limit = limit_of(r);
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "limits.%s.%.*s",
             limit->name ? short_text(sv_of(limit->name), name) : "?",
             (int)(n->name.n > 60 ? 60 : n->name.n), n->name.p);
    str_clear(&r->show);
    for (size_t i = 0; i < ARRAY_LEN(limit_keys); i++) {
        if (!sv_eq(n->name, sv_of(limit_keys[i].name)))
            continue;
        if (limit_keys[i].read(r, n) < 0)
            return PAWL_ECONFIG;
        if (limit_keys[i].read != read_name)
            reading_remember(r, n, limit_keys[i].doc);
        return 0;
    }
    return unknown_member(r, n);
}

static int64_t interval(struct rate_conf r)
{
    return (r.per.us + r.count - 1) / r.count;
}

/* Members that have no effect together are mistakes. */
static int check_entry(struct reading *r, const struct yaml_node *n)
{
    const struct limit_conf *x = limit_of(r);
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "limits.%s", short_text(sv_of(x->name), name));
    if (x->burst && !x->rate.count)
        return load_fail(r->l, n, r->key, "burst has no effect without rate");
    if (x->adaptive && !x->rate.count)
        return load_fail(r->l, n, r->key, "adaptive has no effect without rate");
    if (x->min_rate.count && !x->adaptive)
        return load_fail(r->l, n, r->key, "min_rate has no effect without adaptive");
    if (x->min_rate.count && interval(x->min_rate) < interval(x->rate))
        return load_fail(r->l, n, r->key, "min_rate is higher than rate");
    if (x->replaces && x->each != LIMIT_EACH_NONE)
        return load_fail(r->l, n, r->key, "replaces is for limits without each");
    if (x->max_pause.us && x->pause.us > x->max_pause.us)
        return load_fail(r->l, n, r->key, "pause is more than max_pause");
    return 0;
}

static int read_limit(struct load *l, const struct yaml_node *n)
{
    struct config *c = l->c;
    if (reading_entry(l, n, "limits", c->n_limits, LIMIT_ENTRIES_MAX) < 0)
        return PAWL_ECONFIG;
    c->limits = mem_realloc(c->limits, c->n_limits + 1, sizeof(*c->limits));
    struct limit_conf *x = &c->limits[c->n_limits++];
    *x = (struct limit_conf){.origin = load_origin(l, n),
                             .breaker = {-1, -1, -1, DUR_NONE, DUR_NONE, DUR_NONE}};
    struct reading_limit one = {.r = {.l = l, .show = STR_INIT(1 << 20)}, .limit = x};
    int rc = reading_members(&one.r, n, "limits", read_member);
    if (rc == 0)
        rc = check_entry(&one.r, n);
    str_done(&one.r.show);
    return rc;
}

int load_limits(struct load *l, const struct yaml_node *n)
{
    l->c->policy_given = true;
    if (yaml_is_null(n))
        return 0;
    if (n->type != YAML_LIST)
        return load_fail(l, n, "limits", "%s; a list of mappings is expected", yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next)
        if (read_limit(l, m) < 0)
            return PAWL_ECONFIG;
    return 0;
}

/* ---- the whole ---- */

static void fill_breaker(struct breaker_conf *b, const struct config *c)
{
    bool given_pause = b->pause.us >= 0, given_max = b->max_pause.us >= 0;
    b->threshold = b->threshold < 0 ? (int)c->breaker_threshold : b->threshold;
    b->percent = b->percent < 0 ? (int)c->breaker_percent : b->percent;
    b->min_calls = b->min_calls < 0 ? (int)c->breaker_min_calls : b->min_calls;
    b->window = b->window.us < 0 ? c->breaker_window : b->window;
    b->pause = given_pause ? b->pause : c->breaker_pause;
    b->max_pause = given_max ? b->max_pause : c->breaker_max_pause;
    if (!given_max && b->max_pause.us < b->pause.us) /* the default gives way */
        b->max_pause = b->pause;
    if (!given_pause && b->pause.us > b->max_pause.us)
        b->pause = b->max_pause;
}

int limits_resolve(struct load *l)
{
    char name[SHORT_TEXT];
    for (size_t i = 0; i < l->c->n_limits; i++) {
        struct limit_conf *x = &l->c->limits[i];
        fill_breaker(&x->breaker, l->c);
        const char *what = NULL;
        if (x->breaker.pause.us > x->breaker.max_pause.us)
            what = "breaker: pause is more than max_pause";
        else if (!x->concurrency && !x->rate.count && !x->breaker.threshold && !x->breaker.percent)
            what = "it limits nothing; concurrency, rate or breaker is expected";
        if (what)
            return err_set(l->err, PAWL_ECONFIG, "%s: limits.%s: %s", x->origin,
                           short_text(sv_of(x->name), name), what);
    }
    return 0;
}

void limits_clear(struct config *c)
{
    for (size_t i = 0; i < c->n_limits; i++) {
        struct limit_conf *x = &c->limits[i];
        free(x->origin);
        free(x->name);
        free(x->queue);
        free(x->kind);
        string_list_clear(&x->hosts);
    }
    free(c->limits);
}
