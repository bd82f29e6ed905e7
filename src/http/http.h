/* The one HTTP client: libcurl's multi interface on the loop. Nothing here blocks and nothing has a
 * thread of its own, except that libcurl asks the system's resolver in threads it hides.
 *
 * What holds for every request (S29–S33): http and https only; no user or password in the URL;
 * ports 80, 443 and from 1024 on; no address that is not public, judged on the socket address about
 * to be connected to, whatever name led there and however often it is resolved, unless
 * `allow_private`; nothing taken from the environment (proxy, netrc, cookies, Alt-Svc, HSTS);
 * certificates verified; redirects returned, never followed.
 *
 * A struct http and its calls belong to the thread that runs its loop. SIGPIPE must be ignored. */
#ifndef PAWL_HTTP_HTTP_H
#define PAWL_HTTP_HTTP_H

#include "clock.h"
#include "err.h"
#include "loop.h"
#include "str.h"
#include <stdbool.h>

struct http;
struct http_call; /* a request under way */
struct http_url;  /* one that keeps the rules, parsed: what was checked is what is asked for */

/* What came of a request; any status is HTTP_OK once the whole answer is there. */
enum http_error {
#define X(name, text) HTTP_##name,
#include "http_errors.def"
#undef X
    N_HTTP_ERRORS
};
const char *http_error_name(enum http_error e); /* "blocked_address" */

struct http_options {
    const char *ca_file;    /* certificates to trust instead of the system's; NULL: the system's */
    const char *user_agent; /* NULL: "pawl/VERSION" */
    int idle;               /* connections kept for further requests; 0: 16 */
    bool http1;             /* no HTTP/2 */
};

struct http_header {
    struct sv name, value;
};

/* Everything is copied by http_start(). A duration of 0 stands for the default in brackets. */
struct http_request {
    const char *method; /* NULL: GET, or POST with a body */
    const char *url;
    const struct http_url *parsed;     /* the same, if it is known: not copied, and needed until the
                                          request has ended; NULL: `url` is parsed */
    const struct http_header *headers; /* INPUT if one could break out of its line (S37) */
    size_t n_headers;
    struct sv body;             /* p NULL: none */
    struct dur connect_timeout; /* name, connection, TLS [10s] */
    struct dur timeout;         /* all of it [60s] */
    struct dur low_speed_time;  /* slower than 100 bytes/s for so long: HTTP_TIMEOUT [30s] */
    size_t max_body;            /* bytes after decoding; more: HTTP_TOO_LARGE [1 MiB] */
    bool allow_private;         /* for targets out of the operator's own configuration */
    /* Content codings are left as they are and "Accept-Encoding: gzip, deflate" is sent unless
     * headers say otherwise: the body comes as it was on the wire. max_body counts these then. */
    bool wire;
    bool heads; /* what is sent before the body, and what comes, is told as it is */
    /* Gets the body piece by piece instead of http_result.body, with the completion's arg; max_body
     * does not count then. false: enough, HTTP_STOPPED. It neither starts nor cancels requests. */
    bool (*on_body)(void *arg, struct sv bytes);
};

/* Lasts, with its views, for the call of the completion. */
struct http_result {
    enum http_error error;
    char message[200]; /* what went wrong, harmless for one line; "" with HTTP_OK */
    int status;        /* 0: no answer; may be set beside an error */
    struct sv body;    /* what came, max_body at most */
    struct sv content_type, etag, last_modified, location; /* p NULL: not in the answer */
    struct sv redirect;     /* `location` made absolute; p NULL: the answer is no redirect */
    struct dur retry_after; /* of either form, from now; us < 0: none */
    struct dur resolved, connected, secured, first_byte,
        total;        /* since the start; 0: not reached */
    char address[64]; /* connected to, "" if it was not */
    int port;
    const char *version;          /* "1.0", "1.1", "2"; "" without an answer */
    struct sv head;               /* http_request.heads: of the last answer, lines as they came with
                                     the empty one; p NULL: none */
    const struct http_call *call; /* for http_result_header() */
};
/* What was sent for a call with http_request.heads, in the form of HTTP/1.1: request line, headers,
 * empty line. */
void http_result_request(const struct http_result *res, struct str *out);
/* Any header of the answer, the last of that name; p NULL: not there. */
struct sv http_result_header(const struct http_result *res, const char *name);

/* The same of an answer whose body is coming, from within on_body; the view lasts as long. */
int http_call_status(const struct http_call *call);
struct sv http_call_header(const struct http_call *call, const char *name);
/* All values of that name as one list (RFC 9110, 5.3), added to `out`; also of http_result.call. */
void http_call_list(const struct http_call *call, const char *name, struct str *out);

/* On the loop's thread, once, after http_start() has returned; may start and cancel requests. */
typedef void http_done_fn(void *arg, const struct http_result *res);

PAWL_MUST_USE int http_new(struct loop *loop, const struct http_options *o, struct http **out,
                           struct pawl_err *err);
/* Cancels what is under way; NULL is fine. Not from a completion. */
void http_free(struct http *h);
/* INPUT if the request breaks a rule; `done` is not called then. *out may be NULL. */
PAWL_MUST_USE int http_start(struct http *h, const struct http_request *req, http_done_fn *done,
                             void *arg, struct http_call **out, struct pawl_err *err);
/* Its completion will not be called, and the call is gone. Not for one that has completed. */
void http_cancel(struct http_call *call);

/* INPUT if the URL breaks a rule. */
PAWL_MUST_USE int http_url_new(const char *url, struct http_url **out, struct pawl_err *err);
void http_url_free(struct http_url *u); /* NULL is fine */
/* The host of a URL as limits know it: lower case, without port or brackets' dots. `origin`, if not
 * NULL: scheme, host and port if it is not the scheme's, "https://example.org". */
void http_url_names(const struct http_url *u, struct str *host, struct str *origin);
/* The host alone of a URL that is needed for nothing else; INPUT if it breaks a rule. */
PAWL_MUST_USE int http_url_host(const char *url, struct str *host, struct pawl_err *err);
/* Is this host's name or address one of this machine's loopback ("localhost", 127.0.0.0/8, ::1)? */
bool http_host_loopback(struct sv host);
/* The rules for a URL alone, to check configuration with: INPUT and why. */
PAWL_MUST_USE int http_url_check(const char *url, struct pawl_err *err);
/* A Retry-After value in seconds or as a date, which counts from `date`, the answer's own Date, or
 * where that is missing (p NULL) from now. us < 0: it is neither. */
struct dur http_retry_after(struct sv value, struct sv date, struct wall now);

#endif
