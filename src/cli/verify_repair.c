/* Putting right what `verify` found. No index leads from bytes to the rows that name them: those of
 * all findings are collected in one pass over all rows. */
#include "verify.h"

enum { BATCH = 2000 }; /* rows in one transaction */

/* ---- which rows name the places of findings ---- */

struct naming {
    struct finding **v; /* by place and hash; each once */
    size_t n;
};

static int compare(const void *a, const void *b)
{
    const struct finding *x = *(struct finding *const *)a, *y = *(struct finding *const *)b;
    int order = sv_cmp(x->place, y->place);
    return order ? order : memcmp(x->sha256, y->sha256, SHA256_LEN);
}

/* Of findings about the same bytes the first one gets the rows of all. */
static void naming_init(struct naming *s, struct verify *v)
{
    size_t n = 0;
    *s = (struct naming){.v = mem_zalloc(v->n + 1, sizeof(*s->v))};
    for (size_t i = 0; i < v->n; i++) {
        v->v[i].n_rows = 0;
        v->v[i].disputed = false;
        s->v[i] = &v->v[i];
    }
    qsort(s->v, v->n, sizeof(*s->v), compare);
    for (size_t i = 0; i < v->n; i++)
        if (!n || compare(&s->v[i], &s->v[n - 1]) != 0)
            s->v[n++] = s->v[i];
    s->n = n;
}

