/* Content codings undone while the bytes come. Each stage works through one chunk of a shared
 * buffer at a time and counts what it gives out, so a bomb costs no memory and ends at the limit,
 * also one inside another (S35). */
#include "fetch_parts.h"

#include "mem.h"
#include <strings.h>
#include <zlib.h>

struct stage {
    z_stream z;
    bool deflate; /* with zlib's header or without: both are in use */
    bool begun, over;
    int members; /* of gzip: whole ones */
    bool held;   /* deflate: one byte does not tell which */
    char first;
    int64_t given;
};

struct decode {
    struct stage stages[DECODE_STAGES];
    int n;
    struct decode_room *room;
    int64_t max, wire, body;
    enum decode_sum sum;
    struct sha256_state state;
    decode_fn *out;
    void *arg;
};

enum { RAW = -15, ZLIB = 15, GZIP = 15 + 16 };

static bool named(struct sv s, const char *name)
{
    return s.n == strlen(name) && !strncasecmp(s.p, name, s.n);
}

/* They stand in the order they were applied. */
static bool add_stage(struct decode *d, struct sv name)
{
    if (!name.n || named(name, "identity"))
        return true;
    bool gzip = named(name, "gzip") || named(name, "x-gzip"), deflate = named(name, "deflate");
    if ((!gzip && !deflate) || d->n == DECODE_STAGES)
        return false;
    memmove(&d->stages[1], &d->stages[0], (size_t)d->n * sizeof(d->stages[0]));
    d->stages[0] = (struct stage){.deflate = deflate};
    d->n++;
    return true;
}

struct decode *decode_new(struct sv coding, int64_t max, enum decode_sum sum,
                          struct decode_room *room, decode_fn *out, void *arg)
{
    struct decode *d = mem_zalloc(1, sizeof(*d));
    d->room = room;
    d->max = max;
    d->out = out;
    d->arg = arg;
    bool known = true;
    for (struct sv rest = coding; rest.p && known;)
        known = add_stage(d, sv_trim(sv_cut(rest, ',', &rest)));
    if (!known)
        d->n = 0;
    d->sum = d->n ? sum : SUM_NONE;
    if (d->sum != SUM_NONE)
        sha256_init(&d->state);
    return d;
}

static enum decode_trouble feed(struct decode *d, int level, struct sv bytes);

static enum decode_trouble give(struct decode *d, struct sv bytes)
{
    d->body += (int64_t)bytes.n;
    if (d->body > d->max)
        return DECODE_TOO_LARGE;
    if (d->sum == SUM_BODY)
        sha256_update(&d->state, bytes);
    return d->out(d->arg, bytes) ? DECODE_FINE : DECODE_STOPPED;
}

static void begin(struct stage *s, int bits)
{
    if (inflateInit2(&s->z, bits) != Z_OK)
        abort(); /* no memory */
    s->begun = true;
}

/* After the end of one member of gzip comes another or nothing of interest. */
static void end_member(struct stage *s, struct sv rest)
{
    s->members++;
    if (s->deflate || (rest.n && rest.p[0] != 0x1f))
        s->over = true;
    else
        inflateReset(&s->z);
}

static enum decode_trouble inflate_some(struct decode *d, int level, struct sv *bytes)
{
    struct stage *s = &d->stages[level];
    char *chunk = d->room->chunk[level];
    s->z.next_in = (unsigned char *)(uintptr_t)bytes->p;
    s->z.avail_in = (unsigned)bytes->n;
    s->z.next_out = (unsigned char *)chunk;
    s->z.avail_out = DECODE_CHUNK;
    bool fresh = s->z.total_out == 0 && s->members;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    *bytes = sv_make((const char *)s->z.next_in, s->z.avail_in);
    struct sv made = sv_make(chunk, DECODE_CHUNK - s->z.avail_out);
    if (rc == Z_DATA_ERROR && fresh && !made.n) { /* what followed was no member */
        s->over = true;
        return DECODE_FINE;
    }
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return DECODE_BAD;
    if (rc == Z_STREAM_END)
        end_member(s, *bytes);
    s->given += (int64_t)made.n;
    if (s->given > d->max)
        return DECODE_TOO_LARGE;
    return made.n ? feed(d, level + 1, made) : DECODE_FINE;
}

static enum decode_trouble run_stage(struct decode *d, int level, struct sv bytes)
{
    struct stage *s = &d->stages[level];
    bool full;
    do {
        enum decode_trouble t = inflate_some(d, level, &bytes);
        if (t != DECODE_FINE)
            return t;
        full = s->z.avail_out == 0; /* there may be more without further input */
    } while (!s->over && (bytes.n || full));
    return DECODE_FINE;
}

/* zlib's header is a method of 8 and a sum that 31 divides; a raw stream hardly begins so. */
static enum decode_trouble begin_deflate(struct decode *d, int level, struct sv *bytes)
{
    struct stage *s = &d->stages[level];
    if (!s->held) {
        s->held = true;
        s->first = bytes->p[0];
        *bytes = sv_make(bytes->p + 1, bytes->n - 1);
    }
    if (!bytes->n)
        return DECODE_FINE;
    unsigned high = (unsigned char)s->first, low = (unsigned char)bytes->p[0];
    bool header = (high & 15) == 8 && (high * 256 + low) % 31 == 0;
    begin(s, header ? ZLIB : RAW);
    return run_stage(d, level, sv_make(&s->first, 1));
}

static enum decode_trouble feed(struct decode *d, int level, struct sv bytes)
{
    if (level == d->n)
        return give(d, bytes);
    struct stage *s = &d->stages[level];
    if (!s->begun && s->deflate) {
        enum decode_trouble t = begin_deflate(d, level, &bytes);
        if (t != DECODE_FINE || !bytes.n)
            return t;
    } else if (!s->begun) {
        begin(s, GZIP);
    }
    if (s->over)
        return DECODE_FINE;
    if (s->members && !s->deflate && s->z.total_in == 0 && bytes.p[0] != 0x1f) {
        s->over = true; /* padding */
        return DECODE_FINE;
    }
    return run_stage(d, level, bytes);
}

enum decode_trouble decode_write(struct decode *d, struct sv wire)
{
    if (!wire.n)
        return DECODE_FINE;
    d->wire += (int64_t)wire.n;
    if (d->wire > d->max + d->max / 64 + (64 << 10)) /* an endless one that decodes to nothing */
        return DECODE_TOO_LARGE;
    if (d->sum == SUM_WIRE)
        sha256_update(&d->state, wire);
    return feed(d, 0, wire);
}

static bool stage_whole(const struct stage *s)
{
    bool between = s->members && s->z.total_out == 0;
    return (!s->begun && !s->held) || s->over || between;
}

bool decode_whole(const struct decode *d)
{
    for (int i = 0; i < d->n; i++)
        if (!stage_whole(&d->stages[i]))
            return false;
    return true;
}

int64_t decode_wire_bytes(const struct decode *d)
{
    return d->wire;
}

int64_t decode_body_bytes(const struct decode *d)
{
    return d->body;
}

bool decode_hash(struct decode *d, unsigned char out[SHA256_LEN])
{
    if (d->sum == SUM_NONE)
        return false;
    sha256_final(&d->state, out);
    return true;
}

void decode_free(struct decode *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n; i++)
        if (d->stages[i].begun)
            inflateEnd(&d->stages[i].z);
    sha256_done(&d->state);
    free(d);
}
