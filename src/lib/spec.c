/* Jobs between their public form and the store's. */
#include "api.h"

int check_json(const char *text, size_t max, const char *what, struct pawl_err *err)
{
    AUTO_JSON struct json doc = {0};
    struct sv s = sv_of(text);
    if (!text)
        return err_set(err, PAWL_EUSAGE, "%s is NULL", what);
    if (s.n > max)
        return err_set(err, PAWL_EINPUT, "%s is longer than %zu bytes", what, max);
    return json_parse(&doc, s, err) < 0 ? err_wrap(err, "%s", what) : 0;
}

static int read_payload(const pawl_job *job, struct json *doc, struct sv *out, struct pawl_err *err)
{
    if (!job->payload && job->payload_len)
        return err_set(err, PAWL_EUSAGE, "payload: has a length, but is NULL");
    if (!job->payload)
        return 0;
    *out = sv_make(job->payload, job->payload_len ? job->payload_len : strlen(job->payload));
    if (out->n > PAYLOAD_MAX_BYTES)
        return err_set(err, PAWL_EINPUT, "payload is longer than %d bytes", PAYLOAD_MAX_BYTES);
    return json_parse(doc, *out, err) < 0 ? err_wrap(err, "payload") : 0;
}

static int spec_read(const pawl_job *job, struct json *doc, struct job_spec *out,
                     struct pawl_err *err)
{
    struct job_spec s = job_spec_default();
    s.kind = sv_of(job->kind);
    if (job->queue)
        s.queue = sv_of(job->queue);
    s.key = sv_of(job->key);
    s.host = sv_of(job->host);
    s.lock = sv_of(job->lock);
    s.priority = job->priority;
    s.max_attempts = job->max_attempts;
    s.timeout = job->timeout_ms == -1 ? DUR_NONE : ms_dur(job->timeout_ms);
    s.delay = ms_dur(job->delay_ms);
    if (job->timeout_ms < -1 || s.timeout.us > DUR_MAX_US)
        return err_set(err, PAWL_EINPUT, "timeout_ms is %lld", (long long)job->timeout_ms);
    if (job->at_ms < 0 || job->at_ms > INT64_MAX / 1000)
        return err_set(err, PAWL_EINPUT, "at_ms is %lld", (long long)job->at_ms);
    s.at = (struct wall){job->at_ms * 1000};
    if (read_payload(job, doc, &s.payload, err) < 0 || job_spec_check(&s, err) < 0)
        return err->code;
    *out = s;
    return 0;
}

int specs_read(const pawl_job *jobs, size_t n, struct job_spec *out, struct pawl_err *err)
{
    AUTO_JSON struct json doc = {0};
    const char *at = (const char *)jobs;
    if (n && !jobs)
        return err_set(err, PAWL_EUSAGE, "%zu jobs, but no list", n);
    for (size_t i = 0; i < n; i++) {
        pawl_job job;
        int rc = take_struct(&job, sizeof(job), at, "pawl_job", err);
        if (rc == 0 && job.size != jobs->size)
            rc = err_set(err, PAWL_EUSAGE, "pawl_job: its size is %zu, that of the first %zu",
                         job.size, jobs->size);
        if (rc == 0)
            rc = spec_read(&job, &doc, &out[i], err);
        if (rc < 0)
            return n > 1 ? err_wrap(err, "job %zu of %zu", i + 1, n) : rc;
        at += job.size;
    }
    return 0;
}

const char *api_text(struct sv s, struct arena *a)
{
    return s.p ? arena_strndup(a, s.p, s.n) : NULL;
}

static struct sv kept(struct sv s, struct arena *a)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

void held_fill(struct held *h, const struct lease *l, struct arena *a)
{
    struct lease *r = &h->raw;
    *r = *l;
    r->queue = kept(l->queue, a);
    r->kind = kept(l->kind, a);
    r->key = kept(l->key, a);
    r->host = kept(l->host, a);
    r->payload = kept(l->payload, a);
    h->face = (pawl_lease){
        .id = r->id.v,
        .fence = r->fence.v,
        .queue = r->queue.p,
        .kind = r->kind.p,
        .key = r->key.p,
        .host = r->host.p,
        .payload = r->payload.p,
        .payload_len = r->payload.n,
        .priority = r->priority,
        .attempt = r->attempt,
        .transient_attempts = r->transient,
        .lost = r->lost,
        .max_attempts = r->max_attempts,
        .timeout_ms = r->timeout.us < 0 ? -1 : us_ms(r->timeout.us),
        .created_at_ms = us_ms(r->created_at.us),
        .ready_at_ms = us_ms(r->ready_at.us),
        .claimed_at_ms = us_ms(r->claimed_at.us),
    };
}
