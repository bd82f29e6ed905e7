/* Batches of fetches into the store. */
#include "fetch_add.h"

void fetch_add_init(struct fetch_add *f, struct cli *c)
{
    *f = (struct fetch_add){.c = c, .older_than = DUR_NONE};
    arena_init(&f->arena);
    batch_init(&f->batch);
    f->specs = mem_zalloc(BATCH_MAX + VARIANTS_MAX, sizeof(*f->specs));
    f->again = mem_zalloc(BATCH_MAX + VARIANTS_MAX, sizeof(*f->again));
    f->results = mem_zalloc(BATCH_MAX + VARIANTS_MAX, sizeof(*f->results));
    f->ended = mem_zalloc(BATCH_MAX + VARIANTS_MAX, sizeof(*f->ended));
}

void fetch_add_done(struct fetch_add *f)
{
    arena_done(&f->arena);
    free(f->specs);
    free(f->again);
    free(f->results);
    free(f->ended);
}

int64_t fetch_known(const struct fetch_add *f)
{
    int64_t n = 0;
    for (int i = 0; i < N_JOB_STATES; i++)
        n += f->known[i];
    return n;
}

/* ---- when did they end? ---- */

static int compare_ids(const void *a, const void *b)
{
    const struct fetch_ended *x = a, *y = b;
    return (x->id.v > y->id.v) - (x->id.v < y->id.v);
}

struct ends {
    struct fetch_ended *v; /* by id */
    size_t n;
};

static bool note_end(void *arg, const struct job_view *job)
{
    const struct ends *e = arg;
    const struct fetch_ended want = {.id = job->id};
    struct fetch_ended *found = bsearch(&want, e->v, e->n, sizeof(*e->v), compare_ids);
    if (found)
        found->at = job->finished_at;
    return true;
}

static int look_up_ends(struct fetch_add *f, size_t n, struct pawl_err *err)
{
    struct ends e = {f->ended, n};
    AUTO_FREE job_id *ids = mem_zalloc(n, sizeof(*ids));
    qsort(f->ended, n, sizeof(*f->ended), compare_ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = f->ended[i].id;
    const struct selection sel = {.ids = ids, .n_ids = n};
    return f->c->store->ops->list(f->c->store, &sel, false, note_end, &e, err);
}

static bool is_younger(const struct fetch_add *f, struct wall now, struct wall ended)
{
    return f->older_than.us >= 0 && ended.us && ended.us > now.us - f->older_than.us;
}

/* ---- queueing again ---- */

static void count_again(struct fetch_add *f, enum job_state before, enum add_outcome outcome)
{
    if (outcome == ADD_REQUEUED || outcome == ADD_CREATED) {
        f->known[before]--;
        f->refreshed++;
    } else if (outcome == ADD_RUNNING) { /* somebody else was faster */
        f->known[before]--;
        f->known[JOB_RUNNING]++;
    }
}

/* Of the first n of f->ended those that are old enough. The same URL twice in one batch is there
 * once: its second line found the first one queued. */
static int queue_again(struct fetch_add *f, size_t n, struct pawl_err *err)
{
    struct wall now = f->c->store->ops->now(f->c->store);
    size_t kept = 0;
    int rc = f->older_than.us >= 0 && n ? look_up_ends(f, n, err) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (is_younger(f, now, f->ended[i].at)) {
            f->younger++;
            continue;
        }
        f->ended[kept] = f->ended[i];
        f->again[kept++] = f->specs[f->ended[i].spec];
    }
    if (rc == 0 && kept)
        rc = store_enqueue(f->c->store, f->again, kept, DUPLICATE_REQUEUE, f->results, err);
    for (size_t i = 0; rc == 0 && i < kept; i++)
        count_again(f, f->ended[i].state, f->results[i].outcome);
    return rc;
}

static int add(struct fetch_add *f, struct pawl_err *err)
{
    size_t ended = 0;
    int rc = store_enqueue(f->c->store, f->specs, f->n, DUPLICATE_SKIP, f->results, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < f->n; i++) {
        const struct add_result *r = &f->results[i];
        if (r->outcome == ADD_CREATED) {
            f->added++;
            continue;
        }
        f->known[r->state]++;
        if (f->refresh && job_state_terminal(r->state))
            f->ended[ended++] = (struct fetch_ended){r->id, {0}, r->state, i};
    }
    return ended ? queue_again(f, ended, err) : 0;
}

/* ---- looking only ---- */

struct found {
    bool any;
    enum job_state state;
    struct wall ended;
};

static bool note_job(void *arg, const struct job_view *job)
{
    *(struct found *)arg = (struct found){true, job->state, job->finished_at};
    return false;
}

static int look_at(struct fetch_add *f, const struct job_spec *spec, struct wall now,
                   struct pawl_err *err)
{
    struct found found = {0};
    const struct selection sel = {.queue = spec->queue, .key = spec->key, .limit = 1};
    int rc = f->c->store->ops->list(f->c->store, &sel, false, note_job, &found, err);
    if (rc < 0)
        return rc;
    bool again = found.any && f->refresh && job_state_terminal(found.state);
    bool younger = again && is_younger(f, now, found.ended);
    if (!found.any)
        f->added++;
    else if (again && !younger)
        f->refreshed++;
    else
        f->known[found.state]++;
    f->younger += younger;
    return 0;
}

static int look(struct fetch_add *f, struct pawl_err *err)
{
    int rc = 0;
    if (!f->c->store) {
        f->added += (int64_t)f->n;
        return 0;
    }
    struct wall now = f->c->store->ops->now(f->c->store);
    for (size_t i = 0; rc == 0 && i < f->n; i++)
        rc = look_at(f, &f->specs[i], now, err);
    return rc;
}

int fetch_add_flush(struct fetch_add *f, struct pawl_err *err)
{
    struct boot start = clock_boot();
    int rc = !f->n ? 0 : f->dry_run ? look(f, err) : add(f, err);
    if (rc < 0)
        return rc;
    batch_adapt(&f->batch, f->c, f->n, DUR_US(clock_boot().us - start.us));
    f->n = 0;
    arena_reset(&f->arena);
    return 0;
}
