/* Heads of messages, for who keeps records of exchanges. */
#include "http_internal.h"

#include "mem.h"
#include <strings.h>

/* Each answer begins anew: those of 1xx come first. */
void head_line(struct http_call *c, struct sv line)
{
    if (sv_starts(line, SV("HTTP/"))) {
        str_clear(&c->head);
        c->head_over = false;
    }
    if (!c->head_over)
        str_add(&c->head, line);
    c->head_over = c->head_over || !sv_trim(line).n;
}

static bool names(const char *line, const char *name)
{
    size_t n = strlen(name);
    return !strncasecmp(line, name, n) && (line[n] == ':' || line[n] == ';');
}

static const struct curl_slist *headers_of(const struct http_call *c)
{
    return c->plain ? c->http->plain_headers : c->headers;
}

static bool given(const struct http_call *c, const char *name)
{
    for (const struct curl_slist *h = headers_of(c); h; h = h->next)
        if (names(h->data, name))
            return true;
    return false;
}

static void put_part(const struct http_call *c, CURLUPart part, const char *before, struct str *out)
{
    char *text = NULL;
    if (curl_url_get(c->url->curl, part, &text, 0) != CURLUE_OK)
        return;
    str_adds(out, before);
    str_adds(out, text);
    curl_free(text);
}

/* As libcurl takes it: "Name: value", "Name;" for an empty one, "Name:" for none at all. */
static void put_given(const char *line, struct str *out)
{
    struct sv value, name = sv_cut(sv_of(line), ':', &value);
    if (value.p && !sv_trim(value).n)
        return;
    if (!value.p)
        name = sv_cut(name, ';', &value);
    str_add(out, name);
    str_adds(out, ":");
    str_add(out, value.p && value.n ? value : SV_NONE);
    str_adds(out, "\r\n");
}

/* In the order in which libcurl sends them. */
void http_result_request(const struct http_result *res, struct str *out)
{
    const struct http_call *c = res->call;
    str_adds(out, c->method ? c->method : "GET");
    put_part(c, CURLUPART_PATH, " ", out);
    put_part(c, CURLUPART_QUERY, "?", out);
    str_adds(out, " HTTP/1.1\r\n");
    if (!given(c, "Host")) {
        put_part(c, CURLUPART_HOST, "Host: ", out);
        put_part(c, CURLUPART_PORT, ":", out);
        str_adds(out, "\r\n");
    }
    if (!given(c, "User-Agent"))
        str_addf(out, "User-Agent: %s\r\n", c->http->user_agent);
    if (!given(c, "Accept"))
        str_adds(out, "Accept: */*\r\n");
    for (const struct curl_slist *h = headers_of(c); h; h = h->next)
        put_given(h->data, out);
    if (c->sends >= 0)
        str_addf(out, "Content-Length: %lld\r\n", (long long)c->sends);
    str_adds(out, "\r\n");
}
