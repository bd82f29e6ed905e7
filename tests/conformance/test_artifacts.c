/* What jobs leave behind: artifacts and records of fetches come with the settle or not at all (I2,
 * I9, I10), outlive their jobs, and are told when their bytes are lost. What workers remember. */
#include "copy.h"
#include "operating.h"

/* An artifact whose bytes are told apart by `fill`. */
static struct artifact bytes(const char *name, unsigned char fill)
{
    struct artifact a = {.name = sv_of(name),
                         .type = SV("text/html"),
                         .size = 100 + fill,
                         .stored = 50,
                         .codec = CODEC_ZSTD,
                         .place = SV("files/ab/cdef")};
    memset(a.sha256, fill, sizeof(a.sha256));
    return a;
}

static struct fetch_record record(int status, bool kept)
{
    struct fetch_record r = {.url = SV("https://example.org/a?b=ä"),
                             .final_url = SV("https://example.org/b"),
                             .variant = SV("raw"),
                             .method = SV("GET"),
                             .status = status,
                             .content_type = SV("text/html; charset=utf-8"),
                             .encoding = SV("gzip"),
                             .etag = SV("\"x\""),
                             .last_modified = SV("Mon, 01 Jan 2024 00:00:00 GMT"),
                             .headers = SV("{\"server\":\"nginx\"}"),
                             .wire_bytes = 1000,
                             .body_bytes = 3000,
                             .hashed = kept,
                             .dns = DUR_US(1),
                             .connect = DUR_US(2),
                             .tls = DUR_US(3),
                             .first_byte = DUR_US(4),
                             .total = DUR_US(5),
                             .address = SV("2001:db8::1"),
                             .http_version = SV("2"),
                             .redirects =
                                 SV("[{\"status\":301,\"url\":\"https://example.org/a\"}]"),
                             .kept = kept};
    memset(r.wire_sha256, 7, sizeof(r.wire_sha256));
    memset(r.body_sha256, 8, sizeof(r.body_sha256));
    return r;
}

static enum settle_outcome leave(struct fixture *f, const struct lease *l, enum outcome o,
                                 const struct artifact *a, size_t n, const struct fetch_record *r)
{
    struct settle v = settle_of(l, o);
    v.artifacts = a;
    v.n_artifacts = n;
    v.fetch = r;
    return settle(f, &v);
}

/* A job that has ended and left one artifact with the record of its fetch. */
static job_id fetched(struct fixture *f, const struct session *w, const char *queue,
                      unsigned char fill)
{
    struct job_spec s = spec(queue, "k", 1000);
    job_id id = add(f, &s);
    struct lease l = claim_one(f, w);
    assert_int_equal(l.id.v, id.v);
    struct artifact a = bytes("raw", fill);
    struct fetch_record r = record(200, true);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    return id;
}

struct found {
    struct artifact_view v[64];
    struct fetch_view f[64];
    size_t n, stop;
    struct arena *a;
};

static struct sv kept_text(struct found *x, struct sv s)
{
    return s.p ? sv_make(arena_strndup(x->a, s.p, s.n), s.n) : SV_NONE;
}

static bool see_artifact(void *arg, const struct artifact_view *v)
{
    struct found *x = arg;
    assert_true(x->n < ARRAY_LEN(x->v));
    struct artifact_view *to = &x->v[x->n++];
    *to = *v;
    to->a.name = kept_text(x, v->a.name);
    to->a.type = kept_text(x, v->a.type);
    to->a.place = kept_text(x, v->a.place);
    to->queue = kept_text(x, v->queue);
    to->url = kept_text(x, v->url);
    return x->n != x->stop;
}

static struct found look(struct fixture *f, struct artifact_filter filter)
{
    struct found x = {.a = &f->a};
    OK(f->s->ops->artifacts(f->s, &filter, see_artifact, &x, &f->e));
    return x;
}

static bool see_fetch(void *arg, const struct fetch_view *v)
{
    struct found *x = arg;
    assert_true(x->n < ARRAY_LEN(x->f));
    struct fetch_view *to = &x->f[x->n++];
    struct sv *const texts[] = {&to->f.url,          &to->f.final_url, &to->f.variant,
                                &to->f.method,       &to->f.encoding,  &to->f.content_type,
                                &to->f.etag,         &to->f.headers,   &to->f.last_modified,
                                &to->f.http_version, &to->f.address,   &to->f.redirects};
    *to = *v;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = kept_text(x, *texts[i]);
    return x->n != x->stop;
}

