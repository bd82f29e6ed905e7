/* Errors grouped: what counts as the same failure. */
#include "unit.h"

#include "fingerprint.h"

static uint32_t of(const char *text)
{
    return fingerprint(CLASS_ERROR, sv_of(text));
}

static void same(const char *a, const char *b)
{
    if (of(a) != of(b))
        fail_msg("\"%s\" and \"%s\" should be the same", a, b);
}

static void differ(const char *a, const char *b)
{
    if (of(a) == of(b))
        fail_msg("\"%s\" and \"%s\" should differ", a, b);
}

static void test_what_varies(void **state)
{
    (void)state;
    same("took 17 s", "took 4711 s");
    same("object 3fa9c1 is gone", "object 00ff17 is gone");
    same("at 0x7ffd12 and 0x10", "at 0xdeadb3 and 0x99");
    same("cannot open /tmp/a/b.txt", "cannot open /var/lib/c");
    same("GET https://a.example/x?y=1 failed", "GET https://b.example/ failed");
    same("no column 'name'", "no column 'other name'");
    same("no column \"a\"", "no column \"b\"");
    same("Connection Refused", "connection refused");
    same("a  b", "a\tb");
}

static void test_what_tells(void **state)
{
    (void)state;
    differ("exit 3", "exit 4");
    differ("HTTP 503", "HTTP 404");
    differ("signal 9", "signal 15");
    differ("connection refused", "connection reset");
    differ("cannot open /tmp/a", "cannot read /tmp/a");
    differ("", "x");
    assert_int_not_equal(fingerprint(CLASS_ERROR, SV("x")), fingerprint(CLASS_FATAL, SV("x")));
    same("exit 3: line 17", "exit 3: line 18");
}

static void test_any_bytes(void **state)
{
    (void)state;
    char long_text[8192];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_not_equal(of(long_text), 0);
    assert_int_not_equal(fingerprint(CLASS_ERROR, SV("\0\1\xff '\"`")), 0);
    assert_int_not_equal(fingerprint(CLASS_NONE, SV_NONE), 0);
    assert_int_not_equal(of("'"), 0);
    assert_int_not_equal(of("/"), 0);
}

static void test_format_and_parse(void **state)
{
    (void)state;
    char text[FINGERPRINT_TEXT];
    uint32_t low, high;
    fingerprint_format(0x3f1c2a99, text);
    assert_string_equal(text, "e3f1c2a");
    assert_int_equal(fingerprint_parse(SV("e3f1c2a"), &low, &high), 0);
    assert_int_equal(low, 0x3f1c2a00);
    assert_int_equal(high, 0x3f1c2aff);
    assert_int_equal(fingerprint_parse(SV("e3F1"), &low, &high), 0);
    assert_int_equal(low, 0x3f100000);
    assert_int_equal(high, 0x3f1fffff);
    const char *none[] = {"", "e", "e3f", "3f1c", "e3f1c2a9", "exit", "error", "E3f1", "e3f "};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        low = high = 42;
        assert_int_equal(fingerprint_parse(sv_of(none[i]), &low, &high), -1);
        assert_int_equal(low, 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_varies),
        cmocka_unit_test(test_what_tells),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_format_and_parse),
    };
    return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
