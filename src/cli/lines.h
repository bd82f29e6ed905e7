/* Lines of a file or stream in constant memory: one large buffer, refilled when the caller no
 * longer needs the lines before. */
#ifndef PAWL_CLI_LINES_H
#define PAWL_CLI_LINES_H

#include "err.h"
#include "str.h"
#include <stdint.h>

struct lines {
    int fd;
    const char *name; /* for messages */
    char *buf;
    size_t size, start, end; /* unread bytes are [start, end) */
    bool eof, skipping;      /* skipping: inside a line that was too long */
    int64_t number;          /* of the line given last, from 1 */
    int64_t bytes;           /* consumed so far */
};

enum { LINE_MAX_BYTES = (16 << 20) + (64 << 10) }; /* the largest payload and its names */

enum lines_got {
    LINES_ONE,      /* *out is a line without its LF, valid until the next refill */
    LINES_NEED,     /* nothing more in the buffer: finish with the lines so far, then refill */
    LINES_TOO_LONG, /* a line beyond LINE_MAX_BYTES was passed over */
    LINES_END,
};

void lines_init(struct lines *l, int fd, const char *name);
void lines_done(struct lines *l);
enum lines_got lines_next(struct lines *l, struct sv *out);
/* Read more; ends the life of all lines given. Returns when the buffer is full, at the end, when
 * whole lines are there and nothing more arrives at once, or when a signal came. */
PAWL_MUST_USE int lines_refill(struct lines *l, struct pawl_err *err);

#endif
