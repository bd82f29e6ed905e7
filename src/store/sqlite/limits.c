/* Limits as the configuration and operators set them: text in, text out. A change holds for every
 * claim that begins after it, and the jobs that run count under it at once (I7). */
#include "internal.h"

#include "json.h"

/* The row of one limit; views are good until the next statement that finds one. */
struct limit_row {
    int64_t id; /* 0: none */
    struct sv text, config;
    bool by_operator;
};

/* What one operation changes. */
struct change {
    struct sq *q;
    struct arena arena;
    bool holds; /* something else holds now */
};

static int find_row(struct change *c, struct sv name, struct limit_row *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(c->q, STMT_LIMIT_FIND, err);
    if (!s)
        return err->code;
    *out = (struct limit_row){0};
    bind_sv(s, 1, name);
    int rc = stmt_step(c->q, s, err, "limit");
    if (rc == 1)
        *out = (struct limit_row){.id = sqlite3_column_int64(s, 0),
                                  .text = column_copy(s, 1, &c->arena),
                                  .config = column_copy(s, 2, &c->arena),
                                  .by_operator = sqlite3_column_int(s, 3)};
    return rc < 0 ? rc : 0;
}

static bool same_text(struct sv a, struct sv b)
{
    return (a.p != NULL) == (b.p != NULL) && sv_eq(a, b);
}

static int tell(struct change *c, struct sv name, struct sv text, bool by_operator,
                struct pawl_err *err)
{
    AUTO_STR struct str detail = STR_INIT(2 * LIMIT_TEXT_MAX + STR_LINE);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "limit", name);
    jw_kstring_or_null(&w, "text", text);
    jw_kstring(&w, "by",
               by_operator                     ? SV("operator")
               : limit_is_built_in(name, text) ? SV("built in")
                                               : SV("config"));
    jw_end_object(&w);
    return add_event(c->q, text.p ? EVENT_LIMIT_SET : EVENT_LIMIT_UNSET, (job_id){0}, (fence_no){0},
                     (session_id){0}, str_sv(&detail), err);
}

/* Lanes parked on gates that go are free; the rest of them goes with the permits. */
static int drop_gates(struct change *c, int64_t limit, struct pawl_err *err)
{
    struct sq *q = c->q;
    AUTO_FREE int64_t *classes = NULL;
    size_t n = 0, cap = 0;
    int rc;
    AUTO_STMT unpark = stmt_get(q, STMT_LIMIT_UNPARK, err);
    AUTO_STMT drop = stmt_get(q, STMT_LIMIT_GATES_DROP, err);
    if (!unpark || !drop)
        return err->code;
    sqlite3_bind_int64(unpark, 1, limit);
    while ((rc = stmt_step(q, unpark, err, "limit")) == 1) {
        int64_t class_id = sqlite3_column_int64(unpark, 0);
        if (n && classes[n - 1] == class_id)
            continue;
        ARRAY_GROW(classes, n, cap);
        classes[n++] = class_id;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct class_entry *cls;
        rc = names_class_by_id(q, classes[i], &cls, err);
        if (rc == 0)
            head_recompute(q, cls);
    }
    sqlite3_bind_int64(drop, 1, limit);
    return rc < 0 ? rc : stmt_run(q, drop, err, "limit");
}

/* A limit that now has one gate for each of something else, or none, has no use for its old ones;
 * one whose numbers alone changed keeps what they remember. */
static int keeps_gates(struct change *c, struct sv before, struct sv after, struct pawl_err *err)
{
    struct limit_spec old, new;
    if (!before.p || !after.p)
        return 0;
    if (limit_read(before, &c->arena, &old, err) < 0 || limit_read(after, &c->arena, &new, err) < 0)
        return err->code;
    return old.each == new.each;
}

