/* What happens by time or by a hint from the store rather than by a job: looking again when idle,
 * sweeping, pruning, giving back what waits too long. */
#include "worker_internal.h"

#include "hash.h"
#include <sys/epoll.h>
#include <unistd.h>

#define SWEEP_GAP      DUR_MS(200) /* between sweeps on a hint */
#define SWEEP_GAP_IDLE DUR_MS(500) /* between sweeps of an idle worker */
#define PRUNE_EVERY    DUR_S(60)
#define IDLE_FIRST     DUR_MS(1)
#define LOOK_GAP       DUR_MS(250) /* between looks on a poll */
#define BUSY_MIN_US    2000        /* before another claim where one met others at work, */
#define BUSY_SPAN_US   3000        /* and at random up to this more at first, */
#define BUSY_MAX_US    18000       /* in the end */

static struct dur passed(const struct worker *w, struct boot t)
{
    return (struct dur){loop_now(w->loop).us - t.us};
}

static void set_sooner(struct worker *w, struct timer *t, struct dur d)
{
    if (!t->slot || t->at.us > clock_boot().us + d.us)
        loop_timer_set(w->loop, t, d);
}

/* ---- idle ---- */

static void maybe_prune(struct worker *w)
{
    if (passed(w, w->last_prune).us >= PRUNE_EVERY.us)
        w->prune_due = true;
}

static void on_poll(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, poll);
    slots_wet(w);
    if (worker_idle(w) && passed(w, w->last_sweep).us >= SWEEP_GAP_IDLE.us)
        w->sweep_due = true; /* I4: jobs of a killed worker within a second */
    if (worker_idle(w))
        maybe_prune(w);
    if (w->draining && passed(w, w->last_look).us >= LOOK_GAP.us) {
        w->look_due = true;
        w->last_look = loop_now(w->loop);
    }
    worker_soon(w);
}

static void on_prune_time(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, prune_timer);
    w->prune_due = true;
    worker_soon(w);
}

/* Idle: at once. Busy: it takes a tenth of the store thread's time. */
static void prune_on(struct worker *w, const struct turn *t)
{
    if (!t->prune_more || w->stopping != GO_ON)
        return;
    if (worker_idle(w))
        w->prune_due = true;
    else
        set_sooner(w, &w->prune_timer, DUR_US(10 * t->prune_took.us));
}

/* next_due counts every queue, also what this worker may not take: look no more often than that
 * proves fruitful. */
static struct dur due(struct worker *w, struct dur next)
{
    if (next.us >= w->idle_delay.us)
        return next;
    struct dur d = w->idle_delay;
    if (w->idle_delay.us < w->o->config->worker_poll_interval.us)
        w->idle_delay.us *= 2;
    return d;
}

/* Others were at work where this claim wanted to look: apart from them, and soon; later if that
 * goes on. */
static struct dur busy_pause(struct worker *w)
{
    struct dur d = {BUSY_MIN_US + (int64_t)rand_below((uint64_t)w->busy_us)};
    w->busy_us = w->busy_us * 2 < BUSY_MAX_US ? w->busy_us * 2 : BUSY_MAX_US;
    return d;
}

static bool any_dry(const struct worker *w)
{
    for (size_t i = 0; i < w->n_pools; i++)
        if (w->pools[i].dry)
            return true;
    return false;
}

static void plan_next_look(struct worker *w, const struct turn *t, size_t claimed)
{
    if (claimed)
        w->idle_delay = IDLE_FIRST;
    if (any_dry(w) || w->draining)
        set_sooner(w, &w->poll, w->o->config->worker_poll_interval);
    if (t->want && (!claimed || any_dry(w)) && t->next_due.us >= 0)
        set_sooner(w, &w->poll, due(w, t->next_due));
    if (t->busy)
        set_sooner(w, &w->poll, busy_pause(w));
    else if (t->want)
        w->busy_us = BUSY_SPAN_US;
    if (!t->want && t->ready_in.us == 0)
        slots_wet(w); /* a settle made jobs ready and nobody looked since */
    else if (!t->want && t->ready_in.us > 0)
        set_sooner(w, &w->poll, t->ready_in);
}

/* ---- sweeping ---- */

static void next_sweep(struct worker *w)
{
    int64_t us = w->o->config->worker_sweep_interval.us;
    int64_t jitter = us * 4 / 10;
    us = us - jitter / 2 + (jitter > 0 ? (int64_t)rand_below((uint64_t)jitter) : 0);
    loop_timer_set(w->loop, &w->sweep_timer, (struct dur){us});
}

static void on_sweep_time(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, sweep_timer);
    w->sweep_due = true;
    maybe_prune(w);
    worker_soon(w);
}

