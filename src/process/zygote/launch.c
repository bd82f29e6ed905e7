/* vfork + exec. The child shares the supervisor's memory until it executes the program, so it
 * reports a failing step by storing it, and whether exec worked is known as soon as vfork returns:
 * an unknown program is told from one that exits 127. */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *search_path(char *const *env)
{
    for (; *env; env++)
        if (!strncmp(*env, "PATH=", 5))
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* As execvpe(3) looks a program up, but in the job's own PATH and never through a shell. Returns
 * the errno that tells most: "permission denied" beats "not found" in a later folder. */
static int exec_program(const struct request *r)
{
    const char *name = r->argv[0];
    if (!*name)
        return ENOENT;
    if (strchr(name, '/')) {
        execve(name, r->argv, r->env);
        return errno;
    }
    int best = ENOENT;
    char path[4096];
    for (const char *at = search_path(r->env); at; at = *at ? at + 1 : NULL) {
        size_t n = strcspn(at, ":");
        int len = snprintf(path, sizeof(path), "%.*s%s%s", (int)n, at, n ? "/" : "", name);
        at += n;
        if (len < 0 || (size_t)len >= sizeof(path))
            continue;
        execve(path, r->argv, r->env);
        if (errno == EACCES)
            best = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR)
            return errno;
    }
    return best;
}

/* The child's descriptors are all above 3, so dup2 in any order overwrites none of them. */
static int set_descriptors(const int fds[4])
{
    for (int i = 0; i < 4; i++)
        if (dup2(fds[i], i) < 0)
            return -1;
    return (int)syscall(SYS_close_range, 4, ~0U, 0);
}

static int become_job(const struct request *r, const struct launch *l, pid_t supervisor)
{
    setsid();
    /* Second line of defence, for a supervisor that is killed; its own death before this line shows
     * in getppid(). */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(127);
    if ((r->head.flags & WIRE_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    if (set_descriptors(l->fds) < 0)
        return -1;
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static void run_child(const struct request *r, struct launch *l, pid_t supervisor)
{
    l->failed = STEP_CWD;
    if (r->cwd && chdir(r->cwd) < 0) {
        l->error = errno;
        return;
    }
    l->failed = STEP_SETUP;
    if (become_job(r, l, supervisor) < 0) {
        l->error = errno;
        return;
    }
    l->failed = STEP_EXEC;
    l->error = exec_program(r);
}

pid_t launch(const struct request *r, struct launch *l)
{
    pid_t supervisor = getpid();
    volatile pid_t child = vfork();
    if (child == 0) {
        run_child(r, l, supervisor);
        _exit(127);
    }
    if (child < 0) {
        l->failed = STEP_FORK;
        l->error = errno;
    } else if (!l->error) {
        l->failed = STEP_NONE;
    }
    return child;
}
