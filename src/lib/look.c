/* Jobs and counts as the caller sees them. */
#include "api.h"

#define X(name, number, text, terminal)                                                            \
    _Static_assert((int)PAWL_STATE_##name == (number), "public states are the store's");
#include "states.def"
#undef X

const char *pawl_state_name(int state)
{
    return state >= 0 && state < N_JOB_STATES ? job_state_name((enum job_state)state) : NULL;
}

bool pawl_state_is_final(int state)
{
    return state >= 0 && state < N_JOB_STATES && job_state_terminal((enum job_state)state);
}

/* ---- one job ---- */

/* The info with the memory of all its texts. */
struct seen {
    pawl_job_info info; /* first: what the caller has a pointer to */
    struct arena arena;
};

static const pawl_attempt *fill_attempt(const struct attempt_view *v, struct arena *a)
{
    pawl_attempt *p = arena_zalloc(a, 1, sizeof(*p));
    *p = (pawl_attempt){
        .attempt = v->attempt,
        .exit_code = v->exit_code,
        .fence = v->fence.v,
        .started_at_ms = us_ms(v->started_at.us),
        .finished_at_ms = us_ms(v->finished_at.us),
        .worker = api_text(v->worker, a),
        .outcome = outcome_name(v->outcome),
        .error_class = fail_class_name(v->cls),
        .error = api_text(v->error, a),
    };
    return p;
}

static void fill_info(pawl_job_info *out, const struct job_view *v, struct arena *a)
{
    const pawl_attempt **attempts = arena_zalloc(a, v->n_attempts, sizeof(*attempts));
    for (size_t i = 0; i < v->n_attempts; i++)
        attempts[i] = fill_attempt(&v->attempts[i], a);
    *out = (pawl_job_info){
        .id = v->id.v,
        .fence = v->fence.v,
        .parent = v->parent.v,
        .state = (int)v->state,
        .priority = v->priority,
        .attempt = v->attempt,
        .max_attempts = v->max_attempts,
        .transient_attempts = v->transient,
        .lost = v->lost,
        .cancel_asked = v->cancel_asked,
        .queue = api_text(v->queue, a),
        .kind = api_text(v->kind, a),
        .key = api_text(v->key, a),
        .host = api_text(v->host, a),
        .lock = api_text(v->lock, a),
        .worker = api_text(v->worker, a),
        .payload = api_text(v->payload, a),
        .result = api_text(v->result, a),
        .progress = api_text(v->progress, a),
        .error = api_text(v->error, a),
        .error_class = fail_class_name(v->cls),
        .wait_reason = wait_reason_name(v->wait_reason),
        .created_at_ms = us_ms(v->created_at.us),
        .available_at_ms = us_ms(v->available_at.us),
        .claimed_at_ms = us_ms(v->claimed_at.us),
        .lease_until_ms = us_ms(v->lease_until.us),
        .finished_at_ms = us_ms(v->finished_at.us),
        .attempts = attempts,
        .n_attempts = v->n_attempts,
    };
}

static int get(struct store *s, job_id id, pawl_job_info **out, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view view;
    arena_init(&a);
    int rc = s->ops->job_get(s, id, &a, &view, err);
    if (rc < 0)
        return rc;
    struct seen *seen = mem_zalloc(1, sizeof(*seen));
    arena_init(&seen->arena);
    fill_info(&seen->info, &view, &seen->arena);
    *out = &seen->info;
    return 0;
}

int pawl_job_get(pawl_store *s, int64_t id, pawl_job_info **out, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s || !out)
        return api_usage(err, "pawl_job_get: %s is NULL", s ? "out" : "store");
    int rc = store_enter(s, &e);
    if (rc == 0)
        rc = store_leave(s, get(s->handle, (job_id){id}, out, &e));
    return api_end(rc, err, &e);
}

void pawl_job_free(pawl_job_info *job)
{
    struct seen *seen = (struct seen *)job;
    if (!seen)
        return;
    arena_done(&seen->arena);
    free(seen);
}

