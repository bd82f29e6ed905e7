/* Opening a lake: its folders, its lock, what a crash may have left half made. */
#include "pack.h"

#include "fd.h"
#include "hash.h"
#include "mem.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/statvfs.h>

/* From here on one syncfs() is faster than a sync for each (bench/lake.c; 2 cores, ext4). Not from
 * two on, though it would be as fast: it also waits for what others write on the file system. */
enum { SHARE_FROM = 4, SEGMENT_BYTES = 1 << 30 };
#define SEGMENT_AGE DUR_S(3600)

static const char README_NAME[] = "README";
static const char README[] =
    "This folder is a lake of pawl: what jobs keep, as files named by their content, or packed.\n"
    "\n"
    "objects/ab/abcd...      the bytes; the name is their SHA-256\n"
    "objects/ab/abcd....zst  the same, compressed: `zstd -dc FILE | sha256sum` prints the name\n"
    "segments/...warc.gz     many of them, as records of WARC/1.1, each a member of gzip\n"
    "tmp/                    unfinished; left over only after a crash\n"
    "lake.lock               whose lake it is; writers and `pawl verify --repair` meet here: "
    "never\n"
    "                        delete it\n"
    "\n"
    "Which job and URL a file belongs to is in the store (view v_artifacts). Do not change files\n"
    "here; copying and reading them is safe at any time.\n";

char *lake_buffer(struct lake *l)
{
    if (!l->buffer)
        l->buffer = mem_alloc(COPY_BUFFER);
    return l->buffer;
}

static int open_folder(struct lake *l, const char *name, bool make, int *out, struct pawl_err *err)
{
    int fd = l->disk->open(l->root, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOENT && make) {
        if (l->disk->make_folder(l->root, name) < 0 && errno != EEXIST)
            return disk_error(err, errno, "cannot make %s/%s", l->path, name);
        fd = l->disk->open(l->root, name, O_RDONLY | O_DIRECTORY);
    }
    if (fd < 0 && errno == ENOENT)
        return err_set(err, PAWL_ENOTFOUND, "%s is no lake: it has no folder %s", l->path, name);
    if (fd < 0)
        return disk_error(err, errno, "cannot open %s/%s", l->path, name);
    *out = fd;
    return 0;
}

int lake_segments(struct lake *l, bool make, struct pawl_err *err)
{
    return l->segments >= 0 ? 0 : open_folder(l, "segments", make, &l->segments, err);
}

static int open_lock(struct lake *l, struct pawl_err *err)
{
    if (l->lock < 0)
        l->lock = l->disk->open(l->root, LOCK_NAME, O_RDWR | O_CREAT);
    if (l->lock < 0)
        return disk_error(err, errno, "cannot open %s/%s", l->path, LOCK_NAME);
    return 0;
}

int lake_lock(struct lake *l, int how, struct pawl_err *err)
{
    int rc = open_lock(l, err);
    if (rc == 0 && l->disk->lock(l->lock, how) < 0)
        rc = disk_error(err, errno, "cannot lock %s/%s", l->path, LOCK_NAME);
    return rc;
}

void lake_unlock(struct lake *l)
{
    /* Cannot fail on a descriptor that is open; if it did, the lock would go with the handle. */
    (void)flock(l->lock, LOCK_UN);
}

int lake_folder(struct lake *l, unsigned char first, bool make)
{
    char name[FOLDER_NAME];
    layout_folder(first, name);
    int fd = l->disk->open(l->objects, name, O_RDONLY | O_DIRECTORY);
    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    if (l->disk->make_folder(l->objects, name) < 0 && errno != EEXIST)
        return -1;
    return l->disk->open(l->objects, name, O_RDONLY | O_DIRECTORY);
}

/* A folder full of somebody else's files is not made a lake by mistake. The lock is a lake's first
 * file, so a lake that is being made by another process, or was half made, has one. */
static int refuse_foreign(struct lake *l, struct pawl_err *err)
{
    struct stat st;
    if (l->disk->stat(l->root, LOCK_NAME, &st) == 0)
        return 0;
    int fd = l->disk->open(l->root, ".", O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int e = errno;
        if (fd >= 0)
            close(fd);
        return disk_error(err, e, "cannot read %s", l->path);
    }
    bool foreign = false;
    for (struct dirent *e; !foreign && (e = readdir(d));)
        foreign = strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
                  strcmp(e->d_name, "lost+found") && strcmp(e->d_name, LOCK_NAME);
    closedir(d);
    if (!foreign || l->disk->stat(l->root, LOCK_NAME, &st) == 0)
        return 0;
    err_set(err, PAWL_ECONFIG, "%s is neither empty nor a lake", l->path);
    return err_hint(err, "give the lake a folder of its own");
}

