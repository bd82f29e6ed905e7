/* Random operations under limits, locks, breakers and pauses that change all the time, over two
 * handles. After each step nothing may be over its limit, and what is used is just what runs (I7);
 * no two jobs of a lock run (I3); and nothing that could run is left when claims find no more.
 * PAWL_TEST_SEED replays a run, PAWL_TEST_STEPS makes it longer. */
#include "operating.h"

#include <sys/random.h>

enum { N_HANDLES = 2, N_WORKERS = 2, N_LIMITS = 5, LEASES_MAX = 64, CLEAN_EVERY = 10 };
static const char *const queue_names[] = {"q", "red", "blue"};
static const char *const host_names[] = {NULL, "a.org", "b.org", "c.net"};
static const char *const lock_names[] = {NULL, NULL, NULL, "x", "y"};
static const char *const limit_names[N_LIMITS] = {"l0", "l1", "l2", "l3", "l4"};

struct run {
    struct fixture *f;
    struct store *handles[N_HANDLES];
    struct session workers[N_WORKERS];
    struct lease leases[LEASES_MAX];
    int n_leases, texts;
    job_id newest;
    uint64_t rng;
    long step, steps;
};

static int roll(struct run *r, int n)
{
    r->rng ^= r->rng << 13;
    r->rng ^= r->rng >> 7;
    r->rng ^= r->rng << 17;
    return (int)((unsigned)(r->rng >> 32) % (unsigned)n);
}

/* ---- what is true after each step ---- */

struct running {
    struct sv queue, kind, host, lock;
};
struct picture {
    struct arena *a;
    struct running v[LEASES_MAX * 2];
    size_t n;
};

static struct sv keep(struct arena *a, struct sv v)
{
    return v.p ? sv_make(arena_strndup(a, v.p, v.n), v.n) : SV_NONE;
}

static bool add_running(void *arg, const struct job_view *j)
{
    struct picture *p = arg;
    assert_true(p->n < ARRAY_LEN(p->v));
    p->v[p->n++] = (struct running){keep(p->a, j->queue), keep(p->a, j->kind), keep(p->a, j->host),
                                    keep(p->a, j->lock)};
    return true;
}

static struct picture running(struct run *r)
{
    struct fixture *f = r->f;
    struct picture p = {.a = &f->a};
    struct selection sel = {.states = 1u << JOB_RUNNING};
    OK(f->s->ops->list(f->s, &sel, false, add_running, &p, &f->e));
    return p;
}

/* How many of those that run are under that gate. */
static int expected(const struct picture *p, const struct limits *l, const struct gate_view *g)
{
    struct limit_spec specs[N_LIMITS];
    size_t at[N_LIMITS];
    struct sv values[N_LIMITS];
    int n = 0;
    for (size_t i = 0; i < l->n; i++)
        specs[i] = l->v[i].spec;
    for (size_t i = 0; i < p->n; i++) {
        const struct running *j = &p->v[i];
        size_t found = limits_of(specs, l->n, j->queue, j->kind, j->host, at, values);
        for (size_t k = 0; k < found; k++)
            n += sv_eq(specs[at[k]].name, g->limit) && sv_eq(values[k], g->value);
    }
    return n;
}

static void check_locks(const struct picture *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < i; k++)
            if (p->v[i].lock.p && sv_eq(p->v[i].lock, p->v[k].lock))
                fail_msg("two jobs of lock " SV_FMT " run", SV_ARG(p->v[i].lock));
}

static void check_all(struct run *r)
{
    struct fixture *f = r->f;
    struct picture p = running(r);
    struct limits l = limits(f);
    struct gate_list g = gates(f, NULL);
    check_locks(&p);
    for (int i = 0; i < g.n; i++)
        if (g.v[i].used != expected(&p, &l, &g.v[i]))
            fail_msg("gate " SV_FMT "=" SV_FMT ": %d used, %d run", SV_ARG(g.v[i].limit),
                     SV_ARG(g.v[i].value), g.v[i].used, expected(&p, &l, &g.v[i]));
    if (r->step % CLEAN_EVERY == 0)
        assert_clean(f);
}

static bool open_to_one(const struct explain_view *v)
{
    bool held = v->lock.key.p && (v->lock.holder.id.v || v->lock.next.v != v->job.id.v);
    bool open = !v->paused && !held;
    for (size_t i = 0; i < v->n_gates; i++)
        open = open && v->gates[i].room.n > 0;
    return open;
}

struct left {
    struct arena *a;
    job_id v[256];
    int n;
};

static bool add_left(void *arg, const struct job_view *j)
{
    struct left *l = arg;
    l->v[l->n++] = j->id;
    return l->n < 256;
}

/* 0 = nothing that is queued could run now. */
static int64_t could_run(struct run *r)
{
    struct fixture *f = r->f;
    struct left l = {.a = &f->a};
    struct selection sel = {.states = 1u << JOB_QUEUED};
    OK(f->s->ops->list(f->s, &sel, false, add_left, &l, &f->e));
    for (int i = 0; i < l.n; i++) {
        struct explain_view v = explain(f, l.v[i]);
        if (open_to_one(&v))
            return l.v[i].v;
    }
    return 0;
}

