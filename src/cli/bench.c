#include "bench.h"

#include "mem.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 4000, WAIT_S = 10, PAUSE_MS = 10 };

int bench_begin(struct bench *b, struct cli *c, struct pawl_err *err)
{
    AUTO_STR struct str flag = STR_INIT(STR_LINE);
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    *b = (struct bench){.c = c, .url = STR_INIT(STR_LINE)};
    rc = c->app->scratch_new(c->config, &b->url, err);
    if (rc < 0)
        return rc;
    str_addf(&flag, "store=%s", str_cstr(&b->url));
    const char *flags[] = {str_cstr(&flag)};
    cli_catch_signals();
    return config_load(args_get(&c->args, "config"), environ, flags, 1, &b->config, err);
}

void bench_done(struct bench *b)
{
    if (b->url.len)
        b->c->app->scratch_free(b->c->config, str_cstr(&b->url));
    config_free(b->config);
    str_done(&b->url);
}

static struct sv lane_name(const struct bench_jobs *j, int64_t i, struct arena *a)
{
    char host[32];
    if (!j->lanes)
        return SV_NONE;
    int64_t lane = j->interleaved ? i % j->lanes : i * j->lanes / j->jobs;
    int n = snprintf(host, sizeof(host), "h%06lld.example", (long long)lane);
    return sv_make(arena_strndup(a, host, (size_t)n), (size_t)n);
}

static int fill(struct store *store, const struct bench_jobs *j, struct arena *a,
                struct job_spec *specs, struct add_result *results, struct pawl_err *err)
{
    for (int64_t done = 0; done < j->jobs;) {
        size_t n = 0;
        for (; n < BATCH && done < j->jobs; n++, done++) {
            specs[n] = job_spec_default();
            specs[n].queue = SV("bench");
            specs[n].kind = sv_of(j->kind);
            specs[n].payload = sv_of(j->payload);
            specs[n].host = lane_name(j, done, a);
        }
        if (cli_signal())
            return err_set(err, PAWL_EFAILED, "interrupted");
        int rc = store_enqueue(store, specs, n, DUPLICATE_SKIP, results, err);
        if (rc < 0)
            return rc;
        arena_reset(a);
    }
    return 0;
}

int bench_fill(struct bench *b, const struct bench_jobs *j, struct dur *out_took,
               struct pawl_err *err)
{
    AUTO_STORE struct store *store = NULL;
    AUTO_FREE struct job_spec *specs = mem_zalloc(BATCH, sizeof(*specs));
    AUTO_FREE struct add_result *results = mem_zalloc(BATCH, sizeof(*results));
    AUTO(arena_done) struct arena a;
    arena_init(&a);
    int rc = b->c->app->open_store(b->config, STORE_CREATE, &store, err);
    if (rc < 0)
        return rc;
    struct boot start = clock_boot();
    rc = fill(store, j, &a, specs, results, err);
    if (rc == 0)
        *out_took = DUR_US(clock_boot().us - start.us);
    return rc;
}

int bench_drain(struct bench *b, const char *kind, int slots, int64_t jobs, struct dur *out_took,
                struct pawl_err *err)
{
    char pool[] = "*";
    struct logger log = {.fd = STDERR_FILENO, .level = LOG_WARN};
    struct pool_conf pools[] = {{pool, slots}};
    struct run_request req = {
        .config = b->config,
        .pools = pools,
        .n_pools = 1,
        .kinds = &kind,
        .n_kinds = 1,
        .drain = true,
        .patience = DUR_NONE,
        .log = &log,
        .progress = PROGRESS_NONE,
    };
    struct worker_report report = {0};
    struct boot start = clock_boot();
    int rc = b->c->app->run_worker(&req, &report, err);
    if (rc < 0)
        return rc;
    if (report.signal)
        b->c->exit_status = 128 + report.signal;
    if (report.done != jobs)
        return err_set(err, PAWL_EFAILED, "%lld of %lld jobs were done", (long long)report.done,
                       (long long)jobs);
    *out_took = DUR_US(clock_boot().us - start.us);
    return 0;
}

