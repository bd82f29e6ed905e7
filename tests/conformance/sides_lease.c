/* Sessions and leases: operations with arguments by chance, on both sides. */
#include "sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH_MAX = 12 };

/* ---- sessions ---- */

static int pick_worker(struct sides *r)
{
    int from = roll(r, N_WORKERS);
    for (int i = 0; i < N_WORKERS; i++)
        if (r->lives[(from + i) % N_WORKERS] == WORKER_LIVES)
            return (from + i) % N_WORKERS;
    return from;
}

/* Mostly one that lives, often one that has something to do. */
static int pick_any_worker(struct sides *r)
{
    if (roll(r, 3) == 0 && (r->lives[r->busy] == WORKER_LIVES || roll(r, 4) == 0))
        return r->busy;
    return roll(r, 15) ? pick_worker(r) : roll(r, N_WORKERS);
}

static void begin_session(struct sides *r, int w)
{
    char name[32];
    snprintf(name, sizeof(name), "host%d:%d", w % 3, 100 + w);
    struct session_spec spec = {.name = name,
                                .host = "here",
                                .pid = 100 + w,
                                .slots = 1 + w,
                                .pools = roll(r, 3) ? "{\"k\":2,\"*\":1}" : NULL,
                                .filter = roll(r, 3) ? "{\"queues\":[\"red\"]}" : NULL,
                                .lease = LONG_TIME};
    say(r, "session_begin %d", w);
    counted(r, OP_session_begin);
    EACH_SIDE(r, d)
    answer(d, d->s->ops->session_begin(d->s, &spec, &d->workers[w], &d->e));
    r->lives[w] = WORKER_LIVES;
    memset(r->metrics[w], 0, sizeof(r->metrics[w]));
}

static void end_session(struct sides *r, int w)
{
    say(r, "session_end %d", w);
    counted(r, OP_session_end);
    EACH_SIDE(r, d)
    answer(d, d->s->ops->session_end(d->s, &d->workers[w], &d->e));
    r->lives[w] = roll(r, 3) ? WORKER_NONE : WORKER_OVER;
}

/* May one that lives end or (expired 1) expire? Less than half of all must be expired: who is to
 * blame for more is told by locks on one store, by the times of renewals on the other. */
static bool may_leave(const struct sides *r, int expired)
{
    int live = -1;
    for (int i = 0; i < N_WORKERS; i++) {
        live += r->lives[i] == WORKER_LIVES;
        expired += r->lives[i] == WORKER_EXPIRED;
    }
    return expired < live;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* In the order of their numbers: theirs is not part of the contract. */
static void add_sorted(struct side *d, const char *name, int64_t *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare_numbers);
    str_addf(&d->text, "%s", name);
    for (size_t i = 0; i < n; i++)
        str_addf(&d->text, " %lld", (long long)v[i]);
    str_addc(&d->text, '\n');
}

static void add_renewed(struct side *d, const struct renew_result *out)
{
    int64_t *v = arena_alloc(&d->a, (out->n_cancels + out->n_revoked + 1) * sizeof(*v));
    str_addf(&d->text, "stale %d command %d\n", out->stale, out->command);
    for (size_t i = 0; i < out->n_cancels; i++)
        v[i] = ids_number(&d->jobs, out->cancels[i].v);
    add_sorted(d, "cancels", v, out->n_cancels);
    for (size_t i = 0; i < out->n_revoked; i++)
        v[i] = ids_number(&d->jobs, out->revoked[i].id.v) * 1000000 + out->revoked[i].fence.v;
    add_sorted(d, "revoked", v, out->n_revoked);
}

static void renew(struct sides *r, int w, struct dur lease, const struct progress *progress,
                  size_t n, bool metrics)
{
    int running = roll(r, 5);
    counted(r, OP_renew);
    EACH_SIDE(r, d)
    {
        struct progress *here = arena_alloc(&d->a, (n + 1) * sizeof(*here));
        for (size_t i = 0; i < n; i++) {
            here[i] = progress[i];
            here[i].id.v = ids_native(&d->jobs, progress[i].id.v);
        }
        struct renew_request req = {.session = &d->workers[w],
                                    .lease = lease,
                                    .progress = here,
                                    .n_progress = n,
                                    .metrics = metrics ? r->metrics[w] : NULL,
                                    .running = running};
        struct renew_result out;
        if (answer(d, d->s->ops->renew(d->s, &req, &d->a, &out, &d->e)) == 0)
            add_renewed(d, &out);
    }
}

