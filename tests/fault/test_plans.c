/* Query plans of every named statement: none walks a table that grows with the number of jobs, and
 * the hot ones sort nothing (I11). */
#define STMT_TABLE
#include "fixture.h"
#include "sql.h"

#include <sqlite3.h>

/* Tables that grow with the jobs, and the names the statements give them. */
static const char *const big[] = {"job",   "j", "body",    "b",      "attempt", "a",
                                  "event", "e", "job_key", "result", "due",     "artifact",
                                  "fetch", "f", "n",       "memory"};

struct allowance {
    const char *statement, *step; /* a step of its plan that begins so */
    const char *why;
};
static const struct allowance allowed[] = {
    {"list_queued", "SCAN job USING INDEX job_ready", "only what is queued, when few are"},
    {"list_queued", "SCAN job USING INDEX job_held", "only what is queued, when few are"},
    {"list_waiting", "SCAN job USING INDEX job_waiting", "only what waits, when few do"},
    {"list_running", "SCAN job USING INDEX job_running", "only what runs"},
    {"status_running", "SCAN job USING INDEX job_running", "cut off by its limit"},
    {"running_lanes", "SCAN job USING INDEX job_running", "only what runs"},
    {"explain_held", "SCAN job USING INDEX job_running", "only what runs"},
    {"next_due", "SCAN due", "the first row alone"},
    {"event_at", "SCAN event", "the first row alone"},
    {"last_event_at", "SCAN event", "the last row alone"},
    {"events_drop", "SCAN event", "cut off by its limit"},
    {"artifacts_old", "SCAN artifact", "cut off by its limit"},
};

/* Sorts that are bounded by something small: the classes, five rows, the jobs of one state, what
 * runs, the locks, what one job left. */
static const char *const may_sort[] = {
    "list_queued",    "list_waiting",    "list_running",     "list_ended",
    "status_classes", "status_running",  "status_last",      "metric_sum",
    "report_slots",   "report_errors",   "report_slowest",   "running_lanes",
    "lock_list",      "explain_holders", "artifacts_of_job", "explain_held"};

/* The index a statement is meant to use. */
static const struct {
    const char *statement, *index;
} meant[] = {
    {"due_waiting", "job_waiting"},
    {"next_waiting", "job_waiting"},
    {"classes_ready", "class_ready"},
    {"lane_next_same", "lane_ready"},
    {"lane_next_lower", "lane_ready"},
    {"job_next_same", "job_ready"},
    {"job_next_lower", "job_ready"},
    {"lane_best", "job_ready"},
    {"class_best", "lane_ready"},
    {"held", "job_running"},
    {"owner_jobs", "job_running"},
    {"owner_next", "job_running"},
    {"sessions_live", "session_live"},
    {"sessions_view", "session_live"},
    {"list_ended", "job_ended"},
    {"status_last", "job_ended"},
    {"due_delete", "due_job"},
    {"keys_drop", "job_key_expires"},
    {"settle_row", "INTEGER PRIMARY KEY"},
    {"settle_end", "INTEGER PRIMARY KEY"},
    {"settle_back", "INTEGER PRIMARY KEY"},
    {"take_range", "INTEGER PRIMARY KEY"},
    {"claim_range", "INTEGER PRIMARY KEY"},
    {"key_find", "PRIMARY KEY"},
    {"attempts", "PRIMARY KEY"},
    {"session_renew", "INTEGER PRIMARY KEY"},
    {"list_by_id", "INTEGER PRIMARY KEY (rowid>?)"},
    {"history_jobs", "job_ended (state=? AND finished_at>? AND finished_at<?)"},
    {"history_attempts", "PRIMARY KEY (job=? AND fence<?)"},
    {"age_first", "job_ready"},
    {"age_group", "job_ready"},
    {"lock_one", "job_lock"},
    {"lock_waiting", "job_held"},
    {"gate_parked", "lane_parked"},
    {"explain_ahead", "job_ready (lane=? AND priority>?)"},
    {"artifacts_by_id", "SEARCH a USING INTEGER PRIMARY KEY (rowid>?)"},
    {"artifacts_by_id", "artifact_job (job=? AND name=? AND fence>?)"},
    {"artifacts_by_id", "fetch_job (job=? AND fence=?)"},
    {"artifacts_of_job", "artifact_job (job=?)"},
    {"artifact_drop", "INTEGER PRIMARY KEY"},
    {"fetch_lost", "fetch_job (job=? AND fence=?)"},
    {"fetch_left_over", "fetch_job (job=? AND fence=?)"},
    {"prune_fetches", "fetch_job (job=?)"},
    {"history_fetches", "fetch_job (job=? AND fence<?)"},
    {"fetches", "fetch_job (job=?)"},
    {"fetch_totals", "fetch_at (at>?)"},
    {"memory_get", "(key=?)"},
    {"memory_forget", "(key=?)"},
    {"memory_drop", "memory_expires (expires<?)"},
};

