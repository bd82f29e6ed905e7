/* What becomes of artifacts and records later: bytes are lost, moved or too old, jobs are pruned or
 * run again, the store is copied (I10). */
#include "copy.h"
#include "keeping.h"

/* ---- when bytes are lost ---- */

static void lose(struct fixture *f, const int64_t *ids, size_t n, int64_t rows, int64_t jobs)
{
    int64_t gone = -1, queued = -1;
    OK(f->s->ops->artifacts_lost(f->s, ids, n, &gone, &queued, &f->e));
    assert_int_equal(gone, rows);
    assert_int_equal(queued, jobs);
}

static bool keep_detail(void *arg, const struct event_view *e)
{
    struct str *out = arg;
    str_add(out, e->detail);
    return true;
}

/* The event of a raw artifact made by bytes("raw", 1). */
static void assert_told_as_lost(struct fixture *f, job_id id)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE), want = STR_INIT(STR_LINE);
    const struct event_filter of = {.job = id, .types = 1u << EVENT_ARTIFACT_LOST};
    OK(f->s->ops->events(f->s, &of, keep_detail, &detail, &f->e));
    str_adds(&want, "{\"name\":\"raw\",\"sha256\":\"");
    for (int i = 0; i < SHA256_LEN; i++)
        str_adds(&want, "01");
    str_adds(&want, "\"}");
    assert_string_equal(str_cstr(&detail), str_cstr(&want));
}

static void test_jobs_of_lost_bytes_run_again(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id done = fetched(f, &w, "q", 1), gone = fetched(f, &w, "q", 2);
    job_id kept = fetched(f, &w, "q", 3);
    struct found x = artifacts(f, (struct artifact_filter){0});
    act(f, ACT_PRUNE, gone);
    job_id runs = add_plain(f, 0);
    struct lease held = claim_one(f, &w);
    struct artifact two[] = {bytes("a", 4), bytes("b", 4)};
    assert_int_equal(leave(f, &held, OUTCOME_RETRY, two, 2, NULL), SETTLE_OK);
    held = claim_one(f, &w);
    int64_t ids[6] = {1 << 30, x.v[1].id, x.v[0].id, 0, 0, 0};
    struct found of_runs = artifacts(f, (struct artifact_filter){.job = runs});
    ids[3] = of_runs.v[0].id;
    ids[4] = of_runs.v[1].id;
    ids[5] = x.v[0].id; /* twice */
    int64_t fence = get(f, done).fence.v;
    lose(f, ids, 6, 4, 1);
    assert_state(f, done, JOB_QUEUED);
    assert_state(f, kept, JOB_DONE);
    assert_state(f, runs, JOB_RUNNING);
    assert_int_equal(get(f, done).fence.v, fence);
    assert_int_equal(get(f, done).attempt, 0);
    assert_int_equal(n_events(f, done, EVENT_ARTIFACT_LOST), 1);
    assert_int_equal(n_events(f, done, EVENT_REQUEUED), 1);
    assert_int_equal(n_events(f, runs, EVENT_ARTIFACT_LOST), 2);
    assert_int_equal(n_events(f, runs, EVENT_REQUEUED), 0);
    assert_told_as_lost(f, done);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 1);
    struct found rec = fetches(f, done); /* what happened stays told */
    assert_int_equal(rec.n, 1);
    assert_int_equal(rec.f[0].artifact, 0);
    assert_true(rec.f[0].f.kept);
    assert_int_equal(fetches(f, gone).n, 0);
    lose(f, ids, 6, 0, 0);
    lose(f, NULL, 0, 0, 0);
    settle_ok(f, &held, OUTCOME_DONE);
    struct lease again = claim_one(f, &w);
    assert_int_equal(again.id.v, done.v);
    assert_int_equal(again.fence.v, fence + 1);
    struct artifact a = bytes("raw", 1);
    assert_int_equal(leave(f, &again, OUTCOME_DONE, &a, 1, NULL), SETTLE_OK);
    struct found anew = artifacts(f, (struct artifact_filter){.job = done});
    assert_int_equal(anew.n, 1);
    assert_true(anew.v[0].id > ids[4]); /* no id is given twice */
    end(f, &w);
}

/* The last row of all goes, and its id with it. */
static void test_no_artifact_id_is_given_twice(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = fetched(f, &w, "q", 1);
    int64_t first = artifacts(f, (struct artifact_filter){0}).v[0].id;
    lose(f, &first, 1, 1, 1);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, id.v);
    struct artifact a = bytes("raw", 1);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, NULL), SETTLE_OK);
    lose(f, &first, 1, 0, 0);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 1);
    end(f, &w);
}

