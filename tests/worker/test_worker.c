/* The worker on a fake store: everything it promises that does not need a real one. */
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

static void assert_each_once(struct rig *r)
{
    for (size_t i = 1; i <= r->fake.n_jobs; i++) {
        assert_int_equal(r->runs[i], 1);
        assert_int_equal(r->fake.jobs[i - 1].terminal_events, 1);
    }
}

static void test_each_job_once(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 5000, "q", "sync");
    rig_add(&r, 200, "q", "timer");
    rig_add(&r, 10, "q", "skip");
    assert_int_equal(rig_run(&r), 0);
    assert_true(r.report.drained);
    assert_int_equal(r.report.done, 5200);
    assert_int_equal(r.report.skipped, 10);
    assert_int_equal(r.report.stuck, 0);
    assert_each_once(&r);
    rig_done(&r);
}

/* With an hour between polls only a refill at once can end this. */
static void test_refill_at_once(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.worker_poll_interval = DUR_S(3600);
    r.config.worker_sweep_interval = DUR_S(3600);
    rig_add(&r, 100, "q", "timer");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 100);
    assert_int_equal(r.most_running, 4);
    rig_done(&r);
}

static void test_pools(void **state)
{
    struct rig r;
    const struct pool_conf pools[] = {{(char *)"timer", 2}, {(char *)"*", 3}};
    (void)state;
    rig_init(&r);
    r.options.pools = pools;
    r.options.n_pools = 2;
    rig_add(&r, 60, "q", "timer");
    rig_add(&r, 8, "q", "slow");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.most_of[rig_kind_index(SV("timer"))], 2);
    assert_int_equal(r.most_of[rig_kind_index(SV("slow"))], 3);
    assert_each_once(&r);
    rig_done(&r);
}

static void test_failures(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 1, "q", "error");
    rig_add(&r, 1, "q", "transient");
    rig_add(&r, 1, "q", "refuse");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.runs[1], 3); /* attempt budget */
    assert_int_equal(r.runs[2], 4); /* transient budget */
    assert_int_equal(r.report.failed, 3);
    assert_int_equal(r.report.retried, 5);
    assert_int_equal(fake_job(&r.fake, 1).attempt, 3);
    assert_int_equal(fake_job(&r.fake, 2).transient, 3);
    assert_int_equal(fake_count(&r.fake, JOB_FAILED), 3);
    rig_done(&r);
}

static void test_stop_after(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.options.drain = false;
    r.options.stop_after_jobs = 1234;
    rig_add(&r, 3000, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 1234);
    assert_int_equal(fake_count(&r.fake, JOB_QUEUED), 3000 - 1234);
    assert_false(r.report.drained);
    rig_done(&r);
}

static void test_only(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.options.drain = false;
    r.options.only.v = 3;
    rig_add(&r, 5, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 1);
    assert_int_equal(r.runs[3], 1);
    assert_int_equal(rig_run(&r), 0); /* again: it has ended */
    assert_int_equal(r.report.done, 0);
    rig_done(&r);
}

static void test_stuck(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 3, "q", "sync");
    rig_add(&r, 2, "q", "unknown");
    rig_add(&r, 4, "held", "sync");
    fake_pause(&r.fake, "held");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.stuck, 6);
    assert_int_equal(r.report.done, 3);
    r.options.only_kinds = true; /* --kind: the unknown kind is out of scope */
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.stuck, 4);
    rig_done(&r);
}

static void test_queue_filter(void **state)
{
    struct rig r;
    const struct sv queues[] = {SV("mine")};
    (void)state;
    rig_init(&r);
    r.options.queues = queues;
    r.options.n_queues = 1;
    rig_add(&r, 5, "other", "sync");
    rig_add(&r, 7, "mine", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 7);
    assert_int_equal(r.report.stuck, 0);
    rig_done(&r);
}

/* ---- ends from outside ---- */

static void send_term(struct rig *r, struct run *run)
{
    (void)run;
    if (r->running == 4)
        kill(getpid(), SIGTERM);
}

static void test_term_releases(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.worker_stop_timeout = DUR_MS(20);
    r.on_start = send_term;
    rig_add(&r, 10, "q", "hang");
    kill(getpid(), SIGHUP); /* never ends a worker */
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.signal, SIGTERM);
    assert_int_equal(r.report.released, 4);
    assert_int_equal(r.last_cancel, CANCEL_SHUTDOWN);
    assert_int_equal(fake_count(&r.fake, JOB_QUEUED), 10);
    for (int i = 1; i <= 10; i++)
        assert_int_equal(fake_job(&r.fake, i).attempt, 0); /* refunded: I8 */
    rig_done(&r);
}

