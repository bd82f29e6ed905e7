#include "str.h"

#include "mem.h"
#include <stdio.h>

bool sv_eq(struct sv a, struct sv b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

int sv_cmp(struct sv a, struct sv b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c)
        return c;
    return (a.n > b.n) - (a.n < b.n);
}

bool sv_starts(struct sv s, struct sv prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct sv sv_trim(struct sv s)
{
    while (s.n && is_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

struct sv sv_cut(struct sv s, char sep, struct sv *rest)
{
    const char *at = s.n ? memchr(s.p, sep, s.n) : NULL;
    if (!at) {
        *rest = SV_NONE;
        return s;
    }
    size_t n = (size_t)(at - s.p);
    *rest = sv_make(at + 1, s.n - n - 1);
    return sv_make(s.p, n);
}

int sv_to_i64(struct sv s, int64_t min, int64_t max, int64_t *out)
{
    bool negative = s.n && s.p[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == s.n)
        return -1;
    int64_t v = 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        int digit = s.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, negative ? -digit : digit, &v))
            return -1;
    }
    if (v < min || v > max)
        return -1;
    *out = v;
    return 0;
}

void str_done(struct str *s)
{
    free(s->p);
    *s = STR_INIT(s->max);
}

void str_clear(struct str *s)
{
    s->len = 0;
    s->overflow = false;
    if (s->p)
        s->p[0] = '\0';
}

/* Room for n more bytes and the NUL; false (and overflow set) beyond the ceiling. */
static bool reserve(struct str *s, size_t n)
{
    if (s->overflow || n > s->max || s->len > s->max - n) {
        s->overflow = true;
        return false;
    }
    if (s->len + n + 1 <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap * (s->cap < 1024 ? 4 : 2) : 256; /* most never grow */
    while (cap < s->len + n + 1)
        cap *= 2;
    s->p = mem_realloc(s->p, cap, 1);
    s->cap = cap;
    return true;
}

void str_add(struct str *s, struct sv v)
{
    if (!reserve(s, v.n))
        return;
    if (v.n)
        memcpy(s->p + s->len, v.p, v.n);
    s->len += v.n;
    s->p[s->len] = '\0';
}

void str_adds(struct str *s, const char *cstr)
{
    str_add(s, sv_of(cstr));
}

void str_addc(struct str *s, char c)
{
    str_add(s, sv_make(&c, 1));
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char small[256];
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n < sizeof(small)) {
        str_add(s, sv_make(small, (size_t)n));
        return;
    }
    if (!reserve(s, (size_t)n))
        return;
    va_start(ap, fmt);
    vsnprintf(s->p + s->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    s->len += (size_t)n;
}

void str_addi(struct str *s, int64_t v)
{
    char buf[24];
    char *p = buf + sizeof(buf);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        *--p = '-';
    str_add(s, sv_make(p, (size_t)(buf + sizeof(buf) - p)));
}

const char *str_cstr(const struct str *s)
{
    return s->p ? s->p : "";
}

int sv_distance(struct sv a, struct sv b, int cap)
{
    enum { MAX = 64 };
    int prev[MAX + 1], cur[MAX + 1];
    if (a.n > MAX || b.n > MAX)
        return cap;
    for (size_t j = 0; j <= b.n; j++)
        prev[j] = (int)j;
    for (size_t i = 1; i <= a.n; i++) {
        cur[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int best = prev[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            if (prev[j] + 1 < best)
                best = prev[j] + 1;
            if (cur[j - 1] + 1 < best)
                best = cur[j - 1] + 1;
            cur[j] = best;
        }
        memcpy(prev, cur, sizeof(prev));
    }
    return prev[b.n] < cap ? prev[b.n] : cap;
}

const char *sv_nearest(struct sv name, const char *const *names, size_t n)
{
    const char *best = NULL;
    int best_distance = name.n < 4 ? 2 : 3 + (int)(name.n / 8);
    for (size_t i = 0; i < n; i++) {
        int d = sv_distance(name, sv_of(names[i]), best_distance);
        if (d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
