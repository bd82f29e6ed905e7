/* base: the JSON reader (S16 of the hostile-input table) and writer. */
#include "unit.h"

#include "json.h"
#include "text.h"
#include <math.h>

static void accepts_valid_documents(void **state)
{
    (void)state;
    static const struct sv rows[] = {
        SV("null"),
        SV("true"),
        SV("false"),
        SV("0"),
        SV("-0"),
        SV("1"),
        SV("-1"),
        SV("123456789012345678901234567890"),
        SV("0.5"),
        SV("-0.0"),
        SV("1e5"),
        SV("1E+5"),
        SV("1e-5"),
        SV("1.5e300"),
        SV("1e308"),
        SV("1e-999"),
        SV("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"),
        SV("\"\""),
        SV("\"a\""),
        SV("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
        SV("\"\\u0041\""),
        SV("\"\\u00e9\""),
        SV("\"\\ud83d\\ude00\""),
        SV("\"\\uD83D\\uDE00\""),
        SV("\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""),
        SV("\"\x7f\""),
        SV("\"\\u001f\""),
        SV("\"\\uFFFF\""),
        SV("\"\\u0001\""),
        SV("[]"),
        SV("[ ]"),
        SV("[1]"),
        SV("[1,2]"),
        SV("[[],{}]"),
        SV(" [ 1 , 2 ] "),
        SV("\t\r\n 1 \n"),
        SV("{}"),
        SV("{ }"),
        SV("{\"a\":1}"),
        SV("{\"a\":1,\"b\":2}"),
        SV("{\"\":0}"),
        SV("{\"a\":{\"a\":{\"a\":[]}}}"),
        SV("{\"a\" : 1 , \"A\" : 2}"),
        SV("[null,true,false,0,\"\",[],{}]"),
    };
    AUTO_JSON struct json doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pawl_err err = {0};
        assert_true_msg(json_parse(&doc, rows[i], &err) == 0, "%.*s: %s", (int)rows[i].n, rows[i].p,
                        err.msg);
        assert_int_equal(json_end(&doc, 0), doc.n);
    }
}

static void refuses_invalid_documents(void **state)
{
    (void)state;
    static const struct {
        struct sv s;
        const char *msg;
    } rows[] = {
        {SV(""), "JSON at byte 0: a value is missing"},
        {SV("  "), "JSON at byte 2: a value is missing"},
        {SV("nul"), "JSON at byte 0: not a JSON value"},
        {SV("True"), "JSON at byte 0: not a JSON value"},
        {SV("nulll"), "JSON at byte 4: bytes after the end of the value"},
        {SV("truefalse"), "JSON at byte 4: bytes after the end of the value"},
        {SV("undefined"), "JSON at byte 0: not a JSON value"},
        {SV("NaN"), "JSON at byte 0: not a JSON value"},
        {SV("Infinity"), "JSON at byte 0: not a JSON value"},
        {SV("-Infinity"), "JSON at byte 1: not a JSON value"},
        {SV("-"), "JSON at byte 1: not a JSON value"},
        {SV("+1"), "JSON at byte 0: not a JSON value"},
        {SV("01"), "JSON at byte 1: bytes after the end of the value"},
        {SV("-01"), "JSON at byte 2: bytes after the end of the value"},
        {SV(".5"), "JSON at byte 0: not a JSON value"},
        {SV("1."), "JSON at byte 2: digits expected after '.'"},
        {SV("1.e5"), "JSON at byte 2: digits expected after '.'"},
        {SV("1e"), "JSON at byte 2: digits expected in the exponent"},
        {SV("1e+"), "JSON at byte 3: digits expected in the exponent"},
        {SV("0x10"), "JSON at byte 1: bytes after the end of the value"},
        {SV("1e999"), "JSON at byte 5: number out of range"},
        {SV("-1e999"), "JSON at byte 6: number out of range"},
        {SV("[1.0e309]"), "JSON at byte 8: number out of range"},
        {SV("1 2"), "JSON at byte 2: bytes after the end of the value"},
        {SV("{}{}"), "JSON at byte 2: bytes after the end of the value"},
        {SV("[]]"), "JSON at byte 2: bytes after the end of the value"},
        {SV("null\0"), "JSON at byte 4: NUL byte"},
        {SV("\"a\0b\""), "JSON at byte 2: NUL byte"},
        {SV("\"\\u0000\""), "JSON at byte 7: NUL is not allowed in a string"},
        {SV("\""), "JSON at byte 1: string without end"},
        {SV("\"abc"), "JSON at byte 4: string without end"},
        {SV("\"abc\\"), "JSON at byte 5: unknown escape"},
        {SV("\"abc\\\""), "JSON at byte 6: string without end"},
        {SV("\"\\x41\""), "JSON at byte 2: unknown escape"},
        {SV("\"\\'\""), "JSON at byte 2: unknown escape"},
        {SV("\"\\u12\""), "JSON at byte 3: \\u needs four hex digits"},
        {SV("\"\\u12G4\""), "JSON at byte 3: \\u needs four hex digits"},
        {SV("\"\\ud800\""), "JSON at byte 7: lone surrogate"},
        {SV("\"\\udc00\""), "JSON at byte 7: lone surrogate"},
        {SV("\"\\ud800\\u0041\""), "JSON at byte 13: lone surrogate"},
        {SV("\"\\ud800\\ud800\""), "JSON at byte 13: lone surrogate"},
        {SV("\"\\ud800x\\udc00\""), "JSON at byte 7: lone surrogate"},
        {SV("\"a\nb\""), "JSON at byte 2: control character in a string"},
        {SV("\"a\tb\""), "JSON at byte 2: control character in a string"},
        {SV("\"a\x1f\""), "JSON at byte 2: control character in a string"},
        {SV("\"\xff\""), "JSON at byte 1: not valid UTF-8"},
        {SV("\"\xc0\xaf\""), "JSON at byte 1: not valid UTF-8"},
        {SV("\"\xed\xa0\x80\""), "JSON at byte 1: not valid UTF-8"},
        {SV("\"\xe2\x82\""), "JSON at byte 1: not valid UTF-8"},
        {SV("\xef\xbb\xbf{}"), "JSON at byte 0: not a JSON value"},
        {SV("["), "JSON at byte 1: a value is missing"},
        {SV("[1"), "JSON at byte 2: ',' or ']' expected"},
        {SV("[1,"), "JSON at byte 3: a value is missing"},
        {SV("[1,]"), "JSON at byte 3: not a JSON value"},
        {SV("[,1]"), "JSON at byte 1: not a JSON value"},
        {SV("[1 2]"), "JSON at byte 3: ',' or ']' expected"},
        {SV("[1}"), "JSON at byte 2: ',' or ']' expected"},
        {SV("]"), "JSON at byte 0: not a JSON value"},
        {SV("{"), "JSON at byte 1: member name expected"},
        {SV("{\"a\""), "JSON at byte 4: ':' expected"},
        {SV("{\"a\":"), "JSON at byte 5: a value is missing"},
        {SV("{\"a\":1"), "JSON at byte 6: ',' or '}' expected"},
        {SV("{\"a\":1,}"), "JSON at byte 7: member name expected"},
        {SV("{,}"), "JSON at byte 1: member name expected"},
        {SV("{a:1}"), "JSON at byte 1: member name expected"},
        {SV("{'a':1}"), "JSON at byte 1: member name expected"},
        {SV("{1:1}"), "JSON at byte 1: member name expected"},
        {SV("{\"a\" 1}"), "JSON at byte 5: ':' expected"},
        {SV("{\"a\":1 \"b\":2}"), "JSON at byte 7: ',' or '}' expected"},
        {SV("{\"a\":1,\"a\":2}"), "JSON at byte 13: member \"a\" twice"},
        {SV("{\"a\":1,\"\\u0061\":2}"), "JSON at byte 18: member \"a\" twice"},
        {SV("{\"x\":{\"b\":1,\"b\":1}}"), "JSON at byte 18: member \"b\" twice"},
        {SV("// no\n1"), "JSON at byte 0: not a JSON value"},
        {SV("1 /* no */"), "JSON at byte 2: bytes after the end of the value"},
    };
    AUTO_JSON struct json doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pawl_err err = {0};
        int rc = json_parse(&doc, rows[i].s, &err);
        assert_true_msg(rc == PAWL_EINPUT && err.code == rc, "%.*s was accepted", (int)rows[i].s.n,
                        rows[i].s.p);
        assert_string_equal(err.msg, rows[i].msg);
    }
}

