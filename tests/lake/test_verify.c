/* Verifying beside others: rows that come, go and move between the steps of `verify`, in a store
 * that is an array, over a real lake. */
#include "pond.h"

#include "verify.h"
#include <sys/stat.h>

enum { YOUNGER_S = 90, OLD_S = 7200, ROWS_MAX = 8192 };

struct pool {
    struct store store;
    struct pond *p;
    struct cli c;
    struct config config;
    struct verify v;
    struct artifact_view *rows; /* by id */
    size_t n;
    int64_t passes;                 /* times that rows were read from the first one on */
    void (*at_end)(struct pool *l); /* once, when the last row has been read */
    struct lake_item *item;         /* for at_end */
    struct arena arena;
};

static int read_rows(struct store *s, const struct artifact_filter *f,
                     bool (*each)(void *arg, const struct artifact_view *v), void *arg,
                     struct pawl_err *err)
{
    struct pool *l = (struct pool *)s;
    int64_t told = 0;
    (void)err;
    l->passes += !f->after;
    for (size_t i = 0; i < l->n && told < f->limit; i++)
        if (l->rows[i].id > f->after) {
            told++;
            each(arg, &l->rows[i]);
        }
    void (*at_end)(struct pool *) = told < f->limit ? l->at_end : NULL;
    if (at_end) {
        l->at_end = NULL;
        at_end(l);
    }
    return 0;
}

static int lose_rows(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                     int64_t *out_jobs, struct pawl_err *err)
{
    struct pool *l = (struct pool *)s;
    (void)err;
    *out_rows = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < l->n; k++)
            if (l->rows[k].id == ids[i]) {
                memmove(&l->rows[k], &l->rows[k + 1], (--l->n - k) * sizeof(*l->rows));
                ++*out_rows;
            }
    *out_jobs = *out_rows;
    return 0;
}

static struct wall now(struct store *s)
{
    (void)s;
    return clock_wall();
}

static int identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err)
{
    (void)s;
    (void)err;
    snprintf(out, STORE_ID_LEN + 1, "pool");
    return 0;
}

static const struct store_ops ops = {
    .artifacts = read_rows, .artifacts_lost = lose_rows, .identity = identity, .now = now};

static int setup(void **state)
{
    static char files[] = "files";
    struct pool *l = mem_zalloc(1, sizeof(*l));
    void *pond;
    pond_setup(&pond);
    l->store.ops = &ops;
    l->p = pond;
    l->rows = mem_zalloc(ROWS_MAX + 1, sizeof(*l->rows));
    l->config = (struct config){
        .lake_path = l->p->path, .lake_mode = files, .retention_artifacts = DUR_NONE};
    l->c = (struct cli){.config = &l->config, .store = &l->store, .quiet = true};
    l->v = (struct verify){.c = &l->c, .share = 1, .younger = DUR_S(YOUNGER_S)};
    arena_init(&l->arena);
    arena_init(&l->v.arena);
    meter_start(&l->v.meter, &l->c);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct pool *l = *state;
    void *pond = l->p;
    verify_done(&l->v);
    arena_done(&l->arena);
    pond_teardown(&pond);
    free(l->rows);
    free(l);
    return 0;
}

/* An object that was kept long ago. */
static struct lake_item object(struct pool *l, const char *text)
{
    struct lake_item item = keep(l->p, body_item(sv_of(text), "image/png"));
    set_age(object_path(l->p, &item), OLD_S);
    return item;
}

static bool is_there(const struct pool *l, const struct lake_item *item)
{
    struct stat st;
    return stat(object_path(l->p, item), &st) == 0;
}

static void spoil(const struct pool *l, const struct lake_item *item)
{
    FILE *f = fopen(object_path(l->p, item), "r+");
    assert_non_null(f);
    fputc('#', f);
    fclose(f);
    set_age(object_path(l->p, item), OLD_S);
}

/* A row with this id, among the others where it belongs. */
static struct artifact_view *row(struct pool *l, int64_t id, const struct lake_item *item)
{
    size_t at = l->n;
    assert_true(l->n < ROWS_MAX);
    while (at && l->rows[at - 1].id > id)
        at--;
    memmove(&l->rows[at + 1], &l->rows[at], (l->n++ - at) * sizeof(*l->rows));
    l->rows[at] = (struct artifact_view){.id = id, .job = {id}, .a = artifact_of(item)};
    l->rows[at].a.place = sv_of(arena_strndup(&l->arena, item->place, strlen(item->place)));
    return &l->rows[at];
}

static void look(struct pool *l)
{
    struct pond *p = l->p;
    OK(verify_rows(&l->v, &p->e));
    if (!l->v.lake)
        OK(cli_lake(&l->c, &l->v.lake, &p->e));
    OK(verify_lake(&l->v, &p->e));
}

