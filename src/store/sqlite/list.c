/* Looking at jobs and events. */
#include "internal.h"

#include "digest.h"

static enum job_state only_state(unsigned states, bool *out_single)
{
    *out_single = states && !(states & (states - 1));
    for (int i = 0; i < N_JOB_STATES; i++)
        if (states == 1u << i)
            return (enum job_state)i;
    return JOB_BLOCKED;
}

void job_view_read(sqlite3_stmt *s, bool full, struct arena *a, struct job_view *out)
{
    *out = (struct job_view){
        .id = {sqlite3_column_int64(s, 0)},
        .priority = sqlite3_column_int(s, 1),
        .state = (enum job_state)sqlite3_column_int(s, 2),
        .attempt = sqlite3_column_int(s, 3),
        .transient = sqlite3_column_int(s, 4),
        .lost = sqlite3_column_int(s, 5),
        .fence = {sqlite3_column_int64(s, 6)},
        .worker = column_copy(s, 7, a),
        .claimed_at = {sqlite3_column_int64(s, 8)},
        .lease_until = {sqlite3_column_int64(s, 9)},
        .available_at = {sqlite3_column_int64(s, 10)},
        .finished_at = {sqlite3_column_int64(s, 11)},
        .wait_reason = (enum wait_reason)sqlite3_column_int(s, 12),
        .cancel_asked = sqlite3_column_int(s, 13),
        .progress = column_copy(s, 14, a),
        .lock = column_copy(s, 15, a),
        .key = column_copy(s, 16, a),
        .created_at = {sqlite3_column_int64(s, 17)},
        .max_attempts = sqlite3_column_int(s, 18),
        .timeout = {sqlite3_column_int64(s, 19)},
        .parent = {sqlite3_column_int64(s, 20)},
        .queue = column_copy(s, 21, a),
        .kind = column_copy(s, 22, a),
        .host = column_copy(s, 23, a),
        .cls = (enum fail_class)sqlite3_column_int(s, 24),
        .error = column_copy(s, 25, a),
        .exit_code = sqlite3_column_type(s, 26) == SQLITE_NULL ? -1 : sqlite3_column_int(s, 26),
        .fingerprint = (uint32_t)sqlite3_column_int64(s, 29),
    };
    if (full) {
        out->payload = column_copy(s, 27, a);
        out->result = column_copy(s, 28, a);
    }
}

static int read_attempts(struct sq *q, job_id id, struct arena *a, struct job_view *out,
                         struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_ATTEMPTS, err);
    if (!s)
        return err->code;
    AUTO_FREE struct attempt_view *v = NULL;
    size_t n = 0, cap = 0;
    int rc;
    sqlite3_bind_int64(s, 1, id.v);
    while ((rc = stmt_step(q, s, err, "show")) == 1) {
        ARRAY_GROW(v, n, cap);
        v[n++] = (struct attempt_view){
            .attempt = sqlite3_column_int(s, 0),
            .fence = {sqlite3_column_int64(s, 1)},
            .worker = column_copy(s, 2, a),
            .started_at = {sqlite3_column_int64(s, 3)},
            .finished_at = {sqlite3_column_int64(s, 4)},
            .outcome = (enum outcome)sqlite3_column_int(s, 5),
            .cls = (enum fail_class)sqlite3_column_int(s, 6),
            .error = column_copy(s, 7, a),
            .exit_code = sqlite3_column_type(s, 8) == SQLITE_NULL ? -1 : sqlite3_column_int(s, 8),
            .log_bytes = sqlite3_column_int64(s, 9),
        };
    }
    if (rc == 0 && n) {
        struct attempt_view *kept = arena_alloc(a, n * sizeof(*kept));
        memcpy(kept, v, n * sizeof(*kept));
        out->attempts = kept;
        out->n_attempts = n;
    }
    return rc;
}

