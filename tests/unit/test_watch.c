/* The live view without a terminal: keys, frames of any size, sparklines, progress. */
#include "unit.h"

#include "spark.h"
#include "watch.h"

enum { NOW_S = 1000000 };

static struct job_view running_job(int64_t id, const char *queue, const char *key, const char *at)
{
    return (struct job_view){.id = {id},
                             .queue = sv_of(queue),
                             .kind = SV("exec"),
                             .key = sv_of(key),
                             .state = JOB_RUNNING,
                             .attempt = 1,
                             .worker = SV("host:1"),
                             .claimed_at = {(int64_t)(NOW_S - 65) * 1000000},
                             .progress = sv_of(at)};
}

struct world {
    struct class_view classes[30];
    struct job_view running[3], failed[1];
    struct session_view sessions[1];
    struct status_view status;
    struct watch_data data;
    struct arena arena;
    char names[30][16];
};

static void world_init(struct world *w, size_t queues)
{
    *w = (struct world){0};
    arena_init(&w->arena);
    for (size_t i = 0; i < queues; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "queue-%02zu", i);
        w->classes[i] = (struct class_view){.queue = sv_of(w->names[i]), .kind = SV("exec")};
        w->classes[i].n[JOB_QUEUED] = (int64_t)i + 100;
    }
    w->classes[0].n[JOB_RUNNING] = 3;
    w->running[0] = running_job(7, "queue-00", "alpha", "42");
    w->running[1] = running_job(8, "queue-00", "be\033[2Jta", "{\"done\":1,\"total\":4}");
    w->running[2] = running_job(9, "queue-01", NULL, "\"halfway\"");
    w->failed[0] = (struct job_view){.id = {5},
                                     .queue = SV("queue-01"),
                                     .kind = SV("exec"),
                                     .error = SV("exit 3\nsecond \033]52;c;eA==\007line"),
                                     .finished_at = {(int64_t)(NOW_S - 10) * 1000000}};
    w->sessions[0] = (struct session_view){
        .name = SV("host:1"), .slots = 4, .alive = true, .started_at = {1}, .renewed_at = {1}};
    w->status = (struct status_view){.now = {(int64_t)NOW_S * 1000000},
                                     .classes = w->classes,
                                     .n_classes = queues,
                                     .running = w->running,
                                     .n_running = 3,
                                     .last_failed = w->failed,
                                     .n_last_failed = 1,
                                     .sessions = w->sessions,
                                     .n_sessions = 1};
    w->data = (struct watch_data){.status = &w->status,
                                  .attention = SV("! something\n"),
                                  .store = "pawl.db",
                                  .interval = DUR_S(1)};
    w->data.rows = status_rows(&w->status, &w->arena, &w->data.n_rows);
}

/* The whole frame as text, after checking that it keeps to its size and is harmless. */
static void composed(const struct world *w, const struct watch_ui *ui, int cols, int rows,
                     struct str *out)
{
    struct frame f;
    frame_init(&f, cols, rows, false);
    frame_compose(&f, &w->data, ui);
    assert_int_equal(f.n, rows);
    *out = STR_INIT(STR_OUTPUT);
    for (int i = 0; i < f.n; i++) {
        int width = 0;
        for (size_t k = 0; k < f.lines[i].len; k++) {
            unsigned char c = (unsigned char)f.lines[i].p[k];
            assert_true_msg(c >= ' ' && c != 127, "byte %d in line %d", c, i);
            width += (c & 0xc0) != 0x80;
        }
        assert_true_msg(width <= cols, "line %d is %d wide", i, width);
        str_add(out, str_sv(&f.lines[i]));
        str_addc(out, '\n');
    }
    frame_done(&f);
}

#define assert_has(s, text)                                                                        \
    assert_true_msg(strstr(str_cstr(s), text), "no %s in:\n%s", text, str_cstr(s))
#define assert_hasnt(s, text)                                                                      \
    assert_true_msg(!strstr(str_cstr(s), text), "%s in:\n%s", text, str_cstr(s))

static void test_frame_shows_everything(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    AUTO_STR struct str s = {0};
    world_init(&w, 3);
    composed(&w, &ui, 120, 40, &s);
    assert_has(&s, "pawl.db  every 1.0s");
    assert_has(&s, "303 queued, 3 running");
    assert_has(&s, "! something");
    assert_has(&s, ">  queue-00");
    assert_has(&s, "alpha");
    assert_has(&s, "1m5s  42%");
    assert_has(&s, "25%");
    assert_has(&s, "halfway");
    assert_has(&s, "be\\x1b[2Jta");
    assert_has(&s, "exit 3\\nsecond");
    assert_has(&s, "host:1  busy");
    assert_has(&s, "q quit");
    arena_done(&w.arena);
}

