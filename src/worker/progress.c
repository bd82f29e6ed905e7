/* The progress display. A bar steps aside for log lines through logger.around. */
#include "worker_internal.h"

#include "fd.h"
#include <sys/ioctl.h>

#define BAR_PERIOD  DUR_MS(100)
#define LINE_PERIOD DUR_S(10)
#define LINE_LATER  DUR_S(60)
#define LINE_LONG   DUR_S(600)
#define LOOK_PERIOD DUR_S(1)
enum { BAR_CELLS = 20, OUT_FD = STDERR_FILENO };

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

static void add_bar(const struct worker *w, struct str *out)
{
    int64_t all = ended(w) + left(w);
    int64_t cells = all > 0 ? ended(w) * BAR_CELLS / all : 0;
    str_addc(out, '[');
    for (int64_t i = 0; i < BAR_CELLS; i++)
        str_addc(out, i < cells ? '#' : '.');
    str_adds(out, "] ");
}

static void compose(const struct worker *w, struct str *out)
{
    const struct worker_report *r = &w->report;
    double rate = w->progress.rate;
    str_addf(out, "done %lld, failed %lld, retried %lld, running %zu",
             (long long)(r->done + r->skipped), (long long)r->failed, (long long)r->retried,
             w->n_running);
    if (w->seen.known)
        str_addf(out, ", left %lld", (long long)left(w));
    str_addf(out, ", %.1f/s", rate);
    if (w->progress.bytes >= 1000)
        str_addf(out, ", %.1f MB/s", w->progress.bytes / 1e6);
    if (w->seen.known && left(w) && rate > 0.01) {
        str_adds(out, ", ETA ");
        dur_human(DUR_S((double)left(w) / rate + 1.0), out);
    }
    if (w->hold.held)
        str_adds(out, ", limited by disk");
    if (w->paused)
        str_adds(out, ", paused");
    if (w->store_down)
        str_adds(out, ", store not available");
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
    add_bar(w, &d->line);
    compose(w, &d->line);
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
    compose(w, line);
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
