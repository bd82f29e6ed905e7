/* A limit as text: one JSON object with the words of the configuration file. */
#include "limit.h"

#include "json.h"

static const char *const each_names[] = {
    [EACH_HOST] = "host", [EACH_QUEUE] = "queue", [EACH_KIND] = "kind"};

const char *limit_each_name(enum limit_each e)
{
    return each_names[e];
}

static int each_parse(struct sv text, enum limit_each *out)
{
    for (size_t i = EACH_HOST; i < ARRAY_LEN(each_names); i++)
        if (sv_eq(text, sv_of(each_names[i]))) {
            *out = (enum limit_each)i;
            return 0;
        }
    return -1;
}

/* ---- writing ---- */

static void write_dur(struct jw *w, const char *name, struct dur d)
{
    AUTO_STR struct str s = STR_INIT(64);
    dur_format(d, &s);
    jw_kstring(w, name, str_sv(&s));
}

static void write_rate(struct jw *w, const char *name, struct rate r)
{
    AUTO_STR struct str s = STR_INIT(64);
    if (!r.count)
        return;
    rate_text(r, &s);
    jw_kstring(w, name, str_sv(&s));
}

static void write_selectors(struct jw *w, const struct limit_spec *s)
{
    if (s->queue.p)
        jw_kstring(w, "queue", s->queue);
    if (s->kind.p)
        jw_kstring(w, "kind", s->kind);
    if (s->n_hosts) {
        jw_name(w, "hosts");
        jw_array(w);
        for (size_t i = 0; i < s->n_hosts; i++)
            jw_string(w, s->hosts[i]);
        jw_end_array(w);
    }
    if (s->each != EACH_NONE)
        jw_kstring(w, "each", sv_of(each_names[s->each]));
    if (s->replaces)
        jw_kbool(w, "replaces", true);
}

static void write_breaker(struct jw *w, const struct breaker_spec *b)
{
    jw_name(w, "breaker");
    if (!b->threshold && !b->percent) {
        jw_string(w, SV("none"));
        return;
    }
    jw_object(w);
    jw_kint(w, "threshold", b->threshold);
    jw_kint(w, "percent", b->percent);
    jw_kint(w, "min_calls", b->min_calls);
    write_dur(w, "window", b->window);
    write_dur(w, "pause", b->pause);
    write_dur(w, "max_pause", b->max_pause);
    jw_end_object(w);
}

void limit_text(const struct limit_spec *s, struct str *out)
{
    struct jw w = jw_make(out);
    jw_object(&w);
    jw_kstring(&w, "name", s->name);
    write_selectors(&w, s);
    if (s->concurrency)
        jw_kint(&w, "concurrency", s->concurrency);
    write_rate(&w, "rate", s->rate);
    if (s->burst > 1)
        jw_kint(&w, "burst", s->burst);
    if (s->adaptive)
        jw_kbool(&w, "adaptive", true);
    write_rate(&w, "min_rate", s->min_rate);
    jw_kbool(&w, "respect_retry_after", s->respect_retry_after);
    write_dur(&w, "pause", s->pause);
    write_dur(&w, "max_pause", s->max_pause);
    write_breaker(&w, &s->breaker);
    jw_end_object(&w);
}

/* ---- reading ---- */

struct reading {
    const struct json *doc;
    struct arena *arena;
    struct limit_spec *spec;
    struct pawl_err *err;
    const char *member;
};

static int refuse(struct reading *r, uint32_t at)
{
    return err_set(r->err, PAWL_EINPUT, "limit: member \"%s\" is " SV_FMT, r->member,
                   SV_ARG(json_source(r->doc, at)));
}

static int read_text(struct reading *r, uint32_t at, struct sv *out)
{
    if (json_type(r->doc, at) != JSON_STRING)
        return refuse(r, at);
    struct sv s = json_string(r->doc, at, r->arena);
    *out = sv_make(arena_strndup(r->arena, s.p, s.n), s.n);
    return 0;
}

static int read_int(struct reading *r, uint32_t at, int *out)
{
    int64_t v;
    if (json_i64(r->doc, at, 0, INT32_MAX, &v) < 0)
        return refuse(r, at);
    *out = (int)v;
    return 0;
}

static int read_bool(struct reading *r, uint32_t at, bool *out)
{
    if (json_type(r->doc, at) != JSON_BOOL)
        return refuse(r, at);
    *out = json_is_true(r->doc, at);
    return 0;
}

static int read_dur(struct reading *r, uint32_t at, struct dur *out)
{
    struct sv text;
    if (read_text(r, at, &text) < 0)
        return r->err->code;
    return dur_parse(text, false, out, r->err);
}

