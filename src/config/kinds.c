/* kinds: what each configured kind of job runs. Keys come from kinds.def; what was read is also
 * kept as text for config_each(), with secrets masked at once. */
#include "load.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { KIND_NAME_MAX = 255, COMMAND_MAX = 1000, LIST_MAX = 1000 };

/* One kind being read. */
struct reading {
    struct load *l;
    struct kind_conf *kind;
    char key[320];   /* "kinds.parse.command", for messages */
    struct str show; /* the value read, as it may be shown */
    bool given_transient_exit;
};

static int want(struct reading *r, const struct yaml_node *n, enum yaml_type type, const char *what)
{
    if (n->type == type && !yaml_is_null(n))
        return 0;
    return load_fail(r->l, n, r->key, "%s; %s is expected",
                     yaml_is_null(n) ? "no value" : yaml_type_name(n), what);
}

static int read_scalar(struct reading *r, const struct yaml_node *n, const char *what,
                       struct file_text *out)
{
    if (want(r, n, YAML_TEXT, what) < 0 || load_text(r->l, n, r->key, out) < 0)
        return PAWL_ECONFIG;
    return 0;
}

static struct sv masked(const struct file_text *v)
{
    return v->secret ? SV("***") : v->text;
}

static int read_handler(struct reading *r, const struct yaml_node *n)
{
    static const char *const handlers[] = {"exec", "noop"};
    struct file_text v;
    char shown[SHORT_TEXT];
    if (read_scalar(r, n, "a handler", &v) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
        if (sv_eq(v.text, sv_of(handlers[i]))) {
            free(r->kind->handler);
            r->kind->handler = mem_strdup(handlers[i]);
            str_adds(&r->show, handlers[i]);
            return 0;
        }
    const char *near = sv_nearest(v.text, handlers, ARRAY_LEN(handlers));
    return load_fail(r->l, n, r->key, "no handler \"%s\"%s%s%s", short_text(masked(&v), shown),
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int read_texts(struct reading *r, const struct yaml_node *n, struct string_list *out)
{
    struct jw w = jw_make(&r->show);
    if (want(r, n, YAML_LIST, "a list") < 0)
        return PAWL_ECONFIG;
    jw_array(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        struct file_text v;
        if (read_scalar(r, m, "text", &v) < 0)
            return PAWL_ECONFIG;
        if (out->n == LIST_MAX)
            return load_fail(r->l, m, r->key, "more than %d entries", LIST_MAX);
        string_list_add(out, v.text);
        jw_string(&w, masked(&v));
    }
    jw_end_array(&w);
    return 0;
}

static int read_command(struct reading *r, const struct yaml_node *n)
{
    if (read_texts(r, n, &r->kind->command) < 0)
        return PAWL_ECONFIG;
    if (!r->kind->command.n)
        return load_fail(r->l, n, r->key, "the list is empty; program and arguments are expected");
    if (!r->kind->command.v[0][0])
        return load_fail(r->l, n, r->key, "the program's name is empty");
    return 0;
}

static int read_cwd(struct reading *r, const struct yaml_node *n)
{
    struct file_text v;
    if (read_scalar(r, n, "a folder", &v) < 0)
        return PAWL_ECONFIG;
    if (!v.text.n)
        return load_fail(r->l, n, r->key, "the text is empty");
    r->kind->cwd = mem_dup(v.text.p, v.text.n);
    str_add(&r->show, masked(&v));
    return 0;
}

static int check_variable(struct reading *r, const struct yaml_node *n, const struct file_text *v)
{
    char shown[SHORT_TEXT];
    if (!env_name_valid(n->name))
        return load_fail(r->l, n, r->key, "\"%s\" is not the name of a variable",
                         short_text(n->name, shown));
    if (env_reserved(n->name))
        return load_fail(r->l, n, r->key, "%s is set by pawl for each job",
                         short_text(n->name, shown));
    if (!v->secret && v->text.n && env_name_secret(n->name) && r->l->world_readable) { /* S46 */
        int rc = load_fail(r->l, n, r->key, "%s: a secret in a file that everybody can read",
                           short_text(n->name, shown));
        err_hint(r->l->err, "chmod o-r %.80s, or write ${file:NAME}", r->l->file);
        return rc;
    }
    return 0;
}

static int read_env(struct reading *r, const struct yaml_node *n)
{
    struct jw w = jw_make(&r->show);
    if (want(r, n, YAML_MAP, "a mapping") < 0)
        return PAWL_ECONFIG;
    jw_object(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        struct file_text v;
        if (read_scalar(r, m, "text", &v) < 0 || check_variable(r, m, &v) < 0)
            return PAWL_ECONFIG;
        AUTO_STR struct str pair = STR_INIT(2 << 20);
        str_add(&pair, m->name);
        str_addc(&pair, '=');
        str_add(&pair, v.text);
        string_list_add(&r->kind->env, str_sv(&pair));
        AUTO_FREE char *name = mem_dup(m->name.p, m->name.n);
        v.secret = v.secret || env_name_secret(m->name);
        jw_kstring(&w, name, masked(&v));
    }
    jw_end_object(&w);
    return 0;
}

static int read_dur(struct reading *r, const struct yaml_node *n, struct dur *out)
{
    struct file_text v;
    if (read_scalar(r, n, "a duration", &v) < 0)
        return PAWL_ECONFIG;
    if (value_dur(v.text, "10ms", "30d", true, out, r->l->err) < 0)
        return load_wrap(r->l, n, r->key, v.secret);
    dur_format(*out, &r->show);
    return 0;
}

static int read_timeout(struct reading *r, const struct yaml_node *n)
{
    return read_dur(r, n, &r->kind->timeout);
}

static int read_idle_timeout(struct reading *r, const struct yaml_node *n)
{
    struct dur d;
    if (read_dur(r, n, &d) < 0)
        return PAWL_ECONFIG;
    r->kind->idle_timeout = d.us < 0 ? DUR_US(0) : d;
    return 0;
}

static int read_int(struct reading *r, const struct yaml_node *n, int min, int max, int *out)
{
    struct file_text v;
    int64_t i;
    if (read_scalar(r, n, "a whole number", &v) < 0)
        return PAWL_ECONFIG;
    if (value_int(v.text, min, max, &i, r->l->err) < 0)
        return load_wrap(r->l, n, r->key, v.secret);
    *out = (int)i;
    return 0;
}

static int read_max_attempts(struct reading *r, const struct yaml_node *n)
{
    if (read_int(r, n, 1, 1000000, &r->kind->max_attempts) < 0)
        return PAWL_ECONFIG;
    str_addi(&r->show, r->kind->max_attempts);
    return 0;
}

static void int_list_add(struct int_list *list, int v)
{
    list->v = mem_realloc(list->v, list->n + 1, sizeof(*list->v));
    list->v[list->n++] = v;
}

static bool int_list_has(const struct int_list *list, int v)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == v)
            return true;
    return false;
}

static int read_exit_codes(struct reading *r, const struct yaml_node *n, struct int_list *out,
                           const struct int_list *other)
{
    struct jw w = jw_make(&r->show);
    if (want(r, n, YAML_LIST, "a list of exit codes") < 0)
        return PAWL_ECONFIG;
    jw_array(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        int code = 0;
        if (read_int(r, m, 1, 255, &code) < 0)
            return PAWL_ECONFIG;
        if (int_list_has(other, code))
            return load_fail(r->l, m, r->key, "%d is both in transient_exit and fatal_exit", code);
        if (int_list_has(out, code))
            return load_fail(r->l, m, r->key, "%d twice", code);
        int_list_add(out, code);
        jw_int(&w, code);
    }
    jw_end_array(&w);
    return 0;
}

static int read_transient_exit(struct reading *r, const struct yaml_node *n)
{
    r->given_transient_exit = true;
    return read_exit_codes(r, n, &r->kind->transient_exit, &r->kind->fatal_exit);
}

static int read_fatal_exit(struct reading *r, const struct yaml_node *n)
{
    return read_exit_codes(r, n, &r->kind->fatal_exit, &r->kind->transient_exit);
}

static int read_transient_log(struct reading *r, const struct yaml_node *n)
{
    if (read_texts(r, n, &r->kind->transient_log) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < r->kind->transient_log.n; i++)
        if (!r->kind->transient_log.v[i][0])
            return load_fail(r->l, n, r->key, "an empty text would match every log");
    return 0;
}

static const struct kind_key {
    const char *name;
    int (*read)(struct reading *r, const struct yaml_node *n);
    bool exec_only;
    const char *doc;
} kind_keys[] = {
#define KEY(name_, read_, exec_only_, type_, bounds_, doc_) {#name_, read_, exec_only_, doc_},
#include "kinds.def"
#undef KEY
};

static int unknown_key(struct reading *r, const struct yaml_node *n)
{
    static const char *const planned[] = {"preflight", "preflight_ttl"};
    const char *names[ARRAY_LEN(kind_keys)];
    char shown[SHORT_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(planned); i++)
        if (sv_eq(n->name, sv_of(planned[i])))
            return err_set(r->l->err, PAWL_ECONFIG, "%s:%d: %s: not supported by this version",
                           r->l->file, n->name_line, r->key);
    for (size_t i = 0; i < ARRAY_LEN(kind_keys); i++)
        names[i] = kind_keys[i].name;
    const char *near = sv_nearest(n->name, names, ARRAY_LEN(kind_keys));
    return err_set(r->l->err, PAWL_ECONFIG, "%s:%d: unknown key \"%s\"%s%s%s", r->l->file,
                   n->name_line, short_text(sv_of(r->key), shown), near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

static const struct kind_key *find_key(struct sv name)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_keys); i++)
        if (sv_eq(name, sv_of(kind_keys[i].name)))
            return &kind_keys[i];
    return NULL;
}

