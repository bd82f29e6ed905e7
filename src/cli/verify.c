#include "verify.h"

#include "words.h"
#include <pthread.h>
#include <stdio.h>

enum { PAGE = 2000, SCALE = 1000000, FEW = 64 };

const char *finding_name(enum finding_kind k)
{
    static const char *const names[] = {"missing", "damaged", "orphan", "temporary"};
    return names[k];
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
    v->checked++;
    v->bytes += a->a.size;
    if (c->verdict != LAKE_GOOD)
        add_row(v, c->verdict == LAKE_MISSING ? FOUND_MISSING : FOUND_DAMAGED, a, c->why);
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

/* The store is not held while the disk is read. */
static int page_load(struct verify *v, struct artifact_filter *f, struct page *p,
                     struct pawl_err *err)
{
    *p = (struct page){0};
    arena_init(&p->arena);
    int rc = artifacts_load(v->c, f, &p->arena, &p->rows, err);
    if (rc == 0 && p->rows.n && !v->lake)
        rc = cli_lake(v->c, &v->lake, err);
    if (rc < 0) {
        arena_done(&p->arena);
        return rc;
    }
    p->out = arena_zalloc(&p->arena, p->rows.n + 1, sizeof(*p->out));
    for (size_t i = 0; i < p->rows.n; i++) {
        p->out[i].read = chosen(v);
        segments_row(&v->packed, p->rows.v[i].a.place);
        f->after = p->rows.v[i].id;
    }
    v->artifacts += (int64_t)p->rows.n;
    return 0;
}

/* While one page is being read the next one's rows are loaded. */
int verify_rows(struct verify *v, struct pawl_err *err)
{
    struct artifact_filter f = {.limit = PAGE};
    struct page pages[2];
    bool more = true;
    segments_init(&v->packed, v->younger);
    int rc = page_load(v, &f, &pages[0], err);
    for (int at = 0; rc == 0 && more; at = !at) {
        struct pawl_err ended = {0};
        rc = page_begin(v, &pages[at], err);
        more = rc == 0 && pages[at].rows.n == PAGE && !cli_signal();
        if (more)
            rc = page_load(v, &f, &pages[!at], err);
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
    unsigned char sha256[SHA256_LEN];
    char place[PLACE_MAX_BYTES + 1];
    int64_t stored;
    bool young;
};
struct scan {
    struct verify *v;
    struct seen *seen; /* objects that were not asked about yet */
    size_t n;
    int rc;
    struct pawl_err *err;
};

static void add_object(struct verify *v, enum finding_kind kind, const char *place, int64_t bytes)
{
    struct finding *f = add(v, kind);
    f->place = keep(v, sv_of(place));
    f->bytes = bytes;
    f->why = kind == FOUND_ORPHAN ? "no artifact has these bytes" : "never finished";
}

static bool is_here(void *arg, const struct artifact_view *a)
{
    bool *here = arg;
    *here = *here || !sv_starts(a->a.place, SV("pack/"));
    return !*here;
}

/* Where some are packed, rows with these bytes may have them there, and the object is left over. */
static int drop_packed(struct scan *s, bool *known)
{
    int rc = 0;
    for (size_t i = 0; s->v->packed.n && rc == 0 && i < s->n; i++) {
        const struct artifact_filter same = {.sha256 = s->seen[i].sha256};
        bool here = false;
        if (!known[i])
            continue;
        rc = s->v->c->store->ops->artifacts(s->v->c->store, &same, is_here, &here, s->err);
        known[i] = here;
    }
    return rc;
}

/* Those that no row names, unless a job may be about to. */
static int ask(struct scan *s)
{
    struct verify *v = s->v;
    AUTO_FREE unsigned char(*hashes)[SHA256_LEN] = mem_zalloc(PAGE, SHA256_LEN);
    bool known[PAGE] = {false};
    for (size_t i = 0; i < s->n; i++)
        memcpy(hashes[i], s->seen[i].sha256, SHA256_LEN);
    int rc = !s->n ? 0
                   : v->c->store->ops->bytes_known(v->c->store,
                                                   (const unsigned char(*)[SHA256_LEN])hashes, s->n,
                                                   known, s->err);
    if (rc == 0)
        rc = drop_packed(s, known);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        v->young += !known[i] && s->seen[i].young;
        if (!known[i] && !s->seen[i].young)
            add_object(v, FOUND_ORPHAN, s->seen[i].place, s->seen[i].stored);
    }
    s->n = 0;
    progress(v, ", looking for orphans");
    return rc;
}

static bool look_at(void *arg, const struct lake_entry *e)
{
    struct scan *s = arg;
    bool young = e->age.us < s->v->younger.us;
    if (e->segment) {
        s->v->segments++;
        segments_entry(&s->v->packed, e);
        return !cli_signal();
    }
    s->v->objects += !e->temporary;
    if (e->temporary && young)
        s->v->young++;
    else if (e->temporary)
        add_object(s->v, FOUND_TEMPORARY, e->place, e->stored);
    if (e->temporary)
        return !cli_signal();
    struct seen *to = &s->seen[s->n++];
    memcpy(to->sha256, e->sha256, SHA256_LEN);
    snprintf(to->place, sizeof(to->place), "%s", e->place);
    to->stored = e->stored;
    to->young = young;
    s->rc = s->n == PAGE ? ask(s) : 0;
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
    add_object(v, FOUND_ORPHAN, place, segment_dead(g));
    if (g->n)
        v->v[v->n - 1].why = "no artifact has some of it";
}

int verify_lake(struct verify *v, struct pawl_err *err)
{
    struct scan s = {.v = v, .err = err, .seen = mem_zalloc(PAGE, sizeof(*s.seen))};
    int rc = lake_scan(v->lake, look_at, &s, err);
    if (rc == 0)
        rc = s.rc;
    if (rc == 0)
        rc = ask(&s);
    free(s.seen);
    segments_judge(&v->packed);
    if (rc == 0)
        rc = segments_notes(&v->packed, v->lake, segments_since(v->c), err);
    for (size_t i = 0; rc == 0 && i < v->packed.n; i++)
        judge_segment(v, &v->packed.v[i]);
    return rc;
}

/* ---- repair ---- */

static int remove_object(struct verify *v, const struct finding *f, bool *gone,
                         struct pawl_err *err)
{
    int rc = lake_remove(v->lake, f->place.p, v->younger, gone, err);
    if (rc == PAWL_ENOTFOUND) { /* somebody else did */
        *gone = true;
        return 0;
    }
    if (rc == 0 && *gone) {
        v->repaired.removed++;
        v->repaired.bytes += f->bytes;
    } else if (rc == 0) {
        v->repaired.left++;
    }
    return rc;
}

/* Every row of the finding's object, also those that a sample did not read. */
static int rows_of(struct verify *v, const struct finding *f, struct arena *a,
                   struct artifact_list *out, struct pawl_err *err)
{
    const struct artifact_filter same = {.sha256 = f->sha256};
    struct artifact_list l;
    int rc = artifacts_load(v->c, &same, a, &l, err);
    if (rc < 0)
        return rc;
    *out = (struct artifact_list){l.v, 0};
    for (size_t i = 0; i < l.n; i++)
        if (sv_eq(l.v[i].a.place, f->place))
            out->v[out->n++] = l.v[i];
    return 0;
}

static int lose_rows(struct verify *v, const struct artifact_list *l, struct pawl_err *err)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < l->n; at += PAGE) {
        int64_t ids[PAGE], rows = 0, jobs = 0;
        size_t n = 0;
        for (; n < PAGE && at + n < l->n; n++)
            ids[n] = l->v[at + n].id;
        rc = v->c->store->ops->artifacts_lost(v->c->store, ids, n, &rows, &jobs, err);
        v->repaired.rows += rows;
        v->repaired.jobs += jobs;
    }
    return rc;
}

