/* kinds: what each configured kind of job runs. Keys come from kinds.def. */
#include "reading.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { KIND_NAME_MAX = 255 };

/* One kind being read. */
struct reading_kind {
    struct reading r; /* first: readers get it */
    struct kind_conf *kind;
    bool given_transient_exit;
};

static struct kind_conf *kind_of(struct reading *r)
{
    return ((struct reading_kind *)r)->kind;
}

static int read_handler(struct reading *r, const struct yaml_node *n)
{
    static const char *const handlers[] = {"exec", "fetch", "http", "noop"};
    struct file_text v;
    char shown[SHORT_TEXT];
    if (reading_scalar(r, n, "a handler", &v) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
        if (sv_eq(v.text, sv_of(handlers[i]))) {
            free(kind_of(r)->handler);
            kind_of(r)->handler = mem_strdup(handlers[i]);
            str_adds(&r->show, handlers[i]);
            return 0;
        }
    const char *near = sv_nearest(v.text, handlers, ARRAY_LEN(handlers));
    return load_fail(r->l, n, r->key, "no handler \"%s\"%s%s%s",
                     short_text(reading_masked(&v), shown), near ? "; did you mean \"" : "",
                     near ? near : "", near ? "\"?" : "");
}

static int read_argv(struct reading *r, const struct yaml_node *n, struct string_list *out)
{
    if (reading_texts(r, n, out) < 0)
        return PAWL_ECONFIG;
    if (!out->n)
        return load_fail(r->l, n, r->key, "the list is empty; program and arguments are expected");
    if (!out->v[0][0])
        return load_fail(r->l, n, r->key, "the program's name is empty");
    return 0;
}

static int read_command(struct reading *r, const struct yaml_node *n)
{
    return read_argv(r, n, &kind_of(r)->command);
}

static int read_cwd(struct reading *r, const struct yaml_node *n)
{
    return reading_text(r, n, "a folder", &kind_of(r)->cwd);
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
    if (reading_want(r, n, YAML_MAP, "a mapping") < 0)
        return PAWL_ECONFIG;
    jw_object(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        struct file_text v;
        if (reading_scalar(r, m, "text", &v) < 0 || check_variable(r, m, &v) < 0)
            return PAWL_ECONFIG;
        AUTO_STR struct str pair = STR_INIT(2 << 20);
        str_add(&pair, m->name);
        str_addc(&pair, '=');
        str_add(&pair, v.text);
        string_list_add(&kind_of(r)->env, str_sv(&pair));
        AUTO_FREE char *name = mem_dup(m->name.p, m->name.n);
        v.secret = v.secret || env_name_secret(m->name);
        jw_kstring(&w, name, reading_masked(&v));
    }
    jw_end_object(&w);
    return 0;
}

static int read_timeout(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "10ms", "30d", true, &kind_of(r)->timeout);
}

static int read_idle_timeout(struct reading *r, const struct yaml_node *n)
{
    struct dur d;
    if (reading_dur(r, n, "10ms", "30d", true, &d) < 0)
        return PAWL_ECONFIG;
    kind_of(r)->idle_timeout = d.us < 0 ? DUR_US(0) : d;
    return 0;
}

static int read_max_attempts(struct reading *r, const struct yaml_node *n)
{
    int64_t v;
    if (reading_number(r, n, 1, 1000000, &v) < 0)
        return PAWL_ECONFIG;
    kind_of(r)->max_attempts = (int)v;
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

/* No code may be in `other` too; `names` says which two these are. */
static int read_exit_codes(struct reading *r, const struct yaml_node *n, struct int_list *out,
                           const struct int_list *other, const char *names)
{
    struct jw w = jw_make(&r->show);
    if (reading_want(r, n, YAML_LIST, "a list of exit codes") < 0)
        return PAWL_ECONFIG;
    jw_array(&w);
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        int64_t code = 0;
        if (reading_int(r, m, 1, 255, &code) < 0)
            return PAWL_ECONFIG;
        if (int_list_has(other, (int)code))
            return load_fail(r->l, m, r->key, "%d is both in %s", (int)code, names);
        if (int_list_has(out, (int)code))
            return load_fail(r->l, m, r->key, "%d twice", (int)code);
        int_list_add(out, (int)code);
        jw_int(&w, code);
    }
    jw_end_array(&w);
    return 0;
}

static int read_transient_exit(struct reading *r, const struct yaml_node *n)
{
    struct kind_conf *k = kind_of(r);
    ((struct reading_kind *)r)->given_transient_exit = true;
    return read_exit_codes(r, n, &k->transient_exit, &k->fatal_exit,
                           "transient_exit and fatal_exit");
}

static int read_fatal_exit(struct reading *r, const struct yaml_node *n)
{
    struct kind_conf *k = kind_of(r);
    if (read_exit_codes(r, n, &k->fatal_exit, &k->transient_exit, "transient_exit and fatal_exit") <
        0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < k->fatal_exit.n; i++)
        if (int_list_has(&k->throttled_exit, k->fatal_exit.v[i]))
            return load_fail(r->l, n, r->key, "%d is both in throttled_exit and fatal_exit",
                             k->fatal_exit.v[i]);
    return 0;
}

static int read_throttled_exit(struct reading *r, const struct yaml_node *n)
{
    struct kind_conf *k = kind_of(r);
    return read_exit_codes(r, n, &k->throttled_exit, &k->fatal_exit,
                           "throttled_exit and fatal_exit");
}

static int read_patterns(struct reading *r, const struct yaml_node *n, struct string_list *out)
{
    if (reading_texts(r, n, out) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < out->n; i++)
        if (!out->v[i][0])
            return load_fail(r->l, n, r->key, "an empty text would match every log");
    return 0;
}

