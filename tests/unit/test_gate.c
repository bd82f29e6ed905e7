/* core: what limits select and what gates decide (I7, I8). */
#include "unit.h"

#include "gate.h"
#include "limit.h"

#define S ((int64_t)1000000)

static const struct gate_params breaker = {
    .threshold = 3, .window_us = 60 * S, .open_us = 60 * S, .max_open_us = 200 * S};

static struct gate_room room(const struct gate_params *p, const struct gate_state *s, int used,
                             int64_t now)
{
    return gate_room(p, s, used, now, 1000);
}

static void caps_by_permits(void **state)
{
    (void)state;
    const struct gate_params p = {.cap = 3};
    const struct gate_state s = {0};
    assert_int_equal(room(&p, &s, 0, S).n, 3);
    assert_int_equal(room(&p, &s, 2, S).n, 1);
    assert_int_equal(gate_room(&p, &s, 2, S, 2).n, 1);
    struct gate_room r = room(&p, &s, 3, S);
    assert_true(r.n == 0 && r.why == SHUT_FULL && r.until == 0);
    assert_int_equal(room(&p, &s, 9, S).n, 0); /* made smaller while they ran */
    assert_int_equal(gate_room(&p, &s, 0, S, 2).why, SHUT_NOT);
}

/* Property: whatever the times and batches of the claims, no window holds more than rate + burst.
 */
static void rates_hold_in_every_window(void **state)
{
    (void)state;
    static const int bursts[] = {1, 2, 7};
    for (size_t b = 0; b < ARRAY_LEN(bursts); b++) {
        const struct gate_params p = {.interval_us = 50000, .burst = bursts[b]};
        struct gate_state s = {0};
        int64_t at[5000], now = 1000 * S;
        size_t n = 0;
        unsigned seed = 7 + (unsigned)b;
        while (n < 4000) {
            seed = seed * 1103515245 + 12345;
            now += seed / 65536 % 100 < 3 ? 2 * S : seed / 65536 % 40000;
            struct gate_room r = gate_room(&p, &s, 0, now, 1 + (int)(seed / 65536 % 5));
            for (int i = 0; i < r.n; i++)
                at[n++] = now;
            if (r.n)
                gate_take(&p, &s, r.n, 1, 1, now);
            else
                assert_true(r.why == SHUT_RATE && r.until > now && r.until <= now + 50000);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = i; k < n && at[k] - at[i] <= 10 * S; k++)
                assert_true((int64_t)(k - i + 1) <= (at[k] - at[i]) / 50000 + p.burst);
    }
}

static void the_time_named_is_the_time_it_opens(void **state)
{
    (void)state;
    const struct gate_params p = {.interval_us = S, .burst = 4};
    struct gate_state s = {0};
    assert_int_equal(room(&p, &s, 0, 100 * S).n, 4);
    gate_take(&p, &s, 4, 1, 1, 100 * S);
    struct gate_room r = room(&p, &s, 0, 100 * S);
    assert_int_equal(r.n, 0);
    assert_int_equal(room(&p, &s, 0, r.until - 1).n, 0);
    assert_int_equal(room(&p, &s, 0, r.until).n, 1);
}

static enum gate_change end(const struct gate_params *p, struct gate_state *s, enum gate_signal g,
                            int64_t claimed, int64_t job, int64_t now)
{
    return gate_result(p, s, g, true, -1, claimed, job, 1, now);
}

static void opens_after_failures_in_a_row(void **state)
{
    (void)state;
    struct gate_state s = {0};
    assert_int_equal(end(&breaker, &s, SIGNAL_OK, S, 1, 2 * S), GATE_SAME);
    assert_int_equal(end(&breaker, &s, SIGNAL_TRANSIENT, S, 1, 2 * S), GATE_CHANGED);
    assert_int_equal(end(&breaker, &s, SIGNAL_TIMEOUT, S, 2, 2 * S), GATE_CHANGED);
    assert_int_equal(end(&breaker, &s, SIGNAL_OTHER, S, 3, 2 * S), GATE_CHANGED); /* it answered */
    for (int i = 0; i < 2; i++)
        assert_int_equal(end(&breaker, &s, SIGNAL_TRANSIENT, S, 1, 2 * S), GATE_CHANGED);
    assert_int_equal(end(&breaker, &s, SIGNAL_THROTTLED, S, 1, 2 * S), GATE_SAME);
    assert_int_equal(end(&breaker, &s, SIGNAL_NONE, S, 1, 2 * S), GATE_SAME);
    assert_int_equal(end(&breaker, &s, SIGNAL_TRANSIENT, S, 1, 3 * S), GATE_OPENED);
    struct gate_room r = room(&breaker, &s, 0, 10 * S);
    assert_true(r.n == 0 && r.why == SHUT_BREAKER && r.until == 63 * S);
    /* Those under way when it opened say nothing any more. */
    assert_int_equal(end(&breaker, &s, SIGNAL_OK, S, 9, 11 * S), GATE_SAME);
    assert_int_equal(s.breaker, BREAKER_OPEN);
}

