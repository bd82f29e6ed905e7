/* Claiming (I2, I3, I11): a merge over exact heads gives the best ready jobs by (priority desc, id)
 * at a cost that depends on the batch alone. First the ids are collected, reading only; then the
 * rows are changed. Three kinds of nodes lie in one heap, ordered by the job they stand for:
 *   CLASSES  the next class that has ready work      → opens that class
 *   LANES    the next lane of an open class          → opens that lane
 *   JOBS     the next job of an open lane            → is taken
 * so a class or lane is touched only when its head is the best of all. */
#include "internal.h"

enum { PROMOTE_MAX = 2000 };
enum node_kind { NODE_CLASSES, NODE_LANES, NODE_JOBS };

struct node {
    struct head head;
    enum node_kind kind;
    int64_t class_id;        /* CLASSES: the class; LANES: its owner */
    int64_t lane_id;         /* LANES: the lane */
    struct class_entry *cls; /* LANES, JOBS */
    struct lane_entry *lane; /* JOBS */
};

struct picked {
    int64_t id;
    struct lane_entry *lane;
    int priority, pool;
};

struct claim {
    struct sq *q;
    const struct claim_request *req;
    struct arena *arena;
    struct pawl_err *err;
    struct node *heap;
    size_t n, cap;
    int *left; /* wanted per pool */
    int total;
    struct picked *picked;
    size_t n_picked;
    sqlite3_stmt *classes;          /* open cursor over classes */
    int64_t jobs_lane, lanes_class; /* what the sticky cursors stand on */
    int jobs_priority, lanes_priority;
};

static bool before(const struct node *a, const struct node *b)
{
    if (a->head.priority != b->head.priority)
        return a->head.priority > b->head.priority;
    if (a->head.id != b->head.id)
        return a->head.id < b->head.id;
    return a->kind < b->kind;
}

static void push(struct claim *c, struct node node)
{
    ARRAY_GROW(c->heap, c->n, c->cap);
    size_t i = c->n++;
    while (i && before(&node, &c->heap[(i - 1) / 2])) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->heap[i] = node;
}

static struct node pop(struct claim *c)
{
    struct node top = c->heap[0], last = c->heap[--c->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= c->n)
            break;
        if (child + 1 < c->n && before(&c->heap[child + 1], &c->heap[child]))
            child++;
        if (!before(&c->heap[child], &last))
            break;
        c->heap[i] = c->heap[child];
        i = child;
    }
    if (c->n)
        c->heap[i] = last;
    return top;
}

static bool queue_wanted(const struct claim_request *r, struct sv queue)
{
    for (size_t i = 0; i < r->n_queues; i++)
        if (sv_eq(r->queues[i], queue))
            return true;
    return r->n_queues == 0;
}

/* The pool that takes this class, or -1. */
static int pool_of(struct claim *c, struct class_entry *cls)
{
    if (cls->checked == c->q->claim_no)
        return cls->pool;
    cls->checked = c->q->claim_no;
    cls->pool = -1;
    if (!queue_wanted(c->req, cls->queue))
        return -1;
    for (size_t p = 0; p < c->req->n_pools; p++)
        for (size_t k = 0; k < c->req->pools[p].n_kinds; k++)
            if (sv_eq(c->req->pools[p].kinds[k], cls->kind))
                return cls->pool = (int)p;
    return -1;
}

static bool has_room(const struct claim *c, const struct class_entry *cls)
{
    return cls->pool >= 0 && c->left[cls->pool] > 0;
}

static int next_class(struct claim *c)
{
    int rc = c->classes ? stmt_step(c->q, c->classes, c->err, "claim") : 0;
    if (rc == 1)
        push(c, (struct node){.kind = NODE_CLASSES,
                              .class_id = sqlite3_column_int64(c->classes, 0),
                              .head = {.priority = sqlite3_column_int(c->classes, 1),
                                       .id = sqlite3_column_int64(c->classes, 2)}});
    else
        c->classes = NULL;
    return rc < 0 ? rc : 0;
}

