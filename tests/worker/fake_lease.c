/* Sessions, claims and settles of the fake store. */
#include "fake_parts.h"

#include "mem.h"
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* ---- sessions ---- */

static struct fake_session *session(struct fake *f, int64_t id)
{
    return id >= 1 && id <= f->n_sessions ? &f->sessions[id - 1] : NULL;
}

int op_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                     struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    if (h->f->down) {
        leave(h);
        return err_set(err, h->f->code, "down");
    }
    struct fake_session *v = &h->f->sessions[h->f->n_sessions++];
    *v = (struct fake_session){.id = h->f->n_sessions,
                               .alive = true,
                               .lease_us = spec->lease.us,
                               .until_us = clock_boot().us + spec->lease.us};
    snprintf(v->filter, sizeof(v->filter), "%s", spec->filter);
    *out = (struct session){.id = {v->id}, .lock_fd = -1};
    leave(h);
    return 0;
}

void release_all(struct fake *f, int64_t owner, bool refund)
{
    for (size_t i = f->first_live; i < f->n_jobs; i++)
        if (f->jobs[i].state == JOB_RUNNING && f->jobs[i].owner == owner) {
            f->jobs[i].state = JOB_QUEUED;
            f->jobs[i].attempt -= refund;
        }
}

int op_session_end(struct store *s, struct session *v, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    (void)err;
    enter(h);
    release_all(h->f, v->id.v, true);
    session(h->f, v->id.v)->alive = false;
    leave(h);
    return 0;
}

static void list_cancels(struct fake *f, int64_t owner, struct arena *a, struct renew_result *out)
{
    job_id *v = arena_zalloc(a, f->n_jobs, sizeof(*v));
    for (size_t i = f->first_live; i < f->n_jobs; i++)
        if (f->jobs[i].state == JOB_RUNNING && f->jobs[i].owner == owner && f->jobs[i].cancel_asked)
            v[out->n_cancels++].v = f->jobs[i].id;
    out->cancels = v;
}

int op_renew(struct store *s, const struct renew_request *r, struct arena *a,
             struct renew_result *out, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    struct fake_session *v = session(h->f, r->session->id.v);
    struct renew_result res = {0};
    int rc = h->f->down ? err_set(err, h->f->code, "down") : 0;
    h->f->renewals++;
    if (r->preflight)
        snprintf(h->f->preflight, sizeof(h->f->preflight), "%s", r->preflight);
    if (rc == 0 && (!v->alive || v->until_us < clock_boot().us)) {
        res.stale = true;
    } else if (rc == 0) {
        v->until_us = clock_boot().us + v->lease_us;
        res.command = v->command;
        list_cancels(h->f, v->id, a, &res);
    }
    if (rc == 0)
        *out = res;
    leave(h);
    return rc;
}

/* ---- claims ---- */

static bool pool_takes(const struct claim_pool *p, const char *kind)
{
    for (size_t i = 0; i < p->n_kinds; i++)
        if (sv_eq(p->kinds[i], sv_of(kind)))
            return true;
    return false;
}

static bool admitted(struct fake *f, const struct claim_request *r, const struct fake_job *j)
{
    bool ready =
        j->state == JOB_QUEUED || (j->state == JOB_WAITING && j->available_us <= clock_boot().us);
    if (!ready || paused(f, j->queue) || (r->only.v && r->only.v != j->id))
        return false;
    for (size_t i = 0; i < r->n_queues; i++)
        if (sv_eq(r->queues[i], sv_of(j->queue)))
            return true;
    return r->n_queues == 0;
}

static bool gated(const struct fake *f, const char *kind)
{
    return f->gated && strcmp(f->gated, kind) == 0;
}

/* May it start now? What needs a permit must not wait in the worker. */
static bool gate_admits(const struct fake *f, const struct claim_pool *p, const char *kind,
                        size_t taken)
{
    return !gated(f, kind) || (f->used < f->permits && (int)taken < p->want - p->ahead);
}

static void lease_job(struct fake_job *j, int64_t owner, int pool, struct arena *a,
                      struct lease *out)
{
    j->state = JOB_RUNNING;
    j->owner = owner;
    j->fence++;
    j->attempt++;
    int64_t now = clock_boot().us;
    *out = (struct lease){.id = {j->id},
                          .fence = {j->fence},
                          .queue = sv_of(arena_strndup(a, j->queue, strlen(j->queue))),
                          .kind = sv_of(arena_strndup(a, j->kind, strlen(j->kind))),
                          .payload = SV("null"),
                          .attempt = j->attempt,
                          .transient = j->transient,
                          .max_attempts = j->max_attempts,
                          .created_at = {now},
                          .ready_at = {now},
                          .claimed_at = {now},
                          .pool = pool};
}

static struct dur next_due(struct fake *f)
{
    struct dur d = DUR_NONE;
    for (size_t i = f->first_live; i < f->n_jobs; i++)
        if (f->jobs[i].state == JOB_WAITING) {
            int64_t us = f->jobs[i].available_us - clock_boot().us;
            us = us > 0 ? us : 0;
            if (d.us < 0 || us < d.us)
                d.us = us;
        }
    return d;
}

