/* Gates that shut for a time: rates, throttled answers, breakers (I8). */
#include "gating.h"

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
    if (r.n) /* this machine is slow */
        assert_true(r.leases[0].claimed_at.us - began >= 50000);
    else
        assert_in_range(r.next_due.us, 1, 100000);
    int got = 2 + (int)r.n;
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
    struct limit_spec s = breaker_of("brk", 3, DUR_MS(250));
    set_limit(f, &s);
    add_hosted(f, "a", 0, 3);
    add_hosted(f, "b", 0, 3);
    struct session w = start(f, "w");
    break_it(f, &w, 3);
    struct gate_view g = gate(f, "brk", "");
    assert_int_equal(g.state.breaker, BREAKER_OPEN);
    assert_true(g.state.until - g.state.since == 250000);
    assert_sv(g.why, "3 transient failures in a row; last: connection refused");
    assert_int_equal(n_all(f, EVENT_BREAKER_OPENED), 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    struct lease l = probe(f, &w);
    assert_int_equal(n_all(f, EVENT_BREAKER_PROBED), 1);
    fail_transient(f, &l, DUR_US(0)); /* a longer pause */
    g = gate(f, "brk", "");
    assert_int_equal(g.state.breaker, BREAKER_OPEN);
    assert_true(g.state.until - g.state.since == 500000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_rate_goes_by_the_stores_time),
        TEST(test_retry_after_holds_the_whole_gate),
        TEST(test_without_a_time_the_pause_doubles),
        TEST(test_I8_breaker_opens_probes_and_closes),
        TEST(test_I8_a_lost_probe_opens_again_and_no_attempt_is_spent),
        TEST(test_I8_late_results_do_not_count),
        TEST(test_an_operator_opens_and_closes),
    };
    return cmocka_run_group_tests_name("shut", tests, NULL, NULL);
}
