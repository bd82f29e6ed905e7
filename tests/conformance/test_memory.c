/* What workers remember for each other: recalled until it fades. */
#include "copy.h"
#include "keeping.h"

static void test_what_is_remembered_is_recalled(void **state)
{
    struct fixture *f = *state;
    const struct sv odd = {"a\0\xff", 3};
    assert_null(recall(f, "robots:a").p);
    remember(f, "robots:a", SV("User-agent: *"), HOUR);
    remember(f, "robots:b", SV(""), HOUR);
    remember(f, "odd", odd, HOUR);
    assert_sv(recall(f, "robots:a"), "User-agent: *");
    assert_non_null(recall(f, "robots:b").p);
    assert_int_equal(recall(f, "robots:b").n, 0);
    assert_true(sv_eq(recall(f, "odd"), odd));
    remember(f, "robots:a", SV("other"), HOUR);
    assert_sv(recall(f, "robots:a"), "other");
    struct store *again = open_again(f);
    struct sv out;
    OK(again->ops->recall(again, SV("robots:a"), &f->a, &out, &f->e));
    assert_sv(out, "other");
    store_close(again);
    remember(f, "robots:a", SV_NONE, HOUR);
    assert_null(recall(f, "robots:a").p);
    remember(f, "never", SV_NONE, HOUR);
    FAILS(f->s->ops->remember(f->s, SV(""), SV("x"), HOUR, &f->e), PAWL_EINPUT);
    FAILS(f->s->ops->remember(f->s, SV("\xff"), SV("x"), HOUR, &f->e), PAWL_EINPUT);
}

static int64_t n_remembered(struct fixture *f)
{
    struct copy_value after[COPY_KEYS_MAX];
    struct copy_rows rows;
    copy_first_key(COPY_MEMORY, after);
    OK(f->s->ops->copy->read_begin(f->s, &f->e));
    OK(f->s->ops->copy->read(f->s, COPY_MEMORY, after, &f->a, &rows, &f->e));
    f->s->ops->copy->read_end(f->s);
    return (int64_t)rows.n;
}

static void test_memory_fades(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    remember(f, "stays", SV("x"), HOUR);
    remember(f, "fades", SV("x"), DUR_US(1));
    int64_t until = f->s->ops->now(f->s).us + 1000;
    while (f->s->ops->now(f->s).us <= until)
        ;
    assert_null(recall(f, "fades").p);
    assert_sv(recall(f, "stays"), "x");
    assert_int_equal(n_remembered(f), 2);
    act(f, ACT_PRUNE, fetched(f, &w, "q", 1)); /* with the keys that are over */
    assert_int_equal(n_remembered(f), 1);
    for (int i = 0; i < 20; i++) { /* and bit by bit with every other */
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        remember(f, key, SV("x"), DUR_US(0));
    }
    remember(f, "new", SV("x"), HOUR);
    assert_in_range(n_remembered(f), 2, 4);
    assert_sv(recall(f, "new"), "x");
    assert_sv(recall(f, "stays"), "x");
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_remembered_is_recalled),
        TEST(test_memory_fades),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
