/* The flags of `limit set`: what is not given stays as it is. */
#include "limits_out.h"

enum { INT_MOST = 1000000 };

static const struct opt rows[] = {LIMIT_OPTS, OPT_END};

bool limit_flags_given(const struct cli *c)
{
    for (const struct opt *o = rows; o->name; o++)
        if (args_has(&c->args, o->name))
            return true;
    return false;
}

static bool says_none(const struct cli *c, const char *name)
{
    const char *text = args_get(&c->args, name);
    return text && !strcmp(text, "none");
}

/* "none" is 0. */
static int read_count(const struct cli *c, const char *name, int *out, struct pawl_err *err)
{
    int64_t v = *out;
    if (says_none(c, name))
        v = 0;
    else if (args_int(&c->args, name, 1, INT_MOST, &v, err) < 0)
        return PAWL_EUSAGE;
    *out = (int)v;
    return 0;
}

static int read_rate(const struct cli *c, const char *name, struct rate *out, struct pawl_err *err)
{
    const char *text = args_get(&c->args, name);
    if (!text)
        return 0;
    if (says_none(c, name)) {
        *out = (struct rate){0};
        return 0;
    }
    if (rate_parse(sv_of(text), out, err) == 0)
        return 0;
    err_wrap(err, "--%s", name);
    return err->code = PAWL_EUSAGE;
}

static int read_percent(const struct cli *c, int *out, struct pawl_err *err)
{
    const char *text = args_get(&c->args, "breaker-rate");
    int64_t v = 0;
    if (!text)
        return 0;
    struct sv number = sv_of(text);
    if (number.n && number.p[number.n - 1] == '%')
        number.n--;
    if (!says_none(c, "breaker-rate") && sv_to_i64(number, 1, 100, &v) < 0)
        return err_set(err, PAWL_EUSAGE, "--breaker-rate is '%s'; 1%% to 100%% is expected", text);
    *out = (int)v;
    return 0;
}

static int read_switch(const struct cli *c, const char *on, const char *off, bool *out,
                       struct pawl_err *err)
{
    if (args_exclude(&c->args, on, off, err) < 0)
        return PAWL_EUSAGE;
    *out = args_has(&c->args, on) || (*out && !args_has(&c->args, off));
    return 0;
}

static size_t count_hosts(struct sv list)
{
    size_t n = 0;
    while (list.p) {
        sv_cut(list, ',', &list);
        n++;
    }
    return n;
}

/* An empty word selects all again. */
static int read_hosts(const struct cli *c, struct arena *a, struct limit_spec *s,
                      struct pawl_err *err)
{
    if (args_exclude(&c->args, "host", "hosts", err) < 0)
        return PAWL_EUSAGE;
    struct sv one = sv_of(args_get(&c->args, "host")), list = sv_of(args_get(&c->args, "hosts"));
    if (!one.p && !list.p)
        return 0;
    struct sv *hosts = arena_zalloc(a, one.p ? 1 : count_hosts(list), sizeof(*hosts));
    size_t n = 0;
    if (one.n)
        hosts[n++] = one;
    while (list.n)
        hosts[n++] = sv_trim(sv_cut(list, ',', &list));
    s->hosts = hosts;
    s->n_hosts = n;
    return 0;
}

static void read_name(const struct cli *c, const char *flag, struct sv *out)
{
    struct sv name = sv_of(args_get(&c->args, flag));
    if (name.p)
        *out = name.n ? name : SV_NONE;
}

static int read_selectors(const struct cli *c, struct arena *a, struct limit_spec *s,
                          struct pawl_err *err)
{
    static const char *const each[] = {"none", "host", "queue", "kind", NULL};
    int chosen = (int)s->each;
    read_name(c, "queue", &s->queue);
    read_name(c, "kind", &s->kind);
    if (read_hosts(c, a, s, err) < 0 || args_choice(&c->args, "each", each, &chosen, err) < 0)
        return PAWL_EUSAGE;
    s->each = (enum limit_each)chosen;
    return read_switch(c, "replaces", "no-replaces", &s->replaces, err);
}

/* A pause beyond its bound lifts the bound, unless that is given too. */
static int read_pauses(const struct cli *c, struct limit_spec *s, struct pawl_err *err)
{
    struct breaker_spec *b = &s->breaker;
    if (args_dur(&c->args, "pause", false, &s->pause, err) < 0 ||
        args_dur(&c->args, "max-pause", false, &s->max_pause, err) < 0 ||
        args_dur(&c->args, "breaker-pause", false, &b->pause, err) < 0)
        return PAWL_EUSAGE;
    if (s->pause.us > s->max_pause.us && !args_has(&c->args, "max-pause"))
        s->max_pause = s->pause;
    if (b->pause.us > b->max_pause.us)
        b->max_pause = b->pause;
    return 0;
}

/* Without a rate there is nothing for a burst or an adaptation to hold on to. */
static void drop_with_rate(const struct cli *c, struct limit_spec *s)
{
    if (s->rate.count)
        return;
    if (!args_has(&c->args, "burst"))
        s->burst = 1;
    if (!args_has(&c->args, "adaptive"))
        s->adaptive = false;
}

int limit_flags(const struct cli *c, struct arena *a, struct limit_spec *spec, struct pawl_err *err)
{
    struct limit_spec s = *spec;
    if (read_selectors(c, a, &s, err) < 0 ||
        read_count(c, "concurrency", &s.concurrency, err) < 0 ||
        read_rate(c, "rate", &s.rate, err) < 0 || read_count(c, "burst", &s.burst, err) < 0 ||
        read_switch(c, "adaptive", "no-adaptive", &s.adaptive, err) < 0 ||
        read_rate(c, "min-rate", &s.min_rate, err) < 0 ||
        read_switch(c, "retry-after", "no-retry-after", &s.respect_retry_after, err) < 0 ||
        read_count(c, "breaker", &s.breaker.threshold, err) < 0 ||
        read_percent(c, &s.breaker.percent, err) < 0 || read_pauses(c, &s, err) < 0)
        return PAWL_EUSAGE;
    if (says_none(c, "breaker") && !args_has(&c->args, "breaker-rate"))
        s.breaker.percent = 0;
    s.burst = s.burst ? s.burst : 1;
    drop_with_rate(c, &s);
    if (!s.adaptive && !args_has(&c->args, "min-rate"))
        s.min_rate = (struct rate){0};
    *spec = s;
    return 0;
}
