/* Content codings undone while the bytes come. Each stage works through one chunk of a shared
 * buffer at a time and counts what it gives out, so a bomb costs no memory and ends at the limit,
 * also one inside another (S35). */
#include "fetch_parts.h"

#include "gzip.h"
#include "mem.h"
#include <strings.h>

struct stage {
    struct inflater *z; /* NULL: not begun */
    bool deflate;       /* with zlib's header or without: both are in use */
    bool over;
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

static void end_member(struct stage *s)
{
    s->members++;
    if (s->deflate)
        s->over = true;
    else
        inflater_reset(s->z);
}

/* What follows a member of gzip is another if it begins like one, and has to be whole and sound;
 * else it is padding, which gzip(1) leaves alone too. */
static bool is_padding(const struct stage *s, struct sv rest)
{
    static const unsigned char magic[] = {0x1f, 0x8b};
    size_t at = s->members && !s->deflate ? (size_t)inflater_taken(s->z) : sizeof(magic);
    for (size_t i = 0; at < sizeof(magic) && i < rest.n; i++, at++)
        if ((unsigned char)rest.p[i] != magic[at])
            return true;
    return false;
}

/* *full: there may be more without further input. */
static enum decode_trouble inflate_some(struct decode *d, int level, struct sv *bytes, bool *full)
{
    struct stage *s = &d->stages[level];
    char *chunk = d->room->chunk[level];
    size_t made;
    s->over = is_padding(s, *bytes);
    if (s->over)
        return DECODE_FINE;
    enum inflate_end end = inflater_run(s->z, bytes, chunk, DECODE_CHUNK, &made);
    if (end == INFLATE_BAD)
        return DECODE_BAD;
    if (end == INFLATE_OVER)
        end_member(s);
    *full = made == DECODE_CHUNK;
    s->given += (int64_t)made;
    if (s->given > d->max)
        return DECODE_TOO_LARGE;
    return made ? feed(d, level + 1, sv_make(chunk, made)) : DECODE_FINE;
}

static enum decode_trouble run_stage(struct decode *d, int level, struct sv bytes)
{
    struct stage *s = &d->stages[level];
    bool full;
    do {
        full = false;
        enum decode_trouble t = inflate_some(d, level, &bytes, &full);
        if (t != DECODE_FINE)
            return t;
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
    s->z = inflater_new(header ? INFLATE_ZLIB : INFLATE_RAW);
    return run_stage(d, level, sv_make(&s->first, 1));
}

static enum decode_trouble feed(struct decode *d, int level, struct sv bytes)
{
    if (level == d->n)
        return give(d, bytes);
    struct stage *s = &d->stages[level];
    if (!s->z && s->deflate) {
        enum decode_trouble t = begin_deflate(d, level, &bytes);
        if (t != DECODE_FINE || !bytes.n)
            return t;
    } else if (!s->z) {
        s->z = inflater_new(INFLATE_GZIP);
    }
    return s->over ? DECODE_FINE : run_stage(d, level, bytes);
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
    bool between = s->members && inflater_taken(s->z) == 0;
    return (!s->z && !s->held) || s->over || between;
}

bool decode_whole(const struct decode *d)
{
    for (int i = 0; i < d->n; i++)
        if (!stage_whole(&d->stages[i]))
            return false;
    return true;
}

bool decode_undoes(const struct decode *d)
{
    return d->n > 0;
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
        inflater_free(d->stages[i].z);
    sha256_done(&d->state);
    free(d);
}
