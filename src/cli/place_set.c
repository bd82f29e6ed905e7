#include "place_set.h"

#include "mem.h"

enum { CAP_FIRST = 1 << 10 };

/* Places hold a hash of their bytes: FNV-1a has nothing to spread that somebody could have chosen.
 */
static uint64_t key_of(struct sv place)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < place.n; i++)
        h = (h ^ (unsigned char)place.p[i]) * 0x100000001b3u;
    return h ? h : 1;
}

/* Where the key is, or would be. */
static size_t position(const struct place_set *s, uint64_t key)
{
    size_t at = (size_t)key & (s->cap - 1);
    while (s->v[at] && s->v[at] != key)
        at = (at + 1) & (s->cap - 1);
    return at;
}

static void grow(struct place_set *s)
{
    struct place_set old = *s;
    s->cap = old.cap ? old.cap * 2 : CAP_FIRST;
    s->v = mem_zalloc(s->cap, sizeof(*s->v));
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i])
            s->v[position(s, old.v[i])] = old.v[i];
    free(old.v);
}

void place_set_done(struct place_set *s)
{
    free(s->v);
    *s = (struct place_set){0};
}

void place_set_add(struct place_set *s, struct sv place)
{
    uint64_t key = key_of(place);
    if (s->n >= s->cap / 4 * 3)
        grow(s);
    size_t at = position(s, key);
    s->n += !s->v[at];
    s->v[at] = key;
}

bool place_set_has(const struct place_set *s, struct sv place)
{
    uint64_t key = key_of(place);
    return s->n && s->v[position(s, key)] == key;
}
