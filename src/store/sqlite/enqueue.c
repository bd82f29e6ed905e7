/* Adding jobs: rows, keys, events, counts and heads in one transaction (I1, I9). */
#include "internal.h"

#include "digest.h"

struct keyed {
    unsigned char digest[16];
    size_t spec;
};

/* Where and when a spec may start. */
struct start {
    enum job_state state;
    int64_t available_at, due_wall; /* 0: none */
    enum wait_reason reason;
    int64_t lock; /* 0: none */
};

static struct start start_of(struct sq *q, const struct job_spec *s)
{
    int64_t lock = s->lock.p ? lock_digest(s->lock) : 0;
    if (s->at.us && s->at.us > clock_wall().us)
        return (struct start){JOB_WAITING, 0, s->at.us, WAIT_DELAY, lock};
    if (s->delay.us > 0)
        return (struct start){JOB_WAITING, q->now.us + s->delay.us, 0, WAIT_DELAY, lock};
    return (struct start){JOB_QUEUED, q->now.us, 0, WAIT_NONE, lock};
}

static int insert_body(struct sq *q, int64_t id, const struct lane_entry *l,
                       const struct job_spec *s, struct pawl_err *err)
{
    sqlite3_stmt *st = stmt_get(q, STMT_BODY_INSERT, err);
    if (!st)
        return err->code;
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, l->id);
    bind_sv(st, 3, s->key);
    bind_sv(st, 4, s->payload);
    sqlite3_bind_int64(st, 5, q->now.us);
    bind_i64_or_null(st, 6, s->max_attempts, s->max_attempts == 0);
    bind_i64_or_null(st, 7, s->timeout.us, s->timeout.us == 0);
    bind_i64_or_null(st, 8, s->parent.v, s->parent.v == 0);
    bind_sv(st, 9, s->lock);
    return stmt_run(q, st, err, "add");
}

static void bind_start(sqlite3_stmt *st, int64_t id, const struct lane_entry *l, int priority,
                       const struct start *at)
{
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, l->id);
    sqlite3_bind_int(st, 3, priority);
    sqlite3_bind_int(st, 4, at->lock && at->state == JOB_QUEUED ? STATE_HELD : (int)at->state);
    bind_i64_or_null(st, 5, at->available_at, !at->available_at);
    sqlite3_bind_int(st, 6, (int)at->reason);
    bind_i64_or_null(st, 7, at->lock, !at->lock);
}

int due_add(struct sq *q, job_id id, struct wall at, struct pawl_err *err)
{
    sqlite3_stmt *st = stmt_get(q, STMT_DUE_INSERT, err);
    if (!st)
        return err->code;
    sqlite3_bind_int64(st, 1, at.us);
    sqlite3_bind_int64(st, 2, id.v);
    return stmt_run(q, st, err, "due");
}

static int insert_due(struct sq *q, int64_t id, const struct start *at, struct pawl_err *err)
{
    return at->due_wall ? due_add(q, (job_id){id}, (struct wall){at->due_wall}, err) : 0;
}

int due_drop(struct sq *q, job_id id, struct pawl_err *err)
{
    sqlite3_stmt *st = stmt_get(q, STMT_DUE_DELETE, err);
    if (!st)
        return err->code;
    sqlite3_bind_int64(st, 1, id.v);
    return stmt_run(q, st, err, "due");
}

static int became(struct sq *q, struct lane_entry *l, int64_t id, int priority,
                  const struct start *at, struct pawl_err *err)
{
    count_move(q, l, -1, (int)at->state);
    q->wake = true; /* a job that waits moves the time at which an idle worker must look */
    if (at->state != JOB_QUEUED)
        return 0;
    return at->lock ? lock_turn(q, at->lock, err)
                    : head_add(q, l, (struct head){id, priority}, err);
}

/* Rows of `job` that are still to be written, many at a time. Nothing reads them before. */
enum { JOBS_AT_ONCE = 16 };
struct unwritten {
    struct {
        int64_t id, lane, available_at;
        int priority, state, reason;
    } v[JOBS_AT_ONCE];
    int n;
};

