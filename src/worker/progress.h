/* What the worker shows while it runs: a bar on a terminal, plain lines elsewhere. */
#ifndef PAWL_WORKER_PROGRESS_H
#define PAWL_WORKER_PROGRESS_H

#include "loop.h"
#include "str.h"
#include <stdbool.h>
#include <stdint.h>

struct worker;

struct progress_display {
    struct timer timer;
    struct boot began, sampled, looked;
    int64_t sampled_ended;
    int64_t sampled_bytes;
    double rate;  /* jobs ended per second, smoothed */
    double bytes; /* kept in the lake per second, smoothed */
    bool drawn;   /* the bar is on the screen */
    struct str line, shown;
};

void progress_init(struct worker *w);
void progress_done(struct worker *w); /* takes the bar away */

#endif
