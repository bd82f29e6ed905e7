/* I10 and I12: nothing has its name before its bytes are durable, nothing is reported before its
 * name is; and with the n-th call failing, for every n, nothing partial has a name, nothing is
 * reported falsely, no descriptor is lost, and the next keep works. */
#include "pond.h"
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t sharing[] = {0, 2}; /* a sync for each, one for all */

/* ---- the group that is kept ---- */

enum { ITEMS = 8, SPOOL = 100000 };
struct batch {
    struct lake_item v[ITEMS];
    struct sv expected[ITEMS];
    char *text, *noise;
    char file[400];
};

static void batch_init(struct pond *p, struct batch *b)
{
    *b = (struct batch){.text = text_bytes(SPOOL + 1), .noise = noise_bytes(SPOOL)};
    snprintf(b->file, sizeof(b->file), "%s/given", p->folder);
    int fd = open(b->file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, b->noise, 5000), 5000);
    close(fd);
    const struct sv expected[ITEMS] = {sv_make(b->noise + 1, 8000), sv_make(b->text, 20000),
                                       sv_make(b->noise, SPOOL),    sv_make(b->text + 1, SPOOL),
                                       sv_make(b->noise, 5000),     sv_make(b->noise + 1, 8000),
                                       sv_make(b->noise + 2, 700),  sv_make(b->noise, 8192)};
    memcpy(b->expected, expected, sizeof(expected));
}

static void batch_done(struct batch *b)
{
    free(b->text);
    free(b->noise);
}

/* Plain, compressed, spools of both kinds, a file, a twin, one that is there, and noise that does
 * not get smaller. -code: a spool could not be filled. */
static int batch_fill(struct lake *l, struct batch *b, struct pawl_err *err)
{
    static const char *const types[ITEMS] = {NULL, "text/html", NULL, "text/css",
                                             NULL, "image/png", NULL, "text/plain"};
    int rc = 0;
    for (int i = 0; i < ITEMS; i++)
        b->v[i] = body_item(b->expected[i], types[i]);
    b->v[4].body = SV_NONE;
    b->v[4].file = b->file;
    for (int i = 2; rc == 0 && i <= 3; i++) {
        b->v[i].body = SV_NONE;
        rc = lake_spool_open(l, &b->v[i].spool, err);
        if (rc == 0)
            rc = lake_spool_write(b->v[i].spool, b->expected[i], err);
    }
    for (int i = 2; rc < 0 && i <= 3; i++) {
        lake_spool_drop(b->v[i].spool);
        b->v[i].spool = NULL;
    }
    return rc;
}

/* ---- what must be true afterwards ---- */

static ino_t ino_at(struct pond *p, const char *below, int n)
{
    char path[600];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%.*s", p->path, n, below);
    if (stat(path, &st) < 0)
        fail_msg("%s is not there", path);
    return st.st_ino;
}

/* Would a power cut now leave what was reported? */
static bool is_durable(struct pond *p, const struct lake_item *item)
{
    char below[PLACE_MAX_BYTES + 16];
    snprintf(below, sizeof(below), "objects/%s", item->place + strlen("files/"));
    return !probe_file_dirty(ino_at(p, below, (int)strlen(below))) &&
           !probe_folder_dirty(ino_at(p, below, (int)strlen("objects/ab"))) &&
           !probe_folder_dirty(ino_at(p, below, (int)strlen("objects")));
}

/* Every object is whole: named by the hash of what it holds. */
static bool check_object(void *arg, const struct lake_entry *e)
{
    struct pond *p = arg;
    if (e->temporary)
        return true;
    struct artifact a = {.place = sv_of(e->place),
                         .codec = strstr(e->place, ".zst") ? CODEC_ZSTD : CODEC_NONE};
    memcpy(a.sha256, e->sha256, SHA256_LEN);
    static const int sizes[] = {8000, 20000, SPOOL, 5000, 700, 8192, 7};
    enum lake_verdict v = LAKE_DAMAGED;
    const char *why = "";
    for (size_t i = 0; v != LAKE_GOOD && i < ARRAY_LEN(sizes); i++) {
        a.size = sizes[i];
        OK(lake_check(p->l, &a, &v, &why, &p->e));
    }
    if (v != LAKE_GOOD)
        fail_msg("%s is partial: %s", e->place, why);
    return true;
}

