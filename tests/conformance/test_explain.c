/* Locks and whoever waits for them as operators see them; explain; what workers tell each other. */
#include "operating.h"

/* ---- locks ---- */

static void test_I3_one_job_of_a_lock_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id low = add_locked(f, "db", 0), high = add_locked(f, "db", 5),
           last = add_locked(f, "db", 0);
    struct job_spec other = spec("q", "k", -1);
    job_id free = add(f, &other);
    for (int i = 0; i < 4; i++)
        assert_int_equal(get(f, (job_id){low.v + i}).state, JOB_QUEUED);
    struct claim_result r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v, high.v);
    assert_int_equal(r.leases[1].id.v, free.v);
    struct lock_list l = locks(f, NULL);
    assert_int_equal(l.n, 1);
    assert_sv(l.v[0].key, "db");
    assert_int_equal(l.v[0].holder.id.v, high.v);
    assert_int_equal(l.v[0].holder.fence.v, r.leases[0].fence.v);
    assert_sv(l.v[0].worker, "w");
    assert_int_not_equal(l.v[0].since.us, 0);
    assert_true(l.v[0].until.us > l.v[0].since.us);
    assert_int_equal(l.v[0].waiting, 2);
    assert_int_equal(l.v[0].next.v, low.v);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    l = locks(f, "db");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0].holder.id.v, 0);
    assert_int_equal(l.v[0].waiting, 2);
    r = claim(f, &w, "k", 10);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.leases[0].id.v, low.v);
    settle_ok(f, &r.leases[0], OUTCOME_FAILED);
    struct lease end_of_it = claim_one(f, &w);
    assert_int_equal(end_of_it.id.v, last.v);
    settle_ok(f, &end_of_it, OUTCOME_DONE);
    assert_int_equal(locks(f, NULL).n, 0);
    assert_int_equal(locks(f, "db").n, 0);
    end(f, &w);
}

static enum lock_outcome release(struct fixture *f, const char *key, bool force, const char *reason,
                                 struct lease_ref *holder)
{
    enum lock_outcome out;
    OK(f->s->ops->lock_release(f->s, sv_of(key), force, sv_of(reason), &out, holder, &f->e));
    return out;
}

static void test_I2_a_lock_taken_by_force(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct lease_ref holder;
    job_id first = add_locked(f, "db", 1), second = add_locked(f, "db", 3);
    assert_int_equal(release(f, "db", true, "x", &holder), LOCK_FREE);
    act(f, ACT_CANCEL, second);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, first.v);
    second = add_locked(f, "db", 3);
    assert_int_equal(release(f, "db", false, "x", &holder), LOCK_HELD);
    assert_int_equal(holder.id.v, first.v);
    assert_int_equal(release(f, "db", true, "it hangs", &holder), LOCK_RELEASED);
    assert_int_equal(holder.id.v, first.v);
    assert_int_equal(holder.fence.v, l.fence.v);
    struct last e = events(f, EVENT_LOCK_RELEASED);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.e.job.v, first.v);
    assert_int_equal(e.e.fence.v, l.fence.v);
    assert_says(e.e.detail, "\"lock\":\"db\"");
    assert_says(e.e.detail, "\"reason\":\"it hangs\"");
    assert_int_equal(n_events(f, first, EVENT_RELEASED), 1);
    struct settle late = settle_of(&l, OUTCOME_DONE);
    assert_int_equal(settle(f, &late), SETTLE_STALE);
    assert_int_equal(get(f, first).attempt, 0);
    l = claim_one(f, &w);
    assert_int_equal(l.id.v, second.v);
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    settle_ok(f, &l, OUTCOME_DONE);
    l = claim_one(f, &w);
    assert_int_equal(l.id.v, first.v);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static void test_a_lock_of_a_dead_worker_needs_no_force(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w"), self = start(f, "self");
    struct lease_ref holder;
    add_locked(f, "db", 0);
    claim_one(f, &w);
    expire(f, &w);
    assert_int_equal(release(f, "db", false, NULL, &holder), LOCK_RELEASED);
    struct lease l = claim_one(f, &self);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &self);
    vanish(&w);
}

