/* core: words, retry decisions, jobs in JSON (S16, S17), metrics. */
#include "unit.h"

#include "job.h"
#include "json.h"
#include "metrics.h"
#include "retry.h"
#include "store.h"
#include <limits.h>

static const struct retry_policy policy = {.max_attempts = 3,
                                           .transient_max_attempts = 4,
                                           .max_lost = 3,
                                           .base = {2000000},
                                           .max = {300000000},
                                           .respect_retry_after = true};
static const struct dur unset = {-1};

static void backoff_doubles_up_to_the_maximum(void **state)
{
    (void)state;
    static const int64_t seconds[] = {2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    for (int n = 1; n <= (int)ARRAY_LEN(seconds); n++) {
        int64_t most = retry_backoff(&policy, n, UINT32_MAX).us;
        assert_int_equal(retry_backoff(&policy, n, 0).us, 0);
        assert_in_range(most, seconds[n - 1] * 1000000 - 1, seconds[n - 1] * 1000000);
        assert_int_equal(retry_backoff(&policy, n, 1u << 31).us, seconds[n - 1] * 500000);
    }
}

/* Property: for every failure count up to 2^31-1 and every policy the delay stays in [0, max], and
 * nothing overflows (the sanitizer watches) or takes long. */
static void backoff_never_overflows(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0,         1,          1000,          2000000,
                                      300000000, DUR_MAX_US, INT64_MAX / 2, INT64_MAX};
    static const int counts[] = {INT_MIN, -1, 0, 1, 2, 31, 32, 33, 62, 63, 64, 65, 1000, INT_MAX};
    static const uint32_t randoms[] = {0, 1, 1u << 31, UINT32_MAX};
    for (size_t b = 0; b < ARRAY_LEN(lengths); b++)
        for (size_t m = 0; m < ARRAY_LEN(lengths); m++)
            for (size_t c = 0; c < ARRAY_LEN(counts); c++)
                for (size_t r = 0; r < ARRAY_LEN(randoms); r++) {
                    struct retry_policy p = {.base = {lengths[b]}, .max = {lengths[m]}};
                    int64_t us = retry_backoff(&p, counts[c], randoms[r]).us;
                    assert_true(us >= 0 && us <= lengths[m]);
                }
    for (int64_t n = 1; n <= INT_MAX; n += n / 7 + 1) {
        int64_t us = retry_backoff(&policy, (int)n, UINT32_MAX).us;
        assert_true(us >= 0 && us <= policy.max.us);
    }
}