static void repair(struct pool *l)
{
    struct pond *p = l->p;
    OK(verify_repair(&l->v, &p->e));
}

static void assert_found(const struct pool *l, int64_t missing, int64_t damaged, int64_t orphans)
{
    assert_int_equal(l->v.count[FOUND_MISSING], missing);
    assert_int_equal(l->v.count[FOUND_DAMAGED], damaged);
    assert_int_equal(l->v.count[FOUND_ORPHAN], orphans);
    assert_int_equal(l->v.n, missing + damaged + orphans);
}

static void an_orphan_goes_and_shared_bytes_stay(void **state)
{
    struct pool *l = *state;
    struct lake_item shared = object(l, "shared"), orphan = object(l, "orphan");
    row(l, 1, &shared);
    row(l, 2, &shared);
    look(l);
    assert_found(l, 0, 0, 1);
    repair(l);
    assert_false(is_there(l, &orphan));
    assert_true(is_there(l, &shared));
    assert_int_equal(l->v.repaired.removed, 1);
    assert_int_equal(l->v.repaired.left, 0);
}

/* All is well: nobody asks a second time. */
static void without_orphans_rows_are_read_once(void **state)
{
    struct pool *l = *state;
    struct lake_item item = object(l, "x");
    for (int64_t id = 1; id <= 4500; id++)
        row(l, id, &item);
    look(l);
    assert_found(l, 0, 0, 0);
    assert_int_equal(l->v.checked, 4500);
    assert_int_equal(l->passes, 1);
}

/* Of the last page, and one of many pages whose bytes nobody has. */
static void more_rows_than_a_page(void **state)
{
    struct pool *l = *state;
    struct lake_item item = object(l, "x"), last = object(l, "last"), orphan = object(l, "orphan");
    for (int64_t id = 1; id <= 4500; id++)
        row(l, id, &item);
    row(l, 4501, &last);
    look(l);
    assert_found(l, 0, 0, 1);
    repair(l);
    assert_false(is_there(l, &orphan));
    assert_true(is_there(l, &item));
    assert_true(is_there(l, &last));
}

/* More objects without a row than are judged at a time, some with one among them. */
static void more_objects_than_are_judged_at_a_time(void **state)
{
    enum { N = 2200, NAMED = N / 20 };
    static int numbers[N];
    struct pool *l = *state;
    struct pond *p = l->p;
    AUTO_FREE struct lake_item *items = mem_zalloc(N, sizeof(*items));
    for (int i = 0; i < N; i++) {
        numbers[i] = i;
        items[i] = body_item(sv_make((const char *)&numbers[i], sizeof(numbers[i])), "image/png");
    }
    OK(lake_keep(p->l, items, N, &p->e));
    for (int i = 0; i < N; i++) {
        set_age(object_path(p, &items[i]), OLD_S);
        if (i % 20 == 0)
            row(l, i + 1, &items[i]);
    }
    look(l);
    assert_found(l, 0, 0, N - NAMED);
    repair(l);
    assert_int_equal(l->v.repaired.removed, N - NAMED);
    assert_int_equal(count_entries(l->p->l, false), NAMED);
}

/* ---- rows that come between ---- */

static void add_row(struct pool *l)
{
    row(l, 9, l->item);
}

static void add_lower_row(struct pool *l)
{
    row(l, 2, l->item);
}

static void move_row(struct pool *l)
{
    l->rows[0].a = artifact_of(l->item);
}

/* Whatever a row does after the rows were read, its object is no orphan. */
static void rows_that_come_while_looking(void **state)
{
    void (*const changes[])(struct pool *) = {add_row, add_lower_row, move_row};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        void *fresh;
        setup(&fresh);
        struct pool *l = fresh;
        struct lake_item first = object(l, "first"), next = object(l, "next"),
                         late = object(l, "late");
        row(l, 1, &first);
        row(l, 3, &next);
        l->item = &late;
        l->at_end = changes[i];
        look(l);
        assert_found(l, 0, 0, 0);
        /* One that follows the others needs no second pass. */
        assert_int_equal(l->passes, changes[i] == add_row ? 1 : 2);
        repair(l);
        assert_true(is_there(l, &late));
        teardown(&fresh);
    }
    (void)state;
}

/* The same after they were found, while somebody thinks about the question. */
static void rows_that_come_before_the_repair(void **state)
{
    void (*const changes[])(struct pool *) = {add_row, add_lower_row, move_row};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        void *fresh;
        setup(&fresh);
        struct pool *l = fresh;
        struct lake_item first = object(l, "first"), next = object(l, "next"),
                         late = object(l, "late"), orphan = object(l, "orphan");
        row(l, 1, &first);
        row(l, 3, &next);
        look(l);
        assert_found(l, 0, 0, 2);
        l->item = &late;
        changes[i](l);
        repair(l);
        assert_true(is_there(l, &late));
        assert_false(is_there(l, &orphan));
        assert_int_equal(l->v.repaired.left, 0);
        teardown(&fresh);
    }
    (void)state;
}

