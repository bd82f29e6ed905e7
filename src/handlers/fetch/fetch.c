/* The handler, and the beginning and end of a run. */
#include "fetch_parts.h"

#include "mem.h"
#include "text.h"
#include <stdio.h>

/* ---- runs that have ended serve again ---- */

enum { SPARE_MAX = MEM_SPARES(256), SPARE_ROOM = 16 << 10 };

static struct fetch *take_fetch(struct fetch_handler *h)
{
    struct fetch *f = h->spare;
    if (!f)
        return mem_zalloc(1, sizeof(*f));
    h->spare = f->next;
    h->n_spare--;
    *f = (struct fetch){.arena = f->arena};
    return f;
}

static void give_fetch(struct fetch_handler *h, struct fetch *f)
{
    hops_free(f);
    arena_reset(&f->arena);
    if (h->n_spare == SPARE_MAX || f->arena.left > SPARE_ROOM) {
        arena_done(&f->arena);
        free(f);
        return;
    }
    f->next = h->spare;
    h->spare = f;
    h->n_spare++;
}

/* ---- the end ---- */

static void finish(struct fetch *f, const struct run_result *result)
{
    struct run *run = f->run;
    run->finish(run, result);
    str_done(&f->reason);
    str_done(&f->chain);
    give_fetch(f->h, f);
}

/* What the end says of the host matters only if it is not the job's own. */
static struct sv peer_of(const struct fetch *f)
{
    struct sv own = f->run->job->host;
    return f->verdict.end != RUN_FAILED || (own.p && sv_eq(own, f->peer)) ? SV_NONE : f->peer;
}

static struct run_result result_of(struct fetch *f)
{
    bool recorded =
        f->verdict.end == RUN_DONE || f->verdict.end == RUN_SKIPPED || f->verdict.end == RUN_FAILED;
    record_close(f);
    return (struct run_result){.end = f->verdict.end,
                               .cls = f->verdict.cls,
                               .reason = f->reason.len ? str_sv(&f->reason) : SV_NONE,
                               .unfit = f->verdict.unfit,
                               .exit_code = -1,
                               .throttled = f->verdict.throttled,
                               .timed_out = f->verdict.timed_out,
                               .retry_after = f->verdict.retry_after,
                               .asked = DUR_NONE,
                               .fetch = f->asked && recorded ? &f->record : NULL,
                               .peer = peer_of(f)};
}

static void let_go(struct fetch *f)
{
    loop_timer_clear(f->h->loop, &f->deadline);
    loop_timer_clear(f->h->loop, &f->pause);
    if (f->call)
        http_cancel(f->call);
    f->call = NULL;
    robots_leave(f);
    robots_line_leave(f);
    body_done(f);
}

static void finish_when_quiet(struct fetch *f)
{
    if (f->owed)
        return;
    struct run_result result = result_of(f);
    finish(f, &result);
}

void fetch_end(struct fetch *f, struct verdict v, const char *fmt, ...)
{
    va_list args;
    char text[1024];
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    f->reason = STR_INIT(ERROR_MAX_BYTES);
    text_safe(&f->reason, sv_of(text), 0);
    f->ending = true;
    f->verdict = v;
    f->peer = f->hop->host;
    let_go(f);
    finish_when_quiet(f);
}

bool fetch_answered(struct fetch *f)
{
    f->owed--;
    if (!f->ending)
        return true;
    finish_when_quiet(f);
    return false;
}

/* ---- keeping ---- */

static void finish_done(struct fetch *f, const struct artifact *kept)
{
    AUTO_STR struct str json = STR_INIT(RESULT_MAX_BYTES);
    f->verdict = (struct verdict){.end = RUN_DONE, .retry_after = DUR_NONE};
    f->record.kept = kept;
    if (kept)
        record_hash(f, kept->sha256);
    let_go(f);
    record_result(f, kept, &json);
    struct run_result result = result_of(f);
    result.result = str_sv(&json);
    result.artifacts = kept;
    result.n_artifacts = kept ? 1 : 0;
    finish(f, &result);
}

/* A lake that takes nothing is nobody's fault: the job goes back as it came, and others wait. */
static void end_unkept(struct fetch *f, int rc, const char *why)
{
    if (rc == PAWL_EFULL) {
        struct verdict v = {.end = RUN_RELEASED, .unfit = true, .retry_after = DUR_NONE};
        fetch_end(f, v, "the lake takes nothing now: %s", why);
    } else {
        fetch_end(f, verdict_failed(CLASS_ERROR), "cannot keep the body: %s", why);
    }
}