static void expire_session(struct sides *r, int w)
{
    say(r, "renew %d for 1 us", w);
    renew(r, w, DUR_US(1), NULL, 0, false);
    r->lives[w] = WORKER_EXPIRED;
    usleep(200);
}

void op_session(struct sides *r)
{
    int w = roll(r, 2) ? roll(r, N_WORKERS) : r->busy;
    if (r->lives[w] == WORKER_NONE || r->lives[w] == WORKER_OVER)
        begin_session(r, w);
    else if (r->lives[w] == WORKER_EXPIRED)
        end_session(r, w);
    else if (may_leave(r, 1) && roll(r, 3))
        expire_session(r, w);
    else if (may_leave(r, 0))
        end_session(r, w);
}

/* Metrics are kept per handle between renewals: a worker renews on one, and outside of groups. */
void op_renew(struct sides *r)
{
    struct progress p[3];
    size_t n = (size_t)roll(r, 4);
    int w = pick_any_worker(r);
    bool metrics = !r->in_group && roll(r, 2);
    say(r, "renew %d metrics %d progress", w, metrics);
    for (size_t i = 0; i < n; i++) {
        const struct known *j = pick_in(r, JOB_RUNNING);
        p[i] = (struct progress){.id = {j ? j->id : pick_job(r)},
                                 .fence = {(j ? j->fence : 1) + (roll(r, 6) == 0)},
                                 .json = roll(r, 2) ? SV("{\"at\":1}") : SV("\"half\"")};
        say(r, " %lld/%lld", (long long)p[i].id.v, (long long)p[i].fence.v);
    }
    for (int i = 0; metrics && i < 5; i++)
        r->metrics[w][roll(r, 6) * (N_METRICS - 1) / 5] += roll(r, 1000);
    if (metrics) {
        r->handle = 0;
        EACH_SIDE(r, d)
        d->s = d->handles[0];
    }
    renew(r, w, LONG_TIME, p, n, metrics);
}

/* ---- claiming and settling ---- */

static bool order_is_plain(struct side *d)
{
    struct limit_view *v;
    enum claim_order order;
    struct dur aging;
    size_t n = 0;
    int rc = d->s->ops->policy(d->s, &d->a, &v, &n, &order, &aging, &d->e);
    bool limited = false;
    for (size_t i = 0; i < n; i++)
        limited |= !v[i].unset;
    return rc == 0 && !limited && order == ORDER_FIFO;
}

static void note_hint(struct side *d, const struct lease *l)
{
    int64_t i = ids_number(&d->jobs, l->id.v);
    if (i < 0)
        return;
    if ((size_t)i >= d->n_hints) {
        size_t n = (size_t)i * 2 + 64;
        d->hints = mem_realloc(d->hints, n, sizeof(*d->hints));
        memset(d->hints + d->n_hints, 0, (n - d->n_hints) * sizeof(*d->hints));
        d->n_hints = n;
    }
    d->hints[i] = l->hint;
}

static void add_lease(const struct sides *r, struct side *d, const struct lease *l)
{
    str_addf(&d->text, "lease %lld/%lld pool %d p%d a%d t%d l%d max %d timeout %lld",
             (long long)ids_number(&d->jobs, l->id.v), (long long)l->fence.v, l->pool, l->priority,
             l->attempt, l->transient, l->lost, l->max_attempts, (long long)l->timeout.us);
    str_addf(&d->text, " " SV_FMT " " SV_FMT " key %d " SV_FMT " host %d " SV_FMT " " SV_FMT,
             SV_ARG(l->queue), SV_ARG(l->kind), l->key.p != NULL, SV_ARG(l->key), l->host.p != NULL,
             SV_ARG(l->host), SV_ARG(l->payload));
    str_addf(&d->text, " %lld %lld %lld\n", (long long)mask_wall(r, l->created_at).us,
             (long long)mask_wall(r, l->ready_at).us, (long long)mask_wall(r, l->claimed_at).us);
    if (l->hint.lane)
        note_hint(d, l);
}

