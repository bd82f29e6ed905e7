/* Two hashes that end alike, side by side. The processor's instructions for SHA-256 take longer to
 * answer than to be given again, so two hashes in turns need a third less time than one after the
 * other; libcrypto has no such function. FIPS 180-4; without those instructions libcrypto does it.
 */
#include "hash.h"

static void one_by_one(struct sv head, struct sv body, unsigned char of_body[SHA256_LEN],
                       unsigned char of_both[SHA256_LEN])
{
    struct sha256_state s = {0};
    sha256(body, of_body);
    sha256_init(&s);
    sha256_update(&s, head);
    sha256_update(&s, body);
    sha256_final(&s, of_both);
    sha256_done(&s);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

enum { BLOCK = 64, LENGTH_AT = BLOCK - 8 };
#define USES_SHA __attribute__((target("sha,sse4.1")))
#define LOAD(p)  _mm_loadu_si128((const __m128i *)(const void *)(p))

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The state as the instructions want it: words A B E F and C D G H, the first one highest. */
struct state {
    __m128i abef, cdgh;
};

USES_SHA static struct state begin(void)
{
    return (struct state){
        .abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c),
        .cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19)};
}

USES_SHA static inline __m128i big_endian(__m128i x)
{
    return _mm_shuffle_epi8(x, _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

/* Four of the 64 rounds, the first of them 4 × at; m are the next 16 words of the message. */
USES_SHA static inline __attribute__((always_inline)) void four_rounds(struct state *s,
                                                                       __m128i m[4], int at)
{
    __m128i *now = &m[at % 4], last = m[(at + 3) % 4];
    __m128i w = _mm_add_epi32(*now, LOAD(constants + 4 * at));
    s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, w);
    s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(w, 0x0e));
    if (at < 12) { /* those 16 words on */
        __m128i early = _mm_sha256msg1_epu32(*now, m[(at + 1) % 4]);
        __m128i middle = _mm_alignr_epi8(last, m[(at + 2) % 4], 4);
        *now = _mm_sha256msg2_epu32(_mm_add_epi32(early, middle), last);
    }
}

/* n blocks of each message, in turns. */
USES_SHA static inline __attribute__((always_inline)) void
compress(struct state *const s[], const char *p[], size_t n, const int messages)
{
    for (; n; n--) {
        struct state before[2];
        __m128i m[2][4];
        for (int k = 0; k < messages; k++) {
            before[k] = *s[k];
            for (int i = 0; i < 4; i++)
                m[k][i] = big_endian(LOAD(p[k] + 16 * i));
            p[k] += BLOCK;
        }
#pragma GCC unroll 16
        for (int at = 0; at < 16; at++)
            for (int k = 0; k < messages; k++)
                four_rounds(s[k], m[k], at);
        for (int k = 0; k < messages; k++) {
            s[k]->abef = _mm_add_epi32(s[k]->abef, before[k].abef);
            s[k]->cdgh = _mm_add_epi32(s[k]->cdgh, before[k].cdgh);
        }
    }
}

USES_SHA static const char *compress_one(struct state *s, const char *p, size_t n)
{
    struct state local = *s;
    compress((struct state *const[]){&local}, &p, n, 1);
    *s = local;
    return p;
}

USES_SHA static void compress_two(struct state *a, const char *p, struct state *b, const char *q,
                                  size_t n)
{
    struct state x = *a, y = *b;
    compress((struct state *const[]){&x, &y}, (const char *[]){p, q}, n, 2);
    *a = x;
    *b = y;
}

/* The end of a message: less than a block of it, and the length of all. */
USES_SHA static void finish(struct state *s, struct sv rest, size_t length,
                            unsigned char out[SHA256_LEN])
{
    char last[2 * BLOCK] = {0};
    size_t blocks = rest.n < LENGTH_AT ? 1 : 2;
    uint64_t bits = __builtin_bswap64((uint64_t)length * 8);
    if (rest.n)
        memcpy(last, rest.p, rest.n);
    last[rest.n] = (char)0x80;
    memcpy(last + (blocks - 1) * BLOCK + LENGTH_AT, &bits, sizeof(bits));
    compress_one(s, last, blocks);
    __m128i abcd = _mm_unpackhi_epi64(s->cdgh, s->abef);
    __m128i efgh = _mm_unpacklo_epi64(s->cdgh, s->abef);
    abcd = big_endian(_mm_shuffle_epi32(abcd, 0x1b));
    efgh = big_endian(_mm_shuffle_epi32(efgh, 0x1b));
    _mm_storeu_si128((__m128i *)(void *)out, abcd);
    _mm_storeu_si128((__m128i *)(void *)(out + 16), efgh);
}

/* The head, and of the body what its last block has room for: so many bytes. */
USES_SHA static size_t take_head(struct state *s, struct sv head, struct sv body)
{
    char seam[BLOCK];
    const char *p = compress_one(s, head.p, head.n / BLOCK);
    size_t over = head.n % BLOCK;
    if (!over)
        return 0;
    memcpy(seam, p, over);
    memcpy(seam + over, body.p, BLOCK - over);
    compress_one(s, seam, 1);
    return BLOCK - over;
}

/* The body has at least a block. */
USES_SHA static void in_turns(struct sv head, struct sv body, unsigned char of_body[SHA256_LEN],
                              unsigned char of_both[SHA256_LEN])
{
    struct state a = begin(), b = begin();
    size_t ahead = take_head(&b, head, body), n = (body.n - ahead) / BLOCK;
    size_t more = body.n / BLOCK - n, whole = body.n - body.n % BLOCK, end = ahead + n * BLOCK;
    compress_two(&a, body.p, &b, body.p + ahead, n);
    compress_one(&a, body.p + n * BLOCK, more);
    finish(&a, sv_make(body.p + whole, body.n - whole), body.n, of_body);
    finish(&b, sv_make(body.p + end, body.n - end), head.n + body.n, of_both);
}

/* Asking takes a virtual machine a microsecond: once is enough. */
static bool can_in_turns(void)
{
    static _Atomic int known; /* 0: not asked yet, 1: no, 2: yes */
    unsigned a, b = 0, c, d;
    int can = atomic_load_explicit(&known, memory_order_relaxed);
    if (!can) {
        bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
        can = sha && __builtin_cpu_supports("sse4.1") ? 2 : 1;
        atomic_store_explicit(&known, can, memory_order_relaxed);
    }
    return can == 2;
}

void sha256_pair(struct sv head, struct sv body, unsigned char of_body[SHA256_LEN],
                 unsigned char of_both[SHA256_LEN])
{
    if (body.n >= BLOCK && can_in_turns())
        in_turns(head, body, of_body, of_both);
    else
        one_by_one(head, body, of_body, of_both);
}

#else

void sha256_pair(struct sv head, struct sv body, unsigned char of_body[SHA256_LEN],
                 unsigned char of_both[SHA256_LEN])
{
    one_by_one(head, body, of_body, of_both);
}

#endif
