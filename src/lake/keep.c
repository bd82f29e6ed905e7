/* Keeping a group of items. Nothing gets its name before its bytes are durable, nothing is reported
 * before its name is (I10), and a sync that failed fails everything it was for (I12):
 *
 *   hash all → look what is there → write the rest to tmp/ → sync → rename → sync folders → report
 *
 * Twins within a group are written once. commit.c has the second half. */
#include "pack.h"

#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static const struct dur SLOW = {1000000}; /* what took so long to write is touched when named */

void pending_fail(struct pending *p, int rc, const struct pawl_err *e)
{
    p->state = KEEP_FAILED;
    p->item->rc = rc;
    p->item->err = *e;
}

/* ---- hash all ---- */

static void clear_answers(struct lake_item *item)
{
    item->rc = 0;
    item->err = (struct pawl_err){0};
    item->size = item->stored = 0;
    item->codec = CODEC_NONE;
    item->shared = false;
    item->place[0] = '\0';
}

static int take_spool(struct pending *p, struct lake_item *item, struct pawl_err *err)
{
    if (p->spool->rc < 0) {
        *err = p->spool->err;
        return p->spool->rc;
    }
    sha256_final(&p->spool->hash, item->sha256);
    item->size = p->spool->size;
    return 0;
}

/* With its head there is a second hash to make, of the record's block. */
static void hash_body(const struct lake *l, struct pending *p)
{
    struct lake_item *item = p->item;
    p->block_known = l->mode == LAKE_PACK && item->from && item->from->response.p;
    if (p->block_known)
        sha256_pair(item->from->response, item->body, item->sha256, p->block);
    else
        sha256(item->body, item->sha256);
}

static int take_item(struct lake *l, struct pending *p, struct pawl_err *err)
{
    struct lake_item *item = p->item;
    p->spool = TAKE_PTR(item->spool); /* gone, whatever comes of it */
    clear_answers(item);
    if (!!item->body.p + !!p->spool + !!item->file + !!item->same != 1)
        return err_set(err, PAWL_EINTERNAL, "exactly one of body, spool and file is to be kept");
    if (item->same) {
        memcpy(item->sha256, item->same->sha256, SHA256_LEN);
        item->size = item->same->size;
        return 0;
    }
    if (item->body.p) {
        hash_body(l, p);
        item->size = (int64_t)item->body.n;
        return 0;
    }
    int rc = item->file ? spool_copy(l, item->file, &p->spool, err) : 0;
    return rc < 0 ? rc : take_spool(p, item, err);
}

/* Failed ones last; equal hashes stay in the order in which they came. */
static int by_hash(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if ((x->state == KEEP_FAILED) != (y->state == KEEP_FAILED))
        return x->state == KEEP_FAILED ? 1 : -1;
    int c = memcmp(x->item->sha256, y->item->sha256, SHA256_LEN);
    return c ? c : (x->item > y->item) - (x->item < y->item);
}

void pending_take(struct lake *l, struct pending *v, struct lake_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pending *p = &v[i];
        struct pawl_err e = {0};
        *p = (struct pending){.item = &items[i], .state = KEEP_WRITE, .temp = TEMP_NONE};
        int rc = take_item(l, p, &e);
        if (rc < 0)
            pending_fail(p, rc, &e);
    }
}

static void take_all(struct group *g, struct lake_item *items, size_t n)
{
    pending_take(g->lake, g->v, items, n);
    for (size_t i = 0; i < n; i++)
        g->n += g->v[i].state != KEEP_FAILED;
    qsort(g->v, n, sizeof(*g->v), by_hash);
}

/* ---- look what is there ---- */

bool pending_squeezes(const struct lake *l, const struct lake_item *item)
{
    return item->size > 0 && layout_type_matches(item->type, l->types, l->n_types);
}

/* Either form serves; the one that would be written is looked for first. */
static void find(struct lake *l, int folder, struct pending *p)
{
    struct lake_item *item = p->item;
    struct pawl_err e = {0};
    const enum codec first = pending_squeezes(l, item) ? CODEC_ZSTD : CODEC_NONE;
    const enum codec forms[] = {first, first == CODEC_ZSTD ? CODEC_NONE : CODEC_ZSTD};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        bool damaged;
        int rc = commit_find(l, folder, item, forms[i], &item->stored, &damaged, &e);
        if (rc < 0) {
            pending_fail(p, rc, &e);
            return;
        }
        if (rc > 0) {
            p->state = KEEP_FOUND;
            item->codec = forms[i];
            item->shared = true;
            return;
        }
    }
}

