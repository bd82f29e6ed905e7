#include "http_job.h"

#include "hash.h"
#include "http.h"
#include "http_outcome.h"
#include <stdio.h>

#define DEFAULT_TIMEOUT DUR_S(60)
enum { IDLE = 32, HEADER_MAX = 8 << 10 };

struct http_handler {
    struct handler base;
    struct loop *loop;
    const struct config *config;
    struct http *http; /* NULL until the first run */
};

/* A run whose request is under way. */
struct post {
    struct run *run;
    struct http_call *call;
    struct str body; /* of the answer */
};

static int target_of(const struct http_handler *self, struct sv kind, const struct kind_conf **out,
                     struct pawl_err *err)
{
    const struct kind_conf *k = config_kind(self->config, kind);
    if (!k || !k->url)
        return err_set(err, PAWL_ECONFIG, "kinds." SV_FMT ".url: there is none", SV_ARG(kind));
    if (http_url_check(k->url, err) < 0) {
        err_wrap(err, "kinds.%s.url", k->name);
        if (err)
            err->code = PAWL_ECONFIG; /* the job is not to blame */
        return PAWL_ECONFIG;
    }
    *out = k;
    return 0;
}

/* Any JSON is a payload; that it is JSON was checked before. */
static int http_validate(const struct handler *h, struct sv kind, struct sv payload,
                         struct pawl_err *err)
{
    const struct kind_conf *k = NULL;
    (void)payload;
    return target_of((const struct http_handler *)h, kind, &k, err);
}

static void http_host(const struct handler *h, struct sv kind, struct sv payload, struct str *out)
{
    const struct kind_conf *k = NULL;
    (void)payload;
    int rc = target_of((const struct http_handler *)h, kind, &k, NULL);
    if (rc == 0)
        rc = http_url_host(k->url, out, NULL);
    (void)rc; /* it was judged before */
}

/* ---- the request ---- */

/* Its headers, and the texts behind them. */
struct envelope {
    char id[24], attempt[16], fence[24], once[48], timestamp[24];
    struct str queue, key, signature;
    struct http_header headers[10];
    size_t n;
};

static void envelope_done(struct envelope *e)
{
    str_done(&e->queue);
    str_done(&e->key);
    str_done(&e->signature);
}

static void add(struct envelope *e, struct sv name, struct sv value)
{
    e->headers[e->n++] = (struct http_header){name, value};
}

/* Queues and keys may have anything in them; a header not (I14). */
static void add_escaped(struct str *out, struct sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c > 0x20 && c < 0x7f && c != '%')
            str_addc(out, (char)c);
        else
            str_addf(out, "%%%02X", c);
    }
}

/* As alerts are signed, and the job's id and fence are signed too: an old attempt's message cannot
 * be passed off as a newer one's. */
