/* What a gate decides (I7, I8). */
#include "gate.h"

enum {
    CUT_NUM = 4, /* a throttled answer makes the interval 4/3 as long: rate × 0.75 */
    CUT_DEN = 3,
    RAISE_PARTS = 100 /* a second of good answers adds a hundredth of the full rate */
};
#define SECOND_US ((int64_t)1000000)
#define RAISE_US  ((int64_t)100000) /* not looked at more often */
/* Jobs claimed so soon after a cut meet a peer that still counts those from before it. */
#define CUT_US ((int64_t)200000)
/* Rates are starts in 10^6 seconds: whole numbers fine enough to add hundredths of. */
#define RATE_UNIT (SECOND_US * SECOND_US)

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

const char *breaker_state_name(enum breaker_state s)
{
    static const char *const names[] = {"closed", "open", "half-open"};
    return names[s];
}

const char *gate_shut_name(enum gate_shut s)
{
    static const char *const names[] = {NULL, "full", "rate", "held", "breaker", "probing"};
    return names[s];
}

enum gate_signal gate_signal_of(const struct settle *s, enum outcome in_fact)
{
    switch (in_fact) {
    case OUTCOME_DONE:
    case OUTCOME_SKIPPED:
        return SIGNAL_OK;
    case OUTCOME_RELEASED:
    case OUTCOME_CANCELLED:
        return SIGNAL_NONE;
    case OUTCOME_LOST:
        return SIGNAL_LOST;
    case OUTCOME_FAILED:
    case OUTCOME_RETRY:
        break;
    }
    if (s->cls == CLASS_LOST)
        return SIGNAL_LOST;
    if (s->cls == CLASS_NONE) /* given back until later */
        return SIGNAL_NONE;
    if (s->cls != CLASS_TRANSIENT)
        return SIGNAL_OTHER;
    if (s->throttled)
        return SIGNAL_THROTTLED;
    return s->timed_out ? SIGNAL_TIMEOUT : SIGNAL_TRANSIENT;
}

enum gate_signal gate_signal_aside(enum gate_signal s)
{
    return s == SIGNAL_NONE || s == SIGNAL_LOST ? s : SIGNAL_OK;
}

/* What the limit itself says. */
static int64_t limit_interval(const struct gate_params *p, const struct gate_state *s)
{
    if (!p->interval_us || !p->adaptive || !s->interval_us)
        return p->interval_us;
    return min_i64(max_i64(s->interval_us, p->interval_us), p->slowest_us);
}

int64_t gate_interval(const struct gate_params *p, const struct gate_state *s)
{
    return max_i64(limit_interval(p, s), s->pace_us);
}

bool gate_is_paced(const struct gate_params *p, const struct gate_state *s)
{
    return s->pace_us > limit_interval(p, s);
}

/* Whoever asked for a pace did not mean so many at once. */
static int burst_now(const struct gate_params *p, const struct gate_state *s)
{
    return gate_is_paced(p, s) ? 1 : p->burst;
}

/* GCRA: how many may start now. */
static int64_t rate_room(const struct gate_params *p, const struct gate_state *s, int64_t now)
{
    int64_t t = gate_interval(p, s);
    return (now + burst_now(p, s) * t - max_i64(s->tat, now)) / t;
}

static struct gate_room breaker_room(const struct gate_state *s, int64_t now)
{
    if (s->breaker == BREAKER_HALF_OPEN)
        return (struct gate_room){0, SHUT_PROBING, 0};
    if (s->until > now)
        return (struct gate_room){0, SHUT_BREAKER, s->until};
    return (struct gate_room){1, SHUT_PROBING, 0};
}

struct gate_room gate_room(const struct gate_params *p, const struct gate_state *s, int used,
                           int64_t now, int want)
{
    struct gate_room r = {want, SHUT_NOT, 0};
    if (s->breaker != BREAKER_CLOSED) {
        r = breaker_room(s, now);
        if (!r.n)
            return r;
    }
    if (s->held_until > now)
        return (struct gate_room){0, SHUT_HELD, s->held_until};
    if (p->cap && p->cap - used < r.n)
        r = (struct gate_room){(int)max_i64(p->cap - used, 0), SHUT_FULL, 0};
    if (!r.n || !gate_interval(p, s))
        return r;
    int64_t may = rate_room(p, s, now);
    if (may < r.n)
        r = (struct gate_room){(int)max_i64(may, 0), SHUT_RATE, 0};
    if (r.why == SHUT_RATE) {
        int64_t t = gate_interval(p, s), tat = max_i64(s->tat, now) + r.n * t;
        r.until = tat - (burst_now(p, s) - 1) * t;
    }
    return r;
}

