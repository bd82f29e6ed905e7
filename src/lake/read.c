/* Reading objects back, and judging them. */
#include "pack.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>

struct reading {
    struct lake *lake;
    int fd;
    const char *name;
    int64_t at, given, most;
    bool (*each)(void *arg, struct sv bytes);
    void *arg;
};

static int read_take(void *arg, struct sv *out, struct pawl_err *err)
{
    struct reading *r = arg;
    char *buffer = lake_buffer(r->lake);
    ssize_t n = r->lake->disk->read(r->fd, buffer, COPY_BUFFER, r->at);
    if (n < 0)
        return disk_error(err, errno, "cannot read object %s", r->name);
    *out = sv_make(buffer, (size_t)n);
    r->at += n;
    return 0;
}

/* Never more than the row says, whatever a damaged file would become. */
static int read_put(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct reading *r = arg;
    r->given += (int64_t)bytes.n;
    if (r->given > r->most)
        return err_set(err, PAWL_ECORRUPT, "object %s holds more than %lld bytes", r->name,
                       (long long)r->most);
    return r->each(r->arg, bytes) ? 0 : 1;
}

static int read_plain(const struct flow *f, struct pawl_err *err)
{
    for (;;) {
        struct sv piece = SV_NONE;
        int rc = f->take(f->arg, &piece, err);
        if (rc == 0 && !piece.n)
            return 0;
        if (rc == 0)
            rc = f->put(f->arg, piece, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
}

/* The file of a place, which must be an object of this codec. */
static int open_object(struct lake *l, const struct artifact *a, struct place *at, int *out,
                       struct pawl_err *err)
{
    struct stat st;
    if (!layout_read_place(a->place, at) || at->temporary || at->codec != a->codec)
        return err_set(err, PAWL_EINPUT, "\"" SV_FMT "\" is no place of an object of this lake",
                       SV_ARG(a->place));
    AUTO_FD int folder = lake_folder(l, at->sha256[0], false);
    AUTO_FD int fd = folder < 0 ? -1 : l->disk->open(folder, at->name, O_RDONLY);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, PAWL_ENOTFOUND, "object %s is not in %s", at->name, l->path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return disk_error(err, errno, "cannot open object %s of %s", at->name, l->path);
    if (!S_ISREG(st.st_mode))
        return disk_not_file(err, &st, at->name);
    *out = TAKE_FD(fd);
    return 0;
}

static int read_open(struct reading *r, const struct artifact *a, struct pawl_err *err)
{
    const struct flow flow = {read_take, read_put, r};
    r->most = a->size;
    return a->codec == CODEC_ZSTD ? unsqueeze(r->lake->squeezer, &flow, err)
                                  : read_plain(&flow, err);
}

static bool is_packed(const struct artifact *a)
{
    return a->place.p && sv_starts(a->place, SV("pack/"));
}

int lake_read(struct lake *l, const struct artifact *a, bool (*each)(void *arg, struct sv bytes),
              void *arg, struct pawl_err *err)
{
    if (is_packed(a))
        return pack_read(l, a, each, arg, err);
    struct place at;
    AUTO_FD int fd = -1;
    int rc = open_object(l, a, &at, &fd, err);
    if (rc < 0)
        return disk_scope(err, rc, false);
    struct reading r = {.lake = l, .fd = fd, .name = at.name, .each = each, .arg = arg};
    rc = read_open(&r, a, err);
    if (rc == PAWL_ECORRUPT && r.given <= r.most)
        err_wrap(err, "object %s", at.name);
    return disk_scope(err, rc, false);
}

static bool hash_piece(void *arg, struct sv bytes)
{
    sha256_update(arg, bytes);
    return true;
}

/* NULL: good. */
static const char *judge(const struct reading *r, const struct artifact *a, int rc,
                         struct sha256_state *hash)
{
    unsigned char sha[SHA256_LEN];
    sha256_final(hash, sha);
    if (rc == PAWL_ECORRUPT)
        return r->given > r->most ? "it holds more bytes than were kept" : "it cannot be decoded";
    if (r->given != a->size)
        return "it holds fewer bytes than were kept";
    return memcmp(sha, a->sha256, SHA256_LEN) ? "its hash differs" : NULL;
}

/* What cannot be opened for what it is; 0: an error of the lake's. */
static const char *judge_open(int rc, const struct pawl_err *e)
{
    if (rc == PAWL_EINPUT)
        return "its place is none of this lake's";
    return rc == PAWL_EIO && !e->sys_errno ? "it is not a regular file" : NULL;
}

static int verdict(const char *wrong, enum lake_verdict *out, const char **why)
{
    *out = wrong ? LAKE_DAMAGED : LAKE_GOOD;
    *why = wrong ? wrong : "";
    return 0;
}

int check_unread(int rc, const struct pawl_err *e, enum lake_verdict *out, const char **why,
                 struct pawl_err *err)
{
    if (rc == PAWL_EIO && !disk_fails_all(e->sys_errno)) {
        *out = LAKE_UNREADABLE;
        *why = disk_why(e->sys_errno);
        return 0;
    }
    if (err)
        *err = *e;
    return rc;
}

int lake_check(struct lake *l, const struct artifact *a, enum lake_verdict *out, const char **why,
               struct pawl_err *err)
{
    if (is_packed(a))
        return pack_check(l, a, out, why, err);
    struct place at;
    struct pawl_err e = {0};
    struct sha256_state hash = {0};
    AUTO_FD int fd = -1;
    int rc = open_object(l, a, &at, &fd, &e);
    if (rc == PAWL_ENOTFOUND) {
        *out = LAKE_MISSING;
        *why = "there is no such file";
        return 0;
    }
    if (rc < 0 && judge_open(rc, &e))
        return verdict(judge_open(rc, &e), out, why);
    struct reading r = {.lake = l, .fd = fd, .each = hash_piece, .arg = &hash};
    if (rc == 0) {
        r.name = at.name;
        sha256_init(&hash);
        rc = read_open(&r, a, &e);
    }
    if (rc == 0 || rc == PAWL_ECORRUPT)
        rc = verdict(judge(&r, a, rc, &hash), out, why);
    else if (e.sys_errno == EIO && fd >= 0)
        rc = verdict("the disk cannot read it", out, why);
    else
        rc = check_unread(rc, &e, out, why, err);
    sha256_done(&hash);
    return rc;
}

int lake_file(struct lake *l, const struct artifact *a, struct str *out, struct pawl_err *err)
{
    if (is_packed(a))
        return err_set(err, PAWL_EINPUT, "it is packed");
    struct place at;
    if (!layout_read_place(a->place, &at) || at.temporary || at.codec != a->codec)
        return err_set(err, PAWL_EINPUT, "\"" SV_FMT "\" is no place of an object of this lake",
                       SV_ARG(a->place));
    if (a->codec != CODEC_NONE)
        return err_set(err, PAWL_EINPUT, "object %s is compressed", at.name);
    str_addf(out, "%s/objects/%02x/%s", l->path, at.sha256[0], at.name);
    return 0;
}
