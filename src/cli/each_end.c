/* What `pawl each` does when a job ends, on the worker's loop: count, halt, limit, print, log. */
#include "each.h"

#include "fd.h"
#include "joblog.h"
#include "text.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>

enum { LIMIT_AFTER = 3, HALT_PERCENT_MIN = 3, SAID_MAX = 20 };

/* ---- the median: buckets 1 % apart ---- */

static int bucket_of(struct dur d)
{
    int b = d.us > 1 ? (int)(log((double)d.us) / log(1.01)) : 0;
    return b < EACH_BUCKETS ? b : EACH_BUCKETS - 1;
}

static struct dur median(const struct each_ends *e)
{
    int64_t seen = 0;
    int b = 0;
    while (b < EACH_BUCKETS - 1 && (seen += e->took[b]) * 2 < e->n_took)
        b++;
    return DUR_US(pow(1.01, b + 0.5));
}

static struct dur limit(void *arg, const struct lease *job, struct dur given)
{
    const struct each_ends *e = arg;
    (void)job;
    if (!e->limit_percent || e->n_took < LIMIT_AFTER)
        return given;
    return DUR_US(median(e).us * e->limit_percent / 100 + 1);
}

/* ---- halting ---- */

static bool too_many(const struct each_ends *e)
{
    const struct each_halt *h = &e->halt;
    if (h->when == HALT_NEVER || !e->failed)
        return false;
    if (!h->percent)
        return e->failed >= h->number;
    return e->feed->counted && e->failed >= HALT_PERCENT_MIN &&
           e->failed * 100 >= h->number * e->feed->total;
}

/* Before the slot is filled again, so that after the last failure nothing starts. */
static enum worker_verdict on_result(void *arg, const struct attempt_end *end)
{
    struct each_ends *e = arg;
    if (end->outcome == OUTCOME_DONE && end->took.us >= 0) {
        e->took[bucket_of(end->took)]++;
        e->n_took++;
    }
    if (end->outcome == OUTCOME_DONE || end->outcome == OUTCOME_SKIPPED)
        e->done++;
    else if (end->outcome == OUTCOME_FAILED || end->outcome == OUTCOME_CANCELLED)
        e->failed++;
    if (!too_many(e))
        return WORKER_GO_ON;
    if (!e->halted_at)
        e->halted_at = e->failed;
    return e->halt.when == HALT_NOW ? WORKER_STOP_NOW : WORKER_STOP_SOON;
}

/* ---- printing ---- */

struct printing {
    struct each_ends *e;
    struct sv tag; /* p NULL: none */
    bool inside;   /* a line has begun */
};

/* Bytes as they are into a pipe or file, harmless on a terminal (I14). */
static void put(struct out *o, struct sv bytes)
{
    if (!o->terminal) {
        out_put(o, bytes);
        return;
    }
    AUTO_STR struct str safe = STR_INIT(STR_OUTPUT);
    text_safe_lines(&safe, bytes);
    out_put(o, str_sv(&safe));
}

static void emit(void *arg, struct sv bytes)
{
    struct printing *p = arg;
    struct out *o = &p->e->c->out;
    if (!p->tag.p) {
        put(o, bytes);
        return;
    }
    while (bytes.n) {
        const char *lf = memchr(bytes.p, '\n', bytes.n);
        size_t n = lf ? (size_t)(lf - bytes.p) + 1 : bytes.n;
        if (!p->inside) {
            put(o, p->tag);
            out_put(o, SV("\t"));
        }
        put(o, sv_make(bytes.p, n));
        p->inside = lf == NULL;
        bytes = sv_make(bytes.p + n, bytes.n - n);
    }
}

static void print_log(struct each_ends *e, int dir, job_id id, fence_no fence, struct sv tag)
{
    char name[64];
    struct joblog_cursor cursor = {0};
    struct pawl_err err;
    struct printing p = {.e = e, .tag = e->tag ? tag : SV_NONE};
    store_log_name(id, fence, name);
    if (joblog_read(dir, name, &cursor, emit, &p, &err) < 0)
        cli_warn(e->c, "%s", err.msg);
    out_flush(&e->c->out);
}

static void print_held(struct each_ends *e, bool any)
{
    struct each_held *h;
    while ((h = each_order_take(e->order, any)) != NULL) {
        if (h->log_bytes)
            print_log(e, e->log_dir, h->id, h->fence, sv_make(h->tag, h->tag_len));
        free(h);
    }
}

