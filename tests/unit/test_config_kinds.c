/* config: kinds of jobs. */
#include "config_lab.h"

static const char all_kinds[] = "kinds:\n"
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

static void reads_kinds(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = load_good(all_kinds);
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
                 "pawl.yaml:3");
    assert_shown(c, "kinds.parse.transient_exit", "[75,111]", "pawl.yaml:9");
    assert_shown(c, "kinds.parse.timeout", "10m", "pawl.yaml:6");
}

static void reads_web_hooks(void **state)
{
    (void)state;
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
    AUTO_CONFIG struct config *c = load_good(yaml);
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

static void reads_preflight(void **state)
{
    (void)state;
    static const char yaml[] =
        "kinds:\n"
        "  p: {command: [x], preflight: [x, --version], preflight_ttl: 5s, throttled_exit: [22],\n"
        "      throttled_log: [\"429\"]}\n"
        "  u: {command: [x], preflight: {url: \"https://u.example/ok\"}, preflight_timeout: 1s}\n";
    AUTO_CONFIG struct config *c = load_good(yaml);
    const struct kind_conf *p = config_kind(c, SV("p")), *u = config_kind(c, SV("u"));
    assert_true(p->preflight.n == 2 && !p->preflight_url && p->preflight_ttl.us == 5000000);
    assert_true(p->preflight_timeout.us == 10000000 && p->throttled_exit.v[0] == 22);
    assert_string_equal(p->throttled_log.v[0], "429");
    assert_string_equal(u->preflight_url, "https://u.example/ok");
    assert_true(u->preflight.n == 0 && u->preflight_ttl.us == 60000000);
    assert_shown(c, "kinds.p.preflight", "[\"x\",\"--version\"]", "pawl.yaml:2");
    assert_shown(c, "kinds.u.preflight", "{\"url\":\"https://u.example/ok\"}", "pawl.yaml:4");
}

static void refuses_bad_kinds(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
        {"kinds: {fetch: {handler: fetch}}",
         AT("1", "kinds.fetch: a built-in kind cannot be defined again")},
        {"kinds: {a: {command: [x], timeout: 1ms}}",
         AT("1", "kinds.a.timeout: 1ms is out of bounds; allowed 10ms to 30d")},
        {"kinds: {a: {command: [x], max_attempts: 0}}",
         AT("1", "kinds.a.max_attempts: 0 is out of bounds; allowed 1 to 1000000")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_preflights(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_exits_and_logs(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"kinds: {a: {command: [x], throttled_exit: [9], fatal_exit: [9]}}",
         AT("1", "kinds.a.fatal_exit: 9 is both in throttled_exit and fatal_exit")},
        {"kinds: {a: {command: [x], fatal_exit: [9], throttled_exit: [9]}}",
         AT("1", "kinds.a.throttled_exit: 9 is both in throttled_exit and fatal_exit")},
        {"kinds: {a: {command: [x], throttled_log: [\"\"]}}",
         AT("1", "kinds.a.throttled_log: an empty text would match every log")},
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_environments(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"kinds: {a: {command: [x], env: [A]}}",
         AT("1", "kinds.a.env: a list; a mapping is expected")},
        {"kinds: {a: {command: [x], env: {A-B: c}}}",
         AT("1", "kinds.a.env: \"A-B\" is not the name of a variable")},
        {"kinds: {a: {command: [x], env: {PAWL_KEY: c}}}",
         AT("1", "kinds.a.env: PAWL_KEY is set by pawl for each job")},
        {"kinds: {a: {command: [x], cwd: \"\"}}", AT("1", "kinds.a.cwd: the text is empty")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_what_the_handler_does_not_take(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_kinds),
        cmocka_unit_test(reads_web_hooks),
        cmocka_unit_test(reads_preflight),
        cmocka_unit_test(refuses_bad_kinds),
        cmocka_unit_test(refuses_bad_preflights),
        cmocka_unit_test(refuses_bad_exits_and_logs),
        cmocka_unit_test(refuses_bad_environments),
        cmocka_unit_test(refuses_what_the_handler_does_not_take),
    };
    return cmocka_run_group_tests_name("config-kinds", tests, enter_folder, leave_folder);
}
