#include "retention.h"

enum { RULES_PER_QUEUE = 4 }; /* age and count, of done and of failed ones */

struct rules {
    struct act_request *v;
    size_t n;
    struct wall now;
};

static void add(struct rules *r, struct sv queue, unsigned states, struct dur keep, int64_t newest)
{
    const struct act_request req = {.act = ACT_PRUNE, .select = {.queue = queue, .states = states}};
    if (keep.us >= 0) {
        r->v[r->n] = req;
        r->v[r->n++].finished_before.us = r->now.us - keep.us;
    }
    if (newest > 0) {
        r->v[r->n] = req;
        r->v[r->n++].keep_newest = newest;
    }
}

static void add_queue(struct rules *r, struct sv queue, const struct retention_conf *x)
{
    const unsigned ended = 1u << JOB_DONE | 1u << JOB_SKIPPED | 1u << JOB_CANCELLED;
    add(r, queue, ended, x->done, x->max_done);
    add(r, queue, 1u << JOB_FAILED, x->failed, x->max_failed);
}

/* What holds for queues without an entry of their own. */
static struct retention_conf usual(const struct config *c)
{
    return (struct retention_conf){.done = c->retention_done,
                                   .failed = c->retention_failed,
                                   .max_done = c->retention_max_done,
                                   .max_failed = c->retention_max_failed};
}

static struct retention_conf entry_of(const struct config *c, struct sv queue)
{
    for (size_t i = 0; i < c->n_retention; i++)
        if (sv_eq(queue, sv_of(c->retention[i].queue)))
            return c->retention[i];
    return usual(c);
}

/* A job beyond both bounds must not be counted twice by who only counts: the rule by age goes
 * first, and in fact too. */
int retention_rules(const struct config *c, struct store *s, struct arena *a,
                    struct act_request **out, size_t *out_n, struct pawl_err *err)
{
    struct rules r = {.now = s->ops->now(s)};
    if (!c->n_retention && !c->retention_max_done && !c->retention_max_failed) {
        const struct retention_conf x = usual(c);
        r.v = arena_zalloc(a, RULES_PER_QUEUE, sizeof(*r.v));
        add_queue(&r, SV_NONE, &x); /* the same for all: no need to know them */
    } else {
        struct status_view v;
        int rc = s->ops->status(s, 0, a, &v, err);
        if (rc < 0)
            return rc;
        r.v = arena_zalloc(a, v.n_classes * RULES_PER_QUEUE, sizeof(*r.v));
        for (size_t i = 0; i < v.n_classes; i++) {
            struct sv queue = v.classes[i].queue;
            const struct retention_conf x = entry_of(c, queue);
            if (i == 0 || !sv_eq(queue, v.classes[i - 1].queue)) /* they come by queue */
                add_queue(&r, queue, &x);
        }
    }
    *out = r.v;
    *out_n = r.n;
    return 0;
}
