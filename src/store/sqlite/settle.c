/* Ending leases (I2, I9): one gate, then job, attempt, event, result, artifacts and children
 * together. */
#include "internal.h"

#include "fingerprint.h"

struct held {
    struct lane_entry *lane;
    struct lease_hint hint;
};

int lease_find(struct sq *q, job_id id, fence_no fence, struct lease_hint *out,
               struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SETTLE_ROW, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, fence.v);
    int rc = stmt_step(q, s, err, "settle");
    if (rc == 1)
        *out = (struct lease_hint){.lane = sqlite3_column_int64(s, 0),
                                   .priority = sqlite3_column_int(s, 1),
                                   .attempt = sqlite3_column_int(s, 2),
                                   .session = {sqlite3_column_int64(s, 3)},
                                   .claimed_at = {sqlite3_column_int64(s, 4)},
                                   .policy = -1,
                                   .lock = sqlite3_column_int64(s, 5)};
    return rc;
}

/* What is known of the lease: from the claim itself, else from the row. 0 if stale. The gate is
 * passed later, by the update that ends the lease. */
static int find_held(struct sq *q, const struct settle *v, struct held *out, struct pawl_err *err)
{
    struct lease_hint hint = v->hint;
    if (!hint.lane) {
        int rc = lease_find(q, v->id, v->fence, &hint, err);
        if (rc <= 0)
            return rc;
    }
    out->hint = hint;
    return names_lane_by_id(q, hint.lane, &out->lane, err) < 0 ? err->code : 1;
}

static int was_cancelled(struct sq *q, const struct settle *v, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_CANCEL_ASKED, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, v->id.v);
    sqlite3_bind_int64(s, 2, v->fence.v);
    return stmt_step(q, s, err, "settle");
}

static void bind_attempt(struct sq *q, sqlite3_stmt *s, int at, const struct settle *v,
                         const struct lease_hint *h, enum outcome outcome)
{
    sqlite3_bind_int64(s, at, v->id.v);
    sqlite3_bind_int64(s, at + 1, v->fence.v);
    sqlite3_bind_int(s, at + 2, h->attempt);
    sqlite3_bind_int64(s, at + 3, h->session.v);
    sqlite3_bind_int64(s, at + 4, v->started_at.us ? v->started_at.us : h->claimed_at.us);
    sqlite3_bind_int64(s, at + 5, q->now.us);
    sqlite3_bind_int(s, at + 6, (int)outcome);
    sqlite3_bind_int(s, at + 7, (int)v->cls);
    bind_i64_or_null(s, at + 8, v->exit_code, v->exit_code < 0);
    bind_i64_or_null(s, at + 9, v->log_bytes, v->log_bytes == 0);
    bind_sv(s, at + 10, v->error);
    bind_i64_or_null(s, at + 11, v->error.p ? fingerprint(v->cls, v->error) : 0, !v->error.p);
}

static int write_attempt(struct sq *q, const struct settle *v, const struct lease_hint *h,
                         enum outcome outcome, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_ATTEMPT_INSERT, err);
    if (!s)
        return err->code;
    bind_attempt(q, s, 1, v, h, outcome);
    return stmt_run(q, s, err, "settle");
}

/* The gate (I2): 1 if this very lease was running and is ended now, 0 if stale. */
static int end_job(struct sq *q, const struct settle *v, const struct held *h, enum job_state to,
                   struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_SETTLE_END, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, v->id.v);
    sqlite3_bind_int(s, 2, (int)to);
    sqlite3_bind_int64(s, 3, q->now.us);
    sqlite3_bind_int64(s, 4, v->fence.v);
    if (stmt_run(q, s, err, "settle") < 0)
        return err->code;
    if (sqlite3_changes(q->db) == 0)
        return 0;
    count_move(q, h->lane, JOB_RUNNING, (int)to);
    return 1;
}

/* The same gate, back to the queue: at once, or when its time has come. A retry holds no slot, a
 * release and a lost lease cost no attempt (I8). With a lock it stands in line again. */
static int put_back(struct sq *q, const struct settle *v, const struct held *h, bool lost,
                    struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_SETTLE_BACK, err);
    if (!s)
        return err->code;
    bool wait = v->outcome != OUTCOME_RELEASED && v->delay.us > 0;
    enum job_state to = wait ? JOB_WAITING : JOB_QUEUED;
    bool refund = v->refund_attempt || v->outcome == OUTCOME_RELEASED || lost;
    sqlite3_bind_int64(s, 1, v->id.v);
    sqlite3_bind_int(s, 2, h->hint.lock && !wait ? STATE_HELD : (int)to);
    sqlite3_bind_int64(s, 3, q->now.us + (wait ? v->delay.us : 0));
    sqlite3_bind_int(s, 4, h->hint.attempt - (refund && h->hint.attempt > 0));
    sqlite3_bind_int(s, 5, v->count_transient);
    sqlite3_bind_int(s, 6, lost);
    sqlite3_bind_int(s, 7, wait ? (int)v->reason : WAIT_NONE);
    sqlite3_bind_int64(s, 8, v->fence.v);
    if (stmt_run(q, s, err, "settle") < 0)
        return err->code;
    if (sqlite3_changes(q->db) == 0)
        return 0;
    count_move(q, h->lane, JOB_RUNNING, (int)to);
    q->wake = true;
    if (!wait && !h->hint.lock &&
        head_add(q, h->lane, (struct head){v->id.v, h->hint.priority}, err) < 0)
        return err->code;
    return 1;
}

