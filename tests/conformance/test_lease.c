/* Leases: settling, renewing, sessions (I2, I8, I9). */
#include "fixture.h"

#include <fcntl.h>
#include <unistd.h>

static struct renew_result renew(struct fixture *f, struct session *w, const struct progress *p,
                                 size_t n)
{
    struct renew_request r = {
        .session = w, .lease = HOUR, .progress = p, .n_progress = n, .running = 3};
    struct renew_result out;
    OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    return out;
}

static void test_ends_of_a_lease(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum outcome outcome;
        enum job_state state;
        enum event_type event;
        int attempt;
    } ends[] = {{OUTCOME_DONE, JOB_DONE, EVENT_DONE, 1},
                {OUTCOME_SKIPPED, JOB_SKIPPED, EVENT_SKIPPED, 1},
                {OUTCOME_FAILED, JOB_FAILED, EVENT_FAILED, 1},
                {OUTCOME_CANCELLED, JOB_CANCELLED, EVENT_CANCELLED, 1},
                {OUTCOME_RETRY, JOB_QUEUED, EVENT_RETRIED, 1},
                {OUTCOME_RELEASED, JOB_QUEUED, EVENT_RELEASED, 0}};
    struct session w = start(f, "w");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct job_spec s = spec("q", "k", 100 - (int)i);
        job_id id = add(f, &s);
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, id.v);
        settle_ok(f, &l, ends[i].outcome);
        struct job_view v = get(f, id);
        assert_int_equal(v.state, ends[i].state);
        assert_int_equal(v.attempt, ends[i].attempt);
        assert_null(v.worker.p);
        assert_int_equal(v.n_attempts, 1);
        assert_int_equal(v.attempts[0].outcome, ends[i].outcome);
        assert_int_equal(v.attempts[0].fence.v, l.fence.v);
        assert_int_equal(n_events(f, id, ends[i].event), 1);
        assert_int_equal(v.finished_at.us != 0, job_state_terminal(v.state));
        if (!job_state_terminal(v.state))
            act(f, ACT_CANCEL, id);
    }
    end(f, &w);
}

static void test_attempt_keeps_what_was_reported(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "box:7");
    struct lease l = claim_one(f, &w);
    struct settle v = settle_of(&l, OUTCOME_FAILED);
    v.cls = CLASS_ERROR;
    v.error = SV("exit 3: no such file");
    v.exit_code = 3;
    v.log_bytes = 12345;
    v.result = SV("{\"x\":1}");
    v.started_at.us = l.claimed_at.us + 1;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    struct job_view j = get(f, id);
    assert_sv(j.error, "exit 3: no such file");
    assert_int_equal(j.cls, CLASS_ERROR);
    assert_int_equal(j.exit_code, 3);
    assert_sv(j.result, "{\"x\":1}");
    const struct attempt_view *a = &j.attempts[0];
    assert_sv(a->worker, "box:7");
    assert_sv(a->error, "exit 3: no such file");
    assert_int_equal(a->exit_code, 3);
    assert_int_equal(a->log_bytes, 12345);
    assert_int_equal(a->started_at.us, v.started_at.us);
    assert_true(a->finished_at.us >= l.claimed_at.us);
    end(f, &w);
}

static void test_I8_budgets_count_apart(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct settle v = settle_of(&l, OUTCOME_RETRY);
    v.cls = CLASS_TRANSIENT;
    v.refund_attempt = v.count_transient = true;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    assert_int_equal(get(f, id).attempt, 0);
    assert_int_equal(get(f, id).transient, 1);
    l = claim_one(f, &w);
    assert_int_equal(l.attempt, 1);
    assert_int_equal(l.transient, 1);
    v = settle_of(&l, OUTCOME_RETRY);
    v.cls = CLASS_ERROR;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    l = claim_one(f, &w);
    assert_int_equal(l.attempt, 2);
    settle_ok(f, &l, OUTCOME_RELEASED);
    struct job_view j = get(f, id);
    assert_int_equal(j.attempt, 1);
    assert_int_equal(j.transient, 1);
    assert_int_equal(j.lost, 0);
    assert_int_equal(j.n_attempts, 3);
    end(f, &w);
}

static void test_I8_retry_waits_its_time(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct settle v = settle_of(&l, OUTCOME_RETRY);
    v.delay = HOUR;
    v.reason = WAIT_BACKOFF;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    struct job_view j = get(f, id);
    assert_int_equal(j.state, JOB_WAITING);
    assert_int_equal(j.wait_reason, WAIT_BACKOFF);
    assert_true(j.available_at.us > j.attempts[0].finished_at.us);
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    act(f, ACT_CANCEL, id);
    end(f, &w);
}