static struct gate_state opened(int64_t now)
{
    struct gate_state s = {0};
    for (int i = 0; i < 3; i++)
        end(&breaker, &s, SIGNAL_TRANSIENT, now, 1, now);
    return s;
}

static void one_probe_decides(void **state)
{
    (void)state;
    struct gate_state s = opened(100 * S);
    assert_int_equal(room(&breaker, &s, 0, 160 * S).n, 1);
    assert_true(gate_take(&breaker, &s, 1, 7, 2, 160 * S));
    assert_true(room(&breaker, &s, 0, 161 * S).why == SHUT_PROBING);
    assert_int_equal(gate_result(&breaker, &s, SIGNAL_OK, true, -1, 161 * S, 7, 1, 162 * S),
                     GATE_SAME); /* an older lease of the same job */
    assert_int_equal(gate_result(&breaker, &s, SIGNAL_TRANSIENT, true, -1, 160 * S, 7, 2, 163 * S),
                     GATE_OPENED);
    assert_int_equal(s.until, 283 * S); /* twice as long */
    assert_true(gate_take(&breaker, &s, 1, 8, 1, 283 * S));
    assert_int_equal(end(&breaker, &s, SIGNAL_LOST, 283 * S, 8, 290 * S), GATE_OPENED);
    assert_int_equal(s.until, 410 * S); /* the same again */
    assert_true(gate_take(&breaker, &s, 1, 9, 1, 410 * S));
    assert_int_equal(end(&breaker, &s, SIGNAL_NONE, 410 * S, 9, 411 * S), GATE_CHANGED);
    assert_int_equal(room(&breaker, &s, 0, 411 * S).n, 1); /* given back: the next may try */
    assert_true(gate_take(&breaker, &s, 1, 10, 1, 411 * S));
    assert_int_equal(end(&breaker, &s, SIGNAL_OK, 411 * S, 10, 412 * S), GATE_CLOSED);
    assert_true(s.breaker == BREAKER_CLOSED && s.opens == 0 && s.failures == 0);
    /* What was claimed before it closed does not count either. */
    for (int i = 0; i < 5; i++)
        assert_int_equal(end(&breaker, &s, SIGNAL_TRANSIENT, 400 * S, 3, 413 * S), GATE_SAME);
}

static void pauses_grow_to_their_maximum(void **state)
{
    (void)state;
    struct gate_state s = opened(0);
    static const int64_t pauses[] = {120, 200, 200, 200};
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        int64_t now = s.until;
        assert_true(gate_take(&breaker, &s, 1, 1, 1, now));
        assert_int_equal(end(&breaker, &s, SIGNAL_TRANSIENT, now, 1, now), GATE_OPENED);
        assert_int_equal(s.until - now, pauses[i] * S);
    }
    assert_int_equal(s.epoch, 5);
}

static void opens_by_failure_rate(void **state)
{
    (void)state;
    const struct gate_params p = {
        .percent = 50, .min_calls = 10, .window_us = 60 * S, .open_us = S, .max_open_us = S};
    struct gate_state s = {0};
    for (int i = 0; i < 9; i++)
        assert_int_equal(end(&p, &s, i % 2 ? SIGNAL_TRANSIENT : SIGNAL_OK, 100 * S, i, 100 * S),
                         GATE_CHANGED);
    assert_int_equal(end(&p, &s, SIGNAL_TRANSIENT, 100 * S, 9, 100 * S), GATE_OPENED);
    s = (struct gate_state){0};
    for (int i = 0; i < 20; i++) /* each in a window of its own */
        assert_int_equal(end(&p, &s, SIGNAL_TRANSIENT, (100 + 61 * i) * S, i, (100 + 61 * i) * S),
                         GATE_CHANGED);
}

