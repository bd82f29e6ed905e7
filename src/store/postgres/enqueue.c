/* Adding jobs (I1, I9): by pawl.add_jobs in one round trip; many new ones by COPY (load.c). An
 * enqueue writes no row that another transaction writes, so it waits for nobody, but for one that
 * has taken the same key and not committed. */
#include "pg.h"

enum { CHUNK = 1000, LOAD_MIN = 200, TRIES = 5 };

/* Nobody may be running that folds, so adders see to it from time to time. */
enum { FOLD_EVERY = 64, FOLD_MAX = 20000 };

static struct sv text_or_empty(struct sv v)
{
    return v.p ? v : SV("");
}

static void bind_numbers(const struct job_spec *v, size_t n, struct args *a)
{
    int *priorities = arena_alloc(&a->arena, n * sizeof(int));
    int *attempts = arena_alloc(&a->arena, n * sizeof(int));
    int64_t *delays = arena_alloc(&a->arena, n * sizeof(int64_t));
    int64_t *ats = arena_alloc(&a->arena, n * sizeof(int64_t));
    int64_t *timeouts = arena_alloc(&a->arena, n * sizeof(int64_t));
    int64_t *parents = arena_alloc(&a->arena, n * sizeof(int64_t));
    bool *no_at = arena_alloc(&a->arena, n), *no_attempts = arena_alloc(&a->arena, n);
    bool *no_timeout = arena_alloc(&a->arena, n), *no_parent = arena_alloc(&a->arena, n);
    for (size_t i = 0; i < n; i++) {
        priorities[i] = v[i].priority;
        delays[i] = v[i].delay.us > 0 ? v[i].delay.us : 0;
        ats[i] = v[i].at.us;
        no_at[i] = !v[i].at.us;
        attempts[i] = v[i].max_attempts;
        no_attempts[i] = !v[i].max_attempts;
        timeouts[i] = v[i].timeout.us;
        no_timeout[i] = !v[i].timeout.us;
        parents[i] = v[i].parent.v;
        no_parent[i] = !v[i].parent.v;
    }
    arg_ints(a, priorities, n, NULL);
    arg_i64s(a, delays, n, NULL);
    arg_i64s(a, ats, n, no_at);
    arg_ints(a, attempts, n, no_attempts);
    arg_i64s(a, timeouts, n, no_timeout);
    arg_i64s(a, parents, n, no_parent);
}

static void bind_specs(const struct job_spec *v, size_t n, struct args *a)
{
    struct sv *texts = arena_alloc(&a->arena, n * sizeof(*texts));
    for (size_t i = 0; i < n; i++)
        texts[i] = v[i].queue;
    arg_texts(a, texts, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = v[i].kind;
    arg_texts(a, texts, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = text_or_empty(v[i].host);
    arg_texts(a, texts, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = v[i].key;
    arg_texts(a, texts, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = v[i].payload;
    arg_texts(a, texts, n);
    bind_numbers(v, n, a);
}

static void bind_locks(const struct job_spec *v, size_t n, struct args *a)
{
    struct sv *texts = arena_alloc(&a->arena, n * sizeof(*texts));
    for (size_t i = 0; i < n; i++)
        texts[i] = v[i].lock;
    arg_texts(a, texts, n);
}

static int add_chunk(struct pg *p, const struct job_spec *v, size_t n, enum on_duplicate dup,
                     struct add_result *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    bind_specs(v, n, &a);
    arg_int(&a, (int)dup);
    bind_locks(v, n, &a);
    int rc = db_query(p, STMT_ADD_JOBS, &a, &r, err);
    if (rc < 0)
        return rc;
    if ((size_t)PQntuples(r) != n)
        return err_set(err, PAWL_EINTERNAL, "%s: %d of %zu jobs were added", p->place, PQntuples(r),
                       n);
    for (int i = 0; i < PQntuples(r); i++) {
        struct add_result *to = &out[res_i64(r, i, 0) - 1];
        *to = (struct add_result){{res_i64(r, i, 1)},
                                  (enum add_outcome)res_int(r, i, 2),
                                  (enum job_state)res_int(r, i, 3)};
    }
    p->effort.rows += 3 * (int64_t)n;
    return 0;
}

int pg_enqueue_in_op(struct pg *p, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                     struct add_result *out, struct pawl_err *err)
{
    if (n == 0)
        return 0;
    p->ready = true;
    if (n >= LOAD_MIN) {
        bool duplicate = false;
        int rc = pg_load(p, specs, n, out, &duplicate, err);
        if (rc == 0 || !duplicate)
            return rc;
    }
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t len = n - i < CHUNK ? n - i : CHUNK;
        int rc = add_chunk(p, &specs[i], len, dup, &out[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* In transactions of their own, which nobody waits for; failing costs nothing. */
static void fold(struct pg *p)
{
    struct pawl_err ignored;
    AUTO_ARGS from, max;
    args_init(&from);
    args_init(&max);
    if (p->in_group || !p->conn || ++p->n_adds % FOLD_EVERY != 0)
        return;
    arg_i64(&from, 0);
    arg_int(&max, FOLD_MAX);
    if (db_query_alone(p, STMT_FOLD_WAKES, &from, NULL, &ignored) == 0)
        (void)db_query_alone(p, STMT_FOLD_DELTAS, &max, NULL, &ignored);
}

int pg_enqueue(struct store *s, const struct job_spec *specs, size_t n, enum on_duplicate dup,
               struct add_result *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc, tries = 0;
    do {
        p->collided = false;
        rc = pg_op_begin(p, err);
        if (rc < 0)
            return rc;
        rc = pg_op_end(p, pg_enqueue_in_op(p, specs, n, dup, out, err), err);
    } while (rc < 0 && p->collided && !p->in_group && ++tries < TRIES);
    if (rc == 0)
        fold(p);
    return rc;
}
