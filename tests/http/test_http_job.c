/* The http handler: what it sends, and what it makes of answers. */
#include "../lib/fetchserver.h"
#include "../unit/unit.h"

#include "hash.h"
#include "http_job.h"
#include "json.h"
#include "loop.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fetchserver server;

/* One handler whose kinds are made up by each test. */
static struct bed {
    struct loop *loop;
    struct config config;
    struct kind_conf kind;
    struct handler *handler;
    struct lease lease;
    struct run run;
    int ended;
    struct run_result result;
    struct str reason, json;
    char url[512];
} bed;

static void on_finish(struct run *r, const struct run_result *result)
{
    assert_ptr_equal(r, &bed.run);
    bed.result = *result;
    str_clear(&bed.reason);
    str_add(&bed.reason, result->reason);
    str_clear(&bed.json);
    str_add(&bed.json, result->result);
    bed.ended++;
    loop_stop(bed.loop);
}

static int begin(void **state)
{
    static char name[] = "hook", handler[] = "http";
    (void)state;
    bed = (struct bed){.reason = STR_INIT(STR_LINE), .json = STR_INIT(1 << 20)};
    bed.kind = (struct kind_conf){.name = name, .handler = handler, .url = bed.url};
    bed.config.kinds = &bed.kind;
    bed.config.n_kinds = 1;
    bed.lease = (struct lease){.id = {17},
                               .fence = {3},
                               .queue = SV("q"),
                               .kind = SV("hook"),
                               .payload = SV("{ \"a\" : [1,2.50] }"),
                               .attempt = 2};
    bed.run = (struct run){.job = &bed.lease, .finish = on_finish, .timeout = DUR_S(20)};
    int rc = loop_new(&bed.loop, NULL);
    bed.handler = handler_http_new(bed.loop, &bed.config);
    return rc;
}

static int end(void **state)
{
    (void)state;
    bed.handler->ops->free(bed.handler);
    loop_free(bed.loop);
    str_done(&bed.reason);
    str_done(&bed.json);
    return 0;
}

static void target(const char *path)
{
    snprintf(bed.url, sizeof(bed.url), "http://127.0.0.1:%d%s", fetchserver_port(&server, "http"),
             path);
}

static void run(void)
{
    struct pawl_err err = {0};
    bed.ended = 0;
    if (bed.handler->ops->start(bed.handler, &bed.run, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(bed.ended, 0);
    assert_int_equal(loop_run(bed.loop, NULL), 0);
    assert_int_equal(bed.ended, 1);
}

static const struct run_result *post(const char *path)
{
    target(path);
    run();
    return &bed.result;
}

/* The value of a header in what /echo told; "" without. */
static const char *echoed(const char *name)
{
    static char value[4096];
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "[\"%s\", \"", name);
    const char *p = strstr(str_cstr(&bed.json), wanted);
    p = p ? p + strlen(wanted) : "\"";
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(p, "\""), p);
    return value;
}

static void the_payload_is_posted_as_it_is(void **state)
{
    (void)state;
    post("/echo?x=1");
    assert_int_equal(bed.result.end, RUN_DONE);
    assert_non_null(strstr(str_cstr(&bed.json), "\"method\": \"POST\""));
    assert_non_null(strstr(str_cstr(&bed.json), "\"body\": \"{ \\\"a\\\" : [1,2.50] }\""));
    assert_string_equal(echoed("Content-Type"), "application/json");
    assert_string_equal(echoed("Pawl-Job-Id"), "17");
    assert_string_equal(echoed("Pawl-Attempt"), "2");
    assert_string_equal(echoed("Pawl-Fence"), "3");
    assert_string_equal(echoed("Pawl-Queue"), "q");
    assert_string_equal(echoed("Idempotency-Key"), "17-3");
    assert_string_equal(echoed("Pawl-Key"), "");
    assert_string_equal(echoed("Pawl-Signature"), "");
    assert_true(strtoll(echoed("Pawl-Timestamp"), NULL, 10) > 1600000000);
}

/* I14 */
static void names_cannot_break_out(void **state)
{
    (void)state;
    bed.lease.queue = SV("a b\xc3\xa9%");
    bed.lease.key = SV("k\r\nX-Evil: 1\"");
    post("/echo");
    assert_int_equal(bed.result.end, RUN_DONE);
    assert_string_equal(echoed("Pawl-Queue"), "a%20b%C3%A9%25");
    assert_non_null(strstr(str_cstr(&bed.json), "[\"Pawl-Key\", \"k%0D%0AX-Evil:%201\\\"\"]"));
    assert_string_equal(echoed("X-Evil"), "");
}

