/* Rows of gates and permits (I7). A gate's state is read once and known until somebody else writes,
 * changed in memory by the functions of gate.h, and written when the operation ends. A lane that
 * met a shut gate is parked on it and in no index of ready work (I11); it is unparked by what opens
 * the gate: the end of a lease, time, an operator, a change of the limits. */
#include "internal.h"

#include "json.h"

enum { UNPARK_MAX = 1000, DUE_MAX = 200, WHY_MAX = 200 };
/* Lanes were unparked and nobody has taken from them: more are tried after this. They may belong to
 * a paused queue, or to kinds that no worker takes now. */
#define RECHECK_US ((int64_t)100000)

static void read_state(sqlite3_stmt *s, struct gate_entry *g)
{
    int64_t v[20];
    for (int i = 0; i < 20; i++)
        v[i] = sqlite3_column_int64(s, 2 + i);
    g->id = sqlite3_column_int64(s, 0);
    g->wake_at = sqlite3_column_type(s, 1) == SQLITE_NULL ? WAKE_NONE : sqlite3_column_int64(s, 1);
    g->state = (struct gate_state){
        .tat = v[0],
        .interval_us = v[1],
        .cut_at = v[2],
        .raised_at = v[3],
        .held_until = v[4],
        .held_at = v[5],
        .held_n = (int)v[6],
        .held_asked = v[7],
        .breaker = (enum breaker_state)v[8],
        .since = v[9],
        .until = v[10],
        .failures = (int)v[11],
        .opens = (int)v[12],
        .epoch = v[13],
        .probe_job = v[14],
        .probe_fence = v[15],
        .window_at = v[16],
        .window_calls = (int)v[17],
        .window_failures = (int)v[18],
        .pace_us = v[19],
    };
}

int gate_load(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    if (q->in_tx && g->loaded == q->gates_no)
        return 0;
    AUTO_STMT s = stmt_get(q, g->id ? STMT_GATE_BY_ID : STMT_GATE_BY_VALUE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id ? g->id : g->limit->id);
    if (!g->id)
        bind_sv(s, 2, g->value);
    int rc = stmt_step(q, s, err, "gate");
    if (rc < 0)
        return rc;
    if (rc == 1) {
        read_state(s, g);
    } else {
        g->id = 0;
        g->wake_at = WAKE_NONE;
        g->state = (struct gate_state){0};
    }
    g->loaded = q->gates_no;
    return 0;
}

/* Both at once, as a claim wants them. */
static int load_counted(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_GATE_COUNTED, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id);
    int rc = stmt_step(q, s, err, "gate");
    if (rc != 1)
        return rc;
    read_state(s, g);
    g->used = sqlite3_column_int(s, 22);
    g->loaded = g->counted = q->gates_no;
    return 0;
}

int gate_count(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    if (g->id && q->in_tx && g->loaded != q->gates_no && load_counted(q, g, err) < 0)
        return err->code;
    if (gate_load(q, g, err) < 0)
        return err->code;
    if (q->in_tx && g->counted == q->gates_no)
        return 0;
    int rc = 0;
    g->used = 0;
    if (g->id) {
        AUTO_STMT s = stmt_get(q, STMT_PERMIT_COUNT, err);
        if (!s)
            return err->code;
        sqlite3_bind_int64(s, 1, g->id);
        rc = stmt_step(q, s, err, "gate");
        if (rc == 1)
            g->used = sqlite3_column_int(s, 0);
    }
    g->counted = q->gates_no;
    return rc < 0 ? rc : 0;
}

int gate_ensure(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    if (gate_load(q, g, err) < 0)
        return err->code;
    if (g->id)
        return 0;
    sqlite3_stmt *s = stmt_get(q, STMT_GATE_INSERT, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->limit->id);
    bind_sv(s, 2, g->value);
    if (stmt_run(q, s, err, "gate") < 0)
        return err->code;
    g->id = sqlite3_last_insert_rowid(q->db);
    return 0;
}

void gate_mark(struct sq *q, struct gate_entry *g)
{
    struct gates *t = &q->gates;
    if (g->dirty)
        return;
    g->dirty = true;
    ARRAY_GROW(t->dirty, t->n_dirty, t->cap_dirty);
    t->dirty[t->n_dirty++] = g;
}

void gate_reopened(struct sq *q, struct gate_entry *g)
{
    struct gates *t = &q->gates;
    if (g->ended || g->wake_at == WAKE_NONE)
        return;
    g->ended = true;
    ARRAY_GROW(t->ended, t->n_ended, t->cap_ended);
    t->ended[t->n_ended++] = g;
}

