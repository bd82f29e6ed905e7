/* The alerts thread: has the duty or waits for it, follows the events, hands out what is to be sent
 * and remembers how far it came. */
#include "alerts_internal.h"

#include "http.h"
#include "threads.h"
#include "worker_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DUTY_MIN    DUR_MS(1500) /* a fifth of the lease, within bounds; kept up three times in it */
#define DUTY_MAX    DUR_S(6)
#define LOOK_EVERY  DUR_S(1)
#define DONE_EVERY  DUR_MS(500)
#define RATE_EVERY  DUR_S(5)
#define DISK_EVERY  DUR_S(30)
#define STORE_PAUSE DUR_S(2) /* after it failed */
#define STORE_LIMIT DUR_S(2) /* no question takes longer: it would hold up the end */
/* At the end: this part of the time that the worker ran, within bounds. */
#define END_PERCENT 3
#define END_MIN     DUR_MS(60)
#define END_MAX     DUR_S(5)
#define TICK        DUR_MS(100)

int alerts_check(const struct config *c, struct pawl_err *err)
{
    for (size_t i = 0; i < c->n_alerts; i++) {
        const struct alert_conf *a = &c->alerts[i];
        struct pawl_err why = {0};
        if (!a->url || http_url_check(a->url, &why) == 0)
            continue;
        const char *quoted = strrchr(why.msg, '"'); /* the URL may hold a secret: left out */
        return err_set(err, PAWL_ECONFIG, "%s: alerts.%.60s.url: %s", a->origin, a->name,
                       quoted ? quoted + 3 : why.msg);
    }
    return 0;
}

/* ---- the duty ---- */

static struct dur duty_ttl(const struct alerts *a)
{
    int64_t us = a->o->config->worker_lease.us / 5;
    return (struct dur){us < DUTY_MIN.us ? DUTY_MIN.us : us > DUTY_MAX.us ? DUTY_MAX.us : us};
}

static struct dur duty_every(const struct alerts *a)
{
    return (struct dur){duty_ttl(a).us / 3};
}

/* Part of the ids: the same from whichever folder a worker was started. */
static void name_place(struct alerts *a, const struct store_info *info)
{
    AUTO_FREE char *path = realpath(info->location, NULL);
    snprintf(a->place, sizeof(a->place), "%s:%.480s", info->kind, path ? path : info->location);
}

static int open_store(struct alerts *a, struct pawl_err *err)
{
    struct store_info info;
    if (a->store)
        return 0;
    int rc = a->o->open_store(a->o->open_arg, &a->store, err);
    if (rc < 0)
        return rc;
    if (a->store->ops->limit)
        a->store->ops->limit(a->store, STORE_LIMIT);
    if (!a->store->ops->duty || !a->store->ops->note)
        return err_set(err, PAWL_EINTERNAL, "this store has no duties");
    rc = a->store->ops->info(a->store, &info, err);
    if (rc == 0)
        name_place(a, &info);
    a->from.us = a->store->ops->now(a->store).us - (clock_boot().us - a->began.us);
    return rc;
}

static int take_duty(struct alerts *a, struct dur ttl, struct pawl_err *err)
{
    bool mine = false, had = a->mine;
    int64_t done = had ? subjects_kept(a) : -1;
    int rc =
        a->store->ops->duty(a->store, SV("alerts"), &a->session, ttl, done, &mine, &a->done, err);
    if (rc < 0)
        return rc;
    a->mine = mine;
    if (!mine || !had)
        subjects_clear(a);
    if (mine && !had)
        a->cursor.v = a->done ? a->done : a->origin.v;
    return 0;
}

static bool skip_all(void *arg, const struct event_view *e)
{
    (void)arg;
    (void)e;
    return true;
}

/* Where events stand before this worker does anything: if nobody had the duty before, it begins
 * here, and what is older is no news. */
static void find_origin(struct alerts *a)
{
    const struct event_filter f = {.follow = &a->origin, .last = 1};
    struct pawl_err err;
    if (open_store(a, &err) == 0)
        (void)!a->store->ops->events(a->store, &f, skip_all, NULL, &err);
    pthread_mutex_lock(&a->lock);
    a->begun = true;
    pthread_cond_broadcast(&a->cond);
    pthread_mutex_unlock(&a->lock);
}

/* ---- one pass ---- */

static bool passed(struct boot *at, struct dur every)
{
    struct boot now = clock_boot();
    if (now.us < at->us)
        return false;
    at->us = now.us + every.us;
    return true;
}

