/* What a plan is made of: nothing here writes anything. */
#include "artifacts_out.h"
#include "http.h"
#include "limits_out.h"
#include "plan.h"
#include "policy.h"
#include "text_set.h"
#include "url_list.h"
#include <sys/statvfs.h>

enum {
    SAMPLE_JOBS = 200,     /* whose durations are looked at */
    SAMPLE_BODIES = 50000, /* whose sizes are */
};

/* ---- items ---- */

static bool count_job(void *arg, const struct job_view *job)
{
    struct plan *p = arg;
    tally_get(&p->lanes, job->queue, job->host.p ? job->host : SV(""))->n++;
    return true;
}

int plan_load_queue(struct cli *c, struct plan *p, struct sv queue, struct pawl_err *err)
{
    const struct selection sel = {
        .queue = queue, .kind = SV("fetch"), .states = 1u << JOB_QUEUED | 1u << JOB_WAITING};
    return c->store->ops->list(c->store, &sel, false, count_job, p, err);
}

struct reading {
    struct plan *plan;
    struct sv queue;
    struct variants variants;
    struct checked_url given, asked;
    struct text_set seen;
};

static void reading_done(struct reading *r)
{
    checked_url_done(&r->given);
    checked_url_done(&r->asked);
    text_set_done(&r->seen);
}

/* A URL that stands in the list twice is fetched once. */
static int count_url(struct reading *r, struct sv url, struct pawl_err *err)
{
    int rc = url_check(url, &r->given, err);
    if (rc == 0 && !text_set_add(&r->seen, url))
        return 0;
    for (size_t i = 0; rc == 0 && i < r->variants.n; i++) {
        const struct variant *v = &r->variants.v[i];
        const struct checked_url *u = v->plain ? &r->given : &r->asked;
        rc = v->plain ? 0 : variant_expand(v, url, &r->asked, err);
        if (rc == 0)
            tally_get(&r->plan->lanes, r->queue, str_sv(&u->host))->n++;
    }
    return rc;
}

static int read_urls(struct url_list *l, struct reading *r, struct pawl_err *err)
{
    enum url_got got = URL_ONE;
    int rc = 0;
    while (rc == 0 && got != URL_END && !cli_signal()) {
        struct sv url;
        rc = url_list_next(l, &url, &got, err);
        if (rc == 0 && got == URL_ONE)
            rc = count_url(r, url, err);
        if (rc == PAWL_EINPUT)
            url_list_blame(l, err);
    }
    return rc;
}

int plan_load_file(struct cli *c, struct plan *p, struct sv queue, const char *file,
                   struct pawl_err *err)
{
    AUTO(url_list_done) struct url_list l = {.fd = -1};
    AUTO(arena_done) struct arena a;
    AUTO(reading_done)
    struct reading r = {.plan = p, .queue = queue.p ? queue : SV("fetch")};
    arena_init(&a);
    checked_url_init(&r.given);
    checked_url_init(&r.asked);
    if (variants_read(c, &a, &r.variants, err) < 0)
        return PAWL_EUSAGE;
    int rc = url_list_open(&l, c, file, err);
    return rc < 0 ? rc : read_urls(&l, &r, err);
}

/* ---- limits ---- */

/* Of the built-in limits those that nobody set, configured or removed. */
static size_t add_built_in(const struct limits *have, struct limit_spec *v, size_t n)
{
    size_t n_own, kept = n;
    const struct limit_spec *own = limits_built_in(&n_own);
    for (size_t i = 0; i < n_own; i++) {
        bool known = limits_unset(have, own[i].name);
        for (size_t k = 0; k < n && !known; k++)
            known = sv_eq(v[k].name, own[i].name);
        if (!known)
            v[kept++] = own[i];
    }
    return kept;
}

/* What holds once a worker runs: by hand first, then the configuration if it says anything, else
 * what the store has. */
int plan_load_limits(struct cli *c, struct plan *p, struct arena *a, struct pawl_err *err)
{
    struct limits have = {0};
    struct policy conf = {0};
    struct sv text;
    size_t n = 0, n_own;
    int rc = c->store ? limits_load(c, a, &have, err) : 0;
    if (rc == 0)
        rc = policy_make(c->config, a, &conf, &text, err);
    if (rc < 0)
        return rc;
    limits_built_in(&n_own);
    struct limit_spec *v = arena_zalloc(a, have.n + conf.n_limits + n_own, sizeof(*v));
    for (size_t i = 0; i < have.n; i++)
        if (have.v[i].by_operator || !c->config->policy_given)
            v[n++] = have.v[i].spec;
    for (size_t i = 0; i < conf.n_limits && (c->config->policy_given || !c->store); i++) {
        const struct limit_view *known = limits_find(&have, conf.limits[i].name);
        if (known ? !known->by_operator : !limits_unset(&have, conf.limits[i].name))
            v[n++] = conf.limits[i];
    }
    p->limits = v;
    p->n_limits = add_built_in(&have, v, n);
    p->slots = c->config->fetch_slots;
    for (size_t i = 0; i < c->config->n_pools; i++)
        if (!strcmp(c->config->pools[i].kind, "fetch"))
            p->slots = c->config->pools[i].slots;
    return 0;
}

