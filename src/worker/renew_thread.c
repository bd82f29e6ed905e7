/* Renewals and the session's life. A failed renewal is a state, not a log line: it is retried
 * within the lease, and when the deadline passes the lease counts as lost whatever the store says
 * later (I2, I5). */
#include "renew_thread.h"

#include "store_thread.h"
#include "threads.h"
#include <fcntl.h>
#include <unistd.h>

/* Renewals on request. The claim goes first: new jobs are what most hints are about. */
#define ASK_DELAY   DUR_MS(10)
#define ASK_GAP_MIN DUR_MS(50)
#define ASK_GAP_MAX DUR_MS(400)
#define RETRY_FIRST DUR_MS(25)
#define RETRY_MAX   DUR_MS(500)

/* Lease minus margin: how long after sending a renewal the leases are safe. I5 */
static struct dur safe_time(struct dur lease, struct dur heartbeat)
{
    int64_t margin = lease.us / 6;
    if (margin < 300000)
        margin = 300000;
    if (margin > lease.us - 2 * heartbeat.us) /* two heartbeats must fit */
        margin = lease.us - 2 * heartbeat.us;
    if (margin < lease.us / 10)
        margin = lease.us / 10;
    return (struct dur){lease.us - margin};
}

static void publish(struct renew_thread *rt, struct boot sent)
{
    const struct config *c = rt->o->config;
    struct boot deadline = {sent.us + safe_time(c->worker_lease, c->worker_heartbeat).us};
    atomic_store(&rt->deadline, deadline.us);
    rt->last_renewal = sent;
    if (rt->o->on_deadline)
        rt->o->on_deadline(rt->o->on_arg, deadline);
}

static bool past_deadline(struct renew_thread *rt)
{
    return clock_boot().us >= atomic_load(&rt->deadline);
}

/* ---- talking to the loop ---- */

static void tell_failure(struct renew_thread *rt, const struct pawl_err *cause)
{
    pthread_mutex_lock(&rt->lock);
    rt->news.rc = cause->code;
    rt->news.err = *cause;
    pthread_mutex_unlock(&rt->lock);
    loop_wake(rt->o->loop);
}

static void tell_session(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    rt->news.new_session = true;
    rt->news.lost = false;
    rt->news.session = rt->session;
    rt->news.session.lock_fd = rt->lock_fd;
    pthread_mutex_unlock(&rt->lock);
    loop_wake(rt->o->loop);
}

static void tell_lost(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    rt->news.lost = true;
    pthread_mutex_unlock(&rt->lock);
    loop_wake(rt->o->loop);
}

static void tell_renewed(struct renew_thread *rt)
{
    if (!rt->o->on_metrics)
        return;
    pthread_mutex_lock(&rt->lock);
    rt->news.renewed = true;
    pthread_mutex_unlock(&rt->lock);
    loop_wake(rt->o->loop);
}

static void add_cancels(struct renew_thread *rt, const struct renew_result *res)
{
    struct renew_news *news = &rt->news;
    for (size_t i = 0; i < res->n_cancels; i++) {
        if (!news->cancels)
            rt->cap_cancels = 0;
        ARRAY_GROW(news->cancels, news->n_cancels, rt->cap_cancels);
        news->cancels[news->n_cancels++] = res->cancels[i];
    }
}

static void add_revoked(struct renew_thread *rt, const struct renew_result *res)
{
    struct renew_news *news = &rt->news;
    for (size_t i = 0; i < res->n_revoked; i++) {
        if (!news->revoked)
            rt->cap_revoked = 0;
        ARRAY_GROW(news->revoked, news->n_revoked, rt->cap_revoked);
        news->revoked[news->n_revoked++] = res->revoked[i];
    }
}

static void tell_asked(struct renew_thread *rt, const struct renew_result *res)
{
    bool any = res->command != COMMAND_NONE || res->n_cancels || res->n_revoked;
    rt->ask_gap = any ? ASK_GAP_MIN : rt->ask_gap;
    if (!any)
        return;
    pthread_mutex_lock(&rt->lock);
    if (res->command != COMMAND_NONE)
        rt->news.command = res->command;
    add_cancels(rt, res);
    add_revoked(rt, res);
    pthread_mutex_unlock(&rt->lock);
    loop_wake(rt->o->loop);
}

/* ---- one renewal ---- */

static void take_progress(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    struct pending_progress *v = rt->sending;
    size_t cap = rt->cap_sending;
    rt->sending = rt->progress;
    rt->n_sending = rt->n_progress;
    rt->cap_sending = rt->cap_progress;
    rt->progress = v;
    rt->n_progress = 0;
    rt->cap_progress = cap;
    rt->progress_turn++;
    pthread_mutex_unlock(&rt->lock);
}

