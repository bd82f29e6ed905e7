/* Looking: list, count, events, status against a plain recount. */
#include "fixture.h"

#include <unistd.h>

enum { N = 240 };
struct known {
    job_id id;
    const char *queue, *kind, *host;
    char key[16];
    enum job_state state;
    struct wall created_at;
    bool fetched; /* its error says so */
};
struct world {
    struct known jobs[N];
    struct session w;
};

static const char *const queues[] = {"wiki", "docs", "mail"};
static const char *const kinds[] = {"k", "fetch"};
static const char *const hosts[] = {"a.example", "b.example", NULL};

static void describe_world(struct world *w, struct job_spec *v)
{
    for (int i = 0; i < N; i++) {
        struct known *j = &w->jobs[i];
        *j = (struct known){.queue = queues[i % 3],
                            .kind = kinds[i / 3 % 2],
                            .host = hosts[i / 7 % 3],
                            .state = JOB_QUEUED};
        snprintf(j->key, sizeof(j->key), "key%d", i % 100);
        v[i] = spec(j->queue, j->kind, i % 5);
        v[i].host = sv_of(j->host);
        if (i < 100)
            v[i].key = sv_of(j->key);
        else
            j->key[0] = '\0';
        if (i % 11 == 0) {
            v[i].delay = HOUR;
            j->state = JOB_WAITING;
        }
        if (i % 11 == 1) {
            v[i].at.us = clock_wall().us + HOUR.us;
            j->state = JOB_WAITING;
        }
    }
}

static void run_some(struct fixture *f, struct world *w)
{
    static const enum outcome outcomes[] = {OUTCOME_DONE, OUTCOME_SKIPPED, OUTCOME_FAILED,
                                            OUTCOME_CANCELLED, OUTCOME_LOST};
    static const enum job_state states[] = {JOB_DONE, JOB_SKIPPED, JOB_FAILED, JOB_CANCELLED,
                                            JOB_RUNNING};
    for (int k = 0; k < 2; k++) {
        struct claim_result r = claim(f, &w->w, kinds[k], 60);
        assert_int_equal(r.n, 60);
        for (size_t i = 0; i < r.n; i++) {
            struct known *j = &w->jobs[r.leases[i].id.v - 1];
            j->state = states[i % 5];
            if (outcomes[i % 5] == OUTCOME_LOST)
                continue;
            struct settle v = settle_of(&r.leases[i], outcomes[i % 5]);
            j->fetched = j->state == JOB_FAILED && i % 2;
            if (j->state == JOB_FAILED)
                v.error = j->fetched ? SV("fetch: 100% gone") : SV("other");
            assert_int_equal(settle(f, &v), SETTLE_OK);
        }
    }
}

static void build(struct fixture *f, struct world *w)
{
    struct job_spec v[N];
    struct add_result r[N];
    describe_world(w, v);
    OK(store_enqueue(f->s, v, N / 2, DUPLICATE_SKIP, r, &f->e));
    OK(store_enqueue(f->s, v + N / 2, N / 2, DUPLICATE_SKIP, r + N / 2, &f->e));
    w->w = start(f, "box:1");
    run_some(f, w);
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].id.v, i + 1);
        w->jobs[i].id = r[i].id;
        w->jobs[i].created_at = get(f, r[i].id).created_at;
    }
}

static bool in_ids(const struct selection *s, job_id id)
{
    for (size_t i = 0; i < s->n_ids; i++)
        if (s->ids[i].v == id.v)
            return true;
    return s->n_ids == 0;
}

static bool selected(const struct selection *s, const struct known *j)
{
    return in_ids(s, j->id) && (!s->queue.p || sv_eq(s->queue, sv_of(j->queue))) &&
           (!s->kind.p || sv_eq(s->kind, sv_of(j->kind))) &&
           (!s->host.p || (j->host && sv_eq(s->host, sv_of(j->host)))) &&
           (!s->key.p || sv_eq(s->key, sv_of(j->key))) &&
           (!s->states || s->states >> j->state & 1) && (!s->error.p || j->fetched) &&
           j->created_at.us >= s->since.us && j->id.v > s->after.v;
}