static int write_gate(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    const struct gate_state *v = &g->state;
    if (gate_ensure(q, g, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, STMT_GATE_WRITE, err);
    if (!s)
        return err->code;
    const int64_t row[] = {v->tat,        v->interval_us,  v->cut_at,          v->raised_at,
                           v->held_until, v->held_at,      v->held_n,          v->held_asked,
                           v->breaker,    v->since,        v->until,           v->failures,
                           v->opens,      v->epoch,        v->probe_job,       v->probe_fence,
                           v->window_at,  v->window_calls, v->window_failures, v->pace_us};
    sqlite3_bind_int64(s, 1, g->id);
    bind_i64_or_null(s, 2, g->wake_at, g->wake_at == WAKE_NONE);
    for (size_t i = 0; i < ARRAY_LEN(row); i++)
        sqlite3_bind_int64(s, 3 + (int)i, row[i]);
    return stmt_run(q, s, err, "gate");
}

/* ---- permits ---- */

int permit_add(struct sq *q, struct gate_entry *g, int64_t job, struct pawl_err *err)
{
    if (gate_ensure(q, g, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, STMT_PERMIT_INSERT, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id);
    sqlite3_bind_int64(s, 2, job);
    if (stmt_run(q, s, err, "permit") < 0)
        return err->code;
    if (g->counted == q->gates_no)
        g->used += sqlite3_changes(q->db);
    return 0;
}

int permits_add(struct sq *q, const struct permit_row *v, size_t n, struct pawl_err *err)
{
    size_t i = 0;
    sqlite3_stmt *s = stmt_get(q, STMT_PERMITS_INSERT, err);
    if (!s)
        return err->code;
    for (; i + PERMITS_AT_ONCE <= n; i += PERMITS_AT_ONCE) {
        for (int k = 0; k < PERMITS_AT_ONCE; k++) {
            sqlite3_bind_int64(s, 1 + 2 * k, v[i + (size_t)k].gate->id);
            sqlite3_bind_int64(s, 2 + 2 * k, v[i + (size_t)k].job);
        }
        if (stmt_run(q, s, err, "permit") < 0)
            return err->code;
        for (int k = 0; k < PERMITS_AT_ONCE; k++)
            v[i + (size_t)k].gate->used++;
    }
    for (; i < n; i++)
        if (permit_add(q, v[i].gate, v[i].job, err) < 0)
            return err->code;
    return 0;
}

int permit_drop(struct sq *q, struct gate_entry *g, int64_t first_job, int64_t last_job,
                struct pawl_err *err)
{
    if (!g->id)
        return 0;
    bool one = first_job == last_job;
    sqlite3_stmt *s = stmt_get(q, one ? STMT_PERMIT_DELETE : STMT_PERMITS_DELETE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id);
    sqlite3_bind_int64(s, 2, first_job);
    if (!one)
        sqlite3_bind_int64(s, 3, last_job);
    if (stmt_run(q, s, err, "permit") < 0)
        return err->code;
    if (g->counted == q->gates_no)
        g->used -= sqlite3_changes(q->db);
    return 0;
}

int permit_has(struct sq *q, const struct gate_entry *g, int64_t job, struct pawl_err *err)
{
    if (!g->id)
        return 0;
    AUTO_STMT s = stmt_get(q, STMT_PERMIT_HAS, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id);
    sqlite3_bind_int64(s, 2, job);
    return stmt_step(q, s, err, "permit");
}

/* ---- what the end of a lease tells ---- */

int gate_event(struct sq *q, enum event_type type, const struct gate_entry *g, job_id job,
               fence_no fence, session_id session, struct sv why, struct pawl_err *err)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    AUTO_STR struct str until = STR_INIT(STR_LINE);
    bool open = g->state.breaker == BREAKER_OPEN && g->state.until != INT64_MAX;
    if (open)
        wall_format((struct wall){g->state.until}, &until);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "limit", g->limit->spec.name);
    jw_kstring(&w, "value", g->value);
    jw_kstring_or_null(&w, "until", str_sv(&until));
    jw_kstring_or_null(&w, "why", why);
    jw_end_object(&w);
    return add_event(q, type, job, fence, session, str_sv(&detail), err);
}

int gate_set_why(struct sq *q, struct gate_entry *g, struct sv why, struct pawl_err *err)
{
    if (gate_ensure(q, g, err) < 0)
        return err->code;
    AUTO_STMT s = stmt_get(q, STMT_GATE_WHY, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, g->id);
    bind_sv(s, 2, why);
    return stmt_run(q, s, err, "gate");
}

/* The error, not cut within a character. */
static struct sv short_error(struct sv error)
{
    if (!error.p || !error.n)
        return SV("no error text");
    if (error.n <= WHY_MAX)
        return error;
    size_t n = WHY_MAX;
    while (n && ((unsigned char)error.p[n] & 0xc0) == 0x80)
        n--;
    return sv_make(error.p, n);
}

