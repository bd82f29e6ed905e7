/* The worker on the real store: what a fake cannot show. */
#include "place.h"
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct bed {
    char dir[64], path[96];
    struct rig rig;
    struct store *outside; /* another handle, as another process would have */
};

static int open_path(void *arg, struct store **out, struct pawl_err *err)
{
    const struct store_options o = {.mode = STORE_CREATE, .timeout = DUR_S(10)};
    return open_store(arg, &o, out, err);
}

static void rig_on_path(struct rig *r, char *path)
{
    rig_init(r);
    r->options.open_store = open_path;
    r->options.open_arg = path;
}

static void bed_init(struct bed *b)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(b->dir, sizeof(b->dir), "%.30s/pawl-worker-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(b->dir));
    place_name(b->dir, "pawl", b->path, sizeof(b->path));
    rig_on_path(&b->rig, b->path);
    assert_int_equal(open_path(b->path, &b->outside, &b->rig.err), 0);
}

static void bed_done(struct bed *b)
{
    char command[128];
    store_close(b->outside);
    rig_done(&b->rig);
    snprintf(command, sizeof(command), "rm -rf '%s'", b->dir);
    assert_int_equal(system(command), 0);
}

static void add(struct bed *b, int n, struct sv queue, struct sv kind)
{
    struct job_spec *v = mem_zalloc((size_t)n, sizeof(*v));
    struct add_result *out = mem_zalloc((size_t)n, sizeof(*out));
    for (int i = 0; i < n; i++) {
        v[i] = job_spec_default();
        v[i].queue = queue;
        v[i].kind = kind;
    }
    assert_int_equal(store_enqueue(b->outside, v, (size_t)n, DUPLICATE_SKIP, out, &b->rig.err), 0);
    free(v);
    free(out);
}

struct tally {
    int64_t claimed, terminal;
};

static bool count_event(void *arg, const struct event_view *e)
{
    struct tally *t = arg;
    t->claimed += e->type == EVENT_CLAIMED;
    t->terminal += event_terminal(e->type);
    return true;
}

static struct tally tally(struct bed *b)
{
    const struct event_filter all = {0};
    struct tally t = {0};
    assert_int_equal(b->outside->ops->events(b->outside, &all, count_event, &t, &b->rig.err), 0);
    return t;
}

static int64_t count_state(struct bed *b, enum job_state s)
{
    const struct selection sel = {.states = 1u << s};
    int64_t n = -1;
    assert_int_equal(b->outside->ops->count(b->outside, &sel, &n, &b->rig.err), 0);
    return n;
}

static void test_mixed_drain(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add(&b, 3000, SV("q"), SV("sync"));
    add(&b, 100, SV("q"), SV("timer"));
    add(&b, 5, SV("q"), SV("error"));
    add(&b, 5, SV("q"), SV("transient"));
    assert_int_equal(rig_run(&b.rig), 0);
    assert_true(b.rig.report.drained);
    assert_int_equal(b.rig.report.done, 3100);
    assert_int_equal(b.rig.report.failed, 10);
    assert_int_equal(tally(&b).terminal, 3110);
    assert_int_equal(count_state(&b, JOB_DONE), 3100);
    bed_done(&b);
}

static void *run_second(void *arg)
{
    assert_int_equal(rig_run(arg), 0);
    return NULL;
}

/* I2, I3: two workers on one store, each job executed exactly once. */
static void test_two_workers(void **state)
{
    struct bed b;
    struct rig second;
    pthread_t thread;
    (void)state;
    bed_init(&b);
    rig_on_path(&second, b.path);
    add(&b, 4000, SV("q"), SV("sync"));
    add(&b, 200, SV("q"), SV("timer"));
    pthread_create(&thread, NULL, run_second, &second);
    assert_int_equal(rig_run(&b.rig), 0);
    pthread_join(thread, NULL);
    for (int i = 1; i <= 4200; i++)
        assert_int_equal(b.rig.runs[i] + second.runs[i], 1);
    assert_int_equal(b.rig.report.done + second.report.done, 4200);
    assert_int_equal(tally(&b).terminal, 4200);
    rig_done(&second);
    bed_done(&b);
}

static struct session begin(struct bed *b, const char *name)
{
    const struct session_spec spec = {
        .name = name, .host = "gone", .pid = 1, .slots = 1, .lease = DUR_S(3600)};
    struct session made;
    assert_int_equal(b->outside->ops->session_begin(b->outside, &spec, &made, &b->rig.err), 0);
    return made;
}

