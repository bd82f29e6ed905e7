/* Reading the payload of kind fetch. What is refused here is refused when a job is added. */
#include "fetch.h"

#include "artifact.h"
#include "json.h"
#include "text.h"
#include <strings.h>

enum {
    HEADERS_MAX = 64,
    HEADER_MAX_BYTES = 8192, /* name and value, each */
    BODY_MAX_BYTES = 1 << 20,
    STATUSES_MAX = 100,
    TEXTS_MAX = 32,
    TEXT_MAX_BYTES = 1024,
};
#define MAX_BODY_LIMIT ((int64_t)64 << 30)

struct reading {
    struct json *doc;
    struct arena *arena;
    struct fetch_payload *out;
    struct pawl_err *err;
};

static int refuse(struct reading *r, const char *what, struct sv name, const char *why)
{
    AUTO_STR struct str shown = STR_INIT(STR_LINE);
    text_safe(&shown, name, 64);
    return err_set(r->err, PAWL_EINPUT, "payload: %s \"%s\" %s", what, str_cstr(&shown), why);
}

static int want(struct reading *r, uint32_t at, const char *member, enum json_type type)
{
    if (json_type(r->doc, at) == type)
        return 0;
    return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" is %s; %s is expected", member,
                   json_type_name(json_type(r->doc, at)), json_type_name(type));
}

static int text_of(struct reading *r, uint32_t at, const char *member, size_t max, struct sv *out)
{
    int rc = want(r, at, member, JSON_STRING);
    if (rc < 0)
        return rc;
    struct sv s = json_string(r->doc, at, r->arena);
    if (s.n > max)
        return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" is longer than %zu bytes", member,
                       max);
    *out = s;
    return 0;
}

static int read_url(struct reading *r, uint32_t at)
{
    struct sv url = SV_NONE;
    int rc = text_of(r, at, "url", URL_MAX_BYTES, &url);
    if (rc < 0)
        return rc;
    if (!url.n || memchr(url.p, 0, url.n))
        return err_set(r->err, PAWL_EINPUT, "payload: \"url\" is not a URL");
    r->out->url = sv_make(arena_strndup(r->arena, url.p, url.n), url.n);
    return 0;
}

static int read_variant(struct reading *r, uint32_t at)
{
    struct sv name;
    int rc = text_of(r, at, "variant", ARTIFACT_NAME_MAX, &name);
    if (rc == 0 && artifact_name_check(name, r->err) < 0)
        rc = err_wrap(r->err, "payload: \"variant\"");
    if (rc == 0)
        r->out->variant = name;
    return rc;
}

static int read_method(struct reading *r, uint32_t at)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    struct sv name;
    int rc = text_of(r, at, "method", 64, &name);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (sv_eq(name, sv_of(known[i]))) {
            r->out->method = sv_of(known[i]);
            return 0;
        }
    refuse(r, "method", name, "is not one that fetches use");
    return err_hint(r->err, "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
}

static int read_body(struct reading *r, uint32_t at)
{
    return text_of(r, at, "body", BODY_MAX_BYTES, &r->out->body);
}

/* ---- headers (S37) ---- */

static bool token(struct sv s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], lower = (char)(c | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') &&
            (!c || !strchr(others, c)))
            return false;
    }
    return s.n > 0;
}

static bool one_line(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

/* Those that say where a message ends, that go to others than the server, or that politeness
 * needs. */
static const char *reserved(struct sv name)
{
    static const char *const framing[] = {"connection", "content-length",  "expect",
                                          "host",       "keep-alive",      "proxy-authorization",
                                          "te",         "trailer",         "transfer-encoding",
                                          "upgrade",    "proxy-connection"};
    if (name.n == 10 && !strncasecmp(name.p, "user-agent", 10))
        return "is set by fetch.user_agent and fetch.contact";
    for (size_t i = 0; i < ARRAY_LEN(framing); i++)
        if (name.n == strlen(framing[i]) && !strncasecmp(name.p, framing[i], name.n))
            return "is pawl's own business";
    return NULL;
}

static int read_header(struct reading *r, uint32_t at, struct fetch_header *out)
{
    struct sv name = json_string(r->doc, at, r->arena), value;
    int rc = text_of(r, at + 1, "headers", HEADER_MAX_BYTES, &value);
    if (rc < 0)
        return rc;
    if (!token(name) || name.n > HEADER_MAX_BYTES)
        return refuse(r, "header", name, "has characters that no header's name can have");
    if (!one_line(value))
        return refuse(r, "header", name, "has characters that no header can have");
    const char *why = reserved(name);
    if (why)
        return refuse(r, "header", name, why);
    *out = (struct fetch_header){name, value};
    return 0;
}

static int count_of(struct reading *r, uint32_t at, const char *member, size_t max, size_t *out)
{
    *out = r->doc->nodes[at].count;
    if (*out <= max)
        return 0;
    return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" has more than %zu entries", member, max);
}

