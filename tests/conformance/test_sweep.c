/* Sweeping what dead workers held (I4, I6, I8). */
#include "fixture.h"

static struct sweep_result sweep_bounded(struct fixture *f, int sessions, int jobs)
{
    struct sweep_request req = {.max_sessions = sessions, .max_jobs = jobs, .max_lost = 3};
    struct sweep_result out;
    OK(f->s->ops->sweep(f->s, &req, &out, &f->e));
    assert_in_range(out.sessions, 0, sessions);
    assert_in_range(out.requeued + out.poisoned, 0, jobs);
    return out;
}

static void test_nothing_to_sweep(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    add_plain(f, 0);
    claim_one(f, &w);
    char *before = snapshot_all(f);
    struct sweep_result r = sweep(f, NULL, 3);
    assert_int_equal(r.sessions + r.requeued + r.poisoned + r.more, 0);
    assert_string_equal(snapshot_all(f), before);
    end(f, &w);
}

static void test_I4_dead_by_its_lock_at_once(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self"), w = start(f, "w");
    if (w.lock_fd < 0) {
        end(f, &w);
        end(f, &self);
        return; /* a store without kernel locks waits for the lease */
    }
    struct lease l = claim_one(f, &w);
    vanish(&w);
    struct sweep_result r = sweep(f, &self, 3);
    assert_int_equal(r.sessions, 1);
    assert_int_equal(r.requeued, 1);
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.lost, 1);
    assert_int_equal(v.attempt, 0);
    assert_int_equal(v.attempts[0].outcome, OUTCOME_LOST);
    assert_int_equal(v.attempts[0].cls, CLASS_LOST);
    assert_int_equal(n_events(f, id, EVENT_LOST), 1);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    assert_int_equal(claim_one(f, &self).id.v, id.v);
    end(f, &self);
}

static void test_I4_dead_by_its_lease(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self"), other = start(f, "other"), w = start(f, "w");
    claim_one(f, &w);
    expire(f, &w);
    struct sweep_result r = sweep(f, &self, 3);
    assert_int_equal(r.sessions, 1);
    assert_int_equal(r.requeued, 1);
    assert_int_equal(get(f, id).lost, 1);
    end(f, &w); /* it wakes up later and goes away in peace */
    assert_state(f, id, JOB_QUEUED);
    end(f, &self);
    end(f, &other);
}

static void test_I6_never_sweeps_itself(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self");
    claim_one(f, &self);
    expire(f, &self);
    assert_int_equal(sweep(f, &self, 3).sessions, 0);
    assert_state(f, id, JOB_RUNNING);
    assert_int_equal(sweep(f, NULL, 3).sessions, 1);
    assert_state(f, id, JOB_QUEUED);
    end(f, &self);
}

static void test_I6_bounded_by_jobs(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 25; i++)
        add_plain(f, 0);
    struct session w = start(f, "w");
    assert_int_equal(claim(f, &w, "k", 25).n, 25);
    expire(f, &w);
    int total = 0, calls = 0;
    struct sweep_result r;
    do {
        r = sweep_bounded(f, 10, 10);
        total += r.requeued;
        calls++;
        assert_clean(f);
    } while (r.more && calls < 10);
    assert_int_equal(total, 25);
    assert_int_equal(calls, 3);
    end(f, &w);
}

static void test_I6_bounded_by_sessions(void **state)
{
    struct fixture *f = *state;
    struct session w[7];
    for (size_t i = 0; i < ARRAY_LEN(w); i++) {
        add_plain(f, 0);
        w[i] = start(f, "w");
        claim_one(f, &w[i]);
        expire(f, &w[i]);
    }
    int sessions = 0, calls = 0;
    struct sweep_result r;
    do {
        r = sweep_bounded(f, 3, 100);
        sessions += r.sessions;
        calls++;
    } while (r.more && calls < 10);
    assert_int_equal(sessions, 7);
    assert_int_equal(calls, 3);
    for (size_t i = 0; i < ARRAY_LEN(w); i++)
        end(f, &w[i]);
}

/* Let the job lose `times` workers while others stay alive. */
static void lose(struct fixture *f, struct session *self, int times, int max_lost)
{
    for (int i = 0; i < times; i++) {
        struct session w = start(f, "doomed");
        claim_one(f, &w);
        expire(f, &w);
        sweep(f, self, max_lost);
        end(f, &w);
    }
}

