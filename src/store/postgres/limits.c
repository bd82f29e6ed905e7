/* Limits: what the configuration and operators say, kept as text and as numbers for the functions
 * of the server. A change holds the lock of the policy alone, so that no claim sees half of it;
 * running jobs count under the new limits at once (I7). */
#include "pg_limits.h"

#include "json.h"

enum { EVENT_TEXT_MAX = 4 * LIMIT_TEXT_MAX };

/* ---- rows ---- */

int pg_limits_read(struct pg *p, struct arena *a, struct limit_row **out, size_t *out_n,
                   struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_LIMITS_ALL, NULL, &r, err);
    if (rc < 0)
        return rc;
    size_t n = (size_t)PQntuples(r);
    struct limit_row *v = arena_zalloc(a, n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        int row = (int)i;
        v[i] = (struct limit_row){.id = res_i64(r, row, 0),
                                  .name = res_copy(r, row, 1, a),
                                  .text = res_copy(r, row, 2, a),
                                  .config = res_copy(r, row, 3, a),
                                  .by_operator = res_int(r, row, 4),
                                  .changed_at = {res_i64(r, row, 5)}};
        if (v[i].text.p && limit_read(v[i].text, a, &v[i].spec, err) < 0)
            return err->code;
    }
    *out = v;
    *out_n = n;
    return 0;
}

static void arg_spec(struct args *a, const struct limit_spec *s)
{
    struct gate_params g = limit_params(s);
    arg_text(a, s->queue);
    arg_text(a, s->kind);
    if (s->n_hosts)
        arg_texts(a, s->hosts, s->n_hosts);
    else
        arg_null_array(a, OID_TEXT_ARRAY);
    arg_int(a, (int)s->each);
    arg_bool(a, s->replaces);
    arg_int(a, g.cap);
    arg_i64(a, g.interval_us);
    arg_int(a, g.burst);
    arg_bool(a, g.adaptive);
    arg_i64(a, g.slowest_us);
    arg_bool(a, g.respect_retry_after);
    arg_i64(a, g.pause_us);
    arg_i64(a, g.max_pause_us);
    arg_int(a, g.threshold);
    arg_int(a, g.percent);
    arg_int(a, g.min_calls);
    arg_i64(a, g.window_us);
    arg_i64(a, g.open_us);
    arg_i64(a, g.max_open_us);
}

int pg_limit_put(struct pg *p, const struct limit_row *row, struct pawl_err *err)
{
    AUTO_ARGS a;
    struct limit_spec spec = limit_default(NULL);
    args_init(&a);
    if (row->text.p && limit_read(row->text, &a.arena, &spec, err) < 0)
        return err->code;
    arg_text(&a, row->name);
    arg_text(&a, row->text);
    arg_text(&a, row->config);
    arg_bool(&a, row->by_operator);
    arg_spec(&a, &spec);
    arg_i64_or_null(&a, row->changed_at.us, !row->changed_at.us);
    return db_query(p, STMT_LIMIT_PUT, &a, NULL, err);
}

static int drop_by_id(struct pg *p, enum stmt_id id, int64_t limit, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, limit);
    return db_query(p, id, &a, NULL, err);
}

static int drop_gates(struct pg *p, int64_t limit, struct pawl_err *err)
{
    int rc = drop_by_id(p, STMT_GATES_LOCK, limit, err);
    return rc < 0 ? rc : drop_by_id(p, STMT_GATES_DROP, limit, err);
}

/* ---- one limit becomes another ---- */

static bool same(struct sv a, struct sv b)
{
    return !a.p == !b.p && sv_eq(a, b);
}

static bool same_row(const struct limit_row *a, const struct limit_row *b)
{
    return same(a->text, b->text) && same(a->config, b->config) && a->by_operator == b->by_operator;
}

/* Gates of the old one that mean nothing under the new one. */
static bool gates_end(const struct limit_row *from, const struct limit_row *to, struct arena *a)
{
    struct pawl_err ignored;
    struct limit_spec spec;
    if (!from->text.p)
        return false;
    return !to->text.p || limit_read(to->text, a, &spec, &ignored) < 0 ||
           spec.each != from->spec.each;
}