static struct found fetches(struct fixture *f, job_id id)
{
    struct found x = {.a = &f->a};
    OK(f->s->ops->fetches(f->s, id, see_fetch, &x, &f->e));
    return x;
}

static struct fetch_totals totals(struct fixture *f, struct wall since, const char *queue)
{
    struct fetch_totals t;
    OK(f->s->ops->fetch_totals(f->s, since, sv_of(queue), &t, &f->e));
    return t;
}

/* ---- with the settle ---- */

static void test_I9_artifacts_come_with_the_settle(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id id = fetched(f, &w, "q", 1);
    struct found x = look(f, (struct artifact_filter){0});
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
    struct found x = fetches(f, id), kept = look(f, (struct artifact_filter){.job = id});
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
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 0);
    assert_int_equal(fetches(f, id).n, 0);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    a = bytes("raw", 2); /* the same settle again, and what it would say now */
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_STALE);
    struct found x = look(f, (struct artifact_filter){0});
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
    struct found x = look(f, (struct artifact_filter){0});
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
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 0);
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
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 0);
    assert_int_equal(fetches(f, id).n, 0);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, &r), SETTLE_OK);
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 1);
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
    struct found all = look(f, (struct artifact_filter){0});
    assert_int_equal(all.n, 4);
    for (size_t i = 1; i < all.n; i++)
        assert_true(all.v[i].id > all.v[i - 1].id);
    assert_int_equal(look(f, (struct artifact_filter){.job = one}).n, 3);
    assert_int_equal(look(f, (struct artifact_filter){.job = two}).n, 1);
    assert_int_equal(look(f, (struct artifact_filter){.queue = SV("q")}).n, 3);
    assert_int_equal(look(f, (struct artifact_filter){.queue = SV("none")}).n, 0);
    assert_int_equal(look(f, (struct artifact_filter){.name = SV("html")}).n, 1);
    assert_int_equal(look(f, (struct artifact_filter){.sha256 = a[1].sha256}).n, 3);
    struct found newest = look(f, (struct artifact_filter){.newest = true});
    assert_int_equal(newest.n, 3); /* of job one the old raw is left out */
    assert_int_equal(newest.v[0].job.v, two.v);
    assert_int_equal(newest.v[1].a.sha256[0], 9);
    assert_sv(newest.v[2].a.name, "html");
    struct artifact_filter both = {.job = one, .newest = true, .name = SV("raw")};
    assert_int_equal(look(f, both).v[0].a.sha256[0], 9);
    both.sha256 = a[1].sha256;
    assert_int_equal(look(f, both).n, 0);
    int64_t after = 0;
    for (size_t i = 0; i < all.n; i++) { /* one at a time */
        struct found x = look(f, (struct artifact_filter){.after = after, .limit = 1});
        assert_int_equal(x.n, 1);
        assert_int_equal(x.v[0].id, all.v[i].id);
        after = x.v[0].id;
    }
    assert_int_equal(look(f, (struct artifact_filter){.after = after}).n, 0);
    struct found stopped = {.a = &f->a, .stop = 2};
    struct artifact_filter any = {0};
    OK(f->s->ops->artifacts(f->s, &any, see_artifact, &stopped, &f->e));
    assert_int_equal(stopped.n, 2);
    end(f, &w);
}

/* More than a page of them: none is left out, none is told twice. */
static bool count_rising(void *arg, const struct artifact_view *v)
{
    int64_t *seen = arg;
    assert_true(v->id > seen[1]);
    seen[0]++;
    seen[1] = v->id;
    return true;
}

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

