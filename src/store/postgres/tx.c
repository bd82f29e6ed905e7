/* Transactions. An operation is BEGIN … COMMIT; in a group many share one, each but the first under
 * a savepoint (the first has nothing before it to lose). A COMMIT whose answer never came is looked
 * up by the transaction's id, which was read before it was sent (I12). */
#include "pg.h"

#include <stdio.h>
#include <time.h>

static void tx_over(struct pg *p)
{
    p->begun = p->savepoint = p->old_savepoint = false;
    p->xid = 0;
    p->ready = p->freed = false;
}

static void tx_rollback(struct pg *p)
{
    struct pawl_err ignored;
    if (p->conn && p->begun)
        (void)db_plain(p, "ROLLBACK", NULL, &ignored);
    tx_over(p);
}

static void nap(struct dur d)
{
    struct timespec t = {.tv_sec = d.us / 1000000, .tv_nsec = d.us % 1000000 * 1000};
    (void)nanosleep(&t, NULL);
}

enum fate { FATE_UNKNOWN, FATE_COMMITTED, FATE_ABORTED };

/* What the server says of a transaction: nothing, if it has crashed since or another server has
 * taken over, because its numbers may mean other transactions then. */
static int look_up(struct pg *p, int64_t xid, enum fate *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, xid);
    int rc = db_connect(p, err);
    if (rc == 0)
        rc = db_query_alone(p, STMT_TX_STATUS, &a, &r, err);
    if (rc < 0)
        return rc == PAWL_EINPUT ? PAWL_EUNCERTAIN : rc; /* "in the future" */
    if (!sv_eq(res_sv(r, 0, 1), sv_of(p->era)))
        return PAWL_EUNCERTAIN;
    struct sv s = res_sv(r, 0, 0);
    *out = sv_eq(s, SV("committed"))     ? FATE_COMMITTED
           : sv_eq(s, SV("in progress")) ? FATE_UNKNOWN
                                         : FATE_ABORTED;
    return 0;
}

/* The old backend may still be committing: ask until it has decided. */
static int resolve(struct pg *p, int64_t xid, struct pawl_err *err)
{
    struct pawl_err ignored;
    int64_t until = clock_boot().us + p->options.timeout.us;
    for (struct dur pause = DUR_MS(5);; pause.us = pause.us < 200000 ? pause.us * 2 : pause.us) {
        enum fate fate = FATE_UNKNOWN;
        int rc = look_up(p, xid, &fate, &ignored);
        if (rc == 0 && fate == FATE_COMMITTED)
            return 0;
        if (rc == 0 && fate == FATE_ABORTED)
            return err_set(err, PAWL_EUNREACHABLE,
                           "%s: the connection was lost; nothing was changed", p->place);
        if (rc == PAWL_EUNCERTAIN || clock_boot().us >= until)
            break;
        nap(pause);
    }
    return err_set(err, PAWL_EUNCERTAIN,
                   "%s: the connection was lost during COMMIT and the outcome is unknown",
                   p->place);
}

/* A hint for idle workers, after the commit: inside it, NOTIFY would make commits wait for one
 * another. If it is lost, polling finds the work. */
static void tell_others(struct pg *p)
{
    struct pawl_err ignored;
    if (p->conn && !p->options.no_notify)
        (void)db_query_alone(p, STMT_NOTIFY, NULL, NULL, &ignored);
}

static int tx_commit(struct pg *p, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int64_t xid = p->xid;
    bool tell = p->ready || p->freed;
    if (!p->begun) {
        tx_over(p);
        return 0;
    }
    int rc = db_plain(p, "COMMIT", &r, err);
    p->effort.syncs++;
    if (rc < 0 && !p->conn && xid)
        rc = resolve(p, xid, err);
    else if (rc < 0 && !p->conn)
        rc = 0; /* it had written nothing */
    else if (rc == 0 && strcmp(PQcmdStatus(r), "COMMIT") != 0)
        rc = err_set(err, PAWL_EINTERNAL, "%s: the transaction was rolled back", p->place);
    tx_over(p);
    if (rc == 0 && tell)
        tell_others(p);
    return rc;
}

int pg_op_begin(struct pg *p, struct pawl_err *err)
{
    if (p->options.mode == STORE_READ)
        return err_set(err, PAWL_EINTERNAL, "%s: opened for looking only", p->place);
    if (p->group_lost)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    int rc = db_connect(p, err);
    if (rc < 0)
        return rc;
    p->in_op = true;
    p->op_open = false;
    return 0;
}

/* What this operation of a group did is undone; the others stay. */
static void undo_in_group(struct pg *p)
{
    struct pawl_err ignored;
    if (!p->op_open)
        return;
    if (!p->savepoint) {
        bool ready = p->ready;
        tx_rollback(p);
        p->ready = ready;
        return;
    }
    if (p->conn && db_plain(p, "ROLLBACK TO op", NULL, &ignored) < 0)
        db_disconnect(p);
}

int pg_op_end(struct pg *p, int rc, struct pawl_err *err)
{
    p->in_op = false;
    if (!p->in_group) {
        if (rc >= 0)
            return tx_commit(p, err);
        tx_rollback(p);
        return rc;
    }
    if (rc < 0)
        undo_in_group(p);
    p->old_savepoint |= p->savepoint;
    p->savepoint = false;
    return rc;
}

int pg_group_begin(struct store *s, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = db_connect(p, err);
    if (rc < 0)
        return rc;
    p->in_group = true;
    p->group_lost = false;
    return 0;
}

int pg_group_commit(struct store *s, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    bool gone = p->group_lost;
    p->group_lost = false;
    p->in_group = false;
    if (gone) {
        tx_over(p);
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost; nothing was changed",
                       p->place);
    }
    return tx_commit(p, err);
}

void pg_group_abort(struct store *s)
{
    struct pg *p = pg_of(s);
    p->in_group = p->group_lost = false;
    tx_rollback(p);
}

int pg_read_begin(struct pg *p, struct pawl_err *err)
{
    if (p->in_op || p->in_group)
        return 0;
    int rc = db_connect(p, err);
    p->reading = rc == 0;
    return rc;
}

void pg_read_end(struct pg *p)
{
    if (!p->reading)
        return;
    p->reading = false;
    tx_rollback(p);
}

int pg_add_event(struct pg *p, enum event_type type, job_id job, fence_no fence, session_id session,
                 struct sv detail, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    arg_int(&a, (int)type);
    arg_i64_or_null(&a, job.v, !job.v);
    arg_i64_or_null(&a, fence.v, !fence.v);
    arg_i64_or_null(&a, session.v, !session.v);
    arg_text(&a, detail);
    return db_query(p, STMT_EVENT_INSERT, &a, NULL, err);
}