static int tell(struct pg *p, const struct limit_row *to, bool by_operator, struct pawl_err *err)
{
    AUTO_STR struct str detail = STR_INIT(EVENT_TEXT_MAX);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "limit", to->name);
    jw_kstring_or_null(&w, "text", to->text);
    jw_kstring(&w, "by",
               by_operator                             ? SV("operator")
               : limit_is_built_in(to->name, to->text) ? SV("built in")
                                                       : SV("config"));
    jw_end_object(&w);
    return pg_add_event(p, to->text.p ? EVENT_LIMIT_SET : EVENT_LIMIT_UNSET, (job_id){0},
                        (fence_no){0}, (session_id){0}, str_sv(&detail), err);
}

static int change_limit(struct pg *p, const struct limit_row *from, struct limit_row *to,
                        struct arena *a, struct pawl_err *err)
{
    to->changed_at.us = 0; /* now */
    if (gates_end(from, to, a) && drop_gates(p, from->id, err) < 0)
        return err->code;
    if (to->text.p || to->config.p)
        return pg_limit_put(p, to, err);
    return drop_by_id(p, STMT_LIMIT_DROP, from->id, err);
}

/* ---- what every change ends with ---- */

static int run(struct pg *p, enum stmt_id id, struct pawl_err *err)
{
    return db_query(p, id, NULL, NULL, err);
}

/* The other limits hold from here on. */
static int take_effect(struct pg *p, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_POLICY_GROW,    STMT_GATES_WAKE,      STMT_RUNNING_LANES,
                                  STMT_RUNNING_MAP,    STMT_PERMITS_DROP,    STMT_PERMITS_ADD,
                                  STMT_ADMITTED_GATES, STMT_ADMITTED_PERMITS};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
        rc = run(p, steps[i], err);
    p->ready = true;
    return rc;
}

/* Jobs before gates, as by whoever ends leases. */
static int lock_running(struct pg *p, struct pawl_err *err)
{
    int rc = pg_by_index(p, err);
    return rc < 0 ? rc : run(p, STMT_RUNNING_LOCK, err);
}

/* ---- the configuration ---- */

/* What it makes of a limit (text p NULL: does not name it): an operator's `set` wins, his `unset`
 * until its text is another. */
static struct limit_row configured(const struct limit_row *row, struct sv text)
{
    struct limit_row v = *row;
    v.config = text;
    if (row->by_operator && (row->text.p || (text.p && same(row->config, text))))
        return v;
    v.text = text;
    v.by_operator = false;
    return v;
}

struct applying {
    struct pg *p;
    const struct policy *policy;
    struct sv text;
    struct arena arena;
    struct limit_row *rows; /* by name */
    size_t n_rows;
    struct limit_row *wanted; /* name and text, by name; built-in ones too */
    size_t n_wanted;
    bool took_effect; /* what holds has changed */
    bool locked;
};

static int compare_names(const void *a, const void *b)
{
    const struct limit_row *x = a, *y = b;
    return sv_cmp(x->name, y->name);
}

static struct sv text_of(const struct limit_spec *s, struct arena *a)
{
    AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
    limit_text(s, &text);
    return sv_make(arena_strndup(a, text.p, text.len), text.len);
}

static void want(struct applying *w, const struct limit_spec *s)
{
    w->wanted[w->n_wanted++] = (struct limit_row){.name = s->name, .text = text_of(s, &w->arena)};
}

static bool is_wanted(const struct applying *w, struct sv name)
{
    for (size_t i = 0; i < w->n_wanted; i++)
        if (sv_eq(w->wanted[i].name, name))
            return true;
    return false;
}

static int read_wanted(struct applying *w, struct pawl_err *err)
{
    const struct policy *policy = w->policy;
    size_t n_built_in;
    const struct limit_spec *built_in = limits_built_in(&n_built_in);
    w->wanted = arena_zalloc(&w->arena, policy->n_limits + n_built_in, sizeof(*w->wanted));
    for (size_t i = 0; i < policy->n_limits; i++) {
        if (limit_check(&policy->limits[i], err) < 0)
            return err->code;
        want(w, &policy->limits[i]);
    }
    for (size_t i = 0; i < n_built_in; i++)
        if (!is_wanted(w, built_in[i].name))
            want(w, &built_in[i]);
    qsort(w->wanted, w->n_wanted, sizeof(*w->wanted), compare_names);
    return 0;
}

static int lock_once(struct applying *w, struct pawl_err *err)
{
    if (w->locked)
        return 0;
    w->locked = true;
    return lock_running(w->p, err);
}

