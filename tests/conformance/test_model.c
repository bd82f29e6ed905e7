/* Random operations over several handles, each compared with the model; the whole state every few
 * steps. PAWL_TEST_SEED replays a run, PAWL_TEST_STEPS makes it longer. */
#include "fixture.h"
#include "model.h"

#include <sys/random.h>
#include <unistd.h>

enum { N_HANDLES = 3, COMPARE_EVERY = 10, JOBS_WANTED = 70, BATCH_MAX = 40 };
static const char *const queue_names[M_QUEUES] = {"red", "green", "blue"};
static const char *const kind_names[M_KINDS] = {"k", "fetch", "parse"};
static const char *const host_names[M_HOSTS] = {NULL, "a.example", "b.example"};

struct run {
    struct fixture *f;
    struct store *handles[N_HANDLES];
    struct model m;
    uint64_t rng;
    long step, steps;
};

static unsigned next(struct run *r)
{
    r->rng ^= r->rng << 13;
    r->rng ^= r->rng >> 7;
    r->rng ^= r->rng << 17;
    return (unsigned)(r->rng >> 32);
}

static int roll(struct run *r, int n)
{
    return (int)(next(r) % (unsigned)n);
}

static struct m_job *any_job(struct run *r)
{
    return r->m.n ? &r->m.jobs[roll(r, r->m.n)] : NULL;
}

/* A job in that state, looked for from a random place on; NULL if none. */
static struct m_job *any_in(struct run *r, enum job_state state)
{
    int from = r->m.n ? roll(r, r->m.n) : 0;
    for (int i = 0; i < r->m.n; i++) {
        struct m_job *j = &r->m.jobs[(from + i) % r->m.n];
        if (j->state == state)
            return j;
    }
    return NULL;
}

static struct m_session *any_session(struct run *r)
{
    return &r->m.sessions[roll(r, M_SESSIONS)];
}

static struct m_spec random_spec(struct run *r)
{
    int newest = (int)(r->step * (M_KEYS - 64) / r->steps) + 40; /* keys come into use slowly */
    struct m_spec s = {.queue = roll(r, M_QUEUES),
                       .kind = roll(r, M_KINDS),
                       .host = roll(r, M_HOSTS),
                       .key = roll(r, 3) ? newest - roll(r, 40) : -1,
                       .priority = roll(r, 5) - 2,
                       .max_attempts = roll(r, 4)};
    int when = roll(r, 8);
    s.when = when == 0 ? M_NEVER : when <= 2 ? M_NEXT : M_NOW;
    return s;
}

static struct job_spec real_spec(struct run *r, const struct m_spec *s)
{
    struct job_spec v = spec(queue_names[s->queue], kind_names[s->kind], s->priority);
    v.host = sv_of(host_names[s->host]);
    v.max_attempts = s->max_attempts;
    if (s->when == M_NEVER && s->key % 2 == 0)
        v.at.us = clock_wall().us + HOUR.us;
    else if (s->when != M_NOW)
        v.delay = s->when == M_NEXT ? DUR_US(1) : HOUR;
    if (s->key >= 0) {
        char *key = arena_alloc(&r->f->a, 16);
        snprintf(key, 16, "key%d", s->key);
        v.key = sv_of(key);
    }
    return v;
}

/* Few and mixed, or many alike: a store may treat those as one. */
static int random_batch(struct run *r, struct m_spec *specs)
{
    bool alike = roll(r, 10) == 0;
    int n = 1 + roll(r, alike ? BATCH_MAX : 6);
    for (int i = 0; i < n; i++) {
        specs[i] = alike && i ? specs[0] : random_spec(r);
        if (alike)
            specs[i].key = -1;
    }
    return n;
}

static void op_add(struct run *r)
{
    struct fixture *f = r->f;
    struct m_spec specs[BATCH_MAX];
    struct job_spec v[BATCH_MAX];
    struct add_result got[BATCH_MAX], want;
    int n = random_batch(r, specs);
    enum on_duplicate dup = (enum on_duplicate)roll(r, 3);
    for (int i = 0; i < n; i++)
        v[i] = real_spec(r, &specs[i]);
    OK(store_enqueue(f->s, v, (size_t)n, dup, got, &f->e));
    for (int i = 0; i < n; i++) {
        int64_t last = r->m.last_id;
        assert_int_equal(model_add(&r->m, &specs[i], dup, got[i].id.v, &want), got[i].outcome);
        if (got[i].outcome == ADD_CREATED) {
            assert_true(got[i].id.v > last);
            continue;
        }
        assert_int_equal(got[i].id.v, want.id.v);
        assert_true(model_find(&r->m, want.id.v) == NULL || got[i].state == want.state);
    }
}