static int write_result(struct sq *q, const struct settle *v, struct pawl_err *err)
{
    if (!v->result.p)
        return 0;
    sqlite3_stmt *s = stmt_get(q, STMT_RESULT_SET, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, v->id.v);
    bind_sv(s, 2, v->result);
    return stmt_run(q, s, err, "settle");
}

static int add_children(struct sq *q, const struct settle *v, struct pawl_err *err)
{
    if (!v->n_children)
        return 0;
    AUTO_FREE struct job_spec *specs = mem_zalloc(v->n_children, sizeof(*specs));
    AUTO_FREE struct add_result *added = mem_zalloc(v->n_children, sizeof(*added));
    for (size_t i = 0; i < v->n_children; i++) {
        specs[i] = v->children[i];
        specs[i].parent = v->id;
        if (job_spec_check(&specs[i], err) < 0)
            return err_wrap(err, "child %zu of job %lld", i + 1, (long long)v->id.v);
    }
    return enqueue_in_op(q, specs, v->n_children, DUPLICATE_SKIP, added, err);
}

static const struct {
    enum job_state state;
    enum event_type event;
    bool ends;
} ends[] = {
    [OUTCOME_DONE] = {JOB_DONE, EVENT_DONE, true},
    [OUTCOME_SKIPPED] = {JOB_SKIPPED, EVENT_SKIPPED, true},
    [OUTCOME_FAILED] = {JOB_FAILED, EVENT_FAILED, true},
    [OUTCOME_RETRY] = {JOB_WAITING, EVENT_RETRIED, false},
    [OUTCOME_RELEASED] = {JOB_QUEUED, EVENT_RELEASED, false},
    [OUTCOME_CANCELLED] = {JOB_CANCELLED, EVENT_CANCELLED, true},
    [OUTCOME_LOST] = {JOB_QUEUED, EVENT_LOST, false},
};

/* What to do in fact: a job that was asked to end does not come back. */
static int choose(struct sq *q, const struct settle *v, enum outcome *out, struct pawl_err *err)
{
    *out = v->outcome;
    if (ends[v->outcome].ends)
        return 0;
    int rc = was_cancelled(q, v, err);
    if (rc == 1)
        *out = OUTCOME_CANCELLED;
    return rc < 0 ? rc : 0;
}

/* No permits under the limits that hold. */
static bool ungated(const struct sq *q, const struct lease_hint *h)
{
    return !q->policy.n || h->policy == q->policy.number;
}

/* What the lease held is free with it (I3, I7). */
static int let_go(struct sq *q, const struct settle *v, const struct held *h, enum outcome o,
                  struct pawl_err *err)
{
    int rc = v->peer.p ? 1 : admitted_any(q, err);
    if (rc == 1)
        rc = gates_hosts_ended(q, h->lane, v, o, &h->hint, err);
    else if (rc == 0 && !ungated(q, &h->hint))
        rc = gates_lease_ended(q, h->lane, v, 1, o, &h->hint, err);
    return rc < 0 ? rc : lock_turn(q, h->hint.lock, err);
}

int settle_in_op(struct sq *q, const struct settle *v, enum settle_outcome *out,
                 struct pawl_err *err)
{
    struct held h;
    enum outcome o;
    *out = SETTLE_STALE;
    int rc = policy_load(q, err);
    if (rc == 0)
        rc = find_held(q, v, &h, err);
    if (rc <= 0)
        return rc;
    if (choose(q, v, &o, err) < 0)
        return err->code;
    if (ends[o].ends)
        rc = end_job(q, v, &h, ends[o].state, err);
    else
        rc = put_back(q, v, &h, o == OUTCOME_LOST, err);
    if (rc <= 0)
        return rc;
    if (write_attempt(q, v, &h.hint, o, err) < 0 || write_result(q, v, err) < 0 ||
        (leaves_something(v) && keep_left(q, v, h.lane, err) < 0) ||
        add_event(q, ends[o].event, v->id, v->fence, h.hint.session, SV_NONE, err) < 0)
        return err->code;
    count_end(h.lane, o, v->delay, v->reason);
    *out = SETTLE_OK;
    if (let_go(q, v, &h, o, err) < 0)
        return err->code;
    return add_children(q, v, err);
}

