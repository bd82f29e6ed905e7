#include "follow.h"

#include "mem.h"
#include "text.h"
#include <poll.h>

enum { POLL_MS = 100 };

/* Log pieces end anywhere: what may be the first half of a character waits for the other. */
static void put_safe(struct follow *f, struct sv bytes)
{
    AUTO_STR struct str whole = STR_INIT(STR_OUTPUT), safe = STR_INIT(STR_OUTPUT);
    str_add(&whole, sv_make(f->held.p, f->held.n));
    str_add(&whole, bytes);
    f->held.n = text_cut_short(str_sv(&whole));
    whole.len -= f->held.n;
    memcpy(f->held.p, whole.p + whole.len, f->held.n);
    text_safe_lines(&safe, str_sv(&whole));
    out_put(&f->c->out, str_sv(&safe));
}

static void put_held(struct follow *f)
{
    AUTO_STR struct str safe = STR_INIT(STR_LINE);
    text_safe_lines(&safe, sv_make(f->held.p, f->held.n));
    out_put(&f->c->out, str_sv(&safe));
    f->held.n = 0;
}

static void emit(void *arg, struct sv bytes)
{
    struct follow *f = arg;
    for (; f->skip && bytes.n; f->skip--) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        if (!end)
            return;
        bytes = sv_make(end + 1, bytes.n - (size_t)(end + 1 - bytes.p));
    }
    if (!bytes.n)
        return;
    if (f->raw || !f->c->out.terminal)
        out_put(&f->c->out, bytes);
    else
        put_safe(f, bytes);
}

struct counting {
    int64_t lines;
    bool open; /* the last one has no line feed */
};

static void count_lines(void *arg, struct sv bytes)
{
    struct counting *c = arg;
    for (size_t i = 0; i < bytes.n; i++)
        c->lines += bytes.p[i] == '\n';
    c->open = bytes.n && bytes.p[bytes.n - 1] != '\n';
}

/* --tail: count first, then pass over the rest; a log of any size in little memory. */
static int find_tail(struct follow *f, int dir, const char *name, struct pawl_err *err)
{
    struct counting n = {0};
    struct joblog_cursor cursor = {0};
    int rc = joblog_read(dir, name, &cursor, count_lines, &n, err);
    int64_t lines = n.lines + n.open;
    f->skip = lines > f->tail ? lines - f->tail : 0;
    return rc;
}

static void begin_attempt(struct follow *f, fence_no fence, int64_t attempt)
{
    put_held(f);
    if (f->tell && f->found) {
        out_flush(&f->c->out);
        cli_say(f->c, "attempt %lld", (long long)attempt);
    }
    f->fence = fence;
    f->cursor = (struct joblog_cursor){0};
    f->skip = 0;
    f->found = true;
}

static int read_attempt(struct follow *f, fence_no fence, int64_t attempt, struct pawl_err *err)
{
    int dir; /* made when the first job runs */
    char name[64];
    bool first = fence.v != f->fence.v || !f->found;
    if (first)
        begin_attempt(f, fence, attempt);
    int rc = f->c->store->ops->log_dir(f->c->store, &dir, err);
    if (rc < 0)
        return rc == PAWL_ENOTFOUND ? 0 : rc;
    store_log_name(f->id, fence, name);
    if (first && f->tail && find_tail(f, dir, name, err) < 0)
        return err->code;
    return joblog_read(dir, name, &f->cursor, emit, f, err);
}

static bool wanted(const struct follow *f, fence_no fence, int64_t attempt, struct wall started)
{
    return fence.v >= f->fence.v && (!f->attempt || attempt == f->attempt) &&
           started.us >= f->since.us;
}

static bool is_live(const struct job_view *job)
{
    return job->state == JOB_RUNNING;
}

/* Unless told otherwise the story begins with the newest attempt. Of several attempts with the
 * asked number (a job that was queued again) it is the newest too. */
static void choose_start(struct follow *f, const struct job_view *job)
{
    f->started = true;
    if (f->all || f->since.us)
        return;
    for (size_t i = 0; i < job->n_attempts; i++)
        if (!f->attempt || job->attempts[i].attempt == f->attempt)
            f->fence = job->attempts[i].fence;
    if (is_live(job) && (!f->attempt || job->attempt == f->attempt))
        f->fence = job->fence;
}

static int read_attempts(struct follow *f, const struct job_view *job, struct pawl_err *err)
{
    int rc = 0;
    bool live = is_live(job) && wanted(f, job->fence, job->attempt, job->claimed_at);
    for (size_t i = 0; i < job->n_attempts && rc == 0; i++) {
        const struct attempt_view *a = &job->attempts[i];
        if (wanted(f, a->fence, a->attempt, a->started_at))
            rc = read_attempt(f, a->fence, a->attempt, err);
    }
    if (rc == 0 && live)
        rc = read_attempt(f, job->fence, job->attempt, err);
    if (rc == 0 && f->attempt && !f->found)
        return err_set(err, PAWL_ENOTFOUND, "job %lld has no attempt %lld", (long long)job->id.v,
                       (long long)f->attempt);
    f->finished = job_state_terminal(job->state) || (f->attempt && !live);
    return rc;
}

/* The job as it is now, then what is new in its logs. In this order: output written before the end
 * is read after the end was seen. */
int follow_look(struct follow *f, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = f->c->store->ops->job_get(f->c->store, f->id, &a, &job, err);
    if (rc < 0)
        return rc;
    f->state = job.state;
    if (!f->started)
        choose_start(f, &job);
    rc = read_attempts(f, &job, err);
    if (f->finished)
        put_held(f);
    return rc;
}

int follow_from_now(struct follow *f, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = f->c->store->ops->job_get(f->c->store, f->id, &a, &job, err);
    if (rc < 0)
        return rc;
    bool waits = !is_live(&job) && !job_state_terminal(job.state);
    f->fence.v = job.fence.v + waits; /* claimed in the meantime: that one is new */
    f->started = true;
    return 0;
}

static bool closed(int lifeline)
{
    struct pollfd p = {.fd = lifeline, .events = POLLIN};
    return poll(&p, 1, POLL_MS) > 0;
}

int follow_to_end(struct follow *f, int lifeline, struct pawl_err *err)
{
    bool last = false;
    for (;;) {
        int rc = follow_look(f, err);
        out_flush(&f->c->out);
        if (rc < 0 || f->finished || last || cli_signal() || f->c->out.failed)
            return rc;
        last = closed(lifeline); /* then once more, for what was written before */
    }
}

int job_verdict(struct cli *c, job_id id, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = c->store->ops->job_get(c->store, id, &a, &job, err);
    if (rc < 0)
        return rc;
    if (job.state == JOB_DONE || job.state == JOB_SKIPPED)
        return 0;
    bool failed = job_state_terminal(job.state);
    bool why = job.state == JOB_FAILED && job.error.p;
    return err_set(err, failed ? PAWL_EJOBS_FAILED : PAWL_ECONFLICT, "job %lld is %s%s" SV_FMT,
                   (long long)id.v, job_state_name(job.state), why ? ": " : "",
                   SV_ARG(why ? job.error : SV("")));
}
