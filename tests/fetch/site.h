/* A web site for tests of the fetch handler: a server on two addresses of loopback, on the test's
 * loop. */
#ifndef PAWL_TESTS_FETCH_SITE_H
#define PAWL_TESTS_FETCH_SITE_H

#include "../unit/unit.h"

#include "loop.h"

/* Serves on that loop, which is borrowed; `on_answer` hears of each request. */
void site_begin(struct loop *loop, void (*on_answer)(void));
void site_end(void);
void site_forget_hits(void);

enum page_then { THEN_KEEP, THEN_CLOSE, THEN_RESET, THEN_HOLD };
/* From now on a path is answered with these bytes. The first `%H` of the text becomes the address
 * and port of the first host, `%O` those of the other. */
void page(const char *path, const char *answer);
void page_then(const char *path, const char *answer, enum page_then then);
/* "HTTP/1.1 STATUS", these header lines, Content-Length and the body. */
void page_body(const char *path, const char *status, const char *headers, struct sv body);
void page_next(const char *path, const char *answer); /* after the answers given before */
int hits(const char *path);
const char *asked(const char *path); /* the last request for it, "" for none */
const char *at(const char *path);    /* URL on the first host; lasts for the next few calls */
const char *at_other(const char *path);
extern const char *const HOST, *const OTHER; /* without port */

#endif
