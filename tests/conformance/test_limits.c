/* Limits as operators and the configuration set them, and as claims obey them; gates and breakers
 * by hand. */
#include "operating.h"

static bool configure(struct fixture *f, const struct limit_spec *v, size_t n, const char *text)
{
    struct policy p = {.limits = v, .n_limits = n};
    return apply(f, &p, text);
}

/* ---- setting ---- */

static void test_set_unset_and_their_events(void **state)
{
    struct fixture *f = *state;
    struct limit_spec a = capped("a", 3), b = capped("b", 5);
    set_limit(f, &b);
    set_limit(f, &a);
    struct limits l = limits(f);
    assert_int_equal(l.n, 2);
    assert_sv(l.v[0].spec.name, "a");
    assert_int_equal(l.v[0].spec.concurrency, 3);
    assert_true(l.v[0].by_operator);
    assert_false(l.v[0].in_config);
    assert_int_not_equal(l.v[0].changed_at.us, 0);
    assert_int_equal(change(f, LIMIT_SET, &a), LIMIT_SAME);
    a.concurrency = 4;
    set_limit(f, &a);
    assert_int_equal(limits(f).v[0].spec.concurrency, 4);
    struct last e = events(f, EVENT_LIMIT_SET);
    assert_int_equal(e.n, 3);
    assert_says(e.e.detail, "\"limit\":\"a\"");
    assert_says(e.e.detail, "\\\"concurrency\\\":4");
    assert_says(e.e.detail, "\"by\":\"operator\"");
    assert_int_equal(act_on(f, LIMIT_UNSET, "a"), LIMIT_OK);
    assert_int_equal(act_on(f, LIMIT_UNSET, "a"), LIMIT_NOT_FOUND);
    assert_int_equal(act_on(f, LIMIT_RESET, "b"), LIMIT_NOT_FOUND);
    assert_int_equal(limits(f).n, 1);
    e = events(f, EVENT_LIMIT_UNSET);
    assert_int_equal(e.n, 1);
    assert_says(e.e.detail, "\"text\":null");
}

static void test_set_refuses_what_limits_nothing(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = capped("idle", 0);
    enum limit_outcome out;
    FAILS(f->s->ops->limit_act(f->s, LIMIT_SET, &s, &out, &f->e), PAWL_EINPUT);
    assert_int_equal(limits(f).n, 0);
}

static void test_the_configuration_is_applied_once(void **state)
{
    struct fixture *f = *state;
    struct limit_spec v[] = {capped("a", 1), capped("b", 2)};
    assert_true(configure(f, v, 2, "first"));
    assert_false(configure(f, v, 2, "first"));
    struct limits l = limits(f);
    assert_int_equal(l.n, 2);
    assert_true(l.v[0].in_config);
    assert_false(l.v[0].by_operator);
    assert_int_equal(events(f, EVENT_LIMIT_SET).n, 3); /* one of them built in */
    v[1].concurrency = 3;
    assert_true(configure(f, v + 1, 1, "second"));
    l = limits(f);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0].spec.concurrency, 3);
    assert_int_equal(events(f, EVENT_LIMIT_SET).n, 4);
    assert_int_equal(events(f, EVENT_LIMIT_UNSET).n, 1);
    assert_says(events(f, EVENT_LIMIT_UNSET).e.detail, "\"by\":\"config\"");
}

static void test_what_an_operator_set_wins(void **state)
{
    struct fixture *f = *state;
    struct limit_spec config = capped("a", 1), hand = capped("a", 9), own = capped("own", 7);
    configure(f, &config, 1, "first");
    set_limit(f, &hand);
    set_limit(f, &own);
    config.concurrency = 2;
    configure(f, &config, 1, "second");
    struct limits l = limits(f);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.v[0].spec.concurrency, 9);
    assert_true(l.v[0].by_operator);
    assert_true(l.v[0].in_config);
    assert_int_equal(act_on(f, LIMIT_RESET, "a"), LIMIT_OK);
    assert_int_equal(act_on(f, LIMIT_RESET, "a"), LIMIT_SAME);
    l = limits(f);
    assert_int_equal(l.v[0].spec.concurrency, 2);
    assert_false(l.v[0].by_operator);
    set_limit(f, &hand);
    configure(f, NULL, 0, "none");
    l = limits(f);
    assert_int_equal(l.n, 2);
    assert_false(l.v[0].in_config);
    assert_int_equal(act_on(f, LIMIT_RESET, "a"), LIMIT_NOT_FOUND);
}

