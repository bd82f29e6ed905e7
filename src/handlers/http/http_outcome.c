#include "http_outcome.h"

#include "json.h"
#include "text.h"

enum { EXCERPT = 200, TARGET = 300 };

static struct run_result failed(enum fail_class cls, const struct str *words)
{
    return (struct run_result){.end = RUN_FAILED,
                               .cls = cls,
                               .reason = str_sv(words),
                               .exit_code = -1,
                               .retry_after = DUR_NONE,
                               .asked = DUR_NONE};
}

static bool is_json(struct sv text)
{
    AUTO_JSON struct json doc = {0};
    return text.n && json_parse(&doc, text, NULL) == 0;
}

/* What is no JSON is a receiver's small talk ("OK"), not a result and no failure. */
static struct run_result done(struct sv body, bool whole)
{
    struct sv text = sv_trim(body);
    return (struct run_result){.end = RUN_DONE,
                               .result = whole && is_json(text) ? text : SV_NONE,
                               .exit_code = -1,
                               .retry_after = DUR_NONE,
                               .asked = DUR_NONE};
}

static enum fail_class class_of_status(int status)
{
    return status >= 500 || status == 408 || status == 425 || status == 429 ? CLASS_TRANSIENT
                                                                            : CLASS_FATAL;
}

static struct run_result answered(const struct http_result *res, struct sv body, struct str *words)
{
    struct sv text = sv_trim(body);
    str_addf(words, "answer %d", res->status);
    if (res->redirect.p) {
        AUTO_STR struct str target = STR_INIT(STR_LINE);
        text_url(&target, res->redirect);
        str_adds(words, ": redirects are not followed; it leads to ");
        text_safe(words, str_sv(&target), TARGET);
    } else if (text.n) {
        str_adds(words, ": ");
        text_safe(words, text, EXCERPT);
    }
    struct run_result r = failed(class_of_status(res->status), words);
    r.throttled = res->status == 429 || res->status == 503;
    if (r.cls == CLASS_TRANSIENT)
        r.retry_after = res->retry_after;
    return r;
}

/* A certificate that does not hold or an answer out of bounds will hardly be better in a moment: it
 * costs attempts. What the network or this client did to the request costs none. */
static struct run_result broken(const struct http_result *res, struct str *words)
{
    bool theirs = res->error == HTTP_TLS || res->error == HTTP_TOO_LARGE;
    str_addf(words, "%s: %s", http_error_name(res->error), res->message);
    struct run_result r = failed(theirs ? CLASS_ERROR : CLASS_TRANSIENT, words);
    r.timed_out = res->error == HTTP_TIMEOUT;
    return r;
}

struct run_result http_outcome(const struct http_result *res, struct sv body, bool whole,
                               struct str *words)
{
    if (res->error != HTTP_OK && res->error != HTTP_STOPPED)
        return broken(res, words);
    if (res->status >= 200 && res->status < 300)
        return done(body, whole);
    return answered(res, body, words);
}
