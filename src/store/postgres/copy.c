/* Copying stores (copy.h): this one as source and as target. */
#include "pg_limits.h"

#include "copy.h"
#include <stdio.h>

static const struct {
    enum stmt_id read, last, put;
} statements[N_COPY_TABLES] = {
#define X(id, name, n_keys, types, columns)                                                        \
    [COPY_##id] = {STMT_COPY_READ_##id, STMT_COPY_LAST_##id, STMT_COPY_PUT_##id},
#include "copy.def"
#undef X
};
_Static_assert((int)ARGS_MAX >= (int)COPY_COLUMNS_MAX, "a parameter for every column");

/* What reads or changes whole tables has no time limit. */
static int run(struct pg *p, enum stmt_id id, struct pawl_err *err)
{
    return db_query(p, id, NULL, NULL, err);
}

static int in_op(struct pg *p, int (*body)(struct pg *p, void *arg, struct pawl_err *err),
                 void *arg, struct pawl_err *err)
{
    p->unlimited = true;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, body(p, arg, err), err);
    p->unlimited = false;
    return rc;
}

static size_t result_value(const PGresult *r, int row, int col, char type, struct arena *a,
                           struct copy_value *out)
{
    *out = (struct copy_value){.null = res_null(r, row, col)};
    if (out->null)
        return 0;
    if (type == 'i')
        out->i = res_i64(r, row, col);
    else
        out->s = res_copy(r, row, col, a);
    return out->s.n;
}

/* ---- the source ---- */

static int copy_read_begin(struct store *s, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    p->unlimited = true;
    int rc = pg_read_begin(p, err);
    if (rc == 0)
        rc = run(p, STMT_COPY_SETTINGS, err);
    if (rc < 0) {
        pg_read_end(p);
        p->unlimited = false;
    }
    return rc;
}

static void copy_read_end(struct store *s)
{
    struct pg *p = pg_of(s);
    pg_read_end(p);
    p->unlimited = false;
}

static void arg_key(struct args *a, char type, const struct copy_value *v)
{
    if (type == 'i')
        arg_i64(a, v->i);
    else if (type == 't')
        arg_text(a, v->s);
    else
        arg_bytes(a, v->s.p, v->s.n);
}

static int copy_read(struct store *s, enum copy_table t, const struct copy_value *after,
                     struct arena *arena, struct copy_rows *out, struct pawl_err *err)
{
    const struct copy_shape *shape = &copy_shapes[t];
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    for (int i = 0; i < shape->n_keys; i++)
        arg_key(&a, shape->types[i], &after[i]);
    arg_int(&a, COPY_PAGE_ROWS);
    arg_i64(&a, COPY_PAGE_BYTES);
    int rc = db_query(pg_of(s), statements[t].read, &a, &r, err);
    if (rc < 0)
        return rc;
    size_t n = (size_t)PQntuples(r), width = (size_t)shape->n_columns;
    struct copy_value *v = arena_alloc(arena, (n * width + 1) * sizeof(*v));
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < shape->n_columns; c++)
            result_value(r, (int)i, c, shape->types[c], arena, &v[i * width + (size_t)c]);
    *out = (struct copy_rows){v, n};
    return 0;
}

/* Besides the facts: does it hold anything, and the mark, in the arena. */
struct state {
    struct copy_facts facts;
    bool any;
    struct sv mark; /* p NULL: none */
};

static int read_state(struct pg *p, struct arena *arena, struct state *out, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_COPY_FACTS, NULL, &r, err);
    if (rc < 0)
        return rc;
    struct copy_facts f = {.next_job = res_i64(r, 0, 2),
                           .logs = res_int(r, 0, 3),
                           .running = res_i64(r, 0, 4),
                           .held = res_i64(r, 0, 5),
                           .workers = res_i64(r, 0, 6)};
    snprintf(f.id, sizeof(f.id), SV_FMT, SV_ARG(res_sv(r, 0, 0)));
    snprintf(f.stamp, sizeof(f.stamp), SV_FMT, SV_ARG(res_sv(r, 0, 1)));
    *out = (struct state){f, res_int(r, 0, 7), res_copy(r, 0, 8, arena)};
    return 0;
}