static void op_claim(struct run *r)
{
    struct fixture *f = r->f;
    struct m_session *w = any_session(r);
    struct sv kinds[M_KINDS], queues[M_QUEUES];
    struct claim_pool pools[M_KINDS];
    int room[M_KINDS];
    unsigned mask = roll(r, 3) ? (1u << M_QUEUES) - 1 : 1 + next(r) % 7;
    struct claim_request req = {
        .session = &w->s, .pools = pools, .n_pools = M_KINDS, .queues = queues};
    for (int k = 0; k < M_KINDS; k++) {
        kinds[k] = sv_of(kind_names[k]);
        room[k] = roll(r, roll(r, 6) ? 4 : 40);
        pools[k] = (struct claim_pool){&kinds[k], 1, room[k]};
    }
    for (int q = 0; q < M_QUEUES; q++)
        if (mask >> q & 1)
            queues[req.n_queues++] = sv_of(queue_names[q]);
    struct m_job *only = roll(r, 6) ? NULL : any_job(r);
    req.only.v = only ? only->id : 0;
    struct claim_result got;
    OK(store_claim(f->s, &req, &f->a, &got, &f->e));
    assert_int_equal(got.session_stale, !model_alive(&r->m, w));
    if (got.session_stale)
        return;
    model_promote(&r->m);
    if (only) {
        bool ok = only->state == JOB_QUEUED && !r->m.paused[only->queue] && room[only->kind] > 0 &&
                  mask >> only->queue & 1;
        assert_int_equal(got.n, ok);
    }
    for (size_t i = 0; i < got.n; i++) {
        struct m_job *j = only ? only : model_best(&r->m, room, mask);
        assert_non_null(j);
        assert_int_equal(got.leases[i].id.v, j->id);
        model_claim(j, w->s.id);
        j->hint = got.leases[i].hint;
        room[j->kind]--;
        assert_int_equal(got.leases[i].fence.v, j->fence);
        assert_int_equal(got.leases[i].attempt, j->attempt);
        assert_int_equal(got.leases[i].max_attempts, j->max_attempts);
    }
    assert_true(only || !model_best(&r->m, room, mask));
}

/* The store chooses the ids of children: they are the newest jobs, in the order given. */
struct adopt {
    struct run *r;
    struct m_spec specs[2];
    int n, taken;
};

static bool adopt_one(void *arg, const struct job_view *v)
{
    struct adopt *a = arg;
    struct add_result want;
    while (a->taken < a->n && model_add(&a->r->m, &a->specs[a->taken++], DUPLICATE_SKIP, v->id.v,
                                        &want) != ADD_CREATED)
        ;
    assert_int_equal(a->r->m.last_id, v->id.v);
    return true;
}

static struct settle random_settle(struct run *r, const struct m_job *j)
{
    static const struct dur delays[] = {{0}, {1}, {(int64_t)3600 * 1000000}};
    static const enum outcome outcomes[] = {OUTCOME_DONE,  OUTCOME_SKIPPED,  OUTCOME_FAILED,
                                            OUTCOME_RETRY, OUTCOME_RELEASED, OUTCOME_CANCELLED,
                                            OUTCOME_RETRY, OUTCOME_DONE};
    struct settle v = {
        .id = {j->id}, .fence = {j->fence}, .outcome = outcomes[roll(r, 8)], .exit_code = -1};
    if (j->fence < 1 || roll(r, 12) == 0)
        v.fence.v += 1 - 2 * (v.fence.v > 1);
    if (roll(r, 3)) /* a late writer has one too */
        v.hint = j->hint;
    if (v.outcome == OUTCOME_RETRY) {
        v.refund_attempt = v.count_transient = roll(r, 2);
        v.delay = delays[roll(r, 3)];
        v.reason = WAIT_BACKOFF;
    }
    return v;
}

/* Jobs from a random running one on, all ended alike under its fence: also those that no longer
 * run, or run under another. A store may treat the stretches of these as one. */
