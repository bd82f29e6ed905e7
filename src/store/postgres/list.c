/* Looking at jobs. They are walked by id in pages, each a short read of its own: however slow the
 * caller is, no snapshot stays open. */
#include "pg.h"

#include "text.h"

enum {
    PAGE_FIRST = 100, /* soon something to show */
    PAGE = 1000,
    PAGE_MOST = 20000, /* where few of many are wanted */
    PAGE_FULL = 20,
    PAGE_BYTES = 8 << 20, /* of payloads */
};
#define ALL_STATES ((1u << N_JOB_STATES) - 1)
#define HOT_STATES (1u << JOB_BLOCKED | 1u << JOB_QUEUED | 1u << JOB_WAITING | 1u << JOB_RUNNING)

typedef bool each_fn(void *arg, const struct job_view *job);

int pg_by_index(struct pg *p, struct pawl_err *err)
{
    return db_query(p, STMT_BY_INDEX, NULL, NULL, err);
}

int pg_look(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err)
{
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = db_look(p, id, a, out, err);
    pg_read_end(p);
    return rc;
}

void pg_job_view_read(const PGresult *r, int row, bool full, struct arena *a, struct job_view *out)
{
    *out = (struct job_view){
        .id = {res_i64(r, row, 0)},
        .priority = res_int(r, row, 1),
        .state = (enum job_state)res_int(r, row, 2),
        .attempt = res_int(r, row, 3),
        .transient = res_int(r, row, 4),
        .lost = res_int(r, row, 5),
        .fence = {res_i64(r, row, 6)},
        .worker = res_copy(r, row, 7, a),
        .claimed_at = {res_i64(r, row, 8)},
        .lease_until = {res_i64(r, row, 9)},
        .available_at = {res_i64(r, row, 10)},
        .finished_at = {res_i64(r, row, 11)},
        .wait_reason = (enum wait_reason)res_int(r, row, 12),
        .cancel_asked = res_int(r, row, 13),
        .progress = res_copy(r, row, 14, a),
        .lock = res_copy(r, row, 15, a),
        .key = res_copy(r, row, 16, a),
        .created_at = {res_i64(r, row, 17)},
        .max_attempts = res_int(r, row, 18),
        .timeout = {res_i64(r, row, 19)},
        .parent = {res_i64(r, row, 20)},
        .queue = res_copy(r, row, 21, a),
        .kind = res_copy(r, row, 22, a),
        .host = res_copy(r, row, 23, a),
        .cls = (enum fail_class)res_int(r, row, 24),
        .error = res_copy(r, row, 25, a),
        .exit_code = res_null(r, row, 26) ? -1 : res_int(r, row, 26),
        .fingerprint = (uint32_t)res_i64(r, row, 29),
    };
    if (full) {
        out->payload = res_copy(r, row, 27, a);
        out->result = res_copy(r, row, 28, a);
    }
}

/* ---- one job ---- */

static void read_attempts(const PGresult *r, struct arena *a, struct job_view *out)
{
    int n = PQntuples(r);
    if (!n)
        return;
    struct attempt_view *v = arena_alloc(a, (size_t)n * sizeof(*v));
    for (int i = 0; i < n; i++)
        v[i] = (struct attempt_view){
            .attempt = res_int(r, i, 0),
            .fence = {res_i64(r, i, 1)},
            .worker = res_copy(r, i, 2, a),
            .started_at = {res_i64(r, i, 3)},
            .finished_at = {res_i64(r, i, 4)},
            .outcome = (enum outcome)res_int(r, i, 5),
            .cls = (enum fail_class)res_int(r, i, 6),
            .error = res_copy(r, i, 7, a),
            .exit_code = res_null(r, i, 8) ? -1 : res_int(r, i, 8),
            .log_bytes = res_i64(r, i, 9),
        };
    out->attempts = v;
    out->n_attempts = (size_t)n;
}

int pg_job_read(struct pg *p, job_id id, struct arena *a, struct job_view *out,
                struct pawl_err *err)
{
    AUTO_ARGS x;
    AUTO_RESULT job = NULL;
    AUTO_RESULT attempts = NULL;
    args_init(&x);
    arg_i64(&x, id.v);
    if (db_query(p, STMT_JOB_GET, &x, &job, err) < 0)
        return err->code;
    if (!PQntuples(job))
        return err_set(err, PAWL_ENOTFOUND, "no job %lld", (long long)id.v);
    pg_job_view_read(job, 0, true, a, out);
    if (!out->fence.v)
        return 0; /* never claimed */
    if (db_query(p, STMT_ATTEMPTS, &x, &attempts, err) < 0)
        return err->code;
    read_attempts(attempts, a, out);
    return 0;
}

