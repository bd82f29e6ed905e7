#include "segments.h"

#include "mem.h"
#include <stdio.h>

void segments_init(struct segments *s, struct dur younger)
{
    *s = (struct segments){.younger = younger, .rows_at = clock_boot()};
}

void segments_done(struct segments *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].v);
        free(s->v[i].moved);
        free(s->v[i].why);
    }
    free(s->v);
}

struct dur segments_younger(const struct segments *s)
{
    return DUR_US(s->younger.us + clock_boot().us - s->rows_at.us);
}

/* ---- by name ---- */

/* Where it is, or would be. */
static size_t position(const struct segments *s, struct sv name)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (sv_cmp(sv_of(s->v[mid].name), name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct segment *segments_find(const struct segments *s, struct sv name)
{
    size_t at = position(s, name);
    return at < s->n && sv_eq(sv_of(s->v[at].name), name) ? &s->v[at] : NULL;
}

/* Rows mostly name the segment that the row before named. */
static struct segment *get(struct segments *s, const char *name)
{
    if (s->last < s->n && !strcmp(s->v[s->last].name, name))
        return &s->v[s->last];
    size_t at = position(s, sv_of(name));
    if (at == s->n || strcmp(s->v[at].name, name) != 0) {
        ARRAY_GROW(s->v, s->n, s->cap);
        memmove(&s->v[at + 1], &s->v[at], (s->n - at) * sizeof(*s->v));
        s->n++;
        s->v[at] = (struct segment){0};
        snprintf(s->v[at].name, SEGMENT_NAME, "%s", name);
    }
    s->last = at;
    return &s->v[at];
}

/* ---- what is known of them ---- */

void segments_row(struct segments *s, struct sv place)
{
    struct lake_span spans[2];
    int n = lake_spans(place, spans);
    for (int i = 0; i < n; i++) {
        struct segment *g = get(s, spans[i].segment);
        ARRAY_GROW(g->v, g->n, g->cap);
        g->v[g->n++] =
            (struct stretch){spans[i].offset - spans[i].lead, spans[i].offset + spans[i].length};
    }
}

void segments_entry(struct segments *s, const struct lake_entry *e)
{
    struct segment *g = get(s, e->place + strlen("pack/"));
    g->there = true;
    g->busy = e->busy;
    g->young = e->age.us < segments_younger(s).us;
    g->size = e->stored;
    g->head = e->head;
}

static int compare(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static void judge(struct segment *g)
{
    size_t n = 0;
    g->live = g->end = 0;
    if (g->n)
        qsort(g->v, g->n, sizeof(*g->v), compare);
    for (size_t i = 0; i < g->n; i++) {
        if (n && g->v[i].from == g->v[n - 1].from && g->v[i].to == g->v[n - 1].to)
            continue; /* several rows */
        g->live += g->v[i].to - g->v[i].from;
        g->end = g->v[i].to > g->end ? g->v[i].to : g->end;
        g->v[n++] = g->v[i];
    }
    g->n = n;
}

void segments_judge(struct segments *s)
{
    for (size_t i = 0; i < s->n; i++)
        judge(&s->v[i]);
}

int64_t segment_dead(const struct segment *g)
{
    int64_t dead = g->n ? g->size - g->head - g->live : g->size;
    return dead > 0 ? dead : 0;
}

bool segment_wastes(const struct segment *g)
{
    return g->there && (!g->n || segment_dead(g) > 0);
}

/* ---- records without rows ---- */

struct noting {
    struct segment *g;
    struct wall since;
};

static void note(void *arg, const struct lake_span *s, struct wall at)
{
    struct noting *n = arg;
    if (at.us < n->since.us)
        return;
    ARRAY_GROW(n->g->v, n->g->n, n->g->cap);
    n->g->v[n->g->n++] = (struct stretch){s->offset - s->lead, s->offset + s->length};
}

/* Before, between and after what rows name. */
static int note_gaps(struct noting *n, struct lake *l, struct pawl_err *err)
{
    struct segment *g = n->g;
    int64_t at = g->head;
    size_t named = g->n;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i <= named && g->head; i++) {
        int64_t to = i < named ? g->v[i].from : g->size;
        if (to > at)
            rc = lake_notes(l, g->name, at, to, note, n, err);
        at = i < named && g->v[i].to > at ? g->v[i].to : at;
    }
    return rc == PAWL_ENOTFOUND ? 0 : rc; /* it has gone meanwhile */
}

int segments_notes(struct segments *s, struct lake *l, struct wall since, struct pawl_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n && !cli_signal(); i++) {
        struct noting n = {&s->v[i], since};
        if (!segment_wastes(n.g) || n.g->busy || n.g->young)
            continue;
        rc = note_gaps(&n, l, err);
        judge(n.g);
    }
    return rc;
}

struct wall segments_since(const struct cli *c)
{
    int64_t keep = c->config->retention_artifacts.us;
    return (struct wall){keep >= 0 ? c->store->ops->now(c->store).us - keep : 0};
}
