/* From the end of a process to the result of an attempt. */
#include "exec_parts.h"

#include "retry.h"
#include "text.h"
#include <errno.h>
#include <signal.h>

enum { EXIT_SKIPPED = 100, EXIT_TRANSIENT = 75 };

struct judging {
    const struct exec_attempt *what;
    const struct process_report *report;
    const struct exec_control *said;
    struct str *text; /* the reason is written here */
    struct run_result result;
};

/* The last line of the output that is not blank; none if there is none. */
static struct sv last_line(struct sv tail)
{
    tail = sv_trim(tail);
    for (size_t i = tail.n; i > 0; i--)
        if (tail.p[i - 1] == '\n' || tail.p[i - 1] == '\r')
            return sv_make(tail.p + i, tail.n - i);
    return tail;
}

/* Cut at ERROR_MAX_BYTES without splitting a character. */
static struct sv bounded(struct sv s)
{
    if (s.n <= ERROR_MAX_BYTES)
        return s;
    size_t n = ERROR_MAX_BYTES;
    while (n && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return sv_make(s.p, n);
}

static void fail(struct judging *j, enum fail_class cls)
{
    j->result.end = RUN_FAILED;
    j->result.cls = cls;
}

static void add_last_line(struct judging *j)
{
    struct sv line = last_line(j->report->tail);
    if (!line.n)
        return;
    str_adds(j->text, ": ");
    text_to_utf8(j->text, line);
}

static const char *step_text(const struct process_report *r)
{
    switch (r->step) {
    case STEP_FORK:
        return "cannot start a process";
    case STEP_CWD:
        return "cannot enter the working directory";
    case STEP_EXEC:
        return r->error == ENOENT ? "program not found" : "cannot execute the program";
    default:
        return "cannot set up the process";
    }
}

static bool has_preflight(const struct kind_conf *kind)
{
    return kind && (kind->preflight.n || kind->preflight_url);
}

/* "program not found: nosuch (No such file or directory)". A kind with a preflight was found fit
 * before: what has gone since is not the job's fault, and it goes back. */
static void start_failed(struct judging *j)
{
    const struct process_report *r = j->report;
    const char *name = r->step == STEP_CWD    ? j->what->cwd
                       : r->step == STEP_EXEC ? j->what->program
                                              : NULL;
    fail(j, r->step == STEP_FORK ? CLASS_TRANSIENT : CLASS_ERROR);
    if (name && has_preflight(j->what->kind)) {
        j->result.end = RUN_RELEASED;
        j->result.unfit = true;
    }
    str_adds(j->text, step_text(r));
    if (name) {
        str_adds(j->text, ": ");
        text_to_utf8(j->text, sv_of(name));
    }
    str_addf(j->text, " (%s)", strerror(r->error));
}

static bool listed(const struct int_list *list, int code)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == code)
            return true;
    return false;
}

static bool transient_exit(const struct kind_conf *kind, int code)
{
    if (!kind || !kind->transient_exit.n)
        return code == EXIT_TRANSIENT;
    return listed(&kind->transient_exit, code);
}

static bool shows_one_of(struct sv tail, const struct string_list *patterns)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (tail.n && memmem(tail.p, tail.n, patterns->v[i], strlen(patterns->v[i])))
            return true;
    return false;
}

/* An error whose output shows a known passing trouble is transient. The peer asked for fewer if the
 * kind says so of the exit code or of the output, or if a transient failure's output has
 * Retry-After. */
static void reconsider(struct judging *j)
{
    const struct kind_conf *kind = j->what->kind;
    struct run_result *r = &j->result;
    bool open = r->cls == CLASS_ERROR || r->cls == CLASS_TRANSIENT;
    bool throttled = kind && open &&
                     (listed(&kind->throttled_exit, j->report->exit_code) ||
                      shows_one_of(j->report->tail, &kind->throttled_log));
    if (throttled || (kind && open && shows_one_of(j->report->tail, &kind->transient_log)))
        r->cls = CLASS_TRANSIENT;
    if (r->cls != CLASS_TRANSIENT)
        return;
    r->retry_after = retry_after_in_log(j->report->tail);
    r->throttled = throttled || r->retry_after.us >= 0;
}

static void exited_with(struct judging *j, int code)
{
    if (j->what->plain)
        fail(j, CLASS_ERROR);
    else if (j->what->kind && listed(&j->what->kind->fatal_exit, code))
        fail(j, CLASS_FATAL);
    else
        fail(j, transient_exit(j->what->kind, code) ? CLASS_TRANSIENT : CLASS_ERROR);
    str_addf(j->text, "exit %d", code);
    add_last_line(j);
    reconsider(j);
}

