/* Common ground of the process tests: a zygote, a loop, a temporary folder, one job at a time. */
#ifndef PAWL_TESTS_PROCESS_FIXTURE_H
#define PAWL_TESTS_PROCESS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joblog.h"
#include "loop.h"
#include "mem.h"
#include "process.h"
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

struct fixture {
    struct zygote *zygote;
    struct loop *loop;
    char dir[512]; /* temporary */
    int log_dir;
    char mark[64];       /* "PAWL_TEST_MARK=…", in the environment of every job started here */
    int fds, zygote_fds; /* open at the start */

    /* the job */
    struct process *process; /* NULL when it has ended */
    struct process_report report;
    char tail[8192];
    char lines[4096]; /* control lines, LF behind each */
    bool line_too_long;
    int n_lines;
    void (*on_line)(struct fixture *f); /* what to do at a control line; may be NULL */
    long max_rss_kib; /* of its supervisor, at most; sampled while it runs if `sample` is set */
    bool sample;
    struct timer sampler;
};

int fixture_setup(void **state);
int fixture_teardown(void **state); /* fails if a process, a zombie or a descriptor is left */
/* Without the zygote and the loop: for tests that start them elsewhere. */
void fixture_init(struct fixture *f);
void fixture_start(struct fixture *f);
void fixture_done(struct fixture *f);

/* A specification for `nasty` with these arguments. Valid until the next call. */
struct process_spec nasty(struct fixture *f, const char *mode, const char *arg, const char *end);
struct process_spec shell(struct fixture *f, const char *script);
void job_start(struct fixture *f, const struct process_spec *spec);
void job_wait(struct fixture *f); /* run the loop until the job has ended */
void job_run(struct fixture *f, const struct process_spec *spec);
void cancel_gently(struct fixture *f); /* for on_line */
void cancel_at_once(struct fixture *f);

/* The whole of a log, added to `out`; 0 or an error. */
int read_log(int log_dir, const char *name, struct str *out);

/* Living processes whose environment holds the mark; *one becomes one of them. */
int marked_alive(const struct fixture *f, pid_t *one);
/* Wait until `pid` has ended (pidfd); false after 10 s. */
bool wait_gone(pid_t pid);
bool wait_none_marked(const struct fixture *f);
/* Children of a process, zombies included. */
int children_of(pid_t parent, pid_t *one);
/* Those of the zygote's that supervise; an orphan it has yet to kill is not among them. */
int supervisors_of(pid_t zygote, pid_t *one);
bool wait_no_children(pid_t parent);
bool at_rest(struct fixture *f); /* no supervisor is left, not even one that waits for a job */
int count_fds(pid_t pid);        /* -1: not readable */
long status_kib(pid_t pid, const char *field);

#endif
