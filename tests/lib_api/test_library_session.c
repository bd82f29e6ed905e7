/* Claiming by hand. */
#include "lab.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static const char *const kinds[] = {"k"};

static pawl_session *begin(struct lab *lab, pawl_store *s, const char *name)
{
    pawl_session_options o = PAWL_SESSION_OPTIONS_INIT;
    static const char *const settings[] = {"retry.base=1h", "retry.max=2h"};
    pawl_session *session;
    o.name = name;
    o.lease_ms = 5000;
    o.settings = settings;
    o.n_settings = 2;
    OK(pawl_session_begin(s, &o, &session, &lab->err));
    return session;
}

static pawl_claimed *claim(struct lab *lab, pawl_session *session, int max)
{
    pawl_claim_options o = PAWL_CLAIM_OPTIONS_INIT;
    pawl_claimed *got;
    o.kinds = kinds;
    o.n_kinds = 1;
    o.max = max;
    OK(pawl_claim(session, &o, &got, &lab->err));
    return got;
}

static void settle(struct lab *lab, pawl_session *session, const pawl_lease *l, int outcome,
                   const char *error, int64_t delay_ms)
{
    pawl_settlement how = PAWL_SETTLEMENT_INIT;
    how.outcome = outcome;
    how.error = error;
    how.delay_ms = delay_ms;
    OK(pawl_settle(session, l, &how, &lab->err));
}

static void test_life(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session *session = begin(lab, s, "by-hand");
    int64_t id = lab_add(lab, s, NULL, "k", "key");
    lab_add(lab, s, NULL, "other", NULL);
    pawl_claimed *got = claim(lab, session, 10);
    assert_int_equal(got->n, 1);
    const pawl_lease *l = got->leases[0];
    assert_int_equal(l->id, id);
    assert_true(l->fence > 0);
    assert_int_equal(l->attempt, 1);
    assert_string_equal(l->queue, "default");
    assert_string_equal(l->kind, "k");
    assert_string_equal(l->key, "key");
    assert_null(l->host);
    assert_string_equal(l->payload, "null");
    assert_int_equal(l->payload_len, 4);
    assert_int_equal(lab_state(lab, s, id), PAWL_STATE_RUNNING);
    pawl_renewal renewal = PAWL_RENEWAL_INIT;
    OK(pawl_session_renew(session, &renewal, &lab->err));
    assert_int_equal(renewal.n_cancels + renewal.n_revoked, 0);
    assert_false(renewal.stop);
    pawl_job child = PAWL_JOB_INIT;
    child.kind = "child";
    pawl_settlement how = PAWL_SETTLEMENT_INIT;
    how.result = "{\"words\": 3}";
    how.children = &child;
    how.n_children = 1;
    OK(pawl_settle(session, l, &how, &lab->err));
    OK(pawl_settle(session, l, &how, &lab->err)); /* again: it is what happened */
    how.outcome = PAWL_FAILED;
    FAILS(PAWL_ERROR_STALE, pawl_settle(session, l, &how, &lab->err));
    pawl_claimed_free(got);
    pawl_claimed_free(NULL);
    pawl_job_info *info;
    OK(pawl_job_get(s, id, &info, &lab->err));
    assert_int_equal(info->state, PAWL_STATE_DONE);
    assert_string_equal(info->result, "{\"words\": 3}");
    assert_int_equal(info->n_attempts, 1);
    assert_string_equal(info->attempts[0]->outcome, "done");
    assert_string_equal(info->attempts[0]->worker, "by-hand");
    pawl_job_free(info);
    assert_int_equal(lab_count(lab, s).queued, 2); /* the child, once, and the other */
    got = claim(lab, session, 0);
    assert_int_equal(got->n, 0);
    assert_int_equal(got->next_due_ms, -1);
    pawl_claimed_free(got);
    OK(pawl_session_end(session, &lab->err));
    pawl_close(s);
}

