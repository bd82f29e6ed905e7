/* Limits, gates, locks, duties, history: operations with arguments by chance, on both sides.
 * Whatever time decides is decided by hours or by nothing, so that both sides decide alike. */
#include "sides.h"

#include <stdio.h>
#include <unistd.h>

#define HOUR DUR_S(3600)

static const char *const limit_names[] = {"all", "red", "hosts", "each", "kinds"};
static const char *const lock_names[] = {"door", "tür", "x"};

struct sv pick_lock(struct sides *r)
{
    return sv_of(lock_names[roll(r, (int)ARRAY_LEN(lock_names))]);
}

/* ---- limits ---- */

static void pick_breaker(struct sides *r, struct breaker_spec *b)
{
    *b = (struct breaker_spec){.threshold = roll(r, 3) ? 1 + roll(r, 4) : 0,
                               .percent = roll(r, 4) ? 0 : 50,
                               .min_calls = 2 + roll(r, 3),
                               .window = HOUR,
                               .pause = HOUR,
                               .max_pause = DUR_S(4 * 3600)};
}

static void pick_rate(struct sides *r, struct limit_spec *s)
{
    s->rate = (struct rate){1, HOUR};
    s->burst = 1 + roll(r, 6);
    s->adaptive = roll(r, 3) == 0;
    if (s->adaptive)
        s->min_rate = s->rate; /* how far it is raised depends on the moment */
}

/* One of few, so that they meet. */
static struct limit_spec pick_limit(struct sides *r, int which)
{
    static const struct sv hosts[] = {
        {"a.*", 3}, {"*", 1}, {"!b.example", 10}, {"!127.*", 6}, {"1*", 2}};
    struct limit_spec s = limit_default(NULL);
    s.name = sv_of(limit_names[which]);
    pick_breaker(r, &s.breaker);
    s.pause = s.max_pause = HOUR;
    s.respect_retry_after = roll(r, 4) != 0;
    if (which == 1)
        s.queue = roll(r, 3) ? SV("red") : pick_queue(r);
    if (which == 2) {
        s.hosts = &hosts[roll(r, 4)];
        s.n_hosts = 1 + (size_t)roll(r, 2);
        s.replaces = roll(r, 2);
    }
    if (which == 3)
        s.each = roll(r, 3) ? EACH_HOST : roll(r, 2) ? EACH_QUEUE : EACH_KIND;
    if (which == 4)
        s.kind = sv_of(kind_names[roll(r, 3)]);
    if (roll(r, 4))
        s.concurrency = 1 + roll(r, which ? 4 : 12);
    if (roll(r, 4) == 0)
        pick_rate(r, &s);
    if (!s.concurrency && !s.rate.count && !s.breaker.threshold && !s.breaker.percent)
        s.concurrency = 3;
    return s;
}

static void say_limit(struct sides *r, const struct limit_spec *s)
{
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    limit_text(s, &text);
    say(r, " %s", str_cstr(&text));
}

static void op_limit_act(struct sides *r)
{
    enum limit_act act = (enum limit_act)roll(r, 3);
    struct limit_spec s = pick_limit(r, roll(r, (int)ARRAY_LEN(limit_names)));
    if (roll(r, 40) == 0)
        s.burst = 0; /* out of bounds */
    say(r, "limit_act %d", act);
    say_limit(r, &s);
    counted(r, OP_limit_act);
    EACH_SIDE(r, d)
    {
        enum limit_outcome out = (enum limit_outcome) - 1;
        answer(d, d->s->ops->limit_act(d->s, act, &s, &out, &d->e));
        str_addf(&d->text, "%d\n", (int)out);
    }
}

