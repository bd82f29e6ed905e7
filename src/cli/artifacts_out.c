#include "artifacts_out.h"

#include "fields.h"
#include "text.h"
#include "words.h"

static int open_lake(const struct cli *c, enum lake_mode mode, const char *owner, struct lake **out,
                     struct pawl_err *err)
{
    const struct config *g = c->config;
    const struct lake_options o = {.path = g->lake_path,
                                   .owner = owner,
                                   .types = (const char *const *)g->compress_types.v,
                                   .n_types = g->compress_types.n,
                                   .level = (int)g->lake_compress_level,
                                   .mode = mode,
                                   .segment_bytes = g->lake_segment_size,
                                   .segment_age = g->lake_segment_age};
    int rc = lake_open(&o, out, err);
    if (rc == PAWL_ENOTFOUND) {
        err_set(err, PAWL_ENOTFOUND, "no lake at %s", g->lake_path);
        return err_hint(err, "lake.path or PAWL_LAKE_PATH names another folder");
    }
    return rc;
}

enum lake_mode cli_lake_mode(const struct cli *c)
{
    return c->config->lake_mode[0] == 'p' ? LAKE_PACK : LAKE_FILES;
}

int cli_lake(const struct cli *c, struct lake **out, struct pawl_err *err)
{
    return open_lake(c, cli_lake_mode(c), NULL, out, err);
}

int cli_own_lake(const struct cli *c, enum lake_mode mode, struct lake **out, struct pawl_err *err)
{
    char id[STORE_ID_LEN + 1];
    int rc = c->store->ops->identity(c->store, id, err);
    return rc < 0 ? rc : open_lake(c, mode, id, out, err);
}

/* ---- loading ---- */

static struct sv keep(struct arena *a, struct sv s)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

struct loading {
    struct arena *arena;
    struct artifact_view *v;
    size_t n, cap;
};

static bool load_one(void *arg, const struct artifact_view *v)
{
    struct loading *l = arg;
    ARRAY_GROW(l->v, l->n, l->cap);
    struct artifact_view *to = &l->v[l->n++];
    *to = *v;
    to->a.name = keep(l->arena, v->a.name);
    to->a.type = keep(l->arena, v->a.type);
    to->a.place = keep(l->arena, v->a.place);
    to->queue = keep(l->arena, v->queue);
    to->url = keep(l->arena, v->url);
    return true;
}

int artifacts_load(const struct cli *c, const struct artifact_filter *f, struct arena *a,
                   struct artifact_list *out, struct pawl_err *err)
{
    struct loading l = {.arena = a};
    int rc = c->store->ops->artifacts(c->store, f, load_one, &l, err);
    if (rc == 0) {
        struct artifact_view *v = arena_zalloc(a, l.n + 1, sizeof(*v));
        if (l.n)
            memcpy(v, l.v, l.n * sizeof(*v));
        *out = (struct artifact_list){v, l.n};
    }
    free(l.v);
    return rc;
}

int artifacts_each_page(const struct cli *c, int64_t *after,
                        int (*each)(void *arg, const struct artifact_list *l, struct pawl_err *err),
                        void *arg, struct pawl_err *err)
{
    size_t n = ARTIFACTS_PAGE;
    int rc = 0;
    while (rc == 0 && n == ARTIFACTS_PAGE && !cli_signal()) {
        AUTO(arena_done) struct arena a;
        const struct artifact_filter f = {.after = *after, .limit = ARTIFACTS_PAGE};
        struct artifact_list l = {0};
        arena_init(&a);
        rc = artifacts_load(c, &f, &a, &l, err);
        if (rc == 0 && l.n) {
            *after = l.v[l.n - 1].id;
            rc = each(arg, &l, err);
        }
        n = l.n;
    }
    return rc;
}

struct newest {
    struct arena *arena;
    struct fetch_view view;
    bool found;
};

static bool take_newest(void *arg, const struct fetch_view *v)
{
    struct newest *n = arg;
    n->found = true;
    n->view = *v;
    struct fetch_record *f = &n->view.f;
    struct sv *const texts[] = {&f->url,           &f->final_url, &f->variant,      &f->method,
                                &f->content_type,  &f->encoding,  &f->etag,         &f->headers,
                                &f->last_modified, &f->address,   &f->http_version, &f->redirects};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = keep(n->arena, *texts[i]);
    return false;
}

int fetch_load(const struct cli *c, job_id job, struct arena *a, struct fetch_view *out,
               bool *found, struct pawl_err *err)
{
    struct newest n = {.arena = a};
    int rc = c->store->ops->fetches(c->store, job, take_newest, &n, err);
    if (rc == 0) {
        *out = n.view;
        *found = n.found;
    }
    return rc;
}

/* ---- for people ---- */

struct sv sha256_text(const unsigned char hash[SHA256_LEN], char out[SHA256_LEN * 2 + 1])
{
    hex_encode(hash, SHA256_LEN, out);
    return sv_of(out);
}

static void put_artifact(struct str *s, const struct artifact_view *v)
{
    char hex[SHA256_LEN * 2 + 1];
    str_adds(s, "  ");
    text_safe(s, v->a.name, 0);
    str_adds(s, "  ");
    words_bytes(s, v->a.size);
    if (v->a.codec != CODEC_NONE) {
        str_adds(s, " (");
        words_bytes(s, v->a.stored);
        str_addf(s, " as %s)", codec_name(v->a.codec));
    }
    str_adds(s, "  ");
    text_safe(s, v->a.type.p ? v->a.type : SV("-"), 80);
    str_addf(s, "  sha256 %s  ", sha256_text(v->a.sha256, hex).p);
    wall_format(v->created_at, s);
    str_addc(s, '\n');
}