/* Row `old` of that name becomes (text, config, by_operator); both texts NULL: it goes. */
static int put_row(struct change *c, struct sv name, const struct limit_row *old,
                   const struct limit_row *new, struct pawl_err *err)
{
    struct sq *q = c->q;
    bool gone = !new->text.p && !new->config.p;
    sqlite3_stmt *s = stmt_get(q, gone ? STMT_LIMIT_DELETE : STMT_LIMIT_PUT, err);
    if (!s)
        return err->code;
    if (gone) {
        sqlite3_bind_int64(s, 1, old->id);
    } else {
        bind_sv(s, 1, name);
        bind_sv(s, 2, new->text);
        bind_sv(s, 3, new->config);
        sqlite3_bind_int(s, 4, new->by_operator);
        sqlite3_bind_int64(s, 5, q->now.us);
    }
    if (stmt_run(q, s, err, "limit") < 0)
        return err->code;
    if (same_text(old->text, new->text))
        return 0;
    c->holds = true;
    int keeps = old->text.p ? keeps_gates(c, old->text, new->text, err) : 1;
    return keeps ? (keeps < 0 ? keeps : 0) : drop_gates(c, old->id, err);
}

/* The jobs that run have permits of just those gates that their lanes have now. */
static int renew_permits(struct sq *q, struct pawl_err *err)
{
    AUTO_FREE int64_t *v = NULL; /* lane, job */
    size_t n = 0, cap = 0;
    int rc;
    AUTO_STMT drop = stmt_get(q, STMT_PERMITS_DROP_ALL, err);
    AUTO_STMT s = stmt_get(q, STMT_RUNNING_LANES, err);
    if (!drop || !s || stmt_run(q, drop, err, "limit") < 0)
        return err->code;
    while ((rc = stmt_step(q, s, err, "limit")) == 1)
        for (int i = 0; i < 2; i++) {
            ARRAY_GROW(v, n, cap);
            v[n++] = sqlite3_column_int64(s, i);
        }
    for (size_t i = 0; rc == 0 && i < n; i += 2) {
        struct lane_entry *lane;
        if (names_lane_by_id(q, v[i], &lane, err) < 0)
            return err->code;
        lane_gates(q, lane);
        for (size_t k = 0; rc == 0 && k < lane->n_gates; k++)
            rc = permit_add(q, lane->gates[k], v[i + 1], err);
    }
    return rc < 0 ? rc : admitted_renew(q, err);
}

static int make_hold(struct change *c, struct pawl_err *err)
{
    struct sq *q = c->q;
    if (!c->holds)
        return 0;
    if (policy_bump(q, err) < 0 || policy_load(q, err) < 0)
        return err->code;
    q->wake = true;
    return renew_permits(q, err);
}

/* ---- built in ---- */

/* Its text; p NULL: there is none of that name. */
static struct sv built_in_text(struct change *c, struct sv name)
{
    AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
    const struct limit_spec *s = limit_built_in(name);
    if (!s)
        return SV_NONE;
    limit_text(s, &text);
    return sv_make(arena_strndup(&c->arena, text.p, text.len), text.len);
}

/* 1 = the store knows of all of them. */
static int built_in_known(struct change *c, struct pawl_err *err)
{
    size_t n;
    const struct limit_spec *v = limits_built_in(&n);
    for (size_t i = 0; i < n; i++) {
        struct limit_row row = {0};
        if (find_row(c, v[i].name, &row, err) < 0)
            return err->code;
        if (!row.config.p)
            return 0;
    }
    return 1;
}

/* ---- by hand ---- */

static int check_number(struct sq *q, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LIMIT_COUNT, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "limit");
    if (rc == 1 && sqlite3_column_int64(s, 0) >= LIMITS_MAX)
        return err_set(err, PAWL_EINPUT, "there are %d limits already: no more are allowed",
                       LIMITS_MAX);
    return rc < 0 ? rc : 0;
}

