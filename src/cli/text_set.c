#include "text_set.h"

#include "mem.h"

enum { CAP_FIRST = 1 << 10 };

/* FNV-1a, its bits stirred once more since the low ones choose the place. Never 0. */
static uint64_t key_of(struct sv text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 0x100000001b3u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return h ? h : 1;
}

/* Where the key is, or would be. */
static size_t position(const struct text_set *s, uint64_t key)
{
    size_t at = (size_t)key & (s->cap - 1);
    while (s->v[at] && s->v[at] != key)
        at = (at + 1) & (s->cap - 1);
    return at;
}

static void grow(struct text_set *s)
{
    struct text_set old = *s;
    s->cap = old.cap ? old.cap * 2 : CAP_FIRST;
    s->v = mem_zalloc(s->cap, sizeof(*s->v));
    for (size_t i = 0; i < old.cap; i++)
        if (old.v[i])
            s->v[position(s, old.v[i])] = old.v[i];
    free(old.v);
}

void text_set_done(struct text_set *s)
{
    free(s->v);
    *s = (struct text_set){0};
}

bool text_set_add(struct text_set *s, struct sv text)
{
    uint64_t key = key_of(text);
    if (s->n >= s->cap / 4 * 3)
        grow(s);
    size_t at = position(s, key);
    bool new = !s->v[at];
    s->n += new;
    s->v[at] = key;
    return new;
}

bool text_set_has(const struct text_set *s, struct sv text)
{
    uint64_t key = key_of(text);
    return s->n && s->v[position(s, key)] == key;
}
