/* Other hosts that a running job asks: their permits, what its end tells of them, and the pace at
 * which a host wants to be asked. */
#include "operating.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- words ---- */

/* Again while another transaction has what it needs. */
static struct admission ask(struct fixture *f, const struct lease *l, const char *host)
{
    struct lease_ref ref = {l->id, l->fence};
    struct admission r = {0};
    for (int i = 0; i < 200; i++) {
        OK(f->s->ops->admit(f->s, &ref, sv_of(host), &f->a, &r, &f->e));
        if (r.outcome != ADMIT_SHUT || r.wait.us > 5000)
            break;
        nap(DUR_MS(2));
    }
    return r;
}

static void admitted(struct fixture *f, const struct lease *l, const char *host)
{
    struct admission r = ask(f, l, host);
    if (r.outcome != ADMIT_OK)
        fail_msg("%s: outcome %d, gate " SV_FMT, host, (int)r.outcome, SV_ARG(r.gate));
}

static int pace(struct fixture *f, const struct lease *l, const char *host, struct dur apart)
{
    struct lease_ref ref = {l->id, l->fence};
    int n = -1;
    OK(f->s->ops->pace(f->s, &ref, sv_of(host), apart, &n, &f->e));
    return n;
}

static struct lease run_one(struct fixture *f, const struct session *w)
{
    for (int i = 0; i < 2000; i++) {
        struct claim_result r = take(f, w, 1);
        if (r.n)
            return r.leases[0];
        nap(DUR_MS(2));
    }
    fail_msg("nothing to run");
    return (struct lease){0};
}

/* An end that tells of that host. */
static void ends_at(struct fixture *f, const struct lease *l, const char *peer, struct settle how)
{
    struct settle v = settle_of(l, OUTCOME_RETRY);
    v.cls = CLASS_TRANSIENT;
    v.error = SV("connection refused");
    v.refund_attempt = v.count_transient = true;
    v.delay = HOUR;
    v.reason = WAIT_BACKOFF;
    v.throttled = how.throttled;
    v.timed_out = how.timed_out;
    v.retry_after = how.throttled ? how.retry_after : DUR_US(-1);
    v.peer = sv_of(peer);
    assert_int_equal(settle(f, &v), SETTLE_OK);
}

/* ---- permits ---- */

static void test_I3_all_permits_or_none(void **state)
{
    struct fixture *f = *state;
    const struct sv wide_hosts[] = {SV("b*")};
    struct limit_spec each = cap_of("each", EACH_HOST, 1), wide = cap_of("wide", EACH_NONE, 2);
    wide.hosts = wide_hosts;
    wide.n_hosts = 1;
    set_limit(f, &each);
    set_limit(f, &wide);
    for (int i = 0; i < 4; i++)
        add_hosted(f, (const char *[]){"a1", "a2", "a3", "a4"}[i], 0, 1);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 4);
    assert_int_equal(r.n, 4);
    admitted(f, &r.leases[0], "b1");
    admitted(f, &r.leases[0], "b1"); /* it has them */
    assert_int_equal(used(f, "each", "b1"), 1);
    assert_int_equal(used(f, "wide", ""), 1);
    struct admission shut = ask(f, &r.leases[1], "b1");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "each=b1");
    assert_int_equal(shut.wait.us, 250000);
    assert_int_equal(used(f, "wide", ""), 1);
    admitted(f, &r.leases[1], "b2");
    shut = ask(f, &r.leases[2], "b3");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "wide=");
    assert_int_equal(used(f, "each", "b3"), 0);
    admitted(f, &r.leases[0], "b3"); /* wide is its already */
    assert_int_equal(used(f, "wide", ""), 2);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(used(f, "each", "b1") + used(f, "each", "b3") + used(f, "each", "a1"), 0);
    assert_int_equal(used(f, "wide", ""), 1);
    admitted(f, &r.leases[2], "b3");
    admitted(f, &r.leases[3], "a4"); /* its own */
    assert_int_equal(used(f, "each", "a4"), 1);
    end(f, &w);
    assert_int_equal(used(f, "wide", ""), 0);
}

