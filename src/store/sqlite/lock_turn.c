/* Whose turn it is among the jobs of one lock (I3): at most one is ready or running, and a unique
 * index says so. The others are held: queued for everybody, but in no index of ready work (I11). */
#include "internal.h"

struct wanting {
    int64_t id, lane; /* id 0: none */
    int priority;
    bool runs;
};

static int look(struct sq *q, enum stmt_id which, int64_t lock, struct wanting *out,
                struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, which, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, lock);
    int rc = stmt_step(q, s, err, "lock");
    *out = (struct wanting){0};
    if (rc == 1)
        *out = (struct wanting){.id = sqlite3_column_int64(s, 0),
                                .lane = sqlite3_column_int64(s, 1),
                                .priority = sqlite3_column_int(s, 2),
                                .runs = which == STMT_LOCK_NOW &&
                                        sqlite3_column_int(s, 3) == JOB_RUNNING};
    return rc < 0 ? rc : 0;
}

static int move(struct sq *q, const struct wanting *w, int to, struct pawl_err *err)
{
    struct lane_entry *l;
    sqlite3_stmt *s = stmt_get(q, STMT_LOCK_MOVE, err);
    if (!s || names_lane_by_id(q, w->lane, &l, err) < 0)
        return err->code;
    sqlite3_bind_int64(s, 1, w->id);
    sqlite3_bind_int(s, 2, to);
    if (stmt_run(q, s, err, "lock") < 0)
        return err->code;
    if (to == STATE_HELD)
        return head_remove(q, l, w->id, err);
    q->wake = true;
    return head_add(q, l, (struct head){w->id, w->priority}, err);
}

int lock_turn(struct sq *q, int64_t lock, struct pawl_err *err)
{
    struct wanting now, best;
    if (!lock)
        return 0;
    if (look(q, STMT_LOCK_NOW, lock, &now, err) < 0)
        return err->code;
    if (now.runs)
        return 0;
    if (look(q, STMT_LOCK_BEST, lock, &best, err) < 0)
        return err->code;
    struct head a = {best.id, best.priority}, b = {now.id, now.priority};
    if (!head_beats(a, b))
        return 0;
    if (now.id && move(q, &now, STATE_HELD, err) < 0)
        return err->code;
    return move(q, &best, JOB_QUEUED, err);
}
