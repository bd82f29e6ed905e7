#include "fake_parts.h"

#include "mem.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct handle *handle_of(struct store *s)
{
    return (struct handle *)s;
}

void enter(struct handle *h)
{
    if (!h->in_group)
        pthread_mutex_lock(&h->f->lock);
}

void leave(struct handle *h)
{
    pthread_cond_broadcast(&h->f->changed);
    if (!h->in_group)
        pthread_mutex_unlock(&h->f->lock);
}

int fault(struct fake *f, struct pawl_err *err)
{
    f->calls++;
    bool hit = f->fail_at && f->calls >= f->fail_at && f->calls <= f->fail_at + f->fail_more;
    if (f->fault != FAULT_NONE && (hit || f->down)) {
        f->failed++;
        return err_set(err, f->code, "planted fault in call %d", f->calls);
    }
    return 0;
}

void push_hint(struct fake *f)
{
    uint64_t one = 1;
    for (size_t i = 0; i < ARRAY_LEN(f->hints); i++)
        if (f->hints[i] >= 0)
            (void)!write(f->hints[i], &one, sizeof(one));
}

struct fake_job *find(struct fake *f, int64_t id)
{
    return id >= 1 && (size_t)id <= f->n_jobs ? &f->jobs[id - 1] : NULL;
}

int64_t insert(struct fake *f, const char *queue, const char *kind)
{
    ARRAY_GROW(f->jobs, f->n_jobs, f->cap_jobs);
    struct fake_job *j = &f->jobs[f->n_jobs++];
    *j = (struct fake_job){.id = (int64_t)f->n_jobs, .state = JOB_QUEUED};
    snprintf(j->queue, sizeof(j->queue), "%s", queue);
    snprintf(j->kind, sizeof(j->kind), "%s", kind);
    return j->id;
}

bool paused(struct fake *f, const char *queue)
{
    for (int i = 0; i < f->n_paused; i++)
        if (strcmp(f->paused[i].queue, queue) == 0)
            return true;
    return false;
}

/* ---- handles and groups ---- */

static void op_close(struct store *s)
{
    struct handle *h = handle_of(s);
    pthread_mutex_lock(&h->f->lock);
    h->f->hints[h->slot] = -1;
    pthread_mutex_unlock(&h->f->lock);
    close(h->hint);
    free(h);
}

static struct wall op_now(struct store *s)
{
    (void)s;
    return (struct wall){clock_boot().us};
}

static int op_identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err)
{
    (void)s;
    (void)err;
    snprintf(out, STORE_ID_LEN + 1, "fake");
    return 0;
}

static int op_group_begin(struct store *s, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    int rc = h->broken ? err_set(err, PAWL_EBROKEN, "broken") : fault(h->f, err);
    if (rc < 0) {
        leave(h);
        return rc;
    }
    h->in_group = true;
    if (h->f->rollback) {
        h->f->copy = mem_dup(h->f->jobs, h->f->n_jobs * sizeof(*h->f->jobs));
        h->f->n_copy = h->f->n_jobs;
    }
    return 0;
}

