/* Adding jobs: outcomes, keys, bounds (I1, I9). */
#include "fixture.h"

static void test_created_with_every_field(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = spec("wiki", "fetch", 7);
    s.key = SV("p1");
    s.host = SV("en.example.org");
    s.payload = SV("{\"b\": 1.50, \"a\":\"\xc3\xa9\"}");
    s.max_attempts = 5;
    s.timeout = DUR_S(60);
    job_id id = add(f, &s);
    struct job_view v = get(f, id);
    assert_sv(v.queue, "wiki");
    assert_sv(v.kind, "fetch");
    assert_sv(v.key, "p1");
    assert_sv(v.host, "en.example.org");
    assert_sv(v.payload, "{\"b\": 1.50, \"a\":\"\xc3\xa9\"}");
    assert_int_equal(v.priority, 7);
    assert_int_equal(v.max_attempts, 5);
    assert_int_equal(v.timeout.us, 60000000);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.attempt, 0);
    assert_int_equal(v.fence.v, 0);
    assert_null(v.result.p);
    assert_null(v.worker.p);
    assert_int_equal(n_events(f, id, EVENT_ADDED), 1);
}

static void test_optional_fields_stay_absent(void **state)
{
    struct fixture *f = *state;
    struct job_view v = get(f, add_plain(f, 0));
    assert_null(v.key.p);
    assert_null(v.host.p);
    assert_int_equal(v.max_attempts, 0);
    assert_int_equal(v.timeout.us, 0);
    assert_int_equal(v.parent.v, 0);
    struct job_spec s = spec("q", "k", 0);
    s.timeout = DUR_NONE;
    assert_int_equal(get(f, add(f, &s)).timeout.us, -1);
}

static void test_exists_by_default(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    struct add_result r;
    job_id id = add(f, &s);
    char *before = snapshot_all(f);
    s.payload = SV("2");
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, &r), ADD_EXISTS);
    assert_int_equal(r.id.v, id.v);
    assert_int_equal(r.state, JOB_QUEUED);
    assert_string_equal(snapshot_all(f), before);
}

static void test_keys_are_per_queue_and_not_concatenated(void **state)
{
    struct fixture *f = *state;
    struct job_spec a = keyed("ab", "c"), b = keyed("a", "bc"), c = keyed("abc", "c");
    add(f, &a);
    add(f, &b);
    add(f, &c);
}

static void test_conflict_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    struct add_result r;
    job_id id = add(f, &s);
    char *before = snapshot_all(f);
    s.priority = 9;
    assert_int_equal(add_dup(f, &s, DUPLICATE_FAIL, &r), ADD_CONFLICT);
    assert_int_equal(r.id.v, id.v);
    assert_string_equal(snapshot_all(f), before);
}

static void test_I2_requeue_of_ended_keeps_the_fence(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    s.max_attempts = 4;
    job_id id = add(f, &s);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct settle v = settle_of(&l, OUTCOME_FAILED);
    v.result = SV("[1]");
    v.error = SV("bad");
    assert_int_equal(settle(f, &v), SETTLE_OK);
    struct add_result r;
    s.payload = SV("\"new\"");
    s.max_attempts = 2;
    s.host = SV("elsewhere");
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, &r), ADD_REQUEUED);
    assert_int_equal(r.id.v, id.v);
    assert_int_equal(r.state, JOB_FAILED);
    struct job_view j = get(f, id);
    assert_int_equal(j.state, JOB_QUEUED);
    assert_sv(j.payload, "\"new\"");
    assert_sv(j.host, "elsewhere");
    assert_null(j.result.p);
    assert_int_equal(j.attempt, 0);
    assert_int_equal(j.max_attempts, 2);
    assert_int_equal(j.finished_at.us, 0);
    assert_int_equal(j.fence.v, l.fence.v);
    assert_int_equal(n_events(f, id, EVENT_REQUEUED), 1);
    assert_int_equal(settle(f, &v), SETTLE_STALE);
    assert_int_equal(claim_one(f, &w).fence.v, l.fence.v + 1);
    end(f, &w);
}

static void test_requeue_replaces_what_has_not_run(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    job_id id = add(f, &s);
    s.priority = -3;
    s.kind = SV("other");
    s.delay = HOUR;
    struct add_result r;
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, &r), ADD_REPLACED);
    assert_int_equal(r.state, JOB_QUEUED);
    struct job_view v = get(f, id);
    assert_int_equal(v.state, JOB_WAITING);
    assert_int_equal(v.wait_reason, WAIT_DELAY);
    assert_int_equal(v.priority, -3);
    assert_sv(v.kind, "other");
    s.delay = DUR_US(0);
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, &r), ADD_REPLACED);
    assert_int_equal(r.state, JOB_WAITING);
    assert_state(f, id, JOB_QUEUED);
    assert_int_equal(n_events(f, id, EVENT_REPLACED), 2);
}

static void test_requeue_of_running_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    job_id id = add(f, &s);
    struct session w = start(f, "w");
    claim_one(f, &w);
    char *before = snapshot_all(f);
    struct add_result r;
    s.payload = SV("2");
    assert_int_equal(add_dup(f, &s, DUPLICATE_REQUEUE, &r), ADD_RUNNING);
    assert_int_equal(r.id.v, id.v);
    assert_int_equal(r.state, JOB_RUNNING);
    assert_string_equal(snapshot_all(f), before);
    end(f, &w);
}

