#include "logfile.h"

#include "joblog_format.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void logfile_init(struct logfile *f, int root, const char *name, int64_t head, int64_t tail)
{
    *f = (struct logfile){.root = root,
                          .name = name,
                          .head = head,
                          .tail = tail,
                          .dir = -1,
                          .fd = -1,
                          .seg = {{.fd = -1}, {.fd = -1}}};
}

static int fail(struct logfile *f)
{
    f->error = errno ? errno : EIO;
    return -1;
}

static int write_all(struct logfile *f, int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return fail(f);
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* One step down, making the folder if need be; never through a symbolic link or upwards. */
static int enter(int dir, const char *name, size_t n)
{
    char part[256];
    if (n == 0 || n >= sizeof(part) || (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')))) {
        errno = EINVAL;
        return -1;
    }
    memcpy(part, name, n);
    part[n] = 0;
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(dir, part, flags);
    if (fd < 0 && errno == ENOENT && (mkdirat(dir, part, 0700) == 0 || errno == EEXIST))
        fd = openat(dir, part, flags);
    return fd;
}

static int open_dir(struct logfile *f)
{
    f->dir = fcntl(f->root, F_DUPFD_CLOEXEC, 4);
    const char *at = f->name;
    for (const char *slash; f->dir >= 0 && (slash = strchr(at, '/')); at = slash + 1) {
        int next = enter(f->dir, at, (size_t)(slash - at));
        int saved = errno;
        close(f->dir);
        errno = saved;
        f->dir = next;
    }
    return f->dir < 0 ? fail(f) : 0;
}

static int open_log(struct logfile *f)
{
    if (f->fd >= 0)
        return 0;
    if (open_dir(f) < 0)
        return -1;
    f->fd = openat(f->dir, base_name(f->name), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                   0600);
    return f->fd < 0 ? fail(f) : 0;
}

static int segment_name(const struct logfile *f, int i, char out[300])
{
    int n = snprintf(out, 300, "%s.t%d", base_name(f->name), i);
    return n > 0 && n < 300 ? 0 : -1;
}

/* Make segment i the current one, empty, beginning at `offset` of the output. */
static int begin_segment(struct logfile *f, int i, int64_t offset)
{
    struct segment *s = &f->seg[i];
    char name[300], header[JOBLOG_HEADER_BYTES + 1];
    errno = ENAMETOOLONG;
    if (segment_name(f, i, name) < 0)
        return fail(f);
    if (s->fd < 0)
        s->fd = openat(f->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->fd < 0 || ftruncate(s->fd, 0) < 0 || lseek(s->fd, 0, SEEK_SET) < 0)
        return fail(f);
    memset(header, ' ', sizeof(header));
    int n = snprintf(header, sizeof(header), JOBLOG_HEADER_FORMAT, (long long)f->head,
                     (long long)offset);
    header[n] = ' ';
    header[JOBLOG_HEADER_BYTES - 1] = '\n';
    f->current = i;
    s->offset = offset;
    s->len = 0;
    return write_all(f, s->fd, header, JOBLOG_HEADER_BYTES);
}

static int add_to_head(struct logfile *f, const char *p, size_t n)
{
    return open_log(f) < 0 ? -1 : write_all(f, f->fd, p, n);
}

static int add_to_tail(struct logfile *f, const char *p, size_t n, int64_t offset)
{
    while (n) {
        struct segment *s = &f->seg[f->current];
        if (s->fd < 0 && begin_segment(f, f->current, offset) < 0)
            return -1;
        if (s->len == f->tail) {
            if (begin_segment(f, !f->current, offset) < 0)
                return -1;
            continue;
        }
        size_t part = (int64_t)n < f->tail - s->len ? n : (size_t)(f->tail - s->len);
        if (write_all(f, s->fd, p, part) < 0)
            return -1;
        s->len += (int64_t)part;
        offset += (int64_t)part;
        p += part;
        n -= part;
    }
    return 0;
}

void logfile_add(struct logfile *f, const char *p, size_t n)
{
    int64_t at = f->total;
    f->total += (int64_t)n;
    if (f->root < 0 || f->error || n == 0)
        return;
    size_t part = 0;
    if (at < f->head) {
        part = (int64_t)n < f->head - at ? n : (size_t)(f->head - at);
        if (add_to_head(f, p, part) < 0)
            return;
    }
    if (part < n && f->tail > 0)
        add_to_tail(f, p + part, n - part, at + (int64_t)part);
}

/* Copy the bytes of a segment that lie at or behind `from` in the output. */
static int append_segment(struct logfile *f, const struct segment *s, int64_t from, char *buf,
                          size_t size)
{
    int64_t at = from > s->offset ? from - s->offset : 0;
    while (at < s->len) {
        size_t want = (int64_t)size < s->len - at ? size : (size_t)(s->len - at);
        ssize_t n = pread(s->fd, buf, want, JOBLOG_HEADER_BYTES + at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(f);
        if (write_all(f, f->fd, buf, (size_t)n) < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int append_marker(struct logfile *f, int64_t left_out)
{
    char text[JOBLOG_MARKER_MAX];
    int n = snprintf(text, sizeof(text), JOBLOG_MARKER_FORMAT, (long long)left_out);
    return left_out > 0 ? write_all(f, f->fd, text, (size_t)n) : 0;
}

static void merge(struct logfile *f, char *buf, size_t size)
{
    int64_t from = f->total - f->tail > f->head ? f->total - f->tail : f->head;
    if (append_marker(f, from - f->head) < 0 ||
        append_segment(f, &f->seg[!f->current], from, buf, size) < 0 ||
        append_segment(f, &f->seg[f->current], from, buf, size) < 0)
        return; /* readers still find everything in the segments */
    char name[300];
    for (int i = 0; i < 2; i++)
        if (f->seg[i].fd >= 0 && segment_name(f, i, name) == 0)
            unlinkat(f->dir, name, 0);
}

void logfile_finish(struct logfile *f, char *buf, size_t size)
{
    if (f->fd < 0)
        return;
    if (f->error) {
        char text[128];
        int n = snprintf(text, sizeof(text), "\n[the rest could not be written: %s]\n",
                         strerror(f->error));
        (void)!write(f->fd, text, (size_t)n);
    } else if (f->total > f->head && f->tail > 0) {
        merge(f, buf, size);
    }
}

void logfile_close(struct logfile *f)
{
    const int fds[] = {f->dir, f->fd, f->seg[0].fd, f->seg[1].fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}
