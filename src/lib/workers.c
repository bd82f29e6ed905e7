/* The worker of the public library: options, kinds, and one worker of src/worker around them. */
#include "stores.h"
#include "thread_pool.h"
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { SLOTS_MAX = 10000 }; /* each may need a thread */

struct c_kind {
    char *name;
    pawl_handler *fn;
    void *arg;
    int slots; /* 0: shares */
    int max_attempts;
    struct dur timeout;      /* us 0: the worker's */
    struct handler *handler; /* while it runs */
};

struct pawl_worker {
    struct config *config;
    struct loop *loop;
    struct logger log;
    char *name; /* NULL: host:pid */
    struct sv *queues;
    size_t n_queues;
    struct c_kind *kinds;
    size_t n_kinds, cap_kinds;
    bool drain;
    int64_t stop_after_jobs;
    struct dur patience;
    pawl_log_fn *log_fn;
    void *log_arg;
    pawl_metrics_fn *metrics_fn;
    void *metrics_arg;
    _Atomic int stops;
    _Atomic bool running;
};

/* ---- sinks ---- */

static void on_log(void *arg, enum log_level level, struct sv line)
{
    static const int levels[] = {
        [LOG_ERROR] = PAWL_LOG_ERROR,
        [LOG_WARN] = PAWL_LOG_WARN,
        [LOG_INFO] = PAWL_LOG_INFO,
        [LOG_DEBUG] = PAWL_LOG_DEBUG,
    };
    const pawl_worker *w = arg;
    if (w->log_fn) /* line.p is NUL-terminated: struct str promises it */
        w->log_fn(w->log_arg, levels[level], line.p);
}

static void fill_histogram(pawl_metric *m, const int64_t *slots, const int64_t *bounds)
{
    for (int i = 0; i < HIST_BUCKETS; i++)
        m->value += slots[i];
    m->sum_us = slots[HIST_BUCKETS];
    m->n_buckets = HIST_BUCKETS;
    m->buckets = slots;
    m->bounds_us = bounds;
}