static void operators_have_the_last_word(void **state)
{
    (void)state;
    struct gate_state s = {0};
    gate_open(&s, 0, S);
    assert_true(room(&breaker, &s, 0, INT64_MAX - 1).why == SHUT_BREAKER);
    gate_open(&s, 5 * S, S);
    assert_int_equal(room(&breaker, &s, 0, 6 * S).n, 1);
    gate_close(&s, 7 * S);
    assert_int_equal(room(&breaker, &s, 0, 7 * S).n, 1000);
    s.tat = s.held_until = 100 * S;
    int64_t epoch = s.epoch;
    gate_reset(&s, 8 * S);
    assert_true(!s.tat && !s.held_until && s.epoch == epoch);
}

static const struct gate_params polite = {
    .respect_retry_after = true, .pause_us = 2 * S, .max_pause_us = 100 * S};

static void throttling_holds_the_gate(void **state)
{
    (void)state;
    struct gate_state s = {0};
    assert_int_equal(gate_result(&polite, &s, SIGNAL_THROTTLED, true, 30 * S, S, 1, 1, 10 * S),
                     GATE_CHANGED);
    struct gate_room r = room(&polite, &s, 0, 11 * S);
    assert_true(r.why == SHUT_HELD && r.until == 40 * S && s.held_asked);
    /* One of the same burst asks for longer, another for less. */
    gate_result(&polite, &s, SIGNAL_THROTTLED, true, 60 * S, S, 2, 1, 11 * S);
    assert_int_equal(s.held_until, 71 * S);
    gate_result(&polite, &s, SIGNAL_THROTTLED, true, S, S, 3, 1, 12 * S);
    assert_int_equal(s.held_until, 71 * S);
    gate_result(&polite, &s, SIGNAL_THROTTLED, true, 9000 * S, 80 * S, 4, 1, 81 * S);
    assert_int_equal(s.held_until, 181 * S); /* clamped */
    struct gate_state other = {0};
    assert_int_equal(gate_result(&polite, &other, SIGNAL_THROTTLED, false, S, S, 1, 1, S),
                     GATE_SAME);
}

static void pauses_without_a_header_double(void **state)
{
    (void)state;
    struct gate_state s = {0};
    static const int64_t pauses[] = {2, 4, 8, 16, 32, 64, 100, 100};
    int64_t now = 10 * S;
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        end(&polite, &s, SIGNAL_THROTTLED, now, 1, now + 1);
        end(&polite, &s, SIGNAL_THROTTLED, now, 2, now + 2); /* of the same burst */
        assert_int_equal(s.held_until, now + 1 + pauses[i] * S);
        now = s.held_until;
    }
    assert_int_equal(end(&polite, &s, SIGNAL_OK, now, 3, now + 1), GATE_CHANGED);
    assert_int_equal(s.held_n, 0);
    const struct gate_params rude = {.pause_us = S, .max_pause_us = S};
    struct gate_state deaf = {0};
    assert_int_equal(end(&rude, &deaf, SIGNAL_THROTTLED, S, 1, S), GATE_SAME);
}

static const struct gate_params adaptive = {.interval_us = 10000,
                                            .burst = 1,
                                            .adaptive = true,
                                            .slowest_us = 100000,
                                            .respect_retry_after = true,
                                            .pause_us = S,
                                            .max_pause_us = S};

static void adapts_to_what_the_peer_stands(void **state)
{
    (void)state;
    struct gate_state s = {0};
    int64_t now = 100 * S;
    end(&adaptive, &s, SIGNAL_THROTTLED, now, 1, now + 1);
    assert_int_equal(s.interval_us, 13334);
    assert_int_equal(s.held_until, 0);
    for (int i = 0; i < 50; i++) /* one burst */
        end(&adaptive, &s, SIGNAL_THROTTLED, now + i * 4000, i, now + i * 4000 + 2);
    assert_int_equal(s.interval_us, 13334);
    now += S / 5;
    /* Ten seconds of good answers add a tenth of the full rate: 75/s becomes 85/s. */
    for (int i = 0; i < 100; i++) {
        now += S / 10;
        end(&adaptive, &s, SIGNAL_OK, now, i, now + 2);
    }
    assert_in_range(s.interval_us, 1000000 / 86, 1000000 / 84);
    for (int i = 0; i < 40; i++, now += S)
        end(&adaptive, &s, SIGNAL_TIMEOUT, now, i, now + 1);
    assert_int_equal(s.interval_us, adaptive.slowest_us);
    for (int i = 0; i < 2000; i++, now += S)
        end(&adaptive, &s, SIGNAL_OK, now, i, now + 1);
    assert_int_equal(s.interval_us, adaptive.interval_us);
}

