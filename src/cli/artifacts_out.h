/* Artifacts and records of fetches: out of the store, and written for people and scripts. */
#ifndef PAWL_CLI_ARTIFACTS_OUT_H
#define PAWL_CLI_ARTIFACTS_OUT_H

#include "cli.h"
#include "lake.h"
#include "mem.h"

enum lake_mode cli_lake_mode(const struct cli *c); /* as configured */
/* The configured lake, which is never made here. NOTFOUND naming the folder. */
PAWL_MUST_USE int cli_lake(const struct cli *c, struct lake **out, struct pawl_err *err);
/* The same for who changes or judges what is in it; CONFLICT: it is another store's. */
PAWL_MUST_USE int cli_own_lake(const struct cli *c, enum lake_mode mode, struct lake **out,
                               struct pawl_err *err);
static inline void lake_closep(struct lake **l)
{
    lake_close(*l);
}
#define AUTO_LAKE __attribute__((cleanup(lake_closep)))

struct artifact_list {
    struct artifact_view *v; /* by id, all of it in the arena */
    size_t n;
};
/* The filter's limit bounds it. */
PAWL_MUST_USE int artifacts_load(const struct cli *c, const struct artifact_filter *f,
                                 struct arena *a, struct artifact_list *out, struct pawl_err *err);
/* does: all rows with an id above *after, a page at a time; the store is not held meanwhile, and
 * *after follows. Stops at a signal. */
enum { ARTIFACTS_PAGE = 1000 };
PAWL_MUST_USE int artifacts_each_page(const struct cli *c, int64_t *after,
                                      int (*each)(void *arg, const struct artifact_list *l,
                                                  struct pawl_err *err),
                                      void *arg, struct pawl_err *err);
/* The job's newest record; *found false: it has none. */
PAWL_MUST_USE int fetch_load(const struct cli *c, job_id job, struct arena *a,
                             struct fetch_view *out, bool *found, struct pawl_err *err);

struct sv sha256_text(const unsigned char hash[SHA256_LEN], char out[SHA256_LEN * 2 + 1]);

/* The lines of `show`. */
void artifacts_put(struct str *s, const struct artifact_list *l);
void fetch_put(struct str *s, const struct fetch_view *v);
/* Its members `fetch` and `artifacts`; v NULL: null. */
void artifacts_write(struct jw *w, const struct artifact_list *l);
void fetch_write(struct jw *w, const struct fetch_view *v);

#endif