static void claim(struct sides *r, int w, const struct claim_request *req, bool limited)
{
    counted(r, OP_claim);
    EACH_SIDE(r, d)
    {
        struct claim_request here = *req;
        struct claim_result out;
        here.session = &d->workers[w];
        here.only.v = req->only.v ? ids_native(&d->jobs, req->only.v) : 0;
        if (answer(d, store_claim(d->s, &here, &d->a, &out, &d->e)) < 0)
            continue;
        if (out.n)
            r->busy = w;
        str_addf(&d->text, "claimed %zu stale %d", out.n, out.session_stale);
        if (!limited)
            str_addf(&d->text, " next %lld", (long long)mask_left(out.next_due));
        str_addc(&d->text, '\n');
        for (size_t i = 0; i < out.n; i++)
            add_lease(r, d, &out.leases[i]);
    }
}

/* Under limits lanes wait, and which of them is looked at again when is the store's own business;
 * in fair order the same holds for lanes that were never served, and turns are times. Jobs are
 * claimed by their ids then. */
static void claim_by_id(struct sides *r, int w)
{
    const struct sv kinds[] = {sv_of(kind_names[0]), sv_of(kind_names[1]), sv_of(kind_names[2])};
    for (int n = 1 + roll(r, 2); n > 0; n--) {
        const struct claim_pool pool = {kinds, 3, 1 + roll(r, 3), 0};
        const struct known *j = roll(r, 10) ? pick_in(r, JOB_QUEUED) : NULL;
        const struct claim_request req = {
            .pools = &pool, .n_pools = 1, .only = {j ? j->id : pick_job(r)}};
        say(r, "; claim %d only %lld", w, (long long)req.only.v);
        claim(r, w, &req, true);
    }
}

void op_claim(struct sides *r)
{
    if (!order_is_plain(r->side)) {
        claim_by_id(r, pick_any_worker(r));
        return;
    }
    struct sv kinds[3], queues[4];
    struct claim_pool pools[3];
    struct claim_request req = {.pools = pools, .queues = queues};
    int w = pick_any_worker(r);
    bool one_pool = roll(r, 2);
    req.n_pools = one_pool ? 1 : 3;
    say(r, "claim %d pools", w);
    for (int k = 0; k < 3; k++) {
        kinds[k] = sv_of(kind_names[k]);
        int want = roll(r, 8) ? roll(r, 5) : 10 + roll(r, 30);
        pools[k] =
            (struct claim_pool){one_pool ? kinds : &kinds[k],
                                one_pool ? 3 - (size_t)roll(r, 3) * (size_t)roll(r, 2) : 1, want};
        say(r, " %zu:%d", pools[k].n_kinds, want);
        if (one_pool)
            break;
    }
    for (int k = 0; k < 3; k++)
        kinds[k] = sv_of(kind_names[k]);
    for (int n = roll(r, 5) ? 0 : 1 + roll(r, 2); n > 0; n--)
        queues[req.n_queues++] = pick_queue(r);
    req.only.v = roll(r, 8) ? 0 : pick_job(r);
    say(r, " only %lld queues", (long long)req.only.v);
    for (size_t i = 0; i < req.n_queues; i++)
        say(r, " " SV_FMT, SV_ARG(queues[i]));
    claim(r, w, &req, false);
}

static void add_held(const struct sides *r, struct side *d, struct lease *v, size_t n)
{
    for (int64_t last = 0; n;) { /* by number */
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (v[i].id.v > last && (best == n || v[i].id.v < v[best].id.v))
                best = i;
        if (best == n)
            return;
        last = v[best].id.v;
        struct lease l = v[best];
        l.pool = 0;
        add_lease(r, d, &l);
    }
}

