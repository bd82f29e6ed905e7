#include "preflight.h"

#include "http.h"
#include "json.h"
#include "text.h"
#include "worker_internal.h"
#include <stdio.h>

enum { WHY_SHOWN = 250, WHY_MAX = 4 * WHY_SHOWN + 8 };
#define RETRY_FIRST DUR_S(1)

enum verdict { UNKNOWN, GOOD, BAD };

struct preflight {
    struct worker *w;
    struct kind *kind;
    const struct worker_kind *conf;
    struct kind_check check; /* what the handler sees */
    struct http_call *call;
    bool checking; /* the handler's part or the request is under way */
    bool stopped;
    enum verdict verdict;
    struct dur pause; /* before the next try after a bad one */
    struct timer next;
    char why[WHY_MAX];
};

bool preflight_admits(const struct kind *k)
{
    return !k->preflight || k->preflight->verdict == GOOD;
}

const char *preflight_why(const struct kind *k)
{
    return k->preflight && k->preflight->verdict == BAD ? k->preflight->why : NULL;
}

/* ---- what others see ---- */

void preflight_tell(struct worker *w)
{
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT);
    struct jw j = jw_make(&text);
    bool any = false;
    jw_object(&j);
    for (size_t i = 0; i < w->n_kinds; i++) {
        const char *why = preflight_why(&w->kinds[i]);
        if (!why)
            why = lake_hold_why(w, &w->kinds[i]);
        any = any || w->kinds[i].preflight || w->kinds[i].keeps;
        if (!why)
            continue;
        AUTO_FREE char *name = mem_dup(w->kinds[i].name.p, w->kinds[i].name.n);
        jw_kstring(&j, name, sv_of(why));
    }
    jw_end_object(&j);
    if (any)
        renew_thread_preflight(&w->renew, str_cstr(&text));
}

/* Harmless and short: it goes to a log, a store and a terminal. */
static void set_why(struct preflight *p, struct sv why)
{
    AUTO_STR struct str clean = STR_INIT(STR_LINE);
    text_safe(&clean, why, WHY_SHOWN);
    size_t n = clean.len < WHY_MAX - 1 ? clean.len : WHY_MAX - 1;
    memcpy(p->why, str_cstr(&clean), n);
    p->why[n] = '\0';
}

static void set_verdict(struct preflight *p, bool good, struct sv why)
{
    struct worker *w = p->w;
    AUTO_FREE char *before = mem_strdup(p->why);
    enum verdict was = p->verdict;
    p->verdict = good ? GOOD : BAD;
    set_why(p, good ? SV("") : why.n ? why : SV("no reason given"));
    if (was == p->verdict && !strcmp(before, p->why))
        return;
    if (good && was == BAD)
        LOG(&w->log, LOG_INFO, "preflight_good", LOG_S("kind", p->kind->name));
    else if (!good)
        LOG(&w->log, LOG_WARN, "preflight_failed", LOG_S("kind", p->kind->name),
            LOG_S("why", sv_of(p->why)));
    if (was != UNKNOWN || !good)
        preflight_tell(w);
    w->look_due |= w->draining;
    if (good)
        slots_wet(w);
    else
        slots_give_back_kind(w, p->kind->name, "its preflight fails");
    worker_soon(w);
}

/* ---- one check ---- */

static void plan_next(struct preflight *p)
{
    struct dur ttl = p->conf->preflight_ttl;
    if (p->stopped)
        return;
    if (p->verdict == GOOD) {
        p->pause = RETRY_FIRST;
        loop_timer_set(p->w->loop, &p->next, ttl);
        return;
    }
    struct dur pause = p->pause.us < ttl.us ? p->pause : ttl;
    p->pause.us = pause.us * 2;
    loop_timer_set(p->w->loop, &p->next, pause);
}

static void conclude(struct preflight *p, bool good, struct sv why)
{
    p->checking = false;
    if (p->stopped) {
        worker_soon(p->w); /* it may have been waited for */
        return;
    }
    set_verdict(p, good, why);
    plan_next(p);
}

