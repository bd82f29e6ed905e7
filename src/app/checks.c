/* Payloads checked before they are queued, by the handlers that would run them. */
#include "app.h"

#include "mem.h"

struct payload_check {
    const struct config *config;
    struct handlers handlers; /* made to judge, not to run: no zygote, no loop */
};

struct payload_check *app_check_new(const struct config *config)
{
    struct payload_check *c = mem_zalloc(1, sizeof(*c));
    c->config = config;
    handlers_make(&c->handlers, NULL, NULL, config);
    return c;
}

void app_check_free(struct payload_check *c)
{
    if (!c)
        return;
    handlers_free(&c->handlers);
    free(c);
}

/* NULL: others' to judge. */
static const struct handler *judge_of(const struct payload_check *c, struct sv kind)
{
    int i = handler_kind(c->config, kind);
    return i < 0 ? NULL : c->handlers.v[i];
}

int app_check(const struct payload_check *c, struct sv kind, struct sv payload,
              struct pawl_err *err)
{
    const struct handler *h = judge_of(c, kind);
    return h ? h->ops->validate(h, kind, payload, err) : 0;
}

void app_host(const struct payload_check *c, struct sv kind, struct sv payload, struct str *out)
{
    const struct handler *h = judge_of(c, kind);
    if (h && h->ops->host)
        h->ops->host(h, kind, payload, out);
}
