/* The worker with C handlers. Handlers run on other threads: they count, the tests judge. */
#include "lab.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static pawl_worker_options quick(const char *url)
{
    pawl_worker_options o = PAWL_WORKER_OPTIONS_INIT;
    o.url = url;
    o.slots = 4;
    o.drain = true;
    o.poll_interval_ms = 50;
    o.retry_base_ms = 1;
    o.retry_max_ms = 2;
    return o;
}

static pawl_worker *make(struct lab *lab, const pawl_worker_options *o)
{
    pawl_worker *w = NULL;
    OK(pawl_worker_new(o, &w, &lab->err));
    return w;
}

static void handle(struct lab *lab, pawl_worker *w, const char *kind, pawl_handler *fn, void *arg)
{
    OK(pawl_worker_handle(w, kind, fn, arg, NULL, &lab->err));
}

static pawl_worker_report run(struct lab *lab, pawl_worker *w)
{
    pawl_worker_report r = PAWL_WORKER_REPORT_INIT;
    OK(pawl_worker_run(w, &r, &lab->err));
    return r;
}

/* ---- the whole of it ---- */

struct record {
    atomic_int calls, wrong, running, most, metrics;
    int logs;
    int64_t completed, observed;
    sigset_t mask;
};

static int count_words(pawl_run *run, void *arg)
{
    struct record *rec = arg;
    const pawl_lease *l = pawl_run_lease(run);
    int running = atomic_fetch_add(&rec->running, 1) + 1;
    for (int most = atomic_load(&rec->most); running > most;)
        if (atomic_compare_exchange_weak(&rec->most, &most, running))
            break;
    char result[64];
    snprintf(result, sizeof(result), "{\"bytes\":%zu,\"attempt\":%d}", l->payload_len, l->attempt);
    pawl_job child = PAWL_JOB_INIT;
    child.kind = "child";
    child.queue = l->queue;
    child.payload = result;
    bool wrong = strcmp(l->kind, "words") || strlen(l->payload) != l->payload_len ||
                 l->fence <= 0 || pawl_run_cancelled(run) != PAWL_GO_ON ||
                 pawl_run_time_left_ms(run) != -1 || pawl_run_progress(run, "{\"at\":1}", NULL) ||
                 pawl_run_result(run, result, NULL) || pawl_run_add_child(run, &child, NULL) ||
                 pawl_run_progress(run, "nonsense", NULL) != PAWL_ERROR_INPUT ||
                 pawl_run_progress(run, NULL, NULL) != PAWL_ERROR_USAGE ||
                 pawl_run_result(run, "{", NULL) != PAWL_ERROR_INPUT ||
                 pawl_run_add_child(run, NULL, NULL) != PAWL_ERROR_USAGE;
    child.kind = NULL;
    wrong = wrong || pawl_run_add_child(run, &child, NULL) != PAWL_ERROR_INPUT;
    wrong = wrong || pawl_run_sleep(run, 1) != PAWL_GO_ON;
    atomic_fetch_add(&rec->wrong, wrong);
    atomic_fetch_add(&rec->calls, 1);
    atomic_fetch_sub(&rec->running, 1);
    return PAWL_DONE;
}

static int count_call(pawl_run *run, void *arg)
{
    (void)run;
    atomic_fetch_add((atomic_int *)arg, 1);
    return PAWL_DONE;
}

/* Byte by byte they may differ: libc fills only what the kernel has. */
static bool same_mask(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < NSIG; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return false;
    return true;
}

static void on_log(void *arg, int level, const char *line)
{
    struct record *rec = arg;
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    rec->logs += level == PAWL_LOG_INFO && strncmp(line, "done job=", 9) == 0 &&
                 !strchr(line, '\n') && same_mask(&now, &rec->mask);
}

static void on_metrics(void *arg, const pawl_metric *const *metrics, size_t n)
{
    struct record *rec = arg;
    atomic_fetch_add(&rec->metrics, 1);
    for (size_t i = 0; i < n; i++) {
        const pawl_metric *m = metrics[i];
        if (!strcmp(m->name, "job_completed") && m->type == PAWL_METRIC_COUNTER)
            rec->completed = m->value;
        if (strcmp(m->name, "job_duration") != 0)
            continue;
        int64_t sum = 0;
        for (size_t k = 0; k < m->n_buckets; k++)
            sum += m->buckets[k];
        rec->observed = sum == m->value && m->sum_us > 0 && m->help[0] &&
                                m->bounds_us[m->n_buckets - 1] == INT64_MAX
                            ? sum
                            : -1;
    }
}

