/* Why a job does not run: every row of reasons.def has a case here; the last test says which has
 * not. */
#include "unit.h"

#include "explain.h"
#include <stdlib.h>

#define NOW ((int64_t)1700000000000000)

static bool seen[N_REASONS];

/* A job that would run now, and a worker for it. Each test spoils something. */
struct world {
    struct arena a;
    struct explain_view v;
    struct session_view session;
    struct gate_view gate;
    struct lease_ref holders[2];
    struct held_view held[3];
    struct reason *reasons;
    size_t n;
};

static int setup(void **state)
{
    struct world *w = mem_zalloc(1, sizeof(*w));
    arena_init(&w->a);
    w->session = (struct session_view){.id = {1},
                                       .name = SV("here:1"),
                                       .pools = SV("{\"*\":4}"),
                                       .filter = SV("{\"queues\":[],\"kinds\":[\"exec\"]}"),
                                       .preflight = SV("{}"),
                                       .slots = 4,
                                       .alive = true};
    w->gate = (struct gate_view){.limit = SV("api"),
                                 .value = SV("h.example"),
                                 .params = {.cap = 2, .interval_us = 1000000, .burst = 1},
                                 .room = {.n = 1}};
    w->holders[0] = (struct lease_ref){{7}, {1}};
    w->holders[1] = (struct lease_ref){{8}, {1}};
    w->v = (struct explain_view){.now = {NOW},
                                 .job = {.id = {42},
                                         .queue = SV("pages"),
                                         .kind = SV("exec"),
                                         .host = SV("h.example"),
                                         .state = JOB_QUEUED},
                                 .gates = &w->gate,
                                 .n_gates = 1,
                                 .position = 1,
                                 .sessions = &w->session,
                                 .n_sessions = 1,
                                 .held = w->held};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    arena_done(&w->a);
    free(w);
    return 0;
}

static const struct reason *find(struct world *w, enum reason_code code)
{
    w->n = explain_reasons(&w->v, &w->a, &w->reasons);
    assert_true(w->n > 0);
    for (size_t i = 0; i < w->n; i++) {
        seen[w->reasons[i].code] = true;
        assert_true_msg(w->reasons[i].text.n > 0, "%s has no text",
                        reason_name(w->reasons[i].code));
        assert_true_msg(!memchr(w->reasons[i].text.p, '{', w->reasons[i].text.n),
                        "%s: a word was not filled in", reason_name(w->reasons[i].code));
        assert_true(!w->reasons[i].fix.p || sv_starts(w->reasons[i].fix, SV("pawl ")));
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->reasons[i].code == code)
            return &w->reasons[i];
    fail_msg("no reason %s, but %s", reason_name(code), reason_name(w->reasons[0].code));
    return NULL;
}

/* The only reason there is. */
static const struct reason *only(struct world *w, enum reason_code code, const char *fix)
{
    const struct reason *r = find(w, code);
    assert_int_equal(w->n, 1);
    if (fix)
        assert_sv(r->fix, fix);
    else
        assert_null(r->fix.p);
    return r;
}

static bool tells(const struct reason *r, const char *words)
{
    return memmem(r->text.p, r->text.n, words, strlen(words)) != NULL;
}

/* ---- the job itself ---- */

static void test_ready(void **state)
{
    only(*state, REASON_READY, NULL);
}

static void test_ended(void **state)
{
    struct world *w = *state;
    const enum job_state ends[] = {JOB_DONE, JOB_SKIPPED, JOB_FAILED, JOB_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        w->v.job.state = ends[i];
        w->v.paused = true; /* does not matter any more */
        assert_sv(only(w, REASON_ENDED, "pawl retry 42")->subject, job_state_name(ends[i]));
    }
}

/* The job runs on the only worker, which was heard of `ago` seconds ago. */
static void runs(struct world *w, int64_t ago)
{
    w->session.renewed_at = (struct wall){NOW - ago * 1000000};
    w->session.lease_until = (struct wall){w->session.renewed_at.us + 30000000};
    w->v.owner = w->session.id;
    w->v.job.state = JOB_RUNNING;
    w->v.job.worker = w->session.name;
    w->v.job.claimed_at = (struct wall){NOW - 5000000};
    w->v.job.lease_until = w->session.lease_until;
}

static void test_running(void **state)
{
    struct world *w = *state;
    runs(w, 2);
    const struct reason *r = only(w, REASON_RUNNING, "pawl logs -f 42");
    assert_sv(r->subject, "here:1");
    assert_int_equal(r->until.us, w->session.lease_until.us);
    assert_true(tells(r, "(5.0s ago)"));
    assert_true(tells(r, "(in 28s)"));
}

