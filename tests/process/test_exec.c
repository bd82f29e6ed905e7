/* The exec handler: payloads, environment, control lines, outcomes. */
#include "fixture.h"

#include "config.h"
#include "exec.h"
#include "json.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char yaml[] =
    "exec: {grace: 100ms, pass_env: [PASSED]}\n"
    "kinds:\n"
    "  parse: {command: [sh, -c, 'cat; exit $CODE'], env: {CODE: '7', PATH: /bin:/usr/bin},\n"
    "          transient_exit: [7, 75], fatal_exit: [65]}\n"
    "  picky: {command: [sh, -c, 'read x; eval \"$x\"'], idle_timeout: 1s, fatal_exit: [65],\n"
    "          transient_log: ['429', 'over loaded']}\n"
    "  polite: {command: [sh, -c, 'read x; eval \"$x\"'], throttled_exit: [22], fatal_exit: [65],\n"
    "           throttled_log: [slow down]}\n"
    "  fit: {command: [sh], env: {MODE: fast},\n"
    "        preflight: [sh, -c, 'echo it is $MODE; test $MODE = slow']}\n"
    "  good: {command: [sh], preflight: ['true']}\n"
    "  hanging: {command: [sh], preflight: [sleep, '1000']}\n"
    "  lost: {command: [nosuch, x], preflight: ['true']}\n"
    "  away: {command: [sh], cwd: /nosuch, preflight: ['true']}\n";

struct bed {
    struct fixture f;
    struct config *config;
    struct handler *handler;
    struct lease lease;
    struct run run;
    bool ended;
    struct run_result result;
    struct str reason, json, children, progress;
    size_t n_children;
    enum cancel_why why;
};

static void keep(struct str *to, struct sv s)
{
    str_clear(to);
    str_add(to, s);
}

static void on_finish(struct run *r, const struct run_result *result)
{
    struct bed *b = (struct bed *)((char *)r - offsetof(struct bed, run));
    b->result = *result;
    keep(&b->reason, result->reason);
    keep(&b->json, result->result);
    str_clear(&b->children);
    for (size_t i = 0; i < result->n_children; i++)
        str_addf(&b->children, SV_FMT "/" SV_FMT "/" SV_FMT "/" SV_FMT " ",
                 SV_ARG(result->children[i].queue), SV_ARG(result->children[i].kind),
                 SV_ARG(result->children[i].key), SV_ARG(result->children[i].payload));
    b->ended = true;
    loop_stop(b->f.loop);
}

static void on_progress(struct run *r, struct sv json)
{
    struct bed *b = (struct bed *)((char *)r - offsetof(struct bed, run));
    keep(&b->progress, json);
    if (sv_eq(json, SV("\"cancel me\"")))
        b->handler->ops->cancel(b->handler, r, b->why);
}

static int setup(void **state)
{
    struct bed *b = calloc(1, sizeof(*b));
    struct pawl_err err = {0};
    char path[600];
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("PASSED", "yes", 1);
    setenv("SECRET", "no", 1);
    fixture_init(&b->f);
    fixture_start(&b->f);
    snprintf(path, sizeof(path), "%s/pawl.yaml", b->f.dir);
    FILE *file = fopen(path, "w");
    fputs(yaml, file);
    fclose(file);
    if (config_load(path, (char *[]){NULL}, NULL, 0, &b->config, &err) < 0)
        fail_msg("%s", err.msg);
    b->handler = handler_exec_new(b->f.zygote, b->f.loop, b->config);
    b->reason = b->json = b->children = b->progress = STR_INIT(STR_OUTPUT);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bed *b = *state;
    b->handler->ops->free(b->handler);
    config_free(b->config);
    fixture_done(&b->f);
    str_done(&b->reason);
    str_done(&b->json);
    str_done(&b->children);
    str_done(&b->progress);
    free(b);
    return 0;
}