/* ---- the steps ---- */

static void do_add(struct run *r)
{
    struct fixture *f = r->f;
    struct job_spec s = spec(queue_names[roll(r, 3)], "k", roll(r, 4));
    s.host = sv_of(host_names[roll(r, 4)]);
    s.lock = sv_of(lock_names[roll(r, 5)]);
    if (roll(r, 6) == 0)
        s.delay = roll(r, 2) ? DUR_US(1) : HOUR;
    r->newest = add(f, &s);
}

static void check_admitted(struct run *r, const struct claim_result *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct explain_view v = explain(r->f, c->leases[i].id);
        for (size_t k = 0; k < v.n_gates; k++) {
            const struct gate_view *g = &v.gates[k];
            if ((g->params.cap && g->used > g->params.cap) || g->state.breaker == BREAKER_OPEN)
                fail_msg("job %lld was let through " SV_FMT ": %d of %d, breaker %d",
                         (long long)v.job.id.v, SV_ARG(g->limit), g->used, g->params.cap,
                         (int)g->state.breaker);
        }
    }
}

static int do_claim(struct run *r, int want)
{
    if (want > LEASES_MAX - r->n_leases)
        want = LEASES_MAX - r->n_leases;
    struct claim_result c = take(r->f, &r->workers[roll(r, N_WORKERS)], want);
    assert_false(c.session_stale);
    check_admitted(r, &c);
    for (size_t i = 0; i < c.n; i++)
        r->leases[r->n_leases++] = c.leases[i];
    return (int)c.n;
}

/* Whatever gate is open and whatever lock is free is used. What was unparked for others comes back
 * after a moment. */
static void do_claim_all(struct run *r)
{
    int64_t job = 1;
    for (int i = 0; i < 100 && job; i++) {
        while (do_claim(r, 16))
            ;
        if (r->n_leases == LEASES_MAX)
            return;
        job = could_run(r);
        if (job)
            nap(DUR_MS(30));
    }
    if (!job)
        return;
    struct explain_view v = explain(r->f, (job_id){job});
    for (size_t i = 0; i < v.n_gates; i++)
        print_message("# gate " SV_FMT "=" SV_FMT ": %d used, %d parked\n",
                      SV_ARG(v.gates[i].limit), SV_ARG(v.gates[i].value), v.gates[i].used,
                      (int)v.gates[i].parked);
    fail_msg("job %lld could run, but no claim takes it: " SV_FMT "/" SV_FMT " lock " SV_FMT,
             (long long)job, SV_ARG(v.job.queue), SV_ARG(v.job.host), SV_ARG(v.lock.key));
}

static void do_settle(struct run *r)
{
    if (!r->n_leases)
        return;
    static const enum outcome outcomes[] = {OUTCOME_DONE, OUTCOME_DONE, OUTCOME_FAILED,
                                            OUTCOME_RELEASED, OUTCOME_RETRY};
    int at = roll(r, r->n_leases);
    struct settle v = settle_of(&r->leases[at], outcomes[roll(r, 5)]);
    v.delay = roll(r, 2) ? DUR_US(0) : DUR_US(1);
    settle(r->f, &v); /* stale if it was taken away */
    r->leases[at] = r->leases[--r->n_leases];
}

static struct limit_spec random_limit(struct run *r, int which)
{
    static const struct sv org = {"*.org", 5};
    struct limit_spec s = capped(limit_names[which], roll(r, 3) + 1);
    s.each = roll(r, 2) ? EACH_NONE : (enum limit_each)(1 + roll(r, 3));
    if (roll(r, 2))
        s.queue = sv_of(queue_names[roll(r, 3)]);
    if (roll(r, 3) == 0) {
        s.hosts = &org;
        s.n_hosts = 1;
    }
    s.replaces = s.each == EACH_NONE && roll(r, 2);
    return s;
}

static void do_limit(struct run *r)
{
    int which = roll(r, N_LIMITS), act = roll(r, 4);
    struct limit_spec s = random_limit(r, which);
    if (act < 2)
        change(r->f, LIMIT_SET, &s);
    else
        act_on(r->f, act == 2 ? LIMIT_UNSET : LIMIT_RESET, limit_names[which]);
}

static void do_configure(struct run *r)
{
    struct limit_spec v[2] = {random_limit(r, 0), random_limit(r, 1)};
    struct policy p = {.limits = v, .n_limits = (size_t)roll(r, 3)};
    char text[32];
    p.order = roll(r, 2) ? ORDER_FAIR : ORDER_FIFO;
    p.aging = roll(r, 2) ? DUR_US(0) : DUR_MS(1);
    snprintf(text, sizeof(text), "text %d", r->texts++);
    apply(r->f, &p, text);
}

static void do_breaker(struct run *r)
{
    int act = roll(r, 3);
    struct dur pause = roll(r, 2) ? DUR_US(0) : DUR_MS(2);
    breaker(r->f, limit_names[roll(r, N_LIMITS)], (enum breaker_act)act, pause, NULL);
}

