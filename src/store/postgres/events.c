/* The audit log: by id in pages; for followers by transaction, because ids are given before commits
 * decide their order. */
#include "pg.h"

#include "text.h"

enum { PAGE_FIRST = 100, PAGE = 1000, PAGE_MOST = 20000 };

/* Ids and times are taken at nearly the same moment by many transactions at once: by so much an
 * event with a higher id may be older. */
#define DISORDER DUR_S(60)

typedef bool each_fn(void *arg, const struct event_view *e);

struct events {
    struct pg *p;
    const struct event_filter *f;
    struct wall since;
    int64_t first, last; /* ids there are */
    int64_t below;       /* only transactions below this one; 0: all */
    each_fn *each;
    void *arg;
    int64_t left;
    bool stopped;
};

/* $1 to $5 of the events. */
static void bind_filters(struct args *a, const struct events *w)
{
    arg_i64(a, w->f->job.v);
    arg_i64(a, w->f->types);
    arg_text(a, w->f->queue);
    arg_i64(a, w->since.us);
    arg_i64_or_null(a, w->below, !w->below);
}

static void read_event(const PGresult *r, int row, struct event_view *out)
{
    *out = (struct event_view){
        .id = res_i64(r, row, 0),
        .at = {res_i64(r, row, 1)},
        .type = (enum event_type)res_int(r, row, 2),
        .job = {res_i64(r, row, 3)},
        .fence = {res_i64(r, row, 4)},
        .queue = res_sv(r, row, 5),
        .kind = res_sv(r, row, 6),
        .key = res_sv(r, row, 7),
        .worker = res_sv(r, row, 8),
        .detail = res_sv(r, row, 9),
    };
}

/* Hand over the rows of a page; how many they were. */
static int give(struct events *w, const PGresult *r)
{
    int n = 0;
    for (int i = 0; i < PQntuples(r) && !w->stopped; i++) {
        struct event_view v;
        if (res_null(r, i, 0))
            continue;
        read_event(r, i, &v);
        n++;
        w->stopped = !w->each(w->arg, &v) || --w->left == 0;
    }
    return n;
}

/* Where few pass, more are looked at in one go. */
static int64_t next_page(int64_t page, int64_t passed)
{
    int64_t most = passed * 4 < page ? PAGE_MOST : PAGE;
    return page * 4 < most ? page * 4 : most;
}

/* ---- where to begin ---- */

static int read_bounds(struct events *w, int64_t *out_xmin, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = pg_look(w->p, STMT_EVENT_BOUNDS, NULL, &r, err);
    if (rc < 0)
        return rc;
    w->first = res_i64(r, 0, 0);
    w->last = res_i64(r, 0, 1);
    *out_xmin = res_i64(r, 0, 2);
    return 0;
}

/* The time of the first event from this id on; id 0: there is none. */
static int event_at(struct pg *p, int64_t from, int64_t *out_id, int64_t *out_at,
                    struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, from);
    int rc = db_query(p, STMT_EVENT_AT, &a, &r, err);
    if (rc < 0)
        return rc;
    bool found = PQntuples(r) > 0;
    *out_id = found ? res_i64(r, 0, 0) : 0;
    *out_at = found ? res_i64(r, 0, 1) : INT64_MAX;
    return 0;
}

/* Ids rise with time but for the disorder, so a first event that need be looked at is found by
 * halving. */
static int halve(struct events *w, int64_t *out, struct pawl_err *err)
{
    int64_t low = w->first, high = w->last + 1;
    while (low < high) {
        int64_t mid = low + (high - low) / 2, id, at;
        int rc = event_at(w->p, mid, &id, &at, err);
        if (rc < 0)
            return rc;
        if (at >= w->since.us - DISORDER.us)
            high = mid;
        else
            low = id + 1;
    }
    *out = low - 1;
    return 0;
}

static int begin_since(struct events *w, int64_t *after, struct pawl_err *err)
{
    int64_t before = 0;
    int rc = pg_read_begin(w->p, err);
    if (rc < 0)
        return rc;
    rc = pg_by_index(w->p, err);
    if (rc == 0)
        rc = halve(w, &before, err);
    pg_read_end(w->p);
    if (rc == 0 && before > *after)
        *after = before;
    return rc;
}