static void test_a_lock_is_kept_when_its_job_runs_again(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id first = add_locked(f, "db", 0);
    struct lease l = claim_one(f, &w);
    struct artifact a = bytes("raw", 1);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, NULL), SETTLE_OK);
    job_id second = add_locked(f, "db", 0);
    struct lease other = claim_one(f, &w);
    assert_int_equal(other.id.v, second.v);
    int64_t id = artifacts(f, (struct artifact_filter){0}).v[0].id;
    lose(f, &id, 1, 1, 1);
    assert_state(f, first, JOB_QUEUED);
    assert_int_equal(claim(f, &w, "k", 1).n, 0);
    settle_ok(f, &other, OUTCOME_DONE);
    assert_int_equal(claim_one(f, &w).id.v, first.v);
    end(f, &w);
}

/* ---- pruning ---- */

static void test_pruning_keeps_what_tells_of_bytes(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    struct fetch_record busy = record(503, false), good = record(200, true);
    struct artifact a = bytes("raw", 1);
    assert_int_equal(leave(f, &l, OUTCOME_RETRY, NULL, 0, &busy), SETTLE_OK);
    l = claim_one(f, &w);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &good), SETTLE_OK);
    act(f, ACT_PRUNE, id);
    struct found x = fetches(f, id),
                 kept = artifacts(f, (struct artifact_filter){.queue = SV("q")});
    assert_int_equal(x.n, 1);
    assert_int_equal(x.f[0].f.status, 200);
    assert_int_equal(kept.n, 1);
    assert_int_equal(kept.v[0].job.v, id.v);
    assert_sv(kept.v[0].url, "https://example.org/a?b=ä");
    assert_int_equal(totals(f, (struct wall){0}, "q").fetched, 1);
    assert_clean(f);
    lose(f, &kept.v[0].id, 1, 1, 0); /* no job is left to run again */
    assert_int_equal(fetches(f, id).n, 0);
    end(f, &w);
}

static void test_history_takes_records_with_attempts(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct fetch_record busy = record(503, false), good = record(200, true);
    struct artifact a = bytes("raw", 1);
    for (int i = 0; i < 4; i++) {
        struct lease l = claim_one(f, &w);
        bool keeps = i == 1;
        assert_int_equal(
            leave(f, &l, i < 3 ? OUTCOME_RETRY : OUTCOME_FAILED, &a, keeps, keeps ? &good : &busy),
            SETTLE_OK);
    }
    struct wall none = {0}, soon = {f->s->ops->now(f->s).us + HOUR.us};
    bool more;
    do
        OK(f->s->ops->prune_history(f->s, none, soon, 10, &more, &f->e));
    while (more);
    struct found x = fetches(f, id);
    assert_int_equal(get(f, id).n_attempts, 1);
    assert_int_equal(x.n, 2); /* of the last attempt, and the one with an artifact */
    assert_int_equal(x.f[0].f.status, 503);
    assert_int_equal(x.f[1].f.status, 200);
    assert_clean(f);
    int64_t lost = x.f[1].artifact;
    lose(f, &lost, 1, 1, 1);
    assert_int_equal(fetches(f, id).n, 1);
    end(f, &w);
}

static void test_old_rows_go(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id first = fetched(f, &w, "q", 1), second = fetched(f, &w, "q", 2);
    struct wall now = f->s->ops->now(f->s), past = {now.us - HOUR.us}, future = {now.us + HOUR.us};
    int64_t rows = -1;
    bool more = true;
    OK(f->s->ops->artifacts_expire(f->s, past, 10, &rows, &more, &f->e));
    assert_int_equal(rows, 0);
    assert_false(more);
    act(f, ACT_PRUNE, first); /* its record goes with the artifact, the other's stays */
    OK(f->s->ops->artifacts_expire(f->s, future, 1, &rows, &more, &f->e));
    assert_int_equal(rows, 1);
    assert_true(more);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 1);
    assert_int_equal(fetches(f, first).n, 0);
    OK(f->s->ops->artifacts_expire(f->s, future, 10, &rows, &more, &f->e));
    assert_int_equal(rows, 1);
    assert_false(more);
    assert_int_equal(fetches(f, second).n, 1);
    assert_state(f, second, JOB_DONE);
    assert_int_equal(n_events(f, second, EVENT_ARTIFACT_LOST), 0);
    end(f, &w);
}

/* ---- elsewhere ---- */