static void test_work(void **state)
{
    struct lab *lab = *state;
    enum { N = 60 };
    struct record rec = {0};
    atomic_int children = 0;
    pawl_worker_options o = quick(lab->url);
    pthread_sigmask(SIG_SETMASK, NULL, &rec.mask);
    o.log = on_log;
    o.log_arg = o.metrics_arg = &rec;
    o.metrics = on_metrics;
    o.name = "embedded";
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "words", count_words, &rec);
    pawl_kind_options ko = PAWL_KIND_OPTIONS_INIT;
    ko.slots = 1;
    OK(pawl_worker_handle(w, "child", count_call, &children, &ko, &lab->err));
    lab_fill(lab, lab->url, "words", N);
    pawl_worker_report r = run(lab, w);
    assert_int_equal(r.done, 2 * N);
    assert_true(r.drained);
    assert_int_equal(r.failed + r.retried + r.stale + r.stuck, 0);
    assert_int_equal(atomic_load(&rec.calls), N);
    assert_int_equal(atomic_load(&rec.wrong), 0);
    assert_int_equal(atomic_load(&children), N);
    assert_in_range(atomic_load(&rec.most), 1, 4);
    assert_int_equal(rec.logs, 2 * N);
    assert_true(atomic_load(&rec.metrics) >= 1);
    assert_int_equal(rec.completed, 2 * N);
    assert_int_equal(rec.observed, 2 * N);
    pawl_store *s = lab_open(lab);
    pawl_job_info *job;
    OK(pawl_job_get(s, 1, &job, &lab->err));
    assert_string_equal(job->result, "{\"bytes\":4,\"attempt\":1}");
    assert_string_equal(job->attempts[0]->worker, "embedded");
    pawl_job_free(job);
    pawl_close(s);
    r = run(lab, w); /* again: nothing is left */
    assert_int_equal(r.done, 0);
    assert_true(r.drained);
    pawl_worker_free(w);
    pawl_worker_free(NULL);
}

/* ---- two at once ---- */

struct one {
    struct lab lab;
    pawl_worker *worker;
    atomic_int calls;
    pawl_worker_report report;
    int rc;
};

static void *run_one(void *arg)
{
    struct one *one = arg;
    one->report = (pawl_worker_report)PAWL_WORKER_REPORT_INIT;
    one->rc = pawl_worker_run(one->worker, &one->report, &one->lab.err);
    return NULL;
}

static void run_both(struct lab *lab, struct one both[2])
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        handle(lab, both[i].worker, "k", count_call, &both[i].calls);
        pthread_create(&threads[i], NULL, run_one, &both[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(both[i].rc, 0);
        assert_true(both[i].report.drained);
        pawl_worker_free(both[i].worker);
    }
}

static void test_two_stores(void **state)
{
    struct lab *lab = *state;
    static struct one both[2];
    memset(both, 0, sizeof(both));
    const char *urls[] = {lab->url, lab->other};
    for (int i = 0; i < 2; i++) {
        pawl_worker_options o = quick(urls[i]);
        o.slots = i + 1;
        lab_fill(lab, urls[i], "k", 200 + 100 * i);
        both[i].worker = make(lab, &o);
    }
    run_both(lab, both);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(both[i].report.done, 200 + 100 * i);
        assert_int_equal(atomic_load(&both[i].calls), 200 + 100 * i);
    }
}

static void test_two_workers_one_store(void **state)
{
    struct lab *lab = *state;
    static struct one both[2];
    memset(both, 0, sizeof(both));
    for (int i = 0; i < 2; i++) {
        pawl_worker_options o = quick(lab->url);
        both[i].worker = make(lab, &o);
    }
    lab_fill(lab, lab->url, "k", 300);
    run_both(lab, both);
    assert_int_equal(atomic_load(&both[0].calls) + atomic_load(&both[1].calls), 300);
    assert_int_equal(both[0].report.done + both[1].report.done, 300);
}

