/* Choosing (I3, I11): a merge over exact heads gives the best ready jobs by (priority desc, id)
 * at a cost that depends on the batch alone. Three kinds of nodes lie in one heap, ordered by the
 * job they stand for:
 *   CLASSES  the next class that has ready work      → opens that class
 *   LANES    the next lane of an open class          → opens that lane
 *   JOBS     the next job of an open lane            → is taken
 * so a class or lane is touched only when its head is the best of all. In fair order lanes of one
 * priority come by the time they were last served, and all classes of that priority are opened
 * before any of their lanes. A lane whose gate is shut leaves the heap and is parked (I7). */
#include "claim.h"

enum { MISSES_MAX = 32 };

static bool before(const struct node *a, const struct node *b)
{
    if (a->head.priority != b->head.priority)
        return a->head.priority > b->head.priority;
    if (a->turn != b->turn)
        return a->turn < b->turn;
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
    return cls->pool >= 0 && c->left[cls->pool].any > 0;
}

static int next_class(struct claim *c)
{
    int rc = c->classes ? stmt_step(c->q, c->classes, c->err, "claim") : 0;
    if (rc == 1)
        push(c, (struct node){.kind = NODE_CLASSES,
                              .turn = c->fair ? INT64_MIN : 0,
                              .class_id = sqlite3_column_int64(c->classes, 0),
                              .head = {.priority = sqlite3_column_int(c->classes, 1),
                                       .id = sqlite3_column_int64(c->classes, 2)}});
    else
        c->classes = NULL;
    return rc < 0 ? rc : 0;
}

/* The item after `at` in a list ordered by (priority desc, turn, id): first within the same
 * priority, on a cursor that stays open as long as nobody else needs it, else the best of a lower
 * one. Returns 1 with *at moved (and its lane_id, for lists of lanes), 0 at the end. */
static int next_item(struct claim *c, bool lanes, int64_t owner, struct node *at)
{
    sqlite3_stmt *same = stmt_get(c->q, lanes ? STMT_LANE_NEXT_SAME : STMT_JOB_NEXT_SAME, c->err);
    sqlite3_stmt *lower =
        stmt_get(c->q, lanes ? STMT_LANE_NEXT_LOWER : STMT_JOB_NEXT_LOWER, c->err);
    if (!same || !lower)
        return c->err->code;
    int64_t *cursor_owner = lanes ? &c->lanes_class : &c->jobs_lane;
    int *cursor_priority = lanes ? &c->lanes_priority : &c->jobs_priority;
    if (*cursor_owner != owner || *cursor_priority != at->head.priority) {
        sqlite3_reset(same);
        sqlite3_bind_int64(same, 1, owner);
        sqlite3_bind_int(same, 2, at->head.priority);
        sqlite3_bind_int64(same, 3, at->head.id);
        if (lanes)
            sqlite3_bind_int64(same, 4, at->turn);
        *cursor_owner = owner;
        *cursor_priority = at->head.priority;
    }
    int rc = stmt_step(c->q, same, c->err, "claim");
    if (rc == 1) {
        at->head.id = sqlite3_column_int64(same, 0);
        if (lanes) {
            at->lane_id = sqlite3_column_int64(same, 1);
            at->turn = sqlite3_column_int64(same, 2);
        }
        return 1;
    }
    *cursor_owner = 0;
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(lower, 1, owner);
    sqlite3_bind_int(lower, 2, at->head.priority);
    rc = stmt_step(c->q, lower, c->err, "claim");
    if (rc == 1) {
        at->head = (struct head){.priority = sqlite3_column_int(lower, 0),
                                 .id = sqlite3_column_int64(lower, 1)};
        if (lanes) {
            at->lane_id = sqlite3_column_int64(lower, 2);
            at->turn = sqlite3_column_int64(lower, 3);
        }
        sqlite3_reset(lower);
    }
    return rc;
}

/* Push the lane of node->cls that follows it. */
static int next_lane(struct claim *c, struct node node)
{
    node.kind = NODE_LANES;
    int rc = next_item(c, true, node.cls->id, &node);
    if (rc == 1)
        push(c, node);
    return rc < 0 ? rc : 0;
}

static int open_class(struct claim *c, const struct node *node)
{
    struct class_entry *cls;
    if (next_class(c) < 0 || names_class_by_id(c->q, node->class_id, &cls, c->err) < 0)
        return c->err->code;
    if (pool_of(c, cls) < 0 || !has_room(c, cls))
        return 0;
    return next_lane(c, (struct node){.cls = cls, .head = {.priority = PRIORITY_MAX + 1}});
}

/* What a gate lets through is worked out when the claim first meets it, then counted down. */
static int meet(struct claim *c, struct gate_entry *g)
{
    struct sq *q = c->q;
    if (g->claim == q->claim_no)
        return 0;
    if (gate_count(q, g, c->err) < 0)
        return c->err->code;
    g->claim = q->claim_no;
    g->room = gate_room(&g->limit->params, &g->state, g->used, q->now.us, c->total);
    g->taken = 0;
    ARRAY_GROW(c->gates, c->n_gates, c->cap_gates);
    c->gates[c->n_gates++] = g;
    return 0;
}

