#include "policy.h"

#include "json.h"

static struct breaker_spec breaker_of(const struct breaker_conf *b)
{
    return (struct breaker_spec){.threshold = b->threshold,
                                 .percent = b->percent,
                                 .min_calls = b->min_calls,
                                 .window = b->window,
                                 .pause = b->pause,
                                 .max_pause = b->max_pause};
}

static struct rate rate_of(struct rate_conf r)
{
    return (struct rate){.count = r.count, .per = r.per};
}

/* Where only one of the two is given the other's default gives way. */
static void set_pauses(struct limit_spec *s, const struct limit_conf *x)
{
    if (x->pause.us)
        s->pause = x->pause;
    if (x->max_pause.us)
        s->max_pause = x->max_pause;
    if (s->pause.us > s->max_pause.us && x->pause.us)
        s->max_pause = s->pause;
    else if (s->pause.us > s->max_pause.us)
        s->pause = s->max_pause;
}

static void set_hosts(struct limit_spec *s, const struct string_list *hosts, struct arena *a)
{
    struct sv *v = arena_zalloc(a, hosts->n, sizeof(*v));
    for (size_t i = 0; i < hosts->n; i++)
        v[i] = sv_of(hosts->v[i]);
    s->hosts = v;
    s->n_hosts = hosts->n;
}

static struct limit_spec spec_of(const struct limit_conf *x, struct arena *a)
{
    static const enum limit_each each[] = {[LIMIT_EACH_NONE] = EACH_NONE,
                                           [LIMIT_EACH_HOST] = EACH_HOST,
                                           [LIMIT_EACH_QUEUE] = EACH_QUEUE,
                                           [LIMIT_EACH_KIND] = EACH_KIND};
    const struct breaker_spec breaker = breaker_of(&x->breaker);
    struct limit_spec s = limit_default(&breaker);
    s.name = sv_of(x->name);
    s.queue = sv_of(x->queue);
    s.kind = sv_of(x->kind);
    set_hosts(&s, &x->hosts, a);
    s.each = each[x->each];
    s.replaces = x->replaces;
    s.concurrency = x->concurrency;
    s.rate = rate_of(x->rate);
    s.burst = x->burst ? x->burst : s.burst;
    s.adaptive = x->adaptive;
    s.min_rate = rate_of(x->min_rate);
    s.respect_retry_after = !x->ignore_retry_after;
    set_pauses(&s, x);
    return s;
}

static void write_text(const struct policy *p, const struct config *c, struct str *out)
{
    AUTO_STR struct str one = STR_INIT(LIMIT_TEXT_MAX);
    struct jw w = jw_make(out);
    jw_object(&w);
    jw_kstring(&w, "claim_order", sv_of(c->claim_order));
    jw_kint(&w, "priority_aging_us", p->aging.us);
    jw_name(&w, "limits");
    jw_array(&w);
    for (size_t i = 0; i < p->n_limits; i++) {
        str_clear(&one);
        limit_text(&p->limits[i], &one);
        jw_raw(&w, str_sv(&one));
    }
    jw_end_array(&w);
    jw_end_object(&w);
}

int policy_make(const struct config *c, struct arena *a, struct policy *out, struct sv *out_text,
                struct pawl_err *err)
{
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT);
    struct limit_spec *v = arena_zalloc(a, c->n_limits, sizeof(*v));
    struct pawl_err why = {0};
    for (size_t i = 0; i < c->n_limits; i++) {
        v[i] = spec_of(&c->limits[i], a);
        if (limit_check(&v[i], &why) < 0)
            return err_set(err, PAWL_ECONFIG, "%s: limits.%s: %s", c->limits[i].origin,
                           c->limits[i].name, why.msg);
    }
    struct policy p = {.limits = v,
                       .n_limits = c->n_limits,
                       .order = strcmp(c->claim_order, "fair") == 0 ? ORDER_FAIR : ORDER_FIFO,
                       .aging = {c->priority_aging.us > 0 ? c->priority_aging.us : 0}};
    write_text(&p, c, &text);
    *out_text = sv_make(arena_strndup(a, str_cstr(&text), text.len), text.len);
    *out = p;
    return 0;
}