/* ---- outcomes ---- */

static int end_as_asked(pawl_run *run, void *arg)
{
    (void)arg;
    const char *p = pawl_run_lease(run)->payload;
    bool first = pawl_run_lease(run)->attempt == 1 && !pawl_run_lease(run)->transient_attempts;
    pawl_run_error(run, "thrown away");
    pawl_run_error(run, NULL);
    switch (p[1]) {
    case 's':
        pawl_run_error(run, "nothing to do");
        return PAWL_SKIPPED;
    case 'f':
        pawl_run_error(run, "no use");
        return PAWL_FAILED;
    case 'r':
        return PAWL_RETRY;
    case 't':
        pawl_run_retry_after(run, 5);
        return first ? PAWL_RETRY_TRANSIENT : PAWL_DONE;
    case 'h':
        pawl_run_throttled(run); /* costs no attempt, but the transient budget */
        pawl_run_retry_after(run, 1);
        return PAWL_RETRY;
    case 'c':
        return PAWL_CANCELLED; /* nobody asked */
    default:
        return 42;
    }
}

static int64_t add_payload(struct lab *lab, pawl_store *s, const char *payload)
{
    pawl_job job = PAWL_JOB_INIT;
    pawl_added added;
    job.kind = "end";
    job.payload = payload;
    OK(pawl_add(s, &job, 0, &added, &lab->err));
    return added.id;
}

static void check_end(struct lab *lab, pawl_store *s, int64_t id, int job_state, int attempts,
                      const char *error)
{
    pawl_job_info *job;
    OK(pawl_job_get(s, id, &job, &lab->err));
    assert_int_equal(job->state, job_state);
    assert_int_equal(job->n_attempts, attempts);
    if (error)
        assert_string_equal(job->error, error);
    pawl_job_free(job);
}

static void test_outcomes(void **state)
{
    struct lab *lab = *state;
    static const char *const payloads[] = {"\"s\"", "\"f\"", "\"r\"", "\"t\"",
                                           "\"c\"", "\"?\"", "\"h\""};
    int64_t ids[7];
    pawl_store *s = lab_open(lab);
    for (int i = 0; i < 7; i++)
        ids[i] = add_payload(lab, s, payloads[i]);
    pawl_worker_options o = quick(lab->url);
    o.max_attempts = 2;
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "end", end_as_asked, NULL);
    pawl_worker_report r = run(lab, w);
    assert_int_equal(r.skipped, 1);
    assert_int_equal(r.done, 1);
    assert_int_equal(r.failed, 5);
    assert_int_equal(r.retried, 3 + 9);
    check_end(lab, s, ids[0], PAWL_STATE_SKIPPED, 1, NULL);
    check_end(lab, s, ids[1], PAWL_STATE_FAILED, 1, "no use");
    check_end(lab, s, ids[2], PAWL_STATE_FAILED, 2, "the handler gave no reason");
    check_end(lab, s, ids[3], PAWL_STATE_DONE, 2, NULL);
    check_end(lab, s, ids[4], PAWL_STATE_FAILED, 2, "the handler ended the job unasked");
    check_end(lab, s, ids[5], PAWL_STATE_FAILED, 1, "the handler returned 42, which is no outcome");
    check_end(lab, s, ids[6], PAWL_STATE_FAILED, 10,
              "still throttled after 10 transient failures: the handler gave no reason");
    pawl_close(s);
    pawl_worker_free(w);
}

/* ---- stopping ---- */

struct stopper {
    pawl_worker *worker;
    atomic_int calls, cancel, stops;
    int stop_from_handler; /* how often the handler stops its own worker */
};

static int wait_for_cancel(pawl_run *run, void *arg)
{
    struct stopper *st = arg;
    atomic_fetch_add(&st->calls, 1);
    for (int i = 0; i < st->stop_from_handler; i++)
        pawl_worker_stop(st->worker);
    int why = pawl_run_sleep(run, 20000);
    atomic_store(&st->cancel, why);
    return why ? PAWL_CANCELLED : PAWL_DONE;
}

