/* The worker's end of the zygote: starting it from memory, talking to it, noticing its death. */
#include "zygote_link.h"

#include "fd.h"
#include "mem.h"
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum { IDLE_MAX = 32 };
#define IDLE_FOR                 DUR_S(5)
#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct zygote {
    struct watch watch; /* first: on_event gets it */
    pid_t pid;
    struct loop *loop; /* where the watch hangs; NULL before the first use of one */
    void (*on_death)(void *arg);
    void *death_arg;
    struct wire_page *page;
    struct zygote_request *first, **last; /* waiting for room in the socket */
    int idle[IDLE_MAX];                   /* control sockets of supervisors without a job */
    int n_idle;
    unsigned generation; /* grows with every session lock */
    struct timer rest;   /* until the idle ones are let go */
};

extern const char zygote_program[], zygote_program_end[];

/* The helper as an executable file in memory. */
static int program_fd(struct pawl_err *err)
{
    int fd = memfd_create("pawl-zygote", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) /* kernels before 6.3 do not know the flag */
        fd = memfd_create("pawl-zygote", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot make room for the process helper");
    if (fd_write_all(fd, zygote_program, (size_t)(zygote_program_end - zygote_program)) < 0) {
        int e = errno;
        close(fd);
        return err_errno(err, PAWL_EIO, e, "cannot store the process helper");
    }
    return fd;
}

static int page_new(struct wire_page **page, struct pawl_err *err)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("pawl-deadline", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
        int e = errno;
        if (fd >= 0)
            close(fd);
        return err_errno(err, PAWL_EIO, e, "cannot create the deadline page");
    }
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int e = errno;
        close(fd);
        return err_errno(err, PAWL_EIO, e, "cannot map the deadline page");
    }
    *page = p;
    return fd;
}

/* In the forked child: descriptors to their places, then the helper. All given are above 4. */
static void become_zygote(int program, int socket, int page)
{
    char *argv[] = {(char *)"pawl-zygote", NULL}, *env[] = {NULL};
    if (dup2(socket, WIRE_SOCKET_FD) < 0 || dup2(page, WIRE_PAGE_FD) < 0 ||
        dup2(program, WIRE_PAGE_FD + 1) < 0)
        _exit(126);
    fcntl(WIRE_PAGE_FD + 1, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, WIRE_PAGE_FD + 2, ~0U, 0);
    syscall(SYS_execveat, WIRE_PAGE_FD + 1, "", argv, env, AT_EMPTY_PATH);
    _exit(127);
}

static int above_standard(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 16);
}

