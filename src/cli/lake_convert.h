/* Artifacts from one form of the lake into the other. */
#ifndef PAWL_CLI_LAKE_CONVERT_H
#define PAWL_CLI_LAKE_CONVERT_H

#include "artifacts_out.h"
#include "meter.h"

struct convert {
    struct cli *c;
    struct lake *lake; /* that writes the wanted form */
    bool pack;         /* which is that */
    struct meter meter;
    int64_t seen, moved, bytes; /* rows; of them changed; their bytes */
    int64_t bad;                /* that are missing or damaged where they are */
};
/* does: every row that is not in the wanted form gets a copy there, read back and compared before
 * the row names it. What was done stays done, so that another run goes on. Stops at a signal. */
PAWL_MUST_USE int convert_all(struct convert *v, struct pawl_err *err);

#endif