static void assert_true_reports(struct pond *p, struct batch *b, int rc)
{
    for (int i = 0; i < ITEMS; i++) {
        const struct lake_item *item = &b->v[i];
        assert_null(item->spool);
        assert_true(rc == 0 || item->rc == rc);
        if (item->rc < 0) {
            assert_int_equal(item->place[0] == '\0', true);
            assert_true(item->err.msg[0]);
            continue;
        }
        assert_reads(p->l, item, b->expected[i]);
        if (!is_durable(p, item))
            fail_msg("item %d was reported and is not durable", i);
    }
}

/* ---- the order ---- */

static struct lake *probe_open(struct pond *p, size_t share)
{
    struct lake_options o = pond_options(p);
    struct lake *l;
    OK(lake_open_on(&probe_disk, share, &o, &l, &p->e));
    return l;
}

/* One batch on an empty lake. */
static void keep_batch(struct pond *p, struct batch *b, size_t share)
{
    struct lake *l = probe_open(p, share);
    OK(batch_fill(l, b, &p->e));
    OK(lake_keep(l, b->v, ITEMS, &p->e));
    lake_close(l);
}

static void test_order(void **state)
{
    struct pond *p = *state;
    for (size_t s = 0; s < ARRAY_LEN(sharing); s++) {
        struct batch b;
        batch_init(p, &b);
        probe_reset();
        keep_batch(p, &b, sharing[s]);
        for (int i = 0; i < ITEMS; i++)
            assert_int_equal(b.v[i].rc, 0);
        assert_null(probe.named_early);
        assert_true_reports(p, &b, 0);
        assert_int_equal(probe.counts[OP_SYNC_ALL], sharing[s] ? 2 : 0);
        assert_int_equal(probe.counts[OP_SYNC_DATA], sharing[s] ? 0 : ITEMS - 1);
        /* What was found is reported after a sync of its folder, too. */
        probe_reset();
        keep_batch(p, &b, sharing[s]);
        assert_true(b.v[0].shared);
        assert_int_equal(probe.counts[OP_RENAME], 0);
        assert_int_equal(probe.counts[OP_SYNC_ALL], sharing[s] ? 1 : 0);
        assert_true(sharing[s] || probe.counts[OP_SYNC_FOLDER] > 3);
        batch_done(&b);
    }
}

