/* fetch: cancelled after the n-th event, for every n. Nothing leaks, nothing finishes twice or
 * while an answer is outstanding (the rig checks that), and what comes afterwards is whole. */
#include "rig.h"

#include <signal.h>

/* Passes every stage there is: robots.txt and its redirect to a shut host, conditions, a redirect
 * to another host with its own robots.txt, a body, keeping. */
static int begin(void **state)
{
    (void)state;
    rig_begin(NULL, 0);
    page("/robots.txt",
         "HTTP/1.1 301 Go\r\nLocation: http://%O/rules\r\nContent-Length: 0\r\n\r\n");
    page_body("/rules", "200 OK", "", SV("User-agent: *\nDisallow: /no\nCrawl-delay: 0.005\n"));
    page("/from", "HTTP/1.1 302 Go\r\nLocation: http://%O/to\r\nContent-Length: 0\r\n\r\n");
    page_body("/to", "200 OK", "ETag: \"x\"\r\n", SV("hello"));
    page_body("/plain", "200 OK", "", SV("plain"));
    return 0;
}

static void script(void)
{
    rig.admissions[0] = rig.admissions[2] = (struct admission){
        .outcome = ADMIT_SHUT, .wait = DUR_MS(10), .gate = SV("every-host=127.0.0.2")};
    rig.n_admissions = 3;
}

static void restart(void)
{
    rig.handler->ops->free(rig.handler);
    rig_again();
    rig_forget();
    rig.handler = handler_fetch_new(rig.loop, rig.config);
    script();
}

static int run_once(size_t n, int cancel_at, struct ended *out)
{
    static char payload[2][128];
    struct job_given jobs[8];
    snprintf(payload[0], sizeof(payload[0]), "{\"url\":\"%s\"}", at("/from"));
    snprintf(payload[1], sizeof(payload[1]), "{\"url\":\"%s\"}", at("/plain"));
    for (size_t i = 0; i < n; i++)
        jobs[i] = (struct job_given){.payload = payload[i % 2], .fence = 2};
    restart();
    rig.cancel_at = cancel_at;
    rig_run(jobs, n, out);
    return rig.events;
}

static void cancel_everywhere(size_t n)
{
    static struct ended ended[8];
    int events = run_once(n, 0, ended), cancelled = 0;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ended[i].r.end, RUN_DONE);
    assert_true(events > 8);
    for (int at_event = 1; at_event <= events; at_event++) {
        run_once(n, at_event, ended);
        for (size_t i = 0; i < n; i++) {
            bool good = ended[i].r.end == RUN_CANCELLED || ended[i].r.end == RUN_DONE;
            assert_true_msg(good, "cancelled at %d: %d %s", at_event, ended[i].r.end,
                            ended[i].reason);
            cancelled += ended[i].r.end == RUN_CANCELLED;
        }
        rig.cancel_at = 0; /* the same worker goes on */
        const struct ended *e = get("/plain", NULL);
        assert_true_msg(e->r.end == RUN_DONE, "after %d: %s", at_event, e->reason);
    }
    assert_true(cancelled >= events / 2);
}

static void one_run_is_cancelled_everywhere(void **state)
{
    (void)state;
    cancel_everywhere(1);
}

static void several_runs_are_cancelled_everywhere(void **state)
{
    (void)state;
    cancel_everywhere(5);
}

/* Only the one in whose name robots.txt is asked for: the others go on. */
static void one_of_many_is_cancelled_everywhere(void **state)
{
    (void)state;
    static struct ended ended[8];
    int events = run_once(4, 0, ended);
    for (int which = 0; which < 4; which++)
        for (int at_event = 1; at_event <= events; at_event++) {
            rig_cancel_only(which);
            run_once(4, at_event, ended);
            for (int i = 0; i < 4; i++)
                assert_true_msg(ended[i].r.end == RUN_DONE ||
                                    (i == which && ended[i].r.end == RUN_CANCELLED),
                                "%d cancelled at %d: %d ended %d %s", which, at_event, i,
                                ended[i].r.end, ended[i].reason);
        }
    rig_cancel_only(-1);
}

/* The handler goes while nothing runs, with what it knows and its open connections. */
static void freeing_leaves_nothing(void **state)
{
    (void)state;
    static struct ended ended[8];
    for (int i = 0; i < 3; i++)
        run_once(8, 0, ended);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_run_is_cancelled_everywhere),
        TEST(several_runs_are_cancelled_everywhere),
        TEST(one_of_many_is_cancelled_everywhere),
        TEST(freeing_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
