/* Segments: files of WARC/1.1 to which one handle appends, each record a member of gzip. What the
 * parts of it share; docs/lake.md has the protocol. */
#ifndef PAWL_LAKE_PACK_H
#define PAWL_LAKE_PACK_H

#include "gzip.h"
#include "hash.h"
#include "lake_internal.h"

#define SEGMENT_ENDING ".warc.gz"
enum { SEGMENT_FILE = SEGMENT_NAME + sizeof(SEGMENT_ENDING) - 1 }; /* with NUL */

/* ---- span.c: names ---- */

bool segment_name_ok(struct sv s);
void segment_name_new(char out[SEGMENT_NAME]);
void segment_file(const char segment[SEGMENT_NAME], char out[SEGMENT_FILE]);
bool segment_of_file(const char *file, char out[SEGMENT_NAME]);
bool segment_of_place(struct sv place, char out[SEGMENT_NAME]); /* "pack/NAME" */

/* ---- warc.c: the text of records ---- */

#define PROFILES  "http://netpreserve.org/warc/1.1/revisit/"
#define UNCHANGED PROFILES "server-not-modified"
#define EQUAL     PROFILES "identical-payload-digest"

enum {
    RECORD_ID = 37,         /* a UUID and NUL */
    RECORD_HEAD = 16 << 10, /* most bytes of a record's head */
    RECORD_URI = 8 << 10,   /* longer ones are cut in the record; the row has all of it */
    RECORD_ROOM = RECORD_HEAD + 6 * RECORD_URI, /* for a head, two URIs and all escapes of them */
};
void record_id_new(struct record_ids *ids, char out[RECORD_ID]);

struct warc_record {
    const char *type;       /* "response" */
    const char *id;         /* RECORD_ID */
    const char *info;       /* id of the segment's first record; NULL: this is it */
    const char *concurrent; /* id of the record that belongs to it; NULL: none */
    const char *profile;    /* of a revisit: NULL: it is none */
    struct sv refers_id, refers_uri, refers_date; /* of a revisit: as they stand there; p NULL */
    struct sv uri, address, content_type;         /* p NULL: none */
    struct wall at;
    const unsigned char *block, *payload; /* SHA-256; NULL: not said */
    int64_t length;                       /* of the block */
    const char *file;                     /* its own name, in the first record; else NULL */
};
void warc_head(const struct warc_record *r, struct str *out);
/* The first record of a file: *out with a new id and the digest of the block, which is returned. */
struct sv warc_info(struct record_ids *ids, char id[RECORD_ID], unsigned char sum[SHA256_LEN],
                    struct warc_record *out);
/* A field of a record's head; p NULL: not there. */
struct sv warc_field(struct sv head, const char *name);

/* ---- pack_read.c: reading back ---- */

/* What a record says of itself, with what it holds. */
struct record {
    struct str head; /* all of it */
    int64_t block;   /* length of its block */
};
void packed_free(const struct lake *l); /* what it read; nothing is fine */
/* One record: `payload` bytes from the end of its block go to each (NULL: nobody wants them).
 * CORRUPT: it is not what it should be; NOTFOUND: no such segment, or it ends before. */
PAWL_MUST_USE int pack_record(struct lake *l, const struct lake_span *s, int64_t payload,
                              bool (*each)(void *arg, struct sv bytes), void *arg,
                              struct record *out, struct pawl_err *err);
/* The same, which must have these bytes; out->head is to be freed whatever came of it. */
PAWL_MUST_USE int pack_same(struct lake *l, const struct lake_span *s, int64_t size,
                            const unsigned char sha256[SHA256_LEN], struct record *out,
                            struct pawl_err *err);
/* The length of the member that begins at `at` and ends before `to`; 0: there is none. */
int64_t pack_member(struct lake *l, int fd, int64_t at, int64_t to, struct str *head);
int64_t pack_first(struct lake *l, int fd);
PAWL_MUST_USE int pack_read(struct lake *l, const struct artifact *a,
                            bool (*each)(void *arg, struct sv bytes), void *arg,
                            struct pawl_err *err);