int bench_effort(struct bench *b, struct store_effort *out, struct pawl_err *err)
{
    AUTO_STORE struct store *store = NULL;
    AUTO(arena_done) struct arena a;
    struct status_view s;
    arena_init(&a);
    int rc = b->c->app->open_store(b->config, STORE_READ, &store, err);
    if (rc == 0)
        rc = store->ops->status(store, 1, &a, &s, err);
    if (rc == 0)
        *out = (struct store_effort){s.metrics[METRIC_store_statements],
                                     s.metrics[METRIC_store_rows], s.metrics[METRIC_store_syncs]};
    return rc;
}

/* A worker in a process of its own: this program again, gone when we are. */
static pid_t start_worker(const struct bench *b)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        execl("/proc/self/exe", "pawl", "--store", str_cstr(&b->url), "-q", "run", "--kind", "noop",
              (char *)NULL);
    _exit(127);
}

static int wait_for_worker(struct store *store, struct pawl_err *err)
{
    struct boot start = clock_boot();
    for (size_t n = 0; n == 0;) {
        struct arena a;
        struct status_view s;
        arena_init(&a);
        int rc = store->ops->status(store, 0, &a, &s, err);
        n = rc == 0 ? s.n_sessions : 0;
        arena_done(&a);
        if (rc < 0)
            return rc;
        if (clock_boot().us - start.us > DUR_S(WAIT_S).us || cli_signal())
            return err_set(err, PAWL_EFAILED, "the worker did not start");
        poll(NULL, 0, n ? 0 : PAUSE_MS);
    }
    return 0;
}

/* When the job's first attempt started, once it is done. */
static int wait_for_start(struct store *store, job_id id, struct wall *out, struct pawl_err *err)
{
    struct boot start = clock_boot();
    struct wall found = {0};
    while (!found.us) {
        struct arena a;
        struct job_view job;
        arena_init(&a);
        int rc = store->ops->job_get(store, id, &a, &job, err);
        if (rc == 0 && job.state == JOB_DONE && job.n_attempts)
            found = job.attempts[0].started_at;
        arena_done(&a);
        if (rc < 0)
            return rc;
        if (clock_boot().us - start.us > DUR_S(WAIT_S).us || cli_signal())
            return err_set(err, PAWL_EFAILED, "job %lld was not run", (long long)id.v);
        poll(NULL, 0, 1);
    }
    *out = found;
    return 0;
}

static int sample(struct store *store, int64_t *out, struct pawl_err *err)
{
    struct job_spec spec = job_spec_default();
    struct add_result added;
    struct wall started = {0};
    spec.kind = SV("noop");
    int rc = store_enqueue(store, &spec, 1, DUPLICATE_SKIP, &added, err);
    struct wall committed = store->ops->now(store);
    if (rc == 0)
        rc = wait_for_start(store, added.id, &started, err);
    if (rc < 0)
        return rc;
    *out = started.us > committed.us ? started.us - committed.us : 0;
    poll(NULL, 0, PAUSE_MS); /* the worker is idle again */
    return 0;
}

static int take_samples(struct bench *b, int64_t *samples, size_t n, struct pawl_err *err)
{
    AUTO_STORE struct store *store = NULL;
    int64_t warm_up;
    int rc = b->c->app->open_store(b->config, STORE_CREATE, &store, err);
    if (rc == 0)
        rc = wait_for_worker(store, err);
    if (rc == 0)
        rc = sample(store, &warm_up, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = sample(store, &samples[i], err);
    return rc;
}

int bench_latency(struct bench *b, int64_t *samples, size_t n, struct pawl_err *err)
{
    pid_t pid = start_worker(b);
    if (pid < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot start a worker");
    int rc = take_samples(b, samples, n, err);
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return rc;
}