struct seen {
    int64_t ids[N];
    size_t n, stop;
    bool payloads;
};

static bool see(void *arg, const struct job_view *v)
{
    struct seen *s = arg;
    s->ids[s->n++] = v->id.v;
    assert_int_equal(v->payload.p != NULL, s->payloads);
    return s->n != s->stop;
}

static void compare(struct fixture *f, const struct world *w, const struct selection *sel)
{
    struct seen got = {0}, want = {0};
    int64_t n;
    for (int i = 0; i < N; i++)
        if (selected(sel, &w->jobs[i]) && (!sel->limit || (int64_t)want.n < sel->limit))
            want.ids[want.n++] = w->jobs[i].id.v;
    OK(f->s->ops->list(f->s, sel, false, see, &got, &f->e));
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.ids, want.ids, want.n * sizeof(*want.ids));
    OK(f->s->ops->count(f->s, sel, &n, &f->e));
    assert_int_equal(n, want.n);
}

static void test_list_and_count_with_every_filter(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    for (unsigned mask = 0; mask < 1u << 8; mask++) {
        struct selection s = {0};
        if (mask & 1)
            s.queue = SV("docs");
        if (mask & 2)
            s.kind = SV("fetch");
        if (mask & 4)
            s.host = SV("b.example");
        if (mask & 8)
            s.states = mask & 16 ? 1u << (mask >> 5) : 1u << JOB_FAILED | 1u << JOB_QUEUED;
        else if (mask & 16)
            s.error = SV("100% g");
        if (mask & 32)
            s.limit = 7;
        if (mask & 64)
            s.after = w.jobs[N / 3].id;
        if (mask & 128)
            s.since = w.jobs[N - 1].created_at;
        compare(f, &w, &s);
    }
    end(f, &w.w);
}

static void test_list_by_state(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    for (int st = 0; st < N_JOB_STATES; st++) {
        struct selection s = {.states = 1u << st};
        compare(f, &w, &s);
        s.limit = 3;
        s.after = w.jobs[40].id;
        compare(f, &w, &s);
    }
    end(f, &w.w);
}

static void test_list_by_ids_and_keys(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    job_id ids[] = {{200}, {3}, {77}, {3}, {100000}, {12}};
    struct selection s = {.ids = ids, .n_ids = ARRAY_LEN(ids)};
    compare(f, &w, &s);
    s.after.v = 3;
    s.limit = 2;
    compare(f, &w, &s);
    struct selection k = {.key = SV("key42")};
    compare(f, &w, &k);
    k.queue = SV("docs");
    compare(f, &w, &k);
    k.key = SV("nothing");
    compare(f, &w, &k);
    end(f, &w.w);
}

static void test_list_stops_when_told(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    struct seen got = {.stop = 5, .payloads = true};
    struct selection all = {0};
    OK(f->s->ops->list(f->s, &all, true, see, &got, &f->e));
    assert_int_equal(got.n, 5);
    add_plain(f, 0); /* and the handle is free again */
    end(f, &w.w);
}

struct get_arg {
    struct fixture *f;
    int n;
};
static bool get_each(void *arg, const struct job_view *v)
{
    struct get_arg *g = arg;
    struct fixture *f = g->f;
    assert_int_equal(get(f, v->id).state, v->state);
    return ++g->n < 20;
}

static void test_looking_while_listing(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    struct get_arg g = {f, 0};
    struct selection all = {0};
    OK(f->s->ops->list(f->s, &all, false, get_each, &g, &f->e));
    assert_int_equal(g.n, 20);
    end(f, &w.w);
}

struct log {
    struct event_view e[4096];
    size_t n;
};

