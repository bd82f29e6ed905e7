/* The second half of keeping: what lies complete and durable in tmp/ gets its name, and the name
 * becomes durable too. Also the look whether an object is there. */
#include "lake_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* The size that a compressed object claims for its content; -1: it is none. */
static int64_t claimed_size(struct lake *l, int folder, const char *name)
{
    char header[SQUEEZE_HEADER];
    int fd = l->disk->open(folder, name, O_RDONLY);
    if (fd < 0)
        return -1;
    ssize_t n = l->disk->read(fd, header, sizeof(header), 0);
    close(fd);
    return n <= 0 ? -1 : squeeze_claims(sv_make(header, (size_t)n));
}

int commit_find(struct lake *l, int folder, const struct lake_item *item, enum codec form,
                int64_t *stored, bool *damaged, struct pawl_err *err)
{
    char name[OBJECT_NAME];
    struct stat st;
    *damaged = false;
    layout_object(item->sha256, form, name);
    if (l->disk->stat(folder, name, &st) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot look at object %s", name);
    if (!S_ISREG(st.st_mode)) { /* the trouble of this object, not of the lake */
        (void)disk_not_file(err, &st, name);
        return err->code = PAWL_ECORRUPT;
    }
    int64_t size = form == CODEC_NONE ? st.st_size : claimed_size(l, folder, name);
    if (size != item->size) {
        *damaged = true;
        return 0;
    }
    if (l->disk->touch(folder, name) < 0)
        return errno == ENOENT ? 0 : disk_error(err, errno, "cannot touch object %s", name);
    *stored = st.st_size;
    return 1;
}

/* ---- names ---- */

static int give_name(struct lake *l, int folder, struct pending *p, struct pawl_err *err)
{
    struct lake_item *item = p->item;
    char name[OBJECT_NAME];
    bool damaged;
    layout_object(item->sha256, item->codec, name);
    /* Its age counts from now. */
    if (p->old && l->disk->touch(l->tmp, p->temp.name) < 0)
        return disk_error(err, errno, "cannot touch %s/tmp/%s", l->path, p->temp.name);
    int rc = l->disk->rename(l->tmp, p->temp.name, folder, name, false);
    /* EEXIST: somebody was faster, or a damaged one is being replaced. EINVAL: a file system that
     * cannot rename without replacing (NFS); equal names are equal bytes, so replacing is safe. */
    if (rc < 0 && (errno == EEXIST || errno == EINVAL)) {
        int found = commit_find(l, folder, item, item->codec, &item->stored, &damaged, err);
        if (found < 0)
            return found;
        if (found) {
            item->shared = true;
            return 0; /* the temporary file goes with the group */
        }
        rc = l->disk->rename(l->tmp, p->temp.name, folder, name, true);
    }
    if (rc < 0)
        return disk_error(err, errno, "cannot name object %s of %s", name, l->path);
    p->temp.name[0] = '\0';
    return 0;
}

/* What was found is touched again: writing the others may have taken long. */
static int hold_name(struct lake *l, int folder, struct pending *p, struct pawl_err *err)
{
    char name[OBJECT_NAME];
    layout_object(p->item->sha256, p->item->codec, name);
    if (l->disk->touch(folder, name) < 0)
        return disk_error(err, errno, "cannot touch object %s of %s", name, l->path);
    return 0;
}

static bool is_placed(const struct pending *p)
{
    return p->state == KEEP_FOUND || p->state == KEEP_WRITE;
}

/* The items from i on that are in one folder; returns where the next begins. */
static size_t run_end(const struct group *g, size_t i, bool *any)
{
    unsigned char first = g->v[i].item->sha256[0];
    *any = false;
    for (; i < g->n && g->v[i].item->sha256[0] == first; i++)
        *any = *any || is_placed(&g->v[i]);
    return i;
}

static void place_folder(struct lake *l, struct pending *v, size_t n)
{
    struct pawl_err e = {0};
    unsigned char first = v[0].item->sha256[0];
    int folder = lake_folder(l, first, true);
    int lost =
        folder < 0 ? disk_error(&e, errno, "cannot open %s/objects/%02x", l->path, first) : 0;
    for (size_t i = 0; i < n; i++) {
        struct pending *p = &v[i];
        if (!is_placed(p))
            continue;
        int rc = lost                     ? lost
                 : p->state == KEEP_FOUND ? hold_name(l, folder, p, &e)
                                          : give_name(l, folder, p, &e);
        if (rc < 0)
            pending_fail(p, rc, &e);
    }
    if (folder >= 0)
        close(folder);
}

int commit_place(struct group *g, struct pawl_err *err)
{
    int rc = lake_lock(g->lake, LOCK_SH, err);
    if (rc < 0)
        return rc;
    bool any;
    for (size_t i = 0, j; i < g->n; i = j) {
        j = run_end(g, i, &any);
        if (any)
            place_folder(g->lake, &g->v[i], j - i);
    }
    lake_unlock(g->lake);
    return 0;
}

/* ---- durable names ---- */

static void fail_placed(struct pending *v, size_t n, int rc, const struct pawl_err *e)
{
    for (size_t i = 0; i < n; i++)
        if (is_placed(&v[i]))
            pending_fail(&v[i], rc, e);
}

static int sync_folder(struct lake *l, unsigned char first, struct pawl_err *err)
{
    int fd = lake_folder(l, first, false);
    int rc = fd < 0 ? -1 : l->disk->sync_folder(fd);
    if (rc < 0)
        rc = disk_error(err, errno, "cannot sync %s/objects/%02x", l->path, first);
    if (fd >= 0)
        close(fd);
    /* The folder's own name, which may be as new as what is in it. */
    if (rc == 0 && !l->known[first] && l->disk->sync_folder(l->objects) < 0)
        rc = disk_error(err, errno, "cannot sync %s/objects", l->path);
    if (rc == 0)
        l->known[first] = true;
    return rc;
}

static void sync_each(struct group *g)
{
    struct pawl_err e = {0};
    bool any;
    for (size_t i = 0, j; i < g->n; i = j) {
        j = run_end(g, i, &any);
        int rc = any ? sync_folder(g->lake, g->v[i].item->sha256[0], &e) : 0;
        if (rc < 0)
            fail_placed(&g->v[i], j - i, rc, &e);
    }
}

static void sync_shared(struct group *g)
{
    struct lake *l = g->lake;
    struct pawl_err e = {0};
    if (l->disk->sync_all(l->root) < 0) {
        int rc = disk_error(&e, errno, "cannot sync the file system of %s", l->path);
        fail_placed(g->v, g->n, rc, &e);
        return;
    }
    for (size_t i = 0; i < g->n; i++)
        l->known[g->v[i].item->sha256[0]] |= is_placed(&g->v[i]);
}

/* Also of what was found: whoever named it may not have come as far as this. */
void commit_names(struct group *g)
{
    size_t folders = 0;
    bool any;
    for (size_t i = 0; i < g->n;) {
        i = run_end(g, i, &any);
        folders += any;
    }
    if (g->lake->share_from && folders >= g->lake->share_from)
        sync_shared(g); /* I10, I12 */
    else
        sync_each(g);
}
