/* Limits in the claim: caps, rates, holds, breakers, and that nothing leaks (I7, I8). */
#include "gating.h"

/* ---- caps ---- */

static void test_I7_a_cap_is_exact_over_two_handles(void **state)
{
    struct fixture *f = *state;
    struct store *first = f->s, *second = open_again(f);
    struct limit_spec s = cap_of("three", EACH_NONE, 3);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 10);
    add_hosted(f, "b", 0, 10);
    struct session w = start(f, "w");
    struct claim_result one = take(f, &w, 2);
    assert_int_equal(one.n, 2);
    f->s = second;
    struct claim_result two = take(f, &w, 5);
    assert_int_equal(two.n, 1);
    assert_int_equal(take(f, &w, 5).n, 0);
    assert_int_equal(used(f, "three", ""), 3);
    settle_ok(f, &one.leases[0], OUTCOME_DONE);
    f->s = first;
    assert_int_equal(take(f, &w, 5).n, 1);
    assert_int_equal(take(f, &w, 5).n, 0);
    assert_int_equal(used(f, "three", ""), 3);
    end(f, &w);
    assert_int_equal(used(f, "three", ""), 0);
    store_close(second);
}

static void test_each_value_has_its_own_gate(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("polite", EACH_HOST, 2);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 5);
    add_hosted(f, "b", 0, 1);
    add_hosted(f, NULL, 0, 3);
    struct session w = start(f, "w");
    assert_int_equal(take(f, &w, 100).n, 2 + 1 + 3);
    assert_int_equal(used(f, "polite", "a"), 2);
    assert_int_equal(used(f, "polite", "b"), 1);
    assert_int_equal(take(f, &w, 100).n, 0);
    end(f, &w);
}

static void test_all_limits_of_a_lane_must_admit(void **state)
{
    struct fixture *f = *state;
    struct limit_spec host = cap_of("host", EACH_HOST, 2), all = cap_of("all", EACH_NONE, 3);
    set_limit(f, &host);
    set_limit(f, &all);
    add_hosted(f, "a", 0, 5);
    add_hosted(f, "b", 0, 5);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 100);
    assert_int_equal(r.n, 3);
    assert_sv(r.leases[0].host, "a");
    assert_sv(r.leases[1].host, "a");
    assert_sv(r.leases[2].host, "b");
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    r = take(f, &w, 100);
    assert_int_equal(r.n, 1);
    assert_sv(r.leases[0].host, "a");
    end(f, &w);
}

static void test_parked_lanes_come_back_best_first(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_NONE, 1);
    set_limit(f, &s);
    job_id low = add_hosted(f, "a", 0, 1);
    add_hosted(f, "b", 0, 1);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 9);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, low.v);
    assert_int_equal(take(f, &w, 9).n, 0); /* parks b */
    job_id c = add_hosted(f, "c", 0, 1);
    job_id high = add_hosted(f, "d", 7, 1);
    assert_int_equal(take(f, &w, 9).n, 0); /* and the others */
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    r = take(f, &w, 9);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, high.v);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    r = take(f, &w, 9);
    assert_sv(r.leases[0].host, "b");
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    r = take(f, &w, 9);
    assert_int_equal(r.leases[0].id.v, c.v);
    end(f, &w);
}

/* The best of the parked lanes belongs to a paused queue: the others must not wait for it. */
static void test_a_paused_queue_does_not_keep_the_gate(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_NONE, 1);
    bool changed;
    set_limit(f, &s);
    struct job_spec first = spec("q", "k", 9), paused = spec("p", "k", 5), rest = spec("q", "k", 0);
    add(f, &first);
    add(f, &paused);
    job_id wanted = add(f, &rest);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 9);
    assert_int_equal(r.n, 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    OK(f->s->ops->pause(f->s, SV("p"), true, &changed, &f->e));
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(take_for(f, &w, 1, DUR_S(5)), 1);
    assert_state(f, wanted, JOB_RUNNING);
    end(f, &w);
}

static void test_what_waits_in_the_worker_has_no_gate_or_lock(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("host", EACH_HOST, 10);
    struct sv kinds[] = {SV("k")};
    set_limit(f, &s);
    add_hosted(f, "a", 1, 3);
    add_hosted(f, NULL, 0, 4);
    struct session w = start(f, "w");
    struct claim_pool pool = {kinds, 1, 4, 3};
    struct claim_request req = {.session = &w, .pools = &pool, .n_pools = 1};
    struct claim_result r;
    OK(store_claim(f->s, &req, &f->a, &r, &f->e));
    int gated = 0;
    for (size_t i = 0; i < r.n; i++)
        gated += r.leases[i].host.p != NULL;
    assert_int_equal(gated, 1);
    for (size_t i = 0; i < r.n; i++)
        settle_ok(f, &r.leases[i], OUTCOME_DONE);
    assert_int_equal(take(f, &w, 99).n, 7 - r.n);
    end(f, &w);
}