static void claim(struct fake *f, const struct claim_request *r, struct arena *a,
                  struct claim_result *out)
{
    size_t total = 0, taken[16] = {0};
    for (size_t p = 0; p < r->n_pools; p++)
        total += (size_t)r->pools[p].want;
    out->leases = arena_zalloc(a, total, sizeof(*out->leases));
    while (f->first_live < f->n_jobs && job_state_terminal(f->jobs[f->first_live].state))
        f->first_live++;
    for (size_t i = f->first_live; i < f->n_jobs && out->n < total; i++)
        for (size_t p = 0; p < r->n_pools && admitted(f, r, &f->jobs[i]); p++)
            if (taken[p] < (size_t)r->pools[p].want && pool_takes(&r->pools[p], f->jobs[i].kind) &&
                gate_admits(f, &r->pools[p], f->jobs[i].kind, taken[p])) {
                taken[p]++;
                struct lease *l = &out->leases[out->n++];
                lease_job(&f->jobs[i], r->session->id.v, (int)p, a, l);
                f->used += gated(f, f->jobs[i].kind);
                l->hint.policy = gated(f, f->jobs[i].kind) ? -1 : 0;
            }
    out->next_due = out->n ? DUR_NONE : next_due(f);
}

/* A job comes when the claim has looked and not yet answered; the answer waits until the worker has
 * taken the hint. */
static void come_late(struct handle *h)
{
    struct fake *f = h->f;
    struct pollfd p = {.fd = h->hint, .events = POLLIN};
    insert(f, "q", f->late_kind);
    f->late_kind = NULL;
    push_hint(f);
    while (poll(&p, 1, 0) == 1)
        sched_yield();
}

int op_claim(struct store *s, const struct claim_request *r, struct arena *a,
             struct claim_result *out, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    struct fake *f = h->f;
    enter(h);
    int rc = fault(f, err);
    f->claims++;
    struct fake_session *v = session(f, r->session->id.v);
    struct claim_result res = {.next_due = DUR_NONE};
    if (rc == 0 && (!v->alive || v->until_us < clock_boot().us))
        res.session_stale = true;
    else if (rc == 0 && f->busy)
        res.busy = f->busy-- > 0;
    else if (rc == 0)
        claim(f, r, a, &res);
    if (rc == 0 && res.n == 0 && f->late_kind)
        come_late(h);
    if (rc == 0)
        *out = res;
    leave(h);
    return rc;
}

/* ---- the end of a lease ---- */

static void note_attempt(struct fake_job *j, int64_t fence, enum outcome outcome)
{
    if (j->n_attempts < (int)ARRAY_LEN(j->attempts))
        j->attempts[j->n_attempts++] = (struct fake_attempt){fence, outcome};
}

static void settle(struct fake_job *j, const struct settle *v)
{
    static const enum job_state states[] = {
        [OUTCOME_DONE] = JOB_DONE,       [OUTCOME_SKIPPED] = JOB_SKIPPED,
        [OUTCOME_FAILED] = JOB_FAILED,   [OUTCOME_RETRY] = JOB_WAITING,
        [OUTCOME_RELEASED] = JOB_QUEUED, [OUTCOME_CANCELLED] = JOB_CANCELLED};
    j->state = states[v->outcome];
    j->available_us = clock_boot().us + v->delay.us;
    j->attempt -= v->refund_attempt;
    j->transient += v->count_transient;
    j->terminal_events += job_state_terminal(j->state);
    note_attempt(j, v->fence.v, v->outcome);
    j->throttled = v->throttled;
    j->timed_out = v->timed_out;
    j->retry_after_us = v->retry_after.us;
    snprintf(j->error, sizeof(j->error), SV_FMT, SV_ARG(v->error));
}

int op_settle(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
              struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    int rc = fault(h->f, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct fake_job *j = find(h->f, v[i].id.v);
        bool live = j && j->state == JOB_RUNNING && j->fence == v[i].fence.v;
        out[i] = live ? SETTLE_OK : SETTLE_STALE;
        if (live)
            settle(j, &v[i]);
        if (live && gated(h->f, j->kind))
            h->f->used--;
    }
    leave(h);
    return rc;
}

int op_sweep(struct store *s, const struct sweep_request *r, struct sweep_result *out,
             struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    (void)r;
    enter(h);
    int rc = fault(h->f, err);
    h->f->sweeps++;
    if (rc == 0)
        *out = (struct sweep_result){0};
    leave(h);
    return rc;
}

int op_held(struct store *s, const struct session *v, struct arena *a, struct lease **out,
            size_t *out_n, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    struct fake *f = h->f;
    enter(h);
    int rc = fault(f, err);
    if (rc == 0) {
        struct lease *l = arena_zalloc(a, f->n_jobs, sizeof(*l));
        size_t n = 0;
        for (size_t i = 0; i < f->n_jobs; i++)
            if (f->jobs[i].state == JOB_RUNNING && f->jobs[i].owner == v->id.v)
                l[n++] = (struct lease){.id = {f->jobs[i].id},
                                        .fence = {f->jobs[i].fence},
                                        .queue = SV("q"),
                                        .kind = SV("k"),
                                        .attempt = f->jobs[i].attempt};
        *out = l;
        *out_n = n;
    }
    leave(h);
    return rc;
}
