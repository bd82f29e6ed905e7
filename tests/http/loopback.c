#include "loopback.h"

#include "fd.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct server server;
struct loop *loop;
struct http *http;
struct outcome got;

/* ---- the server ---- */

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
        {"/hangup ", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye"},
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

int listen_on_loopback(int *port)
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

void server_start(void)
{
    signal(SIGPIPE, SIG_IGN);
    server.fd = listen_on_loopback(&server.port);
    pthread_t t;
    pthread_create(&t, NULL, serve, NULL);
    pthread_detach(t);
}

void server_wait(void)
{
    for (int i = 0; i < 200 && atomic_load(&server.open); i++)
        poll(NULL, 0, 10);
}

/* ---- the client ---- */

static void copy(char *to, size_t n, struct sv s)
{
    snprintf(to, n, SV_FMT, SV_ARG(s));
}

void done(void *arg, const struct http_result *res)
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

const char *at(const char *path)
{
    static char url[256];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", server.port, path);
    return url;
}

struct http_result *ask(struct http_request req)
{
    got = (struct outcome){.want = 1};
    assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), 0);
    assert_int_equal(got.calls, 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(got.calls, 1);
    return &got.res;
}

struct http_result *get(const char *path)
{
    return ask((struct http_request){.url = at(path), .allow_private = true});
}

int begin(void **state)
{
    (void)state;
    int rc = loop_new(&loop, NULL);
    return rc ? rc : http_new(loop, NULL, &http, NULL);
}

int end(void **state)
{
    (void)state;
    http_free(http);
    loop_free(loop);
    return 0;
}
