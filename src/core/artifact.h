/* What a job leaves behind besides its result: artifacts, that is bytes kept in the lake, and of a
 * fetch the record of the exchange. Both are rows that come with the settle (I9); an artifact's row
 * points to bytes that were complete and durable before it was written (I10). */
#ifndef PAWL_CORE_ARTIFACT_H
#define PAWL_CORE_ARTIFACT_H

#include "clock.h"
#include "err.h"
#include "hash.h"
#include "str.h"
#include <stdint.h>

enum {
    ARTIFACT_NAME_MAX = 64,
    ARTIFACTS_MAX = 100, /* of one attempt */
    PLACE_MAX_BYTES = 255,
    URL_MAX_BYTES = 8192,
    FETCH_TEXT_MAX = 16 << 10, /* headers and redirects of a record, each */
};

/* How bytes lie in the lake. */
enum codec { CODEC_NONE, CODEC_ZSTD };
const char *codec_name(enum codec c); /* "none", "zstd" */

/* Views are borrowed. */
struct artifact {
    struct sv name; /* the variant, or what the job calls it: artifact_name_check() */
    struct sv type; /* content type; p NULL: unknown */
    unsigned char sha256[SHA256_LEN]; /* of the bytes as the job gave them */
    int64_t size;                     /* of these */
    int64_t stored;                   /* on disk */
    enum codec codec;
    struct sv place; /* where in the lake; a word of the lake's: "files/ab/cd…", "pack/…" */
};
/* 1 to ARTIFACT_NAME_MAX of A-Z a-z 0-9 . _ -, not beginning with a dot. INPUT otherwise. */
PAWL_MUST_USE int artifact_name_check(struct sv name, struct pawl_err *err);

/* Where bytes came from, for a lake that keeps records of it. Views are borrowed. */
struct exchange {
    struct sv uri;      /* p NULL: nowhere that has a name */
    struct sv request;  /* its head as it was sent: start line, headers, empty line; p NULL: none */
    struct sv response; /* the same of the answer, as it fits the bytes that are kept */
    struct sv address;  /* of the peer; p NULL: unknown */
    struct wall at;     /* when it was asked for; us 0: now */
};

/* One exchange, redirects included; of each attempt that got as far as asking. */
struct fetch_record {
    struct sv url;                    /* asked for */
    struct sv final_url;              /* that answered; p NULL: the same */
    struct sv variant, method;        /* "raw"; "GET" */
    int status;                       /* of the last answer; 0: none came */
    struct sv content_type, encoding; /* p NULL: not said */
    struct sv etag, last_modified;    /* p NULL: not said */
    struct sv headers;                /* of interest: JSON object; p NULL: none */
    int64_t wire_bytes, body_bytes;   /* as they came; decoded */
    bool hashed;                      /* the body came whole: */
    unsigned char wire_sha256[SHA256_LEN], body_sha256[SHA256_LEN];
    struct dur dns, connect, tls, first_byte, total; /* since the start of the last hop; 0: not
                                                        reached. total: over all hops */
    struct sv address;                               /* of the peer; p NULL: none was reached */
    struct sv http_version;                          /* "1.1", "2"; p NULL: no answer */
    struct sv redirects; /* JSON array of {"status","url"}; p NULL: none */
    bool kept;           /* its body is the first artifact of the settle */
};

struct settle;
/* What a settle leaves behind is within bounds: names that differ, UTF-8 without NUL, a body that
 * was kept is among the artifacts. INPUT naming the field. */
PAWL_MUST_USE int settle_check(const struct settle *v, struct pawl_err *err);
/* A key of remember(): 1 to KEY_MAX_BYTES of UTF-8; its value: at most MEMORY_MAX_BYTES. INPUT. */
enum { MEMORY_MAX_BYTES = 4 << 20 };
PAWL_MUST_USE int memory_check(struct sv key, struct sv value, struct pawl_err *err);

#endif
