/* SHA-256 of two texts at once; test_text.c has known answers. */
#include "unit.h"

#include "hash.h"

static void in_pieces(struct sha256_state *s, struct sv head, struct sv body,
                      unsigned char sum[SHA256_LEN])
{
    sha256_init(s);
    sha256_update(s, head);
    sha256_update(s, body);
    sha256_final(s, sum);
}

/* Every way in which a head can end and a body can begin and end within blocks of 64 bytes. */
static void test_pair(void **state)
{
    enum { HEAD = 140, BODY = 270, LONG = 12345 };
    static char bytes[LONG];
    unsigned char body_sum[SHA256_LEN], both_sum[SHA256_LEN], expected[SHA256_LEN];
    struct sha256_state s = {0};
    (void)state;
    rand_bytes(bytes, sizeof(bytes));
    for (size_t h = 0; h <= HEAD; h++)
        for (size_t n = 0; n <= BODY; n++) {
            struct sv head = sv_make(bytes + LONG - h, h);
            struct sv body = sv_make(bytes + h % 5, n < BODY ? n : LONG - 2 * HEAD + h);
            sha256_pair(head, body, body_sum, both_sum);
            sha256(body, expected);
            assert_memory_equal(body_sum, expected, SHA256_LEN);
            in_pieces(&s, head, body, expected);
            assert_memory_equal(both_sum, expected, SHA256_LEN);
        }
    sha256_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pair)};
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
