#include "rig.h"

#include "mem.h"
#include <fcntl.h>
#include <unistd.h>

static const char *const kind_names[] = {"sync",      "timer", "hang",   "error",
                                         "transient", "skip",  "refuse", "slow"};
enum { SYNC, TIMER, HANG, ERROR, TRANSIENT, SKIP, REFUSE, SLOW };

static const struct pool_conf one_pool[] = {{(char *)"*", 4}};

struct task {
    struct timer timer;
    struct rig *rig;
    struct run *run;
};

int rig_kind_index(struct sv kind)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_names); i++)
        if (sv_eq(kind, sv_of(kind_names[i])))
            return (int)i;
    return -1;
}

static struct rig *rig_of(struct handler *h)
{
    return (struct rig *)((char *)h - offsetof(struct rig, handler));
}

static void end(struct rig *r, struct run *run, int how, enum fail_class cls)
{
    int kind = rig_kind_index(run->job->kind);
    struct run_result res = {.end = how,
                             .cls = cls,
                             .exit_code = -1,
                             .retry_after = DUR_NONE,
                             .asked = DUR_NONE,
                             .reason = how == RUN_FAILED ? SV("planned\nfailure \xff") : SV_NONE};
    if (cls == CLASS_TRANSIENT && r->throttled.us) {
        res.throttled = res.timed_out = true;
        res.retry_after = r->throttled;
    }
    if (r->unfit > 0) {
        r->unfit--;
        res.end = RUN_RELEASED;
        res.unfit = true;
        res.reason = SV("gone");
    }
    r->running--;
    r->running_of[kind]--;
    run->finish(run, &res);
}

static void on_time(struct timer *t)
{
    struct task *k = (struct task *)t;
    struct rig *r = k->rig;
    struct run *run = k->run;
    free(k);
    end(r, run, RUN_DONE, CLASS_NONE);
}

static void later(struct rig *r, struct run *run, struct dur d)
{
    struct task *k = mem_zalloc(1, sizeof(*k));
    *k = (struct task){.timer.on_time = on_time, .rig = r, .run = run};
    run->state = k;
    if (d.us >= 0)
        loop_timer_set(r->loop, &k->timer, d);
}

static void note_start(struct rig *r, struct run *run, int kind)
{
    r->runs[run->job->id.v]++;
    pthread_mutex_lock(&r->fake.lock);
    r->started++;
    pthread_cond_broadcast(&r->fake.changed);
    pthread_mutex_unlock(&r->fake.lock);
    if (++r->running > r->most_running)
        r->most_running = r->running;
    if (++r->running_of[kind] > r->most_of[kind])
        r->most_of[kind] = r->running_of[kind];
    if (r->on_start)
        r->on_start(r, run);
}

static int start(struct handler *h, struct run *run, struct pawl_err *err)
{
    struct rig *r = rig_of(h);
    int kind = rig_kind_index(run->job->kind);
    if (kind == REFUSE)
        return err_set(err, PAWL_EINPUT, "payload: cannot run this");
    note_start(r, run, kind);
    switch (kind) {
    case TIMER:
        later(r, run, DUR_MS(1));
        break;
    case SLOW:
        later(r, run, DUR_MS(300));
        break;
    case HANG:
        later(r, run, DUR_NONE);
        break;
    case ERROR:
        end(r, run, RUN_FAILED, CLASS_ERROR);
        break;
    case TRANSIENT:
        end(r, run, RUN_FAILED, CLASS_TRANSIENT);
        break;
    case SKIP:
        end(r, run, RUN_SKIPPED, CLASS_NONE);
        break;
    default:
        end(r, run, RUN_DONE, CLASS_NONE);
        break;
    }
    return 0;
}

static void cancel(struct handler *h, struct run *run, enum cancel_why why)
{
    struct rig *r = rig_of(h);
    struct task *k = run->state;
    r->cancels++;
    r->last_cancel = why;
    if (r->on_cancel)
        r->on_cancel(r, run, why);
    loop_timer_clear(r->loop, &k->timer);
    free(k);
    end(r, run, r->on_hang_cancel_end ? r->on_hang_cancel_end(r) : RUN_CANCELLED, CLASS_NONE);
}

