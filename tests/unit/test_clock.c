/* base: durations and times in text. */
#include "unit.h"

#include "clock.h"
#include <stdlib.h>
#include <time.h>

#define S ((int64_t)1000000)

static void reads_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool none;
        int64_t us; /* -2: refused */
    } rows[] = {
        {"0", false, 0},
        {"0s", false, 0},
        {"500ms", false, 500000},
        {"250us", false, 250},
        {"10s", false, 10 * S},
        {"5m", false, 300 * S},
        {"2h", false, 7200 * S},
        {"7d", false, 7 * 86400 * S},
        {"1h30m", false, 5400 * S},
        {"1d2h3m4s5ms", false, (86400 + 7200 + 180 + 4) * S + 5000},
        {"3650d", false, DUR_MAX_US},
        {"none", true, -1},
        {"none", false, -2},
        {"", false, -2},
        {"10", false, -2},
        {"s", false, -2},
        {"1x", false, -2},
        {"-1s", false, -2},
        {"+1s", false, -2},
        {"1.5s", false, -2},
        {"1 s", false, -2},
        {" 1s", false, -2},
        {"1s ", false, -2},
        {"1s2", false, -2},
        {"1S", false, -2},
        {"None", true, -2},
        {"3651d", false, -2},
        {"3650d1us", false, -2},
        {"9223372036854775807d", false, -2},
        {"99999999999999999999s", false, -2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dur d = {-77};
        struct pawl_err err = {0};
        int rc = dur_parse(sv_of(rows[i].text), rows[i].none, &d, &err);
        if (rows[i].us == -2)
            assert_true_msg(rc == PAWL_EINPUT && d.us == -77 && err.code == rc, "%s", rows[i].text);
        else
            assert_true_msg(rc == 0 && d.us == rows[i].us && !err.code, "%s", rows[i].text);
    }
    struct dur d;
    struct pawl_err err = {0};
    assert_code(dur_parse(SV("10"), true, &d, &err), PAWL_EINPUT);
    assert_string_equal(err.msg, "'10' is not a duration; write 500ms, 10s, 5m, 2h or 7d, or none");
}

static void durations_parse_back(void **state)
{
    (void)state;
    static const int64_t values[] = {
        -1,    0,      1,        999,       1000,       1001,         S,
        S - 1, 60 * S, 3599 * S, 86400 * S, DUR_MAX_US, 5400 * S + 1, 123456789012};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        AUTO_STR struct str s = STR_INIT(128);
        struct dur back;
        dur_format(DUR_US(values[i]), &s);
        assert_code(dur_parse(str_sv(&s), true, &back, NULL), 0);
        assert_int_equal(back.us, values[i]);
    }
}

static void shows_two_units(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {
        {-1, "0ms"},         {0, "0ms"},          {999, "0ms"},     {120000, "120ms"},
        {999999, "999ms"},   {1500000, "1.5s"},   {45 * S, "45s"},  {7980 * S, "2h13m"},
        {7985 * S, "2h13m"}, {90061 * S, "1d1h"}, {3600 * S, "1h"}, {59 * S + 999999, "59s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STR struct str s = STR_INIT(64);
        dur_human(DUR_US(rows[i].us), &s);
        assert_str(&s, rows[i].text);
    }
}

static void reads_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us; /* -1: refused */
    } rows[] = {
        {"2026-01-02T03:04:05Z", 1767323045 * S},
        {"2026-01-02T03:04:05z", 1767323045 * S},
        {"2026-01-02 03:04:05Z", 1767323045 * S},
        {"2026-01-02T03:04:05.678Z", 1767323045 * S + 678000},
        {"2026-01-02T03:04:05.123456789Z", 1767323045 * S + 123456},
        {"2026-01-02T03:04:05+01:00", 1767319445 * S},
        {"2026-01-02T03:04:05-00:30", 1767324845 * S},
        {"2024-02-29T00:00:00Z", 1709164800 * S},
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T01:00:00+01:00", 0},
        {"@0", 0},
        {"@1767323045", 1767323045 * S},
        {"1970-01-01T00:00:00+01:00", -1},
        {"1969-12-31T23:59:59Z", -1},
        {"2023-02-29T00:00:00Z", -1},
        {"2026-02-31T00:00:00Z", -1},
        {"2026-13-01T00:00:00Z", -1},
        {"2026-00-01T00:00:00Z", -1},
        {"2026-01-00T00:00:00Z", -1},
        {"2026-01-02T24:00:00Z", -1},
        {"2026-01-02T23:60:00Z", -1},
        {"2026-01-02T23:59:60Z", -1},
        {"2026-01-02T03:04:05", -1},
        {"2026-01-02T03:04:05.Z", -1},
        {"2026-01-02T03:04:05.5", -1},
        {"2026-01-02T03:04:05+24:00", -1},
        {"2026-01-02T03:04:05+0100", -1},
        {"2026-01-02T03:04:05Zx", -1},
        {"2026-01-02", -1},
        {"2O26-01-02T03:04:05Z", -1},
        {"@", -1},
        {"@-1", -1},
        {"@1.5", -1},
        {"@99999999999999999999", -1},
        {"24:00", -1},
        {"12:60", -1},
        {"1:00", -1},
        {"12:00 ", -1},
        {"now", -1},
        {"", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wall t = {-77}, now = {1767323045 * S};
        int rc = wall_parse(sv_of(rows[i].text), now, &t, NULL);
        if (rows[i].us < 0)
            assert_true_msg(rc == PAWL_EINPUT && t.us == -77, "%s", rows[i].text);
        else
            assert_true_msg(rc == 0 && t.us == rows[i].us, "%s", rows[i].text);
    }
}

