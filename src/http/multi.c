/* libcurl's multi handle on the loop: it says which sockets to watch and when to call it again. It
 * is never called from inside its own callbacks; a timer of 0 waits for the loop's next turn. */
#include "http_internal.h"

#include "mem.h"
#include <stdlib.h>
#include <sys/epoll.h>

/* A socket of libcurl's, kept for it by curl_multi_assign(). */
struct sock {
    struct watch watch;
    struct multi *multi;
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

static void on_event(struct watch *w, uint32_t events)
{
    struct sock *s = OWNER(w, struct sock, watch);
    int bits = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    act(s->multi, w->fd, bits); /* may free s */
}

static void forget(struct multi *m, struct sock *s)
{
    if (!s)
        return;
    loop_unwatch(m->http->loop, &s->watch);
    free(s);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct multi *m = arg;
    struct sock *s = of_socket;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        forget(m, s);
        return 0;
    }
    if (!s) {
        s = mem_zalloc(1, sizeof(*s));
        s->watch.fd = fd;
        s->watch.on_event = on_event;
        s->multi = m;
        curl_multi_assign(m->curl, fd, s);
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    struct pawl_err err;
    return loop_watch(m->http->loop, &s->watch, events, &err) < 0 ? -1 : 0;
}

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