static void test_I2_stale_settle_changes_nothing(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease old = claim_one(f, &w);
    settle_ok(f, &old, OUTCOME_RELEASED);
    struct lease now = claim_one(f, &w);
    struct job_spec child = keyed("q", "child");
    struct settle v = settle_of(&old, OUTCOME_DONE);
    v.result = SV("1");
    v.error = SV("late");
    v.children = &child;
    v.n_children = 1;
    char *before = snapshot_all(f);
    assert_int_equal(settle(f, &v), SETTLE_STALE);
    v.fence.v = now.fence.v + 1;
    assert_int_equal(settle(f, &v), SETTLE_STALE);
    v.id.v += 1000;
    assert_int_equal(settle(f, &v), SETTLE_STALE);
    assert_string_equal(snapshot_all(f), before);
    settle_ok(f, &now, OUTCOME_DONE);
    before = snapshot_all(f);
    v = settle_of(&now, OUTCOME_FAILED); /* twice with the right fence */
    assert_int_equal(settle(f, &v), SETTLE_STALE);
    assert_string_equal(snapshot_all(f), before);
    assert_state(f, id, JOB_DONE);
    end(f, &w);
}

static void test_stale_among_others(void **state)
{
    struct fixture *f = *state;
    job_id a = add_plain(f, 2), b = add_plain(f, 1);
    struct session w = start(f, "w");
    struct claim_result r = claim(f, &w, "k", 2);
    struct settle v[] = {settle_of(&r.leases[0], OUTCOME_DONE),
                         settle_of(&r.leases[0], OUTCOME_FAILED),
                         settle_of(&r.leases[1], OUTCOME_SKIPPED)};
    enum settle_outcome out[3];
    OK(store_settle(f->s, v, 3, out, &f->e));
    assert_int_equal(out[0], SETTLE_OK);
    assert_int_equal(out[1], SETTLE_STALE);
    assert_int_equal(out[2], SETTLE_OK);
    assert_state(f, a, JOB_DONE);
    assert_state(f, b, JOB_SKIPPED);
    end(f, &w);
}

/* Many alike in one call, as a store may treat them at once; one of them is stale. */
static void test_I2_stale_within_a_stretch(void **state)
{
    struct fixture *f = *state;
    enum { N = 100 };
    struct settle v[N];
    enum settle_outcome out[N];
    for (int i = 0; i < N; i++)
        add_plain(f, 0);
    struct session w = start(f, "w");
    struct claim_result r = claim(f, &w, "k", N);
    assert_int_equal(r.n, N);
    settle_ok(f, &r.leases[41], OUTCOME_RELEASED);
    struct lease again = claim_one(f, &w);
    assert_int_equal(again.id.v, r.leases[41].id.v);
    for (int i = 0; i < N; i++) {
        v[i] = settle_of(&r.leases[i], OUTCOME_DONE);
        v[i].hint = r.leases[i].hint;
        v[i].exit_code = i;
    }
    OK(store_settle(f->s, v, N, out, &f->e));
    for (int i = 0; i < N; i++) {
        struct job_view j = get(f, r.leases[i].id);
        assert_int_equal(out[i], i == 41 ? SETTLE_STALE : SETTLE_OK);
        assert_int_equal(j.state, i == 41 ? JOB_RUNNING : JOB_DONE);
        assert_int_equal(j.n_attempts, 1);
        assert_int_equal(n_events(f, j.id, EVENT_DONE), i != 41);
        if (i != 41)
            assert_int_equal(j.attempts[0].exit_code, i);
    }
    OK(store_settle(f->s, v, N, out, &f->e)); /* and all of them once more */
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], SETTLE_STALE);
    end(f, &w);
}

static bool keep_view(void *arg, const struct job_view *v)
{
    *(job_id *)arg = v->id;
    assert_int_equal(v->parent.v, 1);
    return true;
}

static void test_I9_children_come_with_the_settle(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct job_spec children[] = {keyed("q", "c"), keyed("q", "c"), keyed("p", "c")};
    struct settle v = settle_of(&l, OUTCOME_DONE);
    v.children = children;
    v.n_children = 3;
    assert_int_equal(settle(f, &v), SETTLE_OK);
    struct selection sel = {.key = SV("c")};
    job_id child = {0};
    int64_t n;
    assert_int_equal(id.v, 1);
    OK(f->s->ops->count(f->s, &sel, &n, &f->e));
    assert_int_equal(n, 2);
    OK(f->s->ops->list(f->s, &sel, false, keep_view, &child, &f->e));
    assert_int_equal(n_events(f, child, EVENT_ADDED), 1);
    end(f, &w);
}

