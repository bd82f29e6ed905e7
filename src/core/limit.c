/* What a limit selects, its bounds, and the numbers its gates go by. */
#include "limit.h"

#define SECOND_US  ((int64_t)1000000)
#define PAUSE_MAX  (DUR_S(24 * 3600))
#define PERIOD_MAX (DUR_S(24 * 3600))

enum { CONCURRENCY_MAX = 1000000, BURST_MAX = 1000000, RATE_MAX = 1000000, CALLS_MAX = 1000000 };

#define USUAL_BREAKER                                                                              \
    {                                                                                              \
        .threshold = 5, .min_calls = 20, .window = DUR_S(60), .pause = DUR_S(60),                  \
        .max_pause = DUR_S(1800)                                                                   \
    }
#define USUAL_PAUSE     DUR_S(5)
#define USUAL_MAX_PAUSE DUR_S(3600)

struct limit_spec limit_default(const struct breaker_spec *breaker)
{
    const struct breaker_spec usual = USUAL_BREAKER;
    return (struct limit_spec){.burst = 1,
                               .respect_retry_after = true,
                               .pause = USUAL_PAUSE,
                               .max_pause = USUAL_MAX_PAUSE,
                               .breaker = breaker ? *breaker : usual};
}

/* ---- built in ---- */

static const struct sv not_this_machine[] = {SV("!localhost"), SV("!127.*"), SV("!::1"),
                                             SV("![::1]")};
static const struct limit_spec built_in[] = {
    {.name = SV("every-host"), /* polite to everybody else's machines */
     .kind = SV("fetch"),
     .hosts = not_this_machine,
     .n_hosts = ARRAY_LEN(not_this_machine),
     .each = EACH_HOST,
     .concurrency = 2,
     .rate = {1, DUR_S(1)},
     .burst = 1,
     .respect_retry_after = true,
     .pause = USUAL_PAUSE,
     .max_pause = USUAL_MAX_PAUSE,
     .breaker = USUAL_BREAKER},
};

const struct limit_spec *limits_built_in(size_t *out_n)
{
    *out_n = ARRAY_LEN(built_in);
    return built_in;
}

const struct limit_spec *limit_built_in(struct sv name)
{
    for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
        if (sv_eq(built_in[i].name, name))
            return &built_in[i];
    return NULL;
}

bool limit_is_built_in(struct sv name, struct sv text)
{
    AUTO_STR struct str own = STR_INIT(LIMIT_TEXT_MAX);
    const struct limit_spec *s = limit_built_in(name);
    if (!s || !text.p)
        return false;
    limit_text(s, &own);
    return sv_eq(str_sv(&own), text);
}

/* ---- rates ---- */

static const struct {
    const char *name;
    int64_t us;
} periods[] = {
    {"s", SECOND_US},           {"min", 60 * SECOND_US},    {"h", 3600 * SECOND_US},
    {"d", 86400 * SECOND_US},   {"sec", SECOND_US},         {"second", SECOND_US},
    {"m", 60 * SECOND_US},      {"minute", 60 * SECOND_US}, {"hour", 3600 * SECOND_US},
    {"day", 86400 * SECOND_US},
};

static int period_parse(struct sv text, struct dur *out)
{
    struct pawl_err unused = {0};
    for (size_t i = 0; i < ARRAY_LEN(periods); i++)
        if (sv_eq(text, sv_of(periods[i].name))) {
            out->us = periods[i].us;
            return 0;
        }
    return dur_parse(text, false, out, &unused);
}

int rate_parse(struct sv text, struct rate *out, struct pawl_err *err)
{
    struct sv per;
    struct rate r;
    struct sv count = sv_cut(text, '/', &per);
    if (!per.p || sv_to_i64(count, 1, RATE_MAX, &r.count) < 0 || period_parse(per, &r.per) < 0 ||
        r.per.us < 1000 || r.per.us > PERIOD_MAX.us || r.per.us < r.count)
        return err_set(err, PAWL_EINPUT,
                       "'" SV_FMT
                       "' is no rate; write a number and a period, as in 200/min or 3/10s",
                       SV_ARG(text));
    *out = r;
    return 0;
}

