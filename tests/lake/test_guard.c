/* Links and strangers in the lake, what may be deleted, and a remover that meets a writer. */
#include "pond.h"
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct dur HOUR = DUR_S(3600);

/* ---- whose it is ---- */

static int open_as(const struct pond *p, const char *owner, bool create, struct pawl_err *err)
{
    struct lake_options o = pond_options(p);
    struct lake *l = NULL;
    o.owner = owner;
    o.create = create;
    int rc = lake_open(&o, &l, err);
    lake_close(l);
    return rc;
}

static void assert_owner(struct pond *p, const char *owner)
{
    char now[LAKE_OWNER];
    OK(lake_owner(p->l, now, &p->e));
    assert_string_equal(now, owner);
}

static void test_a_lake_is_one_stores(void **state)
{
    struct pond *p = *state;
    char lock[400];
    assert_owner(p, "");
    OK(open_as(p, "one", false, &p->e)); /* who makes nothing takes nothing */
    assert_owner(p, "");
    OK(open_as(p, "one", true, &p->e));
    assert_owner(p, "one");
    OK(open_as(p, "one", true, &p->e));
    OK(open_as(p, NULL, true, &p->e)); /* a reader */
    for (int create = 0; create < 2; create++) {
        assert_int_equal(open_as(p, "another", create, &p->e), PAWL_ECONFLICT);
        assert_int_equal(open_as(p, "on", create, &p->e), PAWL_ECONFLICT);
    }
    assert_owner(p, "one");
    OK(lake_adopt(p->l, "another one", &p->e));
    assert_owner(p, "another one");
    assert_int_equal(open_as(p, "one", true, &p->e), PAWL_ECONFLICT);
    /* What a crash left of the line says nothing. */
    snprintf(lock, sizeof(lock), "%s/lake.lock", p->path);
    assert_int_equal(truncate(lock, 9), 0);
    assert_owner(p, "");
    OK(open_as(p, "one", true, &p->e));
    assert_owner(p, "one");
}

/* ---- planted ---- */

/* `code` tells whose trouble it is: of the object alone (CORRUPT), or of the lake (IO). */
static void assert_refused(struct pond *p, const struct lake_item *item, int code, const char *says)
{
    struct lake_item again = body_item(SV("planted"), NULL);
    OK(lake_keep(p->l, &again, 1, &p->e));
    assert_int_equal(again.rc, code);
    if (!strstr(again.err.msg, says))
        fail_msg("said \"%s\"", again.err.msg);
    struct artifact a = artifact_of(item);
    bool (*never)(void *, struct sv) = NULL, there = false;
    assert_int_equal(lake_read(p->l, &a, never, NULL, &p->e), PAWL_EIO);
    assert_int_equal(lake_touch(p->l, item->place, &there, &p->e), PAWL_EIO);
    assert_int_equal(lake_remove(p->l, item->place, DUR_US(0), &there, &p->e), PAWL_EIO);
    assert_verdict(p->l, item, LAKE_DAMAGED, "not a regular file");
}

static void test_planted_links_are_refused(void **state)
{
    struct pond *p = *state;
    char secret[400], folder[600], moved[400];
    struct lake_item item = keep(p, body_item(SV("planted"), NULL));
    const char *object = object_path(p, &item);
    snprintf(secret, sizeof(secret), "%s/secret", p->folder);
    assert_int_equal(rename(object, secret), 0);
    set_age(secret, 7200);
    assert_int_equal(symlink(secret, object), 0);
    assert_refused(p, &item, PAWL_ECORRUPT, "symbolic link");
    assert_int_equal(access(secret, F_OK), 0);

    assert_int_equal(unlink(object), 0);
    assert_int_equal(mkfifo(object, 0600), 0);
    assert_refused(p, &item, PAWL_ECORRUPT, "not a regular file");
    OK(lake_try(p->l, 1, &p->e)); /* the lake takes everything else */
    assert_int_equal(unlink(object), 0);

    /* The folder itself. */
    snprintf(moved, sizeof(moved), "%s/moved", p->folder);
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(object, '/') - object), object);
    assert_int_equal(rename(folder, moved), 0);
    assert_int_equal(symlink(moved, folder), 0);
    assert_refused(p, &item, PAWL_EIO, "symbolic link");
    assert_int_equal(lake_try(p->l, 1, &p->e), PAWL_EIO);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(rename(moved, folder), 0);
    item = keep(p, body_item(SV("planted"), NULL));
    assert_reads(p->l, &item, SV("planted"));
    assert_int_equal(count_entries(p->l, true), 0);
}

/* ---- tried out ---- */

