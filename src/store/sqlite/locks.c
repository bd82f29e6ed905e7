/* Locks: who holds one, who waits for it, and taking it away (I3). A lock has no row of its own: of
 * all jobs that name it at most one is ready or running, and the one that runs holds it. */
#include "internal.h"

#include "digest.h"
#include "json.h"

static int waiters(struct sq *q, int64_t lock, struct lock_view *v, struct pawl_err *err)
{
    AUTO_STMT number = stmt_get(q, STMT_LOCK_WAITING, err);
    AUTO_STMT next = stmt_get(q, STMT_LOCK_BEST, err);
    if (!number || !next)
        return err->code;
    sqlite3_bind_int64(number, 1, lock);
    sqlite3_bind_int64(next, 1, lock);
    int rc = stmt_step(q, number, err, "locks");
    if (rc == 1)
        v->waiting += sqlite3_column_int64(number, 0);
    if (rc < 0 || v->next.v)
        return rc < 0 ? rc : 0;
    rc = stmt_step(q, next, err, "locks");
    if (rc == 1)
        v->next.v = sqlite3_column_int64(next, 0);
    return rc < 0 ? rc : 0;
}

static int read_lock(struct sq *q, sqlite3_stmt *s, struct arena *a, struct lock_view *out,
                     struct pawl_err *err)
{
    job_id id = {sqlite3_column_int64(s, 1)};
    struct lock_view v = {.key = column_copy(s, 0, a)};
    if (sqlite3_column_int(s, 2) == JOB_RUNNING) {
        v.holder = (struct lease_ref){id, {sqlite3_column_int64(s, 3)}};
        v.worker = column_copy(s, 4, a);
        v.since.us = sqlite3_column_int64(s, 5);
        v.until.us = sqlite3_column_int64(s, 6);
    } else {
        v.next = id;
        v.waiting = 1;
    }
    if (waiters(q, sqlite3_column_int64(s, 7), &v, err) < 0)
        return err->code;
    *out = v;
    return 0;
}

int lock_view_of(struct sq *q, struct sv key, struct arena *a, struct lock_view *out,
                 struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LOCK_ONE, err);
    if (!s)
        return err->code;
    if (key.n > NAME_MAX_BYTES) /* nobody can have asked for it */
        return 0;
    sqlite3_bind_int64(s, 1, lock_digest(key));
    bind_sv(s, 2, key);
    int rc = stmt_step(q, s, err, "locks");
    if (rc == 1 && read_lock(q, s, a, out, err) < 0)
        return err->code;
    return rc;
}

static int each_lock(struct sq *q, bool (*each)(void *arg, const struct lock_view *l), void *arg,
                     struct arena *a, struct pawl_err *err)
{
    struct lock_view v;
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_LOCK_LIST, err);
    if (!s)
        return err->code;
    while ((rc = stmt_step(q, s, err, "locks")) == 1) {
        arena_reset(a);
        if (read_lock(q, s, a, &v, err) < 0)
            return err->code;
        if (!each(arg, &v))
            return 0;
    }
    return rc;
}

int store_locks(struct store *s, struct sv key, bool (*each)(void *arg, const struct lock_view *l),
                void *arg, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct lock_view v;
    struct arena a;
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    if (key.p) {
        rc = lock_view_of(q, key, &a, &v, err);
        if (rc == 1)
            (void)each(arg, &v);
    } else {
        rc = each_lock(q, each, arg, &a, err);
    }
    arena_done(&a);
    read_end(q);
    return rc < 0 ? rc : 0;
}

static int tell(struct sq *q, struct sv key, struct sv reason, struct lease_ref holder,
                struct pawl_err *err)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "lock", key);
    jw_kstring_or_null(&w, "reason", reason.n ? reason : SV_NONE);
    jw_end_object(&w);
    return add_event(q, EVENT_LOCK_RELEASED, holder.id, holder.fence, (session_id){0},
                     str_sv(&detail), err);
}

/* The holder is fenced off and goes back to the queue, behind whoever is better (I2). */
static int release_in_op(struct sq *q, struct sv key, bool force, struct sv reason, struct arena *a,
                         enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err)
{
    struct lock_view v;
    struct target t;
    *out = LOCK_FREE;
    int rc = lock_view_of(q, key, a, &v, err);
    if (rc != 1 || !v.holder.id.v)
        return rc < 0 ? rc : 0;
    *out_holder = v.holder;
    rc = target_read(q, v.holder.id, a, &t, err);
    if (rc == 1)
        rc = release_applies(q, &t, force, err);
    *out = LOCK_HELD;
    if (rc != 1)
        return rc;
    *out = LOCK_RELEASED;
    if (release_one(q, v.holder.id, &t, err) < 0)
        return err->code;
    return tell(q, key, reason, v.holder, err);
}

int store_lock_release(struct store *s, struct sv key, bool force, struct sv reason,
                       enum lock_outcome *out, struct lease_ref *out_holder, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    enum lock_outcome outcome = LOCK_FREE;
    struct lease_ref holder = {0};
    struct arena a;
    int rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    rc = op_end(q, release_in_op(q, key, force, reason, &a, &outcome, &holder, err), err);
    arena_done(&a);
    if (rc < 0)
        return rc;
    *out = outcome;
    *out_holder = holder;
    return 0;
}
