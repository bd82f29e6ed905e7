/* I5: a job's processes are dead before its lease ends, even if its worker is stopped; and who
 * obtains the session's lock knows that nobody of that session lives. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

/* What the worker tells the test. */
struct news {
    int zygote;
    struct boot deadline;
};

static struct {
    int out;
    struct dur lease;
} worker;

static void publish_deadline(struct fixture *f)
{
    struct news n = {zygote_pid(f->zygote), {clock_boot().us + worker.lease.us}};
    zygote_set_deadline(f->zygote, n.deadline);
    (void)!write(worker.out, &n, sizeof(n));
}

static void be_worker(struct fixture *f, const char *mode, int lock)
{
    struct pawl_err err;
    fixture_start(f);
    if (lock >= 0 && zygote_set_session_lock(f->zygote, lock, &err) < 0)
        _exit(1);
    f->on_line = publish_deadline;
    struct process_spec s = nasty(f, mode, "20", NULL);
    job_run(f, &s);
    _exit(0);
}

static pid_t start_worker(struct fixture *f, const char *mode, int lock, struct dur lease,
                          struct news *news)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        worker.out = fds[1];
        worker.lease = lease;
        be_worker(f, mode, lock);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], news, sizeof(*news)), sizeof(*news));
    close(fds[0]);
    return pid;
}

static void stopped_worker(void **state)
{
    (void)state;
    static const char *const modes[] = {"ignore-term", "daemon", "kids"};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct fixture f;
        struct news news;
        pid_t one;
        fixture_init(&f);
        pid_t pid = start_worker(&f, modes[i], -1, DUR_MS(400), &news);
        kill(pid, SIGSTOP);
        assert_true(marked_alive(&f, NULL) > 0);
        while (marked_alive(&f, &one))
            assert_true(wait_gone(one));
        int64_t late = clock_boot().us - news.deadline.us;
        assert_true(late >= 0 && late < 1000000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(wait_gone(news.zygote));
        fixture_done(&f);
    }
}

/* The lock comes free only after the worker, the zygote, all supervisors and all jobs are gone. */
static void session_lock(void **state)
{
    (void)state;
    struct fixture f;
    struct news news;
    fixture_init(&f);
    int lock = openat(f.log_dir, "session", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    pid_t pid = start_worker(&f, "kids", lock, DUR_S(100), &news);
    close(lock);
    lock = openat(f.log_dir, "session", O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), -1);
    kill(pid, SIGKILL);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(marked_alive(&f, NULL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(lock);
    fixture_done(&f);
}

static void set_lease(struct fixture *f, struct dur lease)
{
    zygote_set_deadline(f->zygote, (struct boot){clock_boot().us + lease.us});
}

static void renew(struct fixture *f)
{
    set_lease(f, DUR_S(1));
}

/* A deadline that moves in time kills nobody; one that does not move does. */
static void moving_deadline(void **state)
{
    struct fixture *f = *state;
    renew(f);
    f->on_line = renew;
    struct process_spec s = shell(f, "for i in 1 2 3 4 5 6 7; do echo $i >&3; sleep 0.2; done");
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_EXITED);
    assert_int_equal(f->report.exit_code, 0);
    f->on_line = NULL;
    s = nasty(f, "daemon", NULL, NULL);
    set_lease(f, DUR_MS(200));
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_LEASE_DEADLINE);
    assert_int_equal(marked_alive(f, NULL), 0);
}

/* Already past when the job starts. */
static void past_deadline(void **state)
{
    struct fixture *f = *state;
    zygote_set_deadline(f->zygote, (struct boot){1});
    struct process_spec s = nasty(f, "ignore-term", NULL, NULL);
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_LEASE_DEADLINE);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_worker),
        cmocka_unit_test(session_lock),
        T(moving_deadline),
        T(past_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
