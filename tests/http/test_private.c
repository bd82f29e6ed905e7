/* http: every way to write an address that is not public. The calls that would look up a name or
 * send a packet are caught here, so that nothing leaves this machine whatever the client does. */
#include "../unit/unit.h"

#include "http.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OURS __attribute__((visibility("default")))

static atomic_int connects;    /* of internet sockets */
static atomic_int to_loopback; /* of these */
static const char *answers[4]; /* what names resolve to; NULL: nothing more */

static bool is_loopback(const struct sockaddr *a)
{
    return a->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
}

/* libcurl's, and nobody else's: the C library does not call its own by name. */
OURS int connect(int fd, const struct sockaddr *a, socklen_t n)
{
    if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
        return (int)syscall(SYS_connect, fd, a, n);
    atomic_fetch_add(&connects, 1);
    if (is_loopback(a)) {
        atomic_fetch_add(&to_loopback, 1);
        return (int)syscall(SYS_connect, fd, a, n);
    }
    errno = ECONNREFUSED;
    return -1;
}

typedef int lookup_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* Addresses as ever; of names only those that a test answers. */
OURS int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                     struct addrinfo **out)
{
    lookup_fn *real = (lookup_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){0};
    numeric.ai_flags = (numeric.ai_flags & ~AI_ADDRCONFIG) | AI_NUMERICHOST;
    if (!answers[0] || !strstr(name, "rebind"))
        return real(name, service, &numeric, out);
    struct addrinfo **end = out;
    *out = NULL;
    for (size_t i = 0; i < ARRAY_LEN(answers) && answers[i]; i++) {
        if (real(answers[i], service, &numeric, end) != 0)
            return EAI_NONAME;
        end = &(*end)->ai_next;
    }
    return 0;
}

static struct loop *loop;
static struct http *http;
static int listener, port;
static struct {
    enum http_error error;
    int status;
    char address[64], message[200];
} got;

static void done(void *arg, const struct http_result *res)
{
    (void)arg;
    got.error = res->error;
    got.status = res->status;
    snprintf(got.address, sizeof(got.address), "%s", res->address);
    snprintf(got.message, sizeof(got.message), "%s", res->message);
    loop_stop(loop);
}

static bool heard_nothing(void)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* PAWL_EINPUT, or 0 and what came of it in `got`. */
static int try(const char *host, bool allow_private)
{
    char url[512];
    struct http_request req = {.url = url,
                               .timeout = allow_private ? DUR_MS(200) : DUR_S(5),
                               .allow_private = allow_private};
    snprintf(url, sizeof(url), "http://%s:%d/", host, port);
    int rc = http_start(http, &req, done, NULL, NULL, NULL);
    if (rc == 0)
        assert_int_equal(loop_run(loop, NULL), 0);
    return rc;
}