int pg_job_get(struct store *s, job_id id, struct arena *a, struct job_view *out,
               struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct job_view v;
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_job_read(p, id, a, &v, err);
    pg_read_end(p);
    if (rc == 0)
        *out = v;
    return rc;
}

/* ---- what is looked for ---- */

static bool storable(struct sv v)
{
    return !v.p || text_bad_utf8(v) == v.n;
}

/* Text that is not UTF-8 is in no store: nothing is there to be found by it. */
static bool hopeless(const struct selection *sel)
{
    return !storable(sel->queue) || !storable(sel->kind) || !storable(sel->host) ||
           !storable(sel->key) || !storable(sel->error) || sel->key.n > KEY_MAX_BYTES ||
           sel->queue.n > NAME_MAX_BYTES;
}

/* $1 to $9 of the lists. */
static void bind_filters(struct args *a, const struct selection *sel, bool full)
{
    arg_text(a, sel->queue);
    arg_text(a, sel->kind);
    arg_text(a, sel->host);
    arg_i64(a, sel->states ? sel->states & ALL_STATES : ALL_STATES);
    arg_i64_or_null(a, sel->since.us, sel->since.us == 0);
    arg_text(a, sel->error);
    arg_i64(a, sel->error_low);
    arg_i64(a, sel->error_high);
    arg_bool(a, full);
}

struct listing {
    struct pg *p;
    const struct selection *sel;
    bool full;
    each_fn *each;
    void *arg;
    int64_t left; /* how many may still be given */
};

/* Hand over the rows of a page; false when it was the last. `given` may be NULL. */
static bool give(struct listing *l, const PGresult *r, int *given)
{
    struct arena a;
    bool more = true;
    int n = 0;
    arena_init(&a);
    for (int i = 0; i < PQntuples(r) && more; i++) {
        struct job_view v;
        if (res_null(r, i, 0))
            continue;
        arena_reset(&a);
        pg_job_view_read(r, i, l->full, &a, &v);
        if (l->sel->key.p && !sv_eq(l->sel->key, v.key)) /* ids and a key are given */
            continue;
        n++;
        more = l->each(l->arg, &v) && --l->left > 0;
    }
    arena_done(&a);
    if (given)
        *given = n;
    return more;
}

/* ---- ids that are known ---- */

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t without_doubles(int64_t *ids, size_t n, int64_t after)
{
    size_t kept = 0;
    qsort(ids, n, sizeof(*ids), compare_ids);
    for (size_t i = 0; i < n; i++)
        if (ids[i] > after && (!kept || ids[kept - 1] != ids[i]))
            ids[kept++] = ids[i];
    return kept;
}

/* Rising ids, looked up a page at a time and filtered by the rest. */
static int list_ids(struct listing *l, const int64_t *ids, size_t n, struct pawl_err *err)
{
    size_t page = l->full ? PAGE_FULL : PAGE_FIRST;
    for (size_t at = 0, len; at < n; at += len) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        len = n - at < page ? n - at : page;
        args_init(&a);
        bind_filters(&a, l->sel, l->full);
        arg_i64s(&a, ids + at, len, NULL);
        int rc = pg_look(l->p, STMT_LIST_IDS, &a, &r, err);
        if (rc < 0)
            return rc;
        if (!give(l, r, NULL))
            return 0;
        page = l->full ? PAGE_FULL : PAGE;
    }
    return 0;
}

