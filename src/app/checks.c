/* Payloads checked before they are queued, by the handlers that would run them. */
#include "app.h"

#include "exec.h"
#include "mem.h"
#include "noop.h"

struct payload_check {
    const struct config *config;
    struct handler *exec, *noop; /* made to judge, not to run: no zygote, no loop */
};

struct payload_check *app_check_new(const struct config *config)
{
    struct payload_check *c = mem_zalloc(1, sizeof(*c));
    c->config = config;
    c->exec = handler_exec_new(NULL, NULL, config);
    c->noop = handler_noop_new(NULL);
    return c;
}

void app_check_free(struct payload_check *c)
{
    if (!c)
        return;
    c->exec->ops->free(c->exec);
    c->noop->ops->free(c->noop);
    free(c);
}

/* NULL for a kind that only other workers know: theirs to judge. */
static const struct handler *handler_of(const struct payload_check *c, struct sv kind)
{
    const struct kind_conf *k = config_kind(c->config, kind);
    struct sv name = k && k->handler ? sv_of(k->handler) : kind;
    if (sv_eq(name, SV("noop")))
        return c->noop;
    return k || sv_eq(name, SV("exec")) ? c->exec : NULL;
}

int app_check(const struct payload_check *c, struct sv kind, struct sv payload,
              struct pawl_err *err)
{
    const struct handler *h = handler_of(c, kind);
    return h ? h->ops->validate(h, kind, payload, err) : 0;
}