void artifacts_put(struct str *s, const struct artifact_list *l)
{
    if (l->n)
        str_adds(s, "artifacts\n");
    for (size_t i = 0; i < l->n; i++)
        put_artifact(s, &l->v[i]);
}

static void put_times(struct str *s, const struct fetch_record *f)
{
    const struct {
        const char *name;
        struct dur d;
    } parts[] = {{"name", f->dns},
                 {"connection", f->connect},
                 {"TLS", f->tls},
                 {"first byte", f->first_byte},
                 {"all", f->total}};
    const char *sep = "";
    str_addf(s, "%-13s", "took");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!parts[i].d.us)
            continue;
        str_addf(s, "%s%s ", sep, parts[i].name);
        dur_human(parts[i].d, s);
        sep = ", ";
    }
    str_addc(s, '\n');
}

static void put_answer(struct str *s, const struct fetch_record *f)
{
    str_addf(s, "%-13s", "answer");
    if (!f->status) {
        str_adds(s, "none\n");
        return;
    }
    str_addf(s, "%d, ", f->status);
    words_bytes(s, f->wire_bytes);
    if (f->body_bytes != f->wire_bytes) {
        str_adds(s, " (");
        words_bytes(s, f->body_bytes);
        str_adds(s, " decoded)");
    }
    if (f->http_version.p) {
        str_adds(s, ", HTTP/");
        text_safe(s, f->http_version, 16);
    }
    if (f->address.p) {
        str_adds(s, " from ");
        text_safe(s, f->address, 64);
    }
    str_addc(s, '\n');
}

void fetch_put(struct str *s, const struct fetch_view *v)
{
    const struct fetch_record *f = &v->f;
    field_text(s, "url", f->url);
    field_text(s, "final url", f->final_url);
    put_answer(s, f);
    field_text(s, "type", f->content_type);
    field_text(s, "etag", f->etag);
    field_text(s, "modified", f->last_modified);
    put_times(s, f);
    field_time(s, "fetched", v->at);
}

/* ---- for scripts ---- */

static void write_hash(struct jw *w, const char *name, const unsigned char *hash, bool known)
{
    char hex[SHA256_LEN * 2 + 1];
    jw_kstring_or_null(w, name, known ? sha256_text(hash, hex) : SV_NONE);
}

void artifacts_write(struct jw *w, const struct artifact_list *l)
{
    jw_name(w, "artifacts");
    jw_array(w);
    for (size_t i = 0; i < l->n; i++) {
        const struct artifact_view *v = &l->v[i];
        jw_object(w);
        jw_kint(w, "id", v->id);
        jw_kint(w, "fence", v->fence.v);
        jw_kstring(w, "name", v->a.name);
        jw_kstring_or_null(w, "type", v->a.type);
        write_hash(w, "sha256", v->a.sha256, true);
        jw_kint(w, "size", v->a.size);
        jw_kint(w, "stored", v->a.stored);
        jw_kstring(w, "codec", sv_of(codec_name(v->a.codec)));
        jw_kstring(w, "place", v->a.place);
        jw_kwall(w, "created_at", v->created_at);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void write_reached(struct jw *w, const char *name, struct dur d)
{
    jw_kms(w, name, d.us ? d : DUR_NONE);
}

static void write_exchange(struct jw *w, const struct fetch_record *f)
{
    jw_kstring(w, "url", f->url);
    jw_kstring_or_null(w, "final_url", f->final_url);
    jw_kstring(w, "variant", f->variant);
    jw_kstring(w, "method", f->method);
    jw_kint_or_null(w, "status", f->status, f->status != 0);
    jw_kstring_or_null(w, "content_type", f->content_type);
    jw_kstring_or_null(w, "encoding", f->encoding);
    jw_kstring_or_null(w, "etag", f->etag);
    jw_kstring_or_null(w, "last_modified", f->last_modified);
    jw_kraw_or_null(w, "headers", f->headers);
    jw_kint(w, "wire_bytes", f->wire_bytes);
    jw_kint(w, "body_bytes", f->body_bytes);
    write_hash(w, "wire_sha256", f->wire_sha256, f->hashed);
    write_hash(w, "body_sha256", f->body_sha256, f->hashed);
}

void fetch_write(struct jw *w, const struct fetch_view *v)
{
    jw_name(w, "fetch");
    if (!v) {
        jw_null(w);
        return;
    }
    const struct fetch_record *f = &v->f;
    jw_object(w);
    write_exchange(w, f);
    write_reached(w, "dns_ms", f->dns);
    write_reached(w, "connect_ms", f->connect);
    write_reached(w, "tls_ms", f->tls);
    write_reached(w, "first_byte_ms", f->first_byte);
    write_reached(w, "total_ms", f->total);
    jw_kstring_or_null(w, "address", f->address);
    jw_kstring_or_null(w, "http_version", f->http_version);
    jw_kraw_or_null(w, "redirects", f->redirects);
    jw_kint_or_null(w, "artifact", v->artifact, v->artifact != 0);
    jw_kint(w, "fence", v->fence.v);
    jw_kwall(w, "at", v->at);
    jw_end_object(w);
}
