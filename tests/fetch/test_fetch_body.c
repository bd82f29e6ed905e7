/* fetch: bodies. Codings, bounds, texts that are not wanted, a lake that is full. */
#include "rig.h"

#include "hash.h"
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

static const char *const plain[] = {"fetch.robots=false", "fetch.max_body=1MiB"};

static int begin(void **state)
{
    (void)state;
    rig_begin(plain, ARRAY_LEN(plain));
    return 0;
}

enum { RAW = -15, ZLIB = 15, GZIP = 31 };

static void squeeze(struct str *out, struct sv bytes, int bits)
{
    z_stream z = {0};
    *out = STR_INIT(STR_OUTPUT);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    unsigned char chunk[4096];
    z.next_in = (unsigned char *)(uintptr_t)bytes.p;
    z.avail_in = (unsigned)bytes.n;
    do {
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        deflate(&z, Z_FINISH);
        str_add(out, sv_make((char *)chunk, sizeof(chunk) - z.avail_out));
    } while (z.avail_out == 0);
    deflateEnd(&z);
}

static const struct ended *coded(const char *coding, struct sv wire, const char *more)
{
    char head[128];
    snprintf(head, sizeof(head), "Content-Type: text/html\r\n%s%s%s",
             coding ? "Content-Encoding: " : "", coding ? coding : "", coding ? "\r\n" : "");
    page_body("/z", "200 OK", head, wire);
    return get("/z", more);
}

static void check_sums(const struct ended *e, struct sv wire, struct sv body)
{
    unsigned char sum[SHA256_LEN];
    assert_true(e->f.hashed);
    assert_int_equal(e->f.wire_bytes, wire.n);
    assert_int_equal(e->f.body_bytes, body.n);
    sha256(wire, sum);
    assert_memory_equal(e->f.wire_sha256, sum, SHA256_LEN);
    sha256(body, sum);
    assert_memory_equal(e->f.body_sha256, sum, SHA256_LEN);
}