static int renew_once(struct renew_thread *rt, struct arena *a, struct renew_result *out,
                      struct pawl_err *err)
{
    int64_t values[N_METRICS];
    for (int i = 0; i < N_METRICS; i++)
        values[i] = atomic_load_explicit(&rt->metrics->v[i], memory_order_relaxed);
    struct progress *list = arena_zalloc(a, rt->n_sending, sizeof(*list));
    for (size_t i = 0; i < rt->n_sending; i++)
        list[i] = (struct progress){.id = rt->sending[i].id,
                                    .fence = rt->sending[i].fence,
                                    .json = sv_make(rt->sending[i].json, rt->sending[i].n)};
    pthread_mutex_lock(&rt->lock);
    const char *preflight =
        rt->preflight ? arena_strndup(a, rt->preflight, strlen(rt->preflight)) : NULL;
    pthread_mutex_unlock(&rt->lock);
    const struct renew_request req = {.session = &rt->session,
                                      .lease = rt->o->config->worker_lease,
                                      .metrics = values,
                                      .progress = list,
                                      .n_progress = rt->n_sending,
                                      .running = atomic_load(&rt->running),
                                      .preflight = preflight};
    return rt->store->ops->renew(rt->store, &req, a, out, err);
}

static int open_handle(struct renew_thread *rt, struct pawl_err *err)
{
    if (rt->store)
        return 0;
    int rc = rt->o->open_store(rt->o->open_arg, &rt->store, err);
    if (rc == 0 && rt->store->ops->limit) /* several tries must fit into a lease */
        rt->store->ops->limit(rt->store, (struct dur){rt->o->config->worker_lease.us / 4});
    return rc;
}

static bool remote(const struct renew_thread *rt)
{
    return rt->store && rt->store->ops->remote;
}

static void close_handle(struct renew_thread *rt)
{
    store_close(rt->store);
    rt->store = NULL;
}

/* Sleep at most d; false when the thread should end. Requests only make it return earlier. */
static bool nap(struct renew_thread *rt, struct dur d)
{
    struct timespec until = threads_deadline(d);
    pthread_mutex_lock(&rt->lock);
    if (!rt->quit && !rt->restart)
        pthread_cond_timedwait(&rt->cond, &rt->lock, &until);
    bool go_on = !rt->quit && !rt->restart;
    pthread_mutex_unlock(&rt->lock);
    return go_on;
}

/* A renewal with retries inside the lease; false: the lease is lost. */
static bool renew(struct renew_thread *rt, struct arena *a)
{
    struct dur pause = RETRY_FIRST;
    take_progress(rt);
    for (;;) {
        struct renew_result res = {0};
        struct pawl_err err = {0};
        struct boot sent = clock_boot();
        arena_reset(a);
        int rc = open_handle(rt, &err);
        if (rc == 0)
            rc = renew_once(rt, a, &res, &err);
        if (rc == 0 && res.stale)
            return false;
        if (past_deadline(rt)) /* the supervisors have acted on it: too late */
            return false;
        if (rc == 0) {
            publish(rt, sent);
            tell_asked(rt, &res);
            tell_renewed(rt);
            return true;
        }
        if (rc != PAWL_ELOCKED && !remote(rt))
            close_handle(rt);
        if (!nap(rt, pause))
            return true; /* ending or starting anew: decided elsewhere */
        pause.us = pause.us * 2 < RETRY_MAX.us ? pause.us * 2 : RETRY_MAX.us;
    }
}

/* ---- the session ---- */

static int begin_once(struct renew_thread *rt, struct pawl_err *err)
{
    struct boot sent = clock_boot();
    int rc = open_handle(rt, err);
    if (rc == 0)
        rc = rt->store->ops->session_begin(rt->store, &rt->spec, &rt->session, err);
    if (rc < 0)
        return rc;
    rt->lock_fd = rt->session.lock_fd < 0 ? -1 : fcntl(rt->session.lock_fd, F_DUPFD_CLOEXEC, 0);
    publish(rt, sent);
    return 0;
}

static bool begin(struct renew_thread *rt, bool patient)
{
    struct boot start = clock_boot();
    struct dur pause = RETRY_FIRST;
    struct pawl_err err = {0};
    for (int rc; (rc = begin_once(rt, &err)) < 0;) {
        bool late = clock_boot().us - start.us >= rt->o->config->store_timeout.us && !remote(rt);
        if (!remote(rt))
            close_handle(rt);
        if (!patient || late || store_lost_for_good(rc) || !nap(rt, pause)) {
            tell_failure(rt, &err);
            return false;
        }
        pause.us = pause.us * 2 < RETRY_MAX.us ? pause.us * 2 : RETRY_MAX.us;
    }
    tell_session(rt);
    return true;
}

/* Gives back what the session still holds; without effect when others have swept it. If it cannot
 * be done, the freed lock tells the others' sweepers that nobody of this session lives. */
static void end(struct renew_thread *rt)
{
    struct pawl_err err = {0};
    bool asked = rt->session.id.v && open_handle(rt, &err) == 0;
    if (asked && rt->store->ops->session_end(rt->store, &rt->session, &err) < 0)
        close_handle(rt);
    if (!asked && rt->session.id.v && rt->session.lock_fd >= 0)
        close(rt->session.lock_fd);
    if (rt->lock_fd >= 0)
        close(rt->lock_fd);
    rt->lock_fd = -1;
    rt->session.id.v = 0;
}