static void test_I9_bad_child_leaves_the_lease(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct job_spec children[] = {spec("q", "k", 0), spec("", "k", 0)};
    struct settle v = settle_of(&l, OUTCOME_DONE);
    v.children = children;
    v.n_children = 2;
    char *before = snapshot_all(f);
    enum settle_outcome out;
    FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    assert_string_equal(snapshot_all(f), before);
    settle_ok(f, &l, OUTCOME_FAILED);
    end(f, &w);
}

static void test_asked_to_cancel_does_not_come_back(void **state)
{
    struct fixture *f = *state;
    const enum outcome outcomes[] = {OUTCOME_RETRY, OUTCOME_RELEASED, OUTCOME_DONE};
    const enum job_state states[] = {JOB_CANCELLED, JOB_CANCELLED, JOB_DONE};
    struct session w = start(f, "w");
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        job_id id = add_plain(f, 0);
        struct lease l = claim_one(f, &w);
        act(f, ACT_CANCEL, id);
        assert_state(f, id, JOB_RUNNING);
        assert_true(get(f, id).cancel_asked);
        settle_ok(f, &l, outcomes[i]);
        assert_state(f, id, states[i]);
        assert_false(get(f, id).cancel_asked);
    }
    end(f, &w);
}

static void test_renew_answers_cancels_and_commands(void **state)
{
    struct fixture *f = *state;
    job_id a = add_plain(f, 2);
    add_plain(f, 1);
    struct session w = start(f, "w"), other = start(f, "other");
    claim(f, &w, "k", 2);
    struct renew_result r = renew(f, &w, NULL, 0);
    assert_int_equal(r.n_cancels, 0);
    assert_int_equal(r.command, COMMAND_NONE);
    act(f, ACT_CANCEL, a);
    int n;
    OK(f->s->ops->worker_ask(f->s, SV("w"), COMMAND_PAUSE, &n, &f->e));
    assert_int_equal(n, 1);
    OK(f->s->ops->worker_ask(f->s, SV("nobody"), COMMAND_STOP, &n, &f->e));
    assert_int_equal(n, 0);
    r = renew(f, &w, NULL, 0);
    assert_int_equal(r.n_cancels, 1);
    assert_int_equal(r.cancels[0].v, a.v);
    assert_int_equal(r.command, COMMAND_PAUSE);
    assert_int_equal(renew(f, &other, NULL, 0).command, COMMAND_NONE);
    assert_int_equal(renew(f, &other, NULL, 0).n_cancels, 0);
    OK(f->s->ops->worker_ask(f->s, SV_NONE, COMMAND_DRAIN, &n, &f->e));
    assert_int_equal(n, 2);
    assert_int_equal(renew(f, &w, NULL, 0).command, COMMAND_DRAIN);
    assert_int_equal(renew(f, &other, NULL, 0).command, COMMAND_DRAIN);
    end(f, &w);
    end(f, &other);
}

static void test_asked_to_pause_takes_nothing(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum worker_command c;
        size_t taken;
    } cases[] = {{COMMAND_PAUSE, 0}, {COMMAND_RESUME, 1}, {COMMAND_STOP, 0}, {COMMAND_DRAIN, 1}};
    add_plain(f, 1);
    struct session w = start(f, "w");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int n;
        OK(f->s->ops->worker_ask(f->s, SV("w"), cases[i].c, &n, &f->e));
        struct claim_result r = claim(f, &w, "k", 1); /* it has not renewed: it cannot know */
        assert_int_equal(r.n, cases[i].taken);
        assert_false(r.session_stale);
        if (r.n)
            settle_ok(f, &r.leases[0], OUTCOME_RELEASED);
    }
    end(f, &w);
}

static void test_I2_renew_and_progress_are_fenced(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    struct progress p = {id, l.fence, SV("{\"done\":1}")};
    renew(f, &w, &p, 1);
    assert_sv(get(f, id).progress, "{\"done\":1}");
    struct progress late = {id, {l.fence.v - 1}, SV("{\"done\":9}")};
    assert_false(renew(f, &w, &late, 1).stale);
    assert_sv(get(f, id).progress, "{\"done\":1}");
    settle_ok(f, &l, OUTCOME_RELEASED);
    renew(f, &w, &p, 1);
    assert_null(get(f, id).progress.p);
    l = claim_one(f, &w);
    p.fence = l.fence;
    expire(f, &w);
    assert_true(renew(f, &w, &p, 1).stale);
    assert_null(get(f, id).progress.p);
    assert_true(renew(f, &w, NULL, 0).stale); /* never comes back to life */
    settle_ok(f, &l, OUTCOME_DONE);           /* gated on the fence alone: nobody took it */
    end(f, &w);
}

