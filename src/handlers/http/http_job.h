/* Kind http: POSTs a job's payload to a URL of the configuration (kinds: {NAME: {handler: http,
 * url: …, secret: …}}): a webhook worker. Same classes and retries as fetch.
 *
 * The body is the payload as it was given. Headers: Content-Type: application/json, Pawl-Job-Id,
 * Pawl-Attempt, Pawl-Fence, Pawl-Queue and Pawl-Key (%HH for all but visible ASCII; no key: none),
 * Idempotency-Key (ID-FENCE), Pawl-Timestamp (seconds since 1970) and with a secret Pawl-Signature:
 * "sha256=" and the HMAC of "TIMESTAMP.ID-FENCE.BODY" under it.
 *
 * 2xx is done, and a JSON body of at most 64 KiB the result. */
#ifndef PAWL_HANDLERS_HTTP_JOB_H
#define PAWL_HANDLERS_HTTP_JOB_H

#include "config.h"
#include "handler.h"

/* Borrows loop and config; loop NULL: to judge payloads only. */
struct handler *handler_http_new(struct loop *loop, const struct config *config);

#endif
