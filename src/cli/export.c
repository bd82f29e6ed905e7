#include "export.h"

#include "fd.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

static const struct {
    const char *type, *ending;
} endings[] = {
    {"text/html", ".html"},
    {"application/xhtml+xml", ".html"},
    {"text/plain", ".txt"},
    {"text/x-wiki", ".txt"},
    {"text/css", ".css"},
    {"text/csv", ".csv"},
    {"text/markdown", ".md"},
    {"application/json", ".json"},
    {"text/xml", ".xml"},
    {"application/xml", ".xml"},
    {"application/pdf", ".pdf"},
    {"text/javascript", ".js"},
    {"image/png", ".png"},
    {"image/jpeg", ".jpg"},
    {"image/gif", ".gif"},
    {"image/svg+xml", ".svg"},
    {"application/zip", ".zip"},
    {"application/gzip", ".gz"},
    {"application/javascript", ".js"},
};

static const char *ending_of(struct sv type)
{
    struct sv rest, plain = sv_trim(sv_cut(type, ';', &rest));
    for (size_t i = 0; type.p && i < ARRAY_LEN(endings); i++)
        if (plain.n == strlen(endings[i].type) &&
            strncasecmp(plain.p, endings[i].type, plain.n) == 0)
            return endings[i].ending;
    return "";
}

int export_folder(const char *path, int *out, struct pawl_err *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_errno(err, PAWL_EIO, errno, "cannot make %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot open %s", path);
    *out = fd;
    return 0;
}

struct copy {
    int fd, failed; /* failed: errno */
    int64_t bytes;
    struct sha256_state hash;
};

static bool write_piece(void *arg, struct sv bytes)
{
    struct copy *c = arg;
    c->bytes += (int64_t)bytes.n;
    sha256_update(&c->hash, bytes);
    if (fd_write_all(c->fd, bytes.p, bytes.n) < 0)
        c->failed = errno;
    return !c->failed;
}

/* *out_read: these are its bytes, all of them. */
static int copy_bytes(struct lake *l, const struct artifact *a, int fd, bool *out_read,
                      struct pawl_err *err)
{
    struct copy c = {.fd = fd};
    struct pawl_err e = {0};
    unsigned char sum[SHA256_LEN];
    sha256_init(&c.hash);
    int rc = lake_read(l, a, write_piece, &c, &e);
    sha256_final(&c.hash, sum);
    sha256_done(&c.hash);
    if (c.failed)
        return err_errno(err, c.failed == ENOSPC ? PAWL_EFULL : PAWL_EIO, c.failed, "cannot write");
    if (rc < 0 && !lake_only_one(rc)) {
        *err = e;
        return rc;
    }
    *out_read = rc == 0 && c.bytes == a->size && memcmp(sum, a->sha256, SHA256_LEN) == 0;
    return 0;
}

/* Under another name first: nobody sees half a file. */
int export_file(struct lake *l, int folder, const char *path, const struct artifact_view *v,
                struct str *out, bool *out_read, struct pawl_err *err)
{
    char name[ARTIFACT_NAME_MAX + 64], part[ARTIFACT_NAME_MAX + 64];
    if (artifact_name_check(v->a.name, err) < 0)
        return PAWL_EINPUT;
    snprintf(name, sizeof(name), "%lld-" SV_FMT "%s", (long long)v->job.v, SV_ARG(v->a.name),
             ending_of(v->a.type));
    snprintf(part, sizeof(part), ".%d.part", (int)getpid());
    if (unlinkat(folder, part, 0) < 0 && errno != ENOENT)
        return err_errno(err, PAWL_EIO, errno, "%s/%s", path, part);
    AUTO_FD int fd =
        openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, PAWL_EIO, errno, "%s/%s", path, part);
    bool read = false;
    int rc = copy_bytes(l, &v->a, fd, &read, err);
    if (rc == 0 && read && renameat(folder, part, folder, name) < 0)
        rc = err_errno(err, PAWL_EIO, errno, "%s/%s", path, name);
    if (rc < 0 || !read)
        unlinkat(folder, part, 0);
    else
        str_addf(out, "%s/%s", path, name);
    if (rc == 0)
        *out_read = read;
    return rc;
}