/* Run one attempt; the return value of start. */
static int run(struct bed *b, const char *kind, const char *payload, struct pawl_err *err)
{
    b->lease = (struct lease){.id = {42},
                              .fence = {7},
                              .queue = SV("q"),
                              .kind = sv_of(kind),
                              .key = SV("k 1"),
                              .payload = sv_of(payload),
                              .attempt = 2};
    b->run.job = &b->lease;
    b->run.log_name = "42-7.log";
    b->run.log_dir = b->f.log_dir;
    b->run.finish = on_finish;
    b->run.progress = on_progress;
    if (!b->run.timeout.us)
        b->run.timeout = DUR_NONE;
    b->ended = false;
    int rc = b->handler->ops->start(b->handler, &b->run, err);
    while (rc == 0 && !b->ended)
        assert_int_equal(loop_run(b->f.loop, err), 0);
    return rc;
}

/* A shell script as a job of kind exec; no quotes or backslashes in it. */
static void sh(struct bed *b, const char *script)
{
    struct pawl_err err = {0};
    char payload[4096];
    snprintf(payload, sizeof(payload), "{\"command\":[\"sh\",\"-c\",\"%s\"]}", script);
    if (run(b, "exec", payload, &err) < 0)
        fail_msg("%s", err.msg);
}

static void ends(struct bed *b, int end, enum fail_class cls, const char *reason)
{
    assert_int_equal(b->result.end, end);
    assert_int_equal(b->result.cls, cls);
    assert_string_equal(str_cstr(&b->reason), reason);
}

static void exit_codes(void **state)
{
    struct bed *b = *state;
    sh(b, "true");
    ends(b, RUN_DONE, CLASS_NONE, "");
    assert_int_equal(b->result.exit_code, 0);
    sh(b, "echo first; echo why not >&2; exit 3");
    ends(b, RUN_FAILED, CLASS_ERROR, "exit 3: why not");
    assert_int_equal(b->result.exit_code, 3);
    assert_int_equal(b->result.log_bytes, 14);
    sh(b, "echo nothing to do; exit 100");
    ends(b, RUN_SKIPPED, CLASS_NONE, "nothing to do");
    sh(b, "echo Retry-After: 17; exit 75");
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "exit 75: Retry-After: 17");
    assert_int_equal(b->result.retry_after.us, 17000000);
    assert_true(b->result.throttled);
    sh(b, "exit 75");
    assert_false(b->result.throttled);
    sh(b, "kill -KILL $$");
    ends(b, RUN_FAILED, CLASS_ERROR, "killed by signal 9 (SIGKILL)");
    assert_int_equal(b->result.exit_code, -1);
}

static void failing_starts(void **state)
{
    struct bed *b = *state;
    struct pawl_err err = {0};
    assert_int_equal(run(b, "exec", "{\"command\":[\"nosuch\"]}", &err), 0);
    ends(b, RUN_FAILED, CLASS_ERROR, "program not found: nosuch (No such file or directory)");
    assert_int_equal(run(b, "exec", "{\"command\":[\"true\"],\"cwd\":\"/no\"}", &err), 0);
    ends(b, RUN_FAILED, CLASS_ERROR,
         "cannot enter the working directory: /no (No such file or directory)");
    assert_int_equal(run(b, "exec", "{}", &err), PAWL_EINPUT);
}

static const char *log_text(struct bed *b, struct str *out)
{
    str_clear(out);
    assert_int_equal(read_log(b->f.log_dir, "42-7.log", out), 0);
    return str_cstr(out);
}