static void test_what_an_operator_removed_stays_away(void **state)
{
    struct fixture *f = *state;
    struct limit_spec v[] = {capped("a", 1), capped("b", 1)};
    configure(f, v, 2, "first");
    assert_int_equal(act_on(f, LIMIT_UNSET, "a"), LIMIT_OK);
    v[1].concurrency = 2;
    configure(f, v, 2, "second");
    assert_int_equal(limits(f).n, 1);
    v[0].concurrency = 2;
    configure(f, v, 2, "third");
    struct limits l = limits(f);
    assert_int_equal(l.n, 2);
    assert_false(l.v[0].by_operator);
    assert_int_equal(act_on(f, LIMIT_UNSET, "a"), LIMIT_OK);
    assert_int_equal(act_on(f, LIMIT_RESET, "a"), LIMIT_OK);
    assert_int_equal(limits(f).n, 2);
}

/* ---- built in ---- */

static struct limit_view the_built_in(struct fixture *f)
{
    struct limits l = all_limits(f);
    for (size_t i = 0; i < l.n; i++)
        if (sv_eq(l.v[i].spec.name, SV("every-host")))
            return l.v[i];
    return (struct limit_view){0};
}

static void test_built_in_limits_come_by_themselves(void **state)
{
    struct fixture *f = *state;
    struct limit_spec own = capped("own", 3), config = capped("every-host", 7);
    assert_int_equal(all_limits(f).n, 0);
    configure(f, &own, 1, "of another worker");
    assert_true(the_built_in(f).built_in); /* though it is not named */
    assert_false(apply(f, NULL, ""));      /* nothing configured: nothing disturbed */
    assert_int_equal(limits(f).n, 1);
    assert_int_equal(the_built_in(f).spec.concurrency, 2);
    assert_false(the_built_in(f).by_operator);
    assert_says(events(f, EVENT_LIMIT_SET).e.detail, "\"by\":\"config\"");
    configure(f, &config, 1, "names it");
    assert_int_equal(the_built_in(f).spec.concurrency, 7);
    assert_false(the_built_in(f).built_in);
    assert_false(apply(f, NULL, "")); /* the other worker's holds */
    configure(f, &own, 1, "names it no more");
    assert_true(the_built_in(f).built_in);
    assert_says(events(f, EVENT_LIMIT_SET).e.detail, "\"limit\":\"own\"");
}

static void test_without_configuration_only_what_is_built_in(void **state)
{
    struct fixture *f = *state;
    assert_true(apply(f, NULL, ""));
    assert_false(apply(f, NULL, ""));
    assert_int_equal(all_limits(f).n, 1);
    assert_says(events(f, EVENT_LIMIT_SET).e.detail, "\"by\":\"built in\"");
    struct job_spec s = spec("q", "fetch", 0);
    s.host = SV("a.example");
    job_id last = {0};
    for (int i = 0; i < 3; i++)
        last = add(f, &s);
    s.host = SV("127.0.0.1");
    for (int i = 0; i < 3; i++)
        add(f, &s);
    struct session w = start(f, "w");
    size_t n = 0;
    for (int i = 0; i < 5; i++)
        n += claim(f, &w, "fetch", 9).n;
    assert_int_equal(n, 1 + 3);
    struct explain_view v = explain(f, last); /* and it is the cause */
    assert_int_equal(v.n_gates, 1);
    assert_sv(v.gates[0].limit, "every-host");
    assert_sv(v.gates[0].value, "a.example");
    assert_int_equal(v.gates[0].room.why, SHUT_RATE);
    end(f, &w);
}

