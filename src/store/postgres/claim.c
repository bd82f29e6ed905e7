/* Claiming (I2, I3, I7, I11): one call of pawl.claim, which says of itself how it works
 * (sql/functions.sql). Kept here: from where on wakes are looked at. Those below were folded
 * before, and the rows that folding deleted would be walked over again and again while an old
 * transaction of somebody else keeps them from being cleaned up. A wake of a slow transaction has a
 * low number, so all of them are looked at again from time to time, within a tenth of the time. */
#include "pg.h"

#define WAKE_PERIOD DUR_S(2)
#define BUSY_PAUSE  DUR_MS(2)

enum column {
    COL_ID,
    COL_FENCE,
    COL_RANK,
    COL_ATTEMPT,
    COL_TRANSIENT,
    COL_LOST,
    COL_AVAILABLE,
    COL_LANE,
    COL_POOL,
    COL_QUEUE,
    COL_KIND,
    COL_HOST,
    COL_KEY,
    COL_PAYLOAD,
    COL_CREATED,
    COL_MAX_ATTEMPTS,
    COL_TIMEOUT,
    COL_CLAIMED,
    COL_POLICY,
};

static void bind_claim(struct args *a, const struct claim_request *r)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < r->n_pools; i++)
        n += r->pools[i].n_kinds;
    struct sv *kinds = arena_alloc(&a->arena, (n + 1) * sizeof(*kinds));
    int *pools = arena_alloc(&a->arena, (n + 1) * sizeof(*pools));
    int *wants = arena_alloc(&a->arena, (r->n_pools + 1) * sizeof(*wants));
    int *aheads = arena_alloc(&a->arena, (r->n_pools + 1) * sizeof(*aheads));
    for (size_t i = 0; i < r->n_pools; i++) {
        wants[i] = r->pools[i].want > 0 ? r->pools[i].want : 0;
        aheads[i] = r->pools[i].ahead;
        for (size_t j = 0; j < r->pools[i].n_kinds; j++) {
            kinds[k] = r->pools[i].kinds[j];
            pools[k++] = (int)i;
        }
    }
    arg_i64(a, r->session->id.v);
    arg_texts(a, kinds, n);
    arg_ints(a, pools, n, NULL);
    arg_ints(a, wants, r->n_pools, NULL);
    arg_ints(a, aheads, r->n_pools, NULL);
    if (r->n_queues)
        arg_texts(a, r->queues, r->n_queues);
    else
        arg_null_array(a, OID_TEXT_ARRAY);
    arg_i64_or_null(a, r->only.v, !r->only.v);
}

static void read_lease(const PGresult *r, int row, session_id session, struct arena *a,
                       struct lease *out)
{
    *out = (struct lease){
        .id = {res_i64(r, row, COL_ID)},
        .fence = {res_i64(r, row, COL_FENCE)},
        .priority = -res_int(r, row, COL_RANK),
        .attempt = res_int(r, row, COL_ATTEMPT),
        .transient = res_int(r, row, COL_TRANSIENT),
        .lost = res_int(r, row, COL_LOST),
        .ready_at = {res_i64(r, row, COL_AVAILABLE)},
        .pool = res_int(r, row, COL_POOL),
        .queue = res_copy(r, row, COL_QUEUE, a),
        .kind = res_copy(r, row, COL_KIND, a),
        .host = res_copy(r, row, COL_HOST, a),
        .key = res_copy(r, row, COL_KEY, a),
        .payload = res_copy(r, row, COL_PAYLOAD, a),
        .created_at = {res_i64(r, row, COL_CREATED)},
        .max_attempts = res_int(r, row, COL_MAX_ATTEMPTS),
        .timeout = {res_i64(r, row, COL_TIMEOUT)},
        .claimed_at = {res_i64(r, row, COL_CLAIMED)},
    };
    out->hint = (struct lease_hint){.lane = res_i64(r, row, COL_LANE),
                                    .session = session,
                                    .claimed_at = out->claimed_at,
                                    .attempt = out->attempt,
                                    .priority = out->priority,
                                    .policy = res_i64(r, row, COL_POLICY)};
}

