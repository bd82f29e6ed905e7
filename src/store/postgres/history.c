/* What is done beside the jobs: old history goes, ready jobs gain by waiting. */
#include "pg_limits.h"

static int drop_events(struct pg *p, struct wall before, int max, bool *out_more,
                       struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, before.us);
    arg_int(&a, max);
    int rc = db_query(p, STMT_HISTORY_EVENTS, &a, &r, err);
    if (rc == 0)
        *out_more |= res_i64(r, 0, 0) >= max;
    return rc;
}

/* Logs of attempts that go; they go when that is for good. */
struct logs {
    struct lease_ref *v;
    size_t n, cap;
};

static int drop_attempts(struct pg *p, enum job_state state, struct wall before, int max,
                         struct logs *logs, bool *out_more, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_int(&a, (int)state);
    arg_i64(&a, before.us);
    arg_int(&a, max);
    int rc = db_query(p, STMT_HISTORY_ATTEMPTS, &a, &r, err);
    if (rc < 0)
        return rc;
    *out_more |= res_i64(r, 0, 0) >= max;
    for (int i = 0; i < PQntuples(r); i++) {
        if (res_null(r, i, 1))
            continue;
        ARRAY_GROW(logs->v, logs->n, logs->cap);
        logs->v[logs->n++] = (struct lease_ref){{res_i64(r, i, 1)}, {res_i64(r, i, 2)}};
    }
    return 0;
}

static int prune_in_op(struct pg *p, struct wall events_before, struct wall attempts_before,
                       int max, struct logs *logs, bool *out_more, struct pawl_err *err)
{
    int rc = pg_by_index(p, err);
    if (rc == 0 && events_before.us)
        rc = drop_events(p, events_before, max, out_more, err);
    for (int s = 0; rc == 0 && attempts_before.us && s < N_JOB_STATES; s++)
        if (job_state_terminal((enum job_state)s))
            rc = drop_attempts(p, (enum job_state)s, attempts_before, max, logs, out_more, err);
    return rc;
}

int pg_prune_history(struct store *s, struct wall events_before, struct wall attempts_before,
                     int max, bool *out_more, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct logs logs = {0};
    bool more = false;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, prune_in_op(p, events_before, attempts_before, max, &logs, &more, err),
                       err);
    if (rc == 0) {
        pg_logs_remove(s, logs.v, logs.n);
        *out_more = more;
    }
    free(logs.v);
    return rc;
}

static int age_in_op(struct pg *p, int max, int *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_int(&a, max);
    if (pg_by_index(p, err) < 0 || db_query(p, STMT_AGE_JOBS, &a, &r, err) < 0)
        return err->code;
    *out = res_int(r, 0, 0);
    return 0;
}

int pg_age(struct store *s, int max_jobs, int *out_raised, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int raised = 0;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, age_in_op(p, max_jobs, &raised, err), err);
    if (rc == 0)
        *out_raised = raised;
    return rc;
}