static int apply_one(struct applying *w, const struct limit_row *row, struct sv text,
                     struct pawl_err *err)
{
    struct limit_row to = configured(row, text);
    bool other = !same(row->text, to.text);
    if (same_row(row, &to))
        return 0;
    if (lock_once(w, err) < 0 || change_limit(w->p, row, &to, &w->arena, err) < 0)
        return err->code;
    w->took_effect |= other;
    return other ? tell(w->p, &to, false, err) : 0;
}

/* Those there are and those wanted, merged by name. */
static int apply_limits(struct applying *w, struct pawl_err *err)
{
    size_t i = 0, k = 0, n = w->n_wanted;
    while (i < w->n_rows || k < n) {
        int order = i == w->n_rows ? 1 : k == n ? -1 : sv_cmp(w->rows[i].name, w->wanted[k].name);
        struct limit_row none = {.name = k < n ? w->wanted[k].name : SV_NONE};
        int rc = apply_one(w, order <= 0 ? &w->rows[i] : &none,
                           order >= 0 ? w->wanted[k].text : SV_NONE, err);
        if (rc < 0)
            return rc;
        i += order <= 0;
        k += order >= 0;
    }
    return 0;
}

static int put_policy(struct applying *w, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_text(&a, w->text);
    arg_int(&a, (int)w->policy->order);
    arg_i64(&a, w->policy->aging.us);
    return db_query(w->p, STMT_POLICY_PUT, &a, NULL, err);
}

static const struct limit_row *find(const struct limit_row *v, size_t n, struct sv name)
{
    for (size_t i = 0; i < n; i++)
        if (sv_eq(v[i].name, name))
            return &v[i];
    return NULL;
}

/* Built-in limits of which the store knows nothing come into force. 1 = there were none. */
static int apply_built_in(struct applying *w, struct pawl_err *err)
{
    size_t n;
    int known = 1;
    const struct limit_spec *v = limits_built_in(&n);
    for (size_t i = 0; i < n; i++) {
        const struct limit_row none = {.name = v[i].name},
                               *row = find(w->rows, w->n_rows, v[i].name);
        if (row && row->config.p)
            continue;
        known = 0;
        if (apply_one(w, row ? row : &none, text_of(&v[i], &w->arena), err) < 0)
            return err->code;
    }
    return known;
}

static bool built_in_known(const struct applying *w)
{
    size_t n;
    const struct limit_spec *v = limits_built_in(&n);
    for (size_t i = 0; i < n; i++) {
        const struct limit_row *row = find(w->rows, w->n_rows, v[i].name);
        if (!row || !row->config.p)
            return false;
    }
    return true;
}

static int apply_in_op(struct applying *w, bool *out_changed, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    struct pg *p = w->p;
    if (run(p, STMT_POLICY_LOCK, err) < 0 || db_query(p, STMT_POLICY_READ, NULL, &r, err) < 0 ||
        pg_limits_read(p, &w->arena, &w->rows, &w->n_rows, err) < 0)
        return err->code;
    if (built_in_known(w) && (!w->policy || sv_eq(res_sv(r, 0, 0), w->text)))
        return 0;
    *out_changed = true;
    if (!w->policy) {
        int rc = apply_built_in(w, err);
        return rc < 0 || !w->took_effect ? rc : take_effect(p, err);
    }
    bool reorder = res_int(r, 0, 1) != (int)w->policy->order;
    bool reaged = res_i64(r, 0, 2) != w->policy->aging.us;
    if (read_wanted(w, err) < 0 || apply_limits(w, err) < 0 || put_policy(w, err) < 0)
        return err->code;
    if (reorder && w->policy->order == ORDER_FIFO && run(p, STMT_TURNS_DROP, err) < 0)
        return err->code;
    if (!w->took_effect && !reorder && !reaged)
        return 0;
    return lock_once(w, err) < 0 ? err->code : take_effect(p, err);
}

/* Most starts of a worker bring nothing new: no claim need find the limits locked for it. */
static int built_in_missing(struct applying *w, struct pawl_err *err)
{
    int rc = pg_read_begin(w->p, err);
    if (rc < 0)
        return rc;
    rc = pg_limits_read(w->p, &w->arena, &w->rows, &w->n_rows, err);
    pg_read_end(w->p);
    return rc < 0 ? rc : !built_in_known(w);
}

static int apply_it(struct applying *w, bool *out_changed, struct pawl_err *err)
{
    int rc = w->policy ? 1 : built_in_missing(w, err);
    if (rc != 1)
        return rc;
    rc = pg_op_begin(w->p, err);
    return rc < 0 ? rc : pg_op_end(w->p, apply_in_op(w, out_changed, err), err);
}