static void test_acts_keep_the_turns_of_a_lock(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id a = add_locked(f, "db", 0), b = add_locked(f, "db", 0), c = add_locked(f, "db", 0);
    struct job_change up = {.has_priority = true, .priority = 7};
    struct job_change later = {.has_time = true, .delay = HOUR};
    struct act_request req = {.act = ACT_SET, .select = {.ids = &c, .n_ids = 1}, .change = &up};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(locks(f, "db").v[0].next.v, c.v);
    req.change = &later;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_state(f, c, JOB_WAITING);
    assert_int_equal(locks(f, "db").v[0].next.v, a.v);
    act(f, ACT_CANCEL, a);
    assert_int_equal(locks(f, "db").v[0].next.v, b.v);
    act(f, ACT_RELEASE, c);
    assert_state(f, c, JOB_QUEUED);
    assert_int_equal(locks(f, "db").v[0].next.v, c.v);
    act(f, ACT_RETRY, a);
    assert_int_equal(locks(f, "db").v[0].waiting, 3);
    const int64_t order[] = {c.v, a.v, b.v};
    for (int i = 0; i < 3; i++) {
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, order[i]);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    struct selection queued = {.states = 1u << JOB_QUEUED};
    int64_t n;
    OK(f->s->ops->count(f->s, &queued, &n, &f->e));
    assert_int_equal(n, 0);
    end(f, &w);
}

static bool count_job(void *arg, const struct job_view *j)
{
    assert_int_equal(j->state, JOB_QUEUED);
    ++*(int *)arg;
    return true;
}

static void test_held_jobs_are_queued_for_everybody(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++)
        add_locked(f, "db", i);
    struct selection queued = {.states = 1u << JOB_QUEUED}, all = {0};
    int64_t count;
    int n = 0;
    OK(f->s->ops->count(f->s, &queued, &count, &f->e));
    assert_int_equal(count, 5);
    OK(f->s->ops->list(f->s, &queued, false, count_job, &n, &f->e));
    assert_int_equal(n, 5);
    OK(f->s->ops->list(f->s, &all, false, count_job, &n, &f->e));
    assert_int_equal(n, 10);
    struct act_request req = {.act = ACT_CANCEL};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(out.changed, 5);
    assert_int_equal(locks(f, NULL).n, 0);
}

/* ---- explain ---- */

static void test_explain_place_and_pause(void **state)
{
    struct fixture *f = *state;
    bool changed;
    add_plain(f, 5);
    job_id job = add_plain(f, 0), behind = add_plain(f, 0), last = add_plain(f, -1);
    struct job_spec elsewhere = spec("other", "k", 9);
    add(f, &elsewhere);
    struct explain_view v = explain(f, job);
    assert_int_equal(v.job.id.v, job.v);
    assert_int_equal(v.position, 2);
    assert_false(v.position_more);
    assert_false(v.paused);
    assert_int_equal(v.n_gates, 0);
    assert_null(v.lock.key.p);
    assert_int_equal(explain(f, behind).position, 3);
    assert_int_equal(explain(f, last).position, 4);
    OK(f->s->ops->pause(f->s, SV("q"), true, &changed, &f->e));
    v = explain(f, job);
    assert_true(v.paused);
    assert_int_not_equal(v.paused_at.us, 0);
    act(f, ACT_CANCEL, job);
    v = explain(f, job);
    assert_int_equal(v.job.state, JOB_CANCELLED);
    assert_int_equal(v.position, 0);
    FAILS(f->s->ops->explain(f->s, (job_id){4711}, &f->a, &v, &f->e), PAWL_ENOTFOUND);
}

