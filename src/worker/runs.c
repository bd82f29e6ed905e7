/* One attempt: from the start in its handler to its end. The handler may end it within start. */
#include "worker_internal.h"

#include <assert.h>

enum { SLAB = 64 };

void runs_init(struct worker *w)
{
    w->running.prev = w->running.next = &w->running;
}

void runs_done(struct worker *w)
{
    assert(w->n_running == 0);
    for (size_t i = 0; i < w->n_slabs; i++)
        free(w->slabs[i]);
    free(w->slabs);
    free(w->slots_used);
}

static int take_slot(struct worker *w)
{
    size_t i = 0;
    while (i < w->n_slot_words && w->slots_used[i] == UINT64_MAX)
        i++;
    if (i == w->n_slot_words) {
        w->slots_used = mem_realloc(w->slots_used, i + 1, sizeof(*w->slots_used));
        w->slots_used[w->n_slot_words++] = 0;
    }
    int bit = __builtin_ctzll(~w->slots_used[i]);
    w->slots_used[i] |= 1ull << bit;
    return (int)(i * 64) + bit + 1;
}

static void free_slot(struct worker *w, int slot)
{
    w->slots_used[(slot - 1) / 64] &= ~(1ull << ((slot - 1) % 64));
}

static void add_slab(struct worker *w)
{
    struct attempt *slab = mem_zalloc(SLAB, sizeof(*slab));
    ARRAY_GROW(w->slabs, w->n_slabs, w->cap_slabs);
    w->slabs[w->n_slabs++] = slab;
    for (size_t i = 0; i < SLAB; i++) {
        slab[i].next = w->free_attempts;
        w->free_attempts = &slab[i];
    }
}

static void link_attempt(struct worker *w, struct attempt *a)
{
    a->next = &w->running;
    a->prev = w->running.prev;
    a->prev->next = a;
    w->running.prev = a;
    w->n_running++;
    a->pool->running++;
    a->kind->running++;
    atomic_store_explicit(&w->renew.running, (int)w->n_running, memory_order_relaxed);
}

static void end_attempt(struct worker *w, struct attempt *a)
{
    a->prev->next = a->next;
    a->next->prev = a->prev;
    w->n_running--;
    a->pool->running--;
    a->kind->running--;
    free_slot(w, a->slot);
    atomic_store_explicit(&w->renew.running, (int)w->n_running, memory_order_relaxed);
    a->next = w->free_attempts;
    w->free_attempts = a;
    worker_soon(w); /* the slot is refilled at once */
}

static void on_finish(struct run *r, const struct run_result *res)
{
    struct attempt *a = OWNER(r, struct attempt, run);
    struct worker *w = a->w;
    struct boot now = clock_boot();
    if (a->dropped) { /* I2: a late result changes nothing */
        w->started_jobs--;
        batch_unref(w, a->batch);
        end_attempt(w, a);
        lease_dropped(w);
        return;
    }
    slots_observe(a->kind, now, (struct dur){now.us - a->started.us});
    if (res->unfit && !lake_hold_why(w, a->kind)) /* that one ends by itself */
        preflight_unfit(a->kind, res->reason);
    enum worker_verdict verdict = settle_result(a, res, now);
    end_attempt(w, a);
    stop_as(w, verdict);
}

static void on_progress(struct run *r, struct sv json)
{
    struct attempt *a = OWNER(r, struct attempt, run);
    if (!a->dropped)
        renew_thread_progress(&a->w->renew, a->lease, json, &a->progress_turn, &a->progress_at);
}

/* The one place that resolves time limits: the job's, else its kind's, else none (B10). */
static struct dur resolve_timeout(const struct worker *w, const struct lease *l,
                                  const struct kind *k)
{
    const struct worker_guest *guest = w->o->guest;
    struct dur d = l->timeout.us ? l->timeout : k->timeout;
    if (guest && guest->limit)
        d = guest->limit(guest->arg, l, d);
    return d.us > 0 ? d : DUR_NONE;
}

#define SERVICES                                                                                   \
    .sink_open = keep_sink_open, .sink_write = keep_sink_write, .sink_drop = keep_sink_drop,       \
    .keep = keep_sink, .keep_file = keep_file, .admit = asks_admit, .pace = asks_pace,             \
    .recall = asks_recall, .remember = asks_remember, .previous = asks_previous
