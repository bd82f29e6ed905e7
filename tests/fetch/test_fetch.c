/* fetch: how answers become ends of jobs. */
#include "rig.h"

#include "fetch_parts.h"
#include "hash.h"
#include <signal.h>

static void a_page_is_kept(void **state)
{
    (void)state;
    unsigned char sum[SHA256_LEN];
    page_body("/a", "200 OK",
              "Content-Type: text/html; charset=utf-8\r\nETag: \"e1\"\r\nServer: test\r\n"
              "Link: <x>; rel=\"next\"\r\nX-Other: y\r\n"
              "Last-Modified: Mon, 02 Jan 2023 03:04:05 GMT\r\n",
              SV("<p>hello"));
    const struct ended *e = get("/a", ",\"variant\":\"html\"");
    check(e, RUN_DONE, CLASS_NONE, "");
    assert_str(&rig.kept.bytes, "<p>hello");
    assert_string_equal(rig.kept.name, "html");
    assert_string_equal(rig.kept.type, "text/html; charset=utf-8");
    assert_int_equal(e->r.n_artifacts, 1);
    assert_non_null(e->r.fetch);
    assert_true(e->f.kept && e->f.hashed);
    assert_int_equal(e->f.status, 200);
    assert_int_equal(e->f.wire_bytes, 8);
    assert_int_equal(e->f.body_bytes, 8);
    sha256(SV("<p>hello"), sum);
    assert_memory_equal(e->f.wire_sha256, sum, SHA256_LEN);
    assert_memory_equal(e->f.body_sha256, sum, SHA256_LEN);
    assert_string_equal(e->etag, "\"e1\"");
    assert_string_equal(e->modified, "Mon, 02 Jan 2023 03:04:05 GMT");
    assert_string_equal(e->headers, "{\"server\":\"test\",\"link\":\"<x>; rel=\\\"next\\\"\"}");
    assert_string_equal(e->address, "127.0.0.1");
    assert_string_equal(e->version, "1.1");
    assert_string_equal(e->final_url, "");
    assert_string_equal(e->redirects, "");
    assert_true(e->f.connect.us > 0 && e->f.total.us >= e->f.first_byte.us);
    assert_non_null(strstr(e->result, "\"status\":200,\"bytes\":8,\"sha256\":\""));
    assert_non_null(strstr(e->result, "\"type\":\"text/html; charset=utf-8\""));
    assert_non_null(strstr(asked("/a"), "User-Agent: pawl/"));
    assert_non_null(strstr(asked("/a"), "Accept-Encoding: gzip, deflate\r\n"));
    assert_int_equal(rig.admits, 0);
    assert_int_equal(rig.previouses, 0);
}

static void an_empty_page_is_one(void **state)
{
    (void)state;
    page_body("/none", "200 OK", "", SV(""));
    page("/204", "HTTP/1.1 204 No Content\r\n\r\n");
    const struct ended *e = get("/none", NULL);
    check(e, RUN_DONE, CLASS_NONE, "");
    assert_int_equal(e->r.n_artifacts, 1);
    assert_true(e->f.kept && e->f.hashed && rig.kept.bytes.len == 0);
    check(get("/204", NULL), RUN_DONE, CLASS_NONE, "");
}

