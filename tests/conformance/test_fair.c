/* Fair order: lanes are served in turn, within a priority. */
#include "gating.h"

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
        TEST(test_fair_every_lane_once_before_any_twice),
        TEST(test_fair_priority_still_comes_first),
    };
    return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
