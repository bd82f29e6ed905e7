/* Claiming (I2, I3): what time has made ready, the choice of the best (claim_merge.c), their leases
 * (claim_lease.c), and when the next look is worth while. First the ids are collected, reading
 * only; then the rows are changed. */
#include "claim.h"

enum { PROMOTE_MAX = 2000 };

static int promote_some(struct sq *q, enum stmt_id which, int64_t until, struct pawl_err *err)
{
    struct {
        int64_t id, lane, lock;
        int priority;
    } due[PROMOTE_MAX];
    AUTO_STMT s = stmt_get(q, which, err);
    sqlite3_stmt *update = stmt_get(q, STMT_PROMOTE, err);
    if (!s || !update)
        return err->code;
    sqlite3_bind_int64(s, 1, until);
    sqlite3_bind_int(s, 2, PROMOTE_MAX);
    int n = 0, rc;
    while ((rc = stmt_step(q, s, err, "claim")) == 1) {
        due[n].id = sqlite3_column_int64(s, 0);
        due[n].lane = sqlite3_column_int64(s, 1);
        due[n].lock = sqlite3_column_int64(s, 3);
        due[n++].priority = sqlite3_column_int(s, 2);
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        struct lane_entry *l;
        if (names_lane_by_id(q, due[i].lane, &l, err) < 0)
            return err->code;
        sqlite3_bind_int64(update, 1, due[i].id);
        sqlite3_bind_int64(update, 2, q->now.us);
        sqlite3_bind_int(update, 3, due[i].lock ? STATE_HELD : JOB_QUEUED);
        if (stmt_run(q, update, err, "claim") < 0)
            return err->code;
        if (which == STMT_DUE_WALL && due_drop(q, (job_id){due[i].id}, err) < 0)
            return err->code;
        count_move(q, l, JOB_WAITING, JOB_QUEUED);
        rc = due[i].lock ? lock_turn(q, due[i].lock, err)
                         : head_add(q, l, (struct head){due[i].id, due[i].priority}, err);
    }
    return rc;
}

/* Jobs whose time has come become ready, and so do lanes whose gate time has opened, before the
 * best are chosen. */
static int promote(struct sq *q, struct pawl_err *err)
{
    if (gates_wake_due(q, err) < 0)
        return err->code;
    int rc = promote_some(q, STMT_DUE_WAITING, q->now.us, err);
    if (rc == 0)
        rc = promote_some(q, STMT_DUE_WALL, clock_wall().us, err);
    return rc < 0 ? rc : heads_flush(q, err);
}

static int first_time(struct sq *q, enum stmt_id which, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, which, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "claim");
    if (rc == 1)
        *out = sqlite3_column_int64(s, 0);
    return rc;
}

static void sooner(int64_t *best, int64_t in)
{
    if (*best < 0 || in < *best)
        *best = in > 0 ? in : 0;
}

static int find_next_due(struct sq *q, struct dur *out, struct pawl_err *err)
{
    int64_t at = 0, best = -1;
    int rc = first_time(q, STMT_NEXT_WAITING, &at, err);
    if (rc == 1)
        sooner(&best, at - q->now.us);
    if (rc >= 0 && (rc = first_time(q, STMT_NEXT_DUE, &at, err)) == 1)
        sooner(&best, at - clock_wall().us);
    if (rc >= 0 && (rc = first_time(q, STMT_GATE_NEXT, &at, err)) == 1)
        sooner(&best, at - q->now.us);
    if (rc < 0)
        return rc;
    *out = (struct dur){best};
    return 0;
}

/* 1 = the own session is alive; checked in the claim's own transaction, so that it cannot be swept
 * under it. *asked: what its worker may not have heard yet. */
static int session_alive(struct sq *q, session_id id, enum worker_command *asked,
                         struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_LEASE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "claim");
    if (rc != 1)
        return rc;
    *asked = (enum worker_command)sqlite3_column_int(s, 1);
    return sqlite3_column_int64(s, 0) > q->now.us;
}

static int claim_in_op(struct claim *c, struct claim_result *out)
{
    struct sq *q = c->q;
    enum worker_command asked = COMMAND_NONE;
    int rc = session_alive(q, c->req->session->id, &asked, c->err);
    if (rc <= 0) {
        out->session_stale = rc == 0;
        return rc;
    }
    if (worker_command_holds(asked))
        return 0;
    if (policy_load(q, c->err) < 0 || promote(q, c->err) < 0)
        return c->err->code;
    q->claim_no++;
    c->fair = q->policy.order == ORDER_FAIR;
    rc = c->req->only.v ? claim_collect_only(c) : claim_collect(c);
    claim_close_cursors(q);
    if (rc == 0)
        rc = claim_lease(c, out);
    if (rc == 0 && c->req->only.v && c->n_picked)
        rc = head_remove(q, c->picked[0].lane, c->req->only.v, c->err);
    if (rc == 0)
        rc = claim_close_gates(c, out);
    if (rc == 0)
        rc = find_next_due(q, &out->next_due, c->err);
    return rc;
}

int store_claim_jobs(struct store *s, const struct claim_request *req, struct arena *a,
                     struct claim_result *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct claim c = {.q = q, .req = req, .arena = a, .err = err};
    AUTO_FREE struct left *left = mem_zalloc(req->n_pools, sizeof(*left));
    for (size_t i = 0; i < req->n_pools; i++) {
        left[i].any = req->pools[i].want > 0 ? req->pools[i].want : 0;
        left[i].gated = left[i].any - req->pools[i].ahead;
        c.total += left[i].any;
    }
    AUTO_FREE struct picked *picked = mem_zalloc((size_t)c.total + 1, sizeof(*picked));
    AUTO_FREE struct lane_entry **lanes =
        mem_zalloc((size_t)c.total + 1, sizeof(struct lane_entry *));
    c.left = left;
    c.picked = picked;
    c.lanes = lanes;
    struct claim_result result = {.next_due = {-1}};
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    rc = op_end(q, claim_in_op(&c, &result), err);
    result.busy = c.n_parkings >= PARK_MAX;
    claim_free(&c);
    if (rc == 0)
        *out = result;
    return rc;
}
