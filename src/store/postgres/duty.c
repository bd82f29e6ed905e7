/* What one session does for all, and what sessions tell of themselves. */
#include "pg_limits.h"

static int look_at(struct pg *p, struct sv name, int64_t *out_done, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_text(&a, name);
    int rc = db_query(p, STMT_DUTY_LOOK, &a, &r, err);
    if (rc == 0)
        *out_done = PQntuples(r) ? res_i64(r, 0, 0) : 0;
    return rc;
}

static int take(struct pg *p, struct args *a, struct sv name, bool *out_mine, int64_t *out_done,
                struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_DUTY_TAKE, a, &r, err);
    if (rc < 0)
        return rc;
    *out_mine = PQntuples(r) == 1;
    if (!*out_mine)
        return look_at(p, name, out_done, err);
    *out_done = res_i64(r, 0, 0);
    return 0;
}

int pg_duty(struct store *s, struct sv name, const struct session *session, struct dur ttl,
            int64_t done, bool *out_mine, int64_t *out_done, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    AUTO_ARGS a;
    bool mine = false;
    int64_t last = 0;
    args_init(&a);
    arg_text(&a, name);
    arg_i64(&a, session->id.v);
    arg_i64(&a, ttl.us);
    arg_i64(&a, done);
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, take(p, &a, name, &mine, &last, err), err);
    if (rc < 0)
        return rc;
    *out_mine = mine;
    *out_done = last;
    return 0;
}

int pg_note(struct store *s, enum event_type type, const struct session *session, struct sv detail,
            struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    session_id who = session ? session->id : (session_id){0};
    int rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    return pg_op_end(p, pg_add_event(p, type, (job_id){0}, (fence_no){0}, who, detail, err), err);
}
