/* Several operations in one commit, several handles and processes on one store, copies of it. */
#include "fixture.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void group_begin(struct fixture *f)
{
    OK(f->s->ops->group_begin(f->s, &f->e));
}

static void group_commit(struct fixture *f)
{
    OK(f->s->ops->group_commit(f->s, &f->e));
}

static int64_t count_all(struct fixture *f, struct store *s)
{
    struct selection all = {0};
    int64_t n = -1;
    OK(s->ops->count(s, &all, &n, &f->e));
    return n;
}

static void test_group_is_invisible_before_its_commit(void **state)
{
    struct fixture *f = *state;
    struct store *other = open_again(f);
    group_begin(f);
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    settle_ok(f, &l, OUTCOME_DONE);
    assert_int_equal(count_all(f, other), 0);
    assert_int_equal(count_all(f, f->s), 1);
    group_commit(f);
    assert_int_equal(count_all(f, other), 1);
    assert_state(f, id, JOB_DONE);
    end(f, &w);
    store_close(other);
}

static void test_group_abort_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    char *before = snapshot_all(f);
    group_begin(f);
    struct job_spec s = spec("brand new", "kind", 5);
    add(f, &s);
    claim_one(f, &w);
    act(f, ACT_CANCEL, id);
    f->s->ops->group_abort(f->s);
    assert_string_equal(snapshot_all(f), before);
    assert_clean(f);
    add(f, &s); /* what the handle remembered of the aborted names is void */
    assert_int_equal(claim_one(f, &w).id.v, id.v);
    end(f, &w);
}

static void test_one_failing_operation_leaves_the_others_whole(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id first = add_plain(f, 3);
    struct lease l = claim_one(f, &w);
    group_begin(f);
    job_id second = add_plain(f, 2);
    struct job_spec child = spec("", "k", 0);
    struct settle bad = settle_of(&l, OUTCOME_DONE);
    bad.children = &child;
    bad.n_children = 1;
    enum settle_outcome out;
    FAILS(store_settle(f->s, &bad, 1, &out, &f->e), PAWL_EINPUT);
    job_id third = add_plain(f, 1);
    struct claim_result r = claim(f, &w, "k", 9);
    assert_int_equal(r.n, 2);
    group_commit(f);
    assert_state(f, first, JOB_RUNNING);
    assert_state(f, second, JOB_RUNNING);
    assert_state(f, third, JOB_RUNNING);
    settle_ok(f, &l, OUTCOME_DONE);
    end(f, &w);
}

static void test_failing_group_members_at_every_place(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    for (int bad = 0; bad < 4; bad++) {
        add_plain(f, 50);
        struct lease l = claim_one(f, &w);
        struct job_spec child = spec("", "k", 0);
        struct settle v = settle_of(&l, OUTCOME_DONE);
        v.children = &child;
        v.n_children = 1;
        enum settle_outcome out;
        group_begin(f);
        for (int i = 0; i < 4; i++)
            if (i == bad)
                FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
            else
                add_plain(f, 0);
        group_commit(f);
        assert_clean(f);
        settle_ok(f, &l, OUTCOME_DONE);
    }
    assert_int_equal(count_all(f, f->s), 16);
    end(f, &w);
}

static void test_empty_group(void **state)
{
    struct fixture *f = *state;
    char *before = snapshot_all(f);
    group_begin(f);
    group_commit(f);
    group_begin(f);
    f->s->ops->group_abort(f->s);
    assert_string_equal(snapshot_all(f), before);
}

static void test_close_in_a_group_is_an_abort(void **state)
{
    struct fixture *f = *state;
    group_begin(f);
    add_plain(f, 0);
    store_close(f->s);
    f->s = open_again(f);
    assert_int_equal(count_all(f, f->s), 0);
}

