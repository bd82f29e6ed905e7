/* Hints for idle workers by LISTEN, on a connection of its own. Nothing here waits: whoever watches
 * the descriptor calls pg_wake_clear when it is readable, and that takes the next step. Behind the
 * descriptor are the socket and a timer for the next try; it is the same for the handle's life.
 * The answer to LISTEN makes it readable too, so that after every (re)connection somebody looks for
 * what was missed. */
#include "pg.h"

#include "fd.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#define RETRY_FIRST DUR_MS(100)
#define RETRY_LAST  DUR_S(5)

/* Found by the handle, whose thread may wait for a name server; ours may not. */
struct peer {
    char host[256], address[64], port[16];
};

void pg_listener_follow(struct pg *p)
{
    const char *address = PQhostaddr(p->conn);
    if (p->options.no_notify || !address || !address[0])
        return; /* a socket of this machine has no name to look up */
    struct peer *peer = mem_zalloc(1, sizeof(*peer));
    snprintf(peer->host, sizeof(peer->host), "%s", PQhost(p->conn));
    snprintf(peer->address, sizeof(peer->address), "%s", address);
    snprintf(peer->port, sizeof(peer->port), "%s", PQport(p->conn));
    free(atomic_exchange(&p->listener.met, peer));
}

static void set_timer(struct listener *l, struct dur d)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = d.us / 1000000, .tv_nsec = d.us % 1000000 * 1000}};
    (void)timerfd_settime(l->timer_fd, 0, &t, NULL);
}

/* The socket may be another one than before, even under the same number. */
static bool watch(struct listener *l, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = PQsocket(l->conn)};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, e.data.fd, &e) == 0)
        return true;
    return errno == ENOENT && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, e.data.fd, &e) == 0;
}

static void ignore_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

/* Parameters as the handle's, with its peer in front of the URL's: the last of a key holds. */
static PGconn *start(const struct pg *p)
{
    const struct peer *peer = p->listener.peer;
    size_t n = 0;
    while (p->conn_keys[n])
        n++;
    AUTO_FREE const char **keys = mem_zalloc(n + 4, sizeof(*keys));
    AUTO_FREE const char **values = mem_zalloc(n + 4, sizeof(*values));
    memcpy(keys, p->conn_keys, n * sizeof(*keys));
    memcpy(values, p->conn_values, n * sizeof(*values));
    if (peer) {
        const char *const where[3][2] = {
            {"host", peer->host}, {"hostaddr", peer->address}, {"port", peer->port}};
        for (size_t i = 0; i < ARRAY_LEN(where); i++) {
            keys[n + i] = where[i][0];
            values[n + i] = where[i][1];
        }
    }
    return PQconnectStartParams(keys, values, 0);
}

static void listener_connect(struct pg *p)
{
    struct listener *l = &p->listener;
    struct peer *met = atomic_exchange(&l->met, NULL);
    if (met) {
        free(l->peer);
        l->peer = met;
    }
    l->conn = start(p);
    l->phase = LISTEN_CONNECTING;
    set_timer(l, p->options.timeout);
    if (PQstatus(l->conn) != CONNECTION_BAD && watch(l, EPOLLOUT))
        return;
    l->phase = LISTEN_OFF;
}

static void listener_retry(struct listener *l)
{
    if (l->conn)
        PQfinish(l->conn);
    l->conn = NULL;
    l->phase = LISTEN_OFF;
    set_timer(l, l->pause);
    l->pause.us = l->pause.us * 2 < RETRY_LAST.us ? l->pause.us * 2 : RETRY_LAST.us;
}

/* ---- steps: each true, or the connection is of no use ---- */

static bool ask(struct pg *p)
{
    struct listener *l = &p->listener;
    char sql[80];
    snprintf(sql, sizeof(sql), "LISTEN %s", p->schema);
    PQsetNoticeReceiver(l->conn, ignore_notice, NULL);
    l->phase = LISTEN_ASKING;
    return PQsetnonblocking(l->conn, 1) == 0 && PQsendQuery(l->conn, sql) &&
           watch(l, EPOLLIN | (PQflush(l->conn) == 1 ? EPOLLOUT : 0));
}

static bool step_connecting(struct pg *p)
{
    struct listener *l = &p->listener;
    switch (PQconnectPoll(l->conn)) {
    case PGRES_POLLING_READING:
        return watch(l, EPOLLIN);
    case PGRES_POLLING_WRITING:
        return watch(l, EPOLLOUT);
    case PGRES_POLLING_OK:
        return ask(p);
    default:
        return false;
    }
}

static bool step_asking(struct listener *l)
{
    bool good = PQconsumeInput(l->conn);
    int left = PQflush(l->conn);
    while (good && !PQisBusy(l->conn)) {
        PGresult *r = PQgetResult(l->conn);
        if (!r) {
            l->phase = LISTEN_ON;
            l->pause = RETRY_FIRST;
            set_timer(l, DUR_US(0));
            break;
        }
        good = PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
    }
    return good && left >= 0 && watch(l, EPOLLIN | (left ? EPOLLOUT : 0));
}

static bool step_on(struct listener *l)
{
    bool good = PQconsumeInput(l->conn) && PQstatus(l->conn) == CONNECTION_OK;
    for (PGnotify *n; good && (n = PQnotifies(l->conn));)
        PQfreemem(n);
    return good;
}

static bool step(struct pg *p)
{
    struct listener *l = &p->listener;
    switch (l->phase) {
    case LISTEN_OFF:
        return false;
    case LISTEN_CONNECTING:
        return step_connecting(p);
    case LISTEN_ASKING:
        return step_asking(l);
    case LISTEN_ON:
        return step_on(l);
    }
    return false;
}

/* ---- the interface ---- */

static bool make_fds(struct listener *l)
{
    struct epoll_event e = {.events = EPOLLIN};
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    e.data.fd = l->timer_fd;
    if (l->epoll_fd >= 0 && l->timer_fd >= 0 &&
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->timer_fd, &e) == 0)
        return true;
    fd_closep(&l->epoll_fd);
    fd_closep(&l->timer_fd);
    return false;
}

int pg_wake_fd(struct store *s)
{
    struct pg *p = pg_of(s);
    struct listener *l = &p->listener;
    if (p->options.no_notify)
        return -1;
    if (l->epoll_fd >= 0)
        return l->epoll_fd;
    if (!make_fds(l))
        return -1;
    if (p->conn)
        pg_listener_follow(p);
    l->pause = RETRY_FIRST;
    set_timer(l, DUR_US(1)); /* the first step is taken by the thread that watches */
    return l->epoll_fd;
}

void pg_wake_clear(struct store *s)
{
    struct pg *p = pg_of(s);
    struct listener *l = &p->listener;
    struct epoll_event e[2];
    uint64_t ticks;
    if (l->epoll_fd < 0)
        return;
    int n = epoll_wait(l->epoll_fd, e, 2, 0);
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        bool timer = e[i].data.fd == l->timer_fd;
        if (timer && read(l->timer_fd, &ticks, sizeof(ticks)) < 0)
            continue;
        if (timer && l->phase == LISTEN_OFF)
            listener_connect(p);
        else
            good = !timer && step(p); /* a timer now means: no answer in time */
        good = good && l->phase != LISTEN_OFF;
    }
    if (!good)
        listener_retry(l);
}

void pg_listener_close(struct listener *l)
{
    if (l->conn)
        PQfinish(l->conn);
    l->conn = NULL;
    fd_closep(&l->epoll_fd);
    fd_closep(&l->timer_fd);
    free(atomic_exchange(&l->met, NULL));
    free(l->peer);
    l->peer = NULL;
}
