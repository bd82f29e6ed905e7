/* Gates as they stand, and what operators do to their breakers. */
#include "pg_limits.h"

#include "json.h"

enum { PAGE = 1000 };

void pg_gate_read(const PGresult *r, int row, const struct limit_row *limit, struct gate_view *out)
{
    *out = (struct gate_view){
        .limit = limit->name,
        .value = res_sv(r, row, 1),
        .params = limit_params(&limit->spec),
        .state = {.tat = res_i64(r, row, 2),
                  .interval_us = res_i64(r, row, 3),
                  .cut_at = res_i64(r, row, 4),
                  .raised_at = res_i64(r, row, 5),
                  .held_until = res_i64(r, row, 6),
                  .held_at = res_i64(r, row, 7),
                  .held_n = res_int(r, row, 8),
                  .held_asked = res_int(r, row, 9),
                  .breaker = (enum breaker_state)res_int(r, row, 10),
                  .since = res_i64(r, row, 11),
                  .until = res_i64(r, row, 12),
                  .failures = res_int(r, row, 13),
                  .opens = res_int(r, row, 14),
                  .epoch = res_i64(r, row, 15),
                  .probe_job = res_i64(r, row, 16),
                  .probe_fence = res_i64(r, row, 17),
                  .window_at = res_i64(r, row, 18),
                  .window_calls = res_int(r, row, 19),
                  .window_failures = res_int(r, row, 20),
                  .pace_us = res_i64(r, row, 24)},
        .why = res_sv(r, row, 21),
        .used = res_int(r, row, 22),
        .parked = res_i64(r, row, 23),
    };
    out->room = gate_room(&out->params, &out->state, out->used, res_i64(r, row, GATE_COLUMNS), 1);
}

static bool passes(const struct gate_filter *f, const struct gate_view *g)
{
    if (f->shut && g->room.n)
        return false;
    return !f->breaker || g->params.threshold || g->params.percent ||
           g->state.breaker != BREAKER_CLOSED;
}

static bool is_meant(const struct gate_filter *f, const struct limit_row *limit)
{
    return limit->text.p && (!f->limit.p || sv_eq(f->limit, limit->name));
}

/* ---- looking ---- */

struct listing {
    struct pg *p;
    const struct gate_filter *f;
    bool (*each)(void *arg, const struct gate_view *g);
    void *arg;
    bool stopped;
};

static void give(struct listing *l, const struct limit_row *limit, const PGresult *r)
{
    for (int i = 0; i < PQntuples(r) && !l->stopped; i++) {
        struct gate_view g;
        pg_gate_read(r, i, limit, &g);
        if (passes(l->f, &g))
            l->stopped = !l->each(l->arg, &g);
    }
}

/* By value, a page at a time. No name has a control character, so what follows a value is that
 * value with the smallest of them. */
static int list_gates(struct listing *l, const struct limit_row *limit, struct pawl_err *err)
{
    AUTO_STR struct str from = STR_INIT(STR_LINE);
    str_adds(&from, "");
    for (int n = PAGE; n == PAGE && !l->stopped;) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        arg_i64(&a, limit->id);
        arg_text(&a, sv_of(str_cstr(&from)));
        arg_text(&a, l->f->value);
        arg_int(&a, PAGE);
        int rc = pg_look(l->p, STMT_GATES_PAGE, &a, &r, err);
        if (rc < 0)
            return rc;
        n = PQntuples(r);
        give(l, limit, r);
        str_clear(&from);
        if (n)
            str_add(&from, res_sv(r, n - 1, 1));
        str_addc(&from, '\x01');
    }
    return 0;
}

static int read_limits(struct pg *p, struct arena *a, struct limit_row **out, size_t *out_n,
                       struct pawl_err *err)
{
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_limits_read(p, a, out, out_n, err);
    pg_read_end(p);
    return rc;
}

