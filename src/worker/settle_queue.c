/* Ends of attempts on their way to the store: a handler's result becomes a settle record in the
 * turn being filled; once committed it is counted and logged. */
#include "worker_internal.h"

#include "hash.h"
#include "retry.h"
#include "text.h"

/* ---- building ---- */

static struct settle *add(struct worker *w, const struct lease *l, struct batch *b, struct dur took)
{
    struct turn *t = w->filling;
    if (t->n_settles == t->cap_settles) {
        t->cap_settles = t->cap_settles ? t->cap_settles * 2 : 256;
        t->settles = mem_realloc(t->settles, t->cap_settles, sizeof(*t->settles));
        t->ended = mem_realloc(t->ended, t->cap_settles, sizeof(*t->ended));
        t->outcomes = mem_realloc(t->outcomes, t->cap_settles, sizeof(*t->outcomes));
    }
    if (l->hint.policy < 0) /* its permit or lock lets another one go: look in the same turn */
        slots_freed(w);
    t->ended[t->n_settles] = (struct ended){.lease = l, .batch = b, .took = took};
    struct settle *s = &t->settles[t->n_settles++];
    *s = (struct settle){
        .id = l->id, .fence = l->fence, .exit_code = -1, .retry_after = DUR_NONE, .hint = l->hint};
    return s;
}

static struct ended *last_ended(struct worker *w)
{
    return &w->filling->ended[w->filling->n_settles - 1];
}

static struct sv keep(struct worker *w, struct sv s)
{
    return s.p ? sv_make(arena_strndup(&w->filling->texts, s.p, s.n), s.n) : s;
}

static size_t cut_utf8(struct sv s, size_t max)
{
    if (s.n <= max)
        return s.n;
    while (max && ((unsigned char)s.p[max] & 0xC0) == 0x80)
        max--;
    return max;
}

/* Whatever bytes a handler gave: stored as valid UTF-8 of bounded length. I14 */
static struct sv keep_text(struct worker *w, struct sv s)
{
    if (!s.p || (s.n <= ERROR_MAX_BYTES && text_bad_utf8(s) == s.n))
        return keep(w, s);
    AUTO_STR struct str clean = STR_INIT(4 * ERROR_MAX_BYTES);
    text_to_utf8(&clean, sv_make(s.p, s.n < ERROR_MAX_BYTES ? s.n : ERROR_MAX_BYTES));
    return keep(w, sv_make(str_cstr(&clean), cut_utf8(str_sv(&clean), ERROR_MAX_BYTES)));
}

/* The job may be ready again after d: an idle pool must look by then. */
static void ready_in(struct worker *w, struct dur d)
{
    struct turn *t = w->filling;
    if (t->ready_in.us < 0 || d.us < t->ready_in.us)
        t->ready_in = d;
}

static void keep_children(struct worker *w, struct settle *s, const struct run_result *res)
{
    struct job_spec *v = arena_zalloc(&w->filling->texts, res->n_children, sizeof(*v));
    for (size_t i = 0; i < res->n_children; i++) {
        const struct job_spec *c = &res->children[i];
        v[i] = *c;
        v[i].queue = keep(w, c->queue);
        v[i].kind = keep(w, c->kind);
        v[i].key = keep(w, c->key);
        v[i].host = keep(w, c->host);
        v[i].lock = keep(w, c->lock);
        v[i].payload = keep(w, c->payload);
    }
    s->children = v;
    s->n_children = res->n_children;
    ready_in(w, DUR_US(0));
}

static void keep_artifacts(struct worker *w, struct settle *s, const struct run_result *res)
{
    struct artifact *v = arena_zalloc(&w->filling->texts, res->n_artifacts, sizeof(*v));
    for (size_t i = 0; i < res->n_artifacts; i++) {
        v[i] = res->artifacts[i];
        v[i].name = keep(w, v[i].name);
        v[i].type = keep(w, v[i].type);
        v[i].place = keep(w, v[i].place);
    }
    s->artifacts = v;
    s->n_artifacts = res->n_artifacts;
    last_ended(w)->kept = clock_boot();
}

static void keep_fetch(struct worker *w, struct settle *s, const struct fetch_record *f)
{
    struct fetch_record *r = arena_alloc(&w->filling->texts, sizeof(*r));
    *r = *f;
    struct sv *texts[] = {&r->url,      &r->final_url,     &r->variant,      &r->method,
                          &r->etag,     &r->last_modified, &r->headers,      &r->content_type,
                          &r->encoding, &r->address,       &r->http_version, &r->redirects};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = keep(w, *texts[i]);
    s->fetch = r;
}

