#include "capture.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10, LEFTOVER_READS = 4096 };

static char buffer[READ_SIZE];

static void keep_recent(struct output *o, const char *p, size_t n)
{
    if (n >= sizeof(o->recent)) {
        memcpy(o->recent, p + n - sizeof(o->recent), sizeof(o->recent));
        o->n_recent = sizeof(o->recent);
        return;
    }
    size_t keep = sizeof(o->recent) - n < o->n_recent ? sizeof(o->recent) - n : o->n_recent;
    memmove(o->recent, o->recent + o->n_recent - keep, keep);
    memcpy(o->recent + keep, p, n);
    o->n_recent = keep + n;
}

/* n > 0 bytes; 0 when nothing is there now; *fd becomes -1 at the end. */
static size_t read_pipe(int *fd, char *p, size_t size)
{
    if (*fd < 0)
        return 0;
    ssize_t n = read(*fd, p, size);
    if (n > 0)
        return (size_t)n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    close(*fd);
    *fd = -1;
    return 0;
}

bool output_read(struct output *o)
{
    size_t n = read_pipe(&o->fd, buffer, sizeof(buffer));
    if (!n)
        return false;
    keep_recent(o, buffer, n);
    logfile_add(&o->log, buffer, n);
    return true;
}

void output_finish(struct output *o)
{
    /* Bounded, because a stranger who was handed the pipe could write for ever. */
    for (int i = 0; i < LEFTOVER_READS && output_read(o); i++)
        continue;
    logfile_finish(&o->log, buffer, sizeof(buffer));
}

void channel_flush(struct channel *c)
{
    struct iovec iov[2] = {{&c->head, sizeof(c->head)}, {c->bytes, c->head.len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    if (!c->full)
        return;
    if (c->broken || sendmsg(c->control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        c->full = false;
    } else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
        c->broken = true;
        c->full = false;
    }
}

bool channel_read(struct channel *c)
{
    if (c->full)
        return false;
    size_t n = read_pipe(&c->fd, c->bytes, sizeof(c->bytes));
    if (!n)
        return false;
    c->head = (struct wire_chunk){.type = WIRE_CHUNK, .len = (uint32_t)n};
    c->full = true;
    channel_flush(c);
    return true;
}

void channel_finish(struct channel *c)
{
    for (int i = 0; i < LEFTOVER_READS && (c->full || channel_read(c)); i++) {
        while (c->full) {
            struct pollfd p = {.fd = c->control, .events = POLLOUT};
            poll(&p, 1, -1);
            if (p.revents & (POLLHUP | POLLERR))
                c->broken = true;
            channel_flush(c);
        }
    }
}
