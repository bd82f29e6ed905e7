/* What time does to jobs: history is pruned, and those that wait long gain priority. Both in
 * bounded steps that go on where the last one stopped. */
#include "internal.h"

#include <stdio.h>

/* ---- pruning ---- */

/* Jobs are visited once, in the order in which they ended; how far, stands in `meta`. */
struct visit {
    char at_key[32], id_key[32];
    int64_t at, id;
};

static int visit_load(struct sq *q, enum job_state state, struct visit *v, struct pawl_err *err)
{
    *v = (struct visit){0};
    snprintf(v->at_key, sizeof(v->at_key), "attempts_at_%d", (int)state);
    snprintf(v->id_key, sizeof(v->id_key), "attempts_id_%d", (int)state);
    int rc = meta_get(q, v->at_key, &v->at, err);
    if (rc >= 0)
        rc = meta_get(q, v->id_key, &v->id, err);
    return rc < 0 ? rc : 0;
}

static int visit_save(struct sq *q, const struct visit *v, struct pawl_err *err)
{
    int rc = meta_set(q, v->at_key, v->at, err);
    return rc < 0 ? rc : meta_set(q, v->id_key, v->id, err);
}

/* Records of fetches go with their attempts, but for those that kept bytes. */
static int drop_fetches(struct sq *q, job_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_HISTORY_FETCHES, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    return stmt_run(q, s, err, "prune");
}

static int drop_attempts(struct sq *q, job_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_HISTORY_ATTEMPTS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc, n = 0;
    for (; (rc = stmt_step(q, s, err, "prune")) == 1; n++)
        if (sqlite3_column_int64(s, 1))
            attempt_log_remove(q, id, (fence_no){sqlite3_column_int64(s, 0)});
    return rc == 0 && n ? drop_fetches(q, id, err) : rc;
}

/* Ids of the next jobs of that state; the visit moves behind them. Returns how many. */
static int next_ended(struct sq *q, enum job_state state, struct wall before, job_id *ids, int max,
                      struct visit *v, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_HISTORY_JOBS, err);
    if (!s)
        return err->code;
    int n = 0, rc;
    sqlite3_bind_int(s, 1, (int)state);
    sqlite3_bind_int64(s, 2, v->at);
    sqlite3_bind_int64(s, 3, v->id);
    sqlite3_bind_int64(s, 4, before.us);
    sqlite3_bind_int(s, 5, max);
    while ((rc = stmt_step(q, s, err, "prune")) == 1) {
        v->id = ids[n++].v = sqlite3_column_int64(s, 0);
        v->at = sqlite3_column_int64(s, 1);
    }
    return rc < 0 ? rc : n;
}

static int prune_attempts(struct sq *q, struct wall before, int max, bool *more,
                          struct pawl_err *err)
{
    AUTO_FREE job_id *ids = mem_zalloc((size_t)max, sizeof(*ids));
    int left = max;
    for (int state = JOB_DONE; state < N_JOB_STATES && left > 0; state++) {
        struct visit v;
        if (visit_load(q, (enum job_state)state, &v, err) < 0)
            return err->code;
        int n = next_ended(q, (enum job_state)state, before, ids, left, &v, err);
        if (n < 0 || (n && visit_save(q, &v, err) < 0))
            return err->code;
        for (int i = 0; i < n; i++)
            if (drop_attempts(q, ids[i], err) < 0)
                return err->code;
        left -= n;
    }
    *more = *more || left == 0;
    return 0;
}

static int prune_events(struct sq *q, struct wall before, int max, bool *more, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_EVENTS_DROP, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, before.us);
    sqlite3_bind_int(s, 2, max);
    if (stmt_run(q, s, err, "prune") < 0)
        return err->code;
    *more = *more || sqlite3_changes(q->db) == max;
    return 0;
}

int store_prune_history(struct store *s, struct wall events_before, struct wall attempts_before,
                        int max, bool *out_more, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    bool more = false;
    int log_dir;
    if (attempts_before.us)
        (void)store_log_dir(s, &log_dir, err);
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    if (events_before.us)
        rc = prune_events(q, events_before, max, &more, err);
    if (rc == 0 && attempts_before.us)
        rc = prune_attempts(q, attempts_before, max, &more, err);
    if (rc == 0 && more)
        rc = pages_give_back(q, err);
    rc = op_end(q, rc, err);
    if (rc == 0)
        *out_more = more;
    return rc;
}

/* ---- aging ---- */

enum { AGED_MAX = 1000, LANES_AT_ONCE = 256, STEPS_MAX = 20000 };

struct aging {
    struct sq *q;
    int64_t every, now;
    struct old {
        int64_t id, lane;
        int to; /* priority, after */
        int by;
    } * v;
    int n, max;
    int steps;
};