static struct retry_policy policy_for(const struct worker *w, const struct lease *l,
                                      const struct kind *k)
{
    const struct config *c = w->o->config;
    int max = l->max_attempts ? l->max_attempts : k->max_attempts;
    return (struct retry_policy){
        .max_attempts = max ? max : (int)c->retry_max_attempts,
        .transient_max_attempts = (int)c->retry_transient_max_attempts,
        .max_lost = (int)c->retry_max_lost,
        .base = c->retry_base,
        .max = c->retry_max,
        .respect_retry_after = c->retry_respect_retry_after,
    };
}

static void set_failure(struct worker *w, const struct attempt *a, struct settle *s,
                        const struct failure *f, struct sv reason)
{
    struct retry_policy policy = policy_for(w, a->lease, a->kind);
    struct retry_decision d = retry_decide(&policy, a->lease->attempt, a->lease->transient, f,
                                           (uint32_t)rand_below(1ull << 32)); /* I8 */
    s->outcome = d.outcome;
    s->cls = f->cls;
    s->error = keep_text(w, reason);
    s->delay = d.delay;
    s->reason = d.reason;
    s->refund_attempt = d.refund_attempt;
    s->count_transient = d.count_transient;
    last_ended(w)->why = d.why;
    if (d.outcome == OUTCOME_RETRY)
        ready_in(w, d.delay);
}

/* What the failure says about the peer, for the gates. Throttling that does not end ends the job,
 * and its error says so. */
static void set_signal(struct worker *w, const struct attempt *a, struct settle *s,
                       const struct run_result *res)
{
    if (res->cls != CLASS_TRANSIENT)
        return;
    s->throttled = res->throttled;
    s->timed_out = res->timed_out;
    s->retry_after = res->retry_after;
    if (!s->throttled || s->outcome != OUTCOME_FAILED)
        return;
    AUTO_STR struct str text = STR_INIT(2 * ERROR_MAX_BYTES);
    int failures = a->lease->transient + 1;
    str_addf(&text, "still throttled after %d transient failure%s", failures,
             failures == 1 ? "" : "s");
    if (s->error.n) {
        str_adds(&text, ": ");
        str_add(&text, s->error);
    }
    s->error = keep_text(w, str_sv(&text));
}

static void set_fatal(struct worker *w, const struct attempt *a, struct settle *s, struct sv reason)
{
    const struct failure f = {.cls = CLASS_FATAL, .retry_after = DUR_NONE, .asked = DUR_NONE};
    set_failure(w, a, s, &f, reason);
}

/* What the handler says besides the end itself; an impossible wish fails the job, with the reason.
 */
static bool acceptable(const struct run_result *res, struct pawl_err *err)
{
    if (res->result.p && res->result.n > RESULT_MAX_BYTES) {
        err_set(err, PAWL_EINPUT, "the result has %zu bytes, more than %d", res->result.n,
                RESULT_MAX_BYTES);
        return false;
    }
    if (res->n_children > CHILDREN_MAX) {
        err_set(err, PAWL_EINPUT, "%zu child jobs, more than %d", res->n_children, CHILDREN_MAX);
        return false;
    }
    if (res->n_artifacts > ARTIFACTS_MAX) {
        err_set(err, PAWL_EINPUT, "%zu artifacts, more than %d", res->n_artifacts, ARTIFACTS_MAX);
        return false;
    }
    for (size_t i = 0; i < res->n_artifacts; i++)
        if (artifact_name_check(res->artifacts[i].name, err) < 0)
            return false;
    for (size_t i = 0; i < res->n_children; i++)
        if (job_spec_check(&res->children[i], err) < 0) {
            err_wrap(err, "child job %zu", i + 1);
            return false;
        }
    return true;
}

static void set_released(struct worker *w, struct settle *s)
{
    s->outcome = OUTCOME_RELEASED;
    s->refund_attempt = true;
    ready_in(w, DUR_US(0));
}

/* Given back until its time has come. */
static void set_later(struct worker *w, struct settle *s, const struct run_result *res)
{
    s->outcome = OUTCOME_RETRY;
    s->refund_attempt = true;
    s->error = keep_text(w, res->reason);
    s->delay = res->retry_after;
    s->reason = WAIT_RETRY_AFTER;
    last_ended(w)->why = "given back";
    ready_in(w, s->delay);
}

