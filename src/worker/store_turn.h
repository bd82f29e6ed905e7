/* Between store_thread.c (the thread) and store_turn.c (what it does). Store thread only. */
#ifndef PAWL_WORKER_STORE_TURN_H
#define PAWL_WORKER_STORE_TURN_H

#include "store_thread.h"

/* Do everything the turn asks and fill in its answers. */
void store_turn(struct store_thread *st, struct turn *t);

PAWL_MUST_USE int store_handle_open(struct store_thread *st, struct pawl_err *err);
void store_handle_close(struct store_thread *st);
void store_handle_down(struct store_thread *st, const struct pawl_err *cause); /* tell the loop */
/* Sleep, unless the thread should end: false. */
bool store_handle_pause(struct store_thread *st, struct dur d);

#endif
