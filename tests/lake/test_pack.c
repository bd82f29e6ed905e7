/* The packed lake: what comes back, what equal bodies become, one writer for each segment, what a
 * cut and a copy leave; and with the n-th call failing, for every n, nothing false is reported. */
#include "pond.h"
#include "probe.h"

#include "pack.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lake_options pack_options(const struct pond *p)
{
    struct lake_options o = pond_options(p);
    o.mode = LAKE_PACK;
    return o;
}

static int pack_setup(void **state)
{
    int rc = pond_setup(state);
    struct pond *p = *state;
    struct lake_options o = pack_options(p);
    lake_close(p->l);
    OK(lake_open(&o, &p->l, &p->e));
    return rc;
}

static const struct exchange from = {.uri = {"http://a.example/x y", 20},
                                     .request = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27},
                                     .response = {"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", 25},
                                     .address = {"127.0.0.1", 9}};

static struct lake_item page(struct sv body)
{
    struct lake_item i = body_item(body, "text/html");
    i.from = &from;
    return i;
}

static const char *path_of(const struct pond *p, const char *segment)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s/segments/%s" SEGMENT_ENDING, p->path, segment);
    return path;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 ? -1 : st.st_size;
}

static struct lake_span span_of(const struct lake_item *i, int which)
{
    struct lake_span s[2];
    assert_true(lake_spans(sv_of(i->place), s) > which);
    return s[which];
}

static int count_segments(struct pond *p)
{
    char folder[700];
    int n = 0;
    snprintf(folder, sizeof(folder), "%s/segments", p->path);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, SEGMENT_ENDING) != NULL;
    if (d)
        closedir(d);
    return n;
}

static struct lake *open_watched(struct pond *p)
{
    struct lake_options o = pack_options(p);
    struct lake *l = NULL;
    probe_reset();
    OK(lake_open_on(&probe_disk, 0, &o, &l, &p->e));
    return l;
}

/* ---- what comes back ---- */

static void everything_comes_back(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *noise = noise_bytes(3 << 20), *text = text_bytes(3 << 20);
    const size_t sizes[] = {0, 1, 511, 65535, 65536, 200000, 3 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct lake_item v[] = {
            page(sv_make(noise, sizes[i])), body_item(sv_make(text, sizes[i]), NULL),
            spool_item(p, sv_make(noise + 1, sizes[i] ? sizes[i] - 1 : 0), "text/css")};
        OK(lake_keep(p->l, v, ARRAY_LEN(v), &p->e));
        assert_reads(p->l, &v[0], sv_make(noise, sizes[i]));
        assert_reads(p->l, &v[1], sv_make(text, sizes[i]));
        assert_reads(p->l, &v[2], sv_make(noise + 1, sizes[i] ? sizes[i] - 1 : 0));
    }
    assert_int_equal(count_segments(p), 1);
    assert_int_equal(count_entries(p->l, true), 0);
}

/* Neither what was written nor what was checked: by some megabytes, and the rest at the end. */
static void nothing_is_left_in_memory(void **state)
{
    struct pond *p = *state;
    enum { PAGES = 8, SIZE = 1 << 20 };
    AUTO_FREE char *noise = noise_bytes(SIZE + PAGES);
    struct lake *l = open_watched(p);
    struct lake_item v[PAGES];
    for (size_t i = 0; i < PAGES; i++) {
        v[i] = page(sv_make(noise + i, SIZE));
        v[i].type = SV("image/png");
        OK(lake_keep(l, &v[i], 1, &p->e));
        assert_true(probe.forgotten <= (int64_t)i * (SIZE + 8192));
        assert_true(probe.forgotten >= (int64_t)(i - i % 4) * SIZE);
    }
    lake_close(l);
    assert_int_equal(probe.forgotten, size_of(path_of(p, span_of(&v[0], 0).segment)));
    assert_false(probe.forgotten_early);
    l = open_watched(p);
    for (size_t i = 0; i < PAGES; i++) {
        assert_verdict(l, &v[i], LAKE_GOOD, "");
        assert_true(probe.forgotten <= (int64_t)i * (SIZE + 4096));
        assert_true(probe.forgotten >= (int64_t)(i - i % 4) * SIZE);
    }
    struct lake_span first = span_of(&v[0], 0), last = span_of(&v[PAGES - 1], 0);
    lake_close(l);
    assert_int_equal(probe.forgotten, last.offset + last.length - (first.offset - first.lead));
}

