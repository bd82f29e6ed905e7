/* Claiming: order, pools, filters, pauses, times, fences (I2, I3). */
#include "fixture.h"

enum { N_QUEUES = 4, N_KINDS = 3, N_HOSTS = 5, N_JOBS = 600 };
static const char *const queues[N_QUEUES] = {"alpha", "beta", "gamma", "delta"};
static const char *const kinds[N_KINDS] = {"k", "fetch", "parse"};
static const char *const hosts[N_HOSTS] = {"a.example", "b.example", "c.example", "d.example",
                                           NULL};

/* What the store should hold: jobs in the order they were added. */
struct wanted {
    job_id id;
    int queue, kind, priority;
    bool taken;
};

static uint64_t rng;
static int roll(int n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (int)((rng >> 33) % (unsigned)n);
}

static void fill(struct fixture *f, struct wanted *jobs)
{
    struct job_spec v[N_JOBS];
    struct add_result r[N_JOBS];
    for (int i = 0; i < N_JOBS; i++) {
        jobs[i] = (struct wanted){
            .queue = roll(N_QUEUES), .kind = roll(N_KINDS), .priority = roll(7) - 3};
        v[i] = spec(queues[jobs[i].queue], kinds[jobs[i].kind], jobs[i].priority);
        v[i].host = sv_of(hosts[roll(N_HOSTS)]);
    }
    OK(store_enqueue(f->s, v, N_JOBS, DUPLICATE_SKIP, r, &f->e));
    for (int i = 0; i < N_JOBS; i++)
        jobs[i].id = r[i].id;
}

/* The best job not yet taken of the kinds with room and the queues wanted, or NULL. */
static struct wanted *best(struct wanted *jobs, const int room[N_KINDS], unsigned queue_mask)
{
    struct wanted *b = NULL;
    for (int i = 0; i < N_JOBS; i++) {
        struct wanted *j = &jobs[i];
        if (j->taken || room[j->kind] <= 0 || !(queue_mask >> j->queue & 1))
            continue;
        if (!b || j->priority > b->priority)
            b = j;
    }
    return b;
}

static void compare_claim(struct fixture *f, const struct session *w, struct wanted *jobs,
                          const int want[N_KINDS], unsigned queue_mask, bool named)
{
    struct sv kind_names[N_KINDS], queue_names[N_QUEUES];
    struct claim_pool pools[N_KINDS];
    size_t n_queues = 0;
    int room[N_KINDS];
    for (int k = 0; k < N_KINDS; k++) {
        kind_names[k] = sv_of(kinds[k]);
        pools[k] = (struct claim_pool){&kind_names[k], 1, want[k]};
        room[k] = want[k];
    }
    for (int q = 0; q < N_QUEUES && named; q++)
        if (queue_mask >> q & 1)
            queue_names[n_queues++] = sv_of(queues[q]);
    struct claim_request req = {.session = w,
                                .pools = pools,
                                .n_pools = N_KINDS,
                                .queues = queue_names,
                                .n_queues = n_queues};
    struct claim_result got;
    OK(store_claim(f->s, &req, &f->a, &got, &f->e));
    for (size_t i = 0; i < got.n; i++) {
        struct wanted *j = best(jobs, room, queue_mask);
        assert_non_null(j);
        assert_int_equal(got.leases[i].id.v, j->id.v);
        assert_int_equal(got.leases[i].pool, j->kind);
        assert_sv(got.leases[i].queue, queues[j->queue]);
        assert_int_equal(got.leases[i].priority, j->priority);
        j->taken = true;
        room[j->kind]--;
    }
    assert_null(best(jobs, room, queue_mask));
}

static void test_order_over_lanes_is_priority_then_id(void **state)
{
    struct fixture *f = *state;
    struct wanted jobs[N_JOBS];
    rng = 1;
    fill(f, jobs);
    struct session w = start(f, "w");
    for (int i = 0; i < 20; i++) {
        int want[N_KINDS] = {roll(12), roll(12), roll(12)};
        compare_claim(f, &w, jobs, want, 0xf, false);
    }
    compare_claim(f, &w, jobs, (int[]){N_JOBS, N_JOBS, N_JOBS}, 0xf, false);
    end(f, &w);
}

static void test_pools_and_queue_filters(void **state)
{
    struct fixture *f = *state;
    struct wanted jobs[N_JOBS];
    rng = 2;
    fill(f, jobs);
    struct session w = start(f, "w");
    for (int i = 0; i < 30; i++) {
        int want[N_KINDS] = {roll(9) - 1, roll(9), 0};
        compare_claim(f, &w, jobs, want, 1u + (unsigned)roll(15), true);
    }
    end(f, &w);
}

