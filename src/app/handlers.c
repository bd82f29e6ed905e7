/* The handlers there are. */
#include "app.h"

#include "exec.h"
#include "fetch.h"
#include "http_job.h"
#include "noop.h"

static const char *const names[N_HANDLERS] = {
    [HANDLER_EXEC] = "exec",
    [HANDLER_NOOP] = "noop",
    [HANDLER_FETCH] = "fetch",
    [HANDLER_HTTP] = "http",
};

void handlers_make(struct handlers *h, struct zygote *z, struct loop *loop,
                   const struct config *config)
{
    *h = (struct handlers){.v = {[HANDLER_NOOP] = handler_noop_new(loop),
                                 [HANDLER_FETCH] = handler_fetch_new(loop, config),
                                 [HANDLER_HTTP] = handler_http_new(loop, config)}};
    if (z || !loop)
        h->v[HANDLER_EXEC] = handler_exec_new(z, loop, config);
}

void handlers_free(struct handlers *h)
{
    for (size_t i = 0; i < N_HANDLERS; i++)
        if (h->v[i])
            h->v[i]->ops->free(h->v[i]);
}

int handler_kind(const struct config *c, struct sv kind)
{
    const struct kind_conf *k = config_kind(c, kind);
    struct sv name = k && k->handler ? sv_of(k->handler) : kind;
    for (int i = 0; i < N_HANDLERS; i++)
        if (sv_eq(name, sv_of(names[i])))
            return i == HANDLER_HTTP && !k ? -1 : i; /* http needs to be told where to */
    return k ? HANDLER_EXEC : -1;
}