static bool keep_event(void *arg, const struct event_view *e)
{
    struct log *l = arg;
    assert_true(l->n == 0 || l->e[l->n - 1].id < e->id);
    assert_true(l->n == 0 || l->e[l->n - 1].at.us <= e->at.us);
    assert_true(l->n < ARRAY_LEN(l->e));
    l->e[l->n++] = *e;
    return true;
}

static struct log *read_log(struct fixture *f, const struct event_filter *filter)
{
    struct log *l = arena_zalloc(&f->a, 1, sizeof(*l));
    OK(f->s->ops->events(f->s, filter, keep_event, l, &f->e));
    return l;
}

static bool event_wanted(const struct world *w, const struct event_filter *f,
                         const struct event_view *e)
{
    if (f->queue.p && (!e->job.v || !sv_eq(f->queue, sv_of(w->jobs[e->job.v - 1].queue))))
        return false;
    return e->id > f->after && (!f->job.v || f->job.v == e->job.v) &&
           (!f->types || f->types >> e->type & 1) && e->at.us >= f->since.us;
}

static void compare_events(struct fixture *f, const struct world *w, const struct log *all,
                           const struct event_filter *filter)
{
    struct log *got = read_log(f, filter);
    size_t matching = 0, skip = 0, k = 0;
    for (size_t i = 0; i < all->n; i++)
        matching += event_wanted(w, filter, &all->e[i]);
    if (filter->last && (int64_t)matching > filter->last)
        skip = matching - (size_t)filter->last;
    for (size_t i = 0; i < all->n; i++) {
        if (!event_wanted(w, filter, &all->e[i]) || (filter->limit && (int64_t)k >= filter->limit))
            continue;
        if (skip) {
            skip--;
            continue;
        }
        assert_true(k < got->n);
        assert_int_equal(got->e[k++].id, all->e[i].id);
    }
    assert_int_equal(got->n, k);
}

static void test_events_with_every_filter(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    struct event_filter none = {0};
    struct log *all = read_log(f, &none);
    assert_int_equal(all->n, 240 + 1 + 120 + 96);
    for (unsigned mask = 0; mask < 1u << 7; mask++) {
        struct event_filter e = {0};
        if (mask & 1)
            e.after = all->e[100].id;
        if (mask & 2)
            e.job = w.jobs[17].id;
        if (mask & 4)
            e.types = 1u << EVENT_DONE | 1u << EVENT_CLAIMED;
        if (mask & 8)
            e.queue = SV("docs");
        if (mask & 16)
            e.since = all->e[250].at;
        if (mask & 32)
            e.last = 9;
        if (mask & 64)
            e.limit = 4;
        compare_events(f, &w, all, &e);
    }
    struct event_filter late = {.since = {all->e[all->n - 1].at.us + 1}};
    assert_int_equal(read_log(f, &late)->n, 0);
    end(f, &w.w);
}

struct told {
    int64_t jobs[16];
    size_t n;
};

static bool tell(void *arg, const struct event_view *e)
{
    struct told *s = arg;
    assert_true(s->n < ARRAY_LEN(s->jobs));
    s->jobs[s->n++] = e->job.v;
    return true;
}

static size_t follow(struct fixture *f, struct event_filter filter, struct event_cursor *c,
                     struct told *s)
{
    size_t before = s->n;
    filter.follow = c;
    OK(f->s->ops->events(f->s, &filter, tell, s, &f->e));
    return s->n - before;
}

/* Other tests may use the same server, and what they have not yet committed holds followers back:
 * wait until all that is there can be told. */
static void wait_for_the_others(struct fixture *f)
{
    const struct event_filter all = {0};
    size_t there = read_log(f, &all)->n;
    for (int i = 0; i < 1000; i++) {
        struct event_cursor c = {0};
        struct told s = {0};
        if (follow(f, all, &c, &s) == there)
            return;
        usleep(10000);
    }
    fail_msg("a transaction stays open");
}

