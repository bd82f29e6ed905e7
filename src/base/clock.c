#include "clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct wall clock_wall(void)
{
    return (struct wall){read_clock(CLOCK_REALTIME)};
}

struct boot clock_boot(void)
{
    return (struct boot){read_clock(CLOCK_BOOTTIME)};
}

void clock_boot_id(char out[37])
{
    out[0] = '\0';
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, out, 36);
    close(fd);
    out[n == 36 ? 36 : 0] = '\0';
}

static const struct {
    const char *name;
    int64_t us;
} units[] = {
    {"d", 86400000000}, {"h", 3600000000}, {"m", 60000000}, {"s", 1000000}, {"ms", 1000}, {"us", 1},
};
enum { N_UNITS = sizeof(units) / sizeof(units[0]) };

static int64_t unit_us(struct sv name)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (sv_eq(name, sv_of(units[i].name)))
            return units[i].us;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One "12ms" off the front of s, added to *total. */
static int parse_part(struct sv *s, int64_t *total)
{
    size_t digits = 0, letters = 0;
    while (digits < s->n && is_digit(s->p[digits]))
        digits++;
    while (digits + letters < s->n && !is_digit(s->p[digits + letters]))
        letters++;
    int64_t n, us = unit_us(sv_make(s->p + digits, letters));
    if (!us || sv_to_i64(sv_make(s->p, digits), 0, DUR_MAX_US, &n) < 0)
        return -1;
    if (__builtin_mul_overflow(n, us, &n) || __builtin_add_overflow(*total, n, total))
        return -1;
    s->p += digits + letters;
    s->n -= digits + letters;
    return *total > DUR_MAX_US ? -1 : 0;
}

int dur_parse(struct sv text, bool allow_none, struct dur *out, struct pawl_err *err)
{
    struct sv s = text;
    int64_t total = 0;
    if (allow_none && sv_eq(s, SV("none"))) {
        *out = DUR_NONE;
        return 0;
    }
    if (sv_eq(s, SV("0"))) {
        *out = DUR_US(0);
        return 0;
    }
    if (s.n == 0)
        goto bad;
    while (s.n)
        if (parse_part(&s, &total) < 0)
            goto bad;
    *out = (struct dur){total};
    return 0;
bad:
    return err_set(err, PAWL_EINPUT,
                   "'" SV_FMT "' is not a duration; write 500ms, 10s, 5m, 2h or 7d%s", SV_ARG(text),
                   allow_none ? ", or none" : "");
}

static void format_units(int64_t us, int most, struct str *out)
{
    for (size_t i = 0; i < N_UNITS && most > 0; i++) {
        if (us < units[i].us)
            continue;
        str_addi(out, us / units[i].us);
        str_adds(out, units[i].name);
        us %= units[i].us;
        most--;
    }
}

void dur_format(struct dur d, struct str *out)
{
    if (d.us < 0)
        str_adds(out, "none");
    else if (d.us == 0)
        str_adds(out, "0s");
    else
        format_units(d.us, N_UNITS, out);
}

void dur_human(struct dur d, struct str *out)
{
    int64_t us = d.us < 0 ? 0 : d.us;
    if (us < 1000)
        str_adds(out, "0ms");
    else if (us < 1000000)
        format_units(us - us % 1000, 1, out);
    else if (us < 10000000)
        str_addf(out, "%.1fs", (double)us / 1e6);
    else
        format_units(us - us % 1000000, 2, out);
}

/* n digits; years from 10000 on have more. */
static char *put_digits(char *at, int v, int n, char after)
{
    for (int more = v; more >= 10000; more /= 10)
        n++;
    for (int i = n - 1; i >= 0; i--, v /= 10)
        at[i] = (char)('0' + v % 10);
    at[n] = after;
    return at + n + 1;
}

/* By hand: every record of the lake has a date, and printf made it a third of its head's cost. */
void wall_format(struct wall t, struct str *out)
{
    time_t secs = (time_t)(t.us / 1000000);
    char text[sizeof("YYYYYYYYYY-MM-DDThh:mm:ss.mmmZ")], *at = text;
    struct tm tm;
    gmtime_r(&secs, &tm);
    at = put_digits(at, tm.tm_year + 1900, 4, '-');
    at = put_digits(at, tm.tm_mon + 1, 2, '-');
    at = put_digits(at, tm.tm_mday, 2, 'T');
    at = put_digits(at, tm.tm_hour, 2, ':');
    at = put_digits(at, tm.tm_min, 2, ':');
    at = put_digits(at, tm.tm_sec, 2, '.');
    at = put_digits(at, (int)(t.us % 1000000 / 1000), 3, 'Z');
    str_add(out, sv_make(text, (size_t)(at - text)));
}

