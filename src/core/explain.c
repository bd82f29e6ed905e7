#include "explain.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { TEXT_MAX = 8 << 10 };

static const struct {
    const char *name, *text, *fix;
} table[] = {
#define X(code, name, text, fix) {name, text, fix},
#include "reasons.def"
#undef X
};

const char *reason_name(enum reason_code c)
{
    return table[c].name;
}

struct explaining {
    const struct explain_view *v;
    struct arena *a;
    struct reason *reasons;
    size_t n, cap;
};

static struct reason *add(struct explaining *e, enum reason_code code, struct sv subject)
{
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 8;
        struct reason *more = arena_zalloc(e->a, cap, sizeof(*more));
        if (e->n)
            memcpy(more, e->reasons, e->n * sizeof(*more));
        e->reasons = more;
        e->cap = cap;
    }
    struct reason *r = &e->reasons[e->n++];
    *r = (struct reason){.code = code, .subject = subject, .used = -1, .max = -1};
    return r;
}

static void set_holder(struct explaining *e, struct reason *r, job_id id)
{
    job_id *one = arena_alloc(e->a, sizeof(*one));
    *one = id;
    r->holders = one;
    r->n_holders = 1;
}

/* ---- the job's own state ---- */

static void add_waiting(struct explaining *e)
{
    static const enum reason_code codes[] = {
        [WAIT_NONE] = REASON_DELAY,      [WAIT_DELAY] = REASON_DELAY,
        [WAIT_BACKOFF] = REASON_BACKOFF, [WAIT_RETRY_AFTER] = REASON_RETRY_AFTER,
        [WAIT_ASKED] = REASON_ASKED,     [WAIT_LOST] = REASON_LOST,
    };
    const struct job_view *job = &e->v->job;
    add(e, codes[job->wait_reason], job->queue)->until = job->available_at;
}

static const struct session_view *owner_of(const struct explain_view *v)
{
    for (size_t i = 0; i < v->n_sessions; i++)
        if (v->sessions[i].id.v == v->owner.v)
            return &v->sessions[i];
    return NULL;
}

/* Heartbeats come at least three times in a lease; half of it without one is no accident. */
static bool is_silent(const struct session_view *s, struct wall now)
{
    return now.us - s->renewed_at.us > (s->lease_until.us - s->renewed_at.us) / 2;
}

static bool any_alive(const struct explain_view *v)
{
    for (size_t i = 0; i < v->n_sessions; i++)
        if (v->sessions[i].alive)
            return true;
    return false;
}

/* What is known of its worker, which may be on another machine: where a kernel lock tells that a
 * session is dead, and anywhere when its lease is over, the job only waits to be swept. */
static void add_running(struct explaining *e)
{
    const struct job_view *job = &e->v->job;
    const struct session_view *s = owner_of(e->v);
    bool gone = !s || !s->alive;
    if (s && s->alive && !is_silent(s, e->v->now)) {
        struct reason *r = add(e, REASON_RUNNING, job->worker);
        r->since = job->claimed_at;
        r->until = job->lease_until;
        return;
    }
    struct reason *r = add(e, gone ? REASON_WORKER_GONE : REASON_WORKER_SILENT, job->worker);
    r->since = s ? s->renewed_at : job->claimed_at;
    r->until = job->lease_until;
    if (gone && !any_alive(e->v))
        add(e, REASON_NO_WORKER, SV_NONE);
}

/* True: that is all there is to say. */
static bool add_state(struct explaining *e)
{
    const struct job_view *job = &e->v->job;
    if (job_state_terminal(job->state)) {
        add(e, REASON_ENDED, sv_of(job_state_name(job->state)))->since = job->finished_at;
        return true;
    }
    if (job->state == JOB_RUNNING) {
        add_running(e);
        return true;
    }
    if (job->state == JOB_BLOCKED)
        add(e, REASON_BLOCKED, job->queue);
    if (e->v->paused)
        add(e, REASON_QUEUE_PAUSED, job->queue)->since = e->v->paused_at;
    if (job->state == JOB_WAITING)
        add_waiting(e);
    return false;
}

/* ---- gates ---- */

static struct sv gate_subject(struct explaining *e, const struct gate_view *g)
{
    if (!g->value.n)
        return g->limit;
    size_t n = g->limit.n + 1 + g->value.n;
    char *text = arena_alloc(e->a, n + 1);
    memcpy(text, g->limit.p, g->limit.n);
    text[g->limit.n] = '=';
    memcpy(text + g->limit.n + 1, g->value.p, g->value.n);
    text[n] = '\0';
    return sv_make(text, n);
}

