/* The two stores, their ids, and the comparison. */
#include "sides.h"

#include "store_postgres.h"
#include "store_sqlite.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { SHOWN_BEFORE = 100, SHOWN_AFTER = 400 };
#define NOBODY ((int64_t)1 << 40)

void ids_note(struct ids *ids, int64_t native)
{
    if (ids->n && native <= ids->v[ids->n - 1])
        return;
    ARRAY_GROW(ids->v, ids->n, ids->cap);
    ids->v[ids->n++] = native;
}

int64_t ids_number(const struct ids *ids, int64_t native)
{
    size_t low = 0, high = ids->n;
    if (!native)
        return 0;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (ids->v[mid] < native)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ids->n && ids->v[low] == native ? (int64_t)low + 1 : -1;
}

int64_t ids_native(const struct ids *ids, int64_t number)
{
    return number > 0 && (size_t)number <= ids->n ? ids->v[number - 1] : NOBODY;
}

int roll(struct sides *r, int n)
{
    r->rng ^= r->rng << 13;
    r->rng ^= r->rng >> 7;
    r->rng ^= r->rng << 17;
    return (int)((unsigned)(r->rng >> 32) % (unsigned)n);
}

void next_operation(struct sides *r)
{
    r->done++;
    str_addf(&r->said, "\n  %ld: ", r->done);
}

void say(struct sides *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    str_adds(&r->said, text);
}

void counted(struct sides *r, enum sides_op op)
{
    r->counts[op]++;
}

int answer(struct side *d, int rc)
{
    str_addf(&d->text, "%s\n", rc < 0 ? err_name(rc) : "ok");
    return rc;
}

/* ---- opening ---- */

struct place {
    const char *path, *url; /* url NULL: a file */
    const char *dir;
};

static int open_one(const struct place *p, enum store_mode mode, struct store **out,
                    struct pawl_err *err)
{
    struct store_options o = {.mode = mode,
                              .timeout = DUR_S(20),
                              .durability = DURABILITY_RELAXED,
                              .keep_keys = LONG_TIME,
                              .schema = p->path,
                              .log_root = p->dir};
    if (p->url)
        return store_postgres_open(p->url, &o, out, err);
    return store_sqlite_open(p->path, &o, out, err);
}

static int open_side(struct side *d, const struct place *p, struct pawl_err *err)
{
    d->text = d->followed = STR_INIT(STR_OUTPUT);
    arena_init(&d->a);
    for (int i = 0; i < N_WORKERS; i++)
        d->workers[i].lock_fd = -1;
    int rc = open_one(p, STORE_CREATE, &d->handles[0], err);
    for (int i = 1; i < N_HANDLES && rc == 0; i++)
        rc = open_one(p, STORE_WRITE, &d->handles[i], err);
    if (rc == 0)
        rc = open_one(p, STORE_MIGRATE, &d->upgrader, err);
    d->s = d->handles[0];
    d->name = rc == 0 ? d->s->ops->name : "";
    return rc;
}

/* One start a second is for the moment to decide. */
static int drop_built_in(struct side *d, struct pawl_err *err)
{
    const struct limit_spec s = {.name = SV("every-host")};
    enum limit_outcome out;
    return d->handles[0]->ops->limit_act(d->handles[0], LIMIT_UNSET, &s, &out, err);
}

int sides_open(struct sides *r, const char *dir, const char *pg_url, struct pawl_err *err)
{
    char path[2][128];
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        abort();
    snprintf(path[0], sizeof(path[0]), "%s/one.db", dir);
    if (pg_url)
        snprintf(path[1], sizeof(path[1]), "sides_%016llx", (unsigned long long)random);
    else
        snprintf(path[1], sizeof(path[1]), "%s/two.db", dir);
    const struct place places[N_SIDES] = {{path[0], NULL, dir}, {path[1], pg_url, dir}};
    r->said = STR_INIT(STR_OUTPUT);
    arena_init(&r->a);
    r->began = clock_wall();
    int rc = config_make("test", NULL, 0, &r->config, err);
    for (int i = 0; i < N_SIDES && rc == 0; i++)
        rc = open_side(&r->side[i], &places[i], err);
    for (int i = 0; i < N_SIDES && rc == 0; i++)
        rc = drop_built_in(&r->side[i], err);
    return rc;
}