static void times_parse_back(void **state)
{
    (void)state;
    static const int64_t seconds[] = {0,          951782400,  1709164800,
                                      1767323045, 4102444800, 253402300799};
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        AUTO_STR struct str s = STR_INIT(64);
        struct wall back;
        wall_format((struct wall){seconds[i] * S + 7000}, &s);
        assert_int_equal(s.len, 24);
        assert_code(wall_parse(str_sv(&s), (struct wall){0}, &back, NULL), 0);
        assert_int_equal(back.us, seconds[i] * S + 7000);
    }
    AUTO_STR struct str s = STR_INIT(64);
    wall_format((struct wall){1767323045 * S + 678901}, &s);
    assert_str(&s, "2026-01-02T03:04:05.678Z");
    str_clear(&s);
    wall_format((struct wall){253402300800 * S}, &s);
    assert_str(&s, "10000-01-01T00:00:00.000Z");
    str_clear(&s);
    wall_format((struct wall){INT64_MAX}, &s);
    assert_str(&s, "294247-01-10T04:00:54.775Z");
}

/* "HH:MM" is the next such local time, also over midnight and a change to summer time. */
static void reads_clock_times(void **state)
{
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    static const struct {
        const char *now, *text, *want;
    } rows[] = {
        {"2026-01-02T10:00:00Z", "12:30", "2026-01-02T11:30:00.000Z"},
        {"2026-01-02T10:00:00Z", "10:59", "2026-01-03T09:59:00.000Z"},
        {"2026-01-02T10:00:00Z", "11:00", "2026-01-03T10:00:00.000Z"},
        {"2026-03-28T22:30:00Z", "06:00", "2026-03-29T04:00:00.000Z"},
        {"2026-12-31T22:59:00Z", "00:00", "2026-12-31T23:00:00.000Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wall now, t;
        AUTO_STR struct str s = STR_INIT(64);
        assert_code(wall_parse(sv_of(rows[i].now), (struct wall){0}, &now, NULL), 0);
        assert_code(wall_parse(sv_of(rows[i].text), now, &t, NULL), 0);
        wall_format(t, &s);
        assert_str(&s, rows[i].want);
    }
    unsetenv("TZ");
    tzset();
}

static void clocks_run(void **state)
{
    (void)state;
    struct boot a = clock_boot(), b = clock_boot();
    assert_true(b.us >= a.us && a.us > 0);
    struct wall w = clock_wall();
    assert_true(llabs(w.us / S - (int64_t)time(NULL)) <= 1);
    char first[37], second[37];
    clock_boot_id(first);
    clock_boot_id(second);
    assert_string_equal(first, second);
    assert_true(strlen(first) == 36 || strlen(first) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_durations),  cmocka_unit_test(durations_parse_back),
        cmocka_unit_test(shows_two_units),  cmocka_unit_test(reads_times),
        cmocka_unit_test(times_parse_back), cmocka_unit_test(reads_clock_times),
        cmocka_unit_test(clocks_run),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
