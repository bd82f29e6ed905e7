/* Whose lake it is. To another store's rows everything in it looks like left over, so that store
 * must neither clean it up nor have its own bytes cleaned up in it. The lock file says whose it is:
 * it is a lake's first file, and a writer can hold it while it looks and writes. */
#include "lake_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MARK "store "

/* Anything but a whole line is nobody's: a crash may have left part of one. */
static int read_owner(struct lake *l, int fd, char out[LAKE_OWNER], struct pawl_err *err)
{
    char line[sizeof(MARK) + LAKE_OWNER] = "";
    ssize_t n = l->disk->read(fd, line, sizeof(line) - 1, 0);
    if (n < 0)
        return disk_error(err, errno, "cannot read %s/%s", l->path, LOCK_NAME);
    char *id = line + sizeof(MARK) - 1, *end = memchr(line, '\n', (size_t)n);
    bool whole = end && end > id && !strncmp(line, MARK, sizeof(MARK) - 1);
    if (whole)
        *end = '\0';
    snprintf(out, LAKE_OWNER, "%s", whole ? id : "");
    return 0;
}

int lake_owner(struct lake *l, char out[LAKE_OWNER], struct pawl_err *err)
{
    out[0] = '\0';
    int fd = l->disk->open(l->root, LOCK_NAME, O_RDONLY); /* whoever only reads need not write */
    if (fd < 0)
        return errno == ENOENT ? 0
                               : disk_error(err, errno, "cannot open %s/%s", l->path, LOCK_NAME);
    int rc = read_owner(l, fd, out, err);
    close(fd);
    return rc;
}

static int write_owner(struct lake *l, const char *owner, struct pawl_err *err)
{
    char line[sizeof(MARK) + LAKE_OWNER + 1];
    int n = snprintf(line, sizeof(line), MARK "%s\n", owner);
    bool good = l->disk->truncate(l->lock, 0) == 0 && l->disk->write(l->lock, line, (size_t)n) == n;
    if (!good || l->disk->sync_data(l->lock) < 0)
        return disk_error(err, errno, "cannot write %s/%s", l->path, LOCK_NAME);
    return 0;
}

int lake_adopt(struct lake *l, const char *owner, struct pawl_err *err)
{
    int rc = lake_lock(l, LOCK_EX, err);
    if (rc < 0)
        return rc;
    rc = write_owner(l, owner, err);
    lake_unlock(l);
    return rc;
}

static int refuse(const struct lake *l, struct pawl_err *err)
{
    err_set(err, PAWL_ECONFLICT, "the lake %s is another store's", l->path);
    return err_hint(err, "set lake.path to a folder of its own; 'pawl lake adopt' if that store "
                         "is gone or this one takes its place");
}

/* The look without the lock is for the many who come when it is settled. */
int owner_check(struct lake *l, const char *owner, bool take, struct pawl_err *err)
{
    char now[LAKE_OWNER];
    int rc = lake_owner(l, now, err);
    if (rc == 0 && !now[0] && take) {
        rc = lake_lock(l, LOCK_EX, err);
        if (rc < 0)
            return rc;
        rc = read_owner(l, l->lock, now, err);
        if (rc == 0 && !now[0])
            rc = write_owner(l, owner, err);
        lake_unlock(l);
    }
    return rc == 0 && now[0] && strcmp(now, owner) != 0 ? refuse(l, err) : rc;
}
