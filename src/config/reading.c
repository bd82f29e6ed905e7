#include "reading.h"

#include "json.h"
#include <stdio.h>

int reading_want(struct reading *r, const struct yaml_node *n, enum yaml_type type,
                 const char *what)
{
    if (n->type == type && !yaml_is_null(n))
        return 0;
    return load_fail(r->l, n, r->key, "%s; %s is expected",
                     yaml_is_null(n) ? "no value" : yaml_type_name(n), what);
}

int reading_scalar(struct reading *r, const struct yaml_node *n, const char *what,
                   struct file_text *out)
{
    if (reading_want(r, n, YAML_TEXT, what) < 0 || load_text(r->l, n, r->key, out) < 0)
        return PAWL_ECONFIG;
    return 0;
}

struct sv reading_masked(const struct file_text *v)
{
    return v->secret ? SV("***") : v->text;
}

int reading_text(struct reading *r, const struct yaml_node *n, const char *what, char **out)
{
    struct file_text v;
    if (reading_scalar(r, n, what, &v) < 0)
        return PAWL_ECONFIG;
    if (!v.text.n)
        return load_fail(r->l, n, r->key, "the text is empty");
    free(*out);
    *out = mem_dup(v.text.p, v.text.n);
    str_add(&r->show, reading_masked(&v));
    return 0;
}

int reading_texts(struct reading *r, const struct yaml_node *n, struct string_list *out)
{
    struct jw w = jw_make(&r->show);
    if (reading_want(r, n, YAML_LIST, "a list") < 0)
        return PAWL_ECONFIG;
    jw_array(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        struct file_text v;
        if (reading_scalar(r, m, "text", &v) < 0)
            return PAWL_ECONFIG;
        if (out->n == LIST_MAX)
            return load_fail(r->l, m, r->key, "more than %d entries", LIST_MAX);
        string_list_add(out, v.text);
        jw_string(&w, reading_masked(&v));
    }
    jw_end_array(&w);
    return 0;
}

int reading_dur(struct reading *r, const struct yaml_node *n, const char *min, const char *max,
                bool none, struct dur *out)
{
    struct file_text v;
    if (reading_scalar(r, n, "a duration", &v) < 0)
        return PAWL_ECONFIG;
    if (value_dur(v.text, min, max, none, out, r->l->err) < 0)
        return load_wrap(r->l, n, r->key, v.secret);
    dur_format(*out, &r->show);
    return 0;
}

int reading_bool(struct reading *r, const struct yaml_node *n, bool *out)
{
    struct file_text v;
    if (reading_scalar(r, n, "true or false", &v) < 0)
        return PAWL_ECONFIG;
    if (value_bool(v.text, out, r->l->err) < 0)
        return load_wrap(r->l, n, r->key, v.secret);
    str_adds(&r->show, *out ? "true" : "false");
    return 0;
}

int reading_int(struct reading *r, const struct yaml_node *n, int64_t min, int64_t max,
                int64_t *out)
{
    struct file_text v;
    if (reading_scalar(r, n, "a whole number", &v) < 0)
        return PAWL_ECONFIG;
    if (value_int(v.text, min, max, out, r->l->err) < 0)
        return load_wrap(r->l, n, r->key, v.secret);
    return 0;
}

int reading_number(struct reading *r, const struct yaml_node *n, int64_t min, int64_t max,
                   int64_t *out)
{
    if (reading_int(r, n, min, max, out) < 0)
        return PAWL_ECONFIG;
    str_addi(&r->show, *out);
    return 0;
}

static void show_url(struct reading *r, const char *url)
{
    const char *host = strstr(url, "://") + 3;
    str_clear(&r->show);
    str_add(&r->show, sv_make(url, (size_t)(host - url) + strcspn(host, "/?#")));
    str_adds(&r->show, host[strcspn(host, "/?#")] ? "/***" : "");
}

int reading_url(struct reading *r, const struct yaml_node *n, char **out)
{
    if (reading_text(r, n, "a URL", out) < 0)
        return PAWL_ECONFIG;
    if (strncasecmp(*out, "http://", 7) != 0 && strncasecmp(*out, "https://", 8) != 0)
        return load_fail(r->l, n, r->key, "a URL with http:// or https:// in front is expected");
    if (strcmp(str_cstr(&r->show), "***") != 0)
        show_url(r, *out);
    return 0;
}

int reading_secret(struct reading *r, const struct yaml_node *n, char **out)
{
    struct file_text v;
    if (reading_scalar(r, n, "text", &v) < 0)
        return PAWL_ECONFIG;
    if (!v.text.n || v.text.n > SIGNING_KEY_MAX)
        return load_fail(r->l, n, r->key, "1 to %d bytes are expected", SIGNING_KEY_MAX);
    if (!v.secret && r->l->world_readable) { /* S46 */
        int rc = load_fail(r->l, n, r->key, "a secret in a file that everybody can read");
        err_hint(r->l->err, "chmod o-r %.80s, or write ${file:NAME}", r->l->file);
        return rc;
    }
    free(*out);
    *out = mem_dup(v.text.p, v.text.n);
    str_adds(&r->show, "***");
    return 0;
}

int reading_entry(struct load *l, const struct yaml_node *n, const char *section, size_t have,
                  size_t max)
{
    if (n->type != YAML_MAP)
        return load_fail(l, n, section, "%s; a mapping is expected",
                         yaml_is_null(n) ? "no value" : yaml_type_name(n));
    return have < max ? 0 : load_fail(l, n, section, "more than %zu", max);
}

static const struct yaml_node *name_of(const struct yaml_node *entry)
{
    for (const struct yaml_node *m = entry->first; m; m = m->next)
        if (sv_eq(m->name, SV("name")))
            return m;
    return NULL;
}

int reading_members(struct reading *r, const struct yaml_node *n, const char *section,
                    int (*read)(struct reading *r, const struct yaml_node *m))
{
    const struct yaml_node *name = name_of(n);
    if (!name)
        return load_fail(r->l, n, section, "name is missing");
    if (read(r, name) < 0)
        return PAWL_ECONFIG;
    for (const struct yaml_node *m = n->first; m; m = m->next)
        if (m != name && read(r, m) < 0)
            return PAWL_ECONFIG;
    return 0;
}

int reading_unknown(struct reading *r, const struct yaml_node *n, const char *const *names,
                    size_t n_names)
{
    char shown[SHORT_TEXT];
    const char *near = sv_nearest(n->name, names, n_names);
    return err_set(r->l->err, PAWL_ECONFIG, "%s:%d: unknown key \"%s\"%s%s%s", r->l->file,
                   n->name_line, short_text(sv_of(r->key), shown), near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

void reading_remember(struct reading *r, const struct yaml_node *n, const char *doc)
{
    struct config_origins *o = r->l->c->origins;
    ARRAY_GROW(o->shown, o->n_shown, o->cap_shown);
    o->shown[o->n_shown++] = (struct shown_value){
        mem_strdup(r->key), mem_strdup(str_cstr(&r->show)), load_origin(r->l, n), doc};
}
