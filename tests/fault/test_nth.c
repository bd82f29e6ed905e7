/* I12: the n-th write, sync, truncation or deletion fails, for every n of every writing operation.
 * Afterwards the operation has happened whole or not at all, success was never claimed falsely, a
 * handle in doubt refuses to go on, and the next start is clean. */
#include "faultvfs.h"
#include "fixture.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a scenario works with; filled by its preparation, valid for every copy of the store. */
struct stage {
    struct session w;
    struct lease leases[8];
    size_t n;
};

struct scenario {
    const char *name;
    void (*prepare)(struct fixture *f, struct stage *st);
    int (*act)(struct fixture *f, const struct stage *st);
    bool long_log; /* the write-ahead log is due for a checkpoint */
};

static const struct {
    enum fault_kind kind;
    bool stays;
} faults[] = {{FAULT_IOERR, false}, {FAULT_TORN, true}, {FAULT_FULL, true}};

/* ---- the operations ------------------------------------------------------------------------ */

static void prepare_jobs(struct fixture *f, struct stage *st)
{
    for (int i = 0; i < 4; i++)
        add_plain(f, i);
    st->w = start(f, "w");
}

static void prepare_running(struct fixture *f, struct stage *st)
{
    prepare_jobs(f, st);
    struct claim_result r = claim(f, &st->w, "k", 3);
    st->n = r.n;
    memcpy(st->leases, r.leases, r.n * sizeof(*r.leases));
}

static int do_enqueue(struct fixture *f, const struct stage *st)
{
    (void)st;
    struct job_spec v[] = {keyed("q", "a"), keyed("new queue", "b"), spec("q", "k", 9)};
    struct add_result out[3];
    v[2].host = SV("host");
    return store_enqueue(f->s, v, 3, DUPLICATE_SKIP, out, &f->e);
}

static int do_claim(struct fixture *f, const struct stage *st)
{
    struct sv kinds[] = {SV("k")};
    struct claim_pool pool = {kinds, 1, 3};
    struct claim_request req = {.session = &st->w, .pools = &pool, .n_pools = 1};
    struct claim_result out;
    return store_claim(f->s, &req, &f->a, &out, &f->e);
}

static int do_settle(struct fixture *f, const struct stage *st)
{
    struct job_spec child = keyed("q", "child");
    struct settle v[] = {settle_of(&st->leases[0], OUTCOME_DONE),
                         settle_of(&st->leases[1], OUTCOME_RETRY),
                         settle_of(&st->leases[2], OUTCOME_FAILED)};
    v[0].result = SV("{}");
    v[0].children = &child;
    v[0].n_children = 1;
    v[1].delay = HOUR;
    v[2].error = SV("bad");
    struct artifact a = {.name = SV("raw"), .place = SV("files/x"), .size = 1};
    struct fetch_record r = {.url = SV("http://x/"), .status = 200, .kept = true};
    v[0].artifacts = &a;
    v[0].n_artifacts = 1;
    v[0].fetch = &r;
    enum settle_outcome out[3];
    return store_settle(f->s, v, 3, out, &f->e);
}

static int do_sweep(struct fixture *f, const struct stage *st)
{
    (void)st;
    struct sweep_request req = {.max_sessions = 9, .max_jobs = 99, .max_lost = 3};
    struct sweep_result out;
    return f->s->ops->sweep(f->s, &req, &out, &f->e);
}

static int do_renew(struct fixture *f, const struct stage *st)
{
    int64_t metrics[N_METRICS] = {[METRIC_job_completed] = 3};
    struct session w = st->w;
    struct progress p = {st->leases[0].id, st->leases[0].fence, SV("[1]")};
    struct renew_request req = {.session = &w,
                                .lease = HOUR,
                                .metrics = metrics,
                                .progress = &p,
                                .n_progress = 1,
                                .running = 7};
    struct renew_result out;
    return f->s->ops->renew(f->s, &req, &f->a, &out, &f->e);
}

static int do_prune(struct fixture *f, const struct stage *st)
{
    (void)st;
    struct act_request cancel = {.act = ACT_CANCEL, .select = {.states = 1u << JOB_QUEUED}};
    struct act_result out;
    return f->s->ops->act(f->s, &cancel, &out, &f->e);
}

