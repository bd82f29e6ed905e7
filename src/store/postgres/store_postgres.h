/* The PostgreSQL store: many machines, one queue. One handle is one connection (and a second one
 * for hints, if somebody asks for its descriptor); it connects again by itself after a failure. */
#ifndef PAWL_STORE_POSTGRES_H
#define PAWL_STORE_POSTGRES_H

#include "store.h"

/* url: anything libpq takes after "postgres://", service files and TLS options included, and
 * schema=NAME. NOTFOUND if there is no store in that schema and mode does not create one. */
PAWL_MUST_USE int store_postgres_open(const char *url, const struct store_options *o,
                                      struct store **out, struct pawl_err *err);

/* The SQL that brings the store from version `from` (0: none, -1: what it has now, which is looked
 * up) to the present one, for people who run migrations by hand. Appended to out. */
PAWL_MUST_USE int store_postgres_script(const char *url, const struct store_options *o, int from,
                                        struct str *out, struct pawl_err *err);

/* Remove a store with all that it holds: for scratch stores. */
PAWL_MUST_USE int store_postgres_drop(const char *url, const struct store_options *o,
                                      struct pawl_err *err);

#endif
