#include "client.h"

#include "json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

struct fetchserver server;
struct loop *loop;
struct http *http;
struct outcome got;

int client_begin(void **state)
{
    (void)state;
    got.body = STR_INIT(4 << 20);
    int rc = loop_new(&loop, NULL);
    return rc ? rc : http_new(loop, NULL, &http, NULL);
}

int client_end(void **state)
{
    (void)state;
    http_free(http);
    loop_free(loop);
    str_done(&got.body);
    return 0;
}

void client_again(const struct http_options *o)
{
    http_free(http);
    assert_int_equal(http_new(loop, o, &http, NULL), 0);
}

const char *at_port(const char *scheme, const char *port, const char *path)
{
    static char urls[4][512];
    static int next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof(urls[0]), "%s://%s:%d%s", scheme,
             strcmp(scheme, "https") == 0 ? "localhost" : "127.0.0.1",
             fetchserver_port(&server, port), path);
    return url;
}

const char *at(const char *path)
{
    return at_port("http", "http", path);
}

void done(void *arg, const struct http_result *res)
{
    struct outcome *o = arg;
    o->res = *res;
    o->of[res->error]++;
    snprintf(o->version, sizeof(o->version), "%s", res->version);
    snprintf(o->coding, sizeof(o->coding), SV_FMT,
             SV_ARG(http_result_header(res, "content-encoding")));
    if (res->body.n) {
        str_clear(&o->body);
        str_add(&o->body, res->body);
    }
    if (++o->calls >= o->want)
        loop_stop(loop);
}

static void clear(int want)
{
    struct str kept = got.body;
    str_clear(&kept);
    got = (struct outcome){.want = want, .body = kept};
}

const struct http_result *ask(struct http_request req)
{
    clear(1);
    req.allow_private = true;
    assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), 0);
    assert_int_equal(got.calls, 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(got.calls, 1);
    return &got.res;
}

const struct http_result *get(const char *path)
{
    return ask((struct http_request){.url = at(path), .timeout = DUR_S(20)});
}

void get_many(const char *url, int n)
{
    /* Waiting for a stream of a connection counts as connecting. */
    struct http_request req = {
        .url = url, .connect_timeout = DUR_S(60), .timeout = DUR_S(60), .allow_private = true};
    clear(n);
    for (int i = 0; i < n; i++)
        assert_int_equal(http_start(http, &req, done, &got, NULL, NULL), 0);
    assert_int_equal(loop_run(loop, NULL), 0);
    assert_int_equal(got.calls, n);
}

int64_t server_count(const char *what)
{
    AUTO_JSON struct json doc = {0};
    int64_t n = -1;
    get("/__stats");
    assert_int_equal(json_parse(&doc, str_sv(&got.body), NULL), 0);
    assert_int_equal(json_i64(&doc, json_member(&doc, 0, sv_of(what)), 0, INT64_MAX, &n), 0);
    return n;
}

long rss_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
