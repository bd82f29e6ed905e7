/* Reading the payload of kind exec. */
#include "exec_parts.h"

#include "text.h"
#include <stdio.h>

struct reading {
    struct json *doc;
    struct arena *arena;
    struct exec_payload *out;
    struct pawl_err *err;
};

static int refuse(struct reading *r, const char *what, struct sv name, const char *why)
{
    AUTO_STR struct str shown = STR_INIT(STR_LINE);
    text_safe(&shown, name, 64);
    return err_set(r->err, PAWL_EINPUT, "payload: %s \"%s\" %s", what, str_cstr(&shown), why);
}

/* The string as a C string. */
static int text_of(struct reading *r, uint32_t at, const char *member, const char **out)
{
    if (json_type(r->doc, at) != JSON_STRING)
        return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" holds %s; a string is expected",
                       member, json_type_name(json_type(r->doc, at)));
    struct sv s = json_string(r->doc, at, r->arena);
    if (s.n && memchr(s.p, 0, s.n))
        return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" holds a NUL character", member);
    *out = arena_strndup(r->arena, s.p, s.n);
    return 0;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* {"hex":"…"}: a word of bytes that are not UTF-8, as names of files may be. */
static int bytes_of(struct reading *r, uint32_t at, const char **out)
{
    uint32_t hex = json_member(r->doc, at, SV("hex"));
    bool good = hex && json_type(r->doc, hex) == JSON_STRING && r->doc->nodes[at].count == 1;
    struct sv s = good ? json_string(r->doc, hex, r->arena) : SV_NONE;
    char *bytes = arena_zalloc(r->arena, s.n / 2 + 1, 1);
    for (size_t i = 0; i + 1 < s.n && good; i += 2) {
        int high = nibble(s.p[i]), low = nibble(s.p[i + 1]);
        good = high >= 0 && low >= 0 && (high || low);
        bytes[i / 2] = (char)(high * 16 + low);
    }
    if (!good || s.n % 2)
        return err_set(r->err, PAWL_EINPUT,
                       "payload: \"command\" holds an object; {\"hex\":\"…\"} is expected");
    *out = bytes;
    return 0;
}

static int word_of(struct reading *r, uint32_t at, const char **out)
{
    return json_type(r->doc, at) == JSON_OBJECT ? bytes_of(r, at, out)
                                                : text_of(r, at, "command", out);
}

static int want(struct reading *r, uint32_t at, const char *member, enum json_type type)
{
    if (json_type(r->doc, at) == type)
        return 0;
    return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" is %s; %s is expected", member,
                   json_type_name(json_type(r->doc, at)), json_type_name(type));
}

static int read_command(struct reading *r, uint32_t at)
{
    int rc = want(r, at, "command", JSON_ARRAY);
    if (rc < 0)
        return rc;
    size_t n = 0;
    const char **argv = arena_zalloc(r->arena, (size_t)r->doc->nodes[at].count + 1, sizeof(*argv));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at); k = json_after(r->doc, k))
        if ((rc = word_of(r, k, &argv[n++])) < 0)
            return rc;
    if (!n || !*argv[0])
        return err_set(r->err, PAWL_EINPUT, "payload: \"command\" names no program");
    r->out->argv = argv;
    return 0;
}

/* S39: what could make another program run than the one named, or forge pawl's own variables. */
static bool forbidden_variable(struct sv name)
{
    static const char *const exact[] = {"PATH", "IFS", "BASH_ENV", "ENV"};
    for (size_t i = 0; i < ARRAY_LEN(exact); i++)
        if (sv_eq(name, sv_of(exact[i])))
            return true;
    return sv_starts(name, SV("LD_")) || sv_starts(name, SV("PAWL_"));
}

static int read_variable(struct reading *r, uint32_t name_at, const char **out)
{
    const char *value;
    struct sv name = json_string(r->doc, name_at, r->arena);
    if (!name.n || memchr(name.p, '=', name.n) || memchr(name.p, 0, name.n))
        return refuse(r, "environment variable", name, "has no valid name");
    if (forbidden_variable(name))
        return refuse(r, "environment variable", name, "may not be set by a job");
    int rc = text_of(r, name_at + 1, "env", &value);
    if (rc < 0)
        return rc;
    size_t n = strlen(value);
    char *pair = arena_alloc(r->arena, name.n + n + 2);
    memcpy(pair, name.p, name.n);
    pair[name.n] = '=';
    memcpy(pair + name.n + 1, value, n + 1);
    *out = pair;
    return 0;
}