static void test_I2_a_stale_job_is_not_admitted(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("each", EACH_HOST, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 1);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w), old = l;
    old.fence.v--;
    assert_int_equal(ask(f, &old, "b").outcome, ADMIT_STALE);
    assert_int_equal(pace(f, &old, "b", DUR_S(1)), 0);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_int_equal(ask(f, &l, "b").outcome, ADMIT_STALE);
    assert_int_equal(pace(f, &l, "b", DUR_S(1)), 0);
    assert_int_equal(used(f, "each", "b"), 0);
    end(f, &w);
}

/* Also for a job whose own lane nothing limits: its claim knew of no permits. */
static void test_I7_every_end_of_a_lease_frees_them(void **state)
{
    struct fixture *f = *state;
    const struct sv away[] = {SV("!a")};
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    s.hosts = away;
    s.n_hosts = 1;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 20);
    struct session w = start(f, "w");
    const enum outcome ways[] = {OUTCOME_DONE,  OUTCOME_SKIPPED,  OUTCOME_FAILED,
                                 OUTCOME_RETRY, OUTCOME_RELEASED, OUTCOME_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct lease l = run_one(f, &w);
        admitted(f, &l, "b");
        assert_int_equal(used(f, "one", "b"), 1);
        settle_ok(f, &l, ways[i]);
        assert_int_equal(used(f, "one", "b"), 0);
        assert_clean(f);
    }
    struct lease l = run_one(f, &w); /* an operator takes it away */
    admitted(f, &l, "b");
    struct act_request force = {
        .act = ACT_RELEASE, .select = {.ids = &l.id, .n_ids = 1}, .force = true};
    struct act_result done;
    OK(f->s->ops->act(f->s, &force, &done, &f->e));
    assert_int_equal(used(f, "one", "b"), 0);
    l = run_one(f, &w); /* it was asked to end */
    admitted(f, &l, "b");
    act(f, ACT_CANCEL, l.id);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_int_equal(used(f, "one", "b"), 0);
    l = run_one(f, &w); /* the session ends in order */
    admitted(f, &l, "b");
    end(f, &w);
    assert_int_equal(used(f, "one", "b"), 0);
    struct session dead = start(f, "dead"), other = start(f, "other");
    l = run_one(f, &dead);
    admitted(f, &l, "b");
    expire(f, &dead);
    nap(DUR_MS(2));
    sweep(f, &other, 5);
    assert_int_equal(used(f, "one", "b"), 0);
    l = run_one(f, &other);
    admitted(f, &l, "b");
    vanish(&dead);
    end(f, &other);
}

static void test_a_stretch_of_ends_frees_them_too(void **state)
{
    struct fixture *f = *state;
    enum { N = 64 };
    const struct sv away[] = {SV("!a")};
    struct limit_spec s = cap_of("each", EACH_HOST, 1);
    s.hosts = away;
    s.n_hosts = 1;
    set_limit(f, &s);
    add_hosted(f, "a", 0, N);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, N);
    assert_int_equal(r.n, N);
    admitted(f, &r.leases[10], "b");
    admitted(f, &r.leases[63], "c");
    struct settle v[N];
    enum settle_outcome out[N];
    for (size_t i = 0; i < N; i++)
        v[i] = settle_of(&r.leases[i], OUTCOME_DONE);
    OK(store_settle(f->s, v, N, out, &f->e));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(out[i], SETTLE_OK);
    assert_int_equal(used(f, "each", "b") + used(f, "each", "c"), 0);
    end(f, &w);
}

static void test_a_lane_parked_there_goes_on(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 5, 1);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    admitted(f, &l, "b");
    add_hosted(f, "b", 0, 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    assert_int_equal(gate(f, "one", "b").parked, 1);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(take_for(f, &w, 1, DUR_S(5)), 1);
    end(f, &w);
}