static void test_session_end_gives_everything_back(void **state)
{
    struct fixture *f = *state;
    job_id ids[700];
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ids[i] = add_plain(f, 0);
    struct session w = start(f, "w"), stay = start(f, "stay");
    struct lease kept = claim_one(f, &stay);
    assert_int_equal(claim(f, &w, "k", 699).n, 699);
    end(f, &w);
    for (size_t i = 1; i < ARRAY_LEN(ids); i++) {
        struct job_view v = get(f, ids[i]);
        assert_int_equal(v.state, JOB_QUEUED);
        assert_int_equal(v.attempt, 0);
        assert_int_equal(v.lost, 0);
        assert_int_equal(v.attempts[0].outcome, OUTCOME_RELEASED);
    }
    assert_state(f, kept.id, JOB_RUNNING);
    assert_true(renew(f, &w, NULL, 0).stale);
    end(f, &w); /* twice is harmless */
    end(f, &stay);
}

static void test_held_reads_back_the_leases(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 2);
    add_plain(f, 1);
    add_plain(f, 0);
    struct session w = start(f, "w"), other = start(f, "other");
    struct claim_result r = claim(f, &w, "k", 2);
    claim_one(f, &other);
    struct lease *held;
    size_t n;
    OK(f->s->ops->held(f->s, &w, &f->a, &held, &n, &f->e));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        struct lease *l = &r.leases[held[i].id.v == r.leases[0].id.v ? 0 : 1];
        assert_int_equal(held[i].id.v, l->id.v);
        assert_int_equal(held[i].fence.v, l->fence.v);
        assert_int_equal(held[i].attempt, l->attempt);
        assert_int_equal(held[i].claimed_at.us, l->claimed_at.us);
        assert_sv(held[i].queue, "q");
        assert_sv(held[i].payload, "null");
    }
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    OK(f->s->ops->held(f->s, &w, &f->a, &held, &n, &f->e));
    assert_int_equal(n, 1);
    end(f, &w);
    OK(f->s->ops->held(f->s, &w, &f->a, &held, &n, &f->e));
    assert_int_equal(n, 0);
    end(f, &other);
}

static void test_sessions_are_distinct(void **state)
{
    struct fixture *f = *state;
    struct session a = start(f, "same"), b = start(f, "same");
    assert_int_not_equal(a.id.v, b.id.v);
    assert_string_not_equal(a.uid, b.uid);
    if (a.lock_fd >= 0)
        assert_true(fcntl(a.lock_fd, F_GETFD) & FD_CLOEXEC);
    struct status_view st;
    OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
    assert_int_equal(st.n_sessions, 2);
    assert_sv(st.sessions[0].name, "same");
    assert_sv(st.sessions[1].uid, b.uid);
    assert_true(st.sessions[0].alive && st.sessions[1].alive);
    end(f, &a);
    OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
    assert_int_equal(st.n_sessions, 1);
    end(f, &b);
}

static void test_metrics_survive_their_session(void **state)
{
    struct fixture *f = *state;
    int64_t m[N_METRICS] = {0};
    struct session a = start(f, "a"), b = start(f, "b");
    struct session *both[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        m[METRIC_job_completed] = 5 + i;
        m[N_METRICS - 1] = 100;
        struct renew_request r = {.session = both[i], .lease = HOUR, .metrics = m};
        struct renew_result out;
        OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    }
    for (int i = 0; i < 3; i++) {
        struct status_view st;
        OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
        assert_int_equal(st.metrics[METRIC_job_completed], 11);
        assert_int_equal(st.metrics[N_METRICS - 1], 200);
        if (i < 2)
            end(f, both[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ends_of_a_lease),
        TEST(test_attempt_keeps_what_was_reported),
        TEST(test_I8_budgets_count_apart),
        TEST(test_I8_retry_waits_its_time),
        TEST(test_I2_stale_settle_changes_nothing),
        TEST(test_stale_among_others),
        TEST(test_I2_stale_within_a_stretch),
        TEST(test_I9_children_come_with_the_settle),
        TEST(test_I9_bad_child_leaves_the_lease),
        TEST(test_asked_to_cancel_does_not_come_back),
        TEST(test_renew_answers_cancels_and_commands),
        TEST(test_asked_to_pause_takes_nothing),
        TEST(test_I2_renew_and_progress_are_fenced),
        TEST(test_session_end_gives_everything_back),
        TEST(test_held_reads_back_the_leases),
        TEST(test_sessions_are_distinct),
        TEST(test_metrics_survive_their_session),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
