#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

int fd_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;
    while (n) {
        ssize_t w = write(fd, at, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

int fd_read_all(int fd, const char *name, struct str *out, struct pawl_err *err)
{
    char buf[65536];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, PAWL_EIO, errno, "cannot read %s", name);
        if (n == 0)
            return 0;
        str_add(out, sv_make(buf, (size_t)n));
        if (out->overflow)
            return err_set(err, PAWL_EINPUT, "%s is larger than %zu bytes", name, out->max);
    }
}

int file_read(const char *path, struct str *out, struct pawl_err *err)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EIO, errno, "cannot open %s",
                         path);
    return fd_read_all(fd, path, out, err);
}

void fd_allow_many(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r); /* refused: what there was has to do */
}
