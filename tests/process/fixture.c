#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum { PATIENCE_MS = 10000 };

/* ---- looking at processes ---- */

static ssize_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n >= 0)
        buf[n] = 0;
    return n;
}

/* Calls `each` for every process until it returns true. */
static void each_process(bool (*each)(pid_t pid, void *arg), void *arg)
{
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid > 0 && each(pid, arg))
            break;
    }
    closedir(d);
}

struct search {
    const char *name; /* NULL: any */
    const char *mark;
    pid_t parent, found;
    int n;
};

static bool has_mark(pid_t pid, void *arg)
{
    struct search *s = arg;
    char buf[16384];
    ssize_t n = read_proc(pid, "environ", buf, sizeof(buf));
    if (n > 0 && memmem(buf, (size_t)n, s->mark, strlen(s->mark))) {
        s->n++;
        s->found = pid;
    }
    return false;
}

int marked_alive(const struct fixture *f, pid_t *one)
{
    struct search s = {.mark = f->mark};
    each_process(has_mark, &s);
    if (one && s.n)
        *one = s.found;
    return s.n;
}

static bool is_child(pid_t pid, void *arg)
{
    struct search *s = arg;
    char buf[1024], *at;
    int parent;
    if (read_proc(pid, "stat", buf, sizeof(buf)) > 0 && (at = strrchr(buf, ')')) &&
        sscanf(at, ") %*c %d", &parent) == 1 && parent == s->parent &&
        (!s->name || strstr(buf, s->name))) {
        s->n++;
        s->found = pid;
    }
    return false;
}

int children_of(pid_t parent, pid_t *one)
{
    struct search s = {.parent = parent};
    each_process(is_child, &s);
    if (one && s.n)
        *one = s.found;
    return s.n;
}

int supervisors_of(pid_t zygote, pid_t *one)
{
    struct search s = {.parent = zygote, .name = "(pawl-supervisor)"};
    each_process(is_child, &s);
    if (one && s.n)
        *one = s.found;
    return s.n;
}

static bool wait_for(bool (*holds)(const void *arg), const void *arg)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (holds(arg))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static bool no_children(const void *arg)
{
    return children_of(*(const pid_t *)arg, NULL) == 0;
}

static bool none_marked(const void *arg)
{
    return marked_alive(arg, NULL) == 0;
}

bool wait_no_children(pid_t parent)
{
    return wait_for(no_children, &parent);
}

bool wait_none_marked(const struct fixture *f)
{
    return wait_for(none_marked, f);
}

bool wait_gone(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return true;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, PATIENCE_MS);
    close(fd);
    return n == 1;
}

