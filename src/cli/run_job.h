/* `pawl run --job`: one job by the normal rules, in the foreground. */
#ifndef PAWL_CLI_RUN_JOB_H
#define PAWL_CLI_RUN_JOB_H

#include "cli.h"

/* After cli_config(). `base` says how, all but which job. Its output goes to stdout through all its
 * attempts. 0: done or skipped, or ended by a signal (exit_status); JOBS_FAILED; CONFLICT with the
 * reason if it cannot be claimed now; NOTFOUND. */
PAWL_MUST_USE int run_job(struct cli *c, job_id id, const struct run_request *base,
                          struct pawl_err *err);

#endif
