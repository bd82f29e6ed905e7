/* config: limits, the breaker, the order of claims, retention. */
#include "config_lab.h"

static void reads_limits(void **state)
{
    (void)state;
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
    AUTO_CONFIG struct config *c = load_good(yaml);
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
}

/* What stands nowhere is left as the store has it; a policy that is given is applied. */
static void tells_whether_a_policy_is_given(void **state)
{
    (void)state;
    AUTO_CONFIG struct config *c = NULL;
    assert_code(load("limits: []\n", NULL, NULL, 0, &c, NULL), 0);
    assert_true(c->policy_given);
    config_free(TAKE_PTR(c));
    assert_code(load("breaker: {pause: 1h}\n", NULL, NULL, 0, &c, NULL), PAWL_ECONFIG);
    assert_code(load("breaker: {max_pause: 1s}\n", NULL, NULL, 0, &c, NULL), 0);
    assert_int_equal(c->breaker_pause.us, 1000000);
    assert_false(c->policy_given);
    config_free(TAKE_PTR(c));
    static const char *const env[] = {"PAWL_CLAIM_ORDER=fair", "PAWL_BREAKER_PERCENT=10", NULL};
    assert_code(load("", env, NULL, 0, &c, NULL), 0);
    assert_true(c->policy_given && c->breaker_percent == 10);
}

static void reads_retention(void **state)
{
    (void)state;
    static const char yaml[] =
        "retention:\n"
        "  queues: {a: {done: 7d, max_failed: 10}, b: {done: none, failed: 1h, max_done: 5}}\n"
        "  failed: 2d\n"
        "  max_done: 100\n";
    AUTO_CONFIG struct config *c = load_good(yaml);
    assert_int_equal(c->n_retention, 2);
    const struct retention_conf *a = &c->retention[0], *b = &c->retention[1];
    assert_string_equal(a->queue, "a");
    assert_true(a->done.us == DUR_S(7 * 86400).us && a->failed.us == DUR_S(2 * 86400).us);
    assert_true(a->max_done == 100 && a->max_failed == 10);
    assert_true(b->done.us < 0 && b->failed.us == DUR_S(3600).us && b->max_done == 5);
    assert_shown(c, "retention.queues.a.max_failed", "10", "pawl.yaml:2");
}

static void refuses_bad_order_and_breaker(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"claim_order: lifo", AT("1", "claim_order: \"lifo\" is not allowed; allowed fifo|fair")},
        {"breaker: {treshold: 5}",
         AT("1", "unknown key \"breaker.treshold\"; did you mean \"breaker.threshold\"?")},
        {"breaker: {percent: 101}",
         AT("1", "breaker.percent: 101 is out of bounds; allowed 0 to 100")},
        {"breaker: {pause: 2m, max_pause: 1m}",
         AT("1", "breaker.pause: 2m is more than breaker.max_pause; allowed at most 1m")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_limits(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
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
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

static void refuses_bad_retention(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"retention: {queues: [a]}",
         AT("1", "retention.queues: a list; a mapping of queues is expected")},
        {"retention: {queues: {a: 7d}}", AT("1", "retention.queues: text; a mapping is expected")},
        {"retention:\n  queues:\n    a: {dune: 7d}\n",
         AT("3", "unknown key \"retention.queues.a.dune\"; did you mean \"done\"?")},
        {"retention: {queues: {a: {done: 1s}}}",
         AT("1", "retention.queues.a.done: 1s is out of bounds; allowed 1m to 3650d")},
        {"retention: {max_done: -1}",
         AT("1", "retention.max_done: -1 is out of bounds; allowed 0 to 1000000000000")},
    };
    assert_refused(rows, ARRAY_LEN(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_limits),       cmocka_unit_test(tells_whether_a_policy_is_given),
        cmocka_unit_test(reads_retention),    cmocka_unit_test(refuses_bad_order_and_breaker),
        cmocka_unit_test(refuses_bad_limits), cmocka_unit_test(refuses_bad_retention),
    };
    return cmocka_run_group_tests_name("config-limits", tests, enter_folder, leave_folder);
}
