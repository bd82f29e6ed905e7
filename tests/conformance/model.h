/* A queue as simple as can be, in memory: what a store must agree with after every operation. It
 * has no clock: a time is due, and a lease over, from the next transaction on, or never. */
#ifndef PAWL_TESTS_MODEL_H
#define PAWL_TESTS_MODEL_H

#include "store.h"

enum {
    M_QUEUES = 3,
    M_KINDS = 3,
    M_HOSTS = 3,
    M_KEYS = 4096,
    M_JOBS = 600,
    M_SESSIONS = 4,
};
enum m_when { M_NOW, M_NEXT, M_NEVER };

struct m_job {
    int64_t id;
    int queue, kind, host, key; /* key -1: none */
    int priority, attempt, transient, lost, max_attempts;
    enum job_state state;
    int64_t fence;
    session_id owner; /* v 0: none */
    bool cancel;
    enum wait_reason reason;
    uint64_t due;           /* waiting: ready in transactions after this one */
    struct lease_hint hint; /* of its last claim */
};
struct m_session {
    struct session s; /* id 0: none */
    uint64_t over;    /* the lease is over in transactions after this one; 0: never */
    bool lock_free;
};
struct m_key {
    int64_t id; /* 0: free */
    bool gone;  /* its job was pruned */
};
struct model {
    struct m_job jobs[M_JOBS]; /* by id */
    int n;
    int64_t last_id;
    bool paused[M_QUEUES];
    struct m_session sessions[M_SESSIONS];
    struct m_key keys[M_QUEUES][M_KEYS];
    uint64_t tx; /* number of the transaction now running */
};

/* A spec in the model's terms. */
struct m_spec {
    int queue, kind, host, key, priority, max_attempts;
    enum m_when when;
};

struct m_job *model_find(struct model *m, int64_t id);
/* What adding must answer; a created job gets `id` unless that is 0 (answer only). */
enum add_outcome model_add(struct model *m, const struct m_spec *s, enum on_duplicate dup,
                           int64_t id, struct add_result *out);
bool model_alive(const struct model *m, const struct m_session *w);
void model_promote(struct model *m);
/* The best ready job for the room left, or NULL. */
struct m_job *model_best(struct model *m, const int room[M_KINDS], unsigned queues);
void model_claim(struct m_job *j, session_id owner);
enum settle_outcome model_settle(struct model *m, const struct settle *v);
void model_end_session(struct model *m, struct m_session *w);
struct sweep_result model_sweep(struct model *m, const struct m_session *self, int max_lost);
/* Whether the act applied. */
bool model_act(struct model *m, enum act what, int64_t id, int grant);
bool model_release(struct model *m, int64_t id);                         /* by force */
bool model_set(struct model *m, int64_t id, const struct job_change *c); /* delay: none or long */

#endif