/* A job's first event is that it was added: nothing before it has to be looked at. */
static int job_since(struct events *w, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, w->f->job.v);
    int rc = pg_look(w->p, STMT_JOB_CREATED, &a, &r, err);
    if (rc == 0 && PQntuples(r) && res_i64(r, 0, 0) > w->since.us)
        w->since.us = res_i64(r, 0, 0);
    return rc;
}

/* The newest so many are found from the end. */
static int begin_last(struct events *w, int64_t *after, struct pawl_err *err)
{
    int64_t need = w->f->last, to = w->last, lowest = w->last + 1;
    int64_t page = need < PAGE_FIRST ? PAGE_FIRST : need < PAGE ? need : PAGE;
    for (;;) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        size_t n;
        args_init(&a);
        bind_filters(&a, w);
        arg_i64(&a, *after);
        arg_i64(&a, to);
        arg_i64(&a, page);
        int rc = pg_look(w->p, STMT_EVENTS_BACK, &a, &r, err);
        if (rc < 0)
            return rc;
        int64_t *ids = res_i64s(r, 0, 0, &a.arena, &n);
        if (n)
            lowest = ids[(int64_t)n < need ? (int64_t)n - 1 : need - 1];
        need -= (int64_t)n;
        if (need <= 0 || res_i64(r, 0, 2) < page)
            break;
        to = res_i64(r, 0, 1) - 1;
        page = next_page(page, 0);
    }
    if (lowest - 1 > *after)
        *after = lowest - 1;
    return 0;
}

/* ---- walking ---- */

static int walk(struct events *w, int64_t after, struct pawl_err *err)
{
    int64_t page = w->left < PAGE_FIRST ? w->left : PAGE_FIRST;
    while (!w->stopped) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        bind_filters(&a, w);
        arg_i64(&a, after);
        arg_i64(&a, w->last);
        arg_i64(&a, page);
        int rc = pg_look(w->p, STMT_EVENTS_PAGE, &a, &r, err);
        if (rc < 0)
            return rc;
        int given = give(w, r);
        if (res_i64(r, 0, 11) < page)
            break;
        after = res_i64(r, 0, 10);
        page = next_page(page, given);
    }
    return 0;
}

static int walk_ids(struct events *w, struct pawl_err *err)
{
    int64_t after = w->f->after;
    if (w->f->job.v && job_since(w, err) < 0)
        return err->code;
    if (w->since.us && w->last && begin_since(w, &after, err) < 0)
        return err->code;
    if (w->f->last && begin_last(w, &after, err) < 0)
        return err->code;
    return walk(w, after, err);
}

/* Everything of transactions from this one up to those that may still be under way. */
static int walk_transactions(struct events *w, int64_t xid, struct pawl_err *err)
{
    int64_t page = PAGE, after = 0;
    bool rare = w->f->types && !(w->f->types & ~EVENTS_RARE);
    while (!w->stopped && xid < w->below) {
        AUTO_ARGS a;
        AUTO_RESULT r = NULL;
        args_init(&a);
        bind_filters(&a, w);
        arg_i64(&a, xid);
        arg_i64(&a, after);
        arg_i64(&a, page);
        int rc = pg_look(w->p, rare ? STMT_EVENTS_FOLLOW_RARE : STMT_EVENTS_FOLLOW, &a, &r, err);
        if (rc < 0)
            return rc;
        (void)give(w, r);
        if (res_i64(r, 0, 12) < page)
            break;
        xid = res_i64(r, 0, 10);
        after = res_i64(r, 0, 11);
        page = PAGE_MOST;
    }
    return 0;
}

int pg_events(struct store *s, const struct event_filter *f, each_fn *each, void *arg,
              struct pawl_err *err)
{
    struct events w = {.p = pg_of(s),
                       .f = f,
                       .since = f->since,
                       .each = each,
                       .arg = arg,
                       .left = f->limit ? f->limit : INT64_MAX};
    int64_t xmin = 0;
    int rc = read_bounds(&w, &xmin, err);
    if (rc < 0)
        return rc;
    w.below = f->follow ? xmin : 0;
    bool storable = !f->queue.p || text_bad_utf8(f->queue) == f->queue.n;
    if (storable && f->follow && f->follow->v)
        rc = walk_transactions(&w, f->follow->v, err);
    else if (storable)
        rc = walk_ids(&w, err);
    if (rc == 0 && f->follow && !w.stopped && xmin > f->follow->v)
        f->follow->v = xmin;
    return rc;
}
