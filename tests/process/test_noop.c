/* The noop handler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop.h"
#include "noop.h"

struct bed {
    struct loop *loop;
    struct handler *handler;
    struct lease lease;
    struct run run;
    int ended;
    struct run_result result;
    struct str reason, json;
    struct sv child_queue, child_kind;
};

static void on_finish(struct run *r, const struct run_result *result)
{
    struct bed *b = (struct bed *)((char *)r - offsetof(struct bed, run));
    b->result = *result;
    str_clear(&b->reason);
    str_add(&b->reason, result->reason);
    str_clear(&b->json);
    str_add(&b->json, result->result);
    if (result->n_children) {
        b->child_queue = result->children[result->n_children - 1].queue;
        b->child_kind = result->children[result->n_children - 1].kind;
    }
    b->ended++;
    loop_stop(b->loop);
}

static int start(struct bed *b, const char *payload, int attempt)
{
    struct pawl_err err = {0};
    b->lease = (struct lease){.id = {1},
                              .queue = SV("q"),
                              .kind = SV("noop"),
                              .payload = sv_of(payload),
                              .attempt = attempt};
    b->run = (struct run){.job = &b->lease, .finish = on_finish};
    b->ended = 0;
    return b->handler->ops->start(b->handler, &b->run, &err);
}

static void run(struct bed *b, const char *payload, int attempt)
{
    struct pawl_err err = {0};
    assert_int_equal(start(b, payload, attempt), 0);
    while (!b->ended)
        assert_int_equal(loop_run(b->loop, &err), 0);
    assert_int_equal(b->ended, 1);
}

static void done_at_once(void **state)
{
    struct bed *b = *state;
    static const char *const payloads[] = {"null", "{}", " { } "};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(start(b, payloads[i], 1), 0);
        assert_int_equal(b->ended, 1);
        assert_int_equal(b->result.end, RUN_DONE);
    }
}

static void all_members(void **state)
{
    struct bed *b = *state;
    run(b, "{\"fail\":\"transient\",\"fail_times\":2,\"retry_after\":\"1s\",\"result\":[1]}", 2);
    assert_int_equal(b->result.end, RUN_FAILED);
    assert_int_equal(b->result.cls, CLASS_TRANSIENT);
    assert_int_equal(b->result.retry_after.us, 1000000);
    run(b, "{\"fail\":\"transient\",\"fail_times\":2,\"result\":[1]}", 3);
    assert_int_equal(b->result.end, RUN_DONE);
    assert_string_equal(str_cstr(&b->json), "[1]");
    run(b, "{\"throttled\":true}", 1);
    assert_true(b->result.cls == CLASS_TRANSIENT && b->result.throttled && !b->result.timed_out);
    run(b, "{\"fail\":\"transient\",\"timed_out\":true}", 1);
    assert_true(b->result.cls == CLASS_TRANSIENT && !b->result.throttled && b->result.timed_out);
    run(b, "{\"fail\":\"fatal\",\"reason\":\"no\",\"sleep\":\"5ms\"}", 1);
    assert_int_equal(b->result.cls, CLASS_FATAL);
    assert_string_equal(str_cstr(&b->reason), "no");
    run(b, "{\"skip\":true,\"reason\":\"seen\"}", 1);
    assert_int_equal(b->result.end, RUN_SKIPPED);
    run(b, "{\"children\":3}", 1);
    assert_int_equal(b->result.n_children, 3);
    assert_true(sv_eq(b->child_queue, SV("q")) && sv_eq(b->child_kind, SV("noop")));
}

static void cancelled_sleep(void **state)
{
    struct bed *b = *state;
    assert_int_equal(start(b, "{\"sleep\":\"1h\"}", 1), 0);
    assert_int_equal(b->ended, 0);
    b->handler->ops->cancel(b->handler, &b->run, CANCEL_ASKED);
    assert_int_equal(b->ended, 1);
    assert_int_equal(b->result.end, RUN_CANCELLED);
}

static void bad_payloads(void **state)
{
    struct bed *b = *state;
    static const char *const bad[] = {"[]",
                                      "1",
                                      "{\"slep\":\"1s\"}",
                                      "{\"sleep\":5}",
                                      "{\"fail\":\"badly\"}",
                                      "{\"children\":-1}",
                                      "{\"skip\":1}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pawl_err err = {0};
        assert_int_equal(b->handler->ops->validate(b->handler, SV("noop"), sv_of(bad[i]), &err),
                         PAWL_EINPUT);
        assert_int_equal(start(b, bad[i], 1), PAWL_EINPUT);
        assert_int_equal(b->ended, 0);
    }
}

int main(void)
{
    struct bed b = {.reason = STR_INIT(STR_LINE), .json = STR_INIT(STR_LINE)};
    struct pawl_err err = {0};
    if (loop_new(&b.loop, &err) < 0)
        return 1;
    b.handler = handler_noop_new(b.loop);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(done_at_once, &b),
        cmocka_unit_test_prestate(all_members, &b),
        cmocka_unit_test_prestate(cancelled_sleep, &b),
        cmocka_unit_test_prestate(bad_payloads, &b),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    b.handler->ops->free(b.handler);
    loop_free(b.loop);
    str_done(&b.reason);
    str_done(&b.json);
    return failed;
}
