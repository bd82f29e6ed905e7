/* Sweeping (I4, I6): what dead workers held goes back, is failed as poison, or is cancelled. Every
 * test is made again under the session's lock, in bounded batches, never on the own session.
 *
 * Who is to blame (I8): a job whose worker died counts a lost lease, unless the store was away.
 * When half or more of the sessions expired, a worker is believed to have died only if its process
 * is not back under the same name and somebody else reached the store in the second half of its
 * lease. */
#include "pg.h"

enum { SESSIONS_MAX = 256, BATCH = 200, FOLD_MAX = 50000, LEASE_MIN_US = 1000000 };

struct seen {
    session_id id;
    struct sv name;
    int64_t lease_until, renewed_at, started_at;
    bool expired;
};

struct sweep {
    struct pg *p;
    const struct sweep_request *req;
    struct sweep_result *out;
    struct arena arena;
    struct seen *seen;
    int n_seen, n_expired;
    int jobs_left;
    int64_t now, lease; /* the server's; of the own session, 0 outside a worker */
};

static int look_at_sessions(struct sweep *w, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(w->p, STMT_SESSIONS_NOW, NULL, &r, err);
    if (rc < 0)
        return rc;
    w->n_seen = PQntuples(r);
    w->seen = arena_zalloc(&w->arena, (size_t)w->n_seen + 1, sizeof(*w->seen));
    for (int i = 0; i < w->n_seen; i++) {
        struct seen *s = &w->seen[i];
        *s = (struct seen){.id = {res_i64(r, i, 0)},
                           .name = res_copy(r, i, 1, &w->arena),
                           .lease_until = res_i64(r, i, 2),
                           .renewed_at = res_i64(r, i, 3),
                           .started_at = res_i64(r, i, 4)};
        w->now = res_i64(r, i, 5);
        bool self = w->req->self && w->req->self->id.v == s->id.v;
        s->expired = !self && s->lease_until <= w->now;
        w->n_expired += s->expired;
        if (self)
            w->lease = s->lease_until - s->renewed_at;
    }
    return 0;
}

/* I13: a server whose clock ran ahead of this machine's has not made anybody late. */
static bool clock_jumped(struct sweep *w)
{
    struct pg *p = w->p;
    struct boot boot = clock_boot();
    if (w->lease < LEASE_MIN_US)
        return false;
    int64_t ahead = (w->now - p->server_seen.us) - (boot.us - p->seen_at.us);
    if (p->server_seen.us && ahead > w->lease / 3)
        p->quiet_until.us = boot.us + w->lease;
    p->server_seen.us = w->now;
    p->seen_at = boot;
    return boot.us < p->quiet_until.us;
}

static bool reached_store_after(const struct sweep *w, const struct seen *dead, int64_t t)
{
    for (int i = 0; i < w->n_seen; i++) {
        const struct seen *s = &w->seen[i];
        if (s->id.v == dead->id.v)
            continue;
        bool renewed = s->renewed_at > t && s->renewed_at <= dead->lease_until;
        bool started = s->started_at > t && s->started_at <= dead->lease_until;
        bool spanned = !s->expired && s->started_at <= t && s->renewed_at > dead->lease_until;
        if (renewed || started || spanned)
            return true;
    }
    return false;
}

static bool is_back(const struct sweep *w, const struct seen *dead)
{
    for (int i = 0; i < w->n_seen; i++)
        if (w->seen[i].id.v != dead->id.v && sv_eq(w->seen[i].name, dead->name))
            return true;
    return false;
}

static bool to_blame(const struct sweep *w, const struct seen *dead)
{
    int64_t half = dead->lease_until - (dead->lease_until - dead->renewed_at) / 2;
    if (w->n_expired * 2 < w->n_seen)
        return true;
    return !is_back(w, dead) && reached_store_after(w, dead, half);
}

/* ---- what a dead session held ---- */

struct lost_jobs {
    int n;
    struct settle settles[BATCH];
    bool poison[BATCH];
    enum settle_outcome outcomes[BATCH];
};

static struct settle lost_settle(const struct sweep *w, job_id id, fence_no fence, bool cancel,
                                 bool blame, bool poison)
{
    struct settle v = {.id = id,
                       .fence = fence,
                       .exit_code = -1,
                       .cls = CLASS_LOST,
                       .error = SV("the worker died or lost its lease"),
                       .outcome = blame ? OUTCOME_LOST : OUTCOME_RELEASED};
    if (cancel) {
        v.outcome = OUTCOME_CANCELLED;
    } else if (poison) {
        v.outcome = OUTCOME_FAILED;
        v.error = SV("poison: its worker died or lost its lease too often");
    } else {
        v.delay = w->req->lost_delay;
        v.reason = WAIT_LOST;
    }
    return v;
}

static int read_lost(struct sweep *w, session_id owner, bool blame, int max, struct lost_jobs *v,
                     struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, owner.v);
    arg_int(&a, max);
    int rc = db_query(w->p, STMT_OWNER_JOBS, &a, &r, err);
    if (rc < 0)
        return rc;
    v->n = PQntuples(r);
    for (int i = 0; i < v->n; i++) {
        bool cancel = res_int(r, i, 3);
        v->poison[i] = !cancel && blame && res_int(r, i, 2) + 1 >= w->req->max_lost;
        v->settles[i] = lost_settle(w, (job_id){res_i64(r, i, 0)}, (fence_no){res_i64(r, i, 1)},
                                    cancel, blame, v->poison[i]);
    }
    return 0;
}

