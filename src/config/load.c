/* config_load: defaults, then the file, then the environment, then flags. */
#include "load.h"

#include "fd.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

enum { FILE_MAX = 1 << 20, KEY_TEXT = 320 };

/* Keys outside the table, by their own readers. */
static const struct {
    const char *key;
    int (*load)(struct load *l, const struct yaml_node *n);
} structures[] = {
    {"worker.pools", load_pools},
    {"exec.pass_env", load_pass_env},
    {"lake.compress.types", load_compress_types},
    {"kinds", load_kinds},
    {"limits", load_limits},
    {"retention.queues", load_retention},
    {"alerts", load_alerts},
};

int load_fail(struct load *l, const struct yaml_node *n, const char *key, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(l->err, PAWL_ECONFIG, "%s:%d: %s: %s", l->file, n->line, key, what);
}

int load_wrap(struct load *l, const struct yaml_node *n, const char *key, bool secret)
{
    if (secret)
        return load_fail(l, n, key, "the secret's content is not allowed here");
    err_wrap(l->err, "%s:%d: %s", l->file, n->line, key);
    return PAWL_ECONFIG;
}

char *load_origin(struct load *l, const struct yaml_node *n)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_addf(&s, "%s:%d", l->file, n->line);
    return mem_dup(str_cstr(&s), s.len);
}

static void set_origin(char **origin, char *text)
{
    free(*origin);
    *origin = text;
}

/* The nearest known key in words: `; did you mean "x"?` or nothing. */
static const char *suggest(struct sv key, char out[SHORT_TEXT])
{
    const char *names[N_OPTIONS + 16];
    size_t n = 0;
    for (size_t i = 0; i < N_OPTIONS; i++)
        names[n++] = options[i].key;
    for (size_t i = 0; i < ARRAY_LEN(structures); i++)
        names[n++] = structures[i].key;
    static const char *const sections[] = {"worker", "retry", "breaker", "retention",
                                           "log",    "exec",  "lake",    "fetch"};
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        names[n++] = sections[i];
    const char *near = sv_nearest(key, names, n);
    out[0] = '\0';
    if (near)
        snprintf(out, SHORT_TEXT, "; did you mean \"%s\"?", near);
    return out;
}

static int unknown_key(struct load *l, const struct yaml_node *n, struct sv key)
{
    char full[SHORT_TEXT * 2], shown[SHORT_TEXT], near[SHORT_TEXT];
    snprintf(full, sizeof(full), "%s", short_text(key, shown));
    for (const struct yaml_node *m = n->first; m && n->type == YAML_MAP && m->name.n; m = NULL)
        snprintf(full, sizeof(full), SV_FMT "." SV_FMT, SV_ARG(key), SV_ARG(m->name));
    return err_set(l->err, PAWL_ECONFIG, "%s:%d: unknown key \"%s\"%s", l->file, n->name_line,
                   short_text(sv_of(full), shown), suggest(sv_of(full), near));
}

static bool is_section(struct sv key)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strlen(options[i].key) > key.n && options[i].key[key.n] == '.' &&
            sv_starts(sv_of(options[i].key), key))
            return true;
    return false;
}

static int load_option(struct load *l, const struct option *o, const struct yaml_node *n)
{
    struct file_text value;
    if (n->type != YAML_TEXT || yaml_is_null(n))
        return load_fail(l, n, o->key, "%s; %s is expected",
                         n->type == YAML_TEXT ? "no value" : yaml_type_name(n),
                         option_type_name(o));
    if (load_text(l, n, o->key, &value) < 0)
        return PAWL_ECONFIG;
    if (option_set(o, l->c, value.text, l->err) < 0)
        return load_wrap(l, n, o->key, value.secret);
    size_t i = (size_t)(o - options);
    set_origin(&l->c->origins->option[i], load_origin(l, n));
    l->c->origins->secret[i] = value.secret;
    return 0;
}

static int load_section(struct load *l, const struct yaml_node *section, struct sv prefix);

static int load_member(struct load *l, const struct yaml_node *n, struct sv key)
{
    const struct option *o = option_find(key);
    if (o)
        return load_option(l, o, n);
    for (size_t i = 0; i < ARRAY_LEN(structures); i++)
        if (sv_eq(key, sv_of(structures[i].key)))
            return structures[i].load(l, n);
    return is_section(key) ? load_section(l, n, key) : unknown_key(l, n, key);
}

