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
};

static bool write_piece(void *arg, struct sv bytes)
{
    struct copy *c = arg;
    c->bytes += (int64_t)bytes.n;
    if (fd_write_all(c->fd, bytes.p, bytes.n) < 0)
        c->failed = errno;
    return !c->failed;
}

static int copy_bytes(struct lake *l, const struct artifact *a, int fd, struct pawl_err *err)
{
    struct copy c = {.fd = fd};
    int rc = lake_read(l, a, write_piece, &c, err);
    if (rc < 0)
        return rc;
    if (c.failed)
        return err_errno(err, c.failed == ENOSPC ? PAWL_EFULL : PAWL_EIO, c.failed, "cannot write");
    if (c.bytes != a->size)
        return err_set(err, PAWL_ECORRUPT, "the lake has %lld bytes of it and should have %lld",
                       (long long)c.bytes, (long long)a->size);
    return 0;
}

/* Under another name first: nobody sees half a file. */
int export_file(struct lake *l, int folder, const char *path, const struct artifact_view *v,
                struct str *out, struct pawl_err *err)
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
    int rc = copy_bytes(l, &v->a, fd, err);
    if (rc == 0 && renameat(folder, part, folder, name) < 0)
        rc = err_errno(err, PAWL_EIO, errno, "%s/%s", path, name);
    if (rc < 0)
        unlinkat(folder, part, 0);
    else
        str_addf(out, "%s/%s", path, name);
    return rc;
}
