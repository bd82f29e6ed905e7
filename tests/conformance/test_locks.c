/* Locks in the claim (I3): one at a time, the best first, freed by every end. */
#include "gating.h"

static struct lease next(struct fixture *f, const struct session *w, job_id want)
{
    struct claim_result r = take(f, w, 9);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, want.v);
    assert_int_equal(take(f, w, 9).n, 0);
    return r.leases[0];
}

static void test_I3_one_at_a_time_by_priority_then_id(void **state)
{
    struct fixture *f = *state;
    job_id a = add_locked(f, "db", 0), b = add_locked(f, "db", 0), c = add_locked(f, "db", 5);
    struct session w = start(f, "w");
    const job_id order[] = {c, a, b};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        struct lease l = next(f, &w, order[i]);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    end(f, &w);
}

static void test_held_jobs_are_queued_for_everybody(void **state)
{
    struct fixture *f = *state;
    int64_t n = 0;
    for (int i = 0; i < 5; i++)
        assert_state(f, add_locked(f, "db", 0), JOB_QUEUED);
    struct selection queued = {.states = 1u << JOB_QUEUED};
    OK(f->s->ops->count(f->s, &queued, &n, &f->e));
    assert_int_equal(n, 5);
    struct status_view v;
    OK(f->s->ops->status(f->s, 0, &f->a, &v, &f->e));
    assert_int_equal(v.classes[0].n[JOB_QUEUED], 5);
    assert_sv(get(f, (job_id){1}).lock, "db");
}

static void test_locks_do_not_keep_others(void **state)
{
    struct fixture *f = *state;
    add_locked(f, "one", 9);
    add_locked(f, "one", 9);
    add_locked(f, "two", 9);
    add_plain(f, 0);
    struct session w = start(f, "w");
    assert_int_equal(take(f, &w, 9).n, 3);
    assert_int_equal(take(f, &w, 9).n, 0);
    end(f, &w);
}

static void test_I3_every_end_frees_the_lock(void **state)
{
    struct fixture *f = *state;
    const enum outcome ways[] = {OUTCOME_DONE, OUTCOME_SKIPPED, OUTCOME_FAILED, OUTCOME_CANCELLED};
    struct session w = start(f, "w");
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        job_id a = add_locked(f, "db", 0), b = add_locked(f, "db", 0);
        struct lease l = next(f, &w, a);
        settle_ok(f, &l, ways[i]);
        l = next(f, &w, b);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    end(f, &w);
}

static void test_a_job_that_comes_back_stands_in_line(void **state)
{
    struct fixture *f = *state;
    job_id a = add_locked(f, "db", 0), b = add_locked(f, "db", 0);
    struct session w = start(f, "w");
    struct lease l = next(f, &w, a);
    job_id c = add_locked(f, "db", 3);
    struct settle later = settle_of(&l, OUTCOME_RETRY);
    later.delay = DUR_S(60);
    assert_int_equal(settle(f, &later), SETTLE_OK);
    l = next(f, &w, c);
    settle_ok(f, &l, OUTCOME_DONE);
    l = next(f, &w, b);
    act(f, ACT_RELEASE, a); /* its time is now, but b runs */
    assert_int_equal(take(f, &w, 9).n, 0);
    settle_ok(f, &l, OUTCOME_RELEASED); /* a is older */
    l = next(f, &w, a);
    settle_ok(f, &l, OUTCOME_RELEASED);
    l = next(f, &w, a);
    settle_ok(f, &l, OUTCOME_DONE);
    l = next(f, &w, b);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static void test_I3_a_lost_lease_frees_the_lock(void **state)
{
    struct fixture *f = *state;
    job_id a = add_locked(f, "db", 0);
    add_locked(f, "db", 0);
    struct session dead = start(f, "dead"), w = start(f, "w");
    struct lease old = next(f, &dead, a);
    expire(f, &dead);
    nap(DUR_MS(2));
    sweep(f, &w, 5);
    next(f, &w, a);
    struct settle late = settle_of(&old, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    assert_int_equal(take(f, &w, 9).n, 0); /* a stale holder frees nothing */
    end(f, &w);
    vanish(&dead);
}

static void test_cancel_set_and_retry_of_the_one_in_front(void **state)
{
    struct fixture *f = *state;
    job_id a = add_locked(f, "db", 5), b = add_locked(f, "db", 0), c = add_locked(f, "db", 0);
    struct session w = start(f, "w");
    act(f, ACT_CANCEL, a);
    struct job_change up = {.has_priority = true, .priority = 7};
    struct act_request set = {.act = ACT_SET, .select = {.ids = &c, .n_ids = 1}, .change = &up};
    struct act_result done;
    OK(f->s->ops->act(f->s, &set, &done, &f->e));
    struct lease l = next(f, &w, c);
    act(f, ACT_RETRY, a);
    assert_int_equal(take(f, &w, 9).n, 0);
    settle_ok(f, &l, OUTCOME_DONE);
    struct job_change away = {.has_time = true, .delay = DUR_S(60)};
    set = (struct act_request){.act = ACT_SET, .select = {.ids = &a, .n_ids = 1}, .change = &away};
    OK(f->s->ops->act(f->s, &set, &done, &f->e));
    l = next(f, &w, b);
    settle_ok(f, &l, OUTCOME_DONE);
    act(f, ACT_RELEASE, a);
    l = next(f, &w, a);
    end(f, &w);
}

static void test_a_delayed_job_takes_its_place(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = spec("q", "k", 5);
    s.lock = SV("db");
    s.delay = DUR_MS(300);
    job_id late = add(f, &s), now = add_locked(f, "db", 0), other = add_locked(f, "db", 0);
    struct session w = start(f, "w");
    struct lease l = next(f, &w, now);
    nap(DUR_MS(350));
    assert_int_equal(take(f, &w, 9).n, 0);
    settle_ok(f, &l, OUTCOME_DONE);
    l = next(f, &w, late);
    settle_ok(f, &l, OUTCOME_DONE);
    next(f, &w, other);
    end(f, &w);
}

static void test_replacing_moves_from_lock_to_lock(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "key");
    s.lock = SV("one");
    job_id a = add(f, &s), b = add_locked(f, "one", 0), c = add_locked(f, "two", 0);
    s.lock = SV("two");
    s.priority = 4;
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, NULL), ADD_REPLACED);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 9);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v, a.v);
    assert_int_equal(r.leases[1].id.v, b.v);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    next(f, &w, c);
    end(f, &w);
}

static void test_locks_and_gates_together(void **state)
{
    struct fixture *f = *state;
    struct limit_spec one = cap_of("one", EACH_NONE, 1);
    set_limit(f, &one);
    job_id a = add_locked(f, "db", 0), b = add_locked(f, "db", 0), plain = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = next(f, &w, a);
    settle_ok(f, &l, OUTCOME_DONE);
    l = next(f, &w, b);
    settle_ok(f, &l, OUTCOME_DONE);
    next(f, &w, plain);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I3_one_at_a_time_by_priority_then_id),
        TEST(test_held_jobs_are_queued_for_everybody),
        TEST(test_locks_do_not_keep_others),
        TEST(test_I3_every_end_frees_the_lock),
        TEST(test_a_job_that_comes_back_stands_in_line),
        TEST(test_I3_a_lost_lease_frees_the_lock),
        TEST(test_cancel_set_and_retry_of_the_one_in_front),
        TEST(test_a_delayed_job_takes_its_place),
        TEST(test_replacing_moves_from_lock_to_lock),
        TEST(test_locks_and_gates_together),
    };
    return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
