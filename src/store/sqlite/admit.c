/* Hosts beside its lane's that a running job asks: a redirect leads there (I3, I7). It is kept
 * which hosts these are; which gates they have follows from the limits, as for lanes. Permits of
 * these gates are like those of the lane's: they count, and they go with the lease. */
#include "internal.h"

/* A full gate opens with the end of somebody else's lease: nobody knows when. */
#define FULL_WAIT DUR_MS(250)
#define LONG_WAIT DUR_S(3600)

/* ---- letting in ---- */

struct admitting {
    struct sq *q;
    const struct lease_ref *job;
    struct lease_hint hint;
    struct gate_entry **gates; /* of which it has no permit yet */
    size_t n;
};

/* The gates are kept of which the job has no permit. */
static int drop_held(struct admitting *w, struct pawl_err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (gate_count(w->q, w->gates[i], err) < 0)
            return err->code;
        int rc = permit_has(w->q, w->gates[i], w->job->id.v, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            w->gates[kept++] = w->gates[i];
    }
    w->n = kept;
    return 0;
}

static int64_t wait_for(const struct gate_room *r, int64_t now)
{
    if (!r->until)
        return FULL_WAIT.us;
    return r->until - now < LONG_WAIT.us ? r->until - now : LONG_WAIT.us;
}

/* Of the shut ones the one that lets it wait longest. NULL: none is shut. */
static const struct gate_entry *find_shut(const struct admitting *w, int64_t *out_wait)
{
    const struct gate_entry *found = NULL;
    int64_t now = w->q->now.us;
    for (size_t i = 0; i < w->n; i++) {
        const struct gate_entry *g = w->gates[i];
        struct gate_room r = gate_room(&g->limit->params, &g->state, g->used, now, 1);
        if (r.n)
            continue;
        int64_t wait = wait_for(&r, now);
        if (!found || wait > *out_wait ||
            (wait == *out_wait && sv_cmp(g->limit->spec.name, found->limit->spec.name) < 0)) {
            found = g;
            *out_wait = wait;
        }
    }
    return found;
}

/* As a start there: the rate goes on, an open breaker has its probe (I8). */
static int take(struct admitting *w, struct gate_entry *g, struct pawl_err *err)
{
    struct sq *q = w->q;
    if (permit_add(q, g, w->job->id.v, err) < 0)
        return err->code;
    bool probe =
        gate_take(&g->limit->params, &g->state, 1, w->job->id.v, w->job->fence.v, q->now.us);
    gate_mark(q, g);
    if (probe && gate_event(q, EVENT_BREAKER_PROBED, g, w->job->id, w->job->fence, w->hint.session,
                            SV_NONE, err) < 0)
        return err->code;
    return g->wake_at == WAKE_NONE ? 0 : gate_set_wake(q, g, err);
}

static int remember(struct admitting *w, struct sv host, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(w->q, STMT_ADMITTED_INSERT, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, w->job->id.v);
    bind_sv(s, 2, host);
    sqlite3_bind_int64(s, 3, w->q->now.us);
    w->q->admitted_no = 0;
    return stmt_run(w->q, s, err, "admit");
}

static int admit_gates(struct admitting *w, struct sv host, struct arena *a, struct admission *out,
                       struct pawl_err *err)
{
    int64_t wait = 0;
    if (drop_held(w, err) < 0)
        return err->code;
    const struct gate_entry *shut = find_shut(w, &wait);
    if (shut) {
        AUTO_STR struct str text = STR_INIT(STR_LINE);
        str_addf(&text, SV_FMT "=" SV_FMT, SV_ARG(shut->limit->spec.name), SV_ARG(shut->value));
        *out = (struct admission){ADMIT_SHUT, DUR_US(wait),
                                  sv_make(arena_strndup(a, text.p, text.len), text.len)};
        return 0;
    }
    for (size_t i = 0; i < w->n; i++)
        if (take(w, w->gates[i], err) < 0)
            return err->code;
    out->outcome = ADMIT_OK;
    return remember(w, host, err);
}