static void environment(void **state)
{
    struct bed *b = *state;
    AUTO_STR struct str log = STR_INIT(STR_LINE);
    struct pawl_err err = {0};
    b->run.timeout = DUR_S(100);
    assert_int_equal(
        run(b, "exec",
            "{\"command\":[\"sh\",\"-c\",\"echo $PAWL_JOB_ID $PAWL_ATTEMPT $PAWL_FENCE "
            "$PAWL_QUEUE $PAWL_KEY $A $PASSED ${SECRET-unset}; echo $PAWL_DEADLINE\"],"
            "\"env\":{\"A\":\"b \\u00fc\"}}",
            &err),
        0);
    const char *text = log_text(b, &log);
    static const char want[] = "42 2 7 q k 1 b ü yes unset\n";
    assert_memory_equal(text, want, sizeof(want) - 1);
    double deadline = atof(text + sizeof(want) - 1), now = (double)clock_wall().us / 1e6;
    assert_true(deadline > now + 90 && deadline < now + 101);
}

static void input(void **state)
{
    struct bed *b = *state;
    AUTO_STR struct str log = STR_INIT(STR_LINE);
    struct pawl_err err = {0};
    assert_int_equal(run(b, "exec", "{\"command\":[\"cat\"],\"input\":\"a\\nb\"}", &err), 0);
    assert_string_equal(log_text(b, &log), "a\nb");
    assert_int_equal(run(b, "exec", "{\"command\":[\"cat\"],\"input\":{\"x\": 1.0}}", &err), 0);
    assert_string_equal(log_text(b, &log), "{\"x\": 1.0}");
    assert_int_equal(run(b, "parse", "{ \"whole\":[1] }", &err), 0);
    assert_string_equal(log_text(b, &log), "{ \"whole\":[1] }");
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "exit 7: { \"whole\":[1] }");
}

