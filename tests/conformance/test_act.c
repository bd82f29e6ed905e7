/* Operator acts: cancel, retry, prune, over selections and in bounded calls. */
#include "fixture.h"

static struct act_result run(struct fixture *f, const struct act_request *req)
{
    struct act_result out;
    OK(f->s->ops->act(f->s, req, &out, &f->e));
    return out;
}

static int64_t count(struct fixture *f, unsigned states)
{
    struct selection sel = {.states = states};
    int64_t n;
    OK(f->s->ops->count(f->s, &sel, &n, &f->e));
    return n;
}

static job_id ended(struct fixture *f, const struct session *w, enum outcome o)
{
    job_id id = add_plain(f, 1000);
    struct lease l = claim_one(f, w);
    struct settle v = settle_of(&l, o);
    v.error = o == OUTCOME_FAILED ? SV("it broke") : SV_NONE;
    v.result = SV("\"r\"");
    v.log_bytes = 5;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    return id;
}

static void test_cancel_by_state(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id running = add_plain(f, 9);
    claim_one(f, &w);
    struct job_spec late = spec("q", "k", 0), wall = spec("q", "k", 0);
    late.delay = HOUR;
    wall.at.us = clock_wall().us + HOUR.us;
    job_id queued = add_plain(f, 0), waiting = add(f, &late), due = add(f, &wall);
    job_id done[] = {queued, waiting, due};
    for (size_t i = 0; i < ARRAY_LEN(done); i++) {
        assert_int_equal(act(f, ACT_CANCEL, done[i]).changed, 1);
        struct job_view v = get(f, done[i]);
        assert_int_equal(v.state, JOB_CANCELLED);
        assert_int_not_equal(v.finished_at.us, 0);
        assert_int_equal(n_events(f, done[i], EVENT_CANCELLED), 1);
        struct act_result again = act(f, ACT_CANCEL, done[i]);
        assert_int_equal(again.matched, 1);
        assert_int_equal(again.changed, 0);
    }
    assert_int_equal(act(f, ACT_CANCEL, running).changed, 1);
    act(f, ACT_CANCEL, running);
    assert_state(f, running, JOB_RUNNING);
    assert_int_equal(n_events(f, running, EVENT_CANCEL_ASKED), 1);
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    end(f, &w);
    assert_state(f, running, JOB_CANCELLED);
}

static void test_retry_gives_a_fresh_budget(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    const enum outcome outcomes[] = {OUTCOME_DONE, OUTCOME_SKIPPED, OUTCOME_FAILED,
                                     OUTCOME_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        job_id id = ended(f, &w, outcomes[i]);
        int64_t fence = get(f, id).fence.v;
        assert_int_equal(act(f, ACT_RETRY, id).changed, 1);
        struct job_view v = get(f, id);
        assert_int_equal(v.state, JOB_QUEUED);
        assert_int_equal(v.attempt, 0);
        assert_int_equal(v.fence.v, fence);
        assert_int_equal(v.finished_at.us, 0);
        assert_null(v.result.p);
        assert_int_equal(v.n_attempts, 1);
        assert_int_equal(n_events(f, id, EVENT_REQUEUED), 1);
        assert_int_equal(act(f, ACT_RETRY, id).changed, 0);
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.attempt, 1);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    end(f, &w);
}

static void test_retry_grants_more_attempts(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct job_spec s = spec("q", "k", 0);
    s.max_attempts = 2;
    job_id id = add(f, &s);
    for (int i = 0; i < 2; i++) {
        struct lease l = claim_one(f, &w);
        settle_ok(f, &l, i ? OUTCOME_FAILED : OUTCOME_RETRY);
    }
    struct act_request req = {
        .act = ACT_RETRY, .select = {.ids = &id, .n_ids = 1}, .grant_attempts = 3};
    assert_int_equal(run(f, &req).changed, 1);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.attempt, 3);
    assert_int_equal(l.max_attempts, 5);
    assert_int_equal(get(f, id).max_attempts, 5);
    settle_ok(f, &l, OUTCOME_FAILED);
    end(f, &w);
}

static void test_retry_leaves_live_jobs_alone(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id running = add_plain(f, 1);
    claim_one(f, &w);
    job_id queued = add_plain(f, 0);
    char *before = snapshot_all(f);
    assert_int_equal(act(f, ACT_RETRY, running).changed, 0);
    assert_int_equal(act(f, ACT_RETRY, queued).changed, 0);
    assert_int_equal(act(f, ACT_PRUNE, running).changed, 0);
    assert_int_equal(act(f, ACT_RETRY, (job_id){4711}).matched, 0);
    assert_string_equal(snapshot_all(f), before);
    end(f, &w);
}

static void test_dry_run_counts_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    ended(f, &w, OUTCOME_FAILED);
    ended(f, &w, OUTCOME_DONE);
    add_plain(f, 0);
    char *before = snapshot_all(f);
    const int64_t changes[] = {[ACT_RETRY] = 2, [ACT_CANCEL] = 1, [ACT_PRUNE] = 2};
    for (int a = ACT_RETRY; a <= ACT_PRUNE; a++) {
        struct act_request req = {.act = (enum act)a, .dry_run = true};
        struct act_result r = run(f, &req);
        assert_int_equal(r.matched, 3);
        assert_int_equal(r.changed, changes[a]);
    }
    assert_string_equal(snapshot_all(f), before);
    end(f, &w);
}