static void print_in_order(struct each_ends *e, const struct attempt_end *end,
                           const struct each_note *note)
{
    struct each_held *h = mem_alloc(sizeof(*h) + note->tag.n);
    *h = (struct each_held){.seq = note->seq,
                            .id = end->job->id,
                            .fence = end->job->fence,
                            .log_bytes = end->log_bytes,
                            .tag_len = note->tag.n};
    memcpy(h->tag, note->tag.p, note->tag.n);
    if (e->log_dir < 0)
        e->log_dir = fcntl(end->log_dir, F_DUPFD_CLOEXEC, 3);
    each_order_end(e->order, h);
    print_held(e, false);
}

void each_ends_flush(struct each_ends *e)
{
    if (e->order)
        print_held(e, true);
}

/* ---- the job log ---- */

static int exit_value(const struct attempt_end *end)
{
    if (end->exit_code >= 0)
        return end->exit_code;
    if (end->signal)
        return 0;
    return end->error.p && sv_starts(end->error, SV("program not found")) ? 127 : -1;
}

/* GNU parallel's columns; one write, so lines of several runs do not mix. */
static void log_job(struct each_ends *e, const struct attempt_end *end,
                    const struct each_note *note)
{
    char slot[16];
    struct str *s = &e->line;
    int64_t ms = end->started_at.us / 1000;
    struct sv words = note->words;
    const struct each_template *t = e->feed->t;
    for (int i = 0; i < 2 && t->shell; i++) { /* /bin/sh -c */
        size_t n = strlen(words.p) + 1;
        words = sv_make(words.p + n, words.n - n);
    }
    snprintf(slot, sizeof(slot), "%d", end->slot);
    str_clear(s);
    str_addf(s, "%lld\t:\t%lld.%03d\t%10.3f\t0\t%lld\t%d\t%d\t", (long long)note->seq,
             (long long)(ms / 1000), (int)(ms % 1000),
             end->took.us > 0 ? (double)end->took.us / 1e6 : 0.0, (long long)end->log_bytes,
             exit_value(end), end->signal);
    size_t from = s->len;
    each_show_command(t, words, slot, s);
    for (size_t i = from; i < s->len; i++)
        if (s->p[i] == '\n') /* as parallel does: a line feed would break the table */
            s->p[i] = '\0';
    str_addc(s, '\n');
    if (fd_write_all(e->joblog, s->p, s->len) < 0 && e->said++ < SAID_MAX)
        cli_warn(e->c, "cannot write the job log: %s", strerror(errno));
}

/* ---- ends ---- */

static bool final(const struct attempt_end *end)
{
    return !end->stale && end->outcome != OUTCOME_RETRY && end->outcome != OUTCOME_RELEASED;
}

/* Why, where the job had no chance to say it itself. */
static void say_why(struct each_ends *e, const struct attempt_end *end,
                    const struct each_note *note)
{
    bool mute = end->exit_code < 0 && end->error.n;
    if (end->outcome != OUTCOME_FAILED || !mute || e->said++ >= SAID_MAX)
        return;
    cli_say(e->c, "pawl: " SV_FMT ": " SV_FMT, SV_ARG(note->tag), SV_ARG(end->error));
}

static enum worker_verdict on_end(void *arg, const struct attempt_end *end)
{
    struct each_ends *e = arg;
    struct each_note note;
    bool quiet_end = !end->log_bytes && end->outcome == OUTCOME_DONE;
    if (!final(end) || (quiet_end && e->joblog < 0 && !e->order))
        return WORKER_GO_ON;
    arena_reset(&e->arena);
    if (!each_note_read(end->job->payload, e->feed->t->hash, &e->arena, &e->doc, &note))
        return WORKER_GO_ON; /* somebody else's job in the same queue */
    say_why(e, end, &note);
    if (e->joblog >= 0)
        log_job(e, end, &note);
    if (e->order)
        print_in_order(e, end, &note);
    else if (end->log_bytes)
        print_log(e, end->log_dir, end->job->id, end->job->fence, note.tag);
    return e->c->out.failed ? WORKER_STOP_NOW : WORKER_GO_ON;
}

static bool more(void *arg)
{
    const struct each_ends *e = arg;
    return !e->feed->over;
}

void each_ends_init(struct each_ends *e)
{
    arena_init(&e->arena);
    e->line = STR_INIT(PAYLOAD_MAX_BYTES);
    e->joblog = e->log_dir = -1;
    e->guest = (struct worker_guest){
        .arg = e, .limit = limit, .on_result = on_result, .on_end = on_end, .more = more};
}

void each_ends_done(struct each_ends *e)
{
    arena_done(&e->arena);
    json_done(&e->doc);
    str_done(&e->line);
    fd_closep(&e->joblog);
    fd_closep(&e->log_dir);
}
