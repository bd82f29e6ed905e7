#include "retry.h"

#define RETRY_AFTER_MAX_US ((int64_t)24 * 3600 * 1000000)

struct dur retry_backoff(const struct retry_policy *p, int n, uint32_t random)
{
    int64_t ceiling = p->base.us > 0 ? p->base.us : 0;
    for (int i = 1; i < n && ceiling && ceiling < p->max.us; i++)
        ceiling = ceiling > p->max.us / 2 ? p->max.us : ceiling * 2;
    if (ceiling > p->max.us)
        ceiling = p->max.us;
    return (struct dur){(int64_t)((double)ceiling * ((double)random / 4294967296.0))};
}

static struct retry_decision give_up(const char *why)
{
    return (struct retry_decision){.outcome = OUTCOME_FAILED, .why = why};
}

static void choose_delay(struct retry_decision *d, const struct retry_policy *p, int failures,
                         const struct failure *f, uint32_t random)
{
    if (f->asked.us >= 0) {
        d->delay = f->asked;
        d->reason = WAIT_ASKED;
    } else if (f->retry_after.us >= 0 && p->respect_retry_after) {
        d->delay = f->retry_after;
        if (d->delay.us > RETRY_AFTER_MAX_US)
            d->delay.us = RETRY_AFTER_MAX_US;
        d->reason = WAIT_RETRY_AFTER;
    } else {
        d->delay = retry_backoff(p, failures, random);
        d->reason = WAIT_BACKOFF;
    }
}

struct retry_decision retry_decide(const struct retry_policy *p, int attempt, int transient,
                                   const struct failure *f, uint32_t random)
{
    struct retry_decision d = {.outcome = OUTCOME_RETRY};
    switch (f->cls) {
    case CLASS_TRANSIENT:
        if (transient >= p->transient_max_attempts - 1)
            return give_up("transient budget used up");
        d.refund_attempt = d.count_transient = true;
        d.why = "transient";
        choose_delay(&d, p, transient + 1, f, random);
        return d;
    case CLASS_ERROR:
        if (attempt >= p->max_attempts)
            return give_up("attempts used up");
        d.why = "error";
        choose_delay(&d, p, attempt, f, random);
        return d;
    default:
        return give_up("fatal");
    }
}

static bool header_at(struct sv s, size_t i)
{
    static const char name[] = "retry-after:";
    for (size_t k = 0; k < sizeof(name) - 1; k++) {
        if (i + k >= s.n)
            return false;
        char c = s.p[i + k];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != name[k])
            return false;
    }
    return true;
}

struct dur retry_after_in_log(struct sv tail)
{
    struct dur found = {-1};
    for (size_t i = 0; i < tail.n; i++) {
        if (!header_at(tail, i))
            continue;
        struct sv rest = sv_make(tail.p + i + 12, tail.n - i - 12);
        rest = sv_trim(sv_cut(rest, '\n', &(struct sv){0}));
        int64_t secs;
        if (sv_to_i64(rest, 0, INT32_MAX, &secs) == 0)
            found = DUR_S(secs);
    }
    return found;
}
