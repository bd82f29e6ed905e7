#include "helper.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

int helper_start(struct helper *h, int (*body)(void *arg, int lifeline), void *arg,
                 struct pawl_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, PAWL_EFAILED, errno, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        _exit(body(arg, ends[0]));
    }
    int cause = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return err_errno(err, PAWL_EFAILED, cause, "cannot fork");
    }
    *h = (struct helper){pid, ends[1]};
    return 0;
}

void helper_end(struct helper *h)
{
    fd_closep(&h->lifeline);
    wait_for(h->pid);
}

static int spawn(char *const *argv, int in, pid_t *out)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(out, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc == 0 ? 0 : -1;
}

bool helper_feed(char *const *argv, struct sv text)
{
    AUTO_FD int in = -1, to = -1;
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    in = ends[0];
    to = ends[1];
    if (spawn(argv, in, &pid) < 0)
        return false;
    fd_closep(&in);
    bool sent = fd_write_all(to, text.p, text.n) == 0;
    fd_closep(&to);
    int status = wait_for(pid);
    return sent && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