/* Ids are given before commits decide what comes first: what commits late has a lower id than what
 * was seen already, or what came after it is held back. Either way nothing is left out. */
static void test_followers_miss_no_late_commit(void **state)
{
    struct fixture *f = *state;
    const struct event_filter any = {0}, newest = {.last = 1};
    struct event_cursor c = {0};
    struct told s = {0};
    struct store *other = open_again(f);
    struct job_spec job = spec("q", "k", 0);
    struct add_result late;
    add_plain(f, 0);
    job_id first = add_plain(f, 0), after;
    wait_for_the_others(f);
    assert_int_equal(follow(f, newest, &c, &s), 1);
    assert_int_equal(s.jobs[0], first.v);
    assert_int_equal(follow(f, newest, &c, &s), 0);
    OK(other->ops->group_begin(other, &f->e));
    OK(store_enqueue(other, &job, 1, DUPLICATE_SKIP, &late, &f->e));
    if (on_postgres()) { /* elsewhere nobody can come between */
        after = add_plain(f, 0);
        follow(f, any, &c, &s);
        OK(other->ops->group_commit(other, &f->e));
    } else {
        OK(other->ops->group_commit(other, &f->e));
        after = add_plain(f, 0);
    }
    wait_for_the_others(f);
    follow(f, any, &c, &s);
    assert_int_equal(s.n, 3);
    assert_true(s.jobs[1] == late.id.v || s.jobs[2] == late.id.v);
    assert_true(s.jobs[1] == after.v || s.jobs[2] == after.v);
    assert_int_equal(follow(f, any, &c, &s), 0);
    store_close(other);
}

static bool stop_at_once(void *arg, const struct event_view *e)
{
    (void)arg;
    (void)e;
    return false;
}

static void test_followers_go_by_their_filter_and_may_stop(void **state)
{
    struct fixture *f = *state;
    struct event_cursor c = {0}, stopped = {0};
    struct told s = {0};
    struct job_spec other = spec("other", "k", 0);
    add_plain(f, 0);
    const struct event_filter here = {.queue = SV("q")}, stopping = {.follow = &stopped};
    wait_for_the_others(f);
    assert_int_equal(follow(f, here, &c, &s), 1);
    add(f, &other);
    job_id mine = add_plain(f, 0);
    wait_for_the_others(f);
    assert_int_equal(follow(f, here, &c, &s), 1);
    assert_int_equal(s.jobs[1], mine.v);
    OK(f->s->ops->events(f->s, &stopping, stop_at_once, NULL, &f->e));
    assert_int_equal(stopped.v, 0);
    s.n = 0;
    assert_int_equal(follow(f, (struct event_filter){0}, &stopped, &s), 3);
    assert_true(stopped.v > 0);
}

static bool check_claimed(void *arg, const struct event_view *e)
{
    assert_sv(e->queue, "q");
    assert_sv(e->kind, "k");
    assert_sv(e->key, "one");
    assert_sv(e->worker, "box:1");
    assert_int_equal(e->fence.v, 1);
    ++*(int *)arg;
    return true;
}

static void test_events_say_who_and_what(void **state)
{
    struct fixture *f = *state;
    struct job_spec s = keyed("q", "one");
    job_id id = add(f, &s);
    struct session w = start(f, "box:1");
    claim_one(f, &w);
    struct event_filter filter = {.job = id, .types = 1u << EVENT_CLAIMED};
    int n = 0;
    OK(f->s->ops->events(f->s, &filter, check_claimed, &n, &f->e));
    assert_int_equal(n, 1);
    end(f, &w);
}