static void test_explain_gates_and_their_holders(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec each = capped("each", 1), all = capped("all", 7);
    each.each = EACH_HOST;
    set_limit(f, &each);
    set_limit(f, &all);
    job_id first = add_host(f, "a", 0), second = add_host(f, "a", 0);
    struct explain_view v = explain(f, second);
    assert_int_equal(v.n_gates, 2);
    assert_sv(v.gates[0].limit, "all");
    assert_sv(v.gates[1].limit, "each");
    assert_sv(v.gates[1].value, "a");
    assert_int_equal(v.gates[1].used, 0);
    assert_int_equal(v.gates[1].room.n, 1);
    struct lease l = claim_one(f, &w);
    v = explain(f, second);
    assert_int_equal(v.gates[0].used, 1);
    assert_int_equal(v.gates[0].room.n, 1);
    assert_int_equal(v.gates[1].room.n, 0);
    assert_int_equal(v.gates[1].room.why, SHUT_FULL);
    assert_int_equal(v.gates[1].n_holders, 1);
    assert_int_equal(v.gates[1].holders[0].id.v, first.v);
    assert_int_equal(v.gates[1].holders[0].fence.v, l.fence.v);
    assert_int_equal(v.n_sessions, 1);
    assert_sv(v.sessions[0].name, "w");
    struct gate_filter of_all = {.limit = SV("all")};
    int n;
    OK(f->s->ops->breaker_act(f->s, &of_all, BREAKER_DO_OPEN, HOUR, SV("why not"), &n, &f->e));
    v = explain(f, second);
    assert_int_equal(v.gates[0].room.why, SHUT_BREAKER);
    assert_sv(v.gates[0].why, "why not");
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static void test_explain_rates(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec s = capped("slow", 0);
    s.rate = (struct rate){1, HOUR};
    set_limit(f, &s);
    add_plain(f, 0);
    job_id next = add_plain(f, 0);
    struct claim_result r = claim(f, &w, "k", 5);
    assert_int_equal(r.n, 1);
    r = claim(f, &w, "k", 5);
    assert_int_equal(r.n, 0);
    assert_in_range(r.next_due.us, 1, HOUR.us);
    struct explain_view v = explain(f, next);
    assert_int_equal(v.n_gates, 1);
    assert_int_equal(v.gates[0].room.why, SHUT_RATE);
    assert_true(v.gates[0].room.until > v.now.us);
    end(f, &w);
}

static void test_explain_locks(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id first = add_locked(f, "db", 0);
    struct lease l = claim_one(f, &w);
    job_id second = add_locked(f, "db", 0);
    struct job_spec s = spec("q", "k", 0);
    s.lock = SV("other");
    s.delay = HOUR;
    job_id waits = add(f, &s);
    struct explain_view v = explain(f, second);
    assert_sv(v.lock.key, "db");
    assert_int_equal(v.lock.holder.id.v, first.v);
    assert_sv(v.lock.worker, "w");
    assert_int_equal(v.lock.waiting, 1);
    assert_int_equal(v.lock.next.v, second.v);
    assert_int_equal(v.position, 0);
    v = explain(f, waits);
    assert_sv(v.lock.key, "other");
    assert_int_equal(v.lock.holder.id.v, 0);
    assert_int_equal(v.lock.waiting, 0);
    assert_int_equal(v.job.wait_reason, WAIT_DELAY);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

/* Who holds how many of which kind, and whether somebody lives there. */
static void test_explain_who_holds_it(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w"), other = start(f, "other");
    job_id first = add_plain(f, 5);
    add_plain(f, 4);
    assert_int_equal(claim(f, &w, "k", 2).n, 2);
    struct job_spec another = spec("q2", "k2", 0);
    job_id third = add(f, &another);
    assert_int_equal(claim(f, &other, "k2", 1).n, 1);
    job_id waits = add_plain(f, 0);
    struct explain_view v = explain(f, first);
    assert_int_equal(v.owner.v, w.id.v);
    assert_int_equal(v.n_held, 2);
    assert_int_equal(v.held[0].session.v, w.id.v);
    assert_sv(v.held[0].kind, "k");
    assert_int_equal(v.held[0].n, 2);
    assert_sv(v.held[1].kind, "k2");
    assert_int_equal(v.held[1].n, 1);
    assert_int_equal(explain(f, third).owner.v, other.id.v);
    assert_int_equal(explain(f, waits).owner.v, 0);
    expire(f, &w);
    v = explain(f, first);
    assert_int_equal(v.owner.v, w.id.v);
    assert_int_equal(v.n_sessions, 2);
    assert_false(v.sessions[0].alive);
    assert_true(v.sessions[1].alive);
    end(f, &other);
    vanish(&w);
}

/* ---- workers ---- */

static void test_preflight_is_seen_by_others(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct renew_request r = {
        .session = &w, .lease = HOUR, .preflight = "{\"parse\":\"no such file\"}"};
    struct renew_result out;
    struct status_view st;
    OK(f->s->ops->status(f->s, 0, &f->a, &st, &f->e));
    assert_sv(st.sessions[0].preflight, "{}");
    OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    r.preflight = NULL;
    OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    OK(f->s->ops->status(f->s, 0, &f->a, &st, &f->e));
    assert_int_equal(st.n_sessions, 1);
    assert_sv(st.sessions[0].preflight, "{\"parse\":\"no such file\"}");
    job_id job = add_plain(f, 0);
    assert_sv(explain(f, job).sessions[0].preflight, "{\"parse\":\"no such file\"}");
    end(f, &w);
    assert_int_equal(explain(f, job).n_sessions, 0);
}

static bool duty(struct fixture *f, const struct session *w, struct dur ttl, int64_t done,
                 int64_t *out_done)
{
    bool mine;
    OK(f->s->ops->duty(f->s, SV("alerts"), w, ttl, done, &mine, out_done, &f->e));
    return mine;
}

static void test_a_duty_is_had_by_one(void **state)
{
    struct fixture *f = *state;
    struct session a = start(f, "a"), b = start(f, "b");
    int64_t done = -1;
    assert_true(duty(f, &a, HOUR, -1, &done));
    assert_int_equal(done, 0);
    assert_false(duty(f, &b, HOUR, 99, &done));
    assert_int_equal(done, 0);
    assert_true(duty(f, &a, HOUR, 41, &done));
    assert_int_equal(done, 41);
    assert_true(duty(f, &a, DUR_US(1), -1, &done));
    assert_int_equal(done, 41);
    assert_true(duty(f, &b, HOUR, 7, &done)); /* what b did before it had it does not count */
    assert_int_equal(done, 41);
    assert_false(duty(f, &a, HOUR, 50, &done));
    assert_true(duty(f, &b, HOUR, 43, &done));
    assert_int_equal(done, 43);
    end(f, &a);
    end(f, &b);
}

static void test_workers_note_events(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    OK(f->s->ops->note(f->s, EVENT_DISK_LOW, &w, SV("{\"free\":1}"), &f->e));
    OK(f->s->ops->note(f->s, EVENT_DRAINED, &w, SV_NONE, &f->e));
    struct last e = events(f, EVENT_DISK_LOW);
    assert_int_equal(e.n, 1);
    assert_says(e.e.detail, "\"free\":1");
    assert_int_equal(events(f, EVENT_DRAINED).n, 1);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I3_one_job_of_a_lock_at_a_time),
        TEST(test_I2_a_lock_taken_by_force),
        TEST(test_a_lock_of_a_dead_worker_needs_no_force),
        TEST(test_acts_keep_the_turns_of_a_lock),
        TEST(test_held_jobs_are_queued_for_everybody),
        TEST(test_explain_place_and_pause),
        TEST(test_explain_gates_and_their_holders),
        TEST(test_explain_rates),
        TEST(test_explain_locks),
        TEST(test_explain_who_holds_it),
        TEST(test_preflight_is_seen_by_others),
        TEST(test_a_duty_is_had_by_one),
        TEST(test_workers_note_events),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
