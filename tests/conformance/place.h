/* Which store is tested: the kind named by PAWL_TEST_STORE, a file in a folder of the test's own,
 * or a schema of its own on the server of PAWL_TEST_PG_URL. The only place that names a store. */
#ifndef PAWL_TESTS_PLACE_H
#define PAWL_TESTS_PLACE_H

#include "store.h"

bool on_postgres(void);
/* A path in `dir`, or the name of a schema, where no store is yet. */
void place_name(const char *dir, const char *name, char *out, size_t size);
/* THE factory: the store at that path. With PAWL_TEST_PG_POOLED set as behind a transaction pooler.
 */
PAWL_MUST_USE int open_store(const char *path, const struct store_options *o, struct store **out,
                             struct pawl_err *err);

#endif
