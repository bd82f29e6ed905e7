/* Questions of runs to the store: asked on the loop, answered by the store thread within the next
 * turn's transaction, told on the loop after its commit (I12). An ask belongs to one thread at a
 * time, as its turn does. */
#ifndef PAWL_WORKER_ASKS_H
#define PAWL_WORKER_ASKS_H

#include "handler.h"
#include "store.h"

enum ask_kind { ASK_ADMIT, ASK_PACE, ASK_RECALL, ASK_REMEMBER, ASK_PREVIOUS, ASK_KEPT };
/* The artifact of the job's newest record that kept its body; NULL: none, or nobody could say. */
typedef void kept_before_fn(void *arg, const struct artifact *a);

struct ask {
    enum ask_kind kind;
    struct lease_ref job;
    char *name;       /* host or key; owned */
    struct str value; /* ASK_REMEMBER */
    struct dur dur;   /* ASK_PACE, ASK_REMEMBER */
    union {
        admission_fn *admission;
        remembered_fn *remembered;
        previous_fn *previous;
        kept_before_fn *kept;
    } done;
    void *arg;
    /* answered */
    struct arena arena;
    struct admission admission;
    struct sv remembered;
    struct fetch_record record;
    bool found; /* record */
    int64_t kept_id;
    struct artifact kept; /* place.p NULL: none */
    struct ask *next;
};

/* Asked, in order; the last one's `next` is NULL. */
struct ask_list {
    struct ask *first, **last;
};

struct worker;
/* The part of run_services that asks the store. */
void asks_admit(struct run *r, struct sv host, admission_fn *done, void *arg);
void asks_pace(struct run *r, struct sv host, struct dur apart);
void asks_recall(struct run *r, struct sv key, remembered_fn *done, void *arg);
void asks_remember(struct run *r, struct sv key, struct sv value, struct dur ttl);
void asks_previous(struct run *r, previous_fn *done, void *arg);
void asks_kept(struct run *r, kept_before_fn *done, void *arg);

void asks_init(struct ask_list *l);
/* Loop thread: tell all answers and free them; `answered` false: the answers that change least. */
void asks_tell(struct ask_list *l, bool answered);

/* Store thread, inside the turn's group: answer all. An error is one of the store, not of an ask.
 */
PAWL_MUST_USE int asks_answer(struct store *s, struct ask_list *l, struct pawl_err *err);

#endif