static void test_limits_in_the_frame(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    AUTO_STR struct str s = {0}, running = {0};
    struct gate_view gates[] = {
        {.limit = SV("pol\033ite"),
         .value = SV("h.example"),
         .room = {0, SHUT_BREAKER, ((int64_t)NOW_S + 60) * 1000000},
         .parked = 3},
        {.limit = SV("one"),
         .params = {.cap = 2},
         .used = 2,
         .room = {0, SHUT_FULL, 0},
         .parked = 1},
        {.limit = SV("idle"), .params = {.cap = 2}, .used = 2, .room = {0, SHUT_FULL, 0}},
    };
    world_init(&w, 2);
    w.data.gates = (struct gate_list){.v = gates, .n = 3, .gates = 3, .shut = 3};
    composed(&w, &ui, 120, 40, &s);
    assert_has(&s, "LIMITED BY");
    assert_has(&s, "pol\\x1bite=h.example  breaker     0     1m       3");
    assert_has(&s, "full      2/2      -       1");
    assert_hasnt(&s, "idle"); /* full, and nothing behind it */
    ui.filter = WATCH_RUNNING;
    composed(&w, &ui, 120, 40, &running);
    assert_hasnt(&running, "LIMITED BY");
    arena_done(&w.arena);
}

static void test_frame_fits_every_size(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    world_init(&w, 30);
    for (int rows = 1; rows < 45; rows++)
        for (int cols = 1; cols < 130; cols += 7) {
            AUTO_STR struct str s = {0};
            composed(&w, &ui, cols, rows, &s);
        }
    arena_done(&w.arena);
}

static void test_selected_queue_stays_visible(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    world_init(&w, 30);
    snprintf(ui.selected, sizeof(ui.selected), "queue-27");
    for (int rows = 12; rows < 45; rows++) {
        AUTO_STR struct str s = {0};
        composed(&w, &ui, 100, rows, &s);
        assert_has(&s, ">  queue-27");
    }
    arena_done(&w.arena);
}

static void test_filters(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 3);
    struct watch_ui ui = {.filter = WATCH_RUNNING};
    AUTO_STR struct str running = {0}, failed = {0}, text = {0};
    composed(&w, &ui, 120, 40, &running);
    assert_has(&running, "alpha");
    assert_hasnt(&running, "exit 3");
    ui.filter = WATCH_FAILED;
    composed(&w, &ui, 120, 40, &failed);
    assert_hasnt(&failed, "alpha");
    assert_has(&failed, "exit 3");
    ui = (struct watch_ui){.text = "alpha"};
    composed(&w, &ui, 120, 40, &text);
    assert_has(&text, "queue-00");
    assert_hasnt(&text, "queue-01");
    assert_has(&text, "/ text: alpha");
    arena_done(&w.arena);
}

static enum watch_act type(struct watch_ui *ui, const struct world *w, const char *bytes)
{
    enum watch_act act = WATCH_NOTHING;
    struct sv rest = sv_of(bytes);
    while (rest.n) {
        struct key key;
        size_t n = key_read(rest, &key);
        assert_in_range(n, 1, rest.n);
        act = watch_key(ui, &w->data, &key);
        rest = sv_make(rest.p + n, rest.n - n);
    }
    return act;
}

static void test_keys(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    world_init(&w, 3);
    assert_int_equal(type(&ui, &w, "q"), WATCH_QUIT);
    assert_int_equal(type(&ui, &w, "jp"), WATCH_PAUSE);
    assert_string_equal(ui.selected, "queue-01");
    type(&ui, &w, "\033[B\033OB\033[B");
    assert_string_equal(ui.selected, "queue-02");
    type(&ui, &w, "k\033[A\033[A");
    assert_string_equal(ui.selected, "queue-00");
    type(&ui, &w, "f");
    assert_int_equal(ui.filter, WATCH_RUNNING);
    type(&ui, &w, "ff?");
    assert_int_equal(ui.filter, WATCH_ALL);
    assert_true(ui.help);
    assert_int_equal(type(&ui, &w, "\033[15~\033[1;5Ax"), WATCH_NOTHING);
    arena_done(&w.arena);
}

