/* Words for tests of what jobs leave behind: artifacts, records of fetches, what is remembered. */
#ifndef PAWL_TESTS_KEEPING_H
#define PAWL_TESTS_KEEPING_H

#include "operating.h"

/* An artifact whose bytes are told apart by `fill`, and a full record of a fetch. */
struct artifact bytes(const char *name, unsigned char fill);
struct fetch_record record(int status, bool kept);

/* End a lease with these. */
enum settle_outcome leave(struct fixture *f, const struct lease *l, enum outcome o,
                          const struct artifact *a, size_t n, const struct fetch_record *r);
/* A job that has ended and left one artifact "raw" with the record of its fetch. */
job_id fetched(struct fixture *f, const struct session *w, const char *queue, unsigned char fill);

/* What was told, copied; the telling is stopped after `stop` of them (0: never). */
struct found {
    struct artifact_view v[64];
    struct fetch_view f[64];
    size_t n, stop;
    struct arena *a;
};
bool see_artifact(void *found, const struct artifact_view *v);
bool see_fetch(void *found, const struct fetch_view *v);
struct found artifacts(struct fixture *f, struct artifact_filter filter);
struct found fetches(struct fixture *f, job_id id);
struct fetch_totals totals(struct fixture *f, struct wall since, const char *queue);

void remember(struct fixture *f, const char *key, struct sv value, struct dur ttl);
struct sv recall(struct fixture *f, const char *key);

#endif