static void errors_never_speed_it_up(void **state)
{
    (void)state;
    struct gate_state s = {.interval_us = 50000, .cut_at = S, .raised_at = S};
    static const enum gate_signal bad[] = {SIGNAL_TRANSIENT, SIGNAL_OTHER, SIGNAL_NONE,
                                           SIGNAL_LOST};
    for (int i = 0; i < 4000; i++)
        end(&adaptive, &s, bad[i % 4], (10 + i) * S, i, (10 + i) * S);
    assert_int_equal(s.interval_us, 50000);
}

/* ---- pace ---- */

/* Property: with whatever limit beside it, no two starts are closer than the pace. */
static void a_pace_keeps_starts_apart(void **state)
{
    (void)state;
    const struct gate_params limits[] = {
        {.burst = 1},
        {.cap = 9, .burst = 1},
        {.interval_us = 50000, .burst = 7},
        {.interval_us = 3 * S, .burst = 1},
        {.interval_us = 50000, .burst = 3, .adaptive = true, .slowest_us = 500000}};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const struct gate_params *p = &limits[i];
        struct gate_state s = {0};
        int64_t now = 100 * S, last = now;
        gate_pace(p, &s, S, now);
        for (int k = 0; k < 50; k++) {
            struct gate_room r = gate_room(p, &s, 0, now, 5);
            if (r.n == 0) {
                assert_true(r.why == SHUT_RATE && r.until > now);
                assert_int_equal(gate_room(p, &s, 0, r.until - 1, 5).n, 0);
                now = r.until;
                continue;
            }
            assert_int_equal(r.n, 1);
            assert_true(now - last >= S);
            assert_false(gate_take(p, &s, 1, 1, 1, now));
            last = now;
            now += 1000 * (k % 3);
        }
        assert_true(last > 100 * S + 20 * S);
    }
}

static void a_pace_is_a_floor(void **state)
{
    (void)state;
    const struct gate_params p = {.interval_us = S, .burst = 3};
    struct gate_state s = {0};
    gate_pace(&p, &s, S / 2, 100 * S); /* the limit is slower: its burst stays */
    assert_false(gate_is_paced(&p, &s));
    assert_int_equal(gate_interval(&p, &s), S);
    assert_int_equal(room(&p, &s, 0, 100 * S).n, 2);
    gate_pace(&p, &s, 10 * S, 100 * S);
    assert_true(gate_is_paced(&p, &s));
    assert_int_equal(room(&p, &s, 0, 100 * S).until, 110 * S);
    gate_take(&p, &s, 1, 1, 1, 110 * S);
    assert_int_equal(s.tat, 120 * S);
    gate_pace(&p, &s, 0,
              111 * S); /* what it put off is drawn in, but no more than a burst's worth */
    assert_int_equal(s.tat, 114 * S);
    gate_pace(&p, &s, 20 * S, 111 * S);
    gate_reset(&s, 111 * S);
    assert_int_equal(s.pace_us, 0);
    assert_int_equal(room(&p, &s, 0, 111 * S).n, 3);
}

/* Cuts and raises go by what the limit says, not by the pace. */
static void a_pace_does_not_teach_the_rate(void **state)
{
    (void)state;
    const struct gate_params p = {
        .interval_us = 100000, .burst = 1, .adaptive = true, .slowest_us = S};
    struct gate_state s = {0};
    gate_pace(&p, &s, 10 * S, 100 * S);
    assert_int_equal(gate_result(&p, &s, SIGNAL_THROTTLED, false, -1, 101 * S, 1, 1, 102 * S),
                     GATE_CHANGED);
    assert_int_equal(s.interval_us, 133334);
}

