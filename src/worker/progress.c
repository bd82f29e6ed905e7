/* The progress display. A bar steps aside for log lines through logger.around. */
#include "worker_internal.h"

#include "fd.h"
#include <sys/ioctl.h>

#define BAR_PERIOD  DUR_MS(100)
#define LINE_PERIOD DUR_S(10)
#define LINE_LATER  DUR_S(60)
#define LINE_LONG   DUR_S(600)
#define LOOK_PERIOD DUR_S(1)
enum { BAR_CELLS = 20, BAR_LEAST = 5, OUT_FD = STDERR_FILENO };

/* What the display is made of, in the order in which it is shown. */
enum part {
    DONE,
    FAILED,
    RETRIED,
    RUNNING,
    LEFT,
    RATE,
    BYTES,
    ETA,
    THROTTLED,
    LIMITED,
    STATE,
    N_PARTS
};
/* In the order of what it is worth: what does not fit into the terminal is left out whole. The bar
 * comes after RUNNING, and takes the room that it finds. */
static const enum part by_worth[] = {DONE,   STATE,     LEFT,    ETA,   LIMITED, RATE,
                                     FAILED, THROTTLED, RUNNING, BYTES, RETRIED};
enum { PARTS_BEFORE_BAR = 9 };

static int64_t ended(const struct worker *w)
{
    return w->report.done + w->report.skipped + w->report.failed;
}

static void sample(struct worker *w)
{
    struct progress_display *d = &w->progress;
    struct boot now = loop_now(w->loop);
    double secs = (double)(now.us - d->sampled.us) / 1e6;
    if (secs < 1.0)
        return;
    double rate = (double)(ended(w) - d->sampled_ended) / secs;
    d->rate = d->sampled_ended || d->rate > 0 ? d->rate + (rate - d->rate) * 0.3 : rate;
    int64_t kept = atomic_load_explicit(&w->metrics.v[METRIC_lake_bytes], memory_order_relaxed);
    d->bytes += ((double)(kept - d->sampled_bytes) / secs - d->bytes) * 0.3;
    d->sampled = now;
    d->sampled_ended = ended(w);
    d->sampled_bytes = kept;
}

static void ask_for_counts(struct worker *w)
{
    struct boot now = loop_now(w->loop);
    if (now.us - w->progress.looked.us < LOOK_PERIOD.us)
        return;
    w->progress.looked = now;
    w->look_due = true;
    worker_soon(w);
}

/* As counted when we last looked, less what ended here since. */
static int64_t left(const struct worker *w)
{
    int64_t n = w->seen.left - (w->ended_jobs - w->seen.ended);
    return n > 0 ? n : 0;
}

static void add_bar(const struct worker *w, int64_t size, struct str *out)
{
    int64_t all = ended(w) + left(w);
    int64_t cells = all > 0 ? ended(w) * size / all : 0;
    str_addc(out, '[');
    for (int64_t i = 0; i < size; i++)
        str_addc(out, i < cells ? '#' : '.');
    str_adds(out, "] ");
}

/* ---- the parts ---- */

/* Every pool that runs something runs as much as it can. */
static bool slots_are_full(const struct worker *w)
{
    for (size_t i = 0; i < w->n_pools; i++)
        if (w->pools[i].running && w->pools[i].running < w->pools[i].slots)
            return false;
    return w->n_running > 0;
}

/* NULL: nothing that is known of. */
static const char *limited_by(const struct worker *w)
{
    if (w->hold.held)
        return "disk";
    if (!w->seen.known || left(w) <= (int64_t)w->n_running)
        return NULL;
    if (slots_are_full(w))
        return "slots";
    return w->limited.by[0] ? w->limited.by : NULL;
}

static void add_eta(const struct worker *w, struct str *out)
{
    if (!w->seen.known || !left(w) || w->progress.rate <= 0.01)
        return;
    str_adds(out, "ETA ");
    dur_human(DUR_S((double)left(w) / w->progress.rate + 1.0), out);
}

static void add_throttled(const struct worker *w, struct str *out)
{
    int n = w->limited.throttled;
    if (n && w->seen.left)
        str_addf(out, "%d%s host%s throttled", n, n >= LIMITED_GATES ? "+" : "", n == 1 ? "" : "s");
}

static void add_state(const struct worker *w, struct str *out)
{
    if (w->paused)
        str_adds(out, "paused");
    if (w->store_down)
        str_addf(out, "%sstore not available", w->paused ? ", " : "");
}

/* Nothing: the part does not apply now. */
static void add_part(const struct worker *w, enum part part, struct str *out)
{
    const struct worker_report *r = &w->report;
    const char *by = limited_by(w);
    if (part == DONE)
        str_addf(out, "done %lld", (long long)(r->done + r->skipped));
    else if (part == FAILED)
        str_addf(out, "failed %lld", (long long)r->failed);
    else if (part == RETRIED)
        str_addf(out, "retried %lld", (long long)r->retried);
    else if (part == RUNNING)
        str_addf(out, "running %zu", w->n_running);
    else if (part == LEFT && w->seen.known)
        str_addf(out, "left %lld", (long long)left(w));
    else if (part == RATE)
        str_addf(out, "%.1f/s", w->progress.rate);
    else if (part == BYTES && w->progress.bytes >= 1000)
        str_addf(out, "%.1f MB/s", w->progress.bytes / 1e6);
    else if (part == ETA)
        add_eta(w, out);
    else if (part == THROTTLED)
        add_throttled(w, out);
    else if (part == LIMITED && by)
        str_addf(out, "limited by %s", by);
    else if (part == STATE)
        add_state(w, out);
}

