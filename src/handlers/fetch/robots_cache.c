/* What is known of robots.txt, by origin: in memory for some minutes, in the store until its time
 * is over, else from the server (robots_get.c). Runs that need the same one wait for it together;
 * it is asked for in the name of one of them, and given up when nobody is left. */
#include "fetch_parts.h"

#include "mem.h"
#include <stdio.h>

enum { BUCKETS = 4096, ENTRIES_MAX = 16384, BYTES_MAX = 16 << 20 };
static const struct dur MEMORY_TIME = {(int64_t)600 * 1000000}; /* then the store is asked again */
static const struct dur FAILURE_TIME = {(int64_t)60 *
                                        1000000}; /* a host in trouble is left alone */
static const struct dur FAILURE_AGAIN = {(int64_t)5 * 1000000}; /* one that another worker met */

struct robots_cache {
    struct fetch_handler *h;
    struct robots_entry *buckets[BUCKETS];
    struct robots_entry newest, oldest; /* ends of the list of idle ones */
    size_t n, bytes;                    /* idle ones */
};

struct robots_cache *robots_cache_new(struct fetch_handler *h)
{
    struct robots_cache *c = mem_zalloc(1, sizeof(*c));
    c->h = h;
    c->newest.older = &c->oldest;
    c->oldest.newer = &c->newest;
    return c;
}

/* ---- the table ---- */

static struct robots_entry **bucket_of(struct robots_cache *c, struct sv origin)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < origin.n; i++)
        hash = (hash ^ (unsigned char)origin.p[i]) * 1099511628211u;
    return &c->buckets[(hash ^ (hash >> 32)) % BUCKETS];
}

static struct robots_entry *find(struct robots_cache *c, struct sv origin)
{
    struct robots_entry *e = *bucket_of(c, origin);
    while (e && !sv_eq(sv_of(e->origin), origin))
        e = e->chained;
    return e;
}

static struct robots_entry *add(struct robots_cache *c, const struct hop *hop)
{
    struct robots_entry **bucket = bucket_of(c, hop->origin), *e = mem_zalloc(1, sizeof(*e));
    e->cache = c;
    e->h = c->h;
    e->origin = mem_dup(hop->origin.p, hop->origin.n);
    e->host = mem_dup(hop->host.p, hop->host.n);
    e->chained = *bucket;
    *bucket = e;
    return e;
}

void robots_busy(struct robots_entry *e)
{
    if (!e->idle)
        return;
    e->newer->older = e->older;
    e->older->newer = e->newer;
    e->idle = false;
    e->cache->n--;
    e->cache->bytes -= e->bytes;
}

static void forget(struct robots_entry *e)
{
    robots_free(e->answer.rules);
    free(e->answer.why);
    e->answer = (struct robots_answer){0};
    e->known = false;
}

static void drop(struct robots_entry *e)
{
    struct robots_entry **at = bucket_of(e->cache, sv_of(e->origin));
    while (*at != e)
        at = &(*at)->chained;
    *at = e->chained;
    robots_busy(e);
    robots_get_stop(e);
    loop_timer_clear(e->h->loop, &e->turn);
    forget(e);
    free(e->origin);
    free(e->host);
    free(e);
}

static void make_idle(struct robots_entry *e)
{
    struct robots_cache *c = e->cache;
    e->bytes =
        sizeof(*e) + 2 * strlen(e->origin) + (e->answer.rules ? robots_bytes(e->answer.rules) : 0);
    e->idle = true;
    e->older = c->newest.older;
    e->newer = &c->newest;
    e->older->newer = e;
    c->newest.older = e;
    c->n++;
    c->bytes += e->bytes;
    while (c->n > 1 && (c->n > ENTRIES_MAX || c->bytes > BYTES_MAX))
        drop(c->oldest.newer);
}

void robots_cache_free(struct robots_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (c->buckets[i])
            drop(c->buckets[i]);
    free(c);
}

/* ---- those who wait ---- */

