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
                 "pawl.yaml:15");
    assert_shown(c, "kinds.parse.transient_exit", "[75,111]", "pawl.yaml:21");
    assert_shown(c, "kinds.parse.timeout", "10m", "pawl.yaml:18");
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
        {"limits: []", AT("1", "limits: not supported by this version")},
        {"\nbreaker: {threshold: 5}", AT("2", "breaker: not supported by this version")},
        {"fetch: {robots: true}", AT("1", "fetch: not supported by this version")},
        {"lake: {path: lake}", AT("1", "lake: not supported by this version")},
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
        {"kinds:\n  a:\n    command: [x]\n    preflight: [x]\n",
         AT("4", "kinds.a.preflight: not supported by this version")},
        {"kinds: {a: {preflight_ttl: 60s}}",
         AT("1", "kinds.a.preflight_ttl: not supported by this version")},
        {"kinds: {a: {handler: exce, command: [x]}}",
         AT("1", "kinds.a.handler: no handler \"exce\"; did you mean \"exec\"?")},
        {"kinds: {a: {handler: noop, command: [x]}}",
         AT("1", "kinds.a: command has no effect with handler noop")},
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
    if (strcmp(v->key, "worker.pools") != 0 && strcmp(v->key, "exec.pass_env") != 0)
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
    assert_int_equal(c->n_kinds, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(reads_kinds),
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
