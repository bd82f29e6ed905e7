/* Alerts: what the events of the store tell is passed on to those whom the configuration names, by
 * a command or a signed POST. One worker at a time does it for all (the store's duty "alerts"), and
 * the duty remembers how far it came: at least once, across kill -9 and from worker to worker; a
 * receiver knows a repetition by its id.
 *
 * A thread of its own reads events on a store handle of its own; what it wants sent the loop sends.
 * Neither ever waits for a target, nor does work wait for either. */
#ifndef PAWL_WORKER_ALERTS_H
#define PAWL_WORKER_ALERTS_H

#include "config.h"
#include "err.h"

struct worker;
struct alerts;

/* The targets, by the rules for URLs: CONFIG and where. */
PAWL_MUST_USE int alerts_check(const struct config *c, struct pawl_err *err);

/* Loop thread, all of them; harmless where no alert is configured. */
PAWL_MUST_USE int alerts_start(struct worker *w, struct pawl_err *err);
void alerts_news(struct worker *w); /* after a wake-up: the session may be another, or something is
                                       to be sent */
/* The work is over: send what is left, for a small part of the time that the worker ran and not to
 * targets that keep others waiting; what is not sent then the next worker sends. Then stop. */
void alerts_finish(struct worker *w);

#endif