static void sign(struct envelope *e, const char *secret, struct sv payload)
{
    unsigned char mac[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    AUTO_STR struct str all = STR_INIT(PAYLOAD_MAX_BYTES + 128);
    str_addf(&all, "%s.%s.", e->timestamp, e->once);
    str_add(&all, payload);
    hmac_sha256(sv_of(secret), str_sv(&all), mac);
    hex_encode(mac, sizeof(mac), hex);
    str_addf(&e->signature, "sha256=%s", hex);
}

static void seal(struct envelope *e, const struct lease *job, const char *secret)
{
    *e = (struct envelope){
        .queue = STR_INIT(HEADER_MAX), .key = STR_INIT(HEADER_MAX), .signature = STR_INIT(128)};
    snprintf(e->id, sizeof(e->id), "%lld", (long long)job->id.v);
    snprintf(e->attempt, sizeof(e->attempt), "%d", job->attempt);
    snprintf(e->fence, sizeof(e->fence), "%lld", (long long)job->fence.v);
    snprintf(e->once, sizeof(e->once), "%s-%s", e->id, e->fence);
    snprintf(e->timestamp, sizeof(e->timestamp), "%lld", (long long)(clock_wall().us / 1000000));
    add_escaped(&e->queue, job->queue);
    add(e, SV("Content-Type"), SV("application/json"));
    add(e, SV("Pawl-Job-Id"), sv_of(e->id));
    add(e, SV("Pawl-Attempt"), sv_of(e->attempt));
    add(e, SV("Pawl-Fence"), sv_of(e->fence));
    add(e, SV("Pawl-Queue"), str_sv(&e->queue));
    add(e, SV("Idempotency-Key"), sv_of(e->once));
    add(e, SV("Pawl-Timestamp"), sv_of(e->timestamp));
    if (job->key.p) {
        add_escaped(&e->key, job->key);
        add(e, SV("Pawl-Key"), str_sv(&e->key));
    }
    if (secret) {
        sign(e, secret, job->payload);
        add(e, SV("Pawl-Signature"), str_sv(&e->signature));
    }
}

/* ---- a run ---- */

static void post_free(struct post *p)
{
    str_done(&p->body);
    free(p);
}

static bool on_body(void *arg, struct sv bytes)
{
    struct post *p = arg;
    str_add(&p->body, bytes);
    return !p->body.overflow;
}

static void on_answer(void *arg, const struct http_result *res)
{
    struct post *p = arg;
    AUTO_STR struct str words = STR_INIT(ERROR_MAX_BYTES);
    struct run_result result = http_outcome(res, str_sv(&p->body), !p->body.overflow, &words);
    p->run->finish(p->run, &result);
    post_free(p);
}

static int http_job_start(struct handler *h, struct run *r, struct pawl_err *err)
{
    struct http_handler *self = (struct http_handler *)h;
    const struct http_options o = {.idle = IDLE};
    const struct kind_conf *k = NULL;
    int rc = target_of(self, r->job->kind, &k, err);
    if (rc == 0 && !self->http)
        rc = http_new(self->loop, &o, &self->http, err);
    if (rc < 0)
        return rc;
    struct envelope e;
    seal(&e, r->job, k->secret);
    struct dur timeout = r->timeout.us > 0 ? r->timeout : DEFAULT_TIMEOUT;
    const struct http_request req = {.method = "POST",
                                     .url = k->url,
                                     .headers = e.headers,
                                     .n_headers = e.n,
                                     .body = r->job->payload,
                                     .timeout = timeout,
                                     .low_speed_time = timeout, /* it may think before it answers */
                                     .allow_private = true,     /* the operator's own choice */
                                     .on_body = on_body};
    struct post *p = mem_zalloc(1, sizeof(*p));
    p->run = r;
    p->body = STR_INIT(ANSWER_MAX);
    rc = http_start(self->http, &req, on_answer, p, &p->call, err);
    envelope_done(&e);
    if (rc < 0)
        post_free(p);
    else
        r->state = p;
    return rc;
}

static void http_job_cancel(struct handler *h, struct run *r, enum cancel_why why)
{
    (void)h;
    (void)why;
    struct post *p = r->state;
    const struct run_result result = {
        .end = RUN_CANCELLED, .exit_code = -1, .retry_after = DUR_NONE, .asked = DUR_NONE};
    http_cancel(p->call);
    post_free(p);
    r->finish(r, &result);
}

static void http_job_free(struct handler *h)
{
    http_free(((struct http_handler *)h)->http);
    free(h);
}

struct handler *handler_http_new(struct loop *loop, const struct config *config)
{
    static const struct handler_ops ops = {.name = "http",
                                           .validate = http_validate,
                                           .host = http_host,
                                           .start = http_job_start,
                                           .cancel = http_job_cancel,
                                           .free = http_job_free};
    struct http_handler *self = mem_zalloc(1, sizeof(*self));
    self->base.ops = &ops;
    self->loop = loop;
    self->config = config;
    return &self->base;
}