static int list_named(struct listing *l, struct pawl_err *err)
{
    size_t n = l->sel->n_ids;
    AUTO_FREE int64_t *ids = mem_zalloc(n, sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = l->sel->ids[i].v;
    return list_ids(l, ids, without_doubles(ids, n, l->sel->after.v), err);
}

static int list_found(struct listing *l, enum stmt_id id, struct args *a, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    size_t n;
    int rc = pg_look(l->p, id, a, &r, err);
    if (rc < 0)
        return rc;
    int64_t *ids = res_i64s(r, 0, 0, &a->arena, &n);
    return list_ids(l, ids, n ? without_doubles(ids, n, l->sel->after.v) : 0, err);
}

static int list_key(struct listing *l, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_text(&a, l->sel->key);
    arg_text(&a, l->sel->queue);
    return list_found(l, STMT_IDS_OF_KEY, &a, err);
}

/* ---- walking ---- */

struct counts {
    int64_t mine[N_JOB_STATES], all[N_JOB_STATES]; /* in the queue and kind asked for; in all */
};

static int state_counts(struct pg *p, const struct selection *sel, struct counts *out,
                        struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, INT64_MAX);
    int rc = pg_look(p, STMT_STATUS_CLASSES, &a, &r, err);
    *out = (struct counts){0};
    for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
        bool in = (!sel->queue.p || sv_eq(sel->queue, res_sv(r, i, 0))) &&
                  (!sel->kind.p || sv_eq(sel->kind, res_sv(r, i, 1)));
        for (int k = 0; k < N_JOB_STATES; k++) {
            out->all[k] += res_i64(r, i, 3 + k);
            out->mine[k] += in ? res_i64(r, i, 3 + k) : 0;
        }
    }
    return rc;
}

static int64_t sum_of(const int64_t n[N_JOB_STATES], unsigned states)
{
    int64_t sum = 0;
    for (int i = 0; i < N_JOB_STATES; i++)
        if (!states || states >> i & 1)
            sum += n[i];
    return sum;
}

/* A single state that few jobs are in is found by its own index; else walking by id, which passes
 * the jobs of other states but needs no sort, is cheaper. The exact counts tell. */
static bool by_state(unsigned states, const int64_t n[N_JOB_STATES], enum stmt_id *out)
{
    static const enum stmt_id of[N_JOB_STATES] = {
        [JOB_QUEUED] = STMT_IDS_QUEUED,       [JOB_WAITING] = STMT_IDS_WAITING,
        [JOB_RUNNING] = STMT_IDS_RUNNING,     [JOB_DONE] = STMT_IDS_DONE,
        [JOB_SKIPPED] = STMT_IDS_SKIPPED,     [JOB_FAILED] = STMT_IDS_FAILED,
        [JOB_CANCELLED] = STMT_IDS_CANCELLED,
    };
    if (!states || states & (states - 1) || states == 1u << JOB_BLOCKED)
        return false;
    int64_t mine = sum_of(n, states);
    int64_t passed = sum_of(n, states & HOT_STATES ? HOT_STATES : ALL_STATES & ~HOT_STATES);
    *out = of[__builtin_ctz(states)];
    return mine <= PAGE || mine < passed / 16;
}

/* Nothing but states is asked for. */
static bool just_states(const struct selection *s)
{
    return !s->n_ids && !s->queue.p && !s->kind.p && !s->host.p && !s->key.p && !s->error.p &&
           !s->error_high && !s->since.us;
}

static int list_state(struct listing *l, enum stmt_id id, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, l->sel->after.v);
    arg_i64_or_null(&a, l->sel->limit, !just_states(l->sel) || !l->sel->limit);
    return list_found(l, id, &a, err);
}

/* The next page: as many as before gave a good page, more where few of them passed. */
static int64_t next_page(int64_t page, int passed, const PGresult *r, bool full)
{
    int64_t most = passed * 4 < page ? PAGE_MOST : PAGE;
    int64_t next = page * 4 < most ? page * 4 : most;
    if (!full || !passed)
        return full && next > PAGE ? PAGE : next;
    int64_t fit = PAGE_BYTES / ((int64_t)PQresultMemorySize(r) / passed + 1) + 1;
    return next < fit ? next : fit;
}

static int64_t first_page(const struct listing *l)
{
    int64_t most = l->full ? PAGE_FULL : PAGE;
    if (l->sel->limit)
        return l->sel->limit < most ? l->sel->limit : most;
    return l->full ? PAGE_FULL : PAGE_FIRST;
}

static int walk(struct listing *l, struct pawl_err *err)
{
    int64_t after = l->sel->after.v, page = first_page(l);
    for (;;) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        int given;
        args_init(&a);
        bind_filters(&a, l->sel, l->full);
        arg_i64(&a, after);
        arg_i64(&a, page);
        int rc = pg_look(l->p, STMT_LIST_PAGE, &a, &r, err);
        if (rc < 0)
            return rc;
        bool more = give(l, r, &given);
        if (!more || res_i64(r, 0, 31) < page)
            return 0;
        after = res_i64(r, 0, 30);
        page = next_page(page, given, r, l->full);
    }
}

