/* Many new jobs at once: COPY straight into the tables, keys first and sorted by digest (the index
 * stays warm, and two loads cannot wait for each other in a circle). If one of the keys is taken,
 * all of it is undone and the caller adds them the other way. */
#include "pg.h"

#include "digest.h"
#include <endian.h>

enum { FLUSH_BYTES = 256 << 10 };

struct keyed {
    unsigned char digest[KEY_DIGEST_LEN];
    int64_t id;
};

/* What one load adds to a lane and a class. */
struct place {
    struct sv queue, kind, host;
    int64_t lane, class_id;
    int64_t best; /* job; 0: none is ready */
    int rank;
    int queued, waiting;
};

struct load {
    struct pg *p;
    const struct job_spec *specs;
    size_t n;
    int64_t *ids, now;
    struct place *places;
    size_t n_places, cap_places;
    size_t *place_of; /* index into places by spec */
    struct keyed *keyed;
    struct str buf;
    struct pawl_err *err;
};

/* ---- rows in COPY's binary form ---- */

static void put_i16(struct str *b, int16_t v)
{
    uint16_t be = htobe16((uint16_t)v);
    str_add(b, sv_make((const char *)&be, 2));
}

static void put_i32(struct str *b, int32_t v)
{
    uint32_t be = htobe32((uint32_t)v);
    str_add(b, sv_make((const char *)&be, 4));
}

static void put_i64_field(struct str *b, int64_t v)
{
    uint64_t be = htobe64((uint64_t)v);
    put_i32(b, 8);
    str_add(b, sv_make((const char *)&be, 8));
}

static void put_int_field(struct str *b, int32_t v)
{
    put_i32(b, 4);
    put_i32(b, v);
}

static void put_small_field(struct str *b, int16_t v)
{
    put_i32(b, 2);
    put_i16(b, v);
}

static void put_text_field(struct str *b, struct sv v)
{
    put_i32(b, v.p ? (int32_t)v.n : -1);
    if (v.n)
        str_add(b, v);
}

static void put_null_field(struct str *b)
{
    put_i32(b, -1);
}

static int flush(struct load *l)
{
    if (l->buf.overflow)
        return err_set(l->err, PAWL_EINTERNAL, "a batch of jobs is too large");
    int rc = l->buf.len ? db_copy_data(l->p, l->buf.p, l->buf.len, l->err) : 0;
    str_clear(&l->buf);
    return rc;
}

/* One table: `row` appends row i. A row that is too much for the buffer goes out by itself. */
static int copy_table(struct load *l, enum stmt_id into, size_t n,
                      void (*row)(struct load *l, size_t i), bool *out_duplicate)
{
    static const char head[19] = "PGCOPY\n\377\r\n\0";
    if (n == 0)
        return 0;
    int rc = db_copy_begin(l->p, into, l->err);
    if (rc < 0)
        return rc;
    str_clear(&l->buf);
    str_add(&l->buf, sv_make(head, sizeof(head)));
    for (size_t i = 0; i < n; i++) {
        row(l, i);
        if (l->buf.len >= FLUSH_BYTES && flush(l) < 0)
            return l->err->code;
    }
    put_i16(&l->buf, -1);
    if (flush(l) < 0)
        return l->err->code;
    l->p->effort.rows += (int64_t)n;
    return db_copy_end(l->p, out_duplicate, l->err);
}

static bool waits(const struct load *l, const struct job_spec *s)
{
    return s->at.us ? s->at.us > l->now : s->delay.us > 0;
}

static void body_row(struct load *l, size_t i)
{
    const struct job_spec *s = &l->specs[i];
    put_i16(&l->buf, 11);
    put_i64_field(&l->buf, l->ids[i]);
    put_text_field(&l->buf, s->queue);
    put_text_field(&l->buf, s->kind);
    put_text_field(&l->buf, s->host.p ? s->host : SV(""));
    put_text_field(&l->buf, s->key);
    put_text_field(&l->buf, s->payload);
    put_i64_field(&l->buf, l->now);
    if (s->max_attempts)
        put_int_field(&l->buf, s->max_attempts);
    else
        put_null_field(&l->buf);
    if (s->timeout.us)
        put_i64_field(&l->buf, s->timeout.us);
    else
        put_null_field(&l->buf);
    if (s->parent.v)
        put_i64_field(&l->buf, s->parent.v);
    else
        put_null_field(&l->buf);
    put_text_field(&l->buf, s->lock);
}