static void ends_aside(void **state)
{
    (void)state;
    assert_int_equal(gate_signal_aside(SIGNAL_THROTTLED), SIGNAL_OK);
    assert_int_equal(gate_signal_aside(SIGNAL_TRANSIENT), SIGNAL_OK);
    assert_int_equal(gate_signal_aside(SIGNAL_OTHER), SIGNAL_OK);
    assert_int_equal(gate_signal_aside(SIGNAL_NONE), SIGNAL_NONE);
    assert_int_equal(gate_signal_aside(SIGNAL_LOST), SIGNAL_LOST);
}

static void signals_come_from_settles(void **state)
{
    (void)state;
    struct settle v = {.cls = CLASS_TRANSIENT};
    assert_int_equal(gate_signal_of(&v, OUTCOME_DONE), SIGNAL_OK);
    assert_int_equal(gate_signal_of(&v, OUTCOME_SKIPPED), SIGNAL_OK);
    assert_int_equal(gate_signal_of(&v, OUTCOME_RELEASED), SIGNAL_NONE);
    assert_int_equal(gate_signal_of(&v, OUTCOME_CANCELLED), SIGNAL_NONE);
    assert_int_equal(gate_signal_of(&v, OUTCOME_LOST), SIGNAL_LOST);
    assert_int_equal(gate_signal_of(&v, OUTCOME_RETRY), SIGNAL_TRANSIENT);
    v.timed_out = true;
    assert_int_equal(gate_signal_of(&v, OUTCOME_FAILED), SIGNAL_TIMEOUT);
    v.throttled = true;
    assert_int_equal(gate_signal_of(&v, OUTCOME_RETRY), SIGNAL_THROTTLED);
    v.cls = CLASS_ERROR;
    assert_int_equal(gate_signal_of(&v, OUTCOME_RETRY), SIGNAL_OTHER);
    v.cls = CLASS_LOST;
    assert_int_equal(gate_signal_of(&v, OUTCOME_FAILED), SIGNAL_LOST);
}

static void patterns_match_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *host;
        bool matches;
    } rows[] = {
        {"a.example", "a.example", true},
        {"a.example", "b.a.example", false},
        {"*.example", "a.example", true},
        {"*.example", "a.b.example", true},
        {"*.example", "example", false},
        {"*", "anything", true},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "abc", true},
        {"a*b*c", "axxcyyb", false},
        {"*a", "aaab", false},
        {"**", "x", true},
        {"", "x", false},
        {"*.wiki*.org", "en.wikipedia.org", true},
        {"a_c", "abc", false},
        {"a%", "ab", false},
        {"aab*ab", "aabaab", true},
        {"127.*", "127.0.0.1", true},
        {"127.*", "127.example.org", false},
        {"127.*", "127.0.0.1.example.org", false},
        {"10.*.1", "10.a.1", false},
        {"10.*.1", "10.0.0.1", true},
        {"1*", "1und1.example", false},
        {"12", "12", true},
        {"127.*.org", "127.example.org", true},
        {"*.1", "a.1", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_true_msg(host_matches(sv_of(rows[i].pattern), sv_of(rows[i].host)) ==
                            rows[i].matches,
                        "%s, %s", rows[i].pattern, rows[i].host);
}

