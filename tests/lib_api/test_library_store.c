/* The library without leases: opening, adding, looking, acting, and what it refuses. */
#include "lab.h"

#include <limits.h>
#include <sys/stat.h>

static void test_version_and_names(void **state)
{
    (void)state;
    assert_string_equal(pawl_version(), PAWL_VERSION);
    assert_string_equal(pawl_error_name(0), "ok");
    assert_string_equal(pawl_error_name(PAWL_ERROR_NOTFOUND), "not_found");
    assert_int_equal(pawl_error_exit_status(0), 0);
    const struct {
        int code, exit;
    } classes[] = {{PAWL_ERROR_FAILED, 1},      {PAWL_ERROR_USAGE, 2},  {PAWL_ERROR_NOTFOUND, 3},
                   {PAWL_ERROR_INPUT, 4},       {PAWL_ERROR_CONFIG, 4}, {PAWL_ERROR_SCHEMA, 4},
                   {PAWL_ERROR_CONFLICT, 5},    {PAWL_ERROR_LOCKED, 5}, {PAWL_ERROR_STALE, 5},
                   {PAWL_ERROR_UNREACHABLE, 6}, {PAWL_ERROR_FULL, 6},   {PAWL_ERROR_UNCERTAIN, 6},
                   {PAWL_ERROR_JOBS_FAILED, 7}, {PAWL_ERROR_TIMEOUT, 8}};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        assert_int_equal(pawl_error_exit_status(classes[i].code), classes[i].exit);
    assert_int_equal(pawl_error_exit_status(-999), 1);
    assert_string_equal(pawl_state_name(PAWL_STATE_WAITING), "waiting");
    assert_null(pawl_state_name(-1));
    assert_null(pawl_state_name(99));
    assert_true(pawl_state_is_final(PAWL_STATE_CANCELLED));
    assert_false(pawl_state_is_final(PAWL_STATE_RUNNING));
    assert_false(pawl_state_is_final(99));
}

