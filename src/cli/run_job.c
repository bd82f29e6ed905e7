/* A worker may not start with a store open or with threads about: it forks the zygote. So the
 * output is printed by a child of its own, forked first, which reads store and logs as any onlooker
 * does and ends when this process closes the lifeline. */
#include "run_job.h"

#include "follow.h"
#include "helper.h"
#include "job_out.h"
#include "mem.h"
#include <signal.h>

static bool queue_paused(const struct status_view *v, struct sv queue)
{
    for (size_t i = 0; i < v->n_classes; i++)
        if (sv_eq(v->classes[i].queue, queue))
            return v->classes[i].paused;
    return false;
}

static int refuse_waiting(const struct job_view *job, struct pawl_err *err)
{
    AUTO_STR struct str until = STR_INIT(64);
    if (job->available_at.us)
        wall_format(job->available_at, &until);
    err_set(err, PAWL_ECONFLICT, "job %lld waits%s%s (%s)", (long long)job->id.v,
            until.len ? " until " : " for its time", str_cstr(&until),
            wait_reason_name(job->wait_reason) ? wait_reason_name(job->wait_reason) : "delay");
    return err_hint(err, "'pawl release %lld' makes it ready", (long long)job->id.v);
}

static int refuse_ended(const struct job_view *job, struct pawl_err *err)
{
    err_set(err, PAWL_ECONFLICT, "job %lld is %s already", (long long)job->id.v,
            job_state_name(job->state));
    return err_hint(err, "'pawl retry %lld' queues a failed or cancelled one again",
                    (long long)job->id.v);
}

/* Why the job cannot be claimed now; the claim itself decides again. */
static int check_claimable(struct cli *c, const struct job_view *job, const struct status_view *v,
                           struct pawl_err *err)
{
    if (job_state_terminal(job->state))
        return refuse_ended(job, err);
    if (job->state == JOB_RUNNING) {
        err_set(err, PAWL_ECONFLICT, "job %lld is running on " SV_FMT, (long long)job->id.v,
                SV_ARG(job->worker));
        return err_hint(err, "'pawl logs -f %lld' shows what it does", (long long)job->id.v);
    }
    if (job->state == JOB_WAITING && (!job->available_at.us || job->available_at.us > v->now.us))
        return refuse_waiting(job, err);
    if (queue_paused(v, job->queue)) {
        err_set(err, PAWL_ECONFLICT, "queue '" SV_FMT "' of job %lld is paused", SV_ARG(job->queue),
                (long long)job->id.v);
        return err_hint(err, "'pawl resume' lets it go on");
    }
    if (!kind_here(c, job->kind))
        return err_set(err, PAWL_ECONFLICT,
                       "neither built in nor in the configuration is kind '" SV_FMT "' of job %lld",
                       SV_ARG(job->kind), (long long)job->id.v);
    return 0;
}

static int examine(struct cli *c, job_id id, struct arena *a, struct job_view *out,
                   struct pawl_err *err)
{
    struct status_view status;
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = c->store->ops->job_get(c->store, id, a, out, err);
    if (rc == 0)
        rc = c->store->ops->status(c->store, 0, a, &status, err);
    if (rc == 0)
        rc = check_claimable(c, out, &status, err);
    store_close(c->store);
    c->store = NULL;
    return rc;
}

/* The child. */
static int print_output(void *arg, int lifeline)
{
    struct follow *f = arg;
    struct pawl_err err;
    signal(SIGINT, SIG_IGN); /* for the worker; this one ends with it */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    int rc = cli_open(f->c, STORE_READ, &err);
    if (rc == 0)
        rc = follow_to_end(f, lifeline, &err);
    if (rc < 0)
        cli_error(f->c, &err);
    return rc < 0;
}

int run_job(struct cli *c, job_id id, const struct run_request *base, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct job_view job;
    struct worker_report report = {0};
    struct helper printer;
    arena_init(&a);
    int rc = examine(c, id, &a, &job, err);
    struct follow f = {.c = c, .id = id, .tell = true, .started = true};
    if (rc == 0) {
        f.fence.v = job.fence.v + 1; /* what comes, not what was */
        rc = helper_start(&printer, print_output, &f, err);
    }
    if (rc < 0)
        return rc;
    const char *kind = arena_strndup(&a, job.kind.p, job.kind.n);
    struct run_request req = *base;
    req.only = id;
    req.kinds = &kind;
    req.n_kinds = 1;
    rc = c->app->run_worker(&req, &report, err);
    helper_end(&printer);
    if (rc < 0)
        return rc;
    if (report.signal) {
        c->exit_status = 128 + report.signal;
        return 0;
    }
    rc = cli_open(c, STORE_READ, err);
    return rc < 0 ? rc : job_verdict(c, id, err);
}