/* Nobody of that session lives, or it is over and ended: the next sweep gives the job back. */
static void test_worker_gone(void **state)
{
    struct world *w = *state;
    struct session_view both[2];
    runs(w, 2);
    both[0] = both[1] = w->session;
    both[0].alive = false;
    both[1].id.v = 2;
    w->v.sessions = both;
    w->v.n_sessions = 2;
    const struct reason *r = only(w, REASON_WORKER_GONE, NULL);
    assert_sv(r->subject, "here:1");
    assert_int_equal(r->since.us, both[0].renewed_at.us);
    assert_true(tells(r, "(2.0s ago)"));
    w->v.n_sessions = 1;
    find(w, REASON_WORKER_GONE);
    assert_int_equal(w->n, 2);
    assert_sv(find(w, REASON_NO_WORKER)->fix, "pawl run");
    w->v.sessions = both + 1; /* the row of its session has ended */
    assert_int_equal(only(w, REASON_WORKER_GONE, NULL)->since.us, w->v.job.claimed_at.us);
}

/* Its lease goes on, but a heartbeat or two are missing. */
static void test_worker_silent(void **state)
{
    struct world *w = *state;
    runs(w, 16);
    const struct reason *r = only(w, REASON_WORKER_SILENT, "pawl workers");
    assert_int_equal(r->until.us, w->session.lease_until.us);
    assert_true(tells(r, "(16s ago)"));
    assert_true(tells(r, "(in 14s)"));
    runs(w, 14);
    only(w, REASON_RUNNING, "pawl logs -f 42");
}

static void test_blocked(void **state)
{
    struct world *w = *state;
    w->v.job.state = JOB_BLOCKED;
    only(w, REASON_BLOCKED, "pawl show 42");
}

static void test_paused(void **state)
{
    struct world *w = *state;
    w->v.paused = true;
    w->v.job.queue = SV("it's $(here)");
    only(w, REASON_QUEUE_PAUSED, "pawl resume 'it'\"'\"'s $(here)'");
    w->v.job.queue = SV("\xe2\x80\xae"
                        "x");
    only(w, REASON_QUEUE_PAUSED, "pawl resume $'\\xe2\\x80\\xaex'");
}

static void test_waits(void **state)
{
    struct world *w = *state;
    const struct {
        enum wait_reason why;
        enum reason_code code;
    } cases[] = {
        {WAIT_NONE, REASON_DELAY},      {WAIT_DELAY, REASON_DELAY},
        {WAIT_BACKOFF, REASON_BACKOFF}, {WAIT_RETRY_AFTER, REASON_RETRY_AFTER},
        {WAIT_ASKED, REASON_ASKED},     {WAIT_LOST, REASON_LOST},
    };
    w->v.job.state = JOB_WAITING;
    w->v.job.available_at = (struct wall){NOW + 90000000};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w->v.job.wait_reason = cases[i].why;
        const struct reason *r = only(w, cases[i].code, "pawl release 42");
        assert_int_equal(r->until.us, NOW + 90000000);
        assert_true(tells(r, "(in 1m30s)"));
    }
}

/* ---- gates ---- */

static void shut(struct world *w, enum gate_shut why, int64_t until)
{
    w->gate.room = (struct gate_room){0, why, until};
    w->gate.holders = w->holders;
    w->gate.n_holders = 2;
    w->gate.used = 2;
}

static void test_gate_full(void **state)
{
    struct world *w = *state;
    shut(w, SHUT_FULL, 0);
    const struct reason *r = only(w, REASON_GATE_FULL, "pawl limit set api --concurrency 3");
    assert_sv(r->subject, "api=h.example");
    assert_int_equal(r->used, 2);
    assert_int_equal(r->max, 2);
    assert_int_equal(r->n_holders, 2);
    assert_int_equal(r->holders[1].v, 8);
    assert_true(tells(r, "jobs 7, 8"));
    w->gate.value = SV("");
    w->gate.used = 9; /* the limit was lowered under what ran */
    assert_sv(only(w, REASON_GATE_FULL, "pawl limit set api --concurrency 10")->subject, "api");
}

static void test_rate(void **state)
{
    struct world *w = *state;
    shut(w, SHUT_RATE, NOW + 2000000);
    assert_int_equal(only(w, REASON_RATE, "pawl limit set api --rate 2/s")->until.us,
                     NOW + 2000000);
}