static int read_rate(struct reading *r, uint32_t at, struct rate *out)
{
    struct sv text;
    if (read_text(r, at, &text) < 0)
        return r->err->code;
    return rate_parse(text, out, r->err);
}

static int read_each(struct reading *r, uint32_t at)
{
    struct sv text;
    if (read_text(r, at, &text) < 0)
        return r->err->code;
    return each_parse(text, &r->spec->each) < 0 ? refuse(r, at) : 0;
}

static int read_hosts(struct reading *r, uint32_t at)
{
    if (json_type(r->doc, at) != JSON_ARRAY)
        return refuse(r, at);
    size_t n = 0;
    struct sv *v = arena_alloc(r->arena, (r->doc->nodes[at].count + 1) * sizeof(*v));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at); k = json_after(r->doc, k))
        if (read_text(r, k, &v[n++]) < 0)
            return r->err->code;
    r->spec->hosts = v;
    r->spec->n_hosts = n;
    return 0;
}

static int read_breaker_member(struct reading *r, struct sv name, uint32_t at)
{
    struct breaker_spec *b = &r->spec->breaker;
    const struct {
        const char *name;
        int *number;
        struct dur *time;
    } members[] = {
        {"threshold", &b->threshold, NULL}, {"percent", &b->percent, NULL},
        {"min_calls", &b->min_calls, NULL}, {"window", NULL, &b->window},
        {"pause", NULL, &b->pause},         {"max_pause", NULL, &b->max_pause},
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (sv_eq(name, sv_of(members[i].name)))
            return members[i].number ? read_int(r, at, members[i].number)
                                     : read_dur(r, at, members[i].time);
    return refuse(r, at);
}

static int read_breaker(struct reading *r, uint32_t at)
{
    if (json_type(r->doc, at) == JSON_STRING &&
        sv_eq(json_string(r->doc, at, r->arena), SV("none"))) {
        r->spec->breaker.threshold = r->spec->breaker.percent = 0;
        return 0;
    }
    if (json_type(r->doc, at) != JSON_OBJECT)
        return refuse(r, at);
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at);
         k = json_after(r->doc, k + 1))
        if (read_breaker_member(r, json_string(r->doc, k, r->arena), k + 1) < 0)
            return r->err->code;
    return 0;
}

static int read_member(struct reading *r, struct sv name, uint32_t at)
{
    struct limit_spec *s = r->spec;
    const struct {
        const char *name;
        struct sv *text;
        int *number;
        bool *flag;
        struct dur *time;
        struct rate *rate;
        int (*other)(struct reading *r, uint32_t at);
    } members[] = {
        {.name = "name", .text = &s->name},
        {.name = "queue", .text = &s->queue},
        {.name = "kind", .text = &s->kind},
        {.name = "hosts", .other = read_hosts},
        {.name = "each", .other = read_each},
        {.name = "replaces", .flag = &s->replaces},
        {.name = "concurrency", .number = &s->concurrency},
        {.name = "rate", .rate = &s->rate},
        {.name = "burst", .number = &s->burst},
        {.name = "adaptive", .flag = &s->adaptive},
        {.name = "min_rate", .rate = &s->min_rate},
        {.name = "respect_retry_after", .flag = &s->respect_retry_after},
        {.name = "pause", .time = &s->pause},
        {.name = "max_pause", .time = &s->max_pause},
        {.name = "breaker", .other = read_breaker},
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (!sv_eq(name, sv_of(members[i].name)))
            continue;
        r->member = members[i].name;
        if (members[i].text)
            return read_text(r, at, members[i].text);
        if (members[i].number)
            return read_int(r, at, members[i].number);
        if (members[i].flag)
            return read_bool(r, at, members[i].flag);
        if (members[i].time)
            return read_dur(r, at, members[i].time);
        return members[i].rate ? read_rate(r, at, members[i].rate) : members[i].other(r, at);
    }
    return err_set(r->err, PAWL_EINPUT, "limit: unknown member \"" SV_FMT "\"", SV_ARG(name));
}

int limit_read(struct sv text, struct arena *a, struct limit_spec *out, struct pawl_err *err)
{
    AUTO_JSON struct json doc = {0};
    struct limit_spec spec = limit_default(NULL);
    struct reading r = {&doc, a, &spec, err, ""};
    if (json_parse(&doc, text, err) < 0)
        return err->code;
    if (json_type(&doc, 0) != JSON_OBJECT)
        return err_set(err, PAWL_EINPUT, "limit: an object is expected");
    for (uint32_t k = json_first(&doc, 0); k != json_end(&doc, 0); k = json_after(&doc, k + 1))
        if (read_member(&r, json_string(&doc, k, a), k + 1) < 0)
            return err->code;
    if (limit_check(&spec, err) < 0)
        return err->code;
    *out = spec;
    return 0;
}
