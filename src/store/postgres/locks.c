/* Locks as they stand, and taking one away. */
#include "pg_limits.h"

#include "digest.h"
#include "json.h"

void pg_lock_read(const PGresult *r, int row, struct lock_view *out)
{
    *out = (struct lock_view){
        .key = res_sv(r, row, 0),
        .holder = {{res_i64(r, row, 1)}, {res_i64(r, row, 2)}},
        .worker = res_sv(r, row, 3),
        .since = {res_i64(r, row, 4)},
        .until = {res_i64(r, row, 5)},
        .waiting = res_i64(r, row, 6),
        .next = {res_i64(r, row, 7)},
    };
}

int pg_locks(struct store *s, struct sv key, bool (*each)(void *arg, const struct lock_view *l),
             void *arg, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    if (key.n > NAME_MAX_BYTES)
        return 0;
    if (key.p)
        arg_i64(&a, lock_digest(key));
    int rc = pg_look(p, key.p ? STMT_LOCK_ONE : STMT_LOCKS_ALL, &a, &r, err);
    for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
        struct lock_view v;
        pg_lock_read(r, i, &v);
        if (!each(arg, &v))
            break;
    }
    return rc;
}

static int tell(struct pg *p, struct sv key, struct sv reason, const struct target *t,
                struct pawl_err *err)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "lock", key);
    jw_kstring_or_null(&w, "reason", reason);
    jw_end_object(&w);
    return pg_add_event(p, EVENT_LOCK_RELEASED, (job_id){t->id}, (fence_no){t->fence},
                        (session_id){0}, str_sv(&detail), err);
}

static int release_in_op(struct pg *p, struct sv key, bool force, struct sv reason,
                         enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, lock_digest(key));
    if (db_query(p, STMT_LOCK_HOLDER, &a, &r, err) < 0)
        return err->code;
    if (!PQntuples(r))
        return 0;
    const struct target t = {.id = res_i64(r, 0, 0),
                             .fence = res_i64(r, 0, 1),
                             .state = JOB_RUNNING,
                             .alive = res_int(r, 0, 2)};
    *out_holder = (struct lease_ref){{t.id}, {t.fence}};
    *out = t.alive && !force ? LOCK_HELD : LOCK_RELEASED;
    if (*out == LOCK_HELD)
        return 0;
    int rc = pg_release(p, &t, 1, err); /* I2 */
    return rc < 0 ? rc : tell(p, key, reason, &t, err);
}

int pg_lock_release(struct store *s, struct sv key, bool force, struct sv reason,
                    enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    enum lock_outcome outcome = LOCK_FREE;
    struct lease_ref holder = {0};
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, release_in_op(p, key, force, reason, &outcome, &holder, err), err);
    if (rc < 0)
        return rc;
    *out = outcome;
    *out_holder = holder;
    return 0;
}
