/* After the store failed and came back: what it thinks this session runs is compared with what we
 * run. A claim whose commit we never saw may have been made: those jobs are given back. A job we
 * run that the store does not list is no longer ours: its run is dropped. I2, I12 */
#include "worker_internal.h"

#include <stdlib.h>

struct known {
    int64_t id, fence;
    struct attempt *run; /* NULL: being settled */
};
struct known_list {
    struct known *v;
    size_t n, cap;
};

static int by_id(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1)
                          : (x->fence > y->fence) - (x->fence < y->fence);
}

static void know(struct known_list *l, job_id id, fence_no fence, struct attempt *run)
{
    ARRAY_GROW(l->v, l->n, l->cap);
    l->v[l->n++] = (struct known){id.v, fence.v, run};
}

static void gather(struct worker *w, struct known_list *l)
{
    for (struct attempt *a = w->running.next; a != &w->running; a = a->next)
        know(l, a->lease->id, a->lease->fence, a);
    for (size_t i = 0; i < w->filling->n_settles; i++)
        know(l, w->filling->settles[i].id, w->filling->settles[i].fence, NULL);
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), by_id);
}

static struct known *find(const struct known_list *l, const struct lease *lease)
{
    const struct known key = {lease->id.v, lease->fence.v, NULL};
    return l->n ? bsearch(&key, l->v, l->n, sizeof(*l->v), by_id) : NULL;
}

static void give_back_unknown(struct worker *w, struct batch *held, const struct known_list *known)
{
    held->refs = 1; /* ours, until all is looked through */
    for (size_t i = 0; i < held->n; i++) {
        struct known *k = find(known, &held->leases[i]);
        if (k) {
            k->run = NULL; /* both sides agree */
            continue;
        }
        held->refs++;
        settle_unstarted(w, (struct ready){&held->leases[i], held}, OUTCOME_RELEASED,
                         "unknown to this worker");
    }
}

void readback(struct worker *w, struct turn *t)
{
    struct batch *held = t->held;
    AUTO_FREE struct known *list = NULL;
    struct known_list known = {0};
    if (!held)
        return;
    t->held = NULL;
    if (t->session.id.v != w->session.id.v || w->lost) {
        held->n = 0; /* that session is over; its end gives everything back */
    } else {
        slots_give_back(w, DUR_US(0)); /* jobs that have not started are not worth comparing */
        gather(w, &known);
    }
    list = known.v;
    give_back_unknown(w, held, &known);
    for (size_t i = 0; i < known.n; i++)
        if (known.v[i].run)
            runs_drop(known.v[i].run);
    batch_unref(w, held);
}
