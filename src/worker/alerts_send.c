/* The loop's side: one try at a time for each target, by a command or a POST. */
#include "alerts_internal.h"

#include "hash.h"
#include "http.h"
#include "worker_internal.h"
#include <stdio.h>

#define TRY_TIMEOUT DUR_S(30)
enum { ANSWER_MAX = 64 << 10 };

/* Failing is said once, and so is its end. */
static void say(struct channel *c, const char *error)
{
    struct worker *w = c->alerts->worker;
    if (error && !c->failing)
        LOG(&w->log, LOG_WARN, "alert_failed", LOG_S("alert", sv_of(c->alert->name)),
            LOG_S("error", sv_of(error)));
    else if (!error && c->failing)
        LOG(&w->log, LOG_INFO, "alert_works", LOG_S("alert", sv_of(c->alert->name)));
}

/* error NULL: it was taken. */
static void end(struct channel *c, const char *error, struct dur retry_after)
{
    struct alerts *a = c->alerts;
    say(c, error);
    pthread_mutex_lock(&a->lock);
    c->state = CHANNEL_ENDED;
    c->ok = !error;
    c->failing = error != NULL;
    c->retry_after = retry_after;
    c->call = NULL;
    c->aside = NULL;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->lock);
    if (a->closing && channels_quiet(a))
        loop_stop(a->o->loop);
}

static void on_answer(void *arg, const struct http_result *res)
{
    char error[256];
    if (res->error == HTTP_OK && res->status >= 200 && res->status < 300) {
        end(arg, NULL, DUR_NONE);
        return;
    }
    if (res->error == HTTP_OK)
        snprintf(error, sizeof(error), "answer %d", res->status);
    else
        snprintf(error, sizeof(error), "%s: %s", http_error_name(res->error), res->message);
    end(arg, error, res->retry_after);
}

static void on_command_end(void *arg, const char *error)
{
    end(arg, error, DUR_NONE);
}

/* sha256 of "TIMESTAMP.BODY" under the secret: the time is signed too, so that an old message
 * cannot be sent again as a new one. */
static void sign(const struct channel *c, const char *timestamp, struct str *out)
{
    unsigned char mac[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    AUTO_STR struct str all = STR_INIT(ALERT_BODY_MAX + 64);
    str_adds(&all, timestamp);
    str_addc(&all, '.');
    str_add(&all, str_sv(&c->body));
    hmac_sha256(sv_of(c->alert->secret), str_sv(&all), mac);
    hex_encode(mac, sizeof(mac), hex);
    str_addf(out, "sha256=%s", hex);
}

static int post(struct worker *w, struct channel *c, struct pawl_err *err)
{
    char timestamp[32];
    AUTO_STR struct str signature = STR_INIT(128);
    snprintf(timestamp, sizeof(timestamp), "%lld", (long long)(clock_wall().us / 1000000));
    if (c->alert->secret)
        sign(c, timestamp, &signature);
    const struct http_header headers[] = {{SV("Content-Type"), SV("application/json")},
                                          {SV("Pawl-Timestamp"), sv_of(timestamp)},
                                          {SV("Pawl-Signature"), str_sv(&signature)}};
    const struct http_request req = {.url = c->alert->url,
                                     .headers = headers,
                                     .n_headers = c->alert->secret ? 3 : 2,
                                     .body = str_sv(&c->body),
                                     .timeout = TRY_TIMEOUT,
                                     .max_body = ANSWER_MAX,
                                     .allow_private = true}; /* the operator's own choice */
    int rc = w->http ? 0 : http_new(w->loop, NULL, &w->http, err);
    return rc < 0 ? rc : http_start(w->http, &req, on_answer, c, &c->call, err);
}

static int run(struct worker *w, struct channel *c, struct pawl_err *err)
{
    const struct aside aside = {
        .command = &c->alert->command, .input = str_sv(&c->body), .timeout = TRY_TIMEOUT};
    if (!w->o->run_aside)
        return err_set(err, PAWL_EINTERNAL, "this worker cannot run commands for alerts");
    return w->o->run_aside(w->o->on_arg, &aside, on_command_end, c, &c->aside, err);
}

static void start(struct worker *w, struct channel *c)
{
    struct pawl_err err = {0};
    int rc = c->alert->url ? post(w, c, &err) : run(w, c, &err);
    if (rc < 0)
        end(c, err.msg, DUR_NONE);
}

void channels_start(struct alerts *a, struct worker *w)
{
    for (size_t i = 0; i < a->o->config->n_alerts; i++) {
        struct channel *c = &a->channels[i];
        pthread_mutex_lock(&a->lock);
        bool ready = c->state == CHANNEL_READY;
        if (ready) {
            c->state = CHANNEL_SENDING;
            c->since = clock_boot();
        }
        pthread_mutex_unlock(&a->lock);
        if (ready)
            start(w, c);
    }
}

void channels_cancel(struct alerts *a)
{
    for (size_t i = 0; i < a->o->config->n_alerts; i++) {
        struct channel *c = &a->channels[i];
        if (c->call)
            http_cancel(c->call);
        c->call = NULL;
        if (c->aside)
            a->o->end_aside(c->aside);
    }
}

bool channels_quiet(const struct alerts *a)
{
    for (size_t i = 0; i < a->o->config->n_alerts; i++)
        if (a->channels[i].aside)
            return false;
    return true;
}