static void test_one_job_by_id_obeys_its_gates(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    struct sv kinds[] = {SV("k")};
    set_limit(f, &s);
    job_id id = add_hosted(f, "a", 0, 2);
    struct session w = start(f, "w");
    struct claim_pool pool = {kinds, 1, 1, 0};
    struct claim_request req = {.session = &w, .pools = &pool, .n_pools = 1, .only = {id.v + 1}};
    struct claim_result r;
    OK(store_claim(f->s, &req, &f->a, &r, &f->e));
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, id.v + 1);
    assert_int_equal(used(f, "one", "a"), 1);
    req.only = id;
    struct claim_result none;
    OK(store_claim(f->s, &req, &f->a, &none, &f->e));
    assert_int_equal(none.n, 0);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    OK(store_claim(f->s, &req, &f->a, &r, &f->e));
    assert_int_equal(r.n, 1);
    end(f, &w);
}

/* ---- permits never leak ---- */

static struct lease run_one(struct fixture *f, const struct session *w)
{
    struct claim_result r = take(f, w, 1);
    assert_int_equal(r.n, 1);
    assert_int_equal(used(f, "one", "a"), 1);
    assert_int_equal(take(f, w, 1).n, 0);
    return r.leases[0];
}

static void test_I7_every_end_of_a_lease_frees_its_permit(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 20);
    struct session w = start(f, "w");
    const enum outcome ways[] = {OUTCOME_DONE,  OUTCOME_SKIPPED,  OUTCOME_FAILED,
                                 OUTCOME_RETRY, OUTCOME_RELEASED, OUTCOME_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct lease l = run_one(f, &w);
        settle_ok(f, &l, ways[i]);
        assert_int_equal(used(f, "one", "a"), 0);
    }
    struct lease l = run_one(f, &w); /* an operator takes it away */
    struct act_request force = {
        .act = ACT_RELEASE, .select = {.ids = &l.id, .n_ids = 1}, .force = true};
    struct act_result done;
    OK(f->s->ops->act(f->s, &force, &done, &f->e));
    assert_int_equal(used(f, "one", "a"), 0);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    l = run_one(f, &w); /* it was asked to end */
    act(f, ACT_CANCEL, l.id);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_int_equal(used(f, "one", "a"), 0);
    run_one(f, &w); /* the session ends in order */
    end(f, &w);
    assert_int_equal(used(f, "one", "a"), 0);
    struct session dead = start(f, "dead"), other = start(f, "other");
    run_one(f, &dead);
    expire(f, &dead);
    nap(DUR_MS(2));
    sweep(f, &other, 5);
    assert_int_equal(used(f, "one", "a"), 0);
    run_one(f, &other);
    vanish(&dead);
    end(f, &other);
}

static void test_a_stretch_of_ends_frees_all(void **state)
{
    struct fixture *f = *state;
    enum { N = 64 };
    struct limit_spec s = cap_of("many", EACH_NONE, N);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 2 * N);
    struct session w = start(f, "w");
    for (int round = 0; round < 2; round++) {
        struct claim_result r = take(f, &w, 2 * N);
        struct settle v[N];
        enum settle_outcome out[N];
        assert_int_equal(r.n, N);
        for (size_t i = 0; i < N; i++)
            v[i] = (struct settle){.id = r.leases[i].id,
                                   .fence = r.leases[i].fence,
                                   .exit_code = -1,
                                   .hint = r.leases[i].hint};
        OK(store_settle(f->s, v, N, out, &f->e));
        assert_int_equal(used(f, "many", ""), 0);
    }
    assert_int_equal(take(f, &w, 1).n, 0);
    end(f, &w);
}

/* ---- limits that change while jobs run ---- */

static void test_a_new_limit_counts_what_runs(void **state)
{
    struct fixture *f = *state;
    add_hosted(f, "a", 0, 10);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 3);
    assert_int_equal(r.n, 3);
    struct limit_spec s = cap_of("two", EACH_HOST, 2);
    set_limit(f, &s);
    assert_int_equal(used(f, "two", "a"), 3);
    assert_int_equal(take(f, &w, 9).n, 0);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(take(f, &w, 9).n, 0);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    assert_int_equal(take(f, &w, 9).n, 1);
    s.concurrency = 4;
    set_limit(f, &s);
    assert_int_equal(take(f, &w, 9).n, 2);
    assert_int_equal(take(f, &w, 9).n, 0);
    unset_limit(f, "two");
    assert_int_equal(take(f, &w, 99).n, 4);
    end(f, &w);
}

