/* The option table at run time. A default or bound in config.def that does not parse is a mistake
 * of the programmer and asserted. */
#include "options.h"

#include "mem.h"
#include "text.h"
#include <assert.h>
#include <stdio.h>

const struct option options[N_OPTIONS] = {
#define ROW(type_, field_, key_)                                                                   \
    .key = (key_), .type = (type_), .offset = offsetof(struct config, field_)
#define STRING(field_, key_, default_, doc_)                                                       \
    {ROW(TYPE_STRING, field_, key_), .value = (default_), .doc = (doc_)},
#define DURATION(field_, key_, default_, min_, max_, none_, doc_)                                  \
    {ROW(TYPE_DURATION, field_, key_),                                                             \
     .value = (default_),                                                                          \
     .min = (min_),                                                                                \
     .max = (max_),                                                                                \
     .none = (none_),                                                                              \
     .doc = (doc_)},
#define INTEGER(field_, key_, default_, min_, max_, doc_)                                          \
    {ROW(TYPE_INTEGER, field_, key_), .value = #default_, .min = #min_, .max = #max_,              \
     .doc = (doc_)},
#define BOOLEAN(field_, key_, default_, doc_)                                                      \
    {ROW(TYPE_BOOLEAN, field_, key_), .value = #default_, .doc = (doc_)},
#define CHOICE(field_, key_, default_, choices_, doc_)                                             \
    {ROW(TYPE_CHOICE, field_, key_), .value = (default_), .choices = (choices_), .doc = (doc_)},
#define BYTES(field_, key_, default_, min_, max_, doc_)                                            \
    {ROW(TYPE_BYTES, field_, key_), .value = (default_), .min = (min_), .max = (max_),             \
     .doc = (doc_)},
#include "config.def"
#undef STRING
#undef DURATION
#undef INTEGER
#undef BOOLEAN
#undef CHOICE
#undef BYTES
#undef ROW
};

const struct option *option_find(struct sv key)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (sv_eq(key, sv_of(options[i].key)))
            return &options[i];
    return NULL;
}

const char *option_type_name(const struct option *o)
{
    static const char *const names[] = {"text",          "a duration", "a whole number",
                                        "true or false", "a choice",   "a size"};
    return names[o->type];
}

