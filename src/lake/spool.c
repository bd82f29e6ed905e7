/* Temporary files: as they are, and as spools with a running hash. */
#include "lake_internal.h"

#include "fd.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

/* Random for each handle, then counted: fresh randomness costs as much as a rename. */
static void temp_name(struct lake *l, char out[TEMP_NAME])
{
    uint64_t n = atomic_fetch_add_explicit(&l->n_temps, 1, memory_order_relaxed);
    unsigned char raw[2 * sizeof(n)];
    memcpy(raw, &l->temps, sizeof(n));
    memcpy(raw + sizeof(n), &n, sizeof(n));
    hex_encode(raw, sizeof(raw), out);
}

int temp_open(struct lake *l, struct temp *out, struct pawl_err *err)
{
    struct temp t;
    temp_name(l, t.name);
    t.fd = l->disk->open(l->tmp, t.name, O_RDWR | O_CREAT | O_EXCL);
    if (t.fd < 0)
        return disk_error(err, errno, "cannot make %s/tmp/%s", l->path, t.name);
    *out = t;
    return 0;
}

int temp_write(struct lake *l, struct temp *t, struct sv bytes, struct pawl_err *err)
{
    while (bytes.n) {
        ssize_t n = l->disk->write(t->fd, bytes.p, bytes.n);
        if (n < 0 && errno == EFBIG) /* of these bytes; others may be kept */
            return err_errno(err, PAWL_EINPUT, errno, "cannot write %s/tmp/%s", l->path, t->name);
        if (n <= 0)
            return disk_error(err, n ? errno : ENOSPC, "cannot write %s/tmp/%s", l->path, t->name);
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    return 0;
}

void temp_close(struct temp *t)
{
    fd_closep(&t->fd);
}

void temp_drop(struct lake *l, struct temp *t)
{
    temp_close(t);
    if (t->name[0])
        l->disk->unlink(l->tmp, t->name); /* one that stays is found by lake_scan() */
    t->name[0] = '\0';
}

int lake_spool_open(struct lake *l, struct lake_spool **out, struct pawl_err *err)
{
    struct temp t;
    int rc = temp_open(l, &t, err);
    if (rc < 0)
        return rc;
    if (l->disk->lock(t.fd, LOCK_EX | LOCK_NB) < 0) {
        rc = disk_error(err, errno, "cannot lock %s/tmp/%s", l->path, t.name);
        temp_drop(l, &t);
        return rc;
    }
    struct lake_spool *s = mem_zalloc(1, sizeof(*s));
    s->lake = l;
    s->temp = t;
    sha256_init(&s->hash);
    *out = s;
    return 0;
}

int lake_spool_write(struct lake_spool *s, struct sv bytes, struct pawl_err *err)
{
    if (s->rc == 0) {
        s->rc = temp_write(s->lake, &s->temp, bytes, &s->err);
        sha256_update(&s->hash, bytes);
        s->size += (int64_t)bytes.n;
    }
    if (s->rc < 0 && err)
        *err = s->err;
    return s->rc;
}

void lake_spool_drop(struct lake_spool *s)
{
    if (!s)
        return;
    temp_drop(s->lake, &s->temp);
    sha256_done(&s->hash);
    free(s);
}

/* A file that grows meanwhile is not followed for ever: it is copied up to the end it had. */
static int copy_bytes(struct lake *l, int fd, const char *path, int64_t size, struct lake_spool *s,
                      struct pawl_err *err)
{
    while (s->size < size) {
        int64_t left = size - s->size;
        size_t want = left < COPY_BUFFER ? (size_t)left : COPY_BUFFER;
        ssize_t n = l->disk->read(fd, lake_buffer(l), want, s->size);
        if (n < 0)
            return err_errno(err, PAWL_EINPUT, errno, "cannot read %s", path);
        if (n == 0)
            return 0;
        int rc = lake_spool_write(s, sv_make(lake_buffer(l), (size_t)n), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int spool_copy(struct lake *l, const char *path, struct lake_spool **out, struct pawl_err *err)
{
    struct lake_spool *s = NULL;
    struct stat st;
    AUTO_FD int fd = l->disk->open_foreign(path);
    if (fd < 0) {
        bool ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return err_errno(err, ours ? PAWL_EIO : PAWL_EINPUT, errno, "cannot open %s", path);
    }
    if (fstat(fd, &st) < 0)
        return err_errno(err, PAWL_EINPUT, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, PAWL_EINPUT, "%s is not a regular file", path);
    int rc = lake_spool_open(l, &s, err);
    if (rc == 0)
        rc = copy_bytes(l, fd, path, st.st_size, s, err);
    if (rc < 0) {
        lake_spool_drop(s);
        return rc;
    }
    *out = s;
    return 0;
}