struct look_at {
    struct timer timer;
    struct rig *rig;
    struct kind_check *check;
};

static void answer(struct timer *t)
{
    struct look_at x = *(struct look_at *)t;
    struct rig *r = x.rig;
    bool bad = r->bad_checks < 0 || r->checks <= r->bad_checks;
    free(t);
    x.check->state = NULL;
    x.check->finish(x.check, !bad, bad ? SV("not \x1b yet") : SV_NONE);
}

static void check(struct handler *h, struct kind_check *c)
{
    struct rig *r = rig_of(h);
    struct look_at *x = mem_zalloc(1, sizeof(*x));
    *x = (struct look_at){.timer.on_time = answer, .rig = r, .check = c};
    r->checks++;
    c->state = x;
    if (!r->hang_checks)
        loop_timer_set(r->loop, &x->timer, DUR_MS(1));
}

static void check_cancel(struct handler *h, struct kind_check *c)
{
    struct look_at *x = c->state;
    loop_timer_set(rig_of(h)->loop, &x->timer, DUR_US(0));
}

static const struct handler_ops ops = {.name = "script",
                                       .start = start,
                                       .cancel = cancel,
                                       .check = check,
                                       .check_cancel = check_cancel};

static void on_session(void *arg, const struct session *s)
{
    (void)s;
    ((struct rig *)arg)->sessions++;
}

static void on_deadline(void *arg, struct boot deadline)
{
    struct rig *r = arg;
    __atomic_store_n(&r->deadlines, deadline.us, __ATOMIC_RELAXED);
}

static void set_config(struct config *c)
{
    *c = (struct config){.store_timeout = DUR_S(10),
                         .worker_lease = DUR_S(30),
                         .worker_heartbeat = DUR_S(10),
                         .worker_poll_interval = DUR_S(1),
                         .worker_sweep_interval = DUR_S(5),
                         .worker_stop_timeout = DUR_S(30),
                         .retry_max_attempts = 3,
                         .retry_transient_max_attempts = 4,
                         .retry_max_lost = 3,
                         .retry_base = DUR_MS(1),
                         .retry_max = DUR_MS(4),
                         .retention_done = DUR_NONE,
                         .retention_failed = DUR_NONE,
                         .retention_events = DUR_NONE,
                         .retention_attempts = DUR_NONE,
                         .retention_artifacts = DUR_NONE};
}

void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    fake_init(&r->fake);
    set_config(&r->config);
    r->handler.ops = &ops;
    r->runs = mem_zalloc(RIG_JOBS_MAX + 1, sizeof(*r->runs));
    r->log = (struct logger){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .level = LOG_DEBUG};
    if (loop_new(&r->loop, &r->err) < 0)
        abort();
    for (size_t i = 0; i < ARRAY_LEN(kind_names); i++)
        r->kinds[i] = (struct worker_kind){
            .name = kind_names[i], .handler = &r->handler, .timeout = DUR_NONE};
    r->options = (struct worker_options){.config = &r->config,
                                         .loop = r->loop,
                                         .open_store = fake_open,
                                         .open_arg = &r->fake,
                                         .kinds = r->kinds,
                                         .n_kinds = ARRAY_LEN(kind_names),
                                         .pools = one_pool,
                                         .n_pools = 1,
                                         .drain = true,
                                         .patience = DUR_NONE,
                                         .log = &r->log,
                                         .on_session = on_session,
                                         .on_deadline = on_deadline,
                                         .on_arg = r};
    sigemptyset(&r->options.signals);
    sigaddset(&r->options.signals, SIGTERM);
    sigaddset(&r->options.signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &r->options.signals, NULL);
}

int rig_run(struct rig *r)
{
    return worker_run(&r->options, &r->report, &r->err);
}

void rig_done(struct rig *r)
{
    loop_free(r->loop);
    close(r->log.fd);
    free(r->runs);
    fake_done(&r->fake);
}

void rig_add(struct rig *r, int n, const char *queue, const char *kind)
{
    for (int i = 0; i < n; i++)
        fake_add(&r->fake, queue, kind);
}
