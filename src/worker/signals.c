/* Everything that ends a worker from outside: signals, the stop timer, limits on time and jobs. */
#include "worker_internal.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void stop_now(struct worker *w)
{
    w->stopping = STOP_NOW;
    store_thread_ending(&w->store);
    slots_give_back(w, DUR_US(0));
    runs_cancel_all(w, CANCEL_SHUTDOWN);
    worker_soon(w);
}

static void on_stop_timeout(struct timer *t)
{
    stop_now(OWNER(t, struct worker, stop));
}

static void on_stop_after(struct timer *t)
{
    stop_claiming(OWNER(t, struct worker, after));
}

void stop_claiming(struct worker *w)
{
    if (w->stopping != GO_ON)
        return;
    w->stopping = STOP_CLAIMING;
    store_thread_ending(&w->store);
    service_stopping(w);
    slots_give_back(w, DUR_US(0));
    loop_timer_set(w->loop, &w->stop, w->o->config->worker_stop_timeout);
    worker_soon(w);
}

/* A guest that says soon lets running jobs take their time. */
void stop_as(struct worker *w, enum worker_verdict verdict)
{
    if (verdict == WORKER_STOP_NOW && w->stopping != STOP_NOW) {
        stop_now(w);
    } else if (verdict == WORKER_STOP_SOON && w->stopping == GO_ON) {
        stop_claiming(w);
        loop_timer_clear(w->loop, &w->stop);
    }
}

/* timeout(1) and some supervisors signal the process and then its group: the same request twice. */
#define SAME_REQUEST DUR_MS(100)

/* For handlers a second cancel means no grace. */
static void stop_at_once(struct worker *w)
{
    store_thread_hurry(&w->store);
    if (w->stopping != STOP_NOW)
        stop_now(w);
    runs_cancel_all(w, CANCEL_SHUTDOWN);
}

void stop_asked(struct worker *w)
{
    int asked = w->o->stop ? atomic_load(w->o->stop) : 0;
    if (asked == w->stops)
        return;
    LOG(&w->log, LOG_INFO, "stop_asked", LOG_I("running", (int64_t)w->n_running));
    w->stops = asked;
    if (asked == 1)
        stop_claiming(w);
    else
        stop_at_once(w);
}

/* First: running jobs may end. Second: at once. */
static void on_ending_signal(struct worker *w, int signo)
{
    bool first = w->report.signal == 0;
    struct boot now = clock_boot();
    if (!first && now.us - w->signalled.us < SAME_REQUEST.us)
        return;
    LOG(&w->log, LOG_INFO, "signal", LOG_I("signal", signo),
        LOG_I("running", (int64_t)w->n_running));
    w->report.signal = signo;
    w->signalled = now;
    if (first)
        stop_claiming(w);
    else
        stop_at_once(w);
}

static void on_signal(struct watch *watch, uint32_t events)
{
    struct worker *w = OWNER(watch, struct worker, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM) /* SIGHUP never ends a worker */
            on_ending_signal(w, (int)info.ssi_signo);
}

int signals_init(struct worker *w, struct pawl_err *err)
{
    w->stop.on_time = on_stop_timeout;
    w->after.on_time = on_stop_after;
    if (w->o->stop_after.us > 0)
        loop_timer_set(w->loop, &w->after, w->o->stop_after);
    w->signals = (struct watch){.fd = -1, .on_event = on_signal};
    if (sigisemptyset(&w->o->signals))
        return 0;
    int fd = signalfd(-1, &w->o->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_set(err, PAWL_EIO, "cannot watch for signals");
    w->signals.fd = fd;
    return loop_watch(w->loop, &w->signals, EPOLLIN, err);
}

void signals_done(struct worker *w)
{
    loop_timer_clear(w->loop, &w->stop);
    loop_timer_clear(w->loop, &w->after);
    loop_unwatch(w->loop, &w->signals);
    if (w->signals.fd >= 0)
        close(w->signals.fd);
}