static void prepare_limited(struct fixture *f, struct stage *st)
{
    struct job_spec locked = spec("q", "k", -1);
    locked.lock = SV("db");
    add(f, &locked);
    add(f, &locked);
    prepare_running(f, st);
}

static int do_limit(struct fixture *f, const struct stage *st)
{
    (void)st;
    struct limit_spec all = limit_default(NULL);
    enum limit_outcome out;
    all.name = SV("all");
    all.concurrency = 2;
    return f->s->ops->limit_act(f->s, LIMIT_SET, &all, &out, &f->e);
}

static int do_group(struct fixture *f, const struct stage *st)
{
    int rc = f->s->ops->group_begin(f->s, &f->e);
    if (rc < 0)
        return rc;
    rc = do_renew(f, st);
    if (rc == 0)
        rc = do_settle(f, st);
    if (rc == 0)
        rc = do_enqueue(f, st);
    if (rc == 0)
        rc = do_claim(f, st);
    int end = f->s->ops->group_commit(f->s, rc ? &(struct pawl_err){0} : &f->e);
    return rc ? rc : end;
}

/* Few pages, written over and over: the log grows past the bound, the database stays small. */
static void prepare_long_log(struct fixture *f, struct stage *st)
{
    prepare_jobs(f, st);
    struct store_info info;
    do {
        struct renew_request req = {.session = &st->w, .lease = HOUR};
        struct renew_result out;
        OK(f->s->ops->renew(f->s, &req, &f->a, &out, &f->e));
        OK(f->s->ops->info(f->s, &info, &f->e));
    } while (info.log_bytes_pending < (16 << 20) - 4096);
}

static const struct scenario scenarios[] = {
    {"test_I12_enqueue_whole_or_not_at_all", prepare_jobs, do_enqueue, false},
    {"test_I12_claim_whole_or_not_at_all", prepare_jobs, do_claim, false},
    {"test_I12_settle_whole_or_not_at_all", prepare_running, do_settle, false},
    {"test_I12_sweep_whole_or_not_at_all", prepare_running, do_sweep, false},
    {"test_I12_renew_whole_or_not_at_all", prepare_running, do_renew, false},
    {"test_I12_act_whole_or_not_at_all", prepare_jobs, do_prune, false},
    {"test_I12_limit_whole_or_not_at_all", prepare_limited, do_limit, false},
    {"test_I12_group_whole_or_not_at_all", prepare_running, do_group, false},
    {"test_I12_checkpoint_whole_or_not_at_all", prepare_long_log, do_enqueue, true},
};

/* ---- copies of a prepared store ------------------------------------------------------------ */

static void copy_file(const char *from, const char *to)
{
    struct stat st;
    unlink(to);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return;
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(out >= 0 && fstat(in, &st) == 0);
    assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
    close(in);
    close(out);
}

static void copy_store(const char *from, const char *to)
{
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char a[128], b[128];
        snprintf(a, sizeof(a), "%s%s", from, i == 2 ? "-none" : parts[i]);
        snprintf(b, sizeof(b), "%s%s", to, parts[i]);
        copy_file(a, b);
    }
}

static void reopen(struct fixture *f)
{
    struct store_options o = store_defaults(STORE_WRITE);
    o.durability = DURABILITY_FULL;
    OK(open_store(f->path, &o, &f->s, &f->e));
}

static bool outline_job(void *arg, const struct job_view *v)
{
    str_addf(arg, "%lld %d p%d a%d t%d l%d f%lld " SV_FMT "/" SV_FMT "/" SV_FMT "\n",
             (long long)v->id.v, (int)v->state, v->priority, v->attempt, v->transient, v->lost,
             (long long)v->fence.v, SV_ARG(v->result), SV_ARG(v->progress), SV_ARG(v->error));
    return true;
}

static bool outline_event(void *arg, const struct event_view *e)
{
    str_addf(arg, "%d %lld %lld\n", (int)e->type, (long long)e->job.v, (long long)e->fence.v);
    return true;
}

static bool outline_gate(void *arg, const struct gate_view *g)
{
    str_addf(arg, "gate " SV_FMT " %d\n", SV_ARG(g->limit), g->used);
    return true;
}