static void on_kept(void *arg, const struct kept *k)
{
    struct fetch *f = arg;
    f->owed--;
    f->keeping = false;
    if (k->rc == 0)
        finish_done(f, &k->what);
    else if (f->cancelled)
        fetch_end(f, (struct verdict){.end = RUN_CANCELLED, .retry_after = DUR_NONE}, "cancelled");
    else
        end_unkept(f, k->rc, k->message ? k->message : "no reason was given");
}

void fetch_keep(struct fetch *f)
{
    struct sink *sink = TAKE_PTR(f->body.sink);
    if (f->body.sink_rc < 0) {
        f->services->sink_drop(sink);
        end_unkept(f, f->body.sink_rc, f->body.sink_err.msg);
        return;
    }
    if (!sink) { /* a HEAD */
        finish_done(f, NULL);
        return;
    }
    body_done(f);
    f->keeping = true;
    f->owed++;
    if (f->exchange.uri.p)
        f->services->about(sink, &f->exchange);
    f->services->keep(sink, f->p.variant, f->record.content_type, on_kept, f);
}

static void end_unchanged(struct fetch *f)
{
    fetch_end(f, (struct verdict){.end = RUN_SKIPPED, .retry_after = DUR_NONE}, "not modified");
}

/* The job has ended well with or without the record. */
static void on_confirmed(void *arg, const struct kept *k)
{
    struct fetch *f = arg;
    (void)k;
    f->owed--;
    f->keeping = false;
    end_unchanged(f);
}

void fetch_unchanged(struct fetch *f)
{
    if (!f->services->confirm || !f->exchange.uri.p) {
        end_unchanged(f);
        return;
    }
    body_done(f);
    f->keeping = true;
    f->owed++;
    f->services->confirm(f->run, &f->exchange, on_confirmed, f);
}

/* ---- the beginning ---- */

struct dur fetch_left(const struct fetch *f)
{
    int64_t left = f->until.us - loop_now(f->h->loop).us;
    return DUR_US(left < 1000 ? 1000 : left);
}

/* While a request is under way libcurl ends it, and knows more about it. What is being kept has
 * been fetched. */
static void on_deadline(struct timer *t)
{
    struct fetch *f = OWNER(t, struct fetch, deadline);
    if (!f->call && !f->keeping)
        hop_timed_out(f);
}

bool fetch_identified(const struct fetch_handler *h, struct sv host, struct pawl_err *err)
{
    if (h->config->fetch_contact[0] || http_host_loopback(host))
        return true;
    err_set(err, PAWL_ECONFIG, "fetch.contact is not set: " SV_FMT " would not know who is asking",
            SV_ARG(host));
    err_hint(err, "put fetch: {contact: you@example.org} into pawl.yaml, or set "
                  "PAWL_FETCH_CONTACT; it goes into the User-Agent");
    return false;
}

static int host_of(struct sv payload, struct str *host, struct pawl_err *err)
{
    struct fetch_payload p;
    struct arena a;
    arena_init(&a);
    int rc = fetch_payload_read(payload, &a, &p, err);
    if (rc == 0 && http_url_host(p.url.p, host, err) < 0)
        rc = err_wrap(err, "payload: \"url\"");
    arena_done(&a);
    return rc;
}

static int fetch_validate(const struct handler *h, struct sv kind, struct sv payload,
                          struct pawl_err *err)
{
    AUTO_STR struct str host = STR_INIT(URL_MAX_BYTES);
    (void)kind;
    int rc = host_of(payload, &host, err);
    if (rc < 0)
        return rc;
    return fetch_identified((const struct fetch_handler *)h, str_sv(&host), err) ? 0 : PAWL_ECONFIG;
}

static void fetch_host(const struct handler *h, struct sv kind, struct sv payload, struct str *out)
{
    (void)h;
    (void)kind;
    int rc = host_of(payload, out, NULL);
    (void)rc; /* it was judged before */
}

