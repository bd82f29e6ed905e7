#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { MOST = 8192 };
struct set {
    ino_t v[MOST];
    size_t n;
};
static struct set files, folders;
struct probe probe;
static char early[128];

void probe_reset(void)
{
    probe = (struct probe){0};
    files.n = folders.n = 0;
}

static bool has(const struct set *s, ino_t ino)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i] == ino)
            return true;
    return false;
}

static void add(struct set *s, ino_t ino)
{
    if (!has(s, ino) && s->n < MOST)
        s->v[s->n++] = ino;
}

static void drop(struct set *s, ino_t ino)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i] == ino)
            s->v[i--] = s->v[--s->n];
}

bool probe_file_dirty(ino_t ino)
{
    return has(&files, ino);
}

bool probe_folder_dirty(ino_t ino)
{
    return has(&folders, ino);
}

static ino_t ino_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

/* Shall this call fail? */
static bool hit(enum probe_op op)
{
    if (probe.before)
        probe.before(op);
    probe.calls++;
    probe.counts[op]++;
    if (!probe.fail_at || probe.calls < probe.fail_at ||
        (probe.calls > probe.fail_at && !probe.stays))
        return false;
    probe.fired = true;
    errno = probe.with;
    return true;
}

/* A new name in a folder: temporary files are excepted, nobody relies on theirs. */
static int p_open(int dir, const char *name, int flags)
{
    int fd = hit(OP_OPEN) ? -1 : disk_real.open(dir, name, flags);
    if (fd >= 0 && flags & O_EXCL && strstr(name, ".warc"))
        add(&folders, ino_of(dir));
    return fd;
}

static int p_open_foreign(const char *path)
{
    return hit(OP_OPEN_FOREIGN) ? -1 : disk_real.open_foreign(path);
}

static int p_make_folder(int dir, const char *name)
{
    if (hit(OP_MAKE_FOLDER))
        return -1;
    int rc = disk_real.make_folder(dir, name);
    if (rc == 0 && dir >= 0)
        add(&folders, ino_of(dir));
    return rc;
}

static int p_lock(int fd, int how)
{
    return hit(OP_LOCK) ? -1 : disk_real.lock(fd, how);
}

static ssize_t p_read(int fd, void *p, size_t n, off_t at)
{
    return hit(OP_READ) ? -1 : disk_real.read(fd, p, n, at);
}

static ssize_t p_write(int fd, const void *p, size_t n)
{
    bool fails = hit(OP_WRITE);
    add(&files, ino_of(fd));
    if (!fails)
        return disk_real.write(fd, p, n);
    if (probe.torn && n > 1 && disk_real.write(fd, p, n / 2) < 0)
        return -1;
    errno = probe.with;
    return -1;
}

static int p_truncate(int fd, off_t size)
{
    if (hit(OP_TRUNCATE))
        return -1;
    add(&files, ino_of(fd));
    return disk_real.truncate(fd, size);
}

static int p_sync_data(int fd)
{
    if (hit(OP_SYNC_DATA))
        return -1;
    if (!probe.lie[OP_SYNC_DATA])
        drop(&files, ino_of(fd));
    return 0;
}

static int p_sync_folder(int fd)
{
    if (hit(OP_SYNC_FOLDER))
        return -1;
    if (!probe.lie[OP_SYNC_FOLDER])
        drop(&folders, ino_of(fd));
    return 0;
}

static int p_sync_all(int fd)
{
    (void)fd;
    if (hit(OP_SYNC_ALL))
        return -1;
    if (!probe.lie[OP_SYNC_ALL])
        files.n = folders.n = 0;
    return 0;
}

static int p_stat(int dir, const char *name, struct stat *out)
{
    return hit(OP_STAT) ? -1 : disk_real.stat(dir, name, out);
}

static int p_writable(int dir, const char *name)
{
    return hit(OP_WRITABLE) ? -1 : disk_real.writable(dir, name);
}

static int p_touch(int dir, const char *name)
{
    return hit(OP_TOUCH) ? -1 : disk_real.touch(dir, name);
}

static int p_rename(int from, const char *old, int to, const char *name, bool replace)
{
    struct stat st;
    if (hit(OP_RENAME))
        return -1;
    if (fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW) == 0 && has(&files, st.st_ino)) {
        strncpy(early, name, sizeof(early) - 1);
        probe.named_early = early;
    }
    int rc = disk_real.rename(from, old, to, name, replace);
    if (rc == 0)
        add(&folders, ino_of(to));
    return rc;
}

static int p_unlink(int dir, const char *name)
{
    if (!hit(OP_UNLINK))
        return disk_real.unlink(dir, name);
    probe.unlink_failed = true;
    return -1;
}

static void p_forget(int fd, off_t from, off_t n)
{
    probe.forgotten += n;
    probe.forgotten_early = probe.forgotten_early || probe_file_dirty(ino_of(fd));
    disk_real.forget(fd, from, n);
}

const struct disk probe_disk = {
    .open = p_open,
    .open_foreign = p_open_foreign,
    .make_folder = p_make_folder,
    .lock = p_lock,
    .read = p_read,
    .write = p_write,
    .truncate = p_truncate,
    .sync_data = p_sync_data,
    .sync_folder = p_sync_folder,
    .sync_all = p_sync_all,
    .stat = p_stat,
    .writable = p_writable,
    .touch = p_touch,
    .rename = p_rename,
    .unlink = p_unlink,
    .forget = p_forget,
};
