/* What a host that a running job asked hears of it: a start, the end it tells of, and the pace at
 * which it wants to be asked. */
#include "admitting.h"

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
    struct limit_spec s = breaker_of("brk", 1, DUR_S(1));
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
    nap(DUR_MS(1010));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_counts_as_a_start),
        TEST(test_I8_it_may_be_the_probe),
        TEST(test_the_end_tells_of_its_peer),
        TEST(test_a_gate_of_both_hears_the_signal),
        TEST(test_what_was_admitted_later_counts_anew),
        TEST(test_a_pace_spaces_starts),
        TEST(test_a_pace_is_a_floor),
        TEST(test_no_gate_no_pace),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
