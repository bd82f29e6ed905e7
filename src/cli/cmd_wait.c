/* pawl wait: until jobs are finished. */
#include "mem.h"
#include "select.h"
#include <poll.h>
#include <stdio.h>

enum { PAUSE_MIN_MS = 50, PAUSE_MAX_MS = 1000, LOOKS_MAX = 5000 };

static const struct opt opts[] = {
    SELECT_OPTS,
    {"timeout", 0, "DUR", "give up after DUR, with exit status 8"},
    {"any-failure", 0, NULL, "end as soon as one has failed or was cancelled"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --queue nightly -- echo hello", "a job"},
    {"pawl run -q --stop-after 1 & pawl wait 1; wait", "until it is finished"},
    {"pawl wait --queue nightly --timeout 10s", "until a queue is"},
    EXAMPLE_END,
};

enum { OPEN = 1u << JOB_BLOCKED | 1u << JOB_QUEUED | 1u << JOB_WAITING | 1u << JOB_RUNNING };

struct waiting {
    struct cli *c;
    struct selection sel;
    job_id *ids; /* by_id: those not finished when last looked at */
    size_t n_ids, cap_ids, at;
    bool by_id;
    bool cheap; /* the store knows the counts */
    int64_t n[N_JOB_STATES];
    int64_t left, most_left;
    struct boot start;
    struct dur timeout; /* us < 0: none */
    bool line;          /* a live line is shown */
};

static int64_t failures(const struct waiting *w)
{
    return w->n[JOB_FAILED] + w->n[JOB_CANCELLED];
}

static struct dur waited(const struct waiting *w)
{
    return DUR_US(clock_boot().us - w->start.us);
}

/* ---- jobs by their ids ---- */

static bool keep_id(void *arg, const struct job_view *job)
{
    struct waiting *w = arg;
    if (job_state_terminal(job->state)) {
        w->n[job->state]++;
        return true;
    }
    ARRAY_GROW(w->ids, w->n_ids, w->cap_ids);
    w->ids[w->n_ids++] = job->id;
    return true;
}

static int check_ids(struct waiting *w, struct pawl_err *err)
{
    for (size_t i = 0; i < w->sel.n_ids; i++) {
        AUTO(arena_done) struct arena a;
        struct job_view job;
        arena_init(&a);
        int rc = w->c->store->ops->job_get(w->c->store, w->sel.ids[i], &a, &job, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* One that was pruned meanwhile was finished before; how is not known any more. */
static int look_at(struct waiting *w, size_t i, struct pawl_err *err)
{
    struct pawl_err gone;
    AUTO(arena_done) struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = w->c->store->ops->job_get(w->c->store, w->ids[i], &a, &job, &gone);
    if (rc < 0 && rc != PAWL_ENOTFOUND) {
        *err = gone;
        return rc;
    }
    enum job_state state = rc < 0 ? JOB_DONE : job.state;
    if (!job_state_terminal(state))
        return 0;
    w->n[state]++;
    w->ids[i] = w->ids[--w->n_ids];
    return 1;
}

/* A bounded number of them, going round, so that a look stays short. */
static int look_by_id(struct waiting *w, struct pawl_err *err)
{
    size_t todo = w->n_ids < LOOKS_MAX ? w->n_ids : LOOKS_MAX;
    for (; todo && w->n_ids; todo--) {
        w->at = w->at < w->n_ids ? w->at : 0;
        int rc = look_at(w, w->at, err);
        if (rc < 0)
            return rc;
        w->at += rc == 0;
    }
    w->left = (int64_t)w->n_ids;
    return 0;
}

/* ---- jobs by their properties ---- */

/* State by state: the store finds the few jobs of a state without passing all others. */
static int count_states(struct waiting *w, unsigned states, struct pawl_err *err)
{
    for (int i = 0; i < N_JOB_STATES; i++) {
        struct selection one = w->sel;
        one.states = 1u << i;
        int rc =
            states & one.states ? w->c->store->ops->count(w->c->store, &one, &w->n[i], err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int look_by_selection(struct waiting *w, bool all, struct pawl_err *err)
{
    unsigned states = OPEN | 1u << JOB_FAILED | 1u << JOB_CANCELLED;
    if (all || w->cheap)
        states |= states_terminal();
    int rc = count_states(w, states, err);
    w->left = 0;
    for (int i = 0; i < N_JOB_STATES; i++)
        w->left += OPEN & 1u << i ? w->n[i] : 0;
    return rc;
}

static int look(struct waiting *w, struct pawl_err *err)
{
    int rc = w->by_id ? look_by_id(w, err) : look_by_selection(w, false, err);
    if (w->left > w->most_left)
        w->most_left = w->left;
    return rc;
}

/* What is named by ids, or by what changes while a job runs, is settled now; anything else may
 * still get more jobs. */
static int begin(struct waiting *w, struct pawl_err *err)
{
    const struct selection *s = &w->sel;
    int rc = selection_error(w->c, &w->sel, err);
    w->by_id = s->n_ids || s->states || s->error.p || s->error_high || s->limit;
    w->cheap = !s->host.p && !s->key.p && !s->since.us;
    if (rc == 0 && s->n_ids)
        rc = check_ids(w, err);
    if (rc == 0 && w->by_id)
        rc = w->c->store->ops->list(w->c->store, s, false, keep_id, w, err);
    if (rc == 0)
        rc = look(w, err);
    return rc;
}

/* ---- talking ---- */

static void put_line(struct waiting *w)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    double seconds = (double)waited(w).us / 1e6;
    double rate = seconds > 0 ? (double)(w->most_left - w->left) / seconds : 0;
    if (!w->c->talk || w->c->quiet)
        return;
    if (w->by_id || w->cheap)
        str_addf(&s, "%lld done, ", (long long)(w->n[JOB_DONE] + w->n[JOB_SKIPPED]));
    str_addf(&s, "%lld failed, %lld left", (long long)failures(w), (long long)w->left);
    if (rate > 0) {
        str_addf(&s, ", %.1f/s, about ", rate);
        dur_human(DUR_US((double)w->left / rate * 1e6), &s);
    }
    fprintf(stderr, "\r\033[K%s", str_cstr(&s));
    w->line = true;
}

static void clear_line(struct waiting *w)
{
    if (w->line)
        fputs("\r\033[K", stderr);
    w->line = false;
}

static void print_json(struct waiting *w)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw j = jw_make(&s);
    jw_object(&j);
    for (int i = 0; i < N_JOB_STATES; i++)
        if (job_state_terminal((enum job_state)i))
            jw_kint(&j, job_state_name((enum job_state)i), w->n[i]);
    jw_kint(&j, "left", w->left);
    jw_kms(&j, "waited_ms", waited(w));
    jw_end_object(&j);
    out_object(&w->c->out, str_sv(&s));
}

/* ---- waiting ---- */

/* Until something happened or some time passed: longer where a look takes longer, so that waiting
 * costs the store a few percent at most. */
static void rest(struct waiting *w, struct dur look_took)
{
    int64_t ms = look_took.us / 1000 * 20, left_ms = PAUSE_MAX_MS;
    if (w->timeout.us >= 0)
        left_ms = (w->timeout.us - waited(w).us) / 1000 + 1;
    ms = ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : ms;
    ms = ms < left_ms ? ms : left_ms > 0 ? left_ms : 0;
    struct store *s = w->c->store;
    struct pollfd p = {.fd = s->ops->wake_fd(s), .events = POLLIN};
    if (poll(&p, 1, (int)ms) > 0) {
        s->ops->wake_clear(s);
        poll(NULL, 0, (int)ms / 4); /* a busy store wakes all the time */
    }
}

static bool over(const struct waiting *w)
{
    bool failed = failures(w) && args_has(&w->c->args, "any-failure");
    bool late = w->timeout.us >= 0 && waited(w).us >= w->timeout.us;
    return !w->left || failed || late || cli_signal();
}

static int wait_for_all(struct waiting *w, struct pawl_err *err)
{
    int rc = 0;
    struct dur took = DUR_US(0);
    while (rc == 0 && !over(w)) {
        put_line(w);
        rest(w, took);
        struct boot before = clock_boot();
        rc = look(w, err);
        took = DUR_US(clock_boot().us - before.us);
    }
    clear_line(w);
    if (rc == 0 && !w->by_id && out_is_json(&w->c->out))
        rc = look_by_selection(w, true, err);
    return rc;
}

static int conclude(struct waiting *w, struct pawl_err *err)
{
    int64_t failed = failures(w);
    if (out_is_json(&w->c->out))
        print_json(w);
    if (cli_signal()) {
        w->c->exit_status = 128 + cli_signal();
        return 0;
    }
    if (failed && (!w->left || args_has(&w->c->args, "any-failure"))) {
        err_set(err, PAWL_EJOBS_FAILED, "%lld job%s failed or cancelled", (long long)failed,
                failed == 1 ? "" : "s");
        return err_hint(err, "'pawl list --state failed,cancelled' shows them");
    }
    if (w->left)
        return err_set(err, PAWL_ETIMEOUT, "%lld job%s not finished in time", (long long)w->left,
                       w->left == 1 ? "" : "s");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct waiting w = {.c = c, .timeout = DUR_NONE, .start = clock_boot()};
    if (args_dur(&c->args, "timeout", false, &w.timeout, err) < 0 ||
        selection_read(c, clock_wall(), &w.sel, err) < 0)
        return PAWL_EUSAGE;
    cli_catch_signals();
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = begin(&w, err);
    if (rc == 0)
        rc = wait_for_all(&w, err);
    if (rc == 0)
        rc = conclude(&w, err);
    selection_done(&w.sel);
    free(w.ids);
    return rc;
}

const struct cmd cmd_wait = {
    .name = "wait",
    .usage = "[ID]… [OPTION]…",
    .about = "Waits until every selected job is finished; it runs none. Nothing given means all "
             "jobs. Jobs that are added meanwhile and match count too, except where ids, --state, "
             "--error or --limit name the jobs: then it is those that match now.\n\n"
             "Exit status 0: all are done or skipped. 7: some have failed or were cancelled, "
             "earlier ones that are still there included; --since leaves those out. 8: --timeout "
             "passed. 3: no such job.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
