/* The exchange as a lake of records keeps it: the heads of both messages, that of the answer put
 * right for the bytes that are kept. Those have no transfer coding any more, and no content coding
 * if they were decoded: such headers get "X-Archive-Orig-" in front, as archives do it. */
#include "fetch_parts.h"

#include <strings.h>

bool exchange_wanted(const struct fetch *f)
{
    return f->services->about != NULL;
}

static bool named(struct sv line, const char *name)
{
    size_t n = strlen(name);
    return line.n > n && line.p[n] == ':' && !strncasecmp(line.p, name, n);
}

/* Another version than those that such a record can have becomes 1.1. */
static void put_status(struct str *out, struct sv line)
{
    struct sv rest, version = sv_cut(line, ' ', &rest);
    bool plain = sv_eq(version, SV("HTTP/1.1")) || sv_eq(version, SV("HTTP/1.0"));
    str_add(out, plain ? version : SV("HTTP/1.1"));
    str_addc(out, ' ');
    str_add(out, sv_trim(rest));
    str_adds(out, "\r\n");
}

struct putting {
    bool decoded;
    int64_t size; /* of the body; -1: there is none, and its headers tell of another */
    bool sized;   /* its length stands there */
};

/* Does this header no longer tell the truth? */
static bool outdated(struct putting *p, struct sv line)
{
    int64_t n = -1;
    if (p->size < 0)
        return false;
    if (named(line, "content-length")) {
        bool true_ = sv_to_i64(sv_trim(sv_make(line.p + 15, line.n - 15)), 0, INT64_MAX, &n) == 0 &&
                     n == p->size && !p->sized;
        p->sized = p->sized || true_;
        return !true_;
    }
    return named(line, "transfer-encoding") || (p->decoded && named(line, "content-encoding"));
}

static void put_head(struct str *out, struct sv head, struct putting *p)
{
    struct sv rest, line = sv_cut(head, '\n', &rest);
    bool any = false;
    put_status(out, sv_trim(line));
    while (rest.p && rest.n) {
        line = sv_cut(rest, '\n', &rest);
        while (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        bool folded = line.n && any && (line.p[0] == ' ' || line.p[0] == '\t');
        if (!line.n || (!folded && !memchr(line.p, ':', line.n)))
            continue;
        if (!folded && outdated(p, line))
            str_adds(out, "X-Archive-Orig-");
        str_add(out, line);
        str_adds(out, "\r\n");
        any = true;
    }
    if (!p->sized && p->size >= 0)
        str_addf(out, "Content-Length: %lld\r\n", (long long)p->size);
    str_adds(out, "\r\n");
}

static struct sv keep(struct fetch *f, const struct str *s)
{
    return s->overflow ? SV_NONE : sv_make(arena_strndup(&f->arena, str_cstr(s), s->len), s->len);
}

static void keep_heads(struct fetch *f, const struct http_result *res, struct putting *p)
{
    AUTO_STR struct str request = STR_INIT(STR_OUTPUT), response = STR_INIT(1 << 20);
    if (!exchange_wanted(f) || !res->head.p)
        return;
    http_result_request(res, &request);
    str_add(&request, f->hop->body);
    put_head(&response, res->head, p);
    f->exchange = (struct exchange){.uri = sv_of(f->hop->url),
                                    .request = keep(f, &request),
                                    .response = keep(f, &response),
                                    .address = f->record.address,
                                    .at = f->asked_at};
}

void exchange_keep(struct fetch *f, const struct http_result *res)
{
    bool wire = f->h->config->fetch_keep[0] == 'w';
    struct putting p = {.decoded = !wire && f->body.decode && decode_undoes(f->body.decode),
                        .size = wire ? f->record.wire_bytes : f->record.body_bytes};
    keep_heads(f, res, &p);
}

void exchange_keep_head(struct fetch *f, const struct http_result *res)
{
    struct putting p = {.size = -1};
    keep_heads(f, res, &p);
}
