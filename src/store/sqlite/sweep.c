/* Sweeping (I4, I6): what dead workers held goes back, is failed as poison, or is cancelled. Every
 * test is made again in the transaction that acts, in bounded batches, never on the own session. */
#include "internal.h"

#include <stdio.h>

enum { SESSIONS_MAX = 256 };

struct dead {
    session_id id;
    char uid[33];
    bool by_lock; /* nobody of it lives; else only its lease is over */
    bool voided;  /* by a reboot: nobody is to blame (I8, I13) */
    bool swept;   /* nothing of it is left */
};

struct sweep {
    struct sq *q;
    const struct sweep_request *req;
    struct sweep_result *out;
    struct dead dead[SESSIONS_MAX];
    int n_dead, n_live, n_expired;
    bool outage; /* half or more expired at once: the store was away, nobody is to blame (I8) */
    int jobs_left;
};

static int find_dead(struct sweep *w, struct pawl_err *err)
{
    struct sq *q = w->q;
    AUTO_STMT s = stmt_get(q, STMT_SESSIONS_LIVE, err);
    if (!s)
        return err->code;
    int rc;
    while ((rc = stmt_step(q, s, err, "sweep")) == 1) {
        w->n_live++;
        struct dead d = {.id = {sqlite3_column_int64(s, 0)}};
        snprintf(d.uid, sizeof(d.uid), "%s", (const char *)sqlite3_column_text(s, 1));
        if (w->req->self && w->req->self->id.v == d.id.v)
            continue;
        bool expired = sqlite3_column_int64(s, 2) <= q->now.us;
        d.voided = sqlite3_column_int64(s, 2) == 0;
        d.by_lock = session_file_free(q, d.uid);
        w->n_expired += expired && !d.by_lock;
        if (!expired && !d.by_lock)
            continue;
        if (w->n_dead == w->req->max_sessions || w->n_dead == SESSIONS_MAX)
            w->out->more = true;
        else
            w->dead[w->n_dead++] = d;
    }
    w->outage = w->n_expired * 2 >= w->n_live;
    return rc;
}

struct lost_job {
    struct settle settle;
    int lost;
    bool cancel; /* asked to end */
};

static int read_lost(struct sweep *w, session_id owner, struct lost_job *v, int max,
                     struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(w->q, STMT_OWNER_JOBS, err);
    if (!s)
        return err->code;
    int n = 0, rc;
    sqlite3_bind_int64(s, 1, owner.v);
    sqlite3_bind_int(s, 2, max);
    while ((rc = stmt_step(w->q, s, err, "sweep")) == 1)
        v[n++] = (struct lost_job){.settle = {.id = {sqlite3_column_int64(s, 0)},
                                              .fence = {sqlite3_column_int64(s, 1)},
                                              .exit_code = -1},
                                   .lost = sqlite3_column_int(s, 2),
                                   .cancel = sqlite3_column_int(s, 3)};
    return rc < 0 ? rc : n;
}

static int mark_poison(struct sweep *w, job_id id, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_SETTLE_LOST, STMT_POISON_INSERT};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        sqlite3_stmt *s = stmt_get(w->q, steps[i], err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, id.v);
        if (stmt_run(w->q, s, err, "sweep") < 0)
            return err->code;
    }
    return 0;
}

static int settle_lost(struct sweep *w, struct lost_job *j, bool blame, struct pawl_err *err)
{
    struct settle *v = &j->settle;
    v->cls = CLASS_LOST;
    v->error = SV("the worker died or lost its lease");
    if (j->cancel) {
        v->outcome = OUTCOME_CANCELLED;
    } else if (blame && j->lost + 1 >= w->req->max_lost) {
        v->outcome = OUTCOME_FAILED;
        v->error = SV("poison: its worker died or lost its lease too often");
    } else {
        v->outcome = blame ? OUTCOME_LOST : OUTCOME_RELEASED;
        v->delay = w->req->lost_delay;
        v->reason = WAIT_LOST;
    }
    enum settle_outcome out;
    int rc = settle_in_op(w->q, v, &out, err);
    if (rc < 0)
        return rc;
    if (out != SETTLE_OK || v->outcome == OUTCOME_CANCELLED)
        return 0;
    if (v->outcome != OUTCOME_FAILED) {
        w->out->requeued++;
        return 0;
    }
    w->out->poisoned++;
    return mark_poison(w, v->id, err);
}