/* `was`: the state before the result that opened it. */
static void why_opened(const struct gate_params *p, const struct gate_state *was,
                       enum gate_signal signal, struct sv error, struct str *out)
{
    struct sv e = short_error(error);
    if (was->breaker == BREAKER_HALF_OPEN && signal == SIGNAL_LOST)
        str_adds(out, "the probe was lost");
    else if (was->breaker == BREAKER_HALF_OPEN)
        str_addf(out, "the probe failed: " SV_FMT, SV_ARG(e));
    else if (p->threshold && was->failures + 1 >= p->threshold)
        str_addf(out, "%d transient failures in a row; last: " SV_FMT, was->failures + 1,
                 SV_ARG(e));
    else
        str_addf(out, "%d of %d calls failed; last: " SV_FMT, was->window_failures + 1,
                 was->window_calls + 1, SV_ARG(e));
}

int gate_tell(struct sq *q, struct gate_entry *g, const struct settle *v,
              const struct lease_hint *h, enum gate_signal signal, bool hold, int64_t since,
              struct pawl_err *err)
{
    struct gate_state was = g->state;
    int64_t asked = v->throttled ? v->retry_after.us : -1;
    enum gate_change change = gate_result(&g->limit->params, &g->state, signal, hold, asked, since,
                                          v->id.v, v->fence.v, q->now.us);
    if (change == GATE_SAME)
        return 0;
    gate_mark(q, g);
    if (change == GATE_CLOSED)
        return gate_event(q, EVENT_BREAKER_CLOSED, g, v->id, v->fence, h->session, SV_NONE, err);
    if (change != GATE_OPENED)
        return 0;
    AUTO_STR struct str why = STR_INIT(STR_LINE);
    why_opened(&g->limit->params, &was, signal, v->error, &why);
    if (gate_set_why(q, g, str_sv(&why), err) < 0)
        return err->code;
    return gate_event(q, EVENT_BREAKER_OPENED, g, v->id, v->fence, h->session, str_sv(&why), err);
}

static bool any_about_hosts(const struct lane_entry *l)
{
    for (size_t i = 0; i < l->n_gates; i++)
        if (l->gates[i]->limit->hosts)
            return true;
    return false;
}

int gates_lease_ended(struct sq *q, struct lane_entry *l, const struct settle *v, size_t n,
                      enum outcome in_fact, const struct lease_hint *h, struct pawl_err *err)
{
    lane_gates(q, l);
    bool hosts = any_about_hosts(l);
    for (size_t i = 0; i < l->n_gates; i++) {
        struct gate_entry *g = l->gates[i];
        if (gate_load(q, g, err) < 0 || permit_drop(q, g, v[0].id.v, v[n - 1].id.v, err) < 0)
            return err->code;
        for (size_t k = 0; k < n; k++) {
            const struct lease_hint *of = n == 1 ? h : &v[k].hint;
            if (gate_tell(q, g, &v[k], of, gate_signal_of(&v[k], in_fact),
                          !hosts || g->limit->hosts, of->claimed_at.us, err) < 0)
                return err->code;
        }
        gate_reopened(q, g);
    }
    return 0;
}

/* ---- parking ---- */

int gate_park(struct sq *q, struct lane_entry *l, struct gate_entry *g, struct pawl_err *err)
{
    if (gate_ensure(q, g, err) < 0)
        return err->code;
    sqlite3_stmt *s = stmt_get(q, STMT_LANE_PARK, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, l->id);
    sqlite3_bind_int64(s, 2, g->id);
    if (stmt_run(q, s, err, "park") < 0)
        return err->code;
    head_recompute(q, l->cls);
    if (g->wake_at == WAKE_NONE) {
        g->wake_at = WAKE_NEVER;
        gate_mark(q, g);
    }
    return 0;
}

int gate_set_wake(struct sq *q, struct gate_entry *g, struct pawl_err *err)
{
    if (gate_count(q, g, err) < 0)
        return err->code;
    if (g->wake_at == WAKE_NONE || g->wake_at == 0)
        return 0;
    struct gate_room r = gate_room(&g->limit->params, &g->state, g->used, q->now.us, 1);
    int64_t at = r.until ? r.until : WAKE_NEVER;
    if (r.n) {
        at = q->now.us + RECHECK_US;
        if (g->wake_at > q->now.us && g->wake_at < at)
            at = g->wake_at;
    }
    if (at == g->wake_at)
        return 0;
    g->wake_at = at;
    gate_mark(q, g);
    return 0;
}

