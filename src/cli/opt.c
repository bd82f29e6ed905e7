#include "opt.h"

#include "mem.h"

struct parsing {
    struct args *args;
    char *const *argv;
    int at; /* the next word */
    const struct opt *const *tables;
    struct pawl_err *err;
};

void args_done(struct args *a)
{
    free(a->given);
    free(a->pos);
    *a = (struct args){0};
}

const struct opt *opt_find(const struct opt *const *tables, struct sv name)
{
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name; o++)
            if (sv_eq(name, sv_of(o->name)))
                return o;
    return NULL;
}

static const struct opt *find_brief(const struct opt *const *tables, char c)
{
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name; o++)
            if (o->brief == c)
                return o;
    return NULL;
}

const struct opt *opt_awaiting(const struct opt *const *tables, const char *word)
{
    if (word[0] != '-' || strchr(word, '='))
        return NULL;
    if (word[1] == '-') {
        const struct opt *o = opt_find(tables, sv_of(word + 2));
        return o && o->arg ? o : NULL;
    }
    for (const char *p = word + 1; *p; p++) {
        const struct opt *o = find_brief(tables, *p);
        if (!o || o->arg)
            return o && !p[1] ? o : NULL;
    }
    return NULL;
}

static int unknown_long(struct parsing *p, struct sv name)
{
    const char *names[128];
    size_t n = 0;
    for (const struct opt *const *t = p->tables; *t; t++)
        for (const struct opt *o = *t; o->name && n < ARRAY_LEN(names); o++)
            if (!o->hidden)
                names[n++] = o->name;
    err_set(p->err, PAWL_EUSAGE, "unknown option --" SV_FMT, SV_ARG(name));
    const char *near = sv_nearest(name, names, n);
    if (near)
        err_hint(p->err, "did you mean --%s?", near);
    return PAWL_EUSAGE;
}

static void keep(struct args *a, const struct opt *o, const char *value)
{
    ARRAY_GROW(a->given, a->n_given, a->cap_given);
    a->given[a->n_given++] = (struct opt_value){o, value};
}

/* The option's value: what is attached, else the next word. */
static int take_value(struct parsing *p, const struct opt *o, const char *attached)
{
    const char *value = attached ? attached : p->argv[p->at];
    if (!value)
        return err_set(p->err, PAWL_EUSAGE, "--%s needs a value: %s", o->name, o->arg);
    if (!attached)
        p->at++;
    keep(p->args, o, value);
    return 0;
}

static int read_long(struct parsing *p, const char *word)
{
    const char *eq = strchr(word, '=');
    struct sv name = sv_make(word, eq ? (size_t)(eq - word) : strlen(word));
    const struct opt *o = opt_find(p->tables, name);
    if (!o)
        return unknown_long(p, name);
    if (o->arg)
        return take_value(p, o, eq ? eq + 1 : NULL);
    if (eq)
        return err_set(p->err, PAWL_EUSAGE, "--%s takes no value", o->name);
    keep(p->args, o, NULL);
    return 0;
}

static int read_brief(struct parsing *p, const char *word)
{
    for (; *word; word++) {
        const struct opt *o = find_brief(p->tables, *word);
        if (!o)
            return err_set(p->err, PAWL_EUSAGE, "unknown option -%c", *word);
        if (o->arg)
            return take_value(p, o, word[1] ? word + 1 : NULL);
        keep(p->args, o, NULL);
    }
    return 0;
}

void args_take_tail(struct args *a, char *const *words)
{
    a->has_tail = true;
    a->tail = words;
    for (a->n_tail = 0; words[a->n_tail];)
        a->n_tail++;
}

static void read_tail(struct parsing *p)
{
    args_take_tail(p->args, p->argv + p->at);
    p->at += (int)p->args->n_tail;
}