static int alike_settles(struct run *r, struct settle *v)
{
    struct m_job *first = any_in(r, JOB_RUNNING), *end = r->m.jobs + r->m.n;
    int n = 0;
    for (struct m_job *j = first; j && j < end && n < BATCH_MAX; j++)
        if (j->fence > 0)
            v[n++] = (struct settle){.id = {j->id},
                                     .fence = {first->fence},
                                     .exit_code = -1,
                                     .outcome = OUTCOME_DONE,
                                     .hint = j->hint};
    return n;
}

static int random_settles(struct run *r, struct settle *v)
{
    if (roll(r, 6) == 0)
        return alike_settles(r, v);
    int n = 1 + roll(r, 3);
    for (int i = 0; i < n; i++) {
        struct m_job *j = roll(r, 12) ? any_in(r, JOB_RUNNING) : any_job(r);
        if (!j)
            return i;
        v[i] = random_settle(r, j);
    }
    return n;
}

static void op_settle(struct run *r)
{
    struct fixture *f = r->f;
    struct settle v[BATCH_MAX];
    enum settle_outcome out[BATCH_MAX];
    struct job_spec children[2];
    int n = random_settles(r, v);
    if (!n)
        return;
    struct adopt a = {.r = r, .n = roll(r, 6) ? 0 : 1 + roll(r, 2)};
    for (int i = 0; i < a.n; i++) {
        a.specs[i] = random_spec(r);
        children[i] = real_spec(r, &a.specs[i]);
    }
    v[n - 1].children = children;
    v[n - 1].n_children = (size_t)a.n;
    OK(store_settle(f->s, v, (size_t)n, out, &f->e));
    for (int i = 0; i < n; i++)
        assert_int_equal(out[i], model_settle(&r->m, &v[i]));
    if (out[n - 1] == SETTLE_STALE)
        return;
    struct selection fresh = {.after = {r->m.last_id}};
    OK(f->s->ops->list(f->s, &fresh, false, adopt_one, &a, &f->e));
    struct add_result want;
    for (; a.taken < a.n; a.taken++)
        assert_int_equal(model_add(&r->m, &a.specs[a.taken], DUPLICATE_SKIP, 0, &want), ADD_EXISTS);
}

static void op_renew(struct run *r)
{
    struct fixture *f = r->f;
    struct m_session *w = any_session(r);
    bool last = roll(r, 6) == 0;
    struct renew_request req = {.session = &w->s, .lease = last ? DUR_US(1) : HOUR};
    struct renew_result out;
    OK(f->s->ops->renew(f->s, &req, &f->a, &out, &f->e));
    assert_int_equal(out.stale, !model_alive(&r->m, w));
    if (out.stale)
        return;
    w->over = last ? r->m.tx : 0;
    size_t cancels = 0;
    for (int i = 0; i < r->m.n; i++)
        cancels += r->m.jobs[i].cancel && r->m.jobs[i].owner.v == w->s.id.v;
    assert_int_equal(out.n_cancels, cancels);
}

static void close_lock(struct m_session *w)
{
    if (w->s.lock_fd >= 0)
        close(w->s.lock_fd);
    w->s.lock_fd = -1;
}

/* Start a session in a free place; else end or kill the one there. */
static void op_session(struct run *r)
{
    struct m_session *w = any_session(r);
    if (!w->s.id.v) {
        close_lock(w);
        *w = (struct m_session){.s = start(r->f, "w")};
    } else if (roll(r, 3)) {
        struct session s = w->s;
        end(r->f, &s);
        model_end_session(&r->m, w);
    } else if (w->s.lock_fd >= 0) {
        close_lock(w);
        w->lock_free = true;
    }
}

static void op_sweep(struct run *r)
{
    struct m_session *self = roll(r, 2) ? any_session(r) : NULL;
    if (self && !self->s.id.v)
        self = NULL;
    struct sweep_result got = sweep(r->f, self ? &self->s : NULL, 3);
    struct sweep_result want = model_sweep(&r->m, self, 3);
    assert_int_equal(got.sessions, want.sessions);
    assert_int_equal(got.requeued, want.requeued);
    assert_int_equal(got.poisoned, want.poisoned);
    assert_false(got.more);
}