static void patterns_exclude(void **state)
{
    (void)state;
    static const struct {
        const char *patterns[4], *host;
        bool matches;
    } rows[] = {
        {{"*", "!127.*", "!localhost"}, "a.example", true},
        {{"*", "!127.*", "!localhost"}, "127.0.0.1", false},
        {{"!127.*", "*", "!localhost"}, "localhost", false},
        {{"!127.*"}, "127.example", true},
        {{"!localhost"}, "a", true},
        {{"!localhost"}, "localhost", false},
        {{"!localhost"}, "", false},
        {{"*.example", "!b.example"}, "a.example", true},
        {{"*.example", "!b.example"}, "b.example", false},
        {{"*.example", "!b.example"}, "other", false},
        {{"!b", "b"}, "b", false},
        {{"!*"}, "b", false},
        {{0}, "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sv v[4];
        size_t n = 0;
        while (n < 4 && rows[i].patterns[n]) {
            v[n] = sv_of(rows[i].patterns[n]);
            n++;
        }
        assert_true_msg(hosts_match(v, n, sv_of(rows[i].host)) == rows[i].matches, "%zu: %s", i,
                        rows[i].host);
    }
}

static void one_is_built_in(void **state)
{
    (void)state;
    size_t n;
    struct pawl_err err = {0};
    struct sv value;
    AUTO_STR struct str text = STR_INIT(LIMIT_TEXT_MAX);
    const struct limit_spec *v = limits_built_in(&n), *s = limit_built_in(SV("every-host"));
    assert_true(n == 1 && s == v);
    assert_null(limit_built_in(SV("every")));
    assert_code(limit_check(s, &err), 0);
    assert_true(limit_matches(s, SV("q"), SV("fetch"), SV("a.example"), &value));
    assert_sv(value, "a.example");
    static const char *const not_these[] = {"localhost", "127.0.0.1", "127.9.9.9",
                                            "::1",       "[::1]",     ""};
    for (size_t i = 0; i < ARRAY_LEN(not_these); i++)
        assert_false(limit_matches(s, SV("q"), SV("fetch"), sv_of(not_these[i]), &value));
    assert_false(limit_matches(s, SV("q"), SV("exec"), SV("a.example"), &value));
    struct gate_params p = limit_params(s);
    assert_true(p.cap == 2 && p.interval_us == S && p.burst == 1);
    limit_text(s, &text);
    assert_true(limit_is_built_in(s->name, str_sv(&text)));
    assert_false(limit_is_built_in(SV("other"), str_sv(&text)));
    assert_false(limit_is_built_in(s->name, SV("{}")));
}

static void selectors_and_together(void **state)
{
    (void)state;
    const struct sv wiki[] = {SV("*.wikipedia.org"), SV("*.wikimedia.org")};
    const struct limit_spec v[] = {
        {.name = SV("every"), .each = EACH_HOST, .kind = SV("fetch")},
        {.name = SV("wiki"), .hosts = wiki, .n_hosts = 2, .replaces = true},
        {.name = SV("q"), .queue = SV("unpaywall")},
        {.name = SV("all")},
    };
    size_t at[4];
    struct sv values[4];
    assert_int_equal(limits_of(v, 4, SV("q1"), SV("fetch"), SV("h"), at, values), 2);
    assert_true(at[0] == 0 && at[1] == 3);
    assert_sv(values[0], "h");
    assert_int_equal(limits_of(v, 4, SV("q1"), SV("fetch"), SV("en.wikipedia.org"), at, values), 2);
    assert_true(at[0] == 1 && at[1] == 3);
    assert_int_equal(limits_of(v, 4, SV("unpaywall"), SV("fetch"), SV(""), at, values), 2);
    assert_true(at[0] == 2 && at[1] == 3);
    assert_int_equal(limits_of(v, 4, SV("unpaywall"), SV("exec"), SV("h"), at, values), 2);
}

static void rates_parse_back(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
        int64_t interval;
    } rows[] = {{"200/min", "200/min", 300000},
                {"1/s", "1/s", S},
                {"3/10s", "3/10s", 3333334},
                {"5/2h", "5/2h", 1440 * S},
                {"7/minute", "7/min", 8571429}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pawl_err err;
        struct rate r;
        AUTO_STR struct str s = STR_INIT(64);
        assert_code(rate_parse(sv_of(rows[i].text), &r, &err), 0);
        rate_text(r, &s);
        assert_str(&s, rows[i].shown);
        assert_int_equal(rate_interval(r), rows[i].interval);
    }
    static const char *const bad[] = {"",    "5",   "5/",        "/s",   "0/s",      "-1/s", "1/0s",
                                      "x/s", "1/x", "1000001/s", "1/2d", "5000/1ms", "1/s/s"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct pawl_err err;
        struct rate r;
        assert_code(rate_parse(sv_of(bad[i]), &r, &err), PAWL_EINPUT);
    }
}

