/* A request becomes an easy handle. */
#include "http_internal.h"

#include "address.h"
#include "fd.h"
#include "mem.h"
#include <fcntl.h>
#include <sys/socket.h>

enum { HEADERS_MAX = 256 << 10, BUFFER = 16 << 10, LOW_SPEED = 100, NAMES_LAST = 60 };
#define CONNECT_TIMEOUT DUR_S(10)
#define TOTAL_TIMEOUT   DUR_S(60)
#define LOW_SPEED_TIME  DUR_S(30)

/* ---- headers (S37) ---- */

static bool token(struct sv s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
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

static void append(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer)
        abort(); /* no memory */
    *list = longer;
}

static int add_header(struct curl_slist **list, const struct http_header *h, struct pawl_err *err)
{
    AUTO_STR struct str line = STR_INIT(STR_LINE);
    if (!token(h->name) || !one_line(h->value))
        return err_set(err, PAWL_EINPUT, "a header has characters that no header can have");
    str_add(&line, h->name);
    if (sv_trim(h->value).n) {
        str_adds(&line, ": ");
        str_add(&line, h->value);
    } else {
        str_addc(&line, ';'); /* libcurl's way to send an empty one */
    }
    if (line.overflow)
        return err_set(err, PAWL_EINPUT, "a header is longer than 64 KiB");
    append(list, str_cstr(&line));
    return 0;
}

static bool has_header(const struct http_request *req, struct sv name)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (req->headers[i].name.n == name.n &&
            !strncasecmp(req->headers[i].name.p, name.p, name.n))
            return true;
    return false;
}

static int add_headers(struct curl_slist **list, const struct http_request *req,
                       struct pawl_err *err)
{
    /* What libcurl would add on its own to a body: later ones of the same name replace these. */
    append(list, "Expect:");
    for (size_t i = 0; i < req->n_headers; i++)
        if (add_header(list, &req->headers[i], err) < 0)
            return PAWL_EINPUT;
    if (!has_header(req, SV("Content-Type")))
        append(list, "Content-Type:");
    if (req->wire && !has_header(req, SV("Accept-Encoding")))
        append(list, "Accept-Encoding: gzip, deflate");
    return 0;
}

/* Those of a plain request are all alike, and made once. */
static int set_headers(struct http_call *c, const struct http_request *req, struct pawl_err *err)
{
    struct curl_slist **list = c->plain ? &c->http->plain_headers : &c->headers;
    int rc = *list ? 0 : add_headers(list, req, err);
    if (rc == 0)
        curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, *list);
    return rc;
}

/* ---- callbacks of a transfer ---- */

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct sv bytes = sv_make(p, size * n);
    if (c->on_body) {
        c->stopped = !c->on_body(c->arg, bytes);
        return c->stopped ? 0 : bytes.n;
    }
    str_add(&c->body, bytes);
    c->too_large = c->body.overflow; /* counted decoded (S35) */
    return c->too_large ? 0 : bytes.n;
}

static bool begins(struct sv line, const char *name)
{
    return line.n >= strlen(name) && !strncasecmp(line.p, name, strlen(name));
}

/* Two lengths: one of them would cut the body short, and nobody can tell which. What is no number
 * is libcurl's business. */
static void watch_length(struct http_call *c, struct sv value)
{
    int64_t n;
    if (sv_to_i64(value, 0, INT64_MAX - 1, &n) < 0)
        return;
    c->contradicts = c->contradicts || (c->length && c->length != n + 1);
    c->length = n + 1;
}

/* A 204 or 304 has no body. One that announces one all the same may send it, and libcurl would take
 * it for the next answer: such a connection is not used again. */
static void watch_framing(struct http_call *c, struct sv line)
{
    long status = 0;
    if (begins(line, "HTTP/")) {
        c->announced = false;
        c->length = 0;
    } else if (begins(line, "Transfer-Encoding:")) {
        c->announced = true;
    } else if (begins(line, "Content-Length:")) {
        struct sv value = sv_trim(sv_make(line.p + 15, line.n - 15));
        c->announced = !sv_eq(value, SV("0"));
        watch_length(c, value);
    }
    if (!c->announced || sv_trim(line).n)
        return;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 204 || status == 304)
        curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, 1L);
}

/* Status lines, those of 1xx answers and trailers come here too: all of it counts, and libcurl
 * keeps what was let through. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    c->header_bytes += size * n;
    c->too_large = c->header_bytes > HEADERS_MAX; /* S34 */
    watch_framing(c, sv_make(p, size * n));
    if (c->head.max)
        head_line(c, sv_make(p, size * n));
    return c->too_large || c->contradicts ? 0 : size * n;
}

static curl_socket_t open_socket(struct http_call *c, const struct curl_sockaddr *a)
{
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    c->opened++;
    if (fd >= 0)
        multi_opened(c->multi, fd);
    return fd;
}