static int release_once(pawl_run *run, void *arg)
{
    return atomic_fetch_add((atomic_int *)arg, 1) ? PAWL_DONE : PAWL_RELEASE;
    (void)run;
}

static void test_stop(void **state)
{
    struct lab *lab = *state;
    struct stopper st = {.stop_from_handler = 2};
    pawl_worker_options o = quick(lab->url);
    o.drain = false;
    o.slots = 1;
    st.worker = make(lab, &o);
    handle(lab, st.worker, "k", wait_for_cancel, &st);
    lab_fill(lab, lab->url, "k", 3);
    pawl_worker_report r = run(lab, st.worker); /* twice: at once */
    assert_int_equal(atomic_load(&st.cancel), PAWL_CANCEL_SHUTDOWN);
    assert_int_equal(atomic_load(&st.calls), 1);
    assert_true(r.released >= 1);
    assert_false(r.drained);
    pawl_store *s = lab_open(lab);
    assert_int_equal(lab_count(lab, s).queued, 3);
    pawl_worker_stop(st.worker); /* before it runs: that run returns at once */
    r = run(lab, st.worker);
    assert_int_equal(atomic_load(&st.calls), 1);
    pawl_worker_free(st.worker);
    o.stop_timeout_ms = 50; /* once: cancelled after stop_timeout */
    st = (struct stopper){.stop_from_handler = 1};
    st.worker = make(lab, &o);
    handle(lab, st.worker, "k", wait_for_cancel, &st);
    run(lab, st.worker);
    assert_int_equal(atomic_load(&st.cancel), PAWL_CANCEL_SHUTDOWN);
    assert_int_equal(lab_count(lab, s).queued, 3);
    pawl_worker_free(st.worker);
    pawl_worker_stop(NULL);
    atomic_int calls = 0; /* given back by its handler, taken again */
    o = quick(lab->url);
    o.stop_after_jobs = 3;
    o.drain = false;
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", release_once, &calls);
    r = run(lab, w);
    assert_int_equal(r.done, 3);
    assert_int_equal(atomic_load(&calls), 4);
    pawl_worker_free(w);
    pawl_close(s);
}

static pawl_worker *signalled;

static void on_signal(int signo)
{
    (void)signo;
    pawl_worker_stop(signalled);
}

static int raise_it(pawl_run *run, void *arg)
{
    kill(getpid(), SIGUSR1);
    atomic_store((atomic_int *)arg, pawl_run_sleep(run, 20000));
    return PAWL_CANCELLED;
}

/* The signal is the program's: it arrives on a thread of the program, never on the worker's. */
static void test_stop_by_signal(void **state)
{
    struct lab *lab = *state;
    atomic_int cancel = 0;
    pawl_worker_options o = quick(lab->url);
    o.drain = false;
    o.stop_timeout_ms = 20;
    pawl_worker *w = signalled = make(lab, &o);
    handle(lab, w, "k", raise_it, &cancel);
    lab_fill(lab, lab->url, "k", 1);
    struct sigaction old, act = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &act, &old);
    run(lab, w);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(atomic_load(&cancel), PAWL_CANCEL_SHUTDOWN);
    pawl_worker_free(w);
}

/* ---- time and cancel ---- */

static int sleep_too_long(pawl_run *run, void *arg)
{
    int64_t left = pawl_run_time_left_ms(run);
    bool good = left >= 0 && left <= 60 && pawl_run_sleep(run, 20000) == PAWL_CANCEL_TIMEOUT &&
                pawl_run_cancelled(run) == PAWL_CANCEL_TIMEOUT && pawl_run_time_left_ms(run) == 0;
    atomic_fetch_add((atomic_int *)arg, good);
    return pawl_run_lease(run)->attempt == 1 ? PAWL_CANCELLED : PAWL_DONE;
}