/* 1 = nothing of this owner is left, 0 = the bound was reached. */
static int sweep_owner(struct sweep *w, session_id owner, bool blame, struct pawl_err *err)
{
    enum { BATCH = 200 };
    struct lost_job v[BATCH];
    while (w->jobs_left > 0) {
        int max = w->jobs_left < BATCH ? w->jobs_left : BATCH;
        int n = read_lost(w, owner, v, max, err);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++)
            if (settle_lost(w, &v[i], blame, err) < 0)
                return err->code;
        w->jobs_left -= n;
        if (n < max)
            return 1;
    }
    w->out->more = true;
    return 0;
}

/* The row ends only when no running job names it any more. */
static int end_dead(struct sweep *w, struct dead *d, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(w->q, STMT_SESSION_END, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, d->id.v);
    sqlite3_bind_int64(s, 2, w->q->now.us);
    sqlite3_bind_int(s, 3, true);
    if (stmt_run(w->q, s, err, "sweep") < 0 || session_fold(w->q, d->id, err) < 0)
        return err->code;
    d->swept = true;
    w->out->sessions++;
    w->q->wake = true;
    return add_event(w->q, EVENT_WORKER_LOST, (job_id){0}, (fence_no){0}, d->id, SV_NONE, err);
}

static int sweep_sessions(struct sweep *w, struct pawl_err *err)
{
    for (int i = 0; i < w->n_dead; i++) {
        bool blame = !w->dead[i].voided && (w->dead[i].by_lock || !w->outage);
        int rc = sweep_owner(w, w->dead[i].id, blame, err);
        if (rc < 0)
            return rc;
        if (rc == 1 && end_dead(w, &w->dead[i], err) < 0)
            return err->code;
    }
    return 0;
}

static int is_live(struct sq *q, session_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_IS_LIVE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    return stmt_step(q, s, err, "sweep");
}

/* Running jobs whose session does not exist or has ended. */
static int sweep_orphans(struct sweep *w, struct pawl_err *err)
{
    session_id owner = {0};
    for (;;) {
        AUTO_STMT s = stmt_get(w->q, STMT_OWNER_NEXT, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, owner.v);
        int rc = stmt_step(w->q, s, err, "sweep");
        if (rc != 1)
            return rc;
        owner.v = sqlite3_column_int64(s, 0);
        rc = is_live(w->q, owner, err);
        if (rc == 0)
            rc = sweep_owner(w, owner, true, err);
        if (rc < 0)
            return rc;
    }
}

/* What was asked or said of leases that are over. */
static int sweep_notes(struct sq *q, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_CANCEL_SWEEP, STMT_PROGRESS_SWEEP};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        sqlite3_stmt *s = stmt_get(q, steps[i], err);
        if (!s || stmt_run(q, s, err, "sweep") < 0)
            return err->code;
    }
    return 0;
}

int store_sweep(struct store *s, const struct sweep_request *req, struct sweep_result *out,
                struct pawl_err *err)
{
    struct sweep_result result = {0};
    struct sweep w = {.q = sq_of(s), .req = req, .out = &result, .jobs_left = req->max_jobs};
    int rc = op_begin(w.q, err);
    if (rc < 0)
        return rc;
    rc = find_dead(&w, err);
    if (rc == 0)
        rc = sweep_sessions(&w, err);
    if (rc == 0)
        rc = sweep_orphans(&w, err);
    if (rc == 0)
        rc = sweep_notes(w.q, err);
    rc = op_end(w.q, rc, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < w.n_dead; i++)
        if (w.dead[i].by_lock && w.dead[i].swept)
            session_file_remove(w.q, w.dead[i].uid);
    *out = result;
    return 0;
}