static void set_cancelled(struct worker *w, const struct attempt *a, struct settle *s)
{
    if (a->cancelled && a->why == CANCEL_ASKED) {
        s->outcome = OUTCOME_CANCELLED;
    } else if (a->cancelled) { /* I8: a stop costs no attempt, and the handler confirmed the end */
        set_released(w, s);
    } else {
        const struct failure f = {.cls = CLASS_ERROR, .retry_after = DUR_NONE, .asked = DUR_NONE};
        set_failure(w, a, s, &f, SV("the handler ended the job unasked"));
    }
}

static void set_end(struct worker *w, const struct attempt *a, struct settle *s,
                    const struct run_result *res)
{
    switch (res->end) {
    case RUN_DONE:
        s->outcome = OUTCOME_DONE;
        break;
    case RUN_SKIPPED:
        s->outcome = OUTCOME_SKIPPED;
        s->error = keep_text(w, res->reason);
        break;
    case RUN_FAILED: {
        const struct failure f = {res->cls, res->retry_after, res->asked};
        set_failure(w, a, s, &f, res->reason);
        set_signal(w, a, s, res);
        break;
    }
    case RUN_RELEASED:
        if (a->cancelled)
            set_cancelled(w, a, s);
        else if (res->retry_after.us > 0)
            set_later(w, s, res);
        else
            set_released(w, s);
        break;
    case RUN_CANCELLED:
        set_cancelled(w, a, s);
        break;
    }
}

static struct wall started_at(const struct attempt *a)
{
    return (struct wall){a->lease->claimed_at.us + (a->started.us - a->batch->at.us)};
}

/* ---- the guest ---- */

static struct attempt_end end_of(const struct worker *w, const struct settle *s,
                                 const struct ended *e, bool stale)
{
    return (struct attempt_end){.job = e->lease,
                                .outcome = s->outcome,
                                .error = s->error,
                                .exit_code = s->exit_code,
                                .signal = e->signal,
                                .slot = e->slot,
                                .started_at = s->started_at,
                                .took = e->took,
                                .log_bytes = s->log_bytes,
                                .log_dir = w->log_dir,
                                .stale = stale};
}

/* What the guest makes of the end that was added last. */
static enum worker_verdict ask_guest(struct worker *w)
{
    const struct worker_guest *guest = w->o->guest;
    if (!guest || !guest->on_result)
        return WORKER_GO_ON;
    struct attempt_end end =
        end_of(w, &w->filling->settles[w->filling->n_settles - 1], last_ended(w), false);
    return guest->on_result(guest->arg, &end);
}

static enum worker_verdict tell_guest(struct worker *w, const struct settle *s,
                                      const struct ended *e, bool stale)
{
    const struct worker_guest *guest = w->o->guest;
    struct attempt_end end = end_of(w, s, e, stale);
    bool shown = w->log.around && (s->log_bytes > 0 || s->outcome == OUTCOME_FAILED);
    if (shown)
        w->log.around(w->log.around_arg, true); /* what it prints may meet the bar */
    enum worker_verdict verdict = guest->on_end(guest->arg, &end);
    if (shown)
        w->log.around(w->log.around_arg, false);
    return verdict;
}

/* ---- ends ---- */

enum worker_verdict settle_result(struct attempt *a, const struct run_result *res, struct boot now)
{
    struct worker *w = a->w;
    struct pawl_err err = {0};
    struct dur took = {now.us - a->started.us};
    struct settle *s = add(w, a->lease, a->batch, took);
    metric_observe(&w->metrics, METRIC_job_duration, took);
    s->exit_code = res->exit_code;
    s->log_bytes = res->log_bytes;
    s->started_at = started_at(a);
    last_ended(w)->slot = a->slot;
    last_ended(w)->signal = res->signal;
    if (res->end != RUN_CANCELLED && !acceptable(res, &err)) {
        set_fatal(w, a, s, sv_of(err.msg));
        return ask_guest(w);
    }
    set_end(w, a, s, res);
    if (res->end == RUN_CANCELLED)
        return ask_guest(w);
    s->result = keep(w, res->result);
    if (res->n_children)
        keep_children(w, s, res);
    if (res->n_artifacts)
        keep_artifacts(w, s, res);
    if (res->fetch)
        keep_fetch(w, s, res->fetch);
    s->peer = keep(w, res->peer);
    return ask_guest(w);
}

