/* fetch: how answers become ends of jobs, redirects, gates, conditions. */
#include "rig.h"

#include "fetch_parts.h"
#include "hash.h"
#include <signal.h>

static const char *const plain[] = {"fetch.robots=false"};

static int begin(void **state)
{
    (void)state;
    rig_begin(plain, ARRAY_LEN(plain));
    return 0;
}

static int end(void **state)
{
    (void)state;
    rig_end();
    return 0;
}

static void check(const struct ended *e, int how, enum fail_class cls, const char *words)
{
    assert_true_msg((int)e->r.end == how && e->r.cls == cls && strstr(e->reason, words),
                    "end %d, class %s: %s (\"%s\" is expected)", e->r.end,
                    e->r.cls ? fail_class_name(e->r.cls) : "none", e->reason, words);
}

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
          CLASS_FATAL, "fetch.contact is required");
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
        check(e, RUN_FAILED, CLASS_FATAL, "its address is not public (loopback)");
        assert_int_equal(hits("/x") + hits("/robots.txt"), 0);
        if (!robots)
            rig_end();
    }
}

/* Loopback stands for a public host up to its redirect. */
static void a_redirect_to_a_private_address_is_refused(void **state)
{
    (void)state;
    static const char *const flags[] = {"fetch.robots=false", "fetch.contact=a@b.example"};
    rig_end();
    rig_begin(flags, 2);
    rig.strict_then = true;
    page("/away", "HTTP/1.1 302 Found\r\nLocation: http://%O/x\r\nContent-Length: 0\r\n\r\n");
    page_body("/x", "200 OK", "", SV("secret"));
    const struct ended *e = get("/away", NULL);
    check(e, RUN_FAILED, CLASS_FATAL, "its address is not public (loopback)");
    assert_int_equal(hits("/away"), 1);
    assert_int_equal(hits("/x"), 0);
    assert_int_equal(rig.keeps, 0);
}

static void a_contact_is_required(void **state)
{
    (void)state;
    const struct ended *e = fetch("{\"url\":\"http://example.org/x\"}");
    check(e, RUN_FAILED, CLASS_FATAL, "fetch.contact is required to fetch from example.org");
    page("/r", "HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n");
    check(get("/r", NULL), RUN_FAILED, CLASS_FATAL, "fetch.contact is required");
    assert_int_equal(rig.admits, 0); /* nobody was bothered */
    static const char *const flags[] = {"fetch.robots=false", "fetch.contact=ops@site.example"};
    rig_end();
    rig_begin(flags, 2);
    page_body("/a", "200 OK", "", SV("x"));
    get("/a", NULL);
    assert_non_null(
        strstr(asked("/a"), "User-Agent: pawl/" PAWL_VERSION " (+ops@site.example)\r\n"));
}

/* ---- redirects ---- */