static void op_act(struct run *r)
{
    struct fixture *f = r->f;
    struct m_job *j = any_job(r);
    if (!j)
        return;
    job_id id = {j->id};
    enum act what = (enum act)roll(r, 3);
    struct act_request req = {.act = what,
                              .select = {.ids = &id, .n_ids = 1},
                              .grant_attempts = what == ACT_RETRY ? roll(r, 3) : 0};
    struct act_result out;
    bool cancelled_already = what == ACT_CANCEL && j->cancel;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    assert_int_equal(out.matched, 1);
    bool applied = model_act(&r->m, what, id.v, req.grant_attempts);
    assert_true(out.changed == applied || cancelled_already);
}

/* Release by force, or new values for what has not started. */
static void op_change(struct run *r)
{
    struct fixture *f = r->f;
    struct m_job *j = any_job(r);
    if (!j)
        return;
    job_id id = {j->id};
    struct job_change c = {.has_priority = roll(r, 2),
                           .has_time = roll(r, 2),
                           .has_max_attempts = roll(r, 2),
                           .priority = roll(r, 5) - 2,
                           .max_attempts = 1 + roll(r, 5),
                           .delay = roll(r, 2) ? HOUR : DUR_US(0)};
    struct act_request req = {.act = roll(r, 2) ? ACT_RELEASE : ACT_SET,
                              .select = {.ids = &id, .n_ids = 1},
                              .force = true,
                              .change = &c};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    bool applied = req.act == ACT_SET ? model_set(&r->m, id.v, &c) : model_release(&r->m, id.v);
    assert_int_equal(out.changed, applied);
}

static void op_prune(struct run *r)
{
    struct fixture *f = r->f;
    struct act_request req = {.act = ACT_PRUNE, .select = {.states = 0xf0}, .max = M_JOBS};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    int64_t pruned = 0;
    for (int i = r->m.n - 1; i >= 0; i--)
        pruned += model_act(&r->m, ACT_PRUNE, r->m.jobs[i].id, 0);
    assert_int_equal(out.changed, pruned);
}

static void op_cancel_some(struct run *r)
{
    struct fixture *f = r->f;
    struct act_request req = {
        .act = ACT_CANCEL, .select = {.states = 1u << JOB_WAITING}, .max = 20};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    int64_t left = 20, n = 0;
    for (int i = 0; i < r->m.n && left; i++)
        if (r->m.jobs[i].state == JOB_WAITING) {
            n += model_act(&r->m, ACT_CANCEL, r->m.jobs[i].id, 0);
            left--;
        }
    assert_int_equal(out.changed, n);
}

static void op_pause(struct run *r)
{
    struct fixture *f = r->f;
    int q = roll(r, M_QUEUES);
    bool to = roll(r, 3) == 0, changed;
    OK(f->s->ops->pause(f->s, sv_of(queue_names[q]), to, &changed, &f->e));
    assert_int_equal(changed, r->m.paused[q] != to);
    r->m.paused[q] = to;
}

/* One operation; sessions begin and end only outside groups, their locks know no rollback. */
static void one(struct run *r, bool in_group)
{
    int what = roll(r, 100);
    if (r->f->s->ops->remote)
        r->m.tx++; /* a server's clock goes on inside a transaction */
    if (r->m.n > JOBS_WANTED * 3)
        op_prune(r);
    else if (what < (r->m.n < JOBS_WANTED ? 24 : 6))
        op_add(r);
    else if (what < 48)
        op_claim(r);
    else if (what < 78)
        op_settle(r);
    else if (what < 83)
        op_renew(r);
    else if (what < 87 && !in_group)
        op_session(r);
    else if (what < 89)
        op_sweep(r);
    else if (what < 92)
        op_act(r);
    else if (what < 95)
        op_change(r);
    else if (what < 96)
        op_cancel_some(r);
    else if (what < 98)
        op_pause(r);
    else if (r->m.n > JOBS_WANTED)
        op_prune(r);
}

static void group(struct run *r)
{
    struct fixture *f = r->f;
    struct model *saved = mem_dup(&r->m, sizeof(r->m));
    bool keep = roll(r, 3);
    r->m.tx++;
    OK(f->s->ops->group_begin(f->s, &f->e));
    for (int n = roll(r, 6); n > 0; n--)
        one(r, true);
    if (keep) {
        OK(f->s->ops->group_commit(f->s, &f->e));
    } else {
        f->s->ops->group_abort(f->s);
        uint64_t tx = r->m.tx;
        r->m = *saved;
        r->m.tx = tx;
    }
    free(saved);
}

