/* The worker and limits: policy, prefetch, busy claims, throttling, preflight, retention. */
#include "rig.h"

#include "policy.h"
#include "retention.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void far_polls(struct rig *r)
{
    r->config.worker_poll_interval = DUR_S(3600);
    r->config.worker_sweep_interval = DUR_S(3600);
}

static struct limit_conf one_limit(void)
{
    return (struct limit_conf){.origin = (char *)"pawl.yaml:3",
                               .name = (char *)"wiki",
                               .each = LIMIT_EACH_HOST,
                               .concurrency = 2,
                               .rate = {200, DUR_S(60)},
                               .pause = DUR_S(7200),
                               .breaker = {.threshold = 4,
                                           .min_calls = 20,
                                           .window = DUR_S(60),
                                           .pause = DUR_S(60),
                                           .max_pause = DUR_S(60)}};
}

static void test_policy(void **state)
{
    struct rig r;
    struct limit_conf limit = one_limit();
    (void)state;
    rig_init(&r);
    r.config.claim_order = (char *)"fair";
    r.config.limits = &limit;
    r.config.n_limits = 1;
    rig_add(&r, 1, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.fake.policies, 1); /* the configuration says nothing about it: */
    assert_true(r.fake.policy_null);      /* what is built in */
    r.config.policy_given = true;
    r.options.no_policy = true;
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.fake.policies, 1);
    r.options.no_policy = false;
    r.fake.claims = 0;
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.fake.policies, 2);
    assert_false(r.fake.policy_null);
    assert_int_equal(r.fake.policy_claims, 0); /* before the first claim */
    assert_non_null(strstr(r.fake.policy_text, "\"claim_order\":\"fair\""));
    assert_non_null(strstr(r.fake.policy_text, "\"each\":\"host\""));
    assert_non_null(strstr(r.fake.policy_text, "\"max_pause\":\"2h\"")); /* it gave way */
    r.fake.policy_code = PAWL_ECONFLICT;
    r.fake.claims = 0;
    assert_int_equal(rig_run(&r), PAWL_ECONFLICT);
    assert_int_equal(r.fake.claims, 0);
    limit.replaces = true; /* contradicts each */
    assert_int_equal(rig_run(&r), PAWL_ECONFIG);
    assert_string_equal(r.err.msg, "pawl.yaml:3: limits.wiki: replaces is for limits without each");
    rig_done(&r);
}

static void test_busy(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    far_polls(&r);
    r.fake.busy = 3;
    rig_add(&r, 5, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 5);
    assert_int_equal(r.fake.busy, 0);
    rig_done(&r);
}

/* With quick jobs there is prefetch, but none of what needs a permit; and a permit that is freed
 * lets the next one go though nobody polls. */
static void test_permits_do_not_wait(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    far_polls(&r);
    r.fake.gated = "timer";
    r.fake.permits = 2;
    rig_add(&r, 300, "q", "sync");
    rig_add(&r, 60, "q", "timer");
    rig_add(&r, 300, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 660);
    assert_int_equal(r.most_of[rig_kind_index(SV("timer"))], 2);
    assert_int_equal(r.fake.used, 0);
    assert_int_equal(r.report.released, 0);
    rig_done(&r);
}

static void test_throttled_once(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.throttled = DUR_MS(3);
    r.config.retry_transient_max_attempts = 1;
    rig_add(&r, 1, "q", "transient");
    assert_int_equal(rig_run(&r), 0);
    const struct fake_job job = fake_job(&r.fake, 1);
    assert_non_null(strstr(job.error, "still throttled after 1 transient failure: "));
    rig_done(&r);
}

static void test_throttled(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.throttled = DUR_MS(3);
    r.config.retry_respect_retry_after = true;
    rig_add(&r, 1, "q", "transient");
    rig_add(&r, 1, "q", "error");
    assert_int_equal(rig_run(&r), 0);
    const struct fake_job job = fake_job(&r.fake, 1), error = fake_job(&r.fake, 2);
    assert_int_equal(r.runs[1], 4);
    assert_true(job.state == JOB_FAILED && job.throttled && job.timed_out);
    assert_int_equal(job.retry_after_us, 3000);
    assert_int_equal(strncmp(job.error, "still throttled after 4 transient failures: planned", 51),
                     0);
    assert_true(!error.throttled && error.retry_after_us < 0);
    rig_done(&r);
}

/* ---- preflight ---- */

static void with_preflight(struct rig *r, const char *kind, struct dur ttl)
{
    struct worker_kind *k = &r->kinds[rig_kind_index(sv_of(kind))];
    k->preflight = true;
    k->preflight_ttl = ttl;
    k->preflight_timeout = DUR_S(1);
    r->options.patience = DUR_S(60);
}