static enum reason_code gate_code(const struct gate_view *g)
{
    switch (g->room.why) {
    case SHUT_RATE:
        return gate_is_paced(&g->params, &g->state) ? REASON_PACE : REASON_RATE;
    case SHUT_HELD:
        return g->state.held_asked ? REASON_THROTTLED_ASKED : REASON_THROTTLED;
    case SHUT_BREAKER:
        return REASON_BREAKER_OPEN;
    case SHUT_PROBING:
        return REASON_BREAKER_PROBING;
    default:
        return REASON_GATE_FULL;
    }
}

static void add_gate(struct explaining *e, const struct gate_view *g)
{
    if (g->room.n > 0)
        return;
    struct reason *r = add(e, gate_code(g), gate_subject(e, g));
    job_id *holders = arena_zalloc(e->a, g->n_holders + 1, sizeof(*holders));
    for (size_t i = 0; i < g->n_holders; i++)
        holders[i] = g->holders[i].id;
    r->limit = g->limit;
    r->value = g->value;
    r->why = g->why;
    r->holders = holders;
    r->n_holders = g->n_holders;
    r->used = g->used;
    r->max = g->params.cap ? g->params.cap : -1;
    r->until = (struct wall){g->room.until == INT64_MAX ? 0 : g->room.until};
    if (r->code == REASON_BREAKER_PROBING && g->state.probe_job)
        set_holder(e, r, (job_id){g->state.probe_job});
}

static void add_lock(struct explaining *e)
{
    const struct lock_view *l = &e->v->lock;
    job_id self = e->v->job.id;
    if (!l->key.p)
        return;
    if (l->holder.id.v && l->holder.id.v != self.v) {
        struct reason *r = add(e, REASON_LOCK_HELD, l->key);
        r->who = l->worker;
        r->since = l->since;
        r->until = l->until;
        r->used = l->waiting;
        set_holder(e, r, l->holder.id);
    }
    if (e->v->job.state == JOB_QUEUED && l->next.v && l->next.v != self.v) {
        struct reason *r = add(e, REASON_LOCK_TURN, l->key);
        r->used = l->waiting;
        set_holder(e, r, l->next);
    }
}

/* ---- workers ---- */

/* Of the pool of a worker that serves the job's kind. */
struct room {
    int64_t used, slots;
};

/* How far a worker is from running the job, farthest first. */
enum fit { FIT_FILTERED, FIT_NO_POOL, FIT_PAUSED, FIT_PREFLIGHT, FIT_BUSY, FIT_FREE, N_FITS };

/* A worker that does not tell is assumed to take everything. */
static bool admits(const struct json *doc, const char *list_name, struct sv s, struct arena *a)
{
    uint32_t list = json_member(doc, 0, sv_of(list_name));
    if (!list || json_type(doc, list) != JSON_ARRAY || doc->nodes[list].count == 0)
        return true;
    for (uint32_t k = json_first(doc, list); k != json_end(doc, list); k = json_after(doc, k))
        if (json_type(doc, k) == JSON_STRING && sv_eq(json_string(doc, k, a), s))
            return true;
    return false;
}

static bool read_object(struct json *doc, struct sv text)
{
    struct pawl_err ignored;
    return text.n && json_parse(doc, text, &ignored) == 0 && json_type(doc, 0) == JSON_OBJECT &&
           doc->nodes[0].count > 0;
}

static bool has_pool(struct sv pools, struct sv kind)
{
    AUTO_JSON struct json doc = {0};
    return !read_object(&doc, pools) || json_member(&doc, 0, kind) || json_member(&doc, 0, SV("*"));
}

/* The pool that serves the kind, a member of the pools; 0: it does not tell. */
static uint32_t pool_of(const struct json *pools, struct sv kind)
{
    uint32_t own = json_member(pools, 0, kind);
    return own ? own : json_member(pools, 0, SV("*"));
}

/* A worker that does not tell its pools has one for all. What it has claimed ahead of a slot counts
 * no further than the pool goes. */