static int get_row(struct sq *q, job_id id, bool full, struct arena *a, struct job_view *out,
                   struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_JOB_GET, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, id.v);
    int rc = stmt_step(q, s, err, "show");
    if (rc == 1)
        job_view_read(s, full, a, out);
    return rc;
}

int store_job_get(struct store *s, job_id id, struct arena *a, struct job_view *out,
                  struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct job_view v;
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = get_row(q, id, true, a, &v, err);
    if (rc == 1)
        rc = read_attempts(q, id, a, &v, err);
    else if (rc == 0)
        rc = err_set(err, PAWL_ENOTFOUND, "no job %lld", (long long)id.v);
    read_end(q);
    if (rc == 0)
        *out = v;
    return rc;
}

static bool matches(const struct selection *sel, const struct job_view *j)
{
    return (!sel->queue.p || sv_eq(sel->queue, j->queue)) &&
           (!sel->kind.p || sv_eq(sel->kind, j->kind)) &&
           (!sel->host.p || sv_eq(sel->host, j->host)) &&
           (!sel->key.p || sv_eq(sel->key, j->key)) &&
           (!sel->states || (sel->states >> j->state & 1)) &&
           (!sel->since.us || j->created_at.us >= sel->since.us) &&
           (!sel->error.p ||
            (j->error.p && memmem(j->error.p, j->error.n, sel->error.p, sel->error.n))) &&
           (!sel->error_high ||
            (j->fingerprint >= sel->error_low && j->fingerprint <= sel->error_high)) &&
           j->id.v > sel->after.v;
}

typedef bool each_fn(void *arg, const struct job_view *job);

static int compare_ids(const void *a, const void *b)
{
    const job_id *x = a, *y = b;
    return (x->v > y->v) - (x->v < y->v);
}

/* Ids named one by one: each looked up, in rising order, filtered by the rest. */
static int list_ids(struct sq *q, const struct selection *sel, const job_id *ids, size_t n,
                    bool full, each_fn *each, void *arg, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a);
    AUTO_FREE job_id *sorted = mem_dup(ids, n * sizeof(*ids));
    qsort(sorted, n, sizeof(*sorted), compare_ids);
    int64_t left = sel->limit ? sel->limit : INT64_MAX;
    int rc = 0;
    for (size_t i = 0; i < n && left > 0 && rc >= 0; i++) {
        struct job_view v;
        if (i && sorted[i].v == sorted[i - 1].v)
            continue;
        arena_reset(&a);
        rc = get_row(q, sorted[i], full, &a, &v, err);
        if (rc != 1 || !matches(sel, &v))
            continue;
        left--;
        if (!each(arg, &v))
            break;
    }
    arena_done(&a);
    return rc < 0 ? rc : 0;
}

/* A key is looked up by its digest, in its queue or in all of them. */
static int ids_of_key(struct sq *q, const struct selection *sel, job_id **out, size_t *out_n,
                      struct pawl_err *err)
{
    AUTO_STMT names = stmt_get(q, STMT_QUEUE_NAMES, err);
    AUTO_STMT find = stmt_get(q, STMT_KEY_LOOKUP, err);
    if (!names || !find)
        return err->code;
    size_t cap = 0;
    int rc;
    while ((rc = stmt_step(q, names, err, "list")) == 1) {
        struct sv queue = column_sv(names, 0);
        unsigned char digest[16];
        if ((sel->queue.p && !sv_eq(sel->queue, queue)) || sel->key.n > KEY_MAX_BYTES)
            continue;
        key_digest(queue, sel->key, digest);
        sqlite3_bind_blob(find, 1, digest, 16, SQLITE_STATIC);
        rc = stmt_step(q, find, err, "list");
        if (rc < 0)
            return rc;
        if (rc == 1) {
            ARRAY_GROW(*out, *out_n, cap);
            (*out)[(*out_n)++].v = sqlite3_column_int64(find, 0);
            sqlite3_reset(find);
        }
    }
    return rc;
}

