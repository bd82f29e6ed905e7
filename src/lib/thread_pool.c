/* The threads, and the two ends of a run: start and cancel come from the loop, its result goes back
 * there through a list and an eventfd. A function that does not return keeps its thread and its
 * run; nothing is taken from under it. Whatever it returns after the lease was lost is discarded by
 * the worker (I2), which takes no new session while it runs. */
#include "thread_pool.h"

#include "run.h"
#include "threads.h"
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct thread_pool {
    struct loop *loop;
    struct watch watch;   /* the eventfd */
    struct pawl_run runs; /* ring of those under way, itself the anchor; the loop's */
    pthread_t *threads;
    int n_threads, max_threads; /* the loop's */

    pthread_mutex_t lock; /* all below, and what run.h says */
    pthread_cond_t work, cancelled;
    struct pawl_run *first, *last; /* waiting for a thread */
    int n_waiting, n_idle;
    struct pawl_run *ended; /* returned, newest first */
    bool quit;
};

struct c_handler {
    struct handler base;
    struct thread_pool *pool;
    pawl_handler *fn;
    void *arg;
};

/* ---- the threads ---- */

static struct pawl_run *next_run(struct thread_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->n_idle++;
    while (!p->first && !p->quit)
        pthread_cond_wait(&p->work, &p->lock);
    p->n_idle--;
    struct pawl_run *r = p->first;
    if (r) {
        p->first = r->next;
        p->n_waiting--;
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

static void tell_loop(struct thread_pool *p)
{
    uint64_t one = 1;
    (void)!write(p->watch.fd, &one, sizeof(one));
}

static void give_back(struct thread_pool *p, struct pawl_run *r)
{
    pthread_mutex_lock(&p->lock);
    bool first = !p->ended;
    r->next = p->ended;
    p->ended = r;
    pthread_mutex_unlock(&p->lock);
    if (first)
        tell_loop(p);
}

static void *thread_main(void *arg)
{
    struct thread_pool *p = arg;
    for (struct pawl_run *r; (r = next_run(p));) {
        r->outcome = pawl_run_cancelled(r) ? PAWL_CANCELLED : r->fn(r, r->arg);
        give_back(p, r);
    }
    return NULL;
}

static int add_thread(struct thread_pool *p, struct pawl_err *err)
{
    int rc = threads_start(&p->threads[p->n_threads], thread_main, p, err);
    if (rc == 0)
        p->n_threads++;
    return rc;
}

/* A thread that cannot be had now is no failure: the run waits for one of the others. */
static void give_to_thread(struct thread_pool *p, struct pawl_run *r)
{
    struct pawl_err ignored;
    pthread_mutex_lock(&p->lock);
    r->next = NULL;
    if (p->first)
        p->last->next = r;
    else
        p->first = r;
    p->last = r;
    bool more = ++p->n_waiting > p->n_idle;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    if (more && p->n_threads < p->max_threads)
        (void)add_thread(p, &ignored);
}

/* ---- cancelling ---- */

/* The first reason counts, but for the loss of the lease, after which nothing else matters. */
static void tell_run(struct pawl_run *r, int why)
{
    struct thread_pool *p = r->pool;
    pthread_mutex_lock(&p->lock);
    if (!atomic_load(&r->cancel) || why == PAWL_CANCEL_LEASE_LOST)
        atomic_store(&r->cancel, why);
    pthread_cond_broadcast(&p->cancelled);
    pthread_mutex_unlock(&p->lock);
}

static void on_timeout(struct timer *t)
{
    tell_run(OF(t, struct pawl_run, timeout), PAWL_CANCEL_TIMEOUT);
}

static void cancel(struct handler *h, struct run *run, enum cancel_why why)
{
    static const int reasons[] = {
        [CANCEL_ASKED] = PAWL_CANCEL_ASKED,
        [CANCEL_SHUTDOWN] = PAWL_CANCEL_SHUTDOWN,
        [CANCEL_LEASE_LOST] = PAWL_CANCEL_LEASE_LOST,
    };
    (void)h;
    tell_run(run->state, reasons[why]);
}

int run_sleep(struct pawl_run *r, struct dur d)
{
    struct thread_pool *p = r->pool;
    struct timespec until = threads_deadline(d);
    pthread_mutex_lock(&p->lock);
    while (!atomic_load(&r->cancel) &&
           pthread_cond_timedwait(&p->cancelled, &p->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&p->lock);
    return atomic_load(&r->cancel);
}

void run_progress(struct pawl_run *r, struct sv json)
{
    struct thread_pool *p = r->pool;
    pthread_mutex_lock(&p->lock);
    memcpy(r->progress, json.p, json.n);
    r->n_progress = json.n;
    pthread_mutex_unlock(&p->lock);
    tell_loop(p);
}

/* ---- start and end, on the loop ---- */

static int start(struct handler *h, struct run *run, struct pawl_err *err)
{
    struct c_handler *self = (struct c_handler *)h;
    struct thread_pool *p = self->pool;
    struct pawl_run *r = run_new(run, self->fn, self->arg);
    (void)err;
    r->pool = p;
    r->newer = &p->runs;
    r->older = p->runs.older;
    r->older->newer = r;
    p->runs.older = r;
    run->state = r;
    r->timeout.on_time = on_timeout;
    if (run->timeout.us > 0)
        loop_timer_set(p->loop, &r->timeout, run->timeout);
    give_to_thread(p, r);
    return 0;
}

static void end_run(struct thread_pool *p, struct pawl_run *r)
{
    struct run_result res;
    char text[96];
    loop_timer_clear(p->loop, &r->timeout);
    r->older->newer = r->newer;
    r->newer->older = r->older;
    run_result(r, text, sizeof(text), &res);
    r->run->finish(r->run, &res);
    run_free(r);
}

static void hand_over_progress(struct thread_pool *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct pawl_run *r = p->runs.newer; r != &p->runs; r = r->newer) {
        if (r->n_progress)
            r->run->progress(r->run, sv_make(r->progress, r->n_progress));
        r->n_progress = 0;
    }
    pthread_mutex_unlock(&p->lock);
}

static void on_event(struct watch *w, uint32_t events)
{
    struct thread_pool *p = OF(w, struct thread_pool, watch);
    uint64_t n;
    (void)events;
    (void)!read(w->fd, &n, sizeof(n));
    hand_over_progress(p);
    pthread_mutex_lock(&p->lock);
    struct pawl_run *r = p->ended;
    p->ended = NULL;
    pthread_mutex_unlock(&p->lock);
    for (struct pawl_run *next; r; r = next) {
        next = r->next;
        end_run(p, r);
    }
}

static void handler_free(struct handler *h)
{
    free(h);
}

static int validate(const struct handler *h, struct sv kind, struct sv payload,
                    struct pawl_err *err)
{
    (void)h;
    (void)kind;
    (void)payload;
    (void)err;
    return 0; /* any JSON; the C function judges it */
}

struct handler *thread_pool_handler(struct thread_pool *p, pawl_handler *fn, void *arg)
{
    static const struct handler_ops ops = {
        .name = "c", .validate = validate, .start = start, .cancel = cancel, .free = handler_free};
    struct c_handler *self = mem_zalloc(1, sizeof(*self));
    *self = (struct c_handler){.base.ops = &ops, .pool = p, .fn = fn, .arg = arg};
    return &self->base;
}

/* ---- the pool ---- */

int thread_pool_new(struct loop *loop, int threads, struct thread_pool **out, struct pawl_err *err)
{
    struct thread_pool *p = mem_zalloc(1, sizeof(*p));
    p->loop = loop;
    p->max_threads = threads;
    p->threads = mem_zalloc((size_t)threads, sizeof(*p->threads));
    p->runs.newer = p->runs.older = &p->runs;
    threads_init(&p->lock, &p->work);
    pthread_mutex_destroy(&p->lock); /* the second pair brings the lock */
    threads_init(&p->lock, &p->cancelled);
    p->watch = (struct watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .on_event = on_event};
    int rc = p->watch.fd < 0 ? err_errno(err, PAWL_EIO, errno, "cannot make an eventfd") : 0;
    if (rc == 0)
        rc = loop_watch(loop, &p->watch, EPOLLIN, err);
    if (rc == 0)
        rc = add_thread(p, err);
    if (rc < 0)
        thread_pool_free(p);
    else
        *out = p;
    return rc;
}

void thread_pool_free(struct thread_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    loop_unwatch(p->loop, &p->watch);
    if (p->watch.fd >= 0)
        close(p->watch.fd);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->cancelled);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}
