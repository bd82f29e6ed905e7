/* Acts on jobs that have not ended: release and set. */
#include "internal.h"

int release_applies(struct sq *q, const struct target *t, bool force, struct pawl_err *err)
{
    if (t->state == JOB_WAITING)
        return 1;
    if (t->state != JOB_RUNNING)
        return 0;
    if (force)
        return 1;
    int alive = session_alive_now(q, t->owner, err);
    return alive < 0 ? alive : !alive;
}

int became_queued(struct sq *q, job_id id, const struct target *t, int priority,
                  struct pawl_err *err)
{
    q->wake = true;
    return t->lock ? lock_turn(q, t->lock, err)
                   : head_add(q, t->lane, (struct head){id.v, priority}, err);
}

static int ready_now(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_READY_NOW, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, q->now.us);
    sqlite3_bind_int(s, 3, t->lock ? STATE_HELD : JOB_QUEUED);
    if (stmt_run(q, s, err, "release") < 0 || (t->due && due_drop(q, id, err) < 0))
        return err->code;
    count_move(q, t->lane, JOB_WAITING, JOB_QUEUED);
    return became_queued(q, id, t, t->priority, err);
}

/* The lease ends under its own fence, so whatever its worker still writes is stale (I2); the worker
 * is told with its next renewal, so that the processes end too. */
static int fence_off(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_REVOKE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    if (stmt_run(q, s, err, "release") < 0)
        return err->code;
    const struct settle v = {.id = id,
                             .fence = {t->fence},
                             .outcome = OUTCOME_RELEASED,
                             .error = SV("released by an operator"),
                             .exit_code = -1};
    enum settle_outcome out;
    return settle_in_op(q, &v, &out, err);
}

int release_one(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    int rc = t->state == JOB_WAITING ? ready_now(q, id, t, err) : fence_off(q, id, t, err);
    if (rc < 0)
        return rc;
    return add_event(q, EVENT_FREED, id, (fence_no){t->fence}, (session_id){0}, SV_NONE, err);
}

static int set_priority(struct sq *q, job_id id, const struct target *t, int priority,
                        struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_SET_PRIORITY, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int(s, 2, priority);
    if (stmt_run(q, s, err, "set") < 0)
        return err->code;
    if (t->state != JOB_QUEUED || t->held)
        return t->held ? lock_turn(q, t->lock, err) : 0;
    if (head_remove(q, t->lane, id.v, err) < 0 || /* looks for the best again */
        head_add(q, t->lane, (struct head){id.v, priority}, err) < 0)
        return err->code;
    return lock_turn(q, t->lock, err);
}

static int set_time(struct sq *q, job_id id, const struct target *t, const struct job_change *c,
                    struct pawl_err *err)
{
    bool wall = c->at.us && c->at.us > clock_wall().us;
    bool wait = wall || (!c->at.us && c->delay.us > 0);
    enum job_state to = wait ? JOB_WAITING : JOB_QUEUED;
    sqlite3_stmt *s = stmt_get(q, STMT_SET_TIME, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int(s, 2, !wait && t->lock ? STATE_HELD : (int)to);
    bind_i64_or_null(s, 3, q->now.us + (wait ? c->delay.us : 0), wall);
    sqlite3_bind_int(s, 4, wait ? WAIT_DELAY : WAIT_NONE);
    if ((t->due && due_drop(q, id, err) < 0) || stmt_run(q, s, err, "set") < 0 ||
        (wall && due_add(q, id, c->at, err) < 0))
        return err->code;
    count_move(q, t->lane, (int)t->state, (int)to);
    if (t->state == JOB_QUEUED && head_remove(q, t->lane, id.v, err) < 0)
        return err->code;
    if (to == JOB_WAITING)
        return lock_turn(q, t->lock, err);
    return became_queued(q, id, t, c->has_priority ? c->priority : t->priority, err);
}

static int set_body(struct sq *q, job_id id, const struct job_change *c, struct pawl_err *err)
{
    if (!c->payload.p && !c->has_max_attempts && !c->has_timeout)
        return 0;
    sqlite3_stmt *s = stmt_get(q, STMT_SET_BODY, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    bind_sv(s, 2, c->payload);
    bind_i64_or_null(s, 3, c->max_attempts, !c->has_max_attempts);
    bind_i64_or_null(s, 4, c->timeout.us, !c->has_timeout);
    return stmt_run(q, s, err, "set");
}

int set_one(struct sq *q, job_id id, const struct target *t, const struct job_change *c,
            struct pawl_err *err)
{
    if (set_body(q, id, c, err) < 0 ||
        (c->has_priority && set_priority(q, id, t, c->priority, err) < 0) ||
        (c->has_time && set_time(q, id, t, c, err) < 0))
        return err->code;
    q->wake = true;
    return add_event(q, EVENT_CHANGED, id, (fence_no){t->fence}, (session_id){0}, SV_NONE, err);
}
