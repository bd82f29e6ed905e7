/* Segments from outside: which there are, holding on to records in one, shortening and deleting.
 * What is deleted or cut must be old, looked at again while no writer is between its look and its
 * touch, and nobody may hold the segment's own lock. */
#include "pack.h"

#include "fd.h"
#include "mem.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

static void close_dirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* ---- which there are ---- */

static int show(struct lake *l, int folder, const char *file, const char *segment,
                bool (*each)(void *arg, const struct lake_entry *e), void *arg,
                struct pawl_err *err)
{
    struct stat st;
    char place[PLACE_MAX_BYTES + 1];
    AUTO_FD int fd = l->disk->open(folder, file, O_RDONLY);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP))
        return 1;
    snprintf(place, sizeof(place), "pack/%s", segment);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const struct lake_entry e = {.wrong = disk_why(errno), .place = place};
        return disk_fails_all(errno)
                   ? disk_error(err, errno, "cannot look at segment %s of %s", segment, l->path)
                   : each(arg, &e);
    }
    if (!S_ISREG(st.st_mode))
        return 1;
    struct lake_entry e = {.segment = true,
                           .busy = l->disk->lock(fd, LOCK_SH | LOCK_NB) < 0,
                           .place = place,
                           .stored = st.st_size,
                           .head = pack_first(l, fd),
                           .age = lake_age(&st)};
    return each(arg, &e);
}

int pack_scan(struct lake *l, bool (*each)(void *arg, const struct lake_entry *e), void *arg,
              struct pawl_err *err)
{
    struct pawl_err none;
    int rc = lake_segments(l, false, &none);
    if (rc < 0) {
        if (rc != PAWL_ENOTFOUND)
            *err = none;
        return rc == PAWL_ENOTFOUND ? 1 : rc;
    }
    int fd = l->disk->open(l->segments, ".", O_RDONLY | O_DIRECTORY);
    AUTO(close_dirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = errno;
        if (fd >= 0)
            close(fd);
        return disk_error(err, e, "cannot read %s/segments", l->path);
    }
    for (rc = 1; rc > 0;) {
        char segment[SEGMENT_NAME];
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            return errno ? disk_error(err, errno, "cannot read %s/segments", l->path) : 1;
        if (segment_of_file(e->d_name, segment))
            rc = show(l, l->segments, e->d_name, segment, each, arg, err);
    }
    return rc;
}

/* ---- holding on ---- */

static int touch_one(struct lake *l, const struct lake_span *s, struct pawl_err *err)
{
    char file[SEGMENT_FILE];
    struct stat st;
    segment_file(s->segment, file);
    if (l->disk->stat(l->segments, file, &st) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot look at %s", file);
    if (!S_ISREG(st.st_mode))
        return disk_not_file(err, &st, file);
    if (st.st_size < s->offset + s->length)
        return 0;
    if (l->disk->touch(l->segments, file) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot touch %s", file);
    return 1;
}

int pack_touch(struct lake *l, const struct lake_span *v, int n, bool *out_there,
               struct pawl_err *err)
{
    int rc = lake_segments(l, false, err);
    if (rc == PAWL_ENOTFOUND) {
        *out_there = false;
        return 0;
    }
    if (rc == 0)
        rc = lake_lock(l, LOCK_SH, err);
    if (rc < 0)
        return rc;
    rc = 1;
    for (int i = 0; rc > 0 && i < n; i++)
        rc = touch_one(l, &v[i], err);
    lake_unlock(l);
    if (rc < 0)
        return rc;
    *out_there = rc > 0;
    return 0;
}

/* ---- letting go ---- */

/* Under the lake's exclusive lock. 1: *out is the segment, old, locked and nobody's; 0: leave it.
 */
static int take(struct lake *l, const char *file, struct dur younger, int *out,
                struct pawl_err *err)
{
    struct stat st;
    AUTO_FD int fd = l->disk->open(l->segments, file, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot open %s", file);
    if (l->disk->lock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? 0 : disk_error(err, errno, "cannot lock %s", file);
    if (fstat(fd, &st) < 0)
        return disk_error(err, errno, "cannot look at %s", file);
    if (!S_ISREG(st.st_mode))
        return disk_not_file(err, &st, file);
    if (lake_age(&st).us < younger.us)
        return 0;
    *out = TAKE_FD(fd);
    return 1;
}

static int take_locked(struct lake *l, const char *segment, struct dur younger,
                       char file[SEGMENT_FILE], int *out, struct pawl_err *err)
{
    segment_file(segment, file);
    int rc = lake_segments(l, false, err);
    if (rc == 0)
        rc = lake_lock(l, LOCK_EX, err);
    if (rc < 0)
        return disk_scope(err, rc, true);
    rc = take(l, file, younger, out, err);
    if (rc <= 0)
        lake_unlock(l);
    return rc;
}

int pack_remove(struct lake *l, const char *segment, struct dur younger, bool *out_removed,
                struct pawl_err *err)
{
    char file[SEGMENT_FILE];
    AUTO_FD int fd = -1;
    int rc = take_locked(l, segment, younger, file, &fd, err);
    if (rc > 0) {
        if (l->disk->unlink(l->segments, file) < 0 && errno != ENOENT)
            rc = disk_error(err, errno, "cannot delete %s", file);
        lake_unlock(l);
    }
    if (rc < 0)
        return disk_scope(err, rc, false);
    *out_removed = rc > 0;
    return 0;
}

/* The time of its last writing stays as it was: it is as old as before. */
static int shorten(struct lake *l, int fd, const char *file, int64_t end, struct pawl_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return disk_error(err, errno, "cannot look at %s", file);
    if (st.st_size <= end)
        return 0;
    if (l->disk->truncate(fd, end) < 0)
        return disk_error(err, errno, "cannot shorten %s", file);
    if (l->disk->sync_data(fd) < 0)
        return disk_error(err, errno, "cannot sync %s", file);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    (void)futimens(fd, times); /* else the next look finds it young */
    return 1;
}

int lake_cut(struct lake *l, const char *place, int64_t end, struct dur younger, bool *out_cut,
             struct pawl_err *err)
{
    char segment[SEGMENT_NAME], file[SEGMENT_FILE];
    AUTO_FD int fd = -1;
    if (!segment_of_place(sv_of(place), segment))
        return err_set(err, PAWL_EINPUT, "\"%s\" is no segment", place ? place : "");
    int rc = take_locked(l, segment, younger, file, &fd, err);
    if (rc > 0) {
        rc = shorten(l, fd, file, end, err);
        lake_unlock(l);
    }
    if (rc < 0)
        return disk_scope(err, rc, false);
    *out_cut = rc > 0;
    return 0;
}