/* Every prefix of a valid document is refused, without reading beyond it (the copy is exact, so a
 * sanitizer sees any overrun). */
static void refuses_every_prefix(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1.5e3,true,null,\"\\ud83d\\ude00\xe2\x82\xac\"],\"b\":{\"c\":false}}";
    AUTO_JSON struct json doc = {0};
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        assert_code(json_parse(&doc, sv_make(copy, n), NULL), PAWL_EINPUT);
        free(copy);
    }
    assert_code(json_parse(&doc, sv_of(text), NULL), 0);
}

static int parse_nested(const char *open, const char *inner, const char *close, int depth)
{
    AUTO_JSON struct json doc = {0};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    for (int i = 0; i < depth; i++)
        str_adds(&s, open);
    str_adds(&s, inner);
    for (int i = 0; i < depth; i++)
        str_adds(&s, close);
    return json_parse(&doc, str_sv(&s), NULL);
}

static void bounds_the_depth(void **state)
{
    (void)state;
    assert_code(parse_nested("[", "", "]", 64), 0);
    assert_code(parse_nested("[", "1", "]", 64), 0);
    assert_code(parse_nested("[", "", "]", 65), PAWL_EINPUT);
    assert_code(parse_nested("{\"a\":", "1", "}", 64), 0);
    assert_code(parse_nested("{\"a\":", "{}", "}", 64), PAWL_EINPUT);
    assert_code(parse_nested("[", "", "]", 20000), PAWL_EINPUT);
}