/* The lane leaves the limit that it is parked on. */
static void test_a_lane_that_is_limited_no_more_goes_on(void **state)
{
    struct fixture *f = *state;
    const struct sv ab[] = {SV("a"), SV("b")}, a[] = {SV("a")};
    struct limit_spec s = cap_of("one", EACH_NONE, 1);
    s.hosts = ab;
    s.n_hosts = 2;
    set_limit(f, &s);
    add_hosted(f, "a", 5, 2);
    job_id b = add_hosted(f, "b", 0, 1);
    struct session w = start(f, "w");
    assert_int_equal(take(f, &w, 9).n, 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    s.hosts = a;
    s.n_hosts = 1;
    set_limit(f, &s);
    assert_int_equal(take_for(f, &w, 1, DUR_S(5)), 1);
    assert_state(f, b, JOB_RUNNING);
    assert_int_equal(take(f, &w, 9).n, 0);
    assert_int_equal(used(f, "one", ""), 1);
    end(f, &w);
}

static void test_a_limit_that_replaces(void **state)
{
    struct fixture *f = *state;
    const struct sv fast[] = {SV("*.fast")};
    struct limit_spec each = cap_of("each", EACH_HOST, 1), big = cap_of("big", EACH_NONE, 4);
    big.hosts = fast;
    big.n_hosts = 1;
    big.replaces = true;
    set_limit(f, &each);
    set_limit(f, &big);
    add_hosted(f, "x.fast", 0, 9);
    add_hosted(f, "slow", 0, 9);
    struct session w = start(f, "w");
    assert_int_equal(take(f, &w, 99).n, 4 + 1);
    end(f, &w);
}

/* ---- rates ---- */

static void test_a_rate_goes_by_the_stores_time(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("rate", EACH_NONE, 0);
    s.rate = (struct rate){20, DUR_S(1)};
    s.burst = 2;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 50);
    add_hosted(f, "b", 0, 50);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 99);
    int64_t began = r.leases[0].claimed_at.us, last = began;
    assert_int_equal(r.n, 2);
    r = take(f, &w, 99);
    assert_int_equal(r.n, 0);
    assert_in_range(r.next_due.us, 1, 100000);
    int got = 2;
    while (got < 10) {
        r = take(f, &w, 99);
        got += (int)r.n;
        for (size_t i = 0; i < r.n; i++)
            last = r.leases[i].claimed_at.us;
        nap(DUR_US(r.next_due.us > 0 && r.next_due.us < 20000 ? r.next_due.us : 5000));
    }
    /* The burst, then one each 50 ms: the tenth not before 400 ms. */
    assert_true(last - began >= 8 * 50000 - 50000);
    assert_true(last - began < 3000000);
    end(f, &w);
}

/* ---- throttled answers ---- */

static void test_retry_after_holds_the_whole_gate(void **state)
{
    struct fixture *f = *state;
    struct limit_spec host = cap_of("host", EACH_HOST, 10), all = cap_of("all", EACH_NONE, 100);
    set_limit(f, &host);
    set_limit(f, &all);
    add_hosted(f, "a", 0, 5);
    add_hosted(f, "b", 0, 5);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 1);
    assert_sv(r.leases[0].host, "a");
    fail_throttled(f, &r.leases[0], DUR_MS(400));
    assert_int_equal(get(f, r.leases[0].id).attempt, 0);
    struct claim_result rest = take(f, &w, 99);
    assert_int_equal(rest.n, 5); /* b goes on: the limit that is not about hosts is not held */
    for (size_t i = 0; i < rest.n; i++)
        assert_sv(rest.leases[i].host, "b");
    struct gate_view g = gate(f, "host", "a");
    assert_int_equal(g.room.n, 0);
    assert_int_equal(g.room.why, SHUT_HELD);
    struct claim_result idle = take(f, &w, 99);
    assert_int_equal(idle.n, 0);
    assert_in_range(idle.next_due.us, 1, 400000);
    assert_int_equal(take_for(f, &w, 5, DUR_S(5)), 5);
    end(f, &w);
}

