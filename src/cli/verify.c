#include "verify.h"

#include "words.h"
#include <pthread.h>
#include <stdio.h>

enum { PAGE = 2000, SCALE = 1000000, FEW = 64 };

const char *finding_name(enum finding_kind k)
{
    static const char *const names[] = {"missing", "damaged", "orphan", "temporary", "unreadable"};
    return names[k];
}

void verify_done(struct verify *v)
{
    lake_close(v->lake);
    for (size_t i = 0; i < READERS; i++)
        lake_close(v->readers[i]);
    for (size_t i = 0; i < v->n; i++)
        free(v->v[i].rows);
    text_set_done(&v->named);
    segments_done(&v->packed);
    arena_done(&v->arena);
    free(v->v);
}

static struct finding *add(struct verify *v, enum finding_kind kind)
{
    ARRAY_GROW(v->v, v->n, v->cap);
    v->count[kind]++;
    v->v[v->n] = (struct finding){.kind = kind};
    return &v->v[v->n++];
}

static struct sv keep(struct verify *v, struct sv s)
{
    return sv_make(arena_strndup(&v->arena, s.p ? s.p : "", s.n), s.n);
}

static void progress(struct verify *v, const char *what)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!meter_due(&v->meter))
        return;
    words_count(&s, v->checked);
    str_adds(&s, " artifacts read, ");
    words_bytes(&s, v->bytes);
    str_addf(&s, ", %zu wrong%s", v->n, what);
    meter_draw(&v->meter, str_sv(&s));
}

/* ---- rows ---- */

static void add_row(struct verify *v, enum finding_kind kind, const struct artifact_view *a,
                    const char *why)
{
    struct finding *f = add(v, kind);
    f->artifact = a->id;
    f->job = a->job;
    f->name = keep(v, a->a.name);
    f->place = keep(v, a->a.place);
    f->why = why;
    f->bytes = a->a.stored;
    f->size = a->a.size;
    f->codec = a->a.codec;
    memcpy(f->sha256, a->a.sha256, SHA256_LEN);
}

/* ---- some at a time ---- */

struct checked {
    bool read;
    enum lake_verdict verdict;
    const char *why;
};
/* One reader's part of a page, with a handle of its own; the page's rows and verdicts are shared,
 * each row somebody's alone. */
struct reader {
    struct lake *lake;
    const struct artifact_list *rows;
    struct checked *out;
    size_t from, to;
    int rc;
    struct pawl_err err;
    pthread_t thread;
};
/* Rows of the store, and what became of them. */
struct page {
    struct arena arena;
    struct artifact_list rows;
    struct checked *out;
    struct reader readers[READERS];
    size_t n, started; /* readers: with a part; on threads of their own */
};

static void *read_part(void *arg)
{
    struct reader *r = arg;
    for (size_t i = r->from; r->rc == 0 && i < r->to && !cli_signal(); i++) {
        struct checked *c = &r->out[i];
        if (!c->read)
            continue;
        r->rc = lake_check(r->lake, &r->rows->v[i].a, &c->verdict, &c->why, &r->err);
        c->read = r->rc == 0;
    }
    for (size_t i = r->from; cli_signal() && i < r->to; i++)
        r->out[i].read = r->out[i].read && r->out[i].why; /* those it did not come to */
    return NULL;
}

static int open_readers(struct verify *v, struct page *p, struct pawl_err *err)
{
    int rc = 0;
    size_t n = p->rows.n < FEW ? 1 : READERS;
    for (p->n = 0; rc == 0 && p->n < n; p->n++) {
        size_t i = p->n;
        if (!v->readers[i])
            rc = cli_lake(v->c, &v->readers[i], err);
        p->readers[i] = (struct reader){.lake = v->readers[i],
                                        .rows = &p->rows,
                                        .out = p->out,
                                        .from = p->rows.n * i / n,
                                        .to = p->rows.n * (i + 1) / n};
    }
    return rc;
}

