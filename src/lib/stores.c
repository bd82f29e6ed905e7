/* Opening, adding, acting: the store behind a lock. */
#include "stores.h"

#include "api.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum {
    ACT_BATCH = 2000,    /* jobs in one transaction: well below 50 ms */
    WAIT_LONGEST = 1000, /* ms: a hint may get lost, so nobody sleeps longer */
};

int store_enter(pawl_store *s, struct pawl_err *err)
{
    if (pthread_mutex_lock(&s->lock) == EDEADLK)
        return err_set(err, PAWL_EUSAGE, "a callback may not call the store that called it");
    int rc = s->handle ? 0 : stores_open(s->config, s->mode, &s->handle, err);
    if (rc < 0)
        pthread_mutex_unlock(&s->lock);
    return rc;
}

int store_enter_writing(pawl_store *s, struct pawl_err *err)
{
    if (s->mode == STORE_READ)
        return err_set(err, PAWL_EUSAGE, "the store was opened with PAWL_OPEN_READ");
    return store_enter(s, err);
}

static bool breaks(int rc)
{
    return rc == PAWL_EBROKEN || rc == PAWL_EUNCERTAIN || rc == PAWL_EUNREACHABLE || rc == PAWL_EIO;
}

int store_leave(pawl_store *s, int rc)
{
    if (breaks(rc)) {
        store_close(s->handle);
        s->handle = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- open and close ---- */

static int open_config(const char *url, const pawl_open_options *given, enum store_mode *mode,
                       struct config **out, struct pawl_err *err)
{
    static const enum store_mode modes[] = {
        [PAWL_OPEN_CREATE] = STORE_CREATE,
        [PAWL_OPEN_WRITE] = STORE_WRITE,
        [PAWL_OPEN_READ] = STORE_READ,
    };
    AUTO_SETTINGS struct settings list = {0};
    pawl_open_options o;
    int rc = take_struct(&o, sizeof(o), given, "pawl_open_options", err);
    if (rc < 0)
        return rc;
    if (o.mode < 0 || (size_t)o.mode >= ARRAY_LEN(modes))
        return err_set(err, PAWL_EUSAGE, "mode: %d is none", o.mode);
    *mode = modes[o.mode];
    settings_add(&list, "store", url);
    settings_ms(&list, "store_timeout", o.timeout_ms);
    rc = settings_durability(&list, o.durability, err);
    if (rc == 0)
        rc = settings_list(&list, o.settings, o.n_settings, err);
    return rc < 0 ? rc : settings_config(&list, out, err);
}

/* Error-checking, so that a call out of a callback is refused instead of waiting for itself. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

static int open_store(const char *url, const pawl_open_options *options, pawl_store **out,
                      struct pawl_err *err)
{
    AUTO_CONFIG struct config *config = NULL;
    enum store_mode mode = STORE_READ;
    struct store *handle;
    int rc = open_config(url, options, &mode, &config, err);
    if (rc == 0)
        rc = stores_open(config, mode, &handle, err);
    if (rc < 0)
        return rc;
    pawl_store *s = mem_zalloc(1, sizeof(*s));
    init_lock(&s->lock);
    s->config = TAKE_PTR(config);
    s->mode = mode;
    s->handle = handle;
    *out = s;
    return 0;
}

int pawl_open(const char *url, const pawl_open_options *options, pawl_store **out, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!url || !out)
        return api_usage(err, "pawl_open: %s is NULL", url ? "out" : "url");
    return api_end(open_store(url, options, out, &e), err, &e);
}

void pawl_close(pawl_store *s)
{
    struct pawl_err e;
    if (!s)
        return;
    while (s->sessions)
        (void)session_drop(s->sessions, &e);
    store_close(s->handle);
    pthread_mutex_destroy(&s->lock);
    config_free(s->config);
    free(s);
}

/* ---- adding ---- */

static void give_added(const struct add_result *res, pawl_added *out)
{
    static const int outcomes[] = {
        [ADD_CREATED] = PAWL_ADD_CREATED,   [ADD_EXISTS] = PAWL_ADD_EXISTS,
        [ADD_REQUEUED] = PAWL_ADD_REQUEUED, [ADD_REPLACED] = PAWL_ADD_REPLACED,
        [ADD_RUNNING] = PAWL_ADD_RUNNING,   [ADD_CONFLICT] = PAWL_ADD_CONFLICT,
    };
    *out = (pawl_added){.id = res->id.v,
                        .outcome = outcomes[res->outcome],
                        .state = res->outcome == ADD_CREATED ? -1 : (int)res->state};
}

static int add_many(pawl_store *s, const pawl_job *jobs, size_t n, int on_duplicate,
                    pawl_added *out, struct pawl_err *err)
{
    static const enum on_duplicate how[] = {
        [PAWL_DUPLICATE_SKIP] = DUPLICATE_SKIP,
        [PAWL_DUPLICATE_REQUEUE] = DUPLICATE_REQUEUE,
        [PAWL_DUPLICATE_FAIL] = DUPLICATE_FAIL,
    };
    if (on_duplicate < 0 || (size_t)on_duplicate >= ARRAY_LEN(how))
        return err_set(err, PAWL_EUSAGE, "on_duplicate: %d is none", on_duplicate);
    AUTO_FREE struct job_spec *specs = mem_zalloc(n, sizeof(*specs));
    AUTO_FREE struct add_result *results = mem_zalloc(n, sizeof(*results));
    int rc = specs_read(jobs, n, specs, err);
    if (rc < 0 || n == 0)
        return rc;
    rc = store_enter_writing(s, err);
    if (rc < 0)
        return rc;
    rc = store_leave(s, store_enqueue(s->handle, specs, n, how[on_duplicate], results, err));
    for (size_t i = 0; i < n && rc == 0 && out; i++)
        give_added(&results[i], &out[i]);
    return rc;
}

int pawl_add_many(pawl_store *s, const pawl_job *jobs, size_t n, int on_duplicate, pawl_added *out,
                  pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s)
        return api_usage(err, "pawl_add_many: store is NULL");
    return api_end(add_many(s, jobs, n, on_duplicate, out, &e), err, &e);
}

int pawl_add(pawl_store *s, const pawl_job *job, int on_duplicate, pawl_added *out, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s || !job)
        return api_usage(err, "pawl_add: %s is NULL", s ? "job" : "store");
    return api_end(add_many(s, job, 1, on_duplicate, out, &e), err, &e);
}