static int state_counts(struct sq *q, const struct selection *sel, int64_t n[N_JOB_STATES],
                        int64_t *total, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_STATUS_CLASSES, err);
    if (!s)
        return err->code;
    memset(n, 0, N_JOB_STATES * sizeof(*n));
    *total = 0;
    sqlite3_bind_int64(s, 1, INT64_MAX);
    int rc;
    while ((rc = stmt_step(q, s, err, "count")) == 1) {
        bool in = (!sel->queue.p || sv_eq(sel->queue, column_sv(s, 0))) &&
                  (!sel->kind.p || sv_eq(sel->kind, column_sv(s, 1)));
        for (int i = 0; i < N_JOB_STATES; i++) {
            int64_t v = sqlite3_column_int64(s, 3 + i);
            *total += v;
            n[i] += in ? v : 0;
        }
    }
    return rc;
}

/* Walking by id needs no sort but passes every job; an index by state finds just its jobs but must
 * sort them. The exact counts say which is cheaper. */
static int choose_path(struct sq *q, const struct selection *sel, enum stmt_id *out,
                       struct pawl_err *err)
{
    static const enum stmt_id by_state[N_JOB_STATES] = {
        [JOB_BLOCKED] = STMT_LIST_BY_ID,   [JOB_QUEUED] = STMT_LIST_QUEUED,
        [JOB_WAITING] = STMT_LIST_WAITING, [JOB_RUNNING] = STMT_LIST_RUNNING,
        [JOB_DONE] = STMT_LIST_ENDED,      [JOB_SKIPPED] = STMT_LIST_ENDED,
        [JOB_FAILED] = STMT_LIST_ENDED,    [JOB_CANCELLED] = STMT_LIST_ENDED,
    };
    bool single;
    enum job_state state = only_state(sel->states, &single);
    *out = STMT_LIST_BY_ID;
    if (!single)
        return 0;
    int64_t n[N_JOB_STATES], total;
    struct selection all = {0};
    int rc = state_counts(q, &all, n, &total, err);
    if (rc == 0 && (n[state] <= 1000 || n[state] < total / 16))
        *out = by_state[state];
    return rc;
}

static void bind_selection(sqlite3_stmt *s, const struct selection *sel)
{
    bool single;
    bind_sv(s, 1, sel->queue);
    bind_sv(s, 2, sel->kind);
    bind_sv(s, 3, sel->host);
    sqlite3_bind_int64(s, 4, sel->states);
    bind_i64_or_null(s, 5, sel->since.us, sel->since.us == 0);
    bind_sv(s, 6, sel->error);
    sqlite3_bind_int64(s, 7, sel->after.v);
    sqlite3_bind_int64(s, 8, sel->limit ? sel->limit : -1);
    sqlite3_bind_int64(s, 9, sel->error_low);
    sqlite3_bind_int64(s, 10, sel->error_high);
    if (sqlite3_bind_parameter_count(s) >= 11)
        sqlite3_bind_int(s, 11, (int)only_state(sel->states, &single));
}

/* A queue, kind or host that nothing belongs to, or a state that nothing is in: no walk then. */
static int worth_walking(struct sq *q, const struct selection *sel, bool *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LANE_ANY, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, sel->queue);
    bind_sv(s, 2, sel->kind);
    bind_sv(s, 3, sel->host);
    int rc = stmt_step(q, s, err, "list");
    if (rc < 0)
        return rc;
    int64_t n[N_JOB_STATES], total, left = 0;
    if (state_counts(q, sel, n, &total, err) < 0)
        return err->code;
    for (int i = 0; i < N_JOB_STATES; i++)
        if (!sel->states || sel->states >> i & 1)
            left += n[i];
    *out = rc == 1 && left > 0;
    return 0;
}

