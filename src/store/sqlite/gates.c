/* Gates as operators see them: each with its state, its use and what waits for it; and their
 * breakers, opened and closed by hand. */
#include "internal.h"

static struct gate_state read_state(sqlite3_stmt *s, int at)
{
    return (struct gate_state){
        .tat = sqlite3_column_int64(s, at),
        .interval_us = sqlite3_column_int64(s, at + 1),
        .cut_at = sqlite3_column_int64(s, at + 2),
        .raised_at = sqlite3_column_int64(s, at + 3),
        .held_until = sqlite3_column_int64(s, at + 4),
        .held_at = sqlite3_column_int64(s, at + 5),
        .held_n = sqlite3_column_int(s, at + 6),
        .held_asked = sqlite3_column_int(s, at + 7),
        .breaker = (enum breaker_state)sqlite3_column_int(s, at + 8),
        .since = sqlite3_column_int64(s, at + 9),
        .until = sqlite3_column_int64(s, at + 10),
        .failures = sqlite3_column_int(s, at + 11),
        .opens = sqlite3_column_int(s, at + 12),
        .epoch = sqlite3_column_int64(s, at + 13),
        .probe_job = sqlite3_column_int64(s, at + 14),
        .probe_fence = sqlite3_column_int64(s, at + 15),
        .window_at = sqlite3_column_int64(s, at + 16),
        .window_calls = sqlite3_column_int(s, at + 17),
        .window_failures = sqlite3_column_int(s, at + 18),
        .pace_us = sqlite3_column_int64(s, at + 19),
    };
}

static int count(struct sq *q, enum stmt_id id, int64_t gate, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, id, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, gate);
    int rc = stmt_step(q, s, err, "gates");
    if (rc == 1)
        *out = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : 0;
}

int gate_view_read(struct sq *q, sqlite3_stmt *s, const struct gate_params *params, int64_t now,
                   struct arena *a, struct gate_view *out, struct pawl_err *err)
{
    int64_t id = sqlite3_column_int64(s, 0), used = 0, parked = 0;
    if (count(q, STMT_PERMIT_COUNT, id, &used, err) < 0 ||
        count(q, STMT_GATE_PARKED, id, &parked, err) < 0)
        return err->code;
    *out = (struct gate_view){.limit = column_copy(s, 1, a),
                              .value = column_copy(s, 2, a),
                              .why = column_copy(s, 4, a),
                              .params = *params,
                              .state = read_state(s, 5),
                              .used = (int)used,
                              .parked = parked};
    out->room = gate_room(params, &out->state, out->used, now, 1);
    return 0;
}

static bool wanted(const struct gate_filter *f, const struct gate_view *g)
{
    bool has_breaker = g->params.threshold || g->params.percent;
    return (!f->shut || g->room.n == 0) &&
           (!f->breaker || has_breaker || g->state.breaker != BREAKER_CLOSED);
}

/* The gates of one limit come one after another: its text is read once. */
struct walk {
    struct arena rows, limits;
    struct sv limit;
    struct gate_params params;
};

static int params_of(struct walk *w, sqlite3_stmt *s, struct pawl_err *err)
{
    struct limit_spec spec;
    if (w->limit.p && sv_eq(w->limit, column_sv(s, 1)))
        return 0;
    arena_reset(&w->limits);
    if (limit_read(column_sv(s, 3), &w->limits, &spec, err) < 0)
        return err->code;
    w->limit = column_copy(s, 1, &w->limits);
    w->params = limit_params(&spec);
    return 0;
}

static int walk_gates(struct sq *q, const struct gate_filter *f, struct walk *w,
                      bool (*each)(void *arg, const struct gate_view *g), void *arg,
                      struct pawl_err *err)
{
    int rc;
    struct gate_view view;
    int64_t now = sq_now(q).us;
    AUTO_STMT s = stmt_get(q, STMT_GATES_LIST, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, f->limit);
    bind_sv(s, 2, f->value);
    while ((rc = stmt_step(q, s, err, "gates")) == 1) {
        arena_reset(&w->rows);
        if (params_of(w, s, err) < 0 ||
            gate_view_read(q, s, &w->params, now, &w->rows, &view, err) < 0)
            return err->code;
        if (wanted(f, &view) && !each(arg, &view))
            return 0;
    }
    return rc;
}