static void on_metrics(void *arg, const int64_t *values)
{
    const pawl_worker *w = arg;
    pawl_metric metrics[N_COUNTERS + N_HISTOGRAMS] = {
#define COUNTER(name_, doc)                                                                        \
    {.name = #name_, .help = (doc), .type = PAWL_METRIC_COUNTER, .value = values[METRIC_##name_]},
#define HISTOGRAM(name_, doc)
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
#define COUNTER(name_, doc)
#define HISTOGRAM(name_, doc) {.name = #name_, .help = (doc), .type = PAWL_METRIC_HISTOGRAM},
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
    };
    const pawl_metric *list[N_COUNTERS + N_HISTOGRAMS];
    int64_t bounds[HIST_BUCKETS];
    for (int i = 0; i < HIST_BUCKETS; i++)
        bounds[i] = i < HIST_BUCKETS - 1 ? (int64_t)64 << i : INT64_MAX;
    for (int i = 0; i < N_HISTOGRAMS; i++)
        fill_histogram(&metrics[N_COUNTERS + i], values + N_COUNTERS + i * (HIST_BUCKETS + 1),
                       bounds);
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        list[i] = &metrics[i];
    w->metrics_fn(w->metrics_arg, list, ARRAY_LEN(list));
}

/* ---- making ---- */

static int worker_config(const pawl_worker_options *o, struct config **out, struct pawl_err *err)
{
    AUTO_SETTINGS struct settings list = {0};
    const struct {
        const char *key;
        int64_t ms;
    } lengths[] = {
        {"store_timeout", o->store_timeout_ms},
        {"worker.lease", o->lease_ms},
        {"worker.heartbeat", o->heartbeat_ms},
        {"worker.poll_interval", o->poll_interval_ms},
        {"worker.sweep_interval", o->sweep_interval_ms},
        {"worker.stop_timeout", o->stop_timeout_ms},
        {"worker.timeout", o->timeout_ms},
        {"retry.base", o->retry_base_ms},
        {"retry.max", o->retry_max_ms},
    };
    settings_add(&list, "store", o->url);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        settings_ms(&list, lengths[i].key, lengths[i].ms);
    settings_int(&list, "worker.slots", o->slots);
    settings_int(&list, "retry.max_attempts", o->max_attempts);
    settings_int(&list, "retry.transient_max_attempts", o->transient_max_attempts);
    settings_int(&list, "retry.max_lost", o->max_lost);
    int rc = settings_durability(&list, o->durability, err);
    if (rc == 0)
        rc = settings_list(&list, o->settings, o->n_settings, err);
    return rc < 0 ? rc : settings_config(&list, out, err);
}

static int check_options(const pawl_worker_options *o, struct pawl_err *err)
{
    if (!o->url)
        return err_set(err, PAWL_EUSAGE, "pawl_worker_new: no url is given");
    if (o->name && check_name(o->name, "name", err) < 0)
        return PAWL_EUSAGE;
    if (o->stop_after_jobs < 0 || o->patience_ms < 0)
        return err_set(err, PAWL_EUSAGE, "pawl_worker_new: %s is negative",
                       o->patience_ms < 0 ? "patience_ms" : "stop_after_jobs");
    if (o->log_level < 0 || o->log_level > PAWL_LOG_DEBUG)
        return err_set(err, PAWL_EUSAGE, "log_level: %d is none", o->log_level);
    return check_names(o->queues, o->n_queues, "queues", err);
}

static void set_log(pawl_worker *w, const pawl_worker_options *o)
{
    int level = !o->log ? PAWL_LOG_ERROR : o->log_level ? o->log_level : PAWL_LOG_INFO;
    w->log_fn = o->log;
    w->log_arg = o->log_arg;
    w->log = (struct logger){
        .fd = -1, .level = (enum log_level)(level - PAWL_LOG_ERROR), .sink = on_log, .sink_arg = w};
}

static int worker_new(const pawl_worker_options *given, pawl_worker **out, struct pawl_err *err)
{
    pawl_worker_options o;
    AUTO_CONFIG struct config *config = NULL;
    struct loop *loop;
    int rc = take_struct(&o, sizeof(o), given, "pawl_worker_options", err);
    if (rc == 0)
        rc = check_options(&o, err);
    if (rc == 0)
        rc = worker_config(&o, &config, err);
    if (rc == 0)
        rc = loop_new(&loop, err);
    if (rc < 0)
        return rc;
    pawl_worker *w = mem_zalloc(1, sizeof(*w));
    w->config = TAKE_PTR(config);
    w->loop = loop;
    w->name = o.name ? mem_strdup(o.name) : NULL;
    w->queues = mem_zalloc(o.n_queues, sizeof(*w->queues));
    for (w->n_queues = 0; w->n_queues < o.n_queues; w->n_queues++)
        w->queues[w->n_queues] = sv_of(mem_strdup(o.queues[w->n_queues]));
    w->drain = o.drain;
    w->stop_after_jobs = o.stop_after_jobs;
    w->patience = o.patience_ms ? ms_dur(o.patience_ms) : DUR_NONE;
    w->metrics_fn = o.metrics;
    w->metrics_arg = o.metrics_arg;
    set_log(w, &o);
    *out = w;
    return 0;
}

int pawl_worker_new(const pawl_worker_options *options, pawl_worker **out, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!options || !out)
        return api_usage(err, "pawl_worker_new: %s is NULL", options ? "out" : "options");
    return api_end(worker_new(options, out, &e), err, &e);
}

void pawl_worker_free(pawl_worker *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_kinds; i++)
        free(w->kinds[i].name);
    for (size_t i = 0; i < w->n_queues; i++)
        free((char *)w->queues[i].p);
    free(w->kinds);
    free(w->queues);
    free(w->name);
    loop_free(w->loop);
    config_free(w->config);
    free(w);
}

/* ---- kinds ---- */

static struct c_kind *find_kind(pawl_worker *w, const char *name)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (!strcmp(w->kinds[i].name, name))
            return &w->kinds[i];
    return NULL;
}