bool gate_take(const struct gate_params *p, struct gate_state *s, int n, int64_t job, int64_t fence,
               int64_t now)
{
    if (gate_interval(p, s))
        s->tat = max_i64(s->tat, now) + n * gate_interval(p, s);
    if (s->breaker != BREAKER_OPEN)
        return false;
    s->breaker = BREAKER_HALF_OPEN;
    s->since = now;
    s->probe_job = job;
    s->probe_fence = fence;
    return true;
}

/* What an earlier, slower pace has put off is drawn in: under the rules of now nothing waits longer
 * than for a whole burst. */
void gate_pace(const struct gate_params *p, struct gate_state *s, int64_t apart_us, int64_t now)
{
    s->pace_us = apart_us;
    int64_t first = apart_us ? now + apart_us : s->tat;
    int64_t last = now + burst_now(p, s) * gate_interval(p, s);
    s->tat = min_i64(max_i64(s->tat, first), last);
}

static int64_t doubled(int64_t first, int times, int64_t max)
{
    int64_t v = first;
    for (int i = 0; i < times && v < max; i++)
        v *= 2;
    return min_i64(v, max);
}

static void open_now(const struct gate_params *p, struct gate_state *s, int64_t now)
{
    s->breaker = BREAKER_OPEN;
    s->until = now + doubled(p->open_us, s->opens, p->max_open_us);
    s->since = now;
    s->opens++;
    s->epoch++;
    s->failures = 0;
    s->probe_job = s->probe_fence = 0;
    s->window_at = 0;
    s->window_calls = s->window_failures = 0;
}

void gate_close(struct gate_state *s, int64_t now)
{
    s->breaker = BREAKER_CLOSED;
    s->since = now;
    s->until = 0;
    s->opens = 0;
    s->failures = 0;
    s->probe_job = s->probe_fence = 0;
    s->window_at = 0;
    s->window_calls = s->window_failures = 0;
}

void gate_open(struct gate_state *s, int64_t for_us, int64_t now)
{
    gate_close(s, now);
    s->breaker = BREAKER_OPEN;
    s->until = for_us ? now + for_us : INT64_MAX;
    s->epoch++;
}

void gate_reset(struct gate_state *s, int64_t now)
{
    *s = (struct gate_state){.epoch = s->epoch, .since = now};
}

static bool is_failure(enum gate_signal g)
{
    return g == SIGNAL_TRANSIENT || g == SIGNAL_TIMEOUT;
}

/* The probe has ended: it alone moves a half-open breaker. */
static enum gate_change probe_ended(const struct gate_params *p, struct gate_state *s,
                                    enum gate_signal signal, int64_t now)
{
    if (signal == SIGNAL_NONE) { /* it never was a probe: the next one may go at once */
        s->opens--;
        open_now(p, s, now);
        s->until = now;
        return GATE_CHANGED;
    }
    if (signal == SIGNAL_LOST) { /* says nothing of the peer: the same pause again */
        s->opens--;
        open_now(p, s, now);
        return GATE_OPENED;
    }
    if (is_failure(signal)) {
        open_now(p, s, now);
        return GATE_OPENED;
    }
    gate_close(s, now);
    return GATE_CLOSED;
}

static bool window_tips(const struct gate_params *p, struct gate_state *s, bool failed, int64_t now)
{
    if (now - s->window_at > p->window_us) {
        s->window_at = now;
        s->window_calls = s->window_failures = 0;
    }
    s->window_calls++;
    s->window_failures += failed;
    return failed && s->window_calls >= p->min_calls &&
           (int64_t)s->window_failures * 100 >= (int64_t)p->percent * s->window_calls;
}

