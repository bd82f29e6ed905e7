/* The segment that a handle appends to. It is made with a name of its own, locked while it is
 * written, and never opened for appending by anybody again: one writer for each segment, over a
 * shared folder too. Bytes that nobody was told of may be taken back at its end; nothing else is
 * ever changed.
 *
 *   put … → flush → is the file as long as it should be? → fdatasync → (once) sync its folder
 *
 * What is durable is not left in memory: it would push out what is needed all night, the store's
 * pages, and where memory is handed out late (virtual machines) each new page of a growing cache
 * costs more than writing it. */
#include "pack.h"

#include "fd.h"
#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

static int fail(const struct pack *p, struct pawl_err *err, int errno_, const char *what)
{
    return disk_error(err, errno_, "cannot %s %s/segments/%s" SEGMENT_ENDING, what, p->lake->path,
                      p->name);
}

static void forget(struct pack *p)
{
    if (p->synced > p->left)
        p->lake->disk->forget(p->fd, p->left, p->synced - p->left);
    p->left = p->synced;
}

void pack_abandon(struct pack *p)
{
    forget(p);
    fd_closep(&p->fd);
    p->held = 0;
    p->failed = false;
}

/* ---- bytes ---- */

static int write_out(struct pack *p, struct sv bytes, struct pawl_err *err)
{
    while (bytes.n) {
        ssize_t n = p->lake->disk->write(p->fd, bytes.p, bytes.n);
        if (n <= 0) {
            p->failed = true;
            return fail(p, err, n ? errno : ENOSPC, "write");
        }
        p->written += n;
        bytes = sv_make(bytes.p + n, bytes.n - (size_t)n);
    }
    return 0;
}

int pack_flush(struct pack *p, struct pawl_err *err)
{
    int rc = p->held ? write_out(p, sv_make(p->buffer, p->held), err) : 0;
    if (rc == 0)
        p->held = 0;
    return rc;
}

int pack_put(struct pack *p, struct sv bytes, struct pawl_err *err)
{
    int rc = p->held + bytes.n > BUFFER ? pack_flush(p, err) : 0;
    if (rc < 0)
        return rc;
    if (bytes.n > BUFFER) {
        rc = write_out(p, bytes, err);
    } else {
        memcpy(p->buffer + p->held, bytes.p, bytes.n);
        p->held += bytes.n;
    }
    if (rc == 0)
        p->end += (int64_t)bytes.n;
    return rc;
}

int pack_cut(struct pack *p, int64_t to, struct pawl_err *err)
{
    int64_t flushed = p->end - (int64_t)p->held;
    if (!p->failed && to >= flushed) {
        p->held = (size_t)(to - flushed);
        p->end = to;
        return 0;
    }
    if (p->lake->disk->truncate(p->fd, to) < 0) {
        int rc = fail(p, err, errno, "shorten");
        pack_abandon(p);
        return rc;
    }
    p->held = 0;
    p->end = p->written = to;
    p->failed = false;
    return 0;
}

/* ---- records ---- */

static int gzip_to_pack(void *arg, struct sv bytes, struct pawl_err *err)
{
    return pack_put(arg, bytes, err);
}

int pack_begin(struct pack *p, const struct warc_record *r, bool squeeze, struct pawl_err *err)
{
    str_clear(&p->text);
    warc_head(r, &p->text);
    gzip_begin(p->gzip, (int64_t)p->text.len + r->length + 4, squeeze);
    return gzip_write(p->gzip, str_sv(&p->text), err);
}

int pack_piece(struct pack *p, struct sv bytes, struct pawl_err *err)
{
    return gzip_write(p->gzip, bytes, err);
}

int pack_end(struct pack *p, struct pawl_err *err)
{
    int rc = gzip_write(p->gzip, SV("\r\n\r\n"), err);
    return rc < 0 ? rc : gzip_end(p->gzip, err);
}

