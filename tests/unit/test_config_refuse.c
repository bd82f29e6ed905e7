/* config: files that are refused, whatever section they are about; each with its line and a way
 * out. */
#include "config_lab.h"

static void refuses_unknown_keys(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"wrker: {slots: 8}",
         AT("1", "unknown key \"wrker.slots\"; did you mean \"worker.slots\"?")},
        {"\nworker:\n  slts: 8\n",
         AT("3", "unknown key \"worker.slts\"; did you mean \"worker.slots\"?")},
        {"sotre: x", AT("1", "unknown key \"sotre\"; did you mean \"store\"?")},
        {"zzzzzzzzzz: 1", AT("1", "unknown key \"zzzzzzzzzz\"")},
        {"<<: {store: x}", AT("1", "unknown key \"<<.store\"; did you mean \"store\"?")},
        {"lake: {compres: {level: 3}}",
         AT("1", "unknown key \"lake.compres.level\"; did you mean \"lake.compress.level\"?")},
        {"store: a\nstore: b", AT("2", "key \"store\" twice; first on line 1")},
        {"worker: {slots: 1, slots: 1}", AT("1", "key \"slots\" twice; first on line 1")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_other_types(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_what_is_out_of_bounds(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_what_does_not_fit_together(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"worker: {lease: 30s,\n  heartbeat: 11s}",
         AT("2",
            "worker.heartbeat: 11s is more than a third of worker.lease; allowed at most 10s")},
        {"retry: {base: 10s, max: 5s}",
         AT("1", "retry.base: 10s is more than retry.max; allowed at most 5s")},
        {"retry: {base: 10m}",
         AT("1", "retry.base: 10m is more than retry.max; allowed at most 5m")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

/* Only mappings, lists and text. */
static void refuses_more_than_plain_yaml(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_lists(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"lake: {compress: {types: text/html}}",
         AT("1", "lake.compress.types: text; a list of content types is expected")},
        {"lake: {compress: {types: [a, b]}}",
         AT("1", "lake.compress.types: \"a\" is no content type; such as text/html or text/*")},
        {"lake: {compress: {types: [text/]}}",
         AT("1", "lake.compress.types: \"text/\" is no content type; such as text/html or text/*")},
        {"lake: {compress: {types: [[a/b]]}}",
         AT("1", "lake.compress.types: a list; a content type is expected")},
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

/* I14 */
static void quotes_nothing_that_steers_a_terminal(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"\"st\\e[31m\": 1", AT("1", "unknown key \"st\\x1b[31m\"")},
        {"durability: \"\\e]0;x\\a\"",
         AT("1", "durability: \"\\x1b]0;x\\x07\" is not allowed; allowed full|relaxed")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_unknown_keys),
        cmocka_unit_test(refuses_other_types),
        cmocka_unit_test(refuses_what_is_out_of_bounds),
        cmocka_unit_test(refuses_what_does_not_fit_together),
        cmocka_unit_test(refuses_more_than_plain_yaml),
        cmocka_unit_test(refuses_bad_lists),
        cmocka_unit_test(quotes_nothing_that_steers_a_terminal),
        cmocka_unit_test(names_the_line_of_bad_syntax),
    };
    return cmocka_run_group_tests_name("config-refuse", tests, enter_folder, leave_folder);
}
