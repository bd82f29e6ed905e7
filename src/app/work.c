/* A worker put together: zygote, loop, handlers, kinds and pools. */
#include "app.h"

#include "exec.h"
#include "fd.h"
#include "mem.h"
#include "process.h"
#include "stores.h"
#include "text.h"
#include <sys/prctl.h>
#include <unistd.h>

const char *const app_kinds[APP_KINDS] = {"exec", "noop", "fetch"};

struct assembly {
    const struct run_request *req;
    struct zygote *zygote;
    struct loop *loop;
    struct handlers handlers;
    struct worker_kind *kinds;
    size_t n_kinds;
    struct pool_conf *pools; /* names borrowed */
    size_t n_pools;
    struct notify notify;
    sigset_t signals;
    bool zygote_died;
};

/* Every kind there is: built in, then configured. */
static size_t count_kinds(const struct config *c)
{
    return APP_KINDS + c->n_kinds;
}

static const char *kind_name(const struct config *c, size_t i)
{
    return i < APP_KINDS ? app_kinds[i] : c->kinds[i - APP_KINDS].name;
}

static int check_kind(const struct config *c, const char *option, const char *kind,
                      struct pawl_err *err)
{
    size_t n = count_kinds(c);
    AUTO_FREE const char **names = mem_zalloc(n, sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        names[i] = kind_name(c, i);
        if (!strcmp(kind, names[i]))
            return 0;
    }
    const char *near = sv_nearest(sv_of(kind), names, n);
    err_set(err, PAWL_EUSAGE, "%s: neither built in nor in the configuration is kind '%s'", option,
            kind);
    if (near)
        err_hint(err, "did you mean '%s'?", near);
    return PAWL_EUSAGE;
}

static bool wanted(const struct run_request *r, const char *kind)
{
    for (size_t i = 0; i < r->n_kinds; i++)
        if (!strcmp(kind, r->kinds[i]))
            return true;
    return r->n_kinds == 0;
}

static bool runs_processes(const struct config *c, const char *kind)
{
    return handler_kind(c, sv_of(kind)) == HANDLER_EXEC;
}

static bool needs_zygote(const struct run_request *r)
{
    for (size_t i = 0; i < count_kinds(r->config); i++) {
        const char *kind = kind_name(r->config, i);
        if (wanted(r, kind) && runs_processes(r->config, kind))
            return true;
    }
    for (size_t i = 0; i < r->config->n_alerts; i++)
        if (r->config->alerts[i].command.n)
            return true;
    return false;
}

static void add_kind(struct assembly *a, const char *name)
{
    const struct config *c = a->req->config;
    const struct kind_conf *k = config_kind(c, sv_of(name));
    a->kinds[a->n_kinds++] = (struct worker_kind){
        .name = name,
        .handler = a->handlers.v[handler_kind(c, sv_of(name))],
        .timeout = k && k->timeout.us ? k->timeout : c->worker_timeout,
        .max_attempts = k && k->max_attempts ? k->max_attempts : (int)c->retry_max_attempts,
        .preflight = k && (k->preflight.n || k->preflight_url),
        .preflight_url = k ? k->preflight_url : NULL,
        .preflight_ttl = k ? k->preflight_ttl : DUR_US(0),
        .preflight_timeout = k ? k->preflight_timeout : DUR_US(0),
        .keeps = handler_kind(c, sv_of(name)) == HANDLER_FETCH,
    };
}

/* A configured kind may carry a built-in name: once is enough. */
static bool has_kind(const struct assembly *a, const char *name)
{
    for (size_t i = 0; i < a->n_kinds; i++)
        if (!strcmp(a->kinds[i].name, name))
            return true;
    return false;
}

static void add_kinds(struct assembly *a)
{
    const struct config *c = a->req->config;
    a->kinds = mem_zalloc(count_kinds(c), sizeof(*a->kinds));
    for (size_t i = 0; i < count_kinds(c); i++) {
        const char *name = kind_name(c, i);
        if (wanted(a->req, name) && !has_kind(a, name))
            add_kind(a, name);
    }
}

static void set_pool(struct assembly *a, char *kind, int slots)
{
    for (size_t i = 0; i < a->n_pools; i++)
        if (!strcmp(a->pools[i].kind, kind)) {
            a->pools[i].slots = slots;
            return;
        }
    a->pools[a->n_pools++] = (struct pool_conf){kind, slots};
}

