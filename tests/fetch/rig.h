/* A worker for tests of the fetch handler: services that answer later, as a script says, on one
 * loop with the site. */
#ifndef PAWL_TESTS_FETCH_RIG_H
#define PAWL_TESTS_FETCH_RIG_H

#include "site.h"

#include "config.h"
#include "fetch.h"
#include "handler.h"

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
    int order; /* among those of rig_run(), from 0 */
    char reason[1024], result[1024], peer[64];
    struct fetch_record f;
    char final_url[512], etag[64], modified[64], encoding[64], type[64], redirects[2048],
        headers[1024], address[64], version[8];
};

void rig_begin(const char *const *flags, size_t n); /* "fetch.allow_private=true" is set already */
void rig_end(void);
/* For cmocka: begin without robots.txt, and end. */
int rig_plain(void **state);
int rig_teardown(void **state);
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
/* It ended so, for a reason that has these words in it. */
void check(const struct ended *e, int how, enum fail_class cls, const char *words);
const struct ended *fetch(const char *payload); /* one */
/* {"url": at(path)} and what else is given: ",\"robots\":false" */
const struct ended *get(const char *path, const char *more);

#endif