/* The item after `at` in a list ordered by (priority desc, id): first within the same priority, on
 * a cursor that stays open as long as nobody else needs it, else the best of a lower one.
 * Returns 1 with *at moved (and *out_id, the lane's id for lists of lanes), 0 at the end. */
static int next_item(struct claim *c, bool lanes, int64_t owner, struct head *at, int64_t *out_id)
{
    sqlite3_stmt *same = stmt_get(c->q, lanes ? STMT_LANE_NEXT_SAME : STMT_JOB_NEXT_SAME, c->err);
    sqlite3_stmt *lower =
        stmt_get(c->q, lanes ? STMT_LANE_NEXT_LOWER : STMT_JOB_NEXT_LOWER, c->err);
    if (!same || !lower)
        return c->err->code;
    int64_t *cursor_owner = lanes ? &c->lanes_class : &c->jobs_lane;
    int *cursor_priority = lanes ? &c->lanes_priority : &c->jobs_priority;
    if (*cursor_owner != owner || *cursor_priority != at->priority) {
        sqlite3_reset(same);
        sqlite3_bind_int64(same, 1, owner);
        sqlite3_bind_int(same, 2, at->priority);
        sqlite3_bind_int64(same, 3, at->id);
        *cursor_owner = owner;
        *cursor_priority = at->priority;
    }
    int rc = stmt_step(c->q, same, c->err, "claim");
    if (rc == 1) {
        at->id = sqlite3_column_int64(same, 0);
        *out_id = lanes ? sqlite3_column_int64(same, 1) : 0;
        return 1;
    }
    *cursor_owner = 0;
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(lower, 1, owner);
    sqlite3_bind_int(lower, 2, at->priority);
    rc = stmt_step(c->q, lower, c->err, "claim");
    if (rc == 1) {
        *at = (struct head){.priority = sqlite3_column_int(lower, 0),
                            .id = sqlite3_column_int64(lower, 1)};
        *out_id = lanes ? sqlite3_column_int64(lower, 2) : 0;
        sqlite3_reset(lower);
    }
    return rc;
}

/* Push the lane of `cls` that follows `after`; the best one when after has no id. */
static int next_lane(struct claim *c, struct class_entry *cls, struct head after)
{
    int64_t lane = 0;
    if (!after.id)
        after = (struct head){.priority = PRIORITY_MAX + 1};
    int rc = next_item(c, true, cls->id, &after, &lane);
    if (rc == 1)
        push(c, (struct node){.kind = NODE_LANES, .head = after, .cls = cls, .lane_id = lane});
    return rc < 0 ? rc : 0;
}

static int open_class(struct claim *c, const struct node *node)
{
    struct class_entry *cls;
    if (next_class(c) < 0 || names_class_by_id(c->q, node->class_id, &cls, c->err) < 0)
        return c->err->code;
    if (pool_of(c, cls) < 0 || !has_room(c, cls))
        return 0;
    return next_lane(c, cls, (struct head){0});
}

static int open_lane(struct claim *c, const struct node *node)
{
    struct lane_entry *lane;
    if (!has_room(c, node->cls))
        return 0;
    if (next_lane(c, node->cls, node->head) < 0 ||
        names_lane_by_id(c->q, node->lane_id, &lane, c->err) < 0)
        return c->err->code;
    push(c, (struct node){.kind = NODE_JOBS, .head = node->head, .cls = node->cls, .lane = lane});
    return 0;
}

static int take_job(struct claim *c, struct node *node)
{
    if (!has_room(c, node->cls))
        return 0; /* the lane's head was recorded when its last job was taken */
    c->picked[c->n_picked++] =
        (struct picked){node->head.id, node->lane, node->head.priority, node->cls->pool};
    c->left[node->cls->pool]--;
    c->total--;
    int64_t unused;
    int rc = next_item(c, false, node->lane->id, &node->head, &unused);
    if (rc < 0)
        return rc;
    head_set(c->q, node->lane, rc == 1 ? node->head : (struct head){0});
    if (rc == 1)
        push(c, *node);
    return 0;
}