static void test_outcomes(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    int64_t ids[7];
    for (int i = 0; i < 7; i++)
        ids[i] = lab_add(lab, s, NULL, "k", NULL);
    pawl_claimed *got = claim(lab, session, 7);
    assert_int_equal(got->n, 7);
    settle(lab, session, got->leases[0], PAWL_SKIPPED, "nothing new", 0);
    settle(lab, session, got->leases[1], PAWL_FAILED, "bad\xff", 0);
    settle(lab, session, got->leases[2], PAWL_RETRY, "later", 0);
    settle(lab, session, got->leases[3], PAWL_RETRY_TRANSIENT, "busy", 50);
    settle(lab, session, got->leases[4], PAWL_RELEASE, NULL, 0);
    settle(lab, session, got->leases[5], PAWL_CANCELLED, NULL, 0);
    pawl_claimed_free(got);
    static const int states[] = {PAWL_STATE_SKIPPED, PAWL_STATE_FAILED, PAWL_STATE_WAITING,
                                 PAWL_STATE_WAITING, PAWL_STATE_QUEUED, PAWL_STATE_CANCELLED,
                                 PAWL_STATE_RUNNING};
    for (int i = 0; i < 7; i++)
        assert_int_equal(lab_state(lab, s, ids[i]), states[i]);
    pawl_job_info *info;
    OK(pawl_job_get(s, ids[1], &info, &lab->err));
    assert_string_equal(info->error, "bad\xef\xbf\xbd");
    assert_string_equal(info->error_class, "fatal");
    pawl_job_free(info);
    OK(pawl_job_get(s, ids[3], &info, &lab->err));
    assert_int_equal(info->attempt, 0);
    assert_int_equal(info->transient_attempts, 1);
    assert_string_equal(info->wait_reason, "asked");
    pawl_job_free(info);
    OK(pawl_session_end(session, &lab->err)); /* what it still held goes back unspent */
    OK(pawl_job_get(s, ids[6], &info, &lab->err));
    assert_int_equal(info->state, PAWL_STATE_QUEUED);
    assert_int_equal(info->attempt, 0);
    pawl_job_free(info);
    pawl_close(s);
}

static void test_budget(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    pawl_job job = PAWL_JOB_INIT;
    pawl_added added;
    job.kind = "k";
    job.max_attempts = 2;
    OK(pawl_add(s, &job, 0, &added, &lab->err));
    for (int attempt = 1; attempt <= 2; attempt++) {
        pawl_claimed *got = claim(lab, session, 1);
        while (!got->n) {
            assert_true(got->next_due_ms >= 0);
            pawl_claimed_free(got);
            OK(pawl_wait_for_work(s, 20, &lab->err));
            got = claim(lab, session, 1);
        }
        assert_int_equal(got->leases[0]->attempt, attempt);
        settle(lab, session, got->leases[0], PAWL_RETRY, "again", 1);
        pawl_claimed_free(got);
    }
    assert_int_equal(lab_state(lab, s, added.id), PAWL_STATE_FAILED);
    pawl_close(s); /* ends the session too */
}

static void test_cancel(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab), *operator_ = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    int64_t id = lab_add(lab, s, NULL, "k", NULL);
    pawl_claimed *got = claim(lab, session, 1);
    pawl_selection sel = PAWL_SELECTION_INIT;
    int64_t changed;
    sel.ids = &id;
    sel.n_ids = 1;
    OK(pawl_act(operator_, PAWL_ACT_CANCEL, &sel, &changed, &lab->err));
    assert_int_equal(changed, 1);
    pawl_renewal renewal = PAWL_RENEWAL_INIT;
    OK(pawl_session_renew(session, &renewal, &lab->err));
    assert_int_equal(renewal.n_cancels, 1);
    assert_int_equal(renewal.cancels[0], id);
    settle(lab, session, got->leases[0], PAWL_CANCELLED, NULL, 0);
    assert_int_equal(lab_state(lab, s, id), PAWL_STATE_CANCELLED);
    pawl_claimed_free(got);
    OK(pawl_session_renew(session, NULL, &lab->err));
    OK(pawl_session_end(session, NULL));
    pawl_close(operator_);
    pawl_close(s);
}