static void op_policy_apply(struct sides *r)
{
    struct limit_spec v[ARRAY_LEN(limit_names)];
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    struct policy p = {.limits = v, .order = roll(r, 3) ? ORDER_FIFO : ORDER_FAIR};
    p.aging = roll(r, 3) ? (struct dur){0} : LONG_TIME;
    for (int i = 0; i < (int)ARRAY_LEN(limit_names); i++)
        if (roll(r, 4) == 0)
            v[p.n_limits++] = pick_limit(r, (int)ARRAY_LEN(limit_names) - 1 - i);
    bool nothing = roll(r, 8) == 0; /* is configured */
    say(r, "policy_apply nothing %d order %d aging %lld", nothing, p.order, (long long)p.aging.us);
    str_addf(&text, "%d %lld", p.order, (long long)p.aging.us);
    for (size_t i = 0; i < p.n_limits; i++) {
        say_limit(r, &v[i]);
        limit_text(&v[i], &text);
    }
    counted(r, OP_policy_apply);
    EACH_SIDE(r, d)
    {
        bool changed = false;
        if (nothing)
            answer(d, d->s->ops->policy_apply(d->s, NULL, SV_NONE, &changed, &d->e));
        else
            answer(d, d->s->ops->policy_apply(d->s, &p, str_sv(&text), &changed, &d->e));
        str_addf(&d->text, "%d\n", changed);
    }
}

void show_policy(struct sides *r)
{
    counted(r, OP_policy);
    EACH_SIDE(r, d)
    {
        struct limit_view *v = NULL;
        size_t n = 0;
        enum claim_order order = ORDER_FIFO;
        struct dur aging = {0};
        str_adds(&d->text, "policy\n");
        if (answer(d, d->s->ops->policy(d->s, &d->a, &v, &n, &order, &aging, &d->e)) < 0)
            continue;
        str_addf(&d->text, "order %d aging %lld\n", order, (long long)aging.us);
        for (size_t i = 0; i < n; i++) {
            if (v[i].unset)
                str_addf(&d->text, "unset " SV_FMT, SV_ARG(v[i].spec.name));
            else
                limit_text(&v[i].spec, &d->text);
            str_addf(&d->text, " %d %d %lld\n", v[i].by_operator, v[i].in_config,
                     (long long)mask_wall(r, v[i].changed_at).us);
        }
    }
}

/* ---- gates ---- */

static long long masked(const struct sides *r, int64_t t)
{
    return t == INT64_MAX ? -1 : (long long)mask_wall(r, (struct wall){t}).us;
}

/* One that nothing has gone through may exist on one store and not yet on the other. */
static bool used_ever(const struct gate_view *g)
{
    const struct gate_state *s = &g->state;
    return g->used || s->tat || s->pace_us || s->held_until || s->held_n || s->breaker ||
           s->since || s->failures || s->epoch || s->window_calls || s->cut_at;
}

static void add_gate(const struct sides *r, struct side *d, const struct gate_view *g)
{
    const struct gate_state *s = &g->state;
    str_addf(&d->text, "gate " SV_FMT " '" SV_FMT "' cap %d used %d room %d why %d until %lld",
             SV_ARG(g->limit), SV_ARG(g->value), g->params.cap, g->used, g->room.n, g->room.why,
             masked(r, g->room.until));
    str_addf(
        &d->text, " tat %lld interval %lld cut %lld raised %lld held %lld at %lld n %d asked %d",
        masked(r, s->tat), (long long)s->interval_us, masked(r, s->cut_at), masked(r, s->raised_at),
        masked(r, s->held_until), masked(r, s->held_at), s->held_n, s->held_asked);
    str_addf(&d->text, " breaker %d since %lld until %lld failures %d opens %d epoch %lld",
             s->breaker, masked(r, s->since), masked(r, s->until), s->failures, s->opens,
             (long long)s->epoch);
    str_addf(&d->text, " pace %lld", (long long)s->pace_us);
    str_addf(&d->text, " probe %lld/%lld window %lld %d %d why %d " SV_FMT "\n",
             (long long)ids_number(&d->jobs, s->probe_job), (long long)s->probe_fence,
             masked(r, s->window_at), s->window_calls, s->window_failures, g->why.p != NULL,
             SV_ARG(g->why));
}

static bool look_at_gate(void *arg, const struct gate_view *g)
{
    struct looking *l = arg;
    if (used_ever(g))
        add_gate(l->r, l->d, g);
    return true;
}

void show_gates(struct sides *r, const struct gate_filter *f)
{
    counted(r, OP_gates);
    EACH_SIDE(r, d)
    {
        struct looking l = {.r = r, .d = d};
        str_adds(&d->text, "gates\n");
        answer(d, d->s->ops->gates(d->s, f, look_at_gate, &l, &d->e));
    }
}