static void test_bounded_calls_cover_everything_once(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 95; i++)
        add_plain(f, i % 3);
    struct act_request req = {.act = ACT_CANCEL, .max = 10};
    int64_t changed = 0;
    int calls = 0;
    struct act_result r;
    do {
        r = run(f, &req);
        assert_in_range(r.matched, 0, 10);
        changed += r.changed;
        req.select.after = r.cursor;
        calls++;
    } while (r.more && calls < 20);
    assert_int_equal(changed, 95);
    assert_int_equal(calls, 10);
    assert_int_equal(count(f, 1u << JOB_CANCELLED), 95);
}

static void test_acts_by_selection(void **state)
{
    struct fixture *f = *state;
    struct job_spec a = spec("a", "k", 0), b = spec("b", "k", 0), c = spec("b", "x", 0);
    job_id ids[] = {add(f, &a), add(f, &b), add(f, &c)};
    struct act_request req = {.act = ACT_CANCEL, .select = {.queue = SV("b"), .kind = SV("x")}};
    assert_int_equal(run(f, &req).changed, 1);
    assert_state(f, ids[0], JOB_QUEUED);
    assert_state(f, ids[1], JOB_QUEUED);
    assert_state(f, ids[2], JOB_CANCELLED);
}

static void test_prune_takes_all_traces_but_the_key(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct job_spec s = keyed("q", "once");
    job_id id = add(f, &s);
    struct lease l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(act(f, ACT_PRUNE, id).changed, 1);
    struct job_view v;
    FAILS(f->s->ops->job_get(f->s, id, &f->a, &v, &f->e), PAWL_ENOTFOUND);
    assert_int_equal(count(f, 0), 0);
    struct add_result r;
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, &r), ADD_EXISTS);
    assert_int_equal(r.id.v, id.v);
    assert_int_equal(add_dup(f, &s, DUPLICATE_FAIL, &r), ADD_CONFLICT);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    end(f, &w);
}

static void test_key_expires_after_keep_keys(void **state)
{
    struct fixture *f = *state;
    struct store_options o = store_defaults(STORE_WRITE);
    o.keep_keys = DUR_US(1);
    store_close(f->s);
    OK(open_store(f->path, &o, &f->s, &f->e));
    struct job_spec s = keyed("q", "once");
    job_id id = add(f, &s);
    act(f, ACT_CANCEL, id);
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, NULL), ADD_EXISTS);
    act(f, ACT_PRUNE, id);
    struct add_result r;
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, &r), ADD_CREATED);
    assert_true(r.id.v > id.v);
    act(f, ACT_CANCEL, r.id);
    act(f, ACT_PRUNE, r.id);
    struct act_request again = {.act = ACT_PRUNE}; /* drops the expired key */
    run(f, &again);
    assert_int_equal(add_dup(f, &s, DUPLICATE_FAIL, NULL), ADD_CREATED);
}

static void test_prune_only_what_ended_before(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id old = ended(f, &w, OUTCOME_DONE), young = ended(f, &w, OUTCOME_DONE);
    struct act_request req = {.act = ACT_PRUNE, .finished_before = get(f, young).finished_at};
    struct act_result r = run(f, &req);
    assert_int_equal(r.changed, 1);
    struct job_view v;
    FAILS(f->s->ops->job_get(f->s, old, &f->a, &v, &f->e), PAWL_ENOTFOUND);
    assert_state(f, young, JOB_DONE);
    end(f, &w);
}

static bool last_id(void *arg, const struct event_view *e)
{
    *(int64_t *)arg = e->id;
    return true;
}

static int64_t newest_event(struct fixture *f)
{
    int64_t id = 0;
    struct event_filter filter = {.last = 1};
    OK(f->s->ops->events(f->s, &filter, last_id, &id, &f->e));
    return id;
}

static void test_event_ids_never_go_back(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    act(f, ACT_CANCEL, id);
    int64_t before = newest_event(f);
    struct act_request req = {.act = ACT_PRUNE,
                              .finished_before = {f->s->ops->now(f->s).us + HOUR.us}};
    run(f, &req);
    run(f, &req);
    add_plain(f, 0);
    assert_true(newest_event(f) > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cancel_by_state),
        TEST(test_retry_gives_a_fresh_budget),
        TEST(test_retry_grants_more_attempts),
        TEST(test_retry_leaves_live_jobs_alone),
        TEST(test_dry_run_counts_and_changes_nothing),
        TEST(test_bounded_calls_cover_everything_once),
        TEST(test_acts_by_selection),
        TEST(test_prune_takes_all_traces_but_the_key),
        TEST(test_key_expires_after_keep_keys),
        TEST(test_prune_only_what_ended_before),
        TEST(test_event_ids_never_go_back),
    };
    return cmocka_run_group_tests_name("act", tests, NULL, NULL);
}