static int admit_in_op(struct admitting *w, struct sv host, struct arena *a, struct admission *out,
                       struct pawl_err *err)
{
    struct lane_entry *lane;
    int rc = policy_load(w->q, err);
    if (rc == 0)
        rc = lease_find(w->q, w->job->id, w->job->fence, &w->hint, err);
    out->outcome = rc == 1 ? ADMIT_OK : ADMIT_STALE;
    if (rc != 1)
        return rc;
    if (names_lane_by_id(w->q, w->hint.lane, &lane, err) < 0)
        return err->code;
    if (sv_eq(lane->host, host))
        return 0;
    w->n = host_gates(w->q, lane->cls, host, &w->gates);
    rc = admit_gates(w, host, a, out, err);
    free(w->gates);
    return rc;
}

int store_admit(struct store *s, const struct lease_ref *job, struct sv host, struct arena *a,
                struct admission *out, struct pawl_err *err)
{
    struct admitting w = {.q = sq_of(s), .job = job};
    struct admission result = {0};
    int rc = op_begin(w.q, err);
    if (rc < 0)
        return rc;
    rc = op_end(w.q, admit_in_op(&w, host, a, &result, err), err);
    if (rc == 0)
        *out = result;
    return rc;
}

int admitted_any(struct sq *q, struct pawl_err *err)
{
    if (q->in_tx && q->admitted_no && q->admitted_no == q->gates_no)
        return q->admitted;
    AUTO_STMT s = stmt_get(q, STMT_ADMITTED_ANY, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "admitted");
    q->admitted = rc == 1;
    q->admitted_no = rc < 0 ? 0 : q->gates_no;
    return rc;
}

int admitted_between(struct sq *q, job_id first, job_id last, struct pawl_err *err)
{
    int rc = admitted_any(q, err);
    if (rc != 1)
        return rc;
    AUTO_STMT s = stmt_get(q, STMT_ADMITTED_BETWEEN, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, first.v);
    sqlite3_bind_int64(s, 2, last.v);
    return stmt_step(q, s, err, "admitted");
}

int admitted_renew(struct sq *q, struct pawl_err *err)
{
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_ADMITTED_ALL, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "admitted")) == 1) {
        struct lane_entry *lane;
        AUTO_FREE struct gate_entry **gates = NULL;
        if (names_lane_by_id(q, sqlite3_column_int64(s, 0), &lane, err) < 0)
            return err->code;
        size_t n = host_gates(q, lane->cls, column_sv(s, 2), &gates);
        for (size_t i = 0; i < n; i++)
            if (permit_add(q, gates[i], sqlite3_column_int64(s, 1), err) < 0)
                return err->code;
    }
    return rc;
}

/* ---- the end ---- */

/* A gate that the lease had a permit of. */
struct ended_gate {
    struct gate_entry *gate;
    int64_t since;
    bool told; /* the end is about this one's host */
};

struct ended_gates {
    struct ended_gate *v;
    size_t n, cap;
};

static struct ended_gate *add_gate(struct ended_gates *e, struct gate_entry *g, int64_t since)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->v[i].gate == g)
            return &e->v[i];
    ARRAY_GROW(e->v, e->n, e->cap);
    e->v[e->n] = (struct ended_gate){.gate = g, .since = since};
    return &e->v[e->n++];
}

static int add_admitted(struct sq *q, const struct lane_entry *l, job_id job, struct ended_gates *e,
                        bool *out_any, struct pawl_err *err)
{
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_ADMITTED_OF, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, job.v);
    while ((rc = stmt_step(q, s, err, "settle")) == 1) {
        AUTO_FREE struct gate_entry **gates = NULL;
        size_t n = host_gates(q, l->cls, column_sv(s, 0), &gates);
        for (size_t i = 0; i < n; i++)
            add_gate(e, gates[i], sqlite3_column_int64(s, 1));
        *out_any = true;
    }
    return rc;
}

