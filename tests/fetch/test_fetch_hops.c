/* fetch: from one request to the next. Redirects, gates of other hosts, conditions. */
#include "rig.h"

#include <signal.h>

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
    check(e, RUN_FAILED, CLASS_FATAL,
          "its address is not public (loopback); fetch.allow_private is off");
    assert_int_equal(hits("/away"), 1);
    assert_int_equal(hits("/x"), 0);
    assert_int_equal(rig.keeps, 0);
}

/* ---- gates ---- */

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
    char url[128];
    snprintf(url, sizeof(url), "%s", at("/c"));
    struct fetch_record old = {.url = sv_of(url),
                               .status = 200,
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
    again("/c", ",\"accept\":[200,404]"); /* as long as these would keep what was kept */
    assert_non_null(strstr(asked("/c"), "If-None-Match: \"v1\"\r\n"));
    again("/c", ",\"accept\":[404]");
    assert_null(strstr(asked("/c"), "If-"));
    again("/c", ",\"accept\":[200,304]");
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
    struct fetch_record old = {.url = sv_of(at("/from")),
                               .final_url = sv_of(at("/to")),
                               .status = 200,
                               .etag = SV("\"v1\"")};
    rig.previous = &old;
    check(again("/from", ""), RUN_SKIPPED, CLASS_NONE, "not modified");
    assert_null(strstr(asked("/from"), "If-"));
    assert_non_null(strstr(asked("/to"), "If-None-Match: \"v1\""));
    assert_int_equal(rig.previouses, 1);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_plain, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(redirects_are_followed),
        TEST(methods_change_as_everywhere),
        TEST(secrets_stay_with_their_origin),
        TEST(redirects_have_an_end),
        TEST(a_redirect_to_a_private_address_is_refused),
        TEST(shut_gates_are_waited_for),
        TEST(other_hosts_than_the_jobs_pass_gates),
        TEST(unchanged_pages_are_skipped),
        TEST(conditions_go_to_where_the_body_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
