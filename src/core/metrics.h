/* Counters and histograms of one worker, from metrics.def. Written by any thread, read by any. */
#ifndef PAWL_CORE_METRICS_H
#define PAWL_CORE_METRICS_H

#include "clock.h"
#include <stdatomic.h>
#include <stdint.h>

/* Bucket i counts values up to 2^i × 64 µs; the last takes the rest (beyond 18 min). */
enum { HIST_BUCKETS = 26 };

enum metric_counter {
#define COUNTER(name, doc) METRIC_##name,
#define HISTOGRAM(name, doc)
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
    N_COUNTERS
};
enum metric_histogram {
#define COUNTER(name, doc)
#define HISTOGRAM(name, doc) METRIC_##name,
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
    N_HISTOGRAMS
};
/* All of it as one flat array, the form in which the store keeps it:
 * counters, then for each histogram its buckets and its sum in µs. */
enum { N_METRICS = N_COUNTERS + N_HISTOGRAMS * (HIST_BUCKETS + 1) };

struct metrics {
    _Atomic int64_t v[N_METRICS];
};

extern const char *const metric_counter_names[N_COUNTERS];
extern const char *const metric_histogram_names[N_HISTOGRAMS];

static inline void metric_add(struct metrics *m, enum metric_counter c, int64_t n)
{
    atomic_fetch_add_explicit(&m->v[c], n, memory_order_relaxed);
}
void metric_observe(struct metrics *m, enum metric_histogram h, struct dur d);
/* Upper bound of the bucket that holds quantile q (0..1) of a flat array; 0 when empty. */
struct dur metric_quantile(const int64_t v[N_METRICS], enum metric_histogram h, double q);
int64_t metric_count(const int64_t v[N_METRICS], enum metric_histogram h);
/* Name of one flat slot as the store writes it ("claim_duration.7", "claim_duration.sum"). */
void metric_slot_name(int slot, char out[64]);

#endif
