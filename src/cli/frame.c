/* What the live view shows, as lines. No I/O here: text comes from data and size alone. */
#include "watch.h"

#include "job_out.h"
#include "json.h"
#include "mem.h"
#include "spark.h"
#include "table.h"
#include "text.h"
#include "workers_out.h"
#include <stdio.h>
#include <time.h>

/* A section that is cut: an empty line, the head, and at the end how many more. */
enum { ATTENTION_SHOWN = 3, SECTION_FRAME = 3, SECTION_LEAST = SECTION_FRAME + 1 };

void frame_init(struct frame *f, int cols, int rows, bool color)
{
    *f = (struct frame){.cols = cols, .rows = rows, .color = color};
    f->lines = mem_zalloc((size_t)rows + 1, sizeof(*f->lines));
}

void frame_done(struct frame *f)
{
    for (int i = 0; i < f->n; i++)
        str_done(&f->lines[i]);
    free(f->lines);
    *f = (struct frame){0};
}

/* Length of the style sequence at s[i], 0 if there is none: the only escapes that get here. */
static size_t style_length(struct sv s, size_t i)
{
    size_t n = i;
    if (s.p[n] != '\033')
        return 0;
    while (n < s.n && s.p[n] != 'm')
        n++;
    return n < s.n ? n + 1 - i : 0;
}

/* Add a line, cut at the right edge. Beyond the last row it is dropped. */
static void add_line(struct frame *f, struct sv s)
{
    if (f->n >= f->rows)
        return;
    struct str *to = &f->lines[f->n++];
    int col = 0;
    bool styled = false;
    *to = STR_INIT(STR_LINE);
    for (size_t i = 0; i < s.n;) {
        size_t style = style_length(s, i);
        if (!style && ((unsigned char)s.p[i] & 0xc0) != 0x80 && ++col > f->cols)
            break;
        str_add(to, sv_make(s.p + i, style ? style : 1));
        styled |= style > 0;
        i += style ? style : 1;
    }
    if (styled)
        str_adds(to, "\033[0m");
}

/* At most `most` lines of a text; if there are more, the last one says how many are missing. */
static void add_lines(struct frame *f, struct sv text, int most)
{
    int n = 0, all = 0;
    for (size_t i = 0; i < text.n; i++)
        all += text.p[i] == '\n';
    while (text.n && n < most) {
        char more[64];
        struct sv line = sv_cut(text, '\n', &text);
        if (++n == most && all > most) {
            snprintf(more, sizeof(more), "… %d more", all - most + 1);
            line = sv_of(more);
        }
        add_line(f, line);
    }
}

/* ---- which rows ---- */

static bool has_text(const struct watch_ui *ui, struct sv s)
{
    return !ui->text[0] || (s.n && memmem(s.p, s.n, ui->text, strlen(ui->text)));
}

static bool shows_job(const struct watch_ui *ui, const struct job_view *job)
{
    return has_text(ui, job->queue) || has_text(ui, job->kind) || has_text(ui, job->key);
}

bool watch_shows_queue(const struct watch_data *d, const struct watch_ui *ui,
                       const struct queue_row *row)
{
    if (has_text(ui, row->queue))
        return true;
    for (size_t i = 0; i < d->status->n_classes; i++)
        if (sv_eq(d->status->classes[i].queue, row->queue) &&
            has_text(ui, d->status->classes[i].kind))
            return true;
    for (size_t i = 0; i < d->status->n_running; i++)
        if (sv_eq(d->status->running[i].queue, row->queue) &&
            has_text(ui, d->status->running[i].key))
            return true;
    return false;
}

const struct queue_row *watch_selected(const struct watch_data *d, const struct watch_ui *ui)
{
    const struct queue_row *first = NULL;
    for (size_t i = 0; i < d->n_rows; i++) {
        if (!watch_shows_queue(d, ui, &d->rows[i]))
            continue;
        if (sv_eq(d->rows[i].queue, sv_of(ui->selected)))
            return &d->rows[i];
        if (!first)
            first = &d->rows[i];
    }
    return first;
}

