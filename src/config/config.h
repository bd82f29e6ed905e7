/* Configuration: YAML file, then environment, then flags, in rising precedence, from one table
 * (config.def). Parsed once into a struct that nobody changes afterwards. Unknown key, bad type,
 * out of bounds: CONFIG with file, line, key, allowed range and the nearest known name. */
#ifndef PAWL_CONFIG_CONFIG_H
#define PAWL_CONFIG_CONFIG_H

#include "clock.h"
#include "err.h"
#include "str.h"
#include <stdbool.h>
#include <stdint.h>

enum config_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENV, ORIGIN_FLAG };

struct string_list {
    char **v;
    size_t n;
};
struct int_list {
    int *v;
    size_t n;
};
struct pool_conf {
    char *kind; /* "*" serves kinds without a pool */
    int slots;
};
/* One entry of kinds: */
struct kind_conf {
    char *name;
    char *handler;                  /* "exec" unless given */
    struct string_list command;     /* exec: argv; required for it */
    char *cwd;                      /* NULL: the worker's */
    struct string_list env;         /* "K=V" */
    struct dur timeout;             /* us 0: not given; DUR_NONE: none */
    struct dur idle_timeout;        /* us 0: none */
    int max_attempts;               /* 0: retry.max_attempts */
    struct int_list transient_exit; /* default 75 */
    struct int_list fatal_exit;
    struct string_list transient_log; /* substrings of the log's tail */
    struct int_list throttled_exit;   /* the peer asked for fewer: transient, and more */
    struct string_list throttled_log;
    struct string_list preflight; /* argv; n 0: none */
    char *preflight_url;          /* instead; NULL: none */
    struct dur preflight_ttl, preflight_timeout;
    char *url;    /* http: where the payload goes; required for it */
    char *secret; /* http: signs it; NULL: none */
};

/* One entry of limits:, whole: what it does not say is filled in. */
struct rate_conf {
    int64_t count; /* 0: none */
    struct dur per;
};
struct breaker_conf {
    int threshold, percent, min_calls;
    struct dur window, pause, max_pause;
};
struct limit_conf {
    char *origin; /* "pawl.yaml:12" */
    char *name;
    char *queue, *kind; /* NULL: any */
    struct string_list hosts;
    enum { LIMIT_EACH_NONE, LIMIT_EACH_HOST, LIMIT_EACH_QUEUE, LIMIT_EACH_KIND } each;
    bool replaces;
    int concurrency; /* 0: none */
    struct rate_conf rate, min_rate;
    int burst; /* 0: not given */
    bool adaptive, ignore_retry_after;
    struct dur pause, max_pause; /* us 0: not given */
    struct breaker_conf breaker;
};

/* What an alert may be about. */
enum alert_topic {
#define X(name, text, doc) ALERT_##name,
#include "alert_topics.def"
#undef X
    N_ALERT_TOPICS
};

/* One entry of alerts: */
struct alert_conf {
    char *origin; /* "pawl.yaml:12" */
    char *name;
    unsigned on;                /* bit per enum alert_topic */
    struct string_list command; /* argv; n 0: url instead */
    char *url;
    char *secret;     /* key of the signature; NULL: not signed */
    struct dur every; /* the same again at most so often */
    int failure_rate; /* percent of the jobs that ended */
    int64_t min_jobs; /* failure_rate: none with fewer */
};

/* One entry of retention.queues, whole. */
struct retention_conf {
    char *queue;
    struct dur done, failed;      /* us < 0: for ever */
    int64_t max_done, max_failed; /* 0: no bound */
};

struct config {
#define STRING(field, ...)   char *field;
#define DURATION(field, ...) struct dur field;
#define INTEGER(field, ...)  int64_t field;
#define BOOLEAN(field, ...)  bool field;
#define CHOICE(field, ...)   char *field;
#define BYTES(field, ...)    int64_t field;
#include "config.def"
#undef STRING
#undef DURATION
#undef INTEGER
#undef BOOLEAN
#undef CHOICE
#undef BYTES
    struct pool_conf *pools; /* worker.pools */
    size_t n_pools;
    struct kind_conf *kinds;
    size_t n_kinds;
    struct limit_conf *limits;
    size_t n_limits;
    bool policy_given; /* limits (be it empty), claim_order or priority_aging is set: without any of
                          them, what the store has is left as it is */
    struct retention_conf *retention; /* retention.queues */
    size_t n_retention;
    struct alert_conf *alerts;
    size_t n_alerts;
    struct string_list compress_types; /* lake.compress.types: "text/html", or "text/" and a star */
    struct string_list pass_env; /* exec.pass_env: names a job inherits from the worker besides the
                                    built-in list */
    char *file;                  /* the file read, or NULL */
    struct config_origins *origins;
};

/* Builds a configuration. `file`: explicit path (NOTFOUND if absent) or NULL for PAWL_CONFIG, then
 * ./pawl.yaml if it exists. `environ_`: the environment to read; an empty variable counts as not
 * set. `flags`: "key=value" pairs set by the command line, strongest; "worker.pools=KIND=N" and
 * "exec.pass_env=NAME" may be given several times and then add up. Where only one of two values
 * that depend on each other is set (lease and heartbeat, retry.max and retry.base) the other's
 * default gives way. Values shown by config_each() are raw text: escape them for a terminal. */
PAWL_MUST_USE int config_load(const char *file, char *const *environ_, const char *const *flags,
                              size_t n_flags, struct config **out, struct pawl_err *err);
/* Defaults and flags alone: no file, no environment. `origin` stands where the command line's flag
 * would in messages. For a library, whose process is not its own. */
PAWL_MUST_USE int config_make(const char *origin, const char *const *flags, size_t n_flags,
                              struct config **out, struct pawl_err *err);
void config_free(struct config *c);
static inline void config_freep(struct config **c)
{
    config_free(*c);
}
#define AUTO_CONFIG __attribute__((cleanup(config_freep)))

/* The kind's entry or NULL. */
const struct kind_conf *config_kind(const struct config *c, struct sv name);

/* Every value with its key, text and origin ("default", "pawl.yaml:12", "PAWL_STORE", "--slots"),
 * secrets masked: what `config show` prints. */
struct config_value {
    const char *key, *value, *origin, *doc;
};
void config_each(const struct config *c, void (*each)(void *arg, const struct config_value *v),
                 void *arg);
/* docs/config.md, made from the table. */
void config_document(struct str *out);

#endif