/* ---- from which wake on ---- */

static int64_t wakes_from(struct pg *p, bool *out_all)
{
    struct boot now = clock_boot();
    *out_all = now.us - p->wake_full.us >= 10 * p->wake_cost.us;
    return *out_all ? 0 : p->wake_from;
}

static void note_wakes(struct pg *p, bool all, struct boot start, int64_t newest)
{
    struct boot now = clock_boot();
    if (all) {
        p->wake_full = now;
        p->wake_cost = DUR_US(now.us - start.us);
        if (p->wake_cost.us < 5000)
            p->wake_cost.us = 0; /* cheap: there is no reason to spare it */
    }
    if (newest > p->wake_newest[0])
        p->wake_newest[0] = newest;
    if (now.us - p->wake_turn.us < WAKE_PERIOD.us)
        return;
    p->wake_turn = now;
    p->wake_from = p->wake_newest[1] + 1;
    p->wake_newest[1] = p->wake_newest[0];
}

/* ---- the claim ---- */

/* The last row is about the claim itself. */
static void read_head(const PGresult *r, int row, struct claim_result *out)
{
    out->session_stale = res_i64(r, row, COL_FENCE) == 1;
    out->next_due = DUR_NONE;
    if (!res_null(r, row, COL_AVAILABLE)) {
        int64_t left = res_i64(r, row, COL_AVAILABLE) - res_i64(r, row, COL_CREATED);
        out->next_due.us = left > 0 ? left : 0;
    }
    out->busy = res_int(r, row, COL_ATTEMPT) == 1;
    if (out->busy && (out->next_due.us < 0 || out->next_due.us > BUSY_PAUSE.us))
        out->next_due = BUSY_PAUSE;
}

static int claim_in_op(struct pg *p, const struct claim_request *req, struct arena *arena,
                       struct claim_result *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    bool all;
    struct boot start = clock_boot();
    args_init(&a);
    bind_claim(&a, req);
    arg_i64(&a, wakes_from(p, &all));
    int rc = db_query(p, STMT_CLAIM, &a, &r, err);
    if (rc < 0)
        return rc;
    if (PQntuples(r) < 1)
        return err_set(err, PAWL_EINTERNAL, "%s: the claim answered nothing", p->place);
    int last = PQntuples(r) - 1;
    read_head(r, last, out);
    note_wakes(p, all, start, res_i64(r, last, COL_LANE));
    p->freed &= out->session_stale; /* what it freed and does not take now it looks at again */
    out->n = (size_t)last;
    out->leases = arena_alloc(arena, (out->n + 1) * sizeof(*out->leases));
    for (int i = 0; i < last; i++) {
        read_lease(r, i, req->session->id, arena, &out->leases[i]);
        if (res_null(r, i, COL_POLICY))
            out->leases[i].hint.policy = res_i64(r, last, COL_POLICY);
    }
    p->effort.rows += 2 * (int64_t)out->n;
    return 0;
}

int pg_claim(struct store *s, const struct claim_request *req, struct arena *a,
             struct claim_result *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct claim_result result = {.next_due = {-1}};
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, claim_in_op(p, req, a, &result, err), err);
    if (rc == 0)
        *out = result;
    return rc;
}

/* What the session holds. The lock waits for a claim of an older connection of ours that may still
 * be committing. */
static int held_in_op(struct pg *p, const struct session *session, struct arena *arena,
                      struct lease **out, size_t *out_n, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, session->id.v);
    int rc = db_query(p, STMT_SESSION_LOCK, &a, NULL, err);
    if (rc == 0)
        rc = db_query(p, STMT_HELD, &a, &r, err);
    if (rc < 0)
        return rc;
    size_t n = (size_t)PQntuples(r);
    *out = arena_alloc(arena, (n + 1) * sizeof(**out));
    for (size_t i = 0; i < n; i++)
        read_lease(r, (int)i, session->id, arena, &(*out)[i]);
    *out_n = n;
    return 0;
}

int pg_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
            size_t *out_n, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    return pg_op_end(p, held_in_op(p, session, a, out, out_n, err), err);
}
