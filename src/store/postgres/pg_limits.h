/* Private to src/store/postgres: limits, gates, locks, and what is done beside the jobs. */
#ifndef PAWL_STORE_POSTGRES_PG_LIMITS_H
#define PAWL_STORE_POSTGRES_PG_LIMITS_H

#include "pg.h"

/* A row of `limits`. Views are in the arena of the read. */
struct limit_row {
    int64_t id; /* 0: there is none */
    struct sv name;
    struct sv text, config; /* p NULL: does not hold; the configuration does not name it */
    bool by_operator;
    struct wall changed_at;
    struct limit_spec spec; /* of text */
};
/* All of them by name, those that do not hold too. */
int pg_limits_read(struct pg *p, struct arena *a, struct limit_row **out, size_t *out_n,
                   struct pawl_err *err);
/* One limit's row as it is to be, its numbers made from its text. */
int pg_limit_put(struct pg *p, const struct limit_row *row, struct pawl_err *err);

/* gates.c: a row of the gate columns (@gate of limits.sql); strings until the result is cleared. */
enum { GATE_COLUMNS = 26 };
void pg_gate_read(const PGresult *r, int row, const struct limit_row *limit, struct gate_view *out);

/* locks.c: a row of the lock columns (@lock_view of limits.sql). */
void pg_lock_read(const PGresult *r, int row, struct lock_view *out);

/* status.c: sessions that have not ended, by id, in the arena. */
int pg_sessions_read(struct pg *p, struct arena *a, struct session_view **out, size_t *out_n,
                     struct pawl_err *err);

int pg_policy_apply(struct store *s, const struct policy *policy, struct sv text, bool *out_changed,
                    struct pawl_err *err);
int pg_policy(struct store *s, struct arena *a, struct limit_view **out, size_t *out_n,
              enum claim_order *out_order, struct dur *out_aging, struct pawl_err *err);
int pg_limit_act(struct store *s, enum limit_act act, const struct limit_spec *spec,
                 enum limit_outcome *out, struct pawl_err *err);
int pg_admit(struct store *s, const struct lease_ref *job, struct sv host, struct arena *a,
             struct admission *out, struct pawl_err *err);
int pg_pace(struct store *s, const struct lease_ref *job, struct sv host, struct dur apart,
            int *out_gates, struct pawl_err *err);
int pg_gates(struct store *s, const struct gate_filter *f,
             bool (*each)(void *arg, const struct gate_view *g), void *arg, struct pawl_err *err);
int pg_breaker_act(struct store *s, const struct gate_filter *f, enum breaker_act act,
                   struct dur pause, struct sv reason, int *out_n, struct pawl_err *err);
int pg_locks(struct store *s, struct sv key, bool (*each)(void *arg, const struct lock_view *l),
             void *arg, struct pawl_err *err);
int pg_lock_release(struct store *s, struct sv key, bool force, struct sv reason,
                    enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err);
int pg_explain(struct store *s, job_id id, struct arena *a, struct explain_view *out,
               struct pawl_err *err);
int pg_duty(struct store *s, struct sv name, const struct session *session, struct dur ttl,
            int64_t done, bool *out_mine, int64_t *out_done, struct pawl_err *err);
int pg_note(struct store *s, enum event_type type, const struct session *session, struct sv detail,
            struct pawl_err *err);
int pg_prune_history(struct store *s, struct wall events_before, struct wall attempts_before,
                     int max, bool *out_more, struct pawl_err *err);
int pg_age(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err);

#endif