static void test_two_handles_see_each_other(void **state)
{
    struct fixture *f = *state;
    struct store *one = f->s, *two = open_again(f);
    struct session w = start(f, "w");
    for (int i = 0; i < 40; i++) {
        f->s = i % 2 ? one : two;
        job_id a = add_plain(f, i % 3), b = add_plain(f, 5);
        f->s = i % 2 ? two : one;
        assert_state(f, a, JOB_QUEUED);
        struct lease l = claim_one(f, &w);
        assert_int_equal(l.id.v, b.v);
        f->s = i % 3 ? two : one;
        settle_ok(f, &l, OUTCOME_DONE);
        assert_clean(f);
    }
    f->s = one;
    end(f, &w);
    store_close(two);
}

/* Take every step that waits: a store may have to connect before it can hint. */
static void clear_hints(struct store *s, struct pollfd *p)
{
    do
        s->ops->wake_clear(s);
    while (poll(p, 1, on_postgres() ? 300 : 0) > 0);
}

static void test_wake_reaches_the_other_handle(void **state)
{
    struct fixture *f = *state;
    struct store *other = open_again(f);
    int fd = other->ops->wake_fd(other);
    if (fd >= 0) {
        struct pollfd p = {fd, POLLIN, 0};
        clear_hints(other, &p);
        add_plain(f, 0);
        assert_int_equal(poll(&p, 1, 5000), 1);
        other->ops->wake_clear(other);
        assert_int_equal(poll(&p, 1, 0), 0);
    }
    store_close(other);
}

/* In a child: claim and settle until the queue is empty. Its exit status counts what went wrong. */
static void drain(const char *path, int number)
{
    struct fixture here = {0}, *f = &here;
    snprintf(f->path, sizeof(f->path), "%s", path);
    arena_init(&f->a);
    f->s = open_again(f);
    char name[16];
    snprintf(name, sizeof(name), "w%d", number);
    struct session w = start(f, name);
    struct claim_result r;
    while ((r = claim(f, &w, "k", 3)).n > 0)
        for (size_t i = 0; i < r.n; i++)
            settle_ok(f, &r.leases[i], OUTCOME_DONE);
    end(f, &w);
    store_close(f->s);
    arena_done(&f->a);
}

static void wait_ok(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_I2_processes_share_the_work(void **state)
{
    struct fixture *f = *state;
    enum { N_JOBS = 300, N_PROCESSES = 3 };
    pid_t pids[N_PROCESSES];
    struct job_spec v[N_JOBS];
    struct add_result r[N_JOBS];
    for (int i = 0; i < N_JOBS; i++)
        v[i] = spec("q", "k", i % 4);
    OK(store_enqueue(f->s, v, N_JOBS, DUPLICATE_SKIP, r, &f->e));
    store_close(f->s); /* an open database is not carried over a fork */
    f->s = NULL;
    for (int i = 0; i < N_PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            drain(f->path, i);
            _exit(0);
        }
    }
    for (int i = 0; i < N_PROCESSES; i++)
        wait_ok(pids[i]);
    f->s = open_again(f);
    for (int i = 0; i < N_JOBS; i++) {
        struct job_view j = get(f, r[i].id);
        assert_int_equal(j.state, JOB_DONE);
        assert_int_equal(j.fence.v, 1);
        assert_int_equal(j.n_attempts, 1);
    }
}

static void test_I4_sweep_after_a_killed_process(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    store_close(f->s);
    f->s = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        f->s = open_again(f);
        struct session w = start(f, "doomed");
        claim_one(f, &w);
        _exit(0); /* without a word, as kill -9 */
    }
    wait_ok(pid);
    f->s = open_again(f);
    assert_state(f, id, JOB_RUNNING);
    struct session self = start(f, "self");
    assert_int_equal(sweep(f, &self, 3).requeued, self.lock_fd >= 0);
    assert_state(f, id, self.lock_fd >= 0 ? JOB_QUEUED : JOB_RUNNING);
    end(f, &self);
}

