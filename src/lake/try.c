/* Does the lake take bytes now? What keeping needs is tried, and nothing of it stays. */
#include "lake_internal.h"

#include <errno.h>
#include <sys/file.h>

static int try_bytes(struct lake *l, size_t n, struct pawl_err *err)
{
    struct temp t;
    int rc = temp_open(l, &t, err);
    if (rc < 0)
        return rc;
    memset(lake_buffer(l), 0, n);
    rc = temp_write(l, &t, sv_make(lake_buffer(l), n), err);
    if (rc == 0 && l->disk->sync_data(t.fd) < 0)
        rc = disk_error(err, errno, "cannot sync %s/tmp/%s", l->path, t.name);
    temp_drop(l, &t);
    return rc;
}

/* Something that is no folder there is refused when it is opened; here it must not pass either. */
static int try_folder(struct lake *l, int dir, const char *name, bool must, struct pawl_err *err)
{
    struct stat st;
    if (l->disk->stat(dir, name, &st) < 0)
        return errno == ENOENT && !must ? 0 : disk_error(err, errno, "%s: %s", l->path, name);
    if (!S_ISDIR(st.st_mode))
        return disk_error(err, ENOTDIR, "%s: %s", l->path, name);
    if (l->disk->writable(dir, name) < 0)
        return disk_error(err, errno, "cannot write to %s: %s", l->path, name);
    return 0;
}

/* All of them, because a body may get its name in any. */
static int try_objects(struct lake *l, struct pawl_err *err)
{
    char name[FOLDER_NAME];
    int rc = try_folder(l, l->root, "objects", true, err);
    for (int i = 0; rc == 0 && i < FOLDERS; i++) {
        layout_folder((unsigned char)i, name);
        rc = try_folder(l, l->objects, name, false, err);
    }
    return rc;
}

int lake_try(struct lake *l, int64_t bytes, struct pawl_err *err)
{
    int rc = lake_lock(l, LOCK_SH, err);
    if (rc < 0)
        return rc;
    lake_unlock(l);
    rc = l->mode == LAKE_PACK ? try_folder(l, l->root, "segments", true, err) : try_objects(l, err);
    if (rc < 0)
        return rc;
    return try_bytes(l, bytes < COPY_BUFFER ? (size_t)bytes : COPY_BUFFER, err);
}
