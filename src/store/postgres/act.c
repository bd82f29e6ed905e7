/* Operator acts on many jobs: choose a bounded batch, lock it, then change all of it that the act
 * applies to in a statement or two. */
#include "pg.h"

#include <unistd.h>

/* The jobs of the batch that are where the act looks, as they stand. Unless it only looks they are
 * locked, in the order of ids: two acts do not wait for each other in a circle, and a claim or
 * settle that is under way has been waited for. */
static int read_targets(struct pg *p, const struct act_request *r, const int64_t *ids, size_t n_ids,
                        struct target *out, size_t *out_n, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT t = NULL;
    bool ended = r->act == ACT_RETRY || r->act == ACT_PRUNE;
    args_init(&a);
    arg_i64s(&a, ids, n_ids, NULL);
    int rc = r->dry_run ? pg_look(p, STMT_ACT_LOOK, &a, &t, err)
                        : db_query(p, ended ? STMT_ACT_LOCK_ENDED : STMT_ACT_LOCK, &a, &t, err);
    if (rc < 0)
        return rc;
    *out_n = (size_t)PQntuples(t);
    for (int i = 0; i < PQntuples(t); i++)
        out[i] = (struct target){.id = res_i64(t, i, 0),
                                 .state = (enum job_state)res_int(t, i, 1),
                                 .fence = res_i64(t, i, 2),
                                 .finished_at = {res_i64(t, i, 3)},
                                 .alive = res_int(t, i, 4)};
    return 0;
}

static bool applies(const struct act_request *r, const struct target *t)
{
    bool old = !r->finished_before.us || t->finished_at.us < r->finished_before.us;
    switch (r->act) {
    case ACT_RETRY:
        return job_state_terminal(t->state);
    case ACT_CANCEL:
        return !job_state_terminal(t->state);
    case ACT_PRUNE:
        return job_state_terminal(t->state) && old;
    case ACT_SET:
        return t->state == JOB_QUEUED || t->state == JOB_WAITING;
    case ACT_RELEASE:
        return t->state == JOB_WAITING || (t->state == JOB_RUNNING && (r->force || !t->alive));
    }
    return false;
}

/* The ids of those that run, or of those that do not. */
static size_t ids_where(const struct target *v, size_t n, bool running, int64_t *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if ((v[i].state == JOB_RUNNING) == running)
            out[found++] = v[i].id;
    return found;
}

static void bind_where(struct args *a, const struct target *v, size_t n, bool running)
{
    int64_t *ids = arena_alloc(&a->arena, n * sizeof(*ids));
    arg_i64s(a, ids, ids_where(v, n, running, ids), NULL);
}

static int retry(struct pg *p, const struct target *v, size_t n, int grant, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    bind_where(&a, v, n, false);
    arg_int(&a, grant > 0 ? grant : 0);
    p->ready = true;
    return db_query(p, STMT_ACT_RETRY, &a, NULL, err);
}

int pg_retry_ended(struct pg *p, const int64_t *ids, size_t n, int64_t *out, struct pawl_err *err)
{
    const struct act_request r = {.act = ACT_RETRY};
    AUTO_FREE struct target *v = mem_zalloc(n + 1, sizeof(*v));
    size_t found = 0;
    int rc = read_targets(p, &r, ids, n, v, &found, err);
    if (rc == 0 && found)
        rc = retry(p, v, found, 0, err);
    if (rc == 0)
        *out = (int64_t)found;
    return rc;
}

static int cancel(struct pg *p, const struct target *v, size_t n, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    bind_where(&a, v, n, false);
    bind_where(&a, v, n, true);
    for (size_t i = 0; i < n; i++)
        p->ready |= v[i].state == JOB_RUNNING;
    return db_query(p, STMT_ACT_CANCEL, &a, NULL, err);
}

/* ---- pruning ---- */

/* Logs of pruned jobs; they go when the jobs are gone for good. */
struct logs {
    struct lease_ref *v;
    size_t n;
};

static int prune(struct pg *p, const struct target *v, size_t n, struct logs *logs,
                 struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    bind_where(&a, v, n, false);
    arg_i64(&a, p->options.keep_keys.us);
    int rc = db_query(p, STMT_ACT_PRUNE, &a, &r, err);
    if (rc < 0)
        return rc;
    logs->n = (size_t)PQntuples(r);
    logs->v = mem_zalloc(logs->n + 1, sizeof(*logs->v));
    for (size_t i = 0; i < logs->n; i++)
        logs->v[i] = (struct lease_ref){{res_i64(r, (int)i, 0)}, {res_i64(r, (int)i, 1)}};
    return 0;
}

/* Those of this machine; another's are its own to remove. */
void pg_logs_remove(struct store *s, const struct lease_ref *v, size_t n)
{
    struct pawl_err ignored;
    int dir;
    if (!n || pg_log_dir(s, &dir, &ignored) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        char name[64];
        store_log_name(v[i].id, v[i].fence, name);
        (void)unlinkat(dir, name, 0);
    }
}

