/* Claiming by hand: a session, its leases, and their ends. */
#include "api.h"

#include "hash.h"
#include "retry.h"
#include "text.h"
#include <stdio.h>
#include <unistd.h>

#define SWEEP_EVERY DUR_S(5)
#define SWEEP_IDLE  DUR_MS(500) /* when there is nothing else to do */
enum { SWEEP_SESSIONS = 16, SWEEP_JOBS = 1000, CLAIM_MOST = 10000 };

struct pawl_session {
    pawl_store *store;
    struct session session;
    struct config *config;      /* lease and retry */
    struct boot swept;          /* us 0: not yet */
    int64_t *cancels, *revoked; /* of the last renewal */
    pawl_session *next;
};

/* ---- life ---- */

static int session_config(const pawl_session_options *o, struct config **out, struct pawl_err *err)
{
    AUTO_SETTINGS struct settings list = {0};
    settings_ms(&list, "worker.lease", o->lease_ms);
    int rc = settings_list(&list, o->settings, o->n_settings, err);
    if (rc == 0 && o->name)
        rc = check_name(o->name, "name", err);
    return rc < 0 ? rc : settings_config(&list, out, err);
}

static int begin(pawl_session *s, const char *name, struct pawl_err *err)
{
    char host[256], host_pid[300];
    if (gethostname(host, sizeof(host)) < 0)
        snprintf(host, sizeof(host), "localhost");
    host[sizeof(host) - 1] = '\0';
    snprintf(host_pid, sizeof(host_pid), "%s:%d", host, (int)getpid());
    const struct session_spec spec = {.name = name ? name : host_pid,
                                      .host = host,
                                      .pid = (int)getpid(),
                                      .slots = 0,
                                      .pools = "{}",
                                      .filter = "{}",
                                      .lease = s->config->worker_lease};
    struct store *handle = s->store->handle;
    return handle->ops->session_begin(handle, &spec, &s->session, err);
}

static void session_free(pawl_session *s)
{
    config_free(s->config);
    free(s->cancels);
    free(s->revoked);
    free(s);
}

static int begin_session(pawl_store *store, const pawl_session_options *given, pawl_session **out,
                         struct pawl_err *err)
{
    pawl_session_options o;
    struct config *config;
    int rc = take_struct(&o, sizeof(o), given, "pawl_session_options", err);
    if (rc == 0)
        rc = session_config(&o, &config, err);
    if (rc < 0)
        return rc;
    pawl_session *s = mem_zalloc(1, sizeof(*s));
    s->store = store;
    s->config = config;
    rc = store_enter_writing(store, err);
    if (rc == 0) {
        rc = begin(s, o.name, err);
        if (rc == 0) {
            s->next = store->sessions;
            store->sessions = s;
        }
        (void)store_leave(store, rc);
    }
    if (rc < 0)
        session_free(s);
    else
        *out = s;
    return rc;
}

int pawl_session_begin(pawl_store *store, const pawl_session_options *options, pawl_session **out,
                       pawl_error *err)
{
    struct pawl_err e = {0};
    if (!store || !out)
        return api_usage(err, "pawl_session_begin: %s is NULL", store ? "out" : "store");
    return api_end(begin_session(store, options, out, &e), err, &e);
}

/* If the store cannot be told, the freed lock tells the sweepers that nobody of this session lives.
 */
int session_drop(pawl_session *s, struct pawl_err *err)
{
    struct store *handle = s->store->handle;
    int rc = 0;
    if (handle)
        rc = handle->ops->session_end(handle, &s->session, err);
    else if (s->session.lock_fd >= 0)
        close(s->session.lock_fd);
    pawl_session **at = &s->store->sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    session_free(s);
    return rc;
}

int pawl_session_end(pawl_session *s, pawl_error *err)
{
    struct pawl_err e = {0}, ignored;
    if (!s)
        return api_usage(err, "pawl_session_end: session is NULL");
    pawl_store *store = s->store;
    int rc = store_enter(store, &e);
    if (rc == 0)
        rc = store_leave(store, session_drop(s, &e));
    else if (rc != PAWL_EUSAGE) { /* not to be opened: the handle is NULL */
        pthread_mutex_lock(&store->lock);
        (void)session_drop(s, &ignored);
        pthread_mutex_unlock(&store->lock);
    }
    return api_end(rc, err, &e);
}

/* ---- renewing ---- */