static void test_status_equals_a_recount(void **state)
{
    struct fixture *f = *state;
    struct world w;
    build(f, &w);
    struct status_view st;
    OK(f->s->ops->status(f->s, 100, &f->a, &st, &f->e));
    assert_int_equal(st.n_classes, 6);
    for (size_t c = 0; c < st.n_classes; c++)
        for (int s = 0; s < N_JOB_STATES; s++) {
            int64_t n = 0;
            for (int i = 0; i < N; i++)
                n += sv_eq(st.classes[c].queue, sv_of(w.jobs[i].queue)) &&
                     sv_eq(st.classes[c].kind, sv_of(w.jobs[i].kind)) && (int)w.jobs[i].state == s;
            assert_int_equal(st.classes[c].n[s], n);
        }
    assert_int_equal(st.n_running, 24);
    for (size_t i = 1; i < st.n_running; i++)
        assert_true(st.running[i - 1].claimed_at.us <= st.running[i].claimed_at.us);
    assert_int_equal(st.n_last_done, 5);
    assert_int_equal(st.n_last_failed, 5);
    assert_true(st.last_failed[0].finished_at.us >= st.last_failed[4].finished_at.us);
    assert_true(st.last_failed[0].error.p != NULL);
    assert_int_equal(st.n_sessions, 1);
    assert_true(st.now.us >= st.sessions[0].started_at.us);
    OK(f->s->ops->status(f->s, 3, &f->a, &st, &f->e));
    assert_int_equal(st.n_running, 3);
    end(f, &w.w);
}

static void test_status_shows_pauses_commands_and_deaths(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    struct session w = start(f, "w");
    bool changed;
    int n;
    OK(f->s->ops->pause(f->s, SV("q"), true, &changed, &f->e));
    OK(f->s->ops->worker_ask(f->s, SV("w"), COMMAND_STOP, &n, &f->e));
    struct status_view st;
    OK(f->s->ops->status(f->s, 1, &f->a, &st, &f->e));
    assert_true(st.classes[0].paused);
    assert_int_equal(st.sessions[0].command, COMMAND_STOP);
    assert_true(st.sessions[0].alive);
    expire(f, &w);
    OK(f->s->ops->status(f->s, 1, &f->a, &st, &f->e));
    assert_false(st.sessions[0].alive);
    end(f, &w);
}

static void test_status_counts_retries_and_rate(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    struct session w = start(f, "w");
    for (int i = 0; i < 3; i++) {
        struct lease l = claim_one(f, &w);
        settle_ok(f, &l, i < 2 ? OUTCOME_RETRY : OUTCOME_DONE);
    }
    struct status_view st;
    OK(f->s->ops->status(f->s, 1, &f->a, &st, &f->e));
    assert_int_equal(st.classes[0].retries, 2);
    assert_int_equal(st.classes[0].done_last_minute, 1);
    assert_true(st.classes[0].first_created_at.us > 0);
    end(f, &w);
}

static void test_empty_store(void **state)
{
    struct fixture *f = *state;
    struct status_view st;
    struct event_filter none = {.last = 5};
    struct selection all = {0};
    int64_t n = -1;
    OK(f->s->ops->status(f->s, 10, &f->a, &st, &f->e));
    assert_int_equal(st.n_classes + st.n_sessions + st.n_running + st.n_last_done, 0);
    assert_int_equal(read_log(f, &none)->n, 0);
    OK(f->s->ops->count(f->s, &all, &n, &f->e));
    assert_int_equal(n, 0);
    struct job_view v;
    FAILS(f->s->ops->job_get(f->s, (job_id){1}, &f->a, &v, &f->e), PAWL_ENOTFOUND);
}

static void test_info_names_the_store(void **state)
{
    struct fixture *f = *state;
    struct store_info info;
    OK(f->s->ops->info(f->s, &info, &f->e));
    assert_string_equal(info.kind, f->s->ops->name);
    assert_true(info.location[0] && info.version[0]);
    assert_int_equal(info.schema, info.schema_known);
    assert_int_equal(info.durability, DURABILITY_RELAXED);
    assert_true(info.free_bytes != 0);
}