static void test_trial_leaves_nothing(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pond_options(p);
    struct lake *l;
    int n = 1;
    keep(p, body_item(SV("there is a folder"), NULL));
    OK(lake_open_on(&probe_disk, 0, &o, &l, &p->e));
    for (probe_reset(); !probe.unlink_failed; n++) { /* which is the last call of all */
        probe_reset();
        probe.fail_at = n;
        probe.with = EACCES;
        int rc = lake_try(l, 100000, &p->e);
        probe.fail_at = 0;
        assert_true(probe.fired);
        assert_int_equal(rc, probe.unlink_failed ? 0 : PAWL_EIO);
        assert_int_equal(count_entries(p->l, true), probe.unlink_failed);
    }
    assert_true(probe.counts[OP_WRITABLE] >= 2 && probe.counts[OP_SYNC_DATA] == 1);
    assert_true(n > 8);
    lake_close(l);
}

static void test_trial_finds_a_lake_that_has_gone(void **state)
{
    struct pond *p = *state;
    char objects[400], moved[400];
    snprintf(objects, sizeof(objects), "%s/objects", p->path);
    snprintf(moved, sizeof(moved), "%s/moved", p->folder);
    OK(lake_try(p->l, 1, &p->e));
    assert_int_equal(rename(objects, moved), 0);
    assert_int_equal(lake_try(p->l, 1, &p->e), PAWL_EIO);
    assert_int_equal(rename(moved, objects), 0);
    OK(lake_try(p->l, 1, &p->e));
}