static struct room pool_room(const struct explaining *e, const struct session_view *s)
{
    AUTO_JSON struct json doc = {0};
    struct sv kind = e->v->job.kind;
    struct room room = {.slots = s->slots};
    bool told = read_object(&doc, s->pools);
    uint32_t pool = told ? pool_of(&doc, kind) : 0;
    if (pool && json_i64(&doc, pool, 0, INT32_MAX, &room.slots) < 0)
        room.slots = s->slots;
    for (size_t i = 0; i < e->v->n_held; i++) {
        const struct held_view *h = &e->v->held[i];
        if (h->session.v == s->id.v && (!told || pool_of(&doc, h->kind) == pool))
            room.used += h->n;
    }
    if (room.used > room.slots)
        room.used = room.slots;
    return room;
}

/* Why its preflight fails for the kind; p NULL: it does not. */
static struct sv preflight_of(const struct session_view *s, struct sv kind, struct arena *a)
{
    AUTO_JSON struct json doc = {0};
    uint32_t at = read_object(&doc, s->preflight) ? json_member(&doc, 0, kind) : 0;
    if (!at)
        return SV_NONE;
    if (json_type(&doc, at) != JSON_STRING)
        return SV("it says no more");
    struct sv why = json_string(&doc, at, a);
    return sv_make(arena_strndup(a, why.p, why.n), why.n);
}

static enum fit fit_of(const struct explaining *e, const struct session_view *s)
{
    const struct job_view *job = &e->v->job;
    AUTO_JSON struct json filter = {0};
    bool told = read_object(&filter, s->filter);
    if (told && !admits(&filter, "queues", job->queue, e->a))
        return FIT_FILTERED;
    if ((told && !admits(&filter, "kinds", job->kind, e->a)) || !has_pool(s->pools, job->kind))
        return FIT_NO_POOL;
    if (s->command == COMMAND_PAUSE)
        return FIT_PAUSED;
    if (preflight_of(s, job->kind, e->a).p)
        return FIT_PREFLIGHT;
    struct room room = pool_room(e, s);
    return room.slots > 0 && room.used >= room.slots ? FIT_BUSY : FIT_FREE;
}

struct fits {
    int n[N_FITS];
    const struct session_view *first[N_FITS];
    struct room busy; /* of the busy ones */
};

static void count_fits(const struct explaining *e, struct fits *f)
{
    for (size_t i = 0; i < e->v->n_sessions; i++) {
        const struct session_view *s = &e->v->sessions[i];
        if (!s->alive || s->command == COMMAND_STOP)
            continue;
        enum fit fit = fit_of(e, s);
        if (!f->n[fit]++)
            f->first[fit] = s;
        if (fit == FIT_BUSY) {
            struct room room = pool_room(e, s);
            f->busy.slots += room.slots;
            f->busy.used += room.used;
        }
    }
}

/* There are workers, but none that could ever run it. */
static void add_unfit(struct explaining *e, const struct fits *f)
{
    if (!f->n[FIT_FILTERED] && !f->n[FIT_NO_POOL])
        add(e, REASON_NO_WORKER, SV_NONE);
    if (f->n[FIT_NO_POOL])
        add(e, REASON_NO_POOL, e->v->job.kind);
    if (f->n[FIT_FILTERED])
        add(e, REASON_FILTERED, e->v->job.queue);
}

static void add_workers(struct explaining *e)
{
    struct fits f = {0};
    count_fits(e, &f);
    int could = f.n[FIT_PAUSED] + f.n[FIT_PREFLIGHT] + f.n[FIT_BUSY];
    if (f.n[FIT_FREE])
        return;
    if (!could) {
        add_unfit(e, &f);
        return;
    }
    if (f.n[FIT_PAUSED]) {
        struct reason *r = add(e, REASON_WORKERS_PAUSED, f.first[FIT_PAUSED]->name);
        r->used = f.n[FIT_PAUSED];
        r->max = could;
    }
    if (f.n[FIT_PREFLIGHT]) {
        struct reason *r = add(e, REASON_PREFLIGHT, e->v->job.kind);
        r->who = f.first[FIT_PREFLIGHT]->name;
        r->why = preflight_of(f.first[FIT_PREFLIGHT], e->v->job.kind, e->a);
        r->used = f.n[FIT_PREFLIGHT];
        r->max = could;
    }
    if (f.n[FIT_BUSY]) {
        struct reason *r = add(e, REASON_SLOTS_BUSY, SV_NONE);
        r->used = f.busy.used;
        r->max = f.busy.slots;
    }
}

/* ---- words ---- */

static void put_time(struct str *s, struct wall t, struct wall now)
{
    if (!t.us) {
        str_adds(s, "somebody changes it");
        return;
    }
    wall_format(t, s);
    str_adds(s, t.us > now.us ? " (in " : " (");
    dur_human(DUR_US(t.us > now.us ? t.us - now.us : now.us - t.us), s);
    str_adds(s, t.us > now.us ? ")" : " ago)");
}