struct walk {
    struct run *r;
    int i;
};

static bool compare_job(void *arg, const struct job_view *v)
{
    struct walk *w = arg;
    assert_true(w->i < w->r->m.n);
    const struct m_job *j = &w->r->m.jobs[w->i++];
    char key[16];
    snprintf(key, sizeof(key), "key%d", j->key);
    assert_int_equal(v->id.v, j->id);
    assert_string_equal(job_state_name(v->state), job_state_name(j->state));
    assert_sv(v->queue, queue_names[j->queue]);
    assert_sv(v->kind, kind_names[j->kind]);
    assert_sv(v->host, host_names[j->host]);
    assert_sv(v->key, j->key >= 0 ? key : NULL);
    assert_int_equal(v->priority, j->priority);
    assert_int_equal(v->attempt, j->attempt);
    assert_int_equal(v->transient, j->transient);
    assert_int_equal(v->lost, j->lost);
    assert_int_equal(v->max_attempts, j->max_attempts);
    assert_int_equal(v->fence.v, j->fence);
    assert_int_equal(v->cancel_asked, j->cancel);
    assert_int_equal(v->wait_reason, j->reason);
    assert_int_equal(v->worker.p != NULL, j->state == JOB_RUNNING);
    assert_int_equal(v->finished_at.us != 0, job_state_terminal(j->state));
    return true;
}

static void compare_counts(struct run *r)
{
    struct fixture *f = r->f;
    struct status_view st;
    int64_t got[N_JOB_STATES] = {0}, want[N_JOB_STATES] = {0};
    OK(f->s->ops->status(f->s, 5, &f->a, &st, &f->e));
    for (size_t c = 0; c < st.n_classes; c++)
        for (int s = 0; s < N_JOB_STATES; s++)
            got[s] += st.classes[c].n[s];
    for (int i = 0; i < r->m.n; i++)
        want[r->m.jobs[i].state]++;
    assert_memory_equal(got, want, sizeof(got));
}

static void compare(struct run *r)
{
    struct fixture *f = r->f;
    struct selection all = {0};
    struct walk w = {r, 0};
    OK(f->s->ops->list(f->s, &all, false, compare_job, &w, &f->e));
    assert_int_equal(w.i, r->m.n);
    if (r->step % (COMPARE_EVERY * 10) == 0)
        compare_counts(r);
    arena_reset(&f->a);
}

static uint64_t seed(void)
{
    const char *given = getenv("PAWL_TEST_SEED");
    uint64_t s = given ? strtoull(given, NULL, 10) : 0;
    if (!given && getrandom(&s, sizeof(s), 0) != (ssize_t)sizeof(s))
        s = 1;
    return s ? s : 1;
}

static void test_random_operations_agree_with_the_model(void **state)
{
    struct run *r = mem_zalloc(1, sizeof(*r));
    const char *steps = getenv("PAWL_TEST_STEPS");
    r->f = *state;
    r->steps = steps ? strtol(steps, NULL, 10) : on_postgres() ? 3000 : 20000;
    r->rng = seed();
    fprintf(stderr, "# PAWL_TEST_SEED=%llu PAWL_TEST_STEPS=%ld\n", (unsigned long long)r->rng,
            r->steps);
    for (int i = 0; i < M_SESSIONS; i++)
        r->m.sessions[i].s.lock_fd = -1;
    r->handles[0] = r->f->s;
    for (int i = 1; i < N_HANDLES; i++)
        r->handles[i] = open_again(r->f);
    for (; r->step < r->steps; r->step++) {
        r->f->s = r->handles[roll(r, N_HANDLES)];
        if (roll(r, 15) == 0) {
            group(r);
        } else {
            r->m.tx++;
            one(r, false);
        }
        if (r->step % COMPARE_EVERY == 0)
            compare(r);
        if (r->step % (r->steps / 8 + 1) == 0)
            assert_clean(r->f);
    }
    compare(r);
    for (int i = 0; i < M_SESSIONS; i++)
        close_lock(&r->m.sessions[i]);
    for (int i = 1; i < N_HANDLES; i++)
        store_close(r->handles[i]);
    r->f->s = r->handles[0];
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_random_operations_agree_with_the_model)};
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
