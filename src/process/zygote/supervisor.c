/* The supervisor: starts the job, captures what it writes, ends it (time limits, cancel, the end of
 * the lease, the worker's death), and reports once, when no process of the job is left. I5: it
 * needs nobody's help to kill: its own BOOTTIME timer and the shared page decide.
 *
 * Phases: RUN until the main process exits (then DRAIN) or must end (then TERM); DRAIN waits a
 * moment for output still under way; TERM gives the tree its grace; KILL repeats SIGKILL until
 * wait(2) finds no child. The tree is dead when it says ECHILD, in whichever phase. */
#include "supervisor.h"

#include "capture.h"
#include "launch.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS             ((int64_t)1000)
#define NEVER          INT64_MAX
#define DRAIN_QUIET    (250 * MS)  /* wait for more output after the last of it, */
#define DRAIN_MAX      (5000 * MS) /* but no longer than this after the exit */
#define KILL_RETRY_MIN (2 * MS)
#define KILL_RETRY_MAX (50 * MS)
#define PAGE_RECHECK   (100 * MS) /* while no deadline is published */

enum phase { RUN, DRAIN, TERM, KILL };

struct supervisor {
    const struct request *req;
    const struct wire_page *page;
    int signals, timer;
    struct output out;
    struct channel lines;
    int held[2]; /* writing ends of both pipes, held until the main process has ended: its exit
                    is then one event, not three */
    pid_t child;
    bool child_ended, tree_dead;
    enum phase phase;
    int64_t started, last_output, ended; /* BOOTTIME microseconds */
    int64_t kill_at;                     /* TERM: end of the grace. KILL: the next round */
    int64_t kill_retry;
    int64_t armed; /* what the timer is set to */
    struct wire_exit report;
};

static struct supervisor
    self; /* one process, one job at a time; large buffers stay off the stack */

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* SIGTERM goes once to each process: many take a second one for "at once". SIGKILL goes to the
 * group first, at one stroke; its number is ours as long as the main process is not reaped. */
static void signal_tree(struct supervisor *s, int sig)
{
    if (sig == SIGKILL && !s->child_ended)
        kill(-s->child, sig);
    tree_signal(sig, NULL);
}

static void set_cause(struct supervisor *s, enum process_cause cause)
{
    if (s->phase == RUN)
        s->report.cause = cause;
}

static void enter_kill(struct supervisor *s, enum process_cause cause, int64_t now)
{
    if (s->phase == KILL)
        return;
    set_cause(s, cause);
    s->phase = KILL;
    s->kill_retry = KILL_RETRY_MIN;
    s->kill_at = now + s->kill_retry;
    signal_tree(s, SIGKILL);
}

static void enter_term(struct supervisor *s, enum process_cause cause, int64_t now)
{
    if (s->phase != RUN)
        return;
    if (s->req->head.grace_us <= 0) {
        enter_kill(s, cause, now);
        return;
    }
    set_cause(s, cause);
    s->phase = TERM;
    s->kill_at = now + s->req->head.grace_us;
    signal_tree(s, SIGTERM);
}

static void kill_again(struct supervisor *s, int64_t now)
{
    signal_tree(s, SIGKILL);
    s->kill_retry = s->kill_retry * 2 < KILL_RETRY_MAX ? s->kill_retry * 2 : KILL_RETRY_MAX;
    s->kill_at = now + s->kill_retry;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t drain_end(const struct supervisor *s)
{
    int64_t quiet_since = s->last_output > s->ended ? s->last_output : s->ended;
    return earlier(quiet_since + DRAIN_QUIET, s->ended + DRAIN_MAX);
}

static int64_t after(int64_t since, int64_t limit)
{
    return limit >= 0 ? since + limit : NEVER;
}

/* When something is due in this phase if nothing else happens. */
static int64_t phase_due(const struct supervisor *s)
{
    switch (s->phase) {
    case RUN:
        return earlier(after(s->started, s->req->head.timeout_us),
                       after(s->last_output, s->req->head.idle_us));
    case DRAIN:
        return drain_end(s);
    default:
        return s->kill_at;
    }
}

static int64_t lease_end(const struct supervisor *s)
{
    int64_t at = atomic_load_explicit(&s->page->deadline_us, memory_order_acquire);
    return at ? at : NEVER;
}

static void on_time(struct supervisor *s, int64_t now)
{
    if (now >= lease_end(s)) /* I5 */
        enter_kill(s, PROCESS_LEASE_DEADLINE, now);
    if (now < phase_due(s))
        return;
    switch (s->phase) {
    case RUN:
        enter_term(s,
                   now >= after(s->started, s->req->head.timeout_us) ? PROCESS_TIMEOUT
                                                                     : PROCESS_IDLE_TIMEOUT,
                   now);
        break;
    case DRAIN:
    case TERM:
        enter_kill(s, s->report.cause, now);
        break;
    case KILL:
        kill_again(s, now);
        break;
    }
}

/* The timer is only moved when it would fire too late; firing early costs one turn. */
static void arm_timer(struct supervisor *s, int64_t now)
{
    int64_t lease = lease_end(s);
    int64_t due = earlier(phase_due(s), lease == NEVER ? now + PAGE_RECHECK : lease);
    if (s->armed <= due)
        return;
    struct itimerspec at = {.it_value = {due / 1000000, due % 1000000 * 1000}};
    timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL);
    s->armed = due;
}

