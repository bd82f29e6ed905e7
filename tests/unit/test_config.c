/* config: file, environment, flags and defaults, and which of them wins. */
#include "config_lab.h"

static void has_defaults(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    assert_code(load(NULL, NULL, NULL, 0, &c, NULL), 0);
    assert_string_equal(c->store, "sqlite:pawl.db");
    assert_int_equal(c->store_timeout.us, 10000000);
    assert_string_equal(c->durability, "full");
    assert_int_equal(c->worker_slots, 0);
    assert_int_equal(c->worker_lease.us, 30000000);
    assert_int_equal(c->worker_timeout.us, DUR_NONE.us);
    assert_int_equal(c->retry_max_attempts, 3);
    assert_true(c->retry_respect_retry_after);
    assert_int_equal(c->retention_done.us, (int64_t)30 * 86400 * 1000000);
    assert_int_equal(c->log_head, 262144);
    assert_int_equal(c->disk_reserve, 268435456);
    assert_int_equal(c->n_pools + c->n_kinds + c->pass_env.n, 0);
    assert_null(c->file);
    assert_shown(c, "store", "sqlite:pawl.db", "default");
    assert_shown(c, "log.head", "256KiB", "default");
    assert_shown(c, "worker.timeout", "none", "default");
    assert_shown(c, "worker.pools", "", "default");
}

static const char full_file[] =
    "# a comment\n"
    "store: sqlite:/var/lib/pawl.db\n"
    "store_timeout: 20s\n"
    "durability: relaxed\n"
    "worker: {slots: 8, pools: {parse: 4, \"*\": 2}, lease: 60s, heartbeat: 20s}\n"
    "retry:\n"
    "  base: 100ms\n"
    "  max: 1m30s\n"
    "  respect_retry_after: false\n"
    "retention: {done: none, keys: 0s}\n"
    "log: {head: 4096, tail: 1MiB}\n"
    "exec: {pass_env: [LANG, AWS_REGION]}\n"
    "lake: {path: /srv/lake, compress: {types: [text/html, \"image/*\"], level: 9}}\n"
    "fetch: {contact: me@example.org, robots: false, slots: 50}\n";

static void reads_a_file(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = load_good(full_file);
    assert_string_equal(c->file, "pawl.yaml");
    assert_string_equal(c->store, "sqlite:/var/lib/pawl.db");
    assert_string_equal(c->durability, "relaxed");
    assert_int_equal(c->worker_slots, 8);
    assert_int_equal(c->worker_heartbeat.us, 20000000);
    assert_int_equal(c->retry_base.us, 100000);
    assert_int_equal(c->retry_max.us, 90000000);
    assert_false(c->retry_respect_retry_after);
    assert_int_equal(c->retention_done.us, DUR_NONE.us);
    assert_int_equal(c->log_head, 4096);
    assert_int_equal(c->log_tail, 1 << 20);
    assert_int_equal(c->n_pools, 2);
    assert_string_equal(c->pools[0].kind, "parse");
    assert_int_equal(c->pools[0].slots, 4);
    assert_string_equal(c->pools[1].kind, "*");
    assert_int_equal(c->pass_env.n, 2);
    assert_string_equal(c->pass_env.v[1], "AWS_REGION");
    assert_shown(c, "store_timeout", "20s", "pawl.yaml:3");
    assert_shown(c, "retry.max", "1m30s", "pawl.yaml:8");
    assert_shown(c, "log.head", "4KiB", "pawl.yaml:11");
    assert_shown(c, "worker.pools", "parse=4,*=2", "pawl.yaml:5");
    assert_shown(c, "exec.pass_env", "LANG,AWS_REGION", "pawl.yaml:12");
    assert_int_equal(c->compress_types.n, 2);
    assert_string_equal(c->compress_types.v[1], "image/*");
    assert_int_equal(c->lake_compress_level, 9);
    assert_shown(c, "lake.compress.types", "text/html,image/*", "pawl.yaml:13");
    assert_string_equal(c->fetch_contact, "me@example.org");
    assert_false(c->fetch_robots);
    assert_shown(c, "fetch.slots", "50", "pawl.yaml:14");
    assert_shown(c, "worker.poll_interval", "1s", "default");
}

