#include "behind.h"

/* Beyond so many the rest is taken to be as the first were: a look must end. */
enum { LOOK_MAX = 100000 };

struct gate_name {
    struct sv limit, value;
};

struct behind {
    struct arena *arena;
    struct gate_name *gates; /* malloc'd */
    size_t n_gates, cap_gates;
    struct limit_spec *limits;
    size_t n_limits;
    size_t *matched; /* scratch of limits_of() */
    struct sv *values;
    struct look *seen;
    const struct sv *queues;
    size_t n_queues;
    struct sv queue, kind, host; /* the last lane that was looked at */
    bool shut;
    size_t class_at;
};

static struct sv keep(struct arena *a, struct sv s)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

static bool on_gate(void *arg, const struct gate_view *g)
{
    struct behind *b = arg;
    if (g->state.breaker != BREAKER_OPEN || g->state.until != INT64_MAX)
        return true;
    ARRAY_GROW(b->gates, b->n_gates, b->cap_gates);
    b->gates[b->n_gates++] = (struct gate_name){keep(b->arena, g->limit), keep(b->arena, g->value)};
    return true;
}

static int read_limits(struct behind *b, struct store *s, struct pawl_err *err)
{
    struct limit_view *v;
    size_t n;
    enum claim_order order;
    struct dur aging;
    int rc = s->ops->policy(s, b->arena, &v, &n, &order, &aging, err);
    if (rc < 0)
        return rc;
    b->limits = arena_zalloc(b->arena, n, sizeof(*b->limits));
    b->matched = arena_zalloc(b->arena, n, sizeof(*b->matched));
    b->values = arena_zalloc(b->arena, n, sizeof(*b->values));
    b->n_limits = 0;
    for (size_t i = 0; i < n; i++)
        if (!v[i].unset)
            b->limits[b->n_limits++] = v[i].spec;
    return 0;
}

static bool opened(const struct behind *b, struct sv limit, struct sv value)
{
    for (size_t i = 0; i < b->n_gates; i++)
        if (sv_eq(b->gates[i].limit, limit) && sv_eq(b->gates[i].value, value))
            return true;
    return false;
}

static bool lane_shut(struct behind *b)
{
    size_t n = limits_of(b->limits, b->n_limits, b->queue, b->kind, b->host, b->matched, b->values);
    for (size_t i = 0; i < n; i++)
        if (opened(b, b->limits[b->matched[i]].name, b->values[i]))
            return true;
    return false;
}

static size_t find_class(const struct behind *b)
{
    const struct status_view *v = &b->seen->status;
    size_t i = 0;
    while (i < v->n_classes &&
           !(sv_eq(v->classes[i].queue, b->queue) && sv_eq(v->classes[i].kind, b->kind)))
        i++;
    return i;
}

static bool same_lane(const struct behind *b, const struct job_view *job)
{
    return b->queue.p && sv_eq(b->queue, job->queue) && sv_eq(b->kind, job->kind) &&
           sv_eq(b->host, job->host);
}

static bool on_job(void *arg, const struct job_view *job)
{
    struct behind *b = arg;
    if (!same_lane(b, job)) { /* neighbours mostly share one */
        b->queue = keep(b->arena, job->queue);
        b->kind = keep(b->arena, job->kind);
        b->host = keep(b->arena, job->host);
        b->shut = lane_shut(b);
        b->class_at = find_class(b);
    }
    if (b->shut && b->class_at < b->seen->status.n_classes)
        b->seen->behind[b->class_at]++;
    return true;
}

static int count(struct behind *b, struct store *s, job_id only, struct pawl_err *err)
{
    struct selection sel = {.states = 1u << JOB_QUEUED, .limit = LOOK_MAX};
    if (only.v) {
        sel.ids = &only;
        sel.n_ids = 1;
    } else if (b->n_queues == 1) {
        sel.queue = b->queues[0];
    }
    b->seen->behind = arena_zalloc(b->arena, b->seen->status.n_classes, sizeof(*b->seen->behind));
    return s->ops->list(s, &sel, false, on_job, b, err);
}

int behind_count(struct store *s, const struct sv *queues, size_t n_queues, job_id only,
                 struct arena *a, struct look *seen, struct pawl_err *err)
{
    struct behind b = {.arena = a, .seen = seen, .queues = queues, .n_queues = n_queues};
    if (!s->ops->gates || !s->ops->policy)
        return 0;
    int rc = s->ops->gates(s, &(struct gate_filter){.shut = true}, on_gate, &b, err);
    if (rc == 0 && b.n_gates)
        rc = read_limits(&b, s, err);
    if (rc == 0 && b.n_gates)
        rc = count(&b, s, only, err);
    free(b.gates);
    return rc;
}
