/* The service manager's view. The beat comes from the loop, so a loop that hangs is silent; and it
 * is sent only while the lease is good, so a renew thread that hangs, or a store that does not
 * answer for a whole lease, is silence too. What then kills the worker costs nothing more than the
 * lost lease already has: its jobs are others' by then. */
#include "worker_internal.h"

#include <stdio.h>

#define STATUS_PERIOD DUR_S(10)

static bool told(const struct worker *w)
{
    return w->o->notify && w->o->notify->fd >= 0;
}

static bool lease_good(const struct worker *w)
{
    return w->session.id.v && !w->lost && clock_boot().us < atomic_load(&w->renew.deadline);
}

static void tell(struct worker *w, const char *lead)
{
    const struct worker_report *r = &w->report;
    char lines[256];
    snprintf(lines, sizeof(lines), "%sSTATUS=%s%zu running, %lld done, %lld failed, %lld retried",
             lead,
             w->stopping != GO_ON ? "stopping: "
             : w->paused          ? "paused: "
                                  : "",
             w->n_running, (long long)(r->done + r->skipped), (long long)r->failed,
             (long long)r->retried);
    notify_send(w->o->notify, lines);
}

/* Stopping counts as alive: jobs may take worker.stop_timeout to end. */
static void on_beat(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, service.beat);
    struct dur beat = w->o->notify->beat;
    bool alive = beat.us && lease_good(w);
    tell(w, alive ? "WATCHDOG=1\n" : "");
    loop_timer_set(w->loop, t, beat.us ? beat : STATUS_PERIOD);
}

void service_init(struct worker *w)
{
    w->service.beat.on_time = on_beat;
}

void service_done(struct worker *w)
{
    loop_timer_clear(w->loop, &w->service.beat);
}

void service_ready(struct worker *w)
{
    if (w->service.ready || !told(w))
        return;
    w->service.ready = true;
    tell(w, "READY=1\n");
    on_beat(&w->service.beat);
}

void service_stopping(struct worker *w)
{
    if (told(w))
        tell(w, "STOPPING=1\n");
}
