/* What workers remember for a time and share. */
#include "pg.h"

static int remember_in_op(struct pg *p, struct sv key, struct sv value, struct dur ttl,
                          struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_text(&a, key);
    if (!value.p)
        return db_query(p, STMT_MEMORY_FORGET, &a, NULL, err);
    arg_bytes(&a, value.p, value.n);
    arg_i64(&a, ttl.us);
    if (pg_by_index(p, err) < 0)
        return err->code;
    return db_query(p, STMT_MEMORY_SET, &a, NULL, err);
}

int pg_remember(struct store *s, struct sv key, struct sv value, struct dur ttl,
                struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = memory_check(key, value, err);
    if (rc == 0)
        rc = pg_op_begin(p, err);
    return rc < 0 ? rc : pg_op_end(p, remember_in_op(p, key, value, ttl, err), err);
}

int pg_recall(struct store *s, struct sv key, struct arena *a, struct sv *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    AUTO_ARGS args;
    AUTO_RESULT r = NULL;
    args_init(&args);
    arg_text(&args, key);
    int rc = pg_look(p, STMT_MEMORY_GET, &args, &r, err);
    if (rc == 0)
        *out = PQntuples(r) ? res_copy(r, 0, 0, a) : SV_NONE;
    return rc;
}