static void test_typing(void **state)
{
    (void)state;
    struct world w;
    struct watch_ui ui = {0};
    world_init(&w, 3);
    assert_int_equal(type(&ui, &w, "/qjé"), WATCH_NOTHING);
    assert_string_equal(ui.text, "qjé");
    type(&ui, &w, "\177\177");
    assert_string_equal(ui.text, "q");
    type(&ui, &w, "ueue-02\r");
    assert_false(ui.typing);
    assert_sv(watch_selected(&w.data, &ui)->queue, "queue-02");
    type(&ui, &w, "\033");
    assert_string_equal(ui.text, "");
    type(&ui, &w, "/nothing\r");
    assert_null(watch_selected(&w.data, &ui));
    type(&ui, &w, "/\025");
    for (int i = 0; i < 100; i++)
        type(&ui, &w, "é");
    assert_int_equal(strlen(ui.text), 64);
    arena_done(&w.arena);
}

static void test_share(void **state)
{
    (void)state;
    int got[3];
    frame_share((int[]){5, 6, 7}, 3, 100, 3, got);
    assert_memory_equal(got, ((int[]){5, 6, 7}), sizeof(got));
    frame_share((int[]){50, 4, 50}, 3, 20, 3, got);
    assert_memory_equal(got, ((int[]){8, 4, 8}), sizeof(got));
    frame_share((int[]){50, 4, 50}, 3, 5, 3, got);
    assert_memory_equal(got, ((int[]){5, 0, 0}), sizeof(got));
    frame_share((int[]){0, 4, 0}, 3, -1, 3, got);
    assert_memory_equal(got, ((int[]){0, 0, 0}), sizeof(got));
}

static void test_progress(void **state)
{
    (void)state;
    assert_int_equal(progress_percent(SV("42")), 42);
    assert_int_equal(progress_percent(SV("42.9")), 42);
    assert_int_equal(progress_percent(SV("{\"percent\":100}")), 100);
    assert_int_equal(progress_percent(SV("{\"done\":1,\"total\":3}")), 33);
    assert_int_equal(progress_percent(SV("{\"done\":1,\"total\":0}")), -1);
    assert_int_equal(progress_percent(SV("{\"done\":5,\"total\":3}")), -1);
    assert_int_equal(progress_percent(SV("{\"percent\":\"x\"}")), -1);
    assert_int_equal(progress_percent(SV("1e400")), -1);
    assert_int_equal(progress_percent(SV("-1")), -1);
    assert_int_equal(progress_percent(SV("[1]")), -1);
    assert_int_equal(progress_percent(SV("nonsense")), -1);
    assert_int_equal(progress_percent(SV_NONE), -1);
}

static void test_spark(void **state)
{
    (void)state;
    struct report_slot slots[] = {{.at = {0}, .done = 1},
                                  {.at = {(int64_t)10 * 1000000}, .done = 3, .skipped = 4},
                                  {.at = {(int64_t)30 * 1000000}, .done = 14}};
    struct report_view r = {.since = {1}, .now = {39999999}, .slots = slots, .n_slots = 3};
    AUTO_STR struct str plain = STR_INIT(1024), utf8 = STR_INIT(1024);
    struct spark s = spark_of(&r);
    assert_int_equal(s.count, 4);
    assert_int_equal(s.each.us, 10000000);
    assert_int_equal(s.max, 14);
    spark_draw(&s, false, &plain);
    assert_str(&plain, ".=_#");
    spark_draw(&s, true, &utf8);
    assert_str(&utf8, "▂▅▁█");
}

static void test_spark_of_any_period(void **state)
{
    (void)state;
    for (int64_t hours = 1; hours < 24 * 400; hours = hours * 3 + 1) {
        int64_t end = (int64_t)2000000000 * 1000000 + hours;
        struct report_slot last = {.at = {end - end % 10000000}, .done = 5};
        struct report_view r = {
            .since = {end - hours * 3600 * 1000000}, .now = {end}, .slots = &last, .n_slots = 1};
        struct spark s = spark_of(&r);
        assert_in_range(s.count, 2, SPARK_MAX);
        assert_int_equal(s.n[s.count - 1], 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_shows_everything),
        cmocka_unit_test(test_limits_in_the_frame),
        cmocka_unit_test(test_frame_fits_every_size),
        cmocka_unit_test(test_selected_queue_stays_visible),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_typing),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_spark),
        cmocka_unit_test(test_spark_of_any_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
