/* Whether the lake takes what runs keep. While it is short of room, or refused something that was
 * not the job's fault, kinds that keep things are not claimed here; when it takes bytes again they
 * are, without anybody's doing. All on the loop thread. */
#ifndef PAWL_WORKER_LAKE_HOLD_H
#define PAWL_WORKER_LAKE_HOLD_H

#include "err.h"
#include "loop.h"
#include <stdbool.h>
#include <stdint.h>

struct kind;
struct worker;

enum { HOLD_WHY_MAX = 512 };

struct lake_hold {
    bool held;
    bool refused;       /* something was: there is room, but a trial has to show that it is taken */
    bool trying;        /* that trial is under way */
    bool fruitless;     /* it went on after such a hold, and nothing was kept since */
    struct dur pause;   /* before the first look at a hold; longer after fruitless ones */
    int64_t need;       /* bytes of what was refused */
    int64_t room;       /* bytes free above the reserve, when it was looked at, */
    struct boot looked; /* then */
    struct timer next;  /* held: the next look */
    char why[HOLD_WHY_MAX];
};

void lake_hold_init(struct worker *w);
void lake_hold_done(struct worker *w);

/* Before a claim: is there still room? Looks a few times a second at most. */
void lake_hold_look(struct worker *w);
/* How many more jobs of the kind may be claimed now, by what those under way will take. */
size_t lake_hold_room(const struct worker *w, const struct kind *k);
/* Why jobs of the kind are held back; NULL: they are not. */
const char *lake_hold_why(const struct worker *w, const struct kind *k);

/* What keep_thread.c finds out: a kind keeps things; the lake took n bytes of it, or refused them;
 * what came of a trial (rc 0: they were taken). */
void lake_hold_keeps(struct worker *w, struct kind *k);
void lake_hold_kept(struct worker *w, struct kind *k, int64_t n);
void lake_hold_refused(struct worker *w, int64_t n, const struct pawl_err *err);
void lake_hold_tried(struct worker *w, int rc, const struct pawl_err *err);

#endif
