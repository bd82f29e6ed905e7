/* One spawn request as the zygote received it and the supervisor uses it. */
#ifndef PAWL_ZYGOTE_REQUEST_H
#define PAWL_ZYGOTE_REQUEST_H

#include "wire.h"
#include <stddef.h>

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

/* Take a received message apart. Descriptors move into the request. 0, or -1 if it is malformed. */
int request_accept(struct request *r, const void *msg, size_t len, const int *fds, size_t n_fds);
/* Map the body if it came in a memfd and split it into its strings. 0 or an errno. */
int request_parse(struct request *r);
void request_close(struct request *r);

#endif
