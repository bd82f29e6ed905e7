/* Getting dead bytes out of segments. Every step leaves a lake that is whole: copies are durable
 * before rows name them, rows have moved before the old segment goes; who is interrupted in between
 * leaves dead bytes for the next time. Rows are changed some hundred at a time, so that no worker
 * waits long for the store. */
#include "segments.h"

#include "artifacts_out.h"
#include "mem.h"
#include <stdio.h>

enum { COPIES = 256 };

struct reclaiming {
    struct cli *c;
    struct lake *lake;
    struct segments *all;
    struct segments_result *out;
};

/* ---- rows and segments ---- */

static bool see(void *arg, const struct lake_entry *e)
{
    if (e->segment && !e->wrong)
        segments_entry(arg, e);
    return !cli_signal();
}

static int note_rows(void *arg, const struct artifact_list *l, struct pawl_err *err)
{
    (void)err;
    for (size_t i = 0; i < l->n; i++)
        segments_row(arg, l->v[i].a.place);
    return 0;
}

int segments_load(struct cli *c, struct lake *l, struct segments *s, struct pawl_err *err)
{
    int64_t after = 0;
    int rc = artifacts_each_page(c, &after, note_rows, s, err);
    if (rc == 0)
        rc = lake_scan(l, see, s, err);
    segments_judge(s);
    return rc < 0 ? rc : segments_notes(s, l, segments_since(c), err);
}

/* ---- copies ---- */

static int copy_some(struct reclaiming *r, struct segment *g, size_t at, size_t n,
                     struct pawl_err *err)
{
    struct lake_move v[COPIES] = {0};
    for (size_t i = 0; i < n; i++) {
        const struct stretch *x = &g->v[at + i];
        v[i].from = (struct lake_span){.offset = x->from, .length = x->to - x->from};
        memcpy(v[i].from.segment, g->name, SEGMENT_NAME);
    }
    int rc = lake_copy(r->lake, v, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        g->moved[at + i] = v[i].rc == 0 ? v[i].to : (struct lake_span){0};
        g->damaged = g->damaged || v[i].rc < 0;
    }
    return rc;
}

static int copy_segment(struct reclaiming *r, struct segment *g, struct pawl_err *err)
{
    int rc = 0;
    g->moving = true;
    g->moved = mem_zalloc(g->n + 1, sizeof(*g->moved));
    for (size_t at = 0; rc == 0 && at < g->n && !cli_signal(); at += COPIES)
        rc = copy_some(r, g, at, g->n - at < COPIES ? g->n - at : COPIES, err);
    return rc;
}

/* ---- rows follow ---- */

static struct lake_span *find_copy(struct segment *g, const struct lake_span *s)
{
    int64_t from = s->offset - s->lead, to = s->offset + s->length;
    size_t low = 0, high = g->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (g->v[mid].from < from || (g->v[mid].from == from && g->v[mid].to < to))
            low = mid + 1;
        else
            high = mid;
    }
    bool found = low < g->n && g->v[low].from == from && g->v[low].to == to;
    return found && g->moved[low].length ? &g->moved[low] : NULL;
}

/* The same stretch in its new place. True: it has one. */
static bool follow(struct segments *all, struct lake_span *s)
{
    struct segment *g = segments_find(all, sv_of(s->segment));
    if (!g || !g->moving)
        return false;
    const struct lake_span *to = find_copy(g, s);
    if (!to) {
        g->stuck = true;
        return false;
    }
    memcpy(s->segment, to->segment, SEGMENT_NAME);
    s->offset = to->offset + s->lead;
    return true;
}

static int move_rows(void *arg, const struct artifact_list *l, struct pawl_err *err)
{
    struct reclaiming *r = arg;
    AUTO(arena_done) struct arena a;
    struct artifact_move v[ARTIFACTS_PAGE];
    size_t n = 0;
    int64_t moved = 0;
    arena_init(&a);
    for (size_t i = 0; i < l->n; i++) {
        struct lake_span s[2];
        char place[PLACE_MAX_BYTES + 1];
        const struct artifact *x = &l->v[i].a;
        int parts = lake_spans(x->place, s);
        bool any = parts > 0 && follow(r->all, &s[0]);
        any = (parts > 1 && follow(r->all, &s[1])) || any;
        if (!any)
            continue;
        lake_place(s, parts, place);
        v[n++] = (struct artifact_move){.id = l->v[i].id,
                                        .from = x->place,
                                        .to = sv_of(arena_strndup(&a, place, strlen(place))),
                                        .stored = x->stored,
                                        .codec = x->codec};
    }
    int rc = n ? r->c->store->ops->artifacts_move(r->c->store, v, n, &moved, err) : 0;
    r->out->rows += moved;
    return rc;
}