/* What an act makes of a row. */
static enum limit_outcome acted(enum limit_act act, struct sv text, const struct limit_row *old,
                                struct limit_row *new)
{
    switch (act) {
    case LIMIT_SET:
        *new = (struct limit_row){.text = text, .config = old->config, .by_operator = true};
        return old->by_operator && same_text(old->text, text) ? LIMIT_SAME : LIMIT_OK;
    case LIMIT_UNSET:
        *new = (struct limit_row){.config = old->config, .by_operator = true};
        return old->text.p || (!old->id && old->config.p) ? LIMIT_OK : LIMIT_NOT_FOUND;
    case LIMIT_RESET:
        *new = (struct limit_row){.text = old->config, .config = old->config};
        if (!old->config.p)
            return LIMIT_NOT_FOUND;
        return old->by_operator || !old->id ? LIMIT_OK : LIMIT_SAME;
    }
    return LIMIT_SAME;
}

static int act_in_op(struct change *c, enum limit_act act, const struct limit_spec *spec,
                     enum limit_outcome *out, struct pawl_err *err)
{
    AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
    struct limit_row old, new;
    if (act == LIMIT_SET)
        limit_text(spec, &text);
    if (text.overflow)
        return err_set(err, PAWL_EINPUT, "the limit's text is longer than %d bytes",
                       LIMIT_TEXT_MAX);
    if (policy_load(c->q, err) < 0 || find_row(c, spec->name, &old, err) < 0)
        return err->code;
    if (!old.config.p) /* no worker has brought it yet */
        old.config = built_in_text(c, spec->name);
    *out = acted(act, str_sv(&text), &old, &new);
    if (*out != LIMIT_OK)
        return 0;
    if ((!old.text.p && new.text.p &&check_number(c->q, err) < 0) ||
        put_row(c, spec->name, &old, &new, err) < 0 || tell(c, spec->name, new.text, true, err) < 0)
        return err->code;
    return make_hold(c, err);
}

int store_limit_act(struct store *s, enum limit_act act, const struct limit_spec *spec,
                    enum limit_outcome *out, struct pawl_err *err)
{
    struct change c = {.q = sq_of(s)};
    enum limit_outcome outcome = LIMIT_SAME;
    if (act == LIMIT_SET && limit_check(spec, err) < 0)
        return err->code;
    int rc = op_begin(c.q, err);
    if (rc < 0)
        return rc;
    arena_init(&c.arena);
    rc = op_end(c.q, act_in_op(&c, act, spec, &outcome, err), err);
    arena_done(&c.arena);
    if (rc == 0)
        *out = outcome;
    return rc;
}

/* ---- by configuration ---- */

/* What the configuration makes of a row when it says `text` of it; NULL: nothing. An operator's own
 * stays, and what he removed stays away while the configuration says the same of it. */
static struct limit_row configured(const struct limit_row *old, struct sv text)
{
    if (old->by_operator && old->text.p)
        return (struct limit_row){.text = old->text, .config = text, .by_operator = true};
    if (old->by_operator && old->id && same_text(old->config, text))
        return *old;
    return (struct limit_row){.text = text, .config = text};
}

static int configure(struct change *c, struct sv name, struct sv text, struct pawl_err *err)
{
    struct limit_row old;
    if (find_row(c, name, &old, err) < 0)
        return err->code;
    struct limit_row new = configured(&old, text);
    bool same = same_text(old.text, new.text);
    if (same && same_text(old.config, new.config) && old.by_operator == new.by_operator)
        return 0;
    if (put_row(c, name, &old, &new, err) < 0)
        return err->code;
    return same ? 0 : tell(c, name, new.text, false, err);
}

static const struct limit_spec *named(const struct policy *p, struct sv name)
{
    for (size_t i = 0; i < p->n_limits; i++)
        if (sv_eq(p->limits[i].name, name))
            return &p->limits[i];
    return NULL;
}

static int read_names(struct change *c, struct sv **out, size_t *out_n, struct pawl_err *err)
{
    size_t cap = 0;
    int rc;
    AUTO_STMT s = stmt_get(c->q, STMT_LIMITS_ALL, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(c->q, s, err, "limits")) == 1) {
        ARRAY_GROW(*out, *out_n, cap);
        (*out)[(*out_n)++] = column_copy(s, 1, &c->arena);
    }
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

