/* Statements by name: prepared once per handle, reset after every use. */
#define STMT_TABLE
#include "internal.h"

sqlite3_stmt *stmt_get(struct sq *q, enum stmt_id id, struct pawl_err *err)
{
    if (q->stmts[id])
        return q->stmts[id];
    int rc = sqlite3_prepare_v3(q->db, stmt_table[id].sql, -1, SQLITE_PREPARE_PERSISTENT,
                                &q->stmts[id], NULL);
    if (rc != SQLITE_OK) {
        sq_fail(q, rc, err, stmt_table[id].name);
        return NULL;
    }
    return q->stmts[id];
}

void stmt_done_all(struct sq *q)
{
    for (int i = 0; i < N_STMTS; i++) {
        sqlite3_finalize(q->stmts[i]);
        q->stmts[i] = NULL;
    }
}

void bind_sv(sqlite3_stmt *s, int i, struct sv v)
{
    if (v.p)
        sqlite3_bind_text(s, i, v.p, (int)v.n, SQLITE_STATIC);
    else
        sqlite3_bind_null(s, i);
}

void bind_i64_or_null(sqlite3_stmt *s, int i, int64_t v, bool null)
{
    if (null)
        sqlite3_bind_null(s, i);
    else
        sqlite3_bind_int64(s, i, v);
}

struct sv column_sv(sqlite3_stmt *s, int i)
{
    const char *p = (const char *)sqlite3_column_text(s, i);
    return p ? sv_make(p, (size_t)sqlite3_column_bytes(s, i)) : SV_NONE;
}

struct sv column_copy(sqlite3_stmt *s, int i, struct arena *a)
{
    struct sv v = column_sv(s, i);
    return v.p ? sv_make(arena_strndup(a, v.p, v.n), v.n) : SV_NONE;
}

int stmt_step(struct sq *q, sqlite3_stmt *s, struct pawl_err *err, const char *doing)
{
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        return 1;
    q->effort.statements++;
    sqlite3_reset(s);
    if (rc == SQLITE_DONE)
        return 0;
    return sq_fail(q, rc, err, doing);
}

int stmt_run(struct sq *q, sqlite3_stmt *s, struct pawl_err *err, const char *doing)
{
    int rc = sqlite3_step(s);
    int reset = sqlite3_reset(s);
    q->effort.statements++;
    if (rc == SQLITE_DONE)
        return 0;
    return sq_fail(q, rc == SQLITE_ROW ? reset : rc, err, doing);
}