static void test_bytes_may_move(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    fetched(f, &w, "q", 1);
    fetched(f, &w, "q", 2);
    struct found x = artifacts(f, (struct artifact_filter){0});
    const struct sv old = x.v[0].a.place;
    const struct artifact_move v[] = {
        {.id = x.v[0].id, .from = old, .to = SV("pack/new"), .stored = 77, .codec = CODEC_ZSTD},
        {.id = x.v[1].id, .from = SV("not its place"), .to = SV("pack/new"), .stored = 1},
        {.id = 1 << 30, .from = old, .to = SV("pack/new"), .stored = 1}};
    int64_t moved = -1;
    OK(f->s->ops->artifacts_move(f->s, v, 3, &moved, &f->e));
    assert_int_equal(moved, 1);
    struct found y = artifacts(f, (struct artifact_filter){0});
    assert_true(sv_eq(y.v[0].a.place, SV("pack/new")));
    assert_int_equal(y.v[0].a.stored, 77);
    assert_int_equal(y.v[0].a.codec, CODEC_ZSTD);
    assert_true(sv_eq(y.v[1].a.place, x.v[1].a.place));
    OK(f->s->ops->artifacts_move(f->s, v, 3, &moved, &f->e));
    assert_int_equal(moved, 0);
    OK(f->s->ops->artifacts_move(f->s, NULL, 0, &moved, &f->e));
    end(f, &w);
}

static struct copy_sum sum_of(struct fixture *f, struct store *s, enum copy_table t)
{
    AUTO_STR struct str scratch = STR_INIT(STR_OUTPUT);
    struct copy_value after[COPY_KEYS_MAX];
    struct copy_rows rows;
    struct copy_sum sum = {0};
    copy_first_key(t, after);
    OK(s->ops->copy->read_begin(s, &f->e));
    for (;;) {
        OK(s->ops->copy->read(s, t, after, &f->a, &rows, &f->e));
        if (!rows.n)
            break;
        for (size_t i = 0; i < rows.n; i++)
            copy_sum_add(&sum, t, copy_row(t, &rows, i), &scratch);
        copy_key_keep(t, copy_row(t, &rows, rows.n - 1), &f->a, after);
    }
    s->ops->copy->read_end(s);
    return sum;
}

static void test_what_was_left_is_copied(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = fetched(f, &w, "q", 1), pruned = fetched(f, &w, "only here", 2);
    job_id lost = fetched(f, &w, "q", 3);
    act(f, ACT_PRUNE, pruned);
    int64_t gone = artifacts(f, (struct artifact_filter){.job = lost}).v[0].id;
    lose(f, &gone, 1, 1, 1);
    struct lease l = claim_one(f, &w);
    struct fetch_record r = record(0, false);
    r.final_url = r.method = r.variant = r.address = r.http_version = SV_NONE;
    assert_int_equal(leave(f, &l, OUTCOME_FAILED, NULL, 0, &r), SETTLE_OK);
    remember(f, "key", SV("value"), HOUR);
    end(f, &w);
    char path[80];
    struct store *from = f->s, *to = copy_all(f, path);
    const enum copy_table tables[] = {COPY_ARTIFACT, COPY_FETCH, COPY_MEMORY};
    const int64_t rows[] = {2, 4, 1};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct copy_sum a = sum_of(f, from, tables[i]), b = sum_of(f, to, tables[i]);
        assert_true(copy_sum_eq(&a, &b));
        assert_int_equal(a.rows, rows[i]);
    }
    f->s = to;
    assert_clean(f);
    struct found x = artifacts(f, (struct artifact_filter){0});
    assert_int_equal(x.n, 2);
    assert_int_equal(x.v[0].job.v, id.v);
    assert_sv(x.v[1].queue, "only here");
    assert_sv(recall(f, "key"), "value");
    struct session w2 = start(f, "w2");
    fetched(f, &w2, "q", 5);
    assert_true(artifacts(f, (struct artifact_filter){0}).v[2].id > x.v[1].id);
    end(f, &w2);
    store_close(to);
    f->s = from;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jobs_of_lost_bytes_run_again),
        TEST(test_no_artifact_id_is_given_twice),
        TEST(test_a_lock_is_kept_when_its_job_runs_again),
        TEST(test_pruning_keeps_what_tells_of_bytes),
        TEST(test_history_takes_records_with_attempts),
        TEST(test_old_rows_go),
        TEST(test_bytes_may_move),
        TEST(test_what_was_left_is_copied),
    };
    return cmocka_run_group_tests_name("artifacts-later", tests, NULL, NULL);
}
