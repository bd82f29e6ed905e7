/* What the files of this folder share. All of it lives on the loop's thread.
 *
 * A run (struct fetch) goes through its hops; each passes the gates of its host, robots.txt of its
 * origin, and is then asked for (hop.c). It ends by fetch_end() and by nothing else: that lets go
 * of whatever it holds, and finishes when no service owes it an answer any more. */
#ifndef PAWL_HANDLERS_FETCH_PARTS_H
#define PAWL_HANDLERS_FETCH_PARTS_H

#include "config.h"
#include "fetch.h"
#include "handler.h"
#include "hash.h"
#include "http.h"
#include "loop.h"
#include "robots.h"
#include <stddef.h>

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* ---- how a run ends (classify.c) ---- */

struct verdict {
    int end; /* of struct run_result */
    enum fail_class cls;
    bool throttled, timed_out, unfit;
    struct dur retry_after; /* us < 0: none */
};
struct verdict verdict_failed(enum fail_class cls);
struct verdict verdict_of_error(enum http_error e);
/* What the operator could do about it, to follow its message; "" for most. */
const char *error_remedy(enum http_error e);
/* Of a status that was not accepted. */
struct verdict verdict_of_status(int status, struct dur retry_after);
bool status_accepted(const struct fetch_payload *p, int status);
bool status_redirects(int status);

/* ---- undoing content codings (decode.c) ---- */

/* Buffers that all decoders of a thread share: what is in them is used up before the next. */
enum { DECODE_STAGES = 4, DECODE_CHUNK = 16 << 10 };
struct decode_room {
    char chunk[DECODE_STAGES][DECODE_CHUNK];
};
enum decode_trouble {
    DECODE_FINE,
    DECODE_TOO_LARGE, /* more than allowed, on the wire, decoded or between */
    DECODE_BAD,       /* it is not what its coding says */
    DECODE_STOPPED,   /* by `out` */
};
typedef bool decode_fn(void *arg, struct sv bytes);
struct decode;
/* Which bytes are hashed here: those that are kept the lake hashes. */
enum decode_sum { SUM_NONE, SUM_WIRE, SUM_BODY };
/* `coding` is the value of Content-Encoding, p NULL: none. Codings are undone if all are known;
 * where none was there is nothing to hash, since both are the same bytes. */
struct decode *decode_new(struct sv coding, int64_t max, enum decode_sum sum,
                          struct decode_room *room, decode_fn *out, void *arg);
enum decode_trouble decode_write(struct decode *d, struct sv wire);
bool decode_whole(const struct decode *d);  /* at the end: nothing is missing */
bool decode_undoes(const struct decode *d); /* what goes in is not what comes out */
int64_t decode_wire_bytes(const struct decode *d);
int64_t decode_body_bytes(const struct decode *d);
/* Once, at the end. False: none was made. */
bool decode_hash(struct decode *d, unsigned char out[SHA256_LEN]);
void decode_free(struct decode *d); /* NULL is fine */

/* ---- texts that make a body unwanted (reject.c) ---- */

struct reject {
    const struct sv *texts;
    size_t n, longest;
    struct str seam; /* the end of what came */
};
void reject_init(struct reject *r, const struct sv *texts, size_t n); /* borrows them */
void reject_done(struct reject *r);
struct sv reject_find(struct reject *r, struct sv bytes); /* in what came so far; p NULL: none */

/* ---- the handler and its runs ---- */

struct robots_cache;
struct robots_entry;

struct fetch_handler {
    struct handler base;
    struct loop *loop;
    const struct config *config;
    struct http *http;
    struct pawl_err broken; /* http NULL: why */
    char *robot;            /* its name for robots.txt: the product in front of the User-Agent */
    struct robots_cache *robots;
    struct decode_room room;
    struct fetch *spare; /* runs that have ended, for the next ones */
    size_t n_spare;
};

