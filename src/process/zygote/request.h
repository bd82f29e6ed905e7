/* One spawn request as the zygote received it and the supervisor uses it. */
#ifndef PAWL_ZYGOTE_REQUEST_H
#define PAWL_ZYGOTE_REQUEST_H

#include "wire.h"
#include <stddef.h>
#include <sys/types.h>

struct request {
    struct wire_spawn head;
    const char *body; /* head.body_len bytes */
    int control;      /* the job's control socket */
    int log_dir;      /* -1: output is counted, not kept */
    int input;        /* -1: /dev/null */
    int body_fd;      /* -1: inline */

    /* set by request_parse() */
    const char *log_name, *cwd; /* cwd: NULL for the worker's */
    char **argv, **env;
};

/* Receive one message with its descriptors. Its length; 0 at the end of the socket, < 0 with errno.
 */
ssize_t request_receive(int socket, int flags, void *msg, size_t size, int fds[WIRE_FDS_MAX],
                        size_t *n_fds);
/* Take a received message apart. Descriptors move into the request; its control socket is
 * `control`, or comes with them if that is -1. 0, or -1 if it is malformed. */
int request_accept(struct request *r, const void *msg, size_t len, int control, const int *fds,
                   size_t n_fds);
/* Map the body if it came in a memfd and split it into its strings. 0 or an errno. */
int request_parse(struct request *r);
void request_close(struct request *r);
/* The same for all but the control socket, with what request_parse() took. */
void request_release(struct request *r);

#endif