/* The best n lanes parked on it become ready work again. */
static int unpark(struct sq *q, int64_t gate, int n, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LANES_UNPARK, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, gate);
    sqlite3_bind_int(s, 2, n);
    int rc;
    while ((rc = stmt_step(q, s, err, "unpark")) == 1) {
        struct class_entry *c;
        if (names_class_by_id(q, sqlite3_column_int64(s, 0), &c, err) < 0)
            return err->code;
        head_recompute(q, c);
        q->wake = true;
    }
    return rc;
}

/* 1 = lanes are parked on it. */
static int has_parked(struct sq *q, int64_t gate, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LANE_PARKED_ANY, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, gate);
    return stmt_step(q, s, err, "unpark");
}

/* How many lanes to unpark. Where there was room before the time of waking, those unparked then did
 * not use it: all the others may try. */
static int unpark_how_many(struct sq *q, const struct gate_entry *g, bool due)
{
    const struct gate_params *p = &g->limit->params;
    if (g->wake_at == 0)
        return UNPARK_MAX;
    int n = gate_room(p, &g->state, g->used, q->now.us, UNPARK_MAX).n;
    if (n && due && gate_room(p, &g->state, g->used, g->wake_at - 1, 1).n)
        return UNPARK_MAX;
    return n;
}

static int open_up(struct sq *q, struct gate_entry *g, bool due, struct pawl_err *err)
{
    if (gate_count(q, g, err) < 0)
        return err->code;
    if (g->wake_at == WAKE_NONE)
        return 0;
    int n = unpark_how_many(q, g, due);
    if (!n)
        return gate_set_wake(q, g, err);
    if (unpark(q, g->id, n, err) < 0)
        return err->code;
    int rc = has_parked(q, g->id, err);
    if (rc != 0)
        return rc < 0 ? rc : gate_set_wake(q, g, err);
    g->wake_at = WAKE_NONE;
    gate_mark(q, g);
    return 0;
}

/* A gate of a limit that is gone. */
static int dissolve(struct sq *q, int64_t gate, struct pawl_err *err)
{
    if (unpark(q, gate, UNPARK_MAX, err) < 0)
        return err->code;
    int rc = has_parked(q, gate, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    AUTO_STMT s = stmt_get(q, STMT_GATE_AWAKE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, gate);
    return stmt_run(q, s, err, "unpark");
}

struct due_gate {
    int64_t id;
    struct gate_entry *entry; /* NULL: its limit is gone */
};

static int read_due(struct sq *q, struct due_gate v[DUE_MAX], struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_GATES_DUE, err);
    if (!s)
        return err->code;
    int n = 0, rc;
    sqlite3_bind_int64(s, 1, q->now.us);
    sqlite3_bind_int(s, 2, DUE_MAX);
    while ((rc = stmt_step(q, s, err, "gates")) == 1) {
        const struct limit_entry *limit = policy_limit(q, sqlite3_column_int64(s, 1));
        v[n++] = (struct due_gate){.id = sqlite3_column_int64(s, 0),
                                   .entry = limit ? gate_of(q, limit, column_sv(s, 2)) : NULL};
    }
    return rc < 0 ? rc : n;
}

int gates_wake_due(struct sq *q, struct pawl_err *err)
{
    struct due_gate v[DUE_MAX];
    int n = read_due(q, v, err);
    for (int i = 0; i < n; i++) {
        int rc = v[i].entry ? open_up(q, v[i].entry, true, err) : dissolve(q, v[i].id, err);
        if (rc < 0)
            return rc;
    }
    return n < 0 ? n : 0;
}

/* Heads first: the best lanes are found by them. */
static int open_ended(struct sq *q, struct pawl_err *err)
{
    struct gates *t = &q->gates;
    if (t->n_ended && heads_flush(q, err) < 0)
        return err->code;
    for (size_t i = 0; i < t->n_ended; i++) {
        t->ended[i]->ended = false;
        if (open_up(q, t->ended[i], false, err) < 0)
            return err->code;
    }
    t->n_ended = 0;
    return 0;
}

int gates_flush(struct sq *q, struct pawl_err *err)
{
    struct gates *t = &q->gates;
    if (open_ended(q, err) < 0)
        return err->code;
    for (size_t i = 0; i < t->n_dirty; i++) {
        if (write_gate(q, t->dirty[i], err) < 0)
            return err->code;
        t->dirty[i]->dirty = false;
    }
    t->n_dirty = 0;
    return 0;
}

void gates_forget(struct sq *q)
{
    struct gates *t = &q->gates;
    free(t->by_name);
    free(t->dirty);
    free(t->ended);
    arena_done(&t->arena);
    *t = (struct gates){0};
    q->policy.made++; /* what lanes remember of them is void */
}