static void end_group(struct handle *h, bool undo)
{
    struct fake *f = h->f;
    if (undo) {
        memcpy(f->jobs, f->copy, f->n_copy * sizeof(*f->jobs));
        f->n_jobs = f->n_copy;
        f->first_live = 0;
    }
    free(f->copy);
    f->copy = NULL;
    h->in_group = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static int op_group_commit(struct store *s, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    int rc = fault(h->f, err);
    bool uncertain = rc < 0 && h->f->fault == FAULT_UNCERTAIN;
    h->broken = rc < 0;
    end_group(h, rc < 0 && !uncertain);
    return uncertain ? err_set(err, PAWL_EUNCERTAIN, "planted uncertain commit") : rc;
}

static void op_group_abort(struct store *s)
{
    end_group(handle_of(s), true);
}

static int op_wake_fd(struct store *s)
{
    return handle_of(s)->hint;
}

static void op_wake_clear(struct store *s)
{
    uint64_t n;
    (void)!read(handle_of(s)->hint, &n, sizeof(n));
}

/* ---- looking ---- */

static int op_job_get(struct store *s, job_id id, struct arena *a, struct job_view *out,
                      struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    int rc = fault(h->f, err);
    struct fake_job *j = find(h->f, id.v);
    if (rc == 0 && !j)
        rc = err_set(err, PAWL_ENOTFOUND, "no job %lld", (long long)id.v);
    if (rc == 0) {
        struct attempt_view *v = arena_zalloc(a, (size_t)j->n_attempts, sizeof(*v));
        for (int i = 0; i < j->n_attempts; i++)
            v[i] = (struct attempt_view){.fence = {j->attempts[i].fence},
                                         .outcome = j->attempts[i].outcome};
        *out = (struct job_view){.id = id,
                                 .state = j->state,
                                 .queue = sv_of(arena_strndup(a, j->queue, strlen(j->queue))),
                                 .kind = sv_of(arena_strndup(a, j->kind, strlen(j->kind))),
                                 .fence = {j->fence},
                                 .attempts = v,
                                 .n_attempts = (size_t)j->n_attempts};
    }
    leave(h);
    return rc;
}

static struct class_view *class_of(struct fake *f, struct class_view *v, size_t *n,
                                   const struct fake_job *j, struct arena *a)
{
    for (size_t i = 0; i < *n; i++)
        if (sv_eq(v[i].queue, sv_of(j->queue)) && sv_eq(v[i].kind, sv_of(j->kind)))
            return &v[i];
    assert(*n < 32);
    v[*n] = (struct class_view){.queue = sv_of(arena_strndup(a, j->queue, strlen(j->queue))),
                                .kind = sv_of(arena_strndup(a, j->kind, strlen(j->kind))),
                                .paused = paused(f, j->queue)};
    return &v[(*n)++];
}

static int op_status(struct store *s, int max_running, struct arena *a, struct status_view *out,
                     struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    struct fake *f = h->f;
    (void)max_running;
    enter(h);
    int rc = fault(f, err);
    if (rc == 0) {
        struct class_view *c = arena_zalloc(a, 32, sizeof(*c));
        struct session_view *v = arena_zalloc(a, (size_t)f->n_sessions, sizeof(*v));
        size_t n = 0;
        for (size_t i = 0; i < f->n_jobs; i++)
            class_of(f, c, &n, &f->jobs[i], a)->n[f->jobs[i].state]++;
        for (int i = 0; i < f->n_sessions; i++) {
            v[i].id.v = f->sessions[i].id;
            v[i].alive = f->sessions[i].alive;
            v[i].filter =
                sv_of(arena_strndup(a, f->sessions[i].filter, strlen(f->sessions[i].filter)));
        }
        *out = (struct status_view){
            .classes = c, .n_classes = n, .sessions = v, .n_sessions = (size_t)f->n_sessions};
    }
    leave(h);
    return rc;
}

static void op_effort(struct store *s, struct store_effort *out)
{
    (void)s;
    *out = (struct store_effort){0};
}

/* ---- what operators and the sweeper do ---- */

static int op_act(struct store *s, const struct act_request *r, struct act_result *out,
                  struct pawl_err *err)
{
    (void)s, (void)r, (void)err;
    *out = (struct act_result){0};
    return 0;
}

static int op_policy_apply(struct store *s, const struct policy *p, struct sv text,
                           bool *out_changed, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    enter(h);
    h->f->policies++;
    h->f->policy_null = !p;
    h->f->policy_claims = h->f->claims;
    snprintf(h->f->policy_text, sizeof(h->f->policy_text), SV_FMT, SV_ARG(text));
    int rc = h->f->policy_code;
    leave(h);
    *out_changed = rc == 0;
    return rc < 0 ? err_set(err, rc, "planned") : 0;
}

static int op_prune_history(struct store *s, struct wall events, struct wall attempts, int max,
                            bool *out_more, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    (void)events, (void)attempts, (void)max, (void)err;
    enter(h);
    *out_more = ++h->f->histories < 3;
    leave(h);
    return 0;
}

static int op_age(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err)
{
    struct handle *h = handle_of(s);
    (void)max_jobs, (void)err;
    enter(h);
    h->f->ages++;
    leave(h);
    *out_raised = 0;
    return 0;
}

static const struct store_ops ops = {
    .name = "fake",
    .close = op_close,
    .now = op_now,
    .identity = op_identity,
    .group_begin = op_group_begin,
    .group_commit = op_group_commit,
    .group_abort = op_group_abort,
    .session_begin = op_session_begin,
    .session_end = op_session_end,
    .renew = op_renew,
    .claim = op_claim,
    .settle = op_settle,
    .sweep = op_sweep,
    .held = op_held,
    .act = op_act,
    .policy_apply = op_policy_apply,
    .prune_history = op_prune_history,
    .age = op_age,
    .job_get = op_job_get,
    .status = op_status,
    .effort = op_effort,
    .wake_fd = op_wake_fd,
    .wake_clear = op_wake_clear,
};

int fake_open(void *arg, struct store **out, struct pawl_err *err)
{
    struct fake *f = arg;
    pthread_mutex_lock(&f->lock);
    if (f->down) {
        pthread_mutex_unlock(&f->lock);
        return err_set(err, f->code, "down");
    }
    struct handle *h = mem_zalloc(1, sizeof(*h));
    h->store.ops = &ops;
    h->f = f;
    h->hint = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    while (f->hints[h->slot] >= 0)
        h->slot++;
    f->hints[h->slot] = h->hint;
    pthread_mutex_unlock(&f->lock);
    *out = &h->store;
    return 0;
}

/* ---- the tests' side ---- */

void fake_init(struct fake *f)
{
    *f = (struct fake){.rollback = true};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    for (size_t i = 0; i < ARRAY_LEN(f->hints); i++)
        f->hints[i] = -1;
}

void fake_done(struct fake *f)
{
    for (size_t i = 0; i < ARRAY_LEN(f->hints); i++)
        assert(f->hints[i] < 0); /* every handle was closed */
    free(f->jobs);
}

int64_t fake_add(struct fake *f, const char *queue, const char *kind)
{
    pthread_mutex_lock(&f->lock);
    int64_t id = insert(f, queue, kind);
    pthread_mutex_unlock(&f->lock);
    return id;
}

void fake_hint(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    push_hint(f);
    pthread_mutex_unlock(&f->lock);
}

void fake_ask(struct fake *f, enum worker_command c)
{
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->n_sessions; i++)
        f->sessions[i].command = c;
    push_hint(f);
    pthread_mutex_unlock(&f->lock);
}

void fake_cancel(struct fake *f, int64_t id)
{
    pthread_mutex_lock(&f->lock);
    find(f, id)->cancel_asked = true;
    push_hint(f);
    pthread_mutex_unlock(&f->lock);
}

void fake_pause(struct fake *f, const char *queue)
{
    pthread_mutex_lock(&f->lock);
    snprintf(f->paused[f->n_paused++].queue, 32, "%s", queue);
    push_hint(f);
    pthread_mutex_unlock(&f->lock);
}

void fake_expire_sessions(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->n_sessions; i++) {
        f->sessions[i].alive = false;
        release_all(f, f->sessions[i].id, false);
    }
    push_hint(f);
    pthread_mutex_unlock(&f->lock);
}

int64_t fake_count(struct fake *f, enum job_state state)
{
    int64_t n = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_jobs; i++)
        n += f->jobs[i].state == state;
    pthread_mutex_unlock(&f->lock);
    return n;
}

struct fake_job fake_job(struct fake *f, int64_t id)
{
    pthread_mutex_lock(&f->lock);
    struct fake_job j = *find(f, id);
    pthread_mutex_unlock(&f->lock);
    return j;
}
