/* Acts on jobs that have not ended: release and set; leases taken away; errors by their
 * fingerprint; the report. */
#include "fingerprint.h"
#include "fixture.h"

static int64_t release(struct fixture *f, job_id id, bool force)
{
    struct act_request req = {.act = ACT_RELEASE, .force = force, .max = 10};
    struct act_result out;
    req.select.ids = &id;
    req.select.n_ids = 1;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    return out.changed;
}

static int64_t set(struct fixture *f, job_id id, struct job_change change)
{
    struct act_request req = {.act = ACT_SET, .change = &change, .max = 10};
    struct act_result out;
    req.select.ids = &id;
    req.select.n_ids = 1;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    return out.changed;
}

static struct renew_result renew(struct fixture *f, struct session *w)
{
    struct renew_request req = {.session = w, .lease = DUR_S(60)};
    struct renew_result out;
    OK(f->s->ops->renew(f->s, &req, &f->a, &out, &f->e));
    return out;
}

static job_id failed(struct fixture *f, const struct session *w, const char *error)
{
    job_id id = add_plain(f, 1000);
    struct lease l = claim_one(f, w);
    struct settle v = settle_of(&l, OUTCOME_FAILED);
    v.cls = CLASS_ERROR;
    v.error = sv_of(error);
    assert_int_equal(settle(f, &v), SETTLE_OK);
    return id;
}

static void test_release_what_waits(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct job_spec late = spec("q", "k", 0), wall = spec("q", "k", 5);
    late.delay = HOUR;
    wall.at.us = clock_wall().us + HOUR.us;
    job_id ids[] = {add(f, &wall), add(f, &late)};
    assert_int_equal(claim(f, &w, "k", 10).n, 0);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        assert_int_equal(release(f, ids[i], false), 1);
        assert_state(f, ids[i], JOB_QUEUED);
        assert_int_equal(get(f, ids[i]).wait_reason, WAIT_NONE);
        assert_int_equal(n_events(f, ids[i], EVENT_FREED), 1);
        assert_int_equal(release(f, ids[i], true), 0); /* queued already */
    }
    struct claim_result got = claim(f, &w, "k", 10);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.leases[0].id.v, ids[0].v);
    for (size_t i = 0; i < got.n; i++)
        settle_ok(f, &got.leases[i], OUTCOME_DONE);
    assert_int_equal(release(f, ids[0], true), 0);
    end(f, &w);
}

static void test_release_leaves_live_leases_alone(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    assert_int_equal(release(f, id, false), 0);
    assert_state(f, id, JOB_RUNNING);
    assert_int_equal(renew(f, &w).n_revoked, 0);
    if (w.lock_fd >= 0)
        vanish(&w);
    else
        expire(f, &w);
    /* now nobody holds it */
    assert_int_equal(release(f, id, false), 1);
    assert_state(f, id, JOB_QUEUED);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
}

/* I2: the fence moves on, so whatever comes late changes nothing; no attempt is spent; the worker
 * is told once. */
static void test_forced_release_revokes(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w"), other = start(f, "other");
    job_id id = add_plain(f, 0);
    struct lease old = claim_one(f, &w);
    assert_int_equal(release(f, id, true), 1);
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.attempt, 0);
    assert_int_equal(v.lost, 0);
    assert_int_equal(v.n_attempts, 1);
    assert_int_equal(v.attempts[0].outcome, OUTCOME_RELEASED);
    assert_int_equal(renew(f, &other).n_revoked, 0);
    struct renew_result told = renew(f, &w);
    assert_int_equal(told.n_revoked, 1);
    assert_int_equal(told.revoked[0].id.v, id.v);
    assert_int_equal(told.revoked[0].fence.v, old.fence.v);
    assert_int_equal(renew(f, &w).n_revoked, 0);
    struct lease next = claim_one(f, &other);
    assert_int_equal(next.attempt, 1);
    assert_true(next.fence.v > old.fence.v);
    char *before = snapshot(f, id);
    const enum outcome late[] = {OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_RETRY, OUTCOME_RELEASED};
    for (size_t i = 0; i < ARRAY_LEN(late); i++) {
        struct settle s = settle_of(&old, late[i]);
        assert_int_equal(settle(f, &s), SETTLE_STALE);
        s.hint = old.hint;
        assert_int_equal(settle(f, &s), SETTLE_STALE);
    }
    char *after = snapshot(f, id);
    assert_string_equal(before, after);
    settle_ok(f, &next, OUTCOME_DONE);
    end(f, &other);
    end(f, &w);
    assert_state(f, id, JOB_DONE);
}