/* All that is not a time. */
static char *outline(struct fixture *f)
{
    struct str s = STR_INIT(STR_OUTPUT);
    struct selection all = {0};
    struct event_filter events = {0};
    struct status_view st;
    struct gate_filter gates = {0};
    OK(f->s->ops->gates(f->s, &gates, outline_gate, &s, &f->e));
    OK(f->s->ops->list(f->s, &all, true, outline_job, &s, &f->e));
    OK(f->s->ops->events(f->s, &events, outline_event, &s, &f->e));
    OK(f->s->ops->status(f->s, 1, &f->a, &st, &f->e));
    for (size_t i = 0; i < st.n_sessions; i++)
        str_addf(&s, "session %lld %d\n", (long long)st.sessions[i].id.v, st.sessions[i].running);
    str_addf(&s, "completed %lld\n", (long long)st.metrics[METRIC_job_completed]);
    return s.p;
}

/* ---- the campaign -------------------------------------------------------------------------- */

struct expectation {
    char *before, *after;
    char prepared[96];
};

static void check_outcome(struct fixture *f, const struct expectation *x, int rc, const char *where)
{
    AUTO_FREE char *now = outline(f);
    bool done = !strcmp(now, x->after), undone = !strcmp(now, x->before);
    if (!done && !undone)
        fail_msg("%s: half done: %s\n-- before\n%s-- after\n%s", where, now, x->before, x->after);
    if (rc == 0 && !done)
        fail_msg("%s: reported success but did nothing", where);
    if (rc < 0 && rc != PAWL_EUNCERTAIN && !undone)
        fail_msg("%s: reported %s but it happened", where, err_name(rc));
    assert_clean(f);
}

/* A handle in doubt refuses; one that is not does the same call whole, the cause being gone. */
static void check_handle(struct fixture *f, const struct scenario *sc, const struct stage *st,
                         const struct expectation *x, int rc, const char *where)
{
    f->e = (struct pawl_err){0};
    int again = sc->act(f, st);
    if (again == PAWL_EBROKEN && f->e.msg[0])
        return;
    if (rc != PAWL_EFULL || again < 0)
        fail_msg("%s: the handle went on after %s: %s", where, err_name(rc), err_name(again));
    check_outcome(f, x, 0, where);
}

static bool as_before(struct fixture *f, const struct expectation *x)
{
    AUTO_FREE char *now = outline(f);
    return !strcmp(now, x->before);
}

static int act_faulty(struct fixture *f, const struct scenario *sc, const struct stage *st,
                      int fault, int n, const char *where)
{
    f->e = (struct pawl_err){0};
    fault_arm(faults[fault].kind, n, faults[fault].stays);
    int rc = sc->act(f, st);
    fault_disarm();
    if (rc == 0)
        return 0;
    if (!f->e.msg[0] || !fault_fired())
        fail_msg("%s: %s: %s", where, err_name(rc), f->e.msg);
    if (rc != PAWL_EUNREACHABLE && rc != PAWL_EFULL && rc != PAWL_EUNCERTAIN)
        fail_msg("%s: unexpected %s: %s", where, err_name(rc), f->e.msg);
    return rc;
}

static void once(struct fixture *f, const struct scenario *sc, const struct stage *st,
                 const struct expectation *x, int fault, int n)
{
    char where[128];
    snprintf(where, sizeof(where), "%s, fault %d at call %d", sc->name, fault, n);
    copy_store(x->prepared, f->path);
    reopen(f);
    int rc = act_faulty(f, sc, st, fault, n, where);
    struct store *failed = f->s;
    bool retried = false;
    if (rc == 0 && fault_fired() && faults[fault].kind != FAULT_FULL) {
        struct job_spec s = spec("q", "k", 0); /* done, but a failed write is never swallowed */
        struct add_result out;
        FAILS(store_enqueue(f->s, &s, 1, DUPLICATE_SKIP, &out, &f->e), PAWL_EBROKEN);
    }
    if (rc < 0) { /* as another process sees it, while the failed handle is still open */
        reopen(f);
        retried = as_before(f, x);
        store_close(f->s);
        f->s = failed;
        check_handle(f, sc, st, x, rc, where);
    }
    store_close(f->s);
    reopen(f);
    check_outcome(f, x, rc == PAWL_EFULL && retried ? PAWL_EUNCERTAIN : rc, where);
    if (as_before(f, x)) { /* the cause is gone: the same call succeeds */
        OK(sc->act(f, st));
        check_outcome(f, x, 0, where);
    }
    store_close(f->s);
    f->s = NULL;
    arena_reset(&f->a);
}

