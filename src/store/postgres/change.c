/* Acts on jobs that have not ended: release and set. */
#include "pg.h"

static void bind_ids(struct args *a, const struct target *v, size_t n)
{
    int64_t *ids = arena_alloc(&a->arena, n * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = v[i].id;
    arg_i64s(a, ids, n, NULL);
}

static int ready_now(struct pg *p, const struct target *v, size_t n, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    bind_ids(&a, v, n);
    return db_query(p, STMT_ACT_READY, &a, NULL, err);
}

/* The lease ends under its own fence, so whatever its worker still writes is stale (I2); the worker
 * is told with its next renewal, so that the processes end too. */
static int fence_off(struct pg *p, const struct target *t, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, t->id);
    if (db_query(p, STMT_ACT_REVOKE, &a, NULL, err) < 0)
        return err->code;
    const struct settle v = {.id = {t->id},
                             .fence = {t->fence},
                             .outcome = OUTCOME_RELEASED,
                             .error = SV("released by an operator"),
                             .exit_code = -1};
    enum settle_outcome out;
    if (pg_settle_in_op(p, &v, 1, NULL, &out, err) < 0)
        return err->code;
    return pg_add_event(p, EVENT_FREED, v.id, v.fence, (session_id){0}, SV_NONE, err);
}

/* Waiting jobs by the stretch, running ones by themselves: events come in the order of ids. */
int pg_release(struct pg *p, const struct target *v, size_t n, struct pawl_err *err)
{
    p->ready = true;
    for (size_t i = 0, len; i < n; i += len) {
        len = 0;
        while (i + len < n && v[i + len].state == JOB_WAITING)
            len++;
        int rc = len ? ready_now(p, &v[i], len, err) : fence_off(p, &v[i], err);
        if (rc < 0)
            return rc;
        len += len == 0;
    }
    return 0;
}

int pg_set(struct pg *p, const struct target *v, size_t n, const struct job_change *c,
           struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    int *states = arena_alloc(&a.arena, n * sizeof(*states));
    for (size_t i = 0; i < n; i++)
        states[i] = (int)v[i].state;
    bind_ids(&a, v, n);
    arg_int_or_null(&a, -c->priority, !c->has_priority);
    arg_text(&a, c->payload);
    arg_int_or_null(&a, c->max_attempts, !c->has_max_attempts);
    arg_i64_or_null(&a, c->timeout.us, !c->has_timeout);
    arg_bool(&a, c->has_time);
    arg_i64_or_null(&a, c->at.us, !c->at.us);
    arg_i64(&a, c->delay.us);
    arg_ints(&a, states, n, NULL);
    p->ready = true;
    return db_query(p, STMT_ACT_SET, &a, NULL, err);
}