struct gates {
    struct plan *plan;
    struct wall now;
};

static bool note_gate(void *arg, const struct gate_view *g)
{
    const struct gates *k = arg;
    struct plan *p = k->plan;
    const struct tally_entry *e = tally_find(&p->gate_index, g->limit, g->value);
    if (!e)
        return true;
    struct plan_gate *to = &p->gates[e->gate];
    if (g->state.interval_us > to->interval_us) /* adaptive */
        to->interval_us = g->state.interval_us;
    if (g->state.pace_us > to->interval_us) /* robots.txt asked for it */
        to->interval_us = g->state.pace_us;
    if (g->room.n <= 0 && g->room.until > k->now.us && g->room.until < INT64_MAX)
        to->shut_us = g->room.until - k->now.us;
    return true;
}

int plan_load_gates(struct cli *c, struct plan *p, struct pawl_err *err)
{
    const struct gate_filter every = {0};
    struct gates k = {p, {0}};
    if (!c->store)
        return 0;
    k.now = c->store->ops->now(c->store);
    return c->store->ops->gates(c->store, &every, note_gate, &k, err);
}

/* ---- what fetches took so far ---- */

struct past {
    job_id ids[SAMPLE_JOBS];
    size_t n;
};

static bool note_job(void *arg, const struct job_view *job)
{
    struct past *s = arg;
    s->ids[s->n++] = job->id;
    return s->n < SAMPLE_JOBS;
}

static int load_durations(struct cli *c, struct plan *p, struct pawl_err *err)
{
    struct past s = {.n = 0};
    const struct selection done = {
        .kind = SV("fetch"), .states = 1u << JOB_DONE, .limit = SAMPLE_JOBS};
    int64_t n = 0, sum = 0;
    int rc = c->store->ops->list(c->store, &done, false, note_job, &s, err);
    for (size_t i = 0; rc == 0 && i < s.n; i++) {
        AUTO(arena_done) struct arena a;
        struct fetch_view v;
        bool found = false;
        arena_init(&a);
        rc = fetch_load(c, s.ids[i], &a, &v, &found, err);
        if (rc == 0 && found && v.f.total.us > 0) {
            n++;
            sum += v.f.total.us;
        }
    }
    if (rc == 0 && n) {
        p->mean.us = sum / n;
        p->mean_known = true;
    }
    return rc;
}

struct bodies {
    struct plan *plan;
    struct str url, host;
};

static bool note_body(void *arg, const struct artifact_view *v)
{
    struct bodies *b = arg;
    struct tally_entry *e = tally_get(&b->plan->sizes, SV("all"), SV(""));
    if (!v->url.p)
        return true;
    e->n++;
    e->sum += v->a.stored;
    str_clear(&b->url);
    str_clear(&b->host);
    str_add(&b->url, v->url);
    if (http_url_host(str_cstr(&b->url), &b->host, NULL) < 0)
        return true;
    e = tally_get(&b->plan->sizes, SV(""), str_sv(&b->host));
    e->n++;
    e->sum += v->a.stored;
    return true;
}

int plan_load_past(struct cli *c, struct plan *p, struct pawl_err *err)
{
    struct bodies b = {p, STR_INIT(STR_LINE), STR_INIT(STR_LINE)};
    const struct artifact_filter f = {.limit = SAMPLE_BODIES};
    if (!c->store)
        return 0;
    int rc = load_durations(c, p, err);
    if (rc == 0)
        rc = c->store->ops->artifacts(c->store, &f, note_body, &b, err);
    str_done(&b.url);
    str_done(&b.host);
    return rc;
}

/* ---- room ---- */

/* Where the lake is, or would be made: the nearest folder that exists. */
void plan_load_room(const struct cli *c, struct plan *p)
{
    AUTO_FREE char *path = mem_strdup(c->config->lake_path);
    const char *at = path;
    struct statvfs st;
    p->reserve = c->config->disk_reserve;
    while (statvfs(at, &st) < 0) {
        char *slash = at == path ? strrchr(path, '/') : NULL;
        if (at != path)
            return;
        at = !slash ? "." : slash == path ? "/" : path;
        if (slash)
            *slash = '\0';
    }
    p->free_bytes = (int64_t)(st.f_bavail * st.f_frsize);
}