/* One with a lock is held until a claim finds that it is its turn (pawl.fold_locks). */
static void job_row(struct load *l, size_t i)
{
    const struct job_spec *s = &l->specs[i];
    bool wait = waits(l, s);
    int64_t due = !wait ? l->now : s->at.us ? s->at.us : l->now + s->delay.us;
    put_i16(&l->buf, 7);
    put_i64_field(&l->buf, l->ids[i]);
    put_i64_field(&l->buf, l->places[l->place_of[i]].lane);
    put_i64_field(&l->buf, due);
    put_int_field(&l->buf, -s->priority);
    put_small_field(&l->buf, wait ? JOB_WAITING : s->lock.p ? STATE_HELD : JOB_QUEUED);
    put_small_field(&l->buf, wait ? WAIT_DELAY : WAIT_NONE);
    if (s->lock.p)
        put_i64_field(&l->buf, lock_digest(s->lock));
    else
        put_null_field(&l->buf);
}

static void event_row(struct load *l, size_t i)
{
    put_i16(&l->buf, 3);
    put_i64_field(&l->buf, l->now);
    put_i64_field(&l->buf, l->ids[i]);
    put_small_field(&l->buf, EVENT_ADDED);
}

/* ---- keys ---- */

static int compare_keyed(const void *a, const void *b)
{
    return memcmp(((const struct keyed *)a)->digest, ((const struct keyed *)b)->digest,
                  KEY_DIGEST_LEN);
}

static void key_row(struct load *l, size_t i)
{
    put_i16(&l->buf, 2);
    put_text_field(&l->buf, sv_make((const char *)l->keyed[i].digest, KEY_DIGEST_LEN));
    put_i64_field(&l->buf, l->keyed[i].id);
}

static int load_keys(struct load *l, bool *out_duplicate)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->specs[i].key.p) {
            key_digest(l->specs[i].queue, l->specs[i].key, l->keyed[n].digest);
            l->keyed[n++].id = l->ids[i];
        }
    qsort(l->keyed, n, sizeof(*l->keyed), compare_keyed);
    return copy_table(l, STMT_COPY_KEYS, n, key_row, out_duplicate);
}

/* ---- lanes and classes ---- */

static struct place *place_for(struct load *l, const struct job_spec *s, size_t *hint)
{
    struct sv host = s->host.p ? s->host : SV("");
    if (*hint < l->n_places) {
        struct place *p = &l->places[*hint];
        if (sv_eq(p->queue, s->queue) && sv_eq(p->kind, s->kind) && sv_eq(p->host, host))
            return p;
    }
    int64_t lane = lane_digest(s->queue, s->kind, host);
    for (size_t i = 0; i < l->n_places; i++)
        if (l->places[i].lane == lane) {
            *hint = i;
            return &l->places[i];
        }
    ARRAY_GROW(l->places, l->n_places, l->cap_places);
    *hint = l->n_places;
    l->places[l->n_places] = (struct place){.queue = s->queue,
                                            .kind = s->kind,
                                            .host = host,
                                            .lane = lane,
                                            .class_id = class_digest(s->queue, s->kind)};
    return &l->places[l->n_places++];
}

static void find_places(struct load *l)
{
    size_t hint = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct job_spec *s = &l->specs[i];
        struct place *p = place_for(l, s, &hint);
        l->place_of[i] = hint;
        if (waits(l, s)) {
            p->waiting++;
            continue;
        }
        p->queued++;
        if (s->lock.p)
            continue;
        bool better =
            !p->best || -s->priority < p->rank || (-s->priority == p->rank && l->ids[i] < p->best);
        if (better) {
            p->best = l->ids[i];
            p->rank = -s->priority;
        }
    }
}