static void test_set_priority_orders_claims(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id a = add_plain(f, 5), b = add_plain(f, 5), c = add_plain(f, 5);
    struct job_change up = {.has_priority = true, .priority = 9}, down = {.has_priority = true};
    assert_int_equal(set(f, c, up), 1);
    assert_int_equal(set(f, a, down), 1); /* the head until now */
    assert_int_equal(n_events(f, c, EVENT_CHANGED), 1);
    struct claim_result got = claim(f, &w, "k", 10);
    const job_id order[] = {c, b, a};
    assert_int_equal(got.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(got.leases[i].id.v, order[i].v);
        assert_int_equal(set(f, order[i], up), 0); /* running */
        settle_ok(f, &got.leases[i], OUTCOME_DONE);
        assert_int_equal(set(f, order[i], up), 0); /* done */
    }
    end(f, &w);
}

/* The best of a lane is made the worst: its head must be the next one at once. */
static void test_set_priority_of_the_head_down(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id best = add_plain(f, 5), next = add_plain(f, 3);
    struct job_spec other = spec("other", "k", 2);
    job_id beside = add(f, &other);
    assert_int_equal(set(f, best, (struct job_change){.has_priority = true, .priority = 1}), 1);
    AUTO_STR struct str findings = STR_INIT(STR_LINE);
    OK(f->s->ops->check(f->s, &findings, &f->e));
    assert_string_equal(str_cstr(&findings), "");
    const job_id order[] = {next, beside, best};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, order[i].v);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    end(f, &w);
}

