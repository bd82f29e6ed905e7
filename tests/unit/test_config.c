/* config: file, environment, flags; every refusal with its place. */
#include "unit.h"

#include "config.h"
#include "fd.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[PATH_MAX];

static void write_file(const char *name, const char *text, mode_t mode)
{
    AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int enter_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/pawl-config-XXXXXX", tmp ? tmp : "/tmp");
    return !mkdtemp(folder) || chdir(folder) != 0 || mkdir("secrets", 0700) != 0;
}

static int leave_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"pawl.yaml",     "other.yaml",  "secrets/token",
                                        "secrets/lease", "secrets/two", "secrets/nul"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlink(names[i]);
    rmdir("secrets");
    return chdir("/") != 0 || rmdir(folder) != 0;
}

/* Load with the given text as ./pawl.yaml (NULL: none). */
static int load(const char *yaml, const char *const *env, const char *const *flags, size_t n_flags,
                struct config **out, struct pawl_err *err)
{
    unlink("pawl.yaml");
    if (yaml)
        write_file("pawl.yaml", yaml, 0600);
    return config_load(NULL, (char *const *)env, flags, n_flags, out, err);
}

struct looking {
    const char *key;
    char value[512], origin[256];
    bool found;
};

static void look(void *arg, const struct config_value *v)
{
    struct looking *l = arg;
    if (strcmp(v->key, l->key) != 0)
        return;
    l->found = true;
    assert_true(v->doc && v->doc[0]);
    snprintf(l->value, sizeof(l->value), "%s", v->value);
    snprintf(l->origin, sizeof(l->origin), "%s", v->origin);
}

static void assert_shown(const struct config *c, const char *key, const char *value,
                         const char *origin)
{
    struct looking l = {.key = key};
    config_each(c, look, &l);
    assert_true_msg(l.found, "%s is not shown", key);
    assert_string_equal(l.value, value);
    assert_string_equal(l.origin, origin);
}

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
    "fetch: {contact: me@example.org, robots: false, slots: 50}\n"
    "kinds:\n"
    "  parse:\n"
    "    command: [parse-doc, --json, \"\", \"a b\"]\n"
    "    cwd: /srv\n"
    "    env: {MODE: fast, EMPTY: \"\"}\n"
    "    timeout: 10m\n"
    "    idle_timeout: 2m\n"
    "    max_attempts: 5\n"
    "    transient_exit: [75, 111]\n"
    "    fatal_exit: [65]\n"
    "    transient_log: [\"429\", overloaded]\n"
    "  free: {handler: noop, timeout: none}\n"
    "  plain: {command: [true], fatal_exit: [75], idle_timeout: none}\n"
    "  short: {command: [true]}\n";

