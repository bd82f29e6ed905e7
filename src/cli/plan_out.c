/* The plan for people and scripts. */
#include "limits_out.h"
#include "plan.h"
#include "table.h"
#include "text.h"
#include "words.h"
#include <stdio.h>

static struct dur dur_of(double seconds)
{
    return DUR_US(seconds < 1e12 ? seconds * 1e6 : 1e18);
}

static void put_label(struct str *s, const struct out *o, const char *label)
{
    char text[16];
    snprintf(text, sizeof(text), "%-7s", label);
    out_styled(s, o->color, STYLE_BOLD, sv_of(text));
}

/* Its cap and rate; breakers are not foreseen. */
static void put_holds(struct str *s, const struct limit_spec *limit)
{
    struct limit_spec plain = *limit;
    plain.breaker = (struct breaker_spec){0};
    limit_says(&plain, s);
}

static void put_gate(struct str *s, const struct plan *p, size_t gate)
{
    if (gate == SIZE_MAX) {
        str_addf(s, "the %lld slot%s of a worker (fetch.slots)", (long long)p->slots,
                 p->slots == 1 ? "" : "s");
        return;
    }
    const struct plan_gate *g = &p->gates[gate];
    str_adds(s, "limit ");
    text_safe(s, p->limits[g->limit].name, 64);
    if (g->value.n) {
        str_addc(s, '=');
        text_safe(s, g->value, 64);
    }
    str_adds(s, " (");
    put_holds(s, &p->limits[g->limit]);
    str_addc(s, ')');
}

static bool enough(const struct plan *p)
{
    return p->free_bytes < 0 || p->bytes + p->reserve <= p->free_bytes;
}

static void put_disk(struct str *s, const struct plan *p)
{
    words_bytes(s, p->bytes);
    if (p->sized < p->items)
        str_adds(s, p->sized ? ", partly a guess (64 KiB each)" : ", a guess (64 KiB each)");
    if (p->free_bytes >= 0) {
        str_adds(s, "; ");
        words_bytes(s, p->free_bytes);
        str_adds(s, " free");
    }
    if (!enough(p)) {
        str_adds(s, ", ");
        words_bytes(s, p->reserve);
        str_adds(s, " of them a reserve: not enough");
    }
}

static void print_summary(struct cli *c, const struct plan *p)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    put_label(&s, &c->out, "items");
    words_count(&s, p->items);
    str_addf(&s, " at %zu host%s\n", p->hosts.n, p->hosts.n == 1 ? "" : "s");
    put_label(&s, &c->out, "time");
    dur_human(dur_of(p->seconds), &s);
    str_adds(&s, ", bound by ");
    put_gate(&s, p, p->bound);
    if (!p->mean_known && (p->bound == SIZE_MAX || !p->gates[p->bound].interval_us))
        str_adds(&s, "; 500ms for a fetch is a guess");
    str_addc(&s, '\n');
    put_label(&s, &c->out, "disk");
    put_disk(&s, p);
    str_adds(&s, "\n\n");
    out_put(&c->out, str_sv(&s));
}

static const struct column columns[] = {
    {"HOST", false, 40, false}, {"ITEMS", true, 0, false},   {"TIME", true, 0, false},
    {"DISK", true, 0, false},   {"LIMIT", false, 24, false}, {"HOLDS", false, 0, false},
};

static void host_row(struct table *t, const struct plan *p, const struct tally_entry *h)
{
    AUTO_STR struct str n = STR_INIT(64), bytes = STR_INIT(64), says = STR_INIT(STR_LINE);
    const struct limit_spec *limit =
        h->gate == SIZE_MAX ? NULL : &p->limits[p->gates[h->gate].limit];
    words_count(&n, h->n);
    words_bytes(&bytes, h->sum);
    if (limit)
        put_holds(&says, limit);
    table_text(t, h->name);
    table_text(t, str_sv(&n));
    table_dur(t, limit ? dur_of(h->seconds) : DUR_NONE);
    table_text(t, str_sv(&bytes));
    table_text(t, limit ? limit->name : SV_NONE);
    table_text(t, str_sv(&says));
}

