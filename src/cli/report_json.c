/* The report as JSON. */
#include "fingerprint.h"
#include "report.h"
#include "spark.h"

static void write_now(struct jw *w, const struct report_data *d)
{
    jw_name(w, "now");
    jw_object(w);
    for (enum job_state k = JOB_BLOCKED; k <= JOB_RUNNING; k++) {
        int64_t n = 0;
        for (size_t i = 0; i < d->status.n_classes; i++)
            if (!d->queue.p || sv_eq(d->queue, d->status.classes[i].queue))
                n += d->status.classes[i].n[k];
        jw_kint(w, job_state_name(k), n);
    }
    jw_end_object(w);
}

static void write_ended(struct jw *w, const struct report_view *r)
{
    jw_name(w, "ended");
    jw_object(w);
    jw_kint(w, "done", r->total.done);
    jw_kint(w, "skipped", r->total.skipped);
    jw_kint(w, "failed", r->total.failed);
    jw_kint(w, "cancelled", r->cancelled);
    jw_end_object(w);
}

static void write_rate(struct jw *w, const struct report_view *r)
{
    struct spark s = spark_of(r);
    jw_name(w, "rate");
    jw_object(w);
    jw_kms(w, "each_ms", s.each);
    jw_name(w, "max_per_s");
    jw_double(w, (double)s.max * 1e6 / (double)s.each.us, 3);
    jw_name(w, "ended");
    jw_array(w);
    for (int i = 0; i < s.count; i++)
        jw_int(w, s.n[i]);
    jw_end_array(w);
    jw_end_object(w);
}

static void write_workers(struct jw *w, const struct report_data *d)
{
    int64_t alive = 0;
    for (size_t i = 0; i < d->status.n_sessions; i++)
        alive += d->status.sessions[i].alive;
    jw_name(w, "workers");
    jw_object(w);
    jw_kint(w, "alive", alive);
    jw_kint(w, "ended", d->view.workers_ended - d->view.workers_lost);
    jw_kint(w, "lost", d->view.workers_lost);
    jw_end_object(w);
}

static void write_slowest(struct jw *w, const struct report_view *r)
{
    jw_name(w, "slowest");
    jw_array(w);
    for (size_t i = 0; i < r->n_slowest; i++) {
        jw_object(w);
        jw_kint(w, "id", r->slowest[i].id.v);
        jw_kstring(w, "queue", r->slowest[i].queue);
        jw_kstring(w, "kind", r->slowest[i].kind);
        jw_kstring_or_null(w, "key", r->slowest[i].key);
        jw_kms(w, "took_ms", r->slowest[i].took);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void write_errors(struct jw *w, const struct report_view *r)
{
    jw_name(w, "errors");
    jw_array(w);
    for (size_t i = 0; i < r->n_errors; i++) {
        char name[FINGERPRINT_TEXT];
        fingerprint_format(r->errors[i].fingerprint, name);
        jw_object(w);
        jw_kstring(w, "error", sv_of(name));
        jw_kstring_or_null(w, "class", sv_of(fail_class_name(r->errors[i].cls)));
        jw_kint(w, "count", r->errors[i].count);
        jw_kint(w, "sample", r->errors[i].sample.v);
        jw_kstring_or_null(w, "message", r->errors[i].message);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void write_fetches(struct jw *w, const struct report_data *d)
{
    jw_name(w, "fetches");
    if (!report_fetched(d)) {
        jw_null(w);
        return;
    }
    jw_object(w);
    jw_kint(w, "fetched", d->fetches.fetched);
    jw_kint(w, "not_modified", d->fetches.not_modified);
    jw_kint(w, "failed", d->fetches.failed);
    jw_kint(w, "wire_bytes", d->fetches.wire_bytes);
    jw_kint(w, "body_bytes", d->fetches.body_bytes);
    jw_end_object(w);
}

static void write_disk(struct jw *w, const struct report_data *d)
{
    jw_name(w, "disk");
    jw_object(w);
    jw_kint(w, "store_bytes", d->info.bytes + d->info.log_bytes_pending);
    jw_kint_or_null(w, "logs_bytes", d->logs.bytes, d->logs.known);
    jw_kint_or_null(w, "free_bytes", d->info.free_bytes, d->info.free_bytes >= 0);
    jw_end_object(w);
}

void report_write(struct jw *w, const struct report_data *d)
{
    const struct report_view *r = &d->view;
    jw_object(w);
    jw_kwall(w, "since", r->since);
    jw_kwall(w, "until", r->now);
    jw_kstring_or_null(w, "queue", d->queue);
    write_now(w, d);
    write_ended(w, r);
    write_rate(w, r);
    jw_kint(w, "retried", r->total.retried);
    jw_kint(w, "lost", r->total.lost);
    jw_kms(w, "backoff_ms", r->backoff);
    jw_kms(w, "retry_after_ms", r->retry_after);
    write_workers(w, d);
    write_fetches(w, d);
    write_disk(w, d);
    write_slowest(w, r);
    write_errors(w, r);
    jw_end_object(w);
}
