/* The little of pthreads the worker's threads share. */
#ifndef PAWL_WORKER_THREADS_H
#define PAWL_WORKER_THREADS_H

#include "clock.h"
#include "err.h"
#include <pthread.h>
#include <time.h>

/* A mutex and a condition that waits by CLOCK_MONOTONIC. */
void threads_init(pthread_mutex_t *lock, pthread_cond_t *cond);
/* A thread with every signal blocked: signals are read by the loop alone. */
PAWL_MUST_USE int threads_start(pthread_t *out, void *(*main)(void *), void *arg,
                                struct pawl_err *err);
/* For pthread_cond_timedwait: from now. */
struct timespec threads_deadline(struct dur from_now);

#endif