static int write_readme(struct lake *l, struct pawl_err *err)
{
    AUTO_FD int fd = l->disk->open(l->root, README_NAME, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0 && errno == EEXIST)
        return 0;
    ssize_t n = fd < 0 ? -1 : l->disk->write(fd, README, sizeof(README) - 1);
    if (n == sizeof(README) - 1)
        return 0;
    int e = n < 0 ? errno : ENOSPC;
    if (fd >= 0)
        l->disk->unlink(l->root, README_NAME);
    return disk_error(err, e, "cannot write %s/%s", l->path, README_NAME);
}

static int open_root(struct lake *l, const struct lake_options *o, struct pawl_err *err)
{
    if (o->create && l->disk->make_folder(AT_FDCWD, o->path) < 0 && errno != EEXIST)
        return disk_error(err, errno, "cannot make the lake %s", o->path);
    l->root = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->root < 0 && errno == ENOENT)
        return err_set(err, PAWL_ENOTFOUND, "no lake at %s", o->path);
    if (l->root >= 0)
        l->path = realpath(o->path, NULL);
    if (!l->path)
        return err_errno(err, PAWL_EIO, errno, "cannot open the lake %s", o->path);
    return 0;
}

static int open_parts(struct lake *l, const struct lake_options *o, struct pawl_err *err)
{
    int rc = open_root(l, o, err);
    if (rc == 0 && o->create)
        rc = refuse_foreign(l, err);
    if (rc == 0 && o->create)
        rc = open_lock(l, err);
    if (rc == 0 && o->owner)
        rc = owner_check(l, o->owner, o->create, err);
    if (rc == 0)
        rc = open_folder(l, "objects", o->create, &l->objects, err);
    if (rc == 0)
        rc = open_folder(l, "tmp", o->create, &l->tmp, err);
    if (rc == 0 && o->create && o->mode == LAKE_PACK)
        rc = lake_segments(l, true, err);
    if (rc == 0 && o->create)
        rc = write_readme(l, err);
    return rc;
}

int lake_open_on(const struct disk *d, size_t share_from, const struct lake_options *o,
                 struct lake **out, struct pawl_err *err)
{
    struct lake *l = mem_zalloc(1, sizeof(*l));
    *l = (struct lake){.disk = d,
                       .root = -1,
                       .objects = -1,
                       .tmp = -1,
                       .segments = -1,
                       .mode = o->mode,
                       .level = o->level,
                       .segment_bytes = o->segment_bytes ? o->segment_bytes : SEGMENT_BYTES,
                       .segment_age = o->segment_age.us ? o->segment_age : SEGMENT_AGE,
                       .lock = -1,
                       .share_from = share_from,
                       .types = o->types,
                       .n_types = o->n_types,
                       .squeezer = squeezer_new(o->level)};
    rand_bytes(&l->temps, sizeof(l->temps));
    int rc = open_parts(l, o, err);
    if (rc < 0) {
        lake_close(l);
        return rc;
    }
    if (share_from == SIZE_MAX)
        l->share_from = disk_shares_syncs(l->root) ? SHARE_FROM : 0;
    *out = l;
    return 0;
}

int lake_open(const struct lake_options *o, struct lake **out, struct pawl_err *err)
{
    return lake_open_on(&disk_real, SIZE_MAX, o, out, err);
}

void lake_close(struct lake *l)
{
    if (!l)
        return;
    pack_close(l->pack);
    packed_free(l);
    fd_closep(&l->root);
    fd_closep(&l->objects);
    fd_closep(&l->segments);
    fd_closep(&l->tmp);
    fd_closep(&l->lock);
    squeezer_free(l->squeezer);
    free(l->buffer);
    free(l->path);
    free(l);
}

int lake_free_bytes(struct lake *l, int64_t *out, struct pawl_err *err)
{
    struct statvfs fs;
    if (fstatvfs(l->root, &fs) < 0)
        return disk_error(err, errno, "cannot look at the file system of %s", l->path);
    if (fs.f_flag & ST_RDONLY)
        return disk_error(err, EROFS, "cannot write to %s", l->path);
    unsigned long long n = (unsigned long long)fs.f_bavail * fs.f_frsize;
    *out = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    return 0;
}
