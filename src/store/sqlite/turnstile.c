/* Whose turn it is to write. SQLite's own lock is unfair: measured, a heartbeat waited 1.9 s behind
 * another process's back-to-back transactions. Two kernel locks make a queue of it: whoever wants
 * to write takes `turn`, waits for `write` while holding it, and lets `turn` go; the last writer
 * cannot come back before the next one is in. Checkpoints are writes too, so no two connections
 * ever commit and checkpoint at the same time (the WAL-reset fault of SQLite before 3.51.3 needs
 * that). Waiting is by polling, because flock has no time-out; `turn` is free nearly always. */
#include "internal.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

static int open_side(struct sq *q, const char *suffix, int *out, struct pawl_err *err)
{
    AUTO_FREE char *path = side_path(q, suffix);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0600);
    if (fd < 0)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot open %s", path);
    *out = fd;
    return 0;
}

int turnstile_open(struct sq *q, struct pawl_err *err)
{
    int rc = open_side(q, "-turn", &q->turn_fd, err);
    if (!rc)
        rc = open_side(q, "-write", &q->write_fd, err);
    if (!rc)
        rc = open_side(q, "-wake", &q->wake_fd, err);
    return rc;
}

void turnstile_close(struct sq *q)
{
    fd_closep(&q->turn_fd);
    fd_closep(&q->write_fd);
    fd_closep(&q->wake_fd);
}

static void nap(int64_t us)
{
    struct timespec ts = {.tv_nsec = us * 1000};
    nanosleep(&ts, NULL);
}

static int lock_by(int fd, struct boot deadline)
{
    int64_t us = 50;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return -1;
        if (clock_boot().us >= deadline.us) {
            errno = EWOULDBLOCK;
            return -1;
        }
        nap(us);
        us = us < 1000 ? us * 2 : 1000;
    }
    return 0;
}

int turnstile_enter(struct sq *q, struct pawl_err *err)
{
    struct boot deadline = {clock_boot().us + q->options.timeout.us};
    int rc = lock_by(q->turn_fd, deadline);
    if (rc == 0) {
        rc = lock_by(q->write_fd, deadline);
        int keep = errno;
        flock(q->turn_fd, LOCK_UN);
        errno = keep;
    }
    if (rc == 0) {
        q->locked = true;
        return 0;
    }
    if (errno != EWOULDBLOCK)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot lock %s", q->path);
    err_set(err, PAWL_ELOCKED, "%s: another process has been writing for longer than store_timeout",
            q->path);
    return err_hint(err, "try again, or raise store_timeout");
}

void turnstile_leave(struct sq *q)
{
    if (q->locked)
        flock(q->write_fd, LOCK_UN);
    q->locked = false;
}
