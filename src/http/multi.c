/* libcurl's multi handle on the loop: it says which sockets to watch and when to call it again. It
 * is never called from inside its own callbacks; a timer of 0 waits for the loop's next turn. */
#include "http_internal.h"

#include "mem.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A socket of libcurl's. One that was opened here is watched until it is closed, also while it lies
 * idle: libcurl wants the same of it for every request, and each change would be a system call. */
struct sock {
    struct watch watch;
    struct multi *multi;
    uint32_t events; /* it is watched for */
    bool wanted;     /* libcurl waits for them */
    bool closes;     /* multi_closing() will tell of its end */
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket);
static int on_timer(CURLM *curl, long ms, void *arg);
static void on_time(struct timer *t);

/* libcurl counts connections in use with those that wait, and closes one for each that comes free
 * beyond the number. Left to itself it would take four times the transfers of the moment and drop
 * warm connections whenever these dip. Nothing else is bounded here: what waited in libcurl's own
 * queue would do so on its time limits. */
static void keep_idle(struct multi *m)
{
    curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, m->http->idle + m->n_calls);
}

static int open_multi(struct multi *m)
{
    m->curl = curl_multi_init();
    if (!m->curl)
        return -1;
    curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
    curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
    curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    keep_idle(m);
    return 0;
}

int multi_init(struct multi *m, struct http *h, struct pawl_err *err)
{
    m->http = h;
    m->timer.on_time = on_time;
    return open_multi(m) == 0 ? 0 : err_set(err, PAWL_EINTERNAL, "cannot set up libcurl");
}

void multi_done(struct multi *m)
{
    if (m->curl)
        curl_multi_cleanup(m->curl); /* gives its sockets back by on_socket() */
    if (m->http)
        loop_timer_clear(m->http->loop, &m->timer);
    m->curl = NULL;
    free(m->socks);
}

static struct http_call *call_in(const struct multi *m, const CURLM *curl)
{
    struct http_call *c = m->calls;
    while (c && c->curl != curl)
        c = c->next;
    return c;
}

/* After an error libcurl vouches for none of the transfers: all fail, and a new handle takes what
 * their completions may start. */
static void give_up(struct multi *m)
{
    CURLM *old = m->curl;
    loop_timer_clear(m->http->loop, &m->timer);
    if (open_multi(m) < 0)
        abort(); /* no memory */
    for (struct http_call *c; (c = call_in(m, old));)
        call_finish(c, CURLE_FAILED_INIT);
    curl_multi_cleanup(old);
}

static void complete(struct multi *m)
{
    int left;
    for (CURLMsg *msg; (msg = curl_multi_info_read(m->curl, &left));) {
        struct http_call *c = NULL;
        CURLcode code = msg->data.result;
        if (msg->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&c);
        call_finish(c, code);
    }
}

static void act(struct multi *m, curl_socket_t fd, int bits)
{
    int running;
    if (curl_multi_socket_action(m->curl, fd, bits, &running) != CURLM_OK)
        give_up(m);
    else
        complete(m);
}

static void on_time(struct timer *t)
{
    act(OWNER(t, struct multi, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *curl, long ms, void *arg)
{
    struct multi *m = arg;
    if (curl != m->curl) /* one that was given up */
        return 0;
    if (ms < 0)
        loop_timer_clear(m->http->loop, &m->timer);
    else
        loop_timer_set(m->http->loop, &m->timer, DUR_MS(ms));
    return 0;
}

/* ---- sockets ---- */

static struct sock **place_of(struct multi *m, curl_socket_t fd)
{
    size_t i = (size_t)fd;
    if (i >= m->n_socks) {
        size_t n = i + 1 < 64 ? 64 : 2 * (i + 1);
        m->socks = mem_realloc(m->socks, n, sizeof(*m->socks));
        memset(m->socks + m->n_socks, 0, (n - m->n_socks) * sizeof(*m->socks));
        m->n_socks = n;
    }
    return &m->socks[i];
}

static void on_event(struct watch *w, uint32_t events)
{
    struct sock *s = OWNER(w, struct sock, watch);
    int bits = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    if (s->wanted)
        act(s->multi, w->fd, bits);            /* may free s */
    else                                       /* idle, and its peer has gone: */
        loop_unwatch(s->multi->http->loop, w); /* libcurl looks before it uses it again */
}

static struct sock *sock_of(struct multi *m, curl_socket_t fd)
{
    struct sock **at = place_of(m, fd), *s = *at;
    if (s)
        return s;
    s = mem_zalloc(1, sizeof(*s));
    s->watch.fd = fd;
    s->watch.on_event = on_event;
    s->multi = m;
    *at = s;
    return s;
}

static void forget(struct multi *m, curl_socket_t fd)
{
    struct sock **at = place_of(m, fd);
    if (!*at)
        return;
    loop_unwatch(m->http->loop, &(*at)->watch);
    free(*at);
    *at = NULL;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct multi *m = arg;
    struct sock *s = sock_of(m, fd);
    struct pawl_err err;
    (void)easy;
    (void)of_socket;
    s->wanted = what != CURL_POLL_REMOVE;
    if (!s->wanted && !s->closes) {
        forget(m, fd);
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (!s->wanted || (s->watch.active && s->events == events))
        return 0;
    s->events = events;
    return loop_watch(m->http->loop, &s->watch, events, &err) < 0 ? -1 : 0;
}

void multi_opened(struct multi *m, curl_socket_t fd)
{
    forget(m, fd);
    sock_of(m, fd)->closes = true;
}

int multi_closing(void *multi, curl_socket_t fd)
{
    forget(multi, fd);
    return close(fd);
}

/* ---- calls ---- */

int multi_add(struct multi *m, struct http_call *c, struct pawl_err *err)
{
    curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
    CURLMcode code = curl_multi_add_handle(m->curl, c->easy);
    if (code != CURLM_OK)
        return err_set(err, PAWL_EINTERNAL, "libcurl: %s", curl_multi_strerror(code));
    c->multi = m;
    c->curl = m->curl;
    c->next = m->calls;
    if (c->next)
        c->next->prev = c;
    m->calls = c;
    m->n_calls++;
    keep_idle(m);
    return 0;
}

void multi_remove(struct http_call *c)
{
    struct multi *m = c->multi;
    if (!m)
        return;
    curl_multi_remove_handle(c->curl, c->easy);
    if (c->prev)
        c->prev->next = c->next;
    else
        m->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->multi = NULL;
    m->n_calls--;
    keep_idle(m);
}
