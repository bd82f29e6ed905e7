/* Starting, describing and ending single processes. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void exit_codes(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "exit 3");
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_EXITED);
    assert_int_equal(f->report.exit_code, 3);
    assert_int_equal(f->report.signal, 0);
    s = shell(f, "kill -SEGV $$");
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, -1);
    assert_int_equal(f->report.signal, SIGSEGV);
}

static long supervisor_of_a_job(struct fixture *f)
{
    struct process_spec s = shell(f, "echo $PPID");
    s.log_dir = f->log_dir;
    s.log_name = "job.log";
    s.log_head = s.log_tail = 4096;
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    return atol(f->tail);
}

/* A job needs no new supervisor while one waits; nothing piles up in it; a new session's lock, a
 * cancelled job and a rest end it. */
static void supervisors_serve_again(void **state)
{
    struct fixture *f = *state;
    struct pawl_err err;
    long first = supervisor_of_a_job(f);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(supervisor_of_a_job(f), first);
        assert_int_equal(f->report.log_bytes, (int64_t)strlen(f->tail));
    }
    assert_in_range(count_fds((pid_t)first), 1, 20); /* the last job's may not be closed yet */
    assert_int_equal(zygote_set_session_lock(f->zygote, -1, &err), 0);
    long second = supervisor_of_a_job(f);
    assert_int_not_equal(second, first);
    assert_true(wait_gone((pid_t)first));
    struct process_spec s = nasty(f, "kids", "2", NULL);
    f->on_line = cancel_at_once;
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_CANCELLED);
    f->on_line = NULL;
    long third = supervisor_of_a_job(f);
    assert_int_not_equal(third, second);
    kill((pid_t)third, SIGKILL); /* one that died while it waited is passed over */
    assert_true(wait_gone((pid_t)third));
    assert_int_not_equal(supervisor_of_a_job(f), third);
}

static void failing_starts(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "");
    s.argv = (const char *[]){"no-such-program", NULL};
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_START_FAILED);
    assert_int_equal(f->report.step, STEP_EXEC);
    assert_int_equal(f->report.error, ENOENT);
    s.argv = (const char *[]){"/etc/passwd", NULL};
    job_run(f, &s);
    assert_int_equal(f->report.error, EACCES);
    s = shell(f, "");
    s.cwd = "/no/such/folder";
    job_run(f, &s);
    assert_int_equal(f->report.step, STEP_CWD);
    assert_int_equal(f->report.error, ENOENT);
}

static void input_output_cwd(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "pwd; cat; echo \"[$1]\" >&2; umask; ulimit -c");
    s.argv = (const char *[]){
        "sh", "-c", "pwd; cat; echo \"[$1]\" >&2; umask; ulimit -c", "x", "; $(exit) -n\n'", NULL};
    s.cwd = "/usr";
    s.input = SV("hello\n");
    job_run(f, &s);
    AUTO_STR struct str log = STR_INIT(STR_LINE);
    assert_int_equal(read_log(f->log_dir, "jobs/1.log", &log), 0);
    assert_string_equal(str_cstr(&log), "/usr\nhello\n[; $(exit) -n\n']\n0077\n0\n");
    assert_int_equal(f->report.log_bytes, log.len);
    assert_int_equal(f->report.tail.n, log.len);
    assert_memory_equal(f->report.tail.p, log.p, log.len);
}

static void large_input_and_command(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "");
    char *big = malloc(200001);
    memset(big, 'x', 200000);
    big[200000] = 0;
    const char *argv[16] = {"sh", "-c", "wc -c; echo ${#1} ${#9}", "x"};
    for (int i = 4; i < 14; i++)
        argv[i] = big + 100000; /* beyond what goes inline */
    s.argv = argv;
    s.input = sv_make(big, 200000);
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    f->tail[f->report.tail.n] = 0;
    assert_string_equal(f->tail, "200000\n100000 100000\n");
    free(big);
}

/* S40: only 0 to 3 are open, nothing blocked, nothing ignored, no new privileges. */
static void clean_inheritance(void **state)
{
    struct fixture *f = *state;
    struct pawl_err err = {0};
    int lock = open(f->dir, O_RDONLY | O_CLOEXEC);
    assert_int_equal(zygote_set_session_lock(f->zygote, lock, &err), 0);
    struct process_spec s = nasty(f, "fds", "end", NULL);
    job_run(f, &s);
    assert_int_equal(f->report.tail.n, 9);
    assert_memory_equal(f->report.tail.p, "0 1 2 3 \n", 9);
    s = shell(f, "grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status");
    job_run(f, &s);
    f->tail[f->report.tail.n] = 0;
    assert_string_equal(f->tail, "SigBlk:\t0000000000000000\n"
                                 "SigIgn:\t0000000000000000\nNoNewPrivs:\t1\n");
    assert_int_equal(zygote_set_session_lock(f->zygote, -1, &err), 0);
    close(lock);
}

static void control_lines(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "printf 'one\\n\\ntwo' >&3; printf ' more\\nlast' >&3");
    job_run(f, &s);
    assert_string_equal(f->lines, "one\n\ntwo more\nlast\n");
    s = shell(f, "head -c 3000000 /dev/zero | tr '\\0' x >&3");
    job_run(f, &s);
    assert_int_equal(f->n_lines, 1);
    assert_true(f->line_too_long);
    assert_int_equal(f->report.exit_code, 0);
}

