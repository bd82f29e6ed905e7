/* Words for tests of hosts that a running job asks besides its own. */
#ifndef PAWL_TESTS_ADMITTING_H
#define PAWL_TESTS_ADMITTING_H

#include "gating.h"

/* Ask for the gates of that host, again while another transaction has what it needs. */
struct admission ask(struct fixture *f, const struct lease *l, const char *host);
/* The same, and fail unless it is let in. */
void admitted(struct fixture *f, const struct lease *l, const char *host);
/* How many gates the pace was set on. */
int pace(struct fixture *f, const struct lease *l, const char *host, struct dur apart);
/* The next job, waited for. */
struct lease run_one(struct fixture *f, const struct session *w);
/* A transient end that tells of that host; of `how` only throttled, timed_out and retry_after
 * count. */
void ends_at(struct fixture *f, const struct lease *l, const char *peer, struct settle how);

#endif
