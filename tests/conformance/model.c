#include "model.h"

struct m_job *model_find(struct model *m, int64_t id)
{
    for (int i = 0; i < m->n; i++)
        if (m->jobs[i].id == id)
            return &m->jobs[i];
    return NULL;
}

static void place(struct model *m, struct m_job *j, const struct m_spec *s)
{
    j->kind = s->kind;
    j->host = s->host;
    j->priority = s->priority;
    j->max_attempts = s->max_attempts;
    j->attempt = j->transient = j->lost = 0;
    j->cancel = false;
    j->state = s->when == M_NOW ? JOB_QUEUED : JOB_WAITING;
    j->reason = s->when == M_NOW ? WAIT_NONE : WAIT_DELAY;
    j->due = s->when == M_NEXT ? m->tx : UINT64_MAX;
}

static void create(struct model *m, const struct m_spec *s, int64_t id)
{
    struct m_job *j = &m->jobs[m->n++];
    *j = (struct m_job){.id = id, .queue = s->queue, .key = s->key};
    place(m, j, s);
    m->last_id = id;
    if (s->key >= 0)
        m->keys[s->queue][s->key] = (struct m_key){id, false};
}

enum add_outcome model_add(struct model *m, const struct m_spec *s, enum on_duplicate dup,
                           int64_t id, struct add_result *out)
{
    struct m_key none = {0}, *k = s->key >= 0 ? &m->keys[s->queue][s->key] : &none;
    struct m_job *old = k->id ? model_find(m, k->id) : NULL;
    *out = (struct add_result){{k->id}, ADD_CREATED, old ? old->state : JOB_DONE};
    if (!k->id || (k->gone && dup == DUPLICATE_REQUEUE)) {
        create(m, s, id);
        return ADD_CREATED;
    }
    if (dup == DUPLICATE_FAIL)
        return out->outcome = ADD_CONFLICT;
    if (dup == DUPLICATE_SKIP)
        return out->outcome = ADD_EXISTS;
    if (old->state == JOB_RUNNING)
        return out->outcome = ADD_RUNNING;
    out->outcome = job_state_terminal(old->state) ? ADD_REQUEUED : ADD_REPLACED;
    place(m, old, s);
    return out->outcome;
}

static bool lease_over(const struct model *m, const struct m_session *w)
{
    return w->over && m->tx > w->over;
}

bool model_alive(const struct model *m, const struct m_session *w)
{
    return w->s.id.v && !lease_over(m, w);
}

void model_promote(struct model *m)
{
    for (int i = 0; i < m->n; i++) {
        struct m_job *j = &m->jobs[i];
        if (j->state != JOB_WAITING || j->due >= m->tx)
            continue;
        j->state = JOB_QUEUED;
        j->reason = WAIT_NONE;
    }
}

struct m_job *model_best(struct model *m, const int room[M_KINDS], unsigned queues)
{
    struct m_job *best = NULL;
    for (int i = 0; i < m->n; i++) {
        struct m_job *j = &m->jobs[i];
        if (j->state != JOB_QUEUED || room[j->kind] <= 0 || m->paused[j->queue] ||
            !(queues >> j->queue & 1))
            continue;
        if (!best || j->priority > best->priority)
            best = j;
    }
    return best;
}

void model_claim(struct m_job *j, session_id owner)
{
    j->state = JOB_RUNNING;
    j->owner = owner;
    j->attempt++;
    j->fence++;
    j->cancel = false;
}

static void finish(struct m_job *j, enum job_state state)
{
    j->state = state;
    j->owner.v = 0;
    j->cancel = false;
    j->reason = WAIT_NONE;
}

static void put_back(struct model *m, struct m_job *j, enum m_when when, enum wait_reason reason,
                     bool refund)
{
    finish(j, when == M_NOW ? JOB_QUEUED : JOB_WAITING);
    j->reason = when == M_NOW ? WAIT_NONE : reason;
    j->due = when == M_NEXT ? m->tx : UINT64_MAX;
    j->attempt -= refund && j->attempt > 0;
}

