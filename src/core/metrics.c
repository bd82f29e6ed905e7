#include "metrics.h"

#include <stdio.h>

const char *const metric_counter_names[N_COUNTERS] = {
#define COUNTER(name, doc) #name,
#define HISTOGRAM(name, doc)
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
};
const char *const metric_histogram_names[N_HISTOGRAMS] = {
#define COUNTER(name, doc)
#define HISTOGRAM(name, doc) #name,
#include "metrics.def"
#undef COUNTER
#undef HISTOGRAM
};

enum { FIRST_BOUND_US = 64 };

static int first_slot(enum metric_histogram h)
{
    return N_COUNTERS + (int)h * (HIST_BUCKETS + 1);
}

static int bucket_of(int64_t us)
{
    int64_t bound = FIRST_BOUND_US;
    int i = 0;
    while (i < HIST_BUCKETS - 1 && us > bound) {
        bound *= 2;
        i++;
    }
    return i;
}

void metric_observe(struct metrics *m, enum metric_histogram h, struct dur d)
{
    int64_t us = d.us > 0 ? d.us : 0;
    int at = first_slot(h);
    atomic_fetch_add_explicit(&m->v[at + bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->v[at + HIST_BUCKETS], us, memory_order_relaxed);
}

int64_t metric_count(const int64_t v[N_METRICS], enum metric_histogram h)
{
    int64_t n = 0;
    for (int i = 0; i < HIST_BUCKETS; i++)
        n += v[first_slot(h) + i];
    return n;
}

struct dur metric_quantile(const int64_t v[N_METRICS], enum metric_histogram h, double q)
{
    int64_t total = metric_count(v, h), seen = 0, bound = FIRST_BOUND_US;
    if (!total)
        return DUR_US(0);
    for (int i = 0; i < HIST_BUCKETS; i++, bound *= 2) {
        seen += v[first_slot(h) + i];
        if ((double)seen >= q * (double)total)
            break;
    }
    return (struct dur){bound};
}

void metric_slot_name(int slot, char out[64])
{
    if (slot < N_COUNTERS) {
        snprintf(out, 64, "%s", metric_counter_names[slot]);
        return;
    }
    int h = (slot - N_COUNTERS) / (HIST_BUCKETS + 1), b = (slot - N_COUNTERS) % (HIST_BUCKETS + 1);
    if (b == HIST_BUCKETS)
        snprintf(out, 64, "%s.sum", metric_histogram_names[h]);
    else
        snprintf(out, 64, "%s.%d", metric_histogram_names[h], b);
}
