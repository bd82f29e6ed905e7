/* By carry-less multiplication where the processor has it: 64 bytes at a time are folded into the
 * next 64, and what is left is reduced at the end (V. Gopal and others, "Fast CRC computation for
 * generic polynomials using PCLMULQDQ instruction", Intel 2009). zlib's own sum is a tenth as fast,
 * and was a fifth of what verifying a packed lake takes. */
#include "crc32.h"

#include <zlib.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

enum { FOLD = 64, LANE = 16 };
#define FOLDS            __attribute__((target("pclmul,sse4.1")))
#define MUL(a, b, which) _mm_clmulepi64_si128(a, b, which)
#define LOAD(p)          _mm_loadu_si128((const __m128i *)(const void *)(p))

/* x moved on by as many bits as the constants say, and added to what is there. */
FOLDS static inline __m128i fold(__m128i x, __m128i by, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(MUL(x, by, 0x00), MUL(x, by, 0x11)), next);
}

/* 128 bits to 32: to 96, to 64, and Barrett's reduction. The names of constants are the paper's. */
FOLDS static uint32_t reduce(__m128i x, __m128i k3k4)
{
    const __m128i k5 = _mm_set_epi64x(0, 0x163cd6124), mask = _mm_setr_epi32(~0, 0, ~0, 0);
    const __m128i poly = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), MUL(x, k3k4, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4), MUL(_mm_and_si128(x, mask), k5, 0x00));
    __m128i y = _mm_and_si128(MUL(_mm_and_si128(x, mask), poly, 0x10), mask);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, MUL(y, poly, 0x00)), 1);
}

/* n is at least FOLD and a multiple of LANE. */
FOLDS static uint32_t fold_all(uint32_t crc, const char *p, size_t n)
{
    const __m128i k1k2 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i k3k4 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i x[FOLD / LANE];
    for (int i = 0; i < FOLD / LANE; i++)
        x[i] = LOAD(p + i * LANE);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (p += FOLD, n -= FOLD; n >= FOLD; p += FOLD, n -= FOLD)
        for (int i = 0; i < FOLD / LANE; i++)
            x[i] = fold(x[i], k1k2, LOAD(p + i * LANE));
    for (int i = 1; i < FOLD / LANE; i++)
        x[0] = fold(x[0], k3k4, x[i]);
    for (; n; p += LANE, n -= LANE)
        x[0] = fold(x[0], k3k4, LOAD(p));
    return reduce(x[0], k3k4);
}

static size_t fast_part(size_t n)
{
    bool can = n >= FOLD && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return can ? n - n % LANE : 0;
}

#else

static size_t fast_part(size_t n)
{
    (void)n;
    return 0;
}

static uint32_t fold_all(uint32_t crc, const char *p, size_t n)
{
    (void)p;
    (void)n;
    return crc;
}

#endif

uint32_t crc32_add(uint32_t crc, struct sv bytes)
{
    size_t n = fast_part(bytes.n);
    if (n)
        crc = ~fold_all(~crc, bytes.p, n);
    if (n == bytes.n)
        return crc;
    return (uint32_t)crc32_z(crc, (const unsigned char *)bytes.p + n, bytes.n - n);
}
