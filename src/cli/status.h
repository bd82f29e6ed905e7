/* What `pawl status` knows: rows by queue and the things that need a person. */
#ifndef PAWL_CLI_STATUS_H
#define PAWL_CLI_STATUS_H

#include "cli.h"
#include "gates_out.h"
#include "mem.h"

struct queue_row {
    struct sv queue;
    bool paused;
    int64_t n[N_JOB_STATES];
    int64_t retries, done_last_minute;
    struct wall first_created_at;
    double rate_now, rate_mean; /* jobs ended well per second */
    struct dur eta;             /* us < 0: unknown or nothing left */
};

/* One row a queue, in the arena. */
struct queue_row *status_rows(const struct status_view *s, struct arena *a, size_t *out_n);
/* The gates that are shut, most lanes parked first. */
PAWL_MUST_USE int status_gates(struct cli *c, struct arena *a, struct gate_list *out,
                               struct pawl_err *err);
/* The table of those that hold something back, for the page and the live view. */
void status_limited(struct out *o, const struct gate_list *gates, struct wall now);
/* DESIGN §6: {"jobs":{…},"queues":[…],"workers":[…],"gates":[…],"metrics":{…}}. gates NULL: none.
 */
void status_write(struct jw *w, const struct status_view *s, const struct queue_row *rows, size_t n,
                  const struct gate_list *gates);
/* One line for each thing that needs a person, with the command to paste. */
void status_attention(struct cli *c, const struct status_view *s, const struct queue_row *rows,
                      size_t n, const struct gate_list *gates,
                      void (*each)(struct cli *c, struct sv line));

#endif
