/* What jobs leave behind: artifacts and records of fetches come with the settle or not at all (I2,
 * I9, I10), and are found again. */
#include "keeping.h"

/* ---- with the settle ---- */

static void test_I9_artifacts_come_with_the_settle(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = fetched(f, &w, "q", 1);
    struct found x = artifacts(f, (struct artifact_filter){0});
    assert_int_equal(x.n, 1);
    struct artifact_view *v = &x.v[0];
    struct artifact a = bytes("raw", 1);
    assert_int_equal(v->job.v, id.v);
    assert_int_equal(v->fence.v, get(f, id).fence.v);
    assert_int_equal(v->created_at.us, get(f, id).finished_at.us);
    assert_sv(v->a.name, "raw");
    assert_sv(v->a.type, "text/html");
    assert_sv(v->a.place, "files/ab/cdef");
    assert_memory_equal(v->a.sha256, a.sha256, SHA256_LEN);
    assert_int_equal(v->a.size, 101);
    assert_int_equal(v->a.stored, 50);
    assert_int_equal(v->a.codec, CODEC_ZSTD);
    assert_sv(v->queue, "q");
    assert_sv(v->url, "https://example.org/a?b=ä");
    assert_int_equal(v->status, 200);
    end(f, &w);
}

static void assert_record(const struct fetch_view *v, const struct fetch_record *r)
{
    const struct fetch_record *g = &v->f;
    const struct sv is[] = {g->url,          g->final_url, g->variant,      g->method,
                            g->content_type, g->encoding,  g->etag,         g->last_modified,
                            g->headers,      g->address,   g->http_version, g->redirects};
    const struct sv want[] = {r->url,          r->final_url, r->variant,      r->method,
                              r->content_type, r->encoding,  r->etag,         r->last_modified,
                              r->headers,      r->address,   r->http_version, r->redirects};
    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        assert_int_equal(!is[i].p, !want[i].p);
        assert_true(sv_eq(is[i], want[i]));
    }
    assert_int_equal(g->status, r->status);
    assert_int_equal(g->wire_bytes, r->wire_bytes);
    assert_int_equal(g->body_bytes, r->body_bytes);
    assert_int_equal(g->hashed, r->hashed);
    assert_int_equal(g->kept, r->kept);
    assert_int_equal(g->dns.us, r->dns.us);
    assert_int_equal(g->connect.us, r->connect.us);
    assert_int_equal(g->tls.us, r->tls.us);
    assert_int_equal(g->first_byte.us, r->first_byte.us);
    assert_int_equal(g->total.us, r->total.us);
    if (r->hashed) {
        assert_memory_equal(g->wire_sha256, r->wire_sha256, SHA256_LEN);
        assert_memory_equal(g->body_sha256, r->body_sha256, SHA256_LEN);
    }
}

static void test_records_are_told_newest_first(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease first = claim_one(f, &w);
    struct fetch_record busy = record(503, false);
    busy.final_url = busy.headers = busy.etag = busy.redirects = SV_NONE;
    assert_int_equal(leave(f, &first, OUTCOME_RETRY, NULL, 0, &busy), SETTLE_OK);
    struct lease second = claim_one(f, &w);
    struct artifact a[] = {bytes("raw", 1), bytes("shot", 2)};
    struct fetch_record good = record(200, true);
    assert_int_equal(leave(f, &second, OUTCOME_DONE, a, 2, &good), SETTLE_OK);
    struct found x = fetches(f, id), kept = artifacts(f, (struct artifact_filter){.job = id});
    assert_int_equal(x.n, 2);
    assert_record(&x.f[0], &good);
    assert_record(&x.f[1], &busy);
    assert_int_equal(x.f[0].fence.v, second.fence.v);
    assert_int_equal(x.f[0].job.v, id.v);
    assert_int_equal(x.f[0].at.us, get(f, id).finished_at.us);
    assert_int_equal(x.f[1].artifact, 0);
    assert_int_equal(kept.n, 2);
    assert_int_equal(x.f[0].artifact, kept.v[0].id);
    assert_null(kept.v[1].url.p); /* the page, and what was made of it */
    assert_int_equal(kept.v[1].status, 0);
    struct found one = {.a = &f->a, .stop = 1};
    OK(f->s->ops->fetches(f->s, id, see_fetch, &one, &f->e));
    assert_int_equal(one.n, 1);
    end(f, &w);
}

static void test_I2_a_stale_settle_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease old = claim_one(f, &w);
    settle_ok(f, &old, OUTCOME_RELEASED);
    struct artifact a = bytes("raw", 1);
    struct fetch_record r = record(200, true);
    assert_int_equal(leave(f, &old, OUTCOME_DONE, &a, 1, &r), SETTLE_STALE);
    struct lease l = claim_one(f, &w);
    assert_int_equal(leave(f, &old, OUTCOME_DONE, &a, 1, &r), SETTLE_STALE);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 0);
    assert_int_equal(fetches(f, id).n, 0);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    a = bytes("raw", 2); /* the same settle again, and what it would say now */
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_STALE);
    struct found x = artifacts(f, (struct artifact_filter){0});
    assert_int_equal(x.n, 1);
    assert_int_equal(x.v[0].a.sha256[0], 1);
    assert_int_equal(fetches(f, id).n, 1);
    end(f, &w);
}

