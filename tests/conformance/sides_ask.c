/* Operations that only look, with arguments by chance, on both sides. */
#include "sides.h"

static void ask_list(struct sides *r)
{
    struct selection s;
    bool full = roll(r, 2);
    say(r, "list full %d", full);
    pick_selection(r, &s);
    counted(r, OP_list);
    EACH_SIDE(r, d)
    {
        struct selection here = selection_for(d, &s);
        struct looking l = {.r = r, .d = d};
        answer(d, d->s->ops->list(d->s, &here, full, look_at_job, &l, &d->e));
    }
}

static void ask_count(struct sides *r)
{
    struct selection s;
    say(r, "count");
    pick_selection(r, &s);
    counted(r, OP_count);
    EACH_SIDE(r, d)
    {
        struct selection here = selection_for(d, &s);
        int64_t n = -1;
        answer(d, d->s->ops->count(d->s, &here, &n, &d->e));
        str_addf(&d->text, "%lld\n", (long long)n);
    }
}

static void ask_events(struct sides *r)
{
    struct event_filter f = {0};
    int64_t after = roll(r, 3) ? 0 : 1 + roll(r, (int)r->side[0].events.n + 1);
    f.job.v = roll(r, 2) ? 0 : pick_job(r);
    f.queue = roll(r, 4) ? SV_NONE : pick_queue(r);
    f.types = roll(r, 2) ? 0 : (unsigned)roll(r, 1 << 30);
    f.since.us = roll(r, 4) ? 0 : r->now.us + (roll(r, 3) ? -1 : 1) * LONG_TIME.us;
    f.limit = roll(r, 3) ? 0 : 1 + roll(r, 20);
    f.last = roll(r, 3) ? 1 + roll(r, 20) : 0;
    if (!f.limit && !f.last && !f.job.v)
        f.last = 50;
    f.types = f.types ? f.types & ~BREAKER_EVENTS : ~BREAKER_EVENTS;
    say(r, "events after %lld job %lld queue '" SV_FMT "' types %08x", (long long)after,
        (long long)f.job.v, SV_ARG(f.queue), f.types);
    say(r, " since %+lld limit %lld last %lld",
        f.since.us ? (long long)(f.since.us - r->now.us) : 0, (long long)f.limit,
        (long long)f.last);
    counted(r, OP_events);
    EACH_SIDE(r, d)
    {
        struct event_filter here = f;
        struct looking l = {.r = r, .d = d};
        here.after = after ? ids_native(&d->events, after) : 0;
        here.job.v = f.job.v ? ids_native(&d->jobs, f.job.v) : 0;
        answer(d, d->s->ops->events(d->s, &here, look_at_event, &l, &d->e));
    }
}

static void ask_check(struct sides *r)
{
    counted(r, OP_check);
    say(r, "check");
    EACH_SIDE(r, d)
    {
        AUTO_STR struct str found = STR_INIT(STR_LINE);
        answer(d, d->s->ops->check(d->s, &found, &d->e));
        if (found.len)
            str_addf(&d->text, "%s is not in order: %s\n", d->name, found.p);
    }
}

static void ask_clock(struct sides *r)
{
    counted(r, OP_now);
    counted(r, OP_effort);
    say(r, "now, effort");
    EACH_SIDE(r, d)
    {
        struct store_effort e, *old = &d->effort[r->handle];
        int64_t off = d->s->ops->now(d->s).us - clock_wall().us;
        d->s->ops->effort(d->s, &e);
        str_addf(&d->text, "%d %d\n", off < 2000000 && off > -2000000,
                 e.statements >= old->statements && e.rows >= old->rows && e.syncs >= old->syncs);
        *old = e;
    }
}

static void ask_admin(struct sides *r)
{
    counted(r, OP_migrate);
    counted(r, OP_limit);
    say(r, "migrate, limit");
    EACH_SIDE(r, d)
    {
        int from = -1, to = -1;
        answer(d, d->upgrader->ops->migrate(d->upgrader, &from, &to, &d->e));
        str_addf(&d->text, "%d %d\n", from > 0, from == to);
        if (d->upgrader->ops->limit)
            d->upgrader->ops->limit(d->upgrader, DUR_S(5));
    }
}

static void ask_surroundings(struct sides *r)
{
    counted(r, OP_log_dir);
    counted(r, OP_wake_fd);
    counted(r, OP_wake_clear);
    say(r, "log_dir, wake_fd, wake_clear");
    EACH_SIDE(r, d)
    {
        int dir = -1;
        struct store *s = d->handles[0];
        answer(d, s->ops->log_dir(s, &dir, &d->e));
        str_addf(&d->text, "%d\n", dir >= 0);
        str_addf(&d->text, "%d\n", s->ops->wake_fd(s) >= 0);
        s->ops->wake_clear(s);
    }
}

void sides_ask(struct sides *r)
{
    int what = roll(r, 100);
    if (what < 12) {
        ask_list(r);
    } else if (what < 22) {
        ask_count(r);
    } else if (what < 36) {
        ask_events(r);
    } else if (what < 40) {
        say(r, "show");
        show_job(r, pick_job(r));
    } else if (what < 42) {
        say(r, "status without jobs");
        show_status(r, 0);
    } else if (what < 49) {
        say(r, "report");
        show_report(r, roll(r, 2) ? pick_queue(r) : SV_NONE);
    } else if (what < 58) {
        ask_clock(r);
    } else if (r->in_group) {
        ask_list(r);
    } else if (what < 69) {
        ask_check(r);
    } else if (what < 81) {
        ask_admin(r);
    } else if (what < 93) {
        ask_surroundings(r);
    } else {
        say(r, "events, followed");
        sides_follow(r);
    }
}
