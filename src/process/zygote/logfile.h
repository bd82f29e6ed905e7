/* The writing side of joblog_format.h: an attempt's log with a bounded head and tail. Nothing is
 * created before the first byte. */
#ifndef PAWL_ZYGOTE_LOGFILE_H
#define PAWL_ZYGOTE_LOGFILE_H

#include <stddef.h>
#include <stdint.h>

struct segment {
    int fd;         /* -1: not opened yet */
    int64_t offset; /* of its first byte in the whole output */
    int64_t len;
};

struct logfile {
    int root;         /* log directory; -1: nothing is kept */
    const char *name; /* relative to it */
    int64_t head, tail;
    int64_t total; /* bytes seen, kept or not */
    int error;     /* errno of the first failure; nothing is written after it */
    int dir;       /* the folder of the log, once open */
    int fd;
    struct segment seg[2];
    int current;
};

void logfile_init(struct logfile *f, int root, const char *name, int64_t head, int64_t tail);
void logfile_add(struct logfile *f, const char *p, size_t n);
/* Append what is kept of the tail to the log and remove the segments. `buf` is room to copy in. */
void logfile_finish(struct logfile *f, char *buf, size_t size);
void logfile_close(struct logfile *f);

#endif
