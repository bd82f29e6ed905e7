/* How an event is written: the JSON shape of DESIGN §6. */
#ifndef PAWL_CLI_EVENT_OUT_H
#define PAWL_CLI_EVENT_OUT_H

#include "json.h"
#include "store.h"

/* One object. */
void event_write(struct jw *w, const struct event_view *e);

#endif
