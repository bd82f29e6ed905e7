/* The places that rows name, millions of them: 64 bits of each, so that ten million take 128 MiB.
 * Two places that share these bits are taken for one, which makes bytes that no row names look
 * named, never the other way round. */
#ifndef PAWL_CLI_PLACE_SET_H
#define PAWL_CLI_PLACE_SET_H

#include "str.h"
#include <stdbool.h>
#include <stdint.h>

/* All zero is an empty one. */
struct place_set {
    uint64_t *v; /* 0: free */
    size_t n, cap;
};
void place_set_done(struct place_set *s);
void place_set_add(struct place_set *s, struct sv place);
bool place_set_has(const struct place_set *s, struct sv place);

#endif
