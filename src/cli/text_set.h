/* A set of texts, millions of them: 64 bits of each, so that ten million take 128 MiB. Two texts
 * that share these bits are taken for one. */
#ifndef PAWL_CLI_TEXT_SET_H
#define PAWL_CLI_TEXT_SET_H

#include "str.h"
#include <stdbool.h>
#include <stdint.h>

/* All zero is an empty one. */
struct text_set {
    uint64_t *v; /* 0: free */
    size_t n, cap;
};
void text_set_done(struct text_set *s);
bool text_set_add(struct text_set *s, struct sv text); /* was it new? */
bool text_set_has(const struct text_set *s, struct sv text);

#endif
