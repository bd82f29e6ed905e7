/* Pools and slots: what to claim, what to start next, what to give back. A freed slot asks for work
 * at once; jobs beyond the slots are claimed only for kinds that are known to be quick. */
#include "worker_internal.h"

#include <stdlib.h>
#include <string.h>

#define LATE "did not start in time"

/* ---- kinds and pools ---- */

static int by_name(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    return sv_cmp(x->name, y->name);
}

static struct pool *pool_for(struct worker *w, struct sv kind)
{
    struct pool *rest = NULL;
    for (size_t i = 0; i < w->n_pools; i++) {
        if (sv_eq(sv_of(w->pools[i].name), kind))
            return &w->pools[i];
        if (strcmp(w->pools[i].name, "*") == 0)
            rest = &w->pools[i];
    }
    return rest;
}

static void join_pool(struct pool *p, struct kind *k)
{
    k->pool = p;
    p->kinds[p->n_kinds] = k->name;
    p->members[p->n_kinds++] = k;
}

void slots_init(struct worker *w)
{
    const struct worker_options *o = w->o;
    w->n_pools = o->n_pools;
    w->pools = mem_zalloc(o->n_pools, sizeof(*w->pools));
    for (size_t i = 0; i < o->n_pools; i++) {
        w->pools[i].name = o->pools[i].kind;
        w->pools[i].slots = o->pools[i].slots;
        w->pools[i].kinds = mem_zalloc(o->n_kinds, sizeof(struct sv));
        w->pools[i].members = mem_zalloc(o->n_kinds, sizeof(struct kind *));
        w->slots += o->pools[i].slots;
    }
    w->n_kinds = o->n_kinds;
    w->kinds = mem_zalloc(o->n_kinds, sizeof(*w->kinds));
    for (size_t i = 0; i < o->n_kinds; i++)
        w->kinds[i] = (struct kind){.name = sv_of(o->kinds[i].name),
                                    .handler = o->kinds[i].handler,
                                    .timeout = o->kinds[i].timeout,
                                    .max_attempts = o->kinds[i].max_attempts,
                                    .keeps = o->kinds[i].keeps};
    qsort(w->kinds, w->n_kinds, sizeof(*w->kinds), by_name);
    for (size_t i = 0; i < w->n_kinds; i++) {
        struct pool *p = pool_for(w, w->kinds[i].name);
        if (p)
            join_pool(p, &w->kinds[i]);
    }
    w->claim_max = CLAIM_MAX / 4;
}

void slots_done(struct worker *w)
{
    for (size_t i = 0; i < w->n_pools; i++) {
        free(w->pools[i].kinds);
        free(w->pools[i].members);
        free(w->pools[i].ring);
    }
    free(w->pools);
    free(w->kinds);
    while (w->free_batches) {
        struct batch *b = w->free_batches;
        w->free_batches = b->next;
        arena_done(&b->arena);
        free(b);
    }
}

struct kind *slots_kind(struct worker *w, struct sv name)
{
    const struct kind key = {.name = name};
    return bsearch(&key, w->kinds, w->n_kinds, sizeof(*w->kinds), by_name);
}

/* ---- batches ---- */

static struct batch *batch_get(struct worker *w)
{
    struct batch *b = w->free_batches;
    if (!b)
        return mem_zalloc(1, sizeof(*b));
    w->free_batches = b->next;
    return b;
}

void batch_put(struct worker *w, struct batch *b)
{
    arena_reset(&b->arena);
    b->n = b->refs = 0;
    b->next = w->free_batches;
    w->free_batches = b;
}

void batch_unref(struct worker *w, struct batch *b)
{
    if (--b->refs == 0)
        batch_put(w, b);
}

/* ---- the ring of ready jobs ---- */

