/* Running a job's processes. The zygote, a small helper program embedded in pawl, starts one
 * supervisor per job; the supervisor owns the job's process tree, its time limits, its log, and
 * kills the tree when the worker dies or the lease is about to end (I5). This is the worker's side:
 * requests out, reports in, on the worker's loop and its thread, except where a comment says
 * otherwise. */
#ifndef PAWL_PROCESS_PROCESS_H
#define PAWL_PROCESS_PROCESS_H

#include "cause.h"
#include "clock.h"
#include "err.h"
#include "loop.h"
#include "str.h"
#include <stdbool.h>

struct zygote;
struct process;

/* Start the zygote. To be called before the process has threads, databases or anything else that a
 * fork must not copy; the loop may come later. IO when it cannot be started. */
PAWL_MUST_USE int zygote_start(struct zygote **out, struct pawl_err *err);
/* Close it and wait for its end. No process is left; harmless on NULL. */
void zygote_stop(struct zygote *z);

/* A supervisor whose job came and went in order waits for another one, which then needs no fork.
 * End those that wait; happens by itself after some seconds without work. Loop thread. */
void zygote_rest(struct zygote *z);

/* Have `on_death` called on the loop if the zygote dies before zygote_stop(): nothing can be
 * started any more, a worker should end. To be called before the first process_spawn(), or not at
 * all. */
PAWL_MUST_USE int zygote_attach(struct zygote *z, struct loop *loop, void (*on_death)(void *arg),
                                void *arg, struct pawl_err *err);

/* Have supervisors started from now on hold this lock (store.h: struct session.lock_fd; jobs never
 * get it); the previous one is let go. fd < 0: none. Borrowed: the zygote gets a duplicate. IO when
 * the zygote has died. */
PAWL_MUST_USE int zygote_set_session_lock(struct zygote *z, int fd, struct pawl_err *err);
/* Publish when all running jobs must be dead. Any thread. us 0: no deadline yet. */
void zygote_set_deadline(struct zygote *z, struct boot deadline);
/* The helper's process id, for display and tests. */
int zygote_pid(const struct zygote *z);

enum {
    PROCESS_LINE_MAX = 2 << 20,   /* one control line */
    PROCESS_LINES_MAX = 32 << 20, /* all control lines of one process */
};

/* What to run. Borrowed for the call of process_spawn(). */
struct process_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in the PATH of `env` */
    const char *const *env;  /* NULL-terminated, "K=V" */
    const char *cwd;         /* NULL: where the zygote was started */
    struct sv input;         /* bytes for stdin; n 0: /dev/null */
    struct dur timeout;      /* from the start; us <= 0: none */
    struct dur idle_timeout; /* without output; us <= 0: none */
    struct dur grace;        /* between SIGTERM and SIGKILL */
    bool no_new_privs;
    int log_dir;          /* -1: output is counted, not kept */
    const char *log_name; /* relative path beneath log_dir; folders are made as needed */
    int64_t log_head, log_tail;
};

/* The end: no process of the job is left. */
struct process_report {
    enum process_cause cause;
    int exit_code;          /* of the main process; -1 if it ended by a signal or never ran */
    int signal;             /* that ended it, or 0 */
    enum process_step step; /* PROCESS_START_FAILED: what failed, */
    int error;              /* and its errno */
    int64_t log_bytes;      /* true size of the output */
    int log_error;          /* errno: the log is incomplete. 0: it is not */
    struct dur user, system;
    int64_t max_rss_bytes;
    struct sv tail; /* last bytes of the output, 8 KiB at most; borrowed for the call */
};

struct process_events {
    /* A line of the job's descriptor 3, without its LF, at offset `at` in all it wrote there. The
     * view is borrowed. too_long: the line or the whole passed its maximum; `line` is empty and
     * nothing further comes. */
    void (*on_line)(void *arg, struct sv line, int64_t at, bool too_long);
    /* Exactly once, never from within process_spawn(); the process is gone when it returns. */
    void (*on_exit)(void *arg, const struct process_report *report);
    void *arg;
};

/* Start a process. IO when that cannot even be asked for: descriptors used up, zygote dead. Whether
 * the program runs is known from the report. */
PAWL_MUST_USE int process_spawn(struct zygote *z, struct loop *loop,
                                const struct process_spec *spec,
                                const struct process_events *events, struct process **out,
                                struct pawl_err *err);
/* End it: SIGTERM to the whole tree, grace, SIGKILL; at_once: SIGKILL. on_exit still comes, with
 * the real end if that was first. May be repeated. */
void process_cancel(struct process *p, bool at_once);

#endif