static void stronger_places_win(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    static const char *const env[] = {"HOME=/root",
                                      "PAWL_WORKER_SLOTS=5",
                                      "PAWL_STORE=sqlite:env.db",
                                      "PAWL_WORKER_STOP_TIMEOUT=1m",
                                      "PAWL_WORKER_POOLS=fetch=3, *=1",
                                      "PAWL_EXEC_PASS_ENV=TERM",
                                      "PAWL_LAKE_COMPRESS_TYPES=text/*, a/b",
                                      "PAWL_RETRY_MAX_LOST=", /* empty: not set */
                                      "PAWL_JOB_ID=7",
                                      "PAWL_ATTEMPT=x",
                                      "PAWL_FENCE=x",
                                      "PAWL_QUEUE=x",
                                      "PAWL_KEY=x",
                                      "PAWL_DEADLINE=x",
                                      "PAWL_TEST_ANYTHING=1",
                                      "PAWL=/usr/bin/pawl",
                                      NULL};
    static const char *const flags[] = {"worker.slots=9", "worker.pools=a=1",
                                        "worker.pools=b=2,c=3", "worker.stop_timeout=0s"};
    assert_code(load(full_file, env, flags, ARRAY_LEN(flags), &c, NULL), 0);
    assert_int_equal(c->worker_slots, 9);
    assert_shown(c, "worker.slots", "9", "--slots");
    assert_shown(c, "worker.stop_timeout", "0s", "--stop-timeout");
    assert_shown(c, "store", "sqlite:env.db", "PAWL_STORE");
    assert_shown(c, "retry.max_lost", "3", "default");
    assert_shown(c, "worker.pools", "a=1,b=2,c=3", "--pool");
    assert_shown(c, "exec.pass_env", "TERM", "PAWL_EXEC_PASS_ENV");
    assert_shown(c, "lake.compress.types", "text/*,a/b", "PAWL_LAKE_COMPRESS_TYPES");
    assert_shown(c, "durability", "relaxed", "pawl.yaml:4");
    config_free(TAKE_PTR(c));
    assert_code(load(full_file, env, NULL, 0, &c, NULL), 0);
    assert_shown(c, "worker.pools", "fetch=3,*=1", "PAWL_WORKER_POOLS");
}

