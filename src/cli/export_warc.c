#include "export_warc.h"

#include "artifacts_out.h"
#include "json.h"
#include "mem.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* ---- WARC ---- */

struct written {
    char segment[SEGMENT_NAME];
    int64_t offset; /* segment "": a gap */
};

void export_warc_done(struct export_warc *x)
{
    free(x->v);
}

static size_t slot_of(const struct written *v, size_t cap, const char *segment, int64_t offset)
{
    uint64_t h = (uint64_t)offset * 0x9e3779b97f4a7c15u;
    for (const char *p = segment; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    size_t i = (size_t)(h >> 20) % cap;
    while (v[i].segment[0] && (v[i].offset != offset || strcmp(v[i].segment, segment) != 0))
        i = (i + 1) % cap;
    return i;
}

static void grow(struct export_warc *x)
{
    size_t cap = x->cap ? x->cap * 2 : 1024;
    struct written *v = mem_zalloc(cap, sizeof(*v));
    for (size_t i = 0; i < x->cap; i++)
        if (x->v[i].segment[0])
            v[slot_of(v, cap, x->v[i].segment, x->v[i].offset)] = x->v[i];
    free(x->v);
    x->v = v;
    x->cap = cap;
}

static struct written *find(struct export_warc *x, const struct lake_span *s)
{
    if (x->n * 2 >= x->cap)
        grow(x);
    return &x->v[slot_of(x->v, x->cap, s->segment, s->offset)];
}

static bool is_written(struct export_warc *x, const struct lake_span *s)
{
    return find(x, s)->segment[0];
}

static void note_written(struct export_warc *x, const struct lake_span *s)
{
    struct written *w = find(x, s);
    memcpy(w->segment, s->segment, SEGMENT_NAME);
    w->offset = s->offset;
    x->n++;
}

static bool put(void *arg, struct sv bytes)
{
    struct export_warc *x = arg;
    out_put(x->out, bytes);
    return !x->out->failed;
}

static int put_resource(struct export_warc *x, struct lake *l, const struct artifact_view *v,
                        struct pawl_err *err)
{
    char uri[64 + ARTIFACT_NAME_MAX];
    snprintf(uri, sizeof(uri), "pawl:job/%lld/" SV_FMT, (long long)v->job.v, SV_ARG(v->a.name));
    const struct exchange from = {.uri = v->url.p ? v->url : sv_of(uri), .at = v->created_at};
    return lake_warc_record(l, &v->a, &from, put, x, err);
}

static int put_object(struct export_warc *x, struct lake *l, const struct artifact_view *v,
                      bool *out_read, struct pawl_err *err)
{
    enum lake_verdict verdict = LAKE_DAMAGED;
    const char *why;
    int rc = lake_check(l, &v->a, &verdict, &why, err);
    if (rc < 0)
        return rc;
    *out_read = verdict == LAKE_GOOD;
    return *out_read ? put_resource(x, l, v, err) : 0;
}

/* Those that others brought are not read again: many may refer to one. */
static int put_spans(struct export_warc *x, struct lake *l, const struct lake_span *s, int n,
                     bool *out_read, struct pawl_err *err)
{
    struct pawl_err e = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++)
        if (!is_written(x, &s[i]))
            rc = lake_span_sound(l, &s[i], &e);
    if (rc < 0 && !lake_only_one(rc)) {
        *err = e;
        return rc;
    }
    *out_read = rc == 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        if (is_written(x, &s[i]))
            continue;
        rc = lake_span_read(l, &s[i], true, put, x, err);
        note_written(x, &s[i]);
    }
    return *out_read ? rc : 0;
}

int export_warc(struct export_warc *x, struct lake *l, const struct artifact_view *v,
                bool *out_read, struct pawl_err *err)
{
    struct lake_span s[2];
    int n = lake_spans(v->a.place, s);
    int rc = x->begun ? 0 : lake_warc_info(put, x, err);
    x->begun = true;
    if (rc < 0)
        return rc;
    return n ? put_spans(x, l, s, n, out_read, err) : put_object(x, l, v, out_read, err);
}

/* ---- CDXJ ---- */

