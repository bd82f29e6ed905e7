#include "limits_out.h"

int limits_load(struct cli *c, struct arena *a, struct limits *out, struct pawl_err *err)
{
    struct limits l = {0};
    size_t n;
    int rc = c->store->ops->policy(c->store, a, &l.v, &n, &l.order, &l.aging, err);
    if (rc < 0)
        return rc;
    l.unset = arena_zalloc(a, n + 1, sizeof(*l.unset));
    for (size_t i = 0; i < n; i++) {
        if (l.v[i].unset)
            l.unset[l.n_unset++] = l.v[i].spec.name;
        else
            l.v[l.n++] = l.v[i];
    }
    *out = l;
    return 0;
}

bool limits_unset(const struct limits *l, struct sv name)
{
    for (size_t i = 0; i < l->n_unset; i++)
        if (sv_eq(l->unset[i], name))
            return true;
    return false;
}

struct breaker_spec limits_breaker(const struct config *config)
{
    return (struct breaker_spec){.threshold = (int)config->breaker_threshold,
                                 .percent = (int)config->breaker_percent,
                                 .min_calls = (int)config->breaker_min_calls,
                                 .window = config->breaker_window,
                                 .pause = config->breaker_pause,
                                 .max_pause = config->breaker_max_pause};
}

const struct limit_view *limits_find(const struct limits *l, struct sv name)
{
    for (size_t i = 0; i < l->n; i++)
        if (sv_eq(l->v[i].spec.name, name))
            return &l->v[i];
    return NULL;
}

int limit_unknown(const struct limits *l, const char *name, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a);
    const char **names = arena_zalloc(&a, l->n + 1, sizeof(*names));
    for (size_t i = 0; i < l->n; i++)
        names[i] = arena_strndup(&a, l->v[i].spec.name.p, l->v[i].spec.name.n);
    const char *near = sv_nearest(sv_of(name), names, l->n);
    err_set(err, PAWL_ENOTFOUND, "no limit named '%s'", name);
    if (near)
        err_hint(err, "did you mean '%s'?", near);
    else
        err_hint(err, "'pawl limit list' lists them");
    arena_done(&a);
    return PAWL_ENOTFOUND;
}

/* ---- words ---- */

static void put_part(struct str *out, size_t start, const char *word, struct sv name)
{
    str_addf(out, "%s%s" SV_FMT, out->len > start ? ", " : "", word, SV_ARG(name));
}

void limit_covers(const struct limit_spec *s, struct str *out)
{
    size_t start = out->len;
    if (s->each != EACH_NONE)
        put_part(out, start, "each ", sv_of(limit_each_name(s->each)));
    if (s->queue.p)
        put_part(out, start, "queue ", s->queue);
    if (s->kind.p)
        put_part(out, start, "kind ", s->kind);
    for (size_t i = 0; i < s->n_hosts; i++)
        put_part(out, start, i ? "" : s->n_hosts > 1 ? "hosts " : "host ", s->hosts[i]);
    if (out->len == start)
        str_adds(out, "all jobs");
    if (s->replaces)
        str_adds(out, " (replaces each)");
}

static void put_rate(const struct limit_spec *s, struct str *out)
{
    rate_text(s->rate, out);
    if (s->burst > 1)
        str_addf(out, " burst %d", s->burst);
    if (s->adaptive)
        str_adds(out, " adaptive");
}

static void put_breaker(const struct breaker_spec *b, struct str *out)
{
    str_adds(out, "breaker ");
    if (b->threshold)
        str_addf(out, "after %d", b->threshold);
    if (b->percent)
        str_addf(out, "%sat %d%%", b->threshold ? " or " : "", b->percent);
    str_adds(out, " for ");
    dur_format(b->pause, out);
}

void limit_says(const struct limit_spec *s, struct str *out)
{
    const char *sep = "";
    if (s->concurrency) {
        str_addf(out, "%d at a time", s->concurrency);
        sep = ", ";
    }
    if (s->rate.count) {
        str_adds(out, sep);
        put_rate(s, out);
        sep = ", ";
    }
    if (s->breaker.threshold || s->breaker.percent) {
        str_adds(out, sep);
        put_breaker(&s->breaker, out);
    }
}