static void codings_are_undone(void **state)
{
    (void)state;
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT), once, twice, two, pad;
    for (int i = 0; i < 60000; i++)
        str_addf(&text, "%d ", i * 7919 % 1000);
    static const struct {
        const char *coding;
        int bits;
    } cases[] = {{"gzip", GZIP},   {"x-gzip", GZIP},         {"GZIP", GZIP},    {"deflate", ZLIB},
                 {"deflate", RAW}, {"identity, gzip", GZIP}, {" , gzip,", GZIP}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        squeeze(&once, str_sv(&text), cases[i].bits);
        const struct ended *e = coded(cases[i].coding, str_sv(&once), NULL);
        check(e, RUN_DONE, CLASS_NONE, "");
        assert_true(sv_eq(str_sv(&rig.kept.bytes), str_sv(&text)));
        check_sums(e, str_sv(&once), str_sv(&text));
        str_done(&once);
    }
    squeeze(&once, str_sv(&text), RAW);
    squeeze(&twice, str_sv(&once), GZIP);
    const struct ended *e = coded("deflate, gzip", str_sv(&twice), NULL);
    check(e, RUN_DONE, CLASS_NONE, "");
    check_sums(e, str_sv(&twice), str_sv(&text));
    assert_string_equal(e->encoding, "deflate, gzip");
    /* several members, and padding after the last */
    AUTO_STR struct str one;
    squeeze(&one, str_sv(&text), GZIP);
    two = STR_INIT(STR_OUTPUT);
    pad = STR_INIT(STR_OUTPUT);
    for (int i = 0; i < 2; i++) {
        str_add(&two, str_sv(&one));
        str_add(&pad, str_sv(&one));
    }
    for (int i = 0; i < 100; i++)
        str_addc(&pad, '\0');
    check(coded("gzip", str_sv(&two), NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(rig.kept.bytes.len, 2 * text.len);
    check(coded("gzip", str_sv(&pad), NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(rig.kept.bytes.len, 2 * text.len);
}

static void unknown_codings_are_left_alone(void **state)
{
    (void)state;
    AUTO_STR struct str wire;
    squeeze(&wire, SV("hello hello hello"), GZIP);
    static const char *const codings[] = {"br", "gzip, br", "gzip, gzip, gzip, gzip, gzip"};
    for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
        const struct ended *e = coded(codings[i], str_sv(&wire), NULL);
        check(e, RUN_DONE, CLASS_NONE, "");
        check_sums(e, str_sv(&wire), str_sv(&wire));
        assert_string_equal(e->encoding, codings[i]);
        assert_true(sv_eq(str_sv(&rig.kept.bytes), str_sv(&wire)));
    }
}

static void bytes_may_be_kept_as_they_came(void **state)
{
    (void)state;
    static const char *const flags[] = {"fetch.robots=false", "fetch.keep=wire"};
    AUTO_STR struct str wire;
    rig_end();
    rig_begin(flags, 2);
    squeeze(&wire, SV("hello hello hello"), GZIP);
    const struct ended *e = coded("gzip", str_sv(&wire), NULL);
    check(e, RUN_DONE, CLASS_NONE, "");
    check_sums(e, str_sv(&wire), SV("hello hello hello"));
    assert_true(sv_eq(str_sv(&rig.kept.bytes), str_sv(&wire)));
    check(coded("gzip", str_sv(&wire), ",\"reject\":[\"lo he\"]"), RUN_FAILED, CLASS_TRANSIENT,
          "blocked");
}

static void bad_codings_are_errors(void **state)
{
    (void)state;
    AUTO_STR struct str wire;
    squeeze(&wire, SV("hello hello hello hello hello hello"), GZIP);
    check(coded("gzip", SV("plain text"), NULL), RUN_FAILED, CLASS_ERROR, "is not gzip");
    check(coded("deflate", SV("\xff\xff\xff\xff\xff"), NULL), RUN_FAILED, CLASS_ERROR, "deflate");
    for (size_t n = 1; n < wire.len; n++)
        check(coded("gzip", sv_make(wire.p, n), NULL), RUN_FAILED, CLASS_TRANSIENT, "cut short");
    wire.p[wire.len - 6] = (char)(wire.p[wire.len - 6] ^ 1); /* its checksum */
    check(coded("gzip", str_sv(&wire), NULL), RUN_FAILED, CLASS_ERROR, "is not gzip");
    check(coded("deflate", SV("x"), NULL), RUN_FAILED, CLASS_TRANSIENT, "cut short");
    check(coded("gzip", SV(""), NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(rig.keeps, 1);
}

/* A second member has to be as good as the first; what is none is padding. */
static void further_members_have_to_be_whole(void **state)
{
    (void)state;
    AUTO_STR struct str one, two = STR_INIT(STR_OUTPUT);
    squeeze(&one, SV("hello hello hello hello"), GZIP);
    for (size_t n = 1; n < one.len; n++) {
        str_clear(&two);
        str_add(&two, str_sv(&one));
        str_add(&two, sv_make(one.p, n));
        check(coded("gzip", str_sv(&two), NULL), RUN_FAILED, CLASS_TRANSIENT, "cut short");
    }
    for (size_t at_ = 2; at_ < one.len; at_ += one.len - 5) { /* its method, its checksum */
        str_clear(&two);
        str_add(&two, str_sv(&one));
        str_add(&two, str_sv(&one));
        two.p[one.len + at_] = (char)(two.p[one.len + at_] ^ 1);
        check(coded("gzip", str_sv(&two), NULL), RUN_FAILED, CLASS_ERROR, "is not gzip");
    }
    assert_int_equal(rig.keeps, 0);
    static const char *const paddings[] = {"\n", "\x1f\x1f\x8b", "trailing words"};
    for (size_t i = 0; i < ARRAY_LEN(paddings); i++) {
        str_clear(&two);
        str_add(&two, str_sv(&one));
        str_adds(&two, paddings[i]);
        check(coded("gzip", str_sv(&two), NULL), RUN_DONE, CLASS_NONE, "");
        assert_string_equal(str_cstr(&rig.kept.bytes), "hello hello hello hello");
    }
}

/* A list over several lines is one list. */
static void codings_may_stand_on_several_lines(void **state)
{
    (void)state;
    AUTO_STR struct str once, twice;
    squeeze(&once, SV("hello hello hello"), RAW);
    squeeze(&twice, str_sv(&once), GZIP);
    const struct ended *e = coded("deflate\r\nContent-Encoding: gzip", str_sv(&twice), NULL);
    check(e, RUN_DONE, CLASS_NONE, "");
    check_sums(e, str_sv(&twice), SV("hello hello hello"));
    assert_string_equal(e->encoding, "deflate, gzip");
}

/* Part of a page is not the page, unless it was asked for. */
static void parts_are_not_content(void **state)
{
    (void)state;
    page_body("/part", "206 Partial Content", "Content-Range: bytes 0-4/10\r\n", SV("hello"));
    check(get("/part", NULL), RUN_FAILED, CLASS_ERROR, "HTTP 206: only a part of it");
    check(get("/part", ",\"accept\":[404]"), RUN_FAILED, CLASS_ERROR, "HTTP 206");
    assert_int_equal(rig.keeps, 0);
    check(get("/part", ",\"headers\":{\"Range\":\"bytes=0-4\"}"), RUN_DONE, CLASS_NONE, "");
    check(get("/part", ",\"accept\":[206]"), RUN_DONE, CLASS_NONE, "");
}

static void lengths_agree_or_it_is_broken(void **state)
{
    (void)state;
    page_then("/l", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello w",
              THEN_CLOSE);
    check(get("/l", NULL), RUN_FAILED, CLASS_TRANSIENT, "two different lengths");
    page_then("/l", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length:  5\r\n\r\nhello",
              THEN_CLOSE);
    check(get("/l", NULL), RUN_DONE, CLASS_NONE, "");
    assert_string_equal(str_cstr(&rig.kept.bytes), "hello");
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void bombs_end_at_the_limit(void **state)
{
    (void)state;
    AUTO_STR struct str zeros = STR_INIT(STR_OUTPUT), bomb, inner, nested, empty, many;
    for (int i = 0; i < 1 << 25; i++)
        str_addc(&zeros, '\0');
    squeeze(&bomb, str_sv(&zeros), GZIP);
    squeeze(&inner, str_sv(&bomb), GZIP);
    assert_true(bomb.len < 40000 && inner.len < 4000);
    long before = peak_kib();
    const struct ended *e = coded("gzip", str_sv(&bomb), NULL);
    check(e, RUN_FAILED, CLASS_FATAL, "the body is larger than 1048576 bytes");
    assert_false(e->f.hashed || e->f.kept);
    check(coded("gzip, gzip", str_sv(&inner), NULL), RUN_FAILED, CLASS_FATAL, "larger than");
    /* one that decodes to empty members, thousands of them, inside another */
    squeeze(&empty, SV(""), GZIP);
    many = STR_INIT(STR_OUTPUT);
    while (many.len < 3 << 20)
        str_add(&many, str_sv(&empty));
    squeeze(&nested, str_sv(&many), GZIP);
    check(coded("gzip, gzip", str_sv(&nested), NULL), RUN_FAILED, CLASS_FATAL, "larger than");
    check(coded("gzip", str_sv(&many), NULL), RUN_FAILED, CLASS_FATAL, "larger than");
    assert_true(peak_kib() - before < 64 << 10); /* the sanitizer's own included */
    assert_int_equal(rig.keeps, 0);
}

static void bodies_are_bounded(void **state)
{
    (void)state;
    AUTO_STR struct str big = STR_INIT(STR_OUTPUT);
    while (big.len < 1 << 20)
        str_adds(&big, "0123456789abcdef");
    check(coded(NULL, str_sv(&big), NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(rig.kept.bytes.len, 1 << 20);
    str_addc(&big, 'x');
    check(coded(NULL, str_sv(&big), NULL), RUN_FAILED, CLASS_FATAL, "larger than 1048576");
    check(coded(NULL, SV("0123456789"), ",\"max_body\":10"), RUN_DONE, CLASS_NONE, "");
    check(coded(NULL, SV("0123456789x"), ",\"max_body\":10"), RUN_FAILED, CLASS_FATAL,
          "larger than 10 bytes");
}

/* The text at every place, so that it also goes across every boundary of pieces. */
static void blocked_pages_are_not_content(void **state)
{
    (void)state;
    AUTO_STR struct str body = STR_INIT(STR_OUTPUT), wire;
    for (int i = 0; i < 40000; i++)
        str_addc(&body, '.');
    static const int places[] = {0, 1, 16370, 16375, 16380, 16383, 16384, 32765, 39990};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        memcpy(body.p + places[i], "are robot?", 10);
        squeeze(&wire, str_sv(&body), GZIP); /* decoded in chunks of 16 KiB */
        const struct ended *e =
            coded("gzip", str_sv(&wire), ",\"reject\":[\"captcha\",\"robot?\",\"x\"]");
        check(e, RUN_FAILED, CLASS_TRANSIENT, "blocked: the body holds \"robot?\"");
        assert_true(e->r.throttled);
        str_done(&wire);
        memset(body.p + places[i], '.', 10);
    }
    assert_int_equal(rig.keeps, 0);
    check(coded(NULL, str_sv(&body), ",\"reject\":[\"robot?\"]"), RUN_DONE, CLASS_NONE, "");
    check(coded(NULL, SV("a b c"), ",\"reject\":[\"b\"]"), RUN_FAILED, CLASS_TRANSIENT, "blocked");
}

static void a_full_lake_costs_nothing(void **state)
{
    (void)state;
    rig.full_at = 1;
    const struct ended *e = coded(NULL, SV("hello"), NULL);
    check(e, RUN_RELEASED, CLASS_NONE, "the lake takes nothing now");
    assert_true(e->r.unfit);
    rig.full_at = 0;
    rig.keep_rc = PAWL_EFULL;
    e = coded(NULL, SV("hello"), NULL);
    check(e, RUN_RELEASED, CLASS_NONE, "the lake takes nothing now");
    assert_true(e->r.unfit);
    rig.keep_rc = PAWL_EIO;
    e = coded(NULL, SV("hello"), NULL);
    check(e, RUN_FAILED, CLASS_ERROR, "cannot keep the body");
    assert_false(e->f.kept || e->r.unfit);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(codings_are_undone),
        TEST(unknown_codings_are_left_alone),
        TEST(bytes_may_be_kept_as_they_came),
        TEST(bad_codings_are_errors),
        TEST(further_members_have_to_be_whole),
        TEST(codings_may_stand_on_several_lines),
        TEST(parts_are_not_content),
        TEST(lengths_agree_or_it_is_broken),
        TEST(bombs_end_at_the_limit),
        TEST(bodies_are_bounded),
        TEST(blocked_pages_are_not_content),
        TEST(a_full_lake_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
