/* Nasty children, each ended in every way: nobody survives the report, no zombie, no descriptor, no
 * memory is left behind (the fixture's teardown counts), and the log is exact. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const struct child {
    const char *mode, *arg;
    bool says_ready;
} children[] = {
    {"ignore-term", NULL, true}, {"daemon", NULL, true},  {"flood", "0", true},
    {"line", "0", true},         {"close", NULL, true},   {"kids", "50", true},
    {"hop", NULL, true},         {"chatter", NULL, true}, {"quit", NULL, false},
};

static void check_dead(struct fixture *f)
{
    assert_int_equal(marked_alive(f, NULL), 0);
    assert_true(f->max_rss_kib <= 8192);
}

static void by_timeout(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        struct process_spec s = nasty(f, children[i].mode, children[i].arg, NULL);
        s.timeout = children[i].says_ready ? DUR_MS(150) : DUR_S(60);
        f->sample = true;
        job_run(f, &s);
        assert_int_equal(f->report.cause,
                         children[i].says_ready ? PROCESS_TIMEOUT : PROCESS_EXITED);
        check_dead(f);
    }
}

static void cancel_all(struct fixture *f, void (*how)(struct fixture *))
{
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        struct process_spec s = nasty(f, children[i].mode, children[i].arg, NULL);
        f->on_line = how;
        f->sample = true;
        job_run(f, &s);
        assert_int_equal(f->report.cause,
                         children[i].says_ready ? PROCESS_CANCELLED : PROCESS_EXITED);
        check_dead(f);
    }
}

static void by_cancel(void **state)
{
    cancel_all(*state, cancel_gently);
}

static void by_cancel_at_once(void **state)
{
    cancel_all(*state, cancel_at_once);
}

static void by_normal_end(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        const char *arg =
            children[i].arg && !strcmp(children[i].arg, "0") ? "10000000" : children[i].arg;
        struct process_spec s = nasty(f, children[i].mode, arg, "end");
        f->sample = true;
        job_run(f, &s);
        assert_int_equal(f->report.cause, PROCESS_EXITED);
        assert_int_equal(f->report.exit_code, 0);
        check_dead(f);
    }
}

static int ready_fd; /* in the worker: where to say that the job is ready */

static void say_ready(struct fixture *f)
{
    f->on_line = NULL; /* once */
    (void)!write(ready_fd, "r", 1);
}

/* A worker of its own that runs the job until it is killed. */
static void be_worker(struct fixture *f, const struct child *c, int out)
{
    fixture_start(f);
    ready_fd = out;
    f->on_line = say_ready;
    struct process_spec s = nasty(f, c->mode, c->arg, NULL);
    int zygote = zygote_pid(f->zygote);
    (void)!write(out, &zygote, sizeof(zygote));
    job_run(f, &s);
    _exit(0);
}

static void kill_worker_of(const struct child *c)
{
    struct fixture f;
    int pipe_fds[2], zygote;
    char byte;
    fixture_init(&f);
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t worker = fork();
    if (worker == 0)
        be_worker(&f, c, pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &zygote, sizeof(zygote)), sizeof(zygote));
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    assert_true(marked_alive(&f, NULL) > 0);
    kill(worker, SIGKILL);
    assert_int_equal(waitpid(worker, NULL, 0), worker);
    assert_true(wait_gone(zygote)); /* ends only after its last supervisor */
    assert_int_equal(marked_alive(&f, NULL), 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    fixture_done(&f);
}

static void by_worker_killed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(children); i++)
        if (children[i].says_ready)
            kill_worker_of(&children[i]);
}

/* The supervisor is killed: its job dies with it, whoever took flight too, and the worker learns
 * that nothing is known. */
static void kill_supervisor(struct fixture *f)
{
    pid_t supervisor;
    assert_int_equal(supervisors_of(zygote_pid(f->zygote), &supervisor), 1);
    kill(supervisor, SIGKILL);
    f->on_line = NULL; /* once */
}

static void by_supervisor_killed(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        if (!children[i].says_ready)
            continue;
        struct process_spec s = nasty(f, children[i].mode, children[i].arg, NULL);
        f->on_line = kill_supervisor;
        job_run(f, &s);
        assert_int_equal(f->report.cause, PROCESS_LOST);
        assert_true(wait_none_marked(f));
        assert_true(at_rest(f));
    }
}

/* Bytes [from, to) of what `nasty flood` or `nasty line` writes. */
static void expected(struct str *out, bool records, int64_t from, int64_t to)
{
    char record[32];
    for (int64_t i = from; i < to; i++) {
        snprintf(record, sizeof(record), "%015lld\n", (long long)i / 16);
        str_addc(out, records ? record[i % 16] : (char)('a' + i % 16));
    }
}

static void one_gigabyte(struct fixture *f, const char *mode)
{
    enum { HEAD = 10000, TAIL = 20000 };
    const int64_t total = (1 << 30) + 12345;
    AUTO_STR struct str want = STR_INIT(STR_LINE), log = STR_INIT(STR_LINE);
    struct process_spec s = nasty(f, mode, "1073754169", "end");
    s.log_head = HEAD;
    s.log_tail = TAIL;
    f->sample = true;
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    assert_int_equal(f->report.log_bytes, total);
    assert_int_equal(f->report.log_error, 0);
    expected(&want, mode[0] == 'f', 0, HEAD);
    str_addf(&want, "\n[... %lld bytes left out ...]\n", (long long)(total - HEAD - TAIL));
    expected(&want, mode[0] == 'f', total - TAIL, total);
    assert_int_equal(read_log(f->log_dir, "jobs/1.log", &log), 0);
    assert_int_equal(log.len, want.len);
    assert_memory_equal(log.p, want.p, want.len);
    assert_true(f->max_rss_kib > 0 && f->max_rss_kib <= 8192);
}

static void one_gigabyte_of_lines(void **state)
{
    one_gigabyte(*state, "flood");
}

static void one_line_of_a_gigabyte(void **state)
{
    one_gigabyte(*state, "line");
}

/* Output of a grandchild that comes shortly after the main process has ended is still taken. */
static void late_output(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "(sleep 0.02; echo late; sleep 100) & echo early");
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    assert_int_equal(f->report.tail.n, 11);
    assert_memory_equal(f->tail, "early\nlate\n", 11);
    assert_int_equal(marked_alive(f, NULL), 0);
}

/* A talkative grandchild does not hold the end for longer than the hard limit. */
static void talkative_grandchild(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "(while :; do echo x; sleep 0.01; done) & exit 0");
    struct boot start = clock_boot();
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    assert_true(clock_boot().us - start.us < 8000000);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(by_timeout),
        T(by_cancel),
        T(by_cancel_at_once),
        T(by_normal_end),
        T(by_supervisor_killed),
        cmocka_unit_test(by_worker_killed),
        T(one_gigabyte_of_lines),
        T(one_line_of_a_gigabyte),
        T(late_output),
        T(talkative_grandchild),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