static int collect(struct claim *c)
{
    c->classes = stmt_get(c->q, STMT_CLASSES_READY, c->err);
    if (!c->classes)
        return c->err->code;
    int rc = next_class(c);
    while (rc == 0 && c->n && c->total > 0) {
        struct node node = pop(c);
        if (node.kind == NODE_CLASSES)
            rc = open_class(c, &node);
        else if (node.kind == NODE_LANES)
            rc = open_lane(c, &node);
        else
            rc = take_job(c, &node);
    }
    return rc;
}

static void close_cursors(struct sq *q)
{
    const enum stmt_id ids[] = {STMT_CLASSES_READY, STMT_LANE_NEXT_SAME, STMT_LANE_NEXT_LOWER,
                                STMT_JOB_NEXT_SAME, STMT_JOB_NEXT_LOWER};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (q->stmts[ids[i]])
            sqlite3_reset(q->stmts[ids[i]]);
}

/* Names are copied once per lane and claim; the leases outlive this handle's memory of lanes. */
static void copy_names(struct sq *q, struct lane_entry *l, struct arena *a, struct lease *out)
{
    if (l->copied != q->claim_no) {
        struct sv from[3] = {l->cls->queue, l->cls->kind, l->host};
        for (int i = 0; i < 3; i++)
            l->names[i] = sv_make(arena_strndup(a, from[i].p, from[i].n), from[i].n);
        l->copied = q->claim_no;
    }
    out->queue = l->names[0];
    out->kind = l->names[1];
    out->host = l->host.n ? l->names[2] : SV_NONE;
}

static void read_lease(sqlite3_stmt *s, struct arena *a, struct lease *out)
{
    out->priority = sqlite3_column_int(s, 0);
    out->attempt = sqlite3_column_int(s, 1);
    out->transient = sqlite3_column_int(s, 2);
    out->lost = sqlite3_column_int(s, 3);
    out->fence.v = sqlite3_column_int64(s, 4);
    out->ready_at.us = sqlite3_column_int64(s, 5);
    out->key = column_copy(s, 6, a);
    out->payload = column_copy(s, 7, a);
    out->created_at.us = sqlite3_column_int64(s, 8);
    out->max_attempts = sqlite3_column_int(s, 9);
    out->timeout.us = sqlite3_column_int64(s, 10);
}

static bool same_stretch(const struct picked *a, const struct picked *b)
{
    return a->lane == b->lane && a->priority == b->priority;
}

static void bind_stretch(sqlite3_stmt *s, const struct picked *first, const struct picked *last)
{
    sqlite3_bind_int64(s, 1, first->lane->id);
    sqlite3_bind_int(s, 2, first->priority);
    sqlite3_bind_int64(s, 3, first->id);
    sqlite3_bind_int64(s, 4, last->id);
}

static int read_stretch(struct claim *c, const struct picked *p, size_t n, struct lease *out)
{
    struct sq *q = c->q;
    AUTO_STMT s = stmt_get(q, n > 1 ? STMT_CLAIM_ROWS : STMT_CLAIM_ROW, c->err);
    if (!s)
        return c->err->code;
    bind_stretch(s, &p[0], &p[n - 1]);
    size_t i = 0;
    int rc;
    while ((rc = stmt_step(q, s, c->err, "claim")) == 1) {
        if (i == n || sqlite3_column_int64(s, 11) != p[i].id)
            break;
        struct lease *l = &out[i++];
        *l = (struct lease){.id = {p[i - 1].id}, .pool = p->pool, .claimed_at = q->now};
        read_lease(s, c->arena, l);
        copy_names(q, p->lane, c->arena, l);
        l->fence.v++; /* I2: grows with every claim */
        l->attempt++;
        l->hint =
            (struct lease_hint){p->lane->id, c->req->session->id, q->now, l->attempt, l->priority};
    }
    if (rc < 0)
        return rc;
    if (rc == 1 || i < n)
        return err_set(c->err, PAWL_ECORRUPT, "%s: lane %lld and its jobs do not agree", q->path,
                       (long long)p->lane->id);
    return 0;
}

