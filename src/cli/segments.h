/* Segments of a packed lake, compared with the rows that name stretches of them: which bytes nobody
 * has, and getting rid of those. Bytes at the end are cut off; where they lie between others, what
 * is alive is copied into another segment, its rows follow, and the old one goes. */
#ifndef PAWL_CLI_SEGMENTS_H
#define PAWL_CLI_SEGMENTS_H

#include "cli.h"
#include "lake.h"

struct stretch {
    int64_t from, to;
};
struct segment {
    char name[SEGMENT_NAME];
    bool there;         /* in the lake */
    bool busy, young;   /* somebody writes it; a job may be about to name its bytes */
    int64_t size, head; /* of the file, of its first record */
    struct stretch *v;  /* that rows name; by place and each once after segments_judge() */
    size_t n, cap;
    int64_t live, end; /* bytes that are named; where the last of them ends */
    /* while its records move */
    bool moving;
    bool damaged;            /* some of it cannot be copied */
    bool stuck;              /* a row names what was not there to be copied: one came since */
    char *why;               /* it cannot be done: the reason; NULL: none */
    struct lake_span *moved; /* where each stretch is now; length 0: nowhere */
};
struct segments {
    struct segment *v; /* by name */
    size_t n, cap, last;
    struct boot rows_at; /* when the rows began to be read */
    struct dur younger;  /* what was written or touched within this time is left alone */
};
void segments_init(struct segments *s, struct dur younger);
void segments_done(struct segments *s);
/* A row's place, whatever it is. */
void segments_row(struct segments *s, struct sv place);
void segments_entry(struct segments *s, const struct lake_entry *e);
void segments_judge(struct segments *s);
/* does: what would be dead but is a record that something has not changed, made since a time,
 * counts as named. After segments_judge(). */
PAWL_MUST_USE int segments_notes(struct segments *s, struct lake *l, struct wall since,
                                 struct pawl_err *err);
struct segment *segments_find(const struct segments *s, struct sv name); /* NULL: unknown */
/* Bytes that no row names, its first record excepted; of one without any all of it. */
int64_t segment_dead(const struct segment *s);
/* Is something of it to be given back? One that was only begun may even be empty. */
bool segment_wastes(const struct segment *s);
/* How old bytes must be by now: rows that came since they began to be read name nothing older. */
struct dur segments_younger(const struct segments *s);

struct segments_result {
    int64_t removed, cut, moved; /* segments; moved: copied and removed */
    int64_t left, stuck;         /* in use or too young; for the reason that `why` says */
    int64_t bytes, rows;         /* given back; rows that were changed */
};
/* does: free the dead bytes of every segment of which at least `share` (0 to 1) is dead, or which
 * `wanted` (NULL: all) says to be meant. One that cannot be freed stops nothing. Stops at a signal.
 */
PAWL_MUST_USE int segments_reclaim(struct cli *c, struct lake *l, struct segments *s, double share,
                                   bool (*wanted)(void *arg, const struct segment *s), void *arg,
                                   struct segments_result *out, struct pawl_err *err);
/* Since when such records are kept. */
struct wall segments_since(const struct cli *c);
/* Rows and segments as they are now, judged. */
PAWL_MUST_USE int segments_load(struct cli *c, struct lake *l, struct segments *s,
                                struct pawl_err *err);

#endif
