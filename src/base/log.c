#include "log.h"

#include "clock.h"
#include "fd.h"
#include "json.h"
#include "text.h"

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int level_priorities[] = {3, 4, 6, 7}; /* syslog's */
static const char *const level_colors[] = {"\033[31m", "\033[33m", "", "\033[2m"};

static bool needs_quotes(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' || s.p[i] == 0x7f)
            return true;
    return s.n == 0;
}

static void add_text_value(struct str *line, struct sv s)
{
    if (!needs_quotes(s)) {
        text_safe(line, s, 0);
        return;
    }
    str_addc(line, '"');
    for (size_t from = 0, i = 0; i <= s.n; i++)
        if (i == s.n || s.p[i] == '"' || s.p[i] == '\\') {
            text_safe(line, sv_make(s.p + from, i - from), 0);
            if (i < s.n) {
                str_addc(line, '\\');
                str_addc(line, s.p[i]);
            }
            from = i + 1;
        }
    str_addc(line, '"');
}

static struct sv cut_value(struct sv s, size_t longest)
{
    return s.n > longest ? sv_make(s.p, longest) : s;
}

static void format_text(struct str *line, const struct logger *log, enum log_level level,
                        const char *event, const struct log_field *f, size_t n, size_t longest)
{
    if (log->journal || log->sink) {
        str_adds(line, event);
    } else {
        wall_format(clock_wall(), line);
        str_addf(line, " %s%-5s%s %s", log->color ? level_colors[level] : "", level_names[level],
                 log->color ? "\033[0m" : "", event);
    }
    for (size_t i = 0; i < n; i++) {
        if (f[i].type == LOG_STR && !f[i].s.p)
            continue;
        str_addf(line, " %s=", f[i].name);
        if (f[i].type == LOG_INT)
            str_addi(line, f[i].i);
        else
            add_text_value(line, cut_value(f[i].s, longest));
    }
}

static void format_json(struct str *line, enum log_level level, const char *event,
                        const struct log_field *f, size_t n, size_t longest)
{
    struct jw w = jw_make(line);
    struct str at = STR_INIT(64);
    wall_format(clock_wall(), &at);
    jw_object(&w);
    jw_kstring(&w, "at", str_sv(&at));
    jw_kstring(&w, "level", sv_of(level_names[level]));
    jw_kstring(&w, "event", sv_of(event));
    for (size_t i = 0; i < n; i++) {
        if (f[i].type == LOG_INT)
            jw_kint(&w, f[i].name, f[i].i);
        else if (f[i].s.p)
            jw_kstring(&w, f[i].name, cut_value(f[i].s, longest));
    }
    jw_end_object(&w);
    str_done(&at);
}

static void format_line(struct str *line, const struct logger *log, enum log_level level,
                        const char *event, const struct log_field *f, size_t n, size_t longest)
{
    str_clear(line);
    if (log->journal && !log->sink)
        str_addf(line, "<%d>", level_priorities[level]);
    if (log->json)
        format_json(line, level, event, f, n, longest);
    else
        format_text(line, log, level, event, f, n, longest);
    if (!log->sink)
        str_addc(line, '\n');
}

void log_event(const struct logger *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t n)
{
    enum { SHORTENED = 512 };
    if (level > log->level)
        return;
    AUTO_STR struct str line = STR_INIT(STR_LINE);
    format_line(&line, log, level, event, fields, n, SIZE_MAX);
    if (line.overflow) /* still one whole line, with its values cut */
        format_line(&line, log, level, event, fields, n, SHORTENED);
    if (log->sink) {
        log->sink(log->sink_arg, level, str_sv(&line));
        return;
    }
    if (log->around)
        log->around(log->around_arg, true);
    (void)fd_write_all(log->fd, line.p, line.len);
    if (log->around)
        log->around(log->around_arg, false);
}