static int read_headers(struct reading *r, uint32_t at)
{
    size_t n = 0, i = 0;
    int rc = want(r, at, "headers", JSON_OBJECT);
    if (rc == 0)
        rc = count_of(r, at, "headers", HEADERS_MAX, &n);
    if (rc < 0)
        return rc;
    struct fetch_header *v = arena_zalloc(r->arena, n + 1, sizeof(*v));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at);
         k = json_after(r->doc, k + 1))
        if ((rc = read_header(r, k, &v[i++])) < 0)
            return rc;
    r->out->headers = v;
    r->out->n_headers = n;
    return 0;
}

/* ---- lists ---- */

static int read_accept(struct reading *r, uint32_t at)
{
    size_t n = 0, i = 0;
    int rc = want(r, at, "accept", JSON_ARRAY);
    if (rc == 0)
        rc = count_of(r, at, "accept", STATUSES_MAX, &n);
    if (rc < 0)
        return rc;
    int *v = arena_zalloc(r->arena, n + 1, sizeof(*v));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at);
         k = json_after(r->doc, k)) {
        int64_t status;
        if (json_i64(r->doc, k, 100, 599, &status) < 0)
            return err_set(r->err, PAWL_EINPUT, "payload: \"accept\" holds statuses, 100 to 599");
        v[i++] = (int)status;
    }
    if (!n)
        return err_set(r->err, PAWL_EINPUT, "payload: \"accept\" is empty");
    r->out->accept = v;
    r->out->n_accept = n;
    return 0;
}

static int read_reject(struct reading *r, uint32_t at)
{
    size_t n = 0, i = 0;
    int rc = want(r, at, "reject", JSON_ARRAY);
    if (rc == 0)
        rc = count_of(r, at, "reject", TEXTS_MAX, &n);
    if (rc < 0)
        return rc;
    struct sv *v = arena_zalloc(r->arena, n + 1, sizeof(*v));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at);
         k = json_after(r->doc, k)) {
        if ((rc = text_of(r, k, "reject", TEXT_MAX_BYTES, &v[i])) < 0)
            return rc;
        if (!v[i++].n)
            return err_set(r->err, PAWL_EINPUT, "payload: \"reject\" holds an empty text");
    }
    r->out->reject = v;
    r->out->n_reject = n;
    return 0;
}

static int read_max_body(struct reading *r, uint32_t at)
{
    if (json_i64(r->doc, at, 1, MAX_BODY_LIMIT, &r->out->max_body) == 0)
        return 0;
    return err_set(r->err, PAWL_EINPUT, "payload: \"max_body\" is a number of bytes, 1 to 64 GiB");
}

static int read_robots(struct reading *r, uint32_t at)
{
    int rc = want(r, at, "robots", JSON_BOOL);
    if (rc == 0)
        r->out->robots = json_is_true(r->doc, at);
    return rc;
}

static const struct member {
    const char *name;
    int (*read)(struct reading *r, uint32_t at);
} members[] = {
    {"url", read_url},         {"variant", read_variant},   {"method", read_method},
    {"headers", read_headers}, {"body", read_body},         {"accept", read_accept},
    {"reject", read_reject},   {"max_body", read_max_body}, {"robots", read_robots},
};

static int read_member(struct reading *r, uint32_t name_at)
{
    const char *known[ARRAY_LEN(members)];
    struct sv name = json_string(r->doc, name_at, r->arena);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        known[i] = members[i].name;
        if (sv_eq(name, sv_of(known[i])))
            return members[i].read(r, name_at + 1);
    }
    const char *near = sv_nearest(name, known, ARRAY_LEN(known));
    refuse(r, "member", name, "is not known");
    return near ? err_hint(r->err, "did you mean \"%s\"?", near)
                : err_hint(r->err, "known are url, variant, method, headers, body, accept, reject, "
                                   "max_body and robots");
}

static int check_whole(const struct fetch_payload *p, struct pawl_err *err)
{
    if (!p->url.p)
        return err_set(err, PAWL_EINPUT, "payload: \"url\" is missing");
    if (p->body.p && (sv_eq(p->method, SV("GET")) || sv_eq(p->method, SV("HEAD"))))
        return err_set(err, PAWL_EINPUT, "payload: a %s has no \"body\"; \"method\" says which has",
                       p->method.p);
    return 0;
}

int fetch_payload_read(struct sv json, struct arena *a, struct fetch_payload *out,
                       struct pawl_err *err)
{
    struct fetch_payload p = {.variant = SV("body"), .method = SV("GET"), .robots = -1};
    AUTO_JSON struct json doc = {0};
    struct reading r = {.doc = &doc, .arena = a, .out = &p, .err = err};
    if (json_parse(&doc, json, err) < 0)
        return err_wrap(err, "payload");
    if (json_type(&doc, 0) != JSON_OBJECT)
        return err_set(err, PAWL_EINPUT, "payload: an object with \"url\" is expected, not %s",
                       json_type_name(json_type(&doc, 0)));
    int rc = 0;
    for (uint32_t k = json_first(&doc, 0); rc == 0 && k != json_end(&doc, 0);
         k = json_after(&doc, k + 1))
        rc = read_member(&r, k);
    if (rc == 0)
        rc = check_whole(&p, err);
    if (rc == 0)
        *out = p;
    return rc;
}
