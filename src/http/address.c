/* The registries of special-purpose addresses (RFC 6890 and its successors) as prefixes. IPv6 is
 * the other way round: only 2000::/3 is given out for the public, so everything outside it that no
 * row names is refused as well. S30 */
#include "address.h"

#include "mem.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const struct block4 {
    uint8_t prefix[4];
    unsigned bits;
    const char *what;
} blocks4[] = {
    {{0, 0, 0, 0}, 8, "this network"},
    {{10, 0, 0, 0}, 8, "private"},
    {{100, 64, 0, 0}, 10, "shared by a provider"},
    {{127, 0, 0, 0}, 8, "loopback"},
    {{169, 254, 0, 0}, 16, "link-local"},
    {{172, 16, 0, 0}, 12, "private"},
    {{192, 0, 0, 0}, 24, "for protocols"},
    {{192, 0, 2, 0}, 24, "for documentation"},
    {{192, 88, 99, 0}, 24, "a 6to4 relay"},
    {{192, 168, 0, 0}, 16, "private"},
    {{198, 18, 0, 0}, 15, "for benchmarks"},
    {{198, 51, 100, 0}, 24, "for documentation"},
    {{203, 0, 113, 0}, 24, "for documentation"},
    {{224, 0, 0, 0}, 4, "multicast"},
    {{255, 255, 255, 255}, 32, "broadcast"},
    {{240, 0, 0, 0}, 4, "reserved"},
};

/* The first row that matches decides. `v4` ≥ 0: an IPv4 address from that byte on is inside. */
static const struct block6 {
    uint8_t prefix[16];
    unsigned bits;
    int v4;
    const char *what;
} blocks6[] = {
    {{0}, 128, -1, "unspecified"},
    {{[15] = 1}, 128, -1, "loopback"},
    {{[10] = 0xff, [11] = 0xff}, 96, 12, NULL}, /* mapped */
    {{[8] = 0xff, [9] = 0xff}, 96, 12, NULL},   /* translated, RFC 2765 */
    {{0}, 96, -1, "IPv4-compatible"},           /* nothing public was ever there */
    {{0, 0x64, 0xff, 0x9b}, 96, 12, NULL},      /* NAT64 */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, -1, "a local NAT64"},
    {{0x20, 0x02}, 16, 2, NULL}, /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, -1, "Teredo"},
    {{0x20, 0x01, 0, 0}, 23, -1, "for protocols"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, -1, "for documentation"},
    {{0x3f, 0xff, 0, 0}, 20, -1, "for documentation"},
    {{0xfc}, 7, -1, "private"},
    {{0xfe, 0x80}, 10, -1, "link-local"},
    {{0xfe, 0xc0}, 10, -1, "site-local"},
    {{0xff}, 8, -1, "multicast"},
};
static const uint8_t global6[1] = {0x20};

static bool within(const uint8_t *a, const uint8_t *prefix, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, prefix, whole) != 0)
        return false;
    return !rest || ((a[whole] ^ prefix[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

static const char *special4(const uint8_t *a)
{
    for (size_t i = 0; i < ARRAY_LEN(blocks4); i++)
        if (within(a, blocks4[i].prefix, blocks4[i].bits))
            return blocks4[i].what;
    return NULL;
}

static const char *special6(const uint8_t *a)
{
    for (size_t i = 0; i < ARRAY_LEN(blocks6); i++) {
        const struct block6 *b = &blocks6[i];
        if (within(a, b->prefix, b->bits))
            return b->v4 < 0 ? b->what : special4(a + b->v4);
    }
    return within(a, global6, 3) ? NULL : "not global unicast";
}

const char *address_special(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, a, sizeof(in)); /* callers' storage need not be aligned */
        return special4((const uint8_t *)&in.sin_addr);
    }
    if (a->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, a, sizeof(in6));
        return special6(in6.sin6_addr.s6_addr);
    }
    return "not an internet address";
}