void waiters_add(struct waiters *w, struct fetch *f)
{
    f->wait_prev = w->last;
    f->wait_next = NULL;
    *(w->last ? &w->last->wait_next : &w->first) = f;
    w->last = f;
    w->n++;
}

void waiters_remove(struct waiters *w, struct fetch *f)
{
    *(f->wait_prev ? &f->wait_prev->wait_next : &w->first) = f->wait_next;
    *(f->wait_next ? &f->wait_next->wait_prev : &w->last) = f->wait_prev;
    w->n--;
}

static void unlink_waiter(struct fetch *f)
{
    waiters_remove(&f->waits_for->waiting, f);
    f->waits_for = NULL;
}

void robots_rest(struct robots_entry *e)
{
    if (e->waiting.first || e->line.first || e->sponsor || e->held || e->idle)
        return;
    if (e->known)
        make_idle(e);
    else
        drop(e);
}

void robots_leave(struct fetch *f)
{
    struct robots_entry *e = f->waits_for;
    if (!e)
        return;
    unlink_waiter(f);
    if (!e->waiting.first && !e->sponsor && !e->held) {
        robots_get_stop(e);
        robots_rest(e);
    }
}

struct sv robots_gate(const struct fetch *f)
{
    return f->waits_for ? sv_of(f->waits_for->gate) : SV_NONE;
}

struct fetch *robots_sponsor(struct robots_entry *e)
{
    e->sponsor = e->waiting.first;
    e->sponsor->owed++;
    return e->sponsor;
}

bool robots_sponsored(struct robots_entry *e, struct fetch **sponsor)
{
    *sponsor = TAKE_PTR(e->sponsor);
    if (e->waiting.first)
        return true;
    robots_rest(e);
    return false;
}

void robots_sponsor_done(struct fetch *sponsor)
{
    fetch_answered(sponsor);
}

void robots_hold(struct robots_entry *e)
{
    e->held = true;
}

bool robots_unhold(struct robots_entry *e)
{
    e->held = false;
    if (e->waiting.first)
        return true;
    robots_rest(e);
    return false;
}

/* ---- what becomes known ---- */

static void deliver(struct robots_entry *e, struct dur time)
{
    e->known = true;
    e->until.us = clock_boot().us + time.us;
    robots_get_stop(e);
    robots_hold(e);
    for (struct fetch *f; (f = e->waiting.first);) {
        unlink_waiter(f);
        hop_robots_known(f, e);
    }
    e->held = false;
    robots_rest(e);
}

/* Once for each process, and when it changes. */
static void announce(struct robots_entry *e, struct fetch *f)
{
    struct dur most = e->h->config->fetch_max_crawl_delay, delay = {0};
    if (e->answer.rules)
        delay = robots_crawl_delay(e->answer.rules);
    if (delay.us > most.us)
        delay = most;
    if (delay.us != e->paced.us)
        f->services->pace(f->run, sv_of(e->host), delay);
    e->paced = e->answer.apart = delay;
}

static struct dur shorter(struct dur a, struct dur b)
{
    return a.us < b.us ? a : b;
}

/* ---- in the store: a line that says what follows, and the rules or the reason ---- */

#define RULES_MARK "robots 1\n"

/* Only the rules for one robot are remembered: another's are others. */
static void key_of(const struct robots_entry *e, struct str *out)
{
    const char *robot = e->h->robot;
    if (strcmp(robot, "pawl") != 0)
        str_addf(out, "robots for %s:%s", robot, e->origin);
    else
        str_addf(out, "robots:%s", e->origin);
}

static void remember(struct robots_entry *e, const struct str *value, struct dur ttl)
{
    AUTO_STR struct str key = STR_INIT(STR_LINE);
    struct fetch *f = e->waiting.first;
    key_of(e, &key);
    if (!value->overflow)
        f->services->remember(f->run, str_sv(&key), str_sv(value), ttl);
}

static void remember_rules(struct robots_entry *e)
{
    AUTO_STR struct str s = STR_INIT(ROBOTS_MAX_BYTES); /* more would not be read back */
    str_adds(&s, RULES_MARK);
    if (e->answer.rules)
        robots_write(e->answer.rules, &s);
    remember(e, &s, e->h->config->fetch_robots_ttl);
}

