/* One turn: settle, sweep and claim in one transaction (I3, I9), answered only after its commit. If
 * the store fails the whole turn counts as not done: the handle is reopened, the settles are sent
 * again, the claim is left to the next turn, and what the store thinks is running is read back so
 * that the loop can compare. I12 */
#include "store_turn.h"

#include "behind.h"
#include "keep_late.h"
#include "retention.h"

enum {
    SWEEP_SESSIONS = 16,
    SWEEP_JOBS = 1000,
    PRUNE_JOBS = 500,
    PRUNE_ROWS = 2000,
    AGE_JOBS = 1000,
    LIMITS_SHARE = 50
};
#define PRUNE_BUDGET DUR_MS(30)
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
                           .retry_after = DUR_NONE,
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
    int raised = 0;
    int rc = s->ops->sweep(s, &req, &t->swept, err);
    if (rc == 0 && t->age && s->ops->age)
        rc = s->ops->age(s, AGE_JOBS, &raised, err);
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
    t->busy = got.busy;
    return 0;
}

/* For the audit and those who follow it: no reason to undo what happened with it. */
static int do_note(struct store *s, struct turn *t, struct pawl_err *err)
{
    if (!t->note.type || !t->session.id.v || !s->ops->note)
        return 0;
    int rc = s->ops->note(s, t->note.type, &t->session, str_sv(&t->note.detail), err);
    return rc < 0 && store_failed(rc) ? rc : 0;
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
    keep_late(st, t);
    rc = do_settles(s, t, err);
    if (rc == 0 && !settles_only)
        rc = asks_answer(s, &t->asks, err);
    if (rc == 0 && !settles_only)
        keep_previous(st, &t->asks);
    if (rc == 0 && !settles_only)
        rc = do_sweep(st, s, t, err);
    if (rc == 0 && !settles_only)
        rc = do_claim(st, s, t, err);
    if (rc == 0)
        rc = do_note(s, t, err);
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
    t->session_stale = t->busy = false;
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

/* A remote store's handle connects again by itself. */
static bool remote(const struct store_thread *st)
{
    return st->store && st->store->ops->remote;
}

static int reopen(struct store_thread *st, struct turn *t, struct pawl_err *err)
{
    if (!remote(st)) {
        store_handle_close(st);
        int rc = store_handle_open(st, err);
        if (rc < 0)
            return rc;
    }
    return read_back(st, t, err);
}

static struct dur next_pause(struct dur d)
{
    if (d.us < REOPEN_FIRST.us)
        return REOPEN_FIRST;
    return d.us * 2 < REOPEN_MAX.us ? DUR_US(d.us * 2) : REOPEN_MAX;
}

/* A remote store is waited for as long as the worker is not to end. */
static bool waited_long(struct store_thread *st, struct boot start)
{
    struct dur limit = st->o->config->store_timeout;
    struct boot ending = store_thread_ends_since(st);
    bool patient = remote(st) && (!ending.us || since(ending).us < limit.us);
    return since(start).us >= limit.us && !patient;
}

static int recover(struct store_thread *st, struct turn *t, int rc)
{
    struct boot start = clock_boot();
    struct dur pause = DUR_US(0); /* the first time at once: a passing failure costs nothing */
    store_handle_down(st, &t->err);
    forget_claim(t);
    while (rc < 0 && !store_lost_for_good(rc)) {
        if (waited_long(st, start) || !store_handle_pause(st, pause))
            return rc;
        pause = next_pause(pause);
        rc = reopen(st, t, &t->err);
    }
    t->recovered = rc == 0;
    return rc;
}

/* ---- outside the transaction ---- */

/* For who shows it. With a hundred thousand hosts it takes long: then it is done less often, so
 * that it stays within a fiftieth of this thread's time. A failure is left to the next time. */
static void look_at_limits(struct store_thread *st, struct look *seen)
{
    struct pawl_err err = {0};
    struct boot start = clock_boot();
    if (st->o->progress == PROGRESS_NONE || start.us < st->limits_due.us)
        return;
    if (limited_look(st->store, &seen->limited, &err) < 0)
        seen->limited.known = false;
    st->limits_due.us = start.us + LIMITS_SHARE * since(start).us;
}

static void do_look(struct store_thread *st, struct turn *t)
{
    struct store *s = st->store;
    struct pawl_err err = {0};
    struct look *seen = &t->seen;
    arena_reset(&t->seen_arena);
    *seen = (struct look){0};
    seen->rc = s->ops->status(s, 0, &t->seen_arena, &seen->status, &err);
    bool found_none = !t->batch || t->batch->n == 0;
    if (seen->rc == 0 && t->drain && found_none)
        seen->rc = behind_count(s, st->o->queues, st->o->n_queues, st->o->only, &t->seen_arena,
                                seen, &err);
    if (seen->rc == 0)
        look_at_limits(st, seen);
    if (seen->rc < 0 || !st->o->only.v)
        return;
    seen->rc = s->ops->job_get(s, st->o->only, &t->seen_arena, &seen->job, &err);
    if (seen->rc == PAWL_ENOTFOUND) {
        seen->job_gone = true;
        seen->rc = 0;
    }
}

/* None of the oldest batch could go: no use in looking at it again. */
static int prune(struct store *s, struct act_request req, bool *more, struct pawl_err *err)
{
    struct act_result res = {0};
    req.max = PRUNE_JOBS;
    int rc = s->ops->act(s, &req, &res, err);
    if (rc == 0 && res.more && res.changed)
        *more = true;
    return rc;
}

static struct wall before(struct wall now, struct dur keep)
{
    return (struct wall){keep.us >= 0 ? now.us - keep.us : 0};
}

static int prune_history(struct store *s, const struct config *c, bool *more, struct pawl_err *err)
{
    bool left = false;
    struct wall now = s->ops->now(s);
    struct wall events = before(now, c->retention_events);
    struct wall attempts = before(now, c->retention_attempts);
    if (!s->ops->prune_history || (!events.us && !attempts.us))
        return 0;
    int rc = s->ops->prune_history(s, events, attempts, PRUNE_ROWS, &left, err);
    *more |= rc == 0 && left;
    return rc;
}

static int expire_artifacts(struct store *s, const struct config *c, bool *more,
                            struct pawl_err *err)
{
    bool left = false;
    int64_t rows = 0;
    struct wall old = before(s->ops->now(s), c->retention_artifacts);
    if (!s->ops->artifacts_expire || !old.us)
        return 0;
    int rc = s->ops->artifacts_expire(s, old, PRUNE_ROWS, &rows, &left, err);
    *more |= rc == 0 && left;
    return rc;
}

/* A round goes through all rules, one batch each; *out_over when it came to its end. */
static int prune_round(struct store_thread *st, struct boot start, bool *out_over,
                       struct pawl_err *err)
{
    struct act_request *rules;
    size_t n;
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    int rc = retention_rules(st->o->config, st->store, &a, &rules, &n, err);
    while (rc == 0 && st->prune_at < n && since(start).us < PRUNE_BUDGET.us)
        rc = prune(st->store, rules[st->prune_at++], &st->prune_more, err);
    if (rc < 0 || st->prune_at < n)
        return rc;
    *out_over = true;
    rc = expire_artifacts(st->store, st->o->config, &st->prune_more, err);
    return rc < 0 ? rc : prune_history(st->store, st->o->config, &st->prune_more, err);
}

/* For a short time, because claims wait meanwhile. A failure is left to the next time. */
static void do_prune(struct store_thread *st, struct turn *t)
{
    struct pawl_err err = {0};
    struct boot start = clock_boot();
    bool over = false;
    int rc = prune_round(st, start, &over, &err);
    t->prune_more = rc == 0 && (!over || st->prune_more);
    if (over || rc < 0) {
        st->prune_at = 0;
        st->prune_more = false;
    }
    t->prune_took = since(start);
}

static int apply_policy(struct store_thread *st, struct pawl_err *err)
{
    struct store *s = st->store;
    bool changed;
    if (!s->ops->policy_apply)
        return err_set(err, PAWL_EINTERNAL, "this store knows no limits");
    int rc = s->ops->policy_apply(s, st->policy, st->policy_text, &changed, err);
    return rc < 0 ? err_wrap(err, "the configured limits cannot be applied") : 0;
}

/* The first turn asks for nothing: what the configuration says holds before anything is claimed. */
static int open_first(struct store_thread *st, struct turn *t)
{
    if (st->store)
        return 0;
    int rc = store_handle_open(st, &t->err);
    if (rc == 0 && st->apply_policy)
        rc = apply_policy(st, &t->err);
    st->apply_policy = st->apply_policy && rc < 0;
    return rc;
}

void store_turn(struct store_thread *st, struct turn *t)
{
    t->recovered = false;
    t->claim_rc = 0;
    t->session_stale = t->busy = false;
    t->next_due = DUR_NONE;
    t->swept = (struct sweep_result){0};
    t->rc = open_first(st, t);
    if (t->rc == 0 && (t->n_settles || t->sweep || t->want || t->note.type || t->asks.first)) {
        t->rc = run_group(st, t, false, &t->err);
        if (t->rc < 0)
            t->rc = recover(st, t, t->rc);
    }
    bool found = t->busy || (t->batch && t->batch->n);
    t->look = t->look && !(t->judging && found); /* it is not over: no need to look */
    if (t->rc == 0 && t->look)
        do_look(st, t);
    if (t->rc == 0 && t->prune)
        do_prune(st, t);
}