static void test_pace(void **state)
{
    struct world *w = *state;
    w->gate.state.pace_us = 10000000;
    shut(w, SHUT_RATE, NOW + 2000000);
    const struct reason *r = only(w, REASON_PACE, "pawl breaker reset api h.example");
    assert_int_equal(r->until.us, NOW + 2000000);
}

static void test_throttled(void **state)
{
    struct world *w = *state;
    shut(w, SHUT_HELD, NOW + 60000000);
    only(w, REASON_THROTTLED, "pawl breaker reset api h.example");
    w->gate.state.held_asked = true;
    assert_true(
        tells(only(w, REASON_THROTTLED_ASKED, "pawl breaker reset api h.example"), "Retry-After"));
}

static void test_breaker(void **state)
{
    struct world *w = *state;
    shut(w, SHUT_BREAKER, NOW + 60000000);
    w->gate.state.breaker = BREAKER_OPEN;
    w->gate.why = SV("5 transient failures in a row");
    const struct reason *r = only(w, REASON_BREAKER_OPEN, "pawl breaker close api h.example");
    assert_int_equal(r->until.us, NOW + 60000000);
    assert_true(tells(r, "5 transient failures"));
    shut(w, SHUT_BREAKER, INT64_MAX); /* by an operator */
    w->gate.why = SV_NONE;
    assert_int_equal(only(w, REASON_BREAKER_OPEN, "pawl breaker close api h.example")->until.us, 0);
}

static void test_probing(void **state)
{
    struct world *w = *state;
    shut(w, SHUT_PROBING, 0);
    w->gate.state.breaker = BREAKER_HALF_OPEN;
    w->gate.state.probe_job = 5;
    const struct reason *r = only(w, REASON_BREAKER_PROBING, "pawl breaker close api h.example");
    assert_int_equal(r->n_holders, 1);
    assert_int_equal(r->holders[0].v, 5);
}

/* ---- locks ---- */

static void test_lock(void **state)
{
    struct world *w = *state;
    w->v.job.lock = SV("in voices");
    w->v.lock = (struct lock_view){.key = SV("in voices"),
                                   .holder = {{7}, {3}},
                                   .worker = SV("there:2"),
                                   .until = {NOW + 1000000},
                                   .waiting = 4,
                                   .next = {42}};
    const struct reason *r =
        only(w, REASON_LOCK_HELD, "pawl lock release 'in voices' --force --reason 'taken by hand'");
    assert_int_equal(r->holders[0].v, 7);
    assert_true(tells(r, "there:2"));
    w->v.lock.holder.id.v = 0;
    w->v.lock.next.v = 40;
    r = only(w, REASON_LOCK_TURN, "pawl explain 40");
    assert_int_equal(r->used, 4);
    w->v.lock.next = w->v.job.id;
    only(w, REASON_READY, NULL);
}

/* ---- workers ---- */

static void test_no_worker(void **state)
{
    struct world *w = *state;
    w->v.n_sessions = 0;
    only(w, REASON_NO_WORKER, "pawl run");
    w->v.n_sessions = 1;
    w->session.command = COMMAND_STOP;
    only(w, REASON_NO_WORKER, "pawl run");
    w->session.command = COMMAND_NONE;
    w->session.alive = false;
    only(w, REASON_NO_WORKER, "pawl run");
}

static void test_no_pool(void **state)
{
    struct world *w = *state;
    w->session.pools = SV("{\"noop\":4}");
    assert_sv(only(w, REASON_NO_POOL, "pawl run --kind exec")->subject, "exec");
    w->session.pools = SV("{\"*\":4}");
    w->session.filter = SV("{\"queues\":[],\"kinds\":[\"noop\"]}");
    only(w, REASON_NO_POOL, "pawl run --kind exec");
    w->session.filter = w->session.pools = SV("not even JSON"); /* does not tell: may take it */
    only(w, REASON_READY, NULL);
}

static void test_filtered(void **state)
{
    struct world *w = *state;
    w->session.filter = SV("{\"queues\":[\"other\"],\"kinds\":[\"exec\"]}");
    only(w, REASON_FILTERED, "pawl run --queue pages");
    w->session.filter = SV("{\"queues\":[\"other\",\"pages\"],\"kinds\":[\"exec\"]}");
    only(w, REASON_READY, NULL);
}

static void test_workers_paused(void **state)
{
    struct world *w = *state;
    w->session.command = COMMAND_PAUSE;
    const struct reason *r = only(w, REASON_WORKERS_PAUSED, "pawl workers resume here:1");
    assert_int_equal(r->used, 1);
    assert_int_equal(r->max, 1);
}

