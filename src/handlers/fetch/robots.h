/* robots.txt (RFC 9309): which paths of an origin a robot may ask for. Pure: text in, answers out.
 */
#ifndef PAWL_HANDLERS_ROBOTS_H
#define PAWL_HANDLERS_ROBOTS_H

#include "clock.h"
#include "str.h"
#include <stdbool.h>

enum { ROBOTS_MAX_BYTES = 500 << 10 }; /* what follows is not read */

/* The rules for one robot: those of all groups that name it, else of all groups for "*". */
struct robots;

/* The product token in front of a value of User-Agent: "pawl" of "pawl/1.0 (x)". May be empty. */
struct sv robots_token(struct sv agent);

/* Any bytes. `token` is the robot's product token ("pawl"); it is compared without case. Empty:
 * only groups for "*" are meant. */
struct robots *robots_parse(struct sv text, struct sv token);
void robots_free(struct robots *r); /* NULL is fine */

/* May it ask for this path, with its query if it has one? Paths are compared with dot segments
 * resolved and percent-encoding normalised; the longest rule wins, and of two as long the one that
 * allows. /robots.txt itself is always allowed. */
bool robots_allows(const struct robots *r, struct sv path);
/* The longest Crawl-delay of its groups; 0: none. */
struct dur robots_crawl_delay(const struct robots *r);

/* The rules as the text of a robots.txt for "*", in ASCII: parses back to the same answers. */
void robots_write(const struct robots *r, struct str *out);
size_t robots_bytes(const struct robots *r); /* of memory */

#endif
