/* Time. Three kinds that cannot be mixed: a point on the wall clock (or on a store's clock, which
 * has the same scale), a point on CLOCK_BOOTTIME (counts suspend, never steps), and a length.
 * All in microseconds. */
#ifndef PAWL_BASE_CLOCK_H
#define PAWL_BASE_CLOCK_H

#include "err.h"
#include "str.h"
#include <stdint.h>

struct wall {
    int64_t us; /* since 1970-01-01 UTC; 0 = none */
};
struct boot {
    int64_t us; /* CLOCK_BOOTTIME */
};
struct dur {
    int64_t us;
};

#define DUR_US(n)  ((struct dur){(int64_t)(n)})
#define DUR_MS(n)  ((struct dur){(int64_t)(n)*1000})
#define DUR_S(n)   ((struct dur){(int64_t)(n)*1000000})
#define DUR_NONE   ((struct dur){-1})                /* "none": no limit */
#define DUR_MAX_US ((int64_t)3650 * 86400 * 1000000) /* ten years: the longest length accepted */

struct wall clock_wall(void);
struct boot clock_boot(void);
/* The kernel's boot id, 36 characters and NUL; "" where the kernel has none. */
void clock_boot_id(char out[37]);

/* "500ms 10s 5m 2h 7d", also "1h30m"; a bare number is refused (which unit?). "none" gives DUR_NONE
 * when allow_none. INPUT on anything else. */
PAWL_MUST_USE int dur_parse(struct sv s, bool allow_none, struct dur *out, struct pawl_err *err);
void dur_format(struct dur d, struct str *out); /* "1h30m", "500ms", "none": parses back */
void dur_human(struct dur d, struct str *out);  /* two units at most: "2h13m", "45s", "120ms" */

/* RFC 3339 UTC with ms: 2026-01-02T03:04:05.678Z. */
void wall_format(struct wall t, struct str *out);
/* RFC 3339 with offset, "HH:MM" (next such local time after now), "@unix". INPUT otherwise. */
PAWL_MUST_USE int wall_parse(struct sv s, struct wall now, struct wall *out, struct pawl_err *err);

#endif
