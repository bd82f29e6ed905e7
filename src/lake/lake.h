/* The lake: artifacts as bytes on disk, each in a file of its own or packed into segments. What was
 * kept is complete, durable and true to its hash under its place (I10); what a crash leaves is a
 * temporary file, or bytes that no row names, all found by lake_scan().
 *
 * All calls block on the disk, spools excepted (they write to the page cache): not for the loop.
 * Several handles on one lake, in one process or many, are a supported use; a handle belongs to one
 * thread at a time, but for lake_spool_open(), which any thread may call. No path is built from
 * anything but hashes and random numbers, and everything is opened beneath the root (S27). */
#ifndef PAWL_LAKE_LAKE_H
#define PAWL_LAKE_LAKE_H

#include "artifact.h"
#include "clock.h"
#include "err.h"
#include "str.h"
#include <stdbool.h>

struct lake;
struct lake_spool; /* bytes in a temporary file of the lake */

/* How lake_keep() writes; either form is always read. */
enum lake_mode {
    LAKE_FILES,
    LAKE_PACK, /* records of WARC in segments, to which this handle alone appends */
};
struct lake_options {
    const char *path;         /* the root; borrowed for the call */
    bool create;              /* make it if it is not there; else NOTFOUND */
    const char *owner;        /* the store whose rows name what is in it, by its id; NULL: whoever
                                 only reads. CONFLICT if it is another's; nobody's lake becomes
                                 this store's with `create`. Borrowed for the call */
    const char *const *types; /* content types kept compressed: "text/html", or a star
                                 after the slash; borrowed as long as the lake is open */
    size_t n_types;
    int level; /* of zstd; of gzip, 9 at most */
    enum lake_mode mode;
    int64_t segment_bytes;  /* LAKE_PACK: a segment of this size gets no more; 0: 1 GiB */
    struct dur segment_age; /* nor one that was begun so long ago; us 0: an hour */
};
PAWL_MUST_USE int lake_open(const struct lake_options *o, struct lake **out, struct pawl_err *err);
void lake_close(struct lake *l); /* NULL is fine */
/* The id of the store that it belongs to; "": nobody's yet. */
enum { LAKE_OWNER = 64 };
PAWL_MUST_USE int lake_owner(struct lake *l, char out[LAKE_OWNER], struct pawl_err *err);
/* does: it belongs to this store from now on, whosever it was. */
PAWL_MUST_USE int lake_adopt(struct lake *l, const char *owner, struct pawl_err *err);

/* ---- writing ---- */

/* A temporary file, for bodies too large to be held in memory. */
PAWL_MUST_USE int lake_spool_open(struct lake *l, struct lake_spool **out, struct pawl_err *err);
/* FULL, IO: part of it may be written. */
PAWL_MUST_USE int lake_spool_write(struct lake_spool *s, struct sv bytes, struct pawl_err *err);
void lake_spool_drop(struct lake_spool *s); /* NULL is fine */

/* Bytes to be kept: exactly one of body, spool, file and same. */
struct lake_item {
    struct sv body;              /* p NULL: not this */
    struct lake_spool *spool;    /* NULL: not this; gone after the call, whatever came of it */
    const char *file;            /* NULL: not this; a regular file, copied */
    const struct artifact *same; /* NULL: not this; bytes kept before, of which `from` says that
                                    they have not changed */
    struct sv type;              /* content type; p NULL: unknown */
    const struct exchange *from; /* for records of segments; NULL: unknown */
    /* answered */
    int rc; /* < 0: not kept, err says why. The lake's fault: FULL (no room), IO. This item's: INPUT
               (not a regular file, or one that cannot be read or is too large), CORRUPT (something
               else lies under its name), NOTFOUND (`same` is gone) */
    struct pawl_err err;
    unsigned char sha256[SHA256_LEN];
    int64_t size, stored;
    enum codec codec;
    bool shared; /* the same bytes were there already */
    char place[PLACE_MAX_BYTES + 1];
};
/* does: all items complete and durable when it returns; the syncs of many are shared. One that
 * fails leaves nothing behind and the others whole. A negative return: the lake itself failed and
 * every item has that error. */
PAWL_MUST_USE int lake_keep(struct lake *l, struct lake_item *items, size_t n,
                            struct pawl_err *err);
/* does: an object kept a while ago is as safe from lake_remove() as one kept now. outcome:
 * *out_there false: it is gone. For rows written long after lake_keep(). */
PAWL_MUST_USE int lake_touch(struct lake *l, const char *place, bool *out_there,
                             struct pawl_err *err);
/* does: what keeping needs, tried and taken back: its folders, a file of so many bytes (1 MiB at
 * most), a sync. Errors as those of lake_keep(). */
PAWL_MUST_USE int lake_try(struct lake *l, int64_t bytes, struct pawl_err *err);
/* Bytes free for this user on its file system. */
PAWL_MUST_USE int lake_free_bytes(struct lake *l, int64_t *out, struct pawl_err *err);

/* ---- reading ---- */

/* Does an error of reading, checking or deleting one speak of that one alone? Any other code is the
 * lake's own failure, which the next one would meet, too. */
static inline bool lake_only_one(int rc)
{
    return rc == PAWL_ENOTFOUND || rc == PAWL_ECORRUPT || rc == PAWL_EINPUT || rc == PAWL_EIO;
}
/* The bytes as they were given, piece by piece, until `each` returns false. NOTFOUND: no such
 * object. CORRUPT: they cannot be decoded. The hash is not compared. */
PAWL_MUST_USE int lake_read(struct lake *l, const struct artifact *a,
                            bool (*each)(void *arg, struct sv bytes), void *arg,
                            struct pawl_err *err);
