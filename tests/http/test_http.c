/* http: what is asked and what is answered, and what is not even asked. */
#include "loopback.h"

#include "hash.h"
#include <stdlib.h>

static void an_answer_is_whole(void **state)
{
    (void)state;
    const struct http_result *r = get("/ok");
    assert_int_equal(r->error, HTTP_OK);
    assert_string_equal(r->message, "");
    assert_int_equal(r->status, 200);
    assert_string_equal(got.body, "hello");
    assert_string_equal(got.type, "text/plain");
    assert_string_equal(got.etag, "\"e1\"");
    assert_string_equal(got.two, "b");
    assert_string_equal(r->address, "127.0.0.1");
    assert_int_equal(r->port, server.port);
    assert_true(r->retry_after.us < 0);
    assert_true(r->total.us > 0 && r->total.us < 10000000);
    assert_true(r->connected.us > 0 && r->secured.us == 0);
    int before = atomic_load(&server.connections);
    get("/ok");
    assert_int_equal(atomic_load(&server.connections), before); /* one connection for both */
}

static void a_request_is_what_was_asked_for(void **state)
{
    (void)state;
    const struct http_header headers[] = {{SV("X-One"), SV("a b")},
                                          {SV("Content-Type"), SV("application/json")},
                                          {SV("X-Empty"), SV("")}};
    ask((struct http_request){.url = at("/echo?q=1#frag"),
                              .headers = headers,
                              .n_headers = 3,
                              .body = SV("{\"a\":1}"),
                              .allow_private = true});
    assert_non_null(strstr(got.body, "POST /echo?q=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(got.body, "\r\nX-One: a b\r\n"));
    assert_non_null(strstr(got.body, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(got.body, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(got.body, "\r\nUser-Agent: pawl/"));
    assert_non_null(strstr(got.body, "\r\n\r\n{\"a\":1}"));
    assert_null(strstr(got.body, "Expect"));
    ask((struct http_request){.url = at("/echo"), .method = "DELETE", .allow_private = true});
    assert_non_null(strstr(got.body, "DELETE /echo HTTP/1.1\r\n"));
    assert_null(strstr(got.body, "Content-Type"));
    const struct http_result *r = ask((struct http_request){
        .url = at("/ok"), .method = "HEAD", .timeout = DUR_S(5), .allow_private = true});
    assert_int_equal(r->error, HTTP_OK);
    assert_int_equal(r->body.n, 0);
}

static void retry_after_has_two_forms(void **state)
{
    (void)state;
    assert_int_equal(get("/busy")->status, 503);
    assert_int_equal(got.res.retry_after.us, 7000000);
    assert_int_equal(get("/date")->status, 429);
    assert_int_equal(got.res.retry_after.us, 60000000); /* by the server's own clock */
    struct wall now = {1672628645000000};               /* 2023-01-02T03:04:05Z */
    assert_int_equal(http_retry_after(SV(" 12 "), SV_NONE, now).us, 12000000);
    assert_int_equal(http_retry_after(SV("0"), SV_NONE, now).us, 0);
    assert_int_equal(http_retry_after(SV("99999999999999"), SV_NONE, now).us, DUR_MAX_US);
    assert_int_equal(http_retry_after(SV("Mon, 02 Jan 2023 03:04:15 GMT"), SV_NONE, now).us,
                     10000000);
    assert_int_equal(http_retry_after(SV("Mon, 02 Jan 2023 03:00:00 GMT"), SV_NONE, now).us, 0);
    static const char *const bad[] = {"", "-1", "1.5", "soon", "12 s", "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_true(http_retry_after(sv_of(bad[i]), SV_NONE, now).us < 0);
}

static void redirects_are_returned(void **state)
{
    (void)state;
    assert_int_equal(get("/moved")->status, 302);
    assert_string_equal(got.location, "../x?y");
    assert_string_equal(got.redirect, at("/x?y"));
    get("/echo");
    assert_null(strstr(got.body, "Cookie")); /* S33 */
}

static void urls_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "file:///etc/passwd",
        "gopher://h/",
        "ftp://h/",
        "scp://h/",
        "dict://h/",
        "ldap://h/",
        "smb://h/x",
        "telnet://h",
        "http://user:pw@h/",
        "http://user@h/",
        "https://:pw@h/",
        "http://@h/",
        "http://h:22/",
        "http://h:0/",
        "http://h:25/",
        "http://h:1023/",
        "http://h:99999/",
        "http://h:x/",
        "http://",
        "http://h\n/",
        "http://h/\r\nX: y",
        "http://h h/",
        "javascript:alert(1)",
        "/etc/passwd",
        "h:22",
        "http://[::1",
        "https://h:8/",
    };
    static const char *const good[] = {"http://h/",
                                       "https://h",
                                       "http://h:80/",
                                       "http://h:443/",
                                       "https://h:1024/x?y=z",
                                       "HTTP://H:65535/",
                                       "http://[::1]:8080/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct pawl_err err = {0};
        if (http_url_check(bad[i], &err) != PAWL_EINPUT)
            fail_msg("\"%s\" is accepted", bad[i]);
        assert_null(strstr(err.msg, "pw"));
        assert_null(strchr(err.msg, '\n'));
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(http_url_check(good[i], NULL), 0);
}

static void headers_cannot_break_out(void **state)
{
    (void)state;
    static const struct http_header bad[] = {
        {SV("X-A"), SV("b\r\nX-C: d")}, {SV("X-A"), SV("b\nc")}, {SV("X A"), SV("b")},
        {SV("X-A:"), SV("b")},          {SV(""), SV("b")},       {SV("X\r\n"), SV("b")},
        {SV("X-A"), SV("b\0c")},        {SV("X\0A"), SV("b")},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct http_request req = {.url = at("/ok"), .headers = &bad[i], .n_headers = 1};
        assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), PAWL_EINPUT);
    }
    struct http_request req = {.url = at("/ok"), .method = "GET / HTTP/1.1\r\nX: y"};
    assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), PAWL_EINPUT);
}