static void bind_unwritten(sqlite3_stmt *st, int at, const struct unwritten *u, int i)
{
    sqlite3_bind_int64(st, at, u->v[i].id);
    sqlite3_bind_int64(st, at + 1, u->v[i].lane);
    sqlite3_bind_int(st, at + 2, u->v[i].priority);
    sqlite3_bind_int(st, at + 3, u->v[i].state);
    sqlite3_bind_int64(st, at + 4, u->v[i].available_at);
    sqlite3_bind_int(st, at + 5, u->v[i].reason);
}

static int write_jobs(struct sq *q, struct unwritten *u, struct pawl_err *err)
{
    int n = u->n;
    bool all = n == JOBS_AT_ONCE;
    u->n = 0;
    if (!n)
        return 0;
    AUTO_STMT st = stmt_get(q, all ? STMT_JOBS_INSERT : STMT_JOB_INSERT, err);
    if (!st)
        return err->code;
    for (int i = 0; i < n; i++) {
        bind_unwritten(st, all ? 1 + 6 * i : 1, u, i);
        if ((!all || i == n - 1) && stmt_run(q, st, err, "add") < 0)
            return err->code;
    }
    return 0;
}

static int write_job(struct sq *q, struct unwritten *u, int64_t id, const struct lane_entry *l,
                     int priority, const struct start *at, struct pawl_err *err)
{
    if (!at->lock && at->available_at) {
        u->v[u->n].id = id;
        u->v[u->n].lane = l->id;
        u->v[u->n].priority = priority;
        u->v[u->n].state = (int)at->state;
        u->v[u->n].available_at = at->available_at;
        u->v[u->n++].reason = (int)at->reason;
        return u->n == JOBS_AT_ONCE ? write_jobs(q, u, err) : 0;
    }
    AUTO_STMT st = stmt_get(q, STMT_JOB_INSERT, err);
    if (!st)
        return err->code;
    bind_start(st, id, l, priority, at);
    return stmt_run(q, st, err, "add") < 0 ? err->code : insert_due(q, id, at, err);
}

static int insert_job(struct sq *q, struct unwritten *u, int64_t id, const struct job_spec *s,
                      struct pawl_err *err)
{
    struct lane_entry *l;
    struct start at = start_of(q, s);
    if (names_lane(q, s->queue, s->kind, s->host, &l, err) < 0 ||
        insert_body(q, id, l, s, err) < 0 || write_job(q, u, id, l, s->priority, &at, err) < 0 ||
        became(q, l, id, s->priority, &at, err) < 0)
        return err->code;
    return add_event(q, EVENT_ADDED, (job_id){id}, (fence_no){0}, (session_id){0}, SV_NONE, err);
}

struct existing {
    int64_t lane, fence, lock; /* lock 0: none */
    int priority;
    enum job_state state;
    bool due; /* waits for the wall clock */
};

static int read_existing(struct sq *q, int64_t id, struct existing *out, struct pawl_err *err)
{
    AUTO_STMT st = stmt_get(q, STMT_JOB_PLACE, err);
    if (!st)
        return err->code;
    sqlite3_bind_int64(st, 1, id);
    int rc = stmt_step(q, st, err, "add");
    if (rc == 1)
        *out = (struct existing){.lane = sqlite3_column_int64(st, 0),
                                 .priority = sqlite3_column_int(st, 1),
                                 .state = shown_state(sqlite3_column_int(st, 2)),
                                 .fence = sqlite3_column_int64(st, 3),
                                 .due = sqlite3_column_int(st, 4),
                                 .lock = sqlite3_column_int64(st, 5)};
    return rc;
}

/* New payload, place and budgets for an old id; the fence stays, so a late writer of an earlier
 * lease stays locked out (I2). */