static void test_timeout(void **state)
{
    struct lab *lab = *state;
    atomic_int good = 0;
    pawl_kind_options ko = PAWL_KIND_OPTIONS_INIT;
    pawl_worker_options o = quick(lab->url);
    pawl_worker *w = make(lab, &o);
    ko.timeout_ms = 60;
    OK(pawl_worker_handle(w, "k", sleep_too_long, &good, &ko, &lab->err));
    lab_fill(lab, lab->url, "k", 1);
    pawl_worker_report r = run(lab, w);
    assert_int_equal(r.retried, 1);
    assert_int_equal(r.done, 1); /* a result that came late is still a result */
    assert_int_equal(atomic_load(&good), 2);
    pawl_store *s = lab_open(lab);
    pawl_job_info *job;
    OK(pawl_job_get(s, 1, &job, &lab->err));
    assert_string_equal(job->attempts[0]->error, "timed out after 60ms");
    pawl_job_free(job);
    pawl_close(s);
    pawl_worker_free(w);
}

/* Runs until it has seen two renewals bring their metrics. */
static int wait_for_metrics(pawl_run *run, void *arg)
{
    struct record *rec = arg;
    for (int i = 0; i < 2000 && atomic_load(&rec->metrics) < 2; i++)
        pawl_run_sleep(run, 10);
    atomic_store(&rec->calls, atomic_load(&rec->metrics));
    return PAWL_DONE;
}

static void test_metrics_at_renewals(void **state)
{
    struct lab *lab = *state;
    struct record rec = {0};
    pawl_worker_options o = quick(lab->url);
    o.heartbeat_ms = 100;
    o.metrics = on_metrics;
    o.metrics_arg = &rec;
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", wait_for_metrics, &rec);
    lab_fill(lab, lab->url, "k", 1);
    run(lab, w);
    assert_true(atomic_load(&rec.calls) >= 2);
    assert_true(atomic_load(&rec.metrics) >= 3); /* and once at the end */
    assert_int_equal(rec.completed, 1);
    pawl_worker_free(w);
}

struct victim {
    struct lab lab;
    pawl_store *operator_;
    int act;
    atomic_int calls, cancel;
};

static int act_on_myself(pawl_run *run, void *arg)
{
    struct victim *v = arg;
    int64_t id = pawl_run_lease(run)->id;
    pawl_selection sel = {.size = sizeof(sel), .ids = &id, .n_ids = 1};
    if (atomic_fetch_add(&v->calls, 1))
        return PAWL_DONE;
    if (pawl_act(v->operator_, v->act, &sel, NULL, &v->lab.err) != 0)
        return PAWL_FAILED;
    atomic_store(&v->cancel, pawl_run_sleep(run, 20000));
    return PAWL_CANCELLED;
}

static void test_cancel(void **state)
{
    struct lab *lab = *state;
    struct victim v = {.operator_ = lab_open(lab), .act = PAWL_ACT_CANCEL};
    pawl_worker_options o = quick(lab->url);
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", act_on_myself, &v);
    lab_fill(lab, lab->url, "k", 1);
    run(lab, w);
    assert_int_equal(atomic_load(&v.cancel), PAWL_CANCEL_ASKED);
    assert_int_equal(atomic_load(&v.calls), 1);
    assert_int_equal(lab_count(lab, v.operator_).cancelled, 1);
    pawl_close(v.operator_);
    pawl_worker_free(w);
}

/* Taken away by an operator: what the first run says is discarded, a second one settles it. */
static void test_revoke(void **state)
{
    struct lab *lab = *state;
    struct victim v = {.operator_ = lab_open(lab), .act = PAWL_ACT_REVOKE};
    pawl_worker_options o = quick(lab->url);
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", act_on_myself, &v);
    lab_fill(lab, lab->url, "k", 1);
    run(lab, w);
    assert_int_equal(atomic_load(&v.cancel), PAWL_CANCEL_LEASE_LOST);
    assert_int_equal(atomic_load(&v.calls), 2);
    assert_int_equal(lab_count(lab, v.operator_).done, 1);
    pawl_close(v.operator_);
    pawl_worker_free(w);
}

/* ---- a handler that outlives its lease ---- */

struct blocker {
    const char *path;
    int turn, write;
    atomic_int calls, cancel;
};

static int lock_file(const char *path, const char *suffix)
{
    char name[600];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    flock(fd, LOCK_EX);
    return fd;
}

/* Keeps everybody from writing, the renewals of its own worker too, until the lease is lost; then
 * goes on all the same, and ends as if nothing had happened. */