static void find_in_folder(struct lake *l, struct pending *v, size_t n)
{
    struct pawl_err e = {0};
    unsigned char first = v[0].item->sha256[0];
    int folder = lake_folder(l, first, false);
    if (folder < 0 && errno == ENOENT)
        return;
    int rc = folder < 0 ? disk_error(&e, errno, "cannot open %s/objects/%02x", l->path, first) : 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].state != KEEP_WRITE)
            continue;
        if (rc < 0)
            pending_fail(&v[i], rc, &e);
        else
            find(l, folder, &v[i]);
    }
    if (folder >= 0)
        close(folder);
}

/* Under the lock: what is found and touched cannot be taken for forgotten afterwards. */
static int find_all(struct group *g, struct pawl_err *err)
{
    int rc = lake_lock(g->lake, LOCK_SH, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0, j; i < g->n; i = j) {
        for (j = i + 1; j < g->n && g->v[j].item->sha256[0] == g->v[i].item->sha256[0]; j++)
            if (!memcmp(g->v[j].item->sha256, g->v[j - 1].item->sha256, SHA256_LEN))
                g->v[j].state = KEEP_TWIN;
        find_in_folder(g->lake, &g->v[i], j - i);
    }
    lake_unlock(g->lake);
    return 0;
}

/* ---- write the rest ---- */

/* From a body or a spool through the compressor into a temporary file, which is not made before
 * there is something to write: what does not get smaller mostly never touches the disk. */
struct squeezing {
    struct lake *lake;
    const struct pending *p;
    int64_t at;
    struct temp out;
};

static int squeeze_take(void *arg, struct sv *out, struct pawl_err *err)
{
    struct squeezing *q = arg;
    const struct pending *p = q->p;
    if (!p->spool) {
        *out = q->at ? SV_NONE : p->item->body;
        q->at = p->item->size;
        return 0;
    }
    char *buffer = lake_buffer(q->lake);
    ssize_t n = q->lake->disk->read(p->spool->temp.fd, buffer, COPY_BUFFER, q->at);
    if (n < 0)
        return disk_error(err, errno, "cannot read %s/tmp/%s", q->lake->path, p->spool->temp.name);
    *out = sv_make(buffer, (size_t)n);
    q->at += n;
    return 0;
}

static int squeeze_put(void *arg, struct sv bytes, struct pawl_err *err)
{
    struct squeezing *q = arg;
    int rc = q->out.name[0] ? 0 : temp_open(q->lake, &q->out, err);
    return rc < 0 ? rc : temp_write(q->lake, &q->out, bytes, err);
}

static int write_squeezed(struct lake *l, struct pending *p, struct pawl_err *err)
{
    struct squeezing q = {.lake = l, .p = p, .out = TEMP_NONE};
    const struct flow flow = {squeeze_take, squeeze_put, &q};
    int64_t n = 0;
    int rc = squeeze(l->squeezer, &flow, p->item->size, &n, err);
    if (rc < 0 || n == 0) {
        temp_drop(l, &q.out);
        return rc;
    }
    p->temp = q.out;
    p->item->codec = CODEC_ZSTD;
    p->item->stored = n;
    return 0;
}

static int write_plain(struct lake *l, struct pending *p, struct pawl_err *err)
{
    p->item->codec = CODEC_NONE;
    p->item->stored = p->item->size;
    if (p->spool) {
        p->temp = p->spool->temp;
        p->spool->temp = TEMP_NONE;
        return 0;
    }
    int rc = temp_open(l, &p->temp, err);
    return rc < 0 ? rc : temp_write(l, &p->temp, p->item->body, err);
}

static int write_one(struct lake *l, struct pending *p, bool sync, struct pawl_err *err)
{
    int rc = pending_squeezes(l, p->item) ? write_squeezed(l, p, err) : 0;
    if (rc == 0 && !p->temp.name[0])
        rc = write_plain(l, p, err);
    if (rc == 0 && sync && l->disk->sync_data(p->temp.fd) < 0) /* I10, I12 */
        rc = disk_error(err, errno, "cannot sync %s/tmp/%s", l->path, p->temp.name);
    if (!p->spool)
        temp_close(&p->temp); /* a group needs few descriptors; a spool's keeps its lock */
    return rc;
}

static void fail_written(struct group *g, int rc, const struct pawl_err *e)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].state == KEEP_WRITE)
            pending_fail(&g->v[i], rc, e);
}