/* Every name there is, in the store, in the configuration or built in, once and in order. */
static int all_names(struct change *c, const struct policy *p, struct sv **out, size_t *out_n,
                     struct pawl_err *err)
{
    AUTO_FREE struct sv *stored = NULL;
    size_t n = 0, kept = 0, n_built_in;
    const struct limit_spec *built_in = limits_built_in(&n_built_in);
    if (read_names(c, &stored, &n, err) < 0)
        return err->code;
    struct sv *v = mem_zalloc(n + p->n_limits + n_built_in, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[i] = stored[i];
    for (size_t i = 0; i < p->n_limits; i++)
        v[n++] = p->limits[i].name;
    for (size_t i = 0; i < n_built_in; i++)
        v[n++] = built_in[i].name;
    qsort(v, n, sizeof(*v), compare_names);
    for (size_t i = 0; i < n; i++)
        if (!i || !sv_eq(v[i], v[kept - 1]))
            v[kept++] = v[i];
    *out = v;
    *out_n = kept;
    return 0;
}

static int configure_all(struct change *c, const struct policy *p, struct pawl_err *err)
{
    AUTO_FREE struct sv *names = NULL;
    size_t n = 0;
    int rc = all_names(c, p, &names, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
        const struct limit_spec *spec = named(p, names[i]);
        if (!spec)
            spec = limit_built_in(names[i]);
        if (spec)
            limit_text(spec, &text);
        if (text.overflow)
            return err_set(err, PAWL_EINPUT, "limit " SV_FMT " is longer than %d bytes",
                           SV_ARG(names[i]), LIMIT_TEXT_MAX);
        rc = configure(c, names[i], str_sv(&text), err);
    }
    return rc;
}

/* Those of which the store knows nothing. */
static int configure_built_in(struct change *c, struct pawl_err *err)
{
    size_t n;
    const struct limit_spec *v = limits_built_in(&n);
    for (size_t i = 0; i < n; i++) {
        struct limit_row row = {0};
        if (find_row(c, v[i].name, &row, err) < 0)
            return err->code;
        if (!row.config.p && configure(c, v[i].name, built_in_text(c, v[i].name), err) < 0)
            return err->code;
    }
    return 0;
}

static int set_number(struct change *c, const char *key, int64_t v, struct pawl_err *err)
{
    int64_t old = 0;
    int rc = meta_get(c->q, key, &old, err);
    if (rc < 0 || old == v)
        return rc < 0 ? rc : 0;
    c->holds = true;
    return meta_set(c->q, key, v, err);
}

/* In the order of ids no lane has a turn; that may make another lane the best of its class. */
static int drop_turns(struct sq *q, struct pawl_err *err)
{
    AUTO_STMT turns = stmt_get(q, STMT_TURNS_DROP, err);
    AUTO_STMT best = stmt_get(q, STMT_CLASSES_BEST, err);
    if (!turns || !best || stmt_run(q, turns, err, "limits") < 0)
        return err->code;
    return sqlite3_changes(q->db) ? stmt_run(q, best, err, "limits") : 0;
}

/* 1 = the same text was applied last, by a pawl with the same built-in limits. p NULL: no text. */
static int applied_before(struct change *c, const struct policy *p, struct sv text,
                          struct pawl_err *err)
{
    int rc = built_in_known(c, err);
    if (rc != 1 || !p)
        return rc;
    AUTO_STMT s = stmt_get(c->q, STMT_META_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("policy_text"));
    rc = stmt_step(c->q, s, err, "limits");
    return rc == 1 ? sv_eq(column_sv(s, 0), text) : rc;
}

static int set_applied(struct sq *q, struct sv text, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_SET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("policy_text"));
    bind_sv(s, 2, text);
    return stmt_run(q, s, err, "limits");
}