static void give_renewal(pawl_session *s, const struct renew_result *res, pawl_renewal *out)
{
    s->cancels = mem_realloc(s->cancels, res->n_cancels, sizeof(*s->cancels));
    for (size_t i = 0; i < res->n_cancels; i++)
        s->cancels[i] = res->cancels[i].v;
    s->revoked = mem_realloc(s->revoked, res->n_revoked, sizeof(*s->revoked));
    for (size_t i = 0; i < res->n_revoked; i++)
        s->revoked[i] = res->revoked[i].id.v;
    *out = (pawl_renewal){.cancels = s->cancels,
                          .n_cancels = res->n_cancels,
                          .revoked = s->revoked,
                          .n_revoked = res->n_revoked,
                          .stop = res->command == COMMAND_STOP || res->command == COMMAND_DRAIN};
}

static int stale_session(struct pawl_err *err)
{
    err_set(err, PAWL_ESTALE, "the session's lease is over");
    return err_hint(err, "renew it more often; end it and begin another");
}

static int renew(pawl_session *s, struct arena *a, pawl_renewal *out, struct pawl_err *err)
{
    struct store *handle = s->store->handle;
    const struct renew_request req = {.session = &s->session, .lease = s->config->worker_lease};
    struct renew_result res = {0};
    int rc = handle->ops->renew(handle, &req, a, &res, err);
    if (rc == 0 && res.stale)
        rc = stale_session(err);
    if (rc == 0)
        give_renewal(s, &res, out);
    return rc;
}

int pawl_session_renew(pawl_session *s, pawl_renewal *out, pawl_error *err)
{
    struct pawl_err e = {0};
    struct arena a;
    pawl_renewal ours;
    if (!s)
        return api_usage(err, "pawl_session_renew: session is NULL");
    int rc = out ? check_size(out, "pawl_renewal", &e) : 0;
    if (rc == 0)
        rc = store_enter(s->store, &e);
    if (rc < 0)
        return api_fail(err, &e);
    arena_init(&a);
    rc = store_leave(s->store, renew(s, &a, &ours, &e));
    arena_done(&a);
    if (rc == 0 && out)
        give_struct(out, &ours, sizeof(ours));
    return api_end(rc, err, &e);
}

/* ---- claiming ---- */

struct taken {
    pawl_claimed face; /* first: what the caller has a pointer to */
    struct arena arena;
};

void pawl_claimed_free(pawl_claimed *claimed)
{
    struct taken *t = (struct taken *)claimed;
    if (!t)
        return;
    arena_done(&t->arena);
    free(t);
}

static struct sv *views(const char *const *v, size_t n, struct arena *a)
{
    struct sv *out = arena_zalloc(a, n, sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i] = sv_of(v[i]);
    return out;
}

/* Nobody else may be there to look after dead workers. I4 */
static int sweep(pawl_session *s, struct dur least, int *out_requeued, struct pawl_err *err)
{
    struct store *handle = s->store->handle;
    const struct sweep_request req = {.self = &s->session,
                                      .max_sessions = SWEEP_SESSIONS,
                                      .max_jobs = SWEEP_JOBS,
                                      .max_lost = (int)s->config->retry_max_lost};
    struct sweep_result res = {0};
    struct boot now = clock_boot();
    if (s->swept.us && now.us - s->swept.us < least.us)
        return 0;
    int rc = handle->ops->sweep(handle, &req, &res, err);
    if (rc == 0 && !res.more)
        s->swept = now;
    *out_requeued = res.requeued;
    return rc;
}

static int claim_and_sweep(pawl_session *s, const struct claim_request *req, struct arena *a,
                           struct claim_result *out, struct pawl_err *err)
{
    struct store *handle = s->store->handle;
    int freed = 0;
    int rc = sweep(s, SWEEP_EVERY, &freed, err);
    if (rc == 0)
        rc = store_claim(handle, req, a, out, err);
    if (rc < 0 || out->n || out->session_stale)
        return rc;
    freed = 0;
    rc = sweep(s, SWEEP_IDLE, &freed, err);
    return rc < 0 || !freed ? rc : store_claim(handle, req, a, out, err);
}

