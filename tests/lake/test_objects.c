/* What is put in comes back, once; what is wrong with an object is told. */
#include "pond.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static void test_round_trips(void **state)
{
    struct pond *p = *state;
    const size_t sizes[] = {0, 1, 8192, 300000, 3 << 20};
    const char *const kinds[] = {NULL, "image/png", "text/html; charset=utf-8"};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            AUTO_FREE char *bytes = k == 1 ? noise_bytes(sizes[i]) : text_bytes(sizes[i]);
            bytes[0] = sizes[i] ? (char)('a' + k) : '\0';
            struct sv body = sv_make(bytes, sizes[i]);
            struct lake_item a = keep(p, body_item(body, kinds[k]));
            assert_reads(p->l, &a, body);
            struct lake_item b = keep(p, spool_item(p, body, kinds[k]));
            assert_reads(p->l, &b, body);
            assert_true(b.shared);
            assert_string_equal(a.place, b.place);
        }
    assert_int_equal(count_entries(p->l, true), 0);
}

/* A spool of several buffers that is not there yet, plain and compressed; noise of a type that is
 * compressed stays as it is. */
static void test_large_spools(void **state)
{
    struct pond *p = *state;
    size_t n = (3 << 20) + 17;
    AUTO_FREE char *text = text_bytes(n), *noise = noise_bytes(n);
    struct lake_item plain = keep(p, spool_item(p, sv_make(text, n), "image/png"));
    assert_int_equal(plain.codec, CODEC_NONE);
    assert_false(plain.shared);
    assert_reads(p->l, &plain, sv_make(text, n));
    text[0] = '!';
    struct lake_item small = keep(p, spool_item(p, sv_make(text, n), "Text/HTML"));
    assert_int_equal(small.codec, CODEC_ZSTD);
    assert_true(small.stored < (int64_t)n / 10);
    assert_reads(p->l, &small, sv_make(text, n));
    struct lake_item same = keep(p, spool_item(p, sv_make(noise, n), "text/plain"));
    assert_int_equal(same.codec, CODEC_NONE);
    assert_int_equal(same.stored, n);
    assert_reads(p->l, &same, sv_make(noise, n));
    assert_int_equal(count_entries(p->l, true), 0);
    assert_int_equal(count_entries(p->l, false), 3);
}

