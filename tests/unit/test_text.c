/* base: text from outside, errors, hashes, files. */
#include "unit.h"

#include "fd.h"
#include "hash.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

static void finds_bad_utf8(void **state)
{
    (void)state;
    static const struct {
        struct sv s;
        size_t bad; /* offset; s.n when all is well */
    } rows[] = {
        {SV(""), 0},
        {SV("abc"), 3},
        {SV("\xc3\xa9"), 2},
        {SV("\xe2\x82\xac"), 3},
        {SV("\xf0\x9f\x98\x80"), 4},
        {SV("\xf4\x8f\xbf\xbf"), 4},
        {SV("a\0b"), 1},
        {SV("a\x80"), 1},
        {SV("a\xc0\xaf"), 1},
        {SV("\xc1\xbf"), 0},
        {SV("\xe0\x9f\xbf"), 0},
        {SV("\xf0\x8f\xbf\xbf"), 0},
        {SV("\xed\xa0\x80"), 0},
        {SV("\xed\xbf\xbf"), 0},
        {SV("\xf4\x90\x80\x80"), 0},
        {SV("\xf5\x80\x80\x80"), 0},
        {SV("ok\xe2\x82"), 2},
        {SV("ok\xc3"), 2},
        {SV("\xe2\x28\xa1"), 0},
        {SV("\xff"), 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_true_msg(text_bad_utf8(rows[i].s) == rows[i].bad, "row %zu", i);
}

static void makes_text_safe(void **state)
{
    (void)state;
    static const struct {
        struct sv s;
        size_t max;
        const char *line, *lines;
    } rows[] = {
        {SV("plain é €"), 0, "plain é €", "plain é €"},
        {SV("a\nb\tc\rd"), 0, "a\\nb\\tc\\rd", "a\nb\tc\\rd"},
        {SV("\033[31mred"), 0, "\\x1b[31mred", "\\x1b[31mred"},
        {SV("\x7f\0"), 0, "\\x7f\\x00", "\\x7f\\x00"},
        {SV("\xc2\x9b"
            "31m"),
         0, "\\u{9b}31m", "\\u{9b}31m"},
        {SV("\xe2\x80\xae"
            "gpj.exe"),
         0, "\\u{202e}gpj.exe", "\\u{202e}gpj.exe"},
        {SV("\xe2\x80\xa8\xef\xbb\xbf\xe2\x81\xa6"), 0, "\\u{2028}\\u{feff}\\u{2066}",
         "\\u{2028}\\u{feff}\\u{2066}"},
        {SV("bad\xff\xc3"), 0, "bad\\xff\\xc3", "bad\\xff\\xc3"},
        {SV("abcdef"), 3, "abc…", NULL},
        {SV("abcdef"), 6, "abcdef", NULL},
        {SV("ab\xe2\x82\xac"), 4, "ab…", NULL},
        {SV("ab\xe2\x82\xac"), 5, "ab€", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STR struct str line = STR_INIT(STR_LINE);
        AUTO_STR struct str lines = STR_INIT(STR_LINE);
        text_safe(&line, rows[i].s, rows[i].max);
        assert_str(&line, rows[i].line);
        text_safe_lines(&lines, rows[i].s);
        if (rows[i].lines)
            assert_str(&lines, rows[i].lines);
    }
}

/* Whatever bytes come in: what goes out is valid UTF-8 and has no control characters. I14 */
static void any_bytes_come_out_harmless(void **state)
{
    (void)state;
    unsigned seed = 20260102;
    for (int round = 0; round < 2000; round++) {
        char raw[40];
        for (size_t i = 0; i < sizeof(raw); i++) {
            seed = seed * 1103515245 + 12345;
            raw[i] = (char)(seed >> 16);
        }
        AUTO_STR struct str safe = STR_INIT(STR_LINE);
        AUTO_STR struct str utf8 = STR_INIT(STR_LINE);
        text_safe(&safe, sv_make(raw, sizeof(raw)), (size_t)round % 50);
        text_to_utf8(&utf8, sv_make(raw, sizeof(raw)));
        assert_int_equal(text_bad_utf8(str_sv(&safe)), safe.len);
        assert_int_equal(text_bad_utf8(str_sv(&utf8)), utf8.len);
        for (size_t i = 0; i < safe.len; i++)
            assert_true((unsigned char)safe.p[i] >= 0x20 && safe.p[i] != 0x7f);
    }
}

static void urls_lose_their_passwords(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"sqlite:pawl.db", "sqlite:pawl.db"},
        {"", ""},
        {"a:b@c", "a:b@c"},
        {"postgres://me@h/d", "postgres://me@h/d"},
        {"postgres://me:pw@h/d", "postgres://me@h/d"},
        {"postgres://me:p@w/x@h:1/d?a=b", "postgres://me@h:1/d?a=b"},
        {"postgres://:pw@/d", "postgres://@/d"},
        {"postgres://h:1/d", "postgres://h:1/d"},
        {"postgres:///d?password=x&host=/tmp", "postgres:///d?host=/tmp"},
        {"postgres:///d?host=a&sslpassword=x&password=y", "postgres:///d?host=a"},
        {"postgres:///d?password=x", "postgres:///d"},
        {"postgres:///d?passwordless=x", "postgres:///d?passwordless=x"},
        {"a?b=://c:d@e", "a?b=://c:d@e"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STR struct str out = STR_INIT(STR_LINE);
        text_url(&out, sv_of(rows[i][0]));
        assert_string_equal(str_cstr(&out), rows[i][1]);
    }
}

static void repairs_utf8(void **state)
{
    (void)state;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    text_to_utf8(&s, SV("a\0\xff\xe2\x82z\xe2\x82\xac\n"));
    assert_str(&s, "a\xe2\x90\x80\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xe2\x82\xac\n");
}

static void errors_carry_their_words(void **state)
{
    (void)state;
    struct pawl_err err = {0};
    assert_code(err_set(&err, PAWL_EINPUT, "job %d: bad", 7), PAWL_EINPUT);
    assert_string_equal(err.msg, "job 7: bad");
    assert_code(err_wrap(&err, "line %d", 3), PAWL_EINPUT);
    assert_string_equal(err.msg, "line 3: job 7: bad");
    assert_code(err_hint(&err, "try %s", "again"), PAWL_EINPUT);
    assert_string_equal(err.hint, "try again");
    assert_code(err_errno(&err, PAWL_EIO, ENOENT, "cannot open x"), PAWL_EIO);
    assert_string_equal(err.msg, "cannot open x: No such file or directory");
    assert_int_equal(err.sys_errno, ENOENT);
    assert_string_equal(err.hint, "");
    assert_code(err_set(NULL, PAWL_EIO, "nobody listens"), PAWL_EIO);
    char longer[1000];
    memset(longer, 'x', sizeof(longer));
    longer[999] = '\0';
    err_set(&err, PAWL_EIO, "%s", longer);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    err_wrap(&err, "%s", longer);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void exit_codes_are_the_contract(void **state)
{
    (void)state;
    static const struct {
        int code, status;
        const char *name;
    } rows[] = {
        {PAWL_OK, 0, "ok"},
        {PAWL_EFAILED, 1, "failed"},
        {PAWL_EUSAGE, 2, "usage"},
        {PAWL_ENOTFOUND, 3, "not_found"},
        {PAWL_EINPUT, 4, "bad_input"},
        {PAWL_ECONFIG, 4, "bad_config"},
        {PAWL_ESCHEMA, 4, "bad_schema"},
        {PAWL_ECORRUPT, 4, "corrupt"},
        {PAWL_ECONFLICT, 5, "conflict"},
        {PAWL_ELOCKED, 5, "locked"},
        {PAWL_ESTALE, 5, "stale"},
        {PAWL_EUNREACHABLE, 6, "unreachable"},
        {PAWL_EFULL, 6, "full"},
        {PAWL_EJOBS_FAILED, 7, "jobs_failed"},
        {PAWL_ETIMEOUT, 8, "timeout"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(rows[i].code <= 0);
        assert_int_equal(err_exit_status(rows[i].code), rows[i].status);
        assert_string_equal(err_name(rows[i].code), rows[i].name);
    }
    assert_int_equal(err_exit_status(-5), 1);
}

static void hashes_known_vectors(void **state)
{
    (void)state;
    unsigned char digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(SV("abc"), digest);
    hex_encode(digest, sizeof(digest), hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256(SV_NONE, digest);
    hex_encode(digest, sizeof(digest), hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void random_stays_below(void **state)
{
    (void)state;
    int seen[7] = {0};
    for (int i = 0; i < 2000; i++)
        seen[rand_below(7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 180, 400); /* mean 286, deviation 16 */
    assert_int_equal(rand_below(1), 0);
    char a[33], b[33];
    rand_id(a);
    rand_id(b);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}

static void reads_whole_files(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/pawl-unit-XXXXXX", tmp ? tmp : "/tmp");
    AUTO_FD int fd = mkstemp(path);
    assert_true(fd >= 0);
    char block[70000];
    memset(block, 'z', sizeof(block));
    assert_int_equal(fd_write_all(fd, block, sizeof(block)), 0);
    AUTO_STR struct str all = STR_INIT(sizeof(block));
    struct pawl_err err = {0};
    assert_code(file_read(path, &all, &err), 0);
    assert_int_equal(all.len, sizeof(block));
    AUTO_STR struct str little = STR_INIT(sizeof(block) - 1);
    assert_code(file_read(path, &little, &err), PAWL_EINPUT);
    unlink(path);
    assert_code(file_read(path, &little, &err), PAWL_ENOTFOUND);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_code(file_read("/", &little, &err), PAWL_EIO);
}

static void json_stays_the_same_json(void **state)
{
    (void)state;
    const struct {
        const char *json, *safe;
    } cases[] = {
        {"{\"a\":[1,\"ä\\n\"]}\n", "{\"a\":[1,\"ä\\n\"]}\n"},
        {"\"\xe2\x80\xae\xc2\x9b\x7f\"", "\"\\u202e\\u009b\\u007f\""},
        {"\"\xf3\xa0\x80\x81\"", "\"\\udb40\\udc01\""},
        {"[1,\r\n2]", "[1, \n2]"},
        {"\"\xff\"", "\"\\ufffd\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_STR struct str out = STR_INIT(1000);
        text_safe_json(&out, sv_of(cases[i].json));
        assert_str(&out, cases[i].safe);
    }
}

static void test_shell(void **state)
{
    (void)state;
    const struct {
        struct sv in;
        const char *out;
    } cases[] = {
        {SV("plain-1.2/x:y"), "plain-1.2/x:y"},
        {SV(""), "''"},
        {SV("two words"), "'two words'"},
        {SV("$(x) `y` \\"), "'$(x) `y` \\'"},
        {SV("it's"), "'it'\"'\"'s'"},
        {SV("\xc3\xa9"), "'\xc3\xa9'"},
        {SV("a\x1b[31m'\\"), "$'a\\x1b[31m\\'\\\\'"},
        {SV("\xe2\x80\xae"), "$'\\xe2\\x80\\xae'"},
        {SV("\xff\n"), "$'\\xff\\x0a'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_STR struct str s = STR_INIT(STR_LINE), safe = STR_INIT(STR_LINE);
        text_shell(&s, cases[i].in);
        assert_str(&s, cases[i].out);
        text_safe(&safe, str_sv(&s), 0);
        assert_string_equal(str_cstr(&safe), str_cstr(&s)); /* harmless as it is */
    }
}

static void sees_characters_cut_short(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {{"", 0},
                {"a", 0},
                {"\xc3\xa4", 0},
                {"a\xc3", 1},
                {"\xe2\x82", 2},
                {"\xf0\x9f\x98", 3},
                {"\xf0\x9f\x98\x80", 0},
                {"\x80\x80\x80\x80", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(text_cut_short(sv_of(rows[i].text)), rows[i].n);
}

static void knows_words(void **state)
{
    (void)state;
    assert_true(text_is_word(SV("azAZ09"), ""));
    assert_true(text_is_word(SV("text-x"), "-."));
    assert_false(text_is_word(SV("text x"), "-."));
    assert_false(text_is_word(SV(""), "-."));
    assert_false(text_is_word(SV("a\0"), "-."));
    assert_false(text_is_word(SV("\xc3\xa4"), "-."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shell),
        cmocka_unit_test(finds_bad_utf8),
        cmocka_unit_test(makes_text_safe),
        cmocka_unit_test(any_bytes_come_out_harmless),
        cmocka_unit_test(json_stays_the_same_json),
        cmocka_unit_test(urls_lose_their_passwords),
        cmocka_unit_test(repairs_utf8),
        cmocka_unit_test(errors_carry_their_words),
        cmocka_unit_test(exit_codes_are_the_contract),
        cmocka_unit_test(hashes_known_vectors),
        cmocka_unit_test(random_stays_below),
        cmocka_unit_test(reads_whole_files),
        cmocka_unit_test(sees_characters_cut_short),
        cmocka_unit_test(knows_words),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