static int begin(struct fetch *f, struct pawl_err *err)
{
    int rc = fetch_payload_read(f->run->job->payload, &f->arena, &f->p, err);
    if (rc < 0)
        return rc;
    f->hop = hop_new(f, f->p.url.p, err);
    if (!f->hop)
        return err_wrap(err, "payload: \"url\"");
    if (!fetch_identified(f->h, f->hop->host, err))
        return err->code = PAWL_EINPUT; /* another attempt would not help */
    f->hop->method = f->p.method.p;
    f->hop->body = f->p.body;
    return 0;
}

static int can_start(const struct fetch_handler *h, const struct run *r, struct pawl_err *err)
{
    if (!r->services)
        return err_set(err, PAWL_ECONFIG, "fetch: this worker has no lake to keep bodies in");
    if (h->http)
        return 0;
    *err = h->broken;
    return h->broken.code;
}

static int fetch_start(struct handler *h, struct run *r, struct pawl_err *err)
{
    struct fetch_handler *self = (struct fetch_handler *)h;
    int rc = can_start(self, r, err);
    if (rc < 0)
        return rc;
    struct fetch *f = take_fetch(self);
    f->h = self;
    f->run = r;
    f->services = r->services;
    f->deadline.on_time = on_deadline;
    rc = begin(f, err);
    if (rc < 0) {
        give_fetch(self, f);
        return rc;
    }
    struct dur time = self->config->fetch_timeout;
    if (r->timeout.us > 0 && r->timeout.us < time.us)
        time = r->timeout;
    r->state = f;
    f->until.us = clock_boot().us + time.us;
    loop_timer_set(self->loop, &f->deadline, time);
    hop_enter(f);
    return 0;
}

static void fetch_cancel(struct handler *h, struct run *r, enum cancel_why why)
{
    struct fetch *f = r->state;
    (void)h;
    (void)why;
    f->cancelled = true;
    if (!f->ending && !f->keeping)
        fetch_end(f, (struct verdict){.end = RUN_CANCELLED, .retry_after = DUR_NONE}, "cancelled");
}

/* ---- the handler ---- */

static void fetch_free(struct handler *h)
{
    struct fetch_handler *self = (struct fetch_handler *)h;
    robots_cache_free(self->robots);
    http_free(self->http);
    for (struct fetch *f; (f = self->spare);) {
        self->spare = f->next;
        arena_done(&f->arena);
        free(f);
    }
    free(self->robot);
    free(self);
}

/* Connections are kept for as many fetches as there may be at a time. */
static int idle_connections(const struct config *c)
{
    int64_t slots = c->fetch_slots;
    for (size_t i = 0; i < c->n_pools; i++)
        if (!strcmp(c->pools[i].kind, "fetch"))
            slots = c->pools[i].slots;
    return (int)(slots < 16 ? 16 : slots > 1024 ? 1024 : slots);
}

static void add_agent(const struct config *c, struct str *out)
{
    str_adds(out, c->fetch_user_agent[0] ? c->fetch_user_agent : "pawl/" PAWL_VERSION);
    if (c->fetch_contact[0] && !strstr(str_cstr(out), c->fetch_contact))
        str_addf(out, " (+%s)", c->fetch_contact);
}

static int open_http(struct fetch_handler *self, struct pawl_err *err)
{
    const struct config *c = self->config;
    AUTO_STR struct str agent = STR_INIT(STR_LINE);
    add_agent(c, &agent);
    struct sv robot = robots_token(str_sv(&agent));
    self->robot = mem_dup(robot.p, robot.n);
    struct http_options o = {.ca_file = c->fetch_ca_file[0] ? c->fetch_ca_file : NULL,
                             .user_agent = str_cstr(&agent),
                             .idle = idle_connections(c),
                             .http1 = c->fetch_http[0] == '1'};
    return http_new(self->loop, &o, &self->http, err);
}

struct handler *handler_fetch_new(struct loop *loop, const struct config *config)
{
    static const struct handler_ops ops = {.name = "fetch",
                                           .validate = fetch_validate,
                                           .host = fetch_host,
                                           .start = fetch_start,
                                           .cancel = fetch_cancel,
                                           .free = fetch_free};
    struct fetch_handler *self = mem_zalloc(1, sizeof(*self));
    self->base.ops = &ops;
    self->loop = loop;
    self->config = config;
    if (loop && open_http(self, &self->broken) == 0)
        self->robots = robots_cache_new(self);
    return &self->base;
}