/* Many at once, some stale, some with nothing: a store may treat those that end alike as one. */
static void test_a_batch_keeps_them_apart(void **state)
{
    enum { N = 48 };
    struct fixture *f = *state;
    struct session w = start(f, "w");
    for (int i = 0; i < N; i++)
        add_plain(f, 0);
    struct claim_result c = claim(f, &w, "k", N);
    assert_int_equal(c.n, N);
    struct settle v[N];
    struct artifact a[N];
    struct fetch_record r[N];
    enum settle_outcome out[N];
    for (int i = 0; i < N; i++) {
        v[i] = settle_of(&c.leases[i], OUTCOME_DONE);
        v[i].hint = c.leases[i].hint;
        a[i] = bytes("page", (unsigned char)i);
        r[i] = record(200, true);
        if (i % 3 == 2)
            continue;
        v[i].artifacts = &a[i];
        v[i].n_artifacts = 1;
        v[i].fetch = &r[i];
    }
    for (int again = 0; again < 2; again++) {
        OK(store_settle(f->s, v, N, out, &f->e));
        for (int i = 0; i < N; i++)
            assert_int_equal(out[i], again ? SETTLE_STALE : SETTLE_OK);
    }
    struct found x = artifacts(f, (struct artifact_filter){0});
    assert_int_equal(x.n, N / 3 * 2);
    for (size_t i = 0; i < x.n; i++) {
        size_t which = i / 2 * 3 + i % 2;
        assert_int_equal(x.v[i].job.v, c.leases[which].id.v);
        assert_int_equal(x.v[i].a.sha256[5], which);
        assert_int_equal(fetches(f, x.v[i].job).f[0].artifact, x.v[i].id);
    }
    assert_int_equal(fetches(f, c.leases[2].id).n, 0);
    end(f, &w);
}

static void test_what_is_out_of_bounds_is_refused_whole(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    struct artifact good = bytes("raw", 1);
    struct artifact bad[6] = {good, good, good, good, good, good};
    bad[0].name = SV("../raw");
    bad[1].name = SV("");
    bad[2].place = SV("");
    bad[3].type = SV("text/\xff");
    bad[4].size = -1;
    enum settle_outcome out;
    struct settle v = settle_of(&l, OUTCOME_DONE);
    for (int i = 0; i < 5; i++) {
        v.artifacts = &bad[i];
        v.n_artifacts = 1;
        FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    }
    v.artifacts = &bad[4];
    bad[4] = good;
    v.n_artifacts = 2; /* one name twice */
    FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    v.n_artifacts = 0;
    struct fetch_record r = record(200, true); /* keeps what is not there */
    v.fetch = &r;
    FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    r = record(200, false);
    r.etag = SV("\"\xe4\"");
    FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    r.etag = SV_NONE;
    r.url = SV_NONE;
    FAILS(store_settle(f->s, &v, 1, &out, &f->e), PAWL_EINPUT);
    assert_state(f, id, JOB_RUNNING);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 0);
    end(f, &w);
}

static void test_nothing_stays_of_a_group_that_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = add_plain(f, 0);
    struct lease l = claim_one(f, &w);
    struct artifact a = bytes("raw", 1);
    struct fetch_record r = record(200, true);
    OK(f->s->ops->group_begin(f->s, &f->e));
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    OK(f->s->ops->remember(f->s, SV("k"), SV("v"), HOUR, &f->e));
    f->s->ops->group_abort(f->s);
    assert_state(f, id, JOB_RUNNING);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 0);
    assert_int_equal(fetches(f, id).n, 0);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    assert_int_equal(artifacts(f, (struct artifact_filter){0}).n, 1);
    end(f, &w);
}

/* ---- looking ---- */

