/* What settles leave behind and what workers remember, on both sides. Artifacts are known by their
 * number, like jobs. */
#include "sides.h"

#include <stdio.h>

enum { FILLS = 6, NAMES = 3, KEYS = 5 };

/* ---- arguments by chance ---- */

static struct artifact pick_artifact(struct sides *r, int name)
{
    static const char *const names[NAMES] = {"raw", "html", "shot.png"};
    static const char *const types[] = {NULL, "text/html", "image/png; über=1"};
    struct artifact a = {.name = sv_of(names[name]),
                         .type = sv_of(types[roll(r, 3)]),
                         .size = roll(r, 100000),
                         .stored = roll(r, 50000),
                         .codec = (enum codec)roll(r, 2),
                         .place = roll(r, 2) ? SV("files/ab/cd") : SV("files/00/11")};
    memset(a.sha256, roll(r, FILLS), sizeof(a.sha256));
    return a;
}

static struct sv maybe(struct sides *r, const char *text)
{
    return roll(r, 3) ? sv_of(text) : SV_NONE;
}

static struct fetch_record pick_record(struct sides *r, bool kept)
{
    static const int statuses[] = {200, 304, 404, 503, 0};
    struct fetch_record f = {.url = roll(r, 2) ? SV("https://a.example/ä?b=1") : SV("http://b/"),
                             .final_url = maybe(r, "https://a.example/there"),
                             .variant = maybe(r, "raw"),
                             .method = maybe(r, "GET"),
                             .status = kept ? 200 : statuses[roll(r, 5)],
                             .content_type = maybe(r, "text/html; charset=utf-8"),
                             .encoding = maybe(r, "gzip"),
                             .etag = maybe(r, "W/\"1\""),
                             .last_modified = maybe(r, "Mon, 01 Jan 2024 00:00:00 GMT"),
                             .headers = maybe(r, "{\"server\":\"x\"}"),
                             .wire_bytes = roll(r, 1000),
                             .body_bytes = roll(r, 5000),
                             .hashed = kept || roll(r, 2),
                             .dns = DUR_US(roll(r, 10)),
                             .connect = DUR_US(roll(r, 10)),
                             .tls = DUR_US(roll(r, 10)),
                             .first_byte = DUR_US(roll(r, 10)),
                             .total = DUR_US(roll(r, 100)),
                             .address = maybe(r, "192.0.2.1"),
                             .http_version = maybe(r, "1.1"),
                             .redirects = maybe(r, "[{\"status\":302,\"url\":\"http://b/\"}]"),
                             .kept = kept};
    memset(f.wire_sha256, roll(r, FILLS), sizeof(f.wire_sha256));
    memset(f.body_sha256, roll(r, FILLS), sizeof(f.body_sha256));
    return f;
}

void pick_left(struct sides *r, struct settle *v)
{
    struct artifact *a = arena_alloc(&r->a, NAMES * sizeof(*a));
    int n = roll(r, NAMES + 1), from = roll(r, NAMES);
    for (int i = 0; i < n; i++)
        a[i] = pick_artifact(r, (from + i) % NAMES);
    if (n && roll(r, 100) == 0)
        a[n - 1].name = roll(r, 2) ? SV("../x") : a[0].name; /* the second only if n > 1 */
    v->artifacts = a;
    v->n_artifacts = (size_t)n;
    if (roll(r, 3)) {
        struct fetch_record *f = arena_alloc(&r->a, sizeof(*f));
        *f = pick_record(r, n && roll(r, 2));
        v->fetch = f;
    }
    say(r, " leaves %d from %d, fetch %d", n, from,
        v->fetch ? v->fetch->status + 1000 * v->fetch->kept : -1);
}

static struct sv pick_memory(struct sides *r)
{
    static const char *const keys[KEYS] = {"robots:a", "robots:b", "ä", "x y", "never"};
    return sv_of(keys[roll(r, KEYS)]);
}

/* ---- what they show ---- */

static void add_text(struct str *out, const char *name, struct sv v)
{
    if (v.p)
        str_addf(out, " %s '" SV_FMT "'", name, SV_ARG(v));
}

static bool look_at_artifact(void *arg, const struct artifact_view *v)
{
    struct looking *l = arg;
    struct str *out = &l->d->text;
    if (l->note)
        ids_note(&l->d->artifacts, v->id);
    str_addf(out, "artifact %lld of %lld/%lld at %lld " SV_FMT " " SV_FMT " %lld:%lld:%s",
             (long long)ids_number(&l->d->artifacts, v->id),
             (long long)ids_number(&l->d->jobs, v->job.v), (long long)v->fence.v,
             (long long)mask_wall(l->r, v->created_at).us, SV_ARG(v->a.name), SV_ARG(v->a.place),
             (long long)v->a.size, (long long)v->a.stored, codec_name(v->a.codec));
    str_addf(out, " %d%d " SV_FMT " status %d", v->a.sha256[0], v->a.sha256[SHA256_LEN - 1],
             SV_ARG(v->queue), v->status);
    add_text(out, "type", v->a.type);
    add_text(out, "url", v->url);
    str_addc(out, '\n');
    return true;
}

