/* What the store thread wants to know of the lake: are bytes that rows are about still there? */
#ifndef PAWL_WORKER_KEEP_LATE_H
#define PAWL_WORKER_KEEP_LATE_H

#include "store_thread.h"

/* Artifacts whose settle comes late. What no row names yet is safe from `verify --repair` for a
 * lease; where the store was away longer, their objects are made young again, and a settle whose
 * object is gone gives its job back instead (I10). */
void keep_late(struct store_thread *st, struct turn *t);
/* Answers to ASK_PREVIOUS: a body that is gone from the lake counts as not kept, because "not
 * modified" would be said of nothing. */
void keep_previous(struct store_thread *st, const struct ask_list *l);

#endif