/* Must be refused for its address, in every way it is written. */
static const char *const forms[] = {
    /* loopback, dotted, short, octal, hexadecimal, as one number */
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "127.255.255.255",
    "127.0.0.0",
    "0177.0.0.1",
    "0177.1",
    "0177.0.0.01",
    "00177.0000.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0X7F.1",
    "0x7f.0x0.0x0.0x1",
    "0x7F000001",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0017700000001",
    "2130706434",
    "127.0x1",
    "127.0.0x1",
    "0177.0x0.0.1",
    "127.65535",
    "127.16777215",
    /* the same with the letters of a URL escaped */
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127.0.0.%31",
    "%30x7f.1",
    "%32130706433",
    /* names for it */
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhos%74",
    /* this network, broadcast */
    "0.0.0.0",
    "0",
    "0.0",
    "00.0.0.0",
    "0x0",
    "0x00000000",
    "0.0.0.1",
    "0.1.2.3",
    "0.255.255.255",
    "255.255.255.255",
    "0xffffffff",
    "4294967295",
    "037777777777",
    "255.255.255.254",
    /* private */
    "10.0.0.0",
    "10.0.0.1",
    "10.255.255.255",
    "10.1",
    "0xa.1",
    "012.0.0.1",
    "167772161",
    "0x0a000001",
    "172.16.0.1",
    "172.31.255.255",
    "172.16.1",
    "0xac.0x10.0.1",
    "2886729729",
    "192.168.0.1",
    "192.168.1.1",
    "192.168.255.255",
    "192.168.257",
    "0xc0a80101",
    "3232235777",
    "0300.0250.1.1",
    /* link-local, the clouds' metadata among them */
    "169.254.169.254",
    "169.254.0.1",
    "169.254.43518",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.170.2",
    "%3169.254.169.254",
    /* shared by a provider; Alibaba's metadata */
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "0x64646464",
    "1684301000",
    /* for protocols, documentation, benchmarks, 6to4 relays */
    "192.0.0.1",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "198.51.100.7",
    "203.0.113.254",
    "198.18.0.1",
    "198.19.255.255",
    "192.88.99.1",
    /* multicast, reserved */
    "224.0.0.1",
    "224.0.0.251",
    "239.255.255.250",
    "0xe0000001",
    "3758096385",
    "240.0.0.1",
    "241.1.2.3",
    "254.255.255.255",
    /* IPv6: unspecified, loopback */
    "[::]",
    "[0:0:0:0:0:0:0:0]",
    "[0000::0000]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0::1]",
    "[::0001]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0.0.0.1]",
    "[::0.0.0.0]",
    /* mapped, compatible, translated */
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:192.168.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:0.0.0.0]",
    "[::ffff:255.255.255.255]",
    "[::ffff:100.64.0.1]",
    "[::ffff:172.16.0.1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::10.0.0.1]",
    "[::8.8.8.8]",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:a00:1]",
    /* NAT64, 6to4, Teredo */
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b::c0a8:1]",
    "[64:ff9b:1::1]",
    "[64:ff9b:1:1::8.8.8.8]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2002:a00:1::1]",
    "[2002:c0a8:101::]",
    "[2002:a9fe:a9fe::1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:0:7f00:1::]",
    /* private, link-local, site-local, multicast */
    "[fc00::1]",
    "[fd00::1]",
    "[fdff:ffff::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fe80::1]",
    "[fe80::a9fe:a9fe]",
    "[febf::1]",
    "[fe80::1%25lo]",
    "[fe80::1%251]",
    "[fec0::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[ff01::1]",
    /* documentation, protocols, never given out */
    "[2001:db8::1]",
    "[2001:10::1]",
    "[2001:2::1]",
    "[2001:20::1]",
    "[2001:1::1]",
    "[3fff::1]",
    "[100::1]",
    "[4000::1]",
    "[8000::1]",
    "[1::1]",
    "[5f00::1]",
    "[e000::1]",
};

/* May be taken for a name that leads nowhere, or for no URL at all; never for a way in. */
static const char *const odd[] = {
    "127.0.0.1.",
    "localhost.",
    "localhost..",
    "127.1.",
    "0x7f.1.",
    "[::1].",
    "127.0.0.1..",
    "127..1",
    ".127.0.0.1",
    "127.0.0.1.1",
    "127.0.0.256",
    "127.0.0.0x100",
    "256.0.0.1",
    "0x7f.0.0.0x1g",
    "4294967296",
    "1e0.0.0.1",
    "+127.0.0.1",
    "-0",
    "127.0.0.1 ",
    "127.0.0.1%00",
    "127.0.0.1%20",
    "127.0.0.1%09",
    "%00127.0.0.1",
    "127.0.0.1%23",
    "127.0.0.1%2f",
    "127.0.0.1\\@h",
    "h@127.0.0.1",
    "h:p@127.0.0.1",
    "@127.0.0.1",
    "127.0.0.1#@h",
    "[127.0.0.1]",
    "[localhost]",
    "[::1%25lo]",
    "[::1%lo]",
    "[::ffff:127.1]",
    "[::ffff:0x7f.0.0.1]",
    "[::1",
    "::1",
    "[[::1]]",
    "[::1]x",
    "[%3A%3A1]",
    "%5B::1%5D",
    "[::%31]",
    "[0:0:0:0:0:0:0:0:1]",
    "[::1%25]",
    "[v1.::1]",
    "[fe80::1%25eth0]",
    "[::FFFF:127.0.0.1%25lo]",
    /* digits and dots of other scripts, which IDNA turns into plain ones */
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
    "127\xe3\x80\x82"
    "0\xe3\x80\x82"
    "0\xe3\x80\x82"
    "1",
    "127\xef\xbc\x8e"
    "0\xef\xbc\x8e"
    "0\xef\xbc\x8e"
    "1",
    "127\xef\xbd\xa1"
    "0.0.1",
    "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.\xe2\x93\xaa.\xe2\x93\xaa.\xe2\x91\xa0",
    "\xe2\x93\x9b\xe2\x93\x9e\xe2\x93\x92\xe2\x93\x90\xe2\x93\x9b\xe2\x93\x97\xe2\x93\x9e\xe2\x93"
    "\xa2\xe2"
    "\x93\xa3",
    "\xef\xbd\x8c\xef\xbd\x8f"
    "calhost",
    "local\xc2\xad"
    "host",
    "xn--127-0.0.0.1",
    "\xf0\x9d\x9f\x8f\xf0\x9d\x9f\x90\xf0\x9d\x9f\x95.0.0.1",
};