static void ring_grow(struct pool *p)
{
    size_t cap = p->cap ? p->cap * 2 : 16;
    struct ready *ring = mem_zalloc(cap, sizeof(*ring));
    for (size_t i = 0; i < p->n_ready; i++)
        ring[i] = p->ring[(p->head + i) & (p->cap - 1)];
    free(p->ring);
    p->ring = ring;
    p->cap = cap;
    p->head = 0;
}

static void ring_push(struct worker *w, struct pool *p, struct ready r)
{
    if (p->n_ready == p->cap)
        ring_grow(p);
    p->ring[(p->head + p->n_ready++) & (p->cap - 1)] = r;
    w->n_ready++;
}

static struct ready ring_pop(struct worker *w, struct pool *p)
{
    struct ready r = p->ring[p->head];
    p->head = (p->head + 1) & (p->cap - 1);
    p->n_ready--;
    w->n_ready--;
    return r;
}

static struct ready ring_pop_last(struct worker *w, struct pool *p)
{
    p->n_ready--;
    w->n_ready--;
    return p->ring[(p->head + p->n_ready) & (p->cap - 1)];
}

/* ---- after a claim ---- */

/* Among jobs that were lost with their worker may be one that killed it. Whoever is held with it
 * when it does so again counts as lost too, so what cannot start now goes back. */
static void be_wary(struct worker *w, struct pool *p)
{
    p->wary = (struct boot){loop_now(w->loop).us + WARY_MS * 1000};
    p->window = 0;
    while (p->n_ready && p->running + (int)p->n_ready > p->slots)
        settle_unstarted(w, ring_pop_last(w, p), OUTCOME_RELEASED, LATE);
}

static size_t weight(const struct lease *l)
{
    return sizeof(*l) + l->payload.n + l->queue.n + l->kind.n + l->key.n + l->host.n;
}

static void weigh(struct pool *p, const struct lease *l)
{
    p->mean_bytes += ((double)weight(l) - p->mean_bytes) / 16;
}

static void count_claim(struct worker *w, const struct turn *t, size_t n)
{
    if (t->claim_rc == 0 && !t->recovered)
        metric_add(&w->metrics, n ? METRIC_claim_success : METRIC_claim_idle, 1);
}

/* A pool that got all it asked for may hold more; one that got nothing waits for a hint. */
static void judge_pools(struct worker *w, const struct turn *t, const size_t *got)
{
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        size_t want = (size_t)t->pools[i].want;
        if (!want)
            continue;
        /* A hint that came while this claim was under way may mean a job it could not see. */
        bool none = got[i] == 0 && t->hints == w->hints;
        bool only_ahead = t->pools[i].ahead == t->pools[i].want;
        p->dry = none && !only_ahead;
        p->no_ahead = (none && only_ahead) || (p->no_ahead && got[i] < want);
        if (got[i] == want && p->window < HELD_MAX)
            p->window = p->window ? p->window * 2 : 4 * (size_t)p->slots;
    }
}

/* Keep transactions short: ENGINE.md, writing on SQLite. */
static void adapt(struct worker *w, const struct turn *t)
{
    if (t->took.us > 45000 && w->claim_max > CLAIM_MIN)
        w->claim_max = w->claim_max * 3 / 4;
    else if (t->took.us < 30000 && t->want >= w->claim_max && w->claim_max < CLAIM_MAX)
        w->claim_max = w->claim_max * 5 / 4;
}

void slots_take_in(struct worker *w, struct turn *t)
{
    struct batch *b = t->batch;
    t->batch = NULL;
    if (!b)
        return;
    AUTO_FREE size_t *got = mem_zalloc(w->n_pools, sizeof(*got));
    bool lost = false;
    b->refs = b->n;
    b->taken = loop_now(w->loop);
    for (size_t i = 0; i < b->n; i++) {
        struct lease *l = &b->leases[i];
        got[l->pool]++;
        weigh(&w->pools[l->pool], l);
        ring_push(w, &w->pools[l->pool], (struct ready){l, b});
        lost |= l->lost > 0;
    }
    for (size_t i = 0; lost && i < w->n_pools; i++)
        be_wary(w, &w->pools[i]);
    count_claim(w, t, b->n);
    if (!t->recovered)
        judge_pools(w, t, got);
    adapt(w, t);
    if (!b->n)
        batch_put(w, b);
}