/* A gate of the first side by chance: it exists on the other too. */
struct picking {
    struct sides *r;
    int n;
    char limit[16], value[32];
};

static bool pick_gate(void *arg, const struct gate_view *g)
{
    struct picking *p = arg;
    if (!used_ever(g) || roll(p->r, ++p->n))
        return true;
    snprintf(p->limit, sizeof(p->limit), SV_FMT, SV_ARG(g->limit));
    snprintf(p->value, sizeof(p->value), SV_FMT, SV_ARG(g->value));
    return true;
}

static void ask_gates(struct sides *r)
{
    const struct gate_filter f = {
        .limit = roll(r, 3) ? SV_NONE : sv_of(limit_names[roll(r, (int)ARRAY_LEN(limit_names))]),
        .value = roll(r, 6)   ? SV_NONE
                 : roll(r, 2) ? SV("")
                              : SV("a.example"),
        .shut = roll(r, 3) == 0,
        .breaker = roll(r, 3) == 0};
    say(r, "gates '" SV_FMT "' '" SV_FMT "' shut %d breaker %d", SV_ARG(f.limit), SV_ARG(f.value),
        f.shut, f.breaker);
    show_gates(r, &f);
}

/* ---- other hosts ---- */

/* A running job, now and then under a fence that it has no more. */
static struct lease_ref pick_lease(struct sides *r)
{
    const struct known *j = pick_in(r, JOB_RUNNING);
    struct lease_ref ref = {{j ? j->id : pick_job(r)}, {j ? j->fence : 1}};
    ref.fence.v += roll(r, 8) == 0;
    return ref;
}

static void op_admit(struct sides *r)
{
    struct lease_ref ref = pick_lease(r);
    struct sv host = pick_peer(r);
    say(r, "admit %lld/%lld " SV_FMT, (long long)ref.id.v, (long long)ref.fence.v, SV_ARG(host));
    counted(r, OP_admit);
    EACH_SIDE(r, d)
    {
        struct lease_ref here = {{ids_native(&d->jobs, ref.id.v)}, ref.fence};
        struct admission out = {0};
        answer(d, d->s->ops->admit(d->s, &here, host, &d->a, &out, &d->e));
        str_addf(&d->text, "admission %d wait %lld " SV_FMT "\n", (int)out.outcome,
                 (long long)mask_left(out.wait), SV_ARG(out.gate));
    }
}

static void op_pace(struct sides *r)
{
    struct lease_ref ref = pick_lease(r);
    struct sv host = pick_peer(r);
    const struct dur apart = roll(r, 3) ? DUR_US(0) : roll(r, 2) ? HOUR : DUR_US(2 * HOUR.us);
    say(r, "pace %lld/%lld " SV_FMT " %lld", (long long)ref.id.v, (long long)ref.fence.v,
        SV_ARG(host), (long long)apart.us);
    counted(r, OP_pace);
    EACH_SIDE(r, d)
    {
        struct lease_ref here = {{ids_native(&d->jobs, ref.id.v)}, ref.fence};
        int n = -1;
        answer(d, d->s->ops->pace(d->s, &here, host, apart, &n, &d->e));
        str_addf(&d->text, "paced %d\n", n);
    }
}

/* Not in a group, whose time stands still in one of the stores: whether a lease is older than its
 * gate's breaker would depend on that. */
static void op_breaker_act(struct sides *r)
{
    struct gate_filter f = {0};
    struct picking p = {.r = r};
    struct store *first = r->side[0].s;
    enum breaker_act act = (enum breaker_act)roll(r, 3);
    struct dur pause = roll(r, 2) ? DUR_US(1) : roll(r, 2) ? HOUR : (struct dur){0};
    struct sv reason = roll(r, 2) ? SV("said \"so\"") : SV_NONE;
    if (first->ops->gates(first, &f, pick_gate, &p, &r->side[0].e) < 0 || !p.n)
        snprintf(p.limit, sizeof(p.limit), "nobody's");
    f = (struct gate_filter){.limit = sv_of(p.limit), .value = sv_of(p.value)};
    say(r, "breaker_act %d %s '%s' pause %lld reason %d", act, p.limit, p.value,
        (long long)pause.us, reason.p != NULL);
    counted(r, OP_breaker_act);
    EACH_SIDE(r, d)
    {
        int n = -1;
        answer(d, d->s->ops->breaker_act(d->s, &f, act, pause, reason, &n, &d->e));
        str_addf(&d->text, "%d\n", n);
    }
    usleep(200);
}

