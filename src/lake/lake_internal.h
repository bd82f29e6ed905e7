/* What the files of the lake share. */
#ifndef PAWL_LAKE_LAKE_INTERNAL_H
#define PAWL_LAKE_LAKE_INTERNAL_H

#include "disk.h"
#include "lake.h"
#include "layout.h"
#include "squeeze.h"
#include <stdatomic.h>

enum { COPY_BUFFER = 1 << 20 };

/* Random numbers for ids, some hundreds at a time: asking the kernel for each takes longer than all
 * the rest of a short record. All zero in the beginning. */
struct record_ids {
    unsigned char random[256][16];
    size_t left;
};

struct lake {
    /* Never changed after lake_open(): spools of other threads use these. */
    const struct disk *disk;
    char *path; /* absolute */
    int root, objects, tmp;
    uint64_t temps;           /* random: how names in tmp/ begin */
    _Atomic uint64_t n_temps; /* how they go on */
    enum lake_mode mode;
    /* The rest is the calling thread's. */
    int lock;            /* -1 until it is needed: whoever only reads may not be able to write */
    size_t share_from;   /* so many syncs and more are one syncfs(); 0: never */
    bool settled;        /* root, objects/ and tmp/ themselves are durable */
    bool known[FOLDERS]; /* the folder's own name is durable, by this handle's sync */
    const char *const *types;
    size_t n_types;
    struct squeezer *squeezer;
    int segments; /* -1: there is no such folder, or not yet */
    int level;
    int64_t segment_bytes;
    struct dur segment_age;
    struct pack *pack;     /* NULL: this handle has no segment; see pack.h */
    struct packed *packed; /* NULL: none was read */
    struct record_ids ids;
    char *buffer; /* COPY_BUFFER; see lake_buffer() */
};

/* As lake_open(), on another disk; share_from SIZE_MAX: what suits the file system. */
PAWL_MUST_USE int lake_open_on(const struct disk *d, size_t share_from,
                               const struct lake_options *o, struct lake **out,
                               struct pawl_err *err);
#define LOCK_NAME "lake.lock"
char *lake_buffer(struct lake *l);
/* owner.c: is it this store's? `take`: nobody's becomes so. CONFLICT: it is another's. */
PAWL_MUST_USE int owner_check(struct lake *l, const char *owner, bool take, struct pawl_err *err);
/* how: LOCK_SH while objects are looked at, touched or named; LOCK_EX while one is deleted. Held
 * for no longer than that, never while bytes are written or synced. */
PAWL_MUST_USE int lake_lock(struct lake *l, int how, struct pawl_err *err);
void lake_unlock(struct lake *l);
/* Open objects/ab; -1 with errno. */
int lake_folder(struct lake *l, unsigned char first, bool make);

/* Opens segments/; with `make` it is there afterwards. NOTFOUND. */
PAWL_MUST_USE int lake_segments(struct lake *l, bool make, struct pawl_err *err);
/* By the wall clock, like the times of files. One from the future is young. */
struct dur lake_age(const struct stat *st);

/* ---- spool.c ---- */

/* A file in tmp/. fd -1: closed, the name is still to be renamed or deleted; name "": none. */
struct temp {
    int fd;
    char name[TEMP_NAME];
};
#define TEMP_NONE ((struct temp){.fd = -1})
PAWL_MUST_USE int temp_open(struct lake *l, struct temp *out, struct pawl_err *err);
PAWL_MUST_USE int temp_write(struct lake *l, struct temp *t, struct sv bytes, struct pawl_err *err);
void temp_close(struct temp *t);                /* the file stays */
void temp_drop(struct lake *l, struct temp *t); /* none is fine */

struct lake_spool {
    struct lake *lake;
    struct temp temp; /* locked, so that lake_remove() leaves it alone however old it grows */
    struct sha256_state hash;
    int64_t size;
    int rc; /* of the first write that failed */
    struct pawl_err err;
};
/* A copy of what a regular file holds now. */
PAWL_MUST_USE int spool_copy(struct lake *l, const char *path, struct lake_spool **out,
                             struct pawl_err *err);

/* ---- keep.c and commit.c ---- */

/* One item on its way, and what has become of it. */
struct pending {
    struct lake_item *item;
    struct lake_spool *spool; /* NULL: the bytes are item->body */
    enum {
        KEEP_FAILED, /* item->err says why */
        KEEP_FOUND,  /* the bytes are there already */
        KEEP_WRITE,  /* they are not: in `temp`, and then under their name */
        KEEP_TWIN,   /* the same bytes come earlier in this group */
    } state;
    struct temp temp;                /* KEEP_WRITE: complete, not yet named */
    struct lake_span own;            /* packed: what was written for it */
    int64_t start, end;              /* packed: where that is, lead included; end 0: nothing was */
    struct lake_span earlier;        /* packed, KEEP_FOUND: where the bytes are */
    unsigned char block[SHA256_LEN]; /* packed: of the answer's head and body; */
    bool block_known;                /* else it is worked out when it is needed */
    bool old;                        /* it was written a while ago */
};

/* Sorted by hash, so by folder: each folder is opened once. */
struct group {
    struct lake *lake;
    struct pending *v;
    size_t n;
};
void pending_fail(struct pending *p, int rc, const struct pawl_err *e);
/* The items with their hashes; those that cannot be taken have failed. */
void pending_take(struct lake *l, struct pending *v, struct lake_item *items, size_t n);
/* Is this type one of those that are compressed? */
bool pending_squeezes(const struct lake *l, const struct lake_item *item);
/* The folders of the lake itself are as durable as what is put into them. */
PAWL_MUST_USE int lake_settle(struct lake *l, struct pawl_err *err);
/* All that is KEEP_FOUND or KEEP_WRITE gets its name, touched now. A negative return: the lake's.
 */
PAWL_MUST_USE int commit_place(struct group *g, struct pawl_err *err);
/* The names become durable; items whose folder could not be synced fail. */
void commit_names(struct group *g);
/* Is the object there in this form, whole as far as can be told without reading it? 1: yes and
 * touched (*stored set), 0: no, -code: error. *damaged: something else is in its place. */
PAWL_MUST_USE int commit_find(struct lake *l, int folder, const struct lake_item *item,
                              enum codec form, int64_t *stored, bool *damaged,
                              struct pawl_err *err);

#endif