static void test_which_types_are_compressed(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(5000);
    const struct {
        const char *type;
        enum codec codec;
    } cases[] = {
        {"text/html", CODEC_ZSTD},
        {"TEXT/Plain ;charset=x", CODEC_ZSTD},
        {" text/csv", CODEC_ZSTD},
        {"application/json", CODEC_ZSTD},
        {"application/json5", CODEC_NONE},
        {"application/jso", CODEC_NONE},
        {"text", CODEC_NONE},
        {"text/", CODEC_NONE},
        {"image/text", CODEC_NONE},
        {"", CODEC_NONE},
        {NULL, CODEC_NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        text[0] = (char)i;
        struct lake_item item = keep(p, body_item(sv_make(text, 5000), cases[i].type));
        if (item.codec != cases[i].codec)
            fail_msg("\"%s\" is %s", cases[i].type, codec_name(item.codec));
        assert_true((strstr(item.place, ".zst") != NULL) == (item.codec == CODEC_ZSTD));
        AUTO_STR struct str path = STR_INIT(STR_LINE);
        struct artifact a = artifact_of(&item);
        int rc = lake_file(p->l, &a, &path, &p->e);
        assert_int_equal(rc, item.codec == CODEC_ZSTD ? PAWL_EINPUT : 0);
        if (rc == 0)
            assert_string_equal(str_cstr(&path), object_path(p, &item));
    }
}

/* Equal bytes are one object, also within a group, and in whichever form they lie there. */
static void test_equal_bodies_are_one(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(9000);
    struct sv body = sv_make(text, 9000);
    struct lake_item v[4] = {body_item(body, "text/html"), body_item(SV("else"), NULL),
                             body_item(body, NULL), spool_item(p, body, "image/png")};
    OK(lake_keep(p->l, v, 4, &p->e));
    for (int i = 0; i < 4; i++)
        assert_int_equal(v[i].rc, 0);
    assert_false(v[0].shared || v[1].shared);
    assert_true(v[2].shared && v[3].shared);
    assert_string_equal(v[0].place, v[2].place);
    assert_string_equal(v[0].place, v[3].place);
    assert_int_equal(v[2].codec, CODEC_ZSTD);
    assert_int_equal(v[3].stored, v[0].stored);
    assert_int_equal(count_entries(p->l, false), 2);
    struct lake_item again = keep(p, body_item(body, NULL));
    assert_true(again.shared);
    assert_int_equal(again.codec, CODEC_ZSTD);
    assert_reads(p->l, &again, body);
    assert_int_equal(count_entries(p->l, true), 0);
}

static void test_files(void **state)
{
    struct pond *p = *state;
    char path[400];
    snprintf(path, sizeof(path), "%s/report.txt", p->folder);
    AUTO_FREE char *text = text_bytes(2 << 20);
    write_file(path, text, 2 << 20);
    struct lake_item item = keep(p, (struct lake_item){.file = path, .type = SV("text/plain")});
    assert_int_equal(item.codec, CODEC_ZSTD);
    assert_reads(p->l, &item, sv_make(text, 2 << 20));
    write_file(path, "", 0);
    struct lake_item empty = keep(p, (struct lake_item){.file = path});
    assert_reads(p->l, &empty, SV(""));

    char fifo[400], gone[400];
    snprintf(fifo, sizeof(fifo), "%s/fifo", p->folder);
    snprintf(gone, sizeof(gone), "%s/gone", p->folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct lake_item v[] = {{.file = fifo},        {.file = p->folder}, {.file = gone},
                            {.file = "/dev/null"}, {.file = path},      {.body = SV_NONE}};
    OK(lake_keep(p->l, v, ARRAY_LEN(v), &p->e));
    for (int i = 0; i < 4; i++)
        assert_int_equal(v[i].rc, PAWL_EINPUT);
    assert_non_null(strstr(v[0].err.msg, "not a regular file"));
    assert_int_equal(v[4].rc, 0);
    assert_int_equal(v[5].rc, PAWL_EINTERNAL);
    assert_int_equal(count_entries(p->l, true), 0);
}

static void test_verdicts(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(20000);
    struct sv body = sv_make(text, 20000);
    struct lake_item plain = keep(p, body_item(body, NULL));
    text[3] = '#';
    struct lake_item small = keep(p, body_item(body, "text/html"));

    write_file(object_path(p, &plain), "short", 5);
    assert_verdict(p->l, &plain, LAKE_DAMAGED, "fewer");
    text[4] = '#';
    write_file(object_path(p, &plain), text, 20000);
    assert_verdict(p->l, &plain, LAKE_DAMAGED, "hash");
    AUTO_FREE char *longer = text_bytes(20001);
    write_file(object_path(p, &plain), longer, 20001);
    assert_verdict(p->l, &plain, LAKE_DAMAGED, "more");
    unlink(object_path(p, &plain));
    assert_verdict(p->l, &plain, LAKE_MISSING, "no such file");
    struct artifact a = artifact_of(&plain);
    bool (*never)(void *, struct sv) = NULL;
    assert_int_equal(lake_read(p->l, &a, never, NULL, &p->e), PAWL_ENOTFOUND);

    assert_int_equal(truncate(object_path(p, &small), small.stored - 1), 0);
    assert_verdict(p->l, &small, LAKE_DAMAGED, "decoded");
    write_file(object_path(p, &small), "garbage", 7);
    assert_verdict(p->l, &small, LAKE_DAMAGED, "decoded");
    a = artifact_of(&small);
    assert_int_equal(lake_read(p->l, &a, never, NULL, &p->e), PAWL_ECORRUPT);
    write_file(object_path(p, &small), "", 0);
    assert_verdict(p->l, &small, LAKE_DAMAGED, "decoded");
    struct lake_item lie = small;
    snprintf(lie.place, sizeof(lie.place), "files/../../etc/passwd");
    assert_verdict(p->l, &lie, LAKE_DAMAGED, "place");
}

/* A compressed object that would become far more than its row says is given up at once. */
static bool count_bytes(void *arg, struct sv bytes)
{
    *(int64_t *)arg += (int64_t)bytes.n;
    return true;
}

static void test_a_bomb_is_bounded(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *zeros = mem_zalloc(1, 50 << 20);
    struct lake_item big = keep(p, body_item(sv_make(zeros, 50 << 20), "text/plain"));
    struct artifact a = artifact_of(&big);
    int64_t given = 0;
    a.size = 1000;
    assert_int_equal(lake_read(p->l, &a, count_bytes, &given, &p->e), PAWL_ECORRUPT);
    assert_int_equal(given, 0);
}

/* What has the wrong size is written anew; so one bad file is healed by the next equal body. */
static void test_damaged_objects_are_replaced(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(20000);
    struct sv body = sv_make(text, 20000);
    struct lake_item plain = keep(p, body_item(body, NULL));
    write_file(object_path(p, &plain), "", 0);
    struct lake_item again = keep(p, body_item(body, NULL));
    assert_false(again.shared);
    assert_string_equal(again.place, plain.place);
    assert_reads(p->l, &plain, body);
    text[3] = '#';
    struct lake_item small = keep(p, body_item(body, "text/html"));
    write_file(object_path(p, &small), "garbage", 7);
    again = keep(p, body_item(body, "text/html"));
    assert_false(again.shared);
    assert_reads(p->l, &small, body);
    assert_int_equal(count_entries(p->l, true), 0);
}

static bool stop_at_once(void *arg, struct sv bytes)
{
    (void)bytes;
    ++*(int *)arg;
    return false;
}

static void test_reading_can_stop(void **state)
{
    struct pond *p = *state;
    AUTO_FREE char *text = text_bytes(3 << 20);
    for (int i = 0; i < 2; i++) {
        int calls = 0;
        text[0] = (char)i;
        struct lake_item item =
            keep(p, body_item(sv_make(text, 3 << 20), i ? "text/html" : "image/png"));
        struct artifact a = artifact_of(&item);
        OK(lake_read(p->l, &a, stop_at_once, &calls, &p->e));
        assert_int_equal(calls, 1);
    }
}

static int mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_modes_and_folders(void **state)
{
    struct pond *p = *state;
    mode_t before = umask(0);
    struct lake_item item = keep(p, body_item(SV("x"), NULL));
    umask(before);
    char path[400];
    assert_int_equal(mode_of(p->path), 0700);
    assert_int_equal(mode_of(object_path(p, &item)), 0600);
    snprintf(path, sizeof(path), "%s/objects/%.2s", p->path, item.place + 6);
    assert_int_equal(mode_of(path), 0700);
    snprintf(path, sizeof(path), "%s/tmp", p->path);
    assert_int_equal(mode_of(path), 0700);
    snprintf(path, sizeof(path), "%s/README", p->path);
    assert_int_equal(mode_of(path), 0600);
    int64_t bytes = 0;
    OK(lake_free_bytes(p->l, &bytes, &p->e));
    assert_true(bytes > 0);
}

static void test_opening(void **state)
{
    struct pond *p = *state;
    struct lake_options o = pond_options(p);
    struct lake *l = NULL;
    char path[400];
    o.create = false;
    OK(lake_open(&o, &l, &p->e));
    lake_close(l);
    l = NULL;
    snprintf(path, sizeof(path), "%s/none", p->folder);
    o.path = path;
    assert_int_equal(lake_open(&o, &l, &p->e), PAWL_ENOTFOUND);
    o.path = p->folder; /* holds a folder that is none of a lake's */
    assert_int_equal(lake_open(&o, &l, &p->e), PAWL_ENOTFOUND);
    o.create = true;
    assert_int_equal(lake_open(&o, &l, &p->e), PAWL_ECONFIG);
    assert_non_null(strstr(p->e.msg, "neither empty nor a lake"));
    snprintf(path, sizeof(path), "%s/file", p->folder);
    write_file(path, "x", 1);
    o.path = path;
    assert_int_equal(lake_open(&o, &l, &p->e), PAWL_EIO);
    assert_null(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, pond_setup, pond_teardown)
        T(test_round_trips),
        T(test_large_spools),
        T(test_which_types_are_compressed),
        T(test_equal_bodies_are_one),
        T(test_files),
        T(test_verdicts),
        T(test_a_bomb_is_bounded),
        T(test_damaged_objects_are_replaced),
        T(test_reading_can_stop),
        T(test_modes_and_folders),
        T(test_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
