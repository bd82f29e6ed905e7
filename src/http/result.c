/* What came of a transfer, in pawl's words. */
#include "http_internal.h"

#include "mem.h"
#include "text.h"
#include <stdio.h>

static const char *const names[] = {
#define X(name, text) text,
#include "http_errors.def"
#undef X
};

const char *http_error_name(enum http_error e)
{
    return names[e];
}

struct dur http_retry_after(struct sv value, struct sv date, struct wall now)
{
    int64_t seconds;
    value = sv_trim(value);
    if (sv_to_i64(value, 0, INT64_MAX, &seconds) == 0)
        return seconds < DUR_MAX_US / 1000000 ? DUR_S(seconds) : (struct dur){DUR_MAX_US};
    if (!value.n || (value.p[0] >= '0' && value.p[0] <= '9') || value.p[0] == '-')
        return DUR_NONE; /* a date begins with its day's name */
    AUTO_FREE char *text = mem_dup(value.p, value.n);
    AUTO_FREE char *from = date.p ? mem_dup(date.p, date.n) : NULL;
    time_t at = curl_getdate(text, NULL), start = from ? curl_getdate(from, NULL) : -1;
    if (at < 0)
        return DUR_NONE;
    int64_t us = (int64_t)at * 1000000 - (start < 0 ? now.us : (int64_t)start * 1000000);
    return (struct dur){us < 0 ? 0 : us > DUR_MAX_US ? DUR_MAX_US : us};
}

static struct sv header(const struct http_call *c, const char *name)
{
    struct curl_header *h;
    if (curl_easy_header(c->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return SV_NONE;
    if (h->amount > 1 &&
        curl_easy_header(c->easy, name, h->amount - 1, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return SV_NONE;
    return sv_of(h->value);
}

struct sv http_result_header(const struct http_result *res, const char *name)
{
    return header(res->call, name);
}

struct sv http_call_header(const struct http_call *call, const char *name)
{
    return header(call, name);
}

void http_call_list(const struct http_call *call, const char *name, struct str *out)
{
    struct curl_header *h;
    for (size_t i = 0; curl_easy_header(call->easy, name, i, CURLH_HEADER, -1, &h) == CURLHE_OK;
         i++) {
        str_adds(out, i ? ", " : "");
        str_adds(out, h->value);
    }
}

int http_call_status(const struct http_call *call)
{
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static enum http_error classify(const struct http_call *c, CURLcode code)
{
    if (code == CURLE_OK)
        return HTTP_OK;
    if (c->too_large)
        return HTTP_TOO_LARGE;
    if (c->stopped)
        return HTTP_STOPPED;
    switch (code) {
    case CURLE_OUT_OF_MEMORY: /* what libcurl says of one line beyond its own ceiling */
        return HTTP_TOO_LARGE;
    case CURLE_COULDNT_CONNECT:
        return c->refused && !c->opened ? HTTP_BLOCKED_ADDRESS : HTTP_CONNECT;
    case CURLE_URL_MALFORMAT: /* a name that cannot be one */
    case CURLE_COULDNT_RESOLVE_HOST:
        return HTTP_RESOLVE;
    case CURLE_OPERATION_TIMEDOUT:
        return HTTP_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return HTTP_TLS;
    case CURLE_FAILED_INIT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_ABORTED_BY_CALLBACK:
        return HTTP_INTERNAL;
    default:
        return HTTP_BROKEN;
    }
}

/* Over HTTP/2 libcurl has a ceiling of its own for headers (128 KiB), and what goes beyond it ends
 * the connection with all requests on it: which of them was to blame cannot be told, so it is not
 * TOO_LARGE, and trying again helps the others. nghttp2's number says that libcurl refused. */
static bool headers_broke_connection(const struct http_call *c)
{
    return strstr(c->words, "nghttp2") && strstr(c->words, "-902");
}

static void add_words(const struct http_call *c, CURLcode code, struct http_result *out)
{
    AUTO_STR struct str s = STR_INIT(sizeof(out->message) - 1);
    if (out->error == HTTP_BLOCKED_ADDRESS)
        str_addf(&s, "its address is not public (%s)", c->refused);
    else if (out->error == HTTP_TOO_LARGE)
        str_addf(&s, "%s",
                 c->body.overflow ? "the body is too large" : "the headers are too large");
    else if (out->error == HTTP_STOPPED)
        str_adds(&s, "as much of the body as was wanted");
    else if (out->error == HTTP_BROKEN && c->contradicts)
        str_adds(&s, "the answer tells two different lengths");
    else if (out->error == HTTP_BROKEN && headers_broke_connection(c))
        str_adds(&s, "the headers of an answer on this HTTP/2 connection are too large");
    else if (out->error != HTTP_OK)
        text_safe(&s, sv_of(c->words[0] ? c->words : curl_easy_strerror(code)), 150);
    snprintf(out->message, sizeof(out->message), "%s", str_cstr(&s));
}

static struct dur time_of(CURL *e, CURLINFO info)
{
    curl_off_t us = 0;
    curl_easy_getinfo(e, info, &us);
    return DUR_US(us);
}

static void add_times(CURL *e, struct http_result *out)
{
    out->resolved = time_of(e, CURLINFO_NAMELOOKUP_TIME_T);
    out->connected = time_of(e, CURLINFO_CONNECT_TIME_T);
    out->secured = time_of(e, CURLINFO_APPCONNECT_TIME_T);
    out->first_byte = time_of(e, CURLINFO_STARTTRANSFER_TIME_T);
    out->total = time_of(e, CURLINFO_TOTAL_TIME_T);
}

static const char *version_of(CURL *e)
{
    long version = 0;
    curl_easy_getinfo(e, CURLINFO_HTTP_VERSION, &version);
    return version == CURL_HTTP_VERSION_1_0   ? "1.0"
           : version == CURL_HTTP_VERSION_1_1 ? "1.1"
           : version == CURL_HTTP_VERSION_2_0 ? "2"
                                              : "";
}

static void add_answer(const struct http_call *c, struct http_result *out)
{
    char *address = NULL, *redirect = NULL;
    long status = 0, port = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_PRIMARY_IP, &address);
    curl_easy_getinfo(c->easy, CURLINFO_PRIMARY_PORT, &port);
    curl_easy_getinfo(c->easy, CURLINFO_REDIRECT_URL, &redirect);
    out->status = (int)status;
    out->version = status ? version_of(c->easy) : "";
    out->port = (int)port;
    snprintf(out->address, sizeof(out->address), "%s", address ? address : "");
    out->redirect = sv_of(redirect);
    out->content_type = header(c, "content-type");
    out->etag = header(c, "etag");
    out->last_modified = header(c, "last-modified");
    out->location = header(c, "location");
    struct sv after = header(c, "retry-after");
    out->retry_after =
        after.p ? http_retry_after(after, header(c, "date"), clock_wall()) : DUR_NONE;
}

void result_make(const struct http_call *c, CURLcode code, struct http_result *out)
{
    *out = (struct http_result){.error = classify(c, code), .body = str_sv(&c->body), .call = c};
    out->head = c->head.len ? str_sv(&c->head) : SV_NONE;
    add_words(c, code, out);
    add_times(c->easy, out);
    add_answer(c, out);
}