static bool stop(void *arg, struct sv bytes)
{
    (void)arg, (void)bytes;
    return false;
}

static void a_reader_may_have_enough_early(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(1 << 20);
    struct lake_item i = keep(p, page(sv_make(text, 1 << 20)));
    struct artifact a = artifact_of(&i);
    OK(lake_read(p->l, &a, stop, NULL, &p->e));
}

static void types_of_the_list_are_squeezed(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(100000);
    struct lake_item a = keep(p, page(sv_make(text, 100000)));
    struct lake_item b = keep(p, body_item(sv_make(text + 1, 99999), "image/png"));
    assert_true(a.stored < 50000);
    assert_true(b.stored > 99999);
}

static void places_are_read_strictly(void **state)
{
    (void)state;
    struct lake_span s[2];
#define SEG "20260102T030405Z-0123456789abcdef"
    assert_int_equal(lake_spans(SV("pack/" SEG "/500/20/30"), s), 1);
    assert_true(s[0].offset == 500 && s[0].length == 20 && s[0].lead == 30);
    assert_int_equal(lake_spans(SV("pack/" SEG "/500/20+" SEG "/9/9"), s), 2);
    static const char *const bad[] = {
        "pack/" SEG,          "pack/" SEG "/1",      "pack/" SEG "/1/0",  "pack/" SEG "/-1/2",
        "pack/" SEG "/1/2/",  "pack/" SEG "/1/2/3",  "pack/../1/2",       "pack/" SEG "/01/2",
        "pack/x" SEG "/1/2",  "pack/" SEG "/1/2+",   "pack/" SEG "/1/2 ", "files/ab/cd",
        "pack/" SEG "/9/2/0", "pack/" SEG "/1/2/1/1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (lake_spans(sv_of(bad[i]), s))
            fail_msg("%s was taken for a place", bad[i]);
}

/* ---- equal bodies ---- */

static void equal_bodies_are_written_once(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *noise = noise_bytes(100000);
    struct sv body = sv_make(noise, 100000);
    struct lake_item v[] = {page(body), page(body), body_item(body, NULL)};
    OK(lake_keep(p->l, v, ARRAY_LEN(v), &p->e));
    assert_false(v[0].shared);
    assert_true(v[1].shared && v[2].shared);
    assert_string_equal(v[0].place, v[2].place); /* nothing was said about it */
    assert_int_equal(span_of(&v[1], 0).offset, span_of(&v[0], 0).offset);
    assert_true(span_of(&v[1], 1).length < 2000);
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        assert_reads(p->l, &v[i], body);
}

static void what_is_damaged_is_not_shared(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *noise = noise_bytes(5000);
    struct lake_item a = keep(p, page(sv_make(noise, 5000)));
    struct lake_span s = span_of(&a, 0);
    int fd = open(path_of(p, s.segment), O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "!", 1, s.offset + s.length - 2000), 1);
    close(fd);
    assert_verdict(p->l, &a, LAKE_DAMAGED, "damaged");
    struct lake_item b = keep(p, page(sv_make(noise, 5000)));
    assert_false(b.shared);
    assert_reads(p->l, &b, sv_make(noise, 5000));
}

