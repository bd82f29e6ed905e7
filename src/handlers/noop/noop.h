/* The noop handler: for tests and benchmarks. A payload of null or {} is done at once; otherwise
 *   {"sleep":"10ms"            before anything else,
 *    "fail":"error|transient|fatal", "fail_times":N   only the first N times,
 *    "throttled":true, "timed_out":true   with (and without "fail") transient,
 *    "skip":true, "reason":TEXT, "retry_after":"1s",
 *    "result":ANY, "children":N   adds N jobs of the same kind, payload null, to the same queue} */
#ifndef PAWL_HANDLERS_NOOP_H
#define PAWL_HANDLERS_NOOP_H

#include "handler.h"
#include "loop.h"

/* The loop is borrowed and outlives the handler, which ends by its ops->free. */
struct handler *handler_noop_new(struct loop *loop);

#endif
