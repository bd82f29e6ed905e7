#include "keeping.h"

struct artifact bytes(const char *name, unsigned char fill)
{
    struct artifact a = {.name = sv_of(name),
                         .type = SV("text/html"),
                         .size = 100 + fill,
                         .stored = 50,
                         .codec = CODEC_ZSTD,
                         .place = SV("files/ab/cdef")};
    memset(a.sha256, fill, sizeof(a.sha256));
    return a;
}

struct fetch_record record(int status, bool kept)
{
    struct fetch_record r = {.url = SV("https://example.org/a?b=ä"),
                             .final_url = SV("https://example.org/b"),
                             .variant = SV("raw"),
                             .method = SV("GET"),
                             .status = status,
                             .content_type = SV("text/html; charset=utf-8"),
                             .encoding = SV("gzip"),
                             .etag = SV("\"x\""),
                             .last_modified = SV("Mon, 01 Jan 2024 00:00:00 GMT"),
                             .headers = SV("{\"server\":\"nginx\"}"),
                             .wire_bytes = 1000,
                             .body_bytes = 3000,
                             .hashed = kept,
                             .dns = DUR_US(1),
                             .connect = DUR_US(2),
                             .tls = DUR_US(3),
                             .first_byte = DUR_US(4),
                             .total = DUR_US(5),
                             .address = SV("2001:db8::1"),
                             .http_version = SV("2"),
                             .redirects =
                                 SV("[{\"status\":301,\"url\":\"https://example.org/a\"}]"),
                             .kept = kept};
    memset(r.wire_sha256, 7, sizeof(r.wire_sha256));
    memset(r.body_sha256, 8, sizeof(r.body_sha256));
    return r;
}

enum settle_outcome leave(struct fixture *f, const struct lease *l, enum outcome o,
                          const struct artifact *a, size_t n, const struct fetch_record *r)
{
    struct settle v = settle_of(l, o);
    v.artifacts = a;
    v.n_artifacts = n;
    v.fetch = r;
    return settle(f, &v);
}

job_id fetched(struct fixture *f, const struct session *w, const char *queue, unsigned char fill)
{
    struct job_spec s = spec(queue, "k", 1000);
    job_id id = add(f, &s);
    struct lease l = claim_one(f, w);
    assert_int_equal(l.id.v, id.v);
    struct artifact a = bytes("raw", fill);
    struct fetch_record r = record(200, true);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    return id;
}

static struct sv kept_text(struct found *x, struct sv s)
{
    return s.p ? sv_make(arena_strndup(x->a, s.p, s.n), s.n) : SV_NONE;
}

bool see_artifact(void *arg, const struct artifact_view *v)
{
    struct found *x = arg;
    assert_true(x->n < ARRAY_LEN(x->v));
    struct artifact_view *to = &x->v[x->n++];
    *to = *v;
    to->a.name = kept_text(x, v->a.name);
    to->a.type = kept_text(x, v->a.type);
    to->a.place = kept_text(x, v->a.place);
    to->queue = kept_text(x, v->queue);
    to->url = kept_text(x, v->url);
    return x->n != x->stop;
}

struct found artifacts(struct fixture *f, struct artifact_filter filter)
{
    struct found x = {.a = &f->a};
    OK(f->s->ops->artifacts(f->s, &filter, see_artifact, &x, &f->e));
    return x;
}

bool see_fetch(void *arg, const struct fetch_view *v)
{
    struct found *x = arg;
    assert_true(x->n < ARRAY_LEN(x->f));
    struct fetch_view *to = &x->f[x->n++];
    struct sv *const texts[] = {&to->f.url,          &to->f.final_url, &to->f.variant,
                                &to->f.method,       &to->f.encoding,  &to->f.content_type,
                                &to->f.etag,         &to->f.headers,   &to->f.last_modified,
                                &to->f.http_version, &to->f.address,   &to->f.redirects};
    *to = *v;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = kept_text(x, *texts[i]);
    return x->n != x->stop;
}

struct found fetches(struct fixture *f, job_id id)
{
    struct found x = {.a = &f->a};
    OK(f->s->ops->fetches(f->s, id, see_fetch, &x, &f->e));
    return x;
}

struct fetch_totals totals(struct fixture *f, struct wall since, const char *queue)
{
    struct fetch_totals t;
    OK(f->s->ops->fetch_totals(f->s, since, sv_of(queue), &t, &f->e));
    return t;
}

void remember(struct fixture *f, const char *key, struct sv value, struct dur ttl)
{
    OK(f->s->ops->remember(f->s, sv_of(key), value, ttl, &f->e));
}

struct sv recall(struct fixture *f, const char *key)
{
    struct sv out = SV("untouched");
    OK(f->s->ops->recall(f->s, sv_of(key), &f->a, &out, &f->e));
    return out;
}
