/* What the benchmarks share: a scratch store with its own configuration, filling it, draining it
 * by the real worker in this process. */
#ifndef PAWL_CLI_BENCH_H
#define PAWL_CLI_BENCH_H

#include "cli.h"

struct bench {
    struct cli *c;
    struct str url;        /* of the scratch store */
    struct config *config; /* the user's, with that store */
};
PAWL_MUST_USE int bench_begin(struct bench *b, struct cli *c, struct pawl_err *err);
void bench_done(struct bench *b); /* removes the scratch store; harmless before begin */

/* Which jobs to add: `lanes` hosts (0: none), in blocks or interleaved. */
struct bench_jobs {
    const char *kind;
    const char *payload;
    int64_t jobs, lanes;
    bool interleaved;
};
PAWL_MUST_USE int bench_fill(struct bench *b, const struct bench_jobs *j, struct dur *out_took,
                             struct pawl_err *err);
/* FAILED unless every job is done afterwards. */
PAWL_MUST_USE int bench_drain(struct bench *b, const char *kind, int slots, int64_t jobs,
                              struct dur *out_took, struct pawl_err *err);

/* Commit in this process to start in an idle worker of another, one sample a job, in µs. */
/* What the store's work for those jobs came to. */
PAWL_MUST_USE int bench_effort(struct bench *b, struct store_effort *out, struct pawl_err *err);
PAWL_MUST_USE int bench_latency(struct bench *b, int64_t *samples, size_t n, struct pawl_err *err);

#endif
