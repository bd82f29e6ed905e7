/* Operator acts on many jobs: choose a bounded batch, then change each under its own test. */
#include "internal.h"

#include "digest.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct batch {
    job_id *ids;
    size_t n, max;
};

static bool collect(void *arg, const struct job_view *job)
{
    struct batch *b = arg;
    b->ids[b->n++] = job->id;
    return b->n < b->max;
}

/* 1 = found. */
int target_read(struct sq *q, job_id id, struct arena *a, struct target *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_ACT_ROW, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "act");
    if (rc != 1)
        return rc;
    *out = (struct target){.priority = sqlite3_column_int(s, 1),
                           .state = shown_state(sqlite3_column_int(s, 2)),
                           .held = sqlite3_column_int(s, 2) == STATE_HELD,
                           .attempt = sqlite3_column_int(s, 3),
                           .fence = sqlite3_column_int64(s, 4),
                           .finished_at = {sqlite3_column_int64(s, 5)},
                           .key = column_copy(s, 6, a),
                           .due = sqlite3_column_int(s, 7),
                           .owner = {sqlite3_column_int64(s, 8)},
                           .lock = sqlite3_column_int64(s, 9)};
    int64_t lane = sqlite3_column_int64(s, 0);
    return names_lane_by_id(q, lane, &out->lane, err) < 0 ? err->code : 1;
}

static int event(struct sq *q, enum event_type type, job_id id, const struct target *t,
                 struct pawl_err *err)
{
    return add_event(q, type, id, (fence_no){t->fence}, (session_id){0}, SV_NONE, err);
}

/* Terminal → queued with a fresh budget, or with N attempts more; the fence is kept (I2). */
int retry_one(struct sq *q, job_id id, const struct target *t, int grant, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_RETRY_JOB, err);
    sqlite3_stmt *more = stmt_get(q, STMT_GRANT_ATTEMPTS, err);
    sqlite3_stmt *poison = stmt_get(q, STMT_POISON_DELETE, err);
    sqlite3_stmt *result = stmt_get(q, STMT_RESULT_DELETE, err);
    if (!s || !more || !poison || !result)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, q->now.us);
    sqlite3_bind_int(s, 3, grant ? t->attempt : 0);
    sqlite3_bind_int(s, 4, t->lock ? STATE_HELD : JOB_QUEUED);
    sqlite3_bind_int64(more, 1, id.v);
    sqlite3_bind_int(more, 2, t->attempt + grant);
    sqlite3_bind_int64(poison, 1, id.v);
    sqlite3_bind_int64(result, 1, id.v);
    if (stmt_run(q, s, err, "retry") < 0 || stmt_run(q, poison, err, "retry") < 0 ||
        stmt_run(q, result, err, "retry") < 0 || (grant && stmt_run(q, more, err, "retry") < 0))
        return err->code;
    count_move(q, t->lane, (int)t->state, JOB_QUEUED);
    if (became_queued(q, id, t, t->priority, err) < 0)
        return err->code;
    return event(q, EVENT_REQUEUED, id, t, err);
}

static int cancel_waiting(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_CANCEL_JOB, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    sqlite3_bind_int64(s, 2, q->now.us);
    if (stmt_run(q, s, err, "cancel") < 0)
        return err->code;
    if (t->due && due_drop(q, id, err) < 0)
        return err->code;
    count_move(q, t->lane, (int)t->state, JOB_CANCELLED);
    if (t->state == JOB_QUEUED && head_remove(q, t->lane, id.v, err) < 0)
        return err->code;
    if (lock_turn(q, t->lock, err) < 0)
        return err->code;
    return event(q, EVENT_CANCELLED, id, t, err);
}

/* A running job is only asked; its worker hears of it with the next renewal. */
static int cancel_running(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_CANCEL_RUNNING, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    if (stmt_run(q, s, err, "cancel") < 0)
        return err->code;
    q->wake = true;
    return sqlite3_changes(q->db) ? event(q, EVENT_CANCEL_ASKED, id, t, err) : 0;
}

