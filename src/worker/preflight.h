/* Preflight: a cheap check per kind that decides whether this worker claims jobs of it. A good
 * result counts for the kind's preflight_ttl and is renewed by itself then; a bad one is tried
 * again after a second, then twice that and so on, up to the TTL. Jobs of a kind that is not known
 * to be good stay in the queue. All on the loop thread. */
#ifndef PAWL_WORKER_PREFLIGHT_H
#define PAWL_WORKER_PREFLIGHT_H

#include "str.h"
#include <stdbool.h>

struct kind;
struct worker;

void preflight_init(struct worker *w);
void preflight_start(struct worker *w);      /* the first checks */
void preflight_stop(struct worker *w);       /* no more of them; those under way are ended */
bool preflight_idle(const struct worker *w); /* none is under way */
void preflight_done(struct worker *w);

/* May jobs of it be claimed now? */
bool preflight_admits(const struct kind *k);
/* Why its check fails; NULL: it does not, or nothing is known yet. */
const char *preflight_why(const struct kind *k);
/* A job found out before the next check did. */
void preflight_unfit(struct kind *k, struct sv why);
/* Tell the others, of a lake that takes nothing too. A new session knows nothing of it yet. */
void preflight_tell(struct worker *w);

#endif
