/* base: log lines. One line an event, whatever is in its fields. S51 */
#include "unit.h"

#include "fd.h"
#include "json.h"
#include "log.h"
#include <fcntl.h>
#include <sys/mman.h>

/* The lines that `log` writes into a memory file. */
static struct logger start(bool json)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return (struct logger){.fd = fd, .level = LOG_INFO, .json = json};
}

static void finish(struct logger *log, struct str *out)
{
    lseek(log->fd, 0, SEEK_SET);
    assert_code(fd_read_all(log->fd, "log", out, NULL), 0);
    close(log->fd);
}

static size_t count(const struct str *s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++)
        n += s->p[i] == c;
    return n;
}

static void writes_text(void **state)
{
    (void)state;
    AUTO_STR struct str out = STR_INIT(STR_OUTPUT);
    struct logger log = start(false);
    LOG(&log, LOG_INFO, "job_done", LOG_I("job", 7), LOG_S("queue", SV("wiki")),
        LOG_S("key", SV_NONE), LOG_S("error", SV("a \"b\"\nc\033[1m\\")), LOG_S("empty", SV("")));
    LOG(&log, LOG_DEBUG, "hidden", LOG_I("job", 8));
    finish(&log, &out);
    assert_int_equal(out.p[10], 'T');
    assert_int_equal(out.p[23], 'Z');
    assert_string_equal(out.p + 24, " info  job_done job=7 queue=wiki "
                                    "error=\"a \\\"b\\\"\\nc\\x1b[1m\\\\\" empty=\"\"\n");
}

static void writes_json(void **state)
{
    (void)state;
    AUTO_STR struct str out = STR_INIT(STR_OUTPUT);
    AUTO_JSON struct json doc = {0};
    struct arena a;
    arena_init(&a);
    struct logger log = start(true);
    LOG(&log, LOG_ERROR, "job_failed", LOG_I("job", -7), LOG_S("key", SV_NONE),
        LOG_S("error", SV("x\n\xff\"")));
    finish(&log, &out);
    assert_int_equal(count(&out, '\n'), 1);
    assert_code(json_parse(&doc, str_sv(&out), NULL), 0);
    assert_sv(json_string(&doc, json_member(&doc, 0, SV("level")), &a), "error");
    assert_sv(json_string(&doc, json_member(&doc, 0, SV("event")), &a), "job_failed");
    assert_sv(json_source(&doc, json_member(&doc, 0, SV("job"))), "-7");
    assert_int_equal(json_member(&doc, 0, SV("key")), 0);
    assert_sv(json_string(&doc, json_member(&doc, 0, SV("error")), &a), "x\n\xef\xbf\xbd\"");
    arena_done(&a);
}

/* A value too long for a line is cut; the line stays whole and valid. */
static void cuts_long_values(void **state)
{
    (void)state;
    AUTO_FREE char *big = mem_alloc(200000);
    memset(big, '\001', 200000);
    for (int json = 0; json < 2; json++) {
        AUTO_STR struct str out = STR_INIT(STR_OUTPUT);
        AUTO_JSON struct json doc = {0};
        struct logger log = start(json);
        LOG(&log, LOG_WARN, "big", LOG_S("value", sv_make(big, 200000)), LOG_I("after", 1));
        LOG(&log, LOG_WARN, "next", LOG_I("n", 2));
        finish(&log, &out);
        assert_int_equal(count(&out, '\n'), 2);
        struct sv rest, first = sv_cut(str_sv(&out), '\n', &rest);
        assert_true(first.n < STR_LINE);
        assert_non_null(strstr(rest.p, "next"));
        if (json)
            assert_code(json_parse(&doc, first, NULL), 0);
        else
            assert_true(sv_eq(sv_make(first.p + first.n - 8, 8), SV(" after=1")));
    }
}

static void around(void *arg, bool before)
{
    struct str *calls = arg;
    str_addc(calls, before ? '(' : ')');
}

static void lets_a_progress_bar_step_aside(void **state)
{
    (void)state;
    AUTO_STR struct str calls = STR_INIT(16);
    AUTO_STR struct str out = STR_INIT(STR_OUTPUT);
    struct logger log = start(false);
    log.around = around;
    log.around_arg = &calls;
    LOG(&log, LOG_INFO, "one", LOG_I("n", 1));
    LOG(&log, LOG_DEBUG, "two", LOG_I("n", 2));
    finish(&log, &out);
    assert_str(&calls, "()");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_text),
        cmocka_unit_test(writes_json),
        cmocka_unit_test(cuts_long_values),
        cmocka_unit_test(lets_a_progress_bar_step_aside),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
