#include "squeeze.h"

#include "mem.h"
#include <zstd.h>

enum { BUFFER = 1 << 18 };

struct squeezer {
    ZSTD_CCtx *out;
    ZSTD_DCtx *in;
    char *buffer;
    int level;
};

struct squeezer *squeezer_new(int level)
{
    struct squeezer *s = mem_zalloc(1, sizeof(*s));
    s->level = level;
    return s;
}

void squeezer_free(struct squeezer *s)
{
    if (!s)
        return;
    ZSTD_freeCCtx(s->out);
    ZSTD_freeDCtx(s->in);
    free(s->buffer);
    free(s);
}

static void ready_buffer(struct squeezer *s)
{
    if (!s->buffer)
        s->buffer = mem_alloc(BUFFER);
}

static int fail(struct pawl_err *err, int code, const char *what, size_t rc)
{
    return err_set(err, code, "%s: %s", what, ZSTD_getErrorName(rc));
}

static int begin(struct squeezer *s, int64_t size, struct pawl_err *err)
{
    ready_buffer(s);
    if (!s->out) {
        s->out = ZSTD_createCCtx();
        if (!s->out)
            abort(); /* memory, as everywhere */
        ZSTD_CCtx_setParameter(s->out, ZSTD_c_compressionLevel, s->level);
        ZSTD_CCtx_setParameter(s->out, ZSTD_c_checksumFlag, 1);
    }
    ZSTD_CCtx_reset(s->out, ZSTD_reset_session_only);
    size_t rc = ZSTD_CCtx_setPledgedSrcSize(s->out, (unsigned long long)size);
    return ZSTD_isError(rc) ? fail(err, PAWL_EINTERNAL, "cannot compress", rc) : 0;
}

/* One piece through the compressor; all of it is used up. *pays false: it is not worth going on. */
static int push(struct squeezer *s, const struct flow *f, struct sv piece, int64_t size,
                int64_t *total, bool *pays, struct pawl_err *err)
{
    ZSTD_EndDirective how = piece.n ? ZSTD_e_continue : ZSTD_e_end;
    ZSTD_inBuffer in = {piece.p, piece.n, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {s->buffer, BUFFER, 0};
        left = ZSTD_compressStream2(s->out, &out, &in, how);
        if (ZSTD_isError(left))
            return fail(err, PAWL_EINTERNAL, "cannot compress", left);
        *total += (int64_t)out.pos;
        *pays = *total < size;
        int rc = *pays && out.pos ? f->put(f->arg, sv_make(s->buffer, out.pos), err) : 0;
        if (rc < 0)
            return rc;
    } while (*pays && (how == ZSTD_e_end ? left > 0 : in.pos < in.size));
    return 0;
}

int squeeze(struct squeezer *s, const struct flow *f, int64_t size, int64_t *out_n,
            struct pawl_err *err)
{
    int64_t total = 0;
    bool pays = size > 0, more = true;
    int rc = begin(s, size, err);
    while (rc == 0 && pays && more) {
        struct sv piece = SV_NONE;
        rc = f->take(f->arg, &piece, err);
        more = piece.n > 0;
        if (rc == 0)
            rc = push(s, f, piece, size, &total, &pays, err);
    }
    if (rc == 0)
        *out_n = pays ? total : 0;
    return rc;
}

static int pull(struct squeezer *s, const struct flow *f, struct sv piece, size_t *left,
                struct pawl_err *err)
{
    ZSTD_inBuffer in = {piece.p, piece.n, 0};
    bool full = false;
    while (in.pos < in.size || full) {
        ZSTD_outBuffer out = {s->buffer, BUFFER, 0};
        *left = ZSTD_decompressStream(s->in, &out, &in);
        if (ZSTD_isError(*left))
            return fail(err, PAWL_ECORRUPT, "cannot be decoded", *left);
        int rc = out.pos ? f->put(f->arg, sv_make(s->buffer, out.pos), err) : 0;
        if (rc != 0)
            return rc;
        full = out.pos == BUFFER && *left > 0; /* there may be more inside the decoder */
    }
    return 0;
}

int unsqueeze(struct squeezer *s, const struct flow *f, struct pawl_err *err)
{
    size_t left = 1;
    ready_buffer(s);
    if (!s->in && !(s->in = ZSTD_createDCtx()))
        abort();
    ZSTD_DCtx_reset(s->in, ZSTD_reset_session_only);
    for (;;) {
        struct sv piece = SV_NONE;
        int rc = f->take(f->arg, &piece, err);
        if (rc == 0 && piece.n)
            rc = pull(s, f, piece, &left, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
        if (!piece.n)
            break;
    }
    return left ? err_set(err, PAWL_ECORRUPT, "cannot be decoded: the end is missing") : 0;
}

int64_t squeeze_claims(struct sv header)
{
    unsigned long long n = ZSTD_getFrameContentSize(header.p, header.n);
    if (n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR || n > INT64_MAX)
        return -1;
    return (int64_t)n;
}