/* ---- the line ---- */

/* Takes room from *width for a bar; how many cells it has. */
static size_t fit_bar(size_t *width)
{
    const size_t around = sizeof("[] ") - 1;
    if (*width < BAR_LEAST + around)
        return 0;
    size_t cells = *width - around < BAR_CELLS ? *width - around : BAR_CELLS;
    *width -= cells + around;
    return cells;
}

/* Parts that fit into `width` columns, by their worth; a bar, if there is to be one, in what is
 * left when the more useful ones are in. */
static void compose(const struct worker *w, size_t width, bool bar, struct str *out)
{
    static const char between[] = ", ";
    struct str parts[N_PARTS];
    size_t cells = 0;
    for (int i = 0; i < N_PARTS; i++) {
        struct str *part = &parts[by_worth[i]];
        *part = STR_INIT(STR_LINE);
        add_part(w, by_worth[i], part);
        size_t n = part->len + (i ? sizeof(between) - 1 : 0);
        if (part->len && n <= width)
            width -= n;
        else
            str_clear(part);
        if (bar && i + 1 == PARTS_BEFORE_BAR)
            cells = fit_bar(&width);
    }
    if (cells)
        add_bar(w, (int64_t)cells, out);
    for (int i = 0, shown = 0; i < N_PARTS; i++) {
        if (parts[i].len)
            str_addf(out, "%s%s", shown++ ? between : "", str_cstr(&parts[i]));
        str_done(&parts[i]);
    }
}

static size_t columns(void)
{
    struct winsize size;
    return ioctl(OUT_FD, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

static void hide_bar(struct worker *w)
{
    static const char clear[] = "\r\033[K";
    if (w->progress.drawn)
        (void)fd_write_all(OUT_FD, clear, sizeof(clear) - 1);
    w->progress.drawn = false;
}

static void show_bar(struct worker *w)
{
    struct progress_display *d = &w->progress;
    size_t n = d->line.len < columns() ? d->line.len : columns() - 1;
    if (!d->line.p)
        return;
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    str_addc(&out, '\r');
    str_add(&out, sv_make(d->line.p, n));
    str_adds(&out, "\033[K");
    (void)fd_write_all(OUT_FD, out.p, out.len);
    d->drawn = true;
}

static void around(void *arg, bool before)
{
    struct worker *w = arg;
    if (before)
        hide_bar(w);
    else
        show_bar(w);
}

static void on_bar(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, progress.timer);
    struct progress_display *d = &w->progress;
    sample(w);
    ask_for_counts(w);
    str_clear(&d->line);
    compose(w, columns() - 1, true, &d->line);
    if (!d->drawn || !sv_eq(str_sv(&d->line), str_sv(&d->shown)))
        show_bar(w);
    str_clear(&d->shown);
    str_add(&d->shown, str_sv(&d->line));
    loop_timer_set(w->loop, t, BAR_PERIOD);
}

static void print_line(struct worker *w)
{
    struct str *line = &w->progress.line;
    str_clear(line);
    str_adds(line, "pawl: ");
    compose(w, SIZE_MAX, false, line);
    str_addc(line, '\n');
    (void)fd_write_all(OUT_FD, line->p, line->len);
}

static void on_line(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, progress.timer);
    bool later = loop_now(w->loop).us - w->progress.began.us >= LINE_LONG.us;
    sample(w);
    print_line(w);
    ask_for_counts(w); /* for the next line */
    loop_timer_set(w->loop, t, later ? LINE_LATER : LINE_PERIOD);
}

void progress_init(struct worker *w)
{
    struct progress_display *d = &w->progress;
    d->began = d->sampled = clock_boot();
    d->line = d->shown = STR_INIT(STR_LINE);
    if (w->o->progress == PROGRESS_NONE)
        return;
    w->look_due = true;
    bool bar = w->o->progress == PROGRESS_BAR;
    d->timer.on_time = bar ? on_bar : on_line;
    loop_timer_set(w->loop, &d->timer, bar ? BAR_PERIOD : LINE_PERIOD);
    if (bar && !w->log.around) {
        w->log.around = around;
        w->log.around_arg = w;
    }
}

void progress_done(struct worker *w)
{
    struct progress_display *d = &w->progress;
    loop_timer_clear(w->loop, &d->timer);
    if (w->o->progress == PROGRESS_BAR)
        hide_bar(w);
    w->log.around = w->o->log->around; /* the bar is gone for good */
    str_done(&d->line);
    str_done(&d->shown);
}