/* read.c: the verdict about one that could not be read, or the error if that is the lake's. */
PAWL_MUST_USE int check_unread(int rc, const struct pawl_err *e, enum lake_verdict *out,
                               const char **why, struct pawl_err *err);
PAWL_MUST_USE int pack_check(struct lake *l, const struct artifact *a, enum lake_verdict *out,
                             const char **why, struct pawl_err *err);

/* What was written or checked leaves memory by so many bytes: each call costs as much as a record,
 * and pages that have just come are still in the processors' own lists, which makes it dear. */
enum { FORGET = 4 << 20 };

/* ---- pack_write.c: the segment that is appended to ---- */

/* Digests of what was written lately, with their places: one for each slot, the last wins. */
enum { RECENT = 16384 };
struct recent {
    unsigned char sha256[SHA256_LEN];
    struct lake_span at; /* length 0: none */
};

struct pack {
    struct lake *lake;
    int fd; /* -1: none is open */
    char name[SEGMENT_NAME], info[RECORD_ID];
    struct boot begun;
    int64_t head;    /* end of the first record */
    int64_t end;     /* of what was put; */
    int64_t written; /* of it, in the file; the rest is in the buffer */
    int64_t synced;  /* of that, durable */
    int64_t left;    /* of that, from where on it is still in memory */
    bool named;      /* its name is durable */
    bool failed;     /* a write did: the buffer's bytes are lost */
    char *buffer;
    size_t held;
    struct gzip_out *gzip;
    struct sha256_state hash;
    struct str text;       /* of the record's head that is being put */
    struct recent *recent; /* RECENT; NULL until something was kept */
};
/* A segment with room, this handle's own. */
PAWL_MUST_USE int pack_open(struct lake *l, struct pack **out, struct pawl_err *err);
void pack_close(struct pack *p); /* NULL is fine; a segment in which nothing was kept goes */
/* Append, through the buffer. */
PAWL_MUST_USE int pack_put(struct pack *p, struct sv bytes, struct pawl_err *err);
PAWL_MUST_USE int pack_flush(struct pack *p, struct pawl_err *err);
/* Take back everything from `to` on, which nobody was told of. After an error the segment is
 * closed. */
PAWL_MUST_USE int pack_cut(struct pack *p, int64_t to, struct pawl_err *err);
/* All that was put is durable, and the segment's name (I10, I12). After an error it is closed. */
PAWL_MUST_USE int pack_sync(struct pack *p, struct pawl_err *err);
void pack_abandon(struct pack *p); /* no more is appended to it */
/* A record of `r->length` bytes: head, then pieces of the block, then its end. */
PAWL_MUST_USE int pack_begin(struct pack *p, const struct warc_record *r, bool squeeze,
                             struct pawl_err *err);
PAWL_MUST_USE int pack_piece(struct pack *p, struct sv bytes, struct pawl_err *err);
PAWL_MUST_USE int pack_end(struct pack *p, struct pawl_err *err);

/* ---- pack_keep.c ---- */

PAWL_MUST_USE int pack_keep(struct lake *l, struct lake_item *items, size_t n,
                            struct pawl_err *err);

/* ---- pack_scan.c ---- */

/* 1: go on, 0: enough. */
PAWL_MUST_USE int pack_scan(struct lake *l, bool (*each)(void *arg, const struct lake_entry *e),
                            void *arg, struct pawl_err *err);
PAWL_MUST_USE int pack_touch(struct lake *l, const struct lake_span *v, int n, bool *out_there,
                             struct pawl_err *err);
PAWL_MUST_USE int pack_remove(struct lake *l, const char *segment, struct dur younger,
                              bool *out_removed, struct pawl_err *err);

#endif