static void remember(struct reading *r, const struct yaml_node *n, const char *doc)
{
    struct config_origins *o = r->l->c->origins;
    ARRAY_GROW(o->kinds, o->n_kinds, o->cap_kinds);
    o->kinds[o->n_kinds++] = (struct shown_value){
        mem_strdup(r->key), mem_strdup(str_cstr(&r->show)), load_origin(r->l, n), doc};
}

static int read_member(struct reading *r, const struct yaml_node *n)
{
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "kinds.%s." SV_FMT, short_text(sv_of(r->kind->name), name),
             (int)(n->name.n > 60 ? 60 : n->name.n), n->name.p);
    const struct kind_key *k = find_key(n->name);
    str_clear(&r->show);
    if (!k)
        return unknown_key(r, n);
    if (k->read(r, n) < 0)
        return PAWL_ECONFIG;
    remember(r, n, k->doc);
    return 0;
}

/* What can be said only when the whole entry is known. */
static int finish_kind(struct reading *r, const struct yaml_node *n)
{
    struct kind_conf *k = r->kind;
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "kinds.%s", short_text(sv_of(k->name), name));
    if (strcmp(k->handler, "exec") != 0) {
        for (const struct yaml_node *m = n->first; m; m = m->next)
            if (find_key(m->name)->exec_only)
                return load_fail(r->l, m, r->key, SV_FMT " has no effect with handler %s",
                                 SV_ARG(m->name), k->handler);
        return 0;
    }
    if (!k->command.n)
        return err_set(r->l->err, PAWL_ECONFIG, "%s:%d: %s: command is missing", r->l->file,
                       n->name_line, r->key);
    if (!r->given_transient_exit && !int_list_has(&k->fatal_exit, 75))
        int_list_add(&k->transient_exit, 75);
    return 0;
}

