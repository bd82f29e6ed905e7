/* The record of the exchange, and the job's result. Everything an answer said is copied: it is gone
 * when the record is written. */
#include "fetch_parts.h"

#include "json.h"
#include "text.h"
#include <inttypes.h>

enum { HEADER_MAX = 4 << 10, TAG_MAX = 1024, TYPE_MAX = 255 };

bool record_clean(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return text_bad_utf8(s) == s.n;
}

static struct sv copy(struct fetch *f, struct sv s, size_t max)
{
    if (!s.p || s.n > max || !record_clean(s))
        return SV_NONE;
    return sv_make(arena_strndup(&f->arena, s.p, s.n), s.n);
}

static struct sv headers_of(struct fetch *f, const struct http_result *res)
{
    static const char *const names[] = {
        "server", "date",        "cache-control", "content-language", "content-disposition",
        "link",   "x-robots-tag"};
    AUTO_STR struct str s = STR_INIT(FETCH_TEXT_MAX);
    struct jw w = jw_make(&s);
    size_t room = FETCH_TEXT_MAX - 64;
    bool any = false;
    jw_object(&w);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct sv value = http_result_header(res, names[i]);
        size_t most = 6 * value.n + 64; /* escaped */
        if (!value.p || value.n > HEADER_MAX || s.len + most > room)
            continue;
        jw_kstring(&w, names[i], value);
        any = true;
    }
    jw_end_object(&w);
    return any && !s.overflow ? sv_make(arena_strndup(&f->arena, s.p, s.len), s.len) : SV_NONE;
}

static void record_answer(struct fetch *f, const struct http_result *res)
{
    struct fetch_record *r = &f->record;
    AUTO_STR struct str coding = STR_INIT(STR_LINE);
    http_call_list(res->call, "content-encoding", &coding);
    r->content_type = copy(f, res->content_type, TYPE_MAX);
    r->encoding = copy(f, coding.len ? str_sv(&coding) : SV_NONE, TYPE_MAX);
    r->etag = copy(f, res->etag, TAG_MAX);
    r->last_modified = copy(f, res->last_modified, TYPE_MAX);
    r->http_version = res->version && *res->version ? sv_of(res->version) : SV_NONE;
    r->headers = headers_of(f, res);
}

static void record_body(struct fetch *f, const struct http_result *res)
{
    struct fetch_record *r = &f->record;
    struct decode *d = f->body.decode;
    r->wire_bytes = d ? decode_wire_bytes(d) : 0;
    r->body_bytes = d ? decode_body_bytes(d) : 0;
    f->whole = d && f->body.keep && res->error == HTTP_OK && decode_whole(d);
    f->coded = f->whole && decode_hash(d, keeps_wire(f) ? r->body_sha256 : r->wire_sha256);
}

void record_hash(struct fetch *f, const unsigned char sha256[SHA256_LEN])
{
    struct fetch_record *r = &f->record;
    if (keeps_wire(f) || !f->coded)
        memcpy(r->wire_sha256, sha256, SHA256_LEN);
    if (!keeps_wire(f) || !f->coded)
        memcpy(r->body_sha256, sha256, SHA256_LEN);
    r->hashed = true;
}

void record_hop(struct fetch *f, const struct http_result *res)
{
    struct fetch_record *r = &f->record;
    r->url = f->p.url;
    r->final_url = f->hop->before ? sv_of(f->hop->url) : SV_NONE;
    r->variant = f->p.variant;
    r->method = sv_of(f->hop->method);
    r->status = res->status;
    r->dns = res->resolved;
    r->connect = res->connected;
    r->tls = res->secured;
    r->first_byte = res->first_byte;
    r->total.us += res->total.us;
    r->address = res->address[0] ? copy(f, sv_of(res->address), sizeof(res->address)) : SV_NONE;
    r->content_type = r->encoding = r->etag = r->last_modified = SV_NONE;
    r->headers = r->http_version = SV_NONE;
    if (res->status)
        record_answer(f, res);
    if (res->error == HTTP_OK && status_accepted(&f->p, res->status))
        body_opened(f); /* one without bytes is a body too */
    record_body(f, res);
}

void record_redirect(struct fetch *f, int status, struct sv url)
{
    AUTO_STR struct str s = STR_INIT(FETCH_TEXT_MAX);
    struct jw w = jw_make(&s);
    if (!f->chain.max)
        f->chain = STR_INIT(FETCH_TEXT_MAX);
    jw_object(&w);
    jw_kint(&w, "status", status);
    jw_kstring(&w, "url", url);
    jw_end_object(&w);
    if (s.overflow || f->chain.len + s.len + 2 > FETCH_TEXT_MAX)
        return; /* the last ones of a long chain; the final URL has its own column */
    str_addc(&f->chain, f->chain.len ? ',' : '[');
    str_add(&f->chain, str_sv(&s));
}

void record_close(struct fetch *f)
{
    if (!f->chain.len)
        return;
    str_addc(&f->chain, ']');
    f->record.redirects = str_sv(&f->chain);
}

void record_result(const struct fetch *f, const struct artifact *kept, struct str *out)
{
    char sum[2 * SHA256_LEN + 1];
    struct jw w = jw_make(out);
    jw_object(&w);
    jw_kint(&w, "status", f->record.status);
    jw_kint(&w, "bytes", kept ? kept->size : 0);
    if (kept) {
        hex_encode(kept->sha256, SHA256_LEN, sum);
        jw_kstring(&w, "sha256", sv_of(sum));
    }
    jw_kstring(&w, "url", sv_of(f->hop->url));
    jw_kstring_or_null(&w, "type", f->record.content_type);
    jw_end_object(&w);
}
