/* http: servers that flood, drip, say nothing or break off, many requests at once, requests given
 * up, TLS. */
#include "loopback.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static void stop_loop(struct timer *t)
{
    (void)t;
    loop_stop(loop);
}

/* A connection that its server closes while nobody uses it wakes the loop once, not for ever. */
static void an_idle_connection_may_end(void **state)
{
    (void)state;
    int before = server.connections;
    assert_int_equal(get("/hangup")->error, HTTP_OK);
    struct timespec from, to;
    struct timer rest = {.on_time = stop_loop};
    loop_timer_set(loop, &rest, DUR_S(1));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    assert_int_equal(loop_run(loop, NULL), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    int64_t us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    assert_true(us < 300000);
    assert_int_equal(get("/ok")->error, HTTP_OK);
    assert_int_equal(server.connections, before + 2);
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

/* ---- several, and given up ---- */

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
    server_start();
    const struct CMUnitTest tests[] = {
        TEST(bodies_are_bounded),
        TEST(slowness_has_an_end),
        TEST(an_idle_connection_may_end),
        TEST(failures_have_names),
        TEST(cancelling_is_quick),
        TEST(many_at_once),
        TEST(a_completion_may_start_the_next),
        TEST(freeing_cancels),
        TEST(certificates_are_verified),
    };
    int failed = cmocka_run_group_tests_name("http-trouble", tests, NULL, NULL);
    server_wait();
    return failed;
}
