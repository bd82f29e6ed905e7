/* The page of a report. Every word of a job passes text_safe (I14). */
#include "report.h"

#include "fingerprint.h"
#include "mem.h"
#include "spark.h"
#include "table.h"
#include "text.h"
#include "words.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_WIDTH = 80, LABEL = 9, LOGS_LOOKED_AT = 2000, SHORT_ERRORS = 5 };

static int page_width(const struct out *o)
{
    return o->width ? o->width : PAGE_WIDTH;
}

static void add_label(struct str *s, const struct out *o, const char *label)
{
    char text[32];
    snprintf(text, sizeof(text), "%-*s", LABEL, label);
    out_styled(s, o->color, STYLE_BOLD, sv_of(text));
}

static void put_line(struct out *o, struct str *s)
{
    str_addc(s, '\n');
    out_put(o, str_sv(s));
    str_clear(s);
}

static void add_local(struct str *s, struct wall t, const char *format)
{
    char text[64];
    struct tm tm;
    time_t secs = (time_t)(t.us / 1000000);
    localtime_r(&secs, &tm);
    strftime(text, sizeof(text), format, &tm);
    str_adds(s, text);
}

/* Cut after `room` characters; text is harmless UTF-8. */
static struct sv cut(struct sv s, int room)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80 && room-- <= 0)
            return sv_make(s.p, i);
    return s;
}

static void print_period(struct out *o, struct wall since, struct wall now, struct sv queue)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE), text = STR_INIT(STR_LINE);
    struct dur length = {now.us - since.us};
    const char *format = length.us < DUR_S(600).us ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M";
    add_local(&text, since, format);
    str_adds(&text, " to ");
    add_local(&text, now, format + (length.us < DUR_S(86400).us ? strlen("%Y-%m-%d ") : 0));
    add_local(&text, now, " %Z (");
    dur_human(length, &text);
    str_addc(&text, ')');
    if (queue.p) {
        str_adds(&text, ", queue ");
        text_safe(&text, queue, 32);
    }
    add_label(&s, o, "report");
    str_add(&s, cut(str_sv(&text), page_width(o) - LABEL));
    put_line(o, &s);
}

static bool in_scope(const struct report_data *d, const struct class_view *v)
{
    return !d->queue.p || sv_eq(d->queue, v->queue);
}

static int64_t count_now(const struct report_data *d, enum job_state state)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->status.n_classes; i++)
        if (in_scope(d, &d->status.classes[i]))
            n += d->status.classes[i].n[state];
    return n;
}

static int64_t workers_alive(const struct status_view *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n_sessions; i++)
        n += s->sessions[i].alive;
    return n;
}

void report_print_now(struct out *o, const struct report_data *d, struct wall since)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    const char *sep = "";
    print_period(o, since, d->status.now, d->queue);
    add_label(&s, o, "now");
    for (enum job_state k = JOB_BLOCKED; k <= JOB_RUNNING; k++) {
        str_addf(&s, "%s%lld %s", sep, (long long)count_now(d, k), job_state_name(k));
        sep = ", ";
    }
    put_line(o, &s);
}

static void add_count(struct str *s, const struct out *o, const char *sep, int64_t n,
                      const char *word, enum style style)
{
    str_addf(s, "%s%lld ", sep, (long long)n);
    out_styled(s, o->color, n ? style : STYLE_NONE, sv_of(word));
}

static void print_ended(struct out *o, const struct report_view *r)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    add_label(&s, o, "ended");
    add_count(&s, o, "", r->total.done, "done", STYLE_GREEN);
    add_count(&s, o, ", ", r->total.skipped, "skipped", STYLE_NONE);
    add_count(&s, o, ", ", r->total.failed, "failed", STYLE_RED);
    add_count(&s, o, ", ", r->cancelled, "cancelled", STYLE_NONE);
    put_line(o, &s);
}

static double rate_of(int64_t n, struct dur each)
{
    return (double)n * 1e6 / (double)each.us;
}

/* The line of heights and under it the scale. */
static void print_rate(struct out *o, const struct report_view *r)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct spark spark = spark_of(r);
    if (!spark.max)
        return;
    add_label(&s, o, "rate");
    spark_draw(&spark, locale_is_utf8(), &s);
    put_line(o, &s);
    str_addf(&s, "%*s", LABEL, "");
    dur_human(spark.each, &s);
    str_adds(&s, " a sign, highest ");
    rate_format(rate_of(spark.max, spark.each), &s);
    int64_t us = r->now.us - r->since.us;
    str_adds(&s, ", mean ");
    rate_format(rate_of(r->total.done + r->total.skipped, DUR_US(us > 1000000 ? us : 1000000)), &s);
    put_line(o, &s);
}

static void print_lost(struct out *o, const struct report_view *r)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    add_label(&s, o, "retries");
    str_addf(&s, "%lld, and %lld lost with their worker", (long long)r->total.retried,
             (long long)r->total.lost);
    put_line(o, &s);
    if (!r->backoff.us && !r->retry_after.us)
        return;
    add_label(&s, o, "waits");
    dur_human(r->backoff, &s);
    str_adds(&s, " backoff, ");
    dur_human(r->retry_after, &s);
    str_adds(&s, " Retry-After");
    put_line(o, &s);
}

bool report_fetched(const struct report_data *d)
{
    return d->fetches.fetched || d->fetches.not_modified || d->fetches.failed;
}