static int list_walk(struct sq *q, const struct selection *sel, bool full, each_fn *each, void *arg,
                     struct pawl_err *err)
{
    enum stmt_id path;
    bool worth = false;
    if (worth_walking(q, sel, &worth, err) < 0)
        return err->code;
    if (!worth)
        return 0;
    if (choose_path(q, sel, &path, err) < 0)
        return err->code;
    AUTO_STMT s = stmt_get(q, path, err);
    if (!s)
        return err->code;
    bind_selection(s, sel);
    struct arena a;
    arena_init(&a);
    int rc;
    while ((rc = stmt_step(q, s, err, "list")) == 1) {
        struct job_view v;
        arena_reset(&a);
        job_view_read(s, full, &a, &v);
        if (!each(arg, &v))
            break;
    }
    arena_done(&a);
    return rc < 0 ? rc : 0;
}

static int list_any(struct sq *q, const struct selection *sel, bool full, each_fn *each, void *arg,
                    struct pawl_err *err)
{
    if (sel->n_ids)
        return list_ids(q, sel, sel->ids, sel->n_ids, full, each, arg, err);
    if (!sel->key.p)
        return list_walk(q, sel, full, each, arg, err);
    AUTO_FREE job_id *ids = NULL;
    size_t n = 0;
    int rc = ids_of_key(q, sel, &ids, &n, err);
    return rc < 0 ? rc : n ? list_ids(q, sel, ids, n, full, each, arg, err) : 0;
}

int store_list(struct store *s, const struct selection *sel, bool full, each_fn *each, void *arg,
               struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = list_any(q, sel, full, each, arg, err);
    read_end(q);
    return rc;
}

static bool count_one(void *arg, const struct job_view *job)
{
    (void)job;
    ++*(int64_t *)arg;
    return true;
}

int store_count(struct store *s, const struct selection *sel, int64_t *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int64_t total = 0, n[N_JOB_STATES], all;
    bool plain = !sel->n_ids && !sel->key.p && !sel->host.p && !sel->error.p && !sel->error_high &&
                 !sel->since.us && !sel->after.v;
    int rc = 0;
    if (plain) {
        rc = state_counts(q, sel, n, &all, err);
        for (int i = 0; rc == 0 && i < N_JOB_STATES; i++)
            if (!sel->states || sel->states >> i & 1)
                total += n[i];
        if (sel->limit && total > sel->limit)
            total = sel->limit;
    } else {
        rc = store_list(s, sel, false, count_one, &total, err);
    }
    if (rc == 0)
        *out = total;
    return rc;
}

static int one_number(struct sq *q, enum stmt_id id, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, id, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "events");
    *out = rc == 1 ? sqlite3_column_int64(s, 0) : 0;
    return rc < 0 ? rc : 0;
}

/* Ids rise with time, so the first event at or after `since` is found by halving. */
static int first_since(struct sq *q, struct wall since, int64_t low, int64_t high, int64_t *out,
                       struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_EVENT_AT, err);
    if (!s)
        return err->code;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        sqlite3_bind_int64(s, 1, mid);
        int rc = stmt_step(q, s, err, "events");
        if (rc < 0)
            return rc;
        bool late = rc == 0 || sqlite3_column_int64(s, 1) >= since.us;
        int64_t id = rc == 1 ? sqlite3_column_int64(s, 0) : high;
        sqlite3_reset(s);
        if (late)
            high = mid;
        else
            low = id + 1;
    }
    *out = low;
    return 0;
}

static int event_range(struct sq *q, const struct event_filter *f, int64_t *after, int64_t *last,
                       struct pawl_err *err)
{
    int64_t first = 0;
    if (one_number(q, STMT_EVENT_FIRST, &first, err) < 0 ||
        one_number(q, STMT_EVENT_LAST, last, err) < 0)
        return err->code;
    *after = f->after;
    if (f->since.us && *last) {
        int64_t from = 0;
        if (first_since(q, f->since, first, *last + 1, &from, err) < 0)
            return err->code;
        if (from - 1 > *after)
            *after = from - 1;
    }
    if (f->last && !f->job.v && !f->queue.p && !f->types && *last - f->last > *after)
        *after = *last - f->last;
    return 0;
}

