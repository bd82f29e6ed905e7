/* One claim in the making; private to claim.c, claim_merge.c and claim_lease.c. */
#ifndef PAWL_STORE_SQLITE_CLAIM_H
#define PAWL_STORE_SQLITE_CLAIM_H

#include "internal.h"

enum { PARK_MAX = 2000 }; /* lanes in one claim; the rest is left to the next ones */
enum node_kind { NODE_CLASSES, NODE_LANES, NODE_JOBS };

struct node {
    struct head head;
    int64_t turn; /* fair order: of the lane; classes come first. Else 0 */
    enum node_kind kind;
    int64_t class_id;        /* CLASSES: the class; LANES: its owner */
    int64_t lane_id;         /* LANES: the lane */
    struct class_entry *cls; /* LANES, JOBS */
    struct lane_entry *lane; /* JOBS */
};

struct picked {
    int64_t id;
    struct lane_entry *lane;
    int priority, pool;
};

/* Wanted of a pool. */
struct left {
    int any;    /* so many */
    int gated;  /* of these so many with gate or lock: what waits in a worker holds nothing */
    int misses; /* lanes met that only this kept out */
};

struct parking {
    struct lane_entry *lane;
    struct gate_entry *gate;
};

struct claim {
    struct sq *q;
    const struct claim_request *req;
    struct arena *arena;
    struct pawl_err *err;
    struct node *heap;
    size_t n, cap;
    struct left *left; /* per pool */
    int total;
    bool fair;
    struct gate_entry **gates; /* met in this claim */
    size_t n_gates, cap_gates;
    struct parking *parkings;
    size_t n_parkings, cap_parkings;
    struct picked *picked;
    size_t n_picked;
    struct lane_entry **lanes;      /* of the leases */
    sqlite3_stmt *classes;          /* open cursor over classes */
    int64_t jobs_lane, lanes_class; /* what the sticky cursors stand on */
    int jobs_priority, lanes_priority;
};

/* claim_merge.c: choose the best jobs, reading only. */
int claim_collect(struct claim *c);
int claim_collect_only(struct claim *c); /* just req->only */
void claim_close_cursors(struct sq *q);
void claim_free(struct claim *c);

/* claim_lease.c: make what was chosen leases; then their permits, and what the gates keep of it. */
int claim_lease(struct claim *c, struct claim_result *out);
int claim_close_gates(struct claim *c, const struct claim_result *r);

#endif
