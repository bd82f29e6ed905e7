/* What the parts of the fake store share. */
#ifndef PAWL_TESTS_FAKE_PARTS_H
#define PAWL_TESTS_FAKE_PARTS_H

#include "fake_store.h"

struct handle {
    struct store store;
    struct fake *f;
    int hint, slot;
    bool in_group, broken;
};

struct handle *handle_of(struct store *s);
/* The write lock, unless a group has it already. */
void enter(struct handle *h);
void leave(struct handle *h);
/* With the lock held: does this call fail? */
int fault(struct fake *f, struct pawl_err *err);
void push_hint(struct fake *f);

struct fake_job *find(struct fake *f, int64_t id);
int64_t insert(struct fake *f, const char *queue, const char *kind);
void release_all(struct fake *f, int64_t owner, bool refund);
bool paused(struct fake *f, const char *queue);

/* Operations of fake_lease.c. */
int op_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                     struct pawl_err *err);
int op_session_end(struct store *s, struct session *v, struct pawl_err *err);
int op_renew(struct store *s, const struct renew_request *r, struct arena *a,
             struct renew_result *out, struct pawl_err *err);
int op_claim(struct store *s, const struct claim_request *r, struct arena *a,
             struct claim_result *out, struct pawl_err *err);
int op_settle(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
              struct pawl_err *err);
int op_sweep(struct store *s, const struct sweep_request *r, struct sweep_result *out,
             struct pawl_err *err);
int op_held(struct store *s, const struct session *v, struct arena *a, struct lease **out,
            size_t *out_n, struct pawl_err *err);

#endif