static void write_all(struct group *g)
{
    struct lake *l = g->lake;
    struct pawl_err e = {0};
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->v[i].state == KEEP_WRITE;
    bool share = l->share_from && n >= l->share_from;
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].state != KEEP_WRITE)
            continue;
        g->v[i].old = g->v[i].spool;
        int rc = write_one(l, &g->v[i], !share, &e);
        if (rc < 0) {
            pending_fail(&g->v[i], rc, &e);
            temp_drop(l, &g->v[i].temp); /* now: others may need the room */
        }
    }
    if (share && l->disk->sync_all(l->root) < 0) { /* I10, I12 */
        int rc = disk_error(&e, errno, "cannot sync the file system of %s", l->path);
        fail_written(g, rc, &e);
    }
}

/* ---- report ---- */

static void answer_twin(struct lake_item *item, const struct pending *of)
{
    const struct lake_item *from = of->item;
    item->rc = from->rc;
    item->err = from->err;
    item->stored = from->stored;
    item->codec = from->codec;
    item->shared = true;
}

static void answer_all(struct group *g)
{
    const struct pending *first = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct lake_item *item = g->v[i].item;
        if (g->v[i].state == KEEP_TWIN)
            answer_twin(item, first);
        else
            first = &g->v[i];
        if (item->rc == 0)
            layout_place(item->sha256, item->codec, item->place);
    }
}

/* Once for each handle, because another process may have made them a moment ago. */
int lake_settle(struct lake *l, struct pawl_err *err)
{
    if (l->settled)
        return 0;
    /* Not beneath the lake, and not always readable: then it is not pawl that made the lake here.
     */
    int parent = openat(l->root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fds[] = {l->objects, l->segments, l->root, parent};
    int rc =
        parent < 0 && errno != EACCES ? disk_error(err, errno, "cannot open %s/..", l->path) : 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0 && l->disk->sync_folder(fds[i]) < 0)
            rc = disk_error(err, errno, "cannot sync the folders of %s", l->path);
    if (parent >= 0)
        close(parent);
    l->settled = rc == 0;
    return rc;
}

/* On a slow disk. */
static void note_age(struct group *g, struct boot start)
{
    bool old = clock_boot().us - start.us > SLOW.us;
    for (size_t i = 0; old && i < g->n; i++)
        g->v[i].old = true;
}

static int keep_group(struct group *g, struct pawl_err *err)
{
    struct boot start = clock_boot();
    int rc = lake_settle(g->lake, err);
    if (rc == 0)
        rc = find_all(g, err);
    if (rc < 0)
        return rc;
    write_all(g);
    note_age(g, start);
    rc = commit_place(g, err);
    if (rc < 0)
        return rc;
    commit_names(g);
    answer_all(g);
    return 0;
}

/* Bytes that are there already are only held on to. */
static void keep_same(struct lake *l, struct lake_item *item)
{
    bool there = false;
    const struct artifact *a = item->same;
    snprintf(item->place, sizeof(item->place), SV_FMT, SV_ARG(a->place));
    item->rc = lake_touch(l, item->place, &there, &item->err);
    if (item->rc == 0 && !there)
        item->rc = err_set(&item->err, PAWL_ENOTFOUND, "what was kept before is gone");
    memcpy(item->sha256, a->sha256, SHA256_LEN);
    item->size = a->size;
    item->stored = a->stored;
    item->codec = a->codec;
    item->shared = true;
}

static int keep_files(struct lake *l, struct lake_item *items, size_t n, struct pawl_err *err)
{
    AUTO_FREE struct pending *v = mem_zalloc(n, sizeof(*v));
    struct group g = {.lake = l, .v = v};
    struct pawl_err e = {0};
    take_all(&g, items, n);
    int rc = keep_group(&g, &e);
    for (size_t i = 0; i < n; i++) {
        if (rc < 0)
            pending_fail(&v[i], rc, &e);
        temp_drop(l, &v[i].temp);
        lake_spool_drop(v[i].spool);
    }
    if (rc < 0 && err)
        *err = e;
    return rc;
}

int lake_keep(struct lake *l, struct lake_item *items, size_t n, struct pawl_err *err)
{
    if (!n)
        return 0;
    if (l->mode == LAKE_PACK)
        return pack_keep(l, items, n, err);
    size_t k = 0; /* those that are held on to go first; they are few, or all */
    for (; k < n && items[k].same; k++)
        keep_same(l, &items[k]);
    for (size_t i = k; i < n; i++)
        if (items[i].same)
            return err_set(err, PAWL_EINTERNAL, "bytes kept before come first in a group");
    return k < n ? keep_files(l, items + k, n - k, err) : 0;
}
