#include "loop.h"

#include "mem.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MAX_EVENTS = 64 };

struct loop {
    int epoll_fd, timer_fd, wake_fd;
    bool stopping;
    struct boot now;
    struct timer **heap; /* earliest first */
    size_t n, cap;
    struct boot armed; /* what timer_fd is set to; 0 = off */
    void (*on_wake)(void *arg);
    void *wake_arg;
    struct epoll_event events[MAX_EVENTS]; /* of this turn; cleared entries were unwatched */
    int n_events;
};

static int add_fd(struct loop *l, int fd, void *tag, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = tag};
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

int loop_new(struct loop **out, struct pawl_err *err)
{
    struct loop *l = mem_zalloc(1, sizeof(*l));
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->now = clock_boot();
    if (l->epoll_fd < 0 || l->timer_fd < 0 || l->wake_fd < 0 ||
        add_fd(l, l->timer_fd, &l->timer_fd, EPOLLIN) < 0 ||
        add_fd(l, l->wake_fd, &l->wake_fd, EPOLLIN) < 0) {
        int e = errno;
        loop_free(l);
        return err_errno(err, PAWL_EIO, e, "cannot create an event loop");
    }
    *out = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    int fds[] = {l->epoll_fd, l->timer_fd, l->wake_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(l->heap);
    free(l);
}

static void place(struct loop *l, size_t i, struct timer *t)
{
    l->heap[i] = t;
    t->slot = i + 1;
}

static void sift_up(struct loop *l, size_t i, struct timer *t)
{
    while (i && l->heap[(i - 1) / 2]->at.us > t->at.us) {
        place(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(l, i, t);
}

static void sift_down(struct loop *l, size_t i, struct timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->n)
            break;
        if (child + 1 < l->n && l->heap[child + 1]->at.us < l->heap[child]->at.us)
            child++;
        if (l->heap[child]->at.us >= t->at.us)
            break;
        place(l, i, l->heap[child]);
        i = child;
    }
    place(l, i, t);
}

void loop_timer_clear(struct loop *l, struct timer *t)
{
    if (!t->slot)
        return;
    size_t i = t->slot - 1;
    t->slot = 0;
    struct timer *last = l->heap[--l->n];
    if (last == t)
        return;
    if (i && l->heap[(i - 1) / 2]->at.us > last->at.us)
        sift_up(l, i, last);
    else
        sift_down(l, i, last);
}

void loop_timer_set(struct loop *l, struct timer *t, struct dur from_now)
{
    loop_timer_clear(l, t);
    t->at.us = clock_boot().us + (from_now.us > 0 ? from_now.us : 0);
    ARRAY_GROW(l->heap, l->n, l->cap);
    l->n++;
    sift_up(l, l->n - 1, t);
}

static void run_timers(struct loop *l)
{
    while (l->n && l->heap[0]->at.us <= l->now.us && !l->stopping) {
        struct timer *t = l->heap[0];
        loop_timer_clear(l, t);
        t->on_time(t);
    }
}

static void arm_timer(struct loop *l)
{
    struct boot at = l->n ? l->heap[0]->at : (struct boot){0};
    if (at.us == l->armed.us)
        return;
    struct itimerspec spec = {
        .it_value = {.tv_sec = at.us / 1000000, .tv_nsec = at.us % 1000000 * 1000}};
    timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    l->armed = at;
}

int loop_watch(struct loop *l, struct watch *w, uint32_t events, struct pawl_err *err)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    int op = w->active ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(l->epoll_fd, op, w->fd, &ev) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot watch descriptor %d", w->fd);
    w->active = true;
    return 0;
}

void loop_unwatch(struct loop *l, struct watch *w)
{
    if (!w->active)
        return;
    w->active = false;
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    for (int i = 0; i < l->n_events; i++) /* it may be freed before its turn comes */
        if (l->events[i].data.ptr == w)
            l->events[i].data.ptr = NULL;
}

void loop_on_wake(struct loop *l, void (*on_wake)(void *arg), void *arg)
{
    l->on_wake = on_wake;
    l->wake_arg = arg;
}

void loop_wake(struct loop *l)
{
    uint64_t one = 1;
    (void)!write(l->wake_fd, &one, sizeof(one));
}

static void drain_counter(int fd)
{
    uint64_t n;
    (void)!read(fd, &n, sizeof(n));
}

static void dispatch(struct loop *l, struct epoll_event *ev)
{
    void *tag = ev->data.ptr;
    if (!tag)
        return;
    if (tag == &l->timer_fd) {
        drain_counter(l->timer_fd);
        l->armed.us = 0;
    } else if (tag == &l->wake_fd) {
        drain_counter(l->wake_fd);
        if (l->on_wake)
            l->on_wake(l->wake_arg);
    } else {
        struct watch *w = tag;
        w->on_event(w, ev->events);
    }
}

int loop_run(struct loop *l, struct pawl_err *err)
{
    l->stopping = false;
    while (!l->stopping) {
        l->now = clock_boot();
        run_timers(l);
        if (l->stopping)
            break;
        arm_timer(l);
        l->n_events = epoll_wait(l->epoll_fd, l->events, MAX_EVENTS, -1);
        if (l->n_events < 0 && errno != EINTR)
            return err_errno(err, PAWL_EIO, errno, "cannot wait for events");
        l->now = clock_boot();
        for (int i = 0; i < l->n_events && !l->stopping; i++)
            dispatch(l, &l->events[i]);
        l->n_events = 0;
    }
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stopping = true;
}

struct boot loop_now(const struct loop *l)
{
    return l->now;
}