static int mark_poison(struct sweep *w, const struct lost_jobs *v, struct pawl_err *err)
{
    int64_t ids[BATCH];
    size_t n = 0;
    for (int i = 0; i < v->n; i++) {
        if (v->outcomes[i] != SETTLE_OK || v->settles[i].outcome == OUTCOME_CANCELLED)
            continue;
        if (v->poison[i])
            ids[n++] = v->settles[i].id.v;
        else
            w->out->requeued++;
    }
    if (!n)
        return 0;
    AUTO_ARGS a;
    args_init(&a);
    arg_i64s(&a, ids, n, NULL);
    w->out->poisoned += (int)n;
    return db_query(w->p, STMT_POISON_INSERT, &a, NULL, err);
}

/* 1 = nothing of this owner is left, 0 = the bound was reached. */
static int sweep_owner(struct sweep *w, session_id owner, bool blame, struct pawl_err *err)
{
    struct lost_jobs v;
    while (w->jobs_left > 0) {
        int max = w->jobs_left < BATCH ? w->jobs_left : BATCH;
        if (read_lost(w, owner, blame, max, &v, err) < 0)
            return err->code;
        if (v.n && (pg_settle_in_op(w->p, v.settles, (size_t)v.n, v.poison, v.outcomes, err) < 0 ||
                    mark_poison(w, &v, err) < 0))
            return err->code;
        w->jobs_left -= v.n;
        if (v.n < max)
            return 1;
    }
    w->out->more = true;
    return 0;
}

/* ---- sessions ---- */

/* 1 = it is dead and locked: nobody else sweeps it, no claim of its own goes on. */
static int lock_dead(struct sweep *w, session_id id, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, id.v);
    int rc = db_query(w->p, STMT_SESSION_DEAD, &a, &r, err);
    return rc < 0 ? rc : PQntuples(r);
}

static int sweep_session(struct sweep *w, const struct seen *s, struct pawl_err *err)
{
    bool ended;
    int rc = lock_dead(w, s->id, err);
    if (rc != 1)
        return rc;
    rc = sweep_owner(w, s->id, to_blame(w, s), err);
    if (rc != 1)
        return rc;
    if (pg_session_over(w->p, s->id, true, &ended, err) < 0)
        return err->code;
    w->out->sessions++;
    w->p->ready = true;
    return pg_add_event(w->p, EVENT_WORKER_LOST, (job_id){0}, (fence_no){0}, s->id, SV_NONE, err);
}

static int sweep_sessions(struct sweep *w, struct pawl_err *err)
{
    int max = w->req->max_sessions < SESSIONS_MAX ? w->req->max_sessions : SESSIONS_MAX;
    for (int i = 0, n = 0; i < w->n_seen; i++) {
        if (!w->seen[i].expired)
            continue;
        if (n++ == max) {
            w->out->more = true;
            return 0;
        }
        int rc = sweep_session(w, &w->seen[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Running jobs whose session does not exist or has ended. */
static int sweep_orphans(struct sweep *w, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_int(&a, SESSIONS_MAX);
    int rc = db_query(w->p, STMT_ORPHAN_OWNERS, &a, &r, err);
    for (int i = 0; rc >= 0 && i < PQntuples(r); i++)
        rc = sweep_owner(w, (session_id){res_i64(r, i, 0)}, true, err);
    return rc < 0 ? rc : 0;
}

/* What was asked or said of leases that are over; counts. */
static int sweep_notes(struct pg *p, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    if (db_query(p, STMT_CANCEL_SWEEP, NULL, NULL, err) < 0 ||
        db_query(p, STMT_PROGRESS_SWEEP, NULL, NULL, err) < 0)
        return err->code;
    arg_int(&a, FOLD_MAX);
    return db_query(p, STMT_FOLD_DELTAS, &a, NULL, err);
}

static int sweep_in_op(struct sweep *w, struct pawl_err *err)
{
    int rc = look_at_sessions(w, err);
    if (rc < 0 || clock_jumped(w))
        return rc;
    rc = db_query(w->p, STMT_BOOT_FILL, NULL, NULL, err);
    if (rc == 0)
        rc = sweep_sessions(w, err);
    if (rc == 0)
        rc = sweep_orphans(w, err);
    return rc == 0 ? sweep_notes(w->p, err) : rc;
}

int pg_sweep(struct store *s, const struct sweep_request *req, struct sweep_result *out,
             struct pawl_err *err)
{
    struct sweep_result result = {0};
    struct sweep w = {.p = pg_of(s), .req = req, .out = &result, .jobs_left = req->max_jobs};
    int rc = pg_op_begin(w.p, err);
    if (rc < 0)
        return rc;
    arena_init(&w.arena);
    rc = pg_op_end(w.p, sweep_in_op(&w, err), err);
    arena_done(&w.arena);
    if (rc == 0)
        *out = result;
    return rc;
}