static void test_an_operator_has_the_last_word_on_what_is_built_in(void **state)
{
    struct fixture *f = *state;
    struct limit_spec hand = *limit_built_in(SV("every-host"));
    hand.concurrency = 9;
    for (int round = 0; round < 2; round++) { /* before any worker has brought it, and after */
        set_limit(f, &hand);
        apply(f, NULL, "");
        configure(f, NULL, 0, round ? "b" : "a");
        assert_int_equal(the_built_in(f).spec.concurrency, 9);
        assert_true(the_built_in(f).by_operator);
        assert_int_equal(act_on(f, LIMIT_RESET, "every-host"), LIMIT_OK);
        assert_int_equal(the_built_in(f).spec.concurrency, 2);
        assert_int_equal(act_on(f, LIMIT_RESET, "every-host"), LIMIT_SAME);
        assert_int_equal(act_on(f, LIMIT_UNSET, "every-host"), LIMIT_OK);
        assert_int_equal(act_on(f, LIMIT_UNSET, "every-host"), LIMIT_NOT_FOUND);
        apply(f, NULL, "");
        configure(f, NULL, 0, round ? "d" : "c");
        assert_int_equal(all_limits(f).n, 0);
        assert_int_equal(act_on(f, LIMIT_RESET, "every-host"), LIMIT_OK);
        assert_true(the_built_in(f).built_in);
    }
}

static bool told_unset(struct fixture *f, const char *name)
{
    struct limits l;
    bool found = false;
    OK(f->s->ops->policy(f->s, &f->a, &l.v, &l.n, &l.order, &l.aging, &f->e));
    for (size_t i = 0; i < l.n; i++)
        found |= l.v[i].unset && sv_eq(l.v[i].spec.name, sv_of(name));
    return found;
}

static void test_one_that_no_worker_brought_can_be_removed(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(act_on(f, LIMIT_UNSET, "every-host"), LIMIT_OK);
    apply(f, NULL, "");
    assert_int_equal(all_limits(f).n, 0);
    assert_true(told_unset(f, "every-host"));
    assert_int_equal(act_on(f, LIMIT_RESET, "every-host"), LIMIT_OK);
    assert_int_equal(all_limits(f).n, 1);
    assert_false(told_unset(f, "every-host"));
}

static void test_the_order_and_aging_are_kept(void **state)
{
    struct fixture *f = *state;
    struct policy p = {.order = ORDER_FAIR, .aging = HOUR};
    assert_true(apply(f, &p, "fair"));
    struct limits l = limits(f);
    assert_int_equal(l.order, ORDER_FAIR);
    assert_int_equal(l.aging.us, HOUR.us);
    p = (struct policy){0};
    apply(f, &p, "");
    l = limits(f);
    assert_int_equal(l.order, ORDER_FIFO);
    assert_int_equal(l.aging.us, 0);
}

/* ---- what claims obey ---- */

static void test_I7_a_cap_holds_and_frees(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("two", 2);
    set_limit(f, &s);
    for (int i = 0; i < 4; i++)
        add_plain(f, 0);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 2);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    end(f, &w);
    w = start(f, "w2");
    assert_int_equal(claim(f, &w, "k", 10).n, 2);
    end(f, &w);
}

static void test_I7_running_jobs_count_at_once(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    for (int i = 0; i < 5; i++)
        add_plain(f, 0);
    struct claim_result r = claim(f, &w, "k", 3);
    assert_int_equal(r.n, 3);
    struct limit_spec s = capped("two", 2);
    set_limit(f, &s);
    struct gate_list g = gates(f, NULL);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.v[0].used, 3);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    s.concurrency = 3;
    set_limit(f, &s);
    assert_int_equal(gates(f, NULL).v[0].used, 2);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    end(f, &w);
}

