/* Every call of the lake that reaches the disk, as a table: tests put another in its place, to see
 * the order of the calls and to let each of them fail. All answer -1 with errno, none with EINTR.
 */
#ifndef PAWL_LAKE_DISK_H
#define PAWL_LAKE_DISK_H

#include "err.h"
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct disk {
    /* Beneath `dir`, through no symbolic link (openat2); close-on-exec, never blocking on a FIFO.
     */
    int (*open)(int dir, const char *name, int flags);
    /* A file of somebody else's, for reading. */
    int (*open_foreign)(const char *path);
    int (*make_folder)(int dir, const char *name); /* mode 0700 whatever the umask */
    int (*lock)(int fd, int how);                  /* flock */
    ssize_t (*read)(int fd, void *p, size_t n, off_t at);
    ssize_t (*write)(int fd, const void *p, size_t n);
    int (*truncate)(int fd, off_t size);
    int (*sync_data)(int fd);                                 /* the bytes of one file */
    int (*sync_folder)(int fd);                               /* the names in one folder */
    int (*sync_all)(int fd);                                  /* everything on its file system */
    int (*stat)(int dir, const char *name, struct stat *out); /* of a link: the link's own */
    int (*writable)(int dir, const char *name); /* a folder: may names be made in it? */
    int (*touch)(int dir, const char *name);    /* mtime: now */
    int (*rename)(int from, const char *old, int to, const char *name, bool replace);
    int (*unlink)(int dir, const char *name);
    /* Of durable bytes nothing is left in memory: a hint, which cannot fail. */
    void (*forget)(int fd, off_t from, off_t n);
};
extern const struct disk disk_real;

/* FULL for what says that the file system takes nothing now, else IO; errno_ is appended. ELOOP and
 * ENOTDIR are told as what they mean here: something planted. */
int disk_error(struct pawl_err *err, int errno_, const char *fmt, ...) PAWL_PRINTF(3, 4);
/* Something else lies where a file of the lake should. IO, without an errno. */
int disk_not_file(struct pawl_err *err, const struct stat *st, const char *name);
/* Does this errno speak of more than one file: of the process, or of the whole file system? */
bool disk_fails_all(int errno_);
/* In a few words, static, why one file cannot be read. */
const char *disk_why(int errno_);
/* The error of a call about one file: IO becomes UNREACHABLE where `all`, or its errno, says that
 * it is the lake's own. Returns the code. */
int disk_scope(struct pawl_err *err, int rc, bool all);
/* Whether one syncfs() of this file system makes everything durable and tells of every error since
 * the last one. */
bool disk_shares_syncs(int fd);

#endif