static void test_term_lets_jobs_end(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.on_start = send_term;
    rig_add(&r, 10, "q", "slow");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 4);
    assert_int_equal(r.cancels, 0);
    assert_int_equal(fake_count(&r.fake, JOB_QUEUED), 6);
    rig_done(&r);
}

/* A thread that acts from outside once the given number of jobs were started. */
struct outsider {
    struct rig *rig;
    int started;
    void (*act)(struct rig *r);
    pthread_t thread;
};

static void *outside(void *arg)
{
    struct outsider *o = arg;
    struct fake *f = &o->rig->fake;
    pthread_mutex_lock(&f->lock);
    while (o->rig->started < o->started || !f->claims)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    o->act(o->rig);
    return NULL;
}

static int run_with_outsider(struct rig *r, int started, void (*act)(struct rig *r))
{
    struct outsider o = {.rig = r, .started = started, .act = act};
    pthread_create(&o.thread, NULL, outside, &o);
    int rc = rig_run(r);
    pthread_join(o.thread, NULL);
    return rc;
}

static void term_again(struct rig *r)
{
    (void)r;
    kill(getpid(), SIGTERM);
    usleep(150000); /* nearer together they count as one */
    kill(getpid(), SIGTERM);
}

static void test_second_term(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 4, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 4, term_again), 0);
    assert_int_equal(r.report.released, 4);
    assert_int_equal(r.last_cancel, CANCEL_SHUTDOWN);
    rig_done(&r);
}

static void cancel_two(struct rig *r)
{
    fake_cancel(&r->fake, 1);
    fake_cancel(&r->fake, 2);
}

static void test_cancel(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 2, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 2, cancel_two), 0);
    assert_int_equal(fake_count(&r.fake, JOB_CANCELLED), 2);
    assert_int_equal(r.last_cancel, CANCEL_ASKED);
    rig_done(&r);
}

static void ask_stop(struct rig *r)
{
    fake_ask(&r->fake, COMMAND_STOP);
}

static void test_command_stop(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.options.drain = false;
    r.config.worker_stop_timeout = DUR_MS(5);
    rig_add(&r, 3, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 3, ask_stop), 0);
    assert_int_equal(r.report.released, 3);
    rig_done(&r);
}

static void add_then_drain(struct rig *r)
{
    fake_add(&r->fake, "q", "sync"); /* wakes by hint alone: a poll is an hour away */
    fake_ask(&r->fake, COMMAND_DRAIN);
}

/* A hint for a job that the claim under way could not see: the next look must not wait for the
 * poll, which is an hour away. */
static void test_hint_during_a_claim(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.options.drain = false;
    r.options.stop_after_jobs = 1;
    r.config.worker_poll_interval = r.config.worker_sweep_interval = DUR_S(3600);
    r.fake.late_kind = "sync";
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 1);
    rig_done(&r);
}

static void test_hint_wakes_idle_worker(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.options.drain = false;
    r.config.worker_poll_interval = DUR_S(3600);
    r.config.worker_sweep_interval = DUR_S(3600);
    assert_int_equal(run_with_outsider(&r, 0, add_then_drain), 0);
    assert_int_equal(r.report.done, 1);
    assert_true(r.report.drained);
    rig_done(&r);
}

static void expire(struct rig *r)
{
    fake_expire_sessions(&r->fake);
}

static void end_hang(struct rig *r, struct run *run)
{
    (void)run;
    if (r->sessions == 2)
        kill(getpid(), SIGTERM); /* running again under the second session: enough */
}

static int late_done(struct rig *r)
{
    return r->last_cancel == CANCEL_LEASE_LOST ? RUN_DONE : RUN_CANCELLED;
}

/* I2: the session is lost under running jobs; their late results change nothing. */
static void test_lease_lost(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.worker_stop_timeout = DUR_MS(5);
    r.on_start = end_hang;
    r.on_hang_cancel_end = late_done;
    rig_add(&r, 2, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 2, expire), 0);
    assert_int_equal(r.sessions, 2);
    assert_int_equal(r.report.done, 0);
    assert_int_equal(fake_count(&r.fake, JOB_QUEUED), 2);
    assert_int_equal(fake_job(&r.fake, 1).terminal_events, 0);
    rig_done(&r);
}

/* ---- prefetch ---- */

/* Quick jobs, then slow ones of another kind in the same pool: what was prefetched goes back
 * unspent. */
static void test_prefetch_given_back(void **state)
{
    struct rig r;
    const struct pool_conf pools[] = {{(char *)"*", 1}};
    (void)state;
    rig_init(&r);
    r.options.pools = pools;
    r.options.drain = false;
    r.options.stop_after = DUR_MS(3000);
    rig_add(&r, 400, "q", "timer");
    rig_add(&r, 400, "q", "slow");
    assert_int_equal(rig_run(&r), 0);
    assert_true(r.report.done > 400);
    assert_true(r.report.released > 0);
    for (size_t i = 0; i < r.fake.n_jobs; i++)
        assert_true(r.fake.jobs[i].state == JOB_DONE || r.fake.jobs[i].attempt == 0);
    rig_done(&r);
}