static void test_bytes_are_known_by_their_hash(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    fetched(f, &w, "q", 1);
    fetched(f, &w, "q", 1);
    fetched(f, &w, "q", 3);
    unsigned char hashes[4][SHA256_LEN];
    bool known[4];
    for (int i = 0; i < 4; i++)
        memset(hashes[i], i, SHA256_LEN);
    OK(f->s->ops->bytes_known(f->s, (const unsigned char(*)[SHA256_LEN])hashes, 4, known, &f->e));
    assert_false(known[0]);
    assert_true(known[1]);
    assert_false(known[2]);
    assert_true(known[3]);
    OK(f->s->ops->bytes_known(f->s, NULL, 0, NULL, &f->e));
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
    t = totals(f, none, NULL);
    assert_int_equal(t.fetched, 2);
    assert_int_equal(t.not_modified, 1);
    assert_int_equal(t.failed, 2);
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

static void test_jobs_of_lost_bytes_run_again(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    job_id done = fetched(f, &w, "q", 1), gone = fetched(f, &w, "q", 2);
    job_id kept = fetched(f, &w, "q", 3);
    struct found x = look(f, (struct artifact_filter){0});
    act(f, ACT_PRUNE, gone);
    job_id runs = add_plain(f, 0);
    struct lease held = claim_one(f, &w);
    struct artifact two[] = {bytes("a", 4), bytes("b", 4)};
    assert_int_equal(leave(f, &held, OUTCOME_RETRY, two, 2, NULL), SETTLE_OK);
    held = claim_one(f, &w);
    int64_t ids[6] = {1 << 30, x.v[1].id, x.v[0].id, 0, 0, 0};
    struct found of_runs = look(f, (struct artifact_filter){.job = runs});
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
    AUTO_STR struct str detail = STR_INIT(STR_LINE), want = STR_INIT(STR_LINE);
    const struct event_filter of = {.job = done, .types = 1u << EVENT_ARTIFACT_LOST};
    OK(f->s->ops->events(f->s, &of, keep_detail, &detail, &f->e));
    str_adds(&want, "{\"name\":\"raw\",\"sha256\":\"");
    for (int i = 0; i < SHA256_LEN; i++)
        str_adds(&want, "01");
    str_adds(&want, "\"}");
    assert_string_equal(str_cstr(&detail), str_cstr(&want));
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 1);
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
    struct found anew = look(f, (struct artifact_filter){.job = done});
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
    int64_t first = look(f, (struct artifact_filter){0}).v[0].id;
    lose(f, &first, 1, 1, 1);
    struct lease l = claim_one(f, &w);
    assert_int_equal(l.id.v, id.v);
    struct artifact a = bytes("raw", 1);
    assert_int_equal(leave(f, &l, OUTCOME_DONE, &a, 1, NULL), SETTLE_OK);
    lose(f, &first, 1, 0, 0);
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 1);
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
    int64_t id = look(f, (struct artifact_filter){0}).v[0].id;
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
    struct found x = fetches(f, id), kept = look(f, (struct artifact_filter){.queue = SV("q")});
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

/* ---- remembering ---- */

static struct sv recall(struct fixture *f, const char *key)
{
    struct sv out = SV("untouched");
    OK(f->s->ops->recall(f->s, sv_of(key), &f->a, &out, &f->e));
    return out;
}

static void remember(struct fixture *f, const char *key, struct sv value, struct dur ttl)
{
    OK(f->s->ops->remember(f->s, sv_of(key), value, ttl, &f->e));
}

static void test_what_is_remembered_is_recalled(void **state)
{
    struct fixture *f = *state;
    const struct sv odd = {"a\0\xff", 3};
    assert_null(recall(f, "robots:a").p);
    remember(f, "robots:a", SV("User-agent: *"), HOUR);
    remember(f, "robots:b", SV(""), HOUR);
    remember(f, "odd", odd, HOUR);
    assert_sv(recall(f, "robots:a"), "User-agent: *");
    assert_non_null(recall(f, "robots:b").p);
    assert_int_equal(recall(f, "robots:b").n, 0);
    assert_true(sv_eq(recall(f, "odd"), odd));
    remember(f, "robots:a", SV("other"), HOUR);
    assert_sv(recall(f, "robots:a"), "other");
    struct store *again = open_again(f);
    struct sv out;
    OK(again->ops->recall(again, SV("robots:a"), &f->a, &out, &f->e));
    assert_sv(out, "other");
    store_close(again);
    remember(f, "robots:a", SV_NONE, HOUR);
    assert_null(recall(f, "robots:a").p);
    remember(f, "never", SV_NONE, HOUR);
    FAILS(f->s->ops->remember(f->s, SV(""), SV("x"), HOUR, &f->e), PAWL_EINPUT);
    FAILS(f->s->ops->remember(f->s, SV("\xff"), SV("x"), HOUR, &f->e), PAWL_EINPUT);
}

static int64_t n_remembered(struct fixture *f)
{
    struct copy_value after[COPY_KEYS_MAX];
    struct copy_rows rows;
    copy_first_key(COPY_MEMORY, after);
    OK(f->s->ops->copy->read_begin(f->s, &f->e));
    OK(f->s->ops->copy->read(f->s, COPY_MEMORY, after, &f->a, &rows, &f->e));
    f->s->ops->copy->read_end(f->s);
    return (int64_t)rows.n;
}