static int load_section(struct load *l, const struct yaml_node *section, struct sv prefix)
{
    char shown[SHORT_TEXT];
    if (yaml_is_null(section))
        return 0;
    if (section->type != YAML_MAP)
        return load_fail(l, section, prefix.n ? short_text(prefix, shown) : "the whole file",
                         "%s; a mapping is expected", yaml_type_name(section));
    for (const struct yaml_node *n = section->first; n; n = n->next) {
        AUTO_STR struct str key = STR_INIT(FILE_MAX);
        str_add(&key, prefix);
        str_adds(&key, prefix.n ? "." : "");
        str_add(&key, n->name);
        if (load_member(l, n, str_sv(&key)) < 0)
            return PAWL_ECONFIG;
    }
    return 0;
}

static int open_file(struct load *l, struct str *text)
{
    struct stat st;
    AUTO_FD int fd = open(l->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(l->err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_ECONFIG, errno,
                         "cannot open %s", l->file);
    if (fstat(fd, &st) == 0)
        l->world_readable = S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
    if (fd_read_all(fd, l->file, text, l->err) == 0)
        return 0;
    if (l->err)
        l->err->code = PAWL_ECONFIG;
    return PAWL_ECONFIG;
}

static const char *environment_get(char *const *environ_, const char *name)
{
    size_t n = strlen(name);
    for (; environ_ && *environ_; environ_++)
        if (strncmp(*environ_, name, n) == 0 && (*environ_)[n] == '=')
            return *environ_ + n + 1;
    return NULL;
}

/* The explicit file, $PAWL_CONFIG, ./pawl.yaml if there is one, or NULL. */
static const char *choose_file(const char *file, char *const *environ_)
{
    const char *named = environment_get(environ_, "PAWL_CONFIG");
    if (file)
        return file;
    if (named && *named)
        return named;
    return access("pawl.yaml", F_OK) == 0 ? "pawl.yaml" : NULL;
}

static const char *flag_value(const char *const *flags, size_t n_flags, const char *key)
{
    const char *found = NULL;
    size_t n = strlen(key);
    for (size_t i = 0; i < n_flags; i++)
        if (strncmp(flags[i], key, n) == 0 && flags[i][n] == '=')
            found = flags[i] + n + 1;
    return found;
}

/* secrets_dir decides how the rest of the file reads, so it is looked up first. */
static void choose_secrets_dir(struct load *l, const struct yaml_node *root, char *const *environ_,
                               const char *const *flags, size_t n_flags)
{
    const char *flag = flag_value(flags, n_flags, "secrets_dir");
    const char *variable = environment_get(environ_, "PAWL_SECRETS_DIR");
    l->secrets_dir = sv_of(options[OPTION_secrets_dir].value);
    for (const struct yaml_node *n = root->type == YAML_MAP ? root->first : NULL; n; n = n->next)
        if (sv_eq(n->name, SV("secrets_dir")) && n->type == YAML_TEXT)
            l->secrets_dir = n->text;
    if (flag || (variable && *variable))
        l->secrets_dir = sv_of(flag ? flag : variable);
}

static int apply_file(struct load *l, char *const *environ_, const char *const *flags,
                      size_t n_flags)
{
    AUTO_STR struct str text = STR_INIT(FILE_MAX);
    struct yaml_node *root = NULL;
    int rc = open_file(l, &text);
    if (rc < 0)
        return rc;
    l->c->file = mem_strdup(l->file);
    if (yaml_tree_read(l->file, str_sv(&text), &l->arena, &root, l->err) < 0)
        return PAWL_ECONFIG;
    if (!root)
        return 0;
    choose_secrets_dir(l, root, environ_, flags, n_flags);
    return load_section(l, root, SV(""));
}

static bool env_ignored(struct sv name)
{
    return env_reserved(name) || sv_eq(name, SV("PAWL_CONFIG")) ||
           sv_starts(name, SV("PAWL_TEST_"));
}

static int unknown_variable(struct load *l, struct sv name)
{
    char known[N_OPTIONS][ENV_NAME_MAX];
    const char *names[N_OPTIONS + 4];
    size_t n = 0;
    char shown[SHORT_TEXT];
    for (; n < N_OPTIONS; n++) {
        env_name(options[n].key, known[n]);
        names[n] = known[n];
    }
    names[n++] = "PAWL_WORKER_POOLS";
    names[n++] = "PAWL_EXEC_PASS_ENV";
    names[n++] = "PAWL_LAKE_COMPRESS_TYPES";
    names[n++] = "PAWL_CONFIG";
    const char *near = sv_nearest(name, names, n);
    return err_set(l->err, PAWL_ECONFIG, "%s: unknown environment variable%s%s%s",
                   short_text(name, shown), near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
}

static int apply_option(struct load *l, const struct option *o, struct sv text, const char *origin)
{
    size_t i = (size_t)(o - options);
    if (option_set(o, l->c, text, l->err) < 0)
        return err_wrap(l->err, "%s", origin);
    set_origin(&l->c->origins->option[i], mem_strdup(origin));
    l->c->origins->secret[i] = false;
    return 0;
}

/* Pools given in one place replace those of weaker places; given twice there, they add up. */
static int apply_pools(struct load *l, struct sv text, const char *origin)
{
    char **known = &l->c->origins->pools;
    if (!*known || strcmp(*known, origin) != 0)
        pools_clear(l->c);
    if (pools_add(l->c, text, l->err) < 0)
        return err_wrap(l->err, "%s", origin);
    set_origin(known, mem_strdup(origin));
    return 0;
}

static int apply_pass_env(struct load *l, struct sv text, const char *origin)
{
    char **known = &l->c->origins->pass_env;
    if (!*known || strcmp(*known, origin) != 0)
        string_list_clear(&l->c->pass_env);
    if (pass_env_add(l->c, text, l->err) < 0)
        return err_wrap(l->err, "%s", origin);
    set_origin(known, mem_strdup(origin));
    return 0;
}

/* A list of types replaces that of weaker places. */
static int apply_compress_types(struct load *l, struct sv text, const char *origin)
{
    string_list_clear(&l->c->compress_types);
    if (compress_types_add(l->c, text, l->err) < 0)
        return err_wrap(l->err, "%s", origin);
    set_origin(&l->c->origins->compress_types, mem_strdup(origin));
    return 0;
}

static int apply_variable(struct load *l, struct sv name, struct sv text)
{
    char origin[ENV_NAME_MAX];
    if (sv_eq(name, SV("PAWL_WORKER_POOLS")))
        return apply_pools(l, text, "PAWL_WORKER_POOLS");
    if (sv_eq(name, SV("PAWL_EXEC_PASS_ENV")))
        return apply_pass_env(l, text, "PAWL_EXEC_PASS_ENV");
    if (sv_eq(name, SV("PAWL_LAKE_COMPRESS_TYPES")))
        return apply_compress_types(l, text, "PAWL_LAKE_COMPRESS_TYPES");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        env_name(options[i].key, origin);
        if (sv_eq(name, sv_of(origin)))
            return apply_option(l, &options[i], text, origin);
    }
    return unknown_variable(l, name);
}

/* An empty variable counts as not set. */
static int apply_environment(struct load *l, char *const *environ_)
{
    for (; environ_ && *environ_; environ_++) {
        struct sv text, name = sv_cut(sv_of(*environ_), '=', &text);
        if (!sv_starts(name, SV("PAWL_")) || env_ignored(name) || !text.n)
            continue;
        if (apply_variable(l, name, text) < 0)
            return PAWL_ECONFIG;
    }
    return 0;
}

/* "worker.stop_timeout" -> "--stop-timeout". */
static void flag_name(struct sv key, char out[ENV_NAME_MAX])
{
    for (struct sv rest = key; rest.p;)
        key = sv_cut(rest, '.', &rest);
    snprintf(out, ENV_NAME_MAX, "--" SV_FMT, SV_ARG(key));
    for (char *p = out; *p; p++)
        *p = *p == '_' ? '-' : *p;
}

static int apply_flag(struct load *l, const char *flag)
{
    char origin[ENV_NAME_MAX], shown[SHORT_TEXT], near[SHORT_TEXT];
    struct sv text, key = sv_cut(sv_of(flag), '=', &text);
    const struct option *o = option_find(key);
    if (!text.p)
        return err_set(l->err, PAWL_ECONFIG, "%s: KEY=VALUE is expected", short_text(key, shown));
    if (sv_eq(key, SV("worker.pools")))
        return apply_pools(l, text, l->flag_origin ? l->flag_origin : "--pool");
    if (sv_eq(key, SV("exec.pass_env")))
        return apply_pass_env(l, text, l->flag_origin ? l->flag_origin : "--pass-env");
    if (sv_eq(key, SV("lake.compress.types")))
        return apply_compress_types(l, text, l->flag_origin ? l->flag_origin : "--types");
    if (!o)
        return err_set(l->err, PAWL_ECONFIG, "unknown key \"%s\"%s", short_text(key, shown),
                       suggest(key, near));
    flag_name(key, origin);
    return apply_option(l, o, text, l->flag_origin ? l->flag_origin : origin);
}

static const char *origin_or_default(const struct config *c, enum option_id id)
{
    return c->origins->option[id] ? c->origins->option[id] : "default";
}

/* "WHERE: key: value is more than WHAT" for two values that do not fit together. */
static int do_not_fit(struct load *l, enum option_id id, const char *what, struct dur most)
{
    AUTO_STR struct str value = STR_INIT(64);
    AUTO_STR struct str limit = STR_INIT(64);
    option_format(&options[id], l->c, &value);
    dur_format(most, &limit);
    return err_set(l->err, PAWL_ECONFIG, "%s: %s: %s is more than %s; allowed at most %s",
                   origin_or_default(l->c, id), options[id].key, str_cstr(&value), what,
                   str_cstr(&limit));
}

/* A default gives way to what was set beside it; two set values that contradict are refused. */
static int check_together(struct load *l)
{
    struct config *c = l->c;
    struct dur third = {c->worker_lease.us / 3};
    if (!c->origins->option[OPTION_worker_heartbeat] && c->worker_heartbeat.us > third.us)
        c->worker_heartbeat = third;
    if (c->worker_heartbeat.us > third.us)
        return do_not_fit(l, OPTION_worker_heartbeat, "a third of worker.lease", third);
    if (!c->origins->option[OPTION_retry_base] && c->retry_base.us > c->retry_max.us)
        c->retry_base = c->retry_max;
    if (c->retry_base.us > c->retry_max.us)
        return do_not_fit(l, OPTION_retry_base, "retry.max", c->retry_max);
    if (!c->origins->option[OPTION_breaker_pause] && c->breaker_pause.us > c->breaker_max_pause.us)
        c->breaker_pause = c->breaker_max_pause;
    if (c->breaker_pause.us > c->breaker_max_pause.us)
        return do_not_fit(l, OPTION_breaker_pause, "breaker.max_pause", c->breaker_max_pause);
    c->policy_given |=
        c->origins->option[OPTION_claim_order] || c->origins->option[OPTION_priority_aging];
    retention_resolve(c);
    return limits_resolve(l);
}

static int load_all(struct load *l, char *const *environ_, const char *const *flags, size_t n_flags)
{
    if (l->file) {
        int rc = apply_file(l, environ_, flags, n_flags);
        if (rc < 0)
            return rc;
    }
    if (apply_environment(l, environ_) < 0)
        return PAWL_ECONFIG;
    for (size_t i = 0; i < n_flags; i++)
        if (apply_flag(l, flags[i]) < 0)
            return PAWL_ECONFIG;
    return check_together(l);
}

static struct config *config_default(void)
{
    struct config *c = mem_zalloc(1, sizeof(*c));
    c->origins = mem_zalloc(1, sizeof(*c->origins));
    for (size_t i = 0; i < N_OPTIONS; i++) {
        int rc = option_set(&options[i], c, sv_of(options[i].value), NULL);
        assert(rc == 0);
        (void)rc;
    }
    return c;
}

static int load(struct load *l, char *const *environ_, const char *const *flags, size_t n_flags,
                struct config **out)
{
    AUTO_CONFIG struct config *c = config_default();
    l->c = c;
    arena_init(&l->arena);
    int rc = load_all(l, environ_, flags, n_flags);
    arena_done(&l->arena);
    if (rc < 0)
        return rc;
    *out = TAKE_PTR(c);
    return 0;
}

int config_load(const char *file, char *const *environ_, const char *const *flags, size_t n_flags,
                struct config **out, struct pawl_err *err)
{
    struct load l = {.file = choose_file(file, environ_), .err = err};
    return load(&l, environ_, flags, n_flags, out);
}

int config_make(const char *origin, const char *const *flags, size_t n_flags, struct config **out,
                struct pawl_err *err)
{
    struct load l = {.flag_origin = origin, .err = err};
    return load(&l, NULL, flags, n_flags, out);
}