static void test_preflight(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    far_polls(&r);
    with_preflight(&r, "timer", DUR_MS(20));
    r.bad_checks = 3;
    rig_add(&r, 20, "q", "timer");
    rig_add(&r, 5, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 25);
    assert_true(r.checks >= 4);
    assert_int_equal(fake_job(&r.fake, 1).fence, 1);
    assert_string_equal(r.fake.preflight, "{}"); /* in the end */
    rig_done(&r);
}

static void test_preflight_fails(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    with_preflight(&r, "timer", DUR_S(60));
    r.options.patience = DUR_NONE;
    r.bad_checks = -1;
    rig_add(&r, 4, "q", "timer");
    rig_add(&r, 5, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 5);
    assert_int_equal(r.report.stuck, 4);
    assert_int_equal(fake_job(&r.fake, 1).fence, 0); /* never claimed */
    assert_string_equal(r.fake.preflight, "{\"timer\":\"not \\\\x1b yet\"}");
    rig_done(&r);
}

/* A check under way is ended with the worker. */
static void test_preflight_hangs(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    with_preflight(&r, "timer", DUR_S(60));
    r.hang_checks = true;
    r.options.drain = false;
    r.options.stop_after_jobs = 5;
    rig_add(&r, 4, "q", "timer");
    rig_add(&r, 5, "q", "sync");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 5);
    assert_int_equal(r.checks, 1);
    rig_done(&r);
}

/* Good by the check, but a job finds out better: it goes back, and so do those claimed with it. */
static void test_unfit(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    far_polls(&r);
    with_preflight(&r, "timer", DUR_MS(20));
    r.unfit = 2;
    rig_add(&r, 30, "q", "timer");
    assert_int_equal(rig_run(&r), 0);
    assert_int_equal(r.report.done, 30);
    assert_true(r.report.released >= 2);
    assert_true(r.checks >= 2);
    for (int i = 1; i <= 30; i++)
        assert_int_equal(fake_job(&r.fake, i).attempt, 1);
    rig_done(&r);
}

/* ---- retention ---- */

static void test_rules(void **state)
{
    struct rig r;
    struct retention_conf feed = {(char *)"feed", DUR_S(60), DUR_NONE, 100, 0};
    struct act_request *v;
    struct arena a;
    struct store *s;
    size_t n;
    (void)state;
    rig_init(&r);
    arena_init(&a);
    rig_add(&r, 1, "feed", "sync");
    rig_add(&r, 1, "feed", "timer");
    rig_add(&r, 1, "other", "sync");
    assert_int_equal(fake_open(&r.fake, &s, &r.err), 0);
    r.config.retention_done = DUR_S(3600);
    assert_int_equal(retention_rules(&r.config, s, &a, &v, &n, &r.err), 0);
    assert_int_equal(n, 1);
    assert_null(v[0].select.queue.p);
    r.config.retention = &feed;
    r.config.n_retention = 1;
    r.config.retention_max_failed = 7;
    assert_int_equal(retention_rules(&r.config, s, &a, &v, &n, &r.err), 0);
    assert_int_equal(n,
                     4); /* feed: age and count of done ones; other: age of done, count of failed */
    assert_true(sv_eq(v[0].select.queue, SV("feed")) && !v[0].keep_newest);
    assert_true(v[0].finished_before.us <= clock_boot().us - DUR_S(60).us);
    assert_true(v[1].keep_newest == 100 && !v[1].finished_before.us);
    assert_true(sv_eq(v[2].select.queue, SV("other")) && !v[2].keep_newest);
    assert_true(v[3].keep_newest == 7 && v[3].select.states == 1u << JOB_FAILED);
    store_close(s);
    arena_done(&a);
    rig_done(&r);
}

static void test_housekeeping(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r);
    r.config.worker_poll_interval = DUR_MS(5);
    r.config.worker_sweep_interval = DUR_MS(100);
    r.config.retention_events = DUR_S(60);
    r.options.drain = false;
    r.options.stop_after_jobs = 2;
    rig_add(&r, 2, "q", "slow");
    assert_int_equal(rig_run(&r), 0);
    assert_true(r.fake.histories >= 3); /* goes on while there is more, though a job runs */
    assert_true(r.fake.ages >= 1);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_permits_do_not_wait),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_throttled_once),
        cmocka_unit_test(test_preflight),
        cmocka_unit_test(test_preflight_fails),
        cmocka_unit_test(test_preflight_hangs),
        cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_housekeeping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
