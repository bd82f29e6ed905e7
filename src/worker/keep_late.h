/* Artifacts whose settle comes late. What no row names yet is safe from `verify --repair` for a
 * lease; where the store was away longer, their objects are made young again, and a settle whose
 * object is gone gives its job back instead (I10). Store thread only. */
#ifndef PAWL_WORKER_KEEP_LATE_H
#define PAWL_WORKER_KEEP_LATE_H

#include "store_thread.h"

void keep_late(struct store_thread *st, struct turn *t);

#endif
