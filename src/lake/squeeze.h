/* zstd, streaming both ways in bounded memory; the only user of libzstd. Knows nothing of files. */
#ifndef PAWL_LAKE_SQUEEZE_H
#define PAWL_LAKE_SQUEEZE_H

#include "err.h"
#include "str.h"
#include <stdbool.h>
#include <stdint.h>

enum { SQUEEZE_HEADER = 18 }; /* so many bytes tell the size of what is inside */

/* Contexts and a buffer, made when they are needed and used again: they cost more than a small
 * body. For one thread at a time. */
struct squeezer;
struct squeezer *squeezer_new(int level);
void squeezer_free(struct squeezer *s); /* NULL is fine */

/* Where bytes come from and go to. */
struct flow {
    /* The next piece, valid until the next call; n 0: the end. */
    int (*take)(void *arg, struct sv *out, struct pawl_err *err);
    /* A positive answer: enough, stop. */
    int (*put)(void *arg, struct sv bytes, struct pawl_err *err);
    void *arg;
};

/* does: compress `size` bytes. outcome: *out_n is what they became, 0: that would not be fewer, and
 * what was put is of no use. Errors: those of the flow; INTERNAL if it gives another size. */
PAWL_MUST_USE int squeeze(struct squeezer *s, const struct flow *f, int64_t size, int64_t *out_n,
                          struct pawl_err *err);
/* does: decode until the end or until put has enough. CORRUPT: it cannot be. */
PAWL_MUST_USE int unsqueeze(struct squeezer *s, const struct flow *f, struct pawl_err *err);
/* The size that the beginning of compressed bytes claims for them; -1: it claims none. */
int64_t squeeze_claims(struct sv header);

#endif
