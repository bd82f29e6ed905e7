/* Jobs of kind fetch: how one is made of a URL and a variant, and how a million are added. */
#ifndef PAWL_CLI_FETCH_ADD_H
#define PAWL_CLI_FETCH_ADD_H

#include "meter.h"
#include "url_list.h"

/* What all jobs of one call have in common. */
struct fetch_spec {
    struct sv queue;
    int priority;
    struct str rest; /* of the payload: ',"headers":{…}…', or nothing */
};
/* --queue, --priority, --header, --accept, --reject, --no-robots. USAGE. */
PAWL_MUST_USE int fetch_spec_read(const struct cli *c, struct fetch_spec *out,
                                  struct pawl_err *err);
void fetch_spec_done(struct fetch_spec *s);
/* The job: its key is "VARIANT URL", of the URL as it was given, so a job is unique by queue, URL
 * and variant; what is asked for is `asked`. Everything is copied into the arena. */
struct job_spec fetch_job(const struct fetch_spec *s, struct sv url, const struct variant *v,
                          const struct checked_url *asked, struct arena *a);

/* A known job that has ended. */
struct fetch_ended {
    job_id id;
    struct wall at; /* us 0: it is gone, only its key is left */
    enum job_state state;
    size_t spec; /* in the batch */
};
struct fetch_add {
    struct cli *c;
    bool refresh, dry_run;
    struct dur older_than; /* us < 0: any age */
    struct arena arena;    /* of the batch */
    struct job_spec *specs, *again;
    struct add_result *results;
    struct fetch_ended *ended; /* of the batch, those that can be queued again */
    size_t n;
    struct batch batch;
    int64_t added, refreshed, younger;
    int64_t known[N_JOB_STATES]; /* left as they are */
};
void fetch_add_init(struct fetch_add *f, struct cli *c);
void fetch_add_done(struct fetch_add *f);
/* Time to flush? A URL with all its variants fits in any case. */
static inline bool fetch_add_full(const struct fetch_add *f)
{
    return f->n >= f->batch.size;
}
/* Add the batch: new ones are queued, known ones left, or with `refresh` queued again where they
 * have ended. Dry: look only; without a store everything is new. */
PAWL_MUST_USE int fetch_add_flush(struct fetch_add *f, struct pawl_err *err);
int64_t fetch_known(const struct fetch_add *f);

#endif
