/* check() finds damage that was planted, and says where; the clock over boots (I13). */
#include "fixture.h"

#include <sqlite3.h>

static void sql(struct fixture *f, const char *text)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", text, why);
    assert_true(sqlite3_total_changes(db) > 0 || strstr(text, "INDEX"));
    sqlite3_close(db);
}

/* id, job, fence, queue, hash; job, fence, kept, artifact */
#define ARTIFACT(row)                                                                              \
    "INSERT INTO artifact (size, stored, codec, created_at, name, place, id, job, fence, queue,"   \
    " sha256) VALUES (1, 1, 0, 1, 'raw', 'p', " row ")"
#define FETCH(row)                                                                                 \
    "INSERT INTO fetch (at, queue, status, wire_bytes, body_bytes, dns_us, connect_us, tls_us,"    \
    " first_byte_us, total_us, url, job, fence, kept, artifact)"                                   \
    " VALUES (1, 1, 200, 0, 0, 0, 0, 0, 0, 0, 'u', " row ")"

static const struct {
    const char *damage, *repair, *says;
} planted[] = {
    {"UPDATE lane SET head_id = 3 WHERE id = 1", "UPDATE lane SET head_id = 2 WHERE id = 1",
     "lane 1"},
    {"UPDATE lane SET head_priority = 7 WHERE id = 1",
     "UPDATE lane SET head_priority = 1 WHERE id = 1", "lane 1"},
    {"UPDATE lane SET head_id = NULL WHERE id = 1", "UPDATE lane SET head_id = 2 WHERE id = 1",
     "lane 1"},
    {"UPDATE class SET head_id = 3 WHERE id = 1", "UPDATE class SET head_id = 2 WHERE id = 1",
     "class 1"},
    {"UPDATE class SET n_queued = n_queued + 1", "UPDATE class SET n_queued = n_queued - 1",
     "counts differ"},
    {"UPDATE class SET n_failed = 1", "UPDATE class SET n_failed = 0", "counts differ"},
    {"UPDATE class SET n_blocked = 1", "UPDATE class SET n_blocked = 0", "counts differ"},
    {"DELETE FROM body WHERE id = 3",
     "INSERT INTO body (id, lane, payload, created_at) VALUES (3, 1, 'null', 1)",
     "job 3 has no body"},
    {"INSERT INTO body (id, lane, payload, created_at) VALUES (50, 1, 'null', 1)",
     "DELETE FROM body WHERE id = 50", "body 50 has no job"},
    {"UPDATE job SET owner = NULL WHERE state = 3", "UPDATE job SET owner = 1 WHERE state = 3",
     "runs without an owner"},
    {"UPDATE job SET owner = 1 WHERE id = 2", "UPDATE job SET owner = NULL WHERE id = 2",
     "but owned"},
    {"UPDATE meta SET value = 2 WHERE key = 'next_job'",
     "UPDATE meta SET value = 7 WHERE key = 'next_job'", "not given out"},
    {"DELETE FROM job_key", "INSERT INTO job_key (digest, id) VALUES (x'00', 4)", "lost its key"},
    {"INSERT INTO job_key (digest, id) VALUES (x'ff', 99)", "DELETE FROM job_key WHERE id = 99",
     "key of job 99"},
    {"INSERT INTO due VALUES (1, 2)", "DELETE FROM due", "does not wait"},
    {"INSERT INTO poison VALUES (2)", "DELETE FROM poison", "poison"},
    {"INSERT INTO result VALUES (77, '1')", "DELETE FROM result WHERE job = 77", "left over"},
    {"INSERT INTO permit SELECT id, 2 FROM gate", "DELETE FROM permit WHERE job = 2",
     "which does not run"},
    {"INSERT INTO permit VALUES (99, 1)", "DELETE FROM permit WHERE gate = 99",
     "gate 99, which does not exist"},
    {"DELETE FROM permit", "INSERT INTO permit SELECT id, 1 FROM gate",
     "runs without a permit of limit all"},
    {"INSERT INTO gate (id, limit_id, value) VALUES (50, 99, '')", "DELETE FROM gate WHERE id = 50",
     "gate 50 is of no limit"},
    {"UPDATE lane SET parked = 77 WHERE id = 2", "UPDATE lane SET parked = NULL WHERE id = 2",
     "lane 2 is parked on gate 77"},
    {"UPDATE lane SET parked = (SELECT id FROM gate) WHERE id = 2",
     "UPDATE lane SET parked = NULL WHERE id = 2", "nobody looks at"},
    {"UPDATE job SET state = 1 WHERE id = 6", "UPDATE job SET state = -1 WHERE id = 6",
     "have one lock at the same time"},
    {"UPDATE job SET state = -1 WHERE id = 5", "UPDATE job SET state = 1 WHERE id = 5",
     "waits for a lock that nobody has"},
    {"UPDATE job SET state = -1 WHERE id = 3", "UPDATE job SET state = 1 WHERE id = 3",
     "held without a lock"},
    {"UPDATE body SET lock = NULL WHERE id = 5", "UPDATE body SET lock = 'db' WHERE id = 5",
     "do not agree on its lock"},
    {ARTIFACT("90, 1, 9, 1, zeroblob(32)"), "DELETE FROM artifact", "is ahead of its fence 1"},
    {ARTIFACT("91, 99, 9, 77, zeroblob(32)"), "DELETE FROM artifact", "artifact 91 is of no queue"},
    {ARTIFACT("92, 99, 9, 1, x'00'"), "DELETE FROM artifact", "artifact 92 has no hash"},
    {FETCH("99, 1, 1, 55"), "DELETE FROM fetch", "has an artifact that does not exist"},
    {FETCH("99, 1, 0, NULL"), "DELETE FROM fetch", "fetch 1 of job 99 is left over"},
};

