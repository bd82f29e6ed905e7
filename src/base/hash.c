#include "hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

void sha256(struct sv s, unsigned char out[SHA256_LEN])
{
    unsigned int n = SHA256_LEN;
    if (EVP_Digest(s.p ? s.p : "", s.n, out, &n, EVP_sha256(), NULL) != 1)
        abort();
}

void sha256_init(struct sha256_state *s)
{
    /* A context that has been used knows its algorithm: looking it up again costs more than the
     * hash of a small body. */
    const EVP_MD *md = s->context ? NULL : EVP_sha256();
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

void rand_bytes(void *p, size_t n)
{
    if (RAND_bytes(p, (int)n) != 1)
        abort();
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