static int take_stretch(struct claim *c, const struct picked *p, size_t n, struct lease *leases)
{
    struct sq *q = c->q;
    sqlite3_stmt *s = stmt_get(q, n > 1 ? STMT_CLAIM_JOBS : STMT_CLAIM_JOB, c->err);
    if (!s)
        return c->err->code;
    bind_stretch(s, &p[0], &p[n - 1]);
    sqlite3_bind_int64(s, 5, c->req->session->id.v);
    sqlite3_bind_int64(s, 6, q->now.us);
    if (stmt_run(q, s, c->err, "claim") < 0)
        return c->err->code;
    if ((size_t)sqlite3_changes(q->db) != n)
        return err_set(c->err, PAWL_EINTERNAL, "%s: claimed %d of %zu jobs", q->path,
                       sqlite3_changes(q->db), n);
    for (size_t i = 0; i < n; i++) {
        count_move(q, p->lane, JOB_QUEUED, JOB_RUNNING);
        if (add_event(q, EVENT_CLAIMED, leases[i].id, leases[i].fence, c->req->session->id, SV_NONE,
                      c->err) < 0)
            return c->err->code;
    }
    return 0;
}

static int lease_all(struct claim *c, struct claim_result *out)
{
    out->leases = arena_alloc(c->arena, (c->n_picked + 1) * sizeof(*out->leases));
    for (size_t from = 0, n; from < c->n_picked; from += n) {
        struct picked *p = &c->picked[from];
        for (n = 1; from + n < c->n_picked && same_stretch(p, &p[n]); n++)
            ;
        if (read_stretch(c, p, n, &out->leases[from]) < 0 ||
            take_stretch(c, p, n, &out->leases[from]) < 0)
            return c->err->code;
    }
    out->n = c->n_picked;
    return 0;
}

static int promote_some(struct sq *q, enum stmt_id which, int64_t until, struct pawl_err *err)
{
    struct {
        int64_t id, lane;
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
        due[n++].priority = sqlite3_column_int(s, 2);
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        struct lane_entry *l;
        if (names_lane_by_id(q, due[i].lane, &l, err) < 0)
            return err->code;
        sqlite3_bind_int64(update, 1, due[i].id);
        sqlite3_bind_int64(update, 2, q->now.us);
        if (stmt_run(q, update, err, "claim") < 0)
            return err->code;
        if (which == STMT_DUE_WALL && due_drop(q, (job_id){due[i].id}, err) < 0)
            return err->code;
        count_move(q, l, JOB_WAITING, JOB_QUEUED);
        rc = head_add(q, l, (struct head){due[i].id, due[i].priority}, err);
    }
    return rc;
}

/* Jobs whose time has come become ready, before the best are chosen. */
static int promote(struct sq *q, struct pawl_err *err)
{
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

static int find_next_due(struct sq *q, struct dur *out, struct pawl_err *err)
{
    int64_t at = 0, wall = 0;
    int rc = first_time(q, STMT_NEXT_WAITING, &at, err);
    int rc2 = rc < 0 ? rc : first_time(q, STMT_NEXT_DUE, &wall, err);
    if (rc2 < 0)
        return rc2;
    int64_t best = -1;
    if (rc == 1)
        best = at > q->now.us ? at - q->now.us : 0;
    int64_t until_wall = wall - clock_wall().us;
    if (rc2 == 1 && (best < 0 || until_wall < best))
        best = until_wall > 0 ? until_wall : 0;
    *out = (struct dur){best};
    return 0;
}

/* 1 = the own session is alive; checked in the claim's own transaction, so that it cannot be swept
 * under it. */
static int session_alive(struct sq *q, session_id id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_SESSION_LEASE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "claim");
    return rc == 1 ? sqlite3_column_int64(s, 0) > q->now.us : rc;
}

