#include "status.h"

#include "workers_out.h"

static void add_class(struct queue_row *r, const struct class_view *v)
{
    r->queue = v->queue;
    r->paused = v->paused;
    for (int i = 0; i < N_JOB_STATES; i++)
        r->n[i] += v->n[i];
    r->retries += v->retries;
    r->done_last_minute += v->done_last_minute;
    if (v->first_created_at.us &&
        (!r->first_created_at.us || v->first_created_at.us < r->first_created_at.us))
        r->first_created_at = v->first_created_at;
}

static int64_t jobs_left(const struct queue_row *r)
{
    return r->n[JOB_BLOCKED] + r->n[JOB_QUEUED] + r->n[JOB_WAITING] + r->n[JOB_RUNNING];
}

/* Rate now: ended in the last minute, or since the first job if that is less. Mean: since then. */
static void add_rates(struct queue_row *r, struct wall now)
{
    double age = r->first_created_at.us ? (double)(now.us - r->first_created_at.us) / 1e6 : 0;
    int64_t left = jobs_left(r);
    r->rate_now = (double)r->done_last_minute / (age > 1 && age < 60 ? age : 60);
    r->rate_mean = age > 1 ? (double)(r->n[JOB_DONE] + r->n[JOB_SKIPPED]) / age : 0;
    double rate = r->rate_now > 0 ? r->rate_now : r->rate_mean;
    r->eta = DUR_NONE;
    if (left && !r->paused && rate > 0 && (double)left / rate < (double)DUR_MAX_US / 1e6)
        r->eta = DUR_US((double)left / rate * 1e6);
}

struct queue_row *status_rows(const struct status_view *s, struct arena *a, size_t *out_n)
{
    struct queue_row *rows = arena_zalloc(a, s->n_classes + 1, sizeof(*rows));
    size_t n = 0;
    for (size_t i = 0; i < s->n_classes; i++) {
        if (i == 0 || !sv_eq(s->classes[i].queue, s->classes[i - 1].queue))
            n++;
        add_class(&rows[n - 1], &s->classes[i]);
    }
    for (size_t i = 0; i < n; i++)
        add_rates(&rows[i], s->now);
    *out_n = n;
    return rows;
}

static void write_counts(struct jw *w, const int64_t n[N_JOB_STATES])
{
    for (int i = 0; i < N_JOB_STATES; i++)
        jw_kint(w, job_state_name((enum job_state)i), n[i]);
}

static void write_totals(struct jw *w, const struct queue_row *rows, size_t n)
{
    int64_t total[N_JOB_STATES] = {0};
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < N_JOB_STATES; k++)
            total[k] += rows[i].n[k];
    jw_object(w);
    write_counts(w, total);
    jw_end_object(w);
}

static void write_queue(struct jw *w, const struct queue_row *r)
{
    jw_object(w);
    jw_kstring(w, "queue", r->queue);
    jw_kbool(w, "paused", r->paused);
    write_counts(w, r->n);
    jw_kint(w, "retries", r->retries);
    jw_name(w, "rate_per_s");
    jw_double(w, r->rate_now, 3);
    jw_name(w, "mean_per_s");
    jw_double(w, r->rate_mean, 3);
    jw_kms(w, "eta_ms", r->eta);
    jw_end_object(w);
}

static void write_worker_jobs(struct jw *w, const struct status_view *s, struct sv name)
{
    jw_name(w, "jobs");
    jw_array(w);
    for (size_t i = 0; i < s->n_running; i++) {
        const struct job_view *job = &s->running[i];
        if (!sv_eq(job->worker, name))
            continue;
        jw_object(w);
        jw_kint(w, "id", job->id.v);
        jw_kstring(w, "queue", job->queue);
        jw_kstring(w, "kind", job->kind);
        jw_kstring_or_null(w, "key", job->key);
        jw_kint(w, "attempt", job->attempt);
        jw_kwall(w, "claimed_at", job->claimed_at);
        jw_kms(w, "age_ms", DUR_US(s->now.us - job->claimed_at.us));
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void write_histogram(struct jw *w, const int64_t *v, enum metric_histogram h)
{
    int sum = N_COUNTERS + (int)h * (HIST_BUCKETS + 1) + HIST_BUCKETS;
    jw_name(w, metric_histogram_names[h]);
    jw_object(w);
    jw_kint(w, "count", metric_count(v, h));
    jw_name(w, "sum_ms");
    jw_double(w, (double)v[sum] / 1000, 3);
    jw_name(w, "p50_ms");
    jw_double(w, (double)metric_quantile(v, h, 0.5).us / 1000, 3);
    jw_name(w, "p99_ms");
    jw_double(w, (double)metric_quantile(v, h, 0.99).us / 1000, 3);
    jw_end_object(w);
}

static void write_metrics(struct jw *w, const int64_t *v)
{
    jw_object(w);
    for (int i = 0; i < N_COUNTERS; i++)
        jw_kint(w, metric_counter_names[i], v[i]);
    for (int i = 0; i < N_HISTOGRAMS; i++)
        write_histogram(w, v, (enum metric_histogram)i);
    jw_end_object(w);
}

int status_gates(struct cli *c, struct arena *a, struct gate_list *out, struct pawl_err *err)
{
    const struct gate_filter shut = {.shut = true};
    return gates_collect(c, &shut, GATES_WRITTEN, a, out, err);
}

void status_limited(struct out *o, const struct gate_list *gates, struct wall now)
{
    static const struct column columns[] = {
        {"LIMITED BY", false, 48, false}, {"WHY", false, 0, false},   {"USED", true, 0, false},
        {"UNTIL", true, 0, true},         {"PARKED", true, 0, false},
    };
    struct table t;
    size_t n = 0;
    while (n < gates->n && gate_hinders(&gates->v[n]))
        n++;
    if (!n)
        return;
    out_put(o, SV("\n"));
    table_begin(&t, o, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < n && i < GATES_SHOWN; i++)
        gate_cells(&t, &gates->v[i], now);
    table_end(&t);
    if (n > GATES_SHOWN)
        out_putf(o, "… %s%zu more: pawl limit list\n",
                 gates->shut > (int64_t)gates->n ? "at least " : "", n - GATES_SHOWN);
}

static void write_gates(struct jw *w, const struct gate_list *gates)
{
    jw_name(w, "gates");
    jw_array(w);
    for (size_t i = 0; gates && i < gates->n; i++)
        gate_write(w, &gates->v[i]);
    jw_end_array(w);
}

void status_write(struct jw *w, const struct status_view *s, const struct queue_row *rows, size_t n,
                  const struct gate_list *gates)
{
    jw_object(w);
    jw_name(w, "jobs");
    write_totals(w, rows, n);
    jw_name(w, "queues");
    jw_array(w);
    for (size_t i = 0; i < n; i++)
        write_queue(w, &rows[i]);
    jw_end_array(w);
    jw_name(w, "workers");
    jw_array(w);
    for (size_t i = 0; i < s->n_sessions; i++) {
        jw_object(w);
        worker_write(w, s, &s->sessions[i]);
        write_worker_jobs(w, s, s->sessions[i].name);
        jw_end_object(w);
    }
    jw_end_array(w);
    write_gates(w, gates);
    jw_name(w, "metrics");
    write_metrics(w, s->metrics);
    jw_end_object(w);
}