int pg_policy_apply(struct store *s, const struct policy *policy, struct sv text, bool *out_changed,
                    struct pawl_err *err)
{
    struct applying w = {.p = pg_of(s), .policy = policy, .text = text};
    bool changed = false;
    arena_init(&w.arena);
    int rc = apply_it(&w, &changed, err);
    arena_done(&w.arena);
    if (rc == 0)
        *out_changed = changed;
    return rc;
}

/* ---- by hand ---- */

/* What the act makes of the limit. */
static enum limit_outcome acted(enum limit_act act, const struct limit_row *row, struct sv text,
                                struct limit_row *to)
{
    switch (act) {
    case LIMIT_SET:
        to->text = text;
        to->by_operator = true;
        return same_row(row, to) ? LIMIT_SAME : LIMIT_OK;
    case LIMIT_UNSET:
        to->text = SV_NONE;
        to->by_operator = true;
        return row->text.p || (!row->id && row->config.p) ? LIMIT_OK : LIMIT_NOT_FOUND;
    case LIMIT_RESET:
        to->text = row->config;
        to->by_operator = false;
        if (!row->config.p)
            return LIMIT_NOT_FOUND;
        return row->by_operator || !row->id ? LIMIT_OK : LIMIT_SAME;
    }
    return LIMIT_NOT_FOUND;
}

static int act_in_op(struct pg *p, enum limit_act act, const struct limit_spec *spec,
                     struct arena *arena, enum limit_outcome *out, struct pawl_err *err)
{
    AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
    struct limit_row *rows;
    size_t n;
    if (run(p, STMT_POLICY_LOCK, err) < 0 || pg_limits_read(p, arena, &rows, &n, err) < 0)
        return err->code;
    const struct limit_row *found = find(rows, n, spec->name);
    struct limit_row row = found ? *found : (struct limit_row){.name = spec->name};
    if (!row.config.p && limit_built_in(spec->name)) /* no worker has brought it yet */
        row.config = text_of(limit_built_in(spec->name), arena);
    if (act == LIMIT_SET)
        limit_text(spec, &text);
    struct limit_row to = row;
    *out = acted(act, &row, str_sv(&text), &to);
    if (*out != LIMIT_OK)
        return 0;
    if (!row.id && n >= LIMITS_MAX)
        return err_set(err, PAWL_EINPUT, "there are %d limits already", LIMITS_MAX);
    if (lock_running(p, err) < 0 || change_limit(p, &row, &to, arena, err) < 0 ||
        take_effect(p, err) < 0)
        return err->code;
    return tell(p, &to, true, err);
}

int pg_limit_act(struct store *s, enum limit_act act, const struct limit_spec *spec,
                 enum limit_outcome *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct arena arena;
    enum limit_outcome outcome = LIMIT_NOT_FOUND;
    if (act == LIMIT_SET && limit_check(spec, err) < 0)
        return err->code;
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    arena_init(&arena);
    rc = pg_op_end(p, act_in_op(p, act, spec, &arena, &outcome, err), err);
    arena_done(&arena);
    if (rc == 0)
        *out = outcome;
    return rc;
}

/* ---- looking ---- */

int pg_policy(struct store *s, struct arena *a, struct limit_view **out, size_t *out_n,
              enum claim_order *out_order, struct dur *out_aging, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    AUTO_RESULT r = NULL;
    struct limit_row *rows;
    size_t n;
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_limits_read(p, a, &rows, &n, err);
    if (rc == 0)
        rc = db_query(p, STMT_POLICY_READ, NULL, &r, err);
    pg_read_end(p);
    if (rc < 0)
        return rc;
    struct limit_view *v = arena_zalloc(a, n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        v[i] = (struct limit_view){.spec = rows[i].spec,
                                   .unset = !rows[i].text.p,
                                   .by_operator = rows[i].by_operator,
                                   .in_config = rows[i].config.p != NULL,
                                   .built_in = limit_is_built_in(rows[i].name, rows[i].config),
                                   .changed_at = rows[i].changed_at};
        v[i].spec.name = rows[i].name;
    }
    *out = v;
    *out_n = n;
    *out_order = (enum claim_order)res_int(r, 0, 1);
    *out_aging = DUR_US(res_i64(r, 0, 2));
    return 0;
}
