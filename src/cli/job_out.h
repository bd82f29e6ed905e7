/* How a job is written: the JSON shape of DESIGN §6 and the words for people. */
#ifndef PAWL_CLI_JOB_OUT_H
#define PAWL_CLI_JOB_OUT_H

#include "cli.h"

enum job_detail {
    JOB_BRIEF,    /* no payload, result, attempts */
    JOB_FULL,     /* with payload and result */
    JOB_COMPLETE, /* with attempts too */
};
/* One object. The configuration resolves budgets and limits that the job leaves to it. */
void job_write(struct jw *w, const struct job_view *job, enum job_detail detail,
               const struct config *config);
/* The same without the braces around its members. */
void job_members(struct jw *w, const struct job_view *job, enum job_detail detail,
                 const struct config *config);

/* What holds for the job: its own, its kind's, else the general setting. */
int job_max_attempts(const struct job_view *job, const struct config *config);
struct dur job_timeout(const struct job_view *job, const struct config *config); /* us < 0: none */

enum style job_state_style(enum job_state s);

/* Built in or configured: a worker of this configuration can run it. */
bool kind_here(const struct cli *c, struct sv kind);
/* Kinds somebody can run: built in, configured, or told by a live worker. */
bool kind_known(const struct cli *c, const struct status_view *status, struct sv kind);
/* Warn on stderr that nobody knows the kind. Asks the store only when the configuration does not
 * know it. Returns false if the store failed. */
void kind_warn(struct cli *c, struct sv kind);

#endif
