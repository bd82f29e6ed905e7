/* The strict JSON reader: one pass, recursion bounded by JSON_MAX_DEPTH. */
#include "json.h"

#include "text.h"
#include <math.h>
#include <string.h>

struct reader {
    struct json *doc;
    struct sv s;
    size_t at;
    struct pawl_err *err;
};

static int bad(struct reader *r, const char *what)
{
    return err_set(r->err, PAWL_EINPUT, "JSON at byte %zu: %s", r->at, what);
}

static void skip_space(struct reader *r)
{
    while (r->at < r->s.n) {
        char c = r->s.p[r->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
        r->at++;
    }
}

static int peek(const struct reader *r)
{
    return r->at < r->s.n ? (unsigned char)r->s.p[r->at] : -1;
}

static int add_node(struct reader *r, enum json_type type, uint32_t *out)
{
    struct json *d = r->doc;
    if (d->n == JSON_MAX_NODES)
        return bad(r, "more than 100000 values");
    ARRAY_GROW(d->nodes, d->n, d->cap);
    *out = (uint32_t)d->n;
    d->nodes[d->n++] = (struct json_node){.type = type, .start = (uint32_t)r->at};
    return 0;
}

static void close_node(struct reader *r, uint32_t i)
{
    r->doc->nodes[i].end = (uint32_t)r->at;
    r->doc->nodes[i].next = (uint32_t)r->doc->n;
}

static int read_word(struct reader *r, const char *word, enum json_type type)
{
    size_t n = strlen(word);
    uint32_t i;
    if (r->s.n - r->at < n || memcmp(r->s.p + r->at, word, n) != 0)
        return bad(r, "not a JSON value");
    if (add_node(r, type, &i) < 0)
        return PAWL_EINPUT;
    r->at += n;
    close_node(r, i);
    return 0;
}

static bool skip_digits(struct reader *r)
{
    size_t from = r->at;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return r->at > from;
}

/* A number whose double would be infinite (1e999) is refused: no reader after us could keep it. */
static int check_range(struct reader *r, size_t from)
{
    char small[64];
    size_t n = r->at - from;
    AUTO_FREE char *large = n < sizeof(small) ? NULL : mem_dup(r->s.p + from, n);
    if (!large) {
        memcpy(small, r->s.p + from, n);
        small[n] = '\0';
    }
    return isfinite(strtod(large ? large : small, NULL)) ? 0 : bad(r, "number out of range");
}

static int read_number(struct reader *r)
{
    uint32_t i;
    size_t from = r->at;
    bool plain = true;
    if (add_node(r, JSON_NUMBER, &i) < 0)
        return PAWL_EINPUT;
    if (peek(r) == '-')
        r->at++;
    if (peek(r) == '0')
        r->at++;
    else if (!skip_digits(r))
        return bad(r, "not a JSON value");
    if (peek(r) == '.') {
        plain = false;
        r->at++;
        if (!skip_digits(r))
            return bad(r, "digits expected after '.'");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        plain = false;
        r->at++;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        if (!skip_digits(r))
            return bad(r, "digits expected in the exponent");
    }
    if ((!plain || r->at - from > 300) && check_range(r, from) < 0)
        return PAWL_EINPUT;
    close_node(r, i);
    return 0;
}

static int hex4(struct reader *r, unsigned *out)
{
    unsigned v = 0;
    if (r->s.n - r->at < 4)
        return bad(r, "\\u needs four hex digits");
    for (int k = 0; k < 4; k++) {
        int c = r->s.p[r->at + (size_t)k];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return bad(r, "\\u needs four hex digits");
        v = v * 16 + (unsigned)d;
    }
    r->at += 4;
    *out = v;
    return 0;
}

/* After the backslash. */
static int skip_escape(struct reader *r)
{
    int c = peek(r);
    if (c < 0 || !strchr("\"\\/bfnrtu", c))
        return bad(r, "unknown escape");
    r->at++;
    if (c != 'u')
        return 0;
    unsigned u, low;
    if (hex4(r, &u) < 0)
        return PAWL_EINPUT;
    if (u == 0)
        return bad(r, "NUL is not allowed in a string");
    if (u < 0xd800 || u > 0xdfff)
        return 0;
    if (u > 0xdbff || r->s.n - r->at < 6 || r->s.p[r->at] != '\\' || r->s.p[r->at + 1] != 'u')
        return bad(r, "lone surrogate");
    r->at += 2;
    if (hex4(r, &low) < 0)
        return PAWL_EINPUT;
    return low >= 0xdc00 && low <= 0xdfff ? 0 : bad(r, "lone surrogate");
}

static int read_string(struct reader *r)
{
    uint32_t i;
    bool escaped = false;
    if (add_node(r, JSON_STRING, &i) < 0)
        return PAWL_EINPUT;
    for (r->at++; peek(r) != '"';) {
        int c = peek(r);
        if (c < 0)
            return bad(r, "string without end");
        if (c < 0x20)
            return bad(r, "control character in a string");
        r->at++;
        if (c == '\\') {
            escaped = true;
            if (skip_escape(r) < 0)
                return PAWL_EINPUT;
        }
    }
    r->at++;
    r->doc->nodes[i].escaped = escaped;
    close_node(r, i);
    return 0;
}

static int read_value(struct reader *r, int depth);

static int read_array(struct reader *r, int depth)
{
    uint32_t i, count = 0;
    if (add_node(r, JSON_ARRAY, &i) < 0)
        return PAWL_EINPUT;
    r->at++;
    skip_space(r);
    while (peek(r) != ']') {
        if (count && peek(r) != ',')
            return bad(r, "',' or ']' expected");
        r->at += count ? 1 : 0;
        if (read_value(r, depth + 1) < 0)
            return PAWL_EINPUT;
        count++;
        skip_space(r);
    }
    r->at++;
    r->doc->nodes[i].count = count;
    close_node(r, i);
    return 0;
}

/* Duplicate members are refused: which one counts differs between readers. Compared as written
 * unless escaped; small objects by pairs, so a quadratic blow-up is bounded by the sort below. */
static int compare_names(const void *a, const void *b)
{
    const struct sv *x = a, *y = b;
    return sv_cmp(*x, *y);
}

static int check_duplicates(struct reader *r, uint32_t object)
{
    struct json *d = r->doc;
    uint32_t n = d->nodes[object].count;
    if (n < 2)
        return 0;
    struct arena tmp;
    arena_init(&tmp);
    struct sv small[16];
    struct sv *names = n <= ARRAY_LEN(small) ? small : arena_zalloc(&tmp, n, sizeof(*names));
    uint32_t k = object + 1;
    for (uint32_t m = 0; m < n; m++) {
        names[m] = json_string(d, k, &tmp);
        k = json_after(d, k + 1);
    }
    int rc = 0;
    if (n <= ARRAY_LEN(small)) {
        for (uint32_t a = 1; a < n && !rc; a++)
            for (uint32_t b = 0; b < a && !rc; b++)
                if (sv_eq(names[a], names[b]))
                    rc = err_set(r->err, PAWL_EINPUT,
                                 "JSON at byte %zu: member \"" SV_FMT "\" twice", r->at,
                                 SV_ARG(names[a]));
    } else {
        qsort(names, n, sizeof(*names), compare_names);
        for (uint32_t m = 1; m < n && !rc; m++)
            if (sv_eq(names[m - 1], names[m]))
                rc = err_set(r->err, PAWL_EINPUT, "JSON at byte %zu: member \"" SV_FMT "\" twice",
                             r->at, SV_ARG(names[m]));
    }
    arena_done(&tmp);
    return rc;
}

static int read_object(struct reader *r, int depth)
{
    uint32_t i, count = 0;
    if (add_node(r, JSON_OBJECT, &i) < 0)
        return PAWL_EINPUT;
    r->at++;
    skip_space(r);
    while (peek(r) != '}') {
        if (count && peek(r) != ',')
            return bad(r, "',' or '}' expected");
        r->at += count ? 1 : 0;
        skip_space(r);
        if (peek(r) != '"')
            return bad(r, "member name expected");
        if (read_string(r) < 0)
            return PAWL_EINPUT;
        skip_space(r);
        if (peek(r) != ':')
            return bad(r, "':' expected");
        r->at++;
        if (read_value(r, depth + 1) < 0)
            return PAWL_EINPUT;
        count++;
        skip_space(r);
    }
    r->at++;
    r->doc->nodes[i].count = count;
    close_node(r, i);
    return check_duplicates(r, i);
}

static int read_value(struct reader *r, int depth)
{
    skip_space(r);
    if (depth == JSON_MAX_DEPTH && (peek(r) == '{' || peek(r) == '['))
        return bad(r, "nested deeper than 64");
    switch (peek(r)) {
    case '{':
        return read_object(r, depth);
    case '[':
        return read_array(r, depth);
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true", JSON_BOOL);
    case 'f':
        return read_word(r, "false", JSON_BOOL);
    case 'n':
        return read_word(r, "null", JSON_NULL);
    case -1:
        return bad(r, "a value is missing");
    default:
        return read_number(r);
    }
}

int json_parse(struct json *doc, struct sv src, struct pawl_err *err)
{
    struct reader r = {.doc = doc, .s = src, .err = err};
    doc->src = src;
    doc->n = 0;
    if (src.n > UINT32_MAX / 2)
        return err_set(err, PAWL_EINPUT, "JSON of more than 2 GiB");
    r.at = text_bad_utf8(src);
    if (r.at < src.n)
        return bad(&r, src.p[r.at] ? "not valid UTF-8" : "NUL byte");
    r.at = 0;
    if (read_value(&r, 0) < 0)
        return PAWL_EINPUT;
    skip_space(&r);
    return r.at == src.n ? 0 : bad(&r, "bytes after the end of the value");
}

void json_done(struct json *doc)
{
    free(doc->nodes);
    *doc = (struct json){0};
}

struct sv json_source(const struct json *doc, uint32_t i)
{
    const struct json_node *n = &doc->nodes[i];
    return sv_make(doc->src.p + n->start, n->end - n->start);
}

static size_t put_utf8(char *p, unsigned u)
{
    if (u < 0x80) {
        p[0] = (char)u;
        return 1;
    }
    if (u < 0x800) {
        p[0] = (char)(0xc0 | u >> 6);
        p[1] = (char)(0x80 | (u & 0x3f));
        return 2;
    }
    if (u < 0x10000) {
        p[0] = (char)(0xe0 | u >> 12);
        p[1] = (char)(0x80 | (u >> 6 & 0x3f));
        p[2] = (char)(0x80 | (u & 0x3f));
        return 3;
    }
    p[0] = (char)(0xf0 | u >> 18);
    p[1] = (char)(0x80 | (u >> 12 & 0x3f));
    p[2] = (char)(0x80 | (u >> 6 & 0x3f));
    p[3] = (char)(0x80 | (u & 0x3f));
    return 4;
}

/* The source was validated by json_parse, so the escapes are well-formed. */
static size_t put_escape(struct reader *r, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->s.p[r->at++];
    if (c != 'u') {
        *out = to[strchr(from, c) - from];
        return 1;
    }
    unsigned u = 0, low = 0;
    if (hex4(r, &u) == 0 && u >= 0xd800 && u <= 0xdbff) {
        r->at += 2;
        if (hex4(r, &low) == 0)
            u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(out, u);
}

struct sv json_string(const struct json *doc, uint32_t i, struct arena *a)
{
    const struct json_node *n = &doc->nodes[i];
    struct sv raw = sv_make(doc->src.p + n->start + 1, n->end - n->start - 2);
    if (!n->escaped)
        return raw;
    char *out = arena_alloc(a, raw.n + 1);
    size_t len = 0;
    struct reader r = {.s = raw};
    while (r.at < raw.n) {
        char c = raw.p[r.at++];
        if (c == '\\')
            len += put_escape(&r, out + len);
        else
            out[len++] = c;
    }
    out[len] = '\0';
    return sv_make(out, len);
}

int json_i64(const struct json *doc, uint32_t i, int64_t min, int64_t max, int64_t *out)
{
    if (json_type(doc, i) != JSON_NUMBER)
        return -1;
    return sv_to_i64(json_source(doc, i), min, max, out);
}

bool json_is_true(const struct json *doc, uint32_t i)
{
    return doc->src.p[doc->nodes[i].start] == 't';
}

uint32_t json_member(const struct json *doc, uint32_t object, struct sv name)
{
    if (json_type(doc, object) != JSON_OBJECT)
        return 0;
    struct arena tmp;
    arena_init(&tmp);
    uint32_t found = 0;
    for (uint32_t k = json_first(doc, object); k != json_end(doc, object) && !found;
         k = json_after(doc, k + 1))
        if (sv_eq(json_string(doc, k, &tmp), name))
            found = k + 1;
    arena_done(&tmp);
    return found;
}

const char *json_type_name(enum json_type t)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    return names[t];
}