static int copy_facts(struct store *s, struct copy_facts *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct state state;
    struct arena arena;
    bool alone = !p->reading;
    int rc = alone ? copy_read_begin(s, err) : 0;
    if (rc < 0)
        return rc;
    arena_init(&arena);
    rc = read_state(p, &arena, &state, err);
    arena_done(&arena);
    if (alone)
        copy_read_end(s);
    if (rc == 0)
        *out = state.facts;
    return rc;
}

/* ---- the target ---- */

struct beginning {
    const struct copy_begin *how;
    enum copy_begun begun;
};

static enum copy_begun may_begin(const struct state *s, const struct copy_begin *how)
{
    if (s->mark.p)
        return how->replace ? COPY_BEGUN : copy_mark_meaning(s->mark, how->source);
    if (s->any && !how->replace)
        return COPY_NOT_EMPTY;
    return s->facts.workers ? COPY_IN_USE : COPY_BEGUN;
}

static int set_mark(struct pg *p, const struct copy_facts *source, struct pawl_err *err)
{
    AUTO_STR struct str mark = STR_INIT(STR_LINE);
    AUTO_ARGS a;
    args_init(&a);
    copy_mark(source, &mark);
    arg_text(&a, str_sv(&mark));
    return db_query(p, STMT_COPY_MARK_SET, &a, NULL, err);
}

static int begin_in_op(struct pg *p, void *arg, struct pawl_err *err)
{
    struct beginning *b = arg;
    struct state state;
    struct arena arena;
    int rc = run(p, STMT_MIGRATE_LOCK, err); /* two copies do not begin at once */
    if (rc < 0)
        return rc;
    arena_init(&arena);
    rc = read_state(p, &arena, &state, err);
    if (rc == 0)
        b->begun = may_begin(&state, b->how);
    arena_done(&arena);
    if (rc < 0 || b->begun != COPY_BEGUN)
        return rc;
    return run(p, STMT_COPY_WIPE, err) < 0 ? err->code : set_mark(p, b->how->source, err);
}

static int copy_begin(struct store *s, const struct copy_begin *how, enum copy_begun *out,
                      struct pawl_err *err)
{
    struct beginning b = {.how = how};
    int rc = in_op(pg_of(s), begin_in_op, &b, err);
    if (rc == 0)
        *out = b.begun;
    return rc;
}

static int copy_last(struct store *s, enum copy_table t, struct arena *a,
                     struct copy_value *out_key, bool *out_any, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    AUTO_RESULT r = NULL;
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = db_query(p, statements[t].last, NULL, &r, err);
    pg_read_end(p);
    if (rc < 0)
        return rc;
    *out_any = PQntuples(r) == 1;
    for (int i = 0; *out_any && i < copy_shapes[t].n_keys; i++)
        result_value(r, 0, i, copy_shapes[t].types[i], a, &out_key[i]);
    return 0;
}

static void arg_integers(struct args *a, const struct copy_rows *rows, size_t width, size_t col)
{
    int64_t *v = arena_alloc(&a->arena, (rows->n + 1) * sizeof(*v));
    bool *null = arena_alloc(&a->arena, rows->n + 1);
    for (size_t i = 0; i < rows->n; i++) {
        v[i] = rows->v[i * width + col].i;
        null[i] = rows->v[i * width + col].null;
    }
    arg_i64s(a, v, rows->n, null);
}

static void arg_strings(struct args *a, const struct copy_rows *rows, size_t width, size_t col,
                        bool bytes)
{
    struct sv *v = arena_alloc(&a->arena, (rows->n + 1) * sizeof(*v));
    for (size_t i = 0; i < rows->n; i++) {
        v[i] = rows->v[i * width + col].null ? SV_NONE : rows->v[i * width + col].s;
        if (!bytes || !v[i].p)
            continue;
        char *hex = arena_alloc(&a->arena, 2 * v[i].n + 1);
        hex_encode((const unsigned char *)v[i].p, v[i].n, hex);
        v[i] = sv_make(hex, 2 * v[i].n);
    }
    arg_texts(a, v, rows->n);
}