static void test_I7_over_two_handles_never_more(void **state)
{
    struct fixture *f = *state;
    enum { JOBS = 12, CAP = 3 };
    struct limit_spec s = cap_of("cap", EACH_HOST, CAP);
    add_hosted(f, "a", 0, JOBS);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, JOBS);
    assert_int_equal(r.n, JOBS);
    set_limit(f, &s);
    struct store *first = f->s, *second = open_again(f);
    int in = 0;
    for (int i = 0; i < JOBS; i++) {
        f->s = i % 2 ? second : first;
        in += ask(f, &r.leases[i], "b").outcome == ADMIT_OK;
    }
    f->s = first;
    assert_int_equal(in, CAP);
    assert_int_equal(used(f, "cap", "b"), CAP);
    store_close(second);
    end(f, &w);
}

/* ---- several processes ---- */

enum { WORKERS = 4, HOST_CAP = 2, ROUNDS = 25 };

/* What they know of each other: how many are at the host, the most there ever were. */
struct meeting {
    int now, most, admissions, claims;
};

static void at_the_host(struct meeting *m, int *kind)
{
    int now = __atomic_add_fetch(&m->now, 1, __ATOMIC_SEQ_CST);
    int most = __atomic_load_n(&m->most, __ATOMIC_SEQ_CST);
    while (now > most && !__atomic_compare_exchange_n(&m->most, &most, now, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST))
        ;
    __atomic_add_fetch(kind, 1, __ATOMIC_SEQ_CST);
    nap(DUR_US(500));
    __atomic_sub_fetch(&m->now, 1, __ATOMIC_SEQ_CST);
}

/* Half of them come by a job of that host, half are led there. */
static void visit(struct fixture *f, struct meeting *m, int which)
{
    struct session w = start(f, "w");
    const char *kind = which % 2 ? "led" : "k";
    for (int i = 0, left = 2000; i < ROUNDS && left > 0; left--) {
        struct claim_result r = claim(f, &w, kind, 1);
        if (!r.n) {
            nap(DUR_MS(1));
            continue;
        }
        struct lease *l = &r.leases[0];
        if (which % 2)
            while (ask(f, l, "b").outcome != ADMIT_OK && left-- > 0)
                nap(DUR_MS(1));
        at_the_host(m, which % 2 ? &m->admissions : &m->claims);
        settle_ok(f, l, i % 3 ? OUTCOME_DONE : OUTCOME_SKIPPED);
        i++;
    }
    end(f, &w);
}

static void test_I7_processes_never_more(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WORKERS];
    struct meeting *m =
        mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct limit_spec s = cap_of("cap", EACH_HOST, HOST_CAP);
    struct job_spec led = spec("q", "led", 0);
    assert_true(m != MAP_FAILED);
    set_limit(f, &s);
    add_hosted(f, "b", 0, WORKERS / 2 * ROUNDS);
    for (int i = 0; i < WORKERS / 2 * ROUNDS; i++)
        add(f, &led);
    store_close(f->s); /* an open database is not carried over a fork */
    f->s = NULL;
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            f->s = open_again(f);
            visit(f, m, i);
            store_close(f->s);
            _exit(0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    f->s = open_again(f);
    assert_true(m->most >= 1 && m->most <= HOST_CAP);
    assert_int_equal(m->admissions, WORKERS / 2 * ROUNDS);
    assert_int_equal(m->claims, WORKERS / 2 * ROUNDS);
    assert_int_equal(used(f, "cap", "b"), 0);
    munmap(m, sizeof(*m));
}

