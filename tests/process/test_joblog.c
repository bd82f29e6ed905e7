/* Reading logs: while they grow, after a crash, when merged. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 4096, TAIL = 4096 };

static void add(void *arg, struct sv bytes)
{
    str_add(arg, bytes);
}

static void read_on(struct fixture *f, struct joblog_cursor *c, struct str *out)
{
    str_clear(out);
    assert_int_equal(joblog_read(f->log_dir, "jobs/1.log", c, add, out, NULL), 0);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    int fd = openat(f->log_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void missing_log_is_empty(void **state)
{
    struct fixture *f = *state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    assert_int_equal(read_log(f->log_dir, "no/such.log", &out), 0);
    assert_int_equal(out.len, 0);
}

/* "x" * n */
static void script_write(char *out, size_t size, int n)
{
    snprintf(out, size, "head -c %d /dev/zero | tr '\\0' x;", n);
}

static void no_gap_no_marker(void **state)
{
    struct fixture *f = *state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    char script[200];
    script_write(script, sizeof(script), HEAD + TAIL);
    struct process_spec s = shell(f, script);
    job_run(f, &s);
    assert_int_equal(read_log(f->log_dir, "jobs/1.log", &out), 0);
    assert_int_equal(out.len, HEAD + TAIL);
    assert_null(strchr(str_cstr(&out), '['));
    assert_int_equal(faccessat(f->log_dir, "jobs/1.log.t0", F_OK, 0), -1);
    script_write(script, sizeof(script), HEAD + TAIL + 1);
    s = shell(f, script);
    job_run(f, &s);
    str_clear(&out);
    assert_int_equal(read_log(f->log_dir, "jobs/1.log", &out), 0);
    assert_non_null(strstr(str_cstr(&out), "\n[... 1 bytes left out ...]\n"));
}

static struct {
    struct joblog_cursor cursor;
    struct str out[4];
    int step;
} follower;

/* A line on descriptor 3 says that the supervisor has not necessarily read all output; reading is
 * repeated until what must be there is there. */
static void follow(struct fixture *f)
{
    static const int64_t written[] = {100, HEAD + 50, 30000};
    struct str *out = &follower.out[follower.step];
    AUTO_STR struct str part = STR_INIT(STR_LINE);
    while (follower.cursor.offset < written[follower.step]) {
        read_on(f, &follower.cursor, &part);
        str_add(out, str_sv(&part));
    }
    follower.step++;
    char path[128];
    snprintf(path, sizeof(path), "go%d", follower.step);
    put(f, path, "");
}

static void following(void **state)
{
    struct fixture *f = *state;
    char script[1000], a[100], b[100], c[100];
    memset(&follower, 0, sizeof(follower));
    for (int i = 0; i < 4; i++)
        follower.out[i] = STR_INIT(STR_LINE);
    script_write(a, sizeof(a), 100);
    script_write(b, sizeof(b), HEAD + 50 - 100);
    script_write(c, sizeof(c), 30000 - HEAD - 50);
    snprintf(script, sizeof(script),
             "go() { echo $1 >&3; while [ ! -e go$1 ]; do sleep 0.01; done; }\n"
             "%s go 1; %s go 2; %s go 3; echo end",
             a, b, c);
    struct process_spec s = shell(f, script);
    s.cwd = f->dir;
    f->on_line = follow;
    job_run(f, &s);
    assert_int_equal(follower.out[0].len, 100);
    assert_int_equal(follower.out[1].len, HEAD + 50 - 100);
    assert_true(follower.out[2].len >= TAIL); /* how much was still there depends on the moment */
    read_on(f, &follower.cursor, &follower.out[3]);
    assert_string_equal(str_cstr(&follower.out[3]), "end\n");
    assert_int_equal(follower.cursor.offset, f->report.log_bytes);
    for (int i = 0; i < 4; i++)
        str_done(&follower.out[i]);
}

#define HEADER(head, offset) "pawl-tail head=" head " offset=" offset

/* A supervisor was killed: in the middle of writing, of switching segments, of merging. */
static void after_a_crash(void **state)
{
    struct fixture *f = *state;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    char t0[128], t1[128];
    snprintf(t0, sizeof(t0), "%-63s\nklmno", HEADER("5", "10"));
    snprintf(t1, sizeof(t1), "%-63s\npq", HEADER("5", "15"));
    put(f, "1.log", "abcde");
    put(f, "1.log.t0", t0);
    put(f, "1.log.t1", t1);
    assert_int_equal(read_log(f->log_dir, "1.log", &out), 0);
    assert_string_equal(str_cstr(&out), "abcde\n[... 5 bytes left out ...]\nklmnopq");
    put(f, "1.log.t1", "");
    str_clear(&out);
    assert_int_equal(read_log(f->log_dir, "1.log", &out), 0);
    assert_string_equal(str_cstr(&out), "abcde\n[... 5 bytes left out ...]\nklmno");
    put(f, "1.log", "abcde\n[... 5 bytes left out ...]\nkl");
    str_clear(&out);
    assert_int_equal(read_log(f->log_dir, "1.log", &out), 0);
    assert_string_equal(str_cstr(&out), "abcde\n[... 5 bytes left out ...]\nklmno");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(missing_log_is_empty),
        T(no_gap_no_marker),
        T(following),
        T(after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
