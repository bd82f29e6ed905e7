/* Ending leases (I2, I9): one call of pawl.settle for a whole batch, which is the gate and writes
 * job, attempt, event, result and counts together; then what the jobs left behind, and children
 * after the job that made them. */
#include "pg.h"

#include "fingerprint.h"
#include "gate.h"

enum { FLAG_REFUND = 1, FLAG_TRANSIENT = 2, FLAG_LOST = 4 };

/* A batch of settles as columns. */
struct columns {
    int64_t *ids, *fences, *delays, *started, *log_bytes, *prints, *retry_after;
    int *ords, *outcomes, *classes, *flags, *reasons, *exits, *signals;
    struct sv *errors, *results, *peers;
    bool has_error, has_result, has_peer;
    int64_t policy; /* none has permits, as far as these limits hold; -1: unknown */
};

static void columns_make(struct columns *c, size_t n, struct arena *a)
{
    int64_t **numbers[] = {&c->ids,       &c->fences, &c->delays,     &c->started,
                           &c->log_bytes, &c->prints, &c->retry_after};
    int **ints[] = {&c->ords,    &c->outcomes, &c->classes, &c->flags,
                    &c->reasons, &c->exits,    &c->signals};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        *numbers[i] = arena_alloc(a, n * sizeof(int64_t));
    for (size_t i = 0; i < ARRAY_LEN(ints); i++)
        *ints[i] = arena_alloc(a, n * sizeof(int));
    c->errors = arena_alloc(a, n * sizeof(*c->errors));
    c->results = arena_alloc(a, n * sizeof(*c->results));
    c->peers = arena_alloc(a, n * sizeof(*c->peers));
}

static void columns_set(struct columns *c, size_t i, const struct settle *v, bool lost)
{
    c->ids[i] = v->id.v;
    c->fences[i] = v->fence.v;
    c->outcomes[i] = (int)v->outcome;
    c->classes[i] = (int)v->cls;
    c->flags[i] = (v->refund_attempt ? FLAG_REFUND : 0) |
                  (v->count_transient ? FLAG_TRANSIENT : 0) | (lost ? FLAG_LOST : 0);
    c->reasons[i] = (int)v->reason;
    c->exits[i] = v->exit_code < 0 ? -1 : v->exit_code;
    c->delays[i] = v->delay.us > 0 ? v->delay.us : 0;
    c->started[i] = v->started_at.us;
    c->log_bytes[i] = v->log_bytes;
    c->signals[i] = (int)gate_signal_of(v, v->outcome);
    c->retry_after[i] = v->retry_after.us;
    c->prints[i] = v->error.p ? fingerprint(v->cls, v->error) : 0;
    c->has_error |= v->error.p != NULL;
    c->has_result |= v->result.p != NULL;
    c->errors[i] = v->error;
    c->results[i] = v->result;
    c->has_peer |= v->peer.p != NULL;
    c->peers[i] = v->peer;
}

static void bind_texts(struct args *a, const struct sv *v, size_t n, bool any)
{
    if (any)
        arg_texts(a, v, n);
    else
        arg_null_array(a, OID_TEXT_ARRAY);
}

static bool all_are(const int *v, size_t n, int x)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != x)
            return false;
    return true;
}

static bool all_are_i64(const int64_t *v, size_t n, int64_t x)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != x)
            return false;
    return true;
}

/* Most jobs have few of these numbers: what nobody has is not sent. */
static void bind_ints(struct args *a, const int *v, size_t n, int none)
{
    if (all_are(v, n, none))
        arg_null_array(a, OID_INT4_ARRAY);
    else
        arg_ints(a, v, n, NULL);
}

static void bind_i64s(struct args *a, const int64_t *v, size_t n, int64_t none)
{
    if (all_are_i64(v, n, none))
        arg_null_array(a, OID_INT8_ARRAY);
    else
        arg_i64s(a, v, n, NULL);
}

static void columns_bind(const struct columns *c, size_t n, struct args *a)
{
    arg_i64s(a, c->ids, n, NULL);
    arg_i64s(a, c->fences, n, NULL);
    arg_ints(a, c->ords, n, NULL);
    arg_ints(a, c->outcomes, n, NULL);
    bind_ints(a, c->classes, n, CLASS_NONE);
    bind_ints(a, c->flags, n, 0);
    bind_ints(a, c->reasons, n, 0);
    bind_ints(a, c->exits, n, -1);
    bind_i64s(a, c->delays, n, 0);
    arg_i64s(a, c->started, n, NULL);
    bind_i64s(a, c->log_bytes, n, 0);
    bind_i64s(a, c->prints, n, 0);
    bind_texts(a, c->errors, n, c->has_error);
    bind_texts(a, c->results, n, c->has_result);
    arg_ints(a, c->signals, n, NULL);
    bind_i64s(a, c->retry_after, n, DUR_NONE.us);
    arg_i64(a, c->policy);
    bind_texts(a, c->peers, n, c->has_peer);
}