/* n values in an array; with the array that is n + 1 nodes. */
static int parse_many(int n)
{
    AUTO_JSON struct json doc = {0};
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    str_addc(&s, '[');
    for (int i = 0; i < n; i++)
        str_adds(&s, i ? ",1" : "1");
    str_addc(&s, ']');
    int rc = json_parse(&doc, str_sv(&s), NULL);
    assert_true(rc < 0 || doc.nodes[0].count == (uint32_t)n);
    return rc;
}

static void bounds_the_nodes(void **state)
{
    (void)state;
    assert_code(parse_many(JSON_MAX_NODES - 1), 0);
    assert_code(parse_many(JSON_MAX_NODES), PAWL_EINPUT);
}

/* Duplicates among many members take the sorted path. */
static void finds_duplicates_in_large_objects(void **state)
{
    (void)state;
    for (int twice = -1; twice < 40; twice += 13) {
        AUTO_JSON struct json doc = {0};
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        for (int i = 0; i < 40; i++)
            str_addf(&s, "%s\"k%d\":%d", i ? "," : "{", i, i);
        if (twice >= 0)
            str_addf(&s, ",\"k%d\":0", twice);
        str_addc(&s, '}');
        assert_code(json_parse(&doc, str_sv(&s), NULL), twice < 0 ? 0 : PAWL_EINPUT);
    }
}

static void keeps_spans_verbatim(void **state)
{
    (void)state;
    AUTO_JSON struct json doc = {0};
    struct sv src =
        SV(" { \"payload\" : { \"b\":1.50,  \"a\":[ 1 , 2 ] } , \"n\" : 12345678901234567890, "
           "\"s\":\"\\u0041\" } ");
    assert_code(json_parse(&doc, src, NULL), 0);
    assert_sv(json_source(&doc, json_member(&doc, 0, SV("payload"))),
              "{ \"b\":1.50,  \"a\":[ 1 , 2 ] }");
    assert_sv(json_source(&doc, json_member(&doc, 0, SV("n"))), "12345678901234567890");
    assert_sv(json_source(&doc, json_member(&doc, 0, SV("s"))), "\"\\u0041\"");
    assert_int_equal(json_member(&doc, 0, SV("absent")), 0);
    assert_int_equal(json_member(&doc, json_member(&doc, 0, SV("n")), SV("x")), 0);
    uint32_t p = json_member(&doc, 0, SV("payload"));
    assert_sv(json_source(&doc, json_member(&doc, p, SV("b"))), "1.50");
    int names = 0;
    for (uint32_t k = json_first(&doc, 0); k != json_end(&doc, 0); k = json_after(&doc, k + 1))
        names++;
    assert_int_equal(names, 3);
}

static void decodes_strings(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf"},
        {"\"\"", ""},
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON struct json doc = {0};
        assert_code(json_parse(&doc, sv_of(rows[i].json), NULL), 0);
        assert_sv(json_string(&doc, 0, &a), rows[i].text);
    }
    arena_done(&a);
}