static void test_revoke(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab), *operator_ = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    int64_t id = lab_add(lab, s, NULL, "k", NULL), changed;
    pawl_claimed *got = claim(lab, session, 1);
    pawl_selection sel = PAWL_SELECTION_INIT;
    sel.ids = &id;
    sel.n_ids = 1;
    OK(pawl_act(operator_, PAWL_ACT_RELEASE, &sel, &changed, &lab->err)); /* its worker lives */
    assert_int_equal(changed, 0);
    OK(pawl_act(operator_, PAWL_ACT_REVOKE, &sel, &changed, &lab->err));
    assert_int_equal(changed, 1);
    pawl_renewal renewal = PAWL_RENEWAL_INIT;
    OK(pawl_session_renew(session, &renewal, &lab->err));
    assert_int_equal(renewal.n_revoked, 1);
    assert_int_equal(renewal.revoked[0], id);
    pawl_settlement how = PAWL_SETTLEMENT_INIT;
    FAILS(PAWL_ERROR_STALE, pawl_settle(session, got->leases[0], &how, &lab->err));
    assert_int_equal(lab_state(lab, s, id), PAWL_STATE_QUEUED);
    pawl_claimed_free(got);
    pawl_close(operator_);
    pawl_close(s);
}

/* A session that was not renewed has lost everything, and its late words change nothing. I2 */
static void test_expired(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session_options o = PAWL_SESSION_OPTIONS_INIT;
    pawl_session *slow, *quick = begin(lab, s, "quick");
    int64_t id = lab_add(lab, s, NULL, "k", NULL);
    o.lease_ms = 1000;
    OK(pawl_session_begin(s, &o, &slow, &lab->err));
    pawl_claimed *late = claim(lab, slow, 1), *got = claim(lab, quick, 1);
    assert_int_equal(late->n, 1);
    assert_int_equal(got->n, 0);
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (!got->n) {
        pawl_claimed_free(got);
        OK(pawl_session_renew(quick, NULL, &lab->err));
        OK(pawl_wait_for_work(s, 100, &lab->err));
        got = claim(lab, quick, 1);
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec - begun.tv_sec < 20);
    }
    assert_int_equal(got->leases[0]->id, id);
    assert_true(got->leases[0]->fence > late->leases[0]->fence);
    pawl_settlement how = PAWL_SETTLEMENT_INIT;
    FAILS(PAWL_ERROR_STALE, pawl_settle(slow, late->leases[0], &how, &lab->err));
    FAILS(PAWL_ERROR_STALE, pawl_session_renew(slow, NULL, &lab->err));
    pawl_claim_options c = PAWL_CLAIM_OPTIONS_INIT;
    pawl_claimed *none;
    c.kinds = kinds;
    c.n_kinds = 1;
    FAILS(PAWL_ERROR_STALE, pawl_claim(slow, &c, &none, &lab->err));
    settle(lab, quick, got->leases[0], PAWL_DONE, NULL, 0);
    pawl_claimed_free(late);
    pawl_claimed_free(got);
    OK(pawl_session_end(slow, &lab->err));
    OK(pawl_session_end(quick, &lab->err));
    pawl_close(s);
}

static void *add_soon(void *arg)
{
    struct lab *lab = arg;
    lab_fill(lab, lab->url, "k", 1);
    return NULL;
}

