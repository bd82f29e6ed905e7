#include "gzip.h"

#include "crc32.h"
#include "mem.h"
#include <zlib.h>

/* ---- reading ---- */

struct inflater {
    z_stream z;
};

struct inflater *inflater_new(enum inflate_form form)
{
    static const int bits[] = {[INFLATE_RAW] = -15, [INFLATE_ZLIB] = 15, [INFLATE_GZIP] = 15 + 16};
    struct inflater *z = mem_zalloc(1, sizeof(*z));
    if (inflateInit2(&z->z, bits[form]) != Z_OK)
        abort(); /* no memory */
    return z;
}

void inflater_reset(struct inflater *z)
{
    inflateReset(&z->z);
}

void inflater_free(struct inflater *z)
{
    if (z)
        inflateEnd(&z->z);
    free(z);
}

enum inflate_end inflater_run(struct inflater *z, struct sv *in, char *out, size_t room,
                              size_t *made)
{
    const size_t most = 1u << 30;
    size_t give = in->n < most ? in->n : most;
    z->z.next_in = (unsigned char *)(uintptr_t)in->p;
    z->z.avail_in = (unsigned)give;
    z->z.next_out = (unsigned char *)out;
    z->z.avail_out = (unsigned)(room < most ? room : most);
    unsigned before = z->z.avail_out;
    int rc = inflate(&z->z, Z_NO_FLUSH);
    *in = sv_make((const char *)z->z.next_in, in->n - give + z->z.avail_in);
    *made = before - z->z.avail_out;
    if (rc == Z_STREAM_END)
        return INFLATE_OVER;
    return rc == Z_OK || rc == Z_BUF_ERROR ? INFLATE_MORE : INFLATE_BAD;
}

int64_t inflater_taken(const struct inflater *z)
{
    return (int64_t)z->z.total_in;
}

int64_t inflater_given(const struct inflater *z)
{
    return (int64_t)z->z.total_out;
}

/* ---- members that are stored ---- */

enum { HEAD = 10, BLOCK_HEAD = 5, TAIL = 8, BLOCK_LAST = 1, BLOCK_KIND = 6 };

static uint32_t get(const char *p, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint32_t)(unsigned char)p[i] << (8 * i);
    return v;
}

/* The length of the stored block at `p`, without its head; -1: there is none. */
static int64_t block_length(const char *p, size_t n)
{
    if (n < BLOCK_HEAD || (p[0] & BLOCK_KIND) || (get(p + 1, 2) ^ get(p + 3, 2)) != 0xffff)
        return -1;
    int64_t length = get(p + 1, 2);
    return length <= (int64_t)(n - BLOCK_HEAD) ? length : -1;
}

size_t gzip_stored(struct sv in)
{
    static const char begin[4] = {0x1f, (char)0x8b, 8, 0}; /* nothing optional in the head */
    uint32_t crc = 0, size = 0;
    bool last = false;
    size_t at = HEAD;
    if (in.n < HEAD || memcmp(in.p, begin, sizeof(begin)) != 0)
        return 0;
    while (!last) {
        int64_t n = block_length(in.p + at, in.n - at);
        if (n < 0)
            return 0;
        last = in.p[at] & BLOCK_LAST;
        crc = crc32_add(crc, sv_make(in.p + at + BLOCK_HEAD, (size_t)n));
        size += (uint32_t)n;
        at += BLOCK_HEAD + (size_t)n;
    }
    bool sound = in.n - at >= TAIL && get(in.p + at, 4) == crc && get(in.p + at + 4, 4) == size;
    return sound ? at + TAIL : 0;
}

struct sv gzip_stored_next(struct sv *member)
{
    struct sv m = *member;
    if (m.n <= TAIL)
        return SV_NONE;
    if (m.p[0] == 0x1f) /* its head: no stored block begins so */
        m = sv_make(m.p + HEAD, m.n - HEAD);
    size_t n = get(m.p + 1, 2);
    *member = sv_make(m.p + BLOCK_HEAD + n, m.n - BLOCK_HEAD - n);
    return sv_make(m.p + BLOCK_HEAD, n);
}

/* ---- writing ---- */

enum { STORED_MAX = 65535, CHUNK = 32 << 10, GZIP_BITS = 15 + 16, MEMORY = 8 };

struct gzip_out {
    gzip_put_fn *put;
    void *arg;
    int level;
    bool squeeze;
    int64_t left;  /* of the member */
    int64_t size;  /* of all of it */
    unsigned rest; /* of the stored block that was begun */
    uint32_t crc;
    z_stream z; /* state NULL: not yet needed */
    char chunk[CHUNK];
};