/* The same for every handle and for good; what it looks like is the store's. */
static void test_identity_stays(void **state)
{
    struct fixture *f = *state;
    char id[STORE_ID_LEN + 1], again[STORE_ID_LEN + 1];
    OK(f->s->ops->identity(f->s, id, &f->e));
    assert_int_equal(strlen(id), STORE_ID_LEN);
    struct store *other = open_again(f);
    OK(other->ops->identity(other, again, &f->e));
    store_close(other);
    assert_string_equal(id, again);
}

static void fail_with(struct fixture *f, struct session *w, enum outcome o, const char *error)
{
    struct lease l = claim_one(f, w);
    struct settle v = settle_of(&l, o);
    v.cls = CLASS_ERROR;
    v.error = sv_of(error);
    v.delay = o == OUTCOME_RETRY ? DUR_S(3600) : DUR_US(0);
    v.reason = o == OUTCOME_RETRY ? WAIT_BACKOFF : WAIT_NONE;
    assert_int_equal(settle(f, &v), SETTLE_OK);
}

static struct report_view report(struct fixture *f, struct dur ago, const char *queue)
{
    struct report_view r;
    struct wall since = {f->s->ops->now(f->s).us - ago.us};
    OK(f->s->ops->report(f->s, since, sv_of(queue), &f->a, &r, &f->e));
    return r;
}

static void test_report_tells_what_happened(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id last = {0};
    for (int i = 0; i < 6; i++)
        last = add_plain(f, 0);
    settle_ok(f, &(struct lease[]){claim_one(f, &w)}[0], OUTCOME_DONE);
    settle_ok(f, &(struct lease[]){claim_one(f, &w)}[0], OUTCOME_SKIPPED);
    fail_with(f, &w, OUTCOME_FAILED, "host 12 is away");
    fail_with(f, &w, OUTCOME_FAILED, "host 345 is away");
    fail_with(f, &w, OUTCOME_RETRY, "later");
    act(f, ACT_CANCEL, last);
    end(f, &w);
    struct report_view r = report(f, DUR_S(60), NULL);
    assert_int_equal(r.total.done, 1);
    assert_int_equal(r.total.skipped, 1);
    assert_int_equal(r.total.failed, 2);
    assert_int_equal(r.total.retried, 1);
    assert_int_equal(r.cancelled, 1);
    assert_int_equal(r.backoff.us, DUR_S(3600).us);
    assert_int_equal(r.n_slowest, 1);
    assert_int_equal(r.n_errors, 1);
    assert_int_equal(r.errors[0].count, 2);
    assert_sv(r.errors[0].message, "host 345 is away");
    assert_int_equal(r.workers_ended, 1);
    assert_int_equal(r.workers_lost, 0);
    r = report(f, DUR_S(60), "q");
    assert_int_equal(r.total.done + r.cancelled + r.errors[0].count, 4);
    r = report(f, DUR_S(60), "other");
    assert_int_equal(r.total.done + r.cancelled + (int64_t)(r.n_errors + r.n_slowest), 0);
    r = report(f, DUR_S(-1), NULL);
    assert_int_equal(r.cancelled + (int64_t)(r.n_errors + r.n_slowest), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_list_and_count_with_every_filter),
        TEST(test_list_by_state),
        TEST(test_list_by_ids_and_keys),
        TEST(test_list_stops_when_told),
        TEST(test_looking_while_listing),
        TEST(test_events_with_every_filter),
        TEST(test_followers_miss_no_late_commit),
        TEST(test_followers_go_by_their_filter_and_may_stop),
        TEST(test_events_say_who_and_what),
        TEST(test_status_equals_a_recount),
        TEST(test_status_shows_pauses_commands_and_deaths),
        TEST(test_status_counts_retries_and_rate),
        TEST(test_report_tells_what_happened),
        TEST(test_empty_store),
        TEST(test_info_names_the_store),
        TEST(test_identity_stays),
    };
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