static int default_slots(const struct config *c)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (c->worker_slots > 0)
        return (int)c->worker_slots;
    return cpus > 0 ? (int)cpus : 1;
}

/* Configured pools, then flags over them; `*` is sized by worker.slots and `fetch` by fetch.slots
 * unless one of them does. */
static void add_pools(struct assembly *a)
{
    static char rest[] = "*", fetch[] = "fetch";
    const struct run_request *r = a->req;
    a->pools = mem_zalloc(r->config->n_pools + r->n_pools + 2, sizeof(*a->pools));
    set_pool(a, rest, default_slots(r->config));
    if (!r->guest && wanted(r, fetch))
        set_pool(a, fetch, (int)r->config->fetch_slots);
    for (size_t i = 0; i < r->config->n_pools; i++)
        set_pool(a, r->config->pools[i].kind, r->config->pools[i].slots);
    for (size_t i = 0; i < r->n_pools; i++)
        set_pool(a, r->pools[i].kind, r->pools[i].slots);
}

static int open_store(void *arg, struct store **out, struct pawl_err *err)
{
    const struct assembly *a = arg;
    return stores_open(a->req->config, STORE_CREATE, out, err);
}

static void on_session(void *arg, const struct session *session)
{
    struct assembly *a = arg;
    struct pawl_err err;
    if (a->zygote && zygote_set_session_lock(a->zygote, session->lock_fd, &err) < 0)
        LOG(a->req->log, LOG_ERROR, "zygote", LOG_S("error", sv_of(err.msg)));
}

static void on_deadline(void *arg, struct boot deadline)
{
    struct assembly *a = arg;
    if (a->zygote)
        zygote_set_deadline(a->zygote, deadline);
}

/* ---- commands beside the jobs ---- */

struct aside_run {
    struct process *process;
    aside_done_fn *done;
    void *arg;
};

static void on_aside_line(void *arg, struct sv line, int64_t at, bool too_long)
{
    (void)arg;
    (void)line;
    (void)at;
    (void)too_long;
}

static void describe_end(const struct process_report *r, struct str *out)
{
    if (r->cause == PROCESS_START_FAILED)
        str_addf(out, "cannot be started: %s", strerror(r->error));
    else if (r->signal)
        str_addf(out, "ended by signal %d", r->signal);
    else
        str_addf(out, "exit status %d", r->exit_code);
    if (sv_trim(r->tail).n) {
        struct sv tail = sv_trim(r->tail);
        size_t cut = tail.n > 100 ? tail.n - 100 : 0;
        str_adds(out, ": ");
        text_safe(out, sv_make(tail.p + cut, tail.n - cut), 0);
    }
}

static void on_aside_end(void *arg, const struct process_report *report)
{
    struct aside_run *run = arg;
    AUTO_STR struct str text = STR_INIT(1024);
    bool well = report->cause == PROCESS_EXITED && report->exit_code == 0;
    if (!well)
        describe_end(report, &text);
    run->done(run->arg, well ? NULL : str_cstr(&text));
    free(run);
}

static int run_aside(void *arg, const struct aside *what, aside_done_fn *done, void *done_arg,
                     struct aside_run **out, struct pawl_err *err)
{
    struct assembly *a = arg;
    if (!a->zygote)
        return err_set(err, PAWL_EINTERNAL, "no process can be started");
    AUTO_FREE const char **argv = mem_zalloc(what->command->n + 1, sizeof(*argv));
    for (size_t i = 0; i < what->command->n; i++)
        argv[i] = what->command->v[i];
    struct aside_run *run = mem_zalloc(1, sizeof(*run));
    *run = (struct aside_run){.done = done, .arg = done_arg};
    const struct process_spec spec = {.argv = argv,
                                      .env = (const char *const *)environ,
                                      .input = what->input,
                                      .timeout = what->timeout,
                                      .log_dir = -1};
    const struct process_events events = {on_aside_line, on_aside_end, run};
    int rc = process_spawn(a->zygote, a->loop, &spec, &events, &run->process, err);
    if (rc < 0)
        free(run);
    else
        *out = run;
    return rc;
}

static void end_aside(struct aside_run *run)
{
    process_cancel(run->process, true);
}

