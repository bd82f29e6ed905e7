/* One turn: settle, sweep and claim in one transaction (I3, I9), answered only after its commit. If
 * the store fails the whole turn counts as not done: the handle is reopened, the settles are sent
 * again, the claim is left to the next turn, and what the store thinks is running is read back so
 * that the loop can compare. I12 */
#include "store_turn.h"

enum { SWEEP_SESSIONS = 16, SWEEP_JOBS = 1000, PRUNE_JOBS = 500 };
#define REOPEN_FIRST DUR_MS(100)
#define REOPEN_MAX   DUR_S(1)

static struct dur since(struct boot t)
{
    return (struct dur){clock_boot().us - t.us};
}

/* ---- the parts of a turn ---- */

/* The store refuses this settle whatever we do (an oversized result, say): fail the job instead of
 * losing the others or trying for ever. */
static int settle_refused(struct store *s, struct turn *t, size_t i, const struct pawl_err *why,
                          struct pawl_err *err)
{
    struct settle plain = {.id = t->settles[i].id,
                           .fence = t->settles[i].fence,
                           .hint = t->settles[i].hint,
                           .outcome = OUTCOME_FAILED,
                           .cls = CLASS_FATAL,
                           .error = sv_of(why->msg),
                           .exit_code = t->settles[i].exit_code,
                           .log_bytes = t->settles[i].log_bytes,
                           .started_at = t->settles[i].started_at};
    size_t n = strlen(why->msg);
    plain.error = sv_make(arena_strndup(&t->texts, why->msg, n), n);
    t->settles[i] = plain;
    t->ended[i].why = "refused by the store";
    return store_settle(s, &t->settles[i], 1, &t->outcomes[i], err);
}

static int settle_one_by_one(struct store *s, struct turn *t, struct pawl_err *err)
{
    for (size_t i = 0; i < t->n_settles; i++) {
        struct pawl_err why = {0};
        int rc = store_settle(s, &t->settles[i], 1, &t->outcomes[i], &why);
        if (rc < 0 && !store_failed(rc))
            rc = settle_refused(s, t, i, &why, &why);
        if (rc < 0) {
            *err = why;
            return rc;
        }
    }
    return 0;
}

static int do_settles(struct store *s, struct turn *t, struct pawl_err *err)
{
    if (!t->n_settles)
        return 0;
    int rc = store_settle(s, t->settles, t->n_settles, t->outcomes, err);
    return rc < 0 && !store_failed(rc) ? settle_one_by_one(s, t, err) : rc;
}

static int do_sweep(struct store_thread *st, struct store *s, struct turn *t, struct pawl_err *err)
{
    if (!t->sweep)
        return 0;
    const struct sweep_request req = {.self = t->session.id.v ? &t->session : NULL,
                                      .max_sessions = SWEEP_SESSIONS,
                                      .max_jobs = SWEEP_JOBS,
                                      .max_lost = (int)st->o->config->retry_max_lost};
    int rc = s->ops->sweep(s, &req, &t->swept, err);
    return rc < 0 && store_failed(rc) ? rc : 0; /* one bad row must not hold up the rest: I6 */
}

static int do_claim(struct store_thread *st, struct store *s, struct turn *t, struct pawl_err *err)
{
    if (!t->want)
        return 0;
    struct claim_request req = *st->claim;
    struct claim_result got = {0};
    req.session = &t->session;
    req.pools = t->pools;
    req.n_pools = t->n_pools;
    t->batch->at = clock_boot();
    int rc = store_claim(s, &req, &t->batch->arena, &got, err);
    metric_observe(st->metrics, METRIC_claim_duration, since(t->batch->at));
    metric_add(st->metrics, METRIC_claim_attempts, 1);
    if (rc < 0) {
        metric_add(st->metrics, METRIC_claim_error, 1);
        t->claim_rc = rc;
        t->claim_err = *err;
        return store_failed(rc) ? rc : 0;
    }
    t->batch->leases = got.leases;
    t->batch->n = got.n;
    t->session_stale = got.session_stale;
    t->next_due = got.next_due;
    return 0;
}

/* What this turn cost, into the metrics. */
static void count_effort(struct store_thread *st, const struct store_effort *before)
{
    struct store_effort now;
    st->store->ops->effort(st->store, &now);
    metric_add(st->metrics, METRIC_store_statements, now.statements - before->statements);
    metric_add(st->metrics, METRIC_store_rows, now.rows - before->rows);
    metric_add(st->metrics, METRIC_store_syncs, now.syncs - before->syncs);
}

static int run_group(struct store_thread *st, struct turn *t, bool settles_only,
                     struct pawl_err *err)
{
    struct store *s = st->store;
    struct store_effort before;
    s->ops->effort(s, &before);
    int rc = s->ops->group_begin(s, err);
    if (rc < 0)
        return rc;
    struct boot start = clock_boot(); /* not the wait for others' transactions */
    rc = do_settles(s, t, err);
    if (rc == 0 && !settles_only)
        rc = do_sweep(st, s, t, err);
    if (rc == 0 && !settles_only)
        rc = do_claim(st, s, t, err);
    if (rc < 0) {
        s->ops->group_abort(s);
        return rc;
    }
    rc = s->ops->group_commit(s, err);
    t->took = since(start);
    count_effort(st, &before);
    return rc;
}

/* ---- after a failure ---- */

