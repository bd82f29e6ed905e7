/* Members of gzip: what goes in comes out, stored or squeezed, at every edge of a block and however
 * it is cut into pieces; what is damaged is told. */
#include "unit.h"

#include "crc32.h"
#include "gzip.h"
#include "mem.h"

enum { MOST = 200000 };

static int to_str(void *arg, struct sv bytes, struct pawl_err *err)
{
    (void)err;
    str_add(arg, bytes);
    return 0;
}

static char *bytes_of(size_t n)
{
    char *p = mem_alloc(n + 1);
    unsigned x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1103515245 + 12345;
        p[i] = (char)(x >> 16 & 15);
    }
    return p;
}

static void write_member(struct gzip_out *g, struct sv all, size_t piece, bool squeeze)
{
    struct pawl_err e;
    gzip_begin(g, (int64_t)all.n, squeeze);
    for (size_t at = 0; at < all.n; at += piece) {
        size_t n = all.n - at < piece ? all.n - at : piece;
        assert_int_equal(gzip_write(g, sv_make(all.p + at, n), &e), 0);
    }
    assert_int_equal(gzip_end(g, &e), 0);
}

/* One member off the front. */
static enum inflate_end read_member(struct inflater *z, struct sv *in, size_t piece,
                                    struct str *out)
{
    enum inflate_end end = INFLATE_MORE;
    char chunk[1000];
    size_t made = 0;
    while (end == INFLATE_MORE && (in->n || made)) {
        struct sv some = sv_make(in->p, in->n < piece ? in->n : piece);
        size_t given = some.n;
        end = inflater_run(z, &some, chunk, sizeof(chunk), &made);
        *in = sv_make(in->p + (given - some.n), in->n - (given - some.n));
        str_add(out, sv_make(chunk, made));
    }
    return end;
}

static void members_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 999, 65534, 65535, 65536, 131070, 131071, MOST};
    AUTO_FREE char *p = bytes_of(MOST);
    AUTO_STR struct str all = STR_INIT(64 << 20);
    struct gzip_out *g = gzip_out_new(3, to_str, &all);
    for (int squeeze = 0; squeeze < 2; squeeze++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            write_member(g, sv_make(p, sizes[i]), i % 2 ? 777 : MOST, squeeze);
    struct inflater *z = inflater_new(INFLATE_GZIP);
    struct sv in = str_sv(&all);
    for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++) {
        AUTO_STR struct str out = STR_INIT(1 << 20);
        size_t n = sizes[i % ARRAY_LEN(sizes)];
        inflater_reset(z);
        assert_int_equal(read_member(z, &in, i % 3 ? 5000 : SIZE_MAX, &out), INFLATE_OVER);
        assert_int_equal(out.len, n);
        assert_true(!n || !memcmp(out.p, p, n));
        assert_int_equal(inflater_given(z), n);
    }
    assert_int_equal(in.n, 0);
    inflater_free(z);
    gzip_out_free(g);
}

/* Bit by bit, as RFC 1952 has it. */
static uint32_t slow_crc(struct sv bytes)
{
    uint32_t crc = ~0U;
    for (size_t i = 0; i < bytes.n; i++) {
        crc ^= (unsigned char)bytes.p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void check_sums_of_every_length(void **state)
{
    (void)state;
    AUTO_FREE char *p = bytes_of(1000);
    assert_int_equal(crc32_add(0, SV("123456789")), 0xcbf43926);
    for (size_t n = 0; n < 400; n++) {
        struct sv all = sv_make(p + n % 17, n);
        size_t cut = n * 5 / 7;
        uint32_t first = crc32_add(0, sv_make(all.p, cut));
        assert_int_equal(crc32_add(0, all), slow_crc(all));
        assert_int_equal(crc32_add(first, sv_make(all.p + cut, n - cut)), slow_crc(all));
    }
}

static void stored_members_need_no_inflater(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 65535, 65536, MOST};
    AUTO_FREE char *p = bytes_of(MOST);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        AUTO_STR struct str all = STR_INIT(1 << 20), out = STR_INIT(1 << 20);
        struct gzip_out *g = gzip_out_new(1, to_str, &all);
        write_member(g, sv_make(p, sizes[i]), 777, false);
        struct sv block, member = str_sv(&all);
        size_t n = all.len;
        assert_int_equal(gzip_stored(member), n);
        assert_int_equal(gzip_stored(sv_make(all.p, n - 1)), 0);
        while ((block = gzip_stored_next(&member)).p)
            str_add(&out, block);
        assert_int_equal(out.len, sizes[i]);
        assert_true(!out.len || !memcmp(out.p, p, out.len));
        write_member(g, SV("behind it"), 777, true);
        assert_int_equal(gzip_stored(str_sv(&all)), n);
        assert_int_equal(gzip_stored(sv_make(all.p + n, all.len - n)), 0);
        gzip_out_free(g);
    }
}

static void damage_is_told(void **state)
{
    (void)state;
    AUTO_FREE char *p = bytes_of(5000);
    AUTO_STR struct str all = STR_INIT(1 << 20);
    struct gzip_out *g = gzip_out_new(1, to_str, &all);
    write_member(g, sv_make(p, 5000), 5000, false);
    for (size_t at = 20; at < all.len; at += 97) {
        AUTO_STR struct str out = STR_INIT(1 << 20);
        struct inflater *z = inflater_new(INFLATE_GZIP);
        struct sv in = str_sv(&all);
        all.p[at] ^= 1;
        assert_int_equal(gzip_stored(in), 0);
        assert_int_equal(read_member(z, &in, SIZE_MAX, &out), INFLATE_BAD);
        all.p[at] ^= 1;
        inflater_free(z);
    }
    gzip_out_free(g);
}

static void sizes_are_kept_to(void **state)
{
    (void)state;
    struct pawl_err e;
    AUTO_STR struct str all = STR_INIT(1 << 20);
    struct gzip_out *g = gzip_out_new(1, to_str, &all);
    gzip_begin(g, 3, false);
    assert_int_equal(gzip_write(g, SV("four"), &e), PAWL_EINTERNAL);
    assert_int_equal(gzip_write(g, SV("tw"), &e), 0);
    assert_int_equal(gzip_end(g, &e), PAWL_EINTERNAL);
    gzip_out_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_back),
        cmocka_unit_test(check_sums_of_every_length),
        cmocka_unit_test(stored_members_need_no_inflater),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(sizes_are_kept_to),
    };
    return cmocka_run_group_tests_name("gzip", tests, NULL, NULL);
}