void attempt_log_remove(struct sq *q, job_id id, fence_no fence)
{
    char name[64];
    store_log_name(id, fence, name);
    if (q->log_dir_fd >= 0)
        (void)unlinkat(q->log_dir_fd, name, 0);
}

static int drop_attempts(struct sq *q, job_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_PRUNE_ATTEMPTS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc;
    while ((rc = stmt_step(q, s, err, "prune")) == 1)
        if (sqlite3_column_int64(s, 1))
            attempt_log_remove(q, id, (fence_no){sqlite3_column_int64(s, 0)});
    return rc;
}

static int expire_key(struct sq *q, const struct target *t, struct pawl_err *err)
{
    if (!t->key.p)
        return 0;
    unsigned char digest[16];
    key_digest(t->lane->cls->queue, t->key, digest);
    AUTO_STMT s = stmt_get(q, STMT_KEY_EXPIRE, err);
    if (!s)
        return err->code;
    sqlite3_bind_blob(s, 1, digest, 16, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, t->finished_at.us + q->options.keep_keys.us);
    return stmt_run(q, s, err, "prune");
}

static int prune_one(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_PRUNE_JOB, STMT_PRUNE_BODY, STMT_RESULT_DELETE,
                                  STMT_POISON_DELETE, STMT_PRUNE_FETCHES};
    if (drop_attempts(q, id, err) < 0 || expire_key(q, t, err) < 0)
        return err->code;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        sqlite3_stmt *s = stmt_get(q, steps[i], err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, id.v);
        if (stmt_run(q, s, err, "prune") < 0)
            return err->code;
    }
    count_move(q, t->lane, (int)t->state, -1);
    return event(q, EVENT_PRUNED, id, t, err);
}

/* 1 = the act applies to a job in this state. */
static int applies(struct sq *q, const struct act_request *r, const struct target *t,
                   struct pawl_err *err)
{
    bool old = !r->finished_before.us || t->finished_at.us < r->finished_before.us;
    switch (r->act) {
    case ACT_RETRY:
        return job_state_terminal(t->state);
    case ACT_CANCEL:
        return !job_state_terminal(t->state);
    case ACT_PRUNE:
        return job_state_terminal(t->state) && old;
    case ACT_SET:
        return t->state == JOB_QUEUED || t->state == JOB_WAITING;
    case ACT_RELEASE:
        return release_applies(q, t, r->force, err);
    }
    return 0;
}

static int cancel_one(struct sq *q, job_id id, const struct target *t, struct pawl_err *err)
{
    return t->state == JOB_RUNNING ? cancel_running(q, id, t, err) : cancel_waiting(q, id, t, err);
}

static int act_one(struct sq *q, const struct act_request *r, job_id id, struct arena *a,
                   struct act_result *out, struct pawl_err *err)
{
    struct target t;
    int rc = target_read(q, id, a, &t, err);
    if (rc != 1)
        return rc;
    rc = applies(q, r, &t, err);
    if (rc != 1)
        return rc;
    out->changed++;
    if (r->dry_run)
        return 0;
    switch (r->act) {
    case ACT_RETRY:
        return retry_one(q, id, &t, r->grant_attempts, err);
    case ACT_CANCEL:
        return cancel_one(q, id, &t, err);
    case ACT_PRUNE:
        return prune_one(q, id, &t, err);
    case ACT_RELEASE:
        return release_one(q, id, &t, err);
    case ACT_SET:
        return set_one(q, id, &t, r->change, err);
    }
    return 0;
}

static int drop_old(struct sq *q, enum stmt_id id, int64_t until, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, id, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, until);
    sqlite3_bind_int(s, 2, 5000);
    return stmt_run(q, s, err, "prune");
}

int pages_give_back(struct sq *q, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_VACUUM_SOME, err);
    if (!s)
        return err->code;
    int rc;
    while ((rc = stmt_step(q, s, err, "prune")) == 1)
        ;
    return rc;
}

/* With the jobs go expired keys, what need not be remembered any more, old rate slots and, where
 * the whole history before a time is pruned, the events before it. */
