#include "threads.h"

#include <signal.h>

void threads_init(pthread_mutex_t *lock, pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_mutex_init(lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int threads_start(pthread_t *out, void *(*main)(void *), void *arg, struct pawl_err *err)
{
    sigset_t all;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    int e = pthread_attr_setsigmask_np(&attr, &all); /* the caller's own mask is not touched */
    if (!e)
        e = pthread_create(out, &attr, main, arg);
    pthread_attr_destroy(&attr);
    return e ? err_errno(err, PAWL_EIO, e, "cannot start a thread") : 0;
}

struct timespec threads_deadline(struct dur from_now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + (from_now.us > 0 ? from_now.us : 0) % 1000000 * 1000;
    t.tv_sec += (from_now.us > 0 ? from_now.us : 0) / 1000000 + ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    return t;
}