/* Another handle's job wakes who waits, long before the time is over. */
static void test_wait(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    pawl_claimed *got = claim(lab, session, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, add_soon, lab);
    while (!got->n) {
        pawl_claimed_free(got);
        OK(pawl_wait_for_work(s, -1, &lab->err));
        got = claim(lab, session, 1);
    }
    pthread_join(thread, NULL);
    pawl_claimed_free(got);
    FAILS(PAWL_ERROR_USAGE, pawl_wait_for_work(NULL, 1, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_wait_for_work(s, -2, &lab->err));
    pawl_close(s);
}

/* One handle, several threads: the calls wait for each other. */
enum { THREADS = 4, EACH = 40 };
struct shared {
    struct lab *lab;
    pawl_store *store;
    pawl_session *session;
};

static void *share(void *arg)
{
    struct shared *sh = arg;
    struct lab own = {0}, *lab = &own;
    for (int i = 0; i < EACH; i++) {
        lab_add(lab, sh->store, NULL, "k", NULL);
        pawl_claimed *got = claim(lab, sh->session, 1);
        if (got->n)
            settle(lab, sh->session, got->leases[0], PAWL_DONE, NULL, 0);
        pawl_claimed_free(got);
    }
    return NULL;
}

static void test_shared_handle(void **state)
{
    struct lab *lab = *state;
    pawl_open_options o = PAWL_OPEN_OPTIONS_INIT;
    struct shared sh = {.lab = lab};
    pthread_t threads[THREADS];
    o.durability = PAWL_DURABILITY_RELAXED;
    OK(pawl_open(lab->url, &o, &sh.store, &lab->err));
    sh.session = begin(lab, sh.store, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, share, &sh);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(lab_count(lab, sh.store).done, THREADS * EACH);
    pawl_close(sh.store);
}

static void test_refuses(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_session *session = begin(lab, s, NULL);
    pawl_session_options so = {0};
    pawl_session *none = NULL;
    FAILS(PAWL_ERROR_USAGE, pawl_session_begin(NULL, NULL, &none, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_session_begin(s, NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_session_begin(s, &so, &none, &lab->err));
    so = (pawl_session_options)PAWL_SESSION_OPTIONS_INIT;
    so.lease_ms = 10;
    FAILS(PAWL_ERROR_CONFIG, pawl_session_begin(s, &so, &none, &lab->err));
    so.lease_ms = 0;
    so.name = "";
    FAILS(PAWL_ERROR_USAGE, pawl_session_begin(s, &so, &none, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_session_renew(NULL, NULL, &lab->err));
    pawl_renewal renewal = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_session_renew(session, &renewal, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_session_end(NULL, &lab->err));
    pawl_claim_options co = PAWL_CLAIM_OPTIONS_INIT;
    pawl_claimed *got;
    FAILS(PAWL_ERROR_USAGE, pawl_claim(NULL, &co, &got, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, NULL, &got, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, &co, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, &co, &got, &lab->err)); /* no kinds */
    co.n_kinds = 1;
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, &co, &got, &lab->err));
    co.kinds = kinds;
    co.max = -1;
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, &co, &got, &lab->err));
    co.max = 1;
    co.n_queues = 1;
    co.queues = (const char *const[]){NULL};
    FAILS(PAWL_ERROR_USAGE, pawl_claim(session, &co, &got, &lab->err));
    lab_add(lab, s, NULL, "k", NULL);
    got = claim(lab, session, 1);
    const pawl_lease *l = got->leases[0];
    pawl_settlement how = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_settle(NULL, l, &how, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, NULL, &how, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, &how, &lab->err));
    how = (pawl_settlement)PAWL_SETTLEMENT_INIT;
    pawl_session *another = begin(lab, s, NULL);
    FAILS(PAWL_ERROR_USAGE, pawl_settle(another, l, &how, &lab->err)); /* not claimed under it */
    how.outcome = 77;
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, &how, &lab->err));
    how.outcome = PAWL_DONE;
    how.result = "not JSON";
    FAILS(PAWL_ERROR_INPUT, pawl_settle(session, l, &how, &lab->err));
    how.result = NULL;
    how.n_children = 1;
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, &how, &lab->err));
    pawl_job child = PAWL_JOB_INIT;
    how.children = &child;
    FAILS(PAWL_ERROR_INPUT, pawl_settle(session, l, &how, &lab->err));
    child.kind = "k";
    how.outcome = PAWL_RETRY;
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, &how, &lab->err));
    how.n_children = 0;
    how.delay_ms = -1;
    FAILS(PAWL_ERROR_USAGE, pawl_settle(session, l, &how, &lab->err));
    settle(lab, session, l, PAWL_DONE, NULL, 0); /* after all that the lease is still good */
    pawl_claimed_free(got);
    pawl_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_life),   TEST(test_outcomes),      TEST(test_budget),
        TEST(test_cancel), TEST(test_revoke),        TEST(test_expired),
        TEST(test_wait),   TEST(test_shared_handle), TEST(test_refuses),
    };
    return cmocka_run_group_tests_name("library-session", tests, NULL, NULL);
}