/* Looked at once more: the row may be gone with another finding of the same object, and a job may
 * have brought the bytes back. Damaged ones go before their rows, or else a job that fetches the
 * same again would find them and take them for good. */
static int repair_row(struct verify *v, const struct finding *f, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct artifact_list l;
    enum lake_verdict verdict = LAKE_GOOD;
    const char *why;
    arena_init(&a);
    int rc = rows_of(v, f, &a, &l, err);
    if (rc == 0 && l.n)
        rc = lake_check(v->lake, &l.v[0].a, &verdict, &why, err);
    if (rc < 0 || verdict == LAKE_GOOD)
        return rc;
    /* Of many in one segment none can be taken away: it is dead when its row has gone. */
    bool gone = verdict == LAKE_MISSING || sv_starts(f->place, SV("pack/"));
    if (!gone)
        rc = remove_object(v, f, &gone, err);
    return rc == 0 && gone ? lose_rows(v, &l, err) : rc;
}

static bool is_segment(const struct finding *f)
{
    return !f->artifact && sv_starts(f->place, SV("pack/"));
}

/* Was it found, by the one who was asked? */
static bool was_found(void *arg, const struct segment *g)
{
    const struct verify *v = arg;
    for (size_t i = 0; i < v->n; i++)
        if (is_segment(&v->v[i]) &&
            sv_eq(sv_make(v->v[i].place.p + 5, v->v[i].place.n - 5), sv_of(g->name)))
            return true;
    return false;
}

static int repair_segments(struct verify *v, struct pawl_err *err)
{
    struct segments_result done = {0};
    int rc = segments_reclaim(v->c, v->lake, &v->packed, 0, was_found, v, &done, err);
    v->repaired.removed += done.removed;
    v->repaired.cut += done.cut + done.moved;
    v->repaired.bytes += done.bytes;
    v->repaired.left += done.left;
    return rc;
}

int verify_repair(struct verify *v, struct pawl_err *err)
{
    int rc = 0;
    size_t i = 0;
    bool packed = false;
    for (; rc == 0 && i < v->n && !cli_signal(); i++) {
        bool gone;
        if (is_segment(&v->v[i]))
            packed = true;
        else
            rc = v->v[i].artifact ? repair_row(v, &v->v[i], err)
                                  : remove_object(v, &v->v[i], &gone, err);
    }
    v->repaired.left += (int64_t)(v->n - i);
    return rc == 0 && packed && !cli_signal() ? repair_segments(v, err) : rc;
}