static void test_duplicates_within_one_batch(void **state)
{
    struct fixture *f = *state;
    struct job_spec v[] = {keyed("q", "a"), keyed("q", "b"), keyed("q", "a"), keyed("q", "b")};
    struct add_result r[4];
    v[2].payload = SV("2");
    OK(store_enqueue(f->s, v, 4, DUPLICATE_SKIP, r, &f->e));
    assert_int_equal(r[0].outcome, ADD_CREATED);
    assert_int_equal(r[1].outcome, ADD_CREATED);
    assert_int_equal(r[2].outcome, ADD_EXISTS);
    assert_int_equal(r[3].outcome, ADD_EXISTS);
    assert_int_equal(r[2].id.v, r[0].id.v);
    assert_int_equal(r[3].id.v, r[1].id.v);
    assert_sv(get(f, r[0].id).payload, "null");
    OK(store_enqueue(f->s, v + 2, 1, DUPLICATE_REQUEUE, r, &f->e));
    assert_int_equal(r[0].outcome, ADD_REPLACED);
    assert_sv(get(f, r[0].id).payload, "2");
}

static void test_batch_keeps_the_order_given(void **state)
{
    struct fixture *f = *state;
    enum { N = 500 };
    struct job_spec v[N];
    struct add_result r[N];
    char keys[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key %d", (i * 7919) % N);
        v[i] = keyed("q", keys[i]);
    }
    OK(store_enqueue(f->s, v, N, DUPLICATE_FAIL, r, &f->e));
    for (int i = 1; i < N; i++) {
        assert_int_equal(r[i].outcome, ADD_CREATED);
        assert_int_equal(r[i].id.v, r[i - 1].id.v + 1);
    }
    assert_sv(get(f, r[123].id).key, keys[123]);
}

static void test_input_error_adds_none_of_the_batch(void **state)
{
    struct fixture *f = *state;
    char long_name[NAME_MAX_BYTES + 2];
    memset(long_name, 'x', sizeof(long_name));
    struct job_spec bad[] = {
        spec("", "k", 0),    spec("q", "", 0),     spec("q", "k", PRIORITY_MAX + 1),
        spec("q\n", "k", 0), spec("q", "\xff", 0), keyed("q", ""),
        spec("q", "k", 0),   spec("q", "k", 0)};
    bad[6].queue = sv_make(long_name, sizeof(long_name) - 1);
    bad[7].delay = DUR_US(-5);
    char *before = snapshot_all(f);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct job_spec v[] = {spec("q", "k", 0), bad[i], spec("q", "k", 0)};
        struct add_result r[3] = {{{-7}, ADD_CREATED, JOB_QUEUED}};
        FAILS(store_enqueue(f->s, v, 3, DUPLICATE_SKIP, r, &f->e), PAWL_EINPUT);
        assert_int_equal(r[0].id.v, -7);
    }
    assert_string_equal(snapshot_all(f), before);
}

static void test_empty_batch(void **state)
{
    struct fixture *f = *state;
    OK(store_enqueue(f->s, NULL, 0, DUPLICATE_SKIP, NULL, &f->e));
}

static void test_I2_ids_are_never_reused(void **state)
{
    struct fixture *f = *state;
    job_id first = add_plain(f, 0);
    act(f, ACT_CANCEL, first);
    act(f, ACT_PRUNE, first);
    struct job_view v;
    FAILS(f->s->ops->job_get(f->s, first, &f->a, &v, &f->e), PAWL_ENOTFOUND);
    assert_true(add_plain(f, 0).v > first.v);
}

static void test_text_at_its_bounds_is_kept_verbatim(void **state)
{
    struct fixture *f = *state;
    enum { N = 1 << 20 };
    AUTO_FREE char *big = mem_alloc(N);
    memset(big, 'x', N);
    big[0] = big[N - 1] = '"';
    char key[KEY_MAX_BYTES];
    memset(key, 'k', sizeof(key));
    struct job_spec s = spec("q", "k", PRIORITY_MIN);
    s.payload = sv_make(big, N);
    s.key = sv_make(key, sizeof(key));
    job_id id = add(f, &s);
    struct job_view v = get(f, id);
    assert_true(sv_eq(v.payload, s.payload));
    assert_true(sv_eq(v.key, s.key));
    assert_int_equal(v.priority, PRIORITY_MIN);
    assert_int_equal(add_dup(f, &s, DUPLICATE_SKIP, NULL), ADD_EXISTS);
}

static void test_I14_sql_in_names_is_only_text(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q'); DROP TABLE job; --", "%_'\"\\");
    s.host = SV("x' OR '1'='1");
    job_id id = add(f, &s);
    assert_sv(get(f, id).queue, "q'); DROP TABLE job; --");
    struct selection sel = {.host = SV("x' OR '1'='1"), .key = SV("%_'\"\\")};
    int64_t n;
    OK(f->s->ops->count(f->s, &sel, &n, &f->e));
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_created_with_every_field),
        TEST(test_optional_fields_stay_absent),
        TEST(test_exists_by_default),
        TEST(test_keys_are_per_queue_and_not_concatenated),
        TEST(test_conflict_changes_nothing),
        TEST(test_I2_requeue_of_ended_keeps_the_fence),
        TEST(test_requeue_replaces_what_has_not_run),
        TEST(test_requeue_of_running_changes_nothing),
        TEST(test_duplicates_within_one_batch),
        TEST(test_batch_keeps_the_order_given),
        TEST(test_input_error_adds_none_of_the_batch),
        TEST(test_empty_batch),
        TEST(test_I2_ids_are_never_reused),
        TEST(test_text_at_its_bounds_is_kept_verbatim),
        TEST(test_I14_sql_in_names_is_only_text),
    };
    return cmocka_run_group_tests_name("enqueue", tests, NULL, NULL);
}
