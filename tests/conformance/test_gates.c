/* Limits in the claim: caps exact over lanes and handles, and permits that never leak (I7). */
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

static struct lease run_the_one(struct fixture *f, const struct session *w)
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
    end_in_every_way(f, run_the_one, "one", "a");
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

/* ---- which lanes a limit is about, also while jobs run ---- */

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
        TEST(test_excluded_hosts_are_not_limited),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
