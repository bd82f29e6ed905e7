/* Decoding of spawn requests. The worker is trusted; lengths are checked all the same, so that a
 * bug there is an error here and not a crash. */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int take(const int *fds, size_t n_fds, size_t *next)
{
    return *next < n_fds ? fds[(*next)++] : -1;
}

static size_t take_descriptors(struct msghdr *msg, int fds[WIRE_FDS_MAX])
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    return n;
}

ssize_t request_receive(int socket, int flags, void *msg, size_t size, int fds[WIRE_FDS_MAX],
                        size_t *n_fds)
{
    char control[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))] __attribute__((aligned(8)));
    struct iovec iov = {msg, size};
    struct msghdr hdr = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(socket, &hdr, flags | MSG_CMSG_CLOEXEC);
    *n_fds = n > 0 ? take_descriptors(&hdr, fds) : 0;
    return n;
}

int request_accept(struct request *r, const void *msg, size_t len, int control, const int *fds,
                   size_t n_fds)
{
    if (len < sizeof(r->head))
        return -1;
    memcpy(&r->head, msg, sizeof(r->head));
    uint32_t flags = r->head.flags;
    size_t want = (control < 0) + !!(flags & WIRE_HAS_LOG) + !!(flags & WIRE_HAS_INPUT) +
                  !!(flags & WIRE_HAS_BODY_FD);
    if (n_fds != want)
        return -1;
    if (!(flags & WIRE_HAS_BODY_FD) && r->head.body_len != len - sizeof(r->head))
        return -1;
    size_t next = 0;
    r->body = (const char *)msg + sizeof(r->head);
    r->control = control < 0 ? take(fds, n_fds, &next) : control;
    r->log_dir = flags & WIRE_HAS_LOG ? take(fds, n_fds, &next) : -1;
    r->input = flags & WIRE_HAS_INPUT ? take(fds, n_fds, &next) : -1;
    r->body_fd = flags & WIRE_HAS_BODY_FD ? take(fds, n_fds, &next) : -1;
    return 0;
}

/* The string at *at, which moves behind it; NULL when the body ends before its NUL. */
static char *next_string(const char **at, const char *end)
{
    const char *s = *at;
    const char *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;
    if (nul)
        *at = nul + 1;
    return nul ? (char *)s : NULL;
}

static char **next_list(const char **at, const char *end, uint32_t n)
{
    char **v = calloc((size_t)n + 1, sizeof(*v));
    for (uint32_t i = 0; v && i < n; i++)
        if (!(v[i] = next_string(at, end)))
            return NULL;
    return v;
}

int request_parse(struct request *r)
{
    if (r->body_fd >= 0) {
        void *p = mmap(NULL, r->head.body_len, PROT_READ, MAP_PRIVATE, r->body_fd, 0);
        if (p == MAP_FAILED)
            return errno;
        r->body = p;
    }
    const char *at = r->body, *end = r->body + r->head.body_len;
    r->log_name = next_string(&at, end);
    r->cwd = next_string(&at, end);
    if (!r->log_name || !r->cwd || !r->head.n_argv)
        return EINVAL;
    if (!*r->cwd)
        r->cwd = NULL;
    r->argv = next_list(&at, end, r->head.n_argv);
    r->env = next_list(&at, end, r->head.n_env);
    return r->argv && r->env ? 0 : EINVAL;
}

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void request_close(struct request *r)
{
    const int fds[] = {r->control, r->log_dir, r->input, r->body_fd};
    close_all(fds, sizeof(fds) / sizeof(fds[0]));
}

void request_release(struct request *r)
{
    const int fds[] = {r->log_dir, r->input, r->body_fd};
    if (r->body_fd >= 0)
        munmap((void *)r->body, r->head.body_len);
    close_all(fds, sizeof(fds) / sizeof(fds[0]));
    free(r->argv);
    free(r->env);
}