static void what_is_sent_is_what_was_asked_for(void **state)
{
    (void)state;
    page_body("/p", "200 OK", "", SV("x"));
    check(get("/p", ",\"method\":\"POST\",\"body\":\"a=b\",\"headers\":{\"X-Key\":\"v\","
                    "\"Content-Type\":\"text/x\"}"),
          RUN_DONE, CLASS_NONE, "");
    assert_int_equal(strncmp(asked("/p"), "POST ", 5), 0);
    assert_non_null(strstr(asked("/p"), "\r\nX-Key: v\r\n"));
    assert_non_null(strstr(asked("/p"), "\r\nContent-Type: text/x\r\n"));
    assert_non_null(strstr(asked("/p"), "\r\n\r\na=b"));
    page("/h", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    const struct ended *e = get("/h", ",\"method\":\"HEAD\"");
    check(e, RUN_DONE, CLASS_NONE, "");
    assert_int_equal(e->r.n_artifacts, 0);
    assert_false(e->f.kept);
}

static void statuses_have_classes(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        enum fail_class cls;
        bool throttled;
    } cases[] = {
        {"400 Bad", CLASS_FATAL, false},      {"401 No", CLASS_FATAL, false},
        {"403 No", CLASS_FATAL, false},       {"404 Not Found", CLASS_FATAL, false},
        {"410 Gone", CLASS_FATAL, false},     {"451 Law", CLASS_FATAL, false},
        {"408 Slow", CLASS_TRANSIENT, false}, {"425 Early", CLASS_TRANSIENT, false},
        {"429 Many", CLASS_TRANSIENT, true},  {"500 Oops", CLASS_TRANSIENT, false},
        {"502 Bad", CLASS_TRANSIENT, false},  {"503 Busy", CLASS_TRANSIENT, true},
        {"504 Slow", CLASS_TRANSIENT, false}, {"599 X", CLASS_TRANSIENT, false},
        {"300 Choose", CLASS_FATAL, false},   {"302 Nowhere", CLASS_FATAL, false},
        {"304 Unasked", CLASS_FATAL, false},  {"999 Odd", CLASS_FATAL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char words[32];
        page_body("/s", cases[i].status, "Content-Type: text/plain\r\n", SV("go away\n"));
        if (!strncmp(cases[i].status, "304", 3))
            page("/s", "HTTP/1.1 304 Not Modified\r\n\r\n");
        const struct ended *e = get("/s", NULL);
        snprintf(words, sizeof(words), "HTTP %.3s", cases[i].status);
        check(e, RUN_FAILED, cases[i].cls, words);
        assert_int_equal(e->r.throttled, cases[i].throttled);
        assert_int_equal(e->f.status, atoi(cases[i].status));
        assert_false(e->f.kept || e->f.hashed);
        assert_int_equal(rig.keeps, 0);
        assert_true(e->r.retry_after.us < 0);
        assert_string_equal(e->peer, ""); /* its own */
    }
}

static void failures_have_classes(void **state)
{
    (void)state;
    static const struct {
        enum http_error error;
        enum fail_class cls;
    } cases[] = {
        {HTTP_BLOCKED_ADDRESS, CLASS_FATAL}, {HTTP_RESOLVE, CLASS_TRANSIENT},
        {HTTP_CONNECT, CLASS_TRANSIENT},     {HTTP_TLS, CLASS_ERROR},
        {HTTP_TIMEOUT, CLASS_TRANSIENT},     {HTTP_TOO_LARGE, CLASS_FATAL},
        {HTTP_BROKEN, CLASS_TRANSIENT},      {HTTP_INTERNAL, CLASS_ERROR},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct verdict v = verdict_of_error(cases[i].error);
        assert_int_equal(v.cls, cases[i].cls);
        assert_int_equal(v.timed_out, cases[i].error == HTTP_TIMEOUT);
        assert_true(v.end == RUN_FAILED && !v.throttled && v.retry_after.us < 0);
    }
}

/* What thousands at a time cost. */
static void a_run_is_small(void **state)
{
    (void)state;
    assert_true_msg(sizeof(struct fetch) <= 2048, "%zu", sizeof(struct fetch));
}

static void error_pages_are_only_quoted(void **state)
{
    (void)state;
    AUTO_STR struct str big = STR_INIT(STR_OUTPUT);
    page_body("/t", "404 Not Found", "Content-Type: text/plain\r\n",
              SV("no such\n   \x1b[31mpage\x01"));
    assert_string_equal(get("/t", NULL)->reason, "HTTP 404: no such \\x1b[31mpage\\x01");
    page_body("/h", "404 Not Found", "Content-Type: text/html\r\n",
              SV("<html><TITLE >Not\n here</title><body>much more"));
    assert_string_equal(get("/h", NULL)->reason, "HTTP 404: Not here");
    page_body("/b", "404 Not Found", "Content-Type: image/png\r\n", SV("\x89PNG"));
    assert_string_equal(get("/b", NULL)->reason, "HTTP 404");
    for (int i = 0; i < 3000000; i++)
        str_addc(&big, 'x');
    page_body("/big", "500 Oops", "Content-Type: text/plain\r\n", str_sv(&big));
    const struct ended *e = get("/big", NULL);
    check(e, RUN_FAILED, CLASS_TRANSIENT, "HTTP 500: xxx");
    assert_true(strlen(e->reason) < 300);
    assert_true(e->f.wire_bytes < 200000);
}

static void retry_after_is_passed_on(void **state)
{
    (void)state;
    page("/429", "HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get("/429", NULL)->r.retry_after.us, 7000000);
    page("/503", "HTTP/1.1 503 No\r\nDate: Mon, 02 Jan 2023 03:04:05 GMT\r\n"
                 "Retry-After: Mon, 02 Jan 2023 03:05:05 GMT\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get("/503", NULL)->r.retry_after.us, 60000000);
    /* also if the rest never comes */
    page_then("/cut", "HTTP/1.1 429 No\r\nRetry-After: 9\r\nContent-Length: 100\r\n\r\nabc",
              THEN_CLOSE);
    const struct ended *e = get("/cut", NULL);
    assert_true(e->r.throttled && e->r.retry_after.us == 9000000);
}

static void accepted_statuses_are_the_jobs(void **state)
{
    (void)state;
    page_body("/404", "404 Not Found", "", SV("an answer"));
    check(get("/404", ",\"accept\":[200,404]"), RUN_DONE, CLASS_NONE, "");
    assert_str(&rig.kept.bytes, "an answer");
    page_body("/201", "201 Created", "", SV("x"));
    check(get("/201", ",\"accept\":[200]"), RUN_FAILED, CLASS_FATAL, "HTTP 201");
    page("/301", "HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nhi");
    check(get("/301", ",\"accept\":[301]"), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(hits("/x"), 0);
}

static void broken_answers_are_transient(void **state)
{
    (void)state;
    page_then("/short", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc", THEN_CLOSE);
    check(get("/short", NULL), RUN_FAILED, CLASS_TRANSIENT, "127.0.0.1: ");
    assert_int_equal(rig.keeps, 0);
    page_then("/reset", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc", THEN_RESET);
    check(get("/reset", NULL), RUN_FAILED, CLASS_TRANSIENT, "127.0.0.1: ");
    page_then("/chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
              THEN_CLOSE);
    check(get("/chunk", NULL), RUN_FAILED, CLASS_TRANSIENT, "127.0.0.1: ");
    page_then("/nothing", "", THEN_CLOSE);
    const struct ended *e = get("/nothing", NULL);
    check(e, RUN_FAILED, CLASS_TRANSIENT, "127.0.0.1: ");
    assert_int_equal(e->f.status, 0);
    page_then("/junk", "220 mail ESMTP\r\n", THEN_CLOSE);
    check(get("/junk", NULL), RUN_FAILED, CLASS_TRANSIENT, "");
    check(fetch("{\"url\":\"http://127.0.0.1:1025/\"}"), RUN_FAILED, CLASS_TRANSIENT, "connect");
    check(fetch("{\"url\":\"http://no-such-name.localhost.invalid:8080/\"}"), RUN_FAILED,
          CLASS_FATAL, "fetch.contact is not set");
}

static void slowness_has_an_end(void **state)
{
    (void)state;
    struct ended e;
    char payload[256];
    page_then("/hold", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", THEN_HOLD);
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/hold"));
    struct job_given j = {.payload = payload, .timeout = DUR_MS(200)};
    rig_run(&j, 1, &e);
    check(&e, RUN_FAILED, CLASS_TRANSIENT, "timed out");
    assert_true(e.r.timed_out && !e.r.throttled);
    assert_int_equal(e.f.status, 200);
    assert_int_equal(e.f.wire_bytes, 2);
    assert_false(e.f.hashed);
}

static void private_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const strict[] = {"fetch.allow_private=false", "fetch.contact=a@b.example"};
    rig_end();
    for (int robots = 0; robots < 2; robots++) {
        const char *flags[] = {strict[0], strict[1],
                               robots ? "fetch.robots=true" : "fetch.robots=false"};
        rig_begin(flags, 3);
        const struct ended *e = get("/x", NULL);
        check(e, RUN_FAILED, CLASS_FATAL,
              "its address is not public (loopback); fetch.allow_private is off");
        assert_int_equal(hits("/x") + hits("/robots.txt"), 0);
        if (!robots)
            rig_end();
    }
}

static void a_contact_is_required(void **state)
{
    (void)state;
    const struct ended *e = fetch("{\"url\":\"http://example.org/x\"}");
    check(e, RUN_FAILED, CLASS_FATAL, "fetch.contact is not set: example.org");
    page("/r", "HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n");
    check(get("/r", NULL), RUN_FAILED, CLASS_FATAL, "fetch.contact is not set");
    assert_int_equal(rig.admits, 0); /* nobody was bothered */
    static const char *const flags[] = {"fetch.robots=false", "fetch.contact=ops@site.example"};
    rig_end();
    rig_begin(flags, 2);
    page_body("/a", "200 OK", "", SV("x"));
    get("/a", NULL);
    assert_non_null(
        strstr(asked("/a"), "User-Agent: pawl/" PAWL_VERSION " (+ops@site.example)\r\n"));
}

static void a_worker_without_services_is_told(void **state)
{
    (void)state;
    struct lease lease = {.payload = SV("{\"url\":\"http://127.0.0.1/\"}")};
    struct run run = {.job = &lease};
    struct pawl_err err = {0};
    assert_int_equal(rig.handler->ops->start(rig.handler, &run, &err), PAWL_ECONFIG);
    assert_non_null(strstr(err.msg, "no lake"));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_plain, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_page_is_kept),
        TEST(an_empty_page_is_one),
        TEST(what_is_sent_is_what_was_asked_for),
        TEST(statuses_have_classes),
        TEST(failures_have_classes),
        TEST(a_run_is_small),
        TEST(error_pages_are_only_quoted),
        TEST(retry_after_is_passed_on),
        TEST(accepted_statuses_are_the_jobs),
        TEST(broken_answers_are_transient),
        TEST(slowness_has_an_end),
        TEST(private_addresses_are_refused),
        TEST(a_contact_is_required),
        TEST(a_worker_without_services_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
