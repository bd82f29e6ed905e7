/* The report of a period: what `pawl report` prints and `run --drain` ends with. */
#ifndef PAWL_CLI_REPORT_H
#define PAWL_CLI_REPORT_H

#include "cli.h"

struct log_folder {
    int64_t files, bytes;
    bool known; /* false: none, or too many files to look at each */
};
struct report_data {
    struct sv queue; /* p NULL: all */
    struct report_view view;
    struct fetch_totals fetches;
    struct status_view status;
    struct store_info info;
    struct log_folder logs;
};

/* The size of the logs, if that is cheap: a bounded number of files. */
struct log_folder report_logs(struct store *s);
/* Did fetches do anything? */
bool report_fetched(const struct report_data *d);
/* The page in parts, so that the first is there before the slower questions are asked. */
void report_print_now(struct out *o, const struct report_data *d, struct wall since);
void report_print_rest(struct out *o, const struct report_data *d);
void report_write(struct jw *w, const struct report_data *d);
/* What a worker that ran dry adds to its summary: rate, time lost, slowest, errors. */
void report_print_short(struct out *o, struct sv queue, const struct report_view *r);
/* The same on stderr, for the run's own time and queues, if it was long or had many jobs. Not under
 * -q, --json or --log json. A report that fails is no failure of the run: it warns. */
void report_drained(struct cli *c, const struct run_request *q, const struct worker_report *r,
                    struct dur took);

#endif