/* The one place where a connection begins: no socket, no packet (S30, S31). */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_call *c = arg;
    const char *special = address_special(&a->addr);
    if (purpose != CURLSOCKTYPE_IPCXN || special) {
        c->refused = special ? special : "not a connection";
        return CURL_SOCKET_BAD;
    }
    return open_socket(c, a);
}

static curl_socket_t on_open_any(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_call *c = arg;
    (void)purpose;
    return open_socket(c, a);
}

/* ---- the handle ---- */

static long ms_or(struct dur d, struct dur otherwise)
{
    int64_t ms = (d.us > 0 ? d.us : otherwise.us) / 1000;
    return ms < 1 ? 1 : ms > 86400000 ? 86400000 : (long)ms;
}

/* Not MAXFILESIZE: it would take the length that a 304 or an answer to HEAD only tells of for a
 * body. */
static void set_limits(CURL *e, const struct http_request *req)
{
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, ms_or(req->connect_timeout, CONNECT_TIMEOUT));
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, ms_or(req->timeout, TOTAL_TIMEOUT));
    long low = ms_or(req->low_speed_time, LOW_SPEED_TIME) / 1000;
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, low < 1 ? 1L : low);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)LOW_SPEED);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)BUFFER); /* each transfer has one */
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER);
}

/* S33: nothing of this comes from the environment. Cookies, netrc, Alt-Svc and HSTS are off unless
 * asked for; a proxy is not. */
void request_rules(CURL *e, const struct http *h)
{
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    /* Else cancelling waits for the resolver's thread. */
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    if (h->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, h->ca_file);
    /* Else libcurl reads all certificates again for each connection, a megabyte of them. */
    curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(e, CURLOPT_USERAGENT, h->user_agent);
    curl_easy_setopt(e, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAMES_LAST);
}

/* HTTP/2 where TLS negotiates it; further requests to a host wait for the first connection to tell
 * whether they can share it. Without TLS that is known only with the first answer: too late. */
static void set_version(struct http_call *c)
{
    bool h2 = !c->http->http1 && c->url->https;
    curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION,
                     (long)(h2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(c->easy, CURLOPT_PIPEWAIT, h2 ? 1L : 0L);
}

static void set_coding(CURL *e, bool wire)
{
    if (wire)
        curl_easy_setopt(e, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    else
        curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "");
}

static const char *method_of(const struct http_request *req)
{
    return req->method ? req->method : req->body.p ? "POST" : "GET";
}

static int set_method(CURL *e, const struct http_request *req, struct pawl_err *err)
{
    const char *method = method_of(req);
    if (!token(sv_of(method)))
        return err_set(err, PAWL_EINPUT, "a method has characters that no method can have");
    if (!strcmp(method, "HEAD")) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    } else if (req->body.p || !strcmp(method, "POST")) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.n);
        curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, req->body.p ? req->body.p : "");
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
    } else {
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
    }
    return 0;
}

static void set_callbacks(struct http_call *c, bool any_address)
{
    curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, any_address ? on_open_any : on_open);
    curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETFUNCTION, multi_closing);
    curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETDATA, /* the connection outlives the call */
                     any_address ? &c->http->open : &c->http->strict);
    curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->words);
}

/* A GET without headers of its own: nearly all of them. */
static bool is_plain(const struct http_request *req)
{
    return req->wire && !req->n_headers && !req->body.p && !strcmp(method_of(req), "GET");
}

static void tell_heads(struct http_call *c, const struct http_request *req)
{
    c->head = STR_INIT(HEADERS_MAX);
    c->sends = -1;
    if (c->plain)
        return;
    c->method = mem_strdup(method_of(req));
    if (req->body.p || !strcmp(c->method, "POST"))
        c->sends = (int64_t)req->body.n;
}

int request_set(struct http_call *c, const struct http_request *req, struct pawl_err *err)
{
    c->plain = is_plain(req);
    if (req->heads)
        tell_heads(c, req);
    c->easy = easy_take(c->http);
    if (!c->easy)
        return err_set(err, PAWL_EINTERNAL, "cannot set up libcurl");
    int rc = set_headers(c, req, err);
    if (rc < 0)
        return rc;
    set_version(c);
    set_coding(c->easy, req->wire);
    set_limits(c->easy, req);
    set_callbacks(c, req->allow_private);
    curl_easy_setopt(c->easy, CURLOPT_CURLU, c->url->curl);
    return c->plain ? 0 : set_method(c->easy, req, err);
}

void request_undo(CURL *e)
{
    curl_easy_setopt(e, CURLOPT_CURLU, NULL);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 0L);
    curl_easy_setopt(e, CURLOPT_HTTP_CONTENT_DECODING, 1L);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, NULL);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, NULL);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, NULL);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(e, CURLOPT_PRIVATE, NULL);
}