void sides_close(struct sides *r)
{
    EACH_SIDE(r, d)
    {
        for (int i = 0; i < N_WORKERS; i++)
            if (d->workers[i].lock_fd >= 0)
                close(d->workers[i].lock_fd);
        for (int i = 0; i < N_HANDLES; i++)
            store_close(d->handles[i]);
        store_close(d->upgrader);
        str_done(&d->text);
        str_done(&d->followed);
        arena_done(&d->a);
        free(d->jobs.v);
        free(d->events.v);
        free(d->artifacts.v);
        free(d->hints);
    }
    config_free(r->config);
    str_done(&r->said);
    arena_done(&r->a);
}

/* ---- steps ---- */

void sides_begin_step(struct sides *r)
{
    r->step++;
    r->look = false;
    r->now = clock_wall();
    str_clear(&r->said);
    arena_reset(&r->a);
    if (!r->in_group)
        r->handle = roll(r, N_HANDLES);
    EACH_SIDE(r, d)
    {
        d->s = d->handles[r->handle];
        str_clear(&d->text);
        arena_reset(&d->a);
    }
}

void sides_group_begin(struct sides *r)
{
    say(r, "group_begin");
    counted(r, OP_group_begin);
    for (int i = 0; i < N_SIDES; i++) {
        struct side *d = &r->side[i];
        r->group_jobs[i] = d->jobs.n;
        r->group_events[i] = d->events.n;
        r->group_artifacts[i] = d->artifacts.n;
        d->group_breakers = d->breakers_after;
        answer(d, d->s->ops->group_begin(d->s, &d->e));
    }
    r->in_group = true;
}

/* What an aborted group added was never there, and what its claims told is void. */
static void forget(struct sides *r, int i)
{
    struct side *d = &r->side[i];
    d->jobs.n = r->group_jobs[i];
    d->events.n = r->group_events[i];
    d->artifacts.n = r->group_artifacts[i];
    d->breakers_after = d->group_breakers;
    if (d->n_hints)
        memset(d->hints, 0, d->n_hints * sizeof(*d->hints));
}

void sides_group_end(struct sides *r, bool keep)
{
    say(r, keep ? "group_commit" : "group_abort");
    counted(r, keep ? OP_group_commit : OP_group_abort);
    for (int i = 0; i < N_SIDES; i++) {
        struct side *d = &r->side[i];
        if (keep) {
            answer(d, d->s->ops->group_commit(d->s, &d->e));
            continue;
        }
        d->s->ops->group_abort(d->s);
        forget(r, i);
    }
    r->in_group = false;
}

/* The heading before the place: which part of what was shown. */
static struct sv line_at(const struct str *s, size_t at)
{
    size_t from = at < s->len ? at : s->len, to = from;
    while (from > 0 && s->p[from - 1] != '\n' && at - from < SHOWN_BEFORE)
        from--;
    while (to < s->len && s->p[to] != '\n' && to - from < SHOWN_AFTER)
        to++;
    return sv_make(s->p + from, to - from);
}

bool sides_equal(struct sides *r, struct str *out)
{
    const struct str *a = &r->side[0].text, *b = &r->side[1].text;
    if (a->len == b->len && memcmp(str_cstr(a), str_cstr(b), a->len) == 0)
        return true;
    size_t at = 0;
    while (at < a->len && at < b->len && a->p[at] == b->p[at])
        at++;
    str_addf(out, "PAWL_TEST_SEED=%llu PAWL_TEST_OPS=%ld\nstep %ld%s:%s\nbyte %zu:\n",
             (unsigned long long)r->seed, r->wanted, r->step, r->in_group ? " (in a group)" : "",
             str_cstr(&r->said), at);
    EACH_SIDE(r, d)
    {
        str_addf(out, "%s: " SV_FMT "\n", d->name, SV_ARG(line_at(&d->text, at)));
        if (d->e.msg[0])
            str_addf(out, "  last error: %s\n", d->e.msg);
    }
    return false;
}
