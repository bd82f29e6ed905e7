/* The application: the one place that names concrete handlers, and hands them to the
 * command line as struct cli_app. */
#ifndef PAWL_APP_APP_H
#define PAWL_APP_APP_H

#include "cli.h"

/* handlers.c */
enum handler_id { HANDLER_EXEC, HANDLER_NOOP, HANDLER_FETCH, HANDLER_HTTP, N_HANDLERS };
struct handlers {
    struct handler *v[N_HANDLERS];
};
struct zygote;
/* loop NULL: to judge payloads only. Otherwise exec is there if the zygote is. */
void handlers_make(struct handlers *h, struct zygote *z, struct loop *loop,
                   const struct config *config);
void handlers_free(struct handlers *h);
/* Which one runs a kind; -1: neither built in nor configured here. */
int handler_kind(const struct config *c, struct sv kind);

/* checks.c */
struct payload_check *app_check_new(const struct config *config);
void app_check_free(struct payload_check *c);
int app_check(const struct payload_check *c, struct sv kind, struct sv payload,
              struct pawl_err *err);
void app_host(const struct payload_check *c, struct sv kind, struct sv payload, struct str *out);

/* work.c */
enum { APP_KINDS = 3 };
extern const char *const app_kinds[APP_KINDS]; /* built in */
int app_run_worker(const struct run_request *req, struct worker_report *out, struct pawl_err *err);

#endif
