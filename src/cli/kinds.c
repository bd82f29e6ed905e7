/* Who can run a kind: warned about early, since a job of an unknown kind waits for ever. */
#include "job_out.h"

#include "json.h"
#include "mem.h"

bool kind_here(const struct cli *c, struct sv kind)
{
    for (size_t i = 0; i < c->app->n_kinds; i++)
        if (sv_eq(kind, sv_of(c->app->kinds[i])))
            return true;
    return config_kind(c->config, kind) != NULL;
}

/* Does a live worker name it in its pools or among its kinds? */
static bool told_by(const struct session_view *s, struct sv kind)
{
    AUTO_JSON struct json doc = {0};
    struct arena a;
    bool found = false;
    if (s->pools.p && json_parse(&doc, s->pools, NULL) == 0)
        found = json_member(&doc, 0, kind) != 0;
    if (found || !s->filter.p || json_parse(&doc, s->filter, NULL) < 0)
        return found;
    uint32_t kinds = json_member(&doc, 0, SV("kinds"));
    if (!kinds || json_type(&doc, kinds) != JSON_ARRAY)
        return false;
    arena_init(&a);
    for (uint32_t k = json_first(&doc, kinds); !found && k != json_end(&doc, kinds);
         k = json_after(&doc, k))
        found = json_type(&doc, k) == JSON_STRING && sv_eq(kind, json_string(&doc, k, &a));
    arena_done(&a);
    return found;
}

bool kind_known(const struct cli *c, const struct status_view *status, struct sv kind)
{
    if (kind_here(c, kind))
        return true;
    for (size_t i = 0; i < status->n_sessions; i++)
        if (status->sessions[i].alive && told_by(&status->sessions[i], kind))
            return true;
    return false;
}

static const char *nearest_kind(const struct cli *c, struct sv kind)
{
    size_t n = c->app->n_kinds + c->config->n_kinds;
    AUTO_FREE const char **names = mem_zalloc(n, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] =
            i < c->app->n_kinds ? c->app->kinds[i] : c->config->kinds[i - c->app->n_kinds].name;
    return sv_nearest(kind, names, n);
}

void kind_warn(struct cli *c, struct sv kind)
{
    struct arena a;
    struct status_view status;
    if (kind_here(c, kind))
        return;
    arena_init(&a);
    bool known =
        c->store->ops->status(c->store, 0, &a, &status, NULL) == 0 && kind_known(c, &status, kind);
    arena_done(&a);
    if (known)
        return;
    const char *near = nearest_kind(c, kind);
    cli_warn(c, "no configuration and no live worker knows kind '" SV_FMT "'%s%s%s", SV_ARG(kind),
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