static int list_walk(struct listing *l, struct pawl_err *err)
{
    struct counts n;
    enum stmt_id id;
    if (state_counts(l->p, l->sel, &n, err) < 0)
        return err->code;
    if (!sum_of(n.mine, l->sel->states))
        return 0;
    return by_state(l->sel->states, n.all, &id) ? list_state(l, id, err) : walk(l, err);
}

int pg_list(struct store *s, const struct selection *sel, bool full, each_fn *each, void *arg,
            struct pawl_err *err)
{
    struct listing l = {.p = pg_of(s),
                        .sel = sel,
                        .full = full,
                        .each = each,
                        .arg = arg,
                        .left = sel->limit ? sel->limit : INT64_MAX};
    if (hopeless(sel))
        return 0;
    if (sel->n_ids)
        return list_named(&l, err);
    return sel->key.p ? list_key(&l, err) : list_walk(&l, err);
}

/* ---- ids for an act ---- */

struct batch {
    int64_t *ids;
    size_t n, max;
};

static bool collect(void *arg, const struct job_view *job)
{
    struct batch *b = arg;
    b->ids[b->n++] = job->id.v;
    return b->n < b->max;
}

/* By state alone the jobs themselves need not be looked at. */
static int ids_by_state(struct pg *p, const struct selection *sel, struct batch *b,
                        struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    struct counts n;
    enum stmt_id id = STMT_IDS_WALK;
    args_init(&a);
    if (state_counts(p, sel, &n, err) < 0)
        return err->code;
    bool few = by_state(sel->states, n.all, &id);
    arg_i64(&a, sel->after.v);
    arg_i64(&a, (int64_t)b->max);
    if (!few) {
        id = STMT_IDS_WALK;
        arg_i64(&a, sel->states ? sel->states & ALL_STATES : ALL_STATES);
    }
    if (pg_look(p, id, &a, &r, err) < 0)
        return err->code;
    int64_t *found = res_i64s(r, 0, 0, &a.arena, &b->n);
    if (b->n)
        memcpy(b->ids, found, b->n * sizeof(*found));
    return 0;
}

int pg_list_ids(struct pg *p, const struct selection *sel, int64_t *out, size_t max, size_t *out_n,
                struct pawl_err *err)
{
    struct batch b = {.ids = out, .max = max};
    struct selection bounded = *sel;
    bounded.limit = (int64_t)max;
    int rc = just_states(sel) ? ids_by_state(p, sel, &b, err)
                              : pg_list(&p->base, &bounded, false, collect, &b, err);
    *out_n = b.n;
    return rc;
}

/* ---- counting ---- */

static bool count_one(void *arg, const struct job_view *job)
{
    (void)job;
    ++*(int64_t *)arg;
    return true;
}

/* Counted where they are, a page at a time. */
static int count_walk(struct pg *p, const struct selection *sel, int64_t *out, struct pawl_err *err)
{
    int64_t after = sel->after.v, n = PAGE_MOST;
    while (n == PAGE_MOST && (!sel->limit || *out < sel->limit)) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        bind_filters(&a, sel, false);
        arg_i64(&a, after);
        arg_i64(&a, PAGE_MOST);
        int rc = pg_look(p, STMT_COUNT_PAGE, &a, &r, err);
        if (rc < 0)
            return rc;
        *out += res_i64(r, 0, 0);
        after = res_i64(r, 0, 1);
        n = res_i64(r, 0, 2);
    }
    return 0;
}

int pg_count(struct store *s, const struct selection *sel, int64_t *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct counts n;
    int64_t total = 0;
    bool plain =
        !sel->host.p && !sel->error.p && !sel->error_high && !sel->since.us && !sel->after.v;
    int rc = 0;
    if (sel->n_ids || sel->key.p) {
        rc = pg_list(s, sel, false, count_one, &total, err);
    } else if (plain) {
        rc = state_counts(p, sel, &n, err);
        total = rc == 0 ? sum_of(n.mine, sel->states) : 0;
    } else if (!hopeless(sel)) {
        rc = count_walk(p, sel, &total, err);
    }
    if (rc == 0)
        *out = sel->limit && total > sel->limit ? sel->limit : total;
    return rc;
}