void rate_text(struct rate r, struct str *out)
{
    str_addi(out, r.count);
    str_addc(out, '/');
    for (size_t i = 0; i < 4; i++)
        if (periods[i].us == r.per.us) {
            str_adds(out, periods[i].name);
            return;
        }
    dur_format(r.per, out);
}

int64_t rate_interval(struct rate r)
{
    return r.count ? (r.per.us + r.count - 1) / r.count : 0;
}

/* ---- checking ---- */

static int check_range(int64_t v, int64_t min, int64_t max, const char *field, struct pawl_err *err)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(err, PAWL_EINPUT, "%s is %lld; allowed are %lld to %lld", field, (long long)v,
                   (long long)min, (long long)max);
}

static int check_pause(struct dur d, struct dur max, const char *field, struct pawl_err *err)
{
    if (d.us >= 1000 && d.us <= PAUSE_MAX.us && max.us >= d.us && max.us <= PAUSE_MAX.us)
        return 0;
    return err_set(err, PAWL_EINPUT, "%s must be from 1ms to max_pause, and that at most 1d",
                   field);
}

static int check_breaker(const struct breaker_spec *b, struct pawl_err *err)
{
    if (check_range(b->threshold, 0, CALLS_MAX, "breaker threshold", err) < 0 ||
        check_range(b->percent, 0, 100, "breaker percent", err) < 0)
        return PAWL_EINPUT;
    if (!b->threshold && !b->percent)
        return 0;
    if (check_range(b->min_calls, 1, CALLS_MAX, "breaker min_calls", err) < 0 ||
        check_pause(b->window, PAUSE_MAX, "breaker window", err) < 0)
        return PAWL_EINPUT;
    return check_pause(b->pause, b->max_pause, "breaker pause", err);
}

static int check_rates(const struct limit_spec *s, struct pawl_err *err)
{
    if (check_range(s->burst, 1, BURST_MAX, "burst", err) < 0)
        return PAWL_EINPUT;
    if (s->burst > 1 && !s->rate.count)
        return err_set(err, PAWL_EINPUT, "burst needs a rate");
    if (s->adaptive && !s->rate.count)
        return err_set(err, PAWL_EINPUT, "adaptive needs a rate: the one it never goes beyond");
    if (s->min_rate.count && !s->adaptive)
        return err_set(err, PAWL_EINPUT, "min_rate is for adaptive limits");
    if (s->min_rate.count && rate_interval(s->min_rate) < rate_interval(s->rate))
        return err_set(err, PAWL_EINPUT, "min_rate is higher than rate");
    return 0;
}

static int check_hosts(const struct limit_spec *s, struct pawl_err *err)
{
    if (s->n_hosts > LIMIT_HOSTS_MAX)
        return err_set(err, PAWL_EINPUT, "more than %d host patterns", LIMIT_HOSTS_MAX);
    for (size_t i = 0; i < s->n_hosts; i++)
        if (name_check(s->hosts[i], "host", err) < 0)
            return PAWL_EINPUT;
        else if (sv_eq(s->hosts[i], SV("!")))
            return err_set(err, PAWL_EINPUT, "host '!' excludes nothing: write a pattern after it");
    return 0;
}

int limit_check(const struct limit_spec *s, struct pawl_err *err)
{
    if (!s->name.p)
        return err_set(err, PAWL_EINPUT, "name is missing");
    if (name_check(s->name, "name", err) < 0 || name_check(s->queue, "queue", err) < 0 ||
        name_check(s->kind, "kind", err) < 0 || check_hosts(s, err) < 0 ||
        check_range(s->concurrency, 0, CONCURRENCY_MAX, "concurrency", err) < 0 ||
        check_rates(s, err) < 0 || check_pause(s->pause, s->max_pause, "pause", err) < 0 ||
        check_breaker(&s->breaker, err) < 0)
        return PAWL_EINPUT;
    if (s->replaces && s->each != EACH_NONE)
        return err_set(err, PAWL_EINPUT, "replaces is for limits without each");
    if (!s->concurrency && !s->rate.count && !s->breaker.threshold && !s->breaker.percent)
        return err_set(err, PAWL_EINPUT, "it limits nothing: give concurrency, rate or breaker");
    return 0;
}