static void what_has_not_changed_is_referred_to(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *noise = noise_bytes(5000);
    struct lake_item a = keep(p, page(sv_make(noise, 5000)));
    struct artifact before = artifact_of(&a);
    struct lake_item b = {.same = &before, .from = &from};
    b = keep(p, b);
    assert_int_equal(lake_spans(sv_of(b.place), (struct lake_span[2]){{{0}}}), 2);
    assert_reads(p->l, &b, sv_make(noise, 5000));
    before.place = SV("pack/20260102T030405Z-0123456789abcdef/500/20");
    struct lake_item c = {.same = &before, .from = &from};
    OK(lake_keep(p->l, &c, 1, &p->e));
    assert_int_equal(c.rc, PAWL_ENOTFOUND);
}

/* ---- one writer ---- */

static void each_handle_has_its_own_segment(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pack_options(p);
    struct lake *other = NULL;
    struct lake_item a = keep(p, page(SV("one"))), b = page(SV("two"));
    OK(lake_open(&o, &other, &p->e));
    OK(lake_keep(other, &b, 1, &p->e));
    assert_string_not_equal(span_of(&a, 0).segment, span_of(&b, 0).segment);
    assert_reads(p->l, &b, SV("two"));
    lake_close(other);
}

/* While it is written nobody gets its lock, so nobody cuts or deletes it, however old it looks. */
static void nobody_touches_a_segment_that_is_written(void **state)
{
    struct pond *p = *state;
    struct lake *other = NULL;
    struct lake_options o = pack_options(p);
    struct lake_item a = keep(p, page(SV("one")));
    struct lake_span s = span_of(&a, 0);
    char place[PLACE_MAX_BYTES];
    bool done = true;
    OK(lake_open(&o, &other, &p->e));
    snprintf(place, sizeof(place), "pack/%s", s.segment);
    set_age(path_of(p, s.segment), 100000);
    OK(lake_cut(other, place, s.offset, DUR_S(60), &done, &p->e));
    assert_false(done);
    OK(lake_remove(other, place, DUR_S(60), &done, &p->e));
    assert_false(done);
    int fd = open(path_of(p, s.segment), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    close(fd);
    lake_close(other);
    assert_reads(p->l, &a, SV("one"));
}

/* Where locks are worth nothing it is still noticed. */
static void a_broken_lock_is_noticed(void **state)
{
    struct pond *p = *state;
    struct lake_item a = keep(p, page(SV("one"))), b = page(SV("two"));
    struct lake_span s = span_of(&a, 0);
    int fd = open(path_of(p, s.segment), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "stranger", 8), 8);
    close(fd);
    assert_int_equal(lake_keep(p->l, &b, 1, &p->e), PAWL_EIO);
    assert_non_null(strstr(p->e.msg, "somebody else"));
    b = keep(p, page(SV("two")));
    assert_string_not_equal(span_of(&b, 0).segment, s.segment);
}

static void writers_of_many_processes(void **state)
{
    struct pond *p = *state;
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            struct lake_options o = pack_options(p);
            struct lake *l = NULL;
            if (lake_open(&o, &l, &p->e) < 0)
                _exit(1);
            for (int k = 0; k < 50; k++) {
                char body[64];
                snprintf(body, sizeof(body), "%d %d", i, k);
                struct lake_item item = page(sv_of(body));
                if (lake_keep(l, &item, 1, &p->e) < 0 || item.rc < 0)
                    _exit(1);
            }
            lake_close(l);
            _exit(0);
        }
    for (int i = 0, status; i < 4; i++)
        assert_true(wait(&status) > 0 && status == 0);
    assert_int_equal(count_segments(p), 4);
}

/* ---- rotation ---- */

static void segments_end_by_size_and_age(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pack_options(p);
    AUTO_FREE char *noise = noise_bytes(5000);
    lake_close(p->l);
    o.segment_bytes = 4000;
    OK(lake_open(&o, &p->l, &p->e));
    struct lake_item a = keep(p, page(sv_make(noise, 5000)));
    struct lake_item b = keep(p, page(sv_make(noise, 4999)));
    assert_string_not_equal(span_of(&a, 0).segment, span_of(&b, 0).segment);
    lake_close(p->l);
    o.segment_bytes = 0;
    o.segment_age = DUR_US(1);
    OK(lake_open(&o, &p->l, &p->e));
    a = keep(p, page(SV("a")));
    b = keep(p, page(SV("b")));
    assert_string_not_equal(span_of(&a, 0).segment, span_of(&b, 0).segment);
    assert_reads(p->l, &a, SV("a"));
}

