#include "plan.h"

#include "http.h"

/* ---- counting ---- */

static void tally_init(struct tally *t)
{
    *t = (struct tally){0};
    arena_init(&t->arena);
}

static void tally_done(struct tally *t)
{
    arena_done(&t->arena);
    free(t->v);
    free(t->slots);
}

static uint64_t mix(uint64_t h, struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3;
    return (h ^ 0xff) * 0x100000001b3;
}

/* Where it is or would be. */
static size_t place_of(const struct tally *t, struct sv queue, struct sv name)
{
    uint64_t h = mix(mix(0xcbf29ce484222325, queue), name);
    size_t i = (size_t)(h ^ h >> 29) & (t->n_slots - 1);
    for (; t->slots[i]; i = (i + 1) & (t->n_slots - 1)) {
        const struct tally_entry *e = &t->v[t->slots[i] - 1];
        if (sv_eq(e->name, name) && sv_eq(e->queue, queue))
            break;
    }
    return i;
}

static void grow(struct tally *t)
{
    free(t->slots);
    t->n_slots = t->n_slots ? t->n_slots * 4 : 64;
    t->slots = mem_zalloc(t->n_slots, sizeof(*t->slots));
    for (size_t i = 0; i < t->n; i++)
        t->slots[place_of(t, t->v[i].queue, t->v[i].name)] = (uint32_t)i + 1;
}

struct tally_entry *tally_get(struct tally *t, struct sv queue, struct sv name)
{
    if (t->n * 2 >= t->n_slots)
        grow(t);
    size_t i = place_of(t, queue, name);
    if (!t->slots[i]) {
        ARRAY_GROW(t->v, t->n, t->cap);
        t->v[t->n++] = (struct tally_entry){
            .queue = sv_make(arena_strndup(&t->arena, queue.n ? queue.p : "", queue.n), queue.n),
            .name = sv_make(arena_strndup(&t->arena, name.n ? name.p : "", name.n), name.n),
            .gate = SIZE_MAX};
        t->slots[i] = (uint32_t)t->n;
    }
    return &t->v[t->slots[i] - 1];
}

const struct tally_entry *tally_find(const struct tally *t, struct sv queue, struct sv name)
{
    if (!t->n)
        return NULL;
    uint32_t at = t->slots[place_of(t, queue, name)];
    return at ? &t->v[at - 1] : NULL;
}

/* ---- the plan ---- */

void plan_init(struct plan *p)
{
    *p = (struct plan){.mean = PLAN_GUESS_TIME, .free_bytes = -1};
    tally_init(&p->lanes);
    tally_init(&p->sizes);
    tally_init(&p->gate_index);
    tally_init(&p->hosts);
}

void plan_done(struct plan *p)
{
    tally_done(&p->lanes);
    tally_done(&p->sizes);
    tally_done(&p->gate_index);
    tally_done(&p->hosts);
    free(p->gates);
}

/* The gate of that limit and value, made if new; its index. */
static size_t gate_of(struct plan *p, size_t limit, struct sv value)
{
    struct tally_entry *e = tally_get(&p->gate_index, p->limits[limit].name, value);
    if (e->gate == SIZE_MAX) {
        ARRAY_GROW(p->gates, p->n_gates, p->cap_gates);
        e->gate = p->n_gates++;
        p->gates[e->gate] = (struct plan_gate){
            .limit = limit, .value = e->name, .interval_us = rate_interval(p->limits[limit].rate)};
    }
    return e->gate;
}

/* The gates of a lane, as indexes; at most n_limits. */
static size_t gates_of(struct plan *p, const struct tally_entry *lane, size_t *out,
                       struct sv *values)
{
    size_t n = limits_of(p->limits, p->n_limits, lane->queue, SV("fetch"), lane->name, out, values);
    for (size_t i = 0; i < n; i++)
        out[i] = gate_of(p, out[i], values[i]);
    return n;
}