static int all_gates(struct sq *q, const struct gate_filter *f,
                     bool (*each)(void *arg, const struct gate_view *g), void *arg,
                     struct pawl_err *err)
{
    struct walk w = {0};
    arena_init(&w.rows);
    arena_init(&w.limits);
    int rc = walk_gates(q, f, &w, each, arg, err);
    arena_done(&w.rows);
    arena_done(&w.limits);
    return rc;
}

int store_gates(struct store *s, const struct gate_filter *f,
                bool (*each)(void *arg, const struct gate_view *g), void *arg, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = all_gates(q, f, each, arg, err);
    read_end(q);
    return rc;
}

/* ---- breakers by hand ---- */

struct found {
    struct arena arena;
    struct sv (*v)[2]; /* limit, value */
    size_t n, cap;
};

static bool remember(void *arg, const struct gate_view *g)
{
    struct found *f = arg;
    ARRAY_GROW(f->v, f->n, f->cap);
    f->v[f->n][0] = sv_make(arena_strndup(&f->arena, g->limit.p, g->limit.n), g->limit.n);
    f->v[f->n][1] = sv_make(arena_strndup(&f->arena, g->value.p, g->value.n), g->value.n);
    f->n++;
    return true;
}

static int open_by_hand(struct sq *q, struct gate_entry *g, struct dur pause, struct sv reason,
                        struct pawl_err *err)
{
    struct sv why = reason.n ? reason : SV("opened by an operator");
    gate_open(&g->state, pause.us, q->now.us);
    gate_mark(q, g);
    if (gate_set_why(q, g, why, err) < 0 ||
        (g->wake_at != WAKE_NONE && gate_set_wake(q, g, err) < 0))
        return err->code;
    return gate_event(q, EVENT_BREAKER_OPENED, g, (job_id){0}, (fence_no){0}, (session_id){0}, why,
                      err);
}

static int close_by_hand(struct sq *q, struct gate_entry *g, bool reset, struct sv reason,
                         struct pawl_err *err)
{
    bool was_closed = g->state.breaker == BREAKER_CLOSED;
    if (was_closed && !reset)
        return 0;
    if (reset)
        gate_reset(&g->state, q->now.us);
    else
        gate_close(&g->state, q->now.us);
    gate_mark(q, g);
    gate_reopened(q, g);
    if (gate_set_why(q, g, SV_NONE, err) < 0)
        return err->code;
    return was_closed ? 0
                      : gate_event(q, EVENT_BREAKER_CLOSED, g, (job_id){0}, (fence_no){0},
                                   (session_id){0}, reason.n ? reason : SV_NONE, err);
}

static int act_on(struct sq *q, const struct sv *name, enum breaker_act act, struct dur pause,
                  struct sv reason, struct pawl_err *err)
{
    const struct limit_entry *limit = policy_limit_named(q, name[0]);
    if (!limit)
        return err_set(err, PAWL_ECORRUPT, "%s: a gate of no limit", q->path);
    struct gate_entry *g = gate_of(q, limit, name[1]);
    if (gate_load(q, g, err) < 0)
        return err->code;
    if (act == BREAKER_DO_OPEN)
        return open_by_hand(q, g, pause, reason, err);
    return close_by_hand(q, g, act == BREAKER_DO_RESET, reason, err);
}

static int breaker_in_op(struct sq *q, const struct gate_filter *f, enum breaker_act act,
                         struct dur pause, struct sv reason, struct found *found,
                         struct pawl_err *err)
{
    if (policy_load(q, err) < 0)
        return err->code;
    int rc = all_gates(q, f, remember, found, err);
    for (size_t i = 0; rc == 0 && i < found->n; i++)
        rc = act_on(q, found->v[i], act, pause, reason, err);
    q->wake = true;
    return rc;
}

int store_breaker_act(struct store *s, const struct gate_filter *f, enum breaker_act act,
                      struct dur pause, struct sv reason, int *out_n, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct found found = {0};
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    arena_init(&found.arena);
    rc = op_end(q, breaker_in_op(q, f, act, pause, reason, &found, err), err);
    arena_done(&found.arena);
    free(found.v);
    if (rc == 0)
        *out_n = (int)found.n;
    return rc;
}