static int add_kind(pawl_worker *w, const char *kind, pawl_handler *fn, void *arg,
                    const pawl_kind_options *given, struct pawl_err *err)
{
    pawl_kind_options o;
    int rc = take_struct(&o, sizeof(o), given, "pawl_kind_options", err);
    if (rc == 0)
        rc = check_name(kind, "kind", err);
    if (rc < 0)
        return rc;
    if (find_kind(w, kind) || !strcmp(kind, "*"))
        return err_set(err, PAWL_EUSAGE, "kind '%s' %s", kind,
                       *kind == '*' ? "is none" : "has a handler already");
    if (o.slots < 0 || o.slots > SLOTS_MAX || o.max_attempts < 0 || o.max_attempts > ATTEMPTS_MAX ||
        o.timeout_ms < -1)
        return err_set(err, PAWL_EUSAGE, "kind '%s': an option is out of bounds", kind);
    ARRAY_GROW(w->kinds, w->n_kinds, w->cap_kinds);
    w->kinds[w->n_kinds++] = (struct c_kind){
        .name = mem_strdup(kind),
        .fn = fn,
        .arg = arg,
        .slots = o.slots,
        .max_attempts = o.max_attempts,
        .timeout = o.timeout_ms == -1 ? DUR_NONE : ms_dur(o.timeout_ms),
    };
    return 0;
}

int pawl_worker_handle(pawl_worker *w, const char *kind, pawl_handler *handler, void *arg,
                       const pawl_kind_options *options, pawl_error *err)
{
    struct pawl_err e = {0};
    if (!w || !kind || !handler)
        return api_usage(err, "pawl_worker_handle: %s is NULL",
                         !w     ? "worker"
                         : kind ? "handler"
                                : "kind");
    if (atomic_load(&w->running))
        return api_usage(err, "pawl_worker_handle: the worker runs");
    return api_end(add_kind(w, kind, handler, arg, options, &e), err, &e);
}

/* ---- running ---- */

/* One run of a worker put together. */
struct assembly {
    pawl_worker *worker;
    struct thread_pool *threads;
    struct worker_kind *kinds;
    struct pool_conf *pools; /* names borrowed */
    size_t n_pools;
    int slots; /* of all pools */
};

/* worker.pools out of the settings counts unless the kind was given its own slots. */
static int pools_of_settings(pawl_worker *w, int *shared, struct pawl_err *err)
{
    for (size_t i = 0; i < w->config->n_pools; i++) {
        const struct pool_conf *p = &w->config->pools[i];
        struct c_kind *k = find_kind(w, p->kind);
        if (!strcmp(p->kind, "*"))
            *shared = p->slots;
        else if (!k)
            return err_set(err, PAWL_EUSAGE, "worker.pools: no handler for kind '%s'", p->kind);
        else if (!k->slots)
            k->slots = p->slots;
    }
    return 0;
}

static int default_slots(const struct config *c)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (c->worker_slots > 0)
        return (int)c->worker_slots;
    return cpus > 0 ? (int)cpus : 1;
}

static int add_pools(struct assembly *a, struct pawl_err *err)
{
    static char rest[] = "*";
    pawl_worker *w = a->worker;
    int shared = default_slots(w->config);
    bool sharing = false;
    if (pools_of_settings(w, &shared, err) < 0)
        return PAWL_EUSAGE;
    a->pools = mem_zalloc(w->n_kinds + 1, sizeof(*a->pools));
    for (size_t i = 0; i < w->n_kinds; i++) {
        struct c_kind *k = &w->kinds[i];
        sharing = sharing || !k->slots;
        if (k->slots)
            a->pools[a->n_pools++] = (struct pool_conf){k->name, k->slots};
        a->slots += k->slots;
    }
    if (sharing)
        a->pools[a->n_pools++] = (struct pool_conf){rest, shared};
    a->slots += sharing ? shared : 0;
    if (a->slots > SLOTS_MAX)
        return err_set(err, PAWL_EUSAGE, "%d slots, more than %d", a->slots, SLOTS_MAX);
    return 0;
}