/* What runs counts under limits that come, and gives back what is of limits that went. */
static void test_limits_change_meanwhile(void **state)
{
    struct fixture *f = *state;
    add_hosted(f, "a", 0, 3);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 3);
    assert_int_equal(r.n, 3);
    admitted(f, &r.leases[0], "b");
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    set_limit(f, &s);
    assert_int_equal(used(f, "one", "b"), 1);
    assert_int_equal(used(f, "one", "a"), 3);
    assert_int_equal(ask(f, &r.leases[1], "b").outcome, ADMIT_SHUT);
    s.each = EACH_NONE;
    set_limit(f, &s);
    assert_int_equal(used(f, "one", ""), 3);
    unset_limit(f, "one");
    admitted(f, &r.leases[1], "b");
    assert_clean(f);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    s.each = EACH_HOST;
    set_limit(f, &s);
    assert_int_equal(used(f, "one", "b"), 1);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    assert_int_equal(used(f, "one", "b"), 0);
    end(f, &w);
}

/* ---- as a start ---- */

static void test_it_counts_as_a_start(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("rate", EACH_HOST, 0);
    s.rate = (struct rate){1, DUR_S(10)};
    set_limit(f, &s);
    add_hosted(f, "a1", 0, 1);
    add_hosted(f, "a2", 0, 1);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 2);
    assert_int_equal(r.n, 2);
    admitted(f, &r.leases[0], "b");
    struct admission shut = ask(f, &r.leases[1], "b");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "rate=b");
    assert_in_range(shut.wait.us, 5000000, 10000000);
    add_hosted(f, "b", 0, 1);
    assert_int_equal(take(f, &w, 1).n, 0);
    end(f, &w);
}

static void test_I8_it_may_be_the_probe(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 1, DUR_MS(50));
    s.each = EACH_HOST;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 4);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 3);
    admitted(f, &r.leases[0], "b");
    ends_at(f, &r.leases[0], "b", (struct settle){0});
    assert_int_equal(gate(f, "brk", "b").state.breaker, BREAKER_OPEN);
    assert_int_equal(gate(f, "brk", "a").state.breaker, BREAKER_CLOSED);
    assert_int_equal(ask(f, &r.leases[1], "b").outcome, ADMIT_SHUT);
    nap(DUR_MS(60));
    admitted(f, &r.leases[1], "b");
    assert_int_equal(gate(f, "brk", "b").state.breaker, BREAKER_HALF_OPEN);
    assert_int_equal(n_all(f, EVENT_BREAKER_PROBED), 1);
    assert_int_equal(ask(f, &r.leases[2], "b").outcome, ADMIT_SHUT);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    assert_int_equal(gate(f, "brk", "b").state.breaker, BREAKER_CLOSED);
    admitted(f, &r.leases[2], "b");
    end(f, &w);
}

/* ---- what the end tells ---- */

static void test_the_end_tells_of_its_peer(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 3, DUR_S(60));
    s.each = EACH_HOST;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 8);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    fail_transient(f, &l, HOUR);
    assert_int_equal(gate(f, "brk", "a").state.failures, 1);
    l = run_one(f, &w);
    admitted(f, &l, "b");
    ends_at(f, &l, "b", (struct settle){0});
    assert_int_equal(gate(f, "brk", "b").state.failures, 1);
    assert_int_equal(gate(f, "brk", "a").state.failures, 0); /* it sent the job on */
    l = run_one(f, &w);
    admitted(f, &l, "b");
    admitted(f, &l, "c");
    ends_at(f, &l, "c", (struct settle){.throttled = true, .retry_after = DUR_S(30)});
    assert_int_equal(gate(f, "brk", "b").state.failures, 0);
    assert_int_equal(gate(f, "brk", "b").room.why, SHUT_NOT);
    assert_int_equal(gate(f, "brk", "c").room.why, SHUT_HELD);
    assert_int_equal(gate(f, "brk", "a").room.why, SHUT_NOT);
    struct admission shut;
    l = run_one(f, &w);
    shut = ask(f, &l, "c");
    assert_sv(shut.gate, "brk=c");
    assert_in_range(shut.wait.us, 20000000, 30000000);
    ends_at(f, &l, "a", (struct settle){0}); /* its own, by name */
    assert_int_equal(gate(f, "brk", "a").state.failures, 1);
    l = run_one(f, &w);
    ends_at(f, &l, "never.asked", (struct settle){0});
    assert_int_equal(gate(f, "brk", "a").state.failures, 0);
    l = run_one(f, &w); /* without a peer it is the job's own host */
    admitted(f, &l, "b");
    fail_transient(f, &l, HOUR);
    assert_int_equal(gate(f, "brk", "a").state.failures, 1);
    assert_int_equal(gate(f, "brk", "b").state.failures, 0);
    end(f, &w);
}

