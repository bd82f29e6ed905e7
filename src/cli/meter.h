/* Progress of a command that takes a while: a bar five times a second on a terminal, else a line
 * every 10 s, after 10 minutes every 60 s. Nothing under -q. */
#ifndef PAWL_CLI_METER_H
#define PAWL_CLI_METER_H

#include "cli.h"

struct meter {
    const struct cli *c;
    struct boot start, said;
};

void meter_start(struct meter *m, const struct cli *c);
struct dur meter_elapsed(const struct meter *m);
double meter_per_second(const struct meter *m, int64_t n);
/* Is it time for a line? If so it counts as drawn now. */
bool meter_due(struct meter *m);
void meter_draw(const struct meter *m, struct sv text);
/* Take the bar away. */
void meter_end(const struct meter *m);

/* How many jobs to add in one transaction. Transactions stay below 50 ms, so that no worker's
 * heartbeat waits; while no worker lives there is none to wait, and they may take a second: most of
 * what a large import costs is writing the same pages of the index of keys again with every batch.
 */
enum {
    BATCH_START = 2000, /* never fewer */
    BATCH_MAX = 32000,
};
struct batch {
    size_t size;
    bool alone; /* no worker lives */
    struct boot looked;
};
void batch_init(struct batch *b);
/* The next one's size, after one of n jobs took so long. */
void batch_adapt(struct batch *b, struct cli *c, size_t n, struct dur took);

#endif