/* A guess of how long a fetch takes decides nothing where a rate is known. */
static void time_gate(const struct plan *p, struct plan_gate *g)
{
    const struct limit_spec *s = &p->limits[g->limit];
    double mean = (double)p->mean.us, starts = 0, took = mean;
    if (g->interval_us && g->items > s->burst)
        starts = (double)(g->items - s->burst) * (double)g->interval_us;
    if (s->concurrency && g->items > s->concurrency)
        took = (double)g->items * mean / s->concurrency;
    if (starts > 0 && !p->mean_known)
        took = 0;
    else if (starts > 0)
        starts += mean;
    g->seconds = ((double)g->shut_us + (starts > took ? starts : took)) / 1e6;
}

static int64_t mean_size(const struct plan *p, struct sv host, bool *known)
{
    const struct tally_entry *own = tally_find(&p->sizes, SV(""), host);
    const struct tally_entry *any = tally_find(&p->sizes, SV("all"), SV(""));
    const struct tally_entry *e = own ? own : any;
    *known = e && e->n;
    return *known ? e->sum / e->n : PLAN_GUESS_BYTES;
}

static void add_host(struct plan *p, const struct tally_entry *lane)
{
    struct tally_entry *h = tally_get(&p->hosts, SV(""), lane->name);
    bool known;
    int64_t bytes = mean_size(p, lane->name, &known) * lane->n;
    h->n += lane->n;
    h->sum += bytes;
    p->items += lane->n;
    p->bytes += bytes;
    p->sized += known ? lane->n : 0;
    if (h->gate == SIZE_MAX || lane->seconds > h->seconds) {
        h->gate = lane->gate;
        h->seconds = lane->seconds;
    }
}

static void time_lane(struct plan *p, struct tally_entry *lane, const size_t *gates, size_t n)
{
    lane->gate = SIZE_MAX;
    lane->seconds = 0;
    for (size_t i = 0; i < n; i++)
        if (lane->gate == SIZE_MAX || p->gates[gates[i]].seconds > lane->seconds) {
            lane->gate = gates[i];
            lane->seconds = p->gates[gates[i]].seconds;
        }
}

static void forget_hosts(struct plan *p)
{
    tally_done(&p->hosts);
    tally_init(&p->hosts);
    p->items = p->bytes = p->sized = 0;
    for (size_t i = 0; i < p->n_gates; i++)
        p->gates[i].items = 0;
}

void plan_work_out(struct plan *p)
{
    size_t *gates = mem_zalloc(p->n_limits + 1, sizeof(*gates));
    struct sv *values = mem_zalloc(p->n_limits + 1, sizeof(*values));
    forget_hosts(p);
    for (size_t i = 0; i < p->lanes.n; i++) {
        size_t n = gates_of(p, &p->lanes.v[i], gates, values);
        for (size_t k = 0; k < n; k++)
            p->gates[gates[k]].items += p->lanes.v[i].n;
    }
    for (size_t i = 0; i < p->n_gates; i++)
        time_gate(p, &p->gates[i]);
    for (size_t i = 0; i < p->lanes.n; i++) {
        size_t n = gates_of(p, &p->lanes.v[i], gates, values);
        time_lane(p, &p->lanes.v[i], gates, n);
        add_host(p, &p->lanes.v[i]);
    }
    p->bound = SIZE_MAX;
    p->seconds = (double)p->mean.us / 1e6;
    if (p->slots && p->items > p->slots)
        p->seconds *= (double)p->items / (double)p->slots;
    for (size_t i = 0; i < p->n_gates; i++)
        if (p->gates[i].items && (p->gates[i].seconds > p->seconds ||
                                  (p->bound == SIZE_MAX && p->gates[i].seconds >= p->seconds))) {
            p->seconds = p->gates[i].seconds;
            p->bound = i;
        }
    free(gates);
    free(values);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct tally_entry *x = *(const struct tally_entry *const *)a;
    const struct tally_entry *y = *(const struct tally_entry *const *)b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    return sv_cmp(x->name, y->name);
}

const struct tally_entry **plan_hosts(const struct plan *p, struct arena *a)
{
    const struct tally_entry **v = arena_zalloc(a, p->hosts.n + 1, sizeof(*v));
    for (size_t i = 0; i < p->hosts.n; i++)
        v[i] = &p->hosts.v[i];
    qsort((void *)v, p->hosts.n, sizeof(*v), compare_hosts);
    return v;
}