/* ---- what to claim ---- */

/* Jobs the pool may hold beyond its slots: as many as end within PREFETCH_MS, none when a kind it
 * met lately is slow or nothing is known yet. */
static size_t prefetch(const struct worker *w, const struct pool *p)
{
    struct boot now = loop_now(w->loop);
    bool timed = false;
    if (now.us < p->wary.us || p->no_ahead)
        return 0;
    for (size_t i = 0; i < p->n_kinds; i++) {
        const struct kind *k = p->members[i];
        if (!k->timed || now.us - k->last_end.us > 10 * 1000000)
            continue;
        if (k->mean_us > SLOW_MS * 1000.0)
            return 0;
        timed = true;
    }
    if (!timed || w->o->only.v)
        return 0;
    double depth = (double)p->slots * PREFETCH_MS * 1000.0 / (p->mean_us + 1.0);
    double room = HELD_BYTES_MAX / (p->mean_bytes + 1.0);
    depth = depth < room ? depth : room;
    depth = depth < (double)p->window ? depth : (double)p->window;
    return depth < HELD_MAX ? (size_t)depth : HELD_MAX;
}

static size_t wanted(const struct worker *w, const struct pool *p)
{
    size_t in_hand = (size_t)p->running + p->n_ready;
    size_t may = (size_t)p->slots + prefetch(w, p);
    if (p->dry || !p->n_kinds || in_hand >= may)
        return 0;
    size_t want = may - in_hand;
    /* Prefetching a few at a time would cost a transaction each: wait until it is worth it. */
    if (in_hand >= (size_t)p->slots && want < may / 4)
        return 0;
    return want;
}

/* How many of `want` will not start at once: a permit or a lock must not wait in a ring. I7 */
static int ahead(const struct pool *p, size_t want)
{
    size_t in_hand = (size_t)p->running + p->n_ready;
    size_t free = in_hand < (size_t)p->slots ? (size_t)p->slots - in_hand : 0;
    return want > free ? (int)(want - free) : 0;
}

static size_t jobs_left(const struct worker *w)
{
    if (!w->o->stop_after_jobs)
        return SIZE_MAX;
    int64_t left = w->o->stop_after_jobs - w->started_jobs - (int64_t)w->n_ready;
    return left > 0 ? (size_t)left : 0;
}

/* How many jobs of the kind this worker would take now. */
static size_t admits(const struct worker *w, const struct kind *k)
{
    return preflight_admits(k) && !lake_hold_why(w, k) ? lake_hold_room(w, k) : 0;
}

/* The kinds that the pool takes now, and how many jobs in all: whichever kind they turn out to be,
 * there is room for them. The list is the turn's own: what a later check says does not reach a
 * claim under way. */
static size_t admitted(const struct worker *w, const struct pool *p, struct claim_pool *out)
{
    struct sv *kinds = (struct sv *)out->kinds;
    size_t most = SIZE_MAX;
    out->n_kinds = 0;
    for (size_t i = 0; i < p->n_kinds; i++) {
        size_t n = admits(w, p->members[i]);
        if (!n)
            continue;
        kinds[out->n_kinds++] = p->kinds[i];
        most = n < most ? n : most;
    }
    return out->n_kinds ? most : 0;
}