/* Of the gates it had permits of, those of that host. */
static void mark_peer(struct sq *q, const struct lane_entry *l, struct sv peer,
                      struct ended_gates *e)
{
    AUTO_FREE struct gate_entry **gates = NULL;
    size_t n = host_gates(q, l->cls, peer, &gates);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < e->n; k++)
            e->v[k].told = e->v[k].told || e->v[k].gate == gates[i];
}

static int forget(struct sq *q, job_id job, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_ADMITTED_DELETE, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, job.v);
    q->admitted_no = 0;
    return stmt_run(q, s, err, "settle");
}

static int tell_gates(struct sq *q, const struct ended_gates *e, const struct settle *v,
                      enum gate_signal signal, const struct lease_hint *h, struct pawl_err *err)
{
    bool hosts[2] = {false, false}; /* of those told and the others: some are about hosts */
    for (size_t i = 0; i < e->n; i++)
        if (e->v[i].gate->limit->hosts)
            hosts[e->v[i].told] = true;
    for (size_t i = 0; i < e->n; i++) {
        struct gate_entry *g = e->v[i].gate;
        bool told = e->v[i].told;
        if (gate_load(q, g, err) < 0 || permit_drop(q, g, v->id.v, v->id.v, err) < 0 ||
            gate_tell(q, g, v, h, told ? signal : gate_signal_aside(signal),
                      !hosts[told] || g->limit->hosts, e->v[i].since, err) < 0)
            return err->code;
        gate_reopened(q, g);
    }
    return 0;
}

int gates_hosts_ended(struct sq *q, struct lane_entry *l, const struct settle *v,
                      enum outcome in_fact, const struct lease_hint *h, struct pawl_err *err)
{
    struct ended_gates e = {0};
    bool any = false;
    lane_gates(q, l);
    for (size_t i = 0; i < l->n_gates; i++)
        add_gate(&e, l->gates[i], h->claimed_at.us)->told = !v->peer.p;
    int rc = add_admitted(q, l, v->id, &e, &any, err);
    if (v->peer.p)
        mark_peer(q, l, v->peer, &e);
    if (rc == 0)
        rc = tell_gates(q, &e, v, gate_signal_of(v, in_fact), h, err);
    if (rc == 0 && any)
        rc = forget(q, v->id, err);
    free(e.v);
    return rc;
}

/* ---- pace ---- */

static int pace_in_op(struct sq *q, const struct lease_ref *job, struct sv host, struct dur apart,
                      int *out_gates, struct pawl_err *err)
{
    struct lane_entry *lane;
    struct lease_hint hint;
    AUTO_FREE struct gate_entry **gates = NULL;
    int rc = policy_load(q, err);
    if (rc == 0)
        rc = lease_find(q, job->id, job->fence, &hint, err);
    if (rc != 1)
        return rc;
    if (names_lane_by_id(q, hint.lane, &lane, err) < 0)
        return err->code;
    size_t n = host_gates(q, lane->cls, host, &gates);
    for (size_t i = 0; i < n; i++) {
        struct gate_entry *g = gates[i];
        if (g->limit->spec.each != EACH_HOST)
            continue;
        if (gate_load(q, g, err) < 0)
            return err->code;
        gate_pace(&g->limit->params, &g->state, apart.us, q->now.us);
        gate_mark(q, g);
        gate_reopened(q, g);
        ++*out_gates;
    }
    return 0;
}

int store_pace(struct store *s, const struct lease_ref *job, struct sv host, struct dur apart,
               int *out_gates, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int n = 0, rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    rc = op_end(q, pace_in_op(q, job, host, apart, &n, err), err);
    if (rc == 0)
        *out_gates = n;
    return rc;
}