static int copy_write(struct store *s, enum copy_table t, const struct copy_rows *rows,
                      struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    const struct copy_shape *shape = &copy_shapes[t];
    AUTO_ARGS a;
    args_init(&a);
    for (int c = 0; c < shape->n_columns; c++)
        if (shape->types[c] == 'i')
            arg_integers(&a, rows, (size_t)shape->n_columns, (size_t)c);
        else
            arg_strings(&a, rows, (size_t)shape->n_columns, (size_t)c, shape->types[c] == 'b');
    int rc = pg_op_begin(p, err);
    return rc < 0 ? rc : pg_op_end(p, db_query(p, statements[t].put, &a, NULL, err), err);
}

/* ---- the end ---- */

struct ending {
    int64_t next_job, released;
};

static int drop_mark(struct pg *p, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_COPY_MARK_DROP, NULL, &r, err);
    if (rc == 0 && !PQntuples(r))
        rc = err_set(err, PAWL_ECONFLICT, "%s: no copy into this store is under way", p->place);
    return rc;
}

static int set_sequences(struct pg *p, int64_t next_job, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, next_job);
    return db_query(p, STMT_COPY_SEQUENCES, &a, NULL, err);
}

static int release_running(struct pg *p, int64_t *out, struct pawl_err *err)
{
    enum { BATCH = 500 };
    struct settle v[BATCH];
    enum settle_outcome outcomes[BATCH];
    int n;
    do {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        arg_int(&a, BATCH);
        int rc = db_query(p, STMT_COPY_RUNNING, &a, &r, err);
        if (rc < 0)
            return rc;
        n = PQntuples(r);
        for (int i = 0; i < n; i++)
            v[i] = (struct settle){.id = {res_i64(r, i, 0)},
                                   .fence = {res_i64(r, i, 1)},
                                   .outcome = OUTCOME_RELEASED,
                                   .cls = CLASS_LOST,
                                   .error = SV("the store was copied while it ran"),
                                   .exit_code = -1};
        if (n && pg_settle_in_op(p, v, (size_t)n, NULL, outcomes, err) < 0)
            return err->code;
        *out += n;
    } while (n == BATCH);
    return 0;
}

static int end_sessions(struct pg *p, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_COPY_SESSIONS, NULL, &r, err);
    for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
        session_id id = {res_i64(r, i, 0)};
        bool ended;
        rc = pg_session_over(p, id, true, &ended, err);
        if (rc == 0)
            rc = pg_add_event(p, EVENT_WORKER_LOST, (job_id){0}, (fence_no){0}, id, SV_NONE, err);
    }
    return rc;
}

/* The numbers of all limits, and a policy that no lane knows yet. */
static int number_limits(struct pg *p, struct pawl_err *err)
{
    struct limit_row *rows;
    struct arena arena;
    size_t n = 0;
    arena_init(&arena);
    int rc = pg_limits_read(p, &arena, &rows, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = pg_limit_put(p, &rows[i], err);
    arena_done(&arena);
    if (rc == 0)
        rc = run(p, STMT_COPY_POLICY, err);
    return rc == 0 ? run(p, STMT_POLICY_GROW, err) : rc;
}

static int finish_in_op(struct pg *p, void *arg, struct pawl_err *err)
{
    struct ending *e = arg;
    int rc = drop_mark(p, err);
    if (rc == 0)
        rc = set_sequences(p, e->next_job, err); /* before the first new event */
    if (rc == 0)
        rc = number_limits(p, err);
    if (rc == 0)
        rc = run(p, STMT_COPY_LANES, err);
    if (rc == 0)
        rc = run(p, STMT_COPY_LOCKS, err);
    if (rc == 0)
        rc = run(p, STMT_COPY_COUNTS, err);
    if (rc == 0)
        rc = release_running(p, &e->released, err);
    if (rc == 0)
        rc = end_sessions(p, err);
    p->ready = true;
    return rc;
}

static int copy_finish(struct store *s, int64_t next_job, int64_t *out_released,
                       struct pawl_err *err)
{
    struct ending e = {.next_job = next_job};
    int rc = in_op(pg_of(s), finish_in_op, &e, err);
    if (rc == 0)
        *out_released = e.released;
    return rc;
}

const struct copy_ops pg_copy_ops = {
    .facts = copy_facts,
    .read_begin = copy_read_begin,
    .read_end = copy_read_end,
    .read = copy_read,
    .begin = copy_begin,
    .last = copy_last,
    .write = copy_write,
    .finish = copy_finish,
};
