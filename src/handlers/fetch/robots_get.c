/* Asking a server for its robots.txt, up to five redirects far; those that lead to another host
 * pass its gates like any fetch, in the name of one who waits. */
#include "fetch_parts.h"

#include "mem.h"
#include <stdio.h>

enum { ANSWER_MAX = 512 << 10, REDIRECTS_MAX = 5 };
static const struct dur SHORTEST_WAIT = {10000};

static void ask_gates(struct robots_entry *e);
static void on_answer(void *arg, const struct http_result *res);

static void go_to(struct robots_entry *e, char *url, const char *host)
{
    free(e->url);
    free(e->at_host);
    e->url = url;
    e->at_host = host ? mem_strdup(host) : NULL;
}

static void send_request(struct robots_entry *e)
{
    struct fetch_handler *h = e->h;
    const struct config *c = h->config;
    struct pawl_err err = {0};
    struct http_request req = {.url = e->url,
                               .connect_timeout = c->fetch_connect_timeout,
                               .low_speed_time = c->fetch_low_speed_time,
                               .timeout =
                                   c->fetch_timeout.us < 60000000 ? c->fetch_timeout : DUR_S(60),
                               .max_body = ANSWER_MAX,
                               .allow_private = c->fetch_allow_private};
    if (http_start(h->http, &req, on_answer, e, &e->call, &err) < 0)
        robots_failed(e, verdict_failed(CLASS_ERROR), err.msg, true);
}

void robots_get(struct robots_entry *e)
{
    AUTO_STR struct str url = STR_INIT(STR_LINE);
    str_addf(&url, "%s/robots.txt", e->origin);
    go_to(e, mem_strdup(str_cstr(&url)), e->host);
    e->redirects = 0;
    send_request(e);
}

void robots_get_stop(struct robots_entry *e)
{
    if (e->call)
        http_cancel(e->call);
    e->call = NULL;
    loop_timer_clear(e->h->loop, &e->pause);
    go_to(e, NULL, NULL);
    free(e->gate);
    e->gate = NULL;
}

/* ---- redirects ---- */

static void on_pause(struct timer *t)
{
    ask_gates(OWNER(t, struct robots_entry, pause));
}

static void wait_for_gate(struct robots_entry *e, const struct admission *a)
{
    struct dur wait = a->wait.us < SHORTEST_WAIT.us ? SHORTEST_WAIT : a->wait;
    free(e->gate);
    e->gate = mem_dup(a->gate.p ? a->gate.p : "", a->gate.n);
    e->pause.on_time = on_pause;
    loop_timer_set(e->h->loop, &e->pause, wait);
}

/* Its lease is lost, which another's need not be. */
static void lose_sponsor(struct robots_entry *e, struct fetch *sponsor)
{
    struct verdict v = {.end = RUN_RELEASED, .retry_after = DUR_NONE};
    robots_hold(e);
    if (!sponsor->ending)
        fetch_end(sponsor, v, "the lease is no longer held");
    if (robots_unhold(e))
        ask_gates(e);
}

static void on_admission(void *arg, const struct admission *a)
{
    struct robots_entry *e = arg;
    struct fetch *sponsor;
    if (!robots_sponsored(e, &sponsor)) {
        robots_sponsor_done(sponsor);
        return;
    }
    if (a->outcome == ADMIT_SHUT) {
        wait_for_gate(e, a);
    } else if (a->outcome == ADMIT_STALE) {
        lose_sponsor(e, sponsor);
    } else {
        free(TAKE_PTR(e->gate));
        send_request(e);
    }
    robots_sponsor_done(sponsor);
}

static void ask_gates(struct robots_entry *e)
{
    struct fetch *f = robots_sponsor(e);
    f->services->admit(f->run, sv_of(e->at_host), on_admission, e);
}

/* RFC 9309, 2.3.1.2: a chain that does not end means that there is none. The same goes for a target
 * that is no URL for pawl. */
static void follow(struct robots_entry *e, struct sv target)
{
    AUTO_STR struct str host = STR_INIT(STR_LINE);
    AUTO_FREE char *url = mem_dup(target.p, target.n);
    struct pawl_err err = {0};
    url[strcspn(url, "#")] = '\0';
    if (++e->redirects > REDIRECTS_MAX || http_url_host(url, &host, &err) < 0) {
        robots_known(e, NULL, true);
        return;
    }
    if (!fetch_identified(e->h, str_sv(&host), &err)) {
        robots_failed(e, verdict_failed(CLASS_FATAL), err.msg, true);
        return;
    }
    bool same = !strcmp(str_cstr(&host), e->at_host);
    go_to(e, TAKE_PTR(url), str_cstr(&host));
    if (same || !strcmp(e->at_host, e->host))
        send_request(e);
    else
        ask_gates(e);
}

/* ---- the answer (RFC 9309, 2.3.1) ---- */

static void fail_by_status(struct robots_entry *e, const struct http_result *res)
{
    char why[32];
    struct verdict v = verdict_of_status(res->status, res->retry_after);
    v.cls = CLASS_TRANSIENT;
    snprintf(why, sizeof(why), "HTTP %d", res->status);
    robots_failed(e, v, why, true);
}

static void fail_by_error(struct robots_entry *e, const struct http_result *res)
{
    AUTO_STR struct str why = STR_INIT(STR_LINE);
    str_addf(&why, "%s%s", res->message, error_remedy(res->error));
    robots_failed(e, verdict_of_error(res->error), str_cstr(&why), true);
}

static void on_answer(void *arg, const struct http_result *res)
{
    struct robots_entry *e = arg;
    bool good = res->status >= 200 && res->status <= 299;
    bool cut = res->error == HTTP_TOO_LARGE && good && res->body.n; /* its beginning counts */
    e->call = NULL;
    if (res->error != HTTP_OK && !cut)
        fail_by_error(e, res);
    else if (good)
        robots_known(e, robots_parse(res->body, sv_of(e->h->robot)), true);
    else if (res->redirect.p && status_redirects(res->status))
        follow(e, res->redirect);
    else if (res->status == 429 || res->status >= 500)
        fail_by_status(e, res);
    else
        robots_known(e, NULL, true); /* there is none */
}
