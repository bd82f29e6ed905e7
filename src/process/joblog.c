#include "joblog.h"

#include "fd.h"
#include "joblog_format.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct reading {
    int dir;
    const char *name;
    struct joblog_cursor *cursor;
    void (*emit)(void *arg, struct sv bytes);
    void *arg;
    struct pawl_err *err;
};

struct part {
    int fd;                 /* -1: there is none */
    long long head, offset; /* from its header */
};

static int open_part(const struct reading *r, const char *suffix, int *out)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s%s", r->name, suffix);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(r->err, PAWL_EINPUT, "name of a log is too long");
    int fd = openat(r->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return err_errno(r->err, PAWL_EIO, errno, "cannot open log %s", path);
    *out = fd;
    return 0;
}

static bool read_header(struct part *p)
{
    char text[JOBLOG_HEADER_BYTES + 1] = {0};
    return p->fd >= 0 && pread(p->fd, text, JOBLOG_HEADER_BYTES, 0) == JOBLOG_HEADER_BYTES &&
           sscanf(text, JOBLOG_HEADER_FORMAT, &p->head, &p->offset) == 2;
}

/* Bytes [at, end) of a file to the reader; the cursor follows. `still` (may be NULL): the segment's
 * header must not have changed by the time its bytes are read, else they are another time's. */
static int copy(struct reading *r, int fd, int64_t at, int64_t end, struct part *still)
{
    char buf[32768];
    while (at < end) {
        size_t want = end - at < (int64_t)sizeof(buf) ? (size_t)(end - at) : sizeof(buf);
        ssize_t n = pread(fd, buf, want, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(r->err, PAWL_EIO, errno, "cannot read log %s", r->name);
        if (n == 0)
            return 0;
        struct part now = {.fd = fd};
        if (still && (!read_header(&now) || now.offset != still->offset))
            return 0;
        r->emit(r->arg, sv_make(buf, (size_t)n));
        at += n;
        r->cursor->offset += n;
    }
    return 0;
}

static void emit_gap(struct reading *r, int64_t to)
{
    char text[JOBLOG_MARKER_MAX];
    int n = snprintf(text, sizeof(text), JOBLOG_MARKER_FORMAT, (long long)(to - r->cursor->offset));
    r->emit(r->arg, sv_make(text, (size_t)n));
    r->cursor->offset = to;
}

static int copy_segment(struct reading *r, struct part *p)
{
    struct stat st;
    if (p->fd < 0 || fstat(p->fd, &st) < 0)
        return 0;
    int64_t end = p->offset + st.st_size - JOBLOG_HEADER_BYTES;
    if (end <= r->cursor->offset)
        return 0;
    if (p->offset > r->cursor->offset)
        emit_gap(r, p->offset);
    return copy(r, p->fd, JOBLOG_HEADER_BYTES + r->cursor->offset - p->offset, INT64_MAX, p);
}

static int read_running(struct reading *r, int fd, struct part seg[2])
{
    int first = seg[0].fd < 0 || (seg[1].fd >= 0 && seg[1].offset < seg[0].offset);
    r->cursor->head = seg[first].fd >= 0 ? seg[first].head : seg[!first].head;
    int rc = 0;
    if (r->cursor->offset < r->cursor->head)
        rc = copy(r, fd, r->cursor->offset, r->cursor->head, NULL);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = copy_segment(r, &seg[i ? !first : first]);
    return rc;
}

/* The merged log, to a reader that has met its segments: behind the head comes the marker, and
 * places in the file and in the output differ by what is missing less the marker's length. */
static int read_merged(struct reading *r, int fd)
{
    char text[JOBLOG_MARKER_MAX + 1] = {0}, marker[JOBLOG_MARKER_MAX];
    int64_t head = r->cursor->head;
    long long left_out = 0;
    int len = 0;
    if (pread(fd, text, JOBLOG_MARKER_MAX, head) > 0 &&
        sscanf(text, JOBLOG_MARKER_FORMAT, &left_out) == 1) {
        len = snprintf(marker, sizeof(marker), JOBLOG_MARKER_FORMAT, left_out);
        if (memcmp(text, marker, (size_t)len) != 0)
            left_out = len = 0;
    }
    if (left_out && r->cursor->offset < head + left_out)
        emit_gap(r, head + left_out);
    return copy(r, fd, r->cursor->offset - left_out + len, INT64_MAX, NULL);
}

static int read_parts(struct reading *r, int fd, struct part seg[2])
{
    for (int i = 0; i < 2; i++)
        if (!read_header(&seg[i]))
            fd_closep(&seg[i].fd);
    if (seg[0].fd >= 0 || seg[1].fd >= 0)
        return read_running(r, fd, seg);
    if (r->cursor->head && r->cursor->offset >= r->cursor->head)
        return read_merged(r, fd);
    return copy(r, fd, r->cursor->offset, INT64_MAX, NULL);
}

int joblog_read(int log_dir, const char *name, struct joblog_cursor *cursor,
                void (*emit)(void *arg, struct sv bytes), void *arg, struct pawl_err *err)
{
    struct reading r = {log_dir, name, cursor, emit, arg, err};
    struct part seg[2] = {{.fd = -1}, {.fd = -1}};
    AUTO_FD int fd = -1;
    /* Segments first: found gone, the log is merged or was never split, and it is opened after. */
    int rc = open_part(&r, ".t0", &seg[0].fd);
    if (rc == 0)
        rc = open_part(&r, ".t1", &seg[1].fd);
    if (rc == 0)
        rc = open_part(&r, "", &fd);
    if (rc == 0 && fd >= 0)
        rc = read_parts(&r, fd, seg);
    fd_closep(&seg[0].fd);
    fd_closep(&seg[1].fd);
    return rc;
}