static void kind_rules(void **state)
{
    struct bed *b = *state;
    struct pawl_err err = {0};
    assert_int_equal(run(b, "picky", "exit 65\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_FATAL, "exit 65");
    assert_int_equal(run(b, "picky", "echo got 429; echo Retry-After: 3; exit 1\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "exit 1: Retry-After: 3");
    assert_int_equal(b->result.retry_after.us, 3000000);
    assert_int_equal(run(b, "picky", "sleep 100\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_ERROR, "no output for 1s");
}

static void throttled(void **state)
{
    struct bed *b = *state;
    struct pawl_err err = {0};
    assert_int_equal(run(b, "polite", "exit 22\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "exit 22");
    assert_true(b->result.throttled && b->result.retry_after.us < 0 && !b->result.timed_out);
    assert_int_equal(run(b, "polite", "echo slow down; echo Retry-After: 3; exit 1\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "exit 1: Retry-After: 3");
    assert_true(b->result.throttled && b->result.retry_after.us == 3000000);
    assert_int_equal(run(b, "polite", "echo Retry-After: 3; exit 1\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_ERROR, "exit 1: Retry-After: 3"); /* nothing says: transient */
    assert_false(b->result.throttled);
    assert_int_equal(run(b, "polite", "echo slow down; exit 65\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_FATAL, "exit 65: slow down");
    b->run.timeout = DUR_MS(300);
    assert_int_equal(run(b, "polite", "echo slow down; sleep 100\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "timed out after 300ms: slow down");
    assert_true(b->result.throttled && b->result.timed_out);
    assert_int_equal(run(b, "polite", "sleep 100\n", &err), 0);
    ends(b, RUN_FAILED, CLASS_ERROR, "timed out after 300ms");
    assert_false(b->result.timed_out);
    b->run.timeout = DUR_NONE;
}

static void said_throttled(void **state)
{
    struct bed *b = *state;
    struct pawl_err err = {0};
    static const struct {
        const char *line;
        enum fail_class cls;
        bool throttled;
        int64_t retry_after;
    } rows[] = {
        {"{\"outcome\":\"retry\",\"throttled\":true,\"retry_after\":\"5s\"}", CLASS_TRANSIENT, true,
         5000000},
        {"{\"retry_after\":\"5s\",\"throttled\":true,\"outcome\":\"retry\"}", CLASS_TRANSIENT, true,
         5000000},
        {"{\"outcome\":\"retry\",\"throttled\":true}", CLASS_TRANSIENT, true, -1},
        {"{\"outcome\":\"retry\",\"throttled\":false}", CLASS_ERROR, false, -1},
        {"{\"outcome\":\"done\",\"throttled\":true}", CLASS_ERROR, false, -1},
        {"{\"outcome\":\"retry\",\"retry_after\":\"5s\"}", CLASS_ERROR, false, -1},
        {"{\"outcome\":\"retry\",\"throttled\":1}", CLASS_ERROR, false, -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char script[256];
        snprintf(script, sizeof(script), "echo '%s' >&3\n", rows[i].line);
        assert_int_equal(run(b, "polite", script, &err), 0);
        assert_int_equal(b->result.end, RUN_FAILED);
        assert_int_equal(b->result.cls, rows[i].cls);
        assert_int_equal(b->result.throttled, rows[i].throttled);
        assert_int_equal(b->result.retry_after.us, rows[i].retry_after);
    }
}

struct checked {
    struct kind_check check;
    struct bed *bed;
    bool ended, good;
    char why[256];
};

static void on_checked(struct kind_check *c, bool good, struct sv why)
{
    struct checked *x = (struct checked *)c;
    x->ended = true;
    x->good = good;
    snprintf(x->why, sizeof(x->why), SV_FMT, SV_ARG(why));
    loop_stop(x->bed->f.loop);
}

static struct checked check(struct bed *b, const char *kind, bool cancel)
{
    struct pawl_err err = {0};
    struct checked x = {.check = {.kind = sv_of(kind),
                                  .timeout = DUR_MS(cancel ? 60000 : 300),
                                  .finish = on_checked},
                        .bed = b};
    b->handler->ops->check(b->handler, &x.check);
    if (cancel)
        b->handler->ops->check_cancel(b->handler, &x.check);
    while (!x.ended)
        assert_int_equal(loop_run(b->f.loop, &err), 0);
    return x;
}

static void checks_kinds(void **state)
{
    struct bed *b = *state;
    struct pawl_err err = {0};
    static const struct {
        const char *kind;
        bool cancel, good;
        const char *why;
    } rows[] = {
        {"good", false, true, ""},
        {"fit", false, false, "exit 1: it is fast"},
        {"hanging", false, false, "timed out after 300ms"},
        {"hanging", true, false, "it was ended"},
        {"lost", false, false, "program not found: nosuch (No such file or directory)"},
        {"away", false, false,
         "cannot enter the working directory: /nosuch (No such file or directory)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct checked x = check(b, rows[i].kind, rows[i].cancel);
        assert_int_equal(x.good, rows[i].good);
        assert_string_equal(x.why, rows[i].why);
    }
    assert_int_equal(run(b, "lost", "{}", &err), 0); /* what its jobs would have found */
    ends(b, RUN_RELEASED, CLASS_ERROR, rows[4].why);
    assert_true(b->result.unfit);
}

static void time_limit(void **state)
{
    struct bed *b = *state;
    b->run.timeout = DUR_S(1);
    sh(b, "echo working; sleep 100");
    ends(b, RUN_FAILED, CLASS_ERROR, "timed out after 1s: working");
}

static void cancelling(void **state)
{
    struct bed *b = *state;
    static const enum cancel_why whys[] = {CANCEL_ASKED, CANCEL_SHUTDOWN, CANCEL_LEASE_LOST};
    for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
        b->why = whys[i];
        sh(b,
           "trap '' TERM; printf '{%sprogress%s:%scancel me%s}' '\\\"' '\\\"' '\\\"' '\\\"' >&3; "
           "echo >&3; while :; do sleep 1; done");
        assert_int_equal(b->result.end, RUN_CANCELLED);
    }
}

/* The job prints `lines`, given as C text, to descriptor 3 and exits with `code`. */
static void says(struct bed *b, const char *lines, int code)
{
    struct pawl_err err = {0};
    AUTO_STR struct str payload = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&payload);
    char script[64];
    snprintf(script, sizeof(script), "cat >&3; exit %d", code);
    jw_object(&w);
    jw_name(&w, "command");
    jw_array(&w);
    jw_string(&w, SV("sh"));
    jw_string(&w, SV("-c"));
    jw_string(&w, sv_of(script));
    jw_end_array(&w);
    jw_kstring(&w, "input", sv_of(lines));
    jw_end_object(&w);
    if (run(b, "exec", str_cstr(&payload), &err) < 0)
        fail_msg("%s", err.msg);
}

static void control_lines(void **state)
{
    struct bed *b = *state;
    says(b,
         "{\"progress\":{\"n\":1}}\n{\"result\":[1, 2]}\n{\"result\":{\"x\":\"\\u00fc\"}}\n"
         "{\"job\":{\"key\":\"c1\",\"payload\":{\"a\": 1}}}\n"
         "{\"job\":{\"queue\":\"other\",\"kind\":\"parse\"}}\n",
         0);
    ends(b, RUN_DONE, CLASS_NONE, "");
    assert_string_equal(str_cstr(&b->progress), "{\"n\":1}");
    assert_string_equal(str_cstr(&b->json), "{\"x\":\"\\u00fc\"}");
    assert_string_equal(str_cstr(&b->children), "q/exec/c1/{\"a\": 1} other/parse//null ");
    says(b, "{\"job\":{\"key\":\"c1\"}}\n", 1); /* would be added again by the next attempt */
    assert_int_equal(b->result.n_children, 0);
}

static void said_outcomes(void **state)
{
    struct bed *b = *state;
    says(b, "{\"in\":\"10m\",\"outcome\":\"retry\",\"reason\":\"not yet\"}\n", 0);
    ends(b, RUN_FAILED, CLASS_ERROR, "not yet");
    assert_int_equal(b->result.asked.us, 600000000);
    says(b, "{\"outcome\":\"retry\",\"class\":\"transient\"}", 0);
    ends(b, RUN_FAILED, CLASS_TRANSIENT, "asked to be retried");
    assert_true(b->result.asked.us < 0);
    says(b, "{\"outcome\":\"skip\",\"reason\":\"seen\"}\n", 0);
    ends(b, RUN_SKIPPED, CLASS_NONE, "seen");
    says(b, "{\"outcome\":\"fatal\",\"reason\":\"gone\"}\n", 0);
    ends(b, RUN_FAILED, CLASS_FATAL, "gone");
    says(b, "{\"outcome\":\"fatal\",\"reason\":\"gone\"}\n{\"outcome\":\"done\"}\n", 0);
    ends(b, RUN_DONE, CLASS_NONE, "");
    says(b, "{\"outcome\":\"skip\"}\n", 4);
    ends(b, RUN_FAILED, CLASS_ERROR, "exit 4");
}

static void bad_control_lines(void **state)
{
    struct bed *b = *state;
    static const struct {
        const char *lines, *part;
    } cases[] = {
        {"{\"progress\":1}\n{\"result\":}\n{\"result\":1}\n", "control line 2 (at byte 15 of"},
        {"hello\n", "control line 1 (at byte 0 of"},
        {"[1]\n", "an object is expected, not an array"},
        {"{\"resulr\":1}\n", "member \"resulr\" is not known"},
        {"{\"outcome\":\"maybe\"}\n", "must be done, skip, fatal or retry"},
        {"{\"in\":\"1m\"}\n", "\"in\" needs \"outcome\""},
        {"{\"outcome\":\"skip\",\"in\":\"1m\"}\n", "belongs to"},
        {"{\"outcome\":\"retry\",\"in\":\"soon\"}\n", "control line 1"},
        {"{\"job\":{\"quueue\":\"x\"}}\n", "quueue"},
        {"{\"job\":7}\n", "\"job\" is"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        says(b, cases[i].lines, 0);
        assert_int_equal(b->result.end, RUN_FAILED);
        assert_int_equal(b->result.cls, CLASS_ERROR);
        if (!strstr(str_cstr(&b->reason), cases[i].part))
            fail_msg("%s: %s", cases[i].lines, str_cstr(&b->reason));
    }
}

static void bad_payloads(void **state)
{
    struct bed *b = *state;
    static const struct {
        const char *payload, *part;
    } cases[] = {
        {"null", "an object with \"command\""},
        {"{}", "\"command\" is missing"},
        {"{\"command\":\"rm -rf /\"}", "\"command\" is a string"},
        {"{\"command\":[]}", "names no program"},
        {"{\"command\":[\"\"]}", "names no program"},
        {"{\"command\":[\"a\",1]}", "a string is expected"},
        {"{\"command\":[\"a\"],\"comand\":1}", "\"comand\" is not known"},
        {"{\"command\":[\"a\"],\"cwd\":\"\"}", "\"cwd\" is empty"},
        {"{\"command\":[\"a\"],\"env\":[]}", "\"env\" is"},
        {"{\"command\":[\"a\"],\"env\":{\"A\":1}}", "\"env\" holds"},
        {"{\"command\":[\"a\"],\"env\":{\"LD_PRELOAD\":\"x\"}}", "\"LD_PRELOAD\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"PATH\":\"x\"}}", "\"PATH\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"IFS\":\"x\"}}", "\"IFS\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"BASH_ENV\":\"x\"}}", "\"BASH_ENV\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"ENV\":\"x\"}}", "\"ENV\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"PAWL_JOB_ID\":\"x\"}}", "\"PAWL_JOB_ID\" may not"},
        {"{\"command\":[\"a\"],\"env\":{\"A=B\":\"x\"}}", "no valid name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pawl_err err = {0};
        int rc = b->handler->ops->validate(b->handler, SV("exec"), sv_of(cases[i].payload), &err);
        assert_int_equal(rc, PAWL_EINPUT);
        if (!strstr(err.msg, cases[i].part))
            fail_msg("%s: %s", cases[i].payload, err.msg);
    }
    struct pawl_err err = {0};
    assert_int_equal(b->handler->ops->validate(b->handler, SV("parse"), SV("[1]"), &err), 0);
    assert_int_equal(b->handler->ops->validate(b->handler, SV("exec"),
                                               SV("{\"command\":[\"a b; $(c)\"],\"input\":null}"),
                                               &err),
                     0);
}

/* I14: the message is valid UTF-8 and bounded, whatever the job prints. */
static void hostile_output(void **state)
{
    struct bed *b = *state;
    sh(b, "head -c 7000 /dev/urandom | tr -d '\\\\n\\\\r'; exit 1");
    assert_int_equal(b->result.end, RUN_FAILED);
    assert_true(b->reason.len <= ERROR_MAX_BYTES);
    assert_int_equal(text_bad_utf8(str_sv(&b->reason)), b->reason.len);
}

/* A worker that cannot start anything costs no job an attempt. */
static void dead_zygote(void **state)
{
    struct bed *b = *state;
    kill(zygote_pid(b->f.zygote), SIGKILL);
    assert_true(wait_gone(zygote_pid(b->f.zygote)));
    sh(b, "true");
    assert_int_equal(b->result.cls, CLASS_TRANSIENT);
    assert_non_null(strstr(str_cstr(&b->reason), "zygote"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(exit_codes),        T(failing_starts), T(environment),    T(input),
        T(kind_rules),        T(time_limit),     T(throttled),      T(said_throttled),
        T(checks_kinds),      T(cancelling),     T(control_lines),  T(said_outcomes),
        T(bad_control_lines), T(bad_payloads),   T(hostile_output), T(dead_zygote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