static void chooses_the_file(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    write_file("pawl.yaml", "store: sqlite:here.db\n", 0600);
    write_file("other.yaml", "store: sqlite:other.db\n", 0600);
    static const char *const env[] = {"PAWL_CONFIG=other.yaml", NULL};
    assert_code(config_load(NULL, (char *const *)env, NULL, 0, &c, NULL), 0);
    assert_shown(c, "store", "sqlite:other.db", "other.yaml:1");
    config_free(TAKE_PTR(c));
    assert_code(config_load("./pawl.yaml", (char *const *)env, NULL, 0, &c, NULL), 0);
    assert_shown(c, "store", "sqlite:here.db", "./pawl.yaml:1");
    config_free(TAKE_PTR(c));
    assert_code(config_load("absent.yaml", NULL, NULL, 0, &c, &err), PAWL_ENOTFOUND);
    assert_string_equal(err.msg, "cannot open absent.yaml: No such file or directory");
    assert_null(c);
    static const char *const gone[] = {"PAWL_CONFIG=absent.yaml", NULL};
    assert_code(config_load(NULL, (char *const *)gone, NULL, 0, &c, &err), PAWL_ENOTFOUND);
    assert_code(config_load("secrets", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
}

static void accepts_empty_files(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "# nothing\n",
                                       "---\n",
                                       "{}",
                                       "worker:\n",
                                       "kinds:\n",
                                       "worker: {}\nretry: ~\n",
                                       "%YAML 1.1\n---\nstore: a\n"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_CONFIG struct config *c = NULL;
        struct pawl_err err = {0};
        assert_true_msg(load(rows[i], NULL, NULL, 0, &c, &err) == 0, "%s: %s", rows[i], err.msg);
        assert_string_equal(c->file, "pawl.yaml");
    }
}

static void refuses_bad_environment_and_flags(void **state)
{
    (void)state;
    static const struct {
        const char *env, *flag, *msg;
    } rows[] = {
        {"PAWL_WORKER_SLOT=8", NULL,
         "PAWL_WORKER_SLOT: unknown environment variable; did you mean PAWL_WORKER_SLOTS?"},
        {"PAWL_FROBNICATE_EVERYTHING=8", NULL,
         "PAWL_FROBNICATE_EVERYTHING: unknown environment variable"},
        {"PAWL_KINDS=x", NULL, "PAWL_KINDS: unknown environment variable"},
        {"PAWL_WORKER_LEASE=100ms", NULL,
         "PAWL_WORKER_LEASE: 100ms is out of bounds; allowed 1s to 1h"},
        {"PAWL_WORKER_POOLS=a", NULL, "PAWL_WORKER_POOLS: \"a\" is not a pool; write KIND=SLOTS"},
        {"PAWL_WORKER_POOLS=a=1,a=2", NULL, "PAWL_WORKER_POOLS: pool \"a\" twice"},
        {"PAWL_WORKER_POOLS==1", NULL, "PAWL_WORKER_POOLS: \"\" is not the name of a kind"},
        {"PAWL_EXEC_PASS_ENV=A B", NULL,
         "PAWL_EXEC_PASS_ENV: \"A B\" is not the name of a variable"},
        {"PAWL_STORE=\xff", NULL, "PAWL_STORE: not valid UTF-8 at byte 0"},
        {NULL, "worker.slots=x", "--slots: \"x\" is not a whole number"},
        {NULL, "worker.stop_timeout=2d", "--stop-timeout: 2d is out of bounds; allowed 0s to 1d"},
        {NULL, "worker.pools=a=0", "--pool: pool \"a\": 0 is out of bounds; allowed 1 to 100000"},
        {NULL, "worker.slot=1", "unknown key \"worker.slot\"; did you mean \"worker.slots\"?"},
        {NULL, "worker.slots", "worker.slots: KEY=VALUE is expected"},
        {"PAWL_WORKER_LEASE=3s", "worker.heartbeat=2s",
         "--heartbeat: worker.heartbeat: 2s is more than a third of worker.lease; allowed at most "
         "1s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        const char *env[] = {rows[i].env, NULL};
        assert_code(load(NULL, env, &rows[i].flag, rows[i].flag ? 1 : 0, &c, &err), PAWL_ECONFIG);
        assert_string_equal(err.msg, rows[i].msg);
    }
}

/* A default gives way to a value set beside it. */
static void defaults_give_way(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    assert_code(load("worker: {lease: 3s}\nretry: {max: 500ms}\n", NULL, NULL, 0, &c, NULL), 0);
    assert_int_equal(c->worker_heartbeat.us, 1000000);
    assert_int_equal(c->retry_base.us, 500000);
    assert_shown(c, "worker.heartbeat", "1s", "default");
}

static void check_value(void *arg, const struct config_value *v)
{
    const char *document = arg;
    char cell[128];
    snprintf(cell, sizeof(cell), "| `%s` | ", v->key);
    if (strcmp(v->key, "worker.pools") != 0 && strcmp(v->key, "exec.pass_env") != 0 &&
        strcmp(v->key, "lake.compress.types") != 0)
        assert_non_null(strstr(document, cell));
}

/* The manual has a row for every key, and its example is a valid file. */
static void documents_everything(void **state)
{
    (void)state;
    AUTO_STR struct str doc = STR_INIT(STR_OUTPUT);
    AUTO_CONFIG struct config *c = NULL;
    config_document(&doc);
    assert_false(doc.overflow);
    assert_code(load(NULL, NULL, NULL, 0, &c, NULL), 0);
    config_each(c, check_value, doc.p);
    assert_non_null(strstr(doc.p, "| `worker.lease` | duration | `30s` | 1s to 1h | "
                                  "`PAWL_WORKER_LEASE` | "));
    assert_non_null(strstr(doc.p, "| `transient_log` | list |"));
    char *start = strstr(doc.p, "```yaml\n"), *end = start ? strstr(start, "\n```\n") : NULL;
    assert_non_null(end);
    end[1] = '\0';
    config_free(TAKE_PTR(c));
    c = load_good(start + 8);
    assert_int_equal(c->n_kinds, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(stronger_places_win), cmocka_unit_test(chooses_the_file),
        cmocka_unit_test(accepts_empty_files), cmocka_unit_test(refuses_bad_environment_and_flags),
        cmocka_unit_test(defaults_give_way),   cmocka_unit_test(documents_everything),
    };
    return cmocka_run_group_tests_name("config", tests, enter_folder, leave_folder);
}