static int fork_zygote(struct zygote *z, int page, struct pawl_err *err)
{
    AUTO_FD int program = program_fd(err);
    if (program < 0)
        return program;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot create the process helper's socket");
    z->watch.fd = pair[0];
    AUTO_FD int theirs = pair[1];
    AUTO_FD int p = above_standard(program);
    AUTO_FD int s = above_standard(theirs);
    AUTO_FD int d = above_standard(page);
    if (p < 0 || s < 0 || d < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot start the process helper");
    z->pid = fork();
    if (z->pid == 0)
        become_zygote(p, s, d);
    if (z->pid < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot start the process helper");
    return 0;
}

static void reap_zygote(const struct zygote *z)
{
    while (waitpid(z->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Execution from memory may be forbidden, for one; better said now than at the first job. */
static int await_hello(const struct zygote *z, struct pawl_err *err)
{
    uint32_t hello = 0;
    ssize_t n;
    do
        n = recv(z->watch.fd, &hello, sizeof(hello), 0);
    while (n < 0 && errno == EINTR);
    if (n == sizeof(hello) && hello == WIRE_HELLO)
        return 0;
    reap_zygote(z);
    err_set(err, PAWL_EIO, "cannot start the process helper");
    return err_hint(err, "is execution of memory files forbidden (vm.memfd_noexec)?");
}

static void zygote_free(struct zygote *z)
{
    if (z->watch.fd >= 0)
        close(z->watch.fd);
    if (z->page)
        munmap(z->page, (size_t)sysconf(_SC_PAGESIZE));
    free(z);
}

int zygote_start(struct zygote **out, struct pawl_err *err)
{
    struct zygote *z = mem_zalloc(1, sizeof(*z));
    z->watch.fd = -1;
    z->last = &z->first;
    AUTO_FD int page = page_new(&z->page, err);
    int rc = page < 0 ? page : fork_zygote(z, page, err);
    if (rc == 0)
        rc = await_hello(z, err);
    if (rc < 0)
        zygote_free(z);
    else
        *out = z;
    return rc;
}

void zygote_request_free(struct zygote_request *r)
{
    for (size_t i = 0; i < r->n_fds; i++)
        close(r->fds[i]);
    free(r->bytes);
    free(r);
}

/* What still waits will never be served; closing its control sockets tells the processes. */
static void drop_waiting(struct zygote *z)
{
    while (z->first) {
        struct zygote_request *r = z->first;
        z->first = r->next;
        zygote_request_free(r);
    }
    z->last = &z->first;
}

unsigned zygote_generation(const struct zygote *z)
{
    return z->generation;
}

bool zygote_keep(struct zygote *z, int control, unsigned generation)
{
    if (z->n_idle == IDLE_MAX || generation != z->generation)
        return false;
    z->idle[z->n_idle++] = control;
    loop_timer_set(z->loop, &z->rest, IDLE_FOR);
    return true;
}

int zygote_kept(struct zygote *z)
{
    return z->n_idle ? z->idle[--z->n_idle] : -1;
}

void zygote_rest(struct zygote *z)
{
    while (z->n_idle)
        close(z->idle[--z->n_idle]); /* which ends its supervisor */
    if (z->loop)
        loop_timer_clear(z->loop, &z->rest);
}

static void on_rest(struct timer *t)
{
    zygote_rest(OWNER(t, struct zygote, rest));
}

void zygote_stop(struct zygote *z)
{
    if (!z)
        return;
    if (z->loop)
        loop_unwatch(z->loop, &z->watch);
    drop_waiting(z);
    zygote_rest(z);
    close(TAKE_FD(z->watch.fd));
    reap_zygote(z);
    zygote_free(z);
}

int zygote_pid(const struct zygote *z)
{
    return z->pid;
}

void zygote_set_deadline(struct zygote *z, struct boot deadline)
{
    atomic_store_explicit(&z->page->deadline_us, deadline.us, memory_order_release);
}

int zygote_send(int socket, const struct zygote_request *r)
{
    char control[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec iov = {r->bytes, r->len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (r->n_fds) {
        msg.msg_control = control;
        msg.msg_controllen = CMSG_SPACE(r->n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(r->n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), r->fds, r->n_fds * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

static bool must_wait(int e)
{
    return e == EAGAIN || e == ENOBUFS || e == ETOOMANYREFS;
}

/* Watch for its death always, for room while requests wait. */
static int watch(struct zygote *z, struct pawl_err *err)
{
    return loop_watch(z->loop, &z->watch, z->first ? EPOLLOUT : 0, err);
}

static void on_dead(struct zygote *z)
{
    loop_unwatch(z->loop, &z->watch);
    drop_waiting(z);
    if (z->on_death)
        z->on_death(z->death_arg);
}

static void on_event(struct watch *w, uint32_t events)
{
    struct zygote *z = (struct zygote *)w;
    if (events & (EPOLLHUP | EPOLLERR)) {
        on_dead(z);
        return;
    }
    while (z->first && zygote_send(z->watch.fd, z->first) == 0) {
        struct zygote_request *r = z->first;
        z->first = r->next;
        zygote_request_free(r);
    }
    if (z->first)
        return; /* no room again, or dead: the next event says */
    z->last = &z->first;
    if (watch(z, NULL) < 0)
        loop_unwatch(z->loop, &z->watch);
}

int zygote_attach(struct zygote *z, struct loop *loop, void (*on_death)(void *arg), void *arg,
                  struct pawl_err *err)
{
    z->loop = loop;
    z->watch.on_event = on_event;
    z->rest.on_time = on_rest;
    int rc = watch(z, err);
    if (rc == 0) {
        z->on_death = on_death;
        z->death_arg = arg;
    }
    return rc;
}

int zygote_use_loop(struct zygote *z, struct loop *loop, struct pawl_err *err)
{
    return z->loop ? 0 : zygote_attach(z, loop, NULL, NULL, err);
}

static int wait_for_room(struct zygote *z, struct zygote_request *r, struct pawl_err *err)
{
    if (!z->loop)
        return err_set(err, PAWL_EIO, "the process helper (zygote) does not read its requests");
    struct zygote_request **before = z->last;
    *z->last = r;
    z->last = &r->next;
    if (watch(z, err) == 0)
        return 0;
    *before = NULL;
    z->last = before;
    return PAWL_EIO;
}

int zygote_request(struct zygote *z, struct zygote_request *r, struct pawl_err *err)
{
    r->next = NULL;
    if (!z->first) {
        if (zygote_send(z->watch.fd, r) == 0) {
            zygote_request_free(r);
            return 0;
        }
        if (!must_wait(errno)) {
            int e = errno;
            zygote_request_free(r);
            err_errno(err, PAWL_EIO, e, "the process helper (zygote) has died");
            return err_hint(err, "restart the worker");
        }
    }
    int rc = wait_for_room(z, r, err);
    if (rc < 0)
        zygote_request_free(r);
    return rc;
}

int zygote_set_session_lock(struct zygote *z, int fd, struct pawl_err *err)
{
    struct wire_lock lock = {.type = WIRE_LOCK};
    z->generation++;
    zygote_rest(z); /* they hold the lock of the session before */
    struct zygote_request *r = mem_zalloc(1, sizeof(*r));
    r->bytes = mem_dup(&lock, sizeof(lock));
    r->len = sizeof(lock);
    if (fd >= 0) {
        int dup = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (dup < 0) {
            int e = errno;
            zygote_request_free(r);
            return err_errno(err, PAWL_EIO, e, "cannot pass on the session's lock");
        }
        r->fds[r->n_fds++] = dup;
    }
    return zygote_request(z, r, err);
}