void slots_plan(struct worker *w, struct turn *t)
{
    size_t left = jobs_left(w);
    lake_hold_look(w);
    t->hints = w->hints;
    t->want = 0;
    left = left < w->claim_max ? left : w->claim_max;
    bool may = w->session.id.v && !w->lost && !w->paused && w->stopping == GO_ON && !w->only_ended;
    for (size_t i = 0; i < w->n_pools; i++) {
        size_t most = admitted(w, &w->pools[i], &t->pools[i]);
        size_t want = may && most ? wanted(w, &w->pools[i]) : 0;
        want = want < most ? want : most;
        want = want < left ? want : left;
        t->pools[i].want = (int)want;
        t->pools[i].ahead = ahead(&w->pools[i], want);
        t->want += want;
        left -= want;
    }
    if (t->want)
        t->batch = batch_get(w);
}

void slots_wet(struct worker *w)
{
    w->hints++;
    for (size_t i = 0; i < w->n_pools; i++)
        w->pools[i].dry = w->pools[i].no_ahead = false;
}

void slots_freed(struct worker *w)
{
    w->hints++;
    for (size_t i = 0; i < w->n_pools; i++)
        w->pools[i].dry = false;
}

/* ---- starting ---- */

static bool too_old(const struct worker *w, struct ready r)
{
    return loop_now(w->loop).us - r.batch->taken.us > GIVE_BACK_MS * 1000;
}

bool slots_pump(struct worker *w)
{
    int budget = PUMP_MAX;
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        while (p->n_ready && p->running < p->slots) {
            if (budget-- == 0)
                return true;
            struct ready r = ring_pop(w, p);
            if (too_old(w, r)) {
                p->window = 0;
                settle_unstarted(w, r, OUTCOME_RELEASED, LATE);
            } else {
                runs_start(w, r);
            }
        }
    }
    return false;
}

void slots_observe(struct kind *k, struct boot now, struct dur took)
{
    double us = took.us > 0 ? (double)took.us : 0;
    k->mean_us = k->timed ? k->mean_us + (us - k->mean_us) / 8 : us;
    k->pool->mean_us = k->timed ? k->pool->mean_us + (us - k->pool->mean_us) / 8 : us;
    k->timed = true;
    k->last_end = now;
}

/* ---- giving back ---- */

void slots_give_back(struct worker *w, struct dur older_than)
{
    struct boot now = loop_now(w->loop);
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        while (p->n_ready &&
               (older_than.us <= 0 || now.us - p->ring[p->head].batch->taken.us >= older_than.us)) {
            p->window = 0;
            settle_unstarted(w, ring_pop(w, p), OUTCOME_RELEASED, LATE);
        }
    }
}

void slots_give_back_kind(struct worker *w, struct sv kind, const char *why)
{
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        for (size_t n = p->n_ready; n > 0; n--) { /* once around */
            struct ready r = ring_pop(w, p);
            if (sv_eq(r.lease->kind, kind))
                settle_unstarted(w, r, OUTCOME_RELEASED, why);
            else
                ring_push(w, p, r);
        }
    }
}

void slots_drop(struct worker *w)
{
    for (size_t i = 0; i < w->n_pools; i++)
        while (w->pools[i].n_ready)
            batch_unref(w, ring_pop(w, &w->pools[i]).batch);
}

void slots_revoke(struct worker *w, struct lease_ref lease)
{
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        for (size_t n = p->n_ready; n > 0; n--) { /* once around */
            struct ready r = ring_pop(w, p);
            if (r.lease->id.v == lease.id.v && r.lease->fence.v == lease.fence.v)
                batch_unref(w, r.batch);
            else
                ring_push(w, p, r);
        }
    }
}

bool slots_cancel(struct worker *w, job_id id)
{
    bool found = false;
    for (size_t i = 0; i < w->n_pools; i++) {
        struct pool *p = &w->pools[i];
        for (size_t n = p->n_ready; n > 0; n--) { /* once around */
            struct ready r = ring_pop(w, p);
            if (r.lease->id.v == id.v) {
                settle_unstarted(w, r, OUTCOME_CANCELLED, NULL);
                found = true;
            } else {
                ring_push(w, p, r);
            }
        }
    }
    return found;
}
