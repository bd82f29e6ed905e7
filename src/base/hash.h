/* SHA-256, HMAC and randomness, the only users of libcrypto. */
#ifndef PAWL_BASE_HASH_H
#define PAWL_BASE_HASH_H

#include "str.h"
#include <stdint.h>

enum { SHA256_LEN = 32 };
void sha256(struct sv s, unsigned char out[SHA256_LEN]);
/* The same piece by piece: init, update…, final; init again starts anew in the same memory, so that
 * many hashes in a row allocate once. All zero before the first init. */
struct sha256_state {
    void *context;
};
void sha256_init(struct sha256_state *s);
void sha256_update(struct sha256_state *s, struct sv bytes);
void sha256_final(struct sha256_state *s, unsigned char out[SHA256_LEN]);
void sha256_done(struct sha256_state *s); /* all zero is fine */
/* Of `body` and of `head` with `body` behind it, faster than one after the other
 * (sha256_pair.c). */
void sha256_pair(struct sv head, struct sv body, unsigned char of_body[SHA256_LEN],
                 unsigned char of_both[SHA256_LEN]);
/* HMAC-SHA-256 (RFC 2104). */
void hmac_sha256(struct sv key, struct sv s, unsigned char out[SHA256_LEN]);
void hex_encode(const unsigned char *p, size_t n, char *out); /* 2n characters and NUL */

void rand_bytes(void *p, size_t n); /* unpredictable; aborts without entropy */
uint64_t rand_below(uint64_t n);    /* uniform in [0, n), n > 0 */
/* 128 random bits in hex: 32 characters and NUL. */
void rand_id(char out[33]);

#endif
