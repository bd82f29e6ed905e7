/* Digests that stand for names in the stores; the same on every store. */
#ifndef PAWL_CORE_DIGEST_H
#define PAWL_CORE_DIGEST_H

#include "str.h"
#include <stdint.h>

enum { KEY_DIGEST_LEN = 16 };

/* Who holds a key: the first bytes of SHA-256 over (queue, key). At most NAME_MAX_BYTES and
 * KEY_MAX_BYTES long. */
void key_digest(struct sv queue, struct sv key, unsigned char out[KEY_DIGEST_LEN]);

/* Ids of a class (queue, kind) and a lane (queue, kind, host; none: empty) where no row may be
 * asked for one. */
int64_t class_digest(struct sv queue, struct sv kind);
int64_t lane_digest(struct sv queue, struct sv kind, struct sv host);
/* Id of a lock's key. */
int64_t lock_digest(struct sv key);
/* Id of a gate: a limit's name and a value (none: empty). */
int64_t gate_digest(struct sv limit, struct sv value);

#endif