static void reads_a_file(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    assert_true_msg(load(full_file, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
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

static void reads_kinds(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    assert_code(load(full_file, NULL, NULL, 0, &c, NULL), 0);
    assert_int_equal(c->n_kinds, 4);
    const struct kind_conf *k = config_kind(c, SV("parse"));
    assert_non_null(k);
    assert_string_equal(k->handler, "exec");
    assert_int_equal(k->command.n, 4);
    assert_string_equal(k->command.v[2], "");
    assert_string_equal(k->command.v[3], "a b");
    assert_string_equal(k->cwd, "/srv");
    assert_int_equal(k->env.n, 2);
    assert_string_equal(k->env.v[0], "MODE=fast");
    assert_string_equal(k->env.v[1], "EMPTY=");
    assert_int_equal(k->timeout.us, 600000000);
    assert_int_equal(k->idle_timeout.us, 120000000);
    assert_int_equal(k->max_attempts, 5);
    assert_int_equal(k->transient_exit.n, 2);
    assert_int_equal(k->transient_exit.v[1], 111);
    assert_int_equal(k->fatal_exit.v[0], 65);
    assert_string_equal(k->transient_log.v[0], "429");
    k = config_kind(c, SV("free"));
    assert_string_equal(k->handler, "noop");
    assert_int_equal(k->timeout.us, DUR_NONE.us);
    k = config_kind(c, SV("plain"));
    assert_int_equal(k->transient_exit.n, 0); /* 75 was made fatal */
    assert_int_equal(k->idle_timeout.us, 0);
    k = config_kind(c, SV("short"));
    assert_int_equal(k->timeout.us, 0);
    assert_int_equal(k->transient_exit.v[0], 75);
    assert_null(config_kind(c, SV("exec")));
    assert_shown(c, "kinds.parse.command", "[\"parse-doc\",\"--json\",\"\",\"a b\"]",
                 "pawl.yaml:17");
    assert_shown(c, "kinds.parse.transient_exit", "[75,111]", "pawl.yaml:23");
    assert_shown(c, "kinds.parse.timeout", "10m", "pawl.yaml:20");
}

static void reads_web_hooks(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    write_file("secrets/token", "s3cret\n", 0600);
    static const char yaml[] = "secrets_dir: secrets\n"
                               "kinds:\n"
                               "  hook:\n"
                               "    handler: http\n"
                               "    url: http://127.0.0.1:8080/in?token=abc\n"
                               "    secret: ${file:token}\n"
                               "    timeout: 30s\n"
                               "  open: {handler: http, url: HTTPS://a.example, secret: inline}\n"
                               "  page: {handler: fetch, max_attempts: 2}\n";
    assert_true_msg(load(yaml, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    const struct kind_conf *k = config_kind(c, SV("hook"));
    assert_string_equal(k->handler, "http");
    assert_string_equal(k->url, "http://127.0.0.1:8080/in?token=abc");
    assert_string_equal(k->secret, "s3cret");
    assert_int_equal(k->command.n + k->transient_exit.n, 0);
    assert_null(config_kind(c, SV("page"))->url);
    assert_shown(c, "kinds.hook.url", "http://127.0.0.1:8080/***", "pawl.yaml:5");
    assert_shown(c, "kinds.hook.secret", "***", "pawl.yaml:6");
    assert_shown(c, "kinds.open.url", "HTTPS://a.example", "pawl.yaml:8");
    assert_shown(c, "kinds.open.secret", "***", "pawl.yaml:8");
}

static void reads_limits(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    static const char yaml[] =
        "limits:\n"
        "  - {name: every-host, each: host, kind: fetch, concurrency: 2, rate: 1/s}\n"
        "  - name: wiki\n"
        "    hosts: [\"*.wikipedia.org\", \"*.wikimedia.org\"]\n"
        "    replaces: true\n"
        "    rate: 200/min\n"
        "    burst: 5\n"
        "    adaptive: true\n"
        "    min_rate: 3/10s\n"
        "    respect_retry_after: false\n"
        "    max_pause: 2m\n"
        "    breaker: {threshold: 9, pause: 2h}\n"
        "  - {name: one, queue: q, host: a.org, concurrency: 2, breaker: none}\n"
        "breaker: {threshold: 7, percent: 50, pause: 30s}\n"
        "claim_order: fair\n"
        "priority_aging: 10m\n";
    assert_true_msg(load(yaml, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    assert_true(c->policy_given);
    assert_int_equal(c->n_limits, 3);
    const struct limit_conf *x = &c->limits[0];
    assert_string_equal(x->name, "every-host");
    assert_string_equal(x->origin, "pawl.yaml:2");
    assert_true(x->each == LIMIT_EACH_HOST && !x->replaces && !x->ignore_retry_after);
    assert_true(x->rate.count == 1 && x->rate.per.us == 1000000 && x->concurrency == 2);
    assert_string_equal(x->kind, "fetch");
    assert_null(x->queue);
    assert_true(x->breaker.threshold == 7 && x->breaker.percent == 50); /* said further down */
    assert_true(x->breaker.pause.us == 30000000 && x->breaker.max_pause.us == 1800000000);
    x = &c->limits[1];
    assert_int_equal(x->hosts.n, 2);
    assert_string_equal(x->hosts.v[1], "*.wikimedia.org");
    assert_true(x->replaces && x->adaptive && x->ignore_retry_after && x->burst == 5);
    assert_true(x->min_rate.count == 3 && x->min_rate.per.us == 10000000);
    assert_true(x->breaker.threshold == 9 && x->breaker.percent == 50);
    assert_int_equal(x->breaker.max_pause.us, 7200000000); /* the default gave way */
    assert_int_equal(x->max_pause.us, 120000000);
    x = &c->limits[2];
    assert_string_equal(x->queue, "q");
    assert_true(x->hosts.n == 1 && !x->breaker.threshold && !x->breaker.percent);
    assert_shown(c, "limits.wiki.hosts", "[\"*.wikipedia.org\",\"*.wikimedia.org\"]",
                 "pawl.yaml:4");
    assert_shown(c, "limits.wiki.breaker", "{threshold: 9, pause: 2h}", "pawl.yaml:12");
    assert_shown(c, "limits.one.breaker", "none", "pawl.yaml:13");
    assert_shown(c, "limits.wiki.rate", "200/min", "pawl.yaml:6");
    assert_shown(c, "priority_aging", "10m", "pawl.yaml:16");
    config_free(TAKE_PTR(c));
    assert_code(load("limits: []\n", NULL, NULL, 0, &c, NULL), 0);
    assert_true(c->policy_given);
    config_free(TAKE_PTR(c));
    assert_code(load("breaker: {pause: 1h}\n", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
    assert_code(load("breaker: {max_pause: 1s}\n", NULL, NULL, 0, &c, NULL), 0);
    assert_int_equal(c->breaker_pause.us, 1000000);
    assert_false(c->policy_given);
    config_free(TAKE_PTR(c));
    static const char *const env[] = {"PAWL_CLAIM_ORDER=fair", "PAWL_BREAKER_PERCENT=10", NULL};
    assert_code(load("", env, NULL, 0, &c, NULL), 0);
    assert_true(c->policy_given && c->breaker_percent == 10);
}

static void reads_retention_and_preflight(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    static const char yaml[] =
        "retention:\n"
        "  queues: {a: {done: 7d, max_failed: 10}, b: {done: none, failed: 1h, max_done: 5}}\n"
        "  failed: 2d\n"
        "  max_done: 100\n"
        "kinds:\n"
        "  p: {command: [x], preflight: [x, --version], preflight_ttl: 5s, throttled_exit: [22],\n"
        "      throttled_log: [\"429\"]}\n"
        "  u: {command: [x], preflight: {url: \"https://u.example/ok\"}, preflight_timeout: 1s}\n";
    assert_true_msg(load(yaml, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    assert_int_equal(c->n_retention, 2);
    const struct retention_conf *a = &c->retention[0], *b = &c->retention[1];
    assert_string_equal(a->queue, "a");
    assert_true(a->done.us == DUR_S(7 * 86400).us && a->failed.us == DUR_S(2 * 86400).us);
    assert_true(a->max_done == 100 && a->max_failed == 10);
    assert_true(b->done.us < 0 && b->failed.us == DUR_S(3600).us && b->max_done == 5);
    assert_shown(c, "retention.queues.a.max_failed", "10", "pawl.yaml:2");
    const struct kind_conf *p = config_kind(c, SV("p")), *u = config_kind(c, SV("u"));
    assert_true(p->preflight.n == 2 && !p->preflight_url && p->preflight_ttl.us == 5000000);
    assert_true(p->preflight_timeout.us == 10000000 && p->throttled_exit.v[0] == 22);
    assert_string_equal(p->throttled_log.v[0], "429");
    assert_string_equal(u->preflight_url, "https://u.example/ok");
    assert_true(u->preflight.n == 0 && u->preflight_ttl.us == 60000000);
    assert_shown(c, "kinds.p.preflight", "[\"x\",\"--version\"]", "pawl.yaml:6");
    assert_shown(c, "kinds.u.preflight", "{\"url\":\"https://u.example/ok\"}", "pawl.yaml:8");
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

static void refuses_bad_files(void **state)
{
    (void)state;
#define AT(line, text) "pawl.yaml:" line ": " text
    static const struct {
        const char *yaml, *msg;
    } rows[] = {
        /* keys */
        {"wrker: {slots: 8}",
         AT("1", "unknown key \"wrker.slots\"; did you mean \"worker.slots\"?")},
        {"\nworker:\n  slts: 8\n",
         AT("3", "unknown key \"worker.slts\"; did you mean \"worker.slots\"?")},
        {"sotre: x", AT("1", "unknown key \"sotre\"; did you mean \"store\"?")},
        {"zzzzzzzzzz: 1", AT("1", "unknown key \"zzzzzzzzzz\"")},
        {"<<: {store: x}", AT("1", "unknown key \"<<.store\"; did you mean \"store\"?")},
        {"lake: {compress: {types: text/html}}",
         AT("1", "lake.compress.types: text; a list of content types is expected")},
        {"lake: {compress: {types: [a, b]}}",
         AT("1", "lake.compress.types: \"a\" is no content type; such as text/html or text/*")},
        {"lake: {compress: {types: [text/]}}",
         AT("1", "lake.compress.types: \"text/\" is no content type; such as text/html or text/*")},
        {"lake: {compress: {types: [[a/b]]}}",
         AT("1", "lake.compress.types: a list; a content type is expected")},
        {"lake: {compres: {level: 3}}",
         AT("1", "unknown key \"lake.compres.level\"; did you mean \"lake.compress.level\"?")},
        {"store: a\nstore: b", AT("2", "key \"store\" twice; first on line 1")},
        {"worker: {slots: 1, slots: 1}", AT("1", "key \"slots\" twice; first on line 1")},
        /* types */
        {"worker: 8", AT("1", "worker: text; a mapping is expected")},
        {"- a", AT("1", "the whole file: a list; a mapping is expected")},
        {"just text", AT("1", "the whole file: text; a mapping is expected")},
        {"worker: {slots: [8]}", AT("1", "worker.slots: a list; a whole number is expected")},
        {"worker: {lease: {a: b}}", AT("1", "worker.lease: a mapping; a duration is expected")},
        {"worker: {slots: }", AT("1", "worker.slots: no value; a whole number is expected")},
        {"store: ~", AT("1", "store: no value; text is expected")},
        {"store: \"\"", AT("1", "store: the text is empty")},
        {"worker: {slots: many}", AT("1", "worker.slots: \"many\" is not a whole number")},
        {"worker: {slots: 1.5}", AT("1", "worker.slots: \"1.5\" is not a whole number")},
        {"worker: {lease: 30}", AT("1", "worker.lease: \"30\" is not a duration; write 500ms, 10s, "
                                        "5m, 2h or 7d")},
        {"worker: {timeout: forever}", AT("1", "worker.timeout: \"forever\" is not a duration; "
                                               "write 500ms, 10s, 5m, 2h or 7d, or none")},
        {"retry: {respect_retry_after: yes}",
         AT("1", "retry.respect_retry_after: \"yes\" is neither true nor false")},
        {"durability: ful", AT("1", "durability: \"ful\" is not allowed; allowed full|relaxed")},
        {"log: {head: 1MB}",
         AT("1", "log.head: \"1MB\" is not a size; write 4096, 256KiB, 1MiB or 1GiB")},
        /* bounds */
        {"worker:\n  lease: 100ms\n",
         AT("2", "worker.lease: 100ms is out of bounds; allowed 1s to 1h")},
        {"worker: {lease: 61m}", AT("1", "worker.lease: 61m is out of bounds; allowed 1s to 1h")},
        {"worker: {slots: -1}", AT("1", "worker.slots: -1 is out of bounds; allowed 0 to 100000")},
        {"worker: {slots: 100001}",
         AT("1", "worker.slots: 100001 is out of bounds; allowed 0 to 100000")},
        {"worker: {slots: 99999999999999999999}",
         AT("1", "worker.slots: 99999999999999999999 is out of bounds; allowed 0 to 100000")},
        {"log: {tail: 1TiB}", AT("1", "log.tail: 1TiB is out of bounds; allowed 4KiB to 1GiB")},
        {"log: {tail: 99999999999TiB}", AT("1", "log.tail: \"99999999999TiB\" is not a size; write "
                                                "4096, 256KiB, 1MiB or 1GiB")},
        {"worker: {lease: none}", AT("1", "worker.lease: \"none\" is not a duration; write 500ms, "
                                          "10s, 5m, 2h or 7d")},
        /* values that do not fit together */
        {"worker: {lease: 30s,\n  heartbeat: 11s}",
         AT("2",
            "worker.heartbeat: 11s is more than a third of worker.lease; allowed at most 10s")},
        {"retry: {base: 10s, max: 5s}",
         AT("1", "retry.base: 10s is more than retry.max; allowed at most 5s")},
        {"retry: {base: 10m}",
         AT("1", "retry.base: 10m is more than retry.max; allowed at most 5m")},
        /* YAML beyond mappings, lists and text */
        {"store: &a x", AT("1", "anchors are not supported")},
        {"worker: &a {slots: 1}", AT("1", "anchors are not supported")},
        {"exec: {pass_env: &a [A]}", AT("1", "anchors are not supported")},
        {"store: &a x\nsecrets_dir: *a", AT("1", "anchors are not supported")},
        {"store: *a", AT("1", "aliases are not supported")},
        {"store: !!str x", AT("1", "tags are not supported")},
        {"store: ! x", AT("1", "tags are not supported")},
        {"worker: !!map {slots: 1}", AT("1", "tags are not supported")},
        {"store: a\n---\nstore: b", AT("2", "more than one document")},
        {"? [a]\n: b", AT("1", "a key must be plain text")},
        {"store: \"a\\0b\"", AT("1", "NUL is not allowed")},
        {"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", AT("1", "nested too deep")},
        /* pools and names */
        {"worker: {pools: {parse: 0}}",
         AT("1", "worker.pools: pool \"parse\": 0 is out of bounds; allowed 1 to 100000")},
        {"worker: {pools: [parse]}",
         AT("1", "worker.pools: a list; a mapping of kinds to slots is expected")},
        {"worker: {pools: {parse: [1]}}",
         AT("1", "worker.pools: a list; a whole number is expected")},
        {"exec: {pass_env: LANG}", AT("1", "exec.pass_env: text; a list of names is expected")},
        {"exec:\n  pass_env:\n  - LANG\n  - A-B\n",
         AT("4", "exec.pass_env: \"A-B\" is not the name of a variable")},
        {"exec: {pass_env: [PAWL_FENCE]}",
         AT("1", "exec.pass_env: PAWL_FENCE is set by pawl for each job")},
        /* kinds */
        {"kinds: [a]", AT("1", "kinds: a list; a mapping is expected")},
        {"kinds:\n  exec: {command: [a]}",
         AT("2", "kinds.exec: a built-in kind cannot be defined again")},
        {"kinds: {noop: {}}", AT("1", "kinds.noop: a built-in kind cannot be defined again")},
        {"kinds: {a: }", AT("1", "kinds: a is empty; a mapping is expected")},
        {"kinds: {\"*\": {command: [a]}}", AT("1", "kinds: \"*\" is not a name for a kind")},
        {"kinds:\n  a: {timeout: 1s}", AT("2", "kinds.a: command is missing")},
        {"kinds: {a: {command: []}}",
         AT("1", "kinds.a.command: the list is empty; program and arguments are expected")},
        {"kinds: {a: {command: [\"\", x]}}",
         AT("1", "kinds.a.command: the program's name is empty")},
        {"kinds: {a: {command: run me}}", AT("1", "kinds.a.command: text; a list is expected")},
        {"kinds: {a: {command: [x, [y]]}}", AT("1", "kinds.a.command: a list; text is expected")},
        {"kinds: {a: {comand: [x]}}",
         AT("1", "unknown key \"kinds.a.comand\"; did you mean \"command\"?")},
        {"kinds:\n  a:\n    command: [x]\n    preflight: []\n",
         AT("4", "kinds.a.preflight: the list is empty; program and arguments are expected")},
        {"kinds: {a: {command: [x], preflight: x --version}}",
         AT("1", "kinds.a.preflight: text; a list is expected")},
        {"kinds: {a: {command: [x], preflight: {uri: \"http://a\"}}}",
         AT("1", "kinds.a.preflight: url is expected, and nothing besides")},
        {"kinds: {a: {command: [x], preflight: {url: \"ftp://a\"}}}",
         AT("1", "kinds.a.preflight: http://… or https://… is expected")},
        {"kinds: {a: {command: [x], preflight_ttl: 1ms}}",
         AT("1", "kinds.a.preflight_ttl: 1ms is out of bounds; allowed 100ms to 1d")},
        {"kinds: {a: {command: [x], preflight_timeout: none}}",
         AT("1", "kinds.a.preflight_timeout: \"none\" is not a duration; write 500ms, 10s, 5m, 2h "
                 "or 7d")},
        {"kinds: {a: {handler: noop, preflight: [x]}}",
         AT("1", "kinds.a: preflight has no effect with handler noop")},
        {"kinds: {a: {command: [x], throttled_exit: [9], fatal_exit: [9]}}",
         AT("1", "kinds.a.fatal_exit: 9 is both in throttled_exit and fatal_exit")},
        {"kinds: {a: {command: [x], fatal_exit: [9], throttled_exit: [9]}}",
         AT("1", "kinds.a.throttled_exit: 9 is both in throttled_exit and fatal_exit")},
        {"kinds: {a: {command: [x], throttled_log: [\"\"]}}",
         AT("1", "kinds.a.throttled_log: an empty text would match every log")},
        /* order, breaker, limits, retention of queues */
        {"claim_order: lifo", AT("1", "claim_order: \"lifo\" is not allowed; allowed fifo|fair")},
        {"breaker: {treshold: 5}",
         AT("1", "unknown key \"breaker.treshold\"; did you mean \"breaker.threshold\"?")},
        {"breaker: {percent: 101}",
         AT("1", "breaker.percent: 101 is out of bounds; allowed 0 to 100")},
        {"breaker: {pause: 2m, max_pause: 1m}",
         AT("1", "breaker.pause: 2m is more than breaker.max_pause; allowed at most 1m")},
        {"limits: {a: b}", AT("1", "limits: a mapping; a list of mappings is expected")},
        {"limits: [a]", AT("1", "limits: text; a mapping is expected")},
        {"limits:\n- {concurrency: 1}\n", AT("2", "limits: name is missing")},
        {"limits:\n- {name: \"\"}\n", AT("2", "limits.?.name: the text is empty")},
        {"limits:\n- {name: a, concurrency: 1}\n- {concurrency: 2, name: a}\n",
         AT("3", "limits: \"a\" twice; first at pawl.yaml:2")},
        {"limits:\n- name: a\n  concurency: 2\n",
         AT("3", "unknown key \"limits.a.concurency\"; did you mean \"concurrency\"?")},
        {"limits: [{name: a, concurrency: 0}]",
         AT("1", "limits.a.concurrency: 0 is out of bounds; allowed 1 to 1000000")},
        {"limits: [{name: a, rate: 5}]",
         AT("1", "limits.a.rate: \"5\" is not a rate; write 200/min, 1/s or 3/10s")},
        {"limits: [{name: a, rate: 5/fortnight}]",
         AT("1", "limits.a.rate: \"5/fortnight\" is not a rate; write 200/min, 1/s or 3/10s")},
        {"limits: [{name: a, rate: 0/s}]",
         AT("1", "limits.a.rate: \"0/s\" is not a rate; write 200/min, 1/s or 3/10s")},
        {"limits: [{name: a, concurrency: 1, burst: 2}]",
         AT("1", "limits.a: burst has no effect without rate")},
        {"limits: [{name: a, concurrency: 1, adaptive: true}]",
         AT("1", "limits.a: adaptive has no effect without rate")},
        {"limits: [{name: a, rate: 1/s, min_rate: 1/min}]",
         AT("1", "limits.a: min_rate has no effect without adaptive")},
        {"limits: [{name: a, rate: 1/s, adaptive: true, min_rate: 61/min}]",
         AT("1", "limits.a: min_rate is higher than rate")},
        {"limits: [{name: a, each: lane, concurrency: 1}]",
         AT("1", "limits.a.each: \"lane\" is not allowed; allowed host|queue|kind")},
        {"limits: [{name: a, each: host, replaces: true, concurrency: 1}]",
         AT("1", "limits.a: replaces is for limits without each")},
        {"limits: [{name: a, host: a, hosts: [b], concurrency: 1}]",
         AT("1", "limits.a.hosts: there is host already")},
        {"limits: [{name: a, hosts: [], concurrency: 1}]",
         AT("1", "limits.a.hosts: the list is empty")},
        {"limits: [{name: a, breaker: {treshold: 1}}]",
         AT("1", "unknown key \"limits.a.breaker.treshold\"; did you mean \"threshold\"?")},
        {"limits: [{name: a, breaker: off}]",
         AT("1", "limits.a.breaker: text; a mapping or none is expected")},
        {"\nlimits: [{name: a, breaker: none}]",
         AT("2", "limits.a: it limits nothing; concurrency, rate or breaker is expected")},
        {"limits: [{name: a, breaker: {pause: 2s, max_pause: 1s}}]",
         AT("1", "limits.a: breaker: pause is more than max_pause")},
        {"limits: [{name: a, pause: 2s, max_pause: 1s}]",
         AT("1", "limits.a: pause is more than max_pause")},
        {"retention: {queues: [a]}",
         AT("1", "retention.queues: a list; a mapping of queues is expected")},
        {"retention: {queues: {a: 7d}}", AT("1", "retention.queues: text; a mapping is expected")},
        {"retention:\n  queues:\n    a: {dune: 7d}\n",
         AT("3", "unknown key \"retention.queues.a.dune\"; did you mean \"done\"?")},
        {"retention: {queues: {a: {done: 1s}}}",
         AT("1", "retention.queues.a.done: 1s is out of bounds; allowed 1m to 3650d")},
        {"retention: {max_done: -1}",
         AT("1", "retention.max_done: -1 is out of bounds; allowed 0 to 1000000000000")},
        {"kinds: {a: {handler: exce, command: [x]}}",
         AT("1", "kinds.a.handler: no handler \"exce\"; did you mean \"exec\"?")},
        {"kinds: {a: {handler: noop, command: [x]}}",
         AT("1", "kinds.a: command has no effect with handler noop")},
        {"kinds:\n  a: {handler: http}", AT("2", "kinds.a: url is missing")},
        {"kinds:\n  a: {handler: http, secret: x}", AT("2", "kinds.a: url is missing")},
        {"kinds: {a: {command: [x], url: \"http://a\"}}",
         AT("1", "kinds.a: url has no effect with handler exec")},
        {"kinds: {a: {handler: fetch, secret: x}}",
         AT("1", "kinds.a: secret has no effect with handler fetch")},
        {"kinds: {a: {handler: http, url: \"http://a\", command: [x]}}",
         AT("1", "kinds.a: command has no effect with handler http")},
        {"kinds: {a: {handler: http, url: \"ftp://a\"}}",
         AT("1", "kinds.a.url: a URL with http:// or https:// in front is expected")},
        {"kinds: {a: {handler: http, url: \"http://a\", secret: \"\"}}",
         AT("1", "kinds.a.secret: 1 to 4096 bytes are expected")},
        {"kinds: {fetch: {handler: fetch}}",
         AT("1", "kinds.fetch: a built-in kind cannot be defined again")},
        {"kinds: {a: {command: [x], timeout: 1ms}}",
         AT("1", "kinds.a.timeout: 1ms is out of bounds; allowed 10ms to 30d")},
        {"kinds: {a: {command: [x], max_attempts: 0}}",
         AT("1", "kinds.a.max_attempts: 0 is out of bounds; allowed 1 to 1000000")},
        {"kinds: {a: {command: [x], fatal_exit: [0]}}",
         AT("1", "kinds.a.fatal_exit: 0 is out of bounds; allowed 1 to 255")},
        {"kinds: {a: {command: [x], fatal_exit: [256]}}",
         AT("1", "kinds.a.fatal_exit: 256 is out of bounds; allowed 1 to 255")},
        {"kinds: {a: {command: [x], transient_exit: [9], fatal_exit: [9]}}",
         AT("1", "kinds.a.fatal_exit: 9 is both in transient_exit and fatal_exit")},
        {"kinds: {a: {command: [x], transient_exit: [9, 9]}}",
         AT("1", "kinds.a.transient_exit: 9 twice")},
        {"kinds: {a: {command: [x], transient_log: [\"\"]}}",
         AT("1", "kinds.a.transient_log: an empty text would match every log")},
        {"kinds: {a: {command: [x], env: [A]}}",
         AT("1", "kinds.a.env: a list; a mapping is expected")},
        {"kinds: {a: {command: [x], env: {A-B: c}}}",
         AT("1", "kinds.a.env: \"A-B\" is not the name of a variable")},
        {"kinds: {a: {command: [x], env: {PAWL_KEY: c}}}",
         AT("1", "kinds.a.env: PAWL_KEY is set by pawl for each job")},
        {"kinds: {a: {command: [x], cwd: \"\"}}", AT("1", "kinds.a.cwd: the text is empty")},
        /* I14: what is quoted from the file cannot steer a terminal */
        {"\"st\\e[31m\": 1", AT("1", "unknown key \"st\\x1b[31m\"")},
        {"durability: \"\\e]0;x\\a\"",
         AT("1", "durability: \"\\x1b]0;x\\x07\" is not allowed; allowed full|relaxed")},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        int rc = load(rows[i].yaml, NULL, NULL, 0, &c, &err);
        assert_true_msg(rc == PAWL_ECONFIG && err.code == rc && !c, "accepted: %s (%d %s)",
                        rows[i].yaml, rc, err.msg);
        assert_string_equal(err.msg, rows[i].msg);
    }
}

static void names_the_line_of_bad_syntax(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *start;
    } rows[] = {
        {"store: a\nworker: {slots: 1\nretry: {}\n", "pawl.yaml:3: not valid YAML: "},
        {"a: b: c", "pawl.yaml:1: not valid YAML: "},
        {"store: a\n\tworker: x\n", "pawl.yaml:2: not valid YAML: "},
        {"store: \"a", "pawl.yaml:1: not valid YAML: "},
        {"store: a\nkinds: \xff\n", "pawl.yaml:2: not valid YAML: "},
        {"store: a\x01", "pawl.yaml:1: not valid YAML: "},
        {"worker: {pools: {*: 2}}", "pawl.yaml:1: not valid YAML: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        assert_code(load(rows[i].yaml, NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
        assert_true_msg(sv_starts(sv_of(err.msg), sv_of(rows[i].start)), "%s", err.msg);
        if (strchr(rows[i].yaml, '*'))
            assert_string_equal(err.hint, "write \"*\" in quotes");
    }
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

static void reads_secrets(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    struct pawl_err err = {0};
    write_file("secrets/token", "s3cret\n", 0600);
    write_file("secrets/lease", "45s", 0600);
    write_file("secrets/two", "a\nb\n\n", 0600);
    static const char yaml[] =
        "secrets_dir: secrets\n"
        "store: sqlite:${file:token}-${file:token}.db\n"
        "worker: {lease: \"${file:lease}\"}\n"
        "kinds:\n"
        "  a:\n"
        "    command: [run, \"--token=${file:token}\", x]\n"
        "    env: {TOKEN: \"${file:token}\", TWO: \"${file:two}\", P: \"${x}\",\n"
        "      DB_PASSWORD: inline}\n";
    assert_true_msg(load(yaml, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    assert_string_equal(c->store, "sqlite:s3cret-s3cret.db");
    assert_int_equal(c->worker_lease.us, 45000000);
    const struct kind_conf *k = config_kind(c, SV("a"));
    assert_string_equal(k->command.v[1], "--token=s3cret");
    assert_string_equal(k->env.v[0], "TOKEN=s3cret");
    assert_string_equal(k->env.v[1], "TWO=a\nb\n");
    assert_string_equal(k->env.v[2], "P=${x}");
    assert_string_equal(k->env.v[3], "DB_PASSWORD=inline");
    assert_shown(c, "store", "***", "pawl.yaml:2");
    assert_shown(c, "worker.lease", "***", "pawl.yaml:3");
    assert_shown(c, "kinds.a.command", "[\"run\",\"***\",\"x\"]", "pawl.yaml:6");
    assert_shown(c, "kinds.a.env",
                 "{\"TOKEN\":\"***\",\"TWO\":\"***\",\"P\":\"${x}\",\"DB_PASSWORD\":\"***\"}",
                 "pawl.yaml:7");
    static const char *const flags[] = {"store=sqlite:flag.db"};
    config_free(TAKE_PTR(c));
    assert_code(load(yaml, NULL, flags, 1, &c, NULL), 0);
    assert_shown(c, "store", "sqlite:flag.db", "--store");
}

static void refuses_bad_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *msg;
    } rows[] = {
        {"\nstore: ${file:absent}", AT("2", "store: ${file:absent}: cannot open secrets/absent: No "
                                            "such file or directory")},
        {"store: ${file:../token}",
         AT("1", "store: ${file:../token}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:.hidden}",
         AT("1", "store: ${file:.hidden}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:}", AT("1", "store: ${file:}: a secret's name has only A-Z a-z 0-9 . _ -")},
        {"store: ${file:token", AT("1", "store: ${file: without }")},
        {"worker: {lease: \"${file:token}\"}",
         AT("1", "worker.lease: the secret's content is not allowed here")},
        {"kinds: {a: {command: [x], timeout: \"${file:token}\"}}",
         AT("1", "kinds.a.timeout: the secret's content is not allowed here")},
        {"secrets_dir: ${file:token}",
         AT("1", "secrets_dir: ${file:NAME} cannot name its own folder")},
    };
    static const char *const env[] = {"PAWL_SECRETS_DIR=secrets", NULL};
    write_file("secrets/token", "s3cret\n", 0600);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = NULL;
        struct pawl_err err = {0};
        assert_code(load(rows[i].yaml, env, NULL, 0, &c, &err), PAWL_ECONFIG);
        assert_string_equal(err.msg, rows[i].msg);
        assert_null(strstr(err.msg, "s3cret"));
    }
}

/* S46: a secret written into a file that everybody can read. */
static void refuses_readable_secrets(void **state)
{
    (void)state;
    static const char yaml[] = "kinds:\n  a:\n    command: [x]\n    env: {API_TOKEN: abc}\n";
    struct config *c = NULL;
    struct pawl_err err = {0};
    write_file("other.yaml", yaml, 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
    assert_string_equal(err.msg, "other.yaml:4: kinds.a.env: API_TOKEN: a secret in a file that "
                                 "everybody can read");
    assert_string_equal(err.hint, "chmod o-r other.yaml, or write ${file:NAME}");
    write_file("other.yaml", yaml, 0640);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), 0);
    config_free(c);
    write_file("other.yaml", "kinds: {a: {handler: http, url: \"http://a\", secret: abc}}\n", 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), PAWL_ECONFIG);
    assert_string_equal(err.msg, "other.yaml:1: kinds.a.secret: a secret in a file that everybody "
                                 "can read");
    write_file("other.yaml", "kinds: {a: {command: [x], env: {MODE: abc, TOKENS: x}}}\n", 0644);
    assert_code(config_load("other.yaml", NULL, NULL, 0, &c, &err), 0);
    config_free(c);
}

static void masks_passwords_in_urls(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    static const char *const flags[] = {"store=postgresql://me:pa:s@s@host:5432/db"};
    assert_code(load(NULL, NULL, flags, 1, &c, NULL), 0);
    assert_shown(c, "store", "postgresql://me:***@host:5432/db", "--store");
    config_free(TAKE_PTR(c));
    static const char *const plain[] = {"store=postgresql://host:5432/db"};
    assert_code(load(NULL, NULL, plain, 1, &c, NULL), 0);
    assert_shown(c, "store", "postgresql://host:5432/db", "--store");
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
    struct pawl_err err = {0};
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
    assert_true_msg(load(start + 8, NULL, NULL, 0, &c, &err) == 0, "%s", err.msg);
    assert_int_equal(c->n_kinds, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(reads_kinds),
        cmocka_unit_test(reads_web_hooks),
        cmocka_unit_test(reads_limits),
        cmocka_unit_test(reads_retention_and_preflight),
        cmocka_unit_test(stronger_places_win),
        cmocka_unit_test(chooses_the_file),
        cmocka_unit_test(refuses_bad_files),
        cmocka_unit_test(names_the_line_of_bad_syntax),
        cmocka_unit_test(accepts_empty_files),
        cmocka_unit_test(refuses_bad_environment_and_flags),
        cmocka_unit_test(defaults_give_way),
        cmocka_unit_test(reads_secrets),
        cmocka_unit_test(refuses_bad_secrets),
        cmocka_unit_test(refuses_readable_secrets),
        cmocka_unit_test(masks_passwords_in_urls),
        cmocka_unit_test(documents_everything),
    };
    return cmocka_run_group_tests_name("config", tests, enter_folder, leave_folder);
}