static int64_t micros(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void on_child_end(struct supervisor *s, int status, const struct rusage *use, int64_t now)
{
    s->child_ended = true;
    s->ended = now;
    s->report.status = status;
    s->report.user_us = micros(use->ru_utime);
    s->report.system_us = micros(use->ru_stime);
    s->report.max_rss_kib = use->ru_maxrss;
    close(s->held[0]);
    close(s->held[1]);
    if (s->phase == RUN)
        s->phase = DRAIN;
}

static void reap(struct supervisor *s, int64_t now)
{
    for (;;) {
        int status;
        struct rusage use;
        pid_t pid = wait4(-1, &status, WNOHANG, &use);
        if (pid == s->child)
            on_child_end(s, status, &use, now);
        if (pid < 0 && errno == ECHILD)
            s->tree_dead = true;
        if (pid <= 0)
            return;
    }
}

static void on_control(struct supervisor *s, int64_t now)
{
    struct wire_cancel msg;
    ssize_t n = recv(s->lines.control, &msg, sizeof(msg), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        s->lines.broken = true;
    } else if (n == sizeof(msg) && msg.type == WIRE_CANCEL) {
        if (msg.at_once)
            enter_kill(s, PROCESS_CANCELLED, now);
        else
            enter_term(s, PROCESS_CANCELLED, now);
    }
}

static void drop_signals(int fd)
{
    struct signalfd_siginfo info;
    (void)!read(fd, &info, sizeof(info));
}

static void on_timer(struct supervisor *s)
{
    uint64_t fired;
    (void)!read(s->timer, &fired, sizeof(fired));
    s->armed = NEVER;
}

static void turn(struct supervisor *s)
{
    enum { SIGNALS, CONTROL, TIMER, OUTPUT, LINES };
    struct pollfd p[] = {
        [SIGNALS] = {.fd = s->signals, .events = POLLIN},
        [CONTROL] = {.fd = s->lines.broken ? -1 : s->lines.control,
                     .events = (short)(POLLIN | (s->lines.full ? POLLOUT : 0))},
        [TIMER] = {.fd = s->timer, .events = POLLIN},
        [OUTPUT] = {.fd = s->out.fd, .events = POLLIN},
        [LINES] = {.fd = s->lines.full ? -1 : s->lines.fd, .events = POLLIN},
    };
    poll(p, 5, -1);
    int64_t now = now_us();
    if (p[TIMER].revents)
        on_timer(s);
    if (p[CONTROL].revents & POLLOUT)
        channel_flush(&s->lines);
    if (p[CONTROL].revents & ~POLLOUT)
        on_control(s, now);
    if ((p[OUTPUT].revents && output_read(&s->out)) | (p[LINES].revents && channel_read(&s->lines)))
        s->last_output = now;
    if (s->lines.broken) /* the lifeline: whoever asked for this job is gone */
        enter_kill(s, PROCESS_CANCELLED, now);
    if (p[SIGNALS].revents) {
        drop_signals(s->signals);
        reap(s, now);
    }
    if (s->phase == DRAIN && s->out.fd < 0 && s->lines.fd < 0 && !s->tree_dead)
        enter_kill(s, s->report.cause, now); /* no more output can come */
    on_time(s, now);
}

/* After a job that came and went in order the supervisor is as good as new: nothing of the job is
 * left, and the next one need not wait for a fork. */
static bool may_stay(const struct supervisor *s)
{
    return s->child > 0 && s->report.cause == PROCESS_EXITED && !s->lines.broken &&
           !s->out.log.error && s->out.fd < 0 && s->lines.fd < 0;
}

static void send_report(struct supervisor *s)
{
    s->report.type = WIRE_EXIT;
    s->report.log_bytes = s->out.log.total;
    s->report.log_error = s->out.log.error;
    s->report.tail_len = (uint32_t)s->out.n_recent;
    s->report.stays = may_stay(s);
    struct iovec iov[2] = {{&s->report, sizeof(s->report)}, {s->out.recent, s->out.n_recent}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    while (sendmsg(s->lines.control, &msg, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

void supervisor_refuse(int control, enum process_step step, int error)
{
    struct wire_exit e = {
        .type = WIRE_EXIT, .cause = PROCESS_START_FAILED, .step = step, .error = error};
    send(control, &e, sizeof(e), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int make_pipe(int *reading, int *writing)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    *reading = fds[0];
    *writing = fds[1];
    return fcntl(fds[0], F_SETFL, O_NONBLOCK);
}

/* 0, or -1 with the failing step in the report. */
static int start(struct supervisor *s, const struct inherited *in)
{
    struct launch l = {.fds = {s->req->input >= 0 ? s->req->input : in->null, -1, -1, -1}};
    s->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->timer < 0 || make_pipe(&s->out.fd, &l.fds[1]) < 0 ||
        make_pipe(&s->lines.fd, &l.fds[3]) < 0) {
        l.failed = STEP_FORK;
        l.error = errno;
    } else {
        l.fds[2] = l.fds[1];
        s->held[0] = l.fds[1];
        s->held[1] = l.fds[3];
        s->child = launch(s->req, &l);
    }
    s->report.step = l.failed;
    s->report.error = l.error;
    s->report.cause = l.failed == STEP_NONE ? PROCESS_EXITED : PROCESS_START_FAILED;
    return s->child > 0 ? 0 : -1;
}

/* Run one job to its end and report it. */
static void run_job(struct supervisor *s, const struct inherited *in)
{
    const struct request *r = s->req;
    logfile_init(&s->out.log, r->log_dir, r->log_name, r->head.log_head, r->head.log_tail);
    s->started = s->last_output = now_us();
    if (start(s, in) == 0)
        for (int64_t now = s->started; !s->tree_dead; now = now_us()) {
            arm_timer(s, now);
            turn(s);
        }
    channel_finish(&s->lines);
    output_finish(&s->out);
    send_report(s);
}

static void forget_job(struct supervisor *s, struct request *r)
{
    logfile_close(&s->out.log);
    close(s->timer);
    request_release(r);
    s->child = 0;
    s->child_ended = s->tree_dead = false;
    s->phase = RUN;
    s->out.n_recent = 0;
    s->report = (struct wire_exit){0};
    s->armed = NEVER;
}

/* The next job from the same worker. False when there will be none: the lifeline is closed. */
static bool next_job(struct supervisor *s, struct request *r)
{
    static union {
        uint32_t type;
        char bytes[sizeof(struct wire_spawn) + WIRE_BODY_MAX];
    } message;
    int fds[WIRE_FDS_MAX];
    size_t n_fds;
    for (;;) {
        ssize_t n = request_receive(s->lines.control, 0, &message, sizeof(message), fds, &n_fds);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof(message.type))
            return false;
        if (message.type == WIRE_CANCEL)
            continue; /* it crossed the report of the job it meant */
        return request_accept(r, &message, (size_t)n, s->lines.control, fds, n_fds) == 0;
    }
}

void supervisor_run(struct request *r, const struct inherited *in)
{
    struct supervisor *s = &self;
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "pawl-supervisor");
    s->page = in->page;
    s->signals = in->signals;
    s->lines.control = r->control;
    s->armed = NEVER;
    for (;;) {
        int error = request_parse(r);
        if (error) {
            supervisor_refuse(r->control, STEP_SETUP, error);
            return;
        }
        s->req = r;
        run_job(s, in);
        bool stays = s->report.stays;
        forget_job(s, r);
        if (!stays || !next_job(s, r))
            return;
    }
}