static enum gate_change count_call(const struct gate_params *p, struct gate_state *s,
                                   enum gate_signal signal, int64_t now)
{
    bool failed = is_failure(signal);
    if (signal == SIGNAL_NONE || signal == SIGNAL_LOST || signal == SIGNAL_THROTTLED)
        return GATE_SAME;
    enum gate_change change = failed || s->failures ? GATE_CHANGED : GATE_SAME;
    s->failures = failed ? s->failures + 1 : 0;
    bool tips = p->threshold && s->failures >= p->threshold;
    if (p->percent) {
        change = GATE_CHANGED;
        tips = window_tips(p, s, failed, now) || tips;
    }
    if (!tips)
        return change;
    open_now(p, s, now);
    return GATE_OPENED;
}

static enum gate_change breaker_result(const struct gate_params *p, struct gate_state *s,
                                       enum gate_signal signal, int64_t claimed_at, int64_t job,
                                       int64_t fence, int64_t now)
{
    if (s->breaker == BREAKER_HALF_OPEN && s->probe_job == job && s->probe_fence == fence)
        return probe_ended(p, s, signal, now);
    if (s->breaker != BREAKER_CLOSED || (!p->threshold && !p->percent))
        return GATE_SAME;
    if (claimed_at < s->since)
        return GATE_SAME;
    return count_call(p, s, signal, now);
}

/* Throttled answers hold back the whole gate. Of those that were under way when the last hold began
 * only a longer wish counts: they are one burst. */
static bool hold_result(const struct gate_params *p, struct gate_state *s, enum gate_signal signal,
                        int64_t retry_after_us, int64_t claimed_at, int64_t now)
{
    if (signal == SIGNAL_OK && s->held_n) {
        s->held_n = 0;
        return true;
    }
    if (signal != SIGNAL_THROTTLED || !p->respect_retry_after)
        return false;
    bool asked = retry_after_us >= 0, burst = claimed_at <= s->held_at;
    if (!asked && (burst || (p->adaptive && p->interval_us)))
        return false; /* an adaptive gate answers by its rate */
    int64_t until = now + (asked ? min_i64(retry_after_us, p->max_pause_us)
                                 : doubled(p->pause_us, s->held_n, p->max_pause_us));
    if (!asked)
        s->held_n++;
    if (!burst)
        s->held_at = now;
    if (until > s->held_until) {
        s->held_until = until;
        s->held_asked = asked;
    }
    return true;
}

static bool rate_result(const struct gate_params *p, struct gate_state *s, enum gate_signal signal,
                        int64_t claimed_at, int64_t now)
{
    int64_t t = limit_interval(p, s);
    if (!p->adaptive || !t || claimed_at <= s->cut_at + CUT_US)
        return false; /* of the burst for which the rate was cut */
    if (signal == SIGNAL_THROTTLED || signal == SIGNAL_TIMEOUT) {
        s->interval_us = min_i64((t * CUT_NUM + CUT_DEN - 1) / CUT_DEN, p->slowest_us);
        s->cut_at = s->raised_at = now;
        return true;
    }
    if (signal != SIGNAL_OK || t <= p->interval_us || now - s->raised_at < RAISE_US)
        return false;
    int64_t rate = RATE_UNIT / t, full = RATE_UNIT / p->interval_us;
    int64_t spent = min_i64(now - s->raised_at, SECOND_US);
    rate += full / RAISE_PARTS * spent / SECOND_US;
    s->interval_us = max_i64((RATE_UNIT + rate - 1) / rate, p->interval_us);
    s->raised_at = now;
    return true;
}

enum gate_change gate_result(const struct gate_params *p, struct gate_state *s,
                             enum gate_signal signal, bool hold, int64_t retry_after_us,
                             int64_t claimed_at, int64_t job, int64_t fence, int64_t now)
{
    bool moved = rate_result(p, s, signal, claimed_at, now);
    if (hold && hold_result(p, s, signal, retry_after_us, claimed_at, now))
        moved = true;
    enum gate_change change = breaker_result(p, s, signal, claimed_at, job, fence, now);
    return change == GATE_SAME && moved ? GATE_CHANGED : change;
}