static void test_backup_is_a_whole_store(void **state)
{
    struct fixture *f = *state;
    char copy[96], expected[4096];
    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    if (on_postgres()) { /* which has its own means */
        FAILS(f->s->ops->backup(f->s, copy, &f->e), PAWL_EUSAGE);
        return;
    }
    struct job_spec s = keyed("q", "one");
    add(f, &s);
    struct session w = start(f, "w");
    claim_one(f, &w);
    add_plain(f, 4);
    snprintf(expected, sizeof(expected), "%s", snapshot_all(f));
    OK(f->s->ops->backup(f->s, copy, &f->e));
    FAILS(f->s->ops->backup(f->s, copy, &f->e), PAWL_ECONFLICT);
    struct stat st;
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    struct store *original = f->s;
    struct store_options o = store_defaults(STORE_READ);
    OK(open_store(copy, &o, &f->s, &f->e));
    assert_string_equal(snapshot_all(f), expected);
    assert_clean(f);
    store_close(f->s);
    f->s = original;
    end(f, &w);
}

static void test_backup_while_others_write(void **state)
{
    struct fixture *f = *state;
    char copy[96];
    if (on_postgres())
        return;
    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    add_plain(f, 0);
    struct store *writer = open_again(f), *original = f->s;
    OK(writer->ops->group_begin(writer, &f->e));
    OK(original->ops->backup(original, copy, &f->e));
    writer->ops->group_abort(writer);
    store_close(writer);
    struct store_options o = store_defaults(STORE_READ);
    OK(open_store(copy, &o, &f->s, &f->e));
    assert_int_equal(count_all(f, f->s), 1);
    store_close(f->s);
    f->s = original;
    char missing[96];
    snprintf(missing, sizeof(missing), "%s/none/copy", f->dir);
    FAILS(f->s->ops->backup(f->s, missing, &f->e), PAWL_EUNREACHABLE);
}

static void test_open_modes(void **state)
{
    struct fixture *f = *state;
    char nowhere[96];
    place_name(f->dir, "other", nowhere, sizeof(nowhere));
    struct store *s = NULL;
    const enum store_mode looking[] = {STORE_READ, STORE_WRITE};
    for (size_t i = 0; i < ARRAY_LEN(looking); i++) {
        struct store_options o = store_defaults(looking[i]);
        FAILS(open_store(nowhere, &o, &s, &f->e), PAWL_ENOTFOUND);
        assert_int_not_equal(access(nowhere, F_OK), 0);
    }
    assert_null(s);
    int from = -1, to = -1;
    struct store_options o = store_defaults(STORE_MIGRATE);
    OK(open_store(f->path, &o, &s, &f->e));
    OK(s->ops->migrate(s, &from, &to, &f->e));
    assert_int_equal(from, to);
    store_close(s);
    o.mode = STORE_READ;
    OK(open_store(f->path, &o, &s, &f->e));
    struct job_spec job = spec("q", "k", 0);
    struct add_result r;
    assert_true(store_enqueue(s, &job, 1, DUPLICATE_SKIP, &r, &f->e) < 0);
    assert_int_equal(count_all(f, s), 0);
    store_close(s);
}

static void test_log_folder_is_private(void **state)
{
    struct fixture *f = *state;
    int fd = -1, again = -1;
    struct stat st;
    OK(f->s->ops->log_dir(f->s, &fd, &f->e));
    OK(f->s->ops->log_dir(f->s, &again, &f->e));
    assert_int_equal(fd, again);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 077, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_group_is_invisible_before_its_commit),
        TEST(test_group_abort_leaves_nothing),
        TEST(test_one_failing_operation_leaves_the_others_whole),
        TEST(test_failing_group_members_at_every_place),
        TEST(test_empty_group),
        TEST(test_close_in_a_group_is_an_abort),
        TEST(test_two_handles_see_each_other),
        TEST(test_wake_reaches_the_other_handle),
        TEST(test_I2_processes_share_the_work),
        TEST(test_I4_sweep_after_a_killed_process),
        TEST(test_backup_is_a_whole_store),
        TEST(test_backup_while_others_write),
        TEST(test_open_modes),
        TEST(test_log_folder_is_private),
    };
    return cmocka_run_group_tests_name("together", tests, NULL, NULL);
}
