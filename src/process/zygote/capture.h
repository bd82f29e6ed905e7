/* What a job writes: its output (descriptors 1 and 2, one pipe) and its control lines (3). */
#ifndef PAWL_ZYGOTE_CAPTURE_H
#define PAWL_ZYGOTE_CAPTURE_H

#include "logfile.h"
#include "wire.h"
#include <stdbool.h>

struct output {
    int fd; /* reading end, non-blocking; -1 once everybody has closed it */
    struct logfile log;
    char recent[WIRE_TAIL_MAX]; /* the last bytes */
    size_t n_recent;
};

/* Read once into the log. True if there was something. */
bool output_read(struct output *o);
/* Take what is still in the pipe and complete the log. */
void output_finish(struct output *o);

/* The job's control channel, passed on to the worker as it comes. Holds one chunk while the worker
 * is not reading, which holds the job, not memory. */
struct channel {
    int fd;      /* reading end, non-blocking; -1 once everybody has closed it */
    int control; /* where to */
    bool broken; /* the worker is gone: drain to nothing */
    bool full;   /* a chunk waits for room in the socket */
    struct wire_chunk head;
    char bytes[WIRE_CHUNK_MAX];
};

/* Read and pass on once. True if there was something. */
bool channel_read(struct channel *c);
/* Try to send the waiting chunk. */
void channel_flush(struct channel *c);
/* Pass on all that is left, waiting for the worker; only when no process of the job lives. */
void channel_finish(struct channel *c);

#endif
