/* One hop: let in by the gates of its host, allowed by robots.txt, asked for, and what its answer
 * leads to. The steps stand in this order; each ends the run or leads to the next. */
#include "fetch_parts.h"

#include "text.h"
#include <strings.h>

static const struct dur SHORTEST_WAIT = {10000}; /* before a shut gate is asked again */

static void ask_gates(struct fetch *f);
static void ask_robots(struct fetch *f);
static void ask_previous(struct fetch *f);
static void send_request(struct fetch *f);

/* In the arena, without a fragment: that is never sent. */
struct hop *hop_new(struct fetch *f, const char *url, struct pawl_err *err)
{
    AUTO_STR struct str host = STR_INIT(STR_LINE), origin = STR_INIT(STR_LINE);
    size_t n = strcspn(url, "#");
    struct hop *h = arena_zalloc(&f->arena, 1, sizeof(*h));
    h->url = arena_strndup(&f->arena, url, n);
    if (http_url_new(h->url, &h->parsed, err) < 0)
        return NULL;
    h->made_before = f->made;
    f->made = h;
    http_url_names(h->parsed, &host, &origin);
    h->host = sv_make(arena_strndup(&f->arena, str_cstr(&host), host.len), host.len);
    h->origin = sv_make(arena_strndup(&f->arena, str_cstr(&origin), origin.len), origin.len);
    return h;
}

void hops_free(struct fetch *f)
{
    for (struct hop *h = f->made; h; h = h->made_before)
        http_url_free(h->parsed);
}

void hop_enter(struct fetch *f)
{
    struct sv own = f->run->job->host, host = f->hop->host;
    bool inside = (own.p && sv_eq(own, host)) || (f->admitted.p && sv_eq(f->admitted, host));
    if (inside)
        ask_robots(f);
    else
        ask_gates(f);
}

/* ---- the gates ---- */

static void on_pause(struct timer *t)
{
    ask_gates(OWNER(t, struct fetch, pause));
}

static void wait_for_gate(struct fetch *f, const struct admission *a)
{
    struct dur wait = a->wait.us < SHORTEST_WAIT.us ? SHORTEST_WAIT : a->wait;
    f->gate = sv_make(arena_strndup(&f->arena, a->gate.p ? a->gate.p : "", a->gate.n), a->gate.n);
    f->gate_wait = wait;
    f->pause.on_time = on_pause;
    loop_timer_set(f->h->loop, &f->pause, wait);
}

static void on_admission(void *arg, const struct admission *a)
{
    struct fetch *f = arg;
    if (!fetch_answered(f))
        return;
    if (a->outcome == ADMIT_SHUT) {
        wait_for_gate(f, a);
    } else if (a->outcome == ADMIT_STALE) {
        struct verdict v = {.end = RUN_RELEASED, .retry_after = DUR_NONE};
        fetch_end(f, v, "the lease is no longer held");
    } else {
        f->gate = SV_NONE;
        f->admitted = f->hop->host;
        ask_robots(f);
    }
}

static void ask_gates(struct fetch *f)
{
    f->owed++;
    f->services->admit(f->run, f->hop->host, on_admission, f);
}

/* ---- robots.txt ---- */

/* Path and query of a URL without fragment, as written. */
static struct sv path_of(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *path = host + strcspn(host, "/?");
    return sv_of(path);
}

void hop_turn_came(struct fetch *f)
{
    ask_previous(f);
}

/* Nobody was asked and nobody failed: it costs the job nothing but time. */
static void come_later(struct fetch *f, struct dur wait)
{
    struct verdict v = {.end = RUN_RELEASED, .retry_after = wait};
    fetch_end(f, v, "Crawl-delay of " SV_FMT ": it is not its turn yet", SV_ARG(f->hop->host));
}

static void take_turn(struct fetch *f, struct robots_entry *e)
{
    struct dur later;
    switch (robots_turn(e, f, &later)) {
    case TURN_NOW:
        ask_previous(f);
        break;
    case TURN_LATER:
        come_later(f, later);
        break;
    case TURN_WAITS:
        break;
    }
}

void hop_robots_known(struct fetch *f, struct robots_entry *e)
{
    const struct robots_answer *a = &e->answer;
    struct sv host = f->hop->host;
    if (a->failed) {
        fetch_end(f, a->verdict, "robots.txt of " SV_FMT " cannot be read: %s", SV_ARG(host),
                  a->why);
    } else if (a->rules && !robots_allows(a->rules, path_of(f->hop->url))) {
        struct verdict v = {.end = RUN_SKIPPED, .retry_after = DUR_NONE};
        fetch_end(f, v, "robots.txt of " SV_FMT " disallows it", SV_ARG(host));
    } else {
        take_turn(f, e);
    }
}

static void ask_robots(struct fetch *f)
{
    bool wanted = f->p.robots >= 0 ? f->p.robots : f->h->config->fetch_robots;
    if (!wanted) {
        ask_previous(f);
        return;
    }
    struct robots_entry *e = robots_ask(f->h->robots, f);
    if (e)
        hop_robots_known(f, e);
}

/* ---- what was kept before ---- */