static void redirects_are_followed(void **state)
{
    (void)state;
    page("/1", "HTTP/1.1 301 Moved\r\nLocation: 2\r\nContent-Length: 3\r\n\r\nxyz");
    page("/2", "HTTP/1.1 302 Found\r\nLocation: http://%H/3#part\r\nContent-Length: 0\r\n\r\n");
    page("/3", "HTTP/1.1 308 Moved\r\nLocation: //%O/4\r\nContent-Length: 0\r\n\r\n");
    page_body("/4", "200 OK", "", SV("there"));
    const struct ended *e = get("/1", NULL);
    char want[512];
    check(e, RUN_DONE, CLASS_NONE, "");
    assert_str(&rig.kept.bytes, "there");
    assert_string_equal(e->final_url, at_other("/4"));
    snprintf(want, sizeof(want),
             "[{\"status\":301,\"url\":\"%s\"},{\"status\":302,\"url\":\"%s\"},"
             "{\"status\":308,\"url\":\"%s\"}]",
             at("/1"), at("/2"), at("/3"));
    assert_string_equal(e->redirects, want);
    assert_string_equal(rig.admitted, "127.0.0.2 ");
    assert_non_null(strstr(e->result, at_other("/4")));
    /* a failure there is not this job's host's */
    page("/4", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    e = get("/1", NULL);
    check(e, RUN_FAILED, CLASS_TRANSIENT, "HTTP 503 from http://127.0.0.2:");
    assert_string_equal(e->peer, "127.0.0.2");
}

static void methods_change_as_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *status, *method, *then;
    } cases[] = {
        {"301", "GET", "GET"},   {"301", "POST", "GET"},  {"302", "POST", "GET"},
        {"303", "POST", "GET"},  {"303", "PUT", "GET"},   {"303", "HEAD", "HEAD"},
        {"301", "HEAD", "HEAD"}, {"307", "POST", "POST"}, {"308", "PUT", "PUT"},
        {"302", "PUT", "PUT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char head[128], more[128];
        bool body = cases[i].method[0] == 'P';
        snprintf(head, sizeof(head), "HTTP/1.1 %s Go\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n",
                 cases[i].status);
        page("/from", head);
        page("/to", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        snprintf(more, sizeof(more), ",\"method\":\"%s\",\"headers\":{\"Content-Type\":\"t/x\"}%s",
                 cases[i].method, body ? ",\"body\":\"xyz\"" : "");
        check(get("/from", more), RUN_DONE, CLASS_NONE, "");
        size_t n = strlen(cases[i].then);
        assert_true_msg(!strncmp(asked("/to"), cases[i].then, n) && asked("/to")[n] == ' ',
                        "%s %s: %s", cases[i].status, cases[i].method, asked("/to"));
        bool kept = body && cases[i].then[0] == 'P';
        assert_int_equal(strstr(asked("/to"), "xyz") != NULL, kept);
        assert_int_equal(strstr(asked("/to"), "Content-Type") != NULL, kept);
    }
}

static void secrets_stay_with_their_origin(void **state)
{
    (void)state;
    const char *more = ",\"headers\":{\"Authorization\":\"s3cret\",\"X-Key\":\"s3cret\","
                       "\"Accept-Language\":\"de\"}";
    page("/same", "HTTP/1.1 302 Go\r\nLocation: /in\r\nContent-Length: 0\r\n\r\n");
    page("/away", "HTTP/1.1 302 Go\r\nLocation: http://%O/out\r\nContent-Length: 0\r\n\r\n");
    page("/out", "HTTP/1.1 302 Go\r\nLocation: http://%H/in\r\nContent-Length: 0\r\n\r\n");
    page_body("/in", "200 OK", "", SV("x"));
    get("/same", more);
    assert_non_null(strstr(asked("/in"), "s3cret"));
    get("/away", more);
    assert_null(strstr(asked("/out"), "s3cret"));
    assert_non_null(strstr(asked("/out"), "Accept-Language: de"));
    assert_null(strstr(asked("/in"), "s3cret")); /* whoever sent it back is not trusted */
    page("/put", "HTTP/1.1 307 Go\r\nLocation: http://%O/out\r\nContent-Length: 0\r\n\r\n");
    rig_again();
    check(get("/put", ",\"method\":\"POST\",\"body\":\"x\""), RUN_FAILED, CLASS_FATAL,
          "another origin");
    assert_int_equal(hits("/out"), 0);
}

static void redirects_have_an_end(void **state)
{
    (void)state;
    page("/a", "HTTP/1.1 302 Go\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
    page("/b", "HTTP/1.1 302 Go\r\nLocation: /a#again\r\nContent-Length: 0\r\n\r\n");
    check(get("/a", NULL), RUN_FAILED, CLASS_FATAL, "in a circle");
    assert_int_equal(hits("/a"), 1);
    for (int i = 0; i < 12; i++) {
        char path[16], head[128];
        snprintf(path, sizeof(path), "/n%d", i);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 302 Go\r\nLocation: /n%d\r\nContent-Length: 0\r\n\r\n", i + 1);
        page(path, head);
    }
    check(get("/n0", NULL), RUN_FAILED, CLASS_FATAL, "more than 10 times");
    assert_int_equal(hits("/n10"), 1);
    assert_int_equal(hits("/n11"), 0);
    static const char *const bad[] = {"file:///etc/passwd", "ftp://127.0.0.1/x",
                                      "http://u:p@127.0.0.1/", "http://127.0.0.1:22/",
                                      "gopher://127.0.0.1:8080/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char head[256];
        snprintf(head, sizeof(head), "HTTP/1.1 302 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                 bad[i]);
        page("/bad", head);
        check(get("/bad", NULL), RUN_FAILED, CLASS_FATAL, "redirected to where it cannot go");
    }
}

static void shut_gates_are_waited_for(void **state)
{
    (void)state;
    page("/away", "HTTP/1.1 302 Go\r\nLocation: http://%O/x\r\nContent-Length: 0\r\n\r\n");
    page_body("/x", "200 OK", "", SV("x"));
    struct admission shut = {
        .outcome = ADMIT_SHUT, .wait = DUR_MS(30), .gate = SV("every-host=127.0.0.2")};
    rig.admissions[0] = rig.admissions[1] = shut;
    rig.n_admissions = 2;
    struct boot before = clock_boot();
    check(get("/away", NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(rig.admits, 3);
    assert_true(clock_boot().us - before.us >= 60000);
    /* not for ever */
    rig_again();
    shut.wait = DUR_MS(150);
    for (rig.n_admissions = 0; rig.n_admissions < 8; rig.n_admissions++)
        rig.admissions[rig.n_admissions] = shut;
    struct ended e;
    char payload[256];
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/away"));
    struct job_given j = {.payload = payload, .timeout = DUR_MS(200)};
    rig_run(&j, 1, &e);
    check(&e, RUN_FAILED, CLASS_TRANSIENT, "every-host=127.0.0.2 is shut");
    assert_string_equal(e.peer, "127.0.0.2");
    assert_int_equal(e.r.retry_after.us, 150000);
    assert_int_equal(hits("/x"), 0);
    /* and not by one who has lost the job */
    rig_again();
    rig.admissions[0] = (struct admission){.outcome = ADMIT_STALE};
    rig.n_admissions = 1;
    check(get("/away", NULL), RUN_RELEASED, CLASS_NONE, "no longer held");
    assert_int_equal(hits("/x"), 0);
}

static void other_hosts_than_the_jobs_pass_gates(void **state)
{
    (void)state;
    char payload[256];
    struct ended e;
    page_body("/x", "200 OK", "", SV("x"));
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/x"));
    struct job_given j = {.payload = payload, .host = ""};
    rig_run(&j, 1, &e);
    assert_string_equal(rig.admitted, "127.0.0.1 ");
    check(&e, RUN_DONE, CLASS_NONE, "");
    page("/x", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    j.host = "elsewhere.example";
    rig_run(&j, 1, &e);
    assert_string_equal(e.peer, "127.0.0.1");
}

/* ---- conditions ---- */

static const struct ended *again(const char *path, const char *more)
{
    static struct ended e;
    char payload[1024];
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"%s}", at(path), more);
    struct job_given j = {.payload = payload, .fence = 2};
    rig_run(&j, 1, &e);
    return &e;
}

static void unchanged_pages_are_skipped(void **state)
{
    (void)state;
    struct fetch_record old = {.url = sv_of(at("/c")),
                               .etag = SV("\"v1\""),
                               .last_modified = SV("Mon, 02 Jan 2023 03:04:05 GMT")};
    rig.previous = &old;
    page("/c", "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n");
    const struct ended *e = again("/c", "");
    check(e, RUN_SKIPPED, CLASS_NONE, "not modified");
    assert_non_null(strstr(asked("/c"), "If-None-Match: \"v1\"\r\n"));
    assert_non_null(strstr(asked("/c"), "If-Modified-Since: Mon, 02 Jan 2023 03:04:05 GMT\r\n"));
    assert_int_equal(e->f.status, 304);
    assert_false(e->f.kept);
    assert_int_equal(e->r.n_artifacts, 0);
    /* changed */
    page_body("/c", "200 OK", "ETag: \"v2\"\r\n", SV("new"));
    check(again("/c", ""), RUN_DONE, CLASS_NONE, "");
    assert_str(&rig.kept.bytes, "new");
    /* nothing known, another method, other statuses, another URL */
    rig.previous = NULL;
    again("/c", "");
    assert_null(strstr(asked("/c"), "If-"));
    rig.previous = &old;
    again("/c", ",\"method\":\"POST\"");
    assert_null(strstr(asked("/c"), "If-"));
    again("/c", ",\"accept\":[200,404]");
    assert_null(strstr(asked("/c"), "If-"));
    page_body("/d", "200 OK", "", SV("d"));
    again("/d", "");
    assert_null(strstr(asked("/d"), "If-"));
    /* a tag that would break out of its line */
    old.etag = SV("\"v\"\r\nX-Evil: 1");
    check(again("/c", ""), RUN_DONE, CLASS_NONE, "");
    assert_null(strstr(asked("/c"), "Evil"));
    assert_non_null(strstr(asked("/c"), "If-Modified-Since"));
}

static void conditions_go_to_where_the_body_was(void **state)
{
    (void)state;
    page("/from", "HTTP/1.1 302 Go\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n");
    page("/to", "HTTP/1.1 304 Not Modified\r\n\r\n");
    struct fetch_record old = {
        .url = sv_of(at("/from")), .final_url = sv_of(at("/to")), .etag = SV("\"v1\"")};
    rig.previous = &old;
    check(again("/from", ""), RUN_SKIPPED, CLASS_NONE, "not modified");
    assert_null(strstr(asked("/from"), "If-"));
    assert_non_null(strstr(asked("/to"), "If-None-Match: \"v1\""));
    assert_int_equal(rig.previouses, 1);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
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
        TEST(a_redirect_to_a_private_address_is_refused),
        TEST(a_contact_is_required),
        TEST(redirects_are_followed),
        TEST(methods_change_as_everywhere),
        TEST(secrets_stay_with_their_origin),
        TEST(redirects_have_an_end),
        TEST(shut_gates_are_waited_for),
        TEST(other_hosts_than_the_jobs_pass_gates),
        TEST(unchanged_pages_are_skipped),
        TEST(conditions_go_to_where_the_body_was),
        TEST(a_worker_without_services_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