/* "http://www.Example.org:8080/A?b" is "org,example:8080)/a?b": sites stand together. */
static void put_key(struct str *out, struct sv url)
{
    const char *host = memmem(url.p, url.n, "://", 3);
    if (!host || !sv_starts(url, SV("http"))) {
        str_add(out, url);
        return;
    }
    host += 3;
    struct sv rest = sv_make(host, url.n - (size_t)(host - url.p));
    size_t n = 0;
    while (n < rest.n && !strchr("/?#", rest.p[n]))
        n++;
    struct sv port, name = sv_cut(sv_make(rest.p, n), ':', &port);
    if (name.n > 4 && !strncasecmp(name.p, "www.", 4))
        name = sv_make(name.p + 4, name.n - 4);
    bool address = true; /* of IPv4 or IPv6: that has no order of names */
    for (size_t i = 0; i < name.n; i++)
        address = address && strchr("0123456789.[]", name.p[i]);
    if (address)
        str_add(out, name);
    for (size_t end = name.n, i = address ? 0 : name.n; i-- > 0;)
        if (i == 0 || name.p[i - 1] == '.') {
            str_add(out, sv_make(name.p + i, end - i));
            str_adds(out, i ? "," : "");
            end = i ? i - 1 : 0;
        }
    if (port.n)
        str_addf(out, ":" SV_FMT, SV_ARG(port));
    str_adds(out, n < rest.n && rest.p[n] == '/' ? ")" : ")/");
    str_add(out, sv_make(rest.p + n, rest.n - n));
}

static void put_time(struct str *out, struct wall at)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    wall_format(at, &s);
    for (size_t i = 0, n = 0; n < 14 && i < s.len; i++)
        if (s.p[i] >= '0' && s.p[i] <= '9') {
            str_addc(out, s.p[i]);
            n++;
        }
}

static void put_where(struct jw *w, const struct artifact_view *v, const struct lake_span *s,
                      bool refers)
{
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    char hex[2 * SHA256_LEN + 1];
    struct sv rest, type = refers ? SV("warc/revisit") : sv_trim(sv_cut(v->a.type, ';', &rest));
    jw_kstring(w, "mime", type.n ? type : SV("unk"));
    str_addf(&text, "%d", v->status);
    if (v->status)
        jw_kstring(w, "status", str_sv(&text));
    str_clear(&text);
    str_addf(&text, "sha256:%s", sha256_text(v->a.sha256, hex).p);
    jw_kstring(w, "digest", str_sv(&text));
    str_clear(&text);
    str_addi(&text, s->length);
    jw_kstring(w, "length", str_sv(&text));
    str_clear(&text);
    str_addi(&text, s->offset);
    jw_kstring(w, "offset", str_sv(&text));
    str_clear(&text);
    lake_segment_file(s->segment, &text);
    jw_kstring(w, "filename", str_sv(&text));
}

static void put_line(const struct artifact_view *v, struct sv uri, const struct lake_span *s,
                     bool refers, struct str *out)
{
    AUTO_STR struct str key = STR_INIT(STR_LINE);
    put_key(&key, uri);
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.p[i];
        if (c <= 0x20 || c >= 0x7f)
            str_addf(out, "%%%02x", c);
        else
            str_addc(out, (char)tolower(c));
    }
    str_addc(out, ' ');
    put_time(out, v->created_at);
    str_addc(out, ' ');
    struct jw w = jw_make(out);
    jw_object(&w);
    jw_kstring(&w, "url", uri);
    put_where(&w, v, s, refers);
    jw_end_object(&w);
    str_addc(out, '\n');
}

/* The record's own words, not the row's: a redirect led elsewhere than the job was to go, and what
 * no URI may have is escaped there. */
int export_cdxj(struct lake *l, const struct artifact_view *v, struct str *out, bool *out_read,
                struct pawl_err *err)
{
    struct lake_span s[2];
    struct pawl_err e = {0};
    AUTO_STR struct str uri = STR_INIT(STR_LINE);
    int n = lake_spans(v->a.place, s);
    int rc = n ? lake_span_uri(l, &s[n - 1], &uri, &e) : 0;
    if (rc < 0 && !lake_only_one(rc)) {
        *err = e;
        return rc;
    }
    *out_read = rc == 0;
    if (n && rc == 0)
        put_line(v, str_sv(&uri), &s[n - 1], n > 1, out);
    return 0;
}
