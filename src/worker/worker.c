/* The worker's assembly and its one step. Every callback on the loop only notes what happened and
 * asks for a step; the step starts what can start, hands the next turn to the store thread and sees
 * whether all is done. */
#include "worker.h"

#include "json.h"
#include "policy.h"
#include "worker_internal.h"
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

bool worker_idle(const struct worker *w)
{
    return !w->n_running && !w->n_ready && !w->filling->n_settles && !w->note.type &&
           !w->asks.first && !w->away;
}

void worker_soon(struct worker *w)
{
    if (w->finished) /* only alerts are still being sent */
        return;
    if (w->stepping)
        w->step_again = true;
    else if (!w->soon.slot)
        loop_timer_set(w->loop, &w->soon, DUR_US(0));
}

/* The store is gone for longer than store_timeout: results cannot be kept any more, so every run
 * ends at once; the leases expire or are released at the session's end. */
void worker_break(struct worker *w, const struct pawl_err *cause)
{
    if (!w->broken)
        w->error = *cause;
    w->broken = true;
    w->stopping = STOP_NOW;
    slots_drop(w);
    runs_drop_all(w);
    worker_soon(w);
}

static void forget_settles(struct worker *w)
{
    struct turn *t = w->filling;
    for (size_t i = 0; i < t->n_settles; i++)
        batch_unref(w, t->ended[i].batch);
    t->n_settles = 0;
    w->note.type = 0;
    asks_tell(&w->asks, false);
}

static bool limits_reached(const struct worker *w)
{
    bool jobs = w->o->stop_after_jobs && w->ended_jobs >= w->o->stop_after_jobs;
    return jobs || w->only_ended;
}

static void check_end(struct worker *w)
{
    if (w->broken && !w->n_running)
        forget_settles(w);
    if (w->stopping == GO_ON && limits_reached(w))
        stop_claiming(w);
    if (w->stopping != GO_ON)
        preflight_stop(w);
    if (w->stopping != GO_ON && worker_idle(w) && preflight_idle(w)) {
        w->finished = true;
        loop_stop(w->loop);
    }
}

static void worker_step(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, soon);
    w->stepping = true;
    if (w->stopping != GO_ON || w->paused)
        slots_give_back(w, DUR_US(0));
    bool more = slots_pump(w);
    turns_send(w);
    w->step_again = more; /* jobs that ended within their start are dealt with */
    check_end(w);
    w->stepping = false;
    if (w->step_again && !w->finished)
        worker_soon(w);
}

/* Read before the look that judges the drain: what was added before is counted there. */
static void ask_for_more(struct worker *w)
{
    const struct worker_guest *guest = w->o->guest;
    if (w->all_in || (guest && guest->more && guest->more(guest->arg)))
        return;
    w->all_in = w->look_due = true;
}

static void on_wake(void *arg)
{
    struct worker *w = arg;
    stop_asked(w);
    ask_for_more(w);
    housekeeping_store_news(w);
    lease_news(w);
    keep_news(w);
    turns_receive(w);
    alerts_news(w);
    worker_soon(w);
}

/* ---- the session's description ---- */

static void describe_pools(const struct worker *w, struct str *out)
{
    struct jw j = jw_make(out);
    jw_object(&j);
    for (size_t i = 0; i < w->n_pools; i++)
        jw_kint(&j, w->pools[i].name, w->pools[i].slots);
    jw_end_object(&j);
}

static void describe_filter(const struct worker *w, struct str *out)
{
    struct jw j = jw_make(out);
    jw_object(&j);
    jw_name(&j, "queues");
    jw_array(&j);
    for (size_t i = 0; i < w->o->n_queues; i++)
        jw_string(&j, w->o->queues[i]);
    jw_end_array(&j);
    jw_name(&j, "kinds");
    jw_array(&j);
    for (size_t i = 0; i < w->n_kinds; i++)
        jw_string(&j, w->kinds[i].name);
    jw_end_array(&j);
    jw_end_object(&j);
}

struct description {
    char host[256], name[300];
    struct str pools, filter;
};

