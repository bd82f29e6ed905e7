/* The zygote: a small single-threaded process that starts the supervisors, so that the worker,
 * large and threaded, never forks. It is started before the worker has threads or a database, holds
 * nothing but its socket and the session's lock, and ends when the socket closes and no supervisor
 * is left. Orphans of a supervisor that was killed come to the zygote and are killed here. */
#include "request.h"
#include "supervisor.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORPHAN_RETRY_MIN_MS = 2, ORPHAN_RETRY_MAX_MS = 50 };

static struct {
    struct inherited in;
    int lock;         /* the session's lock, held for the supervisors to inherit; -1: none */
    bool closing;     /* the worker has gone */
    bool none_left;   /* no child of any kind */
    int orphan_retry; /* ms until orphans are looked for again; -1: none are known */
    pid_t *supervisors;
    size_t n, cap;
} zygote;

static union {
    struct wire_spawn spawn;
    struct wire_lock lock;
    uint32_t type;
    char bytes[sizeof(struct wire_spawn) + WIRE_BODY_MAX];
} message;

static bool is_supervisor(pid_t pid)
{
    for (size_t i = 0; i < zygote.n; i++)
        if (zygote.supervisors[i] == pid)
            return true;
    return false;
}

static bool room_for_one(void)
{
    if (zygote.n < zygote.cap)
        return true;
    size_t cap = zygote.cap ? zygote.cap * 2 : 64;
    pid_t *v = realloc(zygote.supervisors, cap * sizeof(*v));
    if (!v)
        return false;
    zygote.supervisors = v;
    zygote.cap = cap;
    return true;
}

/* True if it was a supervisor. */
static bool forget(pid_t pid)
{
    for (size_t i = 0; i < zygote.n; i++)
        if (zygote.supervisors[i] == pid) {
            zygote.supervisors[i] = zygote.supervisors[--zygote.n];
            return true;
        }
    return false;
}

static void spawn(size_t len, const int *fds, size_t n_fds)
{
    struct request r = {.control = -1, .log_dir = -1, .input = -1, .body_fd = -1};
    if (request_accept(&r, &message, len, -1, fds, n_fds) < 0) {
        for (size_t i = 0; i < n_fds; i++)
            close(fds[i]);
        return; /* the worker sees the closed control socket */
    }
    errno = ENOMEM;
    pid_t pid = room_for_one() ? fork() : -1;
    if (pid == 0) {
        dup3(zygote.in.null, WIRE_SOCKET_FD, O_CLOEXEC); /* let go, and 0 to 3 stay taken */
        supervisor_run(&r, &zygote.in);
        _exit(0);
    }
    if (pid < 0)
        supervisor_refuse(r.control, STEP_FORK, errno);
    else
        zygote.supervisors[zygote.n++] = pid;
    zygote.none_left &= pid < 0;
    request_close(&r);
}

static void replace_lock(const int *fds, size_t n_fds)
{
    if (zygote.lock >= 0)
        close(zygote.lock);
    zygote.lock = n_fds ? fds[0] : -1;
}

static void on_socket(void)
{
    int fds[WIRE_FDS_MAX];
    size_t n_fds;
    ssize_t n =
        request_receive(WIRE_SOCKET_FD, MSG_DONTWAIT, &message, sizeof(message), fds, &n_fds);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < (ssize_t)sizeof(message.type)) {
        zygote.closing = true;
        return;
    }
    if (message.type == WIRE_SPAWN)
        spawn((size_t)n, fds, n_fds);
    else if (message.type == WIRE_LOCK)
        replace_lock(fds, n_fds);
}

static void kill_orphans(void)
{
    int found = tree_signal(SIGKILL, is_supervisor);
    int retry = zygote.orphan_retry * 2;
    zygote.orphan_retry = !found ? -1 : retry < ORPHAN_RETRY_MAX_MS ? retry : ORPHAN_RETRY_MAX_MS;
}

/* A supervisor that did not end by itself leaves its job's processes to the zygote. The end of such
 * an orphan is a reason to look again: it may have left others, missed by the last look. */
static void reap(void)
{
    bool orphans = false;
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            zygote.none_left = pid < 0;
            break;
        }
        orphans |= !forget(pid) || !WIFEXITED(status);
    }
    if (orphans)
        zygote.orphan_retry = ORPHAN_RETRY_MIN_MS;
}

static void on_signals(void)
{
    struct signalfd_siginfo info;
    (void)!read(zygote.in.signals, &info, sizeof(info));
    reap();
}

/* What the worker ignores must not be ignored by jobs. By the system call, because the library
 * hides the two signals it uses itself; all zero is the default action in every layout of the
 * struct. */
static void reset_signals(void)
{
    static const long default_action[8];
    for (int sig = 1; sig < NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, default_action, NULL, NSIG / 8);
}

static int become_quiet(void)
{
    sigset_t all, child;
    reset_signals();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* whoever signals the worker's group does not mean us */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    zygote.in.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    setsid();
    prctl(PR_SET_NAME, "pawl-zygote");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_DUMPABLE, 0); /* S41: no job of this user reads another's request here */
    umask(077);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* inherited by every job (S40) */
    return zygote.in.signals < 0 ? -1 : 0;
}

/* 0, 1 and 2 become /dev/null, so that nothing of the worker's terminal or pipes is held open; all
 * further descriptors are above 3, as launch() wants them. */
static int prepare(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            return -1;
    fcntl(WIRE_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    zygote.in.page = mmap(NULL, sizeof(struct wire_page), PROT_READ, MAP_SHARED, WIRE_PAGE_FD, 0);
    close(WIRE_PAGE_FD);
    zygote.in.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (zygote.in.page == MAP_FAILED || zygote.in.null <= WIRE_SOCKET_FD)
        return -1;
    if (null > 2)
        close(null);
    return become_quiet();
}

static int say_hello(void)
{
    uint32_t hello = WIRE_HELLO;
    return send(WIRE_SOCKET_FD, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) ? 0 : -1;
}

int main(void)
{
    zygote.lock = -1;
    zygote.orphan_retry = -1;
    zygote.none_left = true;
    if (prepare() < 0 || say_hello() < 0)
        return 1;
    while (!zygote.closing || !zygote.none_left) {
        struct pollfd p[2] = {{.fd = zygote.closing ? -1 : WIRE_SOCKET_FD, .events = POLLIN},
                              {.fd = zygote.in.signals, .events = POLLIN}};
        int n = poll(p, 2, zygote.orphan_retry);
        if (p[1].revents)
            on_signals();
        if (zygote.orphan_retry >= 0)
            kill_orphans();
        if (n > 0 && p[0].revents)
            on_socket();
    }
    return 0;
}