/* The checker above, with syncs that do nothing: it has to notice each of them. */
static void test_checker_sees_missing_syncs(void **state)
{
    struct pond *p = *state;
    const struct {
        enum probe_op op;
        size_t share;
        bool early; /* noticed at the rename */
    } cases[] = {{OP_SYNC_DATA, 0, true}, {OP_SYNC_FOLDER, 0, false}, {OP_SYNC_ALL, 2, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct batch b;
        int bad = 0;
        batch_init(p, &b);
        probe_reset();
        probe.lie[cases[i].op] = true;
        keep_batch(p, &b, cases[i].share);
        for (int k = 0; k < ITEMS; k++)
            bad += !is_durable(p, &b.v[k]);
        assert_int_equal(bad, ITEMS);
        assert_int_equal(probe.named_early != NULL, cases[i].early);
        batch_done(&b);
    }
}

/* ---- the n-th call fails ---- */

static const struct {
    int with;
    bool stays, torn;
} faults[] = {{EIO, false, false}, {ENOSPC, true, true}, {EDQUOT, false, true}};

static int attempt(struct pond *p, struct batch *b, size_t share)
{
    struct lake_options o = pond_options(p);
    struct lake *l = NULL;
    struct pawl_err e = {0};
    int rc = lake_open_on(&probe_disk, share, &o, &l, &e);
    assert_true(rc == 0 || l == NULL);
    if (rc == 0)
        rc = batch_fill(l, b, &e);
    if (rc == 0) {
        rc = lake_keep(l, b->v, ITEMS, &e);
        probe.fail_at = 0; /* from here on it is only looked at */
        assert_true_reports(p, b, rc);
    }
    probe.fail_at = 0;
    lake_close(l);
    assert_true(rc == 0 || (rc == e.code && e.msg[0]));
    return rc;
}

static bool remove_leftover(void *arg, const struct lake_entry *e)
{
    struct pond *p = arg;
    bool removed = true;
    if (e->temporary)
        OK(lake_remove(p->l, e->place, DUR_US(0), &removed, &p->e));
    assert_true(removed);
    return true;
}

/* The next round starts empty, and has little to look through. */
static bool remove_any(void *arg, const struct lake_entry *e)
{
    struct pond *p = arg;
    bool removed;
    OK(lake_remove(p->l, e->place, DUR_US(0), &removed, &p->e));
    assert_true(removed);
    return true;
}

static void assert_clean(struct pond *p)
{
    OK(lake_scan(p->l, check_object, p, &p->e));
    assert_null(probe.named_early);
    if (probe.unlink_failed) /* then one may have stayed; it can be found and removed */
        OK(lake_scan(p->l, remove_leftover, p, &p->e));
    assert_int_equal(count_entries(p->l, true), 0);
}

/* Every failure is told as what it is. */
static void assert_codes(const struct batch *b, int rc, int with)
{
    int code = with == EIO ? PAWL_EIO : PAWL_EFULL;
    assert_true(rc == 0 || rc == code);
    for (int i = 0; rc == 0 && i < ITEMS; i++)
        /* A file that cannot be opened is the job's, as far as one can tell. */
        assert_true(b->v[i].rc == 0 || b->v[i].rc == code ||
                    (b->v[i].file && b->v[i].rc == PAWL_EINPUT));
}

static bool one_fault(struct pond *p, size_t fault, size_t share, int n)
{
    struct batch b;
    batch_init(p, &b);
    OK(lake_keep(p->l, &(struct lake_item){.body = SV("present")}, 1, &p->e));
    int before = count_fds();
    probe_reset();
    probe.fail_at = n;
    probe.with = faults[fault].with;
    probe.stays = faults[fault].stays;
    probe.torn = faults[fault].torn;
    int rc = attempt(p, &b, share);
    assert_codes(&b, rc, faults[fault].with);
    assert_int_equal(count_fds(), before);
    assert_clean(p);
    bool fired = probe.fired;
    assert_true(fired || rc == 0);
    probe_reset();
    assert_int_equal(attempt(p, &b, share), 0);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(b.v[i].rc, 0);
    OK(lake_scan(p->l, remove_any, p, &p->e));
    batch_done(&b);
    return fired;
}

static void test_nth_call_fails(void **state)
{
    struct pond *p = *state;
    lake_close(p->l);
    p->l = probe_open(p, 0); /* looks afterwards; faults are off then */
    for (size_t s = 0; s < ARRAY_LEN(sharing); s++)
        for (size_t f = 0; f < 2; f++) {
            int n = 1;
            while (one_fault(p, f, sharing[s], n))
                assert_true(++n < 500);
            print_message("# %d calls failed one by one, share %zu, errno %d\n", n - 1, sharing[s],
                          faults[f].with);
            assert_true(n > 60);
        }
    assert_true(one_fault(p, 2, 0, 40)); /* told like a full disk; the rest is the same */
}

/* ---- a disk that is full ---- */

static void test_full_disk(void **state)
{
    struct pond *p = *state;
    char small[400];
    snprintf(small, sizeof(small), "%s/small", p->folder);
    assert_int_equal(mkdir(small, 0700), 0);
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("pawl", small, "tmpfs", 0, "size=2m") < 0) {
        print_message("# no mount here: %s\n", strerror(errno));
        skip();
    }
    lake_close(p->l);
    p->l = NULL;
    snprintf(p->path, sizeof(p->path), "%s/lake", small);
    struct lake_options o = pond_options(p);
    OK(lake_open(&o, &p->l, &p->e));
    AUTO_FREE char *noise = noise_bytes(3 << 20);
    struct lake_item v[] = {body_item(sv_make(noise, 3 << 20), NULL),
                            body_item(sv_make(noise, 3 << 20), "text/html"),
                            body_item(sv_make(noise, 1000), NULL)};
    OK(lake_keep(p->l, v, 3, &p->e));
    assert_int_equal(v[0].rc, PAWL_EFULL);
    assert_int_equal(v[1].rc, PAWL_EFULL);
    assert_int_equal(v[2].rc, 0);
    assert_int_equal(count_entries(p->l, true), 0);
    struct lake_spool *s;
    OK(lake_spool_open(p->l, &s, &p->e));
    assert_int_equal(lake_spool_write(s, sv_make(noise, 3 << 20), &p->e), PAWL_EFULL);
    assert_int_equal(lake_spool_write(s, SV("x"), &p->e), PAWL_EFULL);
    struct lake_item broken = {.spool = s};
    OK(lake_keep(p->l, &broken, 1, &p->e));
    assert_int_equal(broken.rc, PAWL_EFULL);
    assert_int_equal(count_entries(p->l, true), 0);
    struct lake_item fits = keep(p, body_item(sv_make(noise, 1 << 20), NULL));
    assert_reads(p->l, &fits, sv_make(noise, 1 << 20));
    lake_close(p->l);
    p->l = NULL;
    assert_int_equal(umount2(small, MNT_DETACH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, pond_setup, pond_teardown)
        T(test_order),
        T(test_checker_sees_missing_syncs),
        T(test_nth_call_fails),
        T(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
