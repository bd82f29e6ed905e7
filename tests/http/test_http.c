/* http: the client against a server on loopback that misbehaves on request. */
#include "../unit/unit.h"

#include "fd.h"
#include "hash.h"
#include "http.h"
#include "mem.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---- the server: a thread a connection, the path says what it does ---- */

static struct server {
    int fd;
    int port;
    atomic_int connections, open;
} server;

static void say(int fd, const char *text)
{
    (void)!fd_write_all(fd, text, strlen(text));
}

/* Until the client goes away; it has 20 s. */
static void flood(int fd, const char *text, int pause_ms)
{
    for (int i = 0; i < 20000000 && fd_write_all(fd, text, strlen(text)) == 0; i++) {
        struct pollfd p = {.fd = fd, .events = POLLRDHUP};
        if (pause_ms && poll(&p, 1, pause_ms) > 0)
            return;
    }
}

static void hold(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    poll(&p, 1, 20000);
}

static void bomb(int fd)
{
    static char zeros[1 << 16];
    FILE *f = popen("head -c 67108864 /dev/zero | gzip -1", "r");
    say(fd, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n");
    for (size_t n; (n = fread(zeros, 1, sizeof(zeros), f)) > 0;)
        if (fd_write_all(fd, zeros, n) < 0)
            break;
    pclose(f);
}

static void echo(int fd, const struct str *request)
{
    char head[128];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", request->len);
    say(fd, head);
    say(fd, str_cstr(request));
}

static bool answer(int fd, const struct str *request)
{
    const char *text = str_cstr(request), *path = strchr(text, ' ') + 1;
    static const struct {
        const char *path, *text;
    } fixed[] = {
        {"/ok ", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"e1\"\r\nLast-Modified: "
                 "Mon, 02 Jan 2023 03:04:05 GMT\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: "
                 "5\r\n\r\nhello"},
        {"/busy ", "HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"},
        {"/date ", "HTTP/1.1 429 No\r\nDate: Mon, 02 Jan 2023 03:04:05 GMT\r\nRetry-After: Mon, 02 "
                   "Jan 2023 03:05:05 GMT\r\nContent-Length: 0\r\n\r\n"},
        {"/moved ", "HTTP/1.1 302 Found\r\nLocation: ../x?y\r\nSet-Cookie: a=b\r\nContent-Length: "
                    "0\r\n\r\n"},
        {"/garbage ", "220 mail.example ESMTP\r\n"},
        {"/short ", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc"},
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (!strncmp(path, fixed[i].path, strlen(fixed[i].path))) {
            say(fd, fixed[i].text);
            return i < 4; /* keep the connection */
        }
    if (!strncmp(path, "/echo", 5)) {
        echo(fd, request);
        return true;
    }
    if (!strncmp(path, "/endless ", 9)) {
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        flood(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n", 0);
    } else if (!strncmp(path, "/headers ", 9)) {
        say(fd, "HTTP/1.1 200 OK\r\n");
        flood(fd, "X-More: 0123456789abcdef0123456789abcdef\r\n", 0);
    } else if (!strncmp(path, "/drip ", 6)) {
        say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        flood(fd, ".", 200);
    } else if (!strncmp(path, "/bomb ", 6)) {
        bomb(fd);
    } else if (!strncmp(path, "/silent ", 8)) {
        hold(fd);
    }
    return false;
}

static bool whole(const struct str *request)
{
    const char *text = str_cstr(request), *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "Content-Length: ");
    size_t body = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
    return end && request->len >= (size_t)(end + 4 - text) + body;
}

static void *serve_one(void *arg)
{
    int fd = (int)(intptr_t)arg;
    AUTO_STR struct str request = STR_INIT(1 << 20);
    char buf[4096];
    atomic_fetch_add(&server.open, 1);
    for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;) {
        str_add(&request, sv_make(buf, (size_t)n));
        if (request.p[0] == 0x16) /* TLS: not here */
            break;
        if (!whole(&request))
            continue;
        if (!answer(fd, &request))
            break;
        str_clear(&request);
    }
    close(fd);
    atomic_fetch_sub(&server.open, 1);
    return NULL;
}

static void *serve(void *arg)
{
    (void)arg;
    for (int fd; (fd = accept(server.fd, NULL, NULL)) >= 0;) {
        pthread_t t;
        atomic_fetch_add(&server.connections, 1);
        if (pthread_create(&t, NULL, serve_one, (void *)(intptr_t)fd) == 0)
            pthread_detach(t);
    }
    return NULL;
}

static int listen_on_loopback(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

/* ---- the client ---- */

static struct loop *loop;
static struct http *http;
static struct outcome {
    int calls, want;
    struct http_result res;
    char body[4096], location[256], redirect[256], type[64], etag[64], two[16];
} got;

static void copy(char *to, size_t n, struct sv s)
{
    snprintf(to, n, SV_FMT, SV_ARG(s));
}

static void done(void *arg, const struct http_result *res)
{
    struct outcome *o = arg;
    o->res = *res;
    copy(o->body, sizeof(o->body), res->body);
    copy(o->location, sizeof(o->location), res->location);
    copy(o->redirect, sizeof(o->redirect), res->redirect);
    copy(o->type, sizeof(o->type), res->content_type);
    copy(o->etag, sizeof(o->etag), res->etag);
    copy(o->two, sizeof(o->two), http_result_header(res, "x-two"));
    if (++o->calls >= o->want)
        loop_stop(loop);
}

static const char *at(const char *path)
{
    static char url[256];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", server.port, path);
    return url;
}

static struct http_result *ask(struct http_request req)
{
    got = (struct outcome){.want = 1};
    assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), 0);
    assert_int_equal(got.calls, 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(got.calls, 1);
    return &got.res;
}

static struct http_result *get(const char *path)
{
    return ask((struct http_request){.url = at(path), .allow_private = true});
}

static int begin(void **state)
{
    (void)state;
    int rc = loop_new(&loop, NULL);
    return rc ? rc : http_new(loop, NULL, &http, NULL);
}

static int end(void **state)
{
    (void)state;
    http_free(http);
    loop_free(loop);
    return 0;
}

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

static void bodies_are_bounded(void **state)
{
    (void)state;
    struct http_request req = {.url = at("/endless"), .allow_private = true, .max_body = 100000};
    const struct http_result *r = ask(req);
    assert_int_equal(r->error, HTTP_TOO_LARGE);
    assert_int_equal(r->status, 200);
    assert_true(r->body.n <= 100000);
    req.url = at("/bomb"); /* S35: counted after decoding */
    r = ask(req);
    assert_int_equal(r->error, HTTP_TOO_LARGE);
    assert_true(r->body.n <= 100000);
    assert_int_equal(get("/headers")->error, HTTP_TOO_LARGE);
    req = (struct http_request){.url = at("/ok"), .allow_private = true, .max_body = 5};
    assert_int_equal(ask(req)->error, HTTP_OK);
    req.max_body = 4;
    assert_int_equal(ask(req)->error, HTTP_TOO_LARGE);
}

static void slowness_has_an_end(void **state)
{
    (void)state;
    struct http_request req = {.url = at("/silent"), .allow_private = true, .timeout = DUR_MS(300)};
    const struct http_result *r = ask(req);
    assert_int_equal(r->error, HTTP_TIMEOUT);
    assert_true(r->total.us >= 250000 && r->total.us < 5000000);
    req = (struct http_request){.url = at("/drip"),
                                .allow_private = true,
                                .low_speed_time = DUR_S(1),
                                .timeout = DUR_S(15)};
    r = ask(req);
    assert_int_equal(r->error, HTTP_TIMEOUT);
    assert_true(r->total.us < 8000000);
}

static void failures_have_names(void **state)
{
    (void)state;
    int port;
    close(listen_on_loopback(&port));
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    assert_int_equal(ask((struct http_request){.url = url, .allow_private = true})->error,
                     HTTP_CONNECT);
    const struct http_request nowhere = {.url = "http://no-such-host.invalid/"};
    enum http_error e = ask(nowhere)->error;
    assert_true(e == HTTP_RESOLVE || e == HTTP_TIMEOUT); /* where no name server answers */
    assert_int_equal(get("/garbage")->error, HTTP_BROKEN);
    assert_int_equal(get("/close")->error, HTTP_BROKEN);
    assert_int_equal(get("/short")->error, HTTP_BROKEN);
    assert_true(strlen(got.res.message) > 0);
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", server.port);
    assert_int_equal(
        ask((struct http_request){.url = url, .allow_private = true, .timeout = DUR_S(5)})->error,
        HTTP_TLS);
}

static void never(void *arg, const struct http_result *res)
{
    (void)arg;
    (void)res;
    fail_msg("a cancelled request completed");
}

struct canceller {
    struct timer timer;
    struct http_call *calls[3];
};

static void cancel_all(struct timer *t)
{
    struct canceller *c = (struct canceller *)t;
    for (size_t i = 0; i < ARRAY_LEN(c->calls); i++)
        http_cancel(c->calls[i]);
    loop_stop(loop);
}

static void cancelling_is_quick(void **state)
{
    (void)state;
    struct canceller c = {.timer.on_time = cancel_all};
    static const char *const paths[] = {"/silent", "/endless", "/drip"};
    struct boot from = clock_boot();
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct http_request req = {
            .url = at(paths[i]), .allow_private = true, .max_body = (size_t)1 << 40};
        assert_int_equal(http_start(http, &req, never, NULL, &c.calls[i], NULL), 0);
    }
    loop_timer_set(loop, &c.timer, DUR_MS(50));
    assert_int_equal(loop_run(loop, NULL), 0);
    struct http_request req = {.url = "http://no-such-host-either.invalid/"};
    struct http_call *resolving;
    assert_int_equal(http_start(http, &req, never, NULL, &resolving, NULL), 0);
    http_cancel(resolving);
    assert_true(clock_boot().us - from.us < 3000000);
    assert_int_equal(get("/ok")->status, 200);
}

static void many_at_once(void **state)
{
    (void)state;
    got = (struct outcome){.want = 50};
    struct http_request req = {.url = at("/ok"), .allow_private = true};
    for (int i = 0; i < 50; i++)
        assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(got.calls, 50);
    assert_int_equal(got.res.status, 200);
}

static void again(void *arg, const struct http_result *res)
{
    int *left = arg;
    assert_int_equal(res->status, 200);
    struct http_request req = {.url = at("/ok"), .allow_private = true};
    if (--*left)
        assert_int_equal(http_start(http, &req, again, left, NULL, NULL), 0);
    else
        loop_stop(loop);
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

static void a_completion_may_start_the_next(void **state)
{
    (void)state;
    int left = 5;
    struct http_request req = {.url = at("/ok"), .allow_private = true};
    assert_int_equal(http_start(http, &req, again, &left, NULL, NULL), 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(left, 0);
}

static void freeing_cancels(void **state)
{
    (void)state;
    struct http *other;
    assert_int_equal(http_new(loop, NULL, &other, NULL), 0);
    struct http_request req = {.url = at("/silent"), .allow_private = true};
    for (int i = 0; i < 3; i++)
        assert_int_equal(http_start(other, &req, never, NULL, NULL, NULL), 0);
    get("/ok"); /* the others are under way meanwhile */
    http_free(other);
}

/* ---- TLS: openssl's own server, with a certificate made here ---- */

static struct tls {
    char folder[64], cert[96], key[96];
    int port;
    pid_t pid;
} tls;

static bool tls_start(void)
{
    char command[600];
    snprintf(tls.folder, sizeof(tls.folder), "%s/tls-XXXXXX", getenv("TMPDIR") ? "." : "/tmp");
    if (getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40)
        snprintf(tls.folder, sizeof(tls.folder), "%s/tls-XXXXXX", getenv("TMPDIR"));
    if (!mkdtemp(tls.folder))
        return false;
    snprintf(tls.cert, sizeof(tls.cert), "%s/cert", tls.folder);
    snprintf(tls.key, sizeof(tls.key), "%s/key", tls.folder);
    snprintf(command, sizeof(command),
             "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
             "subjectAltName=DNS:localhost -keyout %s -out %s 2>/dev/null",
             tls.key, tls.cert);
    if (system(command) != 0)
        return false;
    close(listen_on_loopback(&tls.port));
    char port[32];
    snprintf(port, sizeof(port), "127.0.0.1:%d", tls.port);
    tls.pid = fork();
    if (tls.pid == 0) {
        (void)!freopen("/dev/null", "w", stdout);
        (void)!freopen("/dev/null", "w", stderr);
        execlp("openssl", "openssl", "s_server", "-www", "-accept", port, "-cert", tls.cert, "-key",
               tls.key, (char *)NULL);
        _exit(127);
    }
    return true;
}

static void tls_stop(void)
{
    char command[160];
    kill(tls.pid, SIGKILL);
    waitpid(tls.pid, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf %s", tls.folder);
    (void)!system(command);
}

static void certificates_are_verified(void **state)
{
    (void)state;
    char url[64];
    if (!tls_start())
        skip();
    snprintf(url, sizeof(url), "https://localhost:%d/", tls.port);
    struct http_request req = {.url = url, .allow_private = true, .timeout = DUR_S(5)};
    const struct http_result *r = ask(req);
    for (int i = 0; i < 100 && r->error == HTTP_CONNECT; i++) { /* until it listens */
        poll(NULL, 0, 50);
        r = ask(req);
    }
    assert_int_equal(r->error, HTTP_TLS); /* nobody vouches for it */
    struct http *usual = http;
    const struct http_options o = {.ca_file = tls.cert};
    assert_int_equal(http_new(loop, &o, &http, NULL), 0);
    r = ask(req);
    assert_int_equal(r->error, HTTP_OK);
    assert_int_equal(r->status, 200);
    assert_true(r->secured.us > 0);
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", tls.port);
    assert_int_equal(ask(req)->error, HTTP_TLS); /* not its name */
    http_free(http);
    http = usual;
    tls_stop();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    server.fd = listen_on_loopback(&server.port);
    pthread_t t;
    pthread_create(&t, NULL, serve, NULL);
    pthread_detach(t);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
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
        TEST(bodies_are_bounded),
        TEST(slowness_has_an_end),
        TEST(failures_have_names),
        TEST(cancelling_is_quick),
        TEST(many_at_once),
        TEST(signatures_are_as_others_make_them),
        TEST(a_completion_may_start_the_next),
        TEST(freeing_cancels),
        TEST(certificates_are_verified),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 200 && atomic_load(&server.open); i++) /* threads end with their clients */
        poll(NULL, 0, 10);
    return failed;
}