int pg_gates(struct store *s, const struct gate_filter *f,
             bool (*each)(void *arg, const struct gate_view *g), void *arg, struct pawl_err *err)
{
    struct listing l = {.p = pg_of(s), .f = f, .each = each, .arg = arg};
    struct limit_row *limits;
    struct arena arena;
    size_t n = 0;
    arena_init(&arena);
    int rc = read_limits(l.p, &arena, &limits, &n, err);
    for (size_t i = 0; rc == 0 && i < n && !l.stopped; i++)
        if (is_meant(f, &limits[i]))
            rc = list_gates(&l, &limits[i], err);
    arena_done(&arena);
    return rc;
}

/* ---- breakers ---- */

/* What becomes of gates, a column each; rows in the order of their events. */
struct changes {
    struct args args;
    int64_t *ids;
    struct gate_state *states;
    struct sv *why;
    size_t n;
    int *types;
    struct sv *details;
    size_t n_events;
};

static void bind_states(struct changes *c)
{
    int64_t *v = arena_alloc(&c->args.arena, (c->n + 1) * sizeof(*v));
    arg_i64s(&c->args, c->ids, c->n, NULL);
#define COLUMN(member)                                                                             \
    for (size_t i = 0; i < c->n; i++)                                                              \
        v[i] = (int64_t)c->states[i].member;                                                       \
    arg_i64s(&c->args, v, c->n, NULL);
    COLUMN(tat)
    COLUMN(interval_us)
    COLUMN(cut_at)
    COLUMN(raised_at)
    COLUMN(held_until)
    COLUMN(held_at)
    COLUMN(held_n)
    COLUMN(held_asked)
    COLUMN(breaker)
    COLUMN(since)
    COLUMN(until)
    COLUMN(failures)
    COLUMN(opens)
    COLUMN(epoch)
    COLUMN(probe_job)
    COLUMN(probe_fence)
    COLUMN(window_at)
    COLUMN(window_calls)
    COLUMN(window_failures)
    COLUMN(pace_us)
#undef COLUMN
    arg_texts(&c->args, c->why, c->n);
}

static int write_changes(struct pg *p, struct changes *c, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    if (!c->n)
        return 0;
    bind_states(c);
    if (db_query(p, STMT_BREAKER_PUT, &c->args, NULL, err) < 0)
        return err->code;
    arg_ints(&a, c->types, c->n_events, NULL);
    arg_texts(&a, c->details, c->n_events);
    p->ready = true;
    return c->n_events ? db_query(p, STMT_EVENTS_INSERT, &a, NULL, err) : 0;
}

struct breaking {
    struct pg *p;
    const struct gate_filter *f;
    enum breaker_act act;
    struct dur pause;
    struct sv reason;
    struct arena arena;
    struct limit_row *limits;
    size_t n_limits;
    int matched;
};

static struct sv detail_of(const struct gate_view *g, struct arena *a)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE), until = STR_INIT(STR_LINE);
    struct jw w = jw_make(&detail);
    bool timed = g->state.until && g->state.until != INT64_MAX;
    if (timed)
        wall_format((struct wall){g->state.until}, &until);
    jw_object(&w);
    jw_kstring(&w, "limit", g->limit);
    jw_kstring(&w, "value", g->value);
    jw_kstring_or_null(&w, "until", timed ? str_sv(&until) : SV_NONE);
    jw_kstring_or_null(&w, "why", g->why);
    jw_end_object(&w);
    return sv_make(arena_strndup(a, detail.p, detail.len), detail.len);
}

/* False: there is nothing to change. */
static bool act_on(const struct breaking *b, struct gate_view *g, int64_t now)
{
    switch (b->act) {
    case BREAKER_DO_OPEN:
        gate_open(&g->state, b->pause.us, now);
        return true;
    case BREAKER_DO_CLOSE:
        if (g->state.breaker == BREAKER_CLOSED)
            return false;
        gate_close(&g->state, now);
        return true;
    case BREAKER_DO_RESET:
        gate_reset(&g->state, now);
        return true;
    }
    return false;
}