static int put_info(struct pack *p, struct pawl_err *err)
{
    unsigned char sum[SHA256_LEN];
    char file[SEGMENT_FILE];
    struct warc_record r;
    struct sv block = warc_info(&p->lake->ids, p->info, sum, &r);
    segment_file(p->name, file);
    r.file = file;
    int rc = pack_begin(p, &r, false, err);
    if (rc == 0)
        rc = pack_piece(p, block, err);
    if (rc == 0)
        rc = pack_end(p, err);
    p->head = p->end;
    return rc;
}

/* ---- beginning and end ---- */

/* O_EXCL: a name is somebody's own from its first moment. */
static int create(struct pack *p, struct pawl_err *err)
{
    char file[SEGMENT_FILE];
    struct lake *l = p->lake;
    segment_name_new(p->name);
    segment_file(p->name, file);
    p->end = p->written = p->synced = p->left = 0;
    p->held = 0;
    p->named = p->failed = false;
    p->begun = clock_boot();
    p->fd = l->disk->open(l->segments, file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL);
    if (p->fd < 0)
        return fail(p, err, errno, "make");
    int rc = l->disk->lock(p->fd, LOCK_EX) < 0 ? fail(p, err, errno, "lock") : put_info(p, err);
    if (rc < 0) {
        l->disk->unlink(l->segments, file);
        pack_abandon(p);
    }
    return rc;
}

static struct pack *make(struct lake *l)
{
    struct pack *p = mem_zalloc(1, sizeof(*p));
    p->lake = l;
    p->fd = -1;
    p->buffer = mem_alloc(BUFFER);
    p->text = STR_INIT(RECORD_ROOM);
    p->gzip = gzip_out_new(l->level < 1 ? 1 : l->level > 9 ? 9 : l->level, gzip_to_pack, p);
    return p;
}

static bool is_full(const struct pack *p)
{
    return p->end >= p->lake->segment_bytes ||
           clock_boot().us - p->begun.us >= p->lake->segment_age.us;
}

int pack_open(struct lake *l, struct pack **out, struct pawl_err *err)
{
    int rc = lake_segments(l, true, err);
    if (rc < 0)
        return rc;
    if (!l->pack)
        l->pack = make(l);
    struct pack *p = l->pack;
    if (p->fd >= 0 && is_full(p))
        pack_abandon(p);
    rc = p->fd < 0 ? create(p, err) : 0;
    if (rc == 0)
        *out = p;
    return rc;
}

void pack_close(struct pack *p)
{
    char file[SEGMENT_FILE];
    if (!p)
        return;
    segment_file(p->name, file);
    if (p->fd >= 0 && !p->synced)
        p->lake->disk->unlink(p->lake->segments, file);
    pack_abandon(p);
    gzip_out_free(p->gzip);
    sha256_done(&p->hash);
    str_done(&p->text);
    free(p->recent);
    free(p->buffer);
    free(p);
}

/* ---- durable ---- */

/* Somebody who shortened or lengthened it has broken into the lock: what is here cannot be trusted
 * to lie where it was put. */
static int check_length(struct pack *p, struct pawl_err *err)
{
    struct stat st;
    if (fstat(p->fd, &st) < 0)
        return fail(p, err, errno, "look at");
    if (st.st_size == p->end && st.st_nlink > 0)
        return 0;
    return err_set(err, PAWL_EIO, "segment %s of %s was changed by somebody else", p->name,
                   p->lake->path);
}

int pack_sync(struct pack *p, struct pawl_err *err)
{
    struct lake *l = p->lake;
    int rc = pack_flush(p, err);
    if (rc == 0)
        rc = check_length(p, err);
    if (rc == 0 && l->disk->sync_data(p->fd) < 0) /* I10, I12 */
        rc = fail(p, err, errno, "sync");
    if (rc == 0 && !p->named && l->disk->sync_folder(l->segments) < 0) /* I10 */
        rc = disk_error(err, errno, "cannot sync %s/segments", l->path);
    if (rc < 0) {
        pack_abandon(p);
        return rc;
    }
    if (p->synced - p->left >= FORGET)
        forget(p);
    p->named = true;
    p->synced = p->end;
    return 0;
}
