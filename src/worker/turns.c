/* Handing turns to the store thread and taking them in. The next turn leaves before the last one's
 * results are worked on, so that the store and the handlers are busy at the same time. */
#include "worker_internal.h"

void turns_init(struct worker *w)
{
    for (size_t i = 0; i < N_TURNS; i++) {
        struct turn *t = &w->turns[i];
        arena_init(&t->texts);
        arena_init(&t->seen_arena);
        t->note.detail = STR_INIT(STR_LINE);
        asks_init(&t->asks);
        t->ready_in = DUR_NONE;
        t->n_pools = w->n_pools;
        t->pools = mem_zalloc(w->n_pools, sizeof(*t->pools));
        for (size_t p = 0; p < w->n_pools; p++)
            t->pools[p].kinds = mem_zalloc(w->pools[p].n_kinds, sizeof(struct sv));
    }
    w->note.detail = STR_INIT(STR_LINE);
    asks_init(&w->asks);
    w->filling = &w->turns[0];
}

static void free_batch(struct batch *b)
{
    if (!b)
        return;
    arena_done(&b->arena);
    free(b);
}

void turns_done(struct worker *w)
{
    str_done(&w->note.detail);
    for (size_t i = 0; i < N_TURNS; i++) {
        struct turn *t = &w->turns[i];
        arena_done(&t->texts);
        str_done(&t->note.detail);
        arena_done(&t->seen_arena);
        free(t->settles);
        free(t->ended);
        free(t->outcomes);
        for (size_t p = 0; p < t->n_pools; p++)
            free((struct sv *)t->pools[p].kinds);
        free(t->pools);
        free_batch(t->batch);
        free_batch(t->held);
    }
}

static struct turn *spare(struct worker *w)
{
    struct turn *t = w->turns;
    while (t == w->filling || t == w->away || t == w->coming)
        t++;
    return t;
}

static void give(struct worker *w)
{
    struct turn *t = w->filling;
    w->away = t;
    w->filling = spare(w);
    store_thread_give(&w->store, t);
}

void turns_hello(struct worker *w)
{
    w->filling->look =
        true; /* what had failed before this worker did anything, its sweep included */
    give(w);
}

/* A quick drain may be over before its session begins: the note waits for it. */
static void take_note(struct worker *w, struct turn *t)
{
    if (!w->note.type || !w->session.id.v || t->note.type)
        return;
    struct note empty = t->note;
    t->note = w->note;
    w->note = empty;
}

static void take_asks(struct worker *w, struct turn *t)
{
    if (!w->asks.first)
        return;
    t->asks = w->asks;
    asks_init(&w->asks);
}

void turns_send(struct worker *w)
{
    if (w->away || w->broken)
        return;
    struct turn *t = w->filling;
    t->session = w->session;
    housekeeping_plan(w, t);
    slots_plan(w, t);
    take_note(w, t);
    take_asks(w, t);
    bool work = t->n_settles || t->want || t->sweep || t->prune || t->note.type || t->asks.first ||
                w->look_due;
    bool judging = w->draining && !w->n_running && !w->n_ready && work;
    t->look = w->look_due || judging;
    t->judging = !w->look_due;
    t->drain = w->draining;
    w->look_due = false;
    t->all_in = w->all_in;
    if (work)
        give(w);
}

static void discard_claim(struct worker *w, struct turn *t)
{
    batch_put(w, t->batch); /* the end of that session gives the jobs back */
    t->batch = NULL;
}

/* A claim that keeps failing for a reason of its own, not the store's, will not heal by itself. */
static void judge_claim(struct worker *w, const struct turn *t)
{
    if (t->claim_rc == 0) {
        w->claim_failing.us = 0;
        return;
    }
    LOG(&w->log, LOG_WARN, "claim_failed", LOG_S("error", sv_of(t->claim_err.msg)));
    struct boot now = loop_now(w->loop);
    if (!w->claim_failing.us)
        w->claim_failing = now;
    else if (now.us - w->claim_failing.us > w->o->config->store_timeout.us)
        worker_break(w, &t->claim_err);
}

static void take_claim(struct worker *w, struct turn *t)
{
    if (!t->batch)
        return;
    bool mine = t->session.id.v == w->session.id.v && !w->lost;
    if (!mine)
        discard_claim(w, t);
    else
        slots_take_in(w, t);
    if (mine && t->session_stale)
        lease_lost(w);
    if (!t->recovered)
        judge_claim(w, t);
}

static void give_up(struct worker *w, struct turn *t)
{
    for (size_t i = 0; i < t->n_settles; i++)
        batch_unref(w, t->ended[i].batch);
    t->n_settles = 0;
    if (t->batch)
        discard_claim(w, t);
    worker_break(w, &t->err);
    asks_tell(&t->asks, false);
}

static void take_in(struct worker *w, struct turn *t)
{
    size_t claimed = t->batch ? t->batch->n : 0;
    if (t->recovered)
        readback(w, t);
    take_claim(w, t);
    housekeeping_after(w, t, claimed);
    turns_send(w);
    settle_committed(w, t);
    asks_tell(&t->asks, !t->recovered);
    if (t->look)
        drain_judge(w, t);
}

void turns_receive(struct worker *w)
{
    struct turn *t = store_thread_take(&w->store);
    if (!t)
        return;
    w->away = NULL;
    w->coming = t;
    if (t->rc < 0)
        give_up(w, t);
    else
        take_in(w, t);
    t->sweep = t->look = t->prune = false;
    t->note.type = 0;
    t->want = 0;
    t->ready_in = DUR_NONE;
    w->coming = NULL;
    worker_soon(w);
}