/* Nothing can be started any more: what runs may end, then the worker does, as after SIGTERM. */
static void on_zygote_death(void *arg)
{
    struct assembly *a = arg;
    a->zygote_died = true;
    LOG(a->req->log, LOG_ERROR, "zygote", LOG_S("error", SV("it died; no process can be started")));
    kill(getpid(), SIGTERM);
}

static int run(struct assembly *a, struct worker_report *out, struct pawl_err *err)
{
    const struct run_request *r = a->req;
    struct worker_options o = {
        .config = r->config,
        .loop = a->loop,
        .open_store = open_store,
        .open_arg = a,
        .kinds = a->kinds,
        .n_kinds = a->n_kinds,
        .only_kinds = r->n_kinds > 0,
        .pools = a->pools,
        .n_pools = a->n_pools,
        .queues = r->queues,
        .n_queues = r->n_queues,
        .drain = r->drain,
        .no_fail = r->no_fail,
        .patience = r->patience,
        .stop_after_jobs = r->stop_after_jobs,
        .stop_after = r->stop_after,
        .only = r->only,
        .log = r->log,
        .no_policy = r->guest != NULL, /* `pawl each` keeps its own counsel */
        .progress = r->progress,
        .on_session = on_session,
        .on_deadline = on_deadline,
        .on_arg = a,
        .run_aside = run_aside,
        .end_aside = end_aside,
        .guest = r->guest,
        .notify = &a->notify,
        .signals = a->signals,
    };
    int rc = r->on_ready ? r->on_ready(r->guest->arg, a->loop, err) : 0;
    if (rc < 0)
        return rc;
    rc = worker_run(&o, out, err);
    if (r->on_over)
        r->on_over(r->guest->arg);
    return rc;
}

/* In this order: signals, zygote, everything else. The zygote is forked from a process that has no
 * thread, no database and no secret yet in memory that a job could reach. */
static int assemble(struct assembly *a, struct pawl_err *err)
{
    sigemptyset(&a->signals);
    sigaddset(&a->signals, SIGINT);
    sigaddset(&a->signals, SIGTERM);
    sigaddset(&a->signals, SIGHUP);
    notify_open(&a->notify);                   /* before the zygote: not for jobs */
    sigprocmask(SIG_BLOCK, &a->signals, NULL); /* for good: cleaning up is not interrupted either */
    int rc = needs_zygote(a->req) ? zygote_start(&a->zygote, err) : 0;
    if (rc < 0)
        return rc;
    fd_allow_many();           /* thousands of fetches; jobs have what the zygote had before */
    prctl(PR_SET_DUMPABLE, 0); /* jobs of the same user cannot read the worker's memory (S38) */
    rc = loop_new(&a->loop, err);
    if (rc == 0 && a->zygote)
        rc = zygote_attach(a->zygote, a->loop, on_zygote_death, a, err);
    if (rc < 0)
        return rc;
    handlers_make(&a->handlers, a->zygote, a->loop, a->req->config);
    if (a->handlers.v[HANDLER_EXEC] && a->req->plain)
        handler_exec_plain(a->handlers.v[HANDLER_EXEC], environ);
    add_kinds(a);
    add_pools(a);
    return 0;
}

static void take_apart(struct assembly *a)
{
    handlers_free(&a->handlers);
    if (a->zygote)
        zygote_stop(a->zygote);
    if (a->loop)
        loop_free(a->loop);
    notify_close(&a->notify);
    free(a->kinds);
    free(a->pools);
    prctl(PR_SET_DUMPABLE, 1);
}

int app_run_worker(const struct run_request *req, struct worker_report *out, struct pawl_err *err)
{
    struct assembly a = {.req = req};
    for (size_t i = 0; i < req->n_kinds; i++)
        if (check_kind(req->config, "--kind", req->kinds[i], err) < 0)
            return PAWL_EUSAGE;
    for (size_t i = 0; i < req->n_pools; i++)
        if (strcmp(req->pools[i].kind, "*") != 0 &&
            check_kind(req->config, "--pool", req->pools[i].kind, err) < 0)
            return PAWL_EUSAGE;
    int rc = assemble(&a, err);
    if (rc == 0)
        rc = run(&a, out, err);
    if (rc == 0 && a.zygote_died) {
        rc = err_set(err, PAWL_EFAILED, "the process that starts jobs died");
        err_hint(err, "its jobs went back to the queue; start the worker again");
    }
    take_apart(&a);
    return rc;
}
