/* C handlers on threads. Each kind has a handler of core/handler.h in front, which lives on the
 * worker's loop; behind it the threads of one worker are shared by all its kinds. A run belongs to
 * the loop, then to one thread until the C function returns, then to the loop again. */
#ifndef PAWL_LIB_THREAD_POOL_H
#define PAWL_LIB_THREAD_POOL_H

#include "api.h"
#include "handler.h"
#include "loop.h"

struct thread_pool;

/* At most `threads` of them; the first is started at once, the others when they are needed. */
PAWL_MUST_USE int thread_pool_new(struct loop *loop, int threads, struct thread_pool **out,
                                  struct pawl_err *err);
/* No runs are left. Ends and joins the threads. */
void thread_pool_free(struct thread_pool *p);
/* The handler of one kind; freed by its own ops->free, before the pool. */
struct handler *thread_pool_handler(struct thread_pool *p, pawl_handler *fn, void *arg);

#endif