/* A gate that both hosts have hears what the end says. */
static void test_a_gate_of_both_hears_the_signal(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("all", 5, DUR_S(60));
    set_limit(f, &s);
    add_hosted(f, "a", 0, 2);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    admitted(f, &l, "b");
    ends_at(f, &l, "b", (struct settle){.timed_out = true});
    assert_int_equal(gate(f, "all", "").state.failures, 1);
    end(f, &w);
}

/* A job that waited for a held gate and was then let in does not belong to the burst before. */
static void test_what_was_admitted_later_counts_anew(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("held", EACH_HOST, 9);
    s.pause = DUR_MS(20);
    s.max_pause = DUR_S(60);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 3);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 3);
    admitted(f, &r.leases[0], "b");
    admitted(f, &r.leases[1], "b");
    const struct settle asked = {.throttled = true, .retry_after = {-1}};
    ends_at(f, &r.leases[0], "b", asked);
    ends_at(f, &r.leases[1], "b", asked); /* of one burst */
    assert_int_equal(gate(f, "held", "b").state.held_n, 1);
    nap(DUR_MS(25));
    admitted(f, &r.leases[2], "b");
    nap(DUR_MS(1));
    ends_at(f, &r.leases[2], "b", asked);
    assert_int_equal(gate(f, "held", "b").state.held_n, 2);
    end(f, &w);
}

/* ---- pace ---- */

static void test_a_pace_spaces_starts(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("each", EACH_HOST, 9), other = cap_of("all", EACH_NONE, 99);
    set_limit(f, &s);
    set_limit(f, &other);
    add_hosted(f, "a", 0, 9);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 1);
    assert_int_equal(r.n, 1);
    int64_t then = f->s->ops->now(f->s).us;
    assert_int_equal(pace(f, &r.leases[0], "a", DUR_MS(60)), 1);
    assert_int_equal(gate(f, "each", "a").room.why, SHUT_RATE);
    assert_int_equal(gate(f, "each", "a").state.pace_us, 60000);
    int64_t last = then;
    for (int i = 0; i < 3; i++) {
        struct lease l = run_one(f, &w);
        assert_true(l.claimed_at.us - last >= (i ? 60000 : 59000));
        last = l.claimed_at.us;
    }
    assert_int_equal(pace(f, &r.leases[0], "a", HOUR), 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    struct admission shut = {0};
    struct job_spec elsewhere = spec("q", "k", 9);
    elsewhere.host = SV("z");
    add(f, &elsewhere);
    struct lease z = run_one(f, &w);
    shut = ask(f, &z, "a");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "each=a");
    assert_true(shut.wait.us > 3000LL * 1000000);
    assert_int_equal(pace(f, &r.leases[0], "a", DUR_US(0)), 1); /* as the limit says: no rate */
    assert_int_equal(take_for(f, &w, 5, DUR_S(5)), 5);
    assert_int_equal(pace(f, &z, "new.example", DUR_S(5)), 1); /* before anything starts there */
    assert_int_equal(ask(f, &z, "new.example").outcome, ADMIT_SHUT);
    end(f, &w);
}