/* What the claims knew of permits: a batch whose jobs have none need not look for any. */
static int64_t policy_of(const struct settle *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!v[i].hint.claimed_at.us || v[i].hint.policy < 0 ||
            v[i].hint.policy != v[0].hint.policy)
            return -1;
    return v[0].hint.policy;
}

static int compare_settles(const void *a, const void *b)
{
    const struct settle *x = *(const struct settle *const *)a,
                        *y = *(const struct settle *const *)b;
    return x->id.v < y->id.v ? -1 : x->id.v > y->id.v;
}

/* In the order of ids, as pawl.settle wants them and locks are taken everywhere. False: a job is in
 * it twice. */
static bool columns_fill(struct columns *c, const struct settle *v, size_t n, const bool *lost,
                         struct arena *a)
{
    const struct settle **sorted = arena_alloc(a, n * sizeof(const struct settle *));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &v[i];
    qsort(sorted, n, sizeof(const struct settle *), compare_settles);
    for (size_t i = 0; i < n; i++) {
        size_t ord = (size_t)(sorted[i] - v);
        if (i > 0 && sorted[i]->id.v == sorted[i - 1]->id.v)
            return false;
        c->ords[i] = (int)ord + 1;
        columns_set(c, i, sorted[i], lost && lost[ord]);
    }
    return true;
}

static int settle_singly(struct pg *p, const struct settle *v, size_t n, const bool *lost,
                         enum settle_outcome *out, struct pawl_err *err);

static int settle_batch(struct pg *p, const struct settle *v, size_t n, const bool *lost,
                        enum settle_outcome *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    struct columns c = {0};
    args_init(&a);
    columns_make(&c, n, &a.arena);
    for (size_t i = 0; i < n; i++) {
        out[i] = SETTLE_STALE;
        p->ready |= v[i].outcome == OUTCOME_RETRY || v[i].outcome == OUTCOME_RELEASED ||
                    v[i].outcome == OUTCOME_LOST;
    }
    if (!columns_fill(&c, v, n, lost, &a.arena))
        return settle_singly(p, v, n, lost, out, err);
    c.policy = policy_of(v, n);
    p->freed |= c.policy < 0;
    columns_bind(&c, n, &a);
    int rc = db_query(p, STMT_SETTLE, &a, &r, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < PQntuples(r); i++)
        out[res_i64(r, i, 0) - 1] = SETTLE_OK;
    p->effort.rows += 4 * (int64_t)PQntuples(r);
    return 0;
}

static int settle_singly(struct pg *p, const struct settle *v, size_t n, const bool *lost,
                         enum settle_outcome *out, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = settle_batch(p, &v[i], 1, lost ? &lost[i] : NULL, &out[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_children(struct pg *p, const struct settle *v, struct pawl_err *err)
{
    AUTO_FREE struct job_spec *specs = mem_zalloc(v->n_children, sizeof(*specs));
    AUTO_FREE struct add_result *added = mem_zalloc(v->n_children, sizeof(*added));
    for (size_t i = 0; i < v->n_children; i++) {
        specs[i] = v->children[i];
        specs[i].parent = v->id;
        if (job_spec_check(&specs[i], err) < 0)
            return err_wrap(err, "child %zu of job %lld", i + 1, (long long)v->id.v);
    }
    return pg_enqueue_in_op(p, specs, v->n_children, DUPLICATE_SKIP, added, err);
}

/* A batch ends with a job that has children: they are added before anything else happens. */
static size_t batch_len(const struct settle *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].n_children)
            return i + 1;
    return n;
}

int pg_settle_in_op(struct pg *p, const struct settle *v, size_t n, const bool *lost,
                    enum settle_outcome *out, struct pawl_err *err)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = batch_len(&v[i], n - i);
        int rc = settle_batch(p, &v[i], len, lost ? &lost[i] : NULL, &out[i], err);
        if (rc == 0)
            rc = pg_keep(p, &v[i], len, &out[i], err);
        if (rc < 0)
            return rc;
        const struct settle *last = &v[i + len - 1];
        if (last->n_children && out[i + len - 1] == SETTLE_OK && add_children(p, last, err) < 0)
            return err->code;
    }
    return 0;
}

int pg_settle(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
              struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    return pg_op_end(p, pg_settle_in_op(p, v, n, NULL, out, err), err);
}
