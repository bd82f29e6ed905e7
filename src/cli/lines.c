#include "lines.h"

#include "mem.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { BUFFER = 2 << 20, PATIENCE_MS = 20 };

void lines_init(struct lines *l, int fd, const char *name)
{
    *l = (struct lines){.fd = fd, .name = name, .buf = mem_alloc(BUFFER), .size = BUFFER};
}

void lines_done(struct lines *l)
{
    free(l->buf);
    l->buf = NULL;
}

static struct sv take(struct lines *l, size_t n, size_t skip)
{
    struct sv line = sv_make(l->buf + l->start, n);
    l->start += n + skip;
    l->bytes += (int64_t)(n + skip);
    return line;
}

/* A whole line, or the rest of the file. */
static enum lines_got give(struct lines *l, size_t n, size_t skip, struct sv *out)
{
    struct sv line = take(l, n, skip);
    bool was_skipping = l->skipping;
    l->skipping = false;
    l->number++;
    if (was_skipping || line.n > LINE_MAX_BYTES)
        return LINES_TOO_LONG;
    *out = line;
    return LINES_ONE;
}

enum lines_got lines_next(struct lines *l, struct sv *out)
{
    size_t have = l->end - l->start;
    const char *lf = have ? memchr(l->buf + l->start, '\n', have) : NULL;
    if (lf)
        return give(l, (size_t)(lf - (l->buf + l->start)), 1, out);
    if (!l->eof)
        return LINES_NEED;
    return have || l->skipping ? give(l, have, 0, out) : LINES_END;
}

/* Make room behind what is unread: move it to the front, grow for a long line, drop one that is
 * too long. */
static void make_room(struct lines *l)
{
    if (l->skipping)
        take(l, l->end - l->start, 0);
    if (l->start == 0 && l->end == l->size && l->size > LINE_MAX_BYTES) {
        l->skipping = true;
        take(l, l->end, 0);
    }
    memmove(l->buf, l->buf + l->start, l->end - l->start);
    l->end -= l->start;
    l->start = 0;
    if (l->end == l->size) {
        l->size *= 2;
        l->buf = mem_realloc(l->buf, l->size, 1);
    }
}

/* Is there a line already and nothing more right now? A slow writer's jobs should not wait. */
static bool enough(const struct lines *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    return memchr(l->buf, '\n', l->end) && poll(&p, 1, PATIENCE_MS) == 0;
}

int lines_refill(struct lines *l, struct pawl_err *err)
{
    make_room(l);
    while (l->end < l->size && !l->eof && !enough(l)) {
        ssize_t n = read(l->fd, l->buf + l->end, l->size - l->end);
        if (n < 0 && errno == EINTR)
            return 0;
        if (n < 0)
            return err_errno(err, PAWL_EIO, errno, "cannot read %s", l->name);
        l->eof = n == 0;
        l->end += (size_t)n;
    }
    return 0;
}