/* The call underneath, with what no name of the lake looks like. */
static void test_nothing_leads_out(void **state)
{
    struct pond *p = *state;
    char link[400];
    const char *const bad[] = {"..", "../lake", "/etc", "objects/../..", "link/x", "link"};
    int root = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(link, sizeof(link), "%s/link", p->path);
    assert_int_equal(symlink("objects", link), 0);
    snprintf(link, sizeof(link), "%s/objects/x", p->path);
    assert_int_equal(mkdir(link, 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int fd = disk_real.open(root, bad[i], O_RDONLY);
        if (fd >= 0)
            fail_msg("%s was opened", bad[i]);
        assert_true(errno == EXDEV || errno == ELOOP);
    }
    close(root);
}

static void test_places_are_strict(void **state)
{
    struct pond *p = *state;
    struct lake_item item = keep(p, body_item(SV("x"), NULL));
    char other[PLACE_MAX_BYTES + 1], upper[PLACE_MAX_BYTES + 1];
    snprintf(other, sizeof(other), "%s", item.place);
    other[6] = other[6] == '0' ? '1' : '0';
    snprintf(upper, sizeof(upper), "%s", item.place);
    for (char *c = upper + 6; *c; c++)
        *c = *c >= 'a' && *c <= 'f' ? (char)(*c - 32) : *c;
    const char *const bad[] = {"",        "files/",     "files/../x", "/etc/passwd", "tmp/",
                               "tmp/../", "README",     "lake.lock",  "files/ab/cd", other,
                               upper,     "tmp/abcdef", "tmp"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bool removed = true;
        assert_int_equal(lake_remove(p->l, bad[i], DUR_US(0), &removed, &p->e), PAWL_EINPUT);
        assert_int_equal(lake_touch(p->l, bad[i], &removed, &p->e), PAWL_EINPUT);
    }
    assert_reads(p->l, &item, SV("x"));
}

/* ---- scan, touch, remove ---- */

static bool remove_each(void *arg, const struct lake_entry *e)
{
    struct pond *p = arg;
    bool removed;
    OK(lake_remove(p->l, e->place, HOUR, &removed, &p->e));
    assert_int_equal(removed, e->age.us >= HOUR.us);
    return true;
}

static bool stop_scan(void *arg, const struct lake_entry *e)
{
    (void)e;
    ++*(int *)arg;
    return false;
}

static void test_scan_and_remove(void **state)
{
    struct pond *p = *state;
    char path[600];
    AUTO_FREE char *text = text_bytes(5000);
    struct lake_item young = keep(p, body_item(SV("young"), NULL));
    struct lake_item old = keep(p, body_item(SV("old"), NULL));
    struct lake_item small = keep(p, body_item(sv_make(text, 5000), "text/html"));
    set_age(object_path(p, &old), 7200);
    set_age(object_path(p, &small), 7200);
    /* Strangers are neither shown nor touched. */
    const char *const strange[] = {"objects/notes", "objects/ab", "objects/zz", "tmp/x", "own"};
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        snprintf(path, sizeof(path), "%s/%s", p->path, strange[i]);
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    snprintf(path, sizeof(path), "%s~", object_path(p, &young));
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(count_entries(p->l, false), 3);
    int calls = 0;
    OK(lake_scan(p->l, stop_scan, &calls, &p->e));
    assert_int_equal(calls, 1);

    OK(lake_scan(p->l, remove_each, p, &p->e));
    assert_int_equal(count_entries(p->l, false), 1);
    assert_reads(p->l, &young, SV("young"));
    assert_verdict(p->l, &old, LAKE_MISSING, "");
    bool there = true, removed = true;
    OK(lake_touch(p->l, old.place, &there, &p->e));
    assert_false(there);
    OK(lake_remove(p->l, old.place, DUR_US(0), &removed, &p->e));
    assert_false(removed);
    assert_int_equal(access(path, F_OK), 0);
}

/* Kept again or touched: as safe as new. */
static void test_touching_makes_young(void **state)
{
    struct pond *p = *state;
    bool there, removed;
    struct lake_item item = keep(p, body_item(SV("x"), NULL));
    set_age(object_path(p, &item), 7200);
    OK(lake_touch(p->l, item.place, &there, &p->e));
    assert_true(there);
    OK(lake_remove(p->l, item.place, HOUR, &removed, &p->e));
    assert_false(removed);
    set_age(object_path(p, &item), 7200);
    item = keep(p, body_item(SV("x"), NULL));
    assert_true(item.shared);
    OK(lake_remove(p->l, item.place, HOUR, &removed, &p->e));
    assert_false(removed);
    set_age(object_path(p, &item), -7200); /* from the future */
    OK(lake_remove(p->l, item.place, HOUR, &removed, &p->e));
    assert_false(removed);
}

struct found_temp {
    char place[64];
    int n;
};

static bool find_temp(void *arg, const struct lake_entry *e)
{
    struct found_temp *f = arg;
    if (e->temporary) {
        f->n++;
        snprintf(f->place, sizeof(f->place), "%s", e->place);
    }
    return true;
}

/* An unfinished file belongs to its writer however old it is; a dead one's can be removed. */
static void test_spools_and_leftovers(void **state)
{
    struct pond *p = *state;
    struct found_temp f = {0};
    bool removed;
    struct lake_item item = spool_item(p, SV("a slow download"), NULL);
    OK(lake_scan(p->l, find_temp, &f, &p->e));
    assert_int_equal(f.n, 1);
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", p->path, f.place);
    set_age(path, 7200);
    OK(lake_remove(p->l, f.place, HOUR, &removed, &p->e));
    assert_false(removed);
    item = keep(p, item);
    OK(lake_remove(p->l, item.place, HOUR, &removed, &p->e)); /* its age counts from the keep */
    assert_false(removed);
    assert_reads(p->l, &item, SV("a slow download"));

    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* as a crash leaves one */
    assert_true(fd >= 0);
    close(fd);
    OK(lake_remove(p->l, f.place, HOUR, &removed, &p->e));
    assert_false(removed);
    set_age(path, 7200);
    OK(lake_remove(p->l, f.place, HOUR, &removed, &p->e));
    assert_true(removed);
    item = spool_item(p, SV("dropped"), NULL);
    lake_spool_drop(item.spool);
    assert_int_equal(count_entries(p->l, true), 0);
}

/* ---- a remover and a writer ---- */

/* Which calls are made under which lock, tried with a descriptor of somebody else. */
static int watch_fd = -1;
static char held[N_OPS]; /* what each kind of call saw: '-' free, 's' shared, 'x' exclusive */

static void see_lock(enum probe_op op)
{
    char now = '-';
    if (flock(watch_fd, LOCK_EX | LOCK_NB) < 0)
        now = flock(watch_fd, LOCK_SH | LOCK_NB) < 0 ? 'x' : 's';
    flock(watch_fd, LOCK_UN);
    held[op] = now;
}

static void test_what_is_locked(void **state)
{
    struct pond *p = *state;
    char path[400];
    struct lake_options o = pond_options(p);
    struct lake *l;
    bool removed;
    probe_reset();
    snprintf(path, sizeof(path), "%s/lake.lock", p->path);
    watch_fd = open(path, O_RDWR | O_CLOEXEC);
    OK(lake_open_on(&probe_disk, 0, &o, &l, &p->e));
    struct lake_item item = body_item(SV("x"), NULL);
    probe.before = see_lock;
    OK(lake_keep(l, &item, 1, &p->e));
    assert_int_equal(item.rc, 0);
    assert_int_equal(held[OP_TOUCH], 0); /* it was made a moment ago */
    assert_int_equal(held[OP_RENAME], 's');
    assert_int_equal(held[OP_WRITE], '-');
    assert_int_equal(held[OP_SYNC_DATA], '-');
    assert_int_equal(held[OP_SYNC_FOLDER], '-');
    memset(held, 0, sizeof(held));
    OK(lake_keep(l, &item, 1, &p->e));
    assert_true(item.shared);
    assert_int_equal(held[OP_STAT], 's');
    assert_int_equal(held[OP_TOUCH], 's');
    OK(lake_remove(l, item.place, DUR_US(0), &removed, &p->e));
    assert_true(removed);
    assert_int_equal(held[OP_STAT], 'x');
    assert_int_equal(held[OP_UNLINK], 'x');
    lake_close(l);
    close(watch_fd);
}

enum { ROUNDS = 300 };
struct race {
    struct pond *p;
    pthread_barrier_t start, end;
    struct lake_item item[2];
    char place[PLACE_MAX_BYTES + 1];
    int removed;
};

static void race_body(int round, char out[32])
{
    snprintf(out, 32, "round %d", round);
}

static void *remover(void *arg)
{
    struct race *r = arg;
    struct lake_options o = pond_options(r->p);
    struct pawl_err e = {0};
    struct lake *l = NULL;
    if (lake_open(&o, &l, &e) < 0)
        abort();
    for (int i = 0; i < ROUNDS; i++) {
        bool gone = false;
        pthread_barrier_wait(&r->start);
        if (lake_remove(l, r->place, HOUR, &gone, &e) < 0)
            abort();
        r->removed += gone;
        pthread_barrier_wait(&r->end);
    }
    lake_close(l);
    return NULL;
}

/* An old object that nobody needs is removed while the same bytes come again: whoever is first,
 * what was reported as kept is there. */
static void test_remover_meets_writer(void **state)
{
    struct pond *p = *state;
    struct race r = {.p = p};
    pthread_t thread;
    char text[32];
    pthread_barrier_init(&r.start, NULL, 2);
    pthread_barrier_init(&r.end, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, remover, &r), 0);
    lake_close(p->l);
    probe_reset();
    struct lake_options o = pond_options(p);
    OK(lake_open_on(&probe_disk, 0, &o, &p->l, &p->e)); /* without the syncs: more rounds */
    for (int i = 0; i < ROUNDS; i++) {
        race_body(i, text);
        struct lake_item item = keep(p, body_item(sv_of(text), NULL));
        memcpy(r.place, item.place, sizeof(r.place));
        set_age(object_path(p, &item), 7200);
        pthread_barrier_wait(&r.start);
        item = keep(p, body_item(sv_of(text), NULL));
        pthread_barrier_wait(&r.end);
        assert_reads(p->l, &item, sv_of(text));
    }
    pthread_join(thread, NULL);
    print_message("# the remover was first in %d of %d rounds\n", r.removed, ROUNDS);
    assert_int_equal(count_entries(p->l, false), ROUNDS);
    assert_int_equal(count_entries(p->l, true), 0);
}

