/* What `run --drain` ends with after a longer run. */
#include "mem.h"
#include "report.h"
#include <unistd.h>

enum { MANY_JOBS = 100 };
#define LONG_RUN DUR_S(10)

static int print_queue(struct cli *c, struct out *o, struct wall since, struct sv queue,
                       struct pawl_err *err)
{
    struct report_view r;
    struct arena a;
    arena_init(&a);
    int rc = c->store->ops->report(c->store, since, queue, &a, &r, err);
    if (rc == 0)
        report_print_short(o, queue, &r);
    arena_done(&a);
    return rc;
}

static int print_all(struct cli *c, const struct run_request *q, struct dur took,
                     struct pawl_err *err)
{
    struct out o;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    struct wall since = {c->store->ops->now(c->store).us - took.us};
    out_init(&o, STDERR_FILENO);
    o.color = c->color_err;
    if (!q->n_queues)
        rc = print_queue(c, &o, since, SV_NONE, err);
    for (size_t i = 0; rc == 0 && i < q->n_queues; i++)
        rc = print_queue(c, &o, since, q->queues[i], err);
    out_done(&o);
    return rc;
}

void report_drained(struct cli *c, const struct run_request *q, const struct worker_report *r,
                    struct dur took)
{
    struct pawl_err err = {0};
    int64_t jobs = r->done + r->skipped + r->failed;
    if (!q->drain || c->quiet || out_is_json(&c->out) || q->log->json || !jobs ||
        (jobs < MANY_JOBS && took.us < LONG_RUN.us))
        return;
    if (print_all(c, q, took, &err) < 0)
        cli_warn(c, "no report: %s", err.msg);
}
