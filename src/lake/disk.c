#include "disk.h"

#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RETRY(call)                                                                                \
    __extension__({                                                                                \
        __typeof__(call) retry_;                                                                   \
        do                                                                                         \
            retry_ = (call);                                                                       \
        while (retry_ < 0 && errno == EINTR);                                                      \
        retry_;                                                                                    \
    })

static int real_open(int dir, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
        .mode = flags & O_CREAT ? 0600 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < 100; i++) {
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
        /* EAGAIN: something was renamed meanwhile and the kernel cannot be sure. */
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
    return -1;
}

static int real_open_foreign(const char *path)
{
    return RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static int real_make_folder(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) < 0)
        return -1;
    return fchmodat(dir, name, 0700, 0);
}

static int real_lock(int fd, int how)
{
    return RETRY(flock(fd, how));
}

static ssize_t real_read(int fd, void *p, size_t n, off_t at)
{
    return RETRY(pread(fd, p, n, at));
}

static ssize_t real_write(int fd, const void *p, size_t n)
{
    return RETRY(write(fd, p, n));
}

static int real_truncate(int fd, off_t size)
{
    return RETRY(ftruncate(fd, size));
}

static int real_sync_data(int fd)
{
    return RETRY(fdatasync(fd));
}

static int real_sync_folder(int fd)
{
    return RETRY(fsync(fd));
}

static int real_sync_all(int fd)
{
    return RETRY(syncfs(fd));
}

static int real_stat(int dir, const char *name, struct stat *out)
{
    return fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW);
}

static int real_writable(int dir, const char *name)
{
    return faccessat(dir, name, W_OK | X_OK, AT_EACCESS);
}

static int real_touch(int dir, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

static int real_rename(int from, const char *old, int to, const char *name, bool replace)
{
    return renameat2(from, old, to, name, replace ? 0 : RENAME_NOREPLACE);
}

static int real_unlink(int dir, const char *name)
{
    return unlinkat(dir, name, 0);
}

/* The kernel leaves a page of which only a part is meant. The first one was begun by whoever came
 * before, and goes now. */
static void real_forget(int fd, off_t from, off_t n)
{
    off_t begun = from % sysconf(_SC_PAGESIZE);
    posix_fadvise(fd, from - begun, n + begun, POSIX_FADV_DONTNEED);
}

const struct disk disk_real = {
    .open = real_open,
    .open_foreign = real_open_foreign,
    .make_folder = real_make_folder,
    .lock = real_lock,
    .read = real_read,
    .write = real_write,
    .truncate = real_truncate,
    .sync_data = real_sync_data,
    .sync_folder = real_sync_folder,
    .sync_all = real_sync_all,
    .stat = real_stat,
    .writable = real_writable,
    .touch = real_touch,
    .rename = real_rename,
    .unlink = real_unlink,
    .forget = real_forget,
};

int disk_error(struct pawl_err *err, int errno_, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    if (errno_ == ELOOP || errno_ == ENOTDIR)
        return err_set(err, PAWL_EIO,
                       "%s: a symbolic link or a stranger's file where the lake has its own", what);
    if (errno_ == ENOSYS)
        return err_errno(err, PAWL_EIO, errno_, "%s: openat2 is needed (Linux 5.6)", what);
    bool full = errno_ == ENOSPC || errno_ == EDQUOT || errno_ == EROFS;
    return err_errno(err, full ? PAWL_EFULL : PAWL_EIO, errno_, "%s", what);
}

int disk_not_file(struct pawl_err *err, const struct stat *st, const char *name)
{
    if (S_ISLNK(st->st_mode))
        return disk_error(err, ELOOP, "%s", name);
    return err_set(err, PAWL_EIO, "%s is not a regular file", name);
}

bool disk_fails_all(int errno_)
{
    static const int known[] = {EMFILE,    ENFILE,       ENOMEM,    ENOSYS,
                                EROFS,     ESTALE,       ENOTCONN,  ESHUTDOWN,
                                EHOSTDOWN, EHOSTUNREACH, ETIMEDOUT, ENETUNREACH};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (errno_ == known[i])
            return true;
    return false;
}

const char *disk_why(int errno_)
{
    switch (errno_) {
    case EACCES:
    case EPERM:
        return "this user may not read it";
    case EIO:
        return "the disk cannot read it";
    case ENXIO: /* a socket, or a device without a driver */
        return "it is not a regular file";
    case ELOOP:
    case ENOTDIR:
        return "a symbolic link or a stranger's file is in its place";
    default:
        return "it cannot be opened";
    }
}

int disk_scope(struct pawl_err *err, int rc, bool all)
{
    if (rc != PAWL_EIO || (!all && !(err && disk_fails_all(err->sys_errno))))
        return rc;
    if (err)
        err->code = PAWL_EUNREACHABLE;
    return PAWL_EUNREACHABLE;
}

/* syncfs() tells of failed writes since Linux 5.8. */
static bool kernel_tells(void)
{
    struct utsname u;
    int64_t major, minor;
    struct sv rest, last;
    if (uname(&u) < 0)
        return false;
    struct sv first = sv_cut(sv_of(u.release), '.', &rest);
    struct sv second = sv_cut(rest, '.', &last);
    if (sv_to_i64(first, 0, 1000, &major) < 0 || sv_to_i64(second, 0, 1000, &minor) < 0)
        return false;
    return major > 5 || (major == 5 && minor >= 8);
}

bool disk_shares_syncs(int fd)
{
    /* Not on the list: those that do not pass it on to where the bytes are (FUSE), or not the
     * errors (overlayfs), and those that nobody has looked at. */
    static const unsigned known[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                     F2FS_SUPER_MAGIC, TMPFS_MAGIC};
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0 || !kernel_tells())
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if ((unsigned)fs.f_type == known[i])
            return true;
    return false;
}
