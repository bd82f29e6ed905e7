/* A worker and a web site for tests of the fetch handler, all on one loop: services that answer
 * later, as a script says, and a server on two addresses of loopback. */
#ifndef PAWL_TESTS_FETCH_RIG_H
#define PAWL_TESTS_FETCH_RIG_H

#include "../unit/unit.h"

#include "config.h"
#include "fetch.h"
#include "handler.h"
#include "loop.h"

/* ---- the site ---- */

enum page_then { THEN_KEEP, THEN_CLOSE, THEN_RESET, THEN_HOLD };
/* From now on a path is answered with these bytes. The first `%H` of the text becomes the address
 * and port of the first host, `%O` those of the other. */
void page(const char *path, const char *answer);
void page_then(const char *path, const char *answer, enum page_then then);
/* "HTTP/1.1 STATUS", these header lines, Content-Length and the body. */
void page_body(const char *path, const char *status, const char *headers, struct sv body);
void page_next(const char *path, const char *answer); /* after the answers given before */
int hits(const char *path);
const char *asked(const char *path); /* the last request for it, "" for none */
const char *at(const char *path);    /* URL on the first host; lasts for the next few calls */
const char *at_other(const char *path);
extern const char *const HOST, *const OTHER; /* without port */

/* ---- the worker ---- */

struct kept_body {
    struct str bytes;
    char name[80], type[80];
};
extern struct rig {
    struct loop *loop;
    struct config *config;
    struct handler *handler;
    /* scripts */
    struct admission admissions[8]; /* in turn; then OK */
    size_t n_admissions;
    const struct fetch_record *previous;
    bool strict_then; /* from the first admission on private addresses are refused */
    int full_at;      /* sink_write fails with FULL at this call, counted from 1; 0: never */
    int keep_rc;
    int cancel_at; /* after so many events; 0: never */
    /* what was seen */
    int events, admits, recalls, remembers, previouses, keeps, sinks; /* sinks: open ones */
    int finished, running, wanted;
    char admitted[256], paced[256], remembered[4096];
    struct kept_body kept;
} rig;

/* How a run ended, copied. */
struct ended {
    struct run_result r;
    char reason[1024], result[1024], peer[64];
    struct fetch_record f;
    char final_url[512], etag[64], modified[64], encoding[64], type[64], redirects[2048],
        headers[1024], address[64], version[8];
};

void rig_begin(const char *const *flags, size_t n); /* "fetch.allow_private=true" is set already */
void rig_end(void);
/* Forget what was seen; the site and the handler stay. */
void rig_again(void);
void rig_remember(const char *key, const char *value);
void rig_forget(void);
void rig_cancel_only(int which); /* of the runs that rig_run() starts; -1: all */
/* Starts runs with these payloads together, and waits until all have ended. */
struct job_given {
    const char *payload;
    const char *host; /* NULL: HOST; "": none */
    int fence;        /* 0: 1 */
    struct dur timeout;
};
void rig_run(const struct job_given *jobs, size_t n, struct ended *out);
const struct ended *fetch(const char *payload); /* one */
/* {"url": at(path)} and what else is given: ",\"robots\":false" */
const struct ended *get(const char *path, const char *more);

#endif