static void add_kinds(struct assembly *a)
{
    pawl_worker *w = a->worker;
    const struct config *c = w->config;
    a->kinds = mem_zalloc(w->n_kinds, sizeof(*a->kinds));
    for (size_t i = 0; i < w->n_kinds; i++) {
        struct c_kind *k = &w->kinds[i];
        k->handler = thread_pool_handler(a->threads, k->fn, k->arg);
        a->kinds[i] = (struct worker_kind){
            .name = k->name,
            .handler = k->handler,
            .timeout = k->timeout.us ? k->timeout : c->worker_timeout,
            .max_attempts = k->max_attempts ? k->max_attempts : (int)c->retry_max_attempts,
        };
    }
}

static int open_store(void *arg, struct store **out, struct pawl_err *err)
{
    const struct assembly *a = arg;
    return stores_open(a->worker->config, STORE_CREATE, out, err);
}

static int run_assembled(struct assembly *a, struct worker_report *out, struct pawl_err *err)
{
    pawl_worker *w = a->worker;
    struct worker_options o = {
        .config = w->config,
        .name = w->name,
        .loop = w->loop,
        .open_store = open_store,
        .open_arg = a,
        .kinds = a->kinds,
        .n_kinds = w->n_kinds,
        .only_kinds = true,
        .pools = a->pools,
        .n_pools = a->n_pools,
        .queues = w->queues,
        .n_queues = w->n_queues,
        .drain = w->drain,
        .patience = w->patience,
        .stop_after_jobs = w->stop_after_jobs,
        .log = &w->log,
        .no_logs = true,
        .progress = PROGRESS_NONE,
        .on_metrics = w->metrics_fn ? on_metrics : NULL,
        .on_arg = w,
        .stop = &w->stops,
    };
    sigemptyset(&o.signals);
    return worker_run(&o, out, err);
}

static int run(pawl_worker *w, struct worker_report *out, struct pawl_err *err)
{
    struct assembly a = {.worker = w};
    if (!w->n_kinds)
        return err_set(err, PAWL_EUSAGE, "the worker has no handler");
    int rc = add_pools(&a, err);
    if (rc == 0)
        rc = thread_pool_new(w->loop, a.slots, &a.threads, err);
    if (rc == 0) {
        add_kinds(&a);
        rc = run_assembled(&a, out, err);
        for (size_t i = 0; i < w->n_kinds; i++)
            w->kinds[i].handler->ops->free(w->kinds[i].handler);
    }
    thread_pool_free(a.threads);
    free(a.kinds);
    free(a.pools);
    return rc;
}

static void give_report(const struct worker_report *r, pawl_worker_report *out)
{
    const pawl_worker_report ours = {.done = r->done,
                                     .skipped = r->skipped,
                                     .failed = r->failed,
                                     .retried = r->retried,
                                     .released = r->released,
                                     .stale = r->stale,
                                     .stuck = r->stuck,
                                     .drained = r->drained};
    give_struct(out, &ours, sizeof(ours));
}

int pawl_worker_run(pawl_worker *w, pawl_worker_report *out, pawl_error *err)
{
    struct pawl_err e = {0};
    struct worker_report report = {0};
    if (!w)
        return api_usage(err, "pawl_worker_run: worker is NULL");
    if (out && check_size(out, "pawl_worker_report", &e) < 0)
        return api_fail(err, &e);
    if (atomic_exchange(&w->running, true))
        return api_usage(err, "pawl_worker_run: the worker runs already");
    int rc = run(w, &report, &e);
    atomic_store(&w->stops, 0);
    atomic_store(&w->running, false);
    if (rc == 0 && out)
        give_report(&report, out);
    return api_end(rc, err, &e);
}

void pawl_worker_stop(pawl_worker *w)
{
    int before = errno; /* it may be a signal handler */
    if (!w)
        return;
    atomic_fetch_add(&w->stops, 1);
    loop_wake(w->loop);
    errno = before;
}
