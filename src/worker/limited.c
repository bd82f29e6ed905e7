#include "limited.h"

#include "text.h"

struct looking {
    struct limited *out;
    size_t gates;
    struct str name; /* of the limit whose gates come now */
    int64_t lanes, most;
};

static bool throttled(const struct gate_view *g)
{
    return g->room.why == SHUT_HELD || g->room.why == SHUT_BREAKER || g->room.why == SHUT_PROBING;
}

/* Whole or not at all: a cut name is another one's. */
static void limit_ends(struct looking *l)
{
    AUTO_STR struct str safe = STR_INIT(STR_LINE);
    text_safe(&safe, str_sv(&l->name), 0);
    if (l->lanes > l->most && safe.len < LIMITED_NAME) {
        l->most = l->lanes;
        memcpy(l->out->by, str_cstr(&safe), safe.len + 1);
    }
    l->lanes = 0;
}

static bool on_gate(void *arg, const struct gate_view *g)
{
    struct looking *l = arg;
    if (!sv_eq(str_sv(&l->name), g->limit)) { /* gates of one limit come together */
        limit_ends(l);
        str_clear(&l->name);
        str_add(&l->name, g->limit);
    }
    l->lanes += g->parked;
    l->out->throttled += throttled(g);
    return ++l->gates < LIMITED_GATES;
}

int limited_look(struct store *s, struct limited *out, struct pawl_err *err)
{
    struct limited found = {.known = true};
    struct looking l = {.out = &found, .name = STR_INIT(STR_LINE)};
    if (!s->ops->gates)
        return 0;
    int rc = s->ops->gates(s, &(struct gate_filter){.shut = true}, on_gate, &l, err);
    limit_ends(&l);
    str_done(&l.name);
    if (rc == 0)
        *out = found;
    return rc;
}