static int read_transient_log(struct reading *r, const struct yaml_node *n)
{
    return read_patterns(r, n, &kind_of(r)->transient_log);
}

static int read_throttled_log(struct reading *r, const struct yaml_node *n)
{
    return read_patterns(r, n, &kind_of(r)->throttled_log);
}

/* {url: URL} */
static int read_preflight_url(struct reading *r, const struct yaml_node *n)
{
    struct file_text v;
    const struct yaml_node *m = n->first;
    if (!m || m->next || !sv_eq(m->name, SV("url")))
        return load_fail(r->l, n, r->key, "url is expected, and nothing besides");
    if (reading_scalar(r, m, "a URL", &v) < 0)
        return PAWL_ECONFIG;
    if (!sv_starts(v.text, SV("http://")) && !sv_starts(v.text, SV("https://")))
        return load_fail(r->l, m, r->key, "http://… or https://… is expected");
    free(kind_of(r)->preflight_url);
    kind_of(r)->preflight_url = mem_dup(v.text.p, v.text.n);
    struct jw w = jw_make(&r->show);
    jw_object(&w);
    jw_kstring(&w, "url", reading_masked(&v));
    jw_end_object(&w);
    return 0;
}

static int read_preflight(struct reading *r, const struct yaml_node *n)
{
    if (n->type == YAML_MAP)
        return read_preflight_url(r, n);
    return read_argv(r, n, &kind_of(r)->preflight);
}

static int read_preflight_ttl(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "100ms", "1d", false, &kind_of(r)->preflight_ttl);
}

static int read_preflight_timeout(struct reading *r, const struct yaml_node *n)
{
    return reading_dur(r, n, "10ms", "10m", false, &kind_of(r)->preflight_timeout);
}

static int read_url(struct reading *r, const struct yaml_node *n)
{
    return reading_url(r, n, &kind_of(r)->url);
}

static int read_secret(struct reading *r, const struct yaml_node *n)
{
    return reading_secret(r, n, &kind_of(r)->secret);
}

static const struct kind_key {
    const char *name;
    int (*read)(struct reading *r, const struct yaml_node *n);
    const char *handler; /* "": any */
    const char *doc;
} kind_keys[] = {
#define KEY(name_, read_, handler_, type_, bounds_, doc_) {#name_, read_, handler_, doc_},
#include "kinds.def"
#undef KEY
};

static int unknown_key(struct reading *r, const struct yaml_node *n)
{
    const char *names[ARRAY_LEN(kind_keys)];
    for (size_t i = 0; i < ARRAY_LEN(kind_keys); i++)
        names[i] = kind_keys[i].name;
    return reading_unknown(r, n, names, ARRAY_LEN(kind_keys));
}

static const struct kind_key *find_key(struct sv name)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_keys); i++)
        if (sv_eq(name, sv_of(kind_keys[i].name)))
            return &kind_keys[i];
    return NULL;
}

static int read_member(struct reading *r, const struct yaml_node *n)
{
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "kinds.%s." SV_FMT, short_text(sv_of(kind_of(r)->name), name),
             (int)(n->name.n > 60 ? 60 : n->name.n), n->name.p);
    const struct kind_key *k = find_key(n->name);
    str_clear(&r->show);
    if (!k)
        return unknown_key(r, n);
    if (k->read(r, n) < 0)
        return PAWL_ECONFIG;
    reading_remember(r, n, k->doc);
    return 0;
}

/* Members that are for another handler are mistakes. */
static int check_members(struct reading *r, const struct yaml_node *n, const char *handler)
{
    for (const struct yaml_node *m = n->first; m; m = m->next) {
        const char *wanted = find_key(m->name)->handler;
        if (wanted[0] && strcmp(wanted, handler) != 0)
            return load_fail(r->l, m, r->key, SV_FMT " has no effect with handler %s",
                             SV_ARG(m->name), handler);
    }
    return 0;
}

/* What can be said only when the whole entry is known. */
static int finish_kind(struct reading_kind *x, const struct yaml_node *n)
{
    struct reading *r = &x->r;
    struct kind_conf *k = x->kind;
    char name[SHORT_TEXT];
    snprintf(r->key, sizeof(r->key), "kinds.%s", short_text(sv_of(k->name), name));
    if (check_members(r, n, k->handler) < 0)
        return PAWL_ECONFIG;
    bool exec = !strcmp(k->handler, "exec");
    const char *missing = exec && !k->command.n                    ? "command"
                          : !strcmp(k->handler, "http") && !k->url ? "url"
                                                                   : NULL;
    if (missing)
        return err_set(r->l->err, PAWL_ECONFIG, "%s:%d: %s: %s is missing", r->l->file,
                       n->name_line, r->key, missing);
    if (exec && !x->given_transient_exit && !int_list_has(&k->fatal_exit, 75))
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
    if (sv_eq(name, SV("exec")) || sv_eq(name, SV("fetch")) || sv_eq(name, SV("noop")))
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
    *k = (struct kind_conf){.name = mem_dup(n->name.p, n->name.n),
                            .handler = mem_strdup("exec"),
                            .preflight_ttl = DUR_S(60),
                            .preflight_timeout = DUR_S(10)};
    struct reading_kind x = {.r = {.l = l, .show = STR_INIT(8 << 20)}, .kind = k};
    int rc = 0;
    for (const struct yaml_node *m = n->first; m && rc == 0; m = m->next)
        rc = read_member(&x.r, m);
    if (rc == 0)
        rc = finish_kind(&x, n);
    str_done(&x.r.show);
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