static void test_open(void **state)
{
    struct lab *lab = *state;
    pawl_open_options o = PAWL_OPEN_OPTIONS_INIT;
    pawl_store *s = NULL;
    o.mode = PAWL_OPEN_READ;
    FAILS(PAWL_ERROR_NOTFOUND, pawl_open(lab->url, &o, &s, &lab->err));
    o.mode = PAWL_OPEN_WRITE;
    FAILS(PAWL_ERROR_NOTFOUND, pawl_open(lab->url, &o, &s, &lab->err));
    assert_null(s);
    o.mode = PAWL_OPEN_CREATE;
    o.durability = PAWL_DURABILITY_RELAXED;
    o.timeout_ms = 2000;
    const char *settings[] = {"retention.keys=7d"};
    o.settings = settings;
    o.n_settings = 1;
    OK(pawl_open(lab->url, &o, &s, &lab->err));
    pawl_close(s);
    o = (pawl_open_options)PAWL_OPEN_OPTIONS_INIT;
    o.mode = PAWL_OPEN_READ;
    OK(pawl_open(lab->url, &o, &s, &lab->err));
    pawl_job job = PAWL_JOB_INIT;
    job.kind = "k";
    pawl_selection all = PAWL_SELECTION_INIT;
    pawl_session *session;
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, &job, 0, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_act(s, PAWL_ACT_PRUNE, &all, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_pause(s, "q", true, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_session_begin(s, NULL, &session, &lab->err));
    assert_int_equal(lab_count(lab, s).queued, 0);
    pawl_close(s);
    pawl_close(NULL);
}

/* The file is its owner's alone, whatever the umask is, which is the process's own. */
static void test_file_mode(void **state)
{
    struct lab *lab = *state;
    if (on_postgres())
        skip();
    mode_t before = umask(0);
    pawl_close(lab_open(lab));
    assert_int_equal(umask(before), 0);
    struct stat st;
    assert_int_equal(stat(lab->url + strlen("sqlite:"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_open_refuses(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = NULL;
    pawl_open_options o = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_open(NULL, NULL, &s, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    assert_non_null(strstr(lab->err.hint, "_INIT"));
    o.size = 1u << 20;
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    o = (pawl_open_options)PAWL_OPEN_OPTIONS_INIT;
    o.mode = 9;
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    o = (pawl_open_options)PAWL_OPEN_OPTIONS_INIT;
    o.durability = -1;
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    o = (pawl_open_options)PAWL_OPEN_OPTIONS_INIT;
    o.timeout_ms = 1;
    FAILS(PAWL_ERROR_CONFIG, pawl_open(lab->url, &o, &s, &lab->err));
    const char *settings[] = {"exec.grace=1s"};
    o = (pawl_open_options)PAWL_OPEN_OPTIONS_INIT;
    o.settings = settings;
    o.n_settings = 1;
    FAILS(PAWL_ERROR_CONFIG, pawl_open(lab->url, &o, &s, &lab->err));
    settings[0] = "retention.kees=1d";
    FAILS(PAWL_ERROR_CONFIG, pawl_open(lab->url, &o, &s, &lab->err));
    assert_non_null(strstr(lab->err.message, "retention.keys"));
    settings[0] = NULL;
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    o.settings = NULL;
    FAILS(PAWL_ERROR_USAGE, pawl_open(lab->url, &o, &s, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_open("mysql:x", NULL, &s, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_open("sqlite:", NULL, &s, &lab->err));
    assert_true(pawl_open("sqlite:/nowhere/at/all.db", NULL, &s, NULL) < 0);
    assert_null(s);
}

/* A struct of an older header is shorter, one of a newer header longer. */
static void test_sizes(void **state)
{
    struct lab *lab = *state;
    struct {
        pawl_job job;
        int64_t newer;
    } later = {.job = {.size = sizeof(later), .kind = "k"}};
    pawl_job old[2] = {{.size = offsetof(pawl_job, priority), .kind = "k", .priority = INT_MAX}};
    pawl_store *s = lab_open(lab);
    OK(pawl_add(s, &old[0], 0, NULL, &lab->err)); /* the priority is not read: it has none */
    OK(pawl_add(s, &later.job, 0, NULL, &lab->err));
    later.newer = 1;
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, &later.job, 0, NULL, &lab->err));
    assert_non_null(strstr(lab->err.hint, "newer"));
    struct {
        pawl_counts c;
        int64_t newer;
    } counts = {.c = {.size = sizeof(counts)}, .newer = 7};
    OK(pawl_count(s, NULL, NULL, &counts.c, &lab->err));
    assert_int_equal(counts.c.queued, 2);
    assert_int_equal(counts.newer, 0);
    assert_int_equal(counts.c.size, sizeof(counts));
    pawl_counts few = {.size = offsetof(pawl_counts, waiting), .waiting = 42};
    OK(pawl_count(s, NULL, NULL, &few, &lab->err));
    assert_int_equal(few.queued, 2);
    assert_int_equal(few.waiting, 42); /* beyond what the caller has */
    pawl_close(s);
}

static void test_add(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_job job = PAWL_JOB_INIT;
    pawl_added added;
    job.queue = "q";
    job.kind = "k";
    job.key = "one";
    job.host = "h";
    job.lock = "one at a time";
    job.payload = "{\"b\": 1, \"a\":2.50}trailing";
    job.payload_len = strlen("{\"b\": 1, \"a\":2.50}");
    job.priority = 5;
    job.max_attempts = 7;
    OK(pawl_add(s, &job, PAWL_DUPLICATE_SKIP, &added, &lab->err));
    assert_int_equal(added.outcome, PAWL_ADD_CREATED);
    assert_int_equal(added.state, -1);
    int64_t id = added.id;
    OK(pawl_add(s, &job, PAWL_DUPLICATE_SKIP, &added, &lab->err));
    assert_int_equal(added.outcome, PAWL_ADD_EXISTS);
    assert_int_equal(added.id, id);
    assert_int_equal(added.state, PAWL_STATE_QUEUED);
    OK(pawl_add(s, &job, PAWL_DUPLICATE_FAIL, &added, &lab->err));
    assert_int_equal(added.outcome, PAWL_ADD_CONFLICT);
    job.payload = "[1]";
    job.payload_len = 0;
    OK(pawl_add(s, &job, PAWL_DUPLICATE_REQUEUE, &added, NULL));
    assert_int_equal(added.outcome, PAWL_ADD_REPLACED);
    pawl_job_info *info;
    OK(pawl_job_find(s, "q", "one", &info, &lab->err));
    assert_int_equal(info->id, id);
    assert_string_equal(info->payload, "[1]");
    assert_string_equal(info->host, "h");
    assert_string_equal(info->lock, "one at a time");
    assert_string_equal(info->kind, "k");
    assert_int_equal(info->priority, 5);
    assert_int_equal(info->max_attempts, 7);
    assert_int_equal(info->state, PAWL_STATE_QUEUED);
    assert_true(info->created_at_ms > 1500000000000);
    assert_null(info->result);
    assert_int_equal(info->n_attempts, 0);
    pawl_job_free(info);
    pawl_job_free(NULL);
    FAILS(PAWL_ERROR_NOTFOUND, pawl_job_find(s, NULL, "one", &info, &lab->err));
    FAILS(PAWL_ERROR_NOTFOUND, pawl_job_get(s, 12345, &info, &lab->err));
    pawl_close(s);
}

static void test_add_many(void **state)
{
    struct lab *lab = *state;
    enum { N = 3000 };
    static pawl_job jobs[N];
    static pawl_added added[N];
    static char keys[N][16];
    pawl_store *s = lab_open(lab);
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i % (N - 1));
        jobs[i] = (pawl_job){.size = sizeof(jobs[i]), .kind = i % 2 ? "odd" : "even"};
        jobs[i].key = keys[i];
        jobs[i].delay_ms = i == 5 ? 3600000 : 0;
    }
    OK(pawl_add_many(s, jobs, N, PAWL_DUPLICATE_SKIP, added, &lab->err));
    assert_int_equal(added[N - 1].outcome, PAWL_ADD_EXISTS);
    assert_int_equal(added[N - 1].id, added[0].id);
    for (int i = 1; i < N - 1; i++)
        assert_true(added[i].outcome == PAWL_ADD_CREATED && added[i].id > added[i - 1].id);
    pawl_counts c = lab_count(lab, s);
    assert_int_equal(c.queued, N - 2);
    assert_int_equal(c.waiting, 1);
    OK(pawl_count(s, "default", "even", &c, &lab->err));
    assert_int_equal(c.queued, N / 2);
    OK(pawl_count(s, "nowhere", NULL, &c, &lab->err));
    assert_int_equal(c.queued, 0);
    jobs[N - 2].payload = "{"; /* one bad job: none is added */
    for (int i = 0; i < N; i++)
        jobs[i].key = NULL;
    FAILS(PAWL_ERROR_INPUT, pawl_add_many(s, jobs, N, 0, added, &lab->err));
    assert_non_null(strstr(lab->err.message, "job 2999 of 3000"));
    assert_int_equal(lab_count(lab, s).queued, N - 2);
    OK(pawl_add_many(s, NULL, 0, 0, NULL, &lab->err));
    pawl_close(s);
}

static void test_add_refuses(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    pawl_job job = PAWL_JOB_INIT;
    FAILS(PAWL_ERROR_USAGE, pawl_add(NULL, &job, 0, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, NULL, 0, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_add_many(s, NULL, 3, 0, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_add_many(NULL, &job, 1, 0, NULL, &lab->err));
    FAILS(PAWL_ERROR_INPUT, pawl_add(s, &job, 0, NULL, &lab->err)); /* no kind */
    job.kind = "k";
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, &job, 3, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, &job, -1, NULL, &lab->err));
    static const pawl_job bad[] = {
        {.kind = ""},
        {.kind = "k", .payload = "{'a':1}"},
        {.kind = "k", .payload = ""},
        {.kind = "k", .payload = "1 2"},
        {.kind = "k", .payload = "\"\xff\""},
        {.kind = "k\n"},
        {.kind = "k", .queue = ""},
        {.kind = "k", .key = ""},
        {.kind = "k", .priority = INT_MAX},
        {.kind = "k", .max_attempts = -1},
        {.kind = "k", .timeout_ms = -2},
        {.kind = "k", .timeout_ms = INT64_MAX},
        {.kind = "k", .delay_ms = INT64_MAX},
        {.kind = "k", .delay_ms = -1},
        {.kind = "k", .at_ms = INT64_MAX},
        {.kind = "k", .at_ms = -1},
        {.kind = "k", .delay_ms = 1, .at_ms = 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        job = bad[i];
        job.size = sizeof(job);
        FAILS(PAWL_ERROR_INPUT, pawl_add(s, &job, 0, NULL, &lab->err));
    }
    job = (pawl_job){.size = sizeof(job), .kind = "k", .payload_len = 4};
    FAILS(PAWL_ERROR_USAGE, pawl_add(s, &job, 0, NULL, &lab->err));
    pawl_job two[2] = {{.size = sizeof(job), .kind = "k"}, {.size = 16, .kind = "k"}};
    FAILS(PAWL_ERROR_USAGE, pawl_add_many(s, two, 2, 0, NULL, &lab->err));
    assert_int_equal(lab_count(lab, s).queued, 0);
    pawl_close(s);
}

struct seen {
    struct lab *lab;
    pawl_store *store;
    int n, most;
    int64_t last;
};

static bool see(void *arg, const pawl_job_info *job)
{
    struct seen *seen = arg;
    struct lab *lab = seen->lab;
    assert_true(job->id > seen->last);
    seen->last = job->id;
    if (seen->n == 0) { /* the store is in use by the list itself */
        pawl_counts c = PAWL_COUNTS_INIT;
        FAILS(PAWL_ERROR_USAGE, pawl_count(seen->store, NULL, NULL, &c, &lab->err));
    }
    return ++seen->n < seen->most;
}

static void test_list_and_act(void **state)
{
    struct lab *lab = *state;
    pawl_store *s = lab_open(lab);
    int64_t ids[6];
    for (int i = 0; i < 6; i++)
        ids[i] = lab_add(lab, s, i < 4 ? "a" : "b", "k", NULL);
    pawl_selection sel = PAWL_SELECTION_INIT;
    struct seen seen = {.lab = lab, .store = s, .most = 100};
    sel.queue = "a";
    OK(pawl_list(s, &sel, see, &seen, &lab->err));
    assert_int_equal(seen.n, 4);
    seen = (struct seen){.lab = lab, .store = s, .most = 2};
    OK(pawl_list(s, NULL, see, &seen, &lab->err));
    assert_int_equal(seen.n, 2);
    int64_t changed = -1;
    sel.ids = ids;
    sel.n_ids = 2;
    OK(pawl_act(s, PAWL_ACT_CANCEL, &sel, &changed, &lab->err));
    assert_int_equal(changed, 2);
    assert_int_equal(lab_state(lab, s, ids[0]), PAWL_STATE_CANCELLED);
    sel = (pawl_selection)PAWL_SELECTION_INIT;
    sel.states = 1u << PAWL_STATE_CANCELLED;
    sel.limit = 1;
    OK(pawl_act(s, PAWL_ACT_RETRY, &sel, &changed, &lab->err));
    assert_int_equal(changed, 1);
    sel.limit = 0;
    OK(pawl_act(s, PAWL_ACT_PRUNE, &sel, NULL, &lab->err));
    assert_int_equal(lab_count(lab, s).cancelled, 0);
    FAILS(PAWL_ERROR_USAGE, pawl_act(s, 0, &sel, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_act(s, 9, &sel, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_act(s, PAWL_ACT_PRUNE, NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_act(NULL, PAWL_ACT_PRUNE, &sel, NULL, &lab->err));
    sel.states = 1u << 8;
    FAILS(PAWL_ERROR_USAGE, pawl_list(s, &sel, see, &seen, &lab->err));
    sel = (pawl_selection){.size = sizeof(sel), .n_ids = 1};
    FAILS(PAWL_ERROR_USAGE, pawl_list(s, &sel, see, &seen, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_list(s, NULL, NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_list(NULL, NULL, see, &seen, &lab->err));
    pawl_counts c = {0};
    FAILS(PAWL_ERROR_USAGE, pawl_count(s, NULL, NULL, &c, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_count(s, NULL, NULL, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_job_get(s, 1, NULL, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_job_find(s, NULL, NULL, NULL, &lab->err));
    OK(pawl_pause(s, "a", true, &lab->err));
    OK(pawl_pause(s, "a", true, &lab->err));
    OK(pawl_pause(s, "a", false, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_pause(s, NULL, true, &lab->err));
    FAILS(PAWL_ERROR_USAGE, pawl_pause(s, "", true, &lab->err));
    pawl_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_and_names),
        TEST(test_open),
        TEST(test_file_mode),
        TEST(test_open_refuses),
        TEST(test_sizes),
        TEST(test_add),
        TEST(test_add_many),
        TEST(test_add_refuses),
        TEST(test_list_and_act),
    };
    return cmocka_run_group_tests_name("library-store", tests, NULL, NULL);
}
