#include "hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

/* Looked up once: EVP_sha256() has it looked up for every hash, which costs more than the hash of a
 * short text. Of two threads that come first one gives its own back. */
static const EVP_MD *sha256_algorithm(void)
{
    static _Atomic(EVP_MD *) known;
    EVP_MD *md = atomic_load_explicit(&known, memory_order_acquire), *none = NULL;
    if (md)
        return md;
    md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!md)
        abort();
    if (atomic_compare_exchange_strong(&known, &none, md))
        return md;
    EVP_MD_free(md);
    return none;
}

void sha256(struct sv s, unsigned char out[SHA256_LEN])
{
    unsigned int n = SHA256_LEN;
    if (EVP_Digest(s.p ? s.p : "", s.n, out, &n, sha256_algorithm(), NULL) != 1)
        abort();
}

void sha256_init(struct sha256_state *s)
{
    const EVP_MD *md = s->context ? NULL : sha256_algorithm(); /* one that was used knows it */
    if (!s->context)
        s->context = EVP_MD_CTX_new();
    if (!s->context || EVP_DigestInit_ex(s->context, md, NULL) != 1)
        abort();
}

void sha256_update(struct sha256_state *s, struct sv bytes)
{
    if (bytes.n && EVP_DigestUpdate(s->context, bytes.p, bytes.n) != 1)
        abort();
}

void sha256_final(struct sha256_state *s, unsigned char out[SHA256_LEN])
{
    if (EVP_DigestFinal_ex(s->context, out, NULL) != 1)
        abort();
}

void sha256_done(struct sha256_state *s)
{
    EVP_MD_CTX_free(s->context);
    s->context = NULL;
}

void hmac_sha256(struct sv key, struct sv s, unsigned char out[SHA256_LEN])
{
    unsigned int n = SHA256_LEN;
    if (!HMAC(EVP_sha256(), key.p ? key.p : "", (int)key.n, (const unsigned char *)(s.p ? s.p : ""),
              s.n, out, &n))
        abort();
}

void hex_encode(const unsigned char *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

/* The kernel's: setting up libcrypto's own generator takes a command two milliseconds. */
void rand_bytes(void *p, size_t n)
{
    unsigned char *at = p;
    while (n) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        at += got;
        n -= (size_t)got;
    }
}

uint64_t rand_below(uint64_t n)
{
    uint64_t v, limit = UINT64_MAX - UINT64_MAX % n;
    do
        rand_bytes(&v, sizeof(v));
    while (v >= limit);
    return v % n;
}

void rand_id(char out[33])
{
    unsigned char raw[16];
    rand_bytes(raw, sizeof(raw));
    hex_encode(raw, sizeof(raw), out);
}