/* The first of the lane's gates that is shut now. */
static int find_shut(struct claim *c, struct lane_entry *l, struct gate_entry **out)
{
    *out = NULL;
    for (size_t i = 0; i < l->n_gates && !*out; i++) {
        if (meet(c, l->gates[i]) < 0)
            return c->err->code;
        if (l->gates[i]->room.n <= 0)
            *out = l->gates[i];
    }
    return 0;
}

/* Lanes are parked after the reading. Very many at once are left to the next claims. */
static void park(struct claim *c, struct lane_entry *l, struct gate_entry *g)
{
    ARRAY_GROW(c->parkings, c->n_parkings, c->cap_parkings);
    c->parkings[c->n_parkings++] = (struct parking){l, g};
    if (c->n_parkings == PARK_MAX)
        c->total = 0;
}

/* Only jobs without a gate are wanted yet, and this lane has one. They may be far behind: a pool
 * that meets too many such lanes goes without. */
static void miss(struct claim *c, struct left *left)
{
    if (++left->misses < MISSES_MAX)
        return;
    c->total -= left->any;
    left->any = 0;
}

/* 1 = a job of the lane may be taken. */
static int admitted(struct claim *c, struct lane_entry *l)
{
    struct left *left = &c->left[l->cls->pool];
    struct gate_entry *shut;
    if (!l->n_gates)
        return 1;
    if (find_shut(c, l, &shut) < 0)
        return c->err->code;
    if (shut)
        park(c, l, shut);
    else if (left->gated <= 0)
        miss(c, left);
    return !shut && left->gated > 0;
}

static int open_lane(struct claim *c, const struct node *node)
{
    struct lane_entry *lane;
    if (!has_room(c, node->cls))
        return 0;
    if (next_lane(c, *node) < 0 || names_lane_by_id(c->q, node->lane_id, &lane, c->err) < 0)
        return c->err->code;
    lane_gates(c->q, lane);
    int rc = admitted(c, lane);
    if (rc != 1)
        return rc;
    push(c, (struct node){.kind = NODE_JOBS,
                          .head = node->head,
                          .turn = node->turn,
                          .cls = node->cls,
                          .lane = lane});
    return 0;
}

static void pick(struct claim *c, const struct node *node)
{
    struct left *left = &c->left[node->cls->pool];
    struct lane_entry *l = node->lane;
    c->picked[c->n_picked++] =
        (struct picked){node->head.id, l, node->head.priority, node->cls->pool};
    left->any--;
    left->gated -= l->n_gates > 0;
    c->total--;
    for (size_t i = 0; i < l->n_gates; i++)
        l->gates[i]->room.n--;
}

/* Fair order: behind all that were served before, in this transaction too. No claim takes less than
 * a microsecond for a job, so what other transactions give follows. */
static int64_t take_turn(struct sq *q, struct lane_entry *l)
{
    q->last_turn = q->last_turn < q->now.us ? q->now.us : q->last_turn + 1;
    return l->turn = q->last_turn;
}

static int take_job(struct claim *c, struct node *node)
{
    if (!has_room(c, node->cls))
        return 0; /* the lane's head was recorded when its last job was taken */
    int rc = node->lane->n_gates ? admitted(c, node->lane) : 1;
    if (rc != 1)
        return rc;
    pick(c, node);
    if (c->fair)
        node->turn = take_turn(c->q, node->lane);
    rc = next_item(c, false, node->lane->id, node);
    if (rc < 0)
        return rc;
    head_set(c->q, node->lane, rc == 1 ? node->head : (struct head){0});
    if (rc == 1)
        push(c, *node);
    return 0;
}

int claim_collect(struct claim *c)
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

void claim_close_cursors(struct sq *q)
{
    const enum stmt_id ids[] = {STMT_CLASSES_READY, STMT_LANE_NEXT_SAME, STMT_LANE_NEXT_LOWER,
                                STMT_JOB_NEXT_SAME, STMT_JOB_NEXT_LOWER};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (q->stmts[ids[i]])
            sqlite3_reset(q->stmts[ids[i]]);
}

int claim_collect_only(struct claim *c)
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
    struct gate_entry *shut;
    lane_gates(c->q, lane);
    if (find_shut(c, lane, &shut) < 0 || shut)
        return shut ? 0 : c->err->code;
    pick(c, &(struct node){.lane = lane,
                           .cls = lane->cls,
                           .head = {c->req->only.v, sqlite3_column_int(s, 2)}});
    return 0;
}

void claim_free(struct claim *c)
{
    free(c->heap);
    free(c->gates);
    free(c->parkings);
}