static void put_holders(struct str *s, const struct reason *r)
{
    if (!r->n_holders)
        str_adds(s, "jobs that are not known");
    else
        str_adds(s, r->n_holders == 1 ? "job " : "jobs ");
    for (size_t i = 0; i < r->n_holders; i++)
        str_addf(s, "%s%lld", i ? ", " : "", (long long)r->holders[i].v);
    if (r->n_holders && r->used > (int64_t)r->n_holders && r->limit.p)
        str_adds(s, " …");
}

/* The interval of a gate's rate with two starts in it. */
static void put_faster(struct str *s, const struct explain_view *v, const struct reason *r)
{
    for (size_t i = 0; i < v->n_gates; i++)
        if (sv_eq(v->gates[i].limit, r->limit)) {
            int64_t us = v->gates[i].params.interval_us;
            rate_text((struct rate){2, DUR_US(us >= 1000 ? us : 1000)}, s);
            return;
        }
}

/* One word of a template. */
static void put_word(struct str *s, struct sv word, const struct explain_view *v,
                     const struct reason *r)
{
    if (sv_eq(word, SV("subject")))
        str_add(s, r->subject);
    else if (sv_eq(word, SV("limit")))
        str_add(s, r->limit);
    else if (sv_eq(word, SV("who")))
        str_add(s, r->who);
    else if (sv_eq(word, SV("why")))
        str_add(s, r->why.p ? r->why : SV("no reason was given"));
    else if (sv_eq(word, SV("used")))
        str_addi(s, r->used);
    else if (sv_eq(word, SV("max")))
        str_addi(s, r->max);
    else if (sv_eq(word, SV("more")))
        str_addi(s, r->used >= r->max ? r->used + 1 : r->max + 1);
    else if (sv_eq(word, SV("faster")))
        put_faster(s, v, r);
    else if (sv_eq(word, SV("id")))
        str_addi(s, v->job.id.v);
    else if (sv_eq(word, SV("holder")))
        str_addi(s, r->n_holders ? r->holders[0].v : v->job.id.v);
    else if (sv_eq(word, SV("holders")))
        put_holders(s, r);
    else if (sv_eq(word, SV("since")))
        put_time(s, r->since, v->now);
    else if (sv_eq(word, SV("until")))
        put_time(s, r->until, v->now);
}

static void put_quoted(struct str *s, struct sv word, const struct explain_view *v,
                       const struct reason *r)
{
    AUTO_STR struct str plain = STR_INIT(TEXT_MAX);
    if (sv_eq(word, SV("gate"))) {
        text_shell(s, r->limit);
        if (r->value.n) {
            str_addc(s, ' ');
            text_shell(s, r->value);
        }
        return;
    }
    put_word(&plain, word, v, r);
    text_shell(s, str_sv(&plain));
}

typedef void put_fn(struct str *s, struct sv word, const struct explain_view *v,
                    const struct reason *r);

static struct sv fill(const char *text, put_fn *put, const struct explaining *e,
                      const struct reason *r)
{
    AUTO_STR struct str s = STR_INIT(TEXT_MAX);
    struct sv rest = sv_of(text);
    while (rest.p) {
        str_add(&s, sv_cut(rest, '{', &rest));
        if (rest.p)
            put(&s, sv_cut(rest, '}', &rest), e->v, r);
    }
    return sv_make(arena_strndup(e->a, str_cstr(&s), s.len), s.len);
}

static int by_table(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    return x->code == y->code ? sv_cmp(x->subject, y->subject) : (int)x->code - (int)y->code;
}

size_t explain_reasons(const struct explain_view *v, struct arena *a, struct reason **out)
{
    struct explaining e = {.v = v, .a = a};
    if (!add_state(&e)) {
        for (size_t i = 0; i < v->n_gates; i++)
            add_gate(&e, &v->gates[i]);
        add_lock(&e);
        add_workers(&e);
    }
    if (!e.n)
        add(&e, REASON_READY, v->job.queue);
    qsort(e.reasons, e.n, sizeof(*e.reasons), by_table);
    for (size_t i = 0; i < e.n; i++) {
        struct reason *r = &e.reasons[i];
        r->text = fill(table[r->code].text, put_word, &e, r);
        if (table[r->code].fix[0])
            r->fix = fill(table[r->code].fix, put_quoted, &e, r);
    }
    *out = e.reasons;
    return e.n;
}