/* ---- cutting and copying ---- */

static void a_tail_is_cut_when_it_is_old(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pack_options(p);
    struct lake_item a = keep(p, page(SV("one"))), b = keep(p, page(SV("two")));
    struct lake_span s = span_of(&a, 0);
    char place[PLACE_MAX_BYTES];
    bool done = true;
    lake_close(p->l);
    OK(lake_open(&o, &p->l, &p->e));
    snprintf(place, sizeof(place), "pack/%s", s.segment);
    OK(lake_cut(p->l, place, s.offset + s.length, DUR_S(60), &done, &p->e));
    assert_false(done); /* young */
    set_age(path_of(p, s.segment), 100);
    OK(lake_cut(p->l, place, s.offset + s.length, DUR_S(60), &done, &p->e));
    assert_true(done);
    assert_int_equal(size_of(path_of(p, s.segment)), s.offset + s.length);
    assert_reads(p->l, &a, SV("one"));
    assert_verdict(p->l, &b, LAKE_MISSING, "ends before");
    OK(lake_touch(p->l, b.place, &done, &p->e));
    assert_false(done);
    OK(lake_touch(p->l, a.place, &done, &p->e));
    assert_true(done);
    OK(lake_remove(p->l, place, DUR_S(60), &done, &p->e));
    assert_false(done); /* touched */
    set_age(path_of(p, s.segment), 100);
    OK(lake_remove(p->l, place, DUR_S(60), &done, &p->e));
    assert_true(done);
    struct lake *fresh = NULL;
    OK(lake_open(&o, &fresh, &p->e));
    assert_verdict(fresh, &a, LAKE_MISSING, "not there");
    lake_close(fresh);
}

static void copies_are_the_same_bytes(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pack_options(p);
    AUTO_FREE char *noise = noise_bytes(9000);
    struct lake_item a = keep(p, page(sv_make(noise, 9000))), b = keep(p, page(SV("two")));
    struct lake_move v[] = {
        {.from = span_of(&b, 0)}, {.from = span_of(&a, 0)}, {.from = span_of(&a, 0)}};
    v[2].from.offset++;
    lake_close(p->l);
    OK(lake_open(&o, &p->l, &p->e));
    OK(lake_copy(p->l, v, ARRAY_LEN(v), &p->e));
    assert_int_equal(v[0].rc, 0);
    assert_int_equal(v[2].rc, PAWL_ECORRUPT);
    lake_place(&v[0].to, 1, b.place);
    lake_place(&v[1].to, 1, a.place);
    assert_reads(p->l, &a, sv_make(noise, 9000));
    assert_reads(p->l, &b, SV("two"));
    assert_int_equal(size_of(path_of(p, v[1].to.segment)), v[1].to.offset + v[1].to.length);
}

struct seen {
    int n;
    int64_t head;
};

static bool look(void *arg, const struct lake_entry *e)
{
    struct seen *s = arg;
    s->n++;
    assert_true(e->segment && e->busy && !e->temporary);
    assert_int_equal(e->head, s->head);
    return true;
}

static void a_scan_shows_segments(void **state)
{
    struct pond *p = *state;
    struct lake_item a = keep(p, page(SV("one")));
    struct seen seen = {.head = span_of(&a, 0).offset - span_of(&a, 0).lead};
    OK(lake_scan(p->l, look, &seen, &p->e));
    assert_int_equal(seen.n, 1);
}

/* ---- every call fails once ---- */

