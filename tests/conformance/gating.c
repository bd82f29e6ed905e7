#include "gating.h"

#include <time.h>

struct limit_spec cap_of(const char *name, enum limit_each each, int concurrency)
{
    struct limit_spec s = limit_default(NULL);
    s.name = sv_of(name);
    s.each = each;
    s.concurrency = concurrency;
    s.breaker = (struct breaker_spec){0};
    return s;
}

struct limit_spec breaker_of(const char *name, int threshold, struct dur pause)
{
    struct limit_spec s = limit_default(NULL);
    s.name = sv_of(name);
    s.breaker.threshold = threshold;
    s.breaker.percent = 0;
    s.breaker.pause = pause;
    s.breaker.max_pause = DUR_US(pause.us * 8);
    return s;
}

void set_limit(struct fixture *f, const struct limit_spec *s)
{
    enum limit_outcome out;
    OK(f->s->ops->limit_act(f->s, LIMIT_SET, s, &out, &f->e));
    assert_int_equal(out, LIMIT_OK);
}

void unset_limit(struct fixture *f, const char *name)
{
    enum limit_outcome out;
    struct limit_spec s = {.name = sv_of(name)};
    OK(f->s->ops->limit_act(f->s, LIMIT_UNSET, &s, &out, &f->e));
    assert_int_equal(out, LIMIT_OK);
}

void set_order(struct fixture *f, enum claim_order order)
{
    struct policy p = {.order = order};
    bool changed;
    OK(f->s->ops->policy_apply(f->s, &p, order == ORDER_FAIR ? SV("fair") : SV("fifo"), &changed,
                               &f->e));
    assert_true(changed);
}

job_id add_hosted(struct fixture *f, const char *host, int priority, int n)
{
    AUTO_FREE struct job_spec *v = mem_zalloc((size_t)n, sizeof(*v));
    AUTO_FREE struct add_result *r = mem_zalloc((size_t)n, sizeof(*r));
    for (int i = 0; i < n; i++) {
        v[i] = spec("q", "k", priority);
        v[i].host = sv_of(host);
    }
    OK(store_enqueue(f->s, v, (size_t)n, DUPLICATE_SKIP, r, &f->e));
    return r[0].id;
}

job_id add_locked(struct fixture *f, const char *lock, int priority)
{
    struct job_spec s = spec("q", "k", priority);
    s.lock = sv_of(lock);
    return add(f, &s);
}

void nap(struct dur time)
{
    struct timespec t = {time.us / 1000000, time.us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

struct claim_result take(struct fixture *f, const struct session *w, int want)
{
    struct claim_result r = {0};
    for (int i = 0; i < 200; i++) {
        r = claim(f, w, "k", want);
        if (r.n || !r.busy)
            break;
        nap(DUR_MS(5));
    }
    return r;
}

int take_for(struct fixture *f, const struct session *w, int want, struct dur time)
{
    int got = 0;
    int64_t until = f->s->ops->now(f->s).us + time.us;
    while (got < want && f->s->ops->now(f->s).us < until) {
        got += (int)take(f, w, want - got).n;
        nap(DUR_MS(1));
    }
    return got;
}

struct seek {
    struct arena *a;
    struct gate_view found;
    bool any;
};

static bool keep_gate(void *arg, const struct gate_view *g)
{
    struct seek *s = arg;
    s->found = *g;
    s->found.limit = s->found.value = SV_NONE;
    if (g->why.p)
        s->found.why.p = arena_strndup(s->a, g->why.p, g->why.n);
    s->any = true;
    return true;
}

static struct seek look(struct fixture *f, const char *limit, const char *value)
{
    struct gate_filter filter = {.limit = sv_of(limit), .value = sv_of(value)};
    struct seek s = {.a = &f->a};
    OK(f->s->ops->gates(f->s, &filter, keep_gate, &s, &f->e));
    return s;
}

struct gate_view gate(struct fixture *f, const char *limit, const char *value)
{
    struct seek s = look(f, limit, value);
    if (!s.any)
        fail_msg("no gate of %s for \"%s\"", limit, value);
    return s.found;
}

int used(struct fixture *f, const char *limit, const char *value)
{
    struct seek s = look(f, limit, value);
    return s.any ? s.found.used : 0;
}

static void fail_as(struct fixture *f, const struct lease *l, struct settle v)
{
    struct settle full = settle_of(l, OUTCOME_RETRY);
    full.cls = CLASS_TRANSIENT;
    full.error = SV("connection refused");
    full.refund_attempt = full.count_transient = true;
    full.delay = v.delay;
    full.reason = WAIT_BACKOFF;
    full.throttled = v.throttled;
    full.retry_after = v.retry_after;
    assert_int_equal(settle(f, &full), SETTLE_OK);
}

void fail_transient(struct fixture *f, const struct lease *l, struct dur delay)
{
    fail_as(f, l, (struct settle){.delay = delay, .retry_after = {-1}});
}

void fail_throttled(struct fixture *f, const struct lease *l, struct dur retry_after)
{
    fail_as(f, l, (struct settle){.throttled = true, .retry_after = retry_after});
}

static bool count_one(void *arg, const struct event_view *e)
{
    (void)e;
    ++*(int *)arg;
    return true;
}

int n_all(struct fixture *f, enum event_type type)
{
    int n = 0;
    struct event_filter filter = {.types = 1u << type};
    OK(f->s->ops->events(f->s, &filter, count_one, &n, &f->e));
    return n;
}

/* ---- every end of a lease ---- */

struct ending {
    begin_fn *begin;
    const char *limit, *value;
};

static void assert_freed(struct fixture *f, const struct ending *e)
{
    assert_int_equal(used(f, e->limit, e->value), 0);
    assert_clean(f);
}

static void end_by_settling(struct fixture *f, const struct session *w, const struct ending *e)
{
    const enum outcome ways[] = {OUTCOME_DONE,  OUTCOME_SKIPPED,  OUTCOME_FAILED,
                                 OUTCOME_RETRY, OUTCOME_RELEASED, OUTCOME_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct lease l = e->begin(f, w);
        settle_ok(f, &l, ways[i]);
        assert_freed(f, e);
    }
}

static void end_by_operator(struct fixture *f, const struct session *w, const struct ending *e)
{
    struct lease l = e->begin(f, w); /* taken away */
    struct act_request force = {
        .act = ACT_RELEASE, .select = {.ids = &l.id, .n_ids = 1}, .force = true};
    struct act_result done;
    OK(f->s->ops->act(f->s, &force, &done, &f->e));
    assert_freed(f, e);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    l = e->begin(f, w); /* asked to end */
    act(f, ACT_CANCEL, l.id);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_freed(f, e);
}

static void end_with_the_session(struct fixture *f, struct session *w, const struct ending *e)
{
    e->begin(f, w);
    end(f, w);
    assert_freed(f, e);
    struct session dead = start(f, "dead"), other = start(f, "other");
    e->begin(f, &dead);
    expire(f, &dead);
    nap(DUR_MS(2));
    sweep(f, &other, 5);
    assert_freed(f, e);
    e->begin(f, &other);
    vanish(&dead);
    end(f, &other);
}

void end_in_every_way(struct fixture *f, begin_fn *begin, const char *limit, const char *value)
{
    const struct ending e = {begin, limit, value};
    struct session w = start(f, "w");
    end_by_settling(f, &w, &e);
    end_by_operator(f, &w, &e);
    end_with_the_session(f, &w, &e);
}
