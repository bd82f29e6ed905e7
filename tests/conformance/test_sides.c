/* Random operations on SQLite and PostgreSQL side by side mean the same: what each answers, and
 * what both show after every step, is compared byte by byte. A step is up to STEP_OPS operations:
 * looking costs several times what they do. PAWL_TEST_SEED replays a run, PAWL_TEST_OPS makes it
 * longer or shorter, PAWL_TEST_STEP_OPS=1 looks after each operation, PAWL_TEST_SIDES=sqlite puts
 * two SQLite stores beside each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sides.h"
#include <ftw.h>
#include <stdio.h>
#include <sys/random.h>

enum { OPS = 20500, STEP_OPS = 24, SHOW_ALL_EVERY = 100, CALLS_MIN = 200, FEW_OPS = 100 };

struct place_of_test {
    char dir[64];
    struct sides *r;
    int group_left, step_ops;
};

static uint64_t seed(void)
{
    const char *given = getenv("PAWL_TEST_SEED");
    uint64_t s = given ? strtoull(given, NULL, 10) : 0;
    if (!given && getrandom(&s, sizeof(s), 0) != (ssize_t)sizeof(s))
        s = 1;
    return s ? s : 1;
}

static long number_or(const char *name, long otherwise)
{
    const char *given = getenv(name);
    return given ? strtol(given, NULL, 10) : otherwise;
}

static bool both_sqlite(void)
{
    const char *sides = getenv("PAWL_TEST_SIDES");
    return sides && !strcmp(sides, "sqlite");
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR"), *url = getenv("PAWL_TEST_PG_URL");
    struct pawl_err e = {0};
    struct place_of_test *t = mem_zalloc(1, sizeof(*t));
    *state = t;
    t->step_ops = (int)number_or("PAWL_TEST_STEP_OPS", STEP_OPS);
    if (!both_sqlite() && !url)
        return 0;
    snprintf(t->dir, sizeof(t->dir), "%.40s/pawl-sides-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(t->dir));
    t->r = mem_zalloc(1, sizeof(*t->r));
    t->r->seed = t->r->rng = seed();
    if (sides_open(t->r, t->dir, both_sqlite() ? NULL : url, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct place_of_test *t = *state;
    if (t->r) {
        sides_close(t->r);
        nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    free(t->r);
    free(t);
    return 0;
}

static struct place_of_test *ready(void **state)
{
    struct place_of_test *t = *state;
    if (t->r)
        return t;
    fprintf(stderr, "# PAWL_TEST_PG_URL is not set: see tests/lib/pgserver.py\n");
    skip();
    return NULL;
}

static void operate(struct place_of_test *t)
{
    struct sides *r = t->r;
    next_operation(r);
    if (r->in_group && t->group_left-- <= 0) {
        sides_group_end(r, roll(r, 5) < 3);
    } else if (!r->in_group && roll(r, 22) == 0) {
        t->group_left = roll(r, 7);
        sides_group_begin(r);
    } else if (roll(r, 9) == 0) {
        sides_keep(r);
    } else if (roll(r, 5) == 0) {
        sides_limit(r);
    } else if (roll(r, 5) == 0) {
        sides_ask(r);
    } else {
        sides_change(r);
    }
}

static void step(struct place_of_test *t)
{
    sides_begin_step(t->r);
    for (int n = 1 + roll(t->r, t->step_ops); n > 0 && !t->r->look; n--)
        operate(t);
    sides_show(t->r);
    if (t->r->step % SHOW_ALL_EVERY == 0)
        sides_show_all(t->r);
}

static void must_be_equal(struct sides *r)
{
    struct str difference = STR_INIT(STR_LINE);
    if (sides_equal(r, &difference))
        return;
    fprintf(stderr, "%s", str_cstr(&difference));
    str_done(&difference);
    sides_begin_step(r); /* what may have led to it */
    show_policy(r);
    show_gates(r, &(const struct gate_filter){0});
    show_locks(r, SV_NONE);
    EACH_SIDE(r, d)
    fprintf(stderr, "%s:\n%s", d->name, str_cstr(&d->text));
    fail_msg("the stores differ after step %ld", r->step);
}

static void print_counts(const struct sides *r)
{
    static const char *const names[] = {
#define X(name) #name,
        SIDES_OPS(X)
#undef X
    };
    fprintf(stderr, "# %ld operations in %ld steps; calls on each side:", r->done, r->step);
    for (int i = 0; i < N_OPS; i++)
        fprintf(stderr, " %s %ld", names[i], r->counts[i]);
    fprintf(stderr, "\n");
}

static bool all_called(const struct sides *r)
{
    for (int i = 0; i < N_OPS; i++)
        if (r->counts[i] < CALLS_MIN)
            return false;
    return true;
}

static void run(struct place_of_test *t, long ops)
{
    struct sides *r = t->r;
    r->wanted = ops;
    fprintf(stderr, "# PAWL_TEST_SEED=%llu PAWL_TEST_OPS=%ld\n", (unsigned long long)r->seed, ops);
    /* A long run goes on until chance has chosen each operation often enough. */
    while (r->done < ops || (ops >= OPS && r->done < 2 * ops && !all_called(r))) {
        step(t);
        must_be_equal(r);
    }
}

static void test_random_operations_mean_the_same(void **state)
{
    struct place_of_test *t = ready(state);
    struct sides *r = t->r;
    long ops = number_or("PAWL_TEST_OPS", OPS);
    run(t, ops);
    sides_begin_step(r);
    if (r->in_group)
        sides_group_end(r, true);
    assert_true(sides_follow_ends(r));
    sides_show(r);
    sides_show_all(r);
    must_be_equal(r);
    print_counts(r);
    assert_true(ops < OPS || all_called(r));
}

/* The tests of the test. */
static void test_one_altered_byte_is_found(void **state)
{
    struct place_of_test *t = ready(state);
    struct str difference = STR_INIT(STR_LINE);
    char where[32];
    run(t, FEW_OPS);
    step(t);
    snprintf(where, sizeof(where), "\nstep %ld", t->r->step);
    assert_true(sides_equal(t->r, &difference));
    struct str *text = &t->r->side[1].text;
    text->p[text->len / 2] ^= 1;
    assert_false(sides_equal(t->r, &difference));
    assert_non_null(strstr(str_cstr(&difference), where));
    assert_non_null(strstr(str_cstr(&difference), "PAWL_TEST_SEED="));
    str_done(&difference);
}

static void test_one_changed_job_is_found(void **state)
{
    struct place_of_test *t = ready(state);
    struct sides *r = t->r;
    struct str difference = STR_INIT(STR_LINE);
    struct job_spec s = job_spec_default();
    struct add_result added;
    run(t, FEW_OPS);
    sides_begin_step(r);
    if (r->in_group)
        sides_group_end(r, true);
    EACH_SIDE(r, d)
    {
        s.priority = d == r->side ? 7 : 8;
        assert_int_equal(store_enqueue(d->s, &s, 1, DUPLICATE_SKIP, &added, &d->e), 0);
    }
    sides_show(r);
    assert_false(sides_equal(r, &difference));
    assert_non_null(strstr(str_cstr(&difference), "\"priority\":7"));
    assert_non_null(strstr(str_cstr(&difference), "\"priority\":8"));
    str_done(&difference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_operations_mean_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_altered_byte_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_changed_job_is_found, setup, teardown),
    };
    return cmocka_run_group_tests_name("sides", tests, NULL, NULL);
}