static void after_sweep(struct worker *w, const struct turn *t)
{
    metric_add(&w->metrics, METRIC_worker_reaped, t->swept.sessions);
    if (t->swept.sessions)
        LOG(&w->log, LOG_WARN, "reaped", LOG_I("workers", t->swept.sessions),
            LOG_I("requeued", t->swept.requeued), LOG_I("poisoned", t->swept.poisoned));
    w->sweep_due = t->swept.more || t->recovered;
    next_sweep(w);
}

/* ---- hints ---- */

static void sweep_on_hint(struct worker *w)
{
    struct dur since = passed(w, w->last_sweep);
    if (since.us >= SWEEP_GAP.us)
        w->sweep_due = true;
    else
        set_sooner(w, &w->sweep_timer, (struct dur){SWEEP_GAP.us - since.us});
}

static void on_hint(struct watch *watch, uint32_t events)
{
    struct worker *w = OWNER(watch, struct worker, wake);
    (void)events;
    if (!store_thread_wake_clear(&w->store)) {
        loop_unwatch(w->loop, &w->wake); /* watched again when the store is back */
        return;
    }
    w->idle_delay = IDLE_FIRST;
    slots_wet(w);
    slots_give_back(w, DUR_MS(GIVE_BACK_HINT_MS)); /* a queue may have been paused */
    sweep_on_hint(w);
    renew_thread_ask(&w->renew); /* a cancel or a command may be waiting */
    worker_soon(w);
}

static void watch_hints(struct worker *w, int fd)
{
    struct pawl_err err = {0};
    loop_unwatch(w->loop, &w->wake);
    if (w->wake.fd >= 0)
        close(w->wake.fd);
    w->wake.fd = fd;
    if (fd >= 0 && loop_watch(w->loop, &w->wake, EPOLLIN, &err) < 0)
        LOG(&w->log, LOG_WARN, "no_hints", LOG_S("error", sv_of(err.msg)));
}

void housekeeping_store_news(struct worker *w)
{
    struct store_news news = store_thread_news(&w->store);
    if (news.down && !w->store_down) {
        w->store_down = true;
        LOG(&w->log, LOG_WARN, "store_down", LOG_S("error", sv_of(news.err.msg)));
    }
    if (!news.opened)
        return;
    watch_hints(w, news.wake_fd);
    memcpy(w->store_id, news.id, sizeof(w->store_id));
    if (w->log_dir < 0)
        w->log_dir = news.log_dir;
    else if (news.log_dir >= 0)
        close(news.log_dir);
}

/* ---- what waits too long ---- */

static void on_age(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, age);
    slots_give_back(w, DUR_MS(GIVE_BACK_MS));
    if (w->n_ready)
        loop_timer_set(w->loop, &w->age, DUR_MS(GIVE_BACK_MS / 4));
}

/* ---- turns ---- */

void housekeeping_plan(struct worker *w, struct turn *t)
{
    t->sweep = w->sweep_due && w->session.id.v && !w->lost;
    if (t->sweep) {
        w->sweep_due = false;
        w->last_sweep = loop_now(w->loop);
        t->age = passed(w, w->last_age).us >= w->o->config->worker_sweep_interval.us / 2;
        if (t->age)
            w->last_age = w->last_sweep;
        slots_wet(w); /* look for what the sweep frees, in the same transaction */
    }
    t->prune = w->prune_due;
    if (t->prune)
        w->last_prune = loop_now(w->loop);
    w->prune_due = false;
}

void housekeeping_after(struct worker *w, const struct turn *t, size_t claimed)
{
    if (w->store_down) {
        w->store_down = false;
        slots_wet(w);
        LOG(&w->log, LOG_WARN, "store_up");
    }
    if (t->sweep)
        after_sweep(w, t);
    if (t->prune)
        prune_on(w, t);
    if (w->n_ready && !w->age.slot)
        loop_timer_set(w->loop, &w->age, DUR_MS(GIVE_BACK_MS));
    plan_next_look(w, t, claimed);
}

void housekeeping_init(struct worker *w)
{
    w->wake = (struct watch){.fd = -1, .on_event = on_hint};
    w->poll.on_time = on_poll;
    w->sweep_timer.on_time = on_sweep_time;
    w->age.on_time = on_age;
    w->prune_timer.on_time = on_prune_time;
    w->idle_delay = IDLE_FIRST;
    w->busy_us = BUSY_SPAN_US;
    w->last_prune.us = clock_boot().us - PRUNE_EVERY.us; /* soon */
    w->sweep_due = true;                                 /* at start */
    w->log_dir = -1;
}

void housekeeping_done(struct worker *w)
{
    loop_timer_clear(w->loop, &w->poll);
    loop_timer_clear(w->loop, &w->sweep_timer);
    loop_timer_clear(w->loop, &w->age);
    loop_timer_clear(w->loop, &w->prune_timer);
    watch_hints(w, -1);
    if (w->log_dir >= 0)
        close(w->log_dir);
}