static struct sv keep_text(struct fetch *f, struct sv s)
{
    return s.n && record_clean(s) ? sv_make(arena_strndup(&f->arena, s.p, s.n), s.n) : SV_NONE;
}

static void on_previous(void *arg, const struct fetch_record *r)
{
    struct fetch *f = arg;
    if (r && status_accepted(&f->p, r->status) && (r->etag.n || r->last_modified.n)) {
        f->old_url = keep_text(f, r->final_url.n ? r->final_url : r->url);
        f->old_etag = keep_text(f, r->etag);
        f->old_modified = keep_text(f, r->last_modified);
    }
    if (fetch_answered(f))
        send_request(f);
}

static void ask_previous(struct fetch *f)
{
    /* a 304 that is wanted as an answer would be kept instead of what it refers to */
    bool plain = !status_accepted(&f->p, 304) && sv_eq(f->p.method, SV("GET"));
    if (f->remembered || !plain || f->run->job->fence.v <= 1) {
        send_request(f);
        return;
    }
    f->remembered = true;
    f->owed++;
    f->services->previous(f->run, on_previous, f);
}

/* ---- the request ---- */

static bool named(struct sv name, const char *what)
{
    return name.n == strlen(what) && !strncasecmp(name.p, what, name.n);
}

/* On another origin only what tells nothing about whom it was meant for; with another method
 * nothing about a body that is not sent. */
static bool header_goes(const struct hop *h, struct sv name)
{
    if (h->bare)
        return named(name, "accept") || named(name, "accept-language") ||
               named(name, "accept-encoding");
    return h->body.p || !h->before || !(name.n > 8 && !strncasecmp(name.p, "content-", 8));
}

static size_t add_headers(struct fetch *f, struct http_header *out)
{
    size_t n = 0;
    struct hop *h = f->hop;
    bool own = false;
    for (size_t i = 0; i < f->p.n_headers; i++) {
        struct sv name = f->p.headers[i].name;
        if (!header_goes(h, name))
            continue;
        own = own || named(name, "if-none-match") || named(name, "if-modified-since");
        out[n++] = (struct http_header){name, f->p.headers[i].value};
    }
    h->conditional = own;
    if (own || !f->old_url.p || !sv_eq(f->old_url, sv_of(h->url)))
        return n;
    if (f->old_etag.p)
        out[n++] = (struct http_header){SV("If-None-Match"), f->old_etag};
    if (f->old_modified.p)
        out[n++] = (struct http_header){SV("If-Modified-Since"), f->old_modified};
    h->conditional = true;
    return n;
}

static void on_answer(void *arg, const struct http_result *res);

static void send_request(struct fetch *f)
{
    const struct config *c = f->h->config;
    struct pawl_err err = {0};
    struct http_header *headers =
        arena_alloc(&f->arena, (f->p.n_headers + 2) * sizeof(struct http_header));
    struct http_request req = {.method = f->hop->method,
                               .url = f->hop->url,
                               .parsed = f->hop->parsed,
                               .headers = headers,
                               .n_headers = add_headers(f, headers),
                               .body = f->hop->body,
                               .connect_timeout = c->fetch_connect_timeout,
                               .timeout = fetch_left(f),
                               .low_speed_time = c->fetch_low_speed_time,
                               .allow_private = c->fetch_allow_private,
                               .wire = true,
                               .heads = exchange_wanted(f),
                               .on_body = body_piece};
    f->asked = true;
    f->asked_at = clock_wall();
    if (http_start(f->h->http, &req, on_answer, f, &f->call, &err) < 0) {
        f->asked = f->hop->before;
        fetch_end(f, verdict_failed(err.code == PAWL_EINPUT ? CLASS_FATAL : CLASS_ERROR), "%s",
                  err.msg);
    }
}

/* ---- the answer ---- */

static void end_by_status(struct fetch *f, const struct http_result *res)
{
    AUTO_STR struct str said = STR_INIT(STR_LINE);
    if (res->status == 206)
        str_adds(&said, ": only a part of it, which was not asked for");
    else
        body_say(f, res->content_type, &said);
    fetch_end(f, verdict_of_status(res->status, res->retry_after), "HTTP %d%s%.500s%s", res->status,
              f->hop->before ? " from " : "", f->hop->before ? f->hop->url : "", str_cstr(&said));
}

static void end_by_error(struct fetch *f, const struct http_result *res)
{
    fetch_end(f, verdict_of_error(res->error), SV_FMT ": %s%s", SV_ARG(f->hop->host), res->message,
              error_remedy(res->error));
}