/* With the jobs go expired keys, what need not be remembered any more, old rate slots and, where
 * the whole history before a time is pruned, the events before it. */
static int prune_rest(struct pg *p, const struct act_request *r, struct pawl_err *err)
{
    AUTO_ARGS a;
    args_init(&a);
    if (db_query(p, STMT_KEYS_DROP, NULL, NULL, err) < 0 ||
        db_query(p, STMT_MEMORY_DROP, NULL, NULL, err) < 0 ||
        db_query(p, STMT_THROUGHPUT_DROP, NULL, NULL, err) < 0)
        return err->code;
    bool whole = !r->select.queue.p && !r->select.kind.p && !r->select.host.p && !r->select.n_ids &&
                 (r->select.states == 0 || r->select.states >> JOB_FAILED & 1);
    if (!whole || !r->finished_before.us)
        return 0;
    arg_i64(&a, r->finished_before.us);
    return db_query(p, STMT_EVENTS_DROP, &a, NULL, err);
}

/* ---- the act ---- */

static int act_on(struct pg *p, const struct act_request *r, const struct target *v, size_t n,
                  struct logs *logs, struct pawl_err *err)
{
    if (!n)
        return 0;
    p->effort.rows += (int64_t)n;
    switch (r->act) {
    case ACT_RETRY:
        return retry(p, v, n, r->grant_attempts, err);
    case ACT_CANCEL:
        return cancel(p, v, n, err);
    case ACT_PRUNE:
        return prune(p, v, n, logs, err);
    case ACT_RELEASE:
        return pg_release(p, v, n, err);
    case ACT_SET:
        return pg_set(p, v, n, r->change, err);
    }
    return 0;
}

/* How many of the jobs selected may go so that the newest stay: those with the lowest ids, at most
 * max of them. Where all that are matched go the counts say it; else those ahead are counted. */
static int spare_newest(struct pg *p, const struct act_request *r, size_t *max,
                        struct pawl_err *err)
{
    const unsigned ended =
        1u << JOB_DONE | 1u << JOB_SKIPPED | 1u << JOB_FAILED | 1u << JOB_CANCELLED;
    struct selection sel = r->select;
    int64_t n;
    if (!sel.queue.p || !sel.states || (sel.states & ~ended))
        return err_set(err, PAWL_EINPUT, "the newest can be kept of a queue's ended jobs only");
    sel.limit = 0;
    if (!r->dry_run && !r->finished_before.us)
        sel.after.v = 0;
    if (pg_count(&p->base, &sel, &n, err) < 0)
        return err->code;
    n -= r->keep_newest;
    if (n < (int64_t)*max)
        *max = n > 0 ? (size_t)n : 0;
    return 0;
}

static int act_in_op(struct pg *p, const struct act_request *r, struct act_result *out,
                     struct logs *logs, struct pawl_err *err)
{
    size_t max = r->max > 0 ? (size_t)r->max : 1000, n_ids = 0, n = 0, kept = 0;
    if (r->act == ACT_PRUNE && r->keep_newest && spare_newest(p, r, &max, err) < 0)
        return err->code;
    AUTO_FREE int64_t *ids = mem_zalloc(max + 1, sizeof(*ids));
    AUTO_FREE struct target *v = mem_zalloc(max + 1, sizeof(*v));
    if (max && pg_list_ids(p, &r->select, ids, max, &n_ids, err) < 0)
        return err->code;
    if (!r->dry_run && pg_by_index(p, err) < 0)
        return err->code;
    if (n_ids && read_targets(p, r, ids, n_ids, v, &n, err) < 0)
        return err->code;
    for (size_t i = 0; i < n; i++)
        if (applies(r, &v[i]))
            v[kept++] = v[i];
    out->matched = (int64_t)n_ids;
    out->changed = (int64_t)kept;
    out->more = n_ids && n_ids == max;
    out->cursor.v = n_ids ? ids[n_ids - 1] : r->select.after.v;
    if (r->dry_run)
        return 0;
    int rc = act_on(p, r, v, kept, logs, err);
    return rc == 0 && r->act == ACT_PRUNE ? prune_rest(p, r, err) : rc;
}

int pg_act(struct store *s, const struct act_request *req, struct act_result *out,
           struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct act_result result = {0};
    struct logs logs = {0};
    int rc;
    if (req->dry_run) {
        rc = act_in_op(p, req, &result, &logs, err);
    } else {
        rc = pg_op_begin(p, err);
        if (rc == 0)
            rc = pg_op_end(p, act_in_op(p, req, &result, &logs, err), err);
    }
    if (rc == 0) {
        pg_logs_remove(s, logs.v, logs.n);
        *out = result;
    }
    free(logs.v);
    return rc;
}
