/* A lake in a folder of its own, for tests. */
#ifndef PAWL_TESTS_LAKE_POND_H
#define PAWL_TESTS_LAKE_POND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lake.h"
#include "lake_internal.h"
#include "mem.h"
#include <stdio.h>

struct pond {
    char folder[256]; /* a test's own */
    char path[300];   /* of the lake in it */
    struct lake *l;
    struct pawl_err e;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        int ok_ = (call);                                                                          \
        if (ok_ < 0)                                                                               \
            fail_msg("%s: %s", #call, p->e.msg);                                                   \
    } while (0)

int pond_setup(void **state); /* with an open lake that compresses text and json */
int pond_teardown(void **state);
struct lake_options pond_options(const struct pond *p);

struct lake_item body_item(struct sv body, const char *type);
struct lake_item spool_item(struct pond *p, struct sv body, const char *type);
/* Keep one; it must succeed. */
struct lake_item keep(struct pond *p, struct lake_item item);
struct artifact artifact_of(const struct lake_item *item);
/* The object's file, in a buffer that the next call uses again. */
const char *object_path(const struct pond *p, const struct lake_item *item);

void assert_reads(struct lake *l, const struct lake_item *item, struct sv expected);
void assert_verdict(struct lake *l, const struct lake_item *item, enum lake_verdict v,
                    const char *why);
int count_entries(struct lake *l, bool temporary);
void set_age(const char *path, int64_t seconds);
int count_fds(void);
/* n bytes that repeat (they get smaller) or do not. Freed by the caller. */
char *text_bytes(size_t n);
char *noise_bytes(size_t n);

#endif