/* ---- sections: each prints its table into memory ---- */

static struct out memory_out(const struct frame *f)
{
    return (struct out){.fd = -1,
                        .buf = STR_INIT(STR_OUTPUT),
                        .terminal = true,
                        .color = f->color,
                        .width = f->cols,
                        .keep = true};
}

static void put_rate(struct table *t, double rate)
{
    AUTO_STR struct str s = STR_INIT(64);
    rate_format(rate, &s);
    table_text(t, str_sv(&s));
}

static void put_queue(struct table *t, const struct queue_row *r, bool selected)
{
    table_styled(t, selected ? SV(">") : SV(" "), STYLE_BOLD);
    table_styled(t, r->queue, r->paused ? STYLE_YELLOW : selected ? STYLE_BOLD : STYLE_NONE);
    for (int k = 0; k < N_JOB_STATES; k++)
        table_count(t, r->n[k]);
    put_rate(t, r->rate_now);
    if (r->paused)
        table_styled(t, SV("paused"), STYLE_YELLOW);
    else
        table_dur(t, r->eta);
}

/* From `first` on, so that the selected one is among those that fit. */
static void queues_section(struct out *o, const struct watch_data *d, const struct watch_ui *ui,
                           int room)
{
    static const struct column columns[] = {
        {"", false, 0, false},        {"QUEUE", false, 24, false}, {"BLOCKED", true, 0, true},
        {"QUEUED", true, 0, true},    {"WAITING", true, 0, true},  {"RUNNING", true, 0, true},
        {"DONE", true, 0, true},      {"SKIPPED", true, 0, true},  {"FAILED", true, 0, true},
        {"CANCELLED", true, 0, true}, {"RATE", true, 0, true},     {"ETA", true, 0, false},
    };
    const struct queue_row *selected = watch_selected(d, ui);
    int before = 0, skip;
    struct table t;
    if (!selected)
        return;
    for (const struct queue_row *r = d->rows; r < selected; r++)
        before += watch_shows_queue(d, ui, r);
    skip = room > 0 && before >= room ? before - room + 1 : 0;
    out_put(o, SV("\n"));
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < d->n_rows; i++)
        if (watch_shows_queue(d, ui, &d->rows[i]) && skip-- <= 0)
            put_queue(&t, &d->rows[i], &d->rows[i] == selected);
    table_end(&t);
}

static void workers_section(struct out *o, const struct watch_data *d)
{
    static const struct column columns[] = {
        {"WORKER", false, 32, false}, {"STATE", false, 0, false}, {"SLOTS", true, 0, false},
        {"BUSY", true, 0, false},     {"UP", true, 0, false},     {"RENEWED", true, 0, false},
    };
    const struct status_view *s = d->status;
    struct table t;
    if (!s->n_sessions)
        return;
    out_put(o, SV("\n"));
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct session_view *v = &s->sessions[i];
        table_text(&t, v->name);
        table_styled(&t, sv_of(worker_state(s, v)), v->alive ? STYLE_GREEN : STYLE_RED);
        table_int(&t, v->slots);
        table_count(&t, worker_running(s, v));
        table_dur(&t, DUR_US(s->now.us - v->started_at.us));
        table_dur(&t, DUR_US(s->now.us - v->renewed_at.us));
    }
    table_end(&t);
}

static void put_progress(struct table *t, struct sv json)
{
    char text[16];
    int percent = progress_percent(json);
    if (percent < 0) {
        table_text(t, json);
        return;
    }
    snprintf(text, sizeof(text), "%d%%", percent);
    table_text(t, sv_of(text));
}

