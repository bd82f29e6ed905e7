/* What one session does for all of them, and what workers note in the log. */
#include "internal.h"

struct duty {
    int64_t session, until, done;
};

static int read_duty(struct sq *q, struct sv name, struct duty *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_DUTY_FIND, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, name);
    int rc = stmt_step(q, s, err, "duty");
    if (rc == 1)
        *out = (struct duty){sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                             sqlite3_column_int64(s, 2)};
    return rc;
}

/* Whoever takes it over learns how far it came; only who has it moves that. */
static int duty_in_op(struct sq *q, struct sv name, session_id session, struct dur ttl,
                      int64_t done, struct duty *d, bool *out_mine, struct pawl_err *err)
{
    int rc = read_duty(q, name, d, err);
    if (rc < 0)
        return rc;
    *out_mine = rc == 0 || d->session == session.v || d->until <= q->now.us;
    if (!*out_mine)
        return 0;
    if (done >= 0 && d->session == session.v)
        d->done = done;
    AUTO_STMT s = stmt_get(q, STMT_DUTY_PUT, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, name);
    sqlite3_bind_int64(s, 2, session.v);
    sqlite3_bind_int64(s, 3, q->now.us + ttl.us);
    sqlite3_bind_int64(s, 4, d->done);
    return stmt_run(q, s, err, "duty");
}

/* 1 = another one has it: known without waiting for the turn to write. */
static int with_another(struct sq *q, struct sv name, session_id session, struct duty *d,
                        struct pawl_err *err)
{
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_duty(q, name, d, err);
    read_end(q);
    return rc == 1 ? d->session != session.v && d->until > sq_now(q).us : rc;
}

int store_duty(struct store *s, struct sv name, const struct session *session, struct dur ttl,
               int64_t done, bool *out_mine, int64_t *out_done, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct duty d = {0};
    bool mine = false;
    int rc = with_another(q, name, session->id, &d, err);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        d = (struct duty){0};
        rc = op_begin(q, err);
        if (rc == 0)
            rc = op_end(q, duty_in_op(q, name, session->id, ttl, done, &d, &mine, err), err);
        if (rc < 0)
            return rc;
    }
    *out_mine = mine;
    *out_done = d.done;
    return 0;
}

int store_note(struct store *s, enum event_type type, const struct session *session,
               struct sv detail, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    return op_end(q, add_event(q, type, (job_id){0}, (fence_no){0}, session->id, detail, err), err);
}
