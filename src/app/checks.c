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

int app_check(const struct payload_check *c, struct sv kind, struct sv payload,
              struct pawl_err *err)
{
    int i = handler_kind(c->config, kind);
    const struct handler *h = i < 0 ? NULL : c->handlers.v[i]; /* others' to judge */
    return h ? h->ops->validate(h, kind, payload, err) : 0;
}