static int outlive(pawl_run *run, void *arg)
{
    struct blocker *b = arg;
    if (atomic_fetch_add(&b->calls, 1)) {
        pawl_run_result(run, "\"second\"", NULL);
        return PAWL_DONE;
    }
    b->turn = lock_file(b->path, "-turn");
    b->write = lock_file(b->path, "-write");
    atomic_store(&b->cancel, pawl_run_sleep(run, 20000));
    close(b->write);
    close(b->turn);
    usleep(300000); /* deaf: the worker waits for it and claims nothing */
    if (atomic_load(&b->calls) > 1)
        atomic_store(&b->cancel, -1);
    pawl_run_result(run, "\"late\"", NULL);
    return PAWL_DONE;
}

static void test_lease_lost(void **state)
{
    struct lab *lab = *state;
    if (on_postgres())
        skip();
    struct blocker b = {.path = lab->url + strlen("sqlite:")};
    pawl_worker_options o = quick(lab->url);
    o.lease_ms = 1000;
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", outlive, &b);
    lab_fill(lab, lab->url, "k", 1);
    pawl_worker_report r = run(lab, w);
    assert_int_equal(atomic_load(&b.cancel), PAWL_CANCEL_LEASE_LOST);
    assert_int_equal(atomic_load(&b.calls), 2);
    assert_int_equal(r.done, 1);
    pawl_store *s = lab_open(lab);
    pawl_job_info *job;
    OK(pawl_job_get(s, 1, &job, &lab->err));
    assert_string_equal(job->result, "\"second\""); /* I2 */
    assert_true(job->fence >= 2);
    pawl_job_free(job);
    pawl_close(s);
    pawl_worker_free(w);
}

/* ---- the process is not ours ---- */

struct process {
    sigset_t mask;
    struct sigaction actions[NSIG];
    mode_t umask_;
    char cwd[512], locale[64];
    size_t environ_bytes;
};

static void look_at_process(struct process *p)
{
    memset(p, 0, sizeof(*p));
    pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &p->actions[i]);
    p->umask_ = umask(0);
    umask(p->umask_);
    if (!getcwd(p->cwd, sizeof(p->cwd)))
        p->cwd[0] = '\0';
    snprintf(p->locale, sizeof(p->locale), "%s", setlocale(LC_ALL, NULL));
    for (char **e = environ; *e; e++)
        p->environ_bytes += strlen(*e) + 1;
}

static void test_process_untouched(void **state)
{
    struct lab *lab = *state;
    static struct process before, after;
    atomic_int calls = 0;
    setenv("NOTIFY_SOCKET", "/nowhere", 1); /* what the command line would take */
    setenv("PAWL_WORKER_SLOTS", "nonsense", 1);
    look_at_process(&before);
    pawl_worker_options o = quick(lab->url);
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", count_call, &calls);
    lab_fill(lab, lab->url, "k", 20);
    run(lab, w);
    pawl_worker_free(w);
    look_at_process(&after);
    assert_true(same_mask(&before.mask, &after.mask));
    for (int i = 1; i < NSIG; i++) {
        const struct sigaction *a = &before.actions[i], *b = &after.actions[i];
        assert_true(a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags);
    }
    assert_int_equal(before.umask_, after.umask_);
    assert_string_equal(before.cwd, after.cwd);
    assert_string_equal(before.locale, after.locale);
    assert_int_equal(before.environ_bytes, after.environ_bytes);
    assert_int_equal(atomic_load(&calls), 20);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("PAWL_WORKER_SLOTS");
}

/* ---- refused ---- */

static int misuse(pawl_run *run, void *arg)
{
    pawl_worker *w = arg;
    (void)run;
    bool good = pawl_worker_run(w, NULL, NULL) == PAWL_ERROR_USAGE &&
                pawl_worker_handle(w, "new", misuse, w, NULL, NULL) == PAWL_ERROR_USAGE;
    return good ? PAWL_DONE : PAWL_FAILED;
}