static int check_name(struct load *l, const struct yaml_node *n)
{
    char shown[SHORT_TEXT];
    struct sv name = n->name;
    bool bad = !name.n || name.n > KIND_NAME_MAX || sv_eq(name, SV("*"));
    for (size_t i = 0; i < name.n; i++)
        bad = bad || (unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f;
    if (bad)
        return load_fail(l, n, "kinds", "\"%s\" is not a name for a kind", short_text(name, shown));
    if (sv_eq(name, SV("exec")) || sv_eq(name, SV("noop")))
        return err_set(l->err, PAWL_ECONFIG,
                       "%s:%d: kinds.%s: a built-in kind cannot be defined again", l->file,
                       n->name_line, short_text(name, shown));
    return 0;
}

static int read_kind(struct load *l, const struct yaml_node *n)
{
    char shown[SHORT_TEXT];
    if (check_name(l, n) < 0)
        return PAWL_ECONFIG;
    if (n->type != YAML_MAP)
        return load_fail(l, n, "kinds", "%s is %s; a mapping is expected",
                         short_text(n->name, shown), yaml_is_null(n) ? "empty" : yaml_type_name(n));
    struct config *c = l->c;
    c->kinds = mem_realloc(c->kinds, c->n_kinds + 1, sizeof(*c->kinds));
    struct kind_conf *k = &c->kinds[c->n_kinds++];
    *k = (struct kind_conf){.name = mem_dup(n->name.p, n->name.n), .handler = mem_strdup("exec")};
    struct reading r = {.l = l, .kind = k, .show = STR_INIT(8 << 20)};
    int rc = 0;
    for (const struct yaml_node *m = n->first; m && rc == 0; m = m->next)
        rc = read_member(&r, m);
    if (rc == 0)
        rc = finish_kind(&r, n);
    str_done(&r.show);
    return rc;
}

int load_kinds(struct load *l, const struct yaml_node *n)
{
    if (yaml_is_null(n))
        return 0;
    if (n->type != YAML_MAP)
        return load_fail(l, n, "kinds", "%s; a mapping is expected", yaml_type_name(n));
    for (const struct yaml_node *m = n->first; m; m = m->next)
        if (read_kind(l, m) < 0)
            return PAWL_ECONFIG;
    return 0;
}
