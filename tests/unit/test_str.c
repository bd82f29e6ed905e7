/* base: strings, numbers in text, nearest names, arenas. */
#include "unit.h"

static void compares_bytewise(void **state)
{
    (void)state;
    assert_true(sv_eq(SV_NONE, SV("")));
    assert_true(sv_eq(SV("a\0b"), sv_make("a\0b", 3)));
    assert_false(sv_eq(SV("a"), SV("ab")));
    assert_true(sv_cmp(SV("a"), SV("ab")) < 0);
    assert_true(sv_cmp(SV("b"), SV("ab")) > 0);
    assert_true(sv_cmp(SV("\xff"), SV("a")) > 0);
    assert_int_equal(sv_cmp(SV_NONE, SV("")), 0);
    assert_true(sv_starts(SV("abc"), SV("")));
    assert_true(sv_starts(SV("abc"), SV("ab")));
    assert_false(sv_starts(SV("ab"), SV("abc")));
}

static void trims_and_cuts(void **state)
{
    (void)state;
    struct sv rest;
    assert_sv(sv_trim(SV(" \t\r\n a b \n")), "a b");
    assert_sv(sv_trim(SV(" \t ")), "");
    assert_sv(sv_cut(SV("k=v=w"), '=', &rest), "k");
    assert_sv(rest, "v=w");
    assert_sv(sv_cut(SV("k="), '=', &rest), "k");
    assert_non_null(rest.p);
    assert_int_equal(rest.n, 0);
    assert_sv(sv_cut(SV("k"), '=', &rest), "k");
    assert_null(rest.p);
    assert_sv(sv_cut(SV_NONE, '=', &rest), "");
}

static void reads_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max;
        int rc;
        int64_t value;
    } rows[] = {
        {"0", 0, 0, 0, 0},
        {"-0", 0, 0, 0, 0},
        {"42", 0, 100, 0, 42},
        {"007", 0, 100, 0, 7},
        {"9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN},
        {"9223372036854775808", INT64_MIN, INT64_MAX, -1, 0},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, -1, 0},
        {"99999999999999999999999", INT64_MIN, INT64_MAX, -1, 0},
        {"101", 0, 100, -1, 0},
        {"-1", 0, 100, -1, 0},
        {"", 0, 100, -1, 0},
        {"-", 0, 100, -1, 0},
        {"+1", 0, 100, -1, 0},
        {" 1", 0, 100, -1, 0},
        {"1 ", 0, 100, -1, 0},
        {"1e2", 0, 100, -1, 0},
        {"0x1", 0, 100, -1, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = -77;
        int rc = sv_to_i64(sv_of(rows[i].text), rows[i].min, rows[i].max, &v);
        assert_true_msg(rc == rows[i].rc && v == (rc ? -77 : rows[i].value), "%s", rows[i].text);
    }
}

static void formats_integers(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 7, -7, 1000000, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        AUTO_STR struct str s = STR_INIT(64);
        char want[32];
        snprintf(want, sizeof(want), "%lld", (long long)values[i]);
        str_addi(&s, values[i]);
        assert_str(&s, want);
    }
}

static void keeps_the_ceiling(void **state)
{
    (void)state;
    AUTO_STR struct str s = STR_INIT(5);
    assert_string_equal(str_cstr(&s), "");
    str_adds(&s, "hello");
    assert_false(s.overflow);
    str_addc(&s, '!');
    assert_true(s.overflow);
    assert_str(&s, "hello");
    str_adds(&s, "");
    assert_str(&s, "hello");
    str_clear(&s);
    assert_false(s.overflow);
    str_addf(&s, "%d", 123456);
    assert_true(s.overflow);
    assert_str(&s, "");
    str_clear(&s);
    str_addf(&s, "%05d", 42);
    assert_str(&s, "00042");
}

static void formats_beyond_the_small_buffer(void **state)
{
    (void)state;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_addf(&s, "%0255d|", 1);
    str_addf(&s, "%0256d|", 2);
    str_addf(&s, "%0300d|", 3);
    assert_int_equal(s.len, 255 + 256 + 300 + 3);
    assert_int_equal(strlen(s.p), s.len);
    assert_int_equal(s.p[254], '1');
    assert_int_equal(s.p[256 + 255], '2');
    assert_int_equal(s.p[256 + 257 + 299], '3');
}

static void suggests_near_names_only(void **state)
{
    (void)state;
    static const char *const names[] = {"status", "show", "add", "workers"};
    static const struct {
        const char *typed, *near;
    } rows[] = {
        {"stauts", "status"}, {"statsu", "status"}, {"worker", "workers"},
        {"shwo", "show"},     {"ad", "add"},        {"status", "status"},
        {"xyzzy", NULL},      {"x", NULL},          {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *near = sv_nearest(sv_of(rows[i].typed), names, ARRAY_LEN(names));
        assert_true_msg(near == rows[i].near ||
                            (near && rows[i].near && strcmp(near, rows[i].near) == 0),
                        "%s -> %s", rows[i].typed, near ? near : "nothing");
    }
}

static void measures_distance(void **state)
{
    (void)state;
    char longer[100];
    memset(longer, 'a', sizeof(longer));
    assert_int_equal(sv_distance(SV("kitten"), SV("sitting"), 10), 3);
    assert_int_equal(sv_distance(SV(""), SV("abc"), 10), 3);
    assert_int_equal(sv_distance(SV("abc"), SV("abc"), 10), 0);
    assert_int_equal(sv_distance(SV("abcdef"), SV("uvwxyz"), 4), 4);
    assert_int_equal(sv_distance(sv_make(longer, 100), SV("a"), 7), 7);
    assert_int_equal(sv_distance(sv_make(longer, 64), sv_make(longer, 63), 7), 1);
}

static void arena_keeps_what_it_gave(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    char *kept[200];
    for (int i = 0; i < 200; i++) {
        char text[64];
        snprintf(text, sizeof(text), "text number %d", i);
        kept[i] = arena_strndup(&a, text, strlen(text));
        assert_int_equal((uintptr_t)arena_alloc(&a, (size_t)i * 37) % 16, 0);
    }
    for (int i = 0; i < 200; i++) {
        char text[64];
        snprintf(text, sizeof(text), "text number %d", i);
        assert_string_equal(kept[i], text);
    }
    char *zeros = arena_zalloc(&a, 1000, 5000);
    for (size_t i = 0; i < 5000000; i += 499)
        assert_int_equal(zeros[i], 0);
    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 1));
    arena_done(&a);
    arena_done(&a);
}

static void grows_arrays(void **state)
{
    (void)state;
    int *v = NULL;
    size_t n = 0, cap = 0;
    for (int i = 0; i < 1000; i++) {
        ARRAY_GROW(v, n, cap);
        v[n++] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    free(v);
    AUTO_FREE char *copy = mem_dup("a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_bytewise),
        cmocka_unit_test(trims_and_cuts),
        cmocka_unit_test(reads_integers),
        cmocka_unit_test(formats_integers),
        cmocka_unit_test(keeps_the_ceiling),
        cmocka_unit_test(formats_beyond_the_small_buffer),
        cmocka_unit_test(suggests_near_names_only),
        cmocka_unit_test(measures_distance),
        cmocka_unit_test(arena_keeps_what_it_gave),
        cmocka_unit_test(grows_arrays),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
