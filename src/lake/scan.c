/* What lies in the lake: finding all of it, holding on to one, deleting what nobody needs. */
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

struct dur lake_age(const struct stat *st)
{
    int64_t kept = st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000;
    int64_t age = clock_wall().us - kept;
    return DUR_US(age > 0 ? age : 0);
}

struct scan {
    struct lake *lake;
    bool (*each)(void *arg, const struct lake_entry *e);
    void *arg;
};

static bool read_name(const char *name, int folder, struct place *out)
{
    if (folder < 0)
        return layout_read_temp(name, out);
    return layout_read_object(name, out) && out->sha256[0] == folder;
}

/* 1: go on, 0: `each` has enough. */
static int show(struct scan *s, const struct place *at, const struct stat *st)
{
    char place[PLACE_NAME];
    if (at->temporary)
        snprintf(place, sizeof(place), "tmp/%s", at->name);
    else
        layout_place(at->sha256, at->codec, place);
    struct lake_entry e = {
        .temporary = at->temporary, .place = place, .stored = st->st_size, .age = lake_age(st)};
    memcpy(e.sha256, at->sha256, SHA256_LEN);
    return s->each(s->arg, &e);
}

/* What cannot be looked at is told as such, and the others are looked at. at NULL: the folder. */
static int show_wrong(struct scan *s, int folder, const struct place *at, int errno_,
                      struct pawl_err *err)
{
    char place[PLACE_NAME];
    if (folder < 0 || disk_fails_all(errno_))
        return disk_error(err, errno_, "cannot look at %s of %s", at ? at->name : "a folder",
                          s->lake->path);
    if (at)
        layout_place(at->sha256, at->codec, place);
    else
        snprintf(place, sizeof(place), "files/%02x", (unsigned)folder);
    const struct lake_entry e = {.wrong = disk_why(errno_), .place = place};
    return s->each(s->arg, &e);
}

/* One folder; folder -1: tmp/. Takes over fd. 1: go on, 0: enough. */
static int scan_folder(struct scan *s, int fd, int folder, struct pawl_err *err)
{
    AUTO(close_dirp) DIR *d = fdopendir(fd);
    if (!d) {
        int e = errno;
        close(fd);
        return disk_error(err, e, "cannot read a folder of %s", s->lake->path);
    }
    for (;;) {
        struct place at;
        struct stat st;
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e)
            return errno ? show_wrong(s, folder, NULL, errno, err) : 1;
        if (!read_name(e->d_name, folder, &at))
            continue;
        int rc = 1;
        if (s->lake->disk->stat(fd, e->d_name, &st) < 0)
            rc = errno == ENOENT ? 1 : show_wrong(s, folder, &at, errno, err);
        else if (S_ISREG(st.st_mode))
            rc = show(s, &at, &st);
        if (rc <= 0)
            return rc;
    }
}

int lake_scan(struct lake *l, bool (*each)(void *arg, const struct lake_entry *e), void *arg,
              struct pawl_err *err)
{
    struct scan s = {l, each, arg};
    int fd = l->disk->open(l->tmp, ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return disk_error(err, errno, "cannot open %s/tmp", l->path);
    int rc = scan_folder(&s, fd, -1, err);
    for (int i = 0; rc > 0 && i < FOLDERS; i++) {
        fd = lake_folder(l, (unsigned char)i, false);
        if (fd >= 0)
            rc = scan_folder(&s, fd, i, err);
        else if (errno != ENOENT)
            rc = show_wrong(&s, i, NULL, errno, err);
    }
    if (rc > 0)
        rc = pack_scan(l, each, arg, err);
    return rc < 0 ? rc : 0;
}

/* ---- one of them ---- */

static int read_place(const char *place, struct place *out, struct pawl_err *err)
{
    if (layout_read_place(sv_of(place), out))
        return 0;
    return err_set(err, PAWL_EINPUT, "\"%s\" is no place of this lake", place ? place : "");
}

/* 1: it is there and a regular file, 0: it is not there. */
static int look(struct lake *l, int folder, const struct place *at, struct stat *st,
                struct pawl_err *err)
{
    if (folder < 0 || l->disk->stat(folder, at->name, st) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot look at %s", at->name);
    if (!S_ISREG(st->st_mode))
        return disk_not_file(err, st, at->name);
    return 1;
}

int lake_touch(struct lake *l, const char *place, bool *out_there, struct pawl_err *err)
{
    struct place at;
    struct stat st;
    struct lake_span spans[2];
    int n = lake_spans(sv_of(place), spans);
    if (n)
        return pack_touch(l, spans, n, out_there, err);
    int rc = read_place(place, &at, err);
    if (rc == 0 && at.temporary)
        rc = err_set(err, PAWL_EINPUT, "%s is no object", place);
    if (rc == 0)
        rc = lake_lock(l, LOCK_SH, err);
    if (rc < 0)
        return rc;
    AUTO_FD int folder = lake_folder(l, at.sha256[0], false);
    rc = look(l, folder, &at, &st, err);
    if (rc > 0 && l->disk->touch(folder, at.name) < 0)
        rc = errno == ENOENT ? 0 : disk_error(err, errno, "cannot touch object %s", at.name);
    lake_unlock(l);
    if (rc < 0)
        return rc;
    *out_there = rc > 0;
    return 0;
}

/* A temporary file that somebody still writes is locked, and not old whatever its age. */
static int is_held(struct lake *l, int folder, const struct place *at, struct pawl_err *err)
{
    AUTO_FD int fd = l->disk->open(folder, at->name, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? 1 : disk_error(err, errno, "cannot open %s", at->name);
    if (l->disk->lock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? 1 : disk_error(err, errno, "cannot lock %s", at->name);
}

/* Under the exclusive lock: no writer is between its look at an object and its touch. 1: gone. */
static int remove_old(struct lake *l, int folder, const struct place *at, struct dur younger,
                      struct pawl_err *err)
{
    struct stat st;
    int rc = look(l, folder, at, &st, err);
    if (rc <= 0 || lake_age(&st).us < younger.us)
        return rc < 0 ? rc : 0;
    rc = at->temporary ? is_held(l, folder, at, err) : 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (l->disk->unlink(folder, at->name) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot delete %s", at->name);
    return 1;
}

int lake_remove(struct lake *l, const char *place, struct dur younger, bool *out_removed,
                struct pawl_err *err)
{
    struct place at;
    char segment[SEGMENT_NAME];
    if (segment_of_place(sv_of(place), segment))
        return pack_remove(l, segment, younger, out_removed, err);
    int rc = read_place(place, &at, err);
    if (rc == 0)
        rc = disk_scope(err, lake_lock(l, LOCK_EX, err), true);
    if (rc < 0)
        return rc;
    AUTO_FD int folder = at.temporary ? l->disk->open(l->tmp, ".", O_RDONLY | O_DIRECTORY)
                                      : lake_folder(l, at.sha256[0], false);
    rc = remove_old(l, folder, &at, younger, err);
    lake_unlock(l);
    if (rc < 0)
        return disk_scope(err, rc, folder < 0 && at.temporary);
    *out_removed = rc > 0;
    return 0;
}