static int claim(pawl_session *s, const pawl_claim_options *o, struct taken *t,
                 struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    const struct claim_pool pool = {.kinds = views(o->kinds, o->n_kinds, &a),
                                    .n_kinds = o->n_kinds,
                                    .want = o->max ? o->max : 1};
    const struct claim_request req = {.session = &s->session,
                                      .pools = &pool,
                                      .n_pools = 1,
                                      .queues = views(o->queues, o->n_queues, &a),
                                      .n_queues = o->n_queues};
    struct claim_result got = {0};
    int rc = claim_and_sweep(s, &req, &a, &got, err);
    if (rc == 0 && got.session_stale)
        rc = stale_session(err);
    if (rc < 0)
        return rc;
    const pawl_lease **leases = arena_zalloc(&t->arena, got.n, sizeof(*leases));
    for (size_t i = 0; i < got.n; i++) {
        struct held *h = arena_zalloc(&t->arena, 1, sizeof(*h));
        held_fill(h, &got.leases[i], &t->arena);
        h->session = s;
        leases[i] = &h->face;
    }
    t->face = (pawl_claimed){.leases = leases,
                             .n = got.n,
                             .next_due_ms = got.next_due.us < 0 ? -1 : us_ms(got.next_due.us)};
    return 0;
}

static int check_claim(const pawl_claim_options *given, pawl_claim_options *out,
                       struct pawl_err *err)
{
    int rc = take_struct(out, sizeof(*out), given, "pawl_claim_options", err);
    if (rc == 0 && !out->n_kinds)
        rc = err_set(err, PAWL_EUSAGE, "pawl_claim: no kinds are named");
    if (rc == 0)
        rc = check_names(out->kinds, out->n_kinds, "kinds", err);
    if (rc == 0)
        rc = check_names(out->queues, out->n_queues, "queues", err);
    if (rc == 0 && (out->max < 0 || out->max > CLAIM_MOST))
        rc = err_set(err, PAWL_EUSAGE, "pawl_claim: max is %d; allowed are 1 to %d", out->max,
                     CLAIM_MOST);
    return rc;
}

int pawl_claim(pawl_session *s, const pawl_claim_options *options, pawl_claimed **out,
               pawl_error *err)
{
    struct pawl_err e = {0};
    pawl_claim_options o;
    if (!s || !options || !out)
        return api_usage(err, "pawl_claim: %s is NULL",
                         !s        ? "session"
                         : options ? "out"
                                   : "options");
    int rc = check_claim(options, &o, &e);
    if (rc == 0)
        rc = store_enter(s->store, &e);
    if (rc < 0)
        return api_fail(err, &e);
    struct taken *t = mem_zalloc(1, sizeof(*t));
    arena_init(&t->arena);
    rc = store_leave(s->store, claim(s, &o, t, &e));
    if (rc < 0)
        pawl_claimed_free(&t->face);
    else
        *out = &t->face;
    return api_end(rc, err, &e);
}

/* ---- settling ---- */

static void decide_retry(const pawl_session *s, const struct lease *l, const pawl_settlement *how,
                         struct settle *out)
{
    const struct config *c = s->config;
    const struct retry_policy policy = {
        .max_attempts = l->max_attempts ? l->max_attempts : (int)c->retry_max_attempts,
        .transient_max_attempts = (int)c->retry_transient_max_attempts,
        .max_lost = (int)c->retry_max_lost,
        .base = c->retry_base,
        .max = c->retry_max,
    };
    const struct failure f = {
        .cls = how->outcome == PAWL_RETRY ? CLASS_ERROR : CLASS_TRANSIENT,
        .retry_after = DUR_NONE,
        .asked = how->delay_ms ? ms_dur(how->delay_ms) : DUR_NONE,
    };
    struct retry_decision d =
        retry_decide(&policy, l->attempt, l->transient, &f, (uint32_t)rand_below(1ull << 32));
    out->outcome = d.outcome;
    out->cls = f.cls;
    out->delay = d.delay;
    out->reason = d.reason;
    out->refund_attempt = d.refund_attempt;
    out->count_transient = d.count_transient;
}

static int set_outcome(const pawl_session *s, const struct lease *l, const pawl_settlement *how,
                       struct settle *out, struct pawl_err *err)
{
    switch (how->outcome) {
    case PAWL_DONE:
        out->outcome = OUTCOME_DONE;
        return 0;
    case PAWL_SKIPPED:
        out->outcome = OUTCOME_SKIPPED;
        return 0;
    case PAWL_FAILED:
        out->outcome = OUTCOME_FAILED;
        out->cls = CLASS_FATAL;
        return 0;
    case PAWL_RETRY:
    case PAWL_RETRY_TRANSIENT:
        decide_retry(s, l, how, out);
        return 0;
    case PAWL_RELEASE:
        out->outcome = OUTCOME_RELEASED;
        out->refund_attempt = true;
        return 0;
    case PAWL_CANCELLED:
        out->outcome = OUTCOME_CANCELLED;
        return 0;
    default:
        return err_set(err, PAWL_EUSAGE, "outcome: %d is none", how->outcome);
    }
}