static void test_check_finds_planted_damage(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    add_plain(f, 9);
    claim_one(f, &w);
    add_plain(f, 1);
    add_plain(f, 0);
    struct job_spec s = keyed("q", "one");
    add(f, &s);
    struct job_spec locked = spec("q", "locked", 0);
    locked.lock = SV("db");
    add(f, &locked);
    add(f, &locked);
    struct limit_spec all = limit_default(NULL);
    enum limit_outcome set;
    all.name = SV("all");
    all.concurrency = 9;
    OK(f->s->ops->limit_act(f->s, LIMIT_SET, &all, &set, &f->e));
    assert_clean(f);
    sql(f, "DROP INDEX job_lock; CREATE INDEX job_lock ON job (lock)"
           " WHERE lock IS NOT NULL AND state IN (1, 3)");
    for (size_t i = 0; i < ARRAY_LEN(planted); i++) {
        AUTO_STR struct str out = STR_INIT(STR_LINE);
        sql(f, planted[i].damage);
        OK(f->s->ops->check(f->s, &out, &f->e));
        if (!strstr(str_cstr(&out), planted[i].says))
            fail_msg("%s: said \"%s\"", planted[i].damage, str_cstr(&out));
        sql(f, planted[i].repair);
        assert_clean(f);
    }
    end(f, &w);
}

static void test_missing_body_is_an_error_not_a_lie(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    add_plain(f, 0);
    claim_one(f, &w);
    sql(f, "DELETE FROM body WHERE id = 1");
    struct lease *held;
    size_t n;
    FAILS(f->s->ops->held(f->s, &w, &f->a, &held, &n, &f->e), PAWL_ECORRUPT);
    sql(f, "INSERT INTO body (id, lane, payload, created_at) VALUES (1, 1, 'null', 1)");
    end(f, &w);
}

static void reopen(struct fixture *f)
{
    store_close(f->s);
    f->s = open_again(f);
}

static void test_I13_new_boot_voids_sessions_and_blames_nobody(void **state)
{
    struct fixture *f = *state;
    job_id id = add_plain(f, 0);
    struct session w = start(f, "w");
    struct lease l = claim_one(f, &w);
    sql(f, "UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'");
    reopen(f);
    struct renew_request r = {.session = &w, .lease = HOUR};
    struct renew_result out;
    OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    assert_true(out.stale);
    assert_true(claim(f, &w, "k", 1).session_stale);
    vanish(&w); /* nobody of the old boot lives */
    struct session fresh = start(f, "fresh");
    struct sweep_result swept = sweep(f, &fresh, 1);
    assert_int_equal(swept.requeued, 1);
    assert_int_equal(swept.poisoned, 0);
    assert_int_equal(get(f, id).lost, 0);
    struct lease again = claim_one(f, &fresh);
    assert_true(again.fence.v > l.fence.v);
    end(f, &fresh);
}