static const struct run_services services = {SERVICES};
/* Of a worker whose lake keeps records of exchanges. */
static const struct run_services packing_services = {SERVICES, .about = keep_about,
                                                     .confirm = keep_confirm};

static struct attempt *make_attempt(struct worker *w, struct ready r, struct kind *k)
{
    if (!w->free_attempts)
        add_slab(w);
    struct attempt *a = w->free_attempts;
    w->free_attempts = a->next;
    a->w = w;
    a->kind = k;
    a->pool = k->pool;
    a->lease = r.lease;
    a->batch = r.batch;
    a->started = clock_boot();
    a->dropped = a->cancelled = false;
    a->progress_turn = 0;
    a->slot = take_slot(w);
    a->run = (struct run){.job = r.lease,
                          .lease_deadline = {atomic_load(&w->renew.deadline)},
                          .timeout = resolve_timeout(w, r.lease, k),
                          .slot = a->slot,
                          .log_name = a->log_name,
                          .log_dir = w->log_dir,
                          .services = keep_packs(w) ? &packing_services : &services,
                          .finish = on_finish,
                          .progress = on_progress};
    store_log_name(r.lease->id, r.lease->fence, a->log_name);
    return a;
}

static void observe_wait(struct worker *w, const struct attempt *a)
{
    const struct lease *l = a->lease;
    int64_t started = l->claimed_at.us + (a->started.us - a->batch->at.us);
    metric_observe(&w->metrics, METRIC_queue_wait, (struct dur){started - l->ready_at.us});
}

void runs_start(struct worker *w, struct ready r)
{
    struct kind *k = slots_kind(w, r.lease->kind);
    if (!k || !k->pool) { /* not asked for; somebody who knows the kind will take it */
        settle_unstarted(w, r, OUTCOME_RELEASED, "no handler for its kind");
        return;
    }
    if (!preflight_admits(k)) { /* claimed before the check said so */
        settle_unstarted(w, r, OUTCOME_RELEASED, "its preflight fails");
        return;
    }
    if (lake_hold_why(w, k)) {
        settle_unstarted(w, r, OUTCOME_RELEASED, "the lake takes nothing now");
        return;
    }
    struct attempt *a = make_attempt(w, r, k);
    struct pawl_err err = {0};
    link_attempt(w, a);
    w->started_jobs++;
    observe_wait(w, a);
    if (k->handler->ops->start(k->handler, &a->run, &err) == 0)
        return; /* `a` may be gone already */
    enum worker_verdict verdict = settle_start_failure(a, &err);
    end_attempt(w, a);
    stop_as(w, verdict);
}

static void cancel(struct attempt *a, enum cancel_why why)
{
    if (!a->cancelled)
        a->why = why;
    a->cancelled = true;
    a->kind->handler->ops->cancel(a->kind->handler, &a->run, why);
}

void runs_cancel_all(struct worker *w, enum cancel_why why)
{
    for (struct attempt *a = w->running.next, *next; a != &w->running; a = next) {
        next = a->next; /* cancel may end it at once */
        cancel(a, why);
    }
}

bool runs_cancel(struct worker *w, job_id id)
{
    for (struct attempt *a = w->running.next; a != &w->running; a = a->next)
        if (a->lease->id.v == id.v) {
            if (!a->cancelled) /* every renewal repeats the request until the job has ended */
                cancel(a, CANCEL_ASKED);
            return true;
        }
    return false;
}

void runs_drop(struct attempt *a)
{
    if (a->dropped)
        return;
    a->dropped = true;
    metric_add(&a->w->metrics, METRIC_lease_lost, 1);
    cancel(a, CANCEL_LEASE_LOST);
}

bool runs_revoke(struct worker *w, struct lease_ref lease)
{
    for (struct attempt *a = w->running.next; a != &w->running; a = a->next)
        if (a->lease->id.v == lease.id.v && a->lease->fence.v == lease.fence.v) {
            runs_drop(a);
            return true;
        }
    return false;
}

void runs_drop_all(struct worker *w)
{
    for (struct attempt *a = w->running.next, *next; a != &w->running; a = next) {
        next = a->next;
        runs_drop(a);
    }
}
