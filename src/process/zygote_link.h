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

/* Supervisors that wait for another job, by their control sockets. A place to keep one: false if it
 * should go instead (there are enough, or it holds the lock of an earlier session). One to use, or
 * -1. */
unsigned zygote_generation(const struct zygote *z); /* of the session lock */
bool zygote_keep(struct zygote *z, int control, unsigned generation);
int zygote_kept(struct zygote *z);
/* Send over any socket of ours: 0, or -1 with errno. The request stays the caller's. */
int zygote_send(int socket, const struct zygote_request *r);

void zygote_request_free(struct zygote_request *r);

/* Send a request, or queue it until the zygote reads again. Takes the request in any case. IO when
 * the zygote has died. */
PAWL_MUST_USE int zygote_request(struct zygote *z, struct zygote_request *r, struct pawl_err *err);

#endif