static int collect_only(struct claim *c)
{
    AUTO_STMT s = stmt_get(c->q, STMT_CLAIM_ONLY, c->err);
    struct lane_entry *lane;
    if (!s)
        return c->err->code;
    sqlite3_bind_int64(s, 1, c->req->only.v);
    int rc = stmt_step(c->q, s, c->err, "claim");
    if (rc != 1 || sqlite3_column_int(s, 1))
        return rc < 0 ? rc : 0;
    if (names_lane_by_id(c->q, sqlite3_column_int64(s, 0), &lane, c->err) < 0)
        return c->err->code;
    if (pool_of(c, lane->cls) < 0 || !has_room(c, lane->cls))
        return 0;
    c->picked[c->n_picked++] =
        (struct picked){c->req->only.v, lane, sqlite3_column_int(s, 2), lane->cls->pool};
    return 0;
}

static int claim_in_op(struct claim *c, struct claim_result *out)
{
    struct sq *q = c->q;
    int rc = session_alive(q, c->req->session->id, c->err);
    if (rc <= 0) {
        out->session_stale = rc == 0;
        return rc;
    }
    rc = promote(q, c->err);
    if (rc < 0)
        return rc;
    q->claim_no++;
    rc = c->req->only.v ? collect_only(c) : collect(c);
    close_cursors(q);
    if (rc == 0)
        rc = lease_all(c, out);
    if (rc == 0 && c->req->only.v && c->n_picked)
        rc = head_remove(q, c->picked[0].lane, c->req->only.v, c->err);
    if (rc == 0)
        rc = find_next_due(q, &out->next_due, c->err);
    return rc;
}

int store_claim_jobs(struct store *s, const struct claim_request *req, struct arena *a,
                     struct claim_result *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct claim c = {.q = q, .req = req, .arena = a, .err = err};
    AUTO_FREE int *left = mem_zalloc(req->n_pools, sizeof(int));
    for (size_t i = 0; i < req->n_pools; i++) {
        left[i] = req->pools[i].want > 0 ? req->pools[i].want : 0;
        c.total += left[i];
    }
    AUTO_FREE struct picked *picked = mem_zalloc((size_t)c.total + 1, sizeof(*picked));
    c.left = left;
    c.picked = picked;
    struct claim_result result = {.next_due = {-1}};
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    rc = op_end(q, claim_in_op(&c, &result), err);
    free(c.heap);
    if (rc == 0)
        *out = result;
    return rc;
}

static int read_held(struct sq *q, const struct session *session, struct arena *a,
                     struct lease **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_STMT ids = stmt_get(q, STMT_HELD, err);
    AUTO_STMT row = stmt_get(q, STMT_HELD_ROW, err);
    if (!ids || !row)
        return err->code;
    AUTO_FREE struct lease *v = NULL;
    size_t n = 0, cap = 0;
    q->claim_no++;
    sqlite3_bind_int64(ids, 1, session->id.v);
    int rc;
    while ((rc = stmt_step(q, ids, err, "held")) == 1) {
        struct lease l = {.id = {sqlite3_column_int64(ids, 0)}};
        struct lane_entry *lane;
        sqlite3_bind_int64(row, 1, l.id.v);
        rc = stmt_step(q, row, err, "held");
        if (rc < 0)
            return rc;
        if (rc == 0)
            return err_set(err, PAWL_ECORRUPT, "%s: job %lld has no body", q->path,
                           (long long)l.id.v);
        if (names_lane_by_id(q, sqlite3_column_int64(row, 11), &lane, err) < 0)
            return err->code;
        read_lease(row, a, &l);
        l.claimed_at.us = sqlite3_column_int64(row, 12);
        sqlite3_reset(row);
        copy_names(q, lane, a, &l);
        ARRAY_GROW(v, n, cap);
        v[n++] = l;
    }
    if (rc < 0)
        return rc;
    *out = arena_alloc(a, (n + 1) * sizeof(**out));
    if (n)
        memcpy(*out, v, n * sizeof(*v));
    *out_n = n;
    return 0;
}

int store_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
               size_t *out_n, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_held(q, session, a, out, out_n, err);
    read_end(q);
    return rc;
}