static void test_filters_and_cursor(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id one = fetched(f, &w, "q", 1), two = fetched(f, &w, "other", 1);
    act(f, ACT_RETRY, one);
    struct lease l = claim_one(f, &w);
    struct artifact a[] = {bytes("raw", 9), bytes("html", 1)};
    assert_int_equal(leave(f, &l, OUTCOME_DONE, a, 2, NULL), SETTLE_OK);
    struct found all = artifacts(f, (struct artifact_filter){0});
    assert_int_equal(all.n, 4);
    for (size_t i = 1; i < all.n; i++)
        assert_true(all.v[i].id > all.v[i - 1].id);
    assert_int_equal(artifacts(f, (struct artifact_filter){.job = one}).n, 3);
    assert_int_equal(artifacts(f, (struct artifact_filter){.job = two}).n, 1);
    assert_int_equal(artifacts(f, (struct artifact_filter){.queue = SV("q")}).n, 3);
    assert_int_equal(artifacts(f, (struct artifact_filter){.queue = SV("none")}).n, 0);
    assert_int_equal(artifacts(f, (struct artifact_filter){.name = SV("html")}).n, 1);
    struct found newest = artifacts(f, (struct artifact_filter){.newest = true});
    assert_int_equal(newest.n, 3); /* of job one the old raw is left out */
    assert_int_equal(newest.v[0].job.v, two.v);
    assert_int_equal(newest.v[1].a.sha256[0], 9);
    assert_sv(newest.v[2].a.name, "html");
    struct artifact_filter both = {.job = one, .newest = true, .name = SV("raw")};
    assert_int_equal(artifacts(f, both).v[0].a.sha256[0], 9);
    int64_t after = 0;
    for (size_t i = 0; i < all.n; i++) { /* one at a time */
        struct found x = artifacts(f, (struct artifact_filter){.after = after, .limit = 1});
        assert_int_equal(x.n, 1);
        assert_int_equal(x.v[0].id, all.v[i].id);
        after = x.v[0].id;
    }
    assert_int_equal(artifacts(f, (struct artifact_filter){.after = after}).n, 0);
    struct found stopped = {.a = &f->a, .stop = 2};
    struct artifact_filter any = {0};
    OK(f->s->ops->artifacts(f->s, &any, see_artifact, &stopped, &f->e));
    assert_int_equal(stopped.n, 2);
    end(f, &w);
}

static bool count_rising(void *arg, const struct artifact_view *v)
{
    int64_t *seen = arg;
    assert_true(v->id > seen[1]);
    seen[0]++;
    seen[1] = v->id;
    return true;
}

/* More than a page of them: none is left out, none is told twice. */
static void test_many_artifacts(void **state)
{
    enum { JOBS = 25, EACH = 50 };
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct artifact a[EACH];
    char names[EACH][8];
    for (int i = 0; i < EACH; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        a[i] = bytes(names[i], (unsigned char)i);
    }
    for (int i = 0; i < JOBS; i++) {
        add_plain(f, 0);
        struct lease l = claim_one(f, &w);
        assert_int_equal(leave(f, &l, OUTCOME_DONE, a, EACH, NULL), SETTLE_OK);
    }
    const struct artifact_filter all = {0}, some = {.name = SV("n7")}, newest = {.newest = true};
    int64_t seen[2] = {0};
    OK(f->s->ops->artifacts(f->s, &all, count_rising, seen, &f->e));
    assert_int_equal(seen[0], JOBS * EACH);
    memset(seen, 0, sizeof(seen));
    OK(f->s->ops->artifacts(f->s, &some, count_rising, seen, &f->e));
    assert_int_equal(seen[0], JOBS);
    memset(seen, 0, sizeof(seen));
    OK(f->s->ops->artifacts(f->s, &newest, count_rising, seen, &f->e));
    assert_int_equal(seen[0], JOBS * EACH);
    end(f, &w);
}

static void test_totals_since_a_time(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    struct wall none = {0};
    struct fetch_totals t = totals(f, none, NULL);
    assert_int_equal(t.fetched + t.not_modified + t.failed + t.wire_bytes + t.body_bytes, 0);
    fetched(f, &w, "q", 1);
    fetched(f, &w, "other", 1);
    const int others[] = {304, 404, 0};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        add_plain(f, 0);
        struct lease l = claim_one(f, &w);
        struct fetch_record r = record(others[i], false);
        r.wire_bytes = 10;
        r.body_bytes = 0;
        assert_int_equal(leave(f, &l, OUTCOME_SKIPPED, NULL, 0, &r), SETTLE_OK);
    }
    add_plain(f, 0); /* a 304 that nobody asked for */
    struct lease unasked = claim_one(f, &w);
    struct fetch_record r = record(304, false);
    r.wire_bytes = r.body_bytes = 0;
    assert_int_equal(leave(f, &unasked, OUTCOME_FAILED, NULL, 0, &r), SETTLE_OK);
    t = totals(f, none, NULL);
    assert_int_equal(t.fetched, 2);
    assert_int_equal(t.not_modified, 1);
    assert_int_equal(t.failed, 3);
    assert_int_equal(t.wire_bytes, 2030);
    assert_int_equal(t.body_bytes, 6000);
    t = totals(f, none, "other");
    assert_int_equal(t.fetched, 1);
    assert_int_equal(t.failed, 0);
    assert_int_equal(totals(f, none, "nowhere").fetched, 0);
    struct wall later = {f->s->ops->now(f->s).us + HOUR.us};
    assert_int_equal(totals(f, later, NULL).fetched, 0);
    end(f, &w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_I9_artifacts_come_with_the_settle),
        TEST(test_records_are_told_newest_first),
        TEST(test_I2_a_stale_settle_leaves_nothing),
        TEST(test_a_batch_keeps_them_apart),
        TEST(test_what_is_out_of_bounds_is_refused_whole),
        TEST(test_nothing_stays_of_a_group_that_is_given_up),
        TEST(test_filters_and_cursor),
        TEST(test_many_artifacts),
        TEST(test_totals_since_a_time),
    };
    return cmocka_run_group_tests_name("artifacts", tests, NULL, NULL);
}