/* Their threads begin; page_end() waits for them. */
static int page_begin(struct verify *v, struct page *p, struct pawl_err *err)
{
    p->started = 0;
    int rc = p->rows.n ? open_readers(v, p, err) : 0;
    p->n = rc == 0 ? p->n : 0;
    while (rc == 0 && p->started < p->n &&
           pthread_create(&p->readers[p->started].thread, NULL, read_part,
                          &p->readers[p->started]) == 0)
        p->started++;
    return rc;
}

static void count_row(struct verify *v, const struct artifact_view *a, const struct checked *c)
{
    static const enum finding_kind kinds[] = {[LAKE_MISSING] = FOUND_MISSING,
                                              [LAKE_DAMAGED] = FOUND_DAMAGED,
                                              [LAKE_UNREADABLE] = FOUND_UNREADABLE};
    if (c->verdict != LAKE_UNREADABLE) {
        v->checked++;
        v->bytes += a->a.size;
    }
    if (c->verdict != LAKE_GOOD)
        add_row(v, kinds[c->verdict], a, c->why);
}

static int page_end(struct verify *v, struct page *p, struct pawl_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct reader *r = &p->readers[i];
        if (i < p->started)
            pthread_join(r->thread, NULL);
        else
            read_part(r);
        if (r->rc < 0 && rc == 0) {
            *err = r->err;
            rc = r->rc;
        }
    }
    for (size_t i = 0; rc == 0 && i < p->rows.n; i++)
        if (p->out[i].read)
            count_row(v, &p->rows.v[i], &p->out[i]);
    arena_done(&p->arena);
    progress(v, "");
    return rc;
}

static bool chosen(const struct verify *v)
{
    return v->share >= 1 || (double)rand_below(SCALE) < v->share * SCALE;
}

static void note_place(struct verify *v, struct sv place)
{
    if (sv_starts(place, SV("pack/")))
        segments_row(&v->packed, place);
    else
        text_set_add(&v->named, place);
}

/* The store is not held while the disk is read. */
static int page_load(struct verify *v, struct page *p, struct pawl_err *err)
{
    const struct artifact_filter f = {.after = v->last, .limit = PAGE};
    *p = (struct page){0};
    arena_init(&p->arena);
    int rc = artifacts_load(v->c, &f, &p->arena, &p->rows, err);
    if (rc == 0 && p->rows.n && !v->lake)
        rc = cli_own_lake(v->c, cli_lake_mode(v->c), &v->lake, err);
    if (rc < 0) {
        arena_done(&p->arena);
        return rc;
    }
    p->out = arena_zalloc(&p->arena, p->rows.n + 1, sizeof(*p->out));
    for (size_t i = 0; i < p->rows.n; i++) {
        p->out[i].read = chosen(v);
        note_place(v, p->rows.v[i].a.place);
        v->last = p->rows.v[i].id;
    }
    v->artifacts += (int64_t)p->rows.n;
    return 0;
}

/* While one page is being read the next one's rows are loaded. */
int verify_rows(struct verify *v, struct pawl_err *err)
{
    struct page pages[2];
    bool more = true;
    segments_init(&v->packed, v->younger);
    int rc = page_load(v, &pages[0], err);
    for (int at = 0; rc == 0 && more; at = !at) {
        struct pawl_err ended = {0};
        rc = page_begin(v, &pages[at], err);
        more = rc == 0 && pages[at].rows.n == PAGE && !cli_signal();
        if (more)
            rc = page_load(v, &pages[!at], err);
        bool next = more && rc == 0;
        int read = page_end(v, &pages[at], &ended);
        if (rc == 0 && read < 0) {
            *err = ended;
            rc = read;
        }
        if (next && rc < 0)
            arena_done(&pages[!at].arena);
    }
    return rc;
}

/* ---- what lies in the lake ---- */

struct seen {
    char place[PLACE_MAX_BYTES + 1];
    int64_t stored;
    bool young;
};
struct scan {
    struct verify *v;
    struct seen *seen; /* objects that no row named that was read so far */
    size_t n;
    int rc;
    struct pawl_err *err;
};