static int read_env(struct reading *r, uint32_t at)
{
    int rc = want(r, at, "env", JSON_OBJECT);
    if (rc < 0)
        return rc;
    size_t n = 0;
    const char **env = arena_zalloc(r->arena, (size_t)r->doc->nodes[at].count + 1, sizeof(*env));
    for (uint32_t k = json_first(r->doc, at); k != json_end(r->doc, at);
         k = json_after(r->doc, k + 1))
        if ((rc = read_variable(r, k, &env[n++])) < 0)
            return rc;
    r->out->env = env;
    return 0;
}

static int read_cwd(struct reading *r, uint32_t at)
{
    const char *cwd;
    int rc = text_of(r, at, "cwd", &cwd);
    if (rc < 0)
        return rc;
    if (!*cwd)
        return err_set(r->err, PAWL_EINPUT, "payload: \"cwd\" is empty");
    r->out->cwd = cwd;
    return 0;
}

static void read_input(struct reading *r, uint32_t at)
{
    enum json_type type = json_type(r->doc, at);
    if (type == JSON_STRING)
        r->out->input = json_string(r->doc, at, r->arena);
    else if (type != JSON_NULL)
        r->out->input = json_source(r->doc, at);
}

static int read_slot(struct reading *r, uint32_t at)
{
    int rc = want(r, at, "slot", JSON_STRING);
    if (rc == 0)
        r->out->slot = json_string(r->doc, at, r->arena);
    return rc;
}

static const char *fill_word(const char *word, struct sv mark, const char *number, struct arena *a)
{
    const char *at = memmem(word, strlen(word), mark.p, mark.n);
    if (!at)
        return word;
    AUTO_STR struct str s = STR_INIT(PAYLOAD_MAX_BYTES);
    for (; at; word = at + mark.n, at = memmem(word, strlen(word), mark.p, mark.n)) {
        str_add(&s, sv_make(word, (size_t)(at - word)));
        str_adds(&s, number);
    }
    str_adds(&s, word);
    return arena_strndup(a, s.p, s.len);
}

void exec_payload_fill_slot(struct exec_payload *p, int slot, struct arena *a)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", slot);
    for (size_t i = 0; p->slot.n && p->argv[i]; i++)
        p->argv[i] = fill_word(p->argv[i], p->slot, number, a);
}

static int read_member(struct reading *r, uint32_t name_at)
{
    static const char *const known[] = {"command", "env", "cwd", "input", "slot", "note"};
    struct sv name = json_string(r->doc, name_at, r->arena);
    uint32_t value = name_at + 1;
    if (sv_eq(name, SV("command")))
        return read_command(r, value);
    if (sv_eq(name, SV("env")))
        return read_env(r, value);
    if (sv_eq(name, SV("cwd")))
        return read_cwd(r, value);
    if (sv_eq(name, SV("input"))) {
        read_input(r, value);
        return 0;
    }
    if (sv_eq(name, SV("slot")))
        return read_slot(r, value);
    if (sv_eq(name, SV("note")))
        return 0;
    const char *near = sv_nearest(name, known, ARRAY_LEN(known));
    refuse(r, "member", name, "is not known");
    return near ? err_hint(r->err, "did you mean \"%s\"?", near)
                : err_hint(r->err, "known are command, env, cwd, input, slot and note");
}

int exec_payload_read(struct sv payload, struct arena *a, struct exec_payload *out,
                      struct pawl_err *err)
{
    static const char *none[] = {NULL};
    struct exec_payload p = {.env = none};
    AUTO_JSON struct json doc = {0};
    struct reading r = {.doc = &doc, .arena = a, .out = &p, .err = err};
    int rc = json_parse(&doc, payload, err);
    if (rc < 0)
        return err_wrap(err, "payload");
    if (json_type(r.doc, 0) != JSON_OBJECT)
        return err_set(err, PAWL_EINPUT, "payload: an object with \"command\" is expected, not %s",
                       json_type_name(json_type(r.doc, 0)));
    for (uint32_t k = json_first(r.doc, 0); k != json_end(r.doc, 0); k = json_after(r.doc, k + 1))
        if ((rc = read_member(&r, k)) < 0)
            return rc;
    if (!p.argv)
        return err_set(err, PAWL_EINPUT, "payload: \"command\" is missing");
    *out = p;
    return 0;
}
