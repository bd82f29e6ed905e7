/* Crawl-delay within one worker. The gates keep starts apart for all workers; those that had begun
 * before anybody knew of it, and those of hosts without a gate, are kept apart here: they stand in
 * line at their origin, and one goes each `apart`. Nobody has a time of his own, so whoever leaves
 * makes room for those behind. Who would stand for long does not: it gives its slot back and comes
 * again at about its turn. */
#include "fetch_parts.h"

static const struct dur PATIENCE = {(int64_t)5 * 1000000};    /* of the slot of one who waits */
static const struct dur LATER_MAX = {(int64_t)600 * 1000000}; /* rules may change meanwhile */

static void set_timer(struct robots_entry *e, struct boot now);

static void take_turn(struct robots_entry *e, struct boot now)
{
    e->next.us = now.us + e->answer.apart.us;
}

static void on_turn(struct timer *t)
{
    struct robots_entry *e = OWNER(t, struct robots_entry, turn);
    struct boot now = loop_now(e->h->loop);
    struct fetch *f = e->line.first;
    waiters_remove(&e->line, f);
    f->in_line = NULL;
    take_turn(e, now);
    set_timer(e, now);
    robots_rest(e);
    hop_turn_came(f);
}

static void set_timer(struct robots_entry *e, struct boot now)
{
    e->turn.on_time = on_turn;
    if (e->line.first)
        loop_timer_set(e->h->loop, &e->turn, DUR_US(e->next.us > now.us ? e->next.us - now.us : 0));
    else
        loop_timer_clear(e->h->loop, &e->turn);
}

/* Those who are sent away are told times apart from each other, lest they all come at once. */
static struct dur send_away(struct robots_entry *e, struct boot now, struct dur wait)
{
    int64_t at = now.us + wait.us, after = e->sent_until.us + e->answer.apart.us;
    at = after > at ? after : at;
    if (at > now.us + LATER_MAX.us)
        at = now.us + LATER_MAX.us;
    e->sent_until.us = at;
    return DUR_US(at - now.us);
}

static struct dur patience(const struct fetch *f)
{
    struct dur tenth = DUR_US(fetch_left(f).us / 10);
    return tenth.us < PATIENCE.us ? tenth : PATIENCE;
}

enum turn robots_turn(struct robots_entry *e, struct fetch *f, struct dur *later)
{
    struct boot now = loop_now(e->h->loop);
    int64_t free_in = e->next.us > now.us ? e->next.us - now.us : 0;
    if (!e->answer.apart.us)
        return TURN_NOW;
    if (!e->line.first && !free_in) {
        take_turn(e, now);
        return TURN_NOW;
    }
    struct dur wait = DUR_US(free_in + (int64_t)e->line.n * e->answer.apart.us);
    if (wait.us > patience(f).us) {
        *later = send_away(e, now, wait);
        return TURN_LATER;
    }
    robots_busy(e);
    waiters_add(&e->line, f);
    f->in_line = e;
    set_timer(e, now);
    return TURN_WAITS;
}

void robots_line_leave(struct fetch *f)
{
    struct robots_entry *e = f->in_line;
    if (!e)
        return;
    waiters_remove(&e->line, f);
    f->in_line = NULL;
    set_timer(e, loop_now(e->h->loop));
    robots_rest(e);
}
