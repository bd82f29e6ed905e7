/* Other hosts that a running job asks: permits of their gates, all or none, never too many (I3,
 * I7). */
#include "admitting.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_I3_all_permits_or_none(void **state)
{
    struct fixture *f = *state;
    const struct sv wide_hosts[] = {SV("b*")};
    struct limit_spec each = cap_of("each", EACH_HOST, 1), wide = cap_of("wide", EACH_NONE, 2);
    wide.hosts = wide_hosts;
    wide.n_hosts = 1;
    set_limit(f, &each);
    set_limit(f, &wide);
    for (int i = 0; i < 4; i++)
        add_hosted(f, (const char *[]){"a1", "a2", "a3", "a4"}[i], 0, 1);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 4);
    assert_int_equal(r.n, 4);
    admitted(f, &r.leases[0], "b1");
    admitted(f, &r.leases[0], "b1"); /* it has them */
    assert_int_equal(used(f, "each", "b1"), 1);
    assert_int_equal(used(f, "wide", ""), 1);
    struct admission shut = ask(f, &r.leases[1], "b1");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "each=b1");
    assert_int_equal(shut.wait.us, 250000);
    assert_int_equal(used(f, "wide", ""), 1);
    admitted(f, &r.leases[1], "b2");
    shut = ask(f, &r.leases[2], "b3");
    assert_int_equal(shut.outcome, ADMIT_SHUT);
    assert_sv(shut.gate, "wide=");
    assert_int_equal(used(f, "each", "b3"), 0);
    admitted(f, &r.leases[0], "b3"); /* wide is its already */
    assert_int_equal(used(f, "wide", ""), 2);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    assert_int_equal(used(f, "each", "b1") + used(f, "each", "b3") + used(f, "each", "a1"), 0);
    assert_int_equal(used(f, "wide", ""), 1);
    admitted(f, &r.leases[2], "b3");
    admitted(f, &r.leases[3], "a4"); /* its own */
    assert_int_equal(used(f, "each", "a4"), 1);
    end(f, &w);
    assert_int_equal(used(f, "wide", ""), 0);
}

static void test_I2_a_stale_job_is_not_admitted(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("each", EACH_HOST, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 0, 1);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w), old = l;
    old.fence.v--;
    assert_int_equal(ask(f, &old, "b").outcome, ADMIT_STALE);
    assert_int_equal(pace(f, &old, "b", DUR_S(1)), 0);
    settle_ok(f, &l, OUTCOME_RELEASED);
    assert_int_equal(ask(f, &l, "b").outcome, ADMIT_STALE);
    assert_int_equal(pace(f, &l, "b", DUR_S(1)), 0);
    assert_int_equal(used(f, "each", "b"), 0);
    end(f, &w);
}

static struct lease run_one_at_b(struct fixture *f, const struct session *w)
{
    struct lease l = run_one(f, w);
    admitted(f, &l, "b");
    assert_int_equal(used(f, "one", "b"), 1);
    return l;
}

/* Also for a job whose own lane nothing limits: its claim knew of no permits. */
static void test_I7_every_end_of_a_lease_frees_them(void **state)
{
    struct fixture *f = *state;
    const struct sv away[] = {SV("!a")};
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    s.hosts = away;
    s.n_hosts = 1;
    set_limit(f, &s);
    add_hosted(f, "a", 0, 20);
    end_in_every_way(f, run_one_at_b, "one", "b");
}

static void test_a_stretch_of_ends_frees_them_too(void **state)
{
    struct fixture *f = *state;
    enum { N = 64 };
    const struct sv away[] = {SV("!a")};
    struct limit_spec s = cap_of("each", EACH_HOST, 1);
    s.hosts = away;
    s.n_hosts = 1;
    set_limit(f, &s);
    add_hosted(f, "a", 0, N);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, N);
    assert_int_equal(r.n, N);
    admitted(f, &r.leases[10], "b");
    admitted(f, &r.leases[63], "c");
    struct settle v[N];
    enum settle_outcome out[N];
    for (size_t i = 0; i < N; i++)
        v[i] = settle_of(&r.leases[i], OUTCOME_DONE);
    OK(store_settle(f->s, v, N, out, &f->e));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(out[i], SETTLE_OK);
    assert_int_equal(used(f, "each", "b") + used(f, "each", "c"), 0);
    end(f, &w);
}

static void test_a_lane_parked_there_goes_on(void **state)
{
    struct fixture *f = *state;
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    set_limit(f, &s);
    add_hosted(f, "a", 5, 1);
    struct session w = start(f, "w");
    struct lease l = run_one(f, &w);
    admitted(f, &l, "b");
    add_hosted(f, "b", 0, 1);
    assert_int_equal(take(f, &w, 9).n, 0);
    assert_int_equal(gate(f, "one", "b").parked, 1);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(take_for(f, &w, 1, DUR_S(5)), 1);
    end(f, &w);
}

