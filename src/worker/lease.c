/* The session as the loop sees it: a new one, its loss, and what renewals bring. */
#include "worker_internal.h"

static void watch_deadline(struct worker *w)
{
    struct dur left = {atomic_load(&w->renew.deadline) - clock_boot().us};
    loop_timer_set(w->loop, &w->lease, left);
}

/* The renew thread may be stuck in the store, or the machine was suspended: the loop looks at the
 * deadline by itself. I5 */
static void on_deadline(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, lease);
    if (!w->session.id.v || w->lost)
        return;
    if (clock_boot().us >= atomic_load(&w->renew.deadline))
        lease_lost(w);
    else
        watch_deadline(w);
}

void lease_init(struct worker *w)
{
    w->lease.on_time = on_deadline;
}

void lease_lost(struct worker *w)
{
    if (w->lost || !w->session.id.v)
        return;
    w->lost = true;
    loop_timer_clear(w->loop, &w->lease);
    LOG(&w->log, LOG_WARN, "lease_lost", LOG_I("session", w->session.id.v),
        LOG_I("running", (int64_t)w->n_running));
    metric_add(&w->metrics, METRIC_lease_lost, (int64_t)w->n_ready);
    slots_drop(w);
    runs_drop_all(w);
    lease_dropped(w);
}

/* Only when nothing of the old session runs any more may its jobs be given back. I2 */
void lease_dropped(struct worker *w)
{
    if (!w->lost || w->n_running || !w->session.id.v)
        return;
    w->session.id.v = 0;
    if (!w->broken)
        renew_thread_restart(&w->renew);
}

static void begin(struct worker *w, const struct session *s)
{
    w->session = *s;
    w->lost = false;
    watch_deadline(w);
    slots_wet(w);
    preflight_tell(w);
    w->sweep_due = true;
    if (w->o->on_session)
        w->o->on_session(w->o->on_arg, &w->session);
    service_ready(w);
    LOG(&w->log, LOG_DEBUG, "session", LOG_I("session", s->id.v));
}

static void obey(struct worker *w, enum worker_command c)
{
    LOG(&w->log, LOG_INFO, "asked", LOG_S("command", sv_of(worker_command_name(c))));
    switch (c) {
    case COMMAND_PAUSE:
        w->paused = true;
        break;
    case COMMAND_RESUME:
        w->paused = false;
        slots_wet(w);
        break;
    case COMMAND_DRAIN:
        w->paused = false;
        w->draining = w->look_due = true;
        slots_wet(w);
        break;
    case COMMAND_STOP:
        stop_claiming(w);
        break;
    case COMMAND_NONE:
        break;
    }
}

static void cancel_asked(struct worker *w, const job_id *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!runs_cancel(w, ids[i]))
            slots_cancel(w, ids[i]);
}

void lease_metrics(struct worker *w)
{
    int64_t values[N_METRICS];
    if (!w->o->on_metrics)
        return;
    for (int i = 0; i < N_METRICS; i++)
        values[i] = atomic_load_explicit(&w->metrics.v[i], memory_order_relaxed);
    w->o->on_metrics(w->o->on_arg, values);
}

void lease_news(struct worker *w)
{
    struct renew_news news = renew_thread_news(&w->renew);
    if (news.renewed)
        lease_metrics(w);
    if (news.new_session)
        begin(w, &news.session);
    if (news.lost)
        lease_lost(w);
    if (news.command != COMMAND_NONE && news.command != w->obeyed)
        obey(w, news.command);
    if (news.command != COMMAND_NONE)
        w->obeyed = news.command;
    cancel_asked(w, news.cancels, news.n_cancels);
    free(news.cancels);
    for (size_t i = 0; i < news.n_revoked; i++)
        if (!runs_revoke(w, news.revoked[i]))
            slots_revoke(w, news.revoked[i]);
    free(news.revoked);
    if (news.rc < 0)
        worker_break(w, &news.err);
}