static void test_without_a_time_the_pause_doubles(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("host", EACH_HOST, 10);
    s.pause = DUR_MS(50);
    s.max_pause = DUR_S(10);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 3);
    struct session w = start(f, "w");
    int64_t pause = 50000;
    for (int i = 0; i < 3; i++, pause *= 2) {
        struct claim_result r;
        do {
            r = take(f, &w, 1);
            nap(DUR_MS(1));
        } while (!r.n);
        fail_throttled(f, &r.leases[0], DUR_US(-1));
        struct gate_view g = gate(f, "host", "a");
        int64_t held = g.state.held_until - g.state.held_at;
        assert_true(held == pause);
    }
    end(f, &w);
}

/* ---- breakers ---- */

/* Fails as often as it takes to open it. */
static void break_it(struct fixture *f, const struct session *w, int threshold)
{
    for (int i = 0; i < threshold; i++) {
        struct claim_result r = take(f, w, 1);
        assert_int_equal(r.n, 1);
        fail_transient(f, &r.leases[0], DUR_US(0));
    }
}

static struct lease probe(struct fixture *f, const struct session *w)
{
    struct claim_result r;
    int64_t until = f->s->ops->now(f->s).us + 5000000;
    do {
        r = take(f, w, 9);
        nap(DUR_MS(1));
    } while (!r.n && f->s->ops->now(f->s).us < until);
    assert_int_equal(r.n, 1); /* exactly one, whatever is wanted */
    assert_int_equal(gate(f, "brk", "").state.breaker, BREAKER_HALF_OPEN);
    assert_int_equal(take(f, w, 9).n, 0);
    return r.leases[0];
}

static void test_I8_breaker_opens_probes_and_closes(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 3, DUR_MS(60));
    set_limit(f, &s);
    add_hosted(f, "a", 0, 3);
    add_hosted(f, "b", 0, 3);
    struct session w = start(f, "w");
    break_it(f, &w, 3);
    struct gate_view g = gate(f, "brk", "");
    assert_int_equal(g.state.breaker, BREAKER_OPEN);
    assert_true(g.state.until - g.state.since == 60000);
    assert_sv(g.why, "3 transient failures in a row; last: connection refused");
    assert_int_equal(n_all(f, EVENT_BREAKER_OPENED), 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    struct lease l = probe(f, &w);
    assert_int_equal(n_all(f, EVENT_BREAKER_PROBED), 1);
    fail_transient(f, &l, DUR_US(0)); /* a longer pause */
    g = gate(f, "brk", "");
    assert_int_equal(g.state.breaker, BREAKER_OPEN);
    assert_true(g.state.until - g.state.since == 120000);
    assert_int_equal(n_all(f, EVENT_BREAKER_OPENED), 2);
    l = probe(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(gate(f, "brk", "").state.breaker, BREAKER_CLOSED);
    assert_int_equal(n_all(f, EVENT_BREAKER_CLOSED), 1);
    assert_int_equal(take_for(f, &w, 5, DUR_S(5)), 5);
    end(f, &w);
}

static void test_I8_a_lost_probe_opens_again_and_no_attempt_is_spent(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 2, DUR_MS(60));
    set_limit(f, &s);
    job_id id = add_hosted(f, "a", 0, 1);
    struct session w = start(f, "w"), dead = start(f, "dead"), third = start(f, "third");
    break_it(f, &w, 2);
    struct lease l = probe(f, &dead);
    expire(f, &dead);
    nap(DUR_MS(2));
    sweep(f, &w, 5);
    struct gate_view g = gate(f, "brk", "");
    assert_int_equal(g.state.breaker, BREAKER_OPEN);
    assert_true(g.state.until - g.state.since == 60000);
    assert_int_equal(get(f, id).attempt, 0);
    struct settle late = settle_of(&l, OUTCOME_DONE); /* the dead one speaks */
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    assert_int_equal(gate(f, "brk", "").state.breaker, BREAKER_OPEN);
    l = probe(f, &w);
    settle_ok(f, &l, OUTCOME_RELEASED); /* it never was one: the next may go at once */
    assert_int_equal(gate(f, "brk", "").state.breaker, BREAKER_OPEN);
    l = probe(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(gate(f, "brk", "").state.breaker, BREAKER_CLOSED);
    vanish(&dead);
    end(f, &third);
    end(f, &w);
}

/* Jobs that were claimed before it opened say nothing of the time after. */
static void test_I8_late_results_do_not_count(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 2, DUR_S(60));
    set_limit(f, &s);
    add_hosted(f, "a", 0, 4);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 4);
    assert_int_equal(r.n, 4);
    fail_transient(f, &r.leases[0], DUR_S(60));
    fail_transient(f, &r.leases[1], DUR_S(60));
    struct gate_view before = gate(f, "brk", "");
    assert_int_equal(before.state.breaker, BREAKER_OPEN);
    settle_ok(f, &r.leases[2], OUTCOME_DONE);
    fail_transient(f, &r.leases[3], DUR_S(60));
    struct gate_view after = gate(f, "brk", "");
    assert_memory_equal(&before.state, &after.state, sizeof(after.state));
    end(f, &w);
}

