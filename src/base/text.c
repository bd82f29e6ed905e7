#include "text.h"

/* Length of the valid UTF-8 character at s[i], 0 if there is none. */
static size_t utf8_length(struct sv s, size_t i)
{
    unsigned char c = (unsigned char)s.p[i];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || i + n > s.n)
        return 0;
    unsigned char d = (unsigned char)s.p[i + 1];
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) ||
        (c == 0xf4 && d > 0x8f))
        return 0; /* overlong, surrogate, beyond U+10FFFF */
    for (size_t k = 1; k < n; k++)
        if (((unsigned char)s.p[i + k] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Eight bytes of ASCII without a NUL: nearly all of nearly every text. */
static bool eight_plain(const char *p)
{
    const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return !((v | ((v - ones) & ~v)) & highs);
}

size_t text_bad_utf8(struct sv s)
{
    size_t i = 0;
    while (i < s.n) {
        if (s.n - i >= 8 && eight_plain(s.p + i)) {
            i += 8;
            continue;
        }
        size_t n = s.p[i] ? utf8_length(s, i) : 0;
        if (!n)
            return i;
        i += n;
    }
    return i;
}

size_t text_cut_short(struct sv s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return want > back ? back : 0;
    }
    return 0;
}

bool text_is_word(struct sv s, const char *others)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            (!c || !strchr(others, c)))
            return false;
    }
    return s.n > 0;
}

static unsigned decode(struct sv s, size_t i, size_t n)
{
    const unsigned char *p = (const unsigned char *)s.p + i;
    if (n == 2)
        return (unsigned)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    if (n == 3)
        return (unsigned)(p[0] & 0x0f) << 12 | (unsigned)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    return (unsigned)(p[0] & 0x07) << 18 | (unsigned)(p[1] & 0x3f) << 12 |
           (unsigned)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}

/* C1 controls, bidi marks and overrides, line separators, the byte order mark. */
static bool is_unsafe(unsigned u)
{
    return (u >= 0x80 && u < 0xa0) || u == 0x061c || (u >= 0x200b && u <= 0x200f) ||
           (u >= 0x2028 && u <= 0x202e) || (u >= 0x2060 && u <= 0x206f) || u == 0xfeff ||
           (u >= 0xfff9 && u <= 0xfffb) || (u >= 0xe0000 && u <= 0xe007f);
}

static void add_control(struct str *out, unsigned char c, bool lines)
{
    if (c == '\n' || c == '\t') {
        if (lines)
            str_addc(out, (char)c);
        else
            str_adds(out, c == '\n' ? "\\n" : "\\t");
    } else if (c == '\r') {
        str_adds(out, "\\r");
    } else {
        str_addf(out, "\\x%02x", c);
    }
}

/* Append the character at s[i] made harmless; returns how many bytes of s it took. */
static size_t add_safe(struct str *out, struct sv s, size_t i, bool lines)
{
    unsigned char c = (unsigned char)s.p[i];
    if (c < 0x20 || c == 0x7f) {
        add_control(out, c, lines);
        return 1;
    }
    size_t n = utf8_length(s, i);
    if (!n) {
        str_addf(out, "\\x%02x", c);
        return 1;
    }
    if (n > 1 && is_unsafe(decode(s, i, n)))
        str_addf(out, "\\u{%x}", decode(s, i, n));
    else
        str_add(out, sv_make(s.p + i, n));
    return n;
}

void text_safe(struct str *out, struct sv s, size_t max)
{
    size_t i = 0;
    while (i < s.n) {
        size_t n = utf8_length(s, i);
        if (max && i + (n ? n : 1) > max)
            break;
        i += add_safe(out, s, i, false);
    }
    if (i < s.n)
        str_adds(out, "…");
}

void text_safe_lines(struct str *out, struct sv s)
{
    for (size_t i = 0; i < s.n;)
        i += add_safe(out, s, i, true);
}

static bool is_harmless(struct sv s, size_t i, size_t n)
{
    unsigned char c = (unsigned char)s.p[i];
    return n && c >= 0x20 && c != 0x7f && (n == 1 || !is_unsafe(decode(s, i, n)));
}

