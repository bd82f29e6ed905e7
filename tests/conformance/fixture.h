/* What every test of a store includes: cmocka in the order it wants, a store in a folder of its
 * own, and short words for the operations. Only store.h is known here; which store is opened is
 * decided in place.c. */
#ifndef PAWL_TESTS_STORE_FIXTURE_H
#define PAWL_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place.h"
#include <stdio.h>

#define HOUR DUR_S(3600)

struct fixture {
    char dir[64];  /* removed at the end */
    char path[80]; /* of the store in it, or its schema */
    struct store *s;
    struct arena a; /* for results; lives as long as the fixture */
    struct pawl_err e;
};

/* Fail with the store's own words unless the call returns 0. Needs a `struct fixture *f`. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        f->e = (struct pawl_err){0};                                                               \
        int ok_ = (call);                                                                          \
        if (ok_ < 0)                                                                               \
            fail_msg("%s: %s: %s", #call, err_name(ok_), f->e.msg);                                \
    } while (0)
/* The call fails with just this code and says why. */
#define FAILS(call, code_)                                                                         \
    do {                                                                                           \
        f->e = (struct pawl_err){0};                                                               \
        int ok_ = (call);                                                                          \
        if (ok_ != (code_))                                                                        \
            fail_msg("%s: %s, not %s: %s", #call, ok_ ? err_name(ok_) : "success",                 \
                     err_name(code_), f->e.msg);                                                   \
        assert_int_equal(f->e.code, code_);                                                        \
        assert_true(f->e.msg[0]);                                                                  \
    } while (0)
#define assert_sv(v, text)                                                                         \
    do {                                                                                           \
        if (!sv_eq((v), sv_of(text)))                                                              \
            fail_msg("\"" SV_FMT "\" is not \"%s\"", SV_ARG(v), (text));                           \
    } while (0)

/* For cmocka: *state becomes a struct fixture with an open, empty store; teardown checks the store
 * once more, closes it and removes the folder. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
/* The parts, for tests that open the store themselves. */
void fixture_folder(struct fixture *f);
void fixture_remove(struct fixture *f);

struct store_options store_defaults(enum store_mode mode);
/* Another handle on the fixture's store; never NULL. */
struct store *open_again(struct fixture *f);

struct job_spec spec(const char *queue, const char *kind, int priority);
struct job_spec keyed(const char *queue, const char *key);
job_id add(struct fixture *f, const struct job_spec *s);
job_id add_plain(struct fixture *f, int priority); /* queue "q", kind "k" */
enum add_outcome add_dup(struct fixture *f, const struct job_spec *s, enum on_duplicate dup,
                         struct add_result *out);

struct session start(struct fixture *f, const char *name);
/* Let the lease run out at once; the session's lock stays held. */
void expire(struct fixture *f, struct session *w);
/* As kill -9: the kernel lets the lock go, the lease runs on. */
void vanish(struct session *w);
void end(struct fixture *f, struct session *w);

struct claim_result claim(struct fixture *f, const struct session *w, const char *kind, int want);
struct lease claim_one(struct fixture *f, const struct session *w); /* kind "k"; fails if none */
struct settle settle_of(const struct lease *l, enum outcome o);
enum settle_outcome settle(struct fixture *f, const struct settle *v);
void settle_ok(struct fixture *f, const struct lease *l, enum outcome o);
struct sweep_result sweep(struct fixture *f, const struct session *self, int max_lost);
struct act_result act(struct fixture *f, enum act what, job_id id);

struct job_view get(struct fixture *f, job_id id);
void assert_state(struct fixture *f, job_id id, enum job_state state);
/* How many events of that type the job has. */
int n_events(struct fixture *f, job_id id, enum event_type type);
/* Everything of the job that may change, as text: equal before and after means unchanged. */
char *snapshot(struct fixture *f, job_id id);
/* The whole store's jobs and newest event, likewise. */
char *snapshot_all(struct fixture *f);
void assert_clean(struct fixture *f);

#endif
