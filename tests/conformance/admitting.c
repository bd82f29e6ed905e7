#include "admitting.h"

struct admission ask(struct fixture *f, const struct lease *l, const char *host)
{
    struct lease_ref ref = {l->id, l->fence};
    struct admission r = {0};
    for (int i = 0; i < 200; i++) {
        OK(f->s->ops->admit(f->s, &ref, sv_of(host), &f->a, &r, &f->e));
        if (r.outcome != ADMIT_SHUT || r.wait.us > 5000)
            break;
        nap(DUR_MS(2));
    }
    return r;
}

void admitted(struct fixture *f, const struct lease *l, const char *host)
{
    struct admission r = ask(f, l, host);
    if (r.outcome != ADMIT_OK)
        fail_msg("%s: outcome %d, gate " SV_FMT, host, (int)r.outcome, SV_ARG(r.gate));
}

int pace(struct fixture *f, const struct lease *l, const char *host, struct dur apart)
{
    struct lease_ref ref = {l->id, l->fence};
    int n = -1;
    OK(f->s->ops->pace(f->s, &ref, sv_of(host), apart, &n, &f->e));
    return n;
}

struct lease run_one(struct fixture *f, const struct session *w)
{
    for (int i = 0; i < 2000; i++) {
        struct claim_result r = take(f, w, 1);
        if (r.n)
            return r.leases[0];
        nap(DUR_MS(2));
    }
    fail_msg("nothing to run");
    return (struct lease){0};
}

void ends_at(struct fixture *f, const struct lease *l, const char *peer, struct settle how)
{
    struct settle v = settle_of(l, OUTCOME_RETRY);
    v.cls = CLASS_TRANSIENT;
    v.error = SV("connection refused");
    v.refund_attempt = v.count_transient = true;
    v.delay = HOUR;
    v.reason = WAIT_BACKOFF;
    v.throttled = how.throttled;
    v.timed_out = how.timed_out;
    v.retry_after = how.throttled ? how.retry_after : DUR_US(-1);
    v.peer = sv_of(peer);
    assert_int_equal(settle(f, &v), SETTLE_OK);
}