static void add_ansi_c(struct str *out, struct sv s)
{
    str_adds(out, "$'");
    for (size_t i = 0; i < s.n;) {
        size_t n = utf8_length(s, i), step = n ? n : 1;
        if (s.p[i] == '\'' || s.p[i] == '\\')
            str_addc(out, '\\');
        if (is_harmless(s, i, n))
            str_add(out, sv_make(s.p + i, n));
        else
            for (size_t k = 0; k < step; k++)
                str_addf(out, "\\x%02x", (unsigned char)s.p[i + k]);
        i += step;
    }
    str_addc(out, '\'');
}

void text_quoted(struct str *out, struct sv s)
{
    str_addc(out, '\'');
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\'')
            str_adds(out, "'\"'\"'");
        else
            str_addc(out, s.p[i]);
    str_addc(out, '\'');
}

void text_shell(struct str *out, struct sv s)
{
    bool harmless = true;
    if (text_is_word(s, "_-+./:@%,=")) {
        str_add(out, s);
        return;
    }
    for (size_t i = 0, n; i < s.n && harmless; i += n ? n : 1) {
        n = utf8_length(s, i);
        harmless = is_harmless(s, i, n);
    }
    if (!harmless) {
        add_ansi_c(out, s);
        return;
    }
    text_quoted(out, s);
}

static void add_unit(struct str *out, unsigned u)
{
    str_addf(out, "\\u%04x", u);
}

/* In JSON such characters stand inside strings only, so they can be written as escapes; a carriage
 * return stands between values, where a space does as well. */
void text_safe_json(struct str *out, struct sv json)
{
    for (size_t i = 0; i < json.n;) {
        unsigned char c = (unsigned char)json.p[i];
        size_t n = utf8_length(json, i);
        unsigned u = n > 1 ? decode(json, i, n) : c;
        if (c == '\r')
            str_addc(out, ' ');
        else if (c != 0x7f && n && !is_unsafe(u))
            str_add(out, sv_make(json.p + i, n));
        else if (u < 0x10000)
            add_unit(out, n ? u : 0xfffd);
        else {
            add_unit(out, 0xd800 + ((u - 0x10000) >> 10));
            add_unit(out, 0xdc00 + ((u - 0x10000) & 0x3ff));
        }
        i += n ? n : 1;
    }
}

void text_to_utf8(struct str *out, struct sv s)
{
    for (size_t i = 0; i < s.n;) {
        size_t n = utf8_length(s, i);
        if (!s.p[i])
            str_adds(out, "\xe2\x90\x80");
        else if (!n)
            str_adds(out, "\xef\xbf\xbd");
        else
            str_add(out, sv_make(s.p + i, n));
        i += n ? n : 1;
    }
}

static bool is_secret(struct sv parameter)
{
    struct sv rest, name = sv_cut(parameter, '=', &rest);
    return sv_eq(name, SV("password")) || sv_eq(name, SV("sslpassword"));
}

/* Up to the last @: a password that was not encoded as it should be must not show either. */
static void add_without_user_password(struct str *out, struct sv url, const char *start)
{
    const char *at = memrchr(start, '@', url.n - (size_t)(start - url.p));
    const char *colon = at ? memchr(start, ':', (size_t)(at - start)) : NULL;
    if (colon) {
        str_add(out, sv_make(url.p, (size_t)(colon - url.p)));
        url = sv_make(at, url.n - (size_t)(at - url.p));
    }
    str_add(out, url);
}

void text_url(struct str *out, struct sv url)
{
    const char *start = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
    struct sv query, base = sv_cut(url, '?', &query);
    char before = '?';
    if (!start || start + 3 > base.p + base.n) {
        str_add(out, url);
        return;
    }
    add_without_user_password(out, base, start + 3);
    while (query.n) {
        struct sv parameter = sv_cut(query, '&', &query);
        if (!parameter.n || is_secret(parameter))
            continue;
        str_addc(out, before);
        str_add(out, parameter);
        before = '&';
    }
}