enum { ITEMS = 4 };
static bool is_durable(struct pond *p, const struct lake_item *item)
{
    struct stat st;
    char folder[600];
    if (stat(path_of(p, span_of(item, 0).segment), &st) < 0)
        return false;
    bool dirty = probe_file_dirty(st.st_ino);
    snprintf(folder, sizeof(folder), "%s/segments", p->path);
    return !dirty && stat(folder, &st) == 0 && !probe_folder_dirty(st.st_ino);
}

/* Returns whether the fault was reached. */
static bool try_with_fault(struct pond *p, int at, bool stays, int with, bool torn)
{
    AUTO_FREE char *noise = noise_bytes(1 << 20);
    const struct sv bodies[ITEMS] = {sv_make(noise, 700000), sv_make(noise + 1, 9000),
                                     sv_make(noise, 700000), sv_make(noise + 2, 600000)};
    struct lake_options o = pack_options(p);
    struct lake *l = NULL;
    int fds = count_fds();
    probe_reset();
    OK(lake_open_on(&probe_disk, 0, &o, &l, &p->e));
    probe.calls = 0;
    probe.fail_at = at;
    probe.stays = stays;
    probe.with = with;
    probe.torn = torn;
    struct lake_item v[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        v[i] = page(bodies[i]);
    int rc = lake_keep(l, v, ITEMS, &p->e), kept = 0;
    bool fired = probe.fired;
    for (int i = 0; i < ITEMS; i++) {
        assert_true(rc == 0 || v[i].rc == rc);
        if (v[i].rc < 0)
            continue;
        kept++;
        assert_true(is_durable(p, &v[i]));
        assert_reads(p->l, &v[i], bodies[i]);
    }
    assert_true(fired || kept == ITEMS);
    probe.fail_at = 0;
    struct lake_item next = page(SV("next"));
    OK(lake_keep(l, &next, 1, &p->e));
    assert_int_equal(next.rc, 0);
    assert_reads(p->l, &next, SV("next"));
    lake_close(l);
    lake_close(p->l); /* it has segments open */
    OK(lake_open(&o, &p->l, &p->e));
    assert_int_equal(count_fds(), fds);
    return fired;
}

static void every_call_may_fail(void **state)
{
    struct pond *p = *state;
    static const struct {
        bool stays, torn;
        int with;
    } ways[] = {{false, false, EIO}, {false, true, ENOSPC}, {true, true, ENOSPC}};
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        for (int at = 1; try_with_fault(p, at, ways[w].stays, ways[w].with, ways[w].torn); at++)
            assert_true(at < 300);
}

/* The checker sees a sync that is missing. */
static void a_missing_sync_is_seen(void **state)
{
    struct pond *p = *state;
    const enum probe_op lies[] = {OP_SYNC_DATA, OP_SYNC_FOLDER};
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct lake *l = open_watched(p);
        probe.lie[lies[i]] = true;
        struct lake_item item = page(SV("x"));
        OK(lake_keep(l, &item, 1, &p->e));
        assert_false(is_durable(p, &item));
        lake_close(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, pack_setup, pond_teardown)
        T(everything_comes_back),
        T(nothing_is_left_in_memory),
        T(a_reader_may_have_enough_early),
        T(types_of_the_list_are_squeezed),
        T(places_are_read_strictly),
        T(equal_bodies_are_written_once),
        T(what_is_damaged_is_not_shared),
        T(what_has_not_changed_is_referred_to),
        T(each_handle_has_its_own_segment),
        T(nobody_touches_a_segment_that_is_written),
        T(a_broken_lock_is_noticed),
        T(writers_of_many_processes),
        T(segments_end_by_size_and_age),
        T(a_tail_is_cut_when_it_is_old),
        T(copies_are_the_same_bytes),
        T(a_scan_shows_segments),
        T(every_call_may_fail),
        T(a_missing_sync_is_seen),
    };
    return cmocka_run_group_tests_name("lake-pack", tests, NULL, NULL);
}