static int load_places(struct load *l)
{
    AUTO_ARGS a;
    size_t n = l->n_places;
    args_init(&a);
    int64_t *lanes = arena_alloc(&a.arena, n * sizeof(int64_t));
    int64_t *classes = arena_alloc(&a.arena, n * sizeof(int64_t));
    int64_t *best = arena_alloc(&a.arena, n * sizeof(int64_t));
    int *ranks = arena_alloc(&a.arena, n * sizeof(int));
    int *queued = arena_alloc(&a.arena, n * sizeof(int));
    int *waiting = arena_alloc(&a.arena, n * sizeof(int));
    struct sv *queues = arena_alloc(&a.arena, n * sizeof(struct sv));
    struct sv *kinds = arena_alloc(&a.arena, n * sizeof(struct sv));
    struct sv *hosts = arena_alloc(&a.arena, n * sizeof(struct sv));
    for (size_t i = 0; i < n; i++) {
        const struct place *p = &l->places[i];
        lanes[i] = p->lane;
        classes[i] = p->class_id;
        best[i] = p->best;
        ranks[i] = p->rank;
        queued[i] = p->queued;
        waiting[i] = p->waiting;
        queues[i] = p->queue;
        kinds[i] = p->kind;
        hosts[i] = p->host;
    }
    arg_i64s(&a, lanes, n, NULL);
    arg_i64s(&a, classes, n, NULL);
    arg_texts(&a, queues, n);
    arg_texts(&a, kinds, n);
    arg_texts(&a, hosts, n);
    arg_i64s(&a, best, n, NULL);
    arg_ints(&a, ranks, n, NULL);
    arg_ints(&a, queued, n, NULL);
    arg_ints(&a, waiting, n, NULL);
    arg_i64(&a, l->now);
    return db_query(l->p, STMT_LOAD_PLACES, &a, NULL, l->err);
}

static int load_locks(struct load *l)
{
    AUTO_ARGS a;
    size_t n = 0;
    args_init(&a);
    int64_t *locks = arena_alloc(&a.arena, l->n * sizeof(int64_t));
    int *ranks = arena_alloc(&a.arena, l->n * sizeof(int));
    for (size_t i = 0; i < l->n; i++)
        if (l->specs[i].lock.p && !waits(l, &l->specs[i])) {
            locks[n] = lock_digest(l->specs[i].lock);
            ranks[n++] = -l->specs[i].priority;
        }
    if (!n)
        return 0;
    arg_i64s(&a, locks, n, NULL);
    arg_ints(&a, ranks, n, NULL);
    return db_query(l->p, STMT_LOAD_LOCKS, &a, NULL, l->err);
}

/* ---- the load ---- */

static int take_ids(struct load *l)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_int(&a, (int)l->n);
    int rc = db_query(l->p, STMT_TAKE_IDS, &a, &r, l->err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < l->n; i++)
        l->ids[i] = res_i64(r, (int)i, 0);
    l->now = res_i64(r, 0, 1);
    return 0;
}

static int load_rows(struct load *l, bool *out_duplicate)
{
    bool ignored;
    int rc = load_keys(l, out_duplicate);
    if (rc < 0)
        return rc;
    find_places(l);
    rc = copy_table(l, STMT_COPY_BODIES, l->n, body_row, &ignored);
    if (rc == 0)
        rc = copy_table(l, STMT_COPY_JOBS, l->n, job_row, &ignored);
    if (rc == 0)
        rc = copy_table(l, STMT_COPY_EVENTS, l->n, event_row, &ignored);
    if (rc == 0)
        rc = load_locks(l);
    return rc == 0 ? load_places(l) : rc;
}

static int load_all(struct load *l, bool *out_duplicate)
{
    struct pawl_err ignored;
    int rc = take_ids(l);
    if (rc == 0)
        rc = db_plain(l->p, "SAVEPOINT load", NULL, l->err);
    if (rc < 0)
        return rc;
    rc = load_rows(l, out_duplicate);
    if (rc < 0 && *out_duplicate && db_plain(l->p, "ROLLBACK TO load", NULL, &ignored) < 0)
        *out_duplicate = false;
    return rc;
}

int pg_load(struct pg *p, const struct job_spec *specs, size_t n, struct add_result *out,
            bool *out_duplicate, struct pawl_err *err)
{
    AUTO_FREE int64_t *ids = mem_zalloc(n, sizeof(*ids));
    AUTO_FREE size_t *place_of = mem_zalloc(n, sizeof(*place_of));
    AUTO_FREE struct keyed *keyed = mem_zalloc(n, sizeof(*keyed));
    struct load l = {.p = p,
                     .specs = specs,
                     .n = n,
                     .ids = ids,
                     .place_of = place_of,
                     .keyed = keyed,
                     .buf = STR_INIT(FLUSH_BYTES + 2 * PAYLOAD_MAX_BYTES),
                     .err = err};
    *out_duplicate = false;
    int rc = load_all(&l, out_duplicate);
    for (size_t i = 0; rc == 0 && i < n; i++)
        out[i] = (struct add_result){{ids[i]}, ADD_CREATED, JOB_QUEUED};
    str_done(&l.buf);
    free(l.places);
    return rc;
}