enum settle_outcome model_settle(struct model *m, const struct settle *v)
{
    enum m_when when = v->delay.us == 0 ? M_NOW : v->delay.us == 1 ? M_NEXT : M_NEVER;
    static const enum job_state ends[] = {[OUTCOME_DONE] = JOB_DONE,
                                          [OUTCOME_SKIPPED] = JOB_SKIPPED,
                                          [OUTCOME_FAILED] = JOB_FAILED,
                                          [OUTCOME_CANCELLED] = JOB_CANCELLED};
    struct m_job *j = model_find(m, v->id.v);
    if (!j || j->state != JOB_RUNNING || j->fence != v->fence.v)
        return SETTLE_STALE;
    bool back = v->outcome == OUTCOME_RETRY || v->outcome == OUTCOME_RELEASED;
    if (!back) {
        finish(j, ends[v->outcome]);
    } else if (j->cancel) {
        finish(j, JOB_CANCELLED);
    } else {
        j->transient += v->count_transient;
        bool released = v->outcome == OUTCOME_RELEASED;
        put_back(m, j, released ? M_NOW : when, v->reason, released || v->refund_attempt);
    }
    return SETTLE_OK;
}

void model_end_session(struct model *m, struct m_session *w)
{
    for (int i = 0; i < m->n; i++) {
        struct m_job *j = &m->jobs[i];
        if (j->state != JOB_RUNNING || j->owner.v != w->s.id.v)
            continue;
        if (j->cancel)
            finish(j, JOB_CANCELLED);
        else
            put_back(m, j, M_NOW, WAIT_NONE, true);
    }
    *w = (struct m_session){.s = {.lock_fd = -1}};
}

static void lose(struct model *m, struct m_job *j, bool blame, int max_lost,
                 struct sweep_result *out)
{
    if (j->cancel) {
        finish(j, JOB_CANCELLED);
        return;
    }
    j->lost += blame;
    if (blame && j->lost >= max_lost) {
        finish(j, JOB_FAILED);
        out->poisoned++;
        return;
    }
    put_back(m, j, M_NOW, WAIT_NONE, true);
    out->requeued++;
}

struct sweep_result model_sweep(struct model *m, const struct m_session *self, int max_lost)
{
    struct sweep_result out = {0};
    int live = 0, over = 0;
    for (int i = 0; i < M_SESSIONS; i++) {
        struct m_session *w = &m->sessions[i];
        live += w->s.id.v != 0;
        over += w->s.id.v && w != self && lease_over(m, w) && !w->lock_free;
    }
    for (int i = 0; i < M_SESSIONS; i++) {
        struct m_session *w = &m->sessions[i];
        if (!w->s.id.v || w == self || (!lease_over(m, w) && !w->lock_free))
            continue;
        for (int k = 0; k < m->n; k++)
            if (m->jobs[k].state == JOB_RUNNING && m->jobs[k].owner.v == w->s.id.v)
                lose(m, &m->jobs[k], w->lock_free || over * 2 < live, max_lost, &out);
        out.sessions++;
        w->s.id.v = 0; /* its descriptor is closed by the test */
    }
    return out;
}

static void prune(struct model *m, struct m_job *j)
{
    if (j->key >= 0)
        m->keys[j->queue][j->key].gone = true;
    int i = (int)(j - m->jobs);
    memmove(j, j + 1, (size_t)(m->n - i - 1) * sizeof(*j));
    m->n--;
}

bool model_act(struct model *m, enum act what, int64_t id, int grant)
{
    struct m_job *j = model_find(m, id);
    if (!j || job_state_terminal(j->state) == (what == ACT_CANCEL))
        return false;
    if (what == ACT_PRUNE) {
        prune(m, j);
    } else if (what == ACT_RETRY) {
        if (grant)
            j->max_attempts = j->attempt + grant;
        else
            j->attempt = 0;
        j->transient = j->lost = 0;
        finish(j, JOB_QUEUED);
    } else if (j->state == JOB_RUNNING) {
        j->cancel = true;
    } else {
        finish(j, JOB_CANCELLED);
    }
    return true;
}

bool model_release(struct model *m, int64_t id)
{
    struct m_job *j = model_find(m, id);
    if (!j || (j->state != JOB_WAITING && j->state != JOB_RUNNING))
        return false;
    const struct settle v = {.id = {id}, .fence = {j->fence}, .outcome = OUTCOME_RELEASED};
    if (j->state == JOB_RUNNING)
        return model_settle(m, &v) == SETTLE_OK;
    finish(j, JOB_QUEUED);
    return true;
}

bool model_set(struct model *m, int64_t id, const struct job_change *c)
{
    struct m_job *j = model_find(m, id);
    if (!j || (j->state != JOB_QUEUED && j->state != JOB_WAITING))
        return false;
    if (c->has_priority)
        j->priority = c->priority;
    if (c->has_max_attempts)
        j->max_attempts = c->max_attempts;
    if (!c->has_time)
        return true;
    j->state = c->delay.us ? JOB_WAITING : JOB_QUEUED;
    j->reason = c->delay.us ? WAIT_DELAY : WAIT_NONE;
    j->due = UINT64_MAX;
    return true;
}