static void test_an_operator_opens_and_closes(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = breaker_of("brk", 5, DUR_S(60));
    struct gate_filter filter = {.limit = SV("brk")};
    int n = 0;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 3);
    add_hosted(f, "b", 0, 3);
    struct session w = start(f, "w");
    assert_int_equal(take(f, &w, 1).n, 1);
    OK(f->s->ops->breaker_act(f->s, &filter, BREAKER_DO_OPEN, DUR_US(0), SV("maintenance"), &n,
                              &f->e));
    assert_int_equal(n, 1);
    struct claim_result r = take(f, &w, 9);
    assert_int_equal(r.n, 0);
    assert_true(r.next_due.us < 0);
    OK(f->s->ops->breaker_act(f->s, &filter, BREAKER_DO_CLOSE, DUR_US(0), SV("done"), &n, &f->e));
    assert_int_equal(take_for(f, &w, 5, DUR_S(5)), 5);
    end(f, &w);
}

/* ---- fair order ---- */

static void test_fair_every_lane_once_before_any_twice(void **state)
{
    struct fixture *f = *state;
    enum { HOSTS = 20 };
    char names[HOSTS][8];
    set_order(f, ORDER_FAIR);
    add_hosted(f, "big", 0, 200);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(names[i], sizeof(names[i]), "h%d", i);
        add_hosted(f, names[i], 0, 3);
    }
    struct session w = start(f, "w");
    int served[HOSTS + 1] = {0};
    for (int turn = 0; turn < 3 * (HOSTS + 1);) {
        struct claim_result r = take(f, &w, 5);
        for (size_t k = 0; k < r.n && turn < 3 * (HOSTS + 1); k++, turn++) {
            int at = HOSTS;
            if (!sv_eq(r.leases[k].host, SV("big")))
                at = (int)strtol(r.leases[k].host.p + 1, NULL, 10);
            assert_int_equal(served[at]++, turn / (HOSTS + 1));
        }
    }
    end(f, &w);
}

static void test_fair_priority_still_comes_first(void **state)
{
    struct fixture *f = *state;
    set_order(f, ORDER_FAIR);
    add_hosted(f, "a", 0, 3);
    add_hosted(f, "b", 0, 3);
    struct job_spec other = spec("other", "k", 0);
    job_id queue = add(f, &other);
    job_id high = add_hosted(f, "a", 5, 2);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 2);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v, high.v);
    assert_int_equal(r.leases[1].id.v, high.v + 1);
    r = take(f, &w, 3); /* b and the other queue before a */
    assert_int_equal(r.n, 3);
    assert_sv(r.leases[0].host, "b");
    assert_int_equal(r.leases[1].id.v, queue.v);
    assert_sv(r.leases[2].host, "a");
    set_order(f, ORDER_FIFO);
    r = take(f, &w, 9);
    assert_int_equal(r.n, 4);
    for (size_t i = 1; i < r.n; i++)
        assert_true(r.leases[i - 1].id.v < r.leases[i].id.v);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I7_a_cap_is_exact_over_two_handles),
        TEST(test_each_value_has_its_own_gate),
        TEST(test_all_limits_of_a_lane_must_admit),
        TEST(test_parked_lanes_come_back_best_first),
        TEST(test_a_paused_queue_does_not_keep_the_gate),
        TEST(test_what_waits_in_the_worker_has_no_gate_or_lock),
        TEST(test_one_job_by_id_obeys_its_gates),
        TEST(test_I7_every_end_of_a_lease_frees_its_permit),
        TEST(test_a_stretch_of_ends_frees_all),
        TEST(test_a_new_limit_counts_what_runs),
        TEST(test_a_lane_that_is_limited_no_more_goes_on),
        TEST(test_a_limit_that_replaces),
        TEST(test_a_rate_goes_by_the_stores_time),
        TEST(test_retry_after_holds_the_whole_gate),
        TEST(test_without_a_time_the_pause_doubles),
        TEST(test_I8_breaker_opens_probes_and_closes),
        TEST(test_I8_a_lost_probe_opens_again_and_no_attempt_is_spent),
        TEST(test_I8_late_results_do_not_count),
        TEST(test_an_operator_opens_and_closes),
        TEST(test_fair_every_lane_once_before_any_twice),
        TEST(test_fair_priority_still_comes_first),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