static bool starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

static bool scans_big(const char *step)
{
    if (!starts(step, "SCAN "))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(big); i++) {
        size_t n = strlen(big[i]);
        if (!strncmp(step + 5, big[i], n) && (step[5 + n] == '\0' || step[5 + n] == ' '))
            return true;
    }
    return false;
}

/* A copy walks everything, on purpose. */
static bool copies(const char *name)
{
    return starts(name, "copy_");
}

static bool is_allowed(const char *name, const char *step)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (!strcmp(allowed[i].statement, name) && starts(step, allowed[i].step))
            return true;
    return copies(name);
}

static bool sort_allowed(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(may_sort); i++)
        if (!strcmp(may_sort[i], name))
            return true;
    return copies(name);
}

static void check_step(const char *name, const char *step)
{
    if (scans_big(step) && !is_allowed(name, step))
        fail_msg("%s: %s", name, step);
    if (strstr(step, "TEMP B-TREE") && !sort_allowed(name))
        fail_msg("%s: %s", name, step);
    if (strstr(step, "AUTOMATIC"))
        fail_msg("%s: makes an index by itself: %s", name, step);
}

/* The whole plan as text, each step checked. NULL for statements without one. */
static char *plan_of(sqlite3 *db, const char *name, const char *sql)
{
    AUTO_STR struct str explain = STR_INIT(STR_LINE);
    struct str plan = STR_INIT(STR_LINE);
    sqlite3_stmt *s = NULL;
    str_addf(&explain, "EXPLAIN QUERY PLAN %s", sql);
    if (sqlite3_prepare_v2(db, str_cstr(&explain), -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", name, sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(s, 3);
        if (getenv("PAWL_TEST_SHOW"))
            print_message("# %s: %s\n", name, step);
        check_step(name, step);
        str_addf(&plan, "%s\n", step);
    }
    sqlite3_finalize(s);
    return plan.p;
}

static sqlite3 *open_raw(struct fixture *f)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    return db;
}

static void test_I11_no_statement_walks_the_jobs(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = open_raw(f);
    for (int i = 0; i < N_STMTS; i++)
        free(plan_of(db, stmt_table[i].name, stmt_table[i].sql));
    sqlite3_close(db);
}

static void test_I11_statements_use_the_index_meant(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = open_raw(f);
    for (size_t m = 0; m < ARRAY_LEN(meant); m++) {
        bool found = false;
        for (int i = 0; i < N_STMTS; i++) {
            if (strcmp(stmt_table[i].name, meant[m].statement))
                continue;
            found = true;
            AUTO_FREE char *plan = plan_of(db, stmt_table[i].name, stmt_table[i].sql);
            if (!plan || !strstr(plan, meant[m].index))
                fail_msg("%s does not use %s:\n%s", meant[m].statement, meant[m].index, plan);
        }
        if (!found)
            fail_msg("no statement %s", meant[m].statement);
    }
    sqlite3_close(db);
}

/* The judge itself: it must see what it is there to see. */
static void test_the_judge_sees_scans_and_sorts(void **state)
{
    (void)state;
    assert_true(scans_big("SCAN job"));
    assert_true(scans_big("SCAN j USING INDEX job_ended"));
    assert_false(scans_big("SCAN joblike"));
    assert_false(scans_big("SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"));
    assert_false(is_allowed("claim_range", "SCAN job"));
    assert_false(is_allowed("list_running", "SCAN job"));
    assert_false(sort_allowed("classes_ready"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I11_no_statement_walks_the_jobs),
        TEST(test_I11_statements_use_the_index_meant),
        TEST(test_the_judge_sees_scans_and_sorts),
    };
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
