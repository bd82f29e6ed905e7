/* Structs with a size, and options as "key=value" for the one table of config.def: bounds, defaults
 * and messages are the command line's. */
#include "api.h"

#include "text.h"
#include <stdio.h>

enum { STRUCT_MAX = 64 << 10 }; /* no struct is near it: a size beyond was never set */

int check_size(const void *in, const char *name, struct pawl_err *err)
{
    size_t size;
    memcpy(&size, in, sizeof(size));
    if (size > sizeof(size) && size <= STRUCT_MAX)
        return 0;
    err_set(err, PAWL_EUSAGE, "%s: its size is %zu", name, size);
    return err_hint(err, "make it with its _INIT macro");
}

int take_struct(void *out, size_t known, const void *in, const char *name, struct pawl_err *err)
{
    memset(out, 0, known);
    if (!in)
        return 0;
    if (check_size(in, name, err) < 0)
        return PAWL_EUSAGE;
    size_t size;
    memcpy(&size, in, sizeof(size));
    const char *bytes = in;
    for (size_t i = known; i < size; i++)
        if (bytes[i]) {
            err_set(err, PAWL_EUSAGE, "%s: has a field that libpawl %s does not know", name,
                    PAWL_VERSION);
            return err_hint(err, "the program was built for a newer libpawl");
        }
    memcpy(out, in, size < known ? size : known);
    return 0;
}

void give_struct(void *out, const void *ours, size_t known)
{
    size_t size;
    memcpy(&size, out, sizeof(size));
    memset(out, 0, size);
    memcpy(out, ours, size < known ? size : known);
    memcpy(out, &size, sizeof(size));
}

struct dur ms_dur(int64_t ms)
{
    const int64_t most = DUR_MAX_US / 1000;
    if (ms > most)
        return DUR_US(DUR_MAX_US + 1);
    if (ms < -most)
        return DUR_US(-DUR_MAX_US);
    return DUR_MS(ms);
}

int check_name(const char *name, const char *what, struct pawl_err *err)
{
    struct sv s = sv_of(name);
    if (!s.n || s.n > NAME_MAX_BYTES)
        return err_set(err, PAWL_EUSAGE, "%s: a name of 1 to %d bytes is expected", what,
                       NAME_MAX_BYTES);
    if (text_bad_utf8(s) < s.n)
        return err_set(err, PAWL_EUSAGE, "%s: not valid UTF-8", what);
    return 0;
}

int check_names(const char *const *v, size_t n, const char *what, struct pawl_err *err)
{
    if (n && !v)
        return err_set(err, PAWL_EUSAGE, "%s: %zu names, but no list", what, n);
    for (size_t i = 0; i < n; i++)
        if (check_name(v[i], what, err) < 0)
            return PAWL_EUSAGE;
    return 0;
}

void settings_done(struct settings *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
}

static void push(struct settings *s, char *text)
{
    ARRAY_GROW(s->v, s->n, s->cap);
    s->v[s->n++] = text;
}

void settings_add(struct settings *s, const char *key, const char *value)
{
    size_t n = strlen(key) + strlen(value) + 2;
    char *text = mem_alloc(n);
    snprintf(text, n, "%s=%s", key, value);
    push(s, text);
}

void settings_int(struct settings *s, const char *key, int64_t v)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)v);
    if (v)
        settings_add(s, key, text);
}

void settings_ms(struct settings *s, const char *key, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof(text), "%lldms", (long long)ms);
    if (ms)
        settings_add(s, key, ms == -1 ? "none" : text);
}

int settings_durability(struct settings *s, int durability, struct pawl_err *err)
{
    static const char *const names[] = {NULL, "full", "relaxed"};
    if (durability < 0 || (size_t)durability >= ARRAY_LEN(names))
        return err_set(err, PAWL_EUSAGE, "durability: %d is none", durability);
    if (names[durability])
        settings_add(s, "durability", names[durability]);
    return 0;
}

/* What only the command line does. A setting without effect is refused, never ignored. */
static bool without_effect(const char *setting)
{
    static const char *const keys[] = {"store=", "secrets_dir=", "log.", "exec.", "disk_reserve="};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strncmp(setting, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

int settings_list(struct settings *s, const char *const *list, size_t n, struct pawl_err *err)
{
    if (n && !list)
        return err_set(err, PAWL_EUSAGE, "settings: %zu of them, but no list", n);
    for (size_t i = 0; i < n; i++) {
        if (!list[i])
            return err_set(err, PAWL_EUSAGE, "settings: number %zu is NULL", i);
        if (without_effect(list[i])) {
            struct sv key = sv_cut(sv_of(list[i]), '=', &(struct sv){0});
            return err_set(err, PAWL_ECONFIG, "settings: " SV_FMT " has no effect in the library",
                           SV_ARG(key));
        }
        push(s, mem_strdup(list[i]));
    }
    return 0;
}

int settings_config(const struct settings *s, struct config **out, struct pawl_err *err)
{
    return config_make("options", (const char *const *)s->v, s->n, out, err);
}