static void bind_events(sqlite3_stmt *s, const struct event_filter *f, int64_t after, int64_t last,
                        int64_t limit)
{
    sqlite3_bind_int64(s, 1, after);
    sqlite3_bind_int64(s, 2, last);
    sqlite3_bind_int64(s, 3, f->job.v);
    sqlite3_bind_int64(s, 4, f->types);
    bind_sv(s, 5, f->queue);
    sqlite3_bind_int64(s, 6, limit ? limit : -1);
}

/* With filters the newest are found from the end. */
static int newest_from(struct sq *q, const struct event_filter *f, int64_t *after, int64_t last,
                       struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_EVENTS_FROM, err);
    if (!s)
        return err->code;
    bind_events(s, f, *after, last, f->last);
    int rc = stmt_step(q, s, err, "events");
    if (rc == 1 && sqlite3_column_int64(s, 0) - 1 > *after)
        *after = sqlite3_column_int64(s, 0) - 1;
    return rc < 0 ? rc : 0;
}

/* A job's first event is that it was added: nothing before it has to be looked at. */
static int job_since(struct sq *q, struct event_filter *f, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_JOB_CREATED, err);
    if (!s)
        return err->code;
    sqlite3_bind_int64(s, 1, f->job.v);
    int rc = stmt_step(q, s, err, "events");
    if (rc == 1 && sqlite3_column_int64(s, 0) > f->since.us)
        f->since.us = sqlite3_column_int64(s, 0);
    return rc < 0 ? rc : 0;
}

static void read_event(sqlite3_stmt *s, struct event_view *out)
{
    *out = (struct event_view){
        .id = sqlite3_column_int64(s, 0),
        .at = {sqlite3_column_int64(s, 1)},
        .type = (enum event_type)sqlite3_column_int(s, 2),
        .job = {sqlite3_column_int64(s, 3)},
        .fence = {sqlite3_column_int64(s, 4)},
        .queue = column_sv(s, 5),
        .kind = column_sv(s, 6),
        .key = column_sv(s, 7),
        .worker = column_sv(s, 8),
        .detail = column_sv(s, 9),
    };
}

static int walk_events(struct sq *q, const struct event_filter *f,
                       bool (*each)(void *, const struct event_view *), void *arg,
                       struct pawl_err *err)
{
    int64_t after = 0, last = 0, left = f->limit ? f->limit : INT64_MAX;
    if (event_range(q, f, &after, &last, err) < 0 ||
        (f->last && newest_from(q, f, &after, last, err) < 0))
        return err->code;
    bool rare = f->types && !(f->types & ~EVENTS_RARE);
    AUTO_STMT s = stmt_get(q, rare ? STMT_EVENTS_RARE : STMT_EVENTS, err);
    if (!s)
        return err->code;
    bind_events(s, f, after, last, f->limit);
    int rc;
    while ((rc = stmt_step(q, s, err, "events")) == 1) {
        struct event_view v;
        read_event(s, &v);
        if (!each(arg, &v) || --left == 0)
            return 0;
    }
    if (rc == 0 && f->follow && last > f->follow->v)
        f->follow->v = last; /* commits come one after the other, in the order of ids */
    return rc < 0 ? rc : 0;
}

int store_events(struct store *s, const struct event_filter *f,
                 bool (*each)(void *arg, const struct event_view *e), void *arg,
                 struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    struct event_filter narrowed = *f;
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    if (f->follow && f->follow->v) {
        narrowed.after = f->follow->v;
        narrowed.last = 0;
    }
    if (f->job.v)
        rc = job_since(q, &narrowed, err);
    if (rc == 0)
        rc = walk_events(q, &narrowed, each, arg, err);
    read_end(q);
    return rc;
}