void op_held(struct sides *r)
{
    int w = pick_any_worker(r);
    say(r, "held %d", w);
    counted(r, OP_held);
    EACH_SIDE(r, d)
    {
        struct lease *v = NULL;
        size_t n = 0;
        if (answer(d, d->s->ops->held(d->s, &d->workers[w], &d->a, &v, &n, &d->e)) < 0)
            continue;
        str_addf(&d->text, "held %zu\n", n);
        add_held(r, d, v, n);
    }
}

static void pick_failure(struct sides *r, struct settle *v)
{
    static const enum fail_class classes[] = {CLASS_TRANSIENT, CLASS_ERROR, CLASS_FATAL};
    v->cls = classes[roll(r, 3)];
    if (roll(r, 8))
        v->error = pick_error(r);
    v->exit_code = roll(r, 3) ? roll(r, 128) : -1;
    if (v->cls != CLASS_TRANSIENT)
        return;
    v->throttled = roll(r, 3) == 0;
    v->timed_out = roll(r, 3) == 0;
    v->retry_after = roll(r, 3) ? (struct dur){roll(r, 2) - 1} : LONG_TIME;
}

static struct settle pick_settle(struct sides *r, const struct known *j)
{
    static const enum outcome outcomes[] = {OUTCOME_DONE,     OUTCOME_SKIPPED,   OUTCOME_FAILED,
                                            OUTCOME_RELEASED, OUTCOME_CANCELLED, OUTCOME_RETRY,
                                            OUTCOME_RETRY,    OUTCOME_FAILED,    OUTCOME_DONE};
    static const enum wait_reason reasons[] = {WAIT_BACKOFF, WAIT_RETRY_AFTER, WAIT_ASKED};
    struct settle v = {.id = {j->id},
                       .fence = {j->fence},
                       .outcome = outcomes[roll(r, 9)],
                       .exit_code = -1,
                       .log_bytes = roll(r, 3) ? 0 : roll(r, 5000)};
    if (v.fence.v < 1 || roll(r, 12) == 0) /* a late writer */
        v.fence.v += v.fence.v > 1 ? -1 : 1;
    if (v.outcome == OUTCOME_FAILED || v.outcome == OUTCOME_RETRY)
        pick_failure(r, &v);
    if (v.outcome == OUTCOME_RETRY) {
        v.refund_attempt = roll(r, 2);
        v.count_transient = roll(r, 2);
        v.delay = roll(r, 3) ? DUR_US(0) : LONG_TIME;
        v.reason = reasons[roll(r, 3)];
    }
    if (roll(r, 4) == 0)
        v.result = roll(r, 2) ? SV("{\"r\": [1]}") : SV("null");
    if (roll(r, 4) == 0)
        v.started_at.us = r->now.us - 1000;
    if (roll(r, 4) == 0)
        v.peer = pick_peer(r);
    say(r, " [%lld/%lld %s %d result %d peer '" SV_FMT "'", (long long)v.id.v, (long long)v.fence.v,
        outcome_name(v.outcome), v.cls, v.result.p != NULL, SV_ARG(v.peer));
    say(r, " refund %d transient %d delay %lld throttled %d timed out %d after %lld]",
        v.refund_attempt, v.count_transient, (long long)v.delay.us, v.throttled, v.timed_out,
        (long long)v.retry_after.us);
    return v;
}

static void pick_children(struct sides *r, struct settle *v)
{
    size_t n = 1 + (size_t)roll(r, 3);
    struct job_spec *specs = arena_alloc(&r->a, n * sizeof(*specs));
    say(r, " children");
    for (size_t i = 0; i < n; i++) {
        specs[i] = pick_spec(r);
        if (roll(r, 200) == 0)
            specs[i].priority = PRIORITY_MAX + 1;
        say_spec(r, &specs[i]);
    }
    v->children = specs;
    v->n_children = n;
    r->look = true;
}

static struct settle settle_for(struct side *d, const struct settle *s, bool hint)
{
    struct settle v = *s;
    struct job_spec *specs = arena_alloc(&d->a, (s->n_children + 1) * sizeof(*specs));
    v.id.v = ids_native(&d->jobs, s->id.v);
    if (hint && (size_t)s->id.v < d->n_hints)
        v.hint = d->hints[s->id.v];
    for (size_t i = 0; i < s->n_children; i++)
        specs[i] = spec_for(d, &s->children[i]);
    v.children = specs;
    return v;
}

