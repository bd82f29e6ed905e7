/* http: which addresses are public, by every way of writing them that the resolver takes (S30). */
#include "../unit/unit.h"

#include "address.h"
#include "mem.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

static const char *const special[] = {
    /* loopback, as names of hosts may be written */
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "127.0x1",
    "0177.1",
    "0x7f.0.1",
    "00000177.0.0.1",
    "0X7F.0.0.1",
    "2130706434",
    "127.65535",
    /* this network */
    "0.0.0.0",
    "0",
    "0.0.0.1",
    "0x0",
    "00",
    "0.255.255.255",
    "16777215",
    "0.1",
    /* private */
    "10.0.0.0",
    "10.0.0.1",
    "10.1",
    "10.255.255.255",
    "0xa.1",
    "012.0.0.1",
    "167772161",
    "0x0a000001",
    "01200000001",
    "172.16.0.0",
    "172.16.0.1",
    "172.31.255.255",
    "172.1048577",
    "0xac.0x10.0.1",
    "0254.020.0.1",
    "2886729729",
    "192.168.0.0",
    "192.168.0.1",
    "192.168.255.255",
    "192.168.1",
    "192.11010049",
    "0xc0.0xa8.0.1",
    "0300.0250.0.1",
    "3232235521",
    "0xc0a80001",
    "030052000001",
    /* link-local, with the address clouds keep secrets behind */
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "169.254.43518",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "0xa9.0xfe.0xa9.0xfe",
    "025177524776",
    /* others */
    "100.64.0.0",
    "100.64.0.1",
    "100.127.255.255",
    "0x64.0x40.0.1",
    "192.0.0.0",
    "192.0.0.1",
    "192.0.0.255",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.9",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "224.0.0.1",
    "239.255.255.250",
    "3758096385",
    "240.0.0.1",
    "255.255.255.254",
    "255.255.255.255",
    "4294967295",
    "0xffffffff",
    "037777777777",
    /* IPv6 */
    "::",
    "::0",
    "0:0:0:0:0:0:0:0",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::0001",
    "fc00::",
    "fc00::1",
    "fd00::1",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe80::",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff00::",
    "ff02::1",
    "ff0e::1",
    "2001:db8::1",
    "3fff::1",
    "3fff:fff::1",
    "100::1",
    "100:0:0:1::1",
    "4000::1",
    "5f00::1",
    "8000::1",
    "1::",
    "200::1",
    /* IPv6 around IPv4 */
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a00:1",
    "::ffff:169.254.169.254",
    "::ffff:192.168.0.1",
    "::ffff:0.0.0.0",
    "::ffff:100.64.0.1",
    "0:0:0:0:0:ffff:7f00:0001",
    "::127.0.0.1",
    "::7f00:1",
    "::10.0.0.1",
    "::8.8.8.8",
    "::2",
    "64:ff9b::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.1.2.3",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "64:ff9b:1::8.8.8.8",
    "2002:7f00:1::",
    "2002:7f00:0001::1",
    "2002:a00:1::1",
    "2002:c0a8:1::1",
    "2002:a9fe:a9fe::",
    "2002:0:0::",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:1ff::1",
};
static const char *const open[] = {
    "1.1.1.1",
    "8.8.8.8",
    "0x8.8.8.8",
    "134744072",
    "01002004010",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2003::1",
    "3ffe::1",
    "3fff:1000::1",
    "2001:db7::1",
    "2001:db9::1",
    "::ffff:8.8.8.8",
    "::ffff:808:808",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
    "2a00:1450::1",
};

static const char *judge(const char *text)
{
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    int e = getaddrinfo(text, NULL, &hints, &found);
    if (e)
        fail_msg("%s: %s", text, gai_strerror(e));
    const char *what = address_special(found->ai_addr);
    freeaddrinfo(found);
    return what;
}

static void special_addresses_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (!judge(special[i]))
            fail_msg("%s counts as public", special[i]);
    assert_true(ARRAY_LEN(special) >= 120);
}

static void public_addresses_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        if (judge(open[i]))
            fail_msg("%s counts as special: %s", open[i], judge(open[i]));
}

/* The first and last address of each block, and their neighbours outside. */
static void blocks_end_where_they_should(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, last;
    } blocks[] = {
        {0x00000000, 0x00ffffff}, {0x0a000000, 0x0affffff}, {0x64400000, 0x647fffff},
        {0x7f000000, 0x7fffffff}, {0xa9fe0000, 0xa9feffff}, {0xac100000, 0xac1fffff},
        {0xc0000000, 0xc00000ff}, {0xc0000200, 0xc00002ff}, {0xc0586300, 0xc05863ff},
        {0xc0a80000, 0xc0a8ffff}, {0xc6120000, 0xc613ffff}, {0xc6336400, 0xc63364ff},
        {0xcb007100, 0xcb0071ff}, {0xe0000000, 0xffffffff},
    };
    struct sockaddr_in a = {.sin_family = AF_INET};
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        uint32_t inside[] = {blocks[i].first, blocks[i].last};
        uint32_t outside[] = {blocks[i].first - 1, blocks[i].last + 1};
        for (int k = 0; k < 2; k++) {
            a.sin_addr.s_addr = htonl(inside[k]);
            assert_non_null(address_special((struct sockaddr *)&a));
            a.sin_addr.s_addr = htonl(outside[k]);
            bool wraps = outside[k] == 0xffffffff || outside[k] == 0;
            if (!wraps)
                assert_null(address_special((struct sockaddr *)&a));
        }
    }
}

static void other_families_are_never_public(void **state)
{
    (void)state;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_storage none = {.ss_family = AF_UNSPEC};
    assert_non_null(address_special((struct sockaddr *)&un));
    assert_non_null(address_special((struct sockaddr *)&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_addresses_are_known),
        cmocka_unit_test(public_addresses_pass),
        cmocka_unit_test(blocks_end_where_they_should),
        cmocka_unit_test(other_families_are_never_public),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