static void forget_claim(struct turn *t)
{
    if (t->batch) {
        t->batch->n = 0;
        arena_reset(&t->batch->arena);
    }
    t->session_stale = false;
    t->swept = (struct sweep_result){0};
    t->next_due = DUR_NONE;
}

/* Was this settle committed by the transaction whose outcome we never learned? The attempt of
 * exactly this fence says so. */
static int was_committed(struct store *s, const struct settle *v, struct arena *a, bool *out,
                         struct pawl_err *err)
{
    struct job_view job;
    int rc = s->ops->job_get(s, v->id, a, &job, err);
    if (rc == PAWL_ENOTFOUND) {
        *out = false;
        return 0;
    }
    if (rc < 0)
        return rc;
    *out = false;
    for (size_t i = 0; i < job.n_attempts; i++)
        if (job.attempts[i].fence.v == v->fence.v && job.attempts[i].outcome == v->outcome)
            *out = true;
    return 0;
}

static int resolve_stale(struct store *s, struct turn *t, struct pawl_err *err)
{
    for (size_t i = 0; i < t->n_settles; i++) {
        bool committed;
        if (t->outcomes[i] != SETTLE_STALE)
            continue;
        arena_reset(&t->seen_arena);
        int rc = was_committed(s, &t->settles[i], &t->seen_arena, &committed, err);
        if (rc < 0)
            return rc;
        if (committed)
            t->outcomes[i] = SETTLE_OK;
    }
    return 0;
}

static int read_back(struct store_thread *st, struct turn *t, struct pawl_err *err)
{
    struct store *s = st->store;
    int rc = run_group(st, t, true, err);
    if (rc == 0)
        rc = resolve_stale(s, t, err);
    if (rc < 0 || !t->session.id.v)
        return rc;
    if (!t->held)
        t->held = mem_zalloc(1, sizeof(*t->held));
    arena_reset(&t->held->arena);
    t->held->at = clock_boot();
    return s->ops->held(s, &t->session, &t->held->arena, &t->held->leases, &t->held->n, err);
}

static int reopen(struct store_thread *st, struct turn *t, struct pawl_err *err)
{
    store_handle_close(st);
    int rc = store_handle_open(st, err);
    return rc < 0 ? rc : read_back(st, t, err);
}

static struct dur next_pause(struct dur d)
{
    if (d.us < REOPEN_FIRST.us)
        return REOPEN_FIRST;
    return d.us * 2 < REOPEN_MAX.us ? DUR_US(d.us * 2) : REOPEN_MAX;
}

static int recover(struct store_thread *st, struct turn *t, int rc)
{
    struct boot start = clock_boot();
    struct dur pause = DUR_US(0); /* the first time at once: a passing failure costs nothing */
    store_handle_down(st, &t->err);
    forget_claim(t);
    while (rc < 0 && !store_lost_for_good(rc)) {
        if (since(start).us >= st->o->config->store_timeout.us || !store_handle_pause(st, pause))
            return rc;
        pause = next_pause(pause);
        rc = reopen(st, t, &t->err);
    }
    t->recovered = rc == 0;
    return rc;
}

/* ---- outside the transaction ---- */

static void do_look(struct store_thread *st, struct turn *t)
{
    struct store *s = st->store;
    struct pawl_err err = {0};
    struct look *seen = &t->seen;
    arena_reset(&t->seen_arena);
    *seen = (struct look){0};
    seen->rc = s->ops->status(s, 0, &t->seen_arena, &seen->status, &err);
    if (seen->rc < 0 || !st->o->only.v)
        return;
    seen->rc = s->ops->job_get(s, st->o->only, &t->seen_arena, &seen->job, &err);
    if (seen->rc == PAWL_ENOTFOUND) {
        seen->job_gone = true;
        seen->rc = 0;
    }
}

static void prune(struct store *s, unsigned states, struct dur keep, bool *more)
{
    struct act_request req = {.act = ACT_PRUNE, .select.states = states, .max = PRUNE_JOBS};
    struct act_result res = {0};
    struct pawl_err err = {0};
    if (keep.us < 0)
        return;
    req.finished_before.us = s->ops->now(s).us - keep.us;
    /* None of the oldest batch was old enough: no use in looking at it again. */
    if (s->ops->act(s, &req, &res, &err) == 0 && res.more && res.changed)
        *more = true;
}

static void do_prune(struct store_thread *st, struct turn *t)
{
    const struct config *c = st->o->config;
    unsigned ended = 1u << JOB_DONE | 1u << JOB_SKIPPED | 1u << JOB_CANCELLED;
    t->prune_more = false;
    prune(st->store, ended, c->retention_done, &t->prune_more);
    prune(st->store, 1u << JOB_FAILED, c->retention_failed, &t->prune_more);
}

static int open_first(struct store_thread *st, struct turn *t)
{
    return st->store ? 0 : store_handle_open(st, &t->err);
}

void store_turn(struct store_thread *st, struct turn *t)
{
    t->recovered = false;
    t->claim_rc = 0;
    t->session_stale = false;
    t->next_due = DUR_NONE;
    t->swept = (struct sweep_result){0};
    t->rc = open_first(st, t);
    if (t->rc == 0 && (t->n_settles || t->sweep || t->want)) {
        t->rc = run_group(st, t, false, &t->err);
        if (t->rc < 0)
            t->rc = recover(st, t, t->rc);
    }
    if (t->rc == 0 && t->look)
        do_look(st, t);
    if (t->rc == 0 && t->prune)
        do_prune(st, t);
}
