#include "gates_out.h"

#include "text.h"
#include <stdio.h>

const struct column gate_columns[] = {
    {"LIMIT", false, 32, false},  {"VALUE", false, 48, true}, {"USED", true, 0, false},
    {"SHUT", false, 0, false},    {"UNTIL", true, 0, true},   {"PARKED", true, 0, true},
    {"BREAKER", false, 0, false}, {"WHY", false, 200, true},
};
const size_t n_gate_columns = ARRAY_LEN(gate_columns);

/* ---- the ones that matter most ---- */

struct collecting {
    struct gate_list *list;
    struct arena *a;
    size_t max;
};

static bool is_shut(const struct gate_view *g)
{
    return g->room.n <= 0;
}

bool gate_hinders(const struct gate_view *g)
{
    return is_shut(g) && (g->parked || (g->room.why != SHUT_FULL && g->room.why != SHUT_RATE));
}

/* Above 0: a matters more. */
static int compare(const struct gate_view *a, const struct gate_view *b)
{
    if (is_shut(a) != is_shut(b))
        return is_shut(a) ? 1 : -1;
    if (gate_hinders(a) != gate_hinders(b))
        return gate_hinders(a) ? 1 : -1;
    if (a->parked != b->parked)
        return a->parked > b->parked ? 1 : -1;
    if (a->used != b->used)
        return a->used > b->used ? 1 : -1;
    int by_limit = sv_cmp(b->limit, a->limit);
    return by_limit ? by_limit : sv_cmp(b->value, a->value);
}

static struct sv kept(struct arena *a, struct sv s)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

static void keep(struct collecting *k, const struct gate_view *g)
{
    struct gate_list *l = k->list;
    size_t at = l->n;
    while (at > 0 && compare(g, &l->v[at - 1]) > 0)
        at--;
    if (at >= k->max)
        return;
    if (l->n < k->max)
        l->n++;
    memmove(&l->v[at + 1], &l->v[at], (l->n - 1 - at) * sizeof(*l->v));
    l->v[at] = *g;
    l->v[at].limit = kept(k->a, g->limit);
    l->v[at].value = kept(k->a, g->value);
    l->v[at].why = kept(k->a, g->why);
    l->v[at].holders = NULL;
    l->v[at].n_holders = 0;
}

static bool each_gate(void *arg, const struct gate_view *g)
{
    struct collecting *k = arg;
    k->list->gates++;
    k->list->used += g->used;
    k->list->shut += is_shut(g);
    k->list->parked += g->parked;
    keep(k, g);
    return true;
}

int gates_collect(struct cli *c, const struct gate_filter *f, size_t max, struct arena *a,
                  struct gate_list *out, struct pawl_err *err)
{
    struct gate_list list = {.v = arena_zalloc(a, max + 1, sizeof(*list.v))};
    struct collecting k = {&list, a, max};
    int rc = c->store->ops->gates(c->store, f, each_gate, &k, err);
    if (rc == 0)
        *out = list;
    return rc;
}

/* ---- how one is written ---- */

void gate_name(struct str *s, const struct gate_view *g)
{
    str_add(s, g->limit);
    if (g->value.n) {
        str_addc(s, '=');
        str_add(s, g->value);
    }
}

void gate_words_quoted(struct str *s, const struct gate_view *g)
{
    text_shell(s, g->limit);
    if (g->value.n) {
        str_addc(s, ' ');
        text_shell(s, g->value);
    }
}

/* Why it is shut, in words; "open" if it is not. */
static const char *why_shut(const struct gate_view *g)
{
    static const char *const words[] = {
        [SHUT_NOT] = "open",       [SHUT_FULL] = "full",       [SHUT_RATE] = "rate",
        [SHUT_HELD] = "throttled", [SHUT_BREAKER] = "breaker", [SHUT_PROBING] = "probing",
    };
    if (!is_shut(g))
        return words[SHUT_NOT];
    return g->room.why == SHUT_HELD && g->state.held_asked ? "Retry-After" : words[g->room.why];
}