/* ---- the old ones go ---- */

static void stick(struct reclaiming *r, struct segment *g, const char *why)
{
    free(g->why);
    g->why = mem_strdup(why);
    r->out->stuck++;
}

/* An error of this one alone is its answer; else it is the lake's. */
static int answer(struct reclaiming *r, struct segment *g, int rc, const struct pawl_err *e,
                  struct pawl_err *err)
{
    if (rc == PAWL_EIO) {
        stick(r, g, e->msg);
        return 0;
    }
    if (rc < 0)
        *err = *e;
    return rc;
}

static int remove_one(struct reclaiming *r, struct segment *g, int64_t bytes, int64_t *count,
                      struct pawl_err *err)
{
    struct pawl_err e = {0};
    char place[PLACE_MAX_BYTES + 1];
    bool gone = false;
    snprintf(place, sizeof(place), "pack/%s", g->name);
    int rc = lake_remove(r->lake, place, segments_younger(r->all), &gone, &e);
    if (rc == 0 && gone) {
        ++*count;
        r->out->bytes += bytes;
    } else if (rc == 0) {
        r->out->left++;
    }
    return answer(r, g, rc, &e, err);
}

static int cut_one(struct reclaiming *r, struct segment *g, struct pawl_err *err)
{
    char place[PLACE_MAX_BYTES + 1];
    bool cut = false;
    struct pawl_err e = {0};
    snprintf(place, sizeof(place), "pack/%s", g->name);
    int rc = lake_cut(r->lake, place, g->end, segments_younger(r->all), &cut, &e);
    if (rc == 0 && cut) {
        r->out->cut++;
        r->out->bytes += segment_dead(g);
    } else if (rc == 0) {
        r->out->left++;
    }
    return answer(r, g, rc, &e, err);
}

/* All that moves is copied, then all rows follow, then what is empty goes. */
static int reclaim_moving(struct reclaiming *r, bool any, struct pawl_err *err)
{
    if (!any || cli_signal())
        return 0;
    int64_t after = 0;
    r->all->rows_at = clock_boot();
    int rc = artifacts_each_page(r->c, &after, move_rows, r, err);
    for (size_t i = 0; rc == 0 && i < r->all->n && !cli_signal(); i++) {
        struct segment *g = &r->all->v[i];
        if (g->moving && g->damaged)
            stick(r, g,
                  "some of its records are damaged; 'pawl verify --repair' first, then again");
        else if (g->moving && g->stuck)
            r->out->left++;
        else if (g->moving)
            rc = remove_one(r, g, segment_dead(g), &r->out->moved, err);
    }
    return rc;
}

/* Only its end is dead: nothing lies before or between what is alive. */
static bool dead_at_end(const struct segment *g)
{
    return g->n && g->head && g->end == g->head + g->live;
}

int segments_reclaim(struct cli *c, struct lake *l, struct segments *s, double share,
                     bool (*wanted)(void *arg, const struct segment *s), void *arg,
                     struct segments_result *out, struct pawl_err *err)
{
    struct reclaiming r = {c, l, s, out};
    bool any = false;
    int rc = 0;
    *out = (struct segments_result){0};
    for (size_t i = 0; rc == 0 && i < s->n && !cli_signal(); i++) {
        struct segment *g = &s->v[i];
        int64_t dead = segment_dead(g);
        if (!segment_wastes(g) || (wanted && !wanted(arg, g)))
            continue;
        if (g->busy || g->young) {
            out->left++;
        } else if (!g->n) {
            rc = remove_one(&r, g, g->size, &out->removed, err);
        } else if (dead_at_end(g)) {
            rc = cut_one(&r, g, err);
        } else if ((double)dead >= share * (double)g->size) {
            rc = copy_segment(&r, g, err);
            any = true;
        }
    }
    return rc < 0 ? rc : reclaim_moving(&r, any, err);
}