static void running_section(struct out *o, const struct watch_data *d, const struct watch_ui *ui)
{
    static const struct column columns[] = {
        {"RUNNING", true, 0, false},    {"QUEUE", false, 20, false}, {"KIND", false, 12, false},
        {"KEY", false, 24, true},       {"TRY", true, 0, false},     {"AGE", true, 0, false},
        {"PROGRESS", false, 40, false},
    };
    struct table t;
    size_t n = 0;
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < d->status->n_running; i++) {
        const struct job_view *job = &d->status->running[i];
        if (!shows_job(ui, job))
            continue;
        if (!n++)
            out_put(o, SV("\n"));
        table_int(&t, job->id.v);
        table_text(&t, job->queue);
        table_text(&t, job->kind);
        table_text(&t, job->key);
        table_int(&t, job->attempt);
        table_dur(&t, DUR_US(d->status->now.us - job->claimed_at.us));
        put_progress(&t, job->progress);
    }
    table_end(&t);
    if (!n)
        str_clear(&o->buf);
}

static void failed_section(struct out *o, const struct watch_data *d, const struct watch_ui *ui)
{
    static const struct column columns[] = {
        {"FAILED", true, 0, false}, {"QUEUE", false, 20, false}, {"KIND", false, 12, false},
        {"KEY", false, 24, true},   {"AGO", true, 0, false},     {"ERROR", false, 200, false},
    };
    struct table t;
    size_t n = 0;
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < d->status->n_last_failed; i++) {
        const struct job_view *job = &d->status->last_failed[i];
        if (!shows_job(ui, job))
            continue;
        if (!n++)
            out_put(o, SV("\n"));
        table_int(&t, job->id.v);
        table_text(&t, job->queue);
        table_text(&t, job->kind);
        table_text(&t, job->key);
        table_dur(&t, DUR_US(d->status->now.us - job->finished_at.us));
        table_styled(&t, job->error, STYLE_RED);
    }
    table_end(&t);
    if (!n)
        str_clear(&o->buf);
}

/* ---- the frame ---- */

static void add_header(struct frame *f, const struct watch_data *d)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE), totals = STR_INIT(STR_LINE);
    char clock[16];
    struct tm tm;
    time_t now = (time_t)(d->status->now.us / 1000000);
    localtime_r(&now, &tm);
    strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    out_styled(&s, f->color, STYLE_BOLD, sv_of(clock));
    str_adds(&s, "  ");
    text_safe(&s, sv_of(d->store), 0);
    str_adds(&s, "  every ");
    dur_human(d->interval, &s);
    add_line(f, str_sv(&s));
    for (int k = 0; k < N_JOB_STATES; k++) {
        int64_t n = 0;
        for (size_t i = 0; i < d->n_rows; i++)
            n += d->rows[i].n[k];
        if (!n && k != JOB_QUEUED && k != JOB_RUNNING && k != JOB_DONE && k != JOB_FAILED)
            continue;
        str_addf(&totals, "%s%lld ", totals.len ? ", " : "", (long long)n);
        out_styled(&totals, f->color, n ? job_state_style((enum job_state)k) : STYLE_NONE,
                   sv_of(job_state_name((enum job_state)k)));
    }
    add_line(f, str_sv(&totals));
}

static void add_footer(struct frame *f, const struct watch_ui *ui)
{
    static const char *const filters[] = {"all", "running", "failed"};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (ui->typing) {
        str_adds(&s, "/");
        text_safe(&s, sv_of(ui->text), 0);
        str_adds(&s, "_   Enter: keep, Esc: all");
    } else if (ui->note[0]) {
        text_safe(&s, sv_of(ui->note), 0);
    } else if (ui->help) {
        str_adds(&s, "q quit  j/k or arrows: select queue  p pause/resume it  f all, running or "
                     "failed  / only what contains a text in queue, kind, key  Esc all");
    } else {
        str_addf(&s, "q quit  p pause  f show: %s  / text", filters[ui->filter]);
        if (ui->text[0]) {
            str_adds(&s, ": ");
            text_safe(&s, sv_of(ui->text), 0);
        }
        str_adds(&s, "  ? help");
    }
    while (f->n < f->rows - 1)
        add_line(f, SV_NONE);
    if (f->n >= f->rows) {
        f->n = f->rows - 1;
        str_done(&f->lines[f->n]);
    }
    AUTO_STR struct str styled = STR_INIT(STR_LINE);
    out_styled(&styled, f->color, STYLE_BLUE, str_sv(&s));
    add_line(f, str_sv(&styled));
}