/* As kill -9: the kernel lets the session's lock go, its lease is far from over. Where there is no
 * such lock the lease has run out. */
static void die(struct bed *b, struct store *s, struct session *w, struct arena *a)
{
    const struct renew_request renew = {.session = w, .lease = DUR_US(1)};
    struct renew_result renewed;
    if (w->lock_fd >= 0)
        close(w->lock_fd);
    else
        assert_int_equal(s->ops->renew(s, &renew, a, &renewed, &b->rig.err), 0);
}

/* A worker that took n jobs and was killed. */
static void die_with(struct bed *b, int n)
{
    struct session dead;
    struct claim_result got;
    AUTO(arena_done) struct arena a;
    const struct sv kinds[] = {SV("sync")};
    const struct claim_pool pool = {.kinds = kinds, .n_kinds = 1, .want = n};
    const struct claim_request req = {.session = &dead, .pools = &pool, .n_pools = 1};
    struct store *s = b->outside;
    arena_init(&a);
    add(b, n, SV("q"), SV("sync"));
    dead = begin(b, "gone:1");
    assert_int_equal(store_claim(s, &req, &a, &got, &b->rig.err), 0);
    assert_int_equal(got.n, n);
    die(b, s, &dead, &a);
}

/* I4: jobs of a worker that is known to be dead are claimable within a second. */
static void test_dead_worker(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    die_with(&b, 10);
    struct boot start = clock_boot();
    assert_int_equal(rig_run(&b.rig), 0);
    assert_int_equal(b.rig.report.done, 10);
    assert_true(clock_boot().us - start.us < 5 * 1000000);
    bed_done(&b);
}

static bool keep_id(void *arg, const struct event_view *e)
{
    *(int64_t *)arg = e->id;
    return true;
}

static bool count_held(void *arg, const struct event_view *e)
{
    int64_t *v = arg; /* held now, most ever held */
    v[0] += e->type == EVENT_CLAIMED;
    v[0] -= event_terminal(e->type) || e->type == EVENT_RELEASED;
    v[1] = v[0] > v[1] ? v[0] : v[1];
    return true;
}

/* I8: jobs that were lost with their worker are not held in numbers, so one that kills its worker
 * takes no bystanders along: without that a drain like this holds thousands. */
static void test_lost_are_not_prefetched(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    struct store *s = b.outside;
    struct session others[2]; /* who live: it is not the store that was away */
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        others[i] = begin(&b, "lives:1");
    die_with(&b, 3000);
    struct sweep_request sweep = {.max_sessions = 1, .max_jobs = 5000, .max_lost = 3};
    struct sweep_result swept;
    assert_int_equal(s->ops->sweep(s, &sweep, &swept, &b.rig.err), 0);
    assert_int_equal(swept.requeued, 3000);
    struct event_filter later = {.after = 0, .last = 1};
    int64_t last = 0;
    assert_int_equal(s->ops->events(s, &later, keep_id, &last, &b.rig.err), 0);
    assert_int_equal(rig_run(&b.rig), 0);
    assert_int_equal(b.rig.report.done, 3000);
    int64_t held[2] = {0};
    later = (struct event_filter){.after = last};
    assert_int_equal(s->ops->events(s, &later, count_held, held, &b.rig.err), 0);
    assert_in_range(held[1], 1, b.rig.options.pools[0].slots);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(s->ops->session_end(s, &others[i], &b.rig.err), 0);
    bed_done(&b);
}

/* ---- acts from outside ---- */

struct actor {
    struct bed *bed;
    void (*act)(struct bed *b, struct store *s);
};

static void *act_outside(void *arg)
{
    struct actor *a = arg;
    struct store *s;
    struct pawl_err err;
    assert_int_equal(open_path(a->bed->path, &s, &err), 0);
    a->act(a->bed, s);
    store_close(s);
    return NULL;
}

static int run_and_act(struct bed *b, void (*act)(struct bed *b, struct store *s))
{
    struct actor a = {b, act};
    pthread_t thread;
    pthread_create(&thread, NULL, act_outside, &a);
    int rc = rig_run(&b->rig);
    pthread_join(thread, NULL);
    return rc;
}

/* Wait for a state of the store, by asking it. */
static void wait_for(struct store *s, enum job_state state, int64_t n)
{
    const struct selection sel = {.states = 1u << state};
    struct pawl_err err;
    for (int64_t have = -1; have < n;) {
        assert_int_equal(s->ops->count(s, &sel, &have, &err), 0);
        usleep(1000);
    }
}