static void addresses_are_refused_however_written(void **state)
{
    (void)state;
    assert_true(ARRAY_LEN(forms) >= 120);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (try(forms[i], false) != 0)
            fail_msg("%s: no URL", forms[i]);
        if (got.error != HTTP_BLOCKED_ADDRESS || got.address[0] || got.status)
            fail_msg("%s: %s %s (%s)", forms[i], http_error_name(got.error), got.address,
                     got.message);
    }
    assert_int_equal(atomic_load(&connects), 0);
    assert_true(heard_nothing());
    print_message("# %zu forms\n", ARRAY_LEN(forms) + ARRAY_LEN(odd));
}

static void oddities_lead_nowhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        if (try(odd[i], false) == PAWL_EINPUT)
            continue;
        if (got.error != HTTP_BLOCKED_ADDRESS && got.error != HTTP_RESOLVE)
            fail_msg("%s: %s (%s)", odd[i], http_error_name(got.error), got.message);
    }
    assert_int_equal(atomic_load(&connects), 0);
    assert_true(heard_nothing());
}

/* The same test would notice a connection. */
static void they_would_be_noticed(void **state)
{
    (void)state;
    static const char *const mine[] = {"127.0.0.1", "127.1", "0x7f000001", "2130706433",
                                       "%31%32%37.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
        assert_int_equal(try(mine[i], true), 0);
        assert_int_equal(got.error, HTTP_TIMEOUT); /* nobody answers */
    }
    assert_int_equal(atomic_load(&to_loopback), ARRAY_LEN(mine));
    assert_false(heard_nothing());
}

/* S31: a name with a public address first. The public one does not answer (see above), the others
 * are not tried; nor is what the name leads to when it is looked up again. */
static void names_are_judged_by_each_address(void **state)
{
    (void)state;
    static const char *const second[] = {"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1",
                                         "fd00::1"};
    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        char host[32];
        snprintf(host, sizeof(host), "rebind-%zu.example", i);
        answers[0] = "93.184.216.34";
        answers[1] = second[i];
        int before = atomic_load(&connects);
        assert_int_equal(try(host, false), 0);
        assert_int_equal(got.error, HTTP_CONNECT);
        assert_int_equal(atomic_load(&connects), before + 1);
        http_free(http); /* and with it what it knew of the name */
        assert_int_equal(http_new(loop, NULL, &http, NULL), 0);
        answers[0] = second[i];
        answers[1] = NULL;
        assert_int_equal(try(host, false), 0);
        assert_int_equal(got.error, HTTP_BLOCKED_ADDRESS);
        assert_int_equal(atomic_load(&connects), before + 1);
    }
    answers[0] = NULL;
    assert_int_equal(atomic_load(&to_loopback), 0);
}

static int begin(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    atomic_store(&connects, 0);
    atomic_store(&to_loopback, 0);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&a, n) < 0 || listen(listener, 16) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &n) < 0)
        return -1;
    port = ntohs(a.sin_port);
    int rc = loop_new(&loop, NULL);
    return rc ? rc : http_new(loop, NULL, &http, NULL);
}

static int end(void **state)
{
    (void)state;
    http_free(http);
    loop_free(loop);
    return close(listener);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(addresses_are_refused_however_written),
        TEST(oddities_lead_nowhere),
        TEST(they_would_be_noticed),
        TEST(names_are_judged_by_each_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
