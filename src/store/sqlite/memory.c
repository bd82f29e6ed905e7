/* What workers remember for a time and share. */
#include "internal.h"

enum { DROP_ASIDE = 10 }; /* with each that is remembered, so many may go whose time is over */

int memory_drop(struct sq *q, int max, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_MEMORY_DROP, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, q->now.us);
    sqlite3_bind_int(s, 2, max);
    return stmt_run(q, s, err, "remember");
}

static int remember_in_op(struct sq *q, struct sv key, struct sv value, struct dur ttl,
                          struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, value.p ? STMT_MEMORY_SET : STMT_MEMORY_FORGET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, key);
    if (value.p) {
        sqlite3_bind_blob(s, 2, value.p, (int)value.n, SQLITE_STATIC);
        sqlite3_bind_int64(s, 3, q->now.us + ttl.us);
    }
    int rc = stmt_run(q, s, err, "remember");
    return rc == 0 && value.p ? memory_drop(q, DROP_ASIDE, err) : rc;
}

int store_remember(struct store *s, struct sv key, struct sv value, struct dur ttl,
                   struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = memory_check(key, value, err);
    if (rc == 0)
        rc = op_begin(q, err);
    return rc < 0 ? rc : op_end(q, remember_in_op(q, key, value, ttl, err), err);
}

static int recall(struct sq *q, struct sv key, struct arena *a, struct sv *out,
                  struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_MEMORY_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, key);
    sqlite3_bind_int64(s, 2, sq_now(q).us);
    int rc = stmt_step(q, s, err, "recall");
    if (rc < 0)
        return rc;
    const char *p = rc ? sqlite3_column_blob(s, 0) : NULL;
    size_t n = rc ? (size_t)sqlite3_column_bytes(s, 0) : 0;
    *out = rc ? sv_make(arena_strndup(a, p ? p : "", n), n) : SV_NONE;
    return 0;
}

int store_recall(struct store *s, struct sv key, struct arena *a, struct sv *out,
                 struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = recall(q, key, a, out, err);
    read_end(q);
    return rc;
}