static void test_refuses_options(void **state)
{
    struct lab *lab = *state;
    pawl_worker *w = NULL;
    pawl_worker_options o = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_worker_new(NULL, &w, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_new(&o, &w, &lab->err));
    o = (pawl_worker_options)PAWL_WORKER_OPTIONS_INIT;
    FAILS(PAWL_ERROR_USAGE, pawl_worker_new(&o, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_new(&o, &w, &lab->err)); /* no URL */
#define REFUSED(code, field, value)                                                                \
    do {                                                                                           \
        o = quick(lab->url);                                                                       \
        o.field = (value);                                                                         \
        FAILS(code, pawl_worker_new(&o, &w, &lab->err));                                           \
    } while (0)
    REFUSED(PAWL_ERROR_CONFIG, slots, -1);
    REFUSED(PAWL_ERROR_CONFIG, lease_ms, 10);
    REFUSED(PAWL_ERROR_CONFIG, lease_ms, -1);
    REFUSED(PAWL_ERROR_CONFIG, heartbeat_ms, 20000); /* more than a third of the lease */
    REFUSED(PAWL_ERROR_CONFIG, max_attempts, -3);
    REFUSED(PAWL_ERROR_USAGE, durability, 17);
    REFUSED(PAWL_ERROR_USAGE, stop_after_jobs, -1);
    REFUSED(PAWL_ERROR_USAGE, patience_ms, -1);
    REFUSED(PAWL_ERROR_USAGE, log_level, 9);
    REFUSED(PAWL_ERROR_USAGE, name, "");
    REFUSED(PAWL_ERROR_USAGE, n_queues, 1);
    REFUSED(PAWL_ERROR_USAGE, n_settings, 1);
    assert_null(w);
}

static void test_refuses(void **state)
{
    struct lab *lab = *state;
    static const char *const settings[] = {"worker.pools=k=2,*=3", "retention.done=7d"};
    pawl_worker_options o = quick(lab->url);
    o.settings = settings;
    o.n_settings = 2;
    pawl_worker *w = make(lab, &o);
    pawl_kind_options ko = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_worker_run(w, NULL, &lab->err)); /* no handler */
    FAILS(PAWL_ERROR_USAGE, pawl_worker_run(NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(NULL, "k", misuse, w, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, NULL, misuse, w, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "k", NULL, w, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "k", misuse, w, &ko, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "", misuse, w, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "*", misuse, w, NULL, &lab->err));
    ko = (pawl_kind_options){.size = sizeof(ko), .slots = -1};
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "k", misuse, w, &ko, &lab->err));
    handle(lab, w, "x", misuse, w);
    FAILS(PAWL_ERROR_USAGE, pawl_worker_run(w, NULL, &lab->err)); /* a pool for a kind not known */
    handle(lab, w, "k", misuse, w);
    FAILS(PAWL_ERROR_USAGE, pawl_worker_handle(w, "k", misuse, w, NULL, &lab->err));
    pawl_worker_report small = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_worker_run(w, &small, &lab->err));
    lab_fill(lab, lab->url, "k", 1);
    lab_fill(lab, lab->url, "unknown", 1); /* none of this worker's business */
    pawl_worker_report r = run(lab, w);
    assert_int_equal(r.done, 1);
    assert_true(r.drained);
    pawl_worker_free(w);
    o = quick("mysql:x");
    w = make(lab, &o);
    handle(lab, w, "k", misuse, w);
    FAILS(PAWL_ERROR_USAGE, pawl_worker_run(w, NULL, &lab->err));
    pawl_worker_free(w);
    o = quick("sqlite:/nowhere/at/all.db");
    o.store_timeout_ms = 100;
    w = make(lab, &o);
    handle(lab, w, "k", misuse, w);
    FAILS(PAWL_ERROR_UNREACHABLE, pawl_worker_run(w, NULL, &lab->err));
    pawl_worker_free(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_work),
        TEST(test_two_stores),
        TEST(test_two_workers_one_store),
        TEST(test_outcomes),
        TEST(test_stop),
        TEST(test_stop_by_signal),
        TEST(test_timeout),
        TEST(test_metrics_at_renewals),
        TEST(test_cancel),
        TEST(test_revoke),
        TEST(test_lease_lost),
        TEST(test_process_untouched),
        TEST(test_refuses_options),
        TEST(test_refuses),
    };
    return cmocka_run_group_tests_name("library-worker", tests, NULL, NULL);
}
