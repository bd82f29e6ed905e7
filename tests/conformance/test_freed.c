/* A permit that was freed does not lie idle: whoever may take it hears of it or looks again soon,
 * also where the end of one lease and another's claim meet at the same gate. */
#include "gating.h"

#include <poll.h>

/* One job runs under a gate of one, another waits for it. */
static struct lease begin(struct fixture *f, const struct session *w)
{
    struct limit_spec s = cap_of("one", EACH_NONE, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 2);
    struct claim_result r = take(f, w, 1);
    assert_int_equal(r.n, 1);
    return r.leases[0];
}

static void test_a_freed_permit_is_told_to_others(void **state)
{
    struct fixture *f = *state;
    struct store *other = open_again(f);
    struct session w = start(f, "w");
    struct lease l = begin(f, &w);
    assert_int_equal(take(f, &w, 1).n, 0);
    struct pollfd p = {other->ops->wake_fd(other), POLLIN, 0};
    if (p.fd >= 0) {
        do
            other->ops->wake_clear(other);
        while (poll(&p, 1, on_postgres() ? 300 : 0) > 0);
        settle_ok(f, &l, OUTCOME_DONE);
        assert_int_equal(poll(&p, 1, 5000), 1);
    }
    end(f, &w);
    store_close(other);
}

/* The claim that has the gate counted before the permit was free, and will not look again by
 * itself. */
static void test_a_gate_that_another_claim_has_is_looked_at_again(void **state)
{
    struct fixture *f = *state;
    if (!on_postgres())
        return; /* one writes at a time */
    struct store *one = f->s, *two = open_again(f);
    struct session w = start(f, "w");
    struct lease l = begin(f, &w);
    assert_int_equal(take(f, &w, 1).n, 0);
    nap(DUR_MS(20)); /* a gate that was just found full is looked at again */
    f->s = two;
    OK(two->ops->group_begin(two, &f->e));
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    f->s = one;
    OK(one->ops->group_begin(one, &f->e));
    settle_ok(f, &l, OUTCOME_DONE);
    struct claim_result r = claim(f, &w, "k", 1);
    assert_true(r.n == 0 && r.busy);
    OK(one->ops->group_commit(one, &f->e));
    OK(two->ops->group_commit(two, &f->e));
    assert_int_equal(take(f, &w, 1).n, 1);
    end(f, &w);
    store_close(two);
}

/* The settle looked whether somebody waits before there was anybody: it writes no wake. */
static void test_a_settle_that_did_not_see_the_waiter_is_waited_for(void **state)
{
    struct fixture *f = *state;
    if (!on_postgres())
        return;
    struct store *one = f->s, *two = open_again(f);
    struct session w = start(f, "w");
    struct lease l = begin(f, &w);
    OK(one->ops->group_begin(one, &f->e));
    settle_ok(f, &l, OUTCOME_DONE);
    f->s = two;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take(f, &w, 1).n, 0);
        nap(DUR_MS(25));
    }
    OK(one->ops->group_commit(one, &f->e));
    assert_int_equal(take_for(f, &w, 1, DUR_MS(600)), 1);
    f->s = one;
    end(f, &w);
    store_close(two);
}

/* No order is promised between claims that run at the same time: what another has just taken from
 * the best lanes keeps nobody from those behind them. */
static void test_lanes_that_another_claim_takes_from_are_passed_by(void **state)
{
    struct fixture *f = *state;
    if (!on_postgres())
        return; /* one writes at a time */
    struct store *one = f->s, *two = open_again(f);
    struct session w = start(f, "w");
    char host[16];
    for (int i = 0; i < 120; i++) {
        snprintf(host, sizeof(host), "h%d", i % 60);
        add_hosted(f, host, 0, 1);
    }
    assert_int_equal(claim(f, &w, "k", 1).n, 1); /* the lanes are there */
    f->s = two;
    OK(two->ops->group_begin(two, &f->e));
    assert_int_equal(claim(f, &w, "k", 20).n, 20);
    f->s = one;
    assert_int_equal(claim(f, &w, "k", 20).n, 20);
    OK(two->ops->group_commit(two, &f->e));
    assert_int_equal(claim(f, &w, "k", 100).n, 79);
    end(f, &w);
    store_close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_freed_permit_is_told_to_others),
        TEST(test_a_gate_that_another_claim_has_is_looked_at_again),
        TEST(test_a_settle_that_did_not_see_the_waiter_is_waited_for),
        TEST(test_lanes_that_another_claim_takes_from_are_passed_by),
    };
    return cmocka_run_group_tests_name("freed", tests, NULL, NULL);
}