/* ---- acting ---- */

int selection_read(const pawl_selection *given, struct arena *a, struct selection *out,
                   struct pawl_err *err)
{
    pawl_selection in;
    int rc = take_struct(&in, sizeof(in), given, "pawl_selection", err);
    if (rc < 0)
        return rc;
    if (in.n_ids && !in.ids)
        return err_set(err, PAWL_EUSAGE, "pawl_selection: %zu ids, but no list", in.n_ids);
    if (in.states >> N_JOB_STATES || in.limit < 0 || in.since_ms < 0 ||
        in.since_ms > INT64_MAX / 1000)
        return err_set(err, PAWL_EUSAGE, "pawl_selection: %s out of bounds",
                       in.states >> N_JOB_STATES ? "states"
                       : in.limit < 0            ? "limit"
                                                 : "since_ms");
    job_id *ids = arena_zalloc(a, in.n_ids, sizeof(*ids));
    for (size_t i = 0; i < in.n_ids; i++)
        ids[i].v = in.ids[i];
    *out = (struct selection){
        .ids = ids,
        .n_ids = in.n_ids,
        .queue = sv_of(in.queue),
        .kind = sv_of(in.kind),
        .host = sv_of(in.host),
        .key = sv_of(in.key),
        .states = in.states,
        .error = sv_of(in.error),
        .since = {in.since_ms * 1000},
        .limit = in.limit,
        .after = {in.after},
    };
    return 0;
}

