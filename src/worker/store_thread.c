/* The store thread's life: opening, taking turns, giving them back. What a turn does is in
 * store_turn.c. */
#include "store_thread.h"

#include "store_turn.h"
#include "threads.h"
#include <fcntl.h>
#include <unistd.h>

bool store_lost_for_good(int code)
{
    return code == PAWL_ECORRUPT || code == PAWL_ESCHEMA;
}

bool store_failed(int code)
{
    switch (code) {
    case PAWL_ELOCKED:
    case PAWL_EFULL:
    case PAWL_EUNREACHABLE:
    case PAWL_EUNCERTAIN:
    case PAWL_EBROKEN:
    case PAWL_EIO:
    case PAWL_ENOTFOUND:
        return true;
    default:
        return store_lost_for_good(code);
    }
}

static int dup_fd(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void set_handle(struct store_thread *st, struct store *s)
{
    pthread_mutex_lock(&st->lock);
    st->store = s;
    pthread_mutex_unlock(&st->lock);
}

int store_handle_open(struct store_thread *st, struct pawl_err *err)
{
    struct store *s;
    char id[STORE_ID_LEN + 1] = "";
    int dir = -1;
    int rc = st->o->open_store(st->o->open_arg, &s, err);
    if (rc < 0)
        return rc;
    rc = s->ops->identity(s, id, err);
    if (rc == 0 && s->ops->log_dir && !st->o->no_logs)
        rc = s->ops->log_dir(s, &dir, err);
    if (rc < 0) {
        store_close(s);
        return rc;
    }
    pthread_mutex_lock(&st->lock);
    close_fd(&st->news.wake_fd); /* of a handle that nobody asked about */
    close_fd(&st->news.log_dir);
    st->store = s;
    st->news.opened = true;
    st->news.wake_fd = dup_fd(s->ops->wake_fd ? s->ops->wake_fd(s) : -1);
    st->news.log_dir = dup_fd(dir);
    memcpy(st->news.id, id, sizeof(id));
    pthread_mutex_unlock(&st->lock);
    loop_wake(st->o->loop);
    return 0;
}

void store_handle_close(struct store_thread *st)
{
    struct store *s = st->store;
    set_handle(st, NULL);
    store_close(s);
}

void store_handle_down(struct store_thread *st, const struct pawl_err *cause)
{
    pthread_mutex_lock(&st->lock);
    st->news.down = true;
    st->news.err = *cause;
    pthread_mutex_unlock(&st->lock);
    loop_wake(st->o->loop);
}

bool store_handle_pause(struct store_thread *st, struct dur d)
{
    struct timespec until = threads_deadline(d);
    pthread_mutex_lock(&st->lock);
    while (!st->quit && !st->hurry && pthread_cond_timedwait(&st->cond, &st->lock, &until) == 0)
        ;
    bool go_on = !st->quit && !st->hurry;
    pthread_mutex_unlock(&st->lock);
    return go_on;
}

static struct turn *next_turn(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    while (!st->in && !st->quit)
        pthread_cond_wait(&st->cond, &st->lock);
    struct turn *t = st->in;
    st->in = NULL;
    pthread_mutex_unlock(&st->lock);
    return t;
}

static void *store_main(void *arg)
{
    struct store_thread *st = arg;
    for (struct turn *t; (t = next_turn(st));) {
        store_turn(st, t);
        pthread_mutex_lock(&st->lock);
        st->out = t;
        pthread_mutex_unlock(&st->lock);
        loop_wake(st->o->loop);
    }
    store_handle_close(st);
    lake_close(st->lake);
    return NULL;
}

int store_thread_start(struct store_thread *st, struct pawl_err *err)
{
    threads_init(&st->lock, &st->cond);
    st->news.wake_fd = st->news.log_dir = -1;
    int rc = threads_start(&st->thread, store_main, st, err);
    st->started = rc == 0;
    return rc;
}

void store_thread_stop(struct store_thread *st)
{
    if (!st->started)
        return;
    pthread_mutex_lock(&st->lock);
    st->quit = true;
    pthread_cond_signal(&st->cond);
    pthread_mutex_unlock(&st->lock);
    pthread_join(st->thread, NULL);
    close_fd(&st->news.wake_fd);
    close_fd(&st->news.log_dir);
    st->started = false;
}

void store_thread_hurry(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    st->hurry = true;
    pthread_cond_signal(&st->cond);
    pthread_mutex_unlock(&st->lock);
}

void store_thread_ending(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    if (!st->ending.us)
        st->ending = clock_boot();
    pthread_mutex_unlock(&st->lock);
}

struct boot store_thread_ends_since(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    struct boot t = st->ending;
    pthread_mutex_unlock(&st->lock);
    return t;
}

void store_thread_give(struct store_thread *st, struct turn *t)
{
    pthread_mutex_lock(&st->lock);
    st->in = t;
    pthread_cond_signal(&st->cond);
    pthread_mutex_unlock(&st->lock);
}

struct turn *store_thread_take(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    struct turn *t = st->out;
    st->out = NULL;
    pthread_mutex_unlock(&st->lock);
    return t;
}

struct store_news store_thread_news(struct store_thread *st)
{
    pthread_mutex_lock(&st->lock);
    struct store_news news = st->news;
    st->news = (struct store_news){.wake_fd = -1, .log_dir = -1};
    pthread_mutex_unlock(&st->lock);
    return news;
}

bool store_thread_wake_clear(struct store_thread *st)
{
    /* The lock keeps the handle from being closed under the call; the thread holds it only to
     * exchange pointers, so this never waits for SQL. */
    pthread_mutex_lock(&st->lock);
    struct store *s = st->store;
    if (s && s->ops->wake_clear)
        s->ops->wake_clear(s);
    pthread_mutex_unlock(&st->lock);
    return s != NULL;
}