static void decides_by_class_and_budget(void **state)
{
    (void)state;
    static const struct {
        enum fail_class cls;
        int attempt, transient;
        enum outcome outcome;
        bool refund, count;
    } rows[] = {
        {CLASS_ERROR, 1, 0, OUTCOME_RETRY, false, false},
        {CLASS_ERROR, 2, 0, OUTCOME_RETRY, false, false},
        {CLASS_ERROR, 3, 0, OUTCOME_FAILED, false, false},
        {CLASS_ERROR, INT_MAX, 0, OUTCOME_FAILED, false, false},
        {CLASS_ERROR, 1, 1000, OUTCOME_RETRY, false, false}, /* budgets are apart */
        {CLASS_TRANSIENT, 1, 0, OUTCOME_RETRY, true, true},
        {CLASS_TRANSIENT, 1, 2, OUTCOME_RETRY, true, true},
        {CLASS_TRANSIENT, 1, 3, OUTCOME_FAILED, false, false},
        {CLASS_TRANSIENT, 1, INT_MAX, OUTCOME_FAILED, false, false},
        {CLASS_TRANSIENT, 1000, 0, OUTCOME_RETRY, true, true},
        {CLASS_FATAL, 1, 0, OUTCOME_FAILED, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct failure f = {.cls = rows[i].cls, .retry_after = unset, .asked = unset};
        struct retry_decision d =
            retry_decide(&policy, rows[i].attempt, rows[i].transient, &f, UINT32_MAX);
        assert_true_msg(d.outcome == rows[i].outcome && d.refund_attempt == rows[i].refund &&
                            d.count_transient == rows[i].count && d.why,
                        "row %zu", i);
        if (d.outcome == OUTCOME_RETRY)
            assert_true(d.reason == WAIT_BACKOFF && d.delay.us > 0);
    }
}

static void delays_come_from_whoever_said_so(void **state)
{
    (void)state;
    struct failure f = {.cls = CLASS_TRANSIENT, .retry_after = DUR_S(120), .asked = unset};
    struct retry_decision d = retry_decide(&policy, 1, 0, &f, 0);
    assert_int_equal(d.delay.us, 120000000);
    assert_int_equal(d.reason, WAIT_RETRY_AFTER);
    f.retry_after = DUR_S(25 * 3600);
    assert_int_equal(retry_decide(&policy, 1, 0, &f, 0).delay.us, (int64_t)24 * 3600 * 1000000);
    f.retry_after = DUR_S(0);
    assert_int_equal(retry_decide(&policy, 1, 0, &f, UINT32_MAX).reason, WAIT_RETRY_AFTER);
    f.asked = DUR_S(600);
    d = retry_decide(&policy, 1, 0, &f, 0);
    assert_int_equal(d.delay.us, 600000000);
    assert_int_equal(d.reason, WAIT_ASKED);
    f.asked = unset;
    f.retry_after = DUR_S(120);
    struct retry_policy deaf = policy;
    deaf.respect_retry_after = false;
    assert_int_equal(retry_decide(&deaf, 1, 0, &f, 0).reason, WAIT_BACKOFF);
}

/* Retries counted out: an always failing job runs exactly max_attempts times, an always throttled
 * one has exactly transient_max_attempts transient failures. I8 */
static void budgets_are_exact(void **state)
{
    (void)state;
    for (int max = 1; max < 12; max++) {
        struct retry_policy p = policy;
        p.max_attempts = p.transient_max_attempts = max;
        struct failure error = {.cls = CLASS_ERROR, .retry_after = unset, .asked = unset};
        struct failure throttled = {.cls = CLASS_TRANSIENT, .retry_after = unset, .asked = unset};
        int attempts = 1, transient = 0;
        while (retry_decide(&p, attempts, 0, &error, 0).outcome == OUTCOME_RETRY)
            attempts++;
        assert_int_equal(attempts, max);
        while (retry_decide(&p, 1, transient, &throttled, 0).outcome == OUTCOME_RETRY)
            transient++;
        assert_int_equal(transient + 1, max);
    }
}

static void finds_retry_after_in_logs(void **state)
{
    (void)state;
    static const struct {
        const char *tail;
        int64_t seconds; /* -1: none */
    } rows[] = {
        {"", -1},
        {"nothing here\n", -1},
        {"Retry-After: 30", 30},
        {"retry-after:5\r\nmore\n", 5},
        {"< RETRY-AFTER:   7  \n", 7},
        {"Retry-After: 1\nRetry-After: 2\n", 2},
        {"Retry-After: 1\nRetry-After: soon\n", 1},
        {"Retry-After: -1\n", -1},
        {"Retry-After: 99999999999999999999\n", -1},
        {"Retry-After:", -1},
        {"Retry-Afte", -1},
        {"Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\n", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dur d = retry_after_in_log(sv_of(rows[i].tail));
        assert_true_msg(d.us == (rows[i].seconds < 0 ? -1 : rows[i].seconds * 1000000), "%s",
                        rows[i].tail);
    }
}

static void words_parse_back(void **state)
{
    (void)state;
    enum job_state s;
    enum event_type e;
    for (int i = 0; i < N_JOB_STATES; i++) {
        assert_int_equal(job_state_parse(sv_of(job_state_name((enum job_state)i)), &s), 0);
        assert_int_equal(s, i);
        assert_int_equal(job_state_terminal(s), i >= JOB_DONE);
    }
    assert_int_equal(job_state_parse(SV("Done"), &s), -1);
    for (int i = EVENT_ADDED; i <= EVENT_PRUNED; i++) {
        assert_int_equal(event_parse(sv_of(event_name((enum event_type)i)), &e), 0);
        assert_int_equal(e, i);
        assert_false(event_terminal(e) && event_operator_act(e));
    }
    assert_int_equal(event_parse(SV("exploded"), &e), -1);
    assert_true(event_terminal(EVENT_CANCELLED) && !event_terminal(EVENT_LOST));
    assert_string_equal(outcome_name(OUTCOME_LOST), "lost");
    assert_string_equal(fail_class_name(CLASS_LOST), "lost");
    assert_null(fail_class_name(CLASS_NONE));
    assert_string_equal(wait_reason_name(WAIT_LOST), "lost");
    assert_null(wait_reason_name(WAIT_NONE));
    assert_string_equal(worker_command_name(COMMAND_STOP), "stop");
}

/* Parse one line as `pawl import` does. */
static int read_job(const char *line, size_t n, struct arena *a, struct job_spec *spec,
                    struct pawl_err *err)
{
    AUTO_JSON struct json doc = {0};
    struct wall now = {(int64_t)1767323045 * 1000000};
    int rc = json_parse(&doc, sv_make(line, n), err);
    return rc < 0 ? rc : job_spec_from_json(&doc, 0, now, a, spec, err);
}

static void reads_jobs(void **state)
{
    (void)state;
    static const char line[] =
        "{\"queue\":\"wiki\",\"kind\":\"parse\",\"key\":\"p\\u0031\",\"host\":\"en.wikipedia.org\","
        "\"priority\":-5,\"payload\":{\"b\": 1.50,\"a\":[ "
        "]},\"max_attempts\":3,\"timeout\":\"10m\","
        "\"at\":\"2026-01-03T00:00:00Z\"}";
    struct arena a;
    arena_init(&a);
    struct job_spec s = job_spec_default();
    assert_code(read_job(line, strlen(line), &a, &s, NULL), 0);
    assert_sv(s.queue, "wiki");
    assert_sv(s.kind, "parse");
    assert_sv(s.key, "p1");
    assert_sv(s.host, "en.wikipedia.org");
    assert_sv(s.payload, "{\"b\": 1.50,\"a\":[ ]}"); /* verbatim */
    assert_int_equal(s.priority, -5);
    assert_int_equal(s.max_attempts, 3);
    assert_int_equal(s.timeout.us, 600000000);
    assert_int_equal(s.at.us, (int64_t)1767398400 * 1000000);
    s = job_spec_default();
    assert_code(read_job("{}", 2, &a, &s, NULL), 0);
    assert_sv(s.queue, "default");
    assert_sv(s.kind, "exec");
    assert_sv(s.payload, "null");
    assert_null(s.key.p);
    static const char later[] = "{\"in\":\"5m\",\"timeout\":\"none\",\"key\":null}";
    assert_code(read_job(later, strlen(later), &a, &s, NULL), 0);
    assert_int_equal(s.delay.us, 300000000);
    assert_int_equal(s.timeout.us, DUR_NONE.us);
    assert_null(s.key.p);
    arena_done(&a);
}

static void refuses_bad_jobs(void **state)
{
    (void)state;
    static const struct {
        struct sv line;
        const char *msg;
    } rows[] = {
        /* S16 */
        {SV("{\"key\":\"\xff\"}"), "JSON at byte 8: not valid UTF-8"},
        {SV("{\"key\":\"\\ud800\"}"), "JSON at byte 14: lone surrogate"},
        {SV("{\"key\":\"a\0\"}"), "JSON at byte 9: NUL byte"},
        {SV("{\"key\":\"\\u0000\"}"), "JSON at byte 14: NUL is not allowed in a string"},
        {SV("{\"key\":\"a\",\"key\":\"b\"}"), "JSON at byte 21: member \"key\" twice"},
        {SV("{\"payload\":{\"a\":1,\"a\":2}}"), "JSON at byte 24: member \"a\" twice"},
        {SV("{\"payload\":1e999}"), "JSON at byte 16: number out of range"},
        {SV("{} x"), "JSON at byte 3: bytes after the end of the value"},
        /* S17 */
        {SV("{\"quue\":\"a\"}"), "unknown field \"quue\"; did you mean \"queue\"?"},
        {SV("{\"max_attempt\":1}"),
         "unknown field \"max_attempt\"; did you mean \"max_attempts\"?"},
        {SV("{\"zzzzzzzz\":1}"), "unknown field \"zzzzzzzz\""},
        {SV("{\"Queue\":\"a\"}"), "unknown field \"Queue\"; did you mean \"queue\"?"},
        {SV("{\"lock\":1}"), "field \"lock\" is a number; a string is expected"},
        /* types and bounds */
        {SV("[]"), "a job is an object, this is an array"},
        {SV("\"x\""), "a job is an object, this is a string"},
        {SV("{\"queue\":7}"), "field \"queue\" is a number; a string is expected"},
        {SV("{\"queue\":\"\"}"), "queue is empty"},
        {SV("{\"key\":\"\"}"), "key is empty"},
        {SV("{\"kind\":\"a\\nb\"}"), "kind has a control character at byte 1"},
        {SV("{\"host\":\"a\\u007f\"}"), "host has a control character at byte 1"},
        {SV("{\"priority\":\"1\"}"), "field \"priority\" is a string; a number is expected"},
        {SV("{\"priority\":1.5}"),
         "field \"priority\" is 1.5; a whole number from -1000000 to 1000000 is expected"},
        {SV("{\"priority\":1000001}"),
         "field \"priority\" is 1000001; a whole number from -1000000 to 1000000 is expected"},
        {SV("{\"max_attempts\":0}"),
         "field \"max_attempts\" is 0; a whole number from 1 to 1000000 is expected"},
        {SV("{\"timeout\":10}"), "field \"timeout\" is a number; a string is expected"},
        {SV("{\"timeout\":\"0s\"}"), "field \"timeout\" is zero; write none for no limit"},
        {SV("{\"timeout\":\"10\"}"), "field \"timeout\": '10' is not a duration; write 500ms, 10s, "
                                     "5m, 2h or 7d, or none"},
        {SV("{\"in\":\"none\"}"),
         "field \"in\": 'none' is not a duration; write 500ms, 10s, 5m, 2h or 7d"},
        {SV("{\"at\":\"tomorrow\"}"), "field \"at\": 'tomorrow' is not a time; write "
                                      "2026-01-02T03:04:05Z, HH:MM or @unix"},
        {SV("{\"at\":\"@1767323045\",\"in\":\"1s\"}"), "\"in\" and \"at\" exclude each other"},
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec s = job_spec_default();
        struct pawl_err err = {0};
        assert_code(read_job(rows[i].line.p, rows[i].line.n, &a, &s, &err), PAWL_EINPUT);
        assert_string_equal(err.msg, rows[i].msg);
        assert_sv(s.queue, "default"); /* untouched */
        assert_int_equal(s.priority, 0);
    }
    arena_done(&a);
}

static int check_with(struct sv *field, struct job_spec *s, size_t n)
{
    AUTO_FREE char *text = mem_alloc(n);
    memset(text, 'x', n);
    *field = sv_make(text, n);
    return job_spec_check(s, NULL);
}

static void bounds_lengths(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default();
    assert_code(check_with(&s.queue, &s, NAME_MAX_BYTES), 0);
    s = job_spec_default();
    assert_code(check_with(&s.queue, &s, NAME_MAX_BYTES + 1), PAWL_EINPUT);
    s = job_spec_default();
    assert_code(check_with(&s.key, &s, KEY_MAX_BYTES), 0);
    s = job_spec_default();
    assert_code(check_with(&s.key, &s, KEY_MAX_BYTES + 1), PAWL_EINPUT);
    s = job_spec_default();
    assert_code(check_with(&s.payload, &s, PAYLOAD_MAX_BYTES), 0);
    s = job_spec_default();
    assert_code(check_with(&s.payload, &s, PAYLOAD_MAX_BYTES + 1), PAWL_EINPUT);
    s = job_spec_default();
    s.delay = DUR_US(-1);
    assert_code(job_spec_check(&s, NULL), PAWL_EINPUT);
    s = job_spec_default();
    s.kind = SV_NONE;
    assert_code(job_spec_check(&s, NULL), PAWL_EINPUT);
}

static void copy_metrics(const struct metrics *m, int64_t v[N_METRICS])
{
    for (int i = 0; i < N_METRICS; i++)
        v[i] = atomic_load(&m->v[i]);
}

static void counts_and_measures(void **state)
{
    (void)state;
    static struct metrics m;
    int64_t v[N_METRICS];
    copy_metrics(&m, v);
    assert_int_equal(metric_quantile(v, METRIC_job_duration, 0.5).us, 0);
    metric_add(&m, METRIC_job_completed, 3);
    metric_add(&m, METRIC_job_completed, 4);
    static const int64_t observed[] = {-5, 0, 64, 65, 128, 129, 1000000, INT64_MAX / 4};
    for (size_t i = 0; i < ARRAY_LEN(observed); i++)
        metric_observe(&m, METRIC_job_duration, DUR_US(observed[i]));
    copy_metrics(&m, v);
    assert_int_equal(v[METRIC_job_completed], 7);
    assert_int_equal(metric_count(v, METRIC_job_duration), 8);
    assert_int_equal(metric_count(v, METRIC_queue_wait), 0);
    assert_int_equal(metric_quantile(v, METRIC_job_duration, 0.375).us, 64);  /* 3 of 8 */
    assert_int_equal(metric_quantile(v, METRIC_job_duration, 0.625).us, 128); /* 5 of 8 */
    assert_int_equal(metric_quantile(v, METRIC_job_duration, 0.75).us, 256);
    assert_int_equal(metric_quantile(v, METRIC_job_duration, 1).us, (int64_t)64 << 25);
}

static void slots_have_unique_names(void **state)
{
    (void)state;
    static char names[N_METRICS][64];
    for (int i = 0; i < N_METRICS; i++) {
        metric_slot_name(i, names[i]);
        assert_true(names[i][0]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
    assert_string_equal(names[0], "claim_attempts");
    assert_string_equal(names[N_COUNTERS], "claim_duration.0");
    assert_string_equal(names[N_METRICS - 1], "queue_wait.sum");
}

static void logs_are_spread_over_folders(void **state)
{
    (void)state;
    static const struct {
        int64_t id, fence;
        const char *name;
    } rows[] = {
        {1, 1, "00/00/1.1.log"},
        {12, 3, "00/00/12.3.log"},
        {123456, 7, "12/34/123456.7.log"},
        {((int64_t)1 << 53) - 1, ((int64_t)1 << 53) - 1,
         "74/09/9007199254740991.9007199254740991.log"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[64];
        store_log_name((job_id){rows[i].id}, (fence_no){rows[i].fence}, name);
        assert_string_equal(name, rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backoff_doubles_up_to_the_maximum),
        cmocka_unit_test(backoff_never_overflows),
        cmocka_unit_test(decides_by_class_and_budget),
        cmocka_unit_test(delays_come_from_whoever_said_so),
        cmocka_unit_test(budgets_are_exact),
        cmocka_unit_test(finds_retry_after_in_logs),
        cmocka_unit_test(words_parse_back),
        cmocka_unit_test(reads_jobs),
        cmocka_unit_test(refuses_bad_jobs),
        cmocka_unit_test(bounds_lengths),
        cmocka_unit_test(counts_and_measures),
        cmocka_unit_test(slots_have_unique_names),
        cmocka_unit_test(logs_are_spread_over_folders),
    };
    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
