/* fetch: robots.txt of the origins it goes to, asked for once and obeyed. */
#include "rig.h"

#include <signal.h>

#define RULES(text) page_body("/robots.txt", "200 OK", "Content-Type: text/plain\r\n", SV(text))
#define NONE        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

static int begin(void **state)
{
    (void)state;
    rig_begin(NULL, 0);
    page_body("/a", "200 OK", "", SV("a"));
    page_body("/b", "200 OK", "", SV("b"));
    return 0;
}

/* A worker that starts anew: memory is gone, the store is not. */
static void restart(void)
{
    rig.handler->ops->free(rig.handler);
    rig_again();
    rig.handler = handler_fetch_new(rig.loop, rig.config);
}

static void rules_are_obeyed(void **state)
{
    (void)state;
    RULES("User-agent: *\nDisallow: /b\n");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
    const struct ended *e = get("/b", NULL);
    check(e, RUN_SKIPPED, CLASS_NONE, "robots.txt of 127.0.0.1 disallows it");
    assert_null(e->r.fetch); /* nothing was asked for */
    check(get("/x/../b", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
    assert_int_equal(hits("/b"), 0);
    assert_int_equal(hits("/robots.txt"), 1);
    assert_int_equal(rig.recalls, 1);
    assert_int_equal(rig.remembers, 1);
    assert_non_null(strstr(rig.remembered, " 86400s "));
    assert_int_equal(strncmp(rig.remembered, "robots:http://127.0.0.1:", 24), 0);
    /* unless told otherwise */
    check(get("/b", ",\"robots\":false"), RUN_DONE, CLASS_NONE, "");
}

static void begin_as(const char *agent)
{
    char flag[128];
    const char *flags[] = {flag, "fetch.contact=me@example.org"};
    snprintf(flag, sizeof(flag), "fetch.user_agent=%s", agent);
    rig_end();
    rig_begin(flags, 2);
    page_body("/a", "200 OK", "", SV("a"));
    page_body("/b", "200 OK", "", SV("b"));
    RULES("User-agent: *\nDisallow: /\n\nUser-agent: pawl\nDisallow: /a\n\n"
          "User-agent: MyBot\nDisallow: /b\n");
}

/* Another name has rules of its own, and tells its contact like pawl's. */
static void the_robot_has_the_agents_name(void **state)
{
    (void)state;
    begin_as("mybot/1.0");
    for (int again = 0; again < 2; again++) {
        check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
        check(get("/b", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
        assert_non_null(strstr(asked("/a"), "User-Agent: mybot/1.0 (+me@example.org)\r\n"));
        restart();
    }
    assert_int_equal(hits("/robots.txt"), 0); /* since the store remembers */
    rig.config->fetch_user_agent[0] = '\0';   /* but not for another robot */
    restart();
    check(get("/b", NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(hits("/robots.txt"), 1);
    begin_as("mybot (see me@example.org)");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
    assert_non_null(strstr(asked("/a"), "User-Agent: mybot (see me@example.org)\r\n"));
    begin_as("2bots");
    check(get("/a", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
}

static void rules_are_remembered(void **state)
{
    (void)state;
    RULES("User-agent: *\nDisallow: /b\nCrawl-delay: 2\n");
    get("/a", NULL);
    assert_string_equal(rig.paced, "127.0.0.1=2000ms ");
    restart();
    check(get("/b", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(hits("/robots.txt"), 0);
    assert_int_equal(rig.recalls, 1);
    assert_int_equal(rig.remembers, 0);
    assert_string_equal(rig.paced, "127.0.0.1=2000ms "); /* by this process too, once */
}

static void no_robots_means_all(void **state)
{
    (void)state;
    static const char *const answers[] = {
        NONE, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 410 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Go\r\nLocation: /robots.txt\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Go\r\nLocation: ftp://x.example/\r\nContent-Length: 0\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        page("/robots.txt", answers[i]);
        check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
        assert_true(hits("/robots.txt") == (i == 3 ? 6 : 1)); /* five redirects */
        rig_end();
        begin(NULL);
    }
    page("/robots.txt", NONE);
    get("/a", NULL);
    restart();
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, ""); /* that there is none is remembered as well */
    assert_int_equal(hits("/robots.txt"), 0);
}

static void trouble_is_transient(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        enum page_then then;
        bool throttled;
        int64_t retry_s;
        const char *words;
    } cases[] = {
        {"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, false, 60, "HTTP 500"},
        {"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, true, 60, "HTTP 503"},
        {"HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, true, 7,
         "HTTP 503"},
        {"HTTP/1.1 429 No\r\nRetry-After: 700\r\nContent-Length: 0\r\n\r\n", THEN_KEEP, true, 700,
         "HTTP 429"},
        {"", THEN_CLOSE, false, 60, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser", THEN_RESET, false, 60, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        page_then("/robots.txt", cases[i].answer, cases[i].then);
        const struct ended *e = get("/a", NULL);
        check(e, RUN_FAILED, CLASS_TRANSIENT, "robots.txt of 127.0.0.1 cannot be read: ");
        check(e, RUN_FAILED, CLASS_TRANSIENT, cases[i].words);
        assert_int_equal(e->r.throttled, cases[i].throttled);
        assert_int_equal(e->r.retry_after.us, cases[i].retry_s * 1000000);
        assert_null(e->r.fetch);
        /* the host is left alone, also by the next worker */
        int asked_for = hits("/robots.txt");
        check(get("/a", NULL), RUN_FAILED, CLASS_TRANSIENT, "cannot be read");
        assert_int_equal(hits("/robots.txt"), asked_for);
        restart();
        e = get("/a", NULL);
        check(e, RUN_FAILED, CLASS_TRANSIENT, cases[i].words);
        assert_int_equal(e->r.throttled, cases[i].throttled);
        assert_int_equal(hits("/robots.txt") + hits("/a"), 0);
        rig_end();
        begin(NULL);
    }
}

static void failures_are_remembered_shortly(void **state)
{
    (void)state;
    static const char *const flags[] = {"fetch.robots_ttl=1s"};
    rig_end();
    rig_begin(flags, 1);
    page_body("/a", "200 OK", "", SV("a"));
    page("/robots.txt", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    page_next("/robots.txt", NONE);
    check(get("/a", NULL), RUN_FAILED, CLASS_TRANSIENT, "HTTP 500");
    assert_non_null(strstr(rig.remembered, " 1s failed"));
}

static void what_is_remembered_may_be_nonsense(void **state)
{
    (void)state;
    static const char *const values[] = {"",
                                         "{}",
                                         "robots 2\nx",
                                         "failed 1 ",
                                         "failed 1 9 9\nx",
                                         "failed 1 0 0 0",
                                         "failed 1 0 0 x\ny"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char key[64];
        snprintf(key, sizeof(key), "robots:%s", at(""));
        RULES("User-agent: *\nDisallow: /b\n");
        rig_remember(key, values[i]);
        check(get("/b", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
        assert_int_equal(hits("/robots.txt"), 1);
        rig_end();
        begin(NULL);
    }
}

static void one_request_serves_all(void **state)
{
    (void)state;
    enum { N = 100 };
    static struct ended ended[N];
    static char payload[2][128];
    struct job_given jobs[N];
    RULES("User-agent: *\nDisallow: /b\nCrawl-delay: 0.05\n");
    snprintf(payload[0], sizeof(payload[0]), "{\"url\":\"%s\"}", at("/a"));
    snprintf(payload[1], sizeof(payload[1]), "{\"url\":\"%s\"}", at("/b"));
    for (int i = 0; i < N; i++)
        jobs[i] = (struct job_given){.payload = payload[i % 2]};
    rig_run(jobs, N, ended);
    for (int i = 0; i < N; i++)
        check(&ended[i], i % 2 ? RUN_SKIPPED : RUN_DONE, CLASS_NONE, "");
    assert_int_equal(hits("/robots.txt"), 1);
    assert_int_equal(rig.recalls, 1);
    assert_string_equal(rig.paced, "127.0.0.1=50ms ");
    assert_int_equal(hits("/a"), N / 2);
}

static void delays_are_capped(void **state)
{
    (void)state;
    static const char *const flags[] = {"fetch.max_crawl_delay=5s"};
    rig_end();
    rig_begin(flags, 1);
    page_body("/a", "200 OK", "", SV("a"));
    RULES("User-agent: *\nCrawl-delay: 86400\n");
    get("/a", NULL);
    assert_string_equal(rig.paced, "127.0.0.1=5000ms ");
}

/* N runs of one page, with that much time for each. */
static void run_many(struct ended *ended, size_t n, struct dur timeout)
{
    char payload[128];
    struct job_given jobs[16];
    assert_true(n <= ARRAY_LEN(jobs));
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/a"));
    for (size_t i = 0; i < n; i++)
        jobs[i] = (struct job_given){.payload = payload, .timeout = timeout};
    rig_run(jobs, n, ended);
}

static void first_come_first_served(void **state)
{
    (void)state;
    enum { N = 8 };
    static struct ended ended[N];
    RULES("User-agent: *\nCrawl-delay: 0.03\n");
    for (int again = 0; again < 2; again++) { /* before the rules are known, and after */
        run_many(ended, N, DUR_NONE);
        for (int i = 0; i < N; i++) {
            check(&ended[i], RUN_DONE, CLASS_NONE, "");
            assert_int_equal(ended[i].order, i);
        }
    }
}

/* Nobody fails for waiting: who would stand long goes back until its turn. */
static void waiting_for_ones_turn_costs_nothing(void **state)
{
    (void)state;
    enum { N = 8 };
    static struct ended ended[N];
    RULES("User-agent: *\nCrawl-delay: 2\n");
    run_many(ended, N, DUR_S(5));
    check(&ended[0], RUN_DONE, CLASS_NONE, "");
    for (int i = 1; i < N; i++) {
        int64_t after = ended[i].r.retry_after.us, before = ended[i - 1].r.retry_after.us;
        check(&ended[i], RUN_RELEASED, CLASS_NONE, "Crawl-delay of 127.0.0.1");
        assert_false(ended[i].r.throttled || ended[i].r.timed_out || ended[i].r.fetch);
        assert_true(i > 1 ? after == before + 2000000 : after > 1500000 && after <= 2000000);
    }
    assert_int_equal(hits("/a"), 1);
}

/* Who leaves the line takes no turn with him. */
static void turns_of_the_cancelled_are_not_lost(void **state)
{
    (void)state;
    static struct ended ended[3];
    RULES("User-agent: *\nCrawl-delay: 2\n");
    rig.cancel_at = 2; /* recalled, and robots.txt was asked for: just before its answer */
    run_many(ended, 1, DUR_NONE);
    check(&ended[0], RUN_CANCELLED, CLASS_NONE, "");
    rig.cancel_at = rig.events + 3; /* the first has its page */
    rig_cancel_only(1);
    int64_t start = clock_boot().us;
    run_many(ended, 3, DUR_NONE);
    rig_cancel_only(-1);
    check(&ended[0], RUN_DONE, CLASS_NONE, "");
    check(&ended[1], RUN_CANCELLED, CLASS_NONE, "");
    check(&ended[2], RUN_DONE, CLASS_NONE, "");
    assert_true(clock_boot().us - start < 3500000); /* two turns would be four seconds */
}

static void redirects_obey_where_they_lead(void **state)
{
    (void)state;
    page("/away", "HTTP/1.1 302 Go\r\nLocation: http://%O/b\r\nContent-Length: 0\r\n\r\n");
    page("/robots.txt", NONE);
    page_next("/robots.txt",
              "HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\nUser-agent: *\nDisallow: /b");
    const struct ended *e = get("/away", NULL);
    check(e, RUN_SKIPPED, CLASS_NONE, "robots.txt of 127.0.0.2 disallows it");
    assert_string_equal(rig.admitted, "127.0.0.2 ");
    assert_int_equal(hits("/b"), 0);
    assert_non_null(e->r.fetch);
    assert_int_equal(e->f.status, 302);
}

/* robots.txt itself lives elsewhere. */
static void robots_may_be_redirected(void **state)
{
    (void)state;
    page("/robots.txt",
         "HTTP/1.1 301 Go\r\nLocation: http://%O/rules\r\nContent-Length: 0\r\n\r\n");
    page_body("/rules", "200 OK", "", SV("User-agent: pawl\nDisallow: /b"));
    rig.admissions[0] = (struct admission){
        .outcome = ADMIT_SHUT, .wait = DUR_MS(20), .gate = SV("every-host=127.0.0.2")};
    rig.n_admissions = 1;
    check(get("/b", NULL), RUN_SKIPPED, CLASS_NONE, "robots.txt of 127.0.0.1 disallows it");
    assert_string_equal(rig.admitted, "127.0.0.2 127.0.0.2 ");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
    assert_int_equal(hits("/rules"), 1);
}

static void a_shut_gate_of_robots_is_named(void **state)
{
    (void)state;
    struct ended e;
    char payload[128];
    page("/robots.txt",
         "HTTP/1.1 301 Go\r\nLocation: http://%O/rules\r\nContent-Length: 0\r\n\r\n");
    for (rig.n_admissions = 0; rig.n_admissions < 8; rig.n_admissions++)
        rig.admissions[rig.n_admissions] = (struct admission){
            .outcome = ADMIT_SHUT, .wait = DUR_S(9), .gate = SV("every-host=127.0.0.2")};
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/a"));
    struct job_given j = {.payload = payload, .timeout = DUR_MS(150)};
    rig_run(&j, 1, &e);
    check(&e, RUN_FAILED, CLASS_TRANSIENT, "every-host=127.0.0.2 is shut");
}

/* One of those who wait has lost its job: the next asks in its place. */
static void a_stale_one_does_not_stop_the_others(void **state)
{
    (void)state;
    static struct ended ended[3];
    char payload[128];
    page("/robots.txt",
         "HTTP/1.1 301 Go\r\nLocation: http://%O/rules\r\nContent-Length: 0\r\n\r\n");
    page_body("/rules", "200 OK", "", SV(""));
    rig.admissions[0] = (struct admission){.outcome = ADMIT_STALE};
    rig.n_admissions = 1;
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/a"));
    struct job_given jobs[3] = {{payload}, {payload}, {payload}};
    rig_run(jobs, 3, ended);
    int released = 0, done = 0;
    for (int i = 0; i < 3; i++) {
        released += ended[i].r.end == RUN_RELEASED;
        done += ended[i].r.end == RUN_DONE;
    }
    assert_int_equal(released, 1);
    assert_int_equal(done, 2);
    /* and if all have */
    restart();
    rig_forget();
    for (rig.n_admissions = 0; rig.n_admissions < 8; rig.n_admissions++)
        rig.admissions[rig.n_admissions] = (struct admission){.outcome = ADMIT_STALE};
    rig_run(jobs, 3, ended);
    for (int i = 0; i < 3; i++)
        check(&ended[i], RUN_RELEASED, CLASS_NONE, "no longer held");
    assert_int_equal(hits("/rules") + hits("/a"), 0);
}

static void long_ones_are_read_as_far_as_they_are(void **state)
{
    (void)state;
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    str_adds(&s, "User-agent: *\nDisallow: /b\n");
    while (s.len < 2 << 20)
        str_adds(&s, "# nothing to see here\n");
    page_body("/robots.txt", "200 OK", "", str_sv(&s));
    check(get("/b", NULL), RUN_SKIPPED, CLASS_NONE, "disallows");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, "");
}

static void waiting_has_an_end(void **state)
{
    (void)state;
    struct ended e;
    char payload[128];
    page_then("/robots.txt", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nUser", THEN_HOLD);
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"}", at("/a"));
    struct job_given j = {.payload = payload, .timeout = DUR_MS(100)};
    rig_run(&j, 1, &e);
    check(&e, RUN_FAILED, CLASS_TRANSIENT, "robots.txt of 127.0.0.1 did not come in time");
    assert_true(e.r.timed_out);
    RULES("");
    check(get("/a", NULL), RUN_DONE, CLASS_NONE, ""); /* and it is asked for again */
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(rules_are_obeyed),
        TEST(the_robot_has_the_agents_name),
        TEST(rules_are_remembered),
        TEST(no_robots_means_all),
        TEST(trouble_is_transient),
        TEST(failures_are_remembered_shortly),
        TEST(what_is_remembered_may_be_nonsense),
        TEST(one_request_serves_all),
        TEST(delays_are_capped),
        TEST(first_come_first_served),
        TEST(waiting_for_ones_turn_costs_nothing),
        TEST(turns_of_the_cancelled_are_not_lost),
        TEST(redirects_obey_where_they_lead),
        TEST(robots_may_be_redirected),
        TEST(a_shut_gate_of_robots_is_named),
        TEST(a_stale_one_does_not_stop_the_others),
        TEST(long_ones_are_read_as_far_as_they_are),
        TEST(waiting_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