static void test_I8_poison_after_max_lost(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self"), other = start(f, "other");
    lose(f, &self, 2, 3);
    assert_state(f, id, JOB_QUEUED);
    assert_int_equal(get(f, id).lost, 2);
    lose(f, &self, 1, 3);
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_FAILED);
    assert_int_equal(v.cls, CLASS_LOST);
    assert_int_equal(v.lost, 3);
    assert_non_null(strstr(v.error.p, "poison"));
    assert_int_equal(n_events(f, id, EVENT_FAILED), 1);
    struct status_view st;
    OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
    assert_int_equal(st.poisoned, 1);
    act(f, ACT_RETRY, id);
    assert_int_equal(get(f, id).lost, 0);
    OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
    assert_int_equal(st.poisoned, 0);
    end(f, &self);
    end(f, &other);
}

static void test_I8_outage_poisons_nobody(void **state)
{
    struct fixture *f = *state;
    struct session w[4];
    for (size_t i = 0; i < ARRAY_LEN(w); i++) {
        add_plain(f, 0);
        w[i] = start(f, "w");
        claim_one(f, &w[i]);
    }
    expire(f, &w[0]);
    expire(f, &w[1]); /* half of them */
    struct sweep_result r = sweep(f, &w[3], 1);
    assert_int_equal(r.sessions, 2);
    assert_int_equal(r.requeued, 2);
    assert_int_equal(r.poisoned, 0);
    assert_int_equal(get(f, (job_id){1}).lost, 0);
    assert_state(f, (job_id){1}, JOB_QUEUED);
    for (size_t i = 0; i < ARRAY_LEN(w); i++)
        end(f, &w[i]);
}

static void test_killed_workers_are_no_outage(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    struct session self = start(f, "self"), w = start(f, "w");
    claim_one(f, &w);
    bool by_lock = w.lock_fd >= 0;
    if (by_lock) {
        vanish(&w);
        struct sweep_result r = sweep(f, &self, 1);
        assert_int_equal(r.poisoned, 1);
        assert_state(f, (job_id){1}, JOB_FAILED);
    } else {
        end(f, &w);
    }
    end(f, &self);
}

static void test_lost_while_asked_to_cancel(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self"), other = start(f, "other"), w = start(f, "w");
    claim_one(f, &w);
    act(f, ACT_CANCEL, id);
    expire(f, &w);
    sweep(f, &self, 1);
    assert_state(f, id, JOB_CANCELLED);
    assert_int_equal(n_events(f, id, EVENT_CANCELLED), 1);
    assert_int_equal(n_events(f, id, EVENT_FAILED), 0);
    end(f, &w);
    end(f, &self);
    end(f, &other);
}

static void test_lost_delay_holds_back(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session self = start(f, "self"), other = start(f, "other"), w = start(f, "w");
    claim_one(f, &w);
    expire(f, &w);
    struct sweep_request req = {
        .self = &self, .max_sessions = 9, .max_jobs = 9, .max_lost = 3, .lost_delay = HOUR};
    struct sweep_result out;
    OK(f->s->ops->sweep(f->s, &req, &out, &f->e));
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_WAITING);
    assert_int_equal(v.wait_reason, WAIT_LOST);
    end(f, &w);
    end(f, &self);
    end(f, &other);
}

static void test_I4_long_job_is_never_taken_while_renewed(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    for (int i = 0; i < 50; i++) {
        struct renew_request r = {.session = &w, .lease = HOUR};
        struct renew_result out;
        OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
        assert_int_equal(sweep(f, NULL, 1).sessions, 0);
    }
    assert_int_equal(get(f, id).fence.v, l.fence.v);
    assert_state(f, id, JOB_RUNNING);
    end(f, &w);
}

static void test_swept_once(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    claim_one(f, &w);
    expire(f, &w);
    assert_int_equal(sweep(f, NULL, 3).sessions, 1);
    char *before = snapshot_all(f);
    assert_int_equal(sweep(f, NULL, 3).sessions, 0);
    assert_string_equal(snapshot_all(f), before);
    assert_state(f, id, JOB_QUEUED);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_to_sweep),
        TEST(test_I4_dead_by_its_lock_at_once),
        TEST(test_I4_dead_by_its_lease),
        TEST(test_I6_never_sweeps_itself),
        TEST(test_I6_bounded_by_jobs),
        TEST(test_I6_bounded_by_sessions),
        TEST(test_I8_poison_after_max_lost),
        TEST(test_I8_outage_poisons_nobody),
        TEST(test_killed_workers_are_no_outage),
        TEST(test_lost_while_asked_to_cancel),
        TEST(test_lost_delay_holds_back),
        TEST(test_I4_long_job_is_never_taken_while_renewed),
        TEST(test_swept_once),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