static void print_fetches(struct out *o, const struct report_data *d)
{
    const struct fetch_totals *f = &d->fetches;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!report_fetched(d))
        return;
    add_label(&s, o, "fetched");
    str_addf(&s, "%lld, %lld not modified, ", (long long)f->fetched, (long long)f->not_modified);
    add_count(&s, o, "", f->failed, "failed", STYLE_RED);
    str_adds(&s, "; ");
    words_bytes(&s, f->wire_bytes);
    str_adds(&s, " came, ");
    words_bytes(&s, f->body_bytes);
    str_adds(&s, " decoded");
    put_line(o, &s);
}

static void print_disk(struct out *o, const struct report_data *d)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    add_label(&s, o, "disk");
    str_adds(&s, "store ");
    words_bytes(&s, d->info.bytes + d->info.log_bytes_pending);
    if (d->logs.known) {
        str_adds(&s, ", logs ");
        words_bytes(&s, d->logs.bytes);
    }
    if (d->info.free_bytes >= 0) {
        str_adds(&s, ", free ");
        words_bytes(&s, d->info.free_bytes);
    }
    put_line(o, &s);
}

static void print_workers(struct out *o, const struct report_data *d)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    add_label(&s, o, "workers");
    str_addf(&s, "%lld alive, %lld ended, ", (long long)workers_alive(&d->status),
             (long long)(d->view.workers_ended - d->view.workers_lost));
    add_count(&s, o, "", d->view.workers_lost, "lost", STYLE_RED);
    put_line(o, &s);
}

static void print_slowest(struct out *o, const struct report_view *r)
{
    static const struct column columns[] = {
        {"SLOWEST", true, 0, false}, {"JOB", true, 0, false},   {"QUEUE", false, 16, false},
        {"KIND", false, 12, false},  {"KEY", false, 28, false},
    };
    bool terminal = o->terminal;
    int width = o->width;
    struct table t;
    if (!r->n_slowest)
        return;
    o->terminal = true; /* the same limits in a file as on a terminal: it is one screen */
    o->width = page_width(o);
    out_put(o, SV("\n"));
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n_slowest; i++) {
        table_dur(&t, r->slowest[i].took);
        table_int(&t, r->slowest[i].id.v);
        table_text(&t, r->slowest[i].queue);
        table_text(&t, r->slowest[i].kind);
        table_text(&t, r->slowest[i].key);
    }
    table_end(&t);
    o->terminal = terminal;
    o->width = width;
}

static void add_paste(struct str *s, const struct report_error *e, struct sv queue)
{
    char name[FINGERPRINT_TEXT];
    fingerprint_format(e->fingerprint, name);
    str_adds(s, "pawl retry --error ");
    str_adds(s, name);
    if (queue.p) {
        str_adds(s, " --queue ");
        text_shell(s, queue);
    }
}

/* One line for what happened, one to paste. */
static void print_error(struct out *o, const struct report_error *e, struct sv queue)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE);
    char count[32];
    const char *cls = fail_class_name(e->cls);
    int n = snprintf(count, sizeof(count), "%7lld  %-9s  ", (long long)e->count, cls ? cls : "-");
    text_safe(&message, e->message.n ? e->message : SV("no message"), 400);
    out_styled(&s, o->color, STYLE_RED, sv_of(count));
    str_add(&s, cut(str_sv(&message), page_width(o) - n));
    put_line(o, &s);
    str_addf(&s, "%*s", n, "");
    add_paste(&s, e, queue);
    str_addf(&s, "   # pawl show %lld", (long long)e->sample.v);
    put_line(o, &s);
}

static void print_errors(struct out *o, const struct report_view *r, struct sv queue, size_t most)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!r->n_errors)
        return;
    out_styled(&s, o->color, STYLE_BOLD, SV("\n FAILED  CLASS      ERROR"));
    put_line(o, &s);
    for (size_t i = 0; i < r->n_errors && i < most; i++)
        print_error(o, &r->errors[i], queue);
    if (r->n_errors > most)
        out_putf(o, "%9s%zu more: pawl report\n", "", r->n_errors - most);
}

void report_print_rest(struct out *o, const struct report_data *d)
{
    print_ended(o, &d->view);
    print_rate(o, &d->view);
    print_lost(o, &d->view);
    print_workers(o, d);
    print_fetches(o, d);
    print_disk(o, d);
    print_slowest(o, &d->view);
    print_errors(o, &d->view, d->queue, SIZE_MAX);
}

void report_print_short(struct out *o, struct sv queue, const struct report_view *r)
{
    print_period(o, r->since, r->now, queue);
    if (r->now.us - r->since.us >= DUR_S(30).us)
        print_rate(o, r);
    if (r->total.retried || r->total.lost)
        print_lost(o, r);
    print_slowest(o, r);
    print_errors(o, r, queue, SHORT_ERRORS);
}

static bool add_folder(int fd, int depth, struct log_folder *sum)
{
    DIR *dir = fdopendir(fd);
    struct dirent *e;
    bool cheap = dir != NULL;
    if (!dir)
        close(fd);
    while (cheap && (e = readdir(dir)) != NULL) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (++sum->files > LOGS_LOOKED_AT)
            cheap = false;
        sum->bytes += S_ISREG(st.st_mode) ? st.st_blocks * 512 : 0;
        int sub = S_ISDIR(st.st_mode) && depth > 0
                      ? openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                      : -1;
        if (sub >= 0)
            cheap = add_folder(sub, depth - 1, sum) && cheap;
    }
    if (dir)
        closedir(dir);
    return cheap;
}

struct log_folder report_logs(struct store *s)
{
    enum { LEVELS = 2 };
    struct log_folder sum = {0};
    int fd;
    if (s->ops->log_dir(s, &fd, NULL) < 0)
        return sum;
    fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sum.known = fd >= 0 && add_folder(fd, LEVELS, &sum);
    return sum;
}