static void the_signature_can_be_checked(void **state)
{
    (void)state;
    static char secret[] = "s3cret";
    unsigned char mac[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1], expected[128];
    bed.kind.secret = secret;
    post("/echo");
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    str_addf(&text, "%s.17-3.", echoed("Pawl-Timestamp"));
    str_add(&text, bed.lease.payload);
    hmac_sha256(SV("s3cret"), str_sv(&text), mac);
    hex_encode(mac, sizeof(mac), hex);
    snprintf(expected, sizeof(expected), "sha256=%s", hex);
    assert_string_equal(echoed("Pawl-Signature"), expected);
    bed.lease.fence.v = 4;
    post("/echo");
    assert_string_not_equal(echoed("Pawl-Signature"), expected);
}

static void answers_have_classes(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int end;
        enum fail_class cls;
        bool throttled, timed_out;
        int64_t after; /* seconds; -1: none */
        const char *words;
    } rows[] = {
        {"/status/200", RUN_DONE, CLASS_NONE, false, false, -1, ""},
        {"/status/204", RUN_DONE, CLASS_NONE, false, false, -1, ""},
        {"/status/408", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "answer 408"},
        {"/status/425", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "answer 425"},
        {"/status/429", RUN_FAILED, CLASS_TRANSIENT, true, false, -1, "answer 429"},
        {"/throttle?after=7", RUN_FAILED, CLASS_TRANSIENT, true, false, 7, "answer 429: slow down"},
        {"/throttle?date=60", RUN_FAILED, CLASS_TRANSIENT, true, false, 60,
         "answer 429: slow down"},
        {"/status/503?after=9", RUN_FAILED, CLASS_TRANSIENT, true, false, 9, "answer 503"},
        {"/status/500?body=oops", RUN_FAILED, CLASS_TRANSIENT, false, false, -1,
         "answer 500: oops"},
        {"/status/502", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "answer 502"},
        {"/status/400?body=bad%1b[31m%0aline", RUN_FAILED, CLASS_FATAL, false, false, -1,
         "answer 400: bad\\x1b[31m\\nline"},
        {"/status/404", RUN_FAILED, CLASS_FATAL, false, false, -1, "answer 404"},
        {"/status/410", RUN_FAILED, CLASS_FATAL, false, false, -1, "answer 410"},
        {"/status/401?after=5", RUN_FAILED, CLASS_FATAL, false, false, -1, "answer 401"},
        {"/status/304", RUN_FAILED, CLASS_FATAL, false, false, -1, "answer 304"},
        {"/close", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "broken: "},
        {"/close?after=10", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "broken: "},
        {"/reset", RUN_FAILED, CLASS_TRANSIENT, false, false, -1, "broken: "},
        {"/headers", RUN_FAILED, CLASS_ERROR, false, false, -1,
         "too_large: the headers are too large"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct run_result *r = post(rows[i].path);
        int64_t after = r->retry_after.us < 0 ? -1 : (r->retry_after.us + 999999) / 1000000;
        if ((int)r->end != rows[i].end || (r->end == RUN_FAILED && r->cls != rows[i].cls) ||
            r->throttled != rows[i].throttled || r->timed_out != rows[i].timed_out ||
            after < rows[i].after - 2 || after > rows[i].after ||
            strncmp(str_cstr(&bed.reason), rows[i].words, strlen(rows[i].words)) != 0)
            fail_msg("%s: end %d, class %d, after %lld: %s", rows[i].path, (int)r->end, (int)r->cls,
                     (long long)after, str_cstr(&bed.reason));
        assert_int_equal(r->exit_code, -1);
        assert_true(r->asked.us < 0);
    }
}

static void redirects_are_not_followed(void **state)
{
    (void)state;
    const struct run_result *r = post("/to?url=http://u:pw@h.example/x%3Fpassword%3Dpw&status=307");
    assert_int_equal(r->cls, CLASS_FATAL);
    assert_non_null(strstr(str_cstr(&bed.reason),
                           "answer 307: redirects are not followed; it leads "
                           "to http://"));
    assert_null(strstr(str_cstr(&bed.reason), ":pw"));
    assert_null(strstr(str_cstr(&bed.reason), "=pw"));
}