/* What runs counts under limits that come, and gives back what is of limits that went. */
static void test_limits_change_meanwhile(void **state)
{
    struct fixture *f = *state;
    add_hosted(f, "a", 0, 3);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, 3);
    assert_int_equal(r.n, 3);
    admitted(f, &r.leases[0], "b");
    struct limit_spec s = cap_of("one", EACH_HOST, 1);
    set_limit(f, &s);
    assert_int_equal(used(f, "one", "b"), 1);
    assert_int_equal(used(f, "one", "a"), 3);
    assert_int_equal(ask(f, &r.leases[1], "b").outcome, ADMIT_SHUT);
    s.each = EACH_NONE;
    set_limit(f, &s);
    assert_int_equal(used(f, "one", ""), 3);
    unset_limit(f, "one");
    admitted(f, &r.leases[1], "b");
    assert_clean(f);
    settle_ok(f, &r.leases[0], OUTCOME_DONE);
    s.each = EACH_HOST;
    set_limit(f, &s);
    assert_int_equal(used(f, "one", "b"), 1);
    settle_ok(f, &r.leases[1], OUTCOME_DONE);
    assert_int_equal(used(f, "one", "b"), 0);
    end(f, &w);
}

static void test_I7_over_two_handles_never_more(void **state)
{
    struct fixture *f = *state;
    enum { JOBS = 12, CAP = 3 };
    struct limit_spec s = cap_of("cap", EACH_HOST, CAP);
    add_hosted(f, "a", 0, JOBS);
    struct session w = start(f, "w");
    struct claim_result r = take(f, &w, JOBS);
    assert_int_equal(r.n, JOBS);
    set_limit(f, &s);
    struct store *first = f->s, *second = open_again(f);
    int in = 0;
    for (int i = 0; i < JOBS; i++) {
        f->s = i % 2 ? second : first;
        in += ask(f, &r.leases[i], "b").outcome == ADMIT_OK;
    }
    f->s = first;
    assert_int_equal(in, CAP);
    assert_int_equal(used(f, "cap", "b"), CAP);
    store_close(second);
    end(f, &w);
}

/* ---- several processes ---- */

enum { WORKERS = 4, HOST_CAP = 2, ROUNDS = 25 };

/* What they know of each other: how many are at the host, the most there ever were. */
struct meeting {
    int now, most, admissions, claims;
};

static void at_the_host(struct meeting *m, int *kind)
{
    int now = __atomic_add_fetch(&m->now, 1, __ATOMIC_SEQ_CST);
    int most = __atomic_load_n(&m->most, __ATOMIC_SEQ_CST);
    while (now > most && !__atomic_compare_exchange_n(&m->most, &most, now, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST))
        ;
    __atomic_add_fetch(kind, 1, __ATOMIC_SEQ_CST);
    nap(DUR_US(500));
    __atomic_sub_fetch(&m->now, 1, __ATOMIC_SEQ_CST);
}

/* Half of them come by a job of that host, half are led there. */
static void visit(struct fixture *f, struct meeting *m, int which)
{
    struct session w = start(f, "w");
    const char *kind = which % 2 ? "led" : "k";
    for (int i = 0, left = 2000; i < ROUNDS && left > 0; left--) {
        struct claim_result r = claim(f, &w, kind, 1);
        if (!r.n) {
            nap(DUR_MS(1));
            continue;
        }
        struct lease *l = &r.leases[0];
        if (which % 2)
            while (ask(f, l, "b").outcome != ADMIT_OK && left-- > 0)
                nap(DUR_MS(1));
        at_the_host(m, which % 2 ? &m->admissions : &m->claims);
        settle_ok(f, l, i % 3 ? OUTCOME_DONE : OUTCOME_SKIPPED);
        i++;
    }
    end(f, &w);
}

static void test_I7_processes_never_more(void **state)
{
    struct fixture *f = *state;
    pid_t pids[WORKERS];
    struct meeting *m =
        mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct limit_spec s = cap_of("cap", EACH_HOST, HOST_CAP);
    struct job_spec led = spec("q", "led", 0);
    assert_true(m != MAP_FAILED);
    set_limit(f, &s);
    add_hosted(f, "b", 0, WORKERS / 2 * ROUNDS);
    for (int i = 0; i < WORKERS / 2 * ROUNDS; i++)
        add(f, &led);
    store_close(f->s); /* an open database is not carried over a fork */
    f->s = NULL;
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            f->s = open_again(f);
            visit(f, m, i);
            store_close(f->s);
            _exit(0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    f->s = open_again(f);
    assert_true(m->most >= 1 && m->most <= HOST_CAP);
    assert_int_equal(m->admissions, WORKERS / 2 * ROUNDS);
    assert_int_equal(m->claims, WORKERS / 2 * ROUNDS);
    assert_int_equal(used(f, "cap", "b"), 0);
    munmap(m, sizeof(*m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I3_all_permits_or_none),
        TEST(test_I2_a_stale_job_is_not_admitted),
        TEST(test_I7_every_end_of_a_lease_frees_them),
        TEST(test_a_stretch_of_ends_frees_them_too),
        TEST(test_a_lane_parked_there_goes_on),
        TEST(test_limits_change_meanwhile),
        TEST(test_I7_over_two_handles_never_more),
        TEST(test_I7_processes_never_more),
    };
    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