struct gzip_out *gzip_out_new(int level, gzip_put_fn *put, void *arg)
{
    struct gzip_out *g = mem_zalloc(1, sizeof(*g));
    g->put = put;
    g->arg = arg;
    g->level = level;
    return g;
}

void gzip_out_free(struct gzip_out *g)
{
    if (g && g->z.state)
        deflateEnd(&g->z);
    free(g);
}

void gzip_begin(struct gzip_out *g, int64_t size, bool squeeze)
{
    g->squeeze = squeeze;
    g->left = g->size = size;
    g->rest = 0;
    g->crc = 0;
    if (!squeeze)
        return;
    int rc = g->z.state
                 ? deflateReset(&g->z)
                 : deflateInit2(&g->z, g->level, Z_DEFLATED, GZIP_BITS, MEMORY, Z_DEFAULT_STRATEGY);
    if (rc != Z_OK)
        abort(); /* no memory */
}

static int squeeze(struct gzip_out *g, struct sv bytes, int flush, struct pawl_err *err)
{
    g->z.next_in = (unsigned char *)(uintptr_t)bytes.p;
    g->z.avail_in = (unsigned)bytes.n;
    int done;
    do {
        g->z.next_out = (unsigned char *)g->chunk;
        g->z.avail_out = CHUNK;
        done = deflate(&g->z, flush);
        size_t n = CHUNK - g->z.avail_out;
        int rc = n ? g->put(g->arg, sv_make(g->chunk, n), err) : 0;
        if (rc < 0)
            return rc;
    } while (flush == Z_FINISH ? done != Z_STREAM_END : g->z.avail_out == 0);
    return 0;
}

/* The head of the member before its first byte, and of each block; an empty member has an empty
 * block. */
static int store_head(struct gzip_out *g, struct pawl_err *err)
{
    static const char head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, (char)0xff};
    char p[sizeof(head) + 5];
    size_t n = 0;
    if (g->left == g->size) {
        memcpy(p, head, sizeof(head));
        n = sizeof(head);
    }
    g->rest = g->left < STORED_MAX ? (unsigned)g->left : STORED_MAX;
    p[n++] = g->left <= STORED_MAX; /* the last one */
    p[n++] = (char)(g->rest & 255);
    p[n++] = (char)(g->rest >> 8);
    p[n++] = (char)(~g->rest & 255);
    p[n++] = (char)(~g->rest >> 8 & 255);
    return g->put(g->arg, sv_make(p, n), err);
}

static int store(struct gzip_out *g, struct sv bytes, struct pawl_err *err)
{
    g->crc = crc32_add(g->crc, bytes);
    while (bytes.n) {
        int rc = g->rest ? 0 : store_head(g, err);
        size_t n = bytes.n < g->rest ? bytes.n : g->rest;
        if (rc == 0)
            rc = g->put(g->arg, sv_make(bytes.p, n), err);
        if (rc < 0)
            return rc;
        g->rest -= (unsigned)n;
        g->left -= (int64_t)n;
        bytes = sv_make(bytes.p + n, bytes.n - n);
    }
    return 0;
}

int gzip_write(struct gzip_out *g, struct sv bytes, struct pawl_err *err)
{
    const size_t most = 1u << 30;
    if ((int64_t)bytes.n > g->left)
        return err_set(err, PAWL_EINTERNAL, "a member of gzip is longer than was said");
    if (!g->squeeze)
        return bytes.n ? store(g, bytes, err) : 0;
    int rc = 0;
    g->left -= (int64_t)bytes.n;
    while (rc == 0 && bytes.n) {
        size_t n = bytes.n < most ? bytes.n : most;
        rc = squeeze(g, sv_make(bytes.p, n), Z_NO_FLUSH, err);
        bytes = sv_make(bytes.p + n, bytes.n - n);
    }
    return rc;
}

static void put_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(v >> (8 * i) & 255);
}

int gzip_end(struct gzip_out *g, struct pawl_err *err)
{
    char tail[8];
    if (g->left)
        return err_set(err, PAWL_EINTERNAL, "a member of gzip is shorter than was said");
    if (g->squeeze)
        return squeeze(g, SV(""), Z_FINISH, err);
    int rc = g->size ? 0 : store_head(g, err);
    put_u32(tail, g->crc);
    put_u32(tail + 4, (uint32_t)g->size);
    return rc < 0 ? rc : g->put(g->arg, sv_make(tail, sizeof(tail)), err);
}
