#include "fingerprint.h"

#include "hash.h"
#include "mem.h"
#include <stdio.h>

enum { NORMAL_MAX = 512 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_path(char c)
{
    return is_word(c) || c == '/' || c == '.' || c == '-' || c == ':' || c == '%' || c == '?' ||
           c == '=' || c == '&' || c == '~' || c == '+';
}

/* Length of the quoted text at s[i], quotes included; 0 if it does not end. */
static size_t quoted(struct sv s, size_t i)
{
    char q = s.p[i];
    if (q != '"' && q != '\'' && q != '`')
        return 0;
    const char *end = memchr(s.p + i + 1, q, s.n - i - 1);
    return end ? (size_t)(end - s.p) + 1 - i : 0;
}

/* Length of the path or URL at s[i]: it has a slash. */
static size_t path(struct sv s, size_t i)
{
    size_t n = 0;
    bool slash = false;
    while (i + n < s.n && is_path(s.p[i + n])) {
        slash |= s.p[i + n] == '/';
        n++;
    }
    return slash && n > 1 ? n : 0;
}

/* Length of the number or hex word at s[i]: has a digit and nothing but hex digits. */
static size_t number(struct sv s, size_t i)
{
    size_t n = 0;
    bool digit = false;
    while (i + n < s.n && is_word(s.p[i + n])) {
        digit |= is_digit(s.p[i + n]);
        n++;
    }
    for (size_t k = 0; k < n; k++)
        if (!is_hex(s.p[i + k]) && !(k == 1 && s.p[i + k] == 'x'))
            digit &= n <= 1 || is_digit(s.p[i]); /* "3rd", "12ms": the unit is not worth a group */
    return digit ? n : 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A code says what happened: "exit 3" and "HTTP 503" are not numbers like others. */
static bool after_code_word(const struct str *out)
{
    static const char *const words[] = {"exit ", "http ", "status ", "code ", "signal ", "errno "};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (out->len >= n && memcmp(out->p + out->len - n, words[i], n) == 0)
            return true;
    }
    return false;
}

/* One step: a sign for what varies, the word or character itself for what does not. */
static size_t normalise_one(struct sv s, size_t i, struct str *out)
{
    size_t n;
    if ((n = quoted(s, i)) || (n = path(s, i)) ||
        ((n = number(s, i)) && !(n <= 3 && after_code_word(out)))) {
        str_addc(out, s.p[i] == '"' || s.p[i] == '\'' || s.p[i] == '`' ? '"' : '#');
        return n;
    }
    for (n = 0; i + n < s.n && is_word(s.p[i + n]); n++)
        str_addc(out, lower(s.p[i + n]));
    if (n)
        return n;
    if (s.p[i] > ' ' || (out->len && out->p[out->len - 1] != ' '))
        str_addc(out, s.p[i] > ' ' ? s.p[i] : ' ');
    return 1;
}

uint32_t fingerprint(enum fail_class cls, struct sv message)
{
    AUTO_STR struct str s = STR_INIT(NORMAL_MAX);
    str_addc(&s, (char)('0' + (int)cls));
    for (size_t i = 0; i < message.n && !s.overflow;)
        i += normalise_one(message, i, &s);
    unsigned char d[SHA256_LEN];
    sha256(str_sv(&s), d);
    uint32_t fp = (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3];
    return fp ? fp : 1;
}

void fingerprint_format(uint32_t fp, char out[FINGERPRINT_TEXT])
{
    snprintf(out, FINGERPRINT_TEXT, "e%06x", fp >> 8);
}

int fingerprint_parse(struct sv text, uint32_t *out_low, uint32_t *out_high)
{
    if (text.n < 4 || text.n > 7 || text.p[0] != 'e')
        return -1;
    uint32_t v = 0;
    for (size_t i = 1; i < text.n; i++) {
        char c = lower(text.p[i]);
        if (!is_hex(c))
            return -1;
        v = v << 4 | (uint32_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    unsigned shift = 32 - 4 * (unsigned)(text.n - 1);
    *out_low = v << shift;
    *out_high = *out_low | (uint32_t)((UINT64_C(1) << shift) - 1);
    return 0;
}
