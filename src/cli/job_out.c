#include "job_out.h"

#include "fingerprint.h"

int job_max_attempts(const struct job_view *job, const struct config *config)
{
    if (job->max_attempts > 0)
        return job->max_attempts;
    const struct kind_conf *kind = config_kind(config, job->kind);
    if (kind && kind->max_attempts > 0)
        return kind->max_attempts;
    return (int)config->retry_max_attempts;
}

struct dur job_timeout(const struct job_view *job, const struct config *config)
{
    if (job->timeout.us)
        return job->timeout;
    const struct kind_conf *kind = config_kind(config, job->kind);
    if (kind && kind->timeout.us)
        return kind->timeout;
    return config->worker_timeout;
}

enum style job_state_style(enum job_state s)
{
    switch (s) {
    case JOB_RUNNING:
        return STYLE_BLUE;
    case JOB_DONE:
        return STYLE_GREEN;
    case JOB_FAILED:
        return STYLE_RED;
    case JOB_WAITING:
    case JOB_BLOCKED:
        return STYLE_YELLOW;
    case JOB_SKIPPED:
    case JOB_CANCELLED:
        return STYLE_DIM;
    default:
        return STYLE_NONE;
    }
}

static void write_error(struct jw *w, enum fail_class cls, struct sv message, int exit_code)
{
    jw_name(w, "error");
    if (cls == CLASS_NONE && !message.p) {
        jw_null(w);
        return;
    }
    jw_object(w);
    char print[FINGERPRINT_TEXT];
    fingerprint_format(fingerprint(cls, message), print);
    jw_kstring_or_null(w, "class", sv_of(fail_class_name(cls)));
    jw_kstring_or_null(w, "message", message);
    jw_kint_or_null(w, "exit_code", exit_code, exit_code >= 0);
    jw_kstring_or_null(w, "fingerprint", message.p ? sv_of(print) : SV_NONE);
    jw_end_object(w);
}

static void write_attempt(struct jw *w, const struct attempt_view *a)
{
    jw_object(w);
    jw_kint(w, "attempt", a->attempt);
    jw_kint(w, "fence", a->fence.v);
    jw_kstring_or_null(w, "worker", a->worker);
    jw_kwall(w, "started_at", a->started_at);
    jw_kwall(w, "finished_at", a->finished_at);
    jw_kstring_or_null(w, "outcome", a->finished_at.us ? sv_of(outcome_name(a->outcome)) : SV_NONE);
    write_error(w, a->cls, a->error, a->exit_code);
    jw_kint(w, "log_bytes", a->log_bytes);
    jw_end_object(w);
}

static void write_identity(struct jw *w, const struct job_view *job)
{
    jw_kint(w, "id", job->id.v);
    jw_kstring(w, "queue", job->queue);
    jw_kstring(w, "kind", job->kind);
    jw_kstring_or_null(w, "key", job->key);
    jw_kstring_or_null(w, "host", job->host);
    jw_kint(w, "priority", job->priority);
    jw_kstring(w, "state", sv_of(job_state_name(job->state)));
}

static void write_budgets(struct jw *w, const struct job_view *job, const struct config *config)
{
    jw_kint(w, "attempt", job->attempt);
    jw_kint(w, "max_attempts", job_max_attempts(job, config));
    jw_kint(w, "transient_attempts", job->transient);
    jw_kint(w, "lost", job->lost);
    jw_kint(w, "fence", job->fence.v);
}

static void write_times(struct jw *w, const struct job_view *job)
{
    jw_kstring_or_null(w, "worker", job->worker);
    jw_kwall(w, "claimed_at", job->claimed_at);
    jw_kwall(w, "lease_until", job->lease_until);
    jw_kwall(w, "available_at", job->available_at);
    jw_kstring_or_null(w, "wait_reason", sv_of(wait_reason_name(job->wait_reason)));
    jw_kwall(w, "created_at", job->created_at);
    jw_kwall(w, "finished_at", job->finished_at);
}

void job_members(struct jw *w, const struct job_view *job, enum job_detail detail,
                 const struct config *config)
{
    write_identity(w, job);
    write_budgets(w, job, config);
    write_times(w, job);
    jw_kstring_or_null(w, "lock", job->lock);
    jw_kms(w, "timeout_ms", job_timeout(job, config));
    if (detail >= JOB_FULL) {
        jw_kraw_or_null(w, "payload", job->payload);
        jw_kraw_or_null(w, "result", job->result);
    }
    write_error(w, job->cls, job->error, job->exit_code);
    if (detail == JOB_COMPLETE) {
        jw_name(w, "attempts");
        jw_array(w);
        for (size_t i = 0; i < job->n_attempts; i++)
            write_attempt(w, &job->attempts[i]);
        jw_end_array(w);
    }
}

void job_write(struct jw *w, const struct job_view *job, enum job_detail detail,
               const struct config *config)
{
    jw_object(w);
    job_members(w, job, detail, config);
    jw_end_object(w);
}
