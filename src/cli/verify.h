/* Comparing the lake with the store, and repairing: the parts of `verify`. */
#ifndef PAWL_CLI_VERIFY_H
#define PAWL_CLI_VERIFY_H

#include "artifacts_out.h"
#include "meter.h"
#include "segments.h"
#include "text_set.h"

enum { READERS = 4 }; /* at a time: hashing is what takes long */
enum finding_kind {
    FOUND_MISSING,    /* a row without bytes */
    FOUND_DAMAGED,    /* bytes that are not those of the row */
    FOUND_ORPHAN,     /* bytes that no row names */
    FOUND_TEMPORARY,  /* left over by something that died */
    FOUND_UNREADABLE, /* nobody can tell: a row's bytes, or a part of the lake */
    N_FINDINGS
};
struct finding {
    enum finding_kind kind;
    int64_t artifact; /* id; 0: no row */
    job_id job;
    struct sv name, place; /* in the arena */
    const char *why;       /* static */
    const char *stuck;     /* in the arena: why the repair could not put it right; NULL: it was not
                              tried, or did */
    unsigned char sha256[SHA256_LEN];
    int64_t size, bytes; /* size: of a row; on disk */
    enum codec codec;
    /* verify_named() */
    int64_t *rows; /* ids of those with this place */
    size_t n_rows, cap_rows;
    bool disputed; /* rows with another hash have this place, too */
};

struct verify {
    struct cli *c;
    struct lake *lake;
    struct lake *readers[READERS]; /* NULL: not yet needed */
    struct arena arena;            /* of the findings */
    struct meter meter;
    double share;          /* of the artifacts that are read, 0 to 1 */
    struct dur younger;    /* what was kept within this time may belong to a job under way */
    struct text_set named; /* by rows, but for those in segments */
    struct segments packed;
    int64_t last;        /* id: rows up to it were read */
    struct boot rows_at; /* when verify_named() began */
    struct finding *v;
    size_t n, cap;
    int64_t count[N_FINDINGS];
    int64_t artifacts, checked, bytes; /* rows; those that were read */
    int64_t objects, young;            /* in the lake; of them too young to judge without a row */
    int64_t segments;
    struct {
        int64_t rows, jobs, removed, bytes;
        int64_t cut;       /* segments made shorter, or copied without what nobody has */
        int64_t left;      /* a job may be using them; those about the same bytes once */
        int64_t stuck;     /* findings that cannot be put right: struct finding says why */
        int64_t unreached; /* those that it did not come to, by a signal or an error */
    } repaired;
};
const char *finding_name(enum finding_kind k);
void verify_done(struct verify *v); /* the command line's store stays open */

/* Every row against its bytes, then everything in the lake against the rows. Stops at a signal. */
PAWL_MUST_USE int verify_rows(struct verify *v, struct pawl_err *err);
PAWL_MUST_USE int verify_lake(struct verify *v, struct pawl_err *err);
/* does: which rows name the places of the findings, as of now. Of several findings about the same
 * bytes one gets them all. Incomplete after a signal. */
PAWL_MUST_USE int verify_named(struct verify *v, struct pawl_err *err);
/* Take away what is damaged, orphaned and left over, then queue the jobs whose bytes are gone. What
 * cannot be put right stays as it is and stops nothing; an error is the store's or the lake's. */
PAWL_MUST_USE int verify_repair(struct verify *v, struct pawl_err *err);

#endif
