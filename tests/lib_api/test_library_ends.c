/* How runs with C handlers end: by their own outcome, stopped, out of time, cancelled, or without
 * their lease. */
#include "working.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

static int release_once(pawl_run *run, void *arg)
{
    (void)run;
    return atomic_fetch_add((atomic_int *)arg, 1) ? PAWL_DONE : PAWL_RELEASE;
}

/* Given back by its handler, taken again. */
static void test_release(void **state)
{
    struct lab *lab = *state;
    atomic_int calls = 0;
    pawl_worker_options o = quick(lab->url);
    o.stop_after_jobs = 3;
    o.drain = false;
    lab_fill(lab, lab->url, "k", 3);
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", release_once, &calls);
    pawl_worker_report r = run(lab, w);
    assert_int_equal(r.done, 3);
    assert_int_equal(atomic_load(&calls), 4);
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

/* Runs one job whose handler does that to itself. */
static void run_victim(struct lab *lab, struct victim *v)
{
    pawl_worker_options o = quick(lab->url);
    pawl_worker *w = make(lab, &o);
    handle(lab, w, "k", act_on_myself, v);
    lab_fill(lab, lab->url, "k", 1);
    run(lab, w);
    pawl_worker_free(w);
}

static void test_cancel(void **state)
{
    struct lab *lab = *state;
    struct victim v = {.operator_ = lab_open(lab), .act = PAWL_ACT_CANCEL};
    run_victim(lab, &v);
    assert_int_equal(atomic_load(&v.cancel), PAWL_CANCEL_ASKED);
    assert_int_equal(atomic_load(&v.calls), 1);
    assert_int_equal(lab_count(lab, v.operator_).cancelled, 1);
    pawl_close(v.operator_);
}

/* Taken away by an operator: what the first run says is discarded, a second one settles it. */
static void test_revoke(void **state)
{
    struct lab *lab = *state;
    struct victim v = {.operator_ = lab_open(lab), .act = PAWL_ACT_REVOKE};
    run_victim(lab, &v);
    assert_int_equal(atomic_load(&v.cancel), PAWL_CANCEL_LEASE_LOST);
    assert_int_equal(atomic_load(&v.calls), 2);
    assert_int_equal(lab_count(lab, v.operator_).done, 1);
    pawl_close(v.operator_);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_outcomes), TEST(test_release), TEST(test_stop),   TEST(test_stop_by_signal),
        TEST(test_timeout),  TEST(test_cancel),  TEST(test_revoke), TEST(test_lease_lost),
    };
    return cmocka_run_group_tests_name("library-ends", tests, NULL, NULL);
}
