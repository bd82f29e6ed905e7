/* Waking idle workers: one byte written to a side file after the commit, seen by inotify. */
#include "internal.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

char *side_path(const struct sq *q, const char *suffix)
{
    size_t n = strlen(q->path), m = strlen(suffix);
    char *p = mem_alloc(n + m + 1);
    memcpy(p, q->path, n);
    memcpy(p + n, suffix, m + 1);
    return p;
}

void wake_others(struct sq *q)
{
    char byte = 1;
    (void)!pwrite(q->wake_fd, &byte, 1, 0);
}

/* A session's end shows as the close of its file: the last holder of the descriptor is gone. */
int store_wake_fd(struct store *s)
{
    struct sq *q = sq_of(s);
    if (q->notify_fd >= 0)
        return q->notify_fd;
    AUTO_FD int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    AUTO_FREE char *wake = side_path(q, "-wake");
    AUTO_FREE char *sessions = side_path(q, "-sessions");
    (void)mkdir(sessions, 0700);
    if (fd < 0 || inotify_add_watch(fd, wake, IN_MODIFY) < 0 ||
        inotify_add_watch(fd, sessions, IN_CLOSE_WRITE) < 0)
        return -1;
    q->notify_fd = TAKE_FD(fd);
    return q->notify_fd;
}

void store_wake_clear(struct store *s)
{
    char buf[4096];
    while (read(sq_of(s)->notify_fd, buf, sizeof(buf)) > 0)
        ;
}

int store_log_dir(struct store *s, int *out_fd, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    if (q->log_dir_fd < 0) {
        AUTO_FREE char *path = side_path(q, "-logs");
        if (q->options.mode != STORE_READ && mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot make the folder %s", path);
        q->log_dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (q->log_dir_fd < 0)
            return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EUNREACHABLE, errno,
                             "cannot open %s", path);
    }
    *out_fd = q->log_dir_fd;
    return 0;
}
