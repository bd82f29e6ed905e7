/* The application: the one place that names concrete stores and handlers, and hands them to the
 * command line as struct cli_app. */
#ifndef PAWL_APP_APP_H
#define PAWL_APP_APP_H

#include "cli.h"

/* stores.c */
int app_open_store(const struct config *config, enum store_mode mode, struct store **out,
                   struct pawl_err *err);
int app_scratch_new(const struct config *config, struct str *url, struct pawl_err *err);
void app_scratch_free(const char *url);

/* checks.c */
struct payload_check *app_check_new(const struct config *config);
void app_check_free(struct payload_check *c);
int app_check(const struct payload_check *c, struct sv kind, struct sv payload,
              struct pawl_err *err);

/* work.c */
enum { APP_KINDS = 2 };
extern const char *const app_kinds[APP_KINDS]; /* built in */
int app_run_worker(const struct run_request *req, struct worker_report *out, struct pawl_err *err);

#endif
