/* What limits hold back now, for the progress line. */
#ifndef PAWL_WORKER_LIMITED_H
#define PAWL_WORKER_LIMITED_H

#include "store.h"

enum { LIMITED_NAME = 96, LIMITED_GATES = 1000 };

struct limited {
    bool known;
    int throttled;         /* gates shut by a 429, a 503 or a breaker; LIMITED_GATES: or more */
    char by[LIMITED_NAME]; /* the limit for which most lanes wait; "": none */
};

/* Store thread. Looks at what is shut only, and ends after LIMITED_GATES of them: hosts that wait
 * are counted by lanes, which gates know, never by jobs. */
PAWL_MUST_USE int limited_look(struct store *s, struct limited *out, struct pawl_err *err);

#endif