/* The common case by the stretch: consecutive ids that end alike under the same fence, with nothing
 * besides and without a lock. How many from v[0] on; 1 means: by itself. */
static size_t stretch(const struct settle *v, size_t n)
{
    size_t len = 0;
    while (len < n && v[len].hint.lane && !v[len].hint.lock && !v[len].result.p &&
           !v[len].n_children && !v[len].peer.p && v[len].outcome == v[0].outcome &&
           ends[v[0].outcome].ends && v[len].fence.v == v[0].fence.v &&
           v[len].id.v == v[0].id.v + (int64_t)len)
        len++;
    return len >= ATTEMPTS_AT_ONCE ? len : 1;
}

/* The gate for all of them (I2): 1 if every one is running under that fence, and has nothing that
 * must be looked at by itself. */
static int all_running(struct sq *q, const struct settle *v, size_t n, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_RUN_COUNT, err);
    int rc = s ? admitted_between(q, v[0].id, v[n - 1].id, err) : err->code;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    sqlite3_bind_int64(s, 1, v[0].id.v);
    sqlite3_bind_int64(s, 2, v[n - 1].id.v);
    sqlite3_bind_int64(s, 3, v[0].fence.v);
    rc = stmt_step(q, s, err, "settle");
    return rc == 1 ? sqlite3_column_int64(s, 0) == (int64_t)n : rc;
}

static int write_attempts(struct sq *q, const struct settle *v, size_t n, struct pawl_err *err)
{
    size_t i = 0;
    sqlite3_stmt *s = stmt_get(q, STMT_ATTEMPTS_INSERT, err);
    if (!s)
        return err->code;
    for (; i + ATTEMPTS_AT_ONCE <= n; i += ATTEMPTS_AT_ONCE) {
        for (int k = 0; k < ATTEMPTS_AT_ONCE; k++)
            bind_attempt(q, s, 1 + 12 * k, &v[i + (size_t)k], &v[i + (size_t)k].hint, v[0].outcome);
        if (stmt_run(q, s, err, "settle") < 0)
            return err->code;
    }
    for (; i < n; i++)
        if (write_attempt(q, &v[i], &v[i].hint, v[0].outcome, err) < 0)
            return err->code;
    return 0;
}

/* The permits of a stretch, as many of one lane at a time as follow each other. */
static int let_go_stretch(struct sq *q, const struct settle *v, size_t n, struct pawl_err *err)
{
    for (size_t from = 0, len; from < n; from += len) {
        struct lane_entry *lane;
        for (len = 1; from + len < n && v[from + len].hint.lane == v[from].hint.lane; len++)
            ;
        if (names_lane_by_id(q, v[from].hint.lane, &lane, err) < 0)
            return err->code;
        if (!ungated(q, &v[from].hint) &&
            gates_lease_ended(q, lane, &v[from], len, v[0].outcome, &v[from].hint, err) < 0)
            return err->code;
    }
    return 0;
}

static int settle_stretch(struct sq *q, const struct settle *v, size_t n, enum settle_outcome *out,
                          struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_RUN_END, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, v[0].id.v);
    sqlite3_bind_int64(s, 2, v[n - 1].id.v);
    sqlite3_bind_int(s, 3, (int)ends[v[0].outcome].state);
    sqlite3_bind_int64(s, 4, q->now.us);
    if (stmt_run(q, s, err, "settle") < 0 || write_attempts(q, v, n, err) < 0)
        return err->code;
    for (size_t i = 0; i < n; i++) {
        struct lane_entry *lane;
        if (names_lane_by_id(q, v[i].hint.lane, &lane, err) < 0)
            return err->code;
        count_move(q, lane, JOB_RUNNING, (int)ends[v[0].outcome].state);
        count_end(lane, v[0].outcome, DUR_US(0), WAIT_NONE);
        out[i] = SETTLE_OK;
        if (leaves_something(&v[i]) && keep_left(q, &v[i], lane, err) < 0)
            return err->code;
        if (add_event(q, ends[v[0].outcome].event, v[i].id, v[i].fence, v[i].hint.session, SV_NONE,
                      err) < 0)
            return err->code;
    }
    return q->policy.n ? let_go_stretch(q, v, n, err) : 0;
}

static int settle_all(struct sq *q, const struct settle *v, size_t n, enum settle_outcome *out,
                      struct pawl_err *err)
{
    if (policy_load(q, err) < 0)
        return err->code;
    for (size_t i = 0, len; i < n; i += len) {
        len = stretch(&v[i], n - i);
        int rc = len > 1 ? all_running(q, &v[i], len, err) : 0;
        if (rc == 1)
            rc = settle_stretch(q, &v[i], len, &out[i], err);
        else
            for (size_t k = i; rc == 0 && k < i + len; k++)
                rc = settle_in_op(q, &v[k], &out[k], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int store_settle_jobs(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
                      struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    return op_end(q, settle_all(q, v, n, out, err), err);
}
