#include "json.h"

#include "text.h"
#include <math.h>

static void before_value(struct jw *w)
{
    uint64_t bit = (uint64_t)1 << (w->depth & 63);
    if (!w->after_name && w->depth && (w->has_items & bit))
        str_addc(w->out, ',');
    w->has_items |= bit;
    w->after_name = false;
}

static void open_level(struct jw *w, char c)
{
    before_value(w);
    str_addc(w->out, c);
    w->depth++;
    w->has_items &= ~((uint64_t)1 << (w->depth & 63));
}

void jw_object(struct jw *w)
{
    open_level(w, '{');
}

void jw_array(struct jw *w)
{
    open_level(w, '[');
}

void jw_end_object(struct jw *w)
{
    w->depth--;
    str_addc(w->out, '}');
}

void jw_end_array(struct jw *w)
{
    w->depth--;
    str_addc(w->out, ']');
}

/* U+0080 to U+009F, two bytes in UTF-8: a terminal may take them for escape sequences. I14 */
static void add_c1(struct str *out, struct sv s, size_t *from, size_t *i)
{
    str_add(out, sv_make(s.p + *from, *i - *from));
    str_addf(out, "\\u%04x", (unsigned char)s.p[*i + 1]);
    *i += 1;
    *from = *i + 1;
}

/* The first byte from i on that may not stand as it is. */
static size_t skip_plain(struct sv s, size_t i)
{
    static const bool special[256] = {
        [0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x7f] = true, [0xc2] = true};
    while (i < s.n && !special[(unsigned char)s.p[i]])
        i++;
    return i;
}

/* s is valid UTF-8. */
static void add_quoted(struct str *out, struct sv s)
{
    static const char hex[] = "0123456789abcdef";
    str_addc(out, '"');
    size_t from = 0;
    for (size_t i = 0; (i = skip_plain(s, i)) < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == 0xc2) {
            if ((unsigned char)s.p[i + 1] < 0xa0)
                add_c1(out, s, &from, &i);
            continue;
        }
        str_add(out, sv_make(s.p + from, i - from));
        from = i + 1;
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            str_add(out, sv_make(pair, 2));
        } else if (c == '\n') {
            str_adds(out, "\\n");
        } else if (c == '\t') {
            str_adds(out, "\\t");
        } else {
            char u[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            str_add(out, sv_make(u, 6));
        }
    }
    str_add(out, sv_make(s.p + from, s.n - from));
    str_addc(out, '"');
}

static void add_text(struct str *out, struct sv s)
{
    if (text_bad_utf8(s) == s.n) {
        add_quoted(out, s);
        return;
    }
    struct str clean = STR_INIT(s.n * 3 + 1);
    text_to_utf8(&clean, s);
    add_quoted(out, str_sv(&clean));
    str_done(&clean);
}

void jw_string(struct jw *w, struct sv s)
{
    before_value(w);
    add_text(w->out, s);
}

void jw_name(struct jw *w, const char *name)
{
    before_value(w);
    add_text(w->out, sv_of(name));
    str_addc(w->out, ':');
    w->after_name = true;
}

void jw_int(struct jw *w, int64_t v)
{
    before_value(w);
    str_addi(w->out, v);
}

void jw_double(struct jw *w, double v, int decimals)
{
    before_value(w);
    if (isfinite(v))
        str_addf(w->out, "%.*f", decimals, v);
    else
        str_adds(w->out, "null");
}

void jw_bool(struct jw *w, bool v)
{
    before_value(w);
    str_adds(w->out, v ? "true" : "false");
}

void jw_null(struct jw *w)
{
    before_value(w);
    str_adds(w->out, "null");
}

void jw_raw(struct jw *w, struct sv json)
{
    before_value(w);
    str_add(w->out, json);
}

void jw_kstring(struct jw *w, const char *name, struct sv s)
{
    jw_name(w, name);
    jw_string(w, s);
}

void jw_kint(struct jw *w, const char *name, int64_t v)
{
    jw_name(w, name);
    jw_int(w, v);
}

void jw_kbool(struct jw *w, const char *name, bool v)
{
    jw_name(w, name);
    jw_bool(w, v);
}

void jw_kstring_or_null(struct jw *w, const char *name, struct sv s)
{
    jw_name(w, name);
    if (s.p)
        jw_string(w, s);
    else
        jw_null(w);
}

void jw_kraw_or_null(struct jw *w, const char *name, struct sv json)
{
    jw_name(w, name);
    if (json.p)
        jw_raw(w, json);
    else
        jw_null(w);
}

void jw_kint_or_null(struct jw *w, const char *name, int64_t v, bool known)
{
    jw_name(w, name);
    if (known)
        jw_int(w, v);
    else
        jw_null(w);
}
