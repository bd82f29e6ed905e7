#include "site.h"

#include "fd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

const char *const HOST = "127.0.0.1", *const OTHER = "127.0.0.2";

static struct loop *loop;
static void (*answered)(void);

enum { PAGES_MAX = 64, ANSWERS_MAX = 4 };
static struct page_of {
    char path[64];
    struct str answers[ANSWERS_MAX];
    int n, hits;
    enum page_then then;
    struct str request;
} pages[PAGES_MAX];
static size_t n_pages;

struct listener {
    struct watch watch;
    int port;
};
static struct listener listeners[2];

struct conn {
    struct watch watch;
    struct str in, out;
    size_t sent;
    bool holding, closing, resetting;
    struct conn *next;
};
static struct conn *conns;

/* ---- pages ---- */

static struct page_of *find_page(const char *path)
{
    for (size_t i = 0; i < n_pages; i++)
        if (!strcmp(pages[i].path, path))
            return &pages[i];
    return NULL;
}

static struct page_of *new_page(const char *path)
{
    struct page_of *p = find_page(path);
    if (!p) {
        assert_true(n_pages < PAGES_MAX);
        p = &pages[n_pages++];
        *p = (struct page_of){.request = STR_INIT(1 << 20)};
        snprintf(p->path, sizeof(p->path), "%s", path);
    }
    for (int i = 0; i < p->n; i++)
        str_done(&p->answers[i]);
    p->n = 0;
    p->then = THEN_KEEP;
    return p;
}

static void add_filled(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (text[0] == '%' && text[1] == 'H')
            str_addf(out, "%s:%d", HOST, listeners[0].port);
        else if (text[0] == '%' && text[1] == 'O')
            str_addf(out, "%s:%d", OTHER, listeners[1].port);
        else {
            str_addc(out, *text);
            continue;
        }
        text++;
    }
}

void page_next(const char *path, const char *answer)
{
    struct page_of *p = find_page(path);
    assert_true(p && p->n < ANSWERS_MAX);
    p->answers[p->n] = STR_INIT(STR_OUTPUT);
    add_filled(&p->answers[p->n++], answer);
}

void page_then(const char *path, const char *answer, enum page_then then)
{
    struct page_of *p = new_page(path);
    p->then = then;
    page_next(path, answer);
}

void page(const char *path, const char *answer)
{
    page_then(path, answer, THEN_KEEP);
}

void page_body(const char *path, const char *status, const char *headers, struct sv body)
{
    struct page_of *p = new_page(path);
    struct str *s = &p->answers[p->n++];
    *s = STR_INIT(STR_OUTPUT);
    str_addf(s, "HTTP/1.1 %s\r\n", status);
    add_filled(s, headers);
    str_addf(s, "Content-Length: %zu\r\n\r\n", body.n);
    str_add(s, body);
}

int hits(const char *path)
{
    struct page_of *p = find_page(path);
    return p ? p->hits : 0;
}

const char *asked(const char *path)
{
    struct page_of *p = find_page(path);
    return p ? str_cstr(&p->request) : "";
}

static const char *url_of(const char *host, int port, const char *path)
{
    static char urls[8][256];
    static int next;
    char *url = urls[next++ % 8];
    snprintf(url, sizeof(urls[0]), "http://%s:%d%s", host, port, path);
    return url;
}

const char *at(const char *path)
{
    return url_of(HOST, listeners[0].port, path);
}

const char *at_other(const char *path)
{
    return url_of(OTHER, listeners[1].port, path);
}

/* ---- the server ---- */

static void hang_up(struct conn *c)
{
    struct conn **at_ = &conns;
    while (*at_ != c)
        at_ = &(*at_)->next;
    *at_ = c->next;
    if (c->resetting) {
        struct linger l = {.l_onoff = 1};
        setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    }
    loop_unwatch(loop, &c->watch);
    close(c->watch.fd);
    str_done(&c->in);
    str_done(&c->out);
    free(c);
}

static void answer(struct conn *c)
{
    char path[64] = "";
    const char *none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    sscanf(str_cstr(&c->in), "%*s %63[^ ?]", path);
    struct page_of *p = find_page(path);
    if (!p) {
        p = new_page(path);
        page_next(path, none);
    }
    const struct str *s = &p->answers[p->hits < p->n ? p->hits : p->n - 1];
    p->hits++;
    str_clear(&p->request);
    str_add(&p->request, str_sv(&c->in));
    str_clear(&c->in);
    str_add(&c->out, str_sv(s));
    c->holding = p->then == THEN_HOLD;
    c->closing = p->then == THEN_CLOSE || p->then == THEN_RESET;
    c->resetting = p->then == THEN_RESET;
    answered();
}

/* False: it is gone. */
static bool send_more(struct conn *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(c->watch.fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    bool all = c->sent == c->out.len;
    if (all && c->closing) {
        hang_up(c);
        return false;
    }
    if (all) {
        str_clear(&c->out);
        c->sent = 0;
    }
    (void)!loop_watch(loop, &c->watch, all ? EPOLLIN : EPOLLIN | EPOLLOUT, NULL);
    return true;
}

static bool whole(const struct str *request)
{
    const char *text = str_cstr(request), *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "Content-Length: ");
    size_t body = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
    return end && request->len >= (size_t)(end + 4 - text) + body;
}

static void on_conn(struct watch *w, uint32_t events)
{
    struct conn *c = (struct conn *)w;
    char buf[4096];
    if (events & EPOLLOUT && !send_more(c))
        return;
    ssize_t n = recv(w->fd, buf, sizeof(buf), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        hang_up(c);
        return;
    }
    if (n < 0)
        return;
    str_add(&c->in, sv_make(buf, (size_t)n));
    if (!c->holding && whole(&c->in)) {
        answer(c);
        send_more(c);
    }
}

static void on_accept(struct watch *w, uint32_t events)
{
    (void)events;
    int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct conn *c = mem_zalloc(1, sizeof(*c));
    c->watch = (struct watch){.fd = fd, .on_event = on_conn};
    c->in = STR_INIT(STR_OUTPUT);
    c->out = STR_INIT(STR_OUTPUT);
    c->next = conns;
    conns = c;
    assert_int_equal(loop_watch(loop, &c->watch, EPOLLIN, NULL), 0);
}

static void listen_at(struct listener *l, const char *address)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *l = (struct listener){.watch = {.fd = fd, .on_event = on_accept}, .port = ntohs(a.sin_port)};
    assert_int_equal(loop_watch(loop, &l->watch, EPOLLIN, NULL), 0);
}

void site_begin(struct loop *l, void (*on_answer)(void))
{
    loop = l;
    answered = on_answer;
    listen_at(&listeners[0], HOST);
    listen_at(&listeners[1], OTHER);
}

void site_end(void)
{
    while (conns)
        hang_up(conns);
    for (size_t i = 0; i < ARRAY_LEN(listeners); i++) {
        loop_unwatch(loop, &listeners[i].watch);
        close(listeners[i].watch.fd);
    }
    for (size_t i = 0; i < n_pages; i++) {
        new_page(pages[i].path);
        str_done(&pages[i].request);
    }
    n_pages = 0;
}

void site_forget_hits(void)
{
    for (size_t i = 0; i < n_pages; i++)
        pages[i].hits = 0;
}