/* A row of age_first or age_group: is its time come? Then it is remembered. */
static bool is_old(struct aging *g, sqlite3_stmt *s, int64_t lane)
{
    int priority = sqlite3_column_int(s, 0), aged = sqlite3_column_int(s, 3);
    int64_t level = (g->now - sqlite3_column_int64(s, 2)) / g->every;
    int most =
        PRIORITY_MAX - (priority - aged) < AGED_MAX ? PRIORITY_MAX - (priority - aged) : AGED_MAX;
    g->steps++;
    if (level > most)
        level = most;
    if (level <= aged)
        return false;
    int by = (int)level - aged;
    g->v[g->n++] = (struct old){sqlite3_column_int64(s, 1), lane, priority + by, by};
    return true;
}

/* Lower ids became ready earlier: the first whose time has not come ends the group. */
static int look_at_group(struct aging *g, int64_t lane, int priority, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(g->q, STMT_AGE_GROUP, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, lane);
    sqlite3_bind_int(s, 2, priority);
    sqlite3_bind_int(s, 3, g->max - g->n);
    int rc = 0;
    while (g->n < g->max && (rc = stmt_step(g->q, s, err, "age")) == 1)
        if (!is_old(g, s, lane))
            return 0;
    return rc < 0 ? rc : 0;
}

static int look_at_lane(struct aging *g, int64_t lane, struct pawl_err *err)
{
    int priority = PRIORITY_MAX + 1, rc = 1;
    while (rc == 1 && g->n < g->max) {
        AUTO_STMT s = stmt_get(g->q, STMT_AGE_FIRST, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, lane);
        sqlite3_bind_int(s, 2, priority);
        rc = stmt_step(g->q, s, err, "age");
        if (rc != 1)
            break;
        priority = sqlite3_column_int(s, 0);
        g->steps++;
        if (look_at_group(g, lane, priority, err) < 0)
            return err->code;
    }
    return rc < 0 ? rc : 0;
}

/* Returns how many lanes follow `after`, 0 at the end. */
static int next_lanes(struct sq *q, int64_t after, int64_t *lanes, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_AGE_LANES, err);
    if (!s)
        return err->code;
    int n = 0, rc;
    sqlite3_bind_int64(s, 1, after);
    sqlite3_bind_int(s, 2, LANES_AT_ONCE);
    while ((rc = stmt_step(q, s, err, "age")) == 1)
        lanes[n++] = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : n;
}

/* Reading only, so nobody waits for it. Goes on behind the lane at which the last call stopped. */
static int find_old(struct aging *g, struct pawl_err *err)
{
    struct sq *q = g->q;
    int64_t lanes[LANES_AT_ONCE];
    bool wrapped = q->age_after == 0;
    while (g->n < g->max && g->steps < STEPS_MAX) {
        int n = next_lanes(q, q->age_after, lanes, err);
        if (n < 0)
            return n;
        if (n == 0) {
            q->age_after = 0;
            if (wrapped)
                return 0;
            wrapped = true;
        }
        for (int i = 0; i < n && g->n < g->max && g->steps < STEPS_MAX; i++) {
            if (look_at_lane(g, lanes[i], err) < 0)
                return err->code;
            q->age_after = lanes[i];
        }
    }
    return 0;
}

static int raise_one(struct sq *q, const struct old *o, int *raised, struct pawl_err *err)
{
    struct lane_entry *lane;
    AUTO_STMT s = stmt_get(q, STMT_AGE_RAISE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, o->id);
    sqlite3_bind_int(s, 2, o->by);
    sqlite3_bind_int(s, 3, o->to);
    if (stmt_run(q, s, err, "age") < 0)
        return err->code;
    if (sqlite3_changes(q->db) == 0) /* taken meanwhile */
        return 0;
    ++*raised;
    if (names_lane_by_id(q, o->lane, &lane, err) < 0)
        return err->code;
    return head_add(q, lane, (struct head){o->id, o->to}, err);
}

static int raise_all(struct aging *g, int *raised, struct pawl_err *err)
{
    int rc = op_begin(g->q, err);
    if (rc < 0)
        return rc;
    for (int i = 0; rc == 0 && i < g->n; i++)
        rc = raise_one(g->q, &g->v[i], raised, err);
    return op_end(g->q, rc, err);
}

static int look(struct aging *g, struct pawl_err *err)
{
    int rc = read_begin(g->q, err);
    if (rc < 0)
        return rc;
    rc = meta_get(g->q, "aging", &g->every, err);
    if (rc >= 0 && g->every > 0)
        rc = find_old(g, err);
    read_end(g->q);
    return rc < 0 ? rc : 0;
}

int store_age(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    AUTO_FREE struct old *v = mem_zalloc((size_t)max_jobs + 1, sizeof(*v));
    struct aging g = {.q = q, .now = sq_now(q).us, .v = v, .max = max_jobs};
    int raised = 0;
    int rc = look(&g, err);
    if (rc == 0 && g.n)
        rc = raise_all(&g, &raised, err);
    if (rc == 0)
        *out_raised = raised;
    return rc;
}