static bool note_id(void *arg, const struct job_view *job)
{
    *(job_id *)arg = job->id;
    return false;
}

static int find(struct store *s, const char *queue, const char *key, pawl_job_info **out,
                struct pawl_err *err)
{
    const struct selection sel = {.queue = sv_of(queue), .key = sv_of(key)};
    job_id id = {0};
    int rc = s->ops->list(s, &sel, false, note_id, &id, err);
    if (rc < 0)
        return rc;
    if (!id.v)
        return err_set(err, PAWL_ENOTFOUND, "no job with that key in that queue");
    return get(s, id, out, err);
}

int pawl_job_find(pawl_store *s, const char *queue, const char *key, pawl_job_info **out,
                  pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s || !key || !out)
        return api_usage(err, "pawl_job_find: %s is NULL", !s ? "store" : key ? "out" : "key");
    int rc = store_enter(s, &e);
    if (rc == 0)
        rc = store_leave(s, find(s->handle, queue ? queue : "default", key, out, &e));
    return api_end(rc, err, &e);
}

/* ---- many ---- */

static bool matches(const char *wanted, struct sv name)
{
    return !wanted || sv_eq(sv_of(wanted), name);
}

static void add_class(const struct class_view *c, pawl_counts *sum)
{
    sum->blocked += c->n[JOB_BLOCKED];
    sum->queued += c->n[JOB_QUEUED];
    sum->waiting += c->n[JOB_WAITING];
    sum->running += c->n[JOB_RUNNING];
    sum->done += c->n[JOB_DONE];
    sum->skipped += c->n[JOB_SKIPPED];
    sum->failed += c->n[JOB_FAILED];
    sum->cancelled += c->n[JOB_CANCELLED];
}

static int count(struct store *s, const char *queue, const char *kind, pawl_counts *out,
                 struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct status_view view;
    arena_init(&a);
    int rc = s->ops->status(s, 0, &a, &view, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < view.n_classes; i++)
        if (matches(queue, view.classes[i].queue) && matches(kind, view.classes[i].kind))
            add_class(&view.classes[i], out);
    return 0;
}

int pawl_count(pawl_store *s, const char *queue, const char *kind, pawl_counts *out,
               pawl_error *err)
{
    struct pawl_err e = {0};
    pawl_counts sum = {0};
    if (!s || !out)
        return api_usage(err, "pawl_count: %s is NULL", s ? "out" : "store");
    int rc = check_size(out, "pawl_counts", &e);
    if (rc == 0)
        rc = store_enter(s, &e);
    if (rc == 0)
        rc = store_leave(s, count(s->handle, queue, kind, &sum, &e));
    if (rc == 0)
        give_struct(out, &sum, sizeof(sum));
    return api_end(rc, err, &e);
}

struct listing {
    bool (*each)(void *arg, const pawl_job_info *job);
    void *arg;
    struct arena arena;
};

static bool list_one(void *arg, const struct job_view *view)
{
    struct listing *l = arg;
    pawl_job_info info;
    arena_reset(&l->arena);
    fill_info(&info, view, &l->arena);
    return l->each(l->arg, &info);
}

static int list(pawl_store *s, const pawl_selection *selection, struct listing *l,
                struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct selection sel;
    arena_init(&a);
    int rc = selection_read(selection, &a, &sel, err);
    if (rc == 0)
        rc = store_enter(s, err);
    if (rc < 0)
        return rc;
    return store_leave(s, s->handle->ops->list(s->handle, &sel, false, list_one, l, err));
}

int pawl_list(pawl_store *s, const pawl_selection *selection,
              bool (*each)(void *arg, const pawl_job_info *job), void *arg, pawl_error *err)
{
    struct pawl_err e = {0};
    struct listing l = {.each = each, .arg = arg};
    if (!s || !each)
        return api_usage(err, "pawl_list: %s is NULL", s ? "each" : "store");
    arena_init(&l.arena);
    int rc = list(s, selection, &l, &e);
    arena_done(&l.arena);
    return api_end(rc, err, &e);
}