static void reads_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int rc;
        int64_t v;
    } rows[] = {
        {"7", 0, 7},
        {"-7", 0, -7},
        {"0", 0, 0},
        {"100", 0, 100},
        {"101", -1, 0},
        {"1.0", -1, 0},
        {"1e2", -1, 0},
        {"\"7\"", -1, 0},
        {"null", -1, 0},
        {"true", -1, 0},
        {"99999999999999999999", -1, 0},
    };
    AUTO_JSON struct json doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = -77;
        assert_code(json_parse(&doc, sv_of(rows[i].json), NULL), 0);
        assert_int_equal(json_i64(&doc, 0, -100, 100, &v), rows[i].rc);
        assert_int_equal(v, rows[i].rc ? -77 : rows[i].v);
    }
    assert_code(json_parse(&doc, SV("[true,false]"), NULL), 0);
    assert_true(json_is_true(&doc, 1));
    assert_false(json_is_true(&doc, 2));
}

static void writes_documents(void **state)
{
    (void)state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    struct jw w = jw_make(&out);
    jw_object(&w);
    jw_kstring(&w, "s", SV("a\"b\\c\n\t\r\x01\x7f\0é"));
    jw_kint(&w, "i", INT64_MIN);
    jw_kbool(&w, "t", true);
    jw_kstring_or_null(&w, "n", SV_NONE);
    jw_kstring_or_null(&w, "e", SV(""));
    jw_name(&w, "d");
    jw_array(&w);
    jw_double(&w, 1.25, 1);
    jw_double(&w, NAN, 2);
    jw_double(&w, INFINITY, 2);
    jw_array(&w);
    jw_end_array(&w);
    jw_object(&w);
    jw_end_object(&w);
    jw_raw(&w, SV("{\"x\":1}"));
    jw_null(&w);
    jw_end_array(&w);
    jw_end_object(&w);
    assert_str(&out, "{\"s\":\"a\\\"b\\\\c\\n\\t\\u000d\\u0001\\u007f\xe2\x90\x80é\","
                     "\"i\":-9223372036854775808,\"t\":true,\"n\":null,\"e\":\"\","
                     "\"d\":[1.2,null,null,[],{},{\"x\":1},null]}");
}

/* Control characters, C1 ones included, never leave the writer raw. I14 */
static void writes_no_control_characters(void **state)
{
    (void)state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    struct jw w = jw_make(&out);
    jw_string(&w, SV("\xc2\x80x\xc2\x9b\xc2\x9f\xc2\xa0\xff"));
    assert_str(&out, "\"\\u0080x\\u009b\\u009f\xc2\xa0\xef\xbf\xbd\"");
}

/* Whatever text goes through the writer comes back from the reader. */
static void strings_round_trip(void **state)
{
    (void)state;
    unsigned seed = 7;
    struct arena a;
    arena_init(&a);
    for (int round = 0; round < 2000; round++) {
        char raw[24];
        for (size_t i = 0; i < sizeof(raw); i++) {
            seed = seed * 1103515245 + 12345;
            raw[i] = (char)(seed >> 20);
        }
        AUTO_STR struct str clean = STR_INIT(STR_LINE);
        AUTO_STR struct str out = STR_INIT(STR_LINE);
        AUTO_JSON struct json doc = {0};
        text_to_utf8(&clean, sv_make(raw, sizeof(raw)));
        struct jw w = jw_make(&out);
        jw_string(&w, sv_make(raw, sizeof(raw)));
        assert_code(json_parse(&doc, str_sv(&out), NULL), 0);
        assert_sv(json_string(&doc, 0, &a), str_cstr(&clean));
    }
    arena_done(&a);
}

static void writes_to_the_depth_it_reads(void **state)
{
    (void)state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    AUTO_JSON struct json doc = {0};
    struct jw w = jw_make(&out);
    for (int i = 0; i < JSON_MAX_DEPTH; i++) {
        jw_array(&w);
        jw_int(&w, i);
    }
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        jw_end_array(&w);
    assert_code(json_parse(&doc, str_sv(&out), NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_valid_documents),
        cmocka_unit_test(refuses_invalid_documents),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(bounds_the_depth),
        cmocka_unit_test(bounds_the_nodes),
        cmocka_unit_test(finds_duplicates_in_large_objects),
        cmocka_unit_test(keeps_spans_verbatim),
        cmocka_unit_test(decodes_strings),
        cmocka_unit_test(reads_whole_numbers),
        cmocka_unit_test(writes_documents),
        cmocka_unit_test(writes_no_control_characters),
        cmocka_unit_test(strings_round_trip),
        cmocka_unit_test(writes_to_the_depth_it_reads),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
