/* Stores by URL: the one place that knows which stores there are. The command line and the library
 * both open through it. */
#ifndef PAWL_OPEN_STORES_H
#define PAWL_OPEN_STORES_H

#include "config.h"
#include "store.h"

/* Open what config->store names: sqlite:FILE or a path alone, postgres://… USAGE for a URL that is
 * none; else the errors of that store's own open. */
PAWL_MUST_USE int stores_open(const struct config *config, enum store_mode mode, struct store **out,
                              struct pawl_err *err);

/* The SQL that `migrate` would run, from version `from` (0: no store yet, -1: the present one).
 * USAGE where a store has none to show. */
PAWL_MUST_USE int stores_migration_sql(const struct config *config, int from, struct str *out,
                                       struct pawl_err *err);

/* A URL for a throw-away store of the same kind, beside the one that config names. */
PAWL_MUST_USE int stores_scratch_new(const struct config *config, struct str *url,
                                     struct pawl_err *err);
/* Remove it with all that belongs to it. */
void stores_scratch_free(const struct config *config, const char *url);

#endif