static int replace_rows(struct sq *q, int64_t id, const struct lane_entry *l,
                        const struct job_spec *s, const struct start *at, struct pawl_err *err)
{
    sqlite3_stmt *body = stmt_get(q, STMT_BODY_REPLACE, err);
    sqlite3_stmt *job = stmt_get(q, STMT_JOB_REPLACE, err);
    sqlite3_stmt *result = stmt_get(q, STMT_RESULT_DELETE, err);
    sqlite3_stmt *poison = stmt_get(q, STMT_POISON_DELETE, err);
    if (!body || !job || !result || !poison)
        return err->code;
    sqlite3_bind_int64(body, 1, id);
    sqlite3_bind_int64(body, 2, l->id);
    bind_sv(body, 3, s->payload);
    bind_i64_or_null(body, 4, s->max_attempts, s->max_attempts == 0);
    bind_i64_or_null(body, 5, s->timeout.us, s->timeout.us == 0);
    bind_sv(body, 6, s->lock);
    bind_start(job, id, l, s->priority, at);
    sqlite3_bind_int64(result, 1, id);
    sqlite3_bind_int64(poison, 1, id);
    if (stmt_run(q, body, err, "requeue") < 0 || stmt_run(q, job, err, "requeue") < 0 ||
        stmt_run(q, result, err, "requeue") < 0 || stmt_run(q, poison, err, "requeue") < 0)
        return err->code;
    return insert_due(q, id, at, err);
}

static int requeue(struct sq *q, int64_t id, const struct job_spec *s, const struct existing *old,
                   struct pawl_err *err)
{
    struct lane_entry *from, *to;
    if (names_lane_by_id(q, old->lane, &from, err) < 0 ||
        names_lane(q, s->queue, s->kind, s->host, &to, err) < 0)
        return err->code;
    struct start at = start_of(q, s);
    if (old->due && due_drop(q, (job_id){id}, err) < 0)
        return err->code;
    if (replace_rows(q, id, to, s, &at, err) < 0)
        return err->code;
    count_move(q, from, (int)old->state, -1);
    if (old->state == JOB_QUEUED && head_remove(q, from, id, err) < 0)
        return err->code;
    if (lock_turn(q, old->lock, err) < 0 || became(q, to, id, s->priority, &at, err) < 0)
        return err->code;
    enum event_type type = job_state_terminal(old->state) ? EVENT_REQUEUED : EVENT_REPLACED;
    return add_event(q, type, (job_id){id}, (fence_no){old->fence}, (session_id){0}, SV_NONE, err);
}