static void test_set_time_moves_between_states(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct job_change later = {.has_time = true, .delay = HOUR};
    struct job_change wall = {.has_time = true, .at = {clock_wall().us + HOUR.us}};
    struct job_change now = {.has_time = true};
    const struct job_change waits[] = {later, wall, later};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        assert_int_equal(set(f, id, waits[i]), 1);
        struct job_view v = get(f, id);
        assert_int_equal(v.state, JOB_WAITING);
        assert_int_equal(v.wait_reason, WAIT_DELAY);
        assert_int_equal(claim(f, &w, "k", 10).n, 0);
        assert_clean(f);
    }
    assert_int_equal(set(f, id, now), 1);
    assert_state(f, id, JOB_QUEUED);
    struct lease l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static void test_set_body(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct job_change all = {.has_max_attempts = true,
                             .max_attempts = 7,
                             .has_timeout = true,
                             .timeout = DUR_S(5),
                             .payload = SV("{\"new\":1}")};
    struct job_change one = {.has_max_attempts = true, .max_attempts = 8};
    assert_int_equal(set(f, id, all), 1);
    assert_int_equal(set(f, id, one), 1);
    struct job_view v = get(f, id);
    assert_int_equal(v.max_attempts, 8);
    assert_int_equal(v.timeout.us, DUR_S(5).us);
    assert_sv(v.payload, "{\"new\":1}");
    struct lease l = claim_one(f, &w);
    assert_sv(l.payload, "{\"new\":1}");
    assert_int_equal(l.max_attempts, 8);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static bool collect(void *arg, const struct job_view *job)
{
    int64_t *sum = arg;
    *sum += job->id.v;
    return true;
}

static int64_t ids_with(struct fixture *f, uint32_t low, uint32_t high, unsigned states)
{
    struct selection sel = {.error_low = low, .error_high = high, .states = states};
    int64_t sum = 0, n = 0;
    OK(f->s->ops->list(f->s, &sel, false, collect, &sum, &f->e));
    OK(f->s->ops->count(f->s, &sel, &n, &f->e));
    assert_int_equal(n != 0, sum != 0);
    return sum;
}

static void test_select_by_fingerprint(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id a = failed(f, &w, "exit 3: no file 17"), b = failed(f, &w, "exit 3: no file 18");
    job_id c = failed(f, &w, "exit 4: no file 17");
    uint32_t fp = get(f, a).fingerprint, low, high;
    assert_int_equal(fp, fingerprint(CLASS_ERROR, SV("exit 3: no file 99")));
    assert_int_not_equal(fp, get(f, c).fingerprint);
    char text[FINGERPRINT_TEXT];
    fingerprint_format(fp, text);
    assert_int_equal(fingerprint_parse(sv_of(text), &low, &high), 0);
    assert_int_equal(ids_with(f, low, high, 0), a.v + b.v);
    assert_int_equal(ids_with(f, low, high, 1u << JOB_FAILED), a.v + b.v);
    assert_int_equal(ids_with(f, low, high, 1u << JOB_DONE), 0);
    assert_int_equal(ids_with(f, 0, UINT32_MAX, 0), a.v + b.v + c.v);
    struct act_request retry = {
        .act = ACT_RETRY, .select = {.error_low = low, .error_high = high}, .max = 10};
    struct act_result out;
    OK(f->s->ops->act(f->s, &retry, &out, &f->e));
    assert_int_equal(out.changed, 2);
    assert_state(f, b, JOB_QUEUED);
    assert_state(f, c, JOB_FAILED);
    end(f, &w);
}

static void test_report_counts(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct wall since = {f->s->ops->now(f->s).us - DUR_S(60).us};
    failed(f, &w, "exit 3: no file 17");
    job_id newest = failed(f, &w, "exit 3: no file 18");
    failed(f, &w, "boom");
    job_id id = add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    struct settle again = settle_of(&l, OUTCOME_RETRY);
    again.delay = DUR_S(100);
    again.reason = WAIT_BACKOFF;
    assert_int_equal(settle(f, &again), SETTLE_OK);
    release(f, id, false);
    l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    struct report_view r;
    OK(f->s->ops->report(f->s, since, SV_NONE, &f->a, &r, &f->e));
    assert_int_equal(r.total.done, 1);
    assert_int_equal(r.total.failed, 3);
    assert_int_equal(r.total.retried, 1);
    assert_int_equal(r.backoff.us, DUR_S(100).us);
    assert_int_equal(r.retry_after.us, 0);
    assert_int_equal(r.n_errors, 2);
    assert_int_equal(r.errors[0].count, 2);
    assert_int_equal(r.errors[0].sample.v, newest.v);
    assert_int_equal(r.errors[0].fingerprint, get(f, newest).fingerprint);
    assert_int_equal(r.n_slowest, 1);
    assert_int_equal(r.slowest[0].id.v, id.v);
    int64_t in_slots = 0;
    for (size_t i = 0; i < r.n_slots; i++)
        in_slots += r.slots[i].done + r.slots[i].failed;
    assert_int_equal(in_slots, 4);
    OK(f->s->ops->report(f->s, since, SV("other"), &f->a, &r, &f->e));
    assert_int_equal(r.total.done + r.total.failed, 0);
    assert_int_equal(r.n_errors, 0);
    end(f, &w);
}

/* "Again" is an order: the key of a pruned job does not stand in its way. */
static void test_requeue_takes_the_key_of_a_pruned_job(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "once");
    struct add_result out;
    job_id first = add(f, &s);
    act(f, ACT_CANCEL, first);
    act(f, ACT_PRUNE, first);
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, &out), ADD_EXISTS);
    assert_int_equal(add_dup(f, &s, DUPLICATE_FAIL, &out), ADD_CONFLICT);
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, &out), ADD_CREATED);
    assert_true(out.id.v > first.v);
    assert_state(f, out.id, JOB_QUEUED);
    job_id second = out.id;
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, &out), ADD_EXISTS);
    assert_int_equal(out.id.v, second.v);
    act(f, ACT_CANCEL, second);
    act(f, ACT_PRUNE, second);
    struct job_spec twice[] = {s, s};
    struct add_result both[2];
    OK(store_enqueue(f->s, twice, 2, DUPLICATE_REQUEUE, both, &f->e));
    assert_int_equal(both[0].outcome, ADD_CREATED);
    assert_int_equal(both[1].outcome, ADD_REPLACED);
    assert_int_equal(both[1].id.v, both[0].id.v);
}

/* Counts and heads of many classes in one transaction. */
static void test_many_classes(void **state)
{
    enum { N = 300 };
    struct fixture *f = *state;
    struct job_spec specs[N];
    struct add_result out[N];
    char names[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "queue-%d", i);
        specs[i] = spec(names[i], "k", i);
    }
    OK(store_enqueue(f->s, specs, N, DUPLICATE_SKIP, out, &f->e));
    struct session w = start(f, "w");
    struct claim_result got = claim(f, &w, "k", N);
    assert_int_equal(got.n, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(got.leases[i].id.v, out[N - 1 - i].id.v);
    assert_clean(f);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_release_what_waits),
        TEST(test_release_leaves_live_leases_alone),
        TEST(test_forced_release_revokes),
        TEST(test_set_priority_orders_claims),
        TEST(test_set_priority_of_the_head_down),
        TEST(test_set_time_moves_between_states),
        TEST(test_set_body),
        TEST(test_select_by_fingerprint),
        TEST(test_report_counts),
        TEST(test_requeue_takes_the_key_of_a_pruned_job),
        TEST(test_many_classes),
    };
    return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
