/* worker.pools, exec.pass_env and lake.compress.types, from the file and from one text; names of
 * variables. */
#include "load.h"

#include "text.h"

enum { POOL_SLOTS_MAX = 100000, POOL_NAME_MAX = 255 };

void string_list_add(struct string_list *list, struct sv s)
{
    list->v = mem_realloc(list->v, list->n + 1, sizeof(*list->v));
    list->v[list->n++] = mem_dup(s.p, s.n);
}

void string_list_clear(struct string_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->v[i]);
    free(list->v);
    *list = (struct string_list){0};
}

void pools_clear(struct config *c)
{
    for (size_t i = 0; i < c->n_pools; i++)
        free(c->pools[i].kind);
    free(c->pools);
    c->pools = NULL;
    c->n_pools = 0;
}

static int add_pool(struct config *c, struct sv kind, struct sv slots, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    int64_t n;
    if (!kind.n || kind.n > POOL_NAME_MAX || text_bad_utf8(kind) < kind.n)
        return err_set(err, PAWL_ECONFIG, "\"%s\" is not the name of a kind",
                       short_text(kind, shown));
    for (size_t i = 0; i < c->n_pools; i++)
        if (sv_eq(kind, sv_of(c->pools[i].kind)))
            return err_set(err, PAWL_ECONFIG, "pool \"%s\" twice", short_text(kind, shown));
    if (value_int(slots, 1, POOL_SLOTS_MAX, &n, err) < 0)
        return err_wrap(err, "pool \"%s\"", short_text(kind, shown));
    c->pools = mem_realloc(c->pools, c->n_pools + 1, sizeof(*c->pools));
    c->pools[c->n_pools++] = (struct pool_conf){mem_dup(kind.p, kind.n), (int)n};
    return 0;
}

int pools_add(struct config *c, struct sv text, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    while (text.p) {
        struct sv slots, kind = sv_cut(sv_trim(sv_cut(text, ',', &text)), '=', &slots);
        if (!slots.p)
            return err_set(err, PAWL_ECONFIG, "\"%s\" is not a pool; write KIND=SLOTS",
                           short_text(kind, shown));
        if (add_pool(c, kind, slots, err) < 0)
            return PAWL_ECONFIG;
    }
    return 0;
}

void pools_format(const struct config *c, struct str *out)
{
    for (size_t i = 0; i < c->n_pools; i++)
        str_addf(out, "%s%s=%d", i ? "," : "", c->pools[i].kind, c->pools[i].slots);
}

int load_pools(struct load *l, const struct yaml_node *n)
{
    if (n->type != YAML_MAP)
        return load_fail(l, n, "worker.pools", "%s; a mapping of kinds to slots is expected",
                         yaml_is_null(n) ? "no value" : yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        struct file_text slots;
        if (m->type != YAML_TEXT)
            return load_fail(l, m, "worker.pools", "%s; a whole number is expected",
                             yaml_type_name(m));
        if (load_text(l, m, "worker.pools", &slots) < 0)
            return PAWL_ECONFIG;
        if (add_pool(l->c, m->name, slots.text, l->err) < 0)
            return load_wrap(l, m, "worker.pools", slots.secret);
    }
    l->c->origins->pools = load_origin(l, n);
    return 0;
}

bool env_reserved(struct sv name)
{
    static const char *const names[] = {"PAWL_JOB_ID", "PAWL_ATTEMPT", "PAWL_FENCE",   "PAWL_SLOT",
                                        "PAWL_QUEUE",  "PAWL_KEY",     "PAWL_DEADLINE"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (sv_eq(name, sv_of(names[i])))
            return true;
    return false;
}

bool env_name_valid(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.n > 0;
}

bool env_name_secret(struct sv name)
{
    static const char *const ends[] = {"PASSWORD", "PASSWD",     "SECRET",     "TOKEN",
                                       "API_KEY",  "SECRET_KEY", "ACCESS_KEY", "PRIVATE_KEY"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(ends[i]);
        if (name.n >= n && strncasecmp(name.p + name.n - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

static int add_pass_env(struct config *c, struct sv name, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    if (!env_name_valid(name))
        return err_set(err, PAWL_ECONFIG, "\"%s\" is not the name of a variable",
                       short_text(name, shown));
    if (env_reserved(name))
        return err_set(err, PAWL_ECONFIG, "%s is set by pawl for each job",
                       short_text(name, shown));
    string_list_add(&c->pass_env, name);
    return 0;
}

int pass_env_add(struct config *c, struct sv text, struct pawl_err *err)
{
    while (text.p)
        if (add_pass_env(c, sv_trim(sv_cut(text, ',', &text)), err) < 0)
            return PAWL_ECONFIG;
    return 0;
}

void names_format(const struct string_list *list, struct str *out)
{
    for (size_t i = 0; i < list->n; i++) {
        str_adds(out, i ? "," : "");
        str_adds(out, list->v[i]);
    }
}

int load_pass_env(struct load *l, const struct yaml_node *n)
{
    if (n->type != YAML_LIST)
        return load_fail(l, n, "exec.pass_env", "%s; a list of names is expected",
                         yaml_is_null(n) ? "no value" : yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        if (m->type != YAML_TEXT)
            return load_fail(l, m, "exec.pass_env", "%s; a name is expected", yaml_type_name(m));
        if (add_pass_env(l->c, m->text, l->err) < 0)
            return load_wrap(l, m, "exec.pass_env", false);
    }
    l->c->origins->pass_env = load_origin(l, n);
    return 0;
}

/* ---- lake.compress.types ---- */

/* "text/html", or all of one kind: "text/" and a star. No parameters: they are not compared. */
static int add_compress_type(struct config *c, struct sv type, struct pawl_err *err)
{
    char shown[SHORT_TEXT];
    struct sv rest, kind = sv_cut(type, '/', &rest);
    const char *others = "!#$&-^_.+";
    if (!text_is_word(kind, others) || !rest.p ||
        (!text_is_word(rest, others) && !sv_eq(rest, SV("*"))))
        return err_set(err, PAWL_ECONFIG, "\"%s\" is no content type; such as text/html or text/*",
                       short_text(type, shown));
    string_list_add(&c->compress_types, type);
    return 0;
}

int compress_types_add(struct config *c, struct sv text, struct pawl_err *err)
{
    while (text.p)
        if (add_compress_type(c, sv_trim(sv_cut(text, ',', &text)), err) < 0)
            return PAWL_ECONFIG;
    return 0;
}

int load_compress_types(struct load *l, const struct yaml_node *n)
{
    const char *key = "lake.compress.types";
    if (n->type != YAML_LIST)
        return load_fail(l, n, key, "%s; a list of content types is expected",
                         yaml_is_null(n) ? "no value" : yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        if (m->type != YAML_TEXT)
            return load_fail(l, m, key, "%s; a content type is expected", yaml_type_name(m));
        if (add_compress_type(l->c, m->text, l->err) < 0)
            return load_wrap(l, m, key, false);
    }
    l->c->origins->compress_types = load_origin(l, n);
    return 0;
}