/* ---- what it means ---- */

struct gate_params limit_params(const struct limit_spec *s)
{
    int64_t interval = rate_interval(s->rate);
    int64_t slowest = s->min_rate.count ? rate_interval(s->min_rate) : interval * 10;
    return (struct gate_params){.cap = s->concurrency,
                                .interval_us = interval,
                                .burst = s->burst,
                                .adaptive = s->adaptive,
                                .slowest_us = slowest,
                                .respect_retry_after = s->respect_retry_after,
                                .pause_us = s->pause.us,
                                .max_pause_us = s->max_pause.us,
                                .threshold = s->breaker.threshold,
                                .percent = s->breaker.percent,
                                .min_calls = s->breaker.min_calls,
                                .window_us = s->breaker.window.us,
                                .open_us = s->breaker.pause.us,
                                .max_open_us = s->breaker.max_pause.us};
}

/* Greedy with one step back: after a mismatch the last '*' takes one character more. */
static bool text_matches(struct sv pattern, struct sv host)
{
    size_t p = 0, h = 0, star = SIZE_MAX, mark = 0;
    while (h < host.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            mark = h;
        } else if (p < pattern.n && pattern.p[p] == host.p[h]) {
            p++;
            h++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            h = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

static bool all_of(struct sv text, const char *allowed)
{
    size_t i = 0;
    while (i < text.n && text.p[i] && strchr(allowed, text.p[i]))
        i++;
    return i == text.n;
}

/* Of digits, dots and stars, as "127.*". */
static bool is_address_pattern(struct sv pattern)
{
    return pattern.n && pattern.p[0] >= '0' && pattern.p[0] <= '9' &&
           all_of(pattern, "0123456789.*");
}

/* Anybody may have a name that begins like an address: 127.example.org is not this machine. */
bool host_matches(struct sv pattern, struct sv host)
{
    return text_matches(pattern, host) &&
           (!is_address_pattern(pattern) || all_of(host, "0123456789."));
}

static bool is_excluding(struct sv pattern)
{
    return pattern.n && pattern.p[0] == '!';
}

bool hosts_match(const struct sv *patterns, size_t n, struct sv host)
{
    bool all = true, found = false;
    if (!n || !host.n)
        return !n;
    for (size_t i = 0; i < n; i++) {
        struct sv p = patterns[i];
        if (is_excluding(p) && host_matches(sv_make(p.p + 1, p.n - 1), host))
            return false;
        all = all && is_excluding(p);
        found = found || (!is_excluding(p) && host_matches(p, host));
    }
    return all || found;
}

bool limit_matches(const struct limit_spec *s, struct sv queue, struct sv kind, struct sv host,
                   struct sv *out_value)
{
    if ((s->queue.p && !sv_eq(s->queue, queue)) || (s->kind.p && !sv_eq(s->kind, kind)) ||
        !hosts_match(s->hosts, s->n_hosts, host))
        return false;
    const struct sv values[] = {
        [EACH_NONE] = SV(""), [EACH_HOST] = host, [EACH_QUEUE] = queue, [EACH_KIND] = kind};
    *out_value = values[s->each];
    return s->each == EACH_NONE || out_value->n > 0;
}

size_t limits_of(const struct limit_spec *v, size_t n, struct sv queue, struct sv kind,
                 struct sv host, size_t *out, struct sv *values)
{
    size_t found = 0, kept = 0;
    bool replaced = false;
    for (size_t i = 0; i < n; i++)
        if (limit_matches(&v[i], queue, kind, host, &values[found])) {
            replaced = replaced || v[i].replaces;
            out[found++] = i;
        }
    for (size_t i = 0; i < found; i++)
        if (!replaced || v[out[i]].each == EACH_NONE) {
            values[kept] = values[i];
            out[kept++] = out[i];
        }
    return kept;
}
