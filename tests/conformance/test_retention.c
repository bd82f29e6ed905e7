/* Retention, the order of jobs, and copies of what limits them. */
#include "copy.h"
#include "operating.h"

/* ---- retention ---- */

static job_id ended(struct fixture *f, const struct session *w, const char *queue, enum outcome o)
{
    struct job_spec s = spec(queue, "k", 1000);
    job_id id = add(f, &s);
    struct lease l = claim_one(f, w);
    settle_ok(f, &l, o);
    return id;
}

static void test_prune_leaves_the_newest(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id ids[7];
    for (int i = 0; i < 7; i++)
        ids[i] = ended(f, &w, "q", i % 2 ? OUTCOME_FAILED : OUTCOME_DONE);
    job_id other = ended(f, &w, "other", OUTCOME_DONE);
    unsigned both = 1u << JOB_DONE | 1u << JOB_FAILED;
    struct act_request req = {.act = ACT_PRUNE,
                              .select = {.queue = SV("q"), .states = both},
                              .keep_newest = 3,
                              .max = 3,
                              .dry_run = true};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(out.changed, 3);
    assert_true(out.more);
    req.dry_run = false;
    int64_t changed = 0;
    do {
        OK(f->s->ops->act(f->s, &req, &out, &f->e));
        changed += out.changed;
        req.select.after = out.cursor;
    } while (out.more);
    assert_int_equal(changed, 4);
    struct job_view v;
    for (int i = 0; i < 4; i++)
        FAILS(f->s->ops->job_get(f->s, ids[i], &f->a, &v, &f->e), PAWL_ENOTFOUND);
    for (int i = 4; i < 7; i++)
        get(f, ids[i]);
    get(f, other);
    req.select.after.v = 0;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(out.changed, 0);
    req.keep_newest = 1;
    req.select.states = 1u << JOB_DONE;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(out.changed, 1);
    get(f, ids[5]);
    get(f, ids[6]);
    req.select.queue = SV_NONE;
    FAILS(f->s->ops->act(f->s, &req, &out, &f->e), PAWL_EINPUT);
    end(f, &w);
}

static bool prune(struct fixture *f, struct wall events_before, struct wall attempts_before,
                  int max)
{
    bool more;
    OK(f->s->ops->prune_history(f->s, events_before, attempts_before, max, &more, &f->e));
    return more;
}

static void test_attempts_are_pruned_but_the_last(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0), live = add_plain(f, -1);
    for (int i = 0; i < 3; i++) {
        struct lease l = claim_one(f, &w);
        settle_ok(f, &l, i < 2 ? OUTCOME_RETRY : OUTCOME_FAILED);
    }
    for (int i = 0; i < 2; i++) {
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, live.v);
        settle_ok(f, &l, OUTCOME_RETRY);
    }
    struct wall none = {0}, soon = {f->s->ops->now(f->s).us + HOUR.us};
    prune(f, none, get(f, id).finished_at, 100);
    assert_int_equal(get(f, id).n_attempts, 3);
    while (prune(f, none, soon, 1))
        ;
    struct job_view v = get(f, id);
    assert_int_equal(v.n_attempts, 1);
    assert_int_equal(v.attempts[0].attempt, 3);
    assert_int_equal(get(f, live).n_attempts, 2);
    act(f, ACT_RETRY, id);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, id.v);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(get(f, id).n_attempts, 2);
    while (prune(f, none, soon, 1))
        ;
    assert_int_equal(get(f, id).n_attempts, 1);
    end(f, &w);
}

static bool count_any(void *arg, const struct event_view *e)
{
    (void)e;
    ++*(int *)arg;
    return true;
}

static void test_events_are_pruned_but_the_newest(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 10; i++)
        add_plain(f, 0);
    struct wall none = {0}, soon = {f->s->ops->now(f->s).us + HOUR.us}, early = {1};
    struct event_filter all = {0};
    int n = 0, calls = 1;
    assert_false(prune(f, early, none, 4));
    while (prune(f, soon, none, 4))
        calls++;
    assert_in_range(calls, 2, 4);
    OK(f->s->ops->events(f->s, &all, count_any, &n, &f->e));
    assert_int_equal(n, 1);
}

/* ---- order ---- */

static int age(struct fixture *f, int max)
{
    int n;
    OK(f->s->ops->age(f->s, max, &n, &f->e));
    return n;
}

/* The store's clock moves on by itself. */
static void pass(struct fixture *f, int64_t us)
{
    int64_t until = f->s->ops->now(f->s).us + us;
    while (f->s->ops->now(f->s).us <= until)
        ;
}