static void test_I7_a_limit_that_goes_lets_all_through(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("one", 1);
    set_limit(f, &s);
    for (int i = 0; i < 3; i++)
        add_host(f, i % 2 ? "a" : "b", 0);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    assert_int_equal(act_on(f, LIMIT_UNSET, "one"), LIMIT_OK);
    assert_int_equal(gates(f, NULL).n, 0);
    assert_int_equal(claim(f, &w, "k", 10).n, 2);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    end(f, &w);
}

static void test_I7_all_limits_of_a_lane_must_admit(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec all = capped("all", 3), each = capped("each", 1);
    each.each = EACH_HOST;
    set_limit(f, &all);
    set_limit(f, &each);
    const char *const hosts[] = {"a", "a", "b", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        add_host(f, hosts[i], 0);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 3);
    assert_sv(r.leases[0].host, "a");
    assert_sv(r.leases[1].host, "b");
    assert_sv(r.leases[2].host, "c");
    settle_ok(f, &r.leases[2], OUTCOME_DONE);
    r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_sv(r.leases[0].host, "d");
    end(f, &w);
}

static void test_a_named_limit_replaces_each(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct sv pattern = SV("*.wide.org");
    struct limit_spec each = capped("each", 1), wide = capped("wide", 3);
    each.each = EACH_HOST;
    wide.hosts = &pattern;
    wide.n_hosts = 1;
    set_limit(f, &each);
    for (int i = 0; i < 4; i++)
        add_host(f, "x.wide.org", 0);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    wide.replaces = true;
    set_limit(f, &wide);
    assert_int_equal(claim(f, &w, "k", 10).n, 2);
    struct gate_filter of_each = {.limit = SV("each"), .value = SV("x.wide.org")};
    assert_int_equal(gates(f, &of_each).v[0].used, 0);
    end(f, &w);
}

static void test_patterns_of_addresses_mean_no_names(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct sv in = SV("10.*"), out = SV("!127.*");
    struct limit_spec inside = capped("inside", 1), outside = capped("outside", 1);
    inside.hosts = &in;
    outside.hosts = &out;
    inside.n_hosts = outside.n_hosts = 1;
    outside.each = EACH_HOST;
    set_limit(f, &outside);
    for (int i = 0; i < 3; i++) {
        add_host(f, "127.0.0.1", 0);
        add_host(f, "127.example.org", 0);
    }
    assert_int_equal(claim(f, &w, "k", 10).n, 3 + 1);
    set_limit(f, &inside);
    for (int i = 0; i < 3; i++)
        add_host(f, "10.0.0.1", 0);
    add_host(f, "10.example.org", 0);
    assert_int_equal(claim(f, &w, "k", 10).n, 1 + 1);
    end(f, &w);
}

static void test_a_limit_that_becomes_each_counts_anew(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("one", 1);
    set_limit(f, &s);
    add_host(f, "a", 0);
    add_host(f, "a", 0);
    add_host(f, "b", 0);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    s.each = EACH_HOST;
    set_limit(f, &s);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_sv(r.leases[0].host, "b");
    struct gate_list g = gates(f, NULL);
    assert_int_equal(g.n, 2);
    assert_sv(g.v[0].value, "a");
    assert_int_equal(g.v[0].used, 1);
    assert_sv(g.v[1].value, "b");
    end(f, &w);
}

/* ---- gates and breakers ---- */

static void test_gates_are_shown_with_their_use(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("hosts", 1);
    s.each = EACH_HOST;
    set_limit(f, &s);
    add_host(f, "a", 1);
    add_host(f, "a", 1);
    add_host(f, "b", 0);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 2);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    struct gate_list g = gates(f, NULL);
    assert_int_equal(g.n, 2);
    assert_sv(g.v[0].limit, "hosts");
    assert_sv(g.v[0].value, "a");
    assert_int_equal(g.v[0].used, 1);
    assert_int_equal(g.v[0].parked, 1);
    assert_int_equal(g.v[0].room.n, 0);
    assert_int_equal(g.v[0].room.why, SHUT_FULL);
    assert_int_equal(g.v[0].params.cap, 1);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    struct gate_filter shut = {.shut = true}, breakers = {.breaker = true};
    g = gates(f, &shut);
    assert_int_equal(g.n, 1);
    assert_sv(g.v[0].value, "a");
    assert_int_equal(gates(f, &breakers).n, 0);
    end(f, &w);
}

