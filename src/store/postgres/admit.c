/* Hosts beside its lane's that a running job asks: pawl.admit and pawl.pace (I3, I7). */
#include "pg_limits.h"

static int admit_in_op(struct pg *p, const struct lease_ref *job, struct sv host,
                       struct arena *arena, struct admission *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, job->id.v);
    arg_i64(&a, job->fence.v);
    arg_text(&a, host);
    int rc = db_query(p, STMT_ADMIT, &a, &r, err);
    if (rc < 0)
        return rc;
    switch (res_int(r, 0, 0)) {
    case 0:
        out->outcome = ADMIT_OK;
        return 0;
    case 1:
        out->outcome = ADMIT_STALE;
        return 0;
    default:
        out->outcome = ADMIT_SHUT;
        out->wait = DUR_US(res_i64(r, 0, 1));
        out->gate = res_copy(r, 0, 2, arena);
        return 0;
    }
}

int pg_admit(struct store *s, const struct lease_ref *job, struct sv host, struct arena *a,
             struct admission *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct admission result = {0};
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, admit_in_op(p, job, host, a, &result, err), err);
    if (rc == 0)
        *out = result;
    return rc;
}

static int pace_in_op(struct pg *p, const struct lease_ref *job, struct sv host, struct dur apart,
                      int *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, job->id.v);
    arg_i64(&a, job->fence.v);
    arg_text(&a, host);
    arg_i64(&a, apart.us);
    int rc = db_query(p, STMT_PACE, &a, &r, err);
    if (rc == 0)
        *out = res_int(r, 0, 0);
    return rc;
}

int pg_pace(struct store *s, const struct lease_ref *job, struct sv host, struct dur apart,
            int *out_gates, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int n = 0, rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, pace_in_op(p, job, host, apart, &n, err), err);
    if (rc == 0)
        *out_gates = n;
    return rc;
}
