/* Places in segments: "pack/SEGMENT/OFFSET/LENGTH", and "/LEAD" where something belongs to the
 * record that lies before it. Bytes that an exchange only referred to have its own record after a
 * plus sign. Nothing else becomes the name of a segment (S27). */
#include "pack.h"

#include <inttypes.h>
#include <stdio.h>

/* A digit for each 0, a hex digit for each x, else itself. */
static const char PATTERN[] = "00000000T000000Z-xxxxxxxxxxxxxxxx";
_Static_assert(sizeof(PATTERN) == SEGMENT_NAME, "names of segments");

bool segment_name_ok(struct sv s)
{
    if (s.n != SEGMENT_NAME - 1)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool digit = c >= '0' && c <= '9', hex = digit || (c >= 'a' && c <= 'f');
        bool good = PATTERN[i] == '0' ? digit : PATTERN[i] == 'x' ? hex : c == PATTERN[i];
        if (!good)
            return false;
    }
    return true;
}

/* By the time of its beginning, so that a listing is in order; unique by chance. */
void segment_name_new(char out[SEGMENT_NAME])
{
    AUTO_STR struct str at = STR_INIT(STR_LINE);
    char id[33];
    wall_format(clock_wall(), &at); /* 2026-01-02T03:04:05.678Z */
    const char *t = str_cstr(&at);
    rand_id(id);
    snprintf(out, SEGMENT_NAME, "%.4s%.2s%.2sT%.2s%.2s%.2sZ-%.16s", t, t + 5, t + 8, t + 11, t + 14,
             t + 17, id);
}

void segment_file(const char segment[SEGMENT_NAME], char out[SEGMENT_FILE])
{
    snprintf(out, SEGMENT_FILE, "%s" SEGMENT_ENDING, segment);
}

bool segment_of_file(const char *file, char out[SEGMENT_NAME])
{
    struct sv name = sv_of(file), ending = SV(SEGMENT_ENDING);
    if (name.n != SEGMENT_FILE - 1 || strcmp(file + name.n - ending.n, ending.p) != 0)
        return false;
    name.n -= ending.n;
    if (!segment_name_ok(name))
        return false;
    snprintf(out, SEGMENT_NAME, SV_FMT, SV_ARG(name));
    return true;
}

bool segment_of_place(struct sv place, char out[SEGMENT_NAME])
{
    if (!place.p || !sv_starts(place, SV("pack/")))
        return false;
    struct sv name = sv_make(place.p + 5, place.n - 5);
    if (!segment_name_ok(name))
        return false;
    snprintf(out, SEGMENT_NAME, SV_FMT, SV_ARG(name));
    return true;
}

/* No sign, no zeros in front: every place is written in one way. */
static bool read_number(struct sv s, int64_t *out)
{
    return s.n && (s.n == 1 || s.p[0] != '0') && s.p[0] != '+' && s.p[0] != '-' &&
           sv_to_i64(s, 0, INT64_MAX / 4, out) == 0;
}

static bool read_span(struct sv s, struct lake_span *out)
{
    struct sv rest, name = sv_cut(s, '/', &rest);
    *out = (struct lake_span){0};
    if (!segment_name_ok(name) || !read_number(sv_cut(rest, '/', &rest), &out->offset) ||
        !read_number(sv_cut(rest, '/', &rest), &out->length))
        return false;
    snprintf(out->segment, SEGMENT_NAME, SV_FMT, SV_ARG(name));
    return (!rest.p || (read_number(rest, &out->lead) && out->lead > 0)) && out->length > 0 &&
           out->lead <= out->offset;
}

int lake_spans(struct sv place, struct lake_span out[2])
{
    struct sv own;
    if (!place.p || place.n > PLACE_MAX_BYTES || !sv_starts(place, SV("pack/")))
        return 0;
    struct sv bytes = sv_cut(sv_make(place.p + 5, place.n - 5), '+', &own);
    if (!read_span(bytes, &out[0]))
        return 0;
    if (!own.p)
        return 1;
    return read_span(own, &out[1]) ? 2 : 0;
}

static size_t write_span(const struct lake_span *s, char *out, size_t room)
{
    int n = snprintf(out, room, "%s/%" PRId64 "/%" PRId64, s->segment, s->offset, s->length);
    if (s->lead)
        n += snprintf(out + n, room - (size_t)n, "/%" PRId64, s->lead);
    return (size_t)n;
}

void lake_place(const struct lake_span *v, int n, char out[PLACE_MAX_BYTES + 1])
{
    size_t at = 5;
    memcpy(out, "pack/", 6);
    at += write_span(&v[0], out + at, PLACE_MAX_BYTES - at);
    if (n > 1) {
        out[at++] = '+';
        write_span(&v[1], out + at, PLACE_MAX_BYTES - at);
    }
}

void lake_segment_file(const char segment[SEGMENT_NAME], struct str *out)
{
    str_addf(out, "segments/%s" SEGMENT_ENDING, segment);
}
