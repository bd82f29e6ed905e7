/* The event loop: descriptors, timers and wake-ups of one thread, on epoll. Timers count
 * CLOCK_BOOTTIME, so a suspended machine finds its deadlines passed, not postponed. A loop and all
 * that hangs on it belong to the thread that runs it; only loop_wake() may be called elsewhere.
 * Written by hand: libuv's timers stop in suspend and its process support forks the whole worker.
 */
#ifndef PAWL_BASE_LOOP_H
#define PAWL_BASE_LOOP_H

#include "clock.h"
#include "err.h"
#include <stdbool.h>
#include <stdint.h>

struct loop;

/* A watched descriptor, embedded in its owner; stays at its address while added. `on_event` gets
 * EPOLL… bits and may remove and free any watch, its own included. */
struct watch {
    int fd;
    void (*on_event)(struct watch *w, uint32_t events);
    bool active; /* set by the loop */
};

/* A one-shot timer, embedded in its owner. Setting it again moves it. */
struct timer {
    void (*on_time)(struct timer *t);
    struct boot at;
    size_t slot; /* place in the heap plus one; 0 = not set */
};

PAWL_MUST_USE int loop_new(struct loop **out, struct pawl_err *err);
void loop_free(struct loop *l);
/* Run until loop_stop(). */
PAWL_MUST_USE int loop_run(struct loop *l, struct pawl_err *err);
void loop_stop(struct loop *l);
/* Time of the current turn: read once after each wait. */
struct boot loop_now(const struct loop *l);

PAWL_MUST_USE int loop_watch(struct loop *l, struct watch *w, uint32_t events,
                             struct pawl_err *err);
void loop_unwatch(struct loop *l, struct watch *w); /* does not close; harmless when not active */
void loop_timer_set(struct loop *l, struct timer *t, struct dur from_now);
void loop_timer_clear(struct loop *l, struct timer *t); /* harmless when not set */

/* Have `on_wake` called on the loop's thread soon; any thread, async-signal-safe. */
void loop_on_wake(struct loop *l, void (*on_wake)(void *arg), void *arg);
void loop_wake(struct loop *l);

#endif