static int work(struct alerts *a, bool ending, struct arena *arena, struct pawl_err *err)
{
    int rc = open_store(a, err);
    if (rc == 0 && passed(&a->duty_at, duty_every(a)))
        rc = take_duty(a, duty_ttl(a), err);
    if (rc == 0 && passed(&a->disk_at, DISK_EVERY))
        alerts_disk(a);
    if (rc == 0 && a->mine && (passed(&a->look_at, LOOK_EVERY) || ending))
        rc = alerts_look(a, err);
    if (rc == 0 && a->mine && passed(&a->rate_at, RATE_EVERY))
        alerts_rates(a, arena);
    return rc;
}

/* What was told is written down soon, so that it is not told again by the next. */
static int write_down(struct alerts *a, struct pawl_err *err)
{
    bool news = a->told && a->mine && subjects_kept(a) > a->done;
    if (!news || !passed(&a->done_at, DONE_EVERY))
        return 0;
    a->told = false;
    a->duty_at.us = clock_boot().us + duty_every(a).us;
    return take_duty(a, duty_ttl(a), err);
}

static void store_trouble(struct alerts *a, const struct pawl_err *err)
{
    bool remote = a->store && a->store->ops->remote;
    if (!remote) {
        store_close(a->store);
        a->store = NULL;
    }
    pthread_mutex_lock(&a->lock);
    if (!a->trouble[0])
        snprintf(a->trouble, sizeof(a->trouble), "%.199s", err->msg);
    pthread_mutex_unlock(&a->lock);
    loop_wake(a->o->loop);
}

/* The session may have ended and another begun: then the duty is somebody's again. */
static bool same_session(struct alerts *a, const struct session *asked)
{
    if (asked->id.v == a->session.id.v)
        return asked->id.v != 0;
    a->session = *asked;
    a->mine = false;
    a->duty_at.us = 0;
    subjects_clear(a);
    return asked->id.v != 0;
}

static void wait_next(struct alerts *a, bool ended, struct session *asked, bool *ending)
{
    pthread_mutex_lock(&a->lock);
    bool news = ended != a->ending;
    for (size_t i = 0; i < a->o->config->n_alerts; i++)
        news = news || a->channels[i].state == CHANNEL_ENDED;
    if (!a->quit && !news && a->asked.id.v == a->session.id.v) {
        struct dur often = duty_every(a);
        struct timespec until = threads_deadline(often.us < LOOK_EVERY.us ? often : LOOK_EVERY);
        pthread_cond_timedwait(&a->cond, &a->lock, &until);
    }
    *asked = a->asked;
    *ending = a->ending;
    pthread_mutex_unlock(&a->lock);
}

static bool hand_out(struct alerts *a, bool ending)
{
    pthread_mutex_lock(&a->lock);
    subjects_send(a, ending);
    bool idle = ending && subjects_idle(a);
    if (idle && !a->idle)
        loop_wake(a->o->loop);
    a->idle = idle;
    bool quit = a->quit;
    pthread_mutex_unlock(&a->lock);
    return !quit;
}

/* How far it came, and that somebody else may go on from there. */
static void give_duty_back(struct alerts *a)
{
    struct pawl_err err;
    if (a->store && a->mine)
        (void)take_duty(a, DUR_MS(1), &err);
}

static void *alerts_main(void *arg)
{
    struct alerts *a = arg;
    struct session asked;
    struct boot not_before = {0};
    bool ending = false;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    find_origin(a);
    do {
        struct pawl_err err = {0};
        wait_next(a, ending, &asked, &ending);
        if (!same_session(a, &asked) || clock_boot().us < not_before.us)
            continue;
        if (work(a, ending, &arena, &err) < 0 || write_down(a, &err) < 0) {
            store_trouble(a, &err);
            not_before.us = clock_boot().us + STORE_PAUSE.us;
        }
    } while (hand_out(a, ending));
    give_duty_back(a);
    store_close(a->store);
    return NULL;
}

/* ---- the loop's side ---- */

