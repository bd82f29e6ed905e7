/* Artifacts as archives have them: one file of WARC, or an index of the segments (CDXJ). */
#ifndef PAWL_CLI_EXPORT_WARC_H
#define PAWL_CLI_EXPORT_WARC_H

#include "lake.h"
#include "out.h"
#include "store.h"

/* Records that are written already: several artifacts may have one. */
struct export_warc {
    struct out *out;
    bool begun;
    struct written *v; /* a table with gaps; see export_warc.c */
    size_t n, cap;
};
void export_warc_done(struct export_warc *x);
/* does: the records of one artifact, those it refers to first; all of it is read before anything is
 * written, since nothing can be taken back. outcome: *out_read false: it cannot be read whole, and
 * nothing was written. */
PAWL_MUST_USE int export_warc(struct export_warc *x, struct lake *l, const struct artifact_view *v,
                              bool *out_read, struct pawl_err *err);

/* Appends one line of an index: key, time, and where the record is, which is asked what it is of;
 * nothing if it is in no segment. outcome: *out_read false: the record cannot be read. */
PAWL_MUST_USE int export_cdxj(struct lake *l, const struct artifact_view *v, struct str *out,
                              bool *out_read, struct pawl_err *err);

#endif
