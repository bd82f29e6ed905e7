/* What an answer, or the lack of one, means for the job. */
#include "fetch_parts.h"

#include <strings.h>

struct verdict verdict_failed(enum fail_class cls)
{
    return (struct verdict){.end = RUN_FAILED, .cls = cls, .retry_after = DUR_NONE};
}

struct verdict verdict_of_error(enum http_error e)
{
    struct verdict v = verdict_failed(CLASS_TRANSIENT);
    switch (e) {
    case HTTP_BLOCKED_ADDRESS:
    case HTTP_TOO_LARGE:
        v.cls = CLASS_FATAL;
        break;
    case HTTP_TLS: /* a certificate does not become good by waiting, but people renew them */
    case HTTP_STOPPED:
    case HTTP_INTERNAL:
        v.cls = CLASS_ERROR;
        break;
    case HTTP_TIMEOUT:
        v.timed_out = true;
        break;
    default: /* name, connection, early end */
        break;
    }
    return v;
}

const char *error_remedy(enum http_error e)
{
    return e == HTTP_BLOCKED_ADDRESS ? "; fetch.allow_private is off" : "";
}

struct verdict verdict_of_status(int status, struct dur retry_after)
{
    struct verdict v = verdict_failed(CLASS_FATAL);
    if (status == 206) /* somebody between serves a part that another asked for, for now */
        v.cls = CLASS_ERROR;
    if (status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599)) {
        v.cls = CLASS_TRANSIENT;
        v.throttled = status == 429 || status == 503;
        v.retry_after = retry_after;
    }
    return v;
}

static bool part_wanted(const struct fetch_payload *p)
{
    for (size_t i = 0; i < p->n_headers; i++)
        if (p->headers[i].name.n == 5 && !strncasecmp(p->headers[i].name.p, "range", 5))
            return true;
    return false;
}

bool status_accepted(const struct fetch_payload *p, int status)
{
    for (size_t i = 0; i < p->n_accept; i++)
        if (p->accept[i] == status)
            return true;
    if (p->n_accept || status < 200 || status > 299)
        return false;
    return status != 206 || part_wanted(p);
}

bool status_redirects(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
