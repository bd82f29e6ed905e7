#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct proc {
    pid_t pid, parent;
    unsigned long long started; /* tells a process from a later one with its number */
    bool below;                 /* a descendant to be signalled */
    bool dead;                  /* zombie */
    bool signalled;
};

struct procs {
    struct proc *v;
    size_t n, cap;
};

/* Fields 3 (state), 4 (parent) and 22 (start time) of /proc/PID/stat; the name in field 2 may hold
 * anything, so parsing begins behind its last parenthesis. */
static bool read_stat(pid_t pid, struct proc *out)
{
    char path[32], buf[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0)
        return false;
    buf[n] = 0;
    char *at = strrchr(buf, ')'), state;
    int parent;
    if (!at || sscanf(at + 1, " %c %d", &state, &parent) != 2)
        return false;
    at++;
    for (int field = 3; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    *out = (struct proc){.pid = pid,
                         .parent = parent,
                         .started = strtoull(at, NULL, 10),
                         .dead = state == 'Z' || state == 'X'};
    return true;
}

static void add(struct procs *all, struct proc p)
{
    if (all->n == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 256;
        struct proc *v = realloc(all->v, cap * sizeof(*v));
        if (!v)
            return; /* the next round sees it */
        all->v = v;
        all->cap = cap;
    }
    all->v[all->n++] = p;
}

/* By pidfd, after checking that the number still means the same process. */
static bool signal_one(const struct proc *p, int sig)
{
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0)
        return false;
    struct proc now;
    bool same = read_stat(p->pid, &now) && now.started == p->started && !now.dead;
    if (same) {
        syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
        if (sig == SIGTERM)
            syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
    }
    close(fd);
    return same;
}

/* Children of this process are signalled as soon as they are seen: one that forks and exits for
 * ever would be another by the time all are read. */
static void read_all(struct procs *all, int sig, bool (*spare)(pid_t))
{
    pid_t self = getpid();
    DIR *d = opendir("/proc");
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        long pid = strtol(e->d_name, &end, 10);
        struct proc p;
        if (pid <= 0 || *end || !read_stat((pid_t)pid, &p))
            continue;
        p.below = p.parent == self && !(spare && spare(p.pid));
        p.signalled = p.below && !p.dead && signal_one(&p, sig);
        add(all, p);
    }
    closedir(d);
}

static bool parent_is_below(const struct procs *all, pid_t parent)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].pid == parent)
            return all->v[i].below;
    return false;
}

/* Passes until nothing changes: parents usually come before their children, so two are enough. */
static void mark_below(struct procs *all)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < all->n; i++) {
            struct proc *p = &all->v[i];
            if (!p->below && parent_is_below(all, p->parent))
                changed = p->below = true;
        }
    }
}

int tree_signal(int sig, bool (*spare)(pid_t child))
{
    struct procs all = {0};
    int n = 0;
    read_all(&all, sig, spare);
    mark_below(&all);
    for (size_t i = 0; i < all.n; i++) {
        struct proc *p = &all.v[i];
        if (p->below && !p->dead && !p->signalled)
            p->signalled = signal_one(p, sig);
        n += p->signalled;
    }
    free(all.v);
    return n;
}