/* When time opens it; us 0: time alone does not. */
static struct wall opens_at(const struct gate_view *g)
{
    bool timed = is_shut(g) && g->room.until && g->room.until != INT64_MAX;
    return (struct wall){timed ? g->room.until : 0};
}

static void write_breaker(struct jw *w, const struct gate_view *g)
{
    const struct gate_state *s = &g->state;
    bool open = s->breaker == BREAKER_OPEN;
    jw_name(w, "breaker");
    jw_object(w);
    jw_kstring(w, "state", sv_of(breaker_state_name(s->breaker)));
    jw_kwall(w, "since", (struct wall){s->since});
    jw_kwall(w, "until", (struct wall){open && s->until != INT64_MAX ? s->until : 0});
    jw_kint(w, "failures", s->failures);
    jw_kint_or_null(w, "probe", s->probe_job, s->breaker == BREAKER_HALF_OPEN && s->probe_job);
    jw_kstring_or_null(w, "why", g->why);
    jw_end_object(w);
}

void gate_write(struct jw *w, const struct gate_view *g)
{
    int64_t interval = gate_interval(&g->params, &g->state);
    jw_object(w);
    jw_kstring(w, "limit", g->limit);
    jw_kstring_or_null(w, "value", g->value.n ? g->value : SV_NONE);
    jw_kint(w, "used", g->used);
    jw_kint_or_null(w, "max", g->params.cap, g->params.cap != 0);
    jw_kint_or_null(w, "interval_us", interval, interval != 0);
    jw_kint_or_null(w, "pace_us", g->state.pace_us, g->state.pace_us != 0);
    jw_kstring_or_null(w, "shut", is_shut(g) ? sv_of(gate_shut_name(g->room.why)) : SV_NONE);
    jw_kwall(w, "until", opens_at(g));
    jw_kint(w, "parked", g->parked);
    write_breaker(w, g);
    jw_end_object(w);
}

static void put_used(struct table *t, const struct gate_view *g)
{
    char text[32];
    if (g->params.cap)
        snprintf(text, sizeof(text), "%d/%d", g->used, g->params.cap);
    else
        snprintf(text, sizeof(text), "%d", g->used);
    table_text(t, sv_of(text));
}

/* "-" when time alone does not open it. */
static void put_until(struct table *t, struct wall until, struct wall now)
{
    table_dur(t, until.us > now.us ? DUR_US(until.us - now.us) : DUR_NONE);
}

static enum style shut_style(const struct gate_view *g)
{
    if (!is_shut(g))
        return STYLE_NONE;
    return g->room.why == SHUT_BREAKER || g->room.why == SHUT_PROBING ? STYLE_RED : STYLE_YELLOW;
}

static void put_breaker(struct table *t, const struct gate_view *g)
{
    if (g->state.breaker == BREAKER_CLOSED && !g->params.threshold && !g->params.percent)
        table_text(t, SV_NONE);
    else
        table_styled(t, sv_of(breaker_state_name(g->state.breaker)),
                     g->state.breaker == BREAKER_CLOSED ? STYLE_NONE : STYLE_RED);
}

void gate_row(struct table *t, const struct gate_view *g, struct wall now)
{
    table_text(t, g->limit);
    table_text(t, g->value.n ? g->value : SV_NONE);
    put_used(t, g);
    table_styled(t, is_shut(g) ? sv_of(why_shut(g)) : SV_NONE, shut_style(g));
    put_until(t, opens_at(g), now);
    table_count(t, g->parked);
    put_breaker(t, g);
    table_text(t, g->state.breaker == BREAKER_CLOSED ? SV_NONE : g->why);
}

void gate_cells(struct table *t, const struct gate_view *g, struct wall now)
{
    AUTO_STR struct str name = STR_INIT(STR_LINE);
    gate_name(&name, g);
    table_text(t, str_sv(&name));
    table_styled(t, sv_of(why_shut(g)), shut_style(g));
    put_used(t, g);
    put_until(t, opens_at(g), now);
    table_count(t, g->parked);
}