static void test_kinds_of_no_pool_are_never_taken(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 5);
    struct session w = start(f, "w");
    assert_int_equal(claim(f, &w, "other", 10).n, 0);
    struct claim_request none = {.session = &w};
    struct claim_result out;
    OK(store_claim(f->s, &none, &f->a, &out, &f->e));
    assert_int_equal(out.n, 0);
    assert_int_equal(claim(f, &w, "k", 0).n, 0);
    assert_int_equal(claim(f, &w, "k", 10).n, 1);
    end(f, &w);
}

static void test_one_pool_of_several_kinds(void **state)
{
    struct fixture *f = *state;
    struct job_spec a = spec("q", "x", 1), b = spec("q", "y", 2), c = spec("q", "x", 3);
    job_id ids[] = {add(f, &a), add(f, &b), add(f, &c)};
    struct session w = start(f, "w");
    struct sv names[] = {SV("x"), SV("y")};
    struct claim_pool pool = {names, 2, 2};
    struct claim_request req = {.session = &w, .pools = &pool, .n_pools = 1};
    struct claim_result out;
    OK(store_claim(f->s, &req, &f->a, &out, &f->e));
    assert_int_equal(out.n, 2);
    assert_int_equal(out.leases[0].id.v, ids[2].v);
    assert_int_equal(out.leases[1].id.v, ids[1].v);
    end(f, &w);
}

static struct claim_result claim_only(struct fixture *f, const struct session *w, job_id id,
                                      const char *kind)
{
    struct sv names[] = {sv_of(kind)};
    struct claim_pool pool = {names, 1, 5};
    struct claim_request req = {.session = w, .pools = &pool, .n_pools = 1, .only = id};
    struct claim_result out;
    OK(store_claim(f->s, &req, &f->a, &out, &f->e));
    return out;
}

static void test_only_one_job_by_the_normal_rules(void **state)
{
    struct fixture *f = *state;
    job_id high = add_plain(f, 9), low = add_plain(f, 1);
    struct job_spec late = spec("q", "k", 0);
    late.delay = HOUR;
    job_id waiting = add(f, &late);
    struct session w = start(f, "w");
    assert_int_equal(claim_only(f, &w, low, "other").n, 0);
    assert_int_equal(claim_only(f, &w, waiting, "k").n, 0);
    assert_int_equal(claim_only(f, &w, (job_id){999}, "k").n, 0);
    struct claim_result r = claim_only(f, &w, low, "k");
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, low.v);
    assert_int_equal(claim_only(f, &w, low, "k").n, 0);
    assert_int_equal(claim_only(f, &w, high, "k").n, 1);
    assert_clean(f);
    bool changed;
    job_id paused = add_plain(f, 1);
    OK(f->s->ops->pause(f->s, SV("q"), true, &changed, &f->e));
    assert_int_equal(claim_only(f, &w, paused, "k").n, 0);
    end(f, &w);
}

static void test_paused_queue_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct job_spec a = spec("stopped", "k", 100), b = spec("open", "k", 0);
    job_id first = add(f, &a);
    add(f, &b);
    bool changed;
    OK(f->s->ops->pause(f->s, SV("stopped"), true, &changed, &f->e));
    assert_true(changed);
    OK(f->s->ops->pause(f->s, SV("stopped"), true, &changed, &f->e));
    assert_false(changed);
    struct session w = start(f, "w");
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_sv(r.leases[0].queue, "open");
    add(f, &a); /* and what comes while it is paused */
    struct job_spec new_kind = spec("stopped", "other", 1);
    add(f, &new_kind);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    assert_int_equal(claim(f, &w, "other", 10).n, 0);
    OK(f->s->ops->pause(f->s, SV("stopped"), false, &changed, &f->e));
    assert_true(changed);
    r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v, first.v);
    assert_int_equal(claim(f, &w, "other", 10).n, 1);
    end(f, &w);
}

static void test_queue_without_jobs_can_be_paused(void **state)
{
    struct fixture *f = *state;
    bool changed;
    OK(f->s->ops->pause(f->s, SV("later"), true, &changed, &f->e));
    assert_true(changed);
    struct job_spec s = spec("later", "k", 0);
    add(f, &s);
    struct session w = start(f, "w");
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    OK(f->s->ops->pause(f->s, SV("later"), false, &changed, &f->e));
    assert_int_equal(claim(f, &w, "k", 1).n, 1);
    end(f, &w);
}

static void test_delay_holds_back_until_due(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct job_spec far = spec("q", "k", 9), near = spec("q", "k", 0);
    assert_true(claim(f, &w, "k", 1).next_due.us < 0);
    far.delay = HOUR;
    job_id held = add(f, &far);
    near.delay = DUR_US(1);
    job_id due = add(f, &near);
    struct job_view v = get(f, held);
    assert_int_equal(v.state, JOB_WAITING);
    assert_int_equal(v.wait_reason, WAIT_DELAY);
    assert_in_range(v.available_at.us - v.created_at.us, HOUR.us, HOUR.us);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, due.v);
    assert_in_range(r.next_due.us, HOUR.us - DUR_S(60).us, HOUR.us);
    end(f, &w);
}