static void small_json_is_the_result(void **state)
{
    (void)state;
    post("/status/200?body=%20{%22a%22:1}%0a");
    assert_string_equal(str_cstr(&bed.json), "{\"a\":1}");
    static const char *const none[] = {
        "/status/200?body=OK", "/status/200",      "/status/200?body={%22a%22:1",
        "/ok?size=70000",      "/ok?size=5000000", "/endless"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        const struct run_result *r = post(none[i]);
        if (r->end != RUN_DONE || r->result.p)
            fail_msg("%s: end %d, %s", none[i], (int)r->end, str_cstr(&bed.reason));
    }
    char big[400] = "/status/500?body=";
    memset(big + strlen(big), 'x', 300);
    post(big);
    assert_true(bed.reason.len < 300); /* an excerpt */
}

static void time_is_limited(void **state)
{
    (void)state;
    bed.run.timeout = DUR_MS(200);
    const struct run_result *r = post("/sleep?s=20");
    assert_int_equal(r->cls, CLASS_TRANSIENT);
    assert_true(r->timed_out && !r->throttled);
    bed.run.timeout = DUR_NONE; /* a default holds instead */
    assert_int_equal(post("/sleep?s=0.1")->end, RUN_DONE);
}

static void nobody_listens(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0); /* bound, and does not listen */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    snprintf(bed.url, sizeof(bed.url), "http://127.0.0.1:%d/", ntohs(a.sin_port));
    run();
    close(fd);
    assert_int_equal(bed.result.cls, CLASS_TRANSIENT);
    assert_true(sv_starts(str_sv(&bed.reason), SV("connect: ")));
    snprintf(bed.url, sizeof(bed.url), "https://127.0.0.1:%d/",
             fetchserver_port(&server, "self-signed"));
    run();
    assert_int_equal(bed.result.cls, CLASS_ERROR);
    assert_true(sv_starts(str_sv(&bed.reason), SV("tls: ")));
}

static void cancelling_ends_it(void **state)
{
    (void)state;
    target("/sleep?s=20");
    for (int why = CANCEL_ASKED; why <= CANCEL_LEASE_LOST; why++) {
        bed.ended = 0;
        assert_int_equal(bed.handler->ops->start(bed.handler, &bed.run, NULL), 0);
        bed.handler->ops->cancel(bed.handler, &bed.run, (enum cancel_why)why);
        assert_int_equal(bed.ended, 1);
        assert_int_equal(bed.result.end, RUN_CANCELLED);
    }
    assert_int_equal(post("/status/200")->end, RUN_DONE);
}

static void configuration_is_not_the_jobs_fault(void **state)
{
    (void)state;
    struct pawl_err err = {0};
    snprintf(bed.url, sizeof(bed.url), "http://h:22/");
    assert_int_equal(bed.handler->ops->start(bed.handler, &bed.run, &err), PAWL_ECONFIG);
    assert_true(sv_starts(sv_of(err.msg), SV("kinds.hook.url: ")));
    assert_int_equal(bed.handler->ops->validate(bed.handler, SV("hook"), SV("{}"), NULL),
                     PAWL_ECONFIG);
    assert_int_equal(bed.handler->ops->validate(bed.handler, SV("other"), SV("{}"), NULL),
                     PAWL_ECONFIG);
    target("/");
    struct handler *judge = handler_http_new(NULL, &bed.config);
    AUTO_STR struct str host = STR_INIT(STR_LINE);
    assert_int_equal(judge->ops->validate(judge, SV("hook"), SV("[1]"), NULL), 0);
    judge->ops->host(judge, SV("hook"), SV("[1]"), &host);
    assert_string_equal(str_cstr(&host), "127.0.0.1");
    judge->ops->free(judge);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    if (!fetchserver_start(&server, true, NULL)) {
        fprintf(stderr, "fetchserver does not start\n");
        return 1;
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_payload_is_posted_as_it_is),
        TEST(names_cannot_break_out),
        TEST(the_signature_can_be_checked),
        TEST(answers_have_classes),
        TEST(redirects_are_not_followed),
        TEST(small_json_is_the_result),
        TEST(time_is_limited),
        TEST(nobody_listens),
        TEST(cancelling_ends_it),
        TEST(configuration_is_not_the_jobs_fault),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fetchserver_stop(&server);
    return failed;
}
