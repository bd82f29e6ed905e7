/* What fetches will cost, worked out beforehand: pure arithmetic over items by host, the limits and
 * what is known of durations and sizes.
 *
 * A gate lets n items through in the longer of n starts at its rate and n durations over its
 * permits; a host is done when the slowest of its gates has let everything through, and all is done
 * when the slowest gate has, or the slots that fetches have. */
#ifndef PAWL_CLI_PLAN_H
#define PAWL_CLI_PLAN_H

#include "cli.h"
#include "limit.h"
#include "mem.h"

enum { PLAN_GUESS_BYTES = 64 << 10 };
#define PLAN_GUESS_TIME DUR_MS(500)

/* Counts by a text. */
struct tally_entry {
    struct sv queue, name; /* in the arena */
    int64_t n, sum;
    size_t gate; /* plan_work_out(): the slowest; SIZE_MAX: none */
    double seconds;
};
struct tally {
    struct arena arena;
    struct tally_entry *v; /* in the order they came */
    size_t n, cap;
    uint32_t *slots; /* index + 1 into v, 0: free; a power of two of them */
    size_t n_slots;
};
struct tally_entry *tally_get(struct tally *t, struct sv queue, struct sv name); /* made if new */
const struct tally_entry *tally_find(const struct tally *t, struct sv queue, struct sv name);

struct plan_gate {
    size_t limit;    /* index */
    struct sv value; /* "" where the limit has one gate */
    int64_t items;
    int64_t interval_us; /* between two starts, as it is now */
    int64_t shut_us;     /* nothing passes for so long */
    double seconds;
};
struct plan {
    struct tally lanes; /* (queue, host) → items */
    struct tally sizes; /* ("", host) → bodies, bytes on disk */
    const struct limit_spec *limits;
    size_t n_limits;
    struct dur mean;             /* of a fetch */
    bool mean_known;             /* false: a guess */
    int64_t slots;               /* that fetches have in one worker */
    int64_t free_bytes, reserve; /* free -1: unknown */
    /* worked out */
    struct tally gate_index; /* (limit's name, value) → gate */
    struct plan_gate *gates;
    size_t n_gates, cap_gates;
    struct tally hosts; /* ("", host) → items; sum: bytes */
    int64_t items, bytes;
    int64_t sized; /* items whose size is known from others of their host or at all */
    double seconds;
    size_t bound; /* the gate that decides; SIZE_MAX: the slots */
};
void plan_init(struct plan *p);
void plan_done(struct plan *p);
void plan_work_out(struct plan *p);
/* Hosts by seconds, then items, falling; n of them. */
const struct tally_entry **plan_hosts(const struct plan *p, struct arena *a);

/* plan_load.c: items, limits, durations, sizes and room, from store, file and configuration. */
PAWL_MUST_USE int plan_load_queue(struct cli *c, struct plan *p, struct sv queue,
                                  struct pawl_err *err);
PAWL_MUST_USE int plan_load_file(struct cli *c, struct plan *p, struct sv queue, const char *file,
                                 struct pawl_err *err);
PAWL_MUST_USE int plan_load_limits(struct cli *c, struct plan *p, struct arena *a,
                                   struct pawl_err *err);
PAWL_MUST_USE int plan_load_past(struct cli *c, struct plan *p, struct pawl_err *err);
/* After plan_work_out() has made the gates: what holds them now; then work out again. */
PAWL_MUST_USE int plan_load_gates(struct cli *c, struct plan *p, struct pawl_err *err);
void plan_load_room(const struct cli *c, struct plan *p);

/* plan_out.c */
void plan_print(struct cli *c, const struct plan *p, size_t shown);
void plan_write(struct cli *c, const struct plan *p, size_t shown);

#endif
