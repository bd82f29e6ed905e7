/* Looking for texts in a body that comes in pieces. */
#include "fetch_parts.h"

void reject_init(struct reject *r, const struct sv *texts, size_t n)
{
    *r = (struct reject){.texts = texts, .n = n};
    for (size_t i = 0; i < n; i++)
        if (texts[i].n > r->longest)
            r->longest = texts[i].n;
    r->seam = STR_INIT(2 * r->longest);
}

void reject_done(struct reject *r)
{
    str_done(&r->seam);
}

static struct sv found_in(const struct reject *r, struct sv bytes)
{
    for (size_t i = 0; i < r->n; i++)
        if (bytes.n && memmem(bytes.p, bytes.n, r->texts[i].p, r->texts[i].n))
            return r->texts[i];
    return SV_NONE;
}

/* The end of what came so far is kept for texts that go across: longest - 1 bytes of it. */
static void keep_end(struct reject *r, struct sv bytes)
{
    size_t most = r->longest - 1;
    str_add(&r->seam, sv_make(bytes.p, bytes.n < most ? bytes.n : most));
    if (bytes.n >= most) {
        str_clear(&r->seam);
        str_add(&r->seam, sv_make(bytes.p + bytes.n - most, most));
    } else if (r->seam.len > most) {
        size_t extra = r->seam.len - most;
        memmove(r->seam.p, r->seam.p + extra, most + 1);
        r->seam.len = most;
    }
}

struct sv reject_find(struct reject *r, struct sv bytes)
{
    if (!r->n || !bytes.n)
        return SV_NONE;
    size_t kept = r->seam.len, most = r->longest - 1;
    str_add(&r->seam, sv_make(bytes.p, bytes.n < most ? bytes.n : most));
    struct sv text = kept ? found_in(r, str_sv(&r->seam)) : SV_NONE;
    r->seam.len = kept;
    if (!text.p)
        text = found_in(r, bytes);
    keep_end(r, bytes);
    return text;
}