enum lake_verdict {
    LAKE_GOOD,
    LAKE_MISSING,
    LAKE_DAMAGED,
    LAKE_UNREADABLE, /* it cannot be told: this one may not or cannot be read now */
};
/* does: read it and compare size and hash. *why, a static text, tells what is wrong. An error is
 * that of the whole lake. */
PAWL_MUST_USE int lake_check(struct lake *l, const struct artifact *a, enum lake_verdict *out,
                             const char **why, struct pawl_err *err);
/* Absolute path of the file that holds these bytes and nothing else; INPUT if there is no such
 * file (they are compressed or packed). For export. */
PAWL_MUST_USE int lake_file(struct lake *l, const struct artifact *a, struct str *out,
                            struct pawl_err *err);

/* ---- packed ---- */

/* A stretch of a segment: a record, and before it what belongs to it (the request). */
enum { SEGMENT_NAME = 34 }; /* "20260102T030405Z-0123456789abcdef" and NUL */
struct lake_span {
    char segment[SEGMENT_NAME];
    int64_t offset, length; /* of the record */
    int64_t lead;           /* bytes before it */
};
/* The stretches that a place names: first the bytes, then, if the exchange only referred to
 * them, its own record. Returns how many, 0: it is no place in a segment. */
int lake_spans(struct sv place, struct lake_span out[2]);
/* The place of one or two stretches. */
void lake_place(const struct lake_span *v, int n, char out[PLACE_MAX_BYTES + 1]);
/* "segments/NAME.warc.gz": the segment's file, below the root. */
void lake_segment_file(const char segment[SEGMENT_NAME], struct str *out);
/* The members of gzip of a stretch as they lie there, with or without the lead. NOTFOUND, CORRUPT
 * (the file ends before). */
PAWL_MUST_USE int lake_span_read(struct lake *l, const struct lake_span *s, bool lead,
                                 bool (*each)(void *arg, struct sv bytes), void *arg,
                                 struct pawl_err *err);
/* Is all of a stretch, its lead included, whole members of gzip? CORRUPT, NOTFOUND. */
PAWL_MUST_USE int lake_span_sound(struct lake *l, const struct lake_span *s, struct pawl_err *err);
/* Appends what the record of a stretch says it is of, as it stands there; nothing else is read.
 * CORRUPT: it says nothing. NOTFOUND. */
PAWL_MUST_USE int lake_span_uri(struct lake *l, const struct lake_span *s, struct str *out,
                                struct pawl_err *err);
/* The records of a stretch that say that something has not changed, with their time: those have no
 * rows. Ends where no whole record follows. */
PAWL_MUST_USE int lake_notes(struct lake *l, const char segment[SEGMENT_NAME], int64_t from,
                             int64_t to,
                             void (*each)(void *arg, const struct lake_span *s, struct wall at),
                             void *arg, struct pawl_err *err);
/* Records for who takes artifacts elsewhere, as members of gzip: the first one of a file, and one
 * of type resource for an artifact in whatever form. Until `each` returns false. */
PAWL_MUST_USE int lake_warc_info(bool (*each)(void *arg, struct sv bytes), void *arg,
                                 struct pawl_err *err);
PAWL_MUST_USE int lake_warc_record(struct lake *l, const struct artifact *a,
                                   const struct exchange *from,
                                   bool (*each)(void *arg, struct sv bytes), void *arg,
                                   struct pawl_err *err);
/* One stretch on its way into another segment. */
struct lake_move {
    struct lake_span from;
    /* answered */
    int rc; /* < 0: not copied; NOTFOUND, CORRUPT: it is not there or damaged */
    struct lake_span to;
};
/* does: copies of n stretches, checked as they are read, durable when it returns.
 * A negative return: none is to be trusted. */
PAWL_MUST_USE int lake_copy(struct lake *l, struct lake_move *v, size_t n, struct pawl_err *err);
/* does: shorten a segment to `end`, unless somebody writes it, or it was written or touched within
 * `younger`. outcome: *out_cut. Errors as of lake_remove(). */
PAWL_MUST_USE int lake_cut(struct lake *l, const char *place, int64_t end, struct dur younger,
                           bool *out_cut, struct pawl_err *err);

/* ---- what is there ---- */

struct lake_entry {
    const char *wrong; /* NULL; or, static, why it could not be looked at: then only the place is
                          known, of an object or a segment, or "files/ab" of a folder */
    bool temporary;    /* unfinished; no hash */
    bool segment;      /* of many artifacts; no hash */
    bool busy;         /* segment: somebody writes it */
    unsigned char sha256[SHA256_LEN]; /* by its name */
    const char *place;                /* for lake_remove(); of a segment "pack/NAME" */
    int64_t stored;
    int64_t head;   /* segment: bytes of its first record, which is no artifact's; 0: damaged */
    struct dur age; /* since it was kept or touched */
};
/* does: every object, segment and temporary file, in no order, until `each` returns false. Anything
 * else below the root is not the lake's and is left alone. */
PAWL_MUST_USE int lake_scan(struct lake *l, bool (*each)(void *arg, const struct lake_entry *e),
                            void *arg, struct pawl_err *err);
/* does: delete one, unless it was kept or touched within `younger` or is being written; safe
 * against a writer that finds the same bytes at this moment. outcome: *out_removed. IO, INPUT: it
 * is this one that cannot be deleted; any other error is that of the whole lake. */
PAWL_MUST_USE int lake_remove(struct lake *l, const char *place, struct dur younger,
                              bool *out_removed, struct pawl_err *err);

#endif
