/* Reading the log of an attempt, whole or as it grows. The writer is the job's supervisor; the
 * layout on disk is in joblog_format.h. Bytes come as the job wrote them: show them through
 * text_safe_lines() only (I14). */
#ifndef PAWL_PROCESS_JOBLOG_H
#define PAWL_PROCESS_JOBLOG_H

#include "err.h"
#include "str.h"
#include <stdint.h>

/* Where a reader stands; starts as {0}. To follow a log, keep it between calls. */
struct joblog_cursor {
    int64_t offset; /* in the whole output, left-out bytes included */
    int64_t head;   /* size of the head, once known; 0 before */
};

/* Hand everything that is there behind the cursor to `emit`, in pieces, and move the cursor. Bytes
 * that are no longer kept appear as one marker "[... N bytes left out ...]". A log that does not
 * exist (yet) is empty. `name` as in run.log_name. */
PAWL_MUST_USE int joblog_read(int log_dir, const char *name, struct joblog_cursor *cursor,
                              void (*emit)(void *arg, struct sv bytes), void *arg,
                              struct pawl_err *err);

#endif