/* A lease hint is that of the job's last claim: with an older fence there is none. */
static void settle(struct sides *r, const struct settle *v, const bool *hints, size_t n)
{
    counted(r, OP_settle);
    EACH_SIDE(r, d)
    {
        struct settle *here = arena_alloc(&d->a, n * sizeof(*here));
        enum settle_outcome *out = arena_zalloc(&d->a, n, sizeof(*out));
        for (size_t i = 0; i < n; i++)
            here[i] = settle_for(d, &v[i], hints[i]);
        if (answer(d, store_settle(d->s, here, n, out, &d->e)) < 0)
            continue;
        for (size_t i = 0; i < n; i++)
            str_addf(&d->text, "%d\n", out[i]);
    }
}

/* Jobs from a running one on, all ended alike under its fence: a store may treat them as one. */
static size_t pick_alike(struct sides *r, struct settle *v, bool *hints)
{
    const struct known *first = pick_in(r, JOB_RUNNING), *end = r->jobs + r->n_jobs;
    size_t n = 0;
    bool leave = roll(r, 2);
    for (const struct known *j = first; j && j < end && n < BATCH_MAX; j++) {
        if (j->fence < 1)
            continue;
        v[n] = (struct settle){
            .id = {j->id}, .fence = {first->fence}, .exit_code = -1, .outcome = OUTCOME_DONE};
        if (leave && roll(r, 2))
            pick_left(r, &v[n]);
        hints[n++] = true;
    }
    say(r, " %zu alike from %lld", n, first ? (long long)first->id : 0);
    return n;
}

static size_t pick_settles(struct sides *r, struct settle *v, bool *hints)
{
    if (roll(r, 8) == 0)
        return pick_alike(r, v, hints);
    size_t n = 1 + (size_t)roll(r, roll(r, 3) ? 3 : BATCH_MAX), got = 0;
    for (size_t i = 0; i < n; i++) {
        const struct known *j = roll(r, 15) ? pick_in(r, JOB_RUNNING) : NULL;
        if (!j && r->n_jobs && roll(r, 3) == 0)
            j = &r->jobs[roll(r, r->n_jobs)];
        if (!j)
            continue;
        v[got] = pick_settle(r, j);
        hints[got] = v[got].fence.v == j->fence && j->state == JOB_RUNNING && roll(r, 2);
        if (roll(r, 3) == 0)
            pick_left(r, &v[got]);
        if (roll(r, 10) == 0)
            pick_children(r, &v[got]);
        got++;
        if (got < BATCH_MAX && roll(r, 25) == 0) { /* twice */
            v[got] = v[got - 1];
            hints[got] = hints[got - 1];
            got++;
            i++;
        }
    }
    return got;
}

void op_settle(struct sides *r)
{
    struct settle v[BATCH_MAX + 1] = {0};
    bool hints[BATCH_MAX + 1] = {0};
    say(r, "settle");
    size_t n = pick_settles(r, v, hints);
    settle(r, v, hints, n);
}

void op_sweep(struct sides *r)
{
    int self = roll(r, 2) ? pick_worker(r) : -1;
    struct sweep_request req = {.max_sessions = roll(r, 5) ? 100 : 1,
                                .max_jobs = roll(r, 5) ? 1000 : 1 + roll(r, 3),
                                .max_lost = 1 + roll(r, 3),
                                .lost_delay = roll(r, 2) ? LONG_TIME : DUR_US(0)};
    if (self >= 0 && r->lives[self] != WORKER_LIVES)
        self = -1;
    say(r, "sweep self %d sessions %d jobs %d lost %d", self, req.max_sessions, req.max_jobs,
        req.max_lost);
    counted(r, OP_sweep);
    EACH_SIDE(r, d)
    {
        struct sweep_result out;
        req.self = self >= 0 ? &d->workers[self] : NULL;
        if (answer(d, d->s->ops->sweep(d->s, &req, &out, &d->e)) == 0)
            str_addf(&d->text, "sessions %d requeued %d poisoned %d more %d\n", out.sessions,
                     out.requeued, out.poisoned, out.more);
    }
}