static void test_I13_new_boot_never_goes_back(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    char text[160];
    int64_t future = clock_wall().us + 10 * HOUR.us; /* the wall was stepped back since */
    snprintf(text, sizeof(text), "UPDATE event SET at = %lld", (long long)future);
    sql(f, text);
    sql(f, "UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'");
    reopen(f);
    assert_true(f->s->ops->now(f->s).us >= future);
    struct store_options o = store_defaults(STORE_READ);
    struct store *reader = NULL;
    OK(open_store(f->path, &o, &reader, &f->e));
    assert_true(reader->ops->now(reader).us >= future);
    store_close(reader);
    int64_t before = f->s->ops->now(f->s).us;
    reopen(f); /* the same boot: the same clock, no new base */
    assert_in_range(f->s->ops->now(f->s).us - before, 0, DUR_S(60).us);
}

static void test_I13_reader_computes_what_the_next_writer_stores(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    store_close(f->s);
    sql(f, "UPDATE meta SET value = 'another boot' WHERE key = 'boot_id'");
    struct store_options o = store_defaults(STORE_READ);
    OK(open_store(f->path, &o, &f->s, &f->e));
    int64_t seen = f->s->ops->now(f->s).us;
    assert_in_range(seen - clock_wall().us + DUR_S(60).us, 0, DUR_S(120).us);
    reopen(f);
    assert_true(f->s->ops->now(f->s).us >= seen);
}

/* The wall may stand anywhere against the store's clock: as if it had been stepped by a day. */
static void test_I13_wall_steps_change_nothing(void **state)
{
    struct fixture *f = *state;
    static const char *const steps[] = {
        "UPDATE meta SET value = value - 86400000000 WHERE key = 'base_wall'",
        "UPDATE meta SET value = value + 172800000000 WHERE key = 'base_wall'"};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        sql(f, steps[i]);
        reopen(f);
        struct session w = start(f, "w");
        struct job_spec late = spec("q", "k", 5), soon = spec("q", "k", 1),
                        wall = spec("q", "k", 9);
        late.delay = HOUR;
        soon.delay = DUR_US(1);
        wall.at.us = clock_wall().us + HOUR.us; /* --at alone is wall time */
        add(f, &late);
        add(f, &wall);
        job_id due = add(f, &soon);
        struct claim_result r = claim(f, &w, "k", 9);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.leases[0].id.v, due.v);
        assert_in_range(r.next_due.us, HOUR.us - DUR_S(60).us, HOUR.us);
        struct renew_request renew = {.session = &w, .lease = HOUR};
        struct renew_result out;
        OK(f->s->ops->renew(f->s, &renew, &f->a, &out, &f->e));
        assert_false(out.stale);
        assert_int_equal(sweep(f, NULL, 3).sessions, 0);
        settle_ok(f, &r.leases[0], OUTCOME_DONE);
        end(f, &w);
        struct act_request all = {.act = ACT_CANCEL};
        struct act_result done;
        OK(f->s->ops->act(f->s, &all, &done, &f->e));
    }
}

static void test_I13_handles_agree_on_the_time(void **state)
{
    struct fixture *f = *state;
    struct store *other = open_again(f);
    for (int i = 0; i < 100; i++) {
        int64_t a = f->s->ops->now(f->s).us, b = other->ops->now(other).us;
        assert_true(b >= a && f->s->ops->now(f->s).us >= b);
    }
    store_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_check_finds_planted_damage),
        TEST(test_missing_body_is_an_error_not_a_lie),
        TEST(test_I13_new_boot_voids_sessions_and_blames_nobody),
        TEST(test_I13_new_boot_never_goes_back),
        TEST(test_I13_reader_computes_what_the_next_writer_stores),
        TEST(test_I13_wall_steps_change_nothing),
        TEST(test_I13_handles_agree_on_the_time),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