int args_parse(struct args *a, char *const *argv, int from, const struct opt *const *tables,
               bool first_only, struct pawl_err *err)
{
    struct parsing p = {a, argv, from, tables, err};
    while (argv[p.at]) {
        const char *word = argv[p.at];
        int rc = 0;
        if (word[0] != '-' || !word[1]) {
            if (first_only)
                return p.at;
            ARRAY_GROW(a->pos, a->n_pos, a->cap_pos);
            a->pos[a->n_pos++] = word;
            p.at++;
            continue;
        }
        p.at++;
        if (!strcmp(word, "--"))
            read_tail(&p);
        else
            rc = word[1] == '-' ? read_long(&p, word + 2) : read_brief(&p, word + 1);
        if (rc < 0)
            return rc;
    }
    return p.at;
}

const char *args_nth(const struct args *a, const char *name, size_t i)
{
    for (size_t k = 0; k < a->n_given; k++)
        if (!strcmp(a->given[k].opt->name, name) && i-- == 0)
            return a->given[k].value ? a->given[k].value : "";
    return NULL;
}

const char *args_get(const struct args *a, const char *name)
{
    for (size_t k = a->n_given; k-- > 0;)
        if (!strcmp(a->given[k].opt->name, name))
            return a->given[k].value ? a->given[k].value : "";
    return NULL;
}

bool args_has(const struct args *a, const char *name)
{
    return args_get(a, name) != NULL;
}

int args_int(const struct args *a, const char *name, int64_t min, int64_t max, int64_t *out,
             struct pawl_err *err)
{
    const char *v = args_get(a, name);
    if (!v || sv_to_i64(sv_of(v), min, max, out) == 0)
        return 0;
    return err_set(err, PAWL_EUSAGE, "--%s is '%s'; a whole number from %lld to %lld is expected",
                   name, v, (long long)min, (long long)max);
}

int args_dur(const struct args *a, const char *name, bool allow_none, struct dur *out,
             struct pawl_err *err)
{
    const char *v = args_get(a, name);
    if (!v)
        return 0;
    if (dur_parse(sv_of(v), allow_none, out, err) == 0)
        return 0;
    err_wrap(err, "--%s", name);
    if (err)
        err->code = PAWL_EUSAGE;
    return PAWL_EUSAGE;
}

int args_choice(const struct args *a, const char *name, const char *const *names, int *out,
                struct pawl_err *err)
{
    const char *v = args_get(a, name);
    size_t n = 0;
    if (!v)
        return 0;
    for (; names[n]; n++)
        if (!strcmp(v, names[n])) {
            *out = (int)n;
            return 0;
        }
    AUTO_STR struct str all = STR_INIT(STR_LINE);
    for (size_t i = 0; i < n; i++)
        str_addf(&all, "%s%s", i ? ", " : "", names[i]);
    err_set(err, PAWL_EUSAGE, "--%s is '%s'; one of %s is expected", name, v, str_cstr(&all));
    const char *near = sv_nearest(sv_of(v), names, n);
    if (near)
        err_hint(err, "did you mean %s?", near);
    return PAWL_EUSAGE;
}

int args_exclude(const struct args *a, const char *one, const char *other, struct pawl_err *err)
{
    if (!args_has(a, one) || !args_has(a, other))
        return 0;
    return err_set(err, PAWL_EUSAGE, "--%s and --%s exclude each other", one, other);
}

static void put_list(struct str *s, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        str_addf(s, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
}

int args_verb(const struct args *a, const char *command, const char *const *names,
              struct pawl_err *err)
{
    AUTO_STR struct str all = STR_INIT(STR_LINE);
    const char *word = a->n_pos ? a->pos[0] : names[0];
    size_t n = 0;
    for (; names[n]; n++)
        if (!strcmp(word, names[n]))
            return (int)n;
    const char *near = sv_nearest(sv_of(word), names, n);
    err_set(err, PAWL_EUSAGE, "%s: unknown word '%s'", command, word);
    put_list(&all, names);
    if (near)
        return err_hint(err, "did you mean '%s'?", near);
    return err_hint(err, "%s", str_cstr(&all));
}
