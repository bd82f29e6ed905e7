/* The environment of a job: an allow-list from the worker's own, what its kind and its payload set,
 * and what says which attempt it is. */
#include "exec_parts.h"

#include <stdio.h>

/* A name ending in '*' stands for all that begin so. */
static const char *const inherited[] = {"PATH", "HOME", "USER",   "LOGNAME", "SHELL", "LANG",
                                        "LC_*", "TZ",   "TMPDIR", "TERM",    "XDG_*"};

static size_t name_len(const char *pair)
{
    return strcspn(pair, "=");
}

void exec_env_set(struct exec_env *e, const char *pair)
{
    size_t n = name_len(pair) + 1;
    for (size_t i = 0; i < e->n; i++)
        if (!strncmp(e->v[i], pair, n)) {
            e->v[i] = pair;
            return;
        }
    if (e->n + 2 > e->cap) {
        e->cap = e->cap ? e->cap * 2 : 32;
        e->v = mem_realloc(e->v, e->cap, sizeof(*e->v));
    }
    e->v[e->n++] = pair;
    e->v[e->n] = NULL;
}

void exec_env_begin(struct exec_env *e, const struct exec_env *from)
{
    enum { ROOM = 32 };
    e->cap = from->n + ROOM;
    e->v = mem_realloc(e->v, e->cap, sizeof(*e->v));
    if (from->n)
        memcpy(e->v, from->v, from->n * sizeof(*e->v));
    e->n = from->n;
    e->v[e->n] = NULL;
}

PAWL_PRINTF(2, 3)
static void setf(struct exec_env *e, const char *fmt, ...)
{
    char buf[2048]; /* names and keys are at most KEY_MAX_BYTES */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof(buf))
        exec_env_set(e, arena_strndup(e->arena, buf, (size_t)n));
}

void exec_env_done(struct exec_env *e)
{
    free(e->v);
    e->v = NULL;
    e->n = e->cap = 0;
}

static bool name_matches(const char *pattern, const char *name, size_t n)
{
    size_t len = strlen(pattern);
    if (len && pattern[len - 1] == '*')
        return n >= len - 1 && !memcmp(pattern, name, len - 1);
    return n == len && !memcmp(pattern, name, n);
}

static bool passes(const char *name, size_t n, const struct string_list *pass)
{
    for (size_t i = 0; i < ARRAY_LEN(inherited); i++)
        if (name_matches(inherited[i], name, n))
            return true;
    for (size_t i = 0; i < pass->n; i++)
        if (name_matches(pass->v[i], name, n))
            return true;
    return false;
}

void exec_env_inherit(struct exec_env *e, char *const *environ_, const struct string_list *pass)
{
    for (; *environ_; environ_++) {
        size_t n = name_len(*environ_);
        if ((*environ_)[n] == '=' && passes(*environ_, n, pass))
            exec_env_set(e, arena_strndup(e->arena, *environ_, strlen(*environ_)));
    }
}

void exec_env_describe(struct exec_env *e, const struct run *r, struct wall now)
{
    const struct lease *job = r->job;
    setf(e, "PAWL_JOB_ID=%lld", (long long)job->id.v);
    setf(e, "PAWL_ATTEMPT=%d", job->attempt);
    setf(e, "PAWL_FENCE=%lld", (long long)job->fence.v);
    setf(e, "PAWL_SLOT=%d", r->slot);
    setf(e, "PAWL_QUEUE=" SV_FMT, SV_ARG(job->queue));
    if (job->key.p)
        setf(e, "PAWL_KEY=" SV_FMT, SV_ARG(job->key));
    if (r->timeout.us >= 0) {
        int64_t ms = (now.us + r->timeout.us) / 1000;
        setf(e, "PAWL_DEADLINE=%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
    }
}
