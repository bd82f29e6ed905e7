/* The exec handler: a job is a program run by a supervisor (process.h).
 *
 * Kind "exec" takes {"command":["prog","arg",…],"env":{…},"cwd":"…","input":…,"slot":"…","note":…}:
 * a word of the command that is not UTF-8 is written {"hex":"…"}; `slot` names a text for which the
 * number of the worker's slot (also PAWL_SLOT) is put in; `note` is for whoever added the job. A
 * kind that the configuration names with a command runs that command with the whole payload on
 * stdin.
 *
 * The end of an attempt: exit 0 done, 100 skipped, 75 (transient_exit) transient, fatal_exit fatal,
 * anything else, signals and time limits an error; transient_log patterns in the tail of the output
 * make an error transient, throttled_exit and throttled_log that and throttled, for which a
 * transient failure's "Retry-After: SECONDS" in that tail is enough. Descriptor 3 takes control
 * lines, each a JSON object:
 *   {"progress":ANY}  {"result":ANY}  {"job":{…}}: a child job, in the same queue unless it says
 *   {"outcome":"done"|"skip"|"fatal"|"retry","reason":TEXT,"in":DURATION,"class":"transient",
 *    "throttled":true,"retry_after":DURATION}: the peer asked for fewer; transient
 * An outcome counts if the program exits 0. Child jobs and the result are handed over unless the
 * attempt failed by itself (a repeated attempt would add them again). */
#ifndef PAWL_HANDLERS_EXEC_H
#define PAWL_HANDLERS_EXEC_H

#include "config.h"
#include "handler.h"
#include "loop.h"
#include "process.h"

/* All three are borrowed and outlive the handler, which ends by its ops->free. The environment that
 * jobs inherit is read here, once. */
struct handler *handler_exec_new(struct zygote *z, struct loop *loop, const struct config *config);

/* For commands typed as for a shell: every exit status but 0 is an error like any other, and jobs
 * inherit the whole environment. Before the first start. */
void handler_exec_plain(struct handler *h, char *const *environ_);

#endif