/* ---- locks ---- */

static void add_lock(const struct sides *r, struct side *d, const struct lock_view *l)
{
    str_addf(&d->text,
             "lock " SV_FMT " %lld/%lld worker " SV_FMT " %lld %lld waiting %lld next %lld\n",
             SV_ARG(l->key), (long long)ids_number(&d->jobs, l->holder.id.v),
             (long long)l->holder.fence.v, SV_ARG(l->worker), (long long)mask_wall(r, l->since).us,
             (long long)mask_wall(r, l->until).us, (long long)l->waiting,
             (long long)ids_number(&d->jobs, l->next.v));
}

static bool look_at_lock(void *arg, const struct lock_view *v)
{
    struct looking *l = arg;
    add_lock(l->r, l->d, v);
    return true;
}

void show_locks(struct sides *r, struct sv key)
{
    counted(r, OP_locks);
    EACH_SIDE(r, d)
    {
        struct looking l = {.r = r, .d = d};
        str_adds(&d->text, "locks\n");
        answer(d, d->s->ops->locks(d->s, key, look_at_lock, &l, &d->e));
    }
}

static void op_lock_release(struct sides *r)
{
    struct sv key = pick_lock(r), reason = roll(r, 2) ? SV("stuck") : SV_NONE;
    bool force = roll(r, 2);
    say(r, "lock_release " SV_FMT " force %d reason %d", SV_ARG(key), force, reason.p != NULL);
    counted(r, OP_lock_release);
    EACH_SIDE(r, d)
    {
        enum lock_outcome out = (enum lock_outcome) - 1;
        struct lease_ref holder = {0};
        answer(d, d->s->ops->lock_release(d->s, key, force, reason, &out, &holder, &d->e));
        str_addf(&d->text, "%d %lld/%lld\n", (int)out, (long long)ids_number(&d->jobs, holder.id.v),
                 (long long)holder.fence.v);
    }
}

/* ---- why a job does not run ---- */