static void test_a_pace_is_a_floor(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("each", EACH_HOST, 0);
    s.rate = (struct rate){10, DUR_S(1)};
    s.burst = 5;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 20);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    assert_int_equal(pace(f, &l, "a", DUR_MS(1)), 1); /* slower already */
    assert_int_equal(take(f, &w, 9).n, 4);
    assert_int_equal(pace(f, &l, "a", DUR_MS(300)), 1); /* and no burst */
    int64_t from = f->s->ops->now(f->s).us;
    assert_int_equal(take_for(f, &w, 2, DUR_S(5)), 2);
    assert_true(f->s->ops->now(f->s).us - from >= 500000);
    struct gate_filter all = {.limit = SV("each")};
    int n = 0;
    OK(f->s->ops->breaker_act(f->s, &all, BREAKER_DO_RESET, DUR_US(0), SV_NONE, &n, &f->e));
    assert_int_equal(gate(f, "each", "a").state.pace_us, 0);
    assert_int_equal(take_for(f, &w, 5, DUR_MS(250)), 5);
    end(f, &w);
}

static void test_no_gate_no_pace(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("all", EACH_NONE, 9);
    add_hosted(f, "a", 0, 1);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    assert_int_equal(pace(f, &l, "a", DUR_S(1)), 0);
    set_limit(f, &s);
    assert_int_equal(pace(f, &l, "a", DUR_S(1)), 0);
    end(f, &w);
}

/* ---- hosts that are excluded ---- */

static void test_excluded_hosts_are_not_limited(void **state)
{
    struct fixture *f = *state;
    const struct sv hosts[] = {SV("*"), SV("!127.*"), SV("!local%_host")};
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    s.hosts = hosts;
    s.n_hosts = 3;
    for (int round = 0; round < 2; round++) { /* then without the star: the same */
        set_limit(f, &s);
        add_hosted(f, "127.0.0.1", 0, 3);
        add_hosted(f, "local%_host", 0, 3);
        add_hosted(f, "localXYhost", 0, 3); /* no wildcards of SQL */
        add_hosted(f, NULL, 0, 3);
        add_hosted(f, "a", 0, 3);
        struct session w = start(f, "w");
        struct claim_result r = take(f, &w, 99);
        assert_int_equal(r.n, 3 + 3 + 1 + 3 + 1);
        for (size_t i = 0; i < r.n; i++)
            settle_ok(f, &r.leases[i], OUTCOME_DONE);
        while ((r = take(f, &w, 99)).n)
            for (size_t i = 0; i < r.n; i++)
                settle_ok(f, &r.leases[i], OUTCOME_DONE);
        end(f, &w);
        s.hosts = hosts + 1;
        s.n_hosts = 2;
    }
    struct limit_spec nothing = s;
    const struct sv bad[] = {SV("!")};
    enum limit_outcome out;
    nothing.hosts = bad;
    nothing.n_hosts = 1;
    FAILS(f->s->ops->limit_act(f->s, LIMIT_SET, &nothing, &out, &f->e), PAWL_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I3_all_permits_or_none),
        TEST(test_I2_a_stale_job_is_not_admitted),
        TEST(test_I7_every_end_of_a_lease_frees_them),
        TEST(test_a_stretch_of_ends_frees_them_too),
        TEST(test_a_lane_parked_there_goes_on),
        TEST(test_I7_over_two_handles_never_more),
        TEST(test_I7_processes_never_more),
        TEST(test_limits_change_meanwhile),
        TEST(test_it_counts_as_a_start),
        TEST(test_I8_it_may_be_the_probe),
        TEST(test_the_end_tells_of_its_peer),
        TEST(test_a_gate_of_both_hears_the_signal),
        TEST(test_what_was_admitted_later_counts_anew),
        TEST(test_a_pace_spaces_starts),
        TEST(test_a_pace_is_a_floor),
        TEST(test_no_gate_no_pace),
        TEST(test_excluded_hosts_are_not_limited),
    };
    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