static void test_memory_fades(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    remember(f, "stays", SV("x"), HOUR);
    remember(f, "fades", SV("x"), DUR_US(1));
    int64_t until = f->s->ops->now(f->s).us + 1000;
    while (f->s->ops->now(f->s).us <= until)
        ;
    assert_null(recall(f, "fades").p);
    assert_sv(recall(f, "stays"), "x");
    assert_int_equal(n_remembered(f), 2);
    act(f, ACT_PRUNE, fetched(f, &w, "q", 1)); /* with the keys that are over */
    assert_int_equal(n_remembered(f), 1);
    for (int i = 0; i < 20; i++) { /* and bit by bit with every other */
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        remember(f, key, SV("x"), DUR_US(0));
    }
    remember(f, "new", SV("x"), HOUR);
    assert_in_range(n_remembered(f), 2, 4);
    assert_sv(recall(f, "new"), "x");
    assert_sv(recall(f, "stays"), "x");
    end(f, &w);
}

/* ---- copies ---- */

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
    int64_t gone = look(f, (struct artifact_filter){.job = lost}).v[0].id;
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
    struct found x = look(f, (struct artifact_filter){0});
    assert_int_equal(x.n, 2);
    assert_int_equal(x.v[0].job.v, id.v);
    assert_sv(x.v[1].queue, "only here");
    assert_sv(recall(f, "key"), "value");
    struct session w2 = start(f, "w2");
    fetched(f, &w2, "q", 5);
    assert_true(look(f, (struct artifact_filter){0}).v[2].id > x.v[1].id);
    end(f, &w2);
    store_close(to);
    f->s = from;
}

/* ---- bytes that lie elsewhere, and old ones ---- */

static void test_bytes_may_move(void **state)
{
    struct fixture *f = *state;
    struct session w = start(f, "w");
    fetched(f, &w, "q", 1);
    fetched(f, &w, "q", 2);
    struct found x = look(f, (struct artifact_filter){0});
    const struct sv old = x.v[0].a.place;
    const struct artifact_move v[] = {
        {.id = x.v[0].id, .from = old, .to = SV("pack/new"), .stored = 77, .codec = CODEC_ZSTD},
        {.id = x.v[1].id, .from = SV("not its place"), .to = SV("pack/new"), .stored = 1},
        {.id = 1 << 30, .from = old, .to = SV("pack/new"), .stored = 1}};
    int64_t moved = -1;
    OK(f->s->ops->artifacts_move(f->s, v, 3, &moved, &f->e));
    assert_int_equal(moved, 1);
    struct found y = look(f, (struct artifact_filter){0});
    assert_true(sv_eq(y.v[0].a.place, SV("pack/new")));
    assert_int_equal(y.v[0].a.stored, 77);
    assert_int_equal(y.v[0].a.codec, CODEC_ZSTD);
    assert_true(sv_eq(y.v[1].a.place, x.v[1].a.place));
    OK(f->s->ops->artifacts_move(f->s, v, 3, &moved, &f->e));
    assert_int_equal(moved, 0);
    OK(f->s->ops->artifacts_move(f->s, NULL, 0, &moved, &f->e));
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
    assert_int_equal(look(f, (struct artifact_filter){0}).n, 1);
    assert_int_equal(fetches(f, first).n, 0);
    OK(f->s->ops->artifacts_expire(f->s, future, 10, &rows, &more, &f->e));
    assert_int_equal(rows, 1);
    assert_false(more);
    assert_int_equal(fetches(f, second).n, 1);
    assert_state(f, second, JOB_DONE);
    assert_int_equal(n_events(f, second, EVENT_ARTIFACT_LOST), 0);
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
        TEST(test_bytes_are_known_by_their_hash),
        TEST(test_totals_since_a_time),
        TEST(test_jobs_of_lost_bytes_run_again),
        TEST(test_no_artifact_id_is_given_twice),
        TEST(test_a_lock_is_kept_when_its_job_runs_again),
        TEST(test_pruning_keeps_what_tells_of_bytes),
        TEST(test_history_takes_records_with_attempts),
        TEST(test_what_is_remembered_is_recalled),
        TEST(test_bytes_may_move),
        TEST(test_old_rows_go),
        TEST(test_memory_fades),
        TEST(test_what_was_left_is_copied),
    };
    return cmocka_run_group_tests_name("artifacts", tests, NULL, NULL);
}