/* In short transactions until all is done or the limit reached. */
static int act_all(struct store *s, struct act_request req, int64_t *changed, struct pawl_err *err)
{
    int64_t left = req.select.limit ? req.select.limit : INT64_MAX;
    struct act_result r = {.more = true};
    while (r.more && left > 0) {
        req.max = left < ACT_BATCH ? (int)left : ACT_BATCH;
        req.select.limit = req.select.limit ? left : 0;
        int rc = s->ops->act(s, &req, &r, err);
        if (rc < 0)
            return rc;
        *changed += r.changed;
        left -= r.changed;
        req.select.after = r.cursor;
    }
    return 0;
}

static int act(pawl_store *s, int what, const pawl_selection *selection, int64_t *out,
               struct pawl_err *err)
{
    static const enum act acts[] = {
        [PAWL_ACT_RETRY] = ACT_RETRY,    [PAWL_ACT_CANCEL] = ACT_CANCEL,
        [PAWL_ACT_PRUNE] = ACT_PRUNE,    [PAWL_ACT_RELEASE] = ACT_RELEASE,
        [PAWL_ACT_REVOKE] = ACT_RELEASE,
    };
    AUTO(arena_done) struct arena a;
    struct act_request req = {0};
    arena_init(&a);
    if (what < PAWL_ACT_RETRY || (size_t)what >= ARRAY_LEN(acts))
        return err_set(err, PAWL_EUSAGE, "act: %d is none", what);
    req.act = acts[what];
    req.force = what == PAWL_ACT_REVOKE;
    int rc = selection_read(selection, &a, &req.select, err);
    if (rc == 0)
        rc = store_enter_writing(s, err);
    return rc < 0 ? rc : store_leave(s, act_all(s->handle, req, out, err));
}

int pawl_act(pawl_store *s, int what, const pawl_selection *selection, int64_t *out_changed,
             pawl_error *err)
{
    struct pawl_err e = {0};
    int64_t changed = 0;
    if (!s || !selection)
        return api_usage(err, "pawl_act: %s is NULL", s ? "selection" : "store");
    int rc = act(s, what, selection, &changed, &e);
    if (rc == 0 && out_changed)
        *out_changed = changed;
    return api_end(rc, err, &e);
}

int pawl_pause(pawl_store *s, const char *queue, bool paused, pawl_error *err)
{
    struct pawl_err e = {0};
    bool changed;
    if (!s || !queue)
        return api_usage(err, "pawl_pause: %s is NULL", s ? "queue" : "store");
    int rc = check_name(queue, "queue", &e);
    if (rc == 0)
        rc = store_enter_writing(s, &e);
    if (rc == 0)
        rc = store_leave(s, s->handle->ops->pause(s->handle, sv_of(queue), paused, &changed, &e));
    return api_end(rc, err, &e);
}

/* ---- waiting ---- */

int pawl_wait_for_work(pawl_store *s, int64_t timeout_ms, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s || timeout_ms < -1)
        return api_usage(err, "pawl_wait_for_work: %s", s ? "timeout_ms" : "store is NULL");
    int rc = store_enter(s, &e);
    if (rc < 0)
        return api_fail(err, &e);
    int fd = s->handle->ops->wake_fd ? s->handle->ops->wake_fd(s->handle) : -1;
    struct pollfd p = {.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), .events = POLLIN};
    (void)store_leave(s, 0);
    bool capped = timeout_ms < 0 || timeout_ms > WAIT_LONGEST;
    int got = poll(&p, 1, capped ? WAIT_LONGEST : (int)timeout_ms);
    if (p.fd >= 0)
        close(p.fd);
    if (got <= 0)
        return 0;
    rc = store_enter(s, &e);
    if (rc < 0)
        return api_fail(err, &e);
    s->handle->ops->wake_clear(s->handle);
    (void)store_leave(s, 0);
    return 0;
}
