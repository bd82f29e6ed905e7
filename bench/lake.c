/* What keeping bodies in the lake costs, beside what the same files cost without it.
 *
 *   lake FOLDER BODIES GROUP [SIZE]     SIZE of a body: 8192
 *   lake pack FOLDER BODIES GROUP SIZE INDEX FLOOR
 *
 * pack keeps bodies in segments and prints items a second for every tenth of them, beside a loop
 * that appends as many bytes to one file and syncs it (`floor`), group by group in turns; INDEX
 * gets a line for each: hash, size, bytes stored, place. Else it
 *
 * prints items a second: `keep` is lake_keep() in groups of GROUP; `each` a bare loop that writes,
 * syncs, renames and syncs the folder for every file; `shared` writes a group, syncs the file
 * system, renames and syncs it again. All three make random bodies, into folders that are there
 * already. */
#include "lake.h"

#include "fd.h"
#include "hash.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PARTS = 10, WARM = 2048 }; /* bodies kept before, so that the folders are no longer new */

struct floor {
    int root, tmp, folders[256];
};

struct bench {
    struct lake *lake;
    struct floor floor;
    const char *folder;
    int64_t bodies, group, size;
    char *bytes; /* of one group */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "lake: %s: %s\n", what, why);
    exit(1);
}

static int check(int rc, const char *what)
{
    if (rc < 0)
        die(what, strerror(errno));
    return rc;
}

static struct sv body(const struct bench *b, int64_t i)
{
    return sv_make(b->bytes + i * b->size, (size_t)b->size);
}

/* New bodies by a few random bytes each: making them costs no way more than it must. */
static void renew(struct bench *b)
{
    for (int64_t i = 0; i < b->group; i++)
        rand_bytes(b->bytes + i * b->size, 16);
}

/* ---- the lake ---- */

static void keep_group(struct bench *b)
{
    AUTO_FREE struct lake_item *v = mem_zalloc((size_t)b->group, sizeof(*v));
    struct pawl_err e = {0};
    for (int64_t i = 0; i < b->group; i++)
        v[i] = (struct lake_item){.body = body(b, i)};
    if (lake_keep(b->lake, v, (size_t)b->group, &e) < 0)
        die("keep", e.msg);
    for (int64_t i = 0; i < b->group; i++)
        if (v[i].rc < 0 || v[i].shared)
            die("keep", v[i].rc < 0 ? v[i].err.msg : "a body was there already");
}

static void lake_make(struct bench *b)
{
    AUTO_STR struct str path = STR_INIT(STR_LINE);
    struct pawl_err e = {0};
    str_addf(&path, "%s/lake", b->folder);
    const struct lake_options o = {.path = str_cstr(&path), .create = true};
    if (lake_open(&o, &b->lake, &e) < 0)
        die("open", e.msg);
}

/* ---- the floors ---- */

static int make_folder(int at, const char *name)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        die(name, strerror(errno));
    return check(openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), name);
}

static void floor_open(const struct bench *b, struct floor *f)
{
    int at = check(open(b->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), b->folder);
    f->root = make_folder(at, "floor");
    f->tmp = make_folder(f->root, "tmp");
    for (int i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof(name), "%02x", (unsigned)i);
        f->folders[i] = make_folder(f->root, name);
    }
    check(syncfs(f->root), "syncfs");
    close(at);
}

static void floor_close(struct floor *f)
{
    close(f->root);
    close(f->tmp);
    for (int i = 0; i < 256; i++)
        close(f->folders[i]);
}