/* ---- the store fails ---- */

static bool run_with_fault(enum fake_fault fault, int code, int at, int more)
{
    struct rig r;
    rig_init(&r);
    rig_add(&r, 30, "q", "timer");
    rig_add(&r, 30, "q", "sync");
    r.config.worker_poll_interval = DUR_MS(20);
    r.fake.fault = fault;
    r.fake.code = code;
    r.fake.fail_at = at;
    r.fake.fail_more = more;
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(fake_count(&r.fake, JOB_DONE), 60);
    assert_int_equal(r.report.done, 60);
    assert_int_equal(r.report.stale, 0);
    assert_each_once(&r);
    bool hit = r.fake.failed > 0;
    rig_done(&r);
    return hit;
}

/* I12: whichever call fails, nothing is lost and nothing done twice. */
static void test_every_call_fails_once(void **state)
{
    (void)state;
    int n = 1;
    while (run_with_fault(FAULT_BEFORE, PAWL_EUNREACHABLE, n, 0) && n < 60)
        n++;
    assert_true(n > 10);
}

static void test_every_commit_uncertain(void **state)
{
    (void)state;
    int n = 1;
    while (run_with_fault(FAULT_UNCERTAIN, PAWL_EFULL, n, 0) && n < 60)
        n++;
    assert_true(n > 10);
}

static void test_failing_again_while_recovering(void **state)
{
    (void)state;
    for (int n = 2; n < 12; n += 3)
        run_with_fault(FAULT_UNCERTAIN, PAWL_ELOCKED, n, 2);
}

static void take_down(struct rig *r)
{
    pthread_mutex_lock(&r->fake.lock);
    r->fake.fault = FAULT_BEFORE;
    r->fake.code = PAWL_EFULL;
    r->fake.down = true;
    pthread_mutex_unlock(&r->fake.lock);
    fake_hint(&r->fake);
}

static void test_store_gone_for_good(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.store_timeout = DUR_MS(250);
    rig_add(&r, 3, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 3, take_down), PAWL_EFULL);
    assert_int_equal(r.err.code, PAWL_EFULL);
    assert_int_equal(r.cancels, 3);
    assert_int_equal(r.running, 0);
    rig_done(&r);
}

static void corrupt(struct rig *r)
{
    pthread_mutex_lock(&r->fake.lock);
    r->fake.fault = FAULT_BEFORE;
    r->fake.code = PAWL_ECORRUPT;
    r->fake.down = true;
    pthread_mutex_unlock(&r->fake.lock);
    fake_hint(&r->fake);
}

static void test_corrupt_ends_at_once(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    rig_add(&r, 1, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 1, corrupt), PAWL_ECORRUPT);
    rig_done(&r);
}

static void test_no_store(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.fake.down = true;
    r.fake.code = PAWL_ENOTFOUND;
    assert_int_equal(rig_run(&r), PAWL_ENOTFOUND);
    rig_done(&r);
}

/* A short lease, a store that does not answer renewals: the loop ends the runs by the deadline. */
static void test_deadline_passes(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.worker_lease = DUR_S(1);
    r.config.worker_heartbeat = DUR_MS(300);
    r.config.store_timeout = DUR_MS(100);
    rig_add(&r, 2, "q", "hang");
    assert_int_equal(run_with_outsider(&r, 2, take_down), PAWL_EFULL);
    assert_int_equal(r.cancels, 2);
    rig_done(&r);
}

int main(void)
{
    alarm(100); /* SIGTERM is the worker's: a test that hangs ends by this one */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_job_once),
        cmocka_unit_test(test_refill_at_once),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_stop_after),
        cmocka_unit_test(test_only),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_queue_filter),
        cmocka_unit_test(test_term_releases),
        cmocka_unit_test(test_term_lets_jobs_end),
        cmocka_unit_test(test_second_term),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_command_stop),
        cmocka_unit_test(test_hint_wakes_idle_worker),
        cmocka_unit_test(test_hint_during_a_claim),
        cmocka_unit_test(test_lease_lost),
        cmocka_unit_test(test_prefetch_given_back),
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_every_commit_uncertain),
        cmocka_unit_test(test_failing_again_while_recovering),
        cmocka_unit_test(test_store_gone_for_good),
        cmocka_unit_test(test_corrupt_ends_at_once),
        cmocka_unit_test(test_no_store),
        cmocka_unit_test(test_deadline_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