static void texts_read_back(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"name\":\"a\",\"concurrency\":2,\"respect_retry_after\":true,\"pause\":\"5s\","
        "\"max_pause\":\"1h\",\"breaker\":\"none\"}",
        "{\"name\":\"b\",\"queue\":\"q\",\"kind\":\"k\",\"hosts\":[\"*.x\",\"y\"],\"replaces\":"
        "true,"
        "\"rate\":\"100/s\",\"burst\":3,\"adaptive\":true,\"min_rate\":\"1/s\","
        "\"respect_retry_after\":false,\"pause\":\"1s\",\"max_pause\":\"1m\",\"breaker\":{"
        "\"threshold\":5,\"percent\":50,\"min_calls\":20,\"window\":\"1m\",\"pause\":\"1m\","
        "\"max_pause\":\"30m\"}}",
        "{\"name\":\"c\",\"each\":\"host\",\"respect_retry_after\":true,\"pause\":\"5s\","
        "\"max_pause\":\"1h\",\"breaker\":{\"threshold\":1,\"percent\":0,\"min_calls\":20,"
        "\"window\":\"1m\",\"pause\":\"10s\",\"max_pause\":\"10s\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct arena a;
        struct limit_spec spec;
        struct pawl_err err = {0};
        AUTO_STR struct str s = STR_INIT(4096);
        arena_init(&a);
        assert_code(limit_read(sv_of(texts[i]), &a, &spec, &err), 0);
        limit_text(&spec, &s);
        assert_str(&s, texts[i]);
        arena_done(&a);
    }
}

static void refuses_bad_limits(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{\"concurrency\":1}",
        "{\"name\":\"\",\"concurrency\":1}",
        "{\"name\":\"a\",\"breaker\":\"none\"}",
        "{\"name\":\"a\",\"concurrency\":1,\"colour\":\"red\"}",
        "{\"name\":\"a\",\"concurrency\":-1}",
        "{\"name\":\"a\",\"concurrency\":1,\"burst\":2}",
        "{\"name\":\"a\",\"concurrency\":1,\"adaptive\":true}",
        "{\"name\":\"a\",\"rate\":\"1/s\",\"min_rate\":\"1/min\"}",
        "{\"name\":\"a\",\"rate\":\"1/s\",\"adaptive\":true,\"min_rate\":\"2/s\"}",
        "{\"name\":\"a\",\"each\":\"host\",\"replaces\":true,\"concurrency\":1}",
        "{\"name\":\"a\",\"each\":\"job\",\"concurrency\":1}",
        "{\"name\":\"a\",\"concurrency\":1,\"pause\":\"2h\"}",
        "{\"name\":\"a\",\"breaker\":{\"threshold\":1,\"pause\":\"0s\"}}",
        "{\"name\":\"a\",\"breaker\":{\"percent\":101}}",
        "{\"name\":\"a\",\"hosts\":[1],\"concurrency\":1}",
        "{\"name\":\"a\",\"hosts\":[\"!\"],\"concurrency\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct arena a;
        struct limit_spec spec;
        struct pawl_err err = {0};
        arena_init(&a);
        assert_true_msg(limit_read(sv_of(texts[i]), &a, &spec, &err) == PAWL_EINPUT, "%s",
                        texts[i]);
        assert_true(err.msg[0]);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caps_by_permits),
        cmocka_unit_test(rates_hold_in_every_window),
        cmocka_unit_test(the_time_named_is_the_time_it_opens),
        cmocka_unit_test(opens_after_failures_in_a_row),
        cmocka_unit_test(one_probe_decides),
        cmocka_unit_test(pauses_grow_to_their_maximum),
        cmocka_unit_test(opens_by_failure_rate),
        cmocka_unit_test(operators_have_the_last_word),
        cmocka_unit_test(throttling_holds_the_gate),
        cmocka_unit_test(pauses_without_a_header_double),
        cmocka_unit_test(adapts_to_what_the_peer_stands),
        cmocka_unit_test(errors_never_speed_it_up),
        cmocka_unit_test(a_pace_keeps_starts_apart),
        cmocka_unit_test(a_pace_is_a_floor),
        cmocka_unit_test(a_pace_does_not_teach_the_rate),
        cmocka_unit_test(ends_aside),
        cmocka_unit_test(signals_come_from_settles),
        cmocka_unit_test(patterns_match_hosts),
        cmocka_unit_test(patterns_exclude),
        cmocka_unit_test(one_is_built_in),
        cmocka_unit_test(selectors_and_together),
        cmocka_unit_test(rates_parse_back),
        cmocka_unit_test(texts_read_back),
        cmocka_unit_test(refuses_bad_limits),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