static void change_gate(const struct breaking *b, struct gate_view *g, int64_t id, int64_t now,
                        struct changes *c)
{
    bool open = b->act == BREAKER_DO_OPEN, was_closed = g->state.breaker == BREAKER_CLOSED;
    if (!act_on(b, g, now))
        return;
    g->why = b->reason;
    if (open || !was_closed) {
        c->types[c->n_events] = open ? EVENT_BREAKER_OPENED : EVENT_BREAKER_CLOSED;
        c->details[c->n_events++] = detail_of(g, &c->args.arena);
    }
    c->ids[c->n] = id;
    c->states[c->n] = g->state;
    c->why[c->n++] = open ? b->reason : SV_NONE;
}

static const struct limit_row *limit_of(const struct breaking *b, int64_t id)
{
    for (size_t i = 0; i < b->n_limits; i++)
        if (b->limits[i].id == id)
            return &b->limits[i];
    return NULL;
}

static void change_all(struct breaking *b, const PGresult *r, struct changes *c)
{
    size_t n = (size_t)PQntuples(r) + 1;
    struct arena *a = &c->args.arena;
    c->ids = arena_alloc(a, n * sizeof(*c->ids));
    c->states = arena_alloc(a, n * sizeof(*c->states));
    c->why = arena_alloc(a, n * sizeof(*c->why));
    c->types = arena_alloc(a, n * sizeof(*c->types));
    c->details = arena_alloc(a, n * sizeof(*c->details));
    for (int i = 0; i < PQntuples(r); i++) {
        const struct limit_row *limit = limit_of(b, res_i64(r, i, GATE_COLUMNS - 1));
        struct gate_view g;
        if (!limit)
            continue;
        pg_gate_read(r, i, limit, &g);
        if (!passes(b->f, &g))
            continue;
        b->matched++;
        change_gate(b, &g, res_i64(r, i, 0), res_i64(r, i, GATE_COLUMNS), c);
    }
}

static void bind_gates(struct breaking *b, struct args *a)
{
    int64_t *ids = arena_alloc(&a->arena, (b->n_limits + 1) * sizeof(*ids));
    size_t n = 0;
    for (size_t i = 0; i < b->n_limits; i++)
        if (is_meant(b->f, &b->limits[i]))
            ids[n++] = b->limits[i].id;
    arg_i64s(a, ids, n, NULL);
    arg_text(a, b->f->value);
}

/* The gates are locked in the order of ids, then read: what was being written to them counts. */
static int break_in_op(struct breaking *b, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    struct changes c = {0};
    args_init(&a);
    if (pg_limits_read(b->p, &b->arena, &b->limits, &b->n_limits, err) < 0)
        return err->code;
    bind_gates(b, &a);
    if (db_query(b->p, STMT_BREAKER_LOCK, &a, NULL, err) < 0 ||
        db_query(b->p, STMT_BREAKER_READ, &a, &r, err) < 0)
        return err->code;
    args_init(&c.args);
    change_all(b, r, &c);
    int rc = write_changes(b->p, &c, err);
    pg_args_done(&c.args);
    return rc;
}

int pg_breaker_act(struct store *s, const struct gate_filter *f, enum breaker_act act,
                   struct dur pause, struct sv reason, int *out_n, struct pawl_err *err)
{
    struct breaking b = {.p = pg_of(s), .f = f, .act = act, .pause = pause, .reason = reason};
    if (act == BREAKER_DO_OPEN && !reason.n)
        b.reason = SV("opened by an operator");
    int rc = pg_op_begin(b.p, err);
    if (rc < 0)
        return rc;
    arena_init(&b.arena);
    rc = pg_op_end(b.p, break_in_op(&b, err), err);
    arena_done(&b.arena);
    if (rc == 0)
        *out_n = b.matched;
    return rc;
}