void frame_share(const int *want, int n, int room, int least, int *got)
{
    bool gave = true;
    for (int i = 0; i < n; i++)
        got[i] = 0;
    while (room > 0 && gave) {
        gave = false;
        for (int i = 0; i < n && room > 0; i++) {
            int more = got[i] ? 1 : want[i] < least ? want[i] : least;
            if (got[i] >= want[i] || more > room)
                continue;
            got[i] += more;
            room -= more;
            gave = true;
        }
    }
}

static int count_lines(const struct str *s)
{
    int n = 0;
    for (size_t i = 0; i < s->len; i++)
        n += s->p[i] == '\n';
    return n;
}

/* The sections share what header and footer leave. A second look at the queues, once their room is
 * known, brings the selected one into it. */
static void add_sections(struct frame *f, const struct watch_data *d, const struct watch_ui *ui)
{
    enum { QUEUES, LIMITS, RUNNING, FAILED, WORKERS, N };
    struct out o[N];
    int want[N], got[N];
    for (int i = 0; i < N; i++)
        o[i] = memory_out(f);
    queues_section(&o[QUEUES], d, ui, 0);
    if (ui->filter != WATCH_FAILED)
        running_section(&o[RUNNING], d, ui);
    if (ui->filter != WATCH_RUNNING)
        failed_section(&o[FAILED], d, ui);
    if (ui->filter == WATCH_ALL) {
        status_limited(&o[LIMITS], &d->gates, d->status->now);
        workers_section(&o[WORKERS], d);
    }
    for (int i = 0; i < N; i++)
        want[i] = count_lines(&o[i].buf);
    frame_share(want, N, f->rows - 1 - f->n, SECTION_LEAST, got);
    if (got[QUEUES] < want[QUEUES]) {
        str_clear(&o[QUEUES].buf);
        queues_section(&o[QUEUES], d, ui, got[QUEUES] - SECTION_FRAME);
    }
    for (int i = 0; i < N; i++) {
        add_lines(f, str_sv(&o[i].buf), got[i]);
        str_done(&o[i].buf);
    }
}

void frame_compose(struct frame *f, const struct watch_data *d, const struct watch_ui *ui)
{
    add_header(f, d);
    add_lines(f, d->attention, ATTENTION_SHOWN);
    add_sections(f, d, ui);
    add_footer(f, ui);
}

/* ---- progress ---- */

static double number_at(const struct json *doc, uint32_t i)
{
    char text[64];
    if ((i == 0 && json_type(doc, 0) != JSON_NUMBER) || json_type(doc, i) != JSON_NUMBER)
        return -1;
    struct sv s = json_source(doc, i);
    snprintf(text, sizeof(text), SV_FMT, SV_ARG(s));
    return strtod(text, NULL);
}

int progress_percent(struct sv json)
{
    AUTO_JSON struct json doc = {0};
    if (!json.n || json_parse(&doc, json, NULL) < 0)
        return -1;
    double percent = number_at(&doc, 0);
    if (json_type(&doc, 0) == JSON_OBJECT) {
        uint32_t p = json_member(&doc, 0, SV("percent")), d = json_member(&doc, 0, SV("done")),
                 t = json_member(&doc, 0, SV("total"));
        if (p)
            percent = number_at(&doc, p);
        else if (d && t && number_at(&doc, t) > 0)
            percent = number_at(&doc, d) * 100 / number_at(&doc, t);
    }
    return percent >= 0 && percent <= 100 ? (int)percent : -1;
}