static int compare_numbers(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Which five of many have been there longest depends on the moment. */
static void add_holders(struct side *d, const struct gate_view *g)
{
    int64_t v[8];
    size_t n = g->n_holders < 5 ? g->n_holders : 0;
    str_addf(&d->text, "  holders %zu:", g->n_holders);
    for (size_t i = 0; i < n; i++)
        v[i] = ids_number(&d->jobs, g->holders[i].id.v) * 1000000 + g->holders[i].fence.v;
    qsort(v, n, sizeof(*v), compare_numbers);
    for (size_t i = 0; i < n; i++)
        str_addf(&d->text, " %lld", (long long)v[i]);
    str_addc(&d->text, '\n');
}

/* Whose turn a lock is one store decides with the next claim: places are told where none is. */
static void add_explained(struct sides *r, struct side *d, const struct explain_view *v)
{
    str_addf(&d->text, "state %s paused %d %lld", job_state_name(v->job.state), v->paused,
             (long long)mask_wall(r, v->paused_at).us);
    if (!sv_eq(v->job.queue, SV("locked")))
        str_addf(&d->text, " position %lld %d", (long long)v->position, v->position_more);
    str_addc(&d->text, '\n');
    for (size_t i = 0; i < v->n_gates; i++) {
        add_gate(r, d, &v->gates[i]);
        add_holders(d, &v->gates[i]);
    }
    if (v->lock.key.p)
        add_lock(r, d, &v->lock);
    for (size_t i = 0; i < v->n_sessions; i++)
        str_addf(&d->text, "session " SV_FMT " alive %d " SV_FMT "\n", SV_ARG(v->sessions[i].name),
                 v->sessions[i].alive, SV_ARG(v->sessions[i].preflight));
    for (size_t i = 0; i < v->n_held; i++)
        str_addf(&d->text, "held " SV_FMT " %lld%s\n", SV_ARG(v->held[i].kind),
                 (long long)v->held[i].n, v->held[i].session.v == v->owner.v ? " owner" : "");
}

static void ask_explain(struct sides *r)
{
    const struct known *queued = pick_in(r, JOB_QUEUED);
    int64_t number = queued && roll(r, 3) ? queued->id : pick_job(r);
    say(r, "explain %lld", (long long)number);
    counted(r, OP_explain);
    EACH_SIDE(r, d)
    {
        struct explain_view v;
        job_id id = {ids_native(&d->jobs, number)};
        if (answer(d, d->s->ops->explain(d->s, id, &d->a, &v, &d->e)) == 0)
            add_explained(r, d, &v);
    }
}

/* ---- beside the jobs ---- */

/* One that has had a session. */
static int pick_former(struct sides *r)
{
    int w = roll(r, N_WORKERS);
    return r->lives[w] == WORKER_NONE ? r->busy : w;
}

static void op_duty(struct sides *r)
{
    int w = pick_former(r);
    struct sv name = roll(r, 2) ? SV("alerts") : SV("pruning");
    struct dur ttl = r->in_group || roll(r, 3) == 0 ? LONG_TIME : DUR_US(1);
    int64_t done = roll(r, 2) ? -1 : roll(r, 1000);
    if (r->lives[w] == WORKER_NONE)
        return;
    say(r, "duty " SV_FMT " of %d ttl %lld done %lld", SV_ARG(name), w, (long long)ttl.us,
        (long long)done);
    counted(r, OP_duty);
    EACH_SIDE(r, d)
    {
        bool mine = false;
        int64_t last = -1;
        answer(d, d->s->ops->duty(d->s, name, &d->workers[w], ttl, done, &mine, &last, &d->e));
        str_addf(&d->text, "%d %lld\n", mine, (long long)last);
    }
    usleep(100);
}

static void op_note(struct sides *r)
{
    static const enum event_type types[] = {EVENT_DISK_LOW, EVENT_DRAINED, EVENT_DRAIN_STUCK};
    int w = pick_former(r);
    enum event_type type = types[roll(r, 3)];
    if (r->lives[w] == WORKER_NONE)
        return;
    say(r, "note %s of %d", event_name(type), w);
    counted(r, OP_note);
    EACH_SIDE(r, d)
    answer(d, d->s->ops->note(d->s, type, &d->workers[w], SV("{\"free\":1}"), &d->e));
}

static void op_prune_history(struct sides *r)
{
    bool events = roll(r, 2), attempts = roll(r, 2), all = roll(r, 2);
    const int max = 1000; /* which of several go first depends on the moment */
    say(r, "prune_history events %d attempts %d all %d max %d", events, attempts, all, max);
    counted(r, OP_prune_history);
    EACH_SIDE(r, d)
    {
        bool more = false;
        struct wall before = all ? after_all(d) : (struct wall){r->now.us - LONG_TIME.us};
        const struct wall none = {0};
        answer(d, d->s->ops->prune_history(d->s, events ? before : none, attempts ? before : none,
                                           max, &more, &d->e));
        str_addf(&d->text, "%d\n", more);
    }
}

static void op_age(struct sides *r)
{
    say(r, "age");
    counted(r, OP_age);
    EACH_SIDE(r, d)
    {
        int raised = -1;
        answer(d, d->s->ops->age(d->s, 100, &raised, &d->e));
        str_addf(&d->text, "%d\n", raised);
    }
}

void sides_limit(struct sides *r)
{
    int what = roll(r, 100);
    if (what < 9) {
        op_limit_act(r);
    } else if (what < 16) {
        op_policy_apply(r);
    } else if (what < 22) {
        say(r, "policy");
        show_policy(r);
    } else if (what < 28) {
        ask_gates(r);
    } else if (what < 35) {
        op_admit(r);
    } else if (what < 42) {
        op_pace(r);
    } else if (what < 50 && !r->in_group) {
        op_breaker_act(r);
    } else if (what < 55) {
        say(r, "locks");
        show_locks(r, roll(r, 2) ? SV_NONE : pick_lock(r));
    } else if (what < 62) {
        op_lock_release(r);
    } else if (what < 69) {
        ask_explain(r);
    } else if (what < 77) {
        op_duty(r);
    } else if (what < 85) {
        op_note(r);
    } else if (what < 93 && !r->in_group) {
        op_prune_history(r);
    } else {
        op_age(r);
    }
}
