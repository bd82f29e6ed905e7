/* DEFLATE and its wrappers (RFC 1950 to 1952): reading in all three, writing as members of gzip.
 * Everything streams; nothing here knows files. */
#ifndef PAWL_BASE_GZIP_H
#define PAWL_BASE_GZIP_H

#include "err.h"
#include "str.h"
#include <stdbool.h>
#include <stdint.h>

/* ---- reading ---- */

enum inflate_form { INFLATE_RAW, INFLATE_ZLIB, INFLATE_GZIP };
enum inflate_end {
    INFLATE_MORE, /* what was given is used up, or `room` is full */
    INFLATE_OVER, /* the end of the stream; what follows it was left */
    INFLATE_BAD,  /* it is no such stream */
};
struct inflater;
struct inflater *inflater_new(enum inflate_form form);
void inflater_reset(struct inflater *z); /* for the next stream of the same form */
void inflater_free(struct inflater *z);  /* NULL is fine */
/* does: take from the front of *in, put into out; *made is how much. */
enum inflate_end inflater_run(struct inflater *z, struct sv *in, char *out, size_t room,
                              size_t *made);
/* Of this stream so far. */
int64_t inflater_taken(const struct inflater *z);
int64_t inflater_given(const struct inflater *z);

/* The short way for members whose bytes are stored as they are, if all of one is at hand. The
 * length of the member at the front of `in`, if it is whole and sound and has stored blocks alone;
 * 0: the inflater will tell what it is. */
size_t gzip_stored(struct sv in);
/* What is inside of such a member, block by block; *member goes on behind it. p NULL: no more. */
struct sv gzip_stored_next(struct sv *member);

/* ---- writing ---- */

/* One member after the other, each begun, written and ended. */
struct gzip_out;
typedef int gzip_put_fn(void *arg, struct sv bytes, struct pawl_err *err);
struct gzip_out *gzip_out_new(int level, gzip_put_fn *put, void *arg); /* level 1 to 9 */
void gzip_out_free(struct gzip_out *g);                                /* NULL is fine */
/* Exactly `size` bytes will be written. Not squeezed they are stored, which costs little more than
 * copying them, and every reader of gzip reads that too. A member that was not ended is forgotten
 * by the next beginning. */
void gzip_begin(struct gzip_out *g, int64_t size, bool squeeze);
/* Errors: those of put; INTERNAL if the size is not kept to. */
PAWL_MUST_USE int gzip_write(struct gzip_out *g, struct sv bytes, struct pawl_err *err);
PAWL_MUST_USE int gzip_end(struct gzip_out *g, struct pawl_err *err);

#endif