static size_t first_of(const struct naming *s, struct sv place)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (sv_cmp(s->v[mid]->place, place) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void note_row(const struct naming *s, const struct artifact_view *a)
{
    for (size_t i = first_of(s, a->a.place); i < s->n && sv_eq(s->v[i]->place, a->a.place); i++) {
        struct finding *f = s->v[i];
        if (f->artifact && memcmp(f->sha256, a->a.sha256, SHA256_LEN) != 0) {
            f->disputed = true;
            continue;
        }
        ARRAY_GROW(f->rows, f->n_rows, f->cap_rows);
        f->rows[f->n_rows++] = a->id;
    }
}

static int note_page(void *arg, const struct artifact_list *l, struct pawl_err *err)
{
    (void)err;
    for (size_t i = 0; i < l->n; i++)
        note_row(arg, &l->v[i]);
    return 0;
}

int verify_named(struct verify *v, struct pawl_err *err)
{
    struct naming s;
    int64_t after = 0;
    naming_init(&s, v);
    v->rows_at = clock_boot();
    int rc = artifacts_each_page(v->c, &after, note_page, &s, err);
    free(s.v);
    return rc;
}

/* ---- repair ---- */

/* It is this one that cannot be put right: told, and the others are. */
static void stick(struct verify *v, struct finding *f, const char *why)
{
    f->stuck = arena_strndup(&v->arena, why, strlen(why));
    v->repaired.stuck++;
}

/* A row that came after the rows began to be read belongs to bytes that were kept or touched within
 * `younger` before that: so old must they be, however long ago that was. */
static int remove_object(struct verify *v, struct finding *f, bool *gone, struct pawl_err *err)
{
    struct dur since = DUR_US(clock_boot().us - v->rows_at.us);
    struct pawl_err e = {0};
    *gone = false;
    int rc = lake_remove(v->lake, f->place.p, DUR_US(v->younger.us + since.us), gone, &e);
    if (rc == PAWL_ENOTFOUND) { /* somebody else did */
        *gone = true;
        return 0;
    }
    if (lake_only_one(rc)) {
        stick(v, f, e.msg);
        return 0;
    }
    if (rc == 0 && *gone) {
        v->repaired.removed++;
        v->repaired.bytes += f->bytes;
    } else if (rc == 0) {
        v->repaired.left++;
    } else {
        *err = e;
    }
    return rc;
}

static int lose_rows(struct verify *v, const struct finding *f, struct pawl_err *err)
{
    int rc = 0;
    for (size_t at = 0, n; rc == 0 && at < f->n_rows; at += n) {
        int64_t rows = 0, jobs = 0;
        n = f->n_rows - at < BATCH ? f->n_rows - at : BATCH;
        rc = v->c->store->ops->artifacts_lost(v->c->store, f->rows + at, n, &rows, &jobs, err);
        v->repaired.rows += rows;
        v->repaired.jobs += jobs;
    }
    return rc;
}

/* Looked at once more: the rows may be gone, and a job may have brought the bytes back. Damaged
 * ones go before their rows, or else a job that fetches the same again would find them and take
 * them for good. */
static int repair_rows(struct verify *v, struct finding *f, struct pawl_err *err)
{
    struct artifact a = {.place = f->place, .size = f->size, .stored = f->bytes, .codec = f->codec};
    enum lake_verdict verdict = LAKE_GOOD;
    const char *why;
    memcpy(a.sha256, f->sha256, SHA256_LEN);
    int rc = f->n_rows ? lake_check(v->lake, &a, &verdict, &why, err) : 0;
    if (rc < 0 || verdict == LAKE_GOOD)
        return rc;
    if (verdict == LAKE_UNREADABLE) {
        stick(v, f, why);
        return 0;
    }
    /* Of many in one segment none can be taken away: it is dead when its row has gone. Where rows
     * disagree about the bytes it is this one that may be wrong. */
    bool gone = verdict == LAKE_MISSING || sv_starts(f->place, SV("pack/")) || f->disputed;
    if (!gone)
        rc = remove_object(v, f, &gone, err);
    return rc == 0 && gone ? lose_rows(v, f, err) : rc;
}

static bool is_segment(const struct finding *f)
{
    return f->kind == FOUND_ORPHAN && sv_starts(f->place, SV("pack/"));
}

static struct finding *find_segment(struct verify *v, const struct segment *g)
{
    for (size_t i = 0; i < v->n; i++)
        if (is_segment(&v->v[i]) &&
            sv_eq(sv_make(v->v[i].place.p + 5, v->v[i].place.n - 5), sv_of(g->name)))
            return &v->v[i];
    return NULL;
}

/* Was it found, by the one who was asked? */
static bool was_found(void *arg, const struct segment *g)
{
    return find_segment(arg, g) != NULL;
}

static int repair_segments(struct verify *v, struct pawl_err *err)
{
    struct segments_result done = {0};
    int rc = segments_reclaim(v->c, v->lake, &v->packed, 0, was_found, v, &done, err);
    v->repaired.removed += done.removed;
    v->repaired.cut += done.cut + done.moved;
    v->repaired.bytes += done.bytes;
    v->repaired.left += done.left;
    for (size_t i = 0; i < v->packed.n; i++) {
        struct finding *f = v->packed.v[i].why ? find_segment(v, &v->packed.v[i]) : NULL;
        if (f)
            stick(v, f, v->packed.v[i].why);
    }
    return rc;
}

static int repair_one(struct verify *v, struct finding *f, struct pawl_err *err)
{
    bool gone;
    if (f->kind == FOUND_UNREADABLE) {
        stick(v, f, f->why);
        return 0;
    }
    if (f->artifact)
        return repair_rows(v, f, err);
    return f->n_rows ? 0 : remove_object(v, f, &gone, err);
}

/* Whoever was asked may have taken an hour to answer: the rows are read again. */
int verify_repair(struct verify *v, struct pawl_err *err)
{
    size_t i = 0, packed = 0;
    int rc = verify_named(v, err);
    for (; rc == 0 && i < v->n && !cli_signal(); i++) {
        if (is_segment(&v->v[i]))
            packed++;
        else
            rc = repair_one(v, &v->v[i], err);
    }
    v->repaired.unreached = (int64_t)(v->n - i + (rc < 0 && i));
    if (rc == 0 && packed && !cli_signal())
        return repair_segments(v, err);
    v->repaired.unreached += (int64_t)packed;
    return rc;
}