/* Nothing of this worker may happen before its alerts know where events stand. */
static void wait_begun(struct alerts *a)
{
    struct timespec until = threads_deadline(STORE_LIMIT);
    pthread_mutex_lock(&a->lock);
    while (!a->begun && pthread_cond_timedwait(&a->cond, &a->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&a->lock);
}

int alerts_start(struct worker *w, struct pawl_err *err)
{
    const struct config *c = w->o->config;
    if (!c->n_alerts)
        return 0;
    if (alerts_check(c, err) < 0)
        return PAWL_ECONFIG;
    struct alerts *a = mem_zalloc(1, sizeof(*a));
    w->alerts = a;
    a->worker = w;
    a->o = w->o;
    a->began = clock_boot();
    a->channels = mem_zalloc(c->n_alerts, sizeof(*a->channels));
    for (size_t i = 0; i < c->n_alerts; i++)
        a->channels[i] =
            (struct channel){.alert = &c->alerts[i], .alerts = a, .body = STR_INIT(ALERT_BODY_MAX)};
    if (gethostname(a->host, sizeof(a->host) - 1) < 0)
        snprintf(a->host, sizeof(a->host), "localhost");
    threads_init(&a->lock, &a->cond);
    int rc = threads_start(&a->thread, alerts_main, a, err);
    a->started = rc == 0;
    if (rc == 0)
        wait_begun(a);
    return rc;
}

static void say_troubles(struct worker *w, struct alerts *a)
{
    char trouble[sizeof(a->trouble)];
    pthread_mutex_lock(&a->lock);
    int64_t dropped = a->dropped;
    memcpy(trouble, a->trouble, sizeof(trouble));
    a->dropped = 0;
    a->trouble[0] = '\0';
    pthread_mutex_unlock(&a->lock);
    if (dropped)
        LOG(&w->log, LOG_WARN, "alerts_dropped", LOG_I("alerts", dropped),
            LOG_S("why", trouble[0] ? sv_of(trouble) : SV("their targets failed for 10 minutes")));
    else if (trouble[0])
        LOG(&w->log, LOG_WARN, "alerts", LOG_S("error", sv_of(trouble)));
}

void alerts_news(struct worker *w)
{
    struct alerts *a = w->alerts;
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    const struct session none = {0};
    struct session now = w->lost ? none : w->session;
    if (a->asked.id.v != now.id.v) {
        a->asked = now;
        pthread_cond_signal(&a->cond);
    }
    bool idle = a->idle;
    pthread_mutex_unlock(&a->lock);
    channels_start(a, w);
    say_troubles(w, a);
    if (w->finished && idle)
        loop_stop(w->loop);
}

/* Time is up, or somebody is in a hurry. */
static void on_tick(struct timer *t)
{
    struct alerts *a = OWNER(t, struct alerts, tick);
    struct boot now = clock_boot();
    if (now.us >= a->give_up.us || a->worker->signalled.us >= a->flush_from.us)
        loop_stop(a->o->loop);
    else
        loop_timer_set(a->o->loop, t, TICK);
}

static struct dur last_moments(const struct alerts *a)
{
    int64_t us = (clock_boot().us - a->began.us) * END_PERCENT / 100;
    us = us < END_MIN.us ? END_MIN.us : us > END_MAX.us ? END_MAX.us : us;
    return (struct dur){us};
}

static void flush(struct worker *w, struct alerts *a)
{
    struct pawl_err err;
    struct dur left = last_moments(a);
    a->tick.on_time = on_tick;
    a->flush_from = clock_boot();
    a->give_up.us = a->flush_from.us + left.us;
    loop_timer_set(w->loop, &a->tick, left.us < TICK.us ? left : TICK);
    pthread_mutex_lock(&a->lock);
    a->ending = true;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->lock);
    (void)!loop_run(w->loop, &err);
    loop_timer_clear(w->loop, &a->tick);
}

static void stop(struct alerts *a)
{
    pthread_mutex_lock(&a->lock);
    a->quit = true;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
}

/* Commands that were ended tell so on the loop. */
static void wait_quiet(struct worker *w, struct alerts *a)
{
    struct pawl_err err;
    a->closing = true;
    a->flush_from = clock_boot();
    a->give_up.us = a->flush_from.us + DUR_S(1).us;
    loop_timer_set(w->loop, &a->tick, TICK);
    if (!channels_quiet(a))
        (void)!loop_run(w->loop, &err);
    loop_timer_clear(w->loop, &a->tick);
}

void alerts_finish(struct worker *w)
{
    struct alerts *a = w->alerts;
    if (!a)
        return;
    if (a->started && !w->broken)
        flush(w, a);
    if (a->started)
        stop(a);
    channels_cancel(a);
    wait_quiet(w, a);
    say_troubles(w, a);
    for (size_t i = 0; i < w->o->config->n_alerts; i++)
        str_done(&a->channels[i].body);
    subjects_clear(a);
    alerts_watch_done(a);
    free(a->subjects);
    free(a->channels);
    free(a);
    w->alerts = NULL;
}