void env_name(const char *key, char out[ENV_NAME_MAX])
{
    int n = snprintf(out, ENV_NAME_MAX, "PAWL_%s", key);
    assert(n > 0 && n < ENV_NAME_MAX);
    for (char *p = out; *p; p++) {
        if (*p == '.')
            *p = '_';
        else if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
}

const char *short_text(struct sv s, char out[SHORT_TEXT])
{
    AUTO_STR struct str safe = STR_INIT(STR_LINE);
    text_safe(&safe, s, 30);
    snprintf(out, SHORT_TEXT, "%s", str_cstr(&safe));
    return out;
}

static int out_of_bounds(struct sv text, const char *min, const char *max, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    return err_set(err, PAWL_ECONFIG, "%s is out of bounds; allowed %s to %s",
                   short_text(text, shown), min, max);
}

static struct dur table_dur(const char *text)
{
    struct dur d = {0};
    int rc = dur_parse(sv_of(text), true, &d, NULL);
    assert(rc == 0);
    return d;
}

int value_dur(struct sv text, const char *min, const char *max, bool none, struct dur *out,
              struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    struct dur d;
    if (dur_parse(text, none, &d, NULL) < 0)
        return err_set(err, PAWL_ECONFIG,
                       "\"%s\" is not a duration; write 500ms, 10s, 5m, 2h or 7d%s",
                       short_text(text, shown), none ? ", or none" : "");
    if (d.us != DUR_NONE.us && (d.us < table_dur(min).us || d.us > table_dur(max).us))
        return out_of_bounds(text, min, max, err);
    *out = d;
    return 0;
}

int value_int(struct sv text, int64_t min, int64_t max, int64_t *out, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    int64_t v;
    size_t sign = text.n && text.p[0] == '-' ? 1 : 0;
    bool number = text.n > sign;
    for (size_t i = sign; i < text.n; i++)
        number = number && text.p[i] >= '0' && text.p[i] <= '9';
    if (!number)
        return err_set(err, PAWL_ECONFIG, "\"%s\" is not a whole number", short_text(text, shown));
    if (sv_to_i64(text, min, max, &v) < 0)
        return err_set(err, PAWL_ECONFIG, "%s is out of bounds; allowed %lld to %lld",
                       short_text(text, shown), (long long)min, (long long)max);
    *out = v;
    return 0;
}

static const struct {
    const char *name;
    int64_t bytes;
} byte_units[] = {
    {"TiB", (int64_t)1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1},
};

/* "4096", "256KiB", "1MiB", "1GiB", "1TiB"; -1 on anything else. */
static int bytes_parse(struct sv text, int64_t *out)
{
    size_t digits = 0;
    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    struct sv unit = sv_make(text.p + digits, text.n - digits);
    for (size_t i = 0; i < ARRAY_LEN(byte_units); i++) {
        int64_t n;
        if (!sv_eq(unit, sv_of(byte_units[i].name)))
            continue;
        if (sv_to_i64(sv_make(text.p, digits), 0, INT64_MAX / byte_units[i].bytes, &n) < 0)
            return -1;
        *out = n * byte_units[i].bytes;
        return 0;
    }
    return -1;
}

static void bytes_format(int64_t n, struct str *out)
{
    size_t i = 0;
    while (n < byte_units[i].bytes || n % byte_units[i].bytes)
        if (++i == ARRAY_LEN(byte_units) - 1)
            break;
    str_addi(out, n / byte_units[i].bytes);
    str_adds(out, byte_units[i].name);
}

static int64_t table_bytes(const char *text)
{
    int64_t n = 0;
    int rc = bytes_parse(sv_of(text), &n);
    assert(rc == 0);
    return n;
}

static int set_bytes(const struct option *o, int64_t *out, struct sv text, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    int64_t n;
    if (bytes_parse(text, &n) < 0)
        return err_set(err, PAWL_ECONFIG, "\"%s\" is not a size; write 4096, 256KiB, 1MiB or 1GiB",
                       short_text(text, shown));
    if (n < table_bytes(o->min) || n > table_bytes(o->max))
        return out_of_bounds(text, o->min, o->max, err);
    *out = n;
    return 0;
}

int value_bool(struct sv text, bool *out, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    bool yes = sv_eq(text, SV("true"));
    if (!yes && !sv_eq(text, SV("false")))
        return err_set(err, PAWL_ECONFIG, "\"%s\" is neither true nor false",
                       short_text(text, shown));
    *out = yes;
    return 0;
}

static void replace_text(char **field, struct sv text)
{
    free(*field);
    *field = mem_dup(text.p, text.n);
}

static int set_choice(const struct option *o, char **field, struct sv text, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    struct sv rest = sv_of(o->choices);
    while (rest.p) {
        struct sv one = sv_cut(rest, '|', &rest);
        if (!sv_eq(text, one))
            continue;
        replace_text(field, text);
        return 0;
    }
    return err_set(err, PAWL_ECONFIG, "\"%s\" is not allowed; allowed %s", short_text(text, shown),
                   o->choices);
}

/* Empty only where that is the default, too. */
static int set_text(const struct option *o, char **field, struct sv text, struct pawl_err *err)
{
    if (!text.n && o->value[0])
        return err_set(err, PAWL_ECONFIG, "the text is empty");
    size_t bad = text_bad_utf8(text);
    if (bad < text.n)
        return err_set(err, PAWL_ECONFIG, "not valid UTF-8 at byte %zu", bad);
    replace_text(field, text);
    return 0;
}

static void *field_of(const struct option *o, const struct config *c)
{
    return (char *)c + o->offset;
}

int option_set(const struct option *o, struct config *c, struct sv text, struct pawl_err *err)
{
    void *field = field_of(o, c);
    int64_t min, max;
    switch (o->type) {
    case TYPE_STRING:
        return set_text(o, field, text, err);
    case TYPE_DURATION:
        return value_dur(text, o->min, o->max, o->none, field, err);
    case TYPE_INTEGER:
        if (sv_to_i64(sv_of(o->min), INT64_MIN, INT64_MAX, &min) < 0 ||
            sv_to_i64(sv_of(o->max), INT64_MIN, INT64_MAX, &max) < 0)
            assert(!"bounds in config.def");
        return value_int(text, min, max, field, err);
    case TYPE_BOOLEAN:
        return value_bool(text, field, err);
    case TYPE_CHOICE:
        return set_choice(o, field, text, err);
    case TYPE_BYTES:
        return set_bytes(o, field, text, err);
    }
    return err_set(err, PAWL_EINTERNAL, "unknown option type");
}

void option_format(const struct option *o, const struct config *c, struct str *out)
{
    const void *field = field_of(o, c);
    switch (o->type) {
    case TYPE_STRING:
    case TYPE_CHOICE:
        str_adds(out, *(char *const *)field);
        break;
    case TYPE_DURATION:
        dur_format(*(const struct dur *)field, out);
        break;
    case TYPE_INTEGER:
        str_addi(out, *(const int64_t *)field);
        break;
    case TYPE_BOOLEAN:
        str_adds(out, *(const bool *)field ? "true" : "false");
        break;
    case TYPE_BYTES:
        bytes_format(*(const int64_t *)field, out);
        break;
    }
}