static void do_act(struct run *r)
{
    static const enum act acts[] = {ACT_CANCEL, ACT_RETRY, ACT_RELEASE, ACT_SET, ACT_PRUNE};
    struct fixture *f = r->f;
    if (!r->newest.v)
        return;
    job_id id = {1 + roll(r, (int)r->newest.v)};
    struct job_change c = {
        .has_priority = roll(r, 2), .priority = roll(r, 5), .has_time = roll(r, 2)};
    struct act_request req = {
        .act = acts[roll(r, 5)], .select = {.ids = &id, .n_ids = 1}, .force = true, .change = &c};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
}

static void do_pause(struct run *r)
{
    struct fixture *f = r->f;
    bool changed;
    OK(f->s->ops->pause(f->s, sv_of(queue_names[roll(r, 3)]), roll(r, 2), &changed, &f->e));
}

static void do_release_lock(struct run *r)
{
    struct fixture *f = r->f;
    enum lock_outcome out;
    struct lease_ref holder;
    OK(f->s->ops->lock_release(f->s, sv_of(lock_names[3 + roll(r, 2)]), true, SV_NONE, &out,
                               &holder, &f->e));
}

/* A worker ends in order, or loses its lease and is swept. */
static void do_worker(struct run *r)
{
    int at = roll(r, N_WORKERS);
    struct session *w = &r->workers[at];
    if (roll(r, 2)) {
        end(r->f, w);
    } else {
        expire(r->f, w);
        sweep(r->f, &r->workers[!at], 100);
        if (w->lock_fd >= 0)
            vanish(w);
    }
    *w = start(r->f, "w");
}

static void do_age(struct run *r)
{
    struct fixture *f = r->f;
    int n;
    OK(f->s->ops->age(f->s, 5, &n, &f->e));
}

static void step(struct run *r)
{
    static const struct {
        void (*f)(struct run *r);
        int weight;
    } steps[] = {{do_add, 30},    {do_settle, 30},   {do_claim_all, 12}, {do_limit, 6},
                 {do_breaker, 3}, {do_act, 12},      {do_pause, 3},      {do_release_lock, 2},
                 {do_worker, 2},  {do_configure, 2}, {do_age, 3}};
    int at = roll(r, 105);
    size_t i = 0;
    for (; at >= steps[i].weight; i++)
        at -= steps[i].weight;
    r->f->s = r->handles[roll(r, N_HANDLES)];
    if (steps[i].f == do_add && roll(r, 40) < r->n_leases)
        do_settle(r);
    else
        steps[i].f(r);
}

/* Without limits, pauses and open breakers everything ends. */
static void drain(struct run *r)
{
    struct fixture *f = r->f;
    bool changed;
    apply(f, &(struct policy){0}, "the end");
    for (int i = 0; i < N_LIMITS; i++)
        act_on(f, LIMIT_UNSET, limit_names[i]);
    for (int i = 0; i < 3; i++)
        OK(f->s->ops->pause(f->s, sv_of(queue_names[i]), false, &changed, &f->e));
    do
        while (r->n_leases) {
            struct settle v = settle_of(&r->leases[--r->n_leases], OUTCOME_DONE);
            settle(f, &v);
        }
    while (do_claim(r, 32));
    struct selection sel = {.states = 1u << JOB_QUEUED | 1u << JOB_RUNNING};
    int64_t n;
    OK(f->s->ops->count(f->s, &sel, &n, &f->e));
    assert_int_equal(n, 0);
    assert_int_equal(gates(f, NULL).n, 0);
    assert_int_equal(locks(f, NULL).n, 0);
}

static uint64_t seed(void)
{
    const char *given = getenv("PAWL_TEST_SEED");
    uint64_t s = given ? strtoull(given, NULL, 10) : 0;
    if (!given && getrandom(&s, sizeof(s), 0) != (ssize_t)sizeof(s))
        fail_msg("no random numbers");
    return s ? s : 1;
}

static void test_I7_nothing_is_over_and_nothing_stalls(void **state)
{
    struct fixture *f = *state;
    const char *steps = getenv("PAWL_TEST_STEPS");
    struct run *r = mem_zalloc(1, sizeof(*r));
    *r = (struct run){.f = f, .rng = seed(), .steps = steps ? atol(steps) : 300};
    fprintf(stderr, "# PAWL_TEST_SEED=%llu PAWL_TEST_STEPS=%ld\n", (unsigned long long)r->rng,
            r->steps);
    r->handles[0] = f->s;
    r->handles[1] = open_again(f);
    for (int i = 0; i < N_WORKERS; i++)
        r->workers[i] = start(f, "w");
    for (; r->step < r->steps; r->step++) {
        step(r);
        check_all(r);
    }
    f->s = r->handles[0];
    drain(r);
    for (int i = 0; i < N_WORKERS; i++)
        end(f, &r->workers[i]);
    store_close(r->handles[1]);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_I7_nothing_is_over_and_nothing_stalls)};
    return cmocka_run_group_tests_name("turmoil", tests, NULL, NULL);
}