static void ask(struct store *s, enum worker_command c)
{
    struct pawl_err err;
    int n = 0;
    while (n == 0)
        assert_int_equal(s->ops->worker_ask(s, SV_NONE, c, &n, &err), 0);
}

static _Atomic int64_t paused_at;
static _Atomic int64_t last_start;

static void note_start(struct rig *r, struct run *run)
{
    (void)r, (void)run;
    atomic_store(&last_start, clock_boot().us);
}

static void pause_then_stop(struct bed *b, struct store *s)
{
    struct pawl_err err;
    bool changed;
    (void)b;
    wait_for(s, JOB_DONE, 100);
    assert_int_equal(s->ops->pause(s, SV("q"), true, &changed, &err), 0);
    atomic_store(&paused_at, clock_boot().us);
    while (clock_boot().us < atomic_load(&paused_at) + 1200000)
        usleep(50000); /* the promise is about time: no start a second after the pause */
    ask(s, COMMAND_STOP);
}

static void test_pause_queue(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    b.rig.options.drain = false;
    b.rig.on_start = note_start;
    add(&b, 40000, SV("q"), SV("timer"));
    assert_int_equal(run_and_act(&b, pause_then_stop), 0);
    assert_true(atomic_load(&last_start) < atomic_load(&paused_at) + 1000000);
    assert_int_equal(count_state(&b, JOB_RUNNING), 0);
    assert_int_equal(count_state(&b, JOB_QUEUED) + count_state(&b, JOB_DONE), 40000);
    bed_done(&b);
}

static void pause_resume_drain(struct bed *b, struct store *s)
{
    (void)b;
    wait_for(s, JOB_DONE, 1);
    ask(s, COMMAND_PAUSE);
    ask(s, COMMAND_RESUME);
    ask(s, COMMAND_DRAIN);
}

static void test_commands(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    b.rig.options.drain = false;
    add(&b, 300, SV("q"), SV("timer"));
    assert_int_equal(run_and_act(&b, pause_resume_drain), 0);
    assert_true(b.rig.report.drained);
    assert_int_equal(b.rig.report.done, 300);
    bed_done(&b);
}

static void cancel_first(struct bed *b, struct store *s)
{
    const job_id id = {1};
    const struct act_request req = {
        .act = ACT_CANCEL, .select = {.ids = &id, .n_ids = 1}, .max = 10};
    struct act_result res;
    struct pawl_err err;
    (void)b;
    wait_for(s, JOB_RUNNING, 1);
    assert_int_equal(s->ops->act(s, &req, &res, &err), 0);
}

static void test_cancel_running(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add(&b, 1, SV("q"), SV("hang"));
    assert_int_equal(run_and_act(&b, cancel_first), 0);
    assert_int_equal(count_state(&b, JOB_CANCELLED), 1);
    bed_done(&b);
}

static void add_one(struct bed *b, struct store *s)
{
    struct job_spec spec = job_spec_default();
    struct add_result res;
    struct pawl_err err;
    int sessions = 0;
    (void)b;
    spec.kind = SV("sync");
    while (!sessions)
        assert_int_equal(s->ops->worker_ask(s, SV_NONE, COMMAND_RESUME, &sessions, &err), 0);
    assert_int_equal(store_enqueue(s, &spec, 1, DUPLICATE_SKIP, &res, &err), 0);
}

/* A hint wakes an idle worker: a poll is an hour away. */
static void test_wake(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    b.rig.options.drain = false;
    b.rig.options.stop_after_jobs = 1;
    b.rig.config.worker_poll_interval = DUR_S(3600);
    b.rig.config.worker_sweep_interval = DUR_S(3600);
    assert_int_equal(run_and_act(&b, add_one), 0);
    assert_int_equal(b.rig.report.done, 1);
    bed_done(&b);
}

int main(void)
{
    alarm(100); /* SIGTERM is the worker's: a test that hangs ends by this one */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed_drain), cmocka_unit_test(test_two_workers),
        cmocka_unit_test(test_dead_worker), cmocka_unit_test(test_pause_queue),
        cmocka_unit_test(test_commands),    cmocka_unit_test(test_cancel_running),
        cmocka_unit_test(test_wake),        cmocka_unit_test(test_lost_are_not_prefetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
