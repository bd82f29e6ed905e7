/* Kind fetch: GETs a URL politely and keeps the body. Every hop of a redirect passes the gates of
 * its host, the address rules of http.h, and robots.txt; an error body is never kept as content. */
#ifndef PAWL_HANDLERS_FETCH_H
#define PAWL_HANDLERS_FETCH_H

#include "config.h"
#include "handler.h"

/* Borrows loop and config; loop NULL: to judge payloads only. */
struct handler *handler_fetch_new(struct loop *loop, const struct config *config);

/* A payload taken apart; views into the JSON text or the arena.
 *   {"url": TEXT, "variant": TEXT ("body"), "method": TEXT ("GET"), "headers": {NAME: TEXT},
 *    "body": TEXT, "accept": [STATUS…] (2xx), "reject": [TEXT…] (a body with one of these is a
 *    "200 but blocked" page: throttled), "max_body": BYTES, "robots": BOOL} */
struct fetch_header {
    struct sv name, value;
};
struct fetch_payload {
    struct sv url, variant, method, body; /* body: p NULL: none */
    const struct fetch_header *headers;
    size_t n_headers;
    const int *accept; /* n 0: 200 to 299 */
    size_t n_accept;
    const struct sv *reject;
    size_t n_reject;
    int64_t max_body; /* 0: fetch.max_body */
    int robots;       /* -1: fetch.robots */
};
/* INPUT naming the member. The rules of http.h for its URL are the caller's to ask for. */
PAWL_MUST_USE int fetch_payload_read(struct sv json, struct arena *a, struct fetch_payload *out,
                                     struct pawl_err *err);

#endif