static void describe(struct worker *w, struct description *d)
{
    if (gethostname(d->host, sizeof(d->host)) < 0)
        snprintf(d->host, sizeof(d->host), "localhost");
    d->host[sizeof(d->host) - 1] = '\0';
    snprintf(d->name, sizeof(d->name), "%s:%d", d->host, (int)getpid());
    d->pools = d->filter = STR_INIT(STR_OUTPUT);
    describe_pools(w, &d->pools);
    describe_filter(w, &d->filter);
    w->renew.spec = (struct session_spec){.name = w->o->name ? w->o->name : d->name,
                                          .host = d->host,
                                          .pid = (int)getpid(),
                                          .slots = (int)w->slots,
                                          .pools = str_cstr(&d->pools),
                                          .filter = str_cstr(&d->filter),
                                          .lease = w->o->config->worker_lease};
}

/* ---- life ---- */

static void init(struct worker *w, const struct worker_options *o)
{
    w->o = o;
    w->loop = o->loop;
    w->log = *o->log;
    w->soon.on_time = worker_step;
    arena_init(&w->policy_arena);
    w->draining = o->drain || o->only.v;
    w->all_in = !o->guest || !o->guest->more;
    w->claim =
        (struct claim_request){.queues = o->queues, .n_queues = o->n_queues, .only = o->only};
    w->store.o = w->renew.o = o;
    w->store.metrics = w->renew.metrics = &w->metrics;
    w->store.claim = &w->claim;
    slots_init(w);
    preflight_init(w);
    runs_init(w);
    keep_init(w);
    lake_hold_init(w);
    turns_init(w);
    housekeeping_init(w);
    lease_init(w);
    progress_init(w);
    service_init(w);
    loop_on_wake(w->loop, on_wake, w);
}

static void done(struct worker *w)
{
    loop_on_wake(w->loop, NULL, NULL);
    loop_timer_clear(w->loop, &w->soon);
    loop_timer_clear(w->loop, &w->lease);
    progress_done(w);
    service_done(w);
    signals_done(w);
    housekeeping_done(w);
    turns_done(w);
    lake_hold_done(w);
    keep_done(w);
    runs_done(w);
    preflight_done(w);
    slots_done(w);
    arena_done(&w->policy_arena);
}

static int start_threads(struct worker *w, struct pawl_err *err)
{
    int rc = store_thread_start(&w->store, err);
    if (rc < 0)
        return rc;
    turns_hello(w);
    return renew_thread_start(&w->renew, err);
}

static int make_policy(struct worker *w, struct pawl_err *err)
{
    w->store.apply_policy = !w->o->no_policy;
    if (w->o->no_policy || !w->o->config->policy_given)
        return 0;
    int rc = policy_make(w->o->config, &w->policy_arena, &w->policy, &w->store.policy_text, err);
    w->store.policy = rc == 0 ? &w->policy : NULL;
    return rc;
}

static int run(struct worker *w, struct pawl_err *err)
{
    int rc = make_policy(w, err);
    if (rc == 0)
        rc = signals_init(w, err);
    if (rc == 0)
        rc = alerts_start(w, err);
    if (rc == 0)
        rc = start_threads(w, err);
    if (rc == 0)
        preflight_start(w);
    if (rc == 0)
        rc = loop_run(w->loop, err);
    store_thread_stop(&w->store);
    alerts_finish(w);
    renew_thread_stop(&w->renew); /* last: it ends the session */
    return rc;
}

int worker_run(const struct worker_options *o, struct worker_report *out, struct pawl_err *err)
{
    struct worker *w = mem_zalloc(1, sizeof(*w));
    struct description d = {0};
    init(w, o);
    describe(w, &d);
    int rc = run(w, err);
    if (rc == 0 && w->broken) {
        *err = w->error;
        rc = w->error.code;
    }
    drain_report(w);
    lease_metrics(w);
    *out = w->report;
    done(w);
    str_done(&d.pools);
    str_done(&d.filter);
    free(w);
    return rc;
}