static void show_artifacts(struct sides *r, const struct artifact_filter *f, bool fresh)
{
    counted(r, OP_artifacts);
    EACH_SIDE(r, d)
    {
        struct artifact_filter here = *f;
        struct looking l = {.r = r, .d = d, .note = fresh};
        here.job.v = f->job.v ? ids_native(&d->jobs, f->job.v) : 0;
        here.after = fresh && d->artifacts.n ? d->artifacts.v[d->artifacts.n - 1]
                     : f->after              ? ids_native(&d->artifacts, f->after)
                                             : 0;
        answer(d, d->s->ops->artifacts(d->s, &here, look_at_artifact, &l, &d->e));
    }
}

void show_new_artifacts(struct sides *r)
{
    show_artifacts(r, &(const struct artifact_filter){0}, true);
}

static bool look_at_fetch(void *arg, const struct fetch_view *v)
{
    struct looking *l = arg;
    struct str *out = &l->d->text;
    const struct fetch_record *f = &v->f;
    str_addf(out, "fetch %lld/%lld at %lld artifact %lld kept %d %d %lld:%lld",
             (long long)ids_number(&l->d->jobs, v->job.v), (long long)v->fence.v,
             (long long)mask_wall(l->r, v->at).us,
             (long long)ids_number(&l->d->artifacts, v->artifact), f->kept, f->status,
             (long long)f->wire_bytes, (long long)f->body_bytes);
    str_addf(out, " %lld %lld %lld %lld %lld", (long long)f->dns.us, (long long)f->connect.us,
             (long long)f->tls.us, (long long)f->first_byte.us, (long long)f->total.us);
    if (f->hashed)
        str_addf(out, " hashes %d %d", f->wire_sha256[0], f->body_sha256[SHA256_LEN - 1]);
    add_text(out, "url", f->url);
    add_text(out, "final", f->final_url);
    add_text(out, "variant", f->variant);
    add_text(out, "method", f->method);
    add_text(out, "type", f->content_type);
    add_text(out, "encoding", f->encoding);
    add_text(out, "etag", f->etag);
    add_text(out, "modified", f->last_modified);
    add_text(out, "headers", f->headers);
    add_text(out, "address", f->address);
    add_text(out, "http", f->http_version);
    add_text(out, "redirects", f->redirects);
    str_addc(out, '\n');
    return true;
}

static void show_fetches(struct sides *r, int64_t job)
{
    counted(r, OP_fetches);
    EACH_SIDE(r, d)
    {
        struct looking l = {.r = r, .d = d};
        job_id id = {ids_native(&d->jobs, job)};
        answer(d, d->s->ops->fetches(d->s, id, look_at_fetch, &l, &d->e));
    }
}

static void show_totals(struct sides *r, struct wall since, struct sv queue)
{
    counted(r, OP_fetch_totals);
    EACH_SIDE(r, d)
    {
        struct fetch_totals t;
        if (answer(d, d->s->ops->fetch_totals(d->s, since, queue, &t, &d->e)) < 0)
            continue;
        str_addf(&d->text, "totals %lld %lld %lld %lld %lld\n", (long long)t.fetched,
                 (long long)t.not_modified, (long long)t.failed, (long long)t.wire_bytes,
                 (long long)t.body_bytes);
    }
}

void show_kept(struct sides *r)
{
    show_artifacts(r, &(const struct artifact_filter){0}, false);
    for (int i = 0; i < r->n_jobs; i++)
        show_fetches(r, r->jobs[i].id);
    show_totals(r, (struct wall){0}, SV_NONE);
}

/* ---- operations ---- */

static void op_remember(struct sides *r)
{
    struct sv key = roll(r, 40) ? pick_memory(r) : SV("\xff");
    struct sv value = roll(r, 4) ? maybe(r, "some text \1 é") : SV("");
    struct dur ttl = roll(r, 3) ? LONG_TIME : DUR_US(0);
    say(r, "remember '" SV_FMT "' %zu %d for %lld", SV_ARG(key), value.n, value.p != NULL,
        (long long)ttl.us);
    counted(r, OP_remember);
    EACH_SIDE(r, d)
    answer(d, d->s->ops->remember(d->s, key, value, ttl, &d->e));
}

static void op_recall(struct sides *r)
{
    struct sv key = pick_memory(r);
    say(r, "recall '" SV_FMT "'", SV_ARG(key));
    counted(r, OP_recall);
    EACH_SIDE(r, d)
    {
        struct sv v = SV_NONE;
        answer(d, d->s->ops->recall(d->s, key, &d->a, &v, &d->e));
        str_addf(&d->text, "%d '" SV_FMT "'\n", v.p != NULL, SV_ARG(v));
    }
}