static void test_preflight(void **state)
{
    struct world *w = *state;
    w->session.preflight = SV("{\"noop\":\"x\",\"exec\":\"no such file\"}");
    const struct reason *r = only(w, REASON_PREFLIGHT, "pawl workers");
    assert_sv(r->subject, "exec");
    assert_sv(r->why, "no such file");
    assert_true(tells(r, "here:1"));
    w->session.preflight = SV("{\"noop\":\"x\"}");
    only(w, REASON_READY, NULL);
}

static void holds(struct world *w, size_t i, int64_t session, const char *kind, int64_t n)
{
    w->held[i] = (struct held_view){.session = {session}, .kind = sv_of(kind), .n = n};
    if (w->v.n_held <= i)
        w->v.n_held = i + 1;
}

static void test_slots_busy(void **state)
{
    struct world *w = *state;
    holds(w, 0, 1, "exec", 4);
    const struct reason *r = only(w, REASON_SLOTS_BUSY, "pawl run");
    assert_int_equal(r->used, 4);
    assert_int_equal(r->max, 4);
    w->session.pools = SV("does not tell");
    only(w, REASON_SLOTS_BUSY, "pawl run");
    w->held[0].session.v = 2; /* somebody else's */
    only(w, REASON_READY, NULL);
}

/* What other pools of the worker hold does not count, what shares its own does. */
static void test_slots_of_a_pool(void **state)
{
    struct world *w = *state;
    w->session.pools = SV("{\"parse\":2,\"*\":3}");
    holds(w, 0, 1, "parse", 2);
    holds(w, 1, 1, "exec", 1);
    only(w, REASON_READY, NULL);
    holds(w, 2, 1, "noop", 4); /* two of them are claimed ahead */
    const struct reason *r = only(w, REASON_SLOTS_BUSY, "pawl run");
    assert_int_equal(r->used, 3);
    assert_int_equal(r->max, 3);
    w->v.job.kind = SV("parse");
    w->session.filter = SV("{}");
    assert_int_equal(only(w, REASON_SLOTS_BUSY, "pawl run")->max, 2);
    holds(w, 0, 1, "parse", 1);
    only(w, REASON_READY, NULL);
}

/* One free worker is enough; of the others those are told that could run it. */
static void test_several_workers(void **state)
{
    struct world *w = *state;
    struct session_view v[3] = {w->session, w->session, w->session};
    v[2].id.v = 3;
    v[0].filter = SV("{\"queues\":[\"other\"],\"kinds\":[\"exec\"]}");
    v[1].command = COMMAND_PAUSE;
    w->v.sessions = v;
    w->v.n_sessions = 3;
    only(w, REASON_READY, NULL);
    holds(w, 0, 3, "exec", 4);
    find(w, REASON_SLOTS_BUSY);
    find(w, REASON_WORKERS_PAUSED);
    assert_int_equal(w->n, 2);
    w->v.n_sessions = 1;
    only(w, REASON_FILTERED, "pawl run --queue pages");
}

/* All at once, in the order of the table. */
static void test_together(void **state)
{
    struct world *w = *state;
    w->v.paused = true;
    w->v.job.state = JOB_WAITING;
    w->v.job.wait_reason = WAIT_BACKOFF;
    w->v.job.available_at = (struct wall){NOW + 1};
    shut(w, SHUT_FULL, 0);
    w->v.n_sessions = 0;
    find(w, REASON_NO_WORKER);
    assert_int_equal(w->n, 4);
    for (size_t i = 1; i < w->n; i++)
        assert_true(w->reasons[i - 1].code < w->reasons[i].code);
}

/* Runs last. */
static void test_every_reason_has_a_test(void **state)
{
    (void)state;
    for (int i = 0; i < N_REASONS; i++)
        assert_true_msg(seen[i], "no test brings about the reason %s",
                        reason_name((enum reason_code)i));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_ready),
        TEST(test_ended),
        TEST(test_running),
        TEST(test_blocked),
        TEST(test_worker_gone),
        TEST(test_worker_silent),
        TEST(test_paused),
        TEST(test_waits),
        TEST(test_gate_full),
        TEST(test_rate),
        TEST(test_throttled),
        TEST(test_pace),
        TEST(test_breaker),
        TEST(test_probing),
        TEST(test_lock),
        TEST(test_no_worker),
        TEST(test_no_pool),
        TEST(test_filtered),
        TEST(test_workers_paused),
        TEST(test_preflight),
        TEST(test_slots_busy),
        TEST(test_slots_of_a_pool),
        TEST(test_several_workers),
        TEST(test_together),
        TEST(test_every_reason_has_a_test),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
