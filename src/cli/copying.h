/* A copy from one store to another, step by step; `pawl copy` around it. */
#ifndef PAWL_CLI_COPYING_H
#define PAWL_CLI_COPYING_H

#include "cli.h"
#include "copy.h"

struct compared {
    struct copy_sum source, target;
    struct str first; /* what differs first: "17: payload"; empty: nothing does */
};

struct copying {
    struct cli *c;
    struct store *from, *to;
    const char *from_name, *to_name; /* for messages */
    bool force, replace;
    struct copy_facts facts; /* of the source when it began */
    bool begun, resumed;     /* the target is marked; by an earlier run */
    int64_t rows, released;
    struct compared tables[N_COPY_TABLES];
    bool equal;
    struct boot start, said;
};
void copying_done(struct copying *k);

/* Copies all rows that are not there yet, unless compare_only, and compares: fills tables and
 * equal. The source is read in one snapshot. *out_stopped: a signal came; the same command will go
 * on. CONFLICT where the target, or running jobs of the source, forbid it. */
PAWL_MUST_USE int copying_run(struct copying *k, bool compare_only, bool *out_stopped,
                              struct pawl_err *err);
/* The target becomes a store of its own. CONFLICT if the source has changed meanwhile. */
PAWL_MUST_USE int copying_finish(struct copying *k, struct pawl_err *err);

#endif