static int64_t pick_kept(struct sides *r)
{
    return 1 + roll(r, (int)r->side[0].artifacts.n + 1);
}

static void ask_artifacts(struct sides *r)
{
    struct artifact_filter f = {.newest = roll(r, 2), .limit = roll(r, 2) ? 0 : 1 + roll(r, 10)};
    f.job.v = roll(r, 3) ? 0 : pick_job(r);
    f.queue = roll(r, 4) ? SV_NONE : pick_queue(r);
    f.name = roll(r, 4) ? SV_NONE : SV("html");
    f.after = !f.job.v && !f.limit ? (int64_t)r->side[0].artifacts.n - 20 : 0;
    if (f.after < 0 || (f.limit && roll(r, 2)))
        f.after = roll(r, 2) ? 0 : pick_kept(r);
    say(r, "artifacts job %lld queue '" SV_FMT "' name %d newest %d after %lld limit %lld",
        (long long)f.job.v, SV_ARG(f.queue), f.name.p != NULL, f.newest, (long long)f.after,
        (long long)f.limit);
    show_artifacts(r, &f, false);
}

static void op_lost(struct sides *r)
{
    int64_t numbers[4];
    size_t n = (size_t)roll(r, 5);
    say(r, "artifacts_lost");
    for (size_t i = 0; i < n; i++) {
        numbers[i] = pick_kept(r);
        say(r, " %lld", (long long)numbers[i]);
    }
    counted(r, OP_artifacts_lost);
    EACH_SIDE(r, d)
    {
        int64_t ids[4], rows = -1, jobs = -1;
        for (size_t i = 0; i < n; i++)
            ids[i] = ids_native(&d->artifacts, numbers[i]);
        answer(d, d->s->ops->artifacts_lost(d->s, ids, n, &rows, &jobs, &d->e));
        str_addf(&d->text, "%lld %lld\n", (long long)rows, (long long)jobs);
    }
}

/* By the place that pick_kept's artifact has, or by another. */
struct place_of {
    int64_t id;
    char text[PLACE_MAX_BYTES + 1];
};

static bool find_place(void *arg, const struct artifact_view *v)
{
    struct place_of *p = arg;
    if (v->id == p->id)
        snprintf(p->text, sizeof(p->text), SV_FMT, SV_ARG(v->a.place));
    return v->id != p->id;
}

static void op_move(struct sides *r)
{
    int64_t number = pick_kept(r);
    bool wrong = roll(r, 4) == 0;
    int to = roll(r, 1000);
    say(r, "artifacts_move %lld %d to %d", (long long)number, wrong, to);
    counted(r, OP_artifacts_move);
    EACH_SIDE(r, d)
    {
        struct place_of p = {.id = ids_native(&d->artifacts, number), .text = "nowhere"};
        const struct artifact_filter all = {0};
        char place[64];
        int64_t moved = -1;
        answer(d, d->s->ops->artifacts(d->s, &all, find_place, &p, &d->e));
        snprintf(place, sizeof(place), "pack/%d", to);
        const struct artifact_move v = {.id = p.id,
                                        .from = wrong ? SV("elsewhere") : sv_of(p.text),
                                        .to = sv_of(place),
                                        .stored = to,
                                        .codec = to % 2};
        answer(d, d->s->ops->artifacts_move(d->s, &v, 1, &moved, &d->e));
        str_addf(&d->text, "%lld\n", (long long)moved);
    }
}

/* Nothing or a few of the oldest. */
static void op_expire(struct sides *r)
{
    struct wall before = {r->now.us + (roll(r, 2) ? -1 : 1) * LONG_TIME.us};
    int max = 1 + roll(r, 2);
    say(r, "artifacts_expire %d", max);
    counted(r, OP_artifacts_expire);
    EACH_SIDE(r, d)
    {
        int64_t rows = -1;
        bool more = false;
        answer(d, d->s->ops->artifacts_expire(d->s, before, max, &rows, &more, &d->e));
        str_addf(&d->text, "%lld %d\n", (long long)rows, more);
    }
}

void sides_keep(struct sides *r)
{
    int what = roll(r, 8);
    if (what == 7) {
        op_move(r);
    } else if (what == 3) {
        op_expire(r);
    } else if (what == 0) {
        op_remember(r);
    } else if (what == 1) {
        op_recall(r);
    } else if (what == 2) {
        ask_artifacts(r);
    } else if (what == 4) {
        op_lost(r);
    } else if (what == 5) {
        say(r, "fetches");
        show_fetches(r, pick_job(r));
    } else {
        struct wall since = {r->now.us + (roll(r, 4) ? -1 : 1) * LONG_TIME.us};
        say(r, "fetch_totals");
        show_totals(r, since, roll(r, 2) ? SV_NONE : pick_queue(r));
    }
}