static void add_object(struct verify *v, enum finding_kind kind, const char *place, int64_t bytes,
                       const char *why)
{
    struct finding *f = add(v, kind);
    f->place = keep(v, sv_of(place));
    f->bytes = bytes;
    f->why = why;
}

static int note_page(void *arg, const struct artifact_list *l, struct pawl_err *err)
{
    (void)err;
    for (size_t i = 0; i < l->n; i++)
        note_place(arg, l->v[i].a.place);
    return 0;
}

/* Those that no row names, unless a job may be about to: one that is old has its row by now, and
 * rows that came since are read first. */
static int judge(struct scan *s)
{
    struct verify *v = s->v;
    int rc = s->n ? artifacts_each_page(v->c, &v->last, note_page, v, s->err) : 0;
    for (size_t i = 0; rc == 0 && i < s->n && !cli_signal(); i++) {
        const struct seen *o = &s->seen[i];
        if (text_set_has(&v->named, sv_of(o->place)))
            continue;
        v->young += o->young;
        if (!o->young)
            add_object(v, FOUND_ORPHAN, o->place, o->stored, "no artifact has these bytes");
    }
    s->n = 0;
    progress(v, ", looking for orphans");
    return rc;
}

static bool look_at(void *arg, const struct lake_entry *e)
{
    struct scan *s = arg;
    bool young = e->age.us < s->v->younger.us;
    if (e->wrong) {
        add_object(s->v, FOUND_UNREADABLE, e->place, 0, e->wrong);
        return !cli_signal();
    }
    if (e->segment) {
        s->v->segments++;
        segments_entry(&s->v->packed, e);
        return !cli_signal();
    }
    s->v->objects += !e->temporary;
    if (e->temporary && young)
        s->v->young++;
    else if (e->temporary)
        add_object(s->v, FOUND_TEMPORARY, e->place, e->stored, "never finished");
    if (e->temporary || text_set_has(&s->v->named, sv_of(e->place)))
        return !cli_signal();
    struct seen *to = &s->seen[s->n++];
    snprintf(to->place, sizeof(to->place), "%s", e->place);
    to->stored = e->stored;
    to->young = young;
    s->rc = s->n == PAGE ? judge(s) : 0;
    return s->rc == 0 && !cli_signal();
}

static void judge_segment(struct verify *v, const struct segment *g)
{
    char place[PLACE_MAX_BYTES + 1];
    if (!segment_wastes(g))
        return;
    if (g->young || g->busy) {
        v->young++;
        return;
    }
    snprintf(place, sizeof(place), "pack/%s", g->name);
    add_object(v, FOUND_ORPHAN, place, segment_dead(g),
               g->n ? "no artifact has some of it" : "no artifact has these bytes");
}

/* Once more, from the first row on: `lake convert` gives old rows new places, and on PostgreSQL the
 * row of a transaction that took long may have a lower id than others that were there before. */
static int drop_named(struct verify *v, struct pawl_err *err)
{
    size_t n = 0;
    int rc = verify_named(v, err);
    for (size_t i = 0; i < v->n; i++) {
        struct finding *f = &v->v[i];
        if (f->kind == FOUND_ORPHAN && f->n_rows) {
            v->count[FOUND_ORPHAN]--;
            free(f->rows);
        } else {
            v->v[n++] = *f;
        }
    }
    v->n = n;
    return rc;
}

int verify_lake(struct verify *v, struct pawl_err *err)
{
    struct scan s = {.v = v, .err = err, .seen = mem_zalloc(PAGE, sizeof(*s.seen))};
    int rc = lake_scan(v->lake, look_at, &s, err);
    if (rc == 0)
        rc = s.rc;
    if (rc == 0)
        rc = judge(&s);
    free(s.seen);
    if (rc == 0 && v->count[FOUND_ORPHAN])
        rc = drop_named(v, err);
    segments_judge(&v->packed);
    if (rc == 0)
        rc = segments_notes(&v->packed, v->lake, segments_since(v->c), err);
    for (size_t i = 0; rc == 0 && i < v->packed.n; i++)
        judge_segment(v, &v->packed.v[i]);
    return rc;
}