static struct sv error_text(const char *error, struct str *clean)
{
    if (!error)
        return SV_NONE;
    text_to_utf8(clean, sv_of(error));
    struct sv s = sv_make(str_cstr(clean), clean->len);
    if (s.n > ERROR_MAX_BYTES)
        for (s.n = ERROR_MAX_BYTES; s.n && ((unsigned char)s.p[s.n] & 0xC0) == 0x80;)
            s.n--;
    return s;
}

static int check_settlement(const pawl_settlement *given, pawl_settlement *out,
                            struct pawl_err *err)
{
    int rc = take_struct(out, sizeof(*out), given, "pawl_settlement", err);
    if (rc == 0 && out->delay_ms < 0)
        rc = err_set(err, PAWL_EUSAGE, "delay_ms is %lld", (long long)out->delay_ms);
    if (rc == 0 && out->n_children > CHILDREN_MAX)
        rc = err_set(err, PAWL_EINPUT, "%zu child jobs, more than %d", out->n_children,
                     CHILDREN_MAX);
    if (rc == 0 && out->n_children && out->outcome > PAWL_FAILED)
        rc = err_set(err, PAWL_EUSAGE, "children belong to a job that ends");
    if (rc == 0 && out->result)
        rc = check_json(out->result, RESULT_MAX_BYTES, "result", err);
    return rc;
}

/* A stale answer may mean that an earlier call was committed and its answer lost: the attempt of
 * exactly this fence says so. I12 */
static int was_committed(struct store *handle, const struct settle *v, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = handle->ops->job_get(handle, v->id, &a, &job, err);
    if (rc < 0 && rc != PAWL_ENOTFOUND)
        return rc;
    for (size_t i = 0; rc == 0 && i < job.n_attempts; i++)
        if (job.attempts[i].fence.v == v->fence.v && job.attempts[i].outcome == v->outcome)
            return 0;
    return err_set(err, PAWL_ESTALE, "job %lld: the lease with fence %lld is no longer held",
                   (long long)v->id.v, (long long)v->fence.v);
}

static int settle(pawl_session *s, const struct settle *v, struct pawl_err *err)
{
    enum settle_outcome outcome = SETTLE_OK;
    int rc = store_enter(s->store, err);
    if (rc < 0)
        return rc;
    rc = store_settle(s->store->handle, v, 1, &outcome, err);
    if (rc == 0 && outcome == SETTLE_STALE)
        rc = was_committed(s->store->handle, v, err);
    return store_leave(s->store, rc);
}

static int settle_lease(pawl_session *s, const struct lease *l, const pawl_settlement *given,
                        struct pawl_err *err)
{
    AUTO_STR struct str clean = STR_INIT(16 * ERROR_MAX_BYTES);
    pawl_settlement how;
    int rc = check_settlement(given, &how, err);
    if (rc < 0)
        return rc;
    AUTO_FREE struct job_spec *children = mem_zalloc(how.n_children, sizeof(*children));
    struct settle v = {.id = l->id,
                       .retry_after = DUR_NONE,
                       .fence = l->fence,
                       .exit_code = -1,
                       .hint = l->hint,
                       .error = error_text(how.error, &clean),
                       .result = sv_of(how.result),
                       .children = children,
                       .n_children = how.n_children};
    if (specs_read(how.children, how.n_children, children, err) < 0)
        return err_wrap(err, "children");
    rc = set_outcome(s, l, &how, &v, err);
    return rc < 0 ? rc : settle(s, &v, err);
}

int pawl_settle(pawl_session *s, const pawl_lease *lease, const pawl_settlement *how,
                pawl_error *err)
{
    struct pawl_err e = {0};
    if (!s || !lease || !how)
        return api_usage(err, "pawl_settle: %s is NULL", !s ? "session" : lease ? "how" : "lease");
    const struct held *h = (const struct held *)lease;
    if (h->session != s)
        return api_usage(err, "pawl_settle: the lease was not claimed under this session");
    return api_end(settle_lease(s, &h->raw, how, &e), err, &e);
}
