/* What the files of the public library share. Public types (pawl/pawl.h) and the layers' own types
 * meet here and nowhere else. */
#ifndef PAWL_LIB_API_H
#define PAWL_LIB_API_H

#include "config.h"
#include "json.h"
#include "mem.h"
#include "pawl/pawl.h"
#include "store.h"
#include <pthread.h>

/* ---- error.c ---- */

/* Hand an error over: fills *out (may be NULL) and returns the public code. */
int api_fail(pawl_error *out, const struct pawl_err *e);
/* 0, or the error handed over. */
int api_end(int rc, pawl_error *out, const struct pawl_err *e);
int api_usage(pawl_error *out, const char *fmt, ...) PAWL_PRINTF(2, 3);

/* ---- options.c ---- */

/* Read a caller's struct that begins with `size` into ours of `known` bytes: what it is too short
 * for is zero, what it has beyond must be zero. NULL reads as all zero. USAGE otherwise. */
PAWL_MUST_USE int take_struct(void *out, size_t known, const void *in, const char *name,
                              struct pawl_err *err);
/* Write ours into a caller's, as much as it has room for. Its size was checked. */
void give_struct(void *out, const void *ours, size_t known);
PAWL_MUST_USE int check_size(const void *in, const char *name, struct pawl_err *err);

/* Milliseconds to a length; what is too long stays too long for every check. */
struct dur ms_dur(int64_t ms);
static inline int64_t us_ms(int64_t us)
{
    return us / 1000;
}

/* "key=value" texts for config_make(). */
struct settings {
    char **v;
    size_t n, cap;
};
void settings_done(struct settings *s);
#define AUTO_SETTINGS __attribute__((cleanup(settings_done)))
void settings_add(struct settings *s, const char *key, const char *value);
void settings_int(struct settings *s, const char *key, int64_t v); /* unless 0 */
void settings_ms(struct settings *s, const char *key, int64_t ms); /* unless 0; -1: none */
PAWL_MUST_USE int settings_durability(struct settings *s, int durability, struct pawl_err *err);
/* The caller's own list, strongest because last; keys that have no effect here are refused. */
PAWL_MUST_USE int settings_list(struct settings *s, const char *const *list, size_t n,
                                struct pawl_err *err);
PAWL_MUST_USE int settings_config(const struct settings *s, struct config **out,
                                  struct pawl_err *err);
/* A list of names: none NULL, empty or too long. USAGE naming `what`. */
PAWL_MUST_USE int check_names(const char *const *v, size_t n, const char *what,
                              struct pawl_err *err);
PAWL_MUST_USE int check_name(const char *name, const char *what, struct pawl_err *err);

/* ---- spec.c ---- */

/* n public jobs as the store wants them, as far apart as the first one's size says; views point
 * into the public ones. INPUT, USAGE. */
PAWL_MUST_USE int specs_read(const pawl_job *jobs, size_t n, struct job_spec *out,
                             struct pawl_err *err);
/* JSON text of bounded length, or INPUT naming `what`. */
PAWL_MUST_USE int check_json(const char *text, size_t max, const char *what, struct pawl_err *err);

/* A lease with its public face. */
struct held {
    pawl_lease face; /* first: what the caller has a pointer to */
    struct lease raw;
    const pawl_session *session; /* it was claimed under; NULL: a worker's */
};
/* Fill it from a claim's; every text of both is copied into the arena. */
void held_fill(struct held *h, const struct lease *l, struct arena *a);
const char *api_text(struct sv s, struct arena *a); /* NUL-terminated; NULL for none */

/* ---- stores.c ---- */

struct pawl_store {
    pthread_mutex_t lock; /* all below */
    struct config *config;
    enum store_mode mode;
    struct store *handle; /* NULL after a failure: opened again by the next call */
    struct pawl_session *sessions;
};
/* Every call on a store goes through these: wait for it, open it if need be; then give it free,
 * closing the handle after a failure that broke it. leave() returns rc. */
PAWL_MUST_USE int store_enter(pawl_store *s, struct pawl_err *err);
/* The same for calls that write: USAGE if it was opened to look. */
PAWL_MUST_USE int store_enter_writing(pawl_store *s, struct pawl_err *err);
int store_leave(pawl_store *s, int rc);
PAWL_MUST_USE int selection_read(const pawl_selection *given, struct arena *a,
                                 struct selection *out, struct pawl_err *err);

/* ---- sessions.c ---- */

/* End and free, with the store entered or its handle NULL. */
int session_drop(pawl_session *session, struct pawl_err *err);

#endif
