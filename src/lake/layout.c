#include "layout.h"

#include <stdio.h>
#include <strings.h>

void layout_folder(unsigned char first, char out[FOLDER_NAME])
{
    hex_encode(&first, 1, out);
}

void layout_object(const unsigned char sha256[SHA256_LEN], enum codec c, char out[OBJECT_NAME])
{
    hex_encode(sha256, SHA256_LEN, out);
    if (c == CODEC_ZSTD)
        memcpy(out + 2 * SHA256_LEN, ".zst", sizeof(".zst"));
}

void layout_place(const unsigned char sha256[SHA256_LEN], enum codec c, char out[PLACE_NAME])
{
    char folder[FOLDER_NAME], name[OBJECT_NAME];
    layout_folder(sha256[0], folder);
    layout_object(sha256, c, name);
    snprintf(out, PLACE_NAME, "files/%s/%s", folder, name);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n bytes of small hex digits; out may be NULL. */
static bool read_hex(const char *s, size_t n, unsigned char *out)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(s[2 * i]), low = high < 0 ? -1 : digit(s[2 * i + 1]);
        if (low < 0)
            return false;
        if (out)
            out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool layout_read_object(const char *name, struct place *out)
{
    const char *end = name + 2 * SHA256_LEN;
    size_t n = strnlen(name, OBJECT_NAME);
    bool plain = n == 2 * SHA256_LEN;
    if (!plain && (n != OBJECT_NAME - 1 || strcmp(end, ".zst")))
        return false;
    *out = (struct place){.codec = plain ? CODEC_NONE : CODEC_ZSTD};
    memcpy(out->name, name, n + 1);
    return read_hex(name, SHA256_LEN, out->sha256);
}

bool layout_read_temp(const char *name, struct place *out)
{
    if (strnlen(name, TEMP_NAME) != TEMP_NAME - 1 || !read_hex(name, (TEMP_NAME - 1) / 2, NULL))
        return false;
    *out = (struct place){.temporary = true};
    memcpy(out->name, name, TEMP_NAME);
    return true;
}

bool layout_read_place(struct sv text, struct place *out)
{
    char copy[PLACE_NAME];
    unsigned char folder;
    if (!text.p || text.n >= sizeof(copy) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (!strncmp(copy, "tmp/", 4))
        return layout_read_temp(copy + 4, out);
    return text.n > 9 && !strncmp(copy, "files/", 6) && copy[8] == '/' &&
           read_hex(copy + 6, 1, &folder) && layout_read_object(copy + 9, out) &&
           out->sha256[0] == folder;
}

static bool matches(struct sv type, struct sv pattern)
{
    if (sv_eq(pattern, SV("*")) || sv_eq(pattern, SV("*/*")))
        return true;
    bool open = pattern.n > 2 && !strncmp(pattern.p + pattern.n - 2, "/*", 2);
    if (open)
        pattern.n--;
    return (open ? type.n > pattern.n : type.n == pattern.n) &&
           !strncasecmp(type.p, pattern.p, pattern.n);
}

bool layout_type_matches(struct sv type, const char *const *types, size_t n)
{
    struct sv parameters;
    if (!type.p)
        return false;
    type = sv_trim(sv_cut(type, ';', &parameters));
    for (size_t i = 0; i < n; i++)
        if (matches(type, sv_of(types[i])))
            return true;
    return false;
}