static bool said_bye(const struct fixture *f)
{
    struct sv tail = f->report.tail;
    return tail.n >= 4 && !memcmp(tail.p + tail.n - 4, "bye\n", 4);
}

static void time_limits(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done");
    s.timeout = DUR_S(1);
    s.grace = DUR_S(5);
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_TIMEOUT);
    assert_true(said_bye(f));
    s = shell(f, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done; sleep 100");
    s.idle_timeout = DUR_S(1);
    job_run(f, &s);
    assert_int_equal(f->report.cause, PROCESS_IDLE_TIMEOUT);
    assert_int_equal(f->report.log_bytes, 12); /* the output kept it alive */
}

static void stopped_job_is_ended(void **state)
{
    struct fixture *f = *state;
    struct process_spec s = shell(f, "trap 'echo bye; exit 0' TERM; kill -STOP $$; sleep 100");
    s.timeout = DUR_S(1);
    s.grace = DUR_S(5);
    job_run(f, &s);
    assert_true(said_bye(f));
}

static struct {
    int left;
    struct fixture *f;
} burst;

static void burst_end(void *arg, const struct process_report *r)
{
    (void)arg;
    assert_int_equal(r->exit_code, 0);
    if (--burst.left == 0)
        loop_stop(burst.f->loop);
}

/* More requests than the socket holds: they wait in the worker. */
static void burst_of_requests(void **state)
{
    struct fixture *f = *state;
    struct pawl_err err = {0};
    struct process_spec s = nasty(f, "quit", NULL, NULL);
    char pad[8000] = "PAD=";
    memset(pad + 4, 'x', sizeof(pad) - 5);
    s.env = (const char *[]){pad, f->mark, NULL};
    burst.f = f;
    burst.left = 150;
    kill(zygote_pid(f->zygote), SIGSTOP);
    for (int i = 0; i < 150; i++) {
        struct process *p;
        struct process_events events = {.on_exit = burst_end};
        assert_int_equal(process_spawn(f->zygote, f->loop, &s, &events, &p, &err), 0);
    }
    kill(zygote_pid(f->zygote), SIGCONT);
    assert_int_equal(loop_run(f->loop, &err), 0);
    assert_int_equal(burst.left, 0);
}

static void log_that_cannot_be_written(void **state)
{
    struct fixture *f = *state;
    close(openat(f->log_dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct process_spec s = nasty(f, "flood", "1000000", "end");
    s.log_name = "file/1.log";
    job_run(f, &s);
    assert_int_equal(f->report.exit_code, 0);
    assert_int_equal(f->report.log_error, ENOTDIR);
    assert_int_equal(f->report.log_bytes, 1000000);
    s.log_name = "../escape/1.log";
    job_run(f, &s);
    assert_int_equal(f->report.log_error, EINVAL);
}

/* A file system that is full in the middle, played by a limit on the size of files. */
static void log_that_fills_up(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_start(&f);
    prlimit(zygote_pid(f.zygote), RLIMIT_FSIZE, &(struct rlimit){100000, 100000}, NULL);
    struct process_spec s = nasty(&f, "flood", "1000000", "end");
    s.log_head = 300000;
    job_run(&f, &s);
    assert_int_equal(f.report.exit_code, 0);
    assert_int_equal(f.report.log_error, EFBIG);
    assert_int_equal(f.report.log_bytes, 1000000);
    fixture_done(&f);
}

/* What runs goes on and is reported; what is asked afterwards is refused. */
static void kill_zygote(struct fixture *f)
{
    kill(zygote_pid(f->zygote), SIGKILL);
    assert_true(wait_gone(zygote_pid(f->zygote)));
    cancel_gently(f);
}

static void on_death(void *arg)
{
    *(bool *)arg = true;
}

static void dead_zygote(void **state)
{
    (void)state;
    struct fixture f;
    struct pawl_err err = {0};
    struct process *p;
    struct process_events events = {0};
    fixture_init(&f);
    fixture_start(&f);
    bool told = false;
    assert_int_equal(zygote_attach(f.zygote, f.loop, on_death, &told, &err), 0);
    f.on_line = kill_zygote;
    struct process_spec s = nasty(&f, "kids", "5", NULL);
    job_run(&f, &s);
    assert_int_equal(f.report.cause, PROCESS_CANCELLED);
    assert_int_equal(marked_alive(&f, NULL), 0);
    assert_int_equal(process_spawn(f.zygote, f.loop, &s, &events, &p, &err), PAWL_EIO);
    assert_non_null(strstr(err.msg, "zygote"));
    assert_true(told);
    fixture_done(&f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(exit_codes),
        T(supervisors_serve_again),
        T(failing_starts),
        T(input_output_cwd),
        T(large_input_and_command),
        T(clean_inheritance),
        T(control_lines),
        T(time_limits),
        T(stopped_job_is_ended),
        T(burst_of_requests),
        T(log_that_cannot_be_written),
        cmocka_unit_test(log_that_fills_up),
        cmocka_unit_test(dead_zygote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