static int prune_rest(struct sq *q, const struct act_request *r, struct pawl_err *err)
{
    if (drop_old(q, STMT_KEYS_DROP, q->now.us, err) < 0 || memory_drop(q, 5000, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, STMT_THROUGHPUT_DROP, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, (q->now.us - (int64_t)7 * 86400 * 1000000) / THROUGHPUT_SLOT_US);
    if (stmt_run(q, s, err, "prune") < 0)
        return err->code;
    bool whole = !r->select.queue.p && !r->select.kind.p && !r->select.host.p && !r->select.n_ids &&
                 (r->select.states == 0 || r->select.states >> JOB_FAILED & 1);
    if (!whole || !r->finished_before.us)
        return 0;
    if (write_events(q, err) < 0) /* the newest of all stays: let it be one of this act */
        return err->code;
    return drop_old(q, STMT_EVENTS_DROP, r->finished_before.us, err);
}

/* How many of the jobs selected may go so that the newest stay: those with the lowest ids, at most
 * max of them. Where all that are matched go the counts say it; else those ahead are counted. */
static int spare_newest(struct sq *q, const struct act_request *r, int *max, struct pawl_err *err)
{
    const unsigned ended =
        1u << JOB_DONE | 1u << JOB_SKIPPED | 1u << JOB_FAILED | 1u << JOB_CANCELLED;
    struct selection sel = r->select;
    int64_t n;
    if (!sel.queue.p || !sel.states || (sel.states & ~ended))
        return err_set(err, PAWL_EINPUT, "the newest can be kept of a queue's ended jobs only");
    sel.limit = 0;
    if (!r->dry_run && !r->finished_before.us)
        sel.after.v = 0;
    if (store_count(&q->base, &sel, &n, err) < 0)
        return err->code;
    n -= r->keep_newest;
    if (n < *max)
        *max = n > 0 ? (int)n : 0;
    return 0;
}

static int act_in_op(struct sq *q, const struct act_request *r, struct act_result *out,
                     struct pawl_err *err)
{
    int max = r->max > 0 ? r->max : 1000;
    if (r->act == ACT_PRUNE && r->keep_newest && spare_newest(q, r, &max, err) < 0)
        return err->code;
    AUTO_FREE job_id *ids = mem_zalloc((size_t)max + 1, sizeof(*ids));
    struct batch b = {.ids = ids, .max = (size_t)max};
    struct selection sel = r->select;
    sel.limit = max;
    if (max && store_list(&q->base, &sel, false, collect, &b, err) < 0)
        return err->code;
    struct arena a;
    arena_init(&a);
    int rc = 0;
    for (size_t i = 0; i < b.n && rc >= 0; i++) {
        arena_reset(&a);
        rc = act_one(q, r, ids[i], &a, out, err);
    }
    arena_done(&a);
    if (rc >= 0 && r->act == ACT_PRUNE && !r->dry_run)
        rc = prune_rest(q, r, err);
    if (rc >= 0 && r->act == ACT_PRUNE && !r->dry_run && out->changed)
        rc = pages_give_back(q, err);
    out->matched = (int64_t)b.n;
    out->more = b.n && b.n == b.max;
    out->cursor = b.n ? ids[b.n - 1] : r->select.after;
    return rc < 0 ? rc : 0;
}

static int act_reading(struct sq *q, const struct act_request *r, struct act_result *out,
                       struct pawl_err *err)
{
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = act_in_op(q, r, out, err);
    read_end(q);
    return rc;
}

int store_act(struct store *s, const struct act_request *req, struct act_result *out,
              struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct act_result result = {0};
    int log_dir;
    if (req->act == ACT_PRUNE && !req->dry_run)
        (void)store_log_dir(s, &log_dir, err);
    int rc;
    if (req->dry_run) {
        rc = act_reading(q, req, &result, err);
    } else {
        rc = op_begin(q, err);
        if (rc == 0)
            rc = op_end(q, act_in_op(q, req, &result, err), err);
    }
    if (rc == 0)
        *out = result;
    return rc;
}