int count_fds(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return -1;
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

long status_kib(pid_t pid, const char *field)
{
    char buf[8192], *at;
    if (read_proc(pid, "status", buf, sizeof(buf)) <= 0 || !(at = strstr(buf, field)))
        return -1;
    return atol(at + strlen(field) + 1);
}

/* ---- set-up ---- */

void fixture_init(struct fixture *f)
{
    static int serial;
    *f = (struct fixture){.log_dir = -1};
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%s/pawl-process-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    f->log_dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(f->mark, sizeof(f->mark), "PAWL_TEST_MARK=%d.%d.", (int)getpid(), ++serial);
}

void fixture_start(struct fixture *f)
{
    struct pawl_err err = {0};
    if (zygote_start(&f->zygote, &err) < 0 || loop_new(&f->loop, &err) < 0)
        fail_msg("%s", err.msg);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fixture_done(struct fixture *f)
{
    zygote_stop(f->zygote);
    loop_free(f->loop);
    close(f->log_dir);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool at_rest(struct fixture *f)
{
    zygote_rest(f->zygote);
    return wait_no_children(zygote_pid(f->zygote));
}

int fixture_setup(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    fixture_init(f);
    fixture_start(f);
    job_run(f, &(struct process_spec){.argv = (const char *[]){"/bin/true", NULL},
                                      .env = (const char *[]){NULL},
                                      .log_dir = -1}); /* the zygote is up and at rest */
    assert_true(at_rest(f));
    f->fds = count_fds(getpid());
    f->zygote_fds = count_fds(zygote_pid(f->zygote));
    *state = f;
    return 0;
}

static bool zygote_fds_equal(const void *arg)
{
    const struct fixture *f = arg;
    return count_fds(zygote_pid(f->zygote)) == f->zygote_fds;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    assert_true(at_rest(f));
    assert_int_equal(marked_alive(f, NULL), 0);
    assert_int_equal(count_fds(getpid()), f->fds);
    assert_true(wait_for(zygote_fds_equal, f)); /* it may still be looking through /proc */
    fixture_done(f);
    free(f);
    return 0;
}

/* ---- one job ---- */

static const char *const *job_env(struct fixture *f)
{
    static const char *env[3];
    env[0] = "PATH=/usr/bin:/bin";
    env[1] = f->mark;
    return env;
}

static struct process_spec base_spec(struct fixture *f)
{
    return (struct process_spec){.env = job_env(f),
                                 .grace = DUR_MS(50),
                                 .no_new_privs = true,
                                 .log_dir = f->log_dir,
                                 .log_name = "jobs/1.log",
                                 .log_head = 4096,
                                 .log_tail = 4096};
}

struct process_spec nasty(struct fixture *f, const char *mode, const char *arg, const char *end)
{
    static const char *argv[5];
    int n = 0;
    argv[n++] = NASTY;
    argv[n++] = mode;
    if (arg)
        argv[n++] = arg;
    if (end)
        argv[n++] = end;
    argv[n] = NULL;
    struct process_spec s = base_spec(f);
    s.argv = argv;
    return s;
}

struct process_spec shell(struct fixture *f, const char *script)
{
    static const char *argv[] = {"sh", "-c", NULL, NULL};
    argv[2] = script;
    struct process_spec s = base_spec(f);
    s.argv = argv;
    return s;
}

static void on_line(void *arg, struct sv line, int64_t at, bool too_long)
{
    (void)at;
    struct fixture *f = arg;
    size_t n = strlen(f->lines);
    f->n_lines++;
    f->line_too_long |= too_long;
    snprintf(f->lines + n, sizeof(f->lines) - n, SV_FMT "\n", SV_ARG(line));
    if (f->on_line)
        f->on_line(f);
}

static void on_end(void *arg, const struct process_report *r)
{
    struct fixture *f = arg;
    f->report = *r;
    if (r->tail.n)
        memcpy(f->tail, r->tail.p, r->tail.n);
    f->report.tail.p = f->tail;
    f->process = NULL;
    loop_stop(f->loop);
}

static void on_sample(struct timer *t)
{
    struct fixture *f = (struct fixture *)((char *)t - offsetof(struct fixture, sampler));
    pid_t supervisor;
    if (children_of(zygote_pid(f->zygote), &supervisor) == 1) {
        long kib = status_kib(supervisor, "VmHWM:");
        f->max_rss_kib = kib > f->max_rss_kib ? kib : f->max_rss_kib;
    }
    loop_timer_set(f->loop, t, DUR_MS(20));
}

void job_start(struct fixture *f, const struct process_spec *spec)
{
    struct pawl_err err = {0};
    struct process_events events = {.on_line = on_line, .on_exit = on_end, .arg = f};
    f->n_lines = 0;
    f->lines[0] = 0;
    if (process_spawn(f->zygote, f->loop, spec, &events, &f->process, &err) < 0)
        fail_msg("%s", err.msg);
}

void job_wait(struct fixture *f)
{
    struct pawl_err err = {0};
    if (f->sample) {
        f->sampler.on_time = on_sample;
        loop_timer_set(f->loop, &f->sampler, DUR_MS(5));
    }
    while (f->process)
        assert_int_equal(loop_run(f->loop, &err), 0);
    loop_timer_clear(f->loop, &f->sampler);
}

void job_run(struct fixture *f, const struct process_spec *spec)
{
    job_start(f, spec);
    job_wait(f);
}

void cancel_gently(struct fixture *f)
{
    process_cancel(f->process, false);
}

void cancel_at_once(struct fixture *f)
{
    process_cancel(f->process, true);
}

static void add_to(void *arg, struct sv bytes)
{
    str_add(arg, bytes);
}

int read_log(int log_dir, const char *name, struct str *out)
{
    struct joblog_cursor cursor = {0};
    return joblog_read(log_dir, name, &cursor, add_to, out, NULL);
}