static void test_a_breaker_by_hand(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("q", 5);
    s.queue = SV("q");
    set_limit(f, &s);
    assert_int_equal(breaker(f, "q", BREAKER_DO_OPEN, HOUR, "too early"), 0);
    add_plain(f, 0);
    add_plain(f, 0);
    struct claim_result r = claim(f, &w, "k", 1);
    assert_int_equal(breaker(f, "q", BREAKER_DO_OPEN, HOUR, "they asked"), 1);
    struct last e = events(f, EVENT_BREAKER_OPENED);
    assert_int_equal(e.n, 1);
    assert_says(e.e.detail, "\"limit\":\"q\"");
    assert_says(e.e.detail, "\"why\":\"they asked\"");
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    struct gate_filter breakers = {.breaker = true};
    struct gate_list g = gates(f, &breakers);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.v[0].state.breaker, BREAKER_OPEN);
    assert_int_equal(g.v[0].room.why, SHUT_BREAKER);
    assert_true(g.v[0].room.until > f->s->ops->now(f->s).us);
    assert_sv(g.v[0].why, "they asked");
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    assert_int_equal(breaker(f, "q", BREAKER_DO_CLOSE, DUR_US(0), NULL), 1);
    assert_int_equal(events(f, EVENT_BREAKER_CLOSED).n, 1);
    assert_null(gates(f, NULL).v[0].why.p);
    r = claim(f, &w, "k", 1);
    assert_int_equal(r.n, 1);
    assert_int_equal(breaker(f, "q", BREAKER_DO_CLOSE, DUR_US(0), NULL), 1);
    assert_int_equal(events(f, EVENT_BREAKER_CLOSED).n, 1);
    end(f, &w);
}

static void test_a_breaker_open_until_closed(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("q", 5);
    set_limit(f, &s);
    add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_RELEASED);
    breaker(f, "q", BREAKER_DO_OPEN, DUR_US(0), NULL);
    struct gate_view g = gates(f, NULL).v[0];
    assert_true(g.state.until == INT64_MAX);
    assert_sv(g.why, "opened by an operator");
    assert_says(events(f, EVENT_BREAKER_OPENED).e.detail, "\"until\":null");
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    assert_int_equal(breaker(f, "q", BREAKER_DO_RESET, DUR_US(0), NULL), 1);
    assert_int_equal(events(f, EVENT_BREAKER_CLOSED).n, 1);
    assert_int_equal(claim(f, &w, "k", 1).n, 1);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_set_unset_and_their_events),
        TEST(test_set_refuses_what_limits_nothing),
        TEST(test_the_configuration_is_applied_once),
        TEST(test_what_an_operator_set_wins),
        TEST(test_what_an_operator_removed_stays_away),
        TEST(test_built_in_limits_come_by_themselves),
        TEST(test_without_configuration_only_what_is_built_in),
        TEST(test_an_operator_has_the_last_word_on_what_is_built_in),
        TEST(test_one_that_no_worker_brought_can_be_removed),
        TEST(test_the_order_and_aging_are_kept),
        TEST(test_I7_a_cap_holds_and_frees),
        TEST(test_I7_running_jobs_count_at_once),
        TEST(test_I7_a_limit_that_goes_lets_all_through),
        TEST(test_I7_all_limits_of_a_lane_must_admit),
        TEST(test_a_named_limit_replaces_each),
        TEST(test_patterns_of_addresses_mean_no_names),
        TEST(test_a_limit_that_becomes_each_counts_anew),
        TEST(test_gates_are_shown_with_their_use),
        TEST(test_a_breaker_by_hand),
        TEST(test_a_breaker_open_until_closed),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
