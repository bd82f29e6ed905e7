/* Decoding of spawn requests. The worker is trusted; lengths are checked all the same, so that a
 * bug there is an error here and not a crash. */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int take(const int *fds, size_t n_fds, size_t *next)
{
    return *next < n_fds ? fds[(*next)++] : -1;
}

int request_accept(struct request *r, const void *msg, size_t len, const int *fds, size_t n_fds)
{
    if (len < sizeof(r->head))
        return -1;
    memcpy(&r->head, msg, sizeof(r->head));
    uint32_t flags = r->head.flags;
    size_t want =
        1 + !!(flags & WIRE_HAS_LOG) + !!(flags & WIRE_HAS_INPUT) + !!(flags & WIRE_HAS_BODY_FD);
    if (n_fds != want)
        return -1;
    if (!(flags & WIRE_HAS_BODY_FD) && r->head.body_len != len - sizeof(r->head))
        return -1;
    size_t next = 0;
    r->body = (const char *)msg + sizeof(r->head);
    r->control = take(fds, n_fds, &next);
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

void request_close(struct request *r)
{
    int fds[] = {r->control, r->log_dir, r->input, r->body_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}