/* The body of the answer that is coming (body.c). */
struct body {
    struct decode *decode; /* NULL: none came yet */
    bool keep;             /* else it only goes into a message */
    struct reject reject;
    struct sink *sink;
    struct str note; /* what came of one that is not kept, the beginning */
    enum decode_trouble trouble;
    struct sv rejected; /* the text that was found; p NULL: none */
    int sink_rc;        /* < 0: it could not be written, and why: */
    struct pawl_err sink_err;
};

/* A URL of the chain of redirects. */
struct hop {
    const char *url;         /* in the arena, as all of these but for */
    struct http_url *parsed; /* which goes with the run */
    struct hop *made_before; /* whether or not it was followed; NULL: the first */
    struct sv host, origin;
    const char *method;
    struct sv body;     /* p NULL: none */
    bool bare;          /* another origin: only harmless headers of the payload are sent (S32) */
    bool conditional;   /* it was asked whether the content changed */
    struct hop *before; /* NULL: the first */
};

struct fetch {
    struct fetch_handler *h;
    struct fetch *next; /* while it is spare */
    struct run *run;
    const struct run_services *services;
    struct arena arena;
    struct fetch_payload p;
    struct timer deadline, pause; /* end of its time; asks a shut gate again */
    struct boot until;
    int owed; /* answers of services that are outstanding */
    bool ending, keeping, cancelled, asked, remembered;
    bool whole, coded; /* the body that came: nothing is missing; it was coded on the wire */
    struct verdict verdict;
    struct str reason;
    struct sv peer; /* whom the verdict tells of */
    /* the hop */
    struct hop *hop;
    struct hop *made; /* the last one, for hops_free() */
    int redirects;
    struct sv admitted, gate; /* the last host it was let in to; the gate it waits for */
    struct dur gate_wait;
    struct http_call *call;
    struct body body;
    struct robots_entry *waits_for;      /* robots.txt */
    struct robots_entry *in_line;        /* its turn there */
    struct fetch *wait_prev, *wait_next; /* in the list of either */
    /* the body that was kept before: its URL and validators */
    struct sv old_url, old_etag, old_modified;
    struct exchange exchange; /* for the lake's record; uri NULL: it keeps none */
    struct wall asked_at;
    struct fetch_record record;
    struct str chain; /* JSON of the redirects, without its end */
};

/* fetch.c */
void fetch_end(struct fetch *f, struct verdict v, const char *fmt, ...) PAWL_PRINTF(3, 4);
/* An answer came. False: the run is ending, and may be gone. */
bool fetch_answered(struct fetch *f);
struct dur fetch_left(const struct fetch *f); /* of its time, at least 1 ms */
/* May this host be asked at all? False: `err` says what is missing. */
bool fetch_identified(const struct fetch_handler *h, struct sv host, struct pawl_err *err);
void fetch_keep(struct fetch *f);      /* what the body's sink holds, then the end */
void fetch_unchanged(struct fetch *f); /* a record of that, if the lake keeps some, then the end */

/* hop.c */
struct hop *hop_new(struct fetch *f, const char *url, struct pawl_err *err);
void hops_free(struct fetch *f); /* what is not in the arena */
void hop_enter(struct fetch *f); /* f->hop; may end the run */
/* robots.txt of the hop's origin is known. */
void hop_robots_known(struct fetch *f, struct robots_entry *e);
void hop_turn_came(struct fetch *f);
void hop_timed_out(struct fetch *f); /* while no request is under way */

/* body.c */
bool keeps_wire(const struct fetch *f);        /* bodies as they came, not decoded */
bool body_piece(void *fetch, struct sv bytes); /* http_request.on_body */
void body_opened(struct fetch *f);             /* the same for one that has no bytes */
void body_done(struct fetch *f);
/* A short line out of what came, for a message; nothing if that would not help. */
void body_say(const struct fetch *f, struct sv type, struct str *out);

/* exchange.c */
bool exchange_wanted(const struct fetch *f);
void exchange_keep(struct fetch *f, const struct http_result *res); /* of an answer to be kept */
void exchange_keep_head(struct fetch *f, const struct http_result *res); /* of one without a body */

