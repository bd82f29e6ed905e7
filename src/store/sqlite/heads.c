/* Exact heads and counts. A lane's head is the best of its ready jobs, a class's head the best of
 * its lanes, a class's counts the number of its jobs by state. All three are read once and changed
 * in memory while an operation runs, and written once at its end, in the same transaction. */
#include "internal.h"

static void mark(struct sq *q, struct lane_entry *l)
{
    struct names *n = &q->names;
    if (l->dirty)
        return;
    l->dirty = true;
    ARRAY_GROW(n->dirty, n->n_dirty, n->cap_dirty);
    n->dirty[n->n_dirty++] = l;
}

static void mark_class(struct sq *q, struct class_entry *c)
{
    struct names *n = &q->names;
    if (c->dirty)
        return;
    c->dirty = true;
    ARRAY_GROW(n->dirty_classes, n->n_dirty_classes, n->cap_dirty_classes);
    n->dirty_classes[n->n_dirty_classes++] = c;
}

void head_recompute(struct sq *q, struct class_entry *c)
{
    mark_class(q, c);
    c->recompute = true;
}

static void mark_head(struct sq *q, struct lane_entry *l)
{
    mark(q, l);
    head_recompute(q, l->cls);
}

static int head_load(struct sq *q, struct lane_entry *l, struct pawl_err *err)
{
    if (l->loaded == q->tx_no)
        return 0;
    AUTO_STMT s = stmt_get(q, STMT_LANE_HEAD, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, l->id);
    int rc = stmt_step(q, s, err, "lane head");
    if (rc < 0)
        return rc;
    l->head = rc == 1 ? (struct head){.priority = sqlite3_column_int(s, 0),
                                      .id = sqlite3_column_int64(s, 1)}
                      : (struct head){0};
    l->loaded = q->tx_no;
    return 0;
}

int head_add(struct sq *q, struct lane_entry *l, struct head job, struct pawl_err *err)
{
    if (head_load(q, l, err) < 0)
        return err->code;
    if (!head_beats(job, l->head))
        return 0;
    l->head = job;
    mark_head(q, l);
    return 0;
}

void head_set(struct sq *q, struct lane_entry *l, struct head next)
{
    l->head = next;
    l->loaded = q->tx_no;
    mark_head(q, l);
}

int head_remove(struct sq *q, struct lane_entry *l, int64_t job, struct pawl_err *err)
{
    if (head_load(q, l, err) < 0)
        return err->code;
    if (l->head.id != job)
        return 0;
    AUTO_STMT s = stmt_get(q, STMT_LANE_BEST, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, l->id);
    int rc = stmt_step(q, s, err, "lane head");
    if (rc < 0)
        return rc;
    struct head next = {0};
    if (rc == 1)
        next =
            (struct head){.priority = sqlite3_column_int(s, 0), .id = sqlite3_column_int64(s, 1)};
    head_set(q, l, next);
    return 0;
}

void count_move(struct sq *q, struct lane_entry *l, int from, int to)
{
    struct class_entry *c = l->cls;
    if (from >= 0)
        c->delta[from]--;
    if (to >= 0)
        c->delta[to]++;
    mark_class(q, c);
}

static int write_lane(struct sq *q, struct lane_entry *l, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, l->turn ? STMT_LANE_SET_TURN : STMT_LANE_SET_HEAD, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, l->id);
    bind_i64_or_null(s, 2, l->head.priority, !l->head.id);
    bind_i64_or_null(s, 3, l->head.id, !l->head.id);
    if (l->turn)
        sqlite3_bind_int64(s, 4, l->turn);
    l->turn = 0;
    return stmt_run(q, s, err, "lane head");
}

static int best_of_lanes(struct sq *q, struct class_entry *c, struct head *out,
                         struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_CLASS_BEST, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, c->id);
    int rc = stmt_step(q, s, err, "class head");
    if (rc < 0)
        return rc;
    *out = (struct head){0};
    if (rc == 1)
        *out =
            (struct head){.priority = sqlite3_column_int(s, 0), .id = sqlite3_column_int64(s, 1)};
    return 0;
}

static void bind_counts(sqlite3_stmt *s, int at, const struct class_entry *c)
{
    for (int i = 0; i < N_JOB_STATES; i++)
        sqlite3_bind_int64(s, at + i, c->delta[i]);
    sqlite3_bind_int64(s, at + N_JOB_STATES, c->ended.retried);
}

void count_end(struct lane_entry *l, enum outcome outcome, struct dur delay, enum wait_reason why)
{
    struct ended *e = &l->cls->ended;
    e->done += outcome == OUTCOME_DONE;
    e->skipped += outcome == OUTCOME_SKIPPED;
    e->failed += outcome == OUTCOME_FAILED;
    e->lost += outcome == OUTCOME_LOST;
    if (outcome != OUTCOME_RETRY)
        return;
    e->retried++;
    if (why == WAIT_RETRY_AFTER)
        e->retry_after_us += delay.us;
    else
        e->backoff_us += delay.us;
}

static int write_throughput(struct sq *q, const struct class_entry *c, struct pawl_err *err)
{
    const struct ended *e = &c->ended;
    if (!(e->done | e->skipped | e->failed | e->retried | e->lost))
        return 0;
    sqlite3_stmt *s = stmt_get(q, STMT_THROUGHPUT_ADD, err);
    if (!s)
        return err->code;
    const int64_t v[] = {c->id,
                         q->now.us / THROUGHPUT_SLOT_US,
                         e->done,
                         e->skipped,
                         e->failed,
                         e->retried,
                         e->lost,
                         e->backoff_us,
                         e->retry_after_us};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        sqlite3_bind_int64(s, (int)i + 1, v[i]);
    return stmt_run(q, s, err, "throughput");
}

static int write_class(struct sq *q, struct class_entry *c, struct pawl_err *err)
{
    bool head = c->recompute;
    struct head best = {0};
    if (head && best_of_lanes(q, c, &best, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, head ? STMT_CLASS_UPDATE : STMT_CLASS_COUNT, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, c->id);
    if (head) {
        bind_i64_or_null(s, 2, best.priority, !best.id);
        bind_i64_or_null(s, 3, best.id, !best.id);
    }
    bind_counts(s, head ? 4 : 2, c);
    if (stmt_run(q, s, err, "counts") < 0)
        return err->code;
    return write_throughput(q, c, err);
}

static void clean(struct class_entry *c)
{
    memset(c->delta, 0, sizeof(c->delta));
    c->ended = (struct ended){0};
    c->recompute = c->dirty = false;
}

int heads_flush(struct sq *q, struct pawl_err *err)
{
    struct names *n = &q->names;
    for (size_t i = 0; i < n->n_dirty; i++) {
        if (write_lane(q, n->dirty[i], err) < 0)
            return err->code;
        n->dirty[i]->dirty = false;
    }
    n->n_dirty = 0;
    for (size_t i = 0; i < n->n_dirty_classes; i++) {
        if (write_class(q, n->dirty_classes[i], err) < 0)
            return err->code;
        clean(n->dirty_classes[i]);
    }
    n->n_dirty_classes = 0;
    return 0;
}

void heads_drop(struct sq *q)
{
    q->names.n_dirty = q->names.n_dirty_classes = 0;
}