static int apply_in_op(struct change *c, const struct policy *p, struct sv text, bool *out_changed,
                       struct pawl_err *err)
{
    int rc = applied_before(c, p, text, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    *out_changed = true;
    if (!p) {
        if (policy_load(c->q, err) < 0 || configure_built_in(c, err) < 0)
            return err->code;
        return make_hold(c, err);
    }
    if (policy_load(c->q, err) < 0 || configure_all(c, p, err) < 0 ||
        set_number(c, "claim_order", p->order, err) < 0 ||
        set_number(c, "aging", p->aging.us, err) < 0 || set_applied(c->q, text, err) < 0 ||
        (p->order == ORDER_FIFO && drop_turns(c->q, err) < 0))
        return err->code;
    return make_hold(c, err);
}

/* Most starts of a worker bring nothing new: they need not wait for the turn to write. */
static int nothing_new(struct change *c, const struct policy *p, struct sv text,
                       struct pawl_err *err)
{
    int rc = read_begin(c->q, err);
    if (rc < 0)
        return rc;
    rc = applied_before(c, p, text, err);
    read_end(c->q);
    return rc;
}

static int check_policy(const struct policy *p, struct pawl_err *err)
{
    for (size_t i = 0; i < p->n_limits; i++)
        if (limit_check(&p->limits[i], err) < 0)
            return err->code;
    return p->n_limits > LIMITS_MAX ? err_set(err, PAWL_EINPUT, "more than %d limits", LIMITS_MAX)
                                    : 0;
}

int store_policy_apply(struct store *s, const struct policy *p, struct sv text, bool *out_changed,
                       struct pawl_err *err)
{
    struct change c = {.q = sq_of(s)};
    bool changed = false;
    if (p && check_policy(p, err) < 0)
        return err->code;
    arena_init(&c.arena);
    int rc = nothing_new(&c, p, text, err);
    if (rc == 0)
        rc = op_begin(c.q, err);
    if (rc == 0)
        rc = op_end(c.q, apply_in_op(&c, p, text, &changed, err), err);
    arena_done(&c.arena);
    if (rc < 0)
        return rc;
    *out_changed = changed;
    return 0;
}

/* ---- looking ---- */

static int read_limits(struct sq *q, struct arena *a, struct limit_view **out, size_t *out_n,
                       struct pawl_err *err)
{
    AUTO_FREE struct limit_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_LIMITS_ALL, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "limits")) == 1) {
        bool unset = sqlite3_column_type(s, 2) == SQLITE_NULL;
        ARRAY_GROW(v, n, cap);
        v[n] = (struct limit_view){.spec.name = column_copy(s, 1, a),
                                   .unset = unset,
                                   .in_config = sqlite3_column_type(s, 3) != SQLITE_NULL,
                                   .built_in = limit_is_built_in(column_sv(s, 1), column_sv(s, 3)),
                                   .by_operator = sqlite3_column_int(s, 4),
                                   .changed_at = {sqlite3_column_int64(s, 5)}};
        if (!unset && limit_read(column_sv(s, 2), a, &v[n].spec, err) < 0)
            return err->code;
        n++;
    }
    *out = arena_alloc(a, (n + 1) * sizeof(**out));
    if (n)
        memcpy(*out, v, n * sizeof(*v));
    *out_n = n;
    return rc;
}

int store_policy(struct store *s, struct arena *a, struct limit_view **out, size_t *out_n,
                 enum claim_order *out_order, struct dur *out_aging, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int64_t order = 0, aging = 0;
    struct limit_view *v = NULL;
    size_t n = 0;
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_limits(q, a, &v, &n, err);
    if (rc == 0)
        rc = meta_get(q, "claim_order", &order, err);
    if (rc >= 0)
        rc = meta_get(q, "aging", &aging, err);
    read_end(q);
    if (rc < 0)
        return rc;
    *out = v;
    *out_n = n;
    *out_order = (enum claim_order)order;
    *out_aging = (struct dur){aging};
    return 0;
}
