#include "pond.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const types[] = {"text/*", "application/json"};

struct lake_options pond_options(const struct pond *p)
{
    return (struct lake_options){
        .path = p->path, .create = true, .types = types, .n_types = ARRAY_LEN(types), .level = 3};
}

int pond_setup(void **state)
{
    struct pond *p = mem_zalloc(1, sizeof(*p));
    const char *tmp = getenv("TMPDIR");
    snprintf(p->folder, sizeof(p->folder), "%s/pond-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof(p->path), "%s/lake", p->folder);
    struct lake_options o = pond_options(p);
    OK(lake_open(&o, &p->l, &p->e));
    *state = p;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

int pond_teardown(void **state)
{
    struct pond *p = *state;
    lake_close(p->l);
    nftw(p->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(p);
    return 0;
}

struct lake_item body_item(struct sv body, const char *type)
{
    return (struct lake_item){.body = body, .type = sv_of(type)};
}

struct lake_item spool_item(struct pond *p, struct sv body, const char *type)
{
    struct lake_item item = {.type = sv_of(type)};
    OK(lake_spool_open(p->l, &item.spool, &p->e));
    for (size_t at = 0; at < body.n;) {
        size_t n = body.n - at < 16000 ? body.n - at : 16000;
        OK(lake_spool_write(item.spool, sv_make(body.p + at, n), &p->e));
        at += n;
    }
    return item;
}

struct lake_item keep(struct pond *p, struct lake_item item)
{
    OK(lake_keep(p->l, &item, 1, &p->e));
    if (item.rc < 0)
        fail_msg("%s", item.err.msg);
    return item;
}

struct artifact artifact_of(const struct lake_item *item)
{
    struct artifact a = {.name = SV("x"),
                         .size = item->size,
                         .stored = item->stored,
                         .codec = item->codec,
                         .place = sv_of(item->place)};
    memcpy(a.sha256, item->sha256, SHA256_LEN);
    return a;
}

const char *object_path(const struct pond *p, const struct lake_item *item)
{
    static char path[600];
    snprintf(path, sizeof(path), "%s/objects/%s", p->path, item->place + strlen("files/"));
    return path;
}

static bool collect(void *arg, struct sv bytes)
{
    str_add(arg, bytes);
    return true;
}

void assert_reads(struct lake *l, const struct lake_item *item, struct sv expected)
{
    AUTO_STR struct str got = STR_INIT(64 << 20);
    struct artifact a = artifact_of(item);
    struct pawl_err e = {0};
    if (lake_read(l, &a, collect, &got, &e) < 0)
        fail_msg("%s: %s", item->place, e.msg);
    assert_int_equal(item->size, expected.n);
    assert_int_equal(got.len, expected.n);
    assert_memory_equal(str_cstr(&got), expected.n ? expected.p : "", expected.n);
    assert_verdict(l, item, LAKE_GOOD, "");
}

void assert_verdict(struct lake *l, const struct lake_item *item, enum lake_verdict v,
                    const char *why)
{
    struct artifact a = artifact_of(item);
    struct pawl_err e = {0};
    enum lake_verdict got;
    const char *said = NULL;
    if (lake_check(l, &a, &got, &said, &e) < 0)
        fail_msg("%s: %s", item->place, e.msg);
    assert_int_equal(got, v);
    if (!strstr(said, why))
        fail_msg("said \"%s\", not \"%s\"", said, why);
}

struct counting {
    bool temporary;
    int n;
};

static bool count_one(void *arg, const struct lake_entry *e)
{
    struct counting *c = arg;
    c->n += e->temporary == c->temporary;
    return true;
}

int count_entries(struct lake *l, bool temporary)
{
    struct counting c = {.temporary = temporary};
    struct pawl_err e = {0};
    if (lake_scan(l, count_one, &c, &e) < 0)
        fail_msg("scan: %s", e.msg);
    return c.n;
}

void set_age(const char *path, int64_t seconds)
{
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

char *text_bytes(size_t n)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog, again and again; ";
    char *p = mem_alloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = words[(i + i / 1000) % (sizeof(words) - 1)];
    return p;
}

char *noise_bytes(size_t n)
{
    char *p = mem_alloc(n + 1);
    rand_bytes(p, n);
    return p;
}
