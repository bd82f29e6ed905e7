/* What settles left behind: artifacts, whose bytes are complete in the lake (I10), and records of
 * fetches. One call of pawl.keep for a batch, in the transaction of the settle (I9), and only for
 * those whose gate was passed (I2). A batch without any costs nothing. */
#include "pg.h"

/* Columns of what is kept, filled row by row. */
struct kept {
    int64_t *jobs, *fences, *sizes, *stored;
    int *codecs;
    struct sv *names, *types, *hashes, *places;
    size_t n;
};

enum { N_TIMES = 5, N_TEXTS = 12 };
struct fetched {
    int64_t *jobs, *fences, *wire, *body, *times[N_TIMES];
    int *statuses;
    struct sv *kept, *wire_hashes, *body_hashes, *texts[N_TEXTS];
    size_t n;
};

static struct sv hash_sv(const unsigned char *hash)
{
    return sv_make((const char *)hash, SHA256_LEN);
}

static int64_t *numbers(struct args *a, size_t n)
{
    return arena_alloc(&a->arena, n * sizeof(int64_t));
}

static struct sv *strings(struct args *a, size_t n)
{
    return arena_alloc(&a->arena, n * sizeof(struct sv));
}

static struct kept kept_make(struct args *a, size_t n)
{
    return (struct kept){.jobs = numbers(a, n),
                         .fences = numbers(a, n),
                         .sizes = numbers(a, n),
                         .stored = numbers(a, n),
                         .codecs = arena_alloc(&a->arena, n * sizeof(int)),
                         .names = strings(a, n),
                         .types = strings(a, n),
                         .hashes = strings(a, n),
                         .places = strings(a, n)};
}

static struct fetched fetched_make(struct args *a, size_t n)
{
    struct fetched f = {.jobs = numbers(a, n),
                        .fences = numbers(a, n),
                        .wire = numbers(a, n),
                        .body = numbers(a, n),
                        .statuses = arena_alloc(&a->arena, n * sizeof(int)),
                        .kept = strings(a, n),
                        .wire_hashes = strings(a, n),
                        .body_hashes = strings(a, n)};
    for (size_t i = 0; i < N_TIMES; i++)
        f.times[i] = numbers(a, n);
    for (size_t i = 0; i < N_TEXTS; i++)
        f.texts[i] = strings(a, n);
    return f;
}

static void add_artifact(struct kept *k, const struct settle *v, const struct artifact *x)
{
    size_t i = k->n++;
    k->jobs[i] = v->id.v;
    k->fences[i] = v->fence.v;
    k->names[i] = x->name;
    k->types[i] = x->type;
    k->hashes[i] = hash_sv(x->sha256);
    k->sizes[i] = x->size;
    k->stored[i] = x->stored;
    k->codecs[i] = (int)x->codec;
    k->places[i] = x->place;
}

static void add_fetch(struct fetched *c, const struct settle *v, const struct fetch_record *f)
{
    size_t i = c->n++;
    const struct dur times[N_TIMES] = {f->dns, f->connect, f->tls, f->first_byte, f->total};
    const struct sv texts[N_TEXTS] = {
        f->method,        f->variant, f->address, f->http_version, f->content_type, f->encoding,
        f->last_modified, f->etag,    f->url,     f->final_url,    f->headers,      f->redirects};
    c->jobs[i] = v->id.v;
    c->fences[i] = v->fence.v;
    c->kept[i] = f->kept ? v->artifacts[0].name : SV_NONE;
    c->statuses[i] = f->status;
    c->wire[i] = f->wire_bytes;
    c->body[i] = f->body_bytes;
    for (size_t t = 0; t < N_TIMES; t++)
        c->times[t][i] = times[t].us;
    c->wire_hashes[i] = f->hashed ? hash_sv(f->wire_sha256) : SV_NONE;
    c->body_hashes[i] = f->hashed ? hash_sv(f->body_sha256) : SV_NONE;
    for (size_t t = 0; t < N_TEXTS; t++)
        c->texts[t][i] = texts[t];
}

static void bind_kept(struct args *a, const struct kept *k)
{
    if (k->n)
        arg_i64s(a, k->jobs, k->n, NULL);
    else
        arg_null_array(a, OID_INT8_ARRAY);
    arg_i64s(a, k->fences, k->n, NULL);
    arg_texts(a, k->names, k->n);
    arg_texts(a, k->types, k->n);
    arg_blobs(a, k->hashes, k->n);
    arg_i64s(a, k->sizes, k->n, NULL);
    arg_i64s(a, k->stored, k->n, NULL);
    arg_ints(a, k->codecs, k->n, NULL);
    arg_texts(a, k->places, k->n);
}

static void bind_fetched(struct args *a, const struct fetched *c)
{
    if (c->n)
        arg_i64s(a, c->jobs, c->n, NULL);
    else
        arg_null_array(a, OID_INT8_ARRAY);
    arg_i64s(a, c->fences, c->n, NULL);
    arg_texts(a, c->kept, c->n);
    arg_ints(a, c->statuses, c->n, NULL);
    arg_i64s(a, c->wire, c->n, NULL);
    arg_i64s(a, c->body, c->n, NULL);
    for (size_t t = 0; t < N_TIMES; t++)
        arg_i64s(a, c->times[t], c->n, NULL);
    arg_blobs(a, c->wire_hashes, c->n);
    arg_blobs(a, c->body_hashes, c->n);
    for (size_t t = 0; t < N_TEXTS; t++)
        arg_texts(a, c->texts[t], c->n);
}

int pg_keep(struct pg *p, const struct settle *v, size_t n, const enum settle_outcome *out,
            struct pawl_err *err)
{
    size_t n_kept = 0, n_fetched = 0;
    for (size_t i = 0; i < n; i++) {
        n_kept += out[i] == SETTLE_OK ? v[i].n_artifacts : 0;
        n_fetched += out[i] == SETTLE_OK && v[i].fetch;
    }
    if (!n_kept && !n_fetched)
        return 0;
    AUTO_ARGS a;
    args_init(&a);
    struct kept k = kept_make(&a, n_kept);
    struct fetched c = fetched_make(&a, n_fetched);
    for (size_t i = 0; i < n; i++) {
        for (size_t x = 0; out[i] == SETTLE_OK && x < v[i].n_artifacts; x++)
            add_artifact(&k, &v[i], &v[i].artifacts[x]);
        if (out[i] == SETTLE_OK && v[i].fetch)
            add_fetch(&c, &v[i], v[i].fetch);
    }
    bind_kept(&a, &k);
    bind_fetched(&a, &c);
    p->effort.rows += (int64_t)(n_kept + n_fetched);
    return db_query(p, STMT_KEEP, &a, NULL, err);
}