static void remember_failure(struct robots_entry *e, struct dur ttl)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    const struct verdict *v = &e->answer.verdict;
    str_addf(&s, "failed 1 %d %d %lld\n%s", v->throttled, v->timed_out,
             (long long)v->retry_after.us, e->answer.why);
    remember(e, &s, ttl);
}

void robots_known(struct robots_entry *e, struct robots *rules, bool fresh)
{
    struct dur ttl = e->h->config->fetch_robots_ttl;
    forget(e);
    e->answer.rules = rules;
    if (fresh)
        remember_rules(e);
    announce(e, e->waiting.first);
    deliver(e, shorter(ttl, MEMORY_TIME));
}

/* A job that fails because of it has no reason to come back before it is asked for again. */
void robots_failed(struct robots_entry *e, struct verdict v, const char *why, bool fresh)
{
    struct dur ttl = shorter(FAILURE_TIME, e->h->config->fetch_robots_ttl);
    if (v.retry_after.us > 1000000)
        ttl = shorter(ttl, v.retry_after);
    if (v.cls == CLASS_TRANSIENT && v.retry_after.us < ttl.us)
        v.retry_after = ttl;
    char *text = mem_strdup(why);
    forget(e);
    e->answer = (struct robots_answer){.failed = true, .verdict = v, .why = text};
    if (fresh && v.cls == CLASS_TRANSIENT) /* others may be this worker's configuration */
        remember_failure(e, ttl);
    deliver(e, fresh ? ttl : shorter(ttl, FAILURE_AGAIN));
}

static bool read_failure(struct sv line, struct verdict *out)
{
    int64_t v[3];
    struct sv rest = line;
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        if (sv_to_i64(sv_cut(rest, ' ', &rest), -1, DUR_MAX_US, &v[i]) < 0)
            return false;
    *out = verdict_failed(CLASS_TRANSIENT);
    out->throttled = v[0] == 1;
    out->timed_out = v[1] == 1;
    out->retry_after.us = v[2];
    return true;
}

/* False: it is nothing of use. */
static bool take_value(struct robots_entry *e, struct sv value)
{
    struct sv mark = SV("failed 1 "), rules = SV(RULES_MARK), rest;
    struct verdict v;
    if (value.p && sv_starts(value, rules)) {
        struct sv text = sv_make(value.p + rules.n, value.n - rules.n);
        robots_known(e, text.n ? robots_parse(text, sv_of(e->h->robot)) : NULL, false);
        return true;
    }
    if (!value.p || !sv_starts(value, mark))
        return false;
    value = sv_cut(sv_make(value.p + mark.n, value.n - mark.n), '\n', &rest);
    if (!read_failure(value, &v) || !rest.p)
        return false;
    AUTO_FREE char *why = mem_dup(rest.p, rest.n);
    robots_failed(e, v, why, false);
    return true;
}

static void on_recalled(void *arg, struct sv value)
{
    struct robots_entry *e = arg;
    struct fetch *sponsor;
    if (robots_sponsored(e, &sponsor) && !take_value(e, value))
        robots_get(e);
    robots_sponsor_done(sponsor);
}

struct robots_entry *robots_ask(struct robots_cache *c, struct fetch *f)
{
    struct robots_entry *e = find(c, f->hop->origin);
    if (!e)
        e = add(c, f->hop);
    if (e->known && (e->held || e->until.us > loop_now(c->h->loop).us)) {
        if (e->idle) { /* used last */
            robots_busy(e);
            make_idle(e);
        }
        return e;
    }
    bool first = !e->waiting.first && !e->sponsor && !e->call;
    robots_busy(e);
    e->known = false;
    f->waits_for = e;
    waiters_add(&e->waiting, f);
    if (first) {
        AUTO_STR struct str key = STR_INIT(STR_LINE);
        key_of(e, &key);
        robots_sponsor(e);
        f->services->recall(f->run, str_sv(&key), on_recalled, e);
    }
    return NULL;
}
