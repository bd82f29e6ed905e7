#include "lake_convert.h"

#include "words.h"
#include <stdio.h>

enum { PAGE = 256, GROUP_BYTES = 32 << 20, IN_MEMORY = 256 << 10 };

/* A row on its way. */
struct turning {
    const struct artifact_view *row;
    struct exchange from;
    struct str body; /* of a small one */
    char uri[64 + ARTIFACT_NAME_MAX];
};
struct group {
    struct convert *v;
    struct turning *t;
    struct lake_item *items;
    size_t n;
    int64_t bytes;
};

static bool is_packed(const struct artifact_view *v)
{
    return sv_starts(v->a.place, SV("pack/"));
}

static void progress(struct convert *v)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!meter_due(&v->meter))
        return;
    words_count(&s, v->moved);
    str_adds(&s, " artifacts converted, ");
    words_bytes(&s, v->bytes);
    meter_draw(&v->meter, str_sv(&s));
}

/* ---- taking up ---- */

/* In memory while it is small, else in a temporary file. */
struct filling {
    struct str *body;
    struct lake_spool *spool;
    int rc;
    struct pawl_err *err;
};

static bool fill(void *arg, struct sv bytes)
{
    struct filling *f = arg;
    if (!f->spool)
        str_add(f->body, bytes);
    else
        f->rc = lake_spool_write(f->spool, bytes, f->err);
    return f->rc == 0;
}

static void name_origin(struct turning *t)
{
    const struct artifact_view *row = t->row;
    t->from = (struct exchange){.uri = row->url, .at = row->created_at};
    if (row->url.p)
        return;
    snprintf(t->uri, sizeof(t->uri), "pawl:job/%lld/" SV_FMT, (long long)row->job.v,
             SV_ARG(row->a.name));
    t->from.uri = sv_of(t->uri);
}

/* 1: taken, 0: it cannot be read where it is. */
static int take(struct group *g, const struct artifact_view *row, struct pawl_err *err)
{
    struct lake *lake = g->v->lake;
    struct turning *t = &g->t[g->n];
    struct filling f = {.body = &t->body, .err = err};
    struct pawl_err e = {0};
    str_done(&t->body);
    *t = (struct turning){.row = row, .body = STR_INIT(IN_MEMORY)};
    int rc = row->a.size > IN_MEMORY ? lake_spool_open(lake, &f.spool, err) : 0;
    if (rc < 0)
        return rc;
    rc = lake_read(lake, &row->a, fill, &f, &e);
    if (rc < 0 || f.rc < 0) {
        lake_spool_drop(f.spool);
        return f.rc < 0 ? f.rc : 0;
    }
    name_origin(t);
    g->items[g->n] = (struct lake_item){.spool = f.spool, .type = row->a.type, .from = &t->from};
    if (!f.spool)
        g->items[g->n].body = sv_make(str_cstr(&t->body), t->body.len);
    g->n++;
    g->bytes += row->a.size;
    return 1;
}

/* ---- setting down ---- */

/* Are these the row's bytes, read back from where they are now? */
static int same(struct convert *v, const struct artifact_view *row, const struct lake_item *item,
                bool *out, struct pawl_err *err)
{
    struct artifact a = row->a;
    enum lake_verdict verdict = LAKE_DAMAGED;
    const char *why;
    if (item->size != a.size || memcmp(item->sha256, a.sha256, SHA256_LEN) != 0) {
        *out = false;
        return 0;
    }
    a.place = sv_of(item->place);
    a.codec = item->codec;
    a.stored = item->stored;
    int rc = lake_check(v->lake, &a, &verdict, &why, err);
    if (rc == 0 && verdict != LAKE_GOOD)
        rc = err_set(err, PAWL_ECORRUPT, "the copy of job %lld's artifact is damaged: %s",
                     (long long)row->job.v, why);
    *out = true;
    return rc;
}

static int move_rows(struct group *g, struct pawl_err *err)
{
    struct convert *v = g->v;
    struct artifact_move moves[PAGE];
    size_t n = 0;
    int64_t moved = 0;
    for (size_t i = 0; i < g->n; i++) {
        bool good = false;
        const struct lake_item *item = &g->items[i];
        const struct artifact_view *row = g->t[i].row;
        if (item->rc < 0) {
            *err = item->err;
            return item->rc;
        }
        int rc = same(v, row, item, &good, err);
        if (rc < 0)
            return rc;
        v->bad += !good;
        if (!good)
            continue;
        moves[n++] = (struct artifact_move){.id = row->id,
                                            .from = row->a.place,
                                            .to = sv_of(item->place),
                                            .stored = item->stored,
                                            .codec = item->codec};
        v->bytes += item->size;
    }
    int rc = n ? v->c->store->ops->artifacts_move(v->c->store, moves, n, &moved, err) : 0;
    v->moved += moved;
    return rc;
}

static int set_down(struct group *g, struct pawl_err *err)
{
    int rc = g->n ? lake_keep(g->v->lake, g->items, g->n, err) : 0;
    if (rc == 0)
        rc = move_rows(g, err);
    g->n = 0;
    g->bytes = 0;
    progress(g->v);
    return rc;
}

static void drop(struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        lake_spool_drop(g->items[i].spool);
    for (size_t i = 0; i < PAGE; i++)
        str_done(&g->t[i].body);
    free(g->items);
    free(g->t);
}

static int convert_page(struct convert *v, struct artifact_filter *f, bool *more,
                        struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    AUTO(drop)
    struct group g = {
        .v = v, .t = mem_zalloc(PAGE, sizeof(*g.t)), .items = mem_zalloc(PAGE, sizeof(*g.items))};
    struct artifact_list l = {0};
    arena_init(&a);
    int rc = artifacts_load(v->c, f, &a, &l, err);
    for (size_t i = 0; rc == 0 && i < l.n && !cli_signal(); i++) {
        v->seen++;
        f->after = l.v[i].id;
        if (is_packed(&l.v[i]) == v->pack)
            continue;
        int took = take(&g, &l.v[i], err);
        v->bad += took == 0;
        rc = took < 0 ? took : g.bytes >= GROUP_BYTES ? set_down(&g, err) : 0;
    }
    *more = rc == 0 && l.n == PAGE;
    return rc < 0 || cli_signal() ? rc : set_down(&g, err);
}

int convert_all(struct convert *v, struct pawl_err *err)
{
    struct artifact_filter f = {.limit = PAGE};
    bool more = true;
    int rc = 0;
    while (rc == 0 && more && !cli_signal())
        rc = convert_page(v, &f, &more, err);
    return rc;
}