static void test_wall_time_holds_back_until_due(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct job_spec past = spec("q", "k", 0), far = spec("q", "k", 9), soon = spec("q", "k", 5);
    past.at.us = clock_wall().us - 1;
    far.at.us = clock_wall().us + HOUR.us;
    soon.at.us = clock_wall().us + 200000;
    job_id now = add(f, &past), never = add(f, &far), then = add(f, &soon);
    assert_state(f, now, JOB_QUEUED);
    assert_state(f, never, JOB_WAITING);
    assert_int_equal(get(f, never).available_at.us, far.at.us);
    assert_int_equal(claim_one(f, &w).id.v, now.v);
    struct claim_result r;
    while ((r = claim(f, &w, "k", 10)).n == 0)
        assert_true(r.next_due.us >= 0 && r.next_due.us <= 200000);
    assert_true(clock_wall().us >= soon.at.us);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, then.v);
    assert_in_range(r.next_due.us, HOUR.us - DUR_S(60).us, HOUR.us);
    end(f, &w);
}

static void test_I2_fences_grow_with_every_claim(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    int64_t fence = 0;
    const enum outcome back[] = {OUTCOME_RELEASED, OUTCOME_RETRY};
    for (int i = 0; i < 10; i++) {
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, id.v);
        assert_true(l.fence.v > fence);
        fence = l.fence.v;
        settle_ok(f, &l, back[i % 2]);
        assert_int_equal(get(f, id).fence.v, fence);
    }
    struct lease l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    act(f, ACT_RETRY, id);
    assert_true(claim_one(f, &w).fence.v > l.fence.v);
    end(f, &w);
}

static void test_I3_claim_fills_the_lease_and_the_row(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    s.host = SV("h");
    s.payload = SV("[1, 2]");
    s.max_attempts = 3;
    s.timeout = DUR_S(9);
    job_id id = add(f, &s);
    struct session w = start(f, "box:1");
    struct lease l = claim_one(f, &w);
    assert_sv(l.queue, "q");
    assert_sv(l.kind, "k");
    assert_sv(l.key, "one");
    assert_sv(l.host, "h");
    assert_sv(l.payload, "[1, 2]");
    assert_int_equal(l.attempt, 1);
    assert_int_equal(l.max_attempts, 3);
    assert_int_equal(l.timeout.us, 9000000);
    assert_true(l.created_at.us <= l.ready_at.us && l.ready_at.us <= l.claimed_at.us);
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_RUNNING);
    assert_int_equal(v.fence.v, l.fence.v);
    assert_int_equal(v.attempt, 1);
    assert_sv(v.worker, "box:1");
    assert_int_equal(v.claimed_at.us, l.claimed_at.us);
    assert_true(v.lease_until.us > l.claimed_at.us);
    assert_int_equal(n_events(f, id, EVENT_CLAIMED), 1);
    end(f, &w);
}

static void test_I3_expired_session_claims_nothing(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w"), gone = start(f, "gone"), never = {.id = {77}, .lock_fd = -1};
    expire(f, &w);
    end(f, &gone);
    const struct session *stale[] = {&w, &gone, &never};
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        struct claim_result r = claim(f, stale[i], "k", 1);
        assert_true(r.session_stale);
        assert_int_equal(r.n, 0);
    }
    assert_state(f, id, JOB_QUEUED);
    end(f, &w);
}

static void test_leases_outlive_the_claim(void **state)
{
    struct fixture *f = *state;
    struct job_spec a = spec("one", "k", 0), b = spec("two", "k", 0);
    add(f, &a);
    add(f, &b);
    struct session w = start(f, "w");
    struct claim_result first = claim(f, &w, "k", 1), second = claim(f, &w, "k", 1);
    assert_sv(first.leases[0].queue, "one");
    assert_sv(second.leases[0].queue, "two");
    end(f, &w);
    store_close(f->s);
    f->s = NULL;
    assert_sv(first.leases[0].queue, "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_order_over_lanes_is_priority_then_id),
        TEST(test_pools_and_queue_filters),
        TEST(test_kinds_of_no_pool_are_never_taken),
        TEST(test_one_pool_of_several_kinds),
        TEST(test_only_one_job_by_the_normal_rules),
        TEST(test_paused_queue_is_passed_over),
        TEST(test_queue_without_jobs_can_be_paused),
        TEST(test_delay_holds_back_until_due),
        TEST(test_wall_time_holds_back_until_due),
        TEST(test_I2_fences_grow_with_every_claim),
        TEST(test_I3_claim_fills_the_lease_and_the_row),
        TEST(test_I3_expired_session_claims_nothing),
        TEST(test_leases_outlive_the_claim),
    };
    return cmocka_run_group_tests_name("claim", tests, NULL, NULL);
}