static int duplicate(struct sq *q, int64_t id, const struct job_spec *s, enum on_duplicate dup,
                     struct add_result *out, struct pawl_err *err)
{
    struct existing old = {0};
    int rc = read_existing(q, id, &old, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(err, PAWL_ECORRUPT, "%s: key without job %lld", q->path, (long long)id);
    *out = (struct add_result){{id}, ADD_EXISTS, old.state};
    if (dup == DUPLICATE_FAIL)
        out->outcome = ADD_CONFLICT;
    if (dup != DUPLICATE_REQUEUE)
        return 0;
    if (old.state == JOB_RUNNING || old.state == JOB_BLOCKED) {
        out->outcome = ADD_RUNNING;
        return 0;
    }
    out->outcome = job_state_terminal(old.state) ? ADD_REQUEUED : ADD_REPLACED;
    return requeue(q, id, s, &old, err);
}

/* Who holds the key: 0 nobody (it is ours now, under `id`), 1 the job in *out_id, which may be an
 * earlier one of this batch. A key that outlived its pruned job has `expires` and stays taken until
 * then, unless the job is asked for again. */
static int take_key(struct sq *q, const unsigned char digest[16], int64_t id, bool again,
                    int64_t *out_id, bool *out_gone, struct pawl_err *err)
{
    sqlite3_stmt *insert = stmt_get(q, STMT_KEY_INSERT, err);
    AUTO_STMT find = stmt_get(q, STMT_KEY_FIND, err);
    sqlite3_stmt *take = stmt_get(q, STMT_KEY_TAKE, err);
    if (!insert || !find || !take)
        return err->code;
    sqlite3_bind_blob(insert, 1, digest, 16, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, id);
    if (stmt_run(q, insert, err, "key") < 0)
        return err->code;
    if (sqlite3_changes(q->db) == 1)
        return 0;
    sqlite3_bind_blob(find, 1, digest, 16, SQLITE_STATIC);
    int rc = stmt_step(q, find, err, "key");
    if (rc < 0)
        return rc;
    *out_id = sqlite3_column_int64(find, 0);
    *out_gone = sqlite3_column_type(find, 1) != SQLITE_NULL;
    if (!*out_gone || (!again && sqlite3_column_int64(find, 1) > q->now.us))
        return 1;
    sqlite3_bind_blob(take, 1, digest, 16, SQLITE_STATIC);
    sqlite3_bind_int64(take, 2, id);
    return stmt_run(q, take, err, "key");
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int c = memcmp(x->digest, y->digest, 16);
    return c ? c : (x->spec > y->spec) - (x->spec < y->spec);
}

/* Keys of a batch are taken in the order of their digests (the index stays warm: sorted 147–162
 * k/s, unsorted 126 k/s), jobs are added in the order they were given. */
static int take_keys(struct sq *q, const struct job_spec *specs, size_t n, int64_t first,
                     bool again, struct keyed *keyed, int64_t *holders, struct pawl_err *err)
{
    size_t n_keyed = 0;
    for (size_t i = 0; i < n; i++)
        if (specs[i].key.p) {
            key_digest(specs[i].queue, specs[i].key, keyed[n_keyed].digest);
            keyed[n_keyed++].spec = i;
        }
    qsort(keyed, n_keyed, sizeof(*keyed), compare_keyed);
    for (size_t i = 0; i < n_keyed; i++) {
        int64_t holder = 0;
        bool gone = false;
        int rc = take_key(q, keyed[i].digest, first + (int64_t)keyed[i].spec, again, &holder, &gone,
                          err);
        if (rc < 0)
            return rc;
        holders[keyed[i].spec] = rc == 0 ? 0 : gone ? -holder : holder;
    }
    return 0;
}

static int add_batch(struct sq *q, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                     struct add_result *out, struct pawl_err *err)
{
    AUTO_FREE struct keyed *keyed = mem_zalloc(n, sizeof(*keyed));
    AUTO_FREE int64_t *holders = mem_zalloc(n, sizeof(*holders));
    struct unwritten u = {.n = 0};
    int64_t first = 0, id;
    for (size_t i = 0; i < n; i++) {
        if (next_job_id(q, &id, err) < 0)
            return err->code;
        first = i ? first : id;
    }
    if (take_keys(q, specs, n, first, dup == DUPLICATE_REQUEUE, keyed, holders, err) < 0)
        return err->code;
    for (size_t i = 0; i < n; i++) {
        id = first + (int64_t)i;
        int rc = 0;
        if (holders[i] == 0) {
            out[i] = (struct add_result){{id}, ADD_CREATED, JOB_QUEUED};
            rc = insert_job(q, &u, id, &specs[i], err);
        } else if (holders[i] < 0) { /* done and pruned, its key still taken */
            out[i] = (struct add_result){
                {-holders[i]}, dup == DUPLICATE_FAIL ? ADD_CONFLICT : ADD_EXISTS, JOB_DONE};
        } else {
            rc = write_jobs(q, &u, err); /* it may be one of this batch */
            if (rc == 0)
                rc = duplicate(q, holders[i], &specs[i], dup, &out[i], err);
        }
        if (rc < 0)
            return rc;
    }
    return write_jobs(q, &u, err);
}

int enqueue_in_op(struct sq *q, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                  struct add_result *out, struct pawl_err *err)
{
    return n ? add_batch(q, specs, n, dup, out, err) : 0;
}

int store_enqueue_jobs(struct store *s, const struct job_spec *specs, size_t n,
                       enum on_duplicate dup, struct add_result *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    rc = enqueue_in_op(q, specs, n, dup, out, err);
    return op_end(q, rc, err);
}