/* Those that are not shown, as one. */
static struct tally_entry sum_rest(const struct tally_entry *const *v, size_t from, size_t n)
{
    struct tally_entry rest = {.gate = SIZE_MAX};
    for (size_t i = from; i < n; i++) {
        rest.n += v[i]->n;
        rest.sum += v[i]->sum;
        if (v[i]->seconds > rest.seconds || i == from) {
            rest.gate = v[i]->gate;
            rest.seconds = v[i]->seconds;
        }
    }
    return rest;
}

void plan_print(struct cli *c, const struct plan *p, size_t shown)
{
    AUTO(arena_done) struct arena a;
    AUTO_STR struct str name = STR_INIT(64);
    struct table t;
    arena_init(&a);
    const struct tally_entry **v = plan_hosts(p, &a);
    size_t n = p->hosts.n, some = n < shown ? n : shown;
    print_summary(c, p);
    table_begin(&t, &c->out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < some; i++)
        host_row(&t, p, v[i]);
    if (some < n) {
        struct tally_entry rest = sum_rest((const struct tally_entry *const *)v, some, n);
        str_addf(&name, "%zu other%s", n - some, n - some == 1 ? "" : "s");
        rest.name = str_sv(&name);
        host_row(&t, p, &rest);
    }
    table_end(&t);
}

/* ---- JSON ---- */

static void write_gate(struct jw *w, const struct plan *p, size_t gate)
{
    AUTO_STR struct str rate = STR_INIT(64);
    if (gate == SIZE_MAX) {
        jw_kstring_or_null(w, "limit", SV_NONE);
        jw_kstring_or_null(w, "value", SV_NONE);
        return;
    }
    const struct plan_gate *g = &p->gates[gate];
    const struct limit_spec *s = &p->limits[g->limit];
    if (s->rate.count)
        rate_text(s->rate, &rate);
    jw_kstring(w, "limit", s->name);
    jw_kstring_or_null(w, "value", g->value.n ? g->value : SV_NONE);
    jw_kstring_or_null(w, "rate", s->rate.count ? str_sv(&rate) : SV_NONE);
    jw_kint_or_null(w, "concurrency", s->concurrency, s->concurrency != 0);
}

static void write_host(struct jw *w, const struct plan *p, const struct tally_entry *h,
                       size_t hosts)
{
    jw_object(w);
    if (hosts)
        jw_kint(w, "hosts", (int64_t)hosts);
    else
        jw_kstring(w, "host", h->name);
    jw_kint(w, "items", h->n);
    write_gate(w, p, h->gate);
    jw_kms(w, "eta_ms", h->gate == SIZE_MAX ? DUR_NONE : dur_of(h->seconds));
    jw_kint(w, "bytes", h->sum);
    jw_end_object(w);
}

static void write_hosts(struct jw *w, const struct plan *p, size_t shown)
{
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    const struct tally_entry **v = plan_hosts(p, &a);
    size_t n = p->hosts.n, some = n < shown ? n : shown;
    jw_name(w, "by_host");
    jw_array(w);
    for (size_t i = 0; i < some; i++)
        write_host(w, p, v[i], 0);
    jw_end_array(w);
    jw_name(w, "others");
    struct tally_entry rest = sum_rest((const struct tally_entry *const *)v, some, n);
    if (some < n)
        write_host(w, p, &rest, n - some);
    else
        jw_null(w);
}

static void write_disk(struct jw *w, const struct plan *p)
{
    jw_name(w, "disk");
    jw_object(w);
    jw_kint(w, "bytes", p->bytes);
    jw_kbool(w, "guess", p->sized < p->items);
    jw_kint_or_null(w, "free_bytes", p->free_bytes, p->free_bytes >= 0);
    jw_kint(w, "reserve_bytes", p->reserve);
    jw_kbool(w, "enough", enough(p));
    jw_end_object(w);
}

void plan_write(struct cli *c, const struct plan *p, size_t shown)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "items", p->items);
    jw_kint(&w, "hosts", (int64_t)p->hosts.n);
    jw_kms(&w, "eta_ms", dur_of(p->seconds));
    jw_name(&w, "bound_by");
    jw_object(&w);
    write_gate(&w, p, p->bound);
    jw_kint(&w, "items", p->bound == SIZE_MAX ? p->items : p->gates[p->bound].items);
    jw_end_object(&w);
    jw_kint(&w, "slots", p->slots);
    jw_kms(&w, "fetch_ms", p->mean);
    jw_kbool(&w, "fetch_guess", !p->mean_known);
    write_hosts(&w, p, shown);
    write_disk(&w, p);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}