static void floor_write(const struct floor *f, struct sv bytes, char name[33], bool sync)
{
    rand_id(name);
    int fd = check(openat(f->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "open");
    check(fd_write_all(fd, bytes.p, bytes.n), "write");
    if (sync)
        check(fdatasync(fd), "fdatasync");
    close(fd);
}

/* Into the folder that its hash would give; returns it. */
static int floor_name(const struct floor *f, struct sv bytes, const char *name)
{
    int folder = f->folders[(unsigned char)bytes.p[0]];
    check(renameat2(f->tmp, name, folder, name, RENAME_NOREPLACE), "rename");
    return folder;
}

static void floor_each(struct bench *b)
{
    const struct floor *f = &b->floor;
    char name[33];
    for (int64_t i = 0; i < b->group; i++) {
        floor_write(f, body(b, i), name, true);
        check(fsync(floor_name(f, body(b, i), name)), "fsync");
    }
}

static void floor_shared(struct bench *b)
{
    const struct floor *f = &b->floor;
    AUTO_FREE char(*names)[33] = mem_zalloc((size_t)b->group, sizeof(*names));
    for (int64_t i = 0; i < b->group; i++)
        floor_write(f, body(b, i), names[i], false);
    check(syncfs(f->root), "syncfs");
    /* Folder by folder: in any other order this takes much longer. */
    for (int folder = 0; folder < 256; folder++)
        for (int64_t i = 0; i < b->group; i++)
            if ((unsigned char)body(b, i).p[0] == folder)
                floor_name(f, body(b, i), names[i]);
    check(syncfs(f->root), "syncfs");
}

/* ---- side by side ---- */

enum way { KEEP, SHARED, EACH, N_WAYS };
static void (*const ways[N_WAYS])(struct bench *b) = {keep_group, floor_shared, floor_each};

static int64_t timed(struct bench *b, enum way w)
{
    renew(b);
    struct boot start = clock_boot();
    ways[w](b);
    return clock_boot().us - start.us;
}

/* In turns, group by group: whoever ran first would pay for what a disk does at first. */
static void run(struct bench *b, double per_s[N_WAYS])
{
    int64_t took[N_WAYS] = {0}, done[N_WAYS] = {0};
    for (int64_t i = 0; i < WARM; i += b->group)
        for (enum way w = KEEP; w <= SHARED; w++)
            timed(b, w);
    for (int64_t i = 0; i < b->bodies; i += b->group)
        for (enum way w = KEEP; w < N_WAYS; w++) {
            if (w == EACH && done[EACH] >= WARM)
                continue; /* slow, and has told enough */
            took[w] += timed(b, w);
            done[w] += b->group;
        }
    for (enum way w = KEEP; w < N_WAYS; w++)
        per_s[w] = (double)done[w] * 1e6 / (double)took[w];
}

/* ---- packed ---- */

static int64_t pack_group(struct bench *b, FILE *index)
{
    int64_t stored = 0;
    AUTO_FREE struct lake_item *v = mem_zalloc((size_t)b->group, sizeof(*v));
    struct pawl_err e = {0};
    for (int64_t i = 0; i < b->group; i++)
        v[i] = (struct lake_item){.body = body(b, i)};
    if (lake_keep(b->lake, v, (size_t)b->group, &e) < 0)
        die("keep", e.msg);
    for (int64_t i = 0; i < b->group; i++) {
        char hex[2 * SHA256_LEN + 1];
        if (v[i].rc < 0)
            die("keep", v[i].err.msg);
        hex_encode(v[i].sha256, SHA256_LEN, hex);
        stored += v[i].stored;
        fprintf(index, "%s %lld %lld %s\n", hex, (long long)v[i].size, (long long)v[i].stored,
                v[i].place);
    }
    return stored;
}

static void append(struct bench *b, int fd, int64_t bytes)
{
    for (int64_t n; bytes > 0; bytes -= n) {
        n = bytes < b->group * b->size ? bytes : b->group * b->size;
        check(fd_write_all(fd, b->bytes, (size_t)n), "write");
    }
    check(fdatasync(fd), "fdatasync");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* as the lake does, which is what it is beside */
}

/* One tenth: items a second of the lake and of the floor. */
static void pack_part(struct bench *b, FILE *index, int floor, double out[2])
{
    int64_t took[2] = {0}, done = 0;
    for (; done < b->bodies / PARTS; done += b->group) {
        renew(b);
        struct boot start = clock_boot();
        int64_t bytes = pack_group(b, index);
        struct boot middle = clock_boot();
        append(b, floor, bytes);
        took[0] += middle.us - start.us;
        took[1] += clock_boot().us - middle.us;
    }
    for (int i = 0; i < 2; i++)
        out[i] = (double)done * 1e6 / (double)took[i];
}

static int pack(char **argv)
{
    struct bench b = {.folder = argv[2]};
    struct pawl_err e = {0};
    double per_s[PARTS][2];
    if (sv_to_i64(sv_of(argv[3]), PARTS, 1000000000, &b.bodies) < 0 ||
        sv_to_i64(sv_of(argv[4]), 1, 65536, &b.group) < 0 ||
        sv_to_i64(sv_of(argv[5]), 16, 1 << 20, &b.size) < 0)
        return 2;
    FILE *index = fopen(argv[6], "we");
    const struct lake_options o = {.path = b.folder, .create = true, .mode = LAKE_PACK};
    if (!index || lake_open(&o, &b.lake, &e) < 0)
        die("open", index ? e.msg : strerror(errno));
    b.bytes = mem_alloc((size_t)(b.group * b.size));
    rand_bytes(b.bytes, (size_t)(b.group * b.size));
    int floor =
        check(open(argv[7], O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600), argv[7]);
    for (int part = 0; part < PARTS; part++)
        pack_part(&b, index, floor, per_s[part]);
    close(floor);
    for (int which = 0; which < 2; which++)
        for (int part = 0; part < PARTS; part++)
            printf("%s%.0f",
                   part    ? ","
                   : which ? "],\"floor\":["
                           : "{\"per_s\":[",
                   per_s[part][which]);
    printf("]}\n");
    lake_close(b.lake);
    free(b.bytes);
    return fclose(index) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct bench b = {.size = 8192};
    if (argc == 8 && !strcmp(argv[1], "pack"))
        return pack(argv);
    if ((argc != 4 && argc != 5) || sv_to_i64(sv_of(argv[2]), 1, 100000000, &b.bodies) < 0 ||
        sv_to_i64(sv_of(argv[3]), 1, 65536, &b.group) < 0 ||
        (argc == 5 && sv_to_i64(sv_of(argv[4]), 16, 1 << 20, &b.size) < 0)) {
        fprintf(stderr, "usage: lake FOLDER BODIES GROUP [SIZE]\n");
        return 2;
    }
    b.folder = argv[1];
    b.bodies = (b.bodies + b.group - 1) / b.group * b.group;
    b.bytes = mem_alloc((size_t)(b.group * b.size));
    rand_bytes(b.bytes, (size_t)(b.group * b.size));
    double per_s[N_WAYS];
    lake_make(&b);
    floor_open(&b, &b.floor);
    run(&b, per_s);
    printf("{\"bodies\":%lld,\"group\":%lld,\"size\":%lld,\"keep_per_s\":%.0f,\"each_per_s\":%.0f,"
           "\"shared_per_s\":%.0f}\n",
           (long long)b.bodies, (long long)b.group, (long long)b.size, per_s[KEEP], per_s[EACH],
           per_s[SHARED]);
    floor_close(&b.floor);
    lake_close(b.lake);
    free(b.bytes);
    return 0;
}
