/* Inside src/process: the worker's end of the zygote's socket. */
#ifndef PAWL_PROCESS_ZYGOTE_LINK_H
#define PAWL_PROCESS_ZYGOTE_LINK_H

#include "process.h"
#include <stddef.h>

/* A request that waits for room in the socket. */
struct zygote_request {
    struct zygote_request *next;
    char *bytes;
    size_t len;
    int fds[4]; /* owned */
    size_t n_fds;
};
/* zygote_attach() without a callback, unless it is attached already. */
PAWL_MUST_USE int zygote_use_loop(struct zygote *z, struct loop *loop, struct pawl_err *err);

void zygote_request_free(struct zygote_request *r);

/* Send a request, or queue it until the zygote reads again. Takes the request in any case. IO when
 * the zygote has died. */
PAWL_MUST_USE int zygote_request(struct zygote *z, struct zygote_request *r, struct pawl_err *err);

#endif