/* The body itself was the trouble, found while it came. */
static bool end_by_body(struct fetch *f)
{
    struct body *b = &f->body;
    if (!b->keep)
        return false;
    if (b->sink_rc < 0) {
        fetch_keep(f); /* which tells why it cannot */
    } else if (b->trouble == DECODE_TOO_LARGE) {
        int64_t max = f->p.max_body ? f->p.max_body : f->h->config->fetch_max_body;
        fetch_end(f, verdict_failed(CLASS_FATAL), "the body is larger than %lld bytes",
                  (long long)max);
    } else if (b->trouble == DECODE_BAD) {
        fetch_end(f, verdict_failed(CLASS_ERROR), "the body is not %.60s as it says to be",
                  f->record.encoding.p ? f->record.encoding.p : "encoded");
    } else if (b->rejected.p) {
        struct verdict v = verdict_failed(CLASS_TRANSIENT);
        v.throttled = true;
        fetch_end(f, v, "blocked: the body holds \"%.*s\"",
                  (int)(b->rejected.n < 100 ? b->rejected.n : 100), b->rejected.p);
    } else {
        return false;
    }
    return true;
}

static void end_whole(struct fetch *f, const struct http_result *res)
{
    if (f->body.keep && !f->whole) {
        fetch_end(f, verdict_failed(CLASS_TRANSIENT), "%s: the body is cut short", f->hop->url);
    } else if (status_accepted(&f->p, res->status)) {
        exchange_keep(f, res);
        fetch_keep(f);
    } else if (res->status == 304 && f->hop->conditional) {
        exchange_keep_head(f, res);
        fetch_unchanged(f);
    } else {
        end_by_status(f, res);
    }
}

/* ---- redirects ---- */

static bool seen_before(const struct hop *h, const char *url, const char *method)
{
    for (; h; h = h->before)
        if (!strcmp(h->url, url) && !strcmp(h->method, method))
            return true;
    return false;
}

/* RFC 9110, 15.4, as everybody does it: after 301 and 302 a POST becomes a GET, after 303 all but a
 * HEAD do, after 307 and 308 nothing changes. */
static void carry_over(struct hop *to, const struct hop *from, int status)
{
    bool get = status == 303 ? strcmp(from->method, "HEAD") != 0
                             : status <= 302 && !strcmp(from->method, "POST");
    to->method = get ? "GET" : from->method;
    to->body = get ? SV_NONE : from->body;
    to->bare = from->bare || !sv_eq(to->origin, from->origin);
    to->before = (struct hop *)(uintptr_t)from;
}

/* NULL: the redirect is not followed, and the run has ended. */
static struct hop *next_hop(struct fetch *f, int status, struct sv target)
{
    struct verdict fatal = verdict_failed(CLASS_FATAL);
    struct pawl_err err = {0};
    const char *url = arena_strndup(&f->arena, target.p, target.n);
    struct hop *next = target.n <= URL_MAX_BYTES ? hop_new(f, url, &err) : NULL;
    if (!next) {
        fetch_end(f, fatal, "redirected to where it cannot go: %s",
                  err.code ? err.msg : "the URL is too long");
        return NULL;
    }
    carry_over(next, f->hop, status);
    if (seen_before(f->hop, next->url, next->method))
        fetch_end(f, fatal, "redirected in a circle: %.500s", next->url);
    else if (f->redirects >= f->h->config->fetch_max_redirects)
        fetch_end(f, fatal, "redirected more than %d times", f->redirects);
    else if (next->bare && next->body.p)
        fetch_end(f, fatal, "redirected with its body to another origin: %.500s", next->url);
    else if (!fetch_identified(f->h, next->host, &err))
        fetch_end(f, fatal, "%s", err.msg);
    else
        return next;
    return NULL;
}

static void follow(struct fetch *f, const struct http_result *res)
{
    record_redirect(f, res->status, sv_of(f->hop->url));
    struct hop *next = next_hop(f, res->status, res->redirect);
    if (!next)
        return;
    body_done(f);
    f->redirects++;
    f->hop = next;
    hop_enter(f);
}

static void on_answer(void *arg, const struct http_result *res)
{
    struct fetch *f = arg;
    bool whole = res->error == HTTP_OK || (res->error == HTTP_STOPPED && !f->body.keep);
    f->call = NULL;
    record_hop(f, res);
    if (end_by_body(f))
        return;
    bool wanted = status_accepted(&f->p, res->status);
    if (!whole && res->status >= 400 && !wanted)
        end_by_status(f, res); /* it has said enough */
    else if (!whole)
        end_by_error(f, res);
    else if (!wanted && res->redirect.p && status_redirects(res->status))
        follow(f, res);
    else
        end_whole(f, res);
}

/* ---- the end of its time ---- */

void hop_timed_out(struct fetch *f)
{
    struct verdict v = verdict_failed(CLASS_TRANSIENT);
    struct sv gate = f->gate.p ? f->gate : robots_gate(f);
    struct sv host = f->hop->host;
    if (gate.p) { /* nobody failed: the host has not been asked */
        v.throttled = true;
        v.retry_after = f->gate.p ? f->gate_wait : DUR_NONE;
        fetch_end(f, v, "no room at " SV_FMT " in time: %.200s is shut", SV_ARG(host), gate.p);
    } else if (f->waits_for) {
        v.timed_out = true;
        fetch_end(f, v, "robots.txt of " SV_FMT " did not come in time", SV_ARG(host));
    } else if (f->in_line) {
        come_later(f, f->in_line->answer.apart);
    } else {
        fetch_end(f, v, "its time was over before " SV_FMT " could be asked", SV_ARG(host));
    }
}
