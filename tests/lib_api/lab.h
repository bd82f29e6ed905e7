/* A folder with a store for one test of the library, and checks that print the library's error.
 * Only the public header: what these tests use is what a program can. */
#ifndef PAWL_TESTS_LIB_API_LAB_H
#define PAWL_TESTS_LIB_API_LAB_H

#include <pawl/pawl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

struct lab {
    char dir[256];
    char url[512];
    char other[512]; /* a second store, always on SQLite */
    pawl_error err;
};

/* PAWL_TEST_STORE names the store; for PostgreSQL PAWL_TEST_PG_URL the server. */
bool on_postgres(void);
int lab_setup(void **state);
int lab_teardown(void **state);

/* Succeeds, or fails the test with the library's words. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0)                                                                              \
            fail_msg("%s: %d (%s; %s)", #call, rc_, lab->err.message, lab->err.hint);              \
    } while (0)
/* Fails with that code, and says so everywhere alike. */
#define FAILS(code_, call)                                                                         \
    do {                                                                                           \
        lab->err = (pawl_error){0};                                                                \
        int rc_ = (call);                                                                          \
        if (rc_ != (code_))                                                                        \
            fail_msg("%s: %d (%s), not %d", #call, rc_, lab->err.message, (code_));                \
        assert_int_equal(lab->err.code, (code_));                                                  \
        assert_int_equal(lab->err.exit_status, pawl_error_exit_status(code_));                     \
        assert_true(lab->err.message[0]);                                                          \
    } while (0)

pawl_store *lab_open(struct lab *lab);
/* One job; its id. */
int64_t lab_add(struct lab *lab, pawl_store *s, const char *queue, const char *kind,
                const char *key);
int lab_state(struct lab *lab, pawl_store *s, int64_t id);
/* n jobs of one kind in the store at that URL. */
void lab_fill(struct lab *lab, const char *url, const char *kind, int n);
pawl_counts lab_count(struct lab *lab, pawl_store *s);

#endif