/* n digits at s[at]; -1 if they are not digits. */
static int digits_at(struct sv s, size_t at, size_t n)
{
    int v = 0;
    if (at + n > s.n)
        return -1;
    for (size_t i = at; i < at + n; i++) {
        if (!is_digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static int parse_clock_time(struct sv s, struct wall now, struct wall *out)
{
    int hour = digits_at(s, 0, 2), min = digits_at(s, 3, 2);
    if (s.n != 5 || s.p[2] != ':' || hour < 0 || hour > 23 || min < 0 || min > 59)
        return -1;
    time_t secs = (time_t)(now.us / 1000000);
    struct tm tm;
    localtime_r(&secs, &tm);
    tm.tm_hour = hour;
    tm.tm_min = min;
    tm.tm_sec = 0;
    tm.tm_isdst = -1;
    time_t t = mktime(&tm);
    if (t <= secs) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        t = mktime(&tm);
    }
    *out = (struct wall){(int64_t)t * 1000000};
    return 0;
}

/* The zone at s[at..]: Z or ±HH:MM, whole rest. */
static int parse_zone(struct sv s, size_t at, int *out_minutes)
{
    if (s.n == at + 1 && (s.p[at] == 'Z' || s.p[at] == 'z')) {
        *out_minutes = 0;
        return 0;
    }
    if (s.n != at + 6 || (s.p[at] != '+' && s.p[at] != '-') || s.p[at + 3] != ':')
        return -1;
    int h = digits_at(s, at + 1, 2), m = digits_at(s, at + 4, 2);
    if (h < 0 || h > 23 || m < 0 || m > 59)
        return -1;
    *out_minutes = (s.p[at] == '-' ? -1 : 1) * (h * 60 + m);
    return 0;
}

static int parse_rfc3339(struct sv s, struct wall *out)
{
    struct tm tm = {.tm_year = digits_at(s, 0, 4) - 1900,
                    .tm_mon = digits_at(s, 5, 2) - 1,
                    .tm_mday = digits_at(s, 8, 2),
                    .tm_hour = digits_at(s, 11, 2),
                    .tm_min = digits_at(s, 14, 2),
                    .tm_sec = digits_at(s, 17, 2)};
    struct tm asked = tm;
    if (s.n < 20 || s.p[4] != '-' || s.p[7] != '-' || (s.p[10] != 'T' && s.p[10] != ' ') ||
        s.p[13] != ':' || s.p[16] != ':' || tm.tm_hour < 0 || tm.tm_min < 0 || tm.tm_sec < 0)
        return -1;
    size_t at = 19;
    int64_t us = 0, scale = 100000;
    if (s.p[at] == '.')
        for (at++; at < s.n && is_digit(s.p[at]); at++, scale /= 10)
            us += (s.p[at] - '0') * scale;
    int zone;
    if (at == 20 || parse_zone(s, at, &zone) < 0)
        return -1; /* "." without digits, or no zone */
    time_t t = timegm(&tm);
    if (tm.tm_mon != asked.tm_mon || tm.tm_mday != asked.tm_mday || tm.tm_hour != asked.tm_hour ||
        tm.tm_min != asked.tm_min || tm.tm_sec != asked.tm_sec || t < zone * 60)
        return -1; /* 31 February, 25:00, before 1970 */
    *out = (struct wall){((int64_t)t - zone * 60) * 1000000 + us};
    return 0;
}

int wall_parse(struct sv s, struct wall now, struct wall *out, struct pawl_err *err)
{
    int64_t secs;
    if (s.n > 1 && s.p[0] == '@' &&
        sv_to_i64(sv_make(s.p + 1, s.n - 1), 0, INT64_MAX / 2000000, &secs) == 0) {
        *out = (struct wall){secs * 1000000};
        return 0;
    }
    if (parse_clock_time(s, now, out) == 0 || parse_rfc3339(s, out) == 0)
        return 0;
    return err_set(err, PAWL_EINPUT,
                   "'" SV_FMT "' is not a time; write 2026-01-02T03:04:05Z, HH:MM or @unix",
                   SV_ARG(s));
}
