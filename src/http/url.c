/* The rules for URLs (S29). A URL is parsed once, by libcurl, and used as parsed: what was checked
 * is what is asked for. */
#include "http_internal.h"

#include "mem.h"
#include "text.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <locale.h>
#include <strings.h>

enum { URL_MAX_BYTES = 16 << 10 };

static int refuse(const char *url, const char *why, struct pawl_err *err)
{
    AUTO_STR struct str shown = STR_INIT(STR_LINE), plain = STR_INIT(STR_LINE);
    text_url(&plain, sv_of(url));
    text_safe(&shown, str_sv(&plain), 120);
    return err_set(err, PAWL_EINPUT, "\"%s\": %s", str_cstr(&shown), why);
}

static const char ports[] = "ports are 80, 443 and 1024 to 65535";

static int check_port(CURLU *u, const char *url, struct pawl_err *err)
{
    char *text = NULL;
    int64_t port = 0;
    CURLUcode code = curl_url_get(u, CURLUPART_PORT, &text, CURLU_DEFAULT_PORT);
    bool ok = code == CURLUE_OK && sv_to_i64(sv_of(text), 1, 65535, &port) == 0 &&
              (port == 80 || port == 443 || port >= 1024);
    curl_free(text);
    return ok ? 0 : refuse(url, ports, err);
}

static int check_scheme(struct http_url *u, const char *url, struct pawl_err *err)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(u->curl, CURLUPART_SCHEME, &text, 0);
    u->https = code == CURLUE_OK && !strcmp(text, "https");
    bool ok = u->https || (code == CURLUE_OK && !strcmp(text, "http"));
    curl_free(text);
    return ok ? 0 : refuse(url, "only http and https", err);
}

static int parse(CURLU *u, const char *url, struct pawl_err *err)
{
    if (strlen(url) > URL_MAX_BYTES)
        return refuse(url, "longer than 16 KiB", err);
    CURLUcode code = curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER);
    if (code == CURLUE_OK)
        return 0;
    if (code == CURLUE_USER_NOT_ALLOWED)
        return refuse(url, "no user or password in a URL", err);
    if (code == CURLUE_UNSUPPORTED_SCHEME)
        return refuse(url, "only http and https", err);
    if (code == CURLUE_BAD_PORT_NUMBER)
        return refuse(url, ports, err);
    bool begun = !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8);
    return refuse(url,
                  begun ? "has a space, a control character or a host that is none in it"
                        : "is not a URL with http:// or https:// in front",
                  err);
}

/* A name in another script becomes the one that is looked up, so that a host has one name. libcurl
 * reads the bytes as the locale says; a URL's are UTF-8 wherever this runs. */
static int to_ascii(CURLU *u)
{
    char *host = NULL;
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    CURLUcode code = curl_url_get(u, CURLUPART_HOST, &host, CURLU_PUNYCODE);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    if (code == CURLUE_OK)
        code = curl_url_set(u, CURLUPART_HOST, host, 0);
    curl_free(host);
    return code == CURLUE_OK ? 0 : -1;
}

static bool ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return !*text;
}

static int check_host(CURLU *u, const char *url, struct pawl_err *err)
{
    char *text = NULL;
    bool ok = curl_url_get(u, CURLUPART_HOST, &text, 0) == CURLUE_OK;
    if (ok && !ascii(text)) {
        curl_free(TAKE_PTR(text));
        ok = to_ascii(u) == 0 && curl_url_get(u, CURLUPART_HOST, &text, 0) == CURLUE_OK;
    }
    ok = ok && text[strspn(text, ".")];
    curl_free(text);
    return ok ? 0 : refuse(url, "its host is no name that can be looked up", err);
}

int http_url_new(const char *url, struct http_url **out, struct pawl_err *err)
{
    struct http_url *u = mem_zalloc(1, sizeof(*u));
    u->curl = curl_url();
    int rc = parse(u->curl, url, err);
    if (rc == 0)
        rc = check_scheme(u, url, err);
    if (rc == 0)
        rc = check_port(u->curl, url, err);
    if (rc == 0)
        rc = check_host(u->curl, url, err);
    if (rc < 0)
        http_url_free(u);
    else
        *out = u;
    return rc;
}

void http_url_free(struct http_url *u)
{
    if (!u)
        return;
    curl_url_cleanup(u->curl);
    free(u);
}

int http_url_check(const char *url, struct pawl_err *err)
{
    struct http_url *u;
    int rc = http_url_new(url, &u, err);
    if (rc == 0)
        http_url_free(u);
    return rc;
}

/* ---- hosts ---- */

/* As getaddrinfo() reads it: 127.1, 0x7f000001, 017700000001 are all one address. */
static bool ipv4_of(const char *host, struct in_addr *out)
{
    return host[0] && strspn(host, "0123456789abcdefxABCDEFX.") == strlen(host) &&
           inet_aton(host, out);
}

/* Without brackets, final dots and capitals; an address as it is usually written. */
static void add_host(struct str *out, struct sv host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    AUTO_STR struct str low = STR_INIT(URL_MAX_BYTES);
    if (host.n > 1 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = sv_make(host.p + 1, host.n - 2);
    while (host.n && host.p[host.n - 1] == '.')
        host.n--;
    str_add(&low, host);
    for (size_t i = 0; i < low.len; i++)
        low.p[i] = (char)tolower((unsigned char)low.p[i]);
    bool usual = inet_pton(AF_INET, str_cstr(&low), &v4) == 1;
    if (!usual && ipv4_of(str_cstr(&low), &v4))
        str_adds(out, inet_ntop(AF_INET, &v4, text, sizeof(text)));
    else
        str_add(out, str_sv(&low));
}

static void add_part(CURLU *u, CURLUPart part, unsigned flags, struct str *out)
{
    char *text = NULL;
    if (curl_url_get(u, part, &text, flags) == CURLUE_OK)
        str_adds(out, text);
    curl_free(text);
}

static void add_origin(const struct http_url *u, struct sv host, struct str *out)
{
    AUTO_STR struct str port = STR_INIT(16);
    bool v6 = memchr(host.p, ':', host.n);
    str_adds(out, u->https ? "https://" : "http://");
    str_adds(out, v6 ? "[" : "");
    str_add(out, host);
    str_adds(out, v6 ? "]" : "");
    add_part(u->curl, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT, &port);
    if (port.len)
        str_addf(out, ":%s", str_cstr(&port));
}

void http_url_names(const struct http_url *u, struct str *host, struct str *origin)
{
    AUTO_STR struct str raw = STR_INIT(URL_MAX_BYTES), name = STR_INIT(URL_MAX_BYTES);
    add_part(u->curl, CURLUPART_HOST, 0, &raw);
    add_host(&name, str_sv(&raw));
    str_add(host, str_sv(&name));
    if (origin)
        add_origin(u, str_sv(&name), origin);
}

int http_url_host(const char *url, struct str *host, struct pawl_err *err)
{
    struct http_url *u;
    int rc = http_url_new(url, &u, err);
    if (rc < 0)
        return rc;
    http_url_names(u, host, NULL);
    http_url_free(u);
    return 0;
}

bool http_host_loopback(struct sv host)
{
    AUTO_STR struct str name = STR_INIT(URL_MAX_BYTES);
    struct in_addr v4;
    struct in6_addr v6;
    add_host(&name, host);
    if (inet_pton(AF_INET, str_cstr(&name), &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, str_cstr(&name), &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return sv_eq(str_sv(&name), SV("localhost"));
}