static void ended_by_signal(struct judging *j, int sig)
{
    const char *name = sigabbrev_np(sig);
    fail(j, CLASS_ERROR);
    str_addf(j->text, "killed by signal %d", sig);
    if (name)
        str_addf(j->text, " (SIG%s)", name);
    add_last_line(j);
    reconsider(j);
}

static void timed_out(struct judging *j, const char *what, struct dur limit)
{
    fail(j, CLASS_ERROR);
    str_adds(j->text, what);
    dur_format(limit, j->text);
    add_last_line(j);
    reconsider(j);
    j->result.timed_out = j->result.cls == CLASS_TRANSIENT;
}

static void hand_over(struct judging *j)
{
    j->result.result = j->said->result;
    j->result.children = j->said->children;
    j->result.n_children = j->said->n_children;
}

static void as_said(struct judging *j)
{
    const struct exec_control *s = j->said;
    hand_over(j);
    switch (s->outcome) {
    case SAID_SKIP:
        j->result.end = RUN_SKIPPED;
        break;
    case SAID_FATAL:
        fail(j, CLASS_FATAL);
        break;
    case SAID_RETRY:
        fail(j, s->cls);
        j->result.asked = s->asked;
        j->result.throttled = s->throttled;
        j->result.retry_after = s->retry_after;
        break;
    default:
        j->result.end = RUN_DONE;
        return;
    }
    if (s->reason.n)
        str_add(j->text, s->reason);
    else if (j->result.end == RUN_FAILED)
        str_adds(j->text, s->outcome == SAID_RETRY ? "asked to be retried" : "declared fatal");
}

static void exited(struct judging *j)
{
    const struct process_report *r = j->report;
    if (r->signal) {
        ended_by_signal(j, r->signal);
    } else if (r->exit_code == 0) {
        as_said(j);
    } else if (r->exit_code == EXIT_SKIPPED && !j->what->plain &&
               !(j->what->kind && listed(&j->what->kind->fatal_exit, 100)) &&
               !transient_exit(j->what->kind, EXIT_SKIPPED)) {
        j->result.end = RUN_SKIPPED;
        hand_over(j);
        if (j->said->reason.n)
            str_add(j->text, j->said->reason);
        else
            text_to_utf8(j->text, last_line(r->tail));
    } else {
        exited_with(j, r->exit_code);
    }
}

static void judge(struct judging *j)
{
    switch (j->report->cause) {
    case PROCESS_EXITED:
        exited(j);
        break;
    case PROCESS_TIMEOUT:
        timed_out(j, "timed out after ", j->what->timeout);
        break;
    case PROCESS_IDLE_TIMEOUT:
        timed_out(j, "no output for ", j->what->kind ? j->what->kind->idle_timeout : DUR_NONE);
        break;
    case PROCESS_CANCELLED:
        j->result.end = RUN_CANCELLED;
        break;
    case PROCESS_LEASE_DEADLINE:
        fail(j, CLASS_TRANSIENT);
        str_adds(j->text, "ended because the lease was about to run out");
        break;
    case PROCESS_START_FAILED:
        start_failed(j);
        break;
    case PROCESS_LOST:
        fail(j, CLASS_ERROR);
        str_adds(j->text, "supervisor died");
        break;
    }
}

/* A job that speaks nonsense on its control channel did not do what it wanted to, though its exit
 * code says otherwise. */
static bool spoke_nonsense(const struct judging *j)
{
    bool content = j->report->exit_code == 0 || j->result.end == RUN_SKIPPED;
    return j->said->error.p && j->report->cause == PROCESS_EXITED && content;
}

static void control_error(struct judging *j)
{
    fail(j, CLASS_ERROR);
    j->result.asked = j->result.retry_after = DUR_NONE;
    j->result.throttled = false;
    j->result.children = NULL;
    j->result.n_children = 0;
    j->result.result = SV_NONE;
    str_clear(j->text);
    text_to_utf8(j->text, j->said->error);
}

struct run_result exec_result(const struct exec_attempt *what, const struct process_report *report,
                              const struct exec_control *said, struct str *text)
{
    struct judging j = {what,
                        report,
                        said,
                        text,
                        {.exit_code = report->exit_code,
                         .signal = report->signal,
                         .retry_after = DUR_NONE,
                         .asked = DUR_NONE,
                         .log_bytes = report->log_bytes}};
    judge(&j);
    if (spoke_nonsense(&j))
        control_error(&j);
    if (j.result.end == RUN_FAILED && report->log_error)
        str_addf(text, " (the log is incomplete: %s)", strerror(report->log_error));
    if (text->len)
        j.result.reason = bounded(str_sv(text));
    return j.result;
}