/* ---- the thread ---- */

enum next { NEXT_RENEW, NEXT_RESTART, NEXT_QUIT };

static struct dur until_due(const struct renew_thread *rt, bool lost)
{
    if (lost)
        return DUR_S(3600);
    int64_t due = rt->last_renewal.us + rt->o->config->worker_heartbeat.us;
    int64_t asked = rt->last_renewal.us + rt->ask_gap.us;
    if (asked < rt->asked_at.us + ASK_DELAY.us)
        asked = rt->asked_at.us + ASK_DELAY.us;
    if (rt->asked && asked < due)
        due = asked;
    return (struct dur){due - clock_boot().us};
}

static enum next wait_next(struct renew_thread *rt, bool lost)
{
    pthread_mutex_lock(&rt->lock);
    while (!rt->quit && !rt->restart) {
        struct dur left = until_due(rt, lost);
        if (left.us <= 0)
            break;
        struct timespec until = threads_deadline(left);
        pthread_cond_timedwait(&rt->cond, &rt->lock, &until);
    }
    enum next next = rt->quit ? NEXT_QUIT : rt->restart ? NEXT_RESTART : NEXT_RENEW;
    if (rt->asked && rt->ask_gap.us < ASK_GAP_MAX.us) /* hints in a row are mostly new jobs */
        rt->ask_gap.us *= 2;
    else if (!rt->asked)
        rt->ask_gap = ASK_GAP_MIN;
    rt->asked = rt->restart = false;
    pthread_mutex_unlock(&rt->lock);
    return next;
}

static void *renew_main(void *arg)
{
    struct renew_thread *rt = arg;
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    bool alive = begin(rt, false), lost = !alive;
    for (enum next next; (next = wait_next(rt, lost)) != NEXT_QUIT;) {
        if (next == NEXT_RESTART) {
            end(rt);
            lost = !begin(rt, true);
        } else if (!renew(rt, &a)) {
            lost = true;
            tell_lost(rt);
        }
    }
    struct renew_result res;
    struct pawl_err err;
    take_progress(rt);
    if (!lost && rt->store)
        (void)renew_once(rt, &a, &res, &err); /* the final metrics; a failure shows at the end */
    end(rt);
    close_handle(rt);
    return NULL;
}

int renew_thread_start(struct renew_thread *rt, struct pawl_err *err)
{
    threads_init(&rt->lock, &rt->cond);
    rt->lock_fd = -1;
    rt->ask_gap = ASK_GAP_MIN;
    int rc = threads_start(&rt->thread, renew_main, rt, err);
    rt->started = rc == 0;
    return rc;
}

void renew_thread_stop(struct renew_thread *rt)
{
    if (!rt->started)
        return;
    pthread_mutex_lock(&rt->lock);
    rt->quit = true;
    pthread_cond_signal(&rt->cond);
    pthread_mutex_unlock(&rt->lock);
    pthread_join(rt->thread, NULL);
    free(rt->news.cancels);
    free(rt->news.revoked);
    free(rt->progress);
    free(rt->sending);
    free(rt->preflight);
    rt->started = false;
}

struct renew_news renew_thread_news(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    struct renew_news news = rt->news;
    rt->news = (struct renew_news){0};
    pthread_mutex_unlock(&rt->lock);
    return news;
}

void renew_thread_ask(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    if (!rt->asked)
        rt->asked_at = clock_boot();
    rt->asked = true;
    pthread_cond_signal(&rt->cond);
    pthread_mutex_unlock(&rt->lock);
}

void renew_thread_preflight(struct renew_thread *rt, const char *json)
{
    pthread_mutex_lock(&rt->lock);
    free(rt->preflight);
    rt->preflight = mem_strdup(json);
    pthread_mutex_unlock(&rt->lock);
    renew_thread_ask(rt);
}

void renew_thread_restart(struct renew_thread *rt)
{
    pthread_mutex_lock(&rt->lock);
    rt->restart = true;
    pthread_cond_signal(&rt->cond);
    pthread_mutex_unlock(&rt->lock);
}

void renew_thread_progress(struct renew_thread *rt, const struct lease *job, struct sv json,
                           uint64_t *turn, size_t *at)
{
    if (json.n > PROGRESS_MAX_BYTES)
        return;
    pthread_mutex_lock(&rt->lock);
    if (*turn != rt->progress_turn + 1) {
        ARRAY_GROW(rt->progress, rt->n_progress, rt->cap_progress);
        *at = rt->n_progress++;
        *turn = rt->progress_turn + 1;
    }
    struct pending_progress *p = &rt->progress[*at];
    p->id = job->id;
    p->fence = job->fence;
    p->n = json.n;
    if (json.n)
        memcpy(p->json, json.p, json.n);
    pthread_mutex_unlock(&rt->lock);
}