/* The server listens there, and hears nothing. */
static void private_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "[::]",
        "10.0.0.1",
        "169.254.169.254",
        "0",
        "localhost.",
        "[fe80::1%25lo]",
        "%31%32%37.0.0.1",
        "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.\xe2\x93\xaa.\xe2\x93\xaa.\xe2\x91\xa0", /* circled */
        "127\xe3\x80\x82"
        "0\xe3\x80\x82"
        "0\xe3\x80\x82"
        "1", /* ideographic full stops */
    };
    int before = atomic_load(&server.connections);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        char url[128];
        snprintf(url, sizeof(url), "http://%s:%d/ok", hosts[i], server.port);
        struct http_request req = {.url = url, .timeout = DUR_S(5)};
        got = (struct outcome){.want = 1};
        if (http_start(http, &req, done, &got, NULL, NULL) == PAWL_EINPUT)
            continue;
        assert_int_equal(loop_run(loop, NULL), 0);
        bool refused = got.res.error == HTTP_BLOCKED_ADDRESS || got.res.error == HTTP_RESOLVE;
        if (!refused)
            fail_msg("%s: %s (%s)", url, http_error_name(got.res.error), got.res.message);
        if (i < 7 && got.res.error != HTTP_BLOCKED_ADDRESS)
            fail_msg("%s: %s (%s)", url, http_error_name(got.res.error), got.res.message);
    }
    assert_int_equal(atomic_load(&server.connections), before);
}

/* A connection that one request was allowed to open is not there for others. */
static void private_connections_are_not_shared(void **state)
{
    (void)state;
    assert_int_equal(get("/ok")->status, 200);
    const struct http_result *r = ask((struct http_request){.url = at("/ok")});
    assert_int_equal(r->error, HTTP_BLOCKED_ADDRESS);
    assert_int_equal(r->status, 0);
    assert_non_null(strstr(r->message, "loopback"));
}

static void the_environment_does_not_count(void **state)
{
    (void)state;
    char proxy[64];
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", 1);
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy",
                                        "ALL_PROXY"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], proxy, 1);
    assert_int_equal(get("/ok")->status, 200);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

/* RFC 4231, test cases 2 and 6: what web hooks are signed with. */
static void signatures_are_as_others_make_them(void **state)
{
    (void)state;
    unsigned char mac[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1], key[131];
    hmac_sha256(SV("Jefe"), SV("what do ya want for nothing?"), mac);
    hex_encode(mac, sizeof(mac), hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    hmac_sha256(sv_make(key, sizeof(key)),
                SV("Test Using Larger Than Block-Size Key - Hash Key First"), mac);
    hex_encode(mac, sizeof(mac), hex);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
    server_start();
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_whole),
        TEST(a_request_is_what_was_asked_for),
        TEST(retry_after_has_two_forms),
        TEST(redirects_are_returned),
        TEST(urls_are_checked),
        TEST(headers_cannot_break_out),
        TEST(private_addresses_are_refused),
        TEST(private_connections_are_not_shared),
        TEST(the_environment_does_not_count),
        TEST(signatures_are_as_others_make_them),
    };
    int failed = cmocka_run_group_tests_name("http", tests, NULL, NULL);
    server_wait();
    return failed;
}