/* As if that pass had begun an hour ago; the bytes were kept again since, and have a row by now. */
static void long_ago(struct pool *l)
{
    l->v.rows_at.us -= DUR_S(3600).us;
    set_age(object_path(l->p, l->item), 1800);
}

static void what_was_kept_since_the_last_pass_stays(void **state)
{
    struct pool *l = *state;
    struct lake_item late = object(l, "late"), orphan = object(l, "orphan");
    look(l);
    assert_found(l, 0, 0, 2);
    l->item = &late;
    l->at_end = long_ago;
    repair(l);
    assert_true(is_there(l, &late));
    assert_false(is_there(l, &orphan));
    assert_int_equal(l->v.repaired.left, 1);
}

/* ---- rows of bytes that are wrong ---- */

static void all_rows_of_a_damaged_object_go_in_a_sample_too(void **state)
{
    struct pool *l = *state;
    struct lake_item good = object(l, "good"), bad = object(l, "bad"), orphan = object(l, "orphan");
    for (int64_t id = 1; id <= 3000; id++)
        row(l, id, id % 2 ? &bad : &good);
    spoil(l, &bad);
    l->v.share = 0.05;
    look(l);
    assert_true(l->v.checked < 3000);
    assert_true(l->v.count[FOUND_DAMAGED] > 0 && l->v.count[FOUND_DAMAGED] < 1500);
    assert_int_equal(l->v.count[FOUND_ORPHAN], 1);
    repair(l);
    assert_false(is_there(l, &bad));
    assert_false(is_there(l, &orphan));
    assert_true(is_there(l, &good));
    assert_int_equal(l->v.repaired.rows, 1500);
    assert_int_equal(l->n, 1500);
}

/* A row of the same bytes that came since goes with them. */
static void rows_of_a_damaged_object_that_came_since(void **state)
{
    struct pool *l = *state;
    struct lake_item bad = object(l, "bad");
    row(l, 1, &bad);
    spoil(l, &bad);
    look(l);
    assert_found(l, 0, 1, 0);
    row(l, 5, &bad);
    repair(l);
    assert_false(is_there(l, &bad));
    assert_int_equal(l->n, 0);
}

static void bytes_that_came_back(void **state)
{
    struct pool *l = *state;
    struct lake_item gone = object(l, "gone");
    row(l, 1, &gone);
    unlink(object_path(l->p, &gone));
    look(l);
    assert_found(l, 1, 0, 0);
    gone = object(l, "gone");
    row(l, 2, &gone);
    repair(l);
    assert_true(is_there(l, &gone));
    assert_int_equal(l->n, 2);
}

/* A row that has moved meanwhile names other bytes, which are good. */
static void a_row_that_moved_is_not_lost(void **state)
{
    struct pool *l = *state;
    struct lake_item gone = object(l, "gone"), other = object(l, "other");
    row(l, 1, &gone);
    row(l, 2, &other);
    unlink(object_path(l->p, &gone));
    look(l);
    assert_found(l, 1, 0, 0);
    l->item = &other;
    move_row(l);
    repair(l);
    assert_int_equal(l->n, 2);
}

/* One row's hash is wrong, not the bytes that others have, too. */
static void a_wrong_row_does_not_take_the_bytes_of_others(void **state)
{
    struct pool *l = *state;
    struct lake_item item = object(l, "item");
    row(l, 1, &item);
    row(l, 2, &item)->a.sha256[0] ^= 1;
    look(l);
    assert_found(l, 0, 1, 0);
    repair(l);
    assert_true(is_there(l, &item));
    assert_int_equal(l->n, 1);
    assert_int_equal(l->rows[0].id, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(an_orphan_goes_and_shared_bytes_stay),
        T(without_orphans_rows_are_read_once),
        T(more_rows_than_a_page),
        T(more_objects_than_are_judged_at_a_time),
        T(rows_that_come_while_looking),
        T(rows_that_come_before_the_repair),
        T(what_was_kept_since_the_last_pass_stays),
        T(all_rows_of_a_damaged_object_go_in_a_sample_too),
        T(rows_of_a_damaged_object_that_came_since),
        T(bytes_that_came_back),
        T(a_row_that_moved_is_not_lost),
        T(a_wrong_row_does_not_take_the_bytes_of_others),
    };
    return cmocka_run_group_tests_name("lake-verify", tests, NULL, NULL);
}