static void test_what_waits_long_gains_priority(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id old = add_plain(f, 0), older = add_plain(f, -3);
    pass(f, 2000);
    assert_int_equal(age(f, 10), 0);
    struct policy p = {.aging = DUR_US(1)};
    apply(f, &p, "aging");
    assert_int_equal(age(f, 1), 1);
    assert_int_equal(age(f, 10), 1);
    assert_int_equal(age(f, 10), 0);
    p.aging = HOUR;
    apply(f, &p, "slow aging");
    assert_int_equal(age(f, 10), 0);
    job_id high = add_plain(f, 998);
    assert_int_equal(get(f, old).priority, 0);
    assert_int_equal(explain(f, high).position, 2);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, old.v);
    assert_int_equal(l.priority, 0);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_int_equal(get(f, old).priority, 0);
    assert_int_equal(claim_one(f, &w).id.v, high.v);
    assert_int_equal(claim_one(f, &w).id.v, older.v);
    assert_int_equal(claim_one(f, &w).id.v, old.v);
    end(f, &w);
}

static void test_set_forgets_what_was_gained(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id a = add_plain(f, 0), b = add_plain(f, 0);
    struct policy p = {.aging = DUR_US(1)};
    apply(f, &p, "aging");
    pass(f, 2000);
    assert_int_equal(age(f, 10), 2);
    p.aging = HOUR;
    apply(f, &p, "slow aging");
    struct job_change c = {.has_priority = true, .priority = 3};
    struct act_request req = {.act = ACT_SET, .select = {.ids = &a, .n_ids = 1}, .change = &c};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(get(f, a).priority, 3);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, b.v);
    settle_ok(f, &l, OUTCOME_FAILED);
    act(f, ACT_RETRY, b);
    assert_int_equal(get(f, b).priority, 0);
    assert_int_equal(claim_one(f, &w).id.v, a.v);
    end(f, &w);
}

static void test_fair_order_serves_hosts_in_turn(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct policy p = {.order = ORDER_FAIR};
    apply(f, &p, "fair");
    for (int i = 0; i < 4; i++)
        add_host(f, "big", 0);
    add_host(f, "a", 0);
    add_host(f, "b", 0);
    const char *const order[] = {"big", "a", "b", "big"};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        struct lease l = claim_one(f, &w);
        assert_sv(l.host, order[i]);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    add_host(f, "a", 0);
    p.order = ORDER_FIFO;
    apply(f, &p, "fifo");
    assert_sv(claim_one(f, &w).host, "big");
    assert_sv(claim_one(f, &w).host, "big");
    assert_sv(claim_one(f, &w).host, "a");
    end(f, &w);
}

/* ---- copies ---- */

static void test_limits_and_locks_are_copied(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct limit_spec config = capped("conf", 9), each = capped("each", 1);
    each.each = EACH_HOST;
    struct policy p = {.limits = &config, .n_limits = 1, .order = ORDER_FAIR, .aging = HOUR};
    apply(f, &p, "the text");
    set_limit(f, &each);
    add_host(f, "a", 0);
    add_host(f, "a", 0);
    job_id first = add_locked(f, "db", 0), second = add_locked(f, "db", 0);
    job_id third = add_locked(f, "free", 0);
    assert_int_equal(claim(f, &w, "k", 2).n, 2);
    struct gate_filter of_each = {.limit = SV("each")};
    int n;
    OK(f->s->ops->breaker_act(f->s, &of_each, BREAKER_DO_OPEN, HOUR, SV("because"), &n, &f->e));
    char path[80];
    struct store *from = f->s, *to = copy_all(f, path);
    end(f, &w);
    f->s = to;
    assert_clean(f);
    struct limits l = limits(f);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.order, ORDER_FAIR);
    assert_int_equal(l.aging.us, HOUR.us);
    assert_true(l.v[0].in_config);
    assert_true(l.v[1].by_operator);
    assert_false(apply(f, &p, "the text"));
    struct gate_list g = gates(f, &of_each);
    assert_int_equal(g.n, 1);
    assert_sv(g.v[0].value, "a");
    assert_int_equal(g.v[0].state.breaker, BREAKER_OPEN);
    assert_sv(g.v[0].why, "because");
    assert_int_equal(g.v[0].used, 0);
    struct session w2 = start(f, "w2");
    struct claim_result r = claim(f, &w2, "k", 10);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v == third.v ? r.leases[1].id.v : r.leases[0].id.v, first.v);
    struct lock_list locked = locks(f, "db");
    assert_int_equal(locked.v[0].holder.id.v, first.v);
    assert_int_equal(locked.v[0].next.v, second.v);
    end(f, &w2);
    assert_clean(f);
    store_close(to);
    f->s = from;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_prune_leaves_the_newest),          TEST(test_attempts_are_pruned_but_the_last),
        TEST(test_events_are_pruned_but_the_newest), TEST(test_what_waits_long_gains_priority),
        TEST(test_set_forgets_what_was_gained),      TEST(test_fair_order_serves_hosts_in_turn),
        TEST(test_limits_and_locks_are_copied),
    };
    return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
