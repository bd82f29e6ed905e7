/* The set of texts: all that were added and no others, in the memory that was promised. */
#include "unit.h"

#include "hash.h"
#include "text_set.h"

static struct sv place(int i, char out[80])
{
    unsigned char hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(sv_make((const char *)&i, sizeof(i)), hash);
    hex_encode(hash, SHA256_LEN, hex);
    snprintf(out, 80, "files/%.2s/%s", hex, hex);
    return sv_of(out);
}

static void test_what_was_added_is_there(void **state)
{
    enum { N = 100000 };
    struct text_set s = {0};
    char text[80];
    (void)state;
    assert_false(text_set_has(&s, SV("files/00/0")));
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < N; i++)
            assert_int_equal(text_set_add(&s, place(i, text)), !twice);
    assert_int_equal(s.n, N);
    for (int i = 0; i < 2 * N; i++)
        assert_int_equal(text_set_has(&s, place(i, text)), i < N);
    assert_true(s.cap * sizeof(*s.v) <= (size_t)N * 22);
    text_set_done(&s);
    assert_false(text_set_has(&s, place(1, text)));
}

/* Bytes that lie there in both forms are two objects. */
static void test_forms_differ(void **state)
{
    struct text_set s = {0};
    (void)state;
    text_set_add(&s, SV("files/ab/abcd"));
    assert_true(text_set_has(&s, SV("files/ab/abcd")));
    assert_false(text_set_has(&s, SV("files/ab/abcd.zst")));
    text_set_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_added_is_there),
        cmocka_unit_test(test_forms_differ),
    };
    return cmocka_run_group_tests_name("text set", tests, NULL, NULL);
}