static void on_answer(void *arg, const struct http_result *res)
{
    struct preflight *p = arg;
    char status[64];
    p->call = NULL;
    snprintf(status, sizeof(status), "the answer is %d, not 2xx", res->status);
    if (res->error != HTTP_OK)
        conclude(p, false, sv_of(res->message));
    else if (res->status < 200 || res->status > 299)
        conclude(p, false, sv_of(status));
    else
        conclude(p, true, SV_NONE);
}

static int ask(struct preflight *p, struct pawl_err *err)
{
    struct worker *w = p->w;
    int rc = w->http ? 0 : http_new(w->loop, &(struct http_options){0}, &w->http, err);
    const struct http_request req = {.url = p->conf->preflight_url,
                                     .timeout = p->conf->preflight_timeout,
                                     .connect_timeout = p->conf->preflight_timeout,
                                     .allow_private = true}; /* the operator named it */
    return rc < 0 ? rc : http_start(w->http, &req, on_answer, p, &p->call, err);
}

/* The handler has looked; what is left is the URL. */
static void on_checked(struct kind_check *c, bool good, struct sv why)
{
    struct preflight *p = OWNER(c, struct preflight, check);
    struct pawl_err err = {0};
    if (!good || !p->conf->preflight_url || p->stopped)
        conclude(p, good, why);
    else if (ask(p, &err) < 0)
        conclude(p, false, sv_of(err.msg));
}

static void check(struct preflight *p)
{
    struct handler *h = p->kind->handler;
    if (p->checking || p->stopped)
        return;
    p->checking = true;
    p->check.state = NULL;
    if (h->ops->check)
        h->ops->check(h, &p->check);
    else
        on_checked(&p->check, true, SV_NONE);
}

static void on_time(struct timer *t)
{
    check(OWNER(t, struct preflight, next));
}

void preflight_unfit(struct kind *k, struct sv why)
{
    struct preflight *p = k->preflight;
    if (!p || p->stopped)
        return;
    set_verdict(p, false, why);
    if (!p->checking)
        plan_next(p);
}

/* ---- life ---- */

static const struct worker_kind *conf_of(const struct worker *w, const struct kind *k)
{
    for (size_t i = 0; i < w->o->n_kinds; i++)
        if (sv_eq(k->name, sv_of(w->o->kinds[i].name)))
            return &w->o->kinds[i];
    return NULL;
}

void preflight_init(struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++) {
        struct kind *k = &w->kinds[i];
        const struct worker_kind *conf = conf_of(w, k);
        if (!conf->preflight || !k->pool)
            continue;
        struct preflight *p = k->preflight = mem_zalloc(1, sizeof(*p));
        *p = (struct preflight){
            .w = w,
            .kind = k,
            .conf = conf,
            .check = {.kind = k->name, .timeout = conf->preflight_timeout, .finish = on_checked},
            .next = {.on_time = on_time},
            .pause = RETRY_FIRST};
    }
}

void preflight_start(struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].preflight)
            check(w->kinds[i].preflight);
}

static void stop(struct preflight *p)
{
    struct handler *h = p->kind->handler;
    p->stopped = true;
    loop_timer_clear(p->w->loop, &p->next);
    if (p->call) {
        http_cancel(p->call);
        p->call = NULL;
        p->checking = false;
    } else if (p->checking) {
        h->ops->check_cancel(h, &p->check);
    }
}

void preflight_stop(struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].preflight && !w->kinds[i].preflight->stopped)
            stop(w->kinds[i].preflight);
}

bool preflight_idle(const struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].preflight && w->kinds[i].preflight->checking)
            return false;
    return true;
}

void preflight_done(struct worker *w)
{
    preflight_stop(w);
    for (size_t i = 0; i < w->n_kinds; i++)
        free(w->kinds[i].preflight);
    http_free(w->http);
}
