/* The worker with C handlers: all that a run can do, two workers at once, what is refused, and that
 * the process stays the program's own. */
#include "working.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

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
    const struct CMUnitTest tests[] = {
        TEST(test_work),
        TEST(test_metrics_at_renewals),
        TEST(test_two_stores),
        TEST(test_two_workers_one_store),
        TEST(test_process_untouched),
        TEST(test_refuses_options),
        TEST(test_refuses),
    };
    return cmocka_run_group_tests_name("library-worker", tests, NULL, NULL);
}