/* record.c */
void record_hop(struct fetch *f, const struct http_result *res);
void record_redirect(struct fetch *f, int status, struct sv url);
/* The hash of the bytes that were kept. */
void record_hash(struct fetch *f, const unsigned char sha256[SHA256_LEN]);
void record_close(struct fetch *f);
/* Without control characters and in UTF-8: can be shown, stored and sent back. */
bool record_clean(struct sv s);
void record_result(const struct fetch *f, const struct artifact *kept, struct str *out);

/* ---- robots.txt by origin (robots_cache.c, robots_get.c) ---- */

struct robots_answer {
    struct robots *rules; /* NULL: everything is allowed */
    bool failed;          /* it could not be read: */
    struct verdict verdict;
    char *why;
    struct dur apart; /* Crawl-delay that is heeded; 0: none */
};
struct robots_cache *robots_cache_new(struct fetch_handler *h);
void robots_cache_free(struct robots_cache *c); /* NULL is fine; no run is waiting */
/* robots.txt of the hop's origin. NULL: hop_robots_known() will be called, unless robots_leave()
 * comes first. The entry lasts for as long as the caller does nothing else. */
struct robots_entry *robots_ask(struct robots_cache *c, struct fetch *f);
void robots_leave(struct fetch *f);           /* harmless when it does not wait */
struct sv robots_gate(const struct fetch *f); /* that its robots.txt waits for; p NULL: none */

/* Runs that wait for the same, first come first served. */
struct waiters {
    struct fetch *first, *last;
    int n;
};
void waiters_add(struct waiters *w, struct fetch *f);
void waiters_remove(struct waiters *w, struct fetch *f);

/* One robots.txt: known, or being asked for by those who wait for it. */
struct robots_entry {
    struct robots_cache *cache;
    struct fetch_handler *h;
    char *origin, *host;
    struct robots_entry *chained;       /* in its bucket */
    struct robots_entry *newer, *older; /* while it is known and idle */
    bool known, idle;
    bool held; /* it stays although nobody waits */
    struct boot until;
    struct robots_answer answer;
    size_t bytes;
    struct dur paced;       /* what gates were told */
    struct waiters waiting; /* for the rules */
    struct fetch *sponsor;  /* in whose name a service was asked */
    /* Crawl-delay (robots_line.c) */
    struct waiters line;    /* those who may ask, one after the other */
    struct timer turn;      /* of the first in line */
    struct boot next;       /* when the next page may be asked for */
    struct boot sent_until; /* when the last of those who were sent away comes again */
    /* the request */
    struct http_call *call;
    char *url, *at_host;
    int redirects;
    struct timer pause;
    char *gate; /* that a redirect waits for; NULL: none */
};
/* Both let go of the entry: it may be gone. */
void robots_known(struct robots_entry *e, struct robots *rules, bool fresh);
void robots_failed(struct robots_entry *e, struct verdict v, const char *why, bool fresh);
/* In the name of one who waits. The sponsor's run goes on when the answer is in. */
struct fetch *robots_sponsor(struct robots_entry *e);
/* The answer is in: false if nobody waits any more, and the entry is gone. *sponsor is to be given
 * to robots_sponsor_done() at the end. */
bool robots_sponsored(struct robots_entry *e, struct fetch **sponsor);
void robots_sponsor_done(struct fetch *sponsor);
/* While held the entry stays; unheld it is gone unless somebody waits. */
void robots_hold(struct robots_entry *e);
bool robots_unhold(struct robots_entry *e);
/* It stays until it rests: then it idles or is gone, unless somebody needs it. */
void robots_busy(struct robots_entry *e);
void robots_rest(struct robots_entry *e);
void robots_get(struct robots_entry *e); /* ask the server */
void robots_get_stop(struct robots_entry *e);

/* robots_line.c */
enum turn {
    TURN_NOW,   /* and it is taken */
    TURN_WAITS, /* hop_turn_came() will be called, unless robots_line_leave() comes first */
    TURN_LATER, /* too long to wait for it: to be tried again in *later */
};
enum turn robots_turn(struct robots_entry *e, struct fetch *f, struct dur *later);
void robots_line_leave(struct fetch *f); /* harmless when it does not stand there */

#endif