static int expect(struct fixture *f, const struct scenario *sc, struct stage *st,
                  struct expectation *x)
{
    snprintf(x->prepared, sizeof(x->prepared), "%s/prepared.db", f->dir);
    struct store_options o = store_defaults(STORE_CREATE);
    OK(open_store(x->prepared, &o, &f->s, &f->e));
    sc->prepare(f, st);
    vanish(&st->w);
    x->before = outline(f);
    store_close(f->s);
    copy_store(x->prepared, f->path);
    reopen(f);
    fault_arm(FAULT_IOERR, 0, false);
    OK(sc->act(f, st));
    int calls = fault_disarm();
    x->after = outline(f);
    store_close(f->s);
    f->s = NULL;
    assert_string_not_equal(x->before, x->after);
    return calls;
}

struct nth {
    struct fixture f; /* first: what the fixture's teardown knows */
    const struct scenario *sc;
};

static void test_whole_or_not_at_all(void **state)
{
    struct nth *t = *state;
    struct fixture *f = &t->f;
    const struct scenario *sc = t->sc;
    struct stage st = {0};
    struct expectation x = {0};
    int calls = expect(f, sc, &st, &x);
    struct arena keep = f->a; /* leases of the preparation outlive each round */
    arena_init(&f->a);
    print_message("# %s: %d calls\n", sc->name, calls);
    assert_true(calls > 3);
    /* With a long log the commit comes first, as in the other scenarios; every round is dear. */
    int from = sc->long_log ? calls / 3 : 1, n_faults = sc->long_log ? 1 : (int)ARRAY_LEN(faults);
    for (int fault = 0; fault < n_faults; fault++)
        for (int n = from; n <= calls; n++)
            once(f, sc, &st, &x, fault, n);
    arena_done(&keep);
    free(x.before);
    free(x.after);
}

static int setup(void **state)
{
    struct nth *t = mem_zalloc(1, sizeof(*t));
    t->sc = *state;
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* nothing here survives a power cut, nor has to */
    fixture_folder(&t->f);
    *state = t;
    return 0;
}

static void remove_store(const char *path)
{
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", path, parts[i]);
        unlink(name);
    }
}

/* Setting up and migrating are one and the same code: everything from nothing. */
static void test_I12_creation_can_fail_anywhere(void **state)
{
    struct fixture *f = *state;
    struct store_options o = store_defaults(STORE_CREATE);
    o.durability = DURABILITY_FULL;
    int total = 0;
    for (int fault = 0; fault < (int)ARRAY_LEN(faults); fault++)
        for (int n = 0; n <= total; n++) {
            remove_store(f->path);
            f->e = (struct pawl_err){0};
            fault_arm(faults[fault].kind, n, faults[fault].stays);
            int rc = open_store(f->path, &o, &f->s, &f->e);
            bool fired = fault_fired();
            int calls = fault_disarm();
            total = n ? total : calls;
            if (rc < 0 && (!fired || !f->e.msg[0]))
                fail_msg("creation, fault %d at call %d: %s", fault, n, f->e.msg);
            if (rc == 0)
                store_close(f->s);
            OK(open_store(f->path, &o, &f->s, &f->e)); /* the next start is clean */
            assert_clean(f);
            job_id id = add_plain(f, 0);
            assert_int_equal(id.v, 1);
            store_close(f->s);
            f->s = NULL;
        }
    assert_true(total > 20);
}

int main(void)
{
    fault_register();
    struct CMUnitTest tests[ARRAY_LEN(scenarios) + 1] = {cmocka_unit_test_setup_teardown(
        test_I12_creation_can_fail_anywhere, setup, fixture_teardown)};
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
        tests[i + 1] = (struct CMUnitTest){scenarios[i].name, test_whole_or_not_at_all, setup,
                                           fixture_teardown, (void *)(uintptr_t)&scenarios[i]};
    return cmocka_run_group_tests_name("nth", tests, NULL, NULL);
}