/* Several handles keep the same bodies at the same time: one object each, all reports true. */
static void *same_writer(void *arg)
{
    struct race *r = arg;
    struct lake_options o = pond_options(r->p);
    struct pawl_err e = {0};
    struct lake *l = NULL;
    char text[50][32];
    if (lake_open(&o, &l, &e) < 0)
        abort();
    for (int round = 0; round < 4; round++) {
        struct lake_item v[50];
        for (int i = 0; i < 50; i++) {
            race_body(round * 50 + i, text[i]);
            v[i] = body_item(sv_of(text[i]), NULL);
        }
        pthread_barrier_wait(&r->start);
        if (lake_keep(l, v, 50, &e) < 0)
            abort();
        for (int i = 0; i < 50; i++) {
            enum lake_verdict verdict;
            const char *why;
            struct artifact a = artifact_of(&v[i]);
            if (v[i].rc < 0 || lake_check(l, &a, &verdict, &why, &e) < 0 || verdict != LAKE_GOOD)
                abort();
        }
    }
    lake_close(l);
    return NULL;
}

static void test_writers_of_the_same(void **state)
{
    struct pond *p = *state;
    struct race r = {.p = p};
    pthread_t threads[3];
    pthread_barrier_init(&r.start, NULL, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, same_writer, &r), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_entries(p->l, false), 200);
    assert_int_equal(count_entries(p->l, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, pond_setup, pond_teardown)
        T(test_a_lake_is_one_stores), T(test_planted_links_are_refused),
        T(test_trial_leaves_nothing), T(test_trial_finds_a_lake_that_has_gone),
        T(test_nothing_leads_out),    T(test_places_are_strict),
        T(test_scan_and_remove),      T(test_touching_makes_young),
        T(test_spools_and_leftovers), T(test_what_is_locked),
        T(test_remover_meets_writer), T(test_writers_of_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