enum worker_verdict settle_start_failure(struct attempt *a, const struct pawl_err *err)
{
    struct worker *w = a->w;
    struct settle *s = add(w, a->lease, a->batch, DUR_US(0));
    const struct failure f = {.cls = err->code == PAWL_EINPUT ? CLASS_FATAL : CLASS_ERROR,
                              .retry_after = DUR_NONE,
                              .asked = DUR_NONE};
    s->started_at = started_at(a);
    last_ended(w)->slot = a->slot;
    set_failure(w, a, s, &f, sv_of(err->msg));
    return ask_guest(w);
}

void settle_unstarted(struct worker *w, struct ready r, enum outcome outcome, const char *why)
{
    struct settle *s = add(w, r.lease, r.batch, DUR_NONE);
    s->outcome = outcome;
    s->refund_attempt = outcome == OUTCOME_RELEASED;
    last_ended(w)->why = why;
    worker_soon(w);
}

/* ---- after the commit ---- */

static void log_end(struct worker *w, const struct settle *s, const struct ended *e, bool stale)
{
    const struct lease *l = e->lease;
    AUTO_STR struct str next = STR_INIT(64);
    if (s->outcome == OUTCOME_RETRY)
        wall_format((struct wall){clock_wall().us + s->delay.us}, &next);
    const char *cls = fail_class_name(s->cls);
    const char *outcome = outcome_name(s->outcome);
    const char *event = stale ? "stale" : outcome;
    const struct log_field fields[] = {
        LOG_I("job", l->id.v),
        LOG_S("queue", l->queue),
        LOG_S("kind", l->kind),
        LOG_S("key", l->key),
        LOG_S("host", l->host),
        LOG_I("attempt", l->attempt),
        LOG_I("fence", l->fence.v),
        LOG_S("outcome", sv_of(outcome)),
        LOG_S("class", sv_of(cls)),
        LOG_I("duration_ms", e->took.us > 0 ? e->took.us / 1000 : 0),
        LOG_S("next_at", str_sv(&next)),
        LOG_S("why", sv_of(stale ? "the lease is no longer held" : e->why)),
        LOG_S("error", s->error),
    };
    log_event(&w->log, LOG_INFO, event, fields, ARRAY_LEN(fields));
}

static void count(struct worker *w, const struct settle *s)
{
    struct worker_report *r = &w->report;
    switch (s->outcome) {
    case OUTCOME_DONE:
    case OUTCOME_SKIPPED:
        (s->outcome == OUTCOME_DONE ? r->done++ : r->skipped++);
        metric_add(&w->metrics, METRIC_job_completed, 1);
        break;
    case OUTCOME_FAILED:
        r->failed++;
        metric_add(&w->metrics, METRIC_job_failed, 1);
        break;
    case OUTCOME_RETRY:
        r->retried++;
        metric_add(&w->metrics, METRIC_job_error, 1);
        break;
    case OUTCOME_RELEASED:
        r->released++;
        metric_add(&w->metrics, METRIC_job_released, 1);
        break;
    default:
        break;
    }
}

static void note_limits(struct worker *w, const struct settle *s, const struct ended *e)
{
    bool back = s->outcome == OUTCOME_RELEASED;
    if (e->took.us >= 0 && back)
        w->started_jobs--;
    else if (e->took.us >= 0)
        w->ended_jobs++;
    if (w->o->only.v == s->id.v && !back && s->outcome != OUTCOME_RETRY)
        w->only_ended = true;
}

void settle_committed(struct worker *w, struct turn *t)
{
    bool logged = w->log.level >= LOG_INFO;
    bool told = w->o->guest && w->o->guest->on_end;
    enum worker_verdict verdict = WORKER_GO_ON;
    for (size_t i = 0; i < t->n_settles; i++) {
        const struct settle *s = &t->settles[i];
        bool stale = t->outcomes[i] == SETTLE_STALE;
        if (stale) {
            w->report.stale++;
            metric_add(&w->metrics, METRIC_lease_lost, 1);
        } else {
            count(w, s);
        }
        note_limits(w, s, &t->ended[i]);
        if (logged)
            log_end(w, s, &t->ended[i], stale);
        if (told) {
            enum worker_verdict v = tell_guest(w, s, &t->ended[i], stale);
            verdict = v > verdict ? v : verdict;
        }
        batch_unref(w, t->ended[i].batch);
    }
    t->n_settles = 0;
    arena_reset(&t->texts);
    stop_as(w, verdict);
}
