/* A configuration that is loaded: looking at it, showing it, freeing it. */
#include "config.h"

#include "load.h"

static void kind_done(struct kind_conf *k)
{
    free(k->name);
    free(k->handler);
    free(k->cwd);
    string_list_clear(&k->command);
    string_list_clear(&k->env);
    string_list_clear(&k->transient_log);
    string_list_clear(&k->throttled_log);
    string_list_clear(&k->preflight);
    free(k->preflight_url);
    free(k->url);
    free(k->secret);
    free(k->throttled_exit.v);
    free(k->transient_exit.v);
    free(k->fatal_exit.v);
}

static void origins_free(struct config_origins *o)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        free(o->option[i]);
    for (size_t i = 0; i < o->n_shown; i++) {
        free(o->shown[i].key);
        free(o->shown[i].value);
        free(o->shown[i].origin);
    }
    free(o->shown);
    free(o->pools);
    free(o->pass_env);
    free(o->compress_types);
    free(o);
}

void config_free(struct config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options[i].type == TYPE_STRING || options[i].type == TYPE_CHOICE)
            free(*(char **)((char *)c + options[i].offset));
    for (size_t i = 0; i < c->n_kinds; i++)
        kind_done(&c->kinds[i]);
    free(c->kinds);
    pools_clear(c);
    limits_clear(c);
    retention_clear(c);
    alerts_clear(c);
    string_list_clear(&c->pass_env);
    string_list_clear(&c->compress_types);
    free(c->file);
    origins_free(c->origins);
    free(c);
}

const struct kind_conf *config_kind(const struct config *c, struct sv name)
{
    for (size_t i = 0; i < c->n_kinds; i++)
        if (sv_eq(name, sv_of(c->kinds[i].name)))
            return &c->kinds[i];
    return NULL;
}

/* The text with the password of a URL (scheme://user:password@host) masked. */
static void add_masked_url(struct str *out, struct sv url)
{
    const char *start = strstr(url.p, "://"), *at = start ? strrchr(start, '@') : NULL;
    const char *colon = at ? memchr(start + 3, ':', (size_t)(at - start - 3)) : NULL;
    if (!colon) {
        str_add(out, url);
        return;
    }
    str_add(out, sv_make(url.p, (size_t)(colon - url.p) + 1));
    str_adds(out, "***");
    str_adds(out, at);
}

static void show_option(const struct config *c, size_t i, struct str *out)
{
    if (c->origins->secret[i])
        str_adds(out, "***");
    else if (options[i].type == TYPE_STRING)
        add_masked_url(out, sv_of(*(char **)((char *)c + options[i].offset)));
    else
        option_format(&options[i], c, out);
}

static const char *or_default(const char *origin)
{
    return origin ? origin : "default";
}

void config_each(const struct config *c, void (*each)(void *arg, const struct config_value *v),
                 void *arg)
{
    const struct config_origins *o = c->origins;
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        str_clear(&text);
        show_option(c, i, &text);
        each(arg, &(struct config_value){options[i].key, str_cstr(&text), or_default(o->option[i]),
                                         options[i].doc});
    }
    str_clear(&text);
    pools_format(c, &text);
    each(arg, &(struct config_value){"worker.pools", str_cstr(&text), or_default(o->pools),
                                     "slots of a kind, apart from those of *"});
    str_clear(&text);
    names_format(&c->pass_env, &text);
    each(arg, &(struct config_value){"exec.pass_env", str_cstr(&text), or_default(o->pass_env),
                                     "variables of the worker that jobs inherit"});
    str_clear(&text);
    names_format(&c->compress_types, &text);
    each(arg,
         &(struct config_value){"lake.compress.types", str_cstr(&text),
                                or_default(o->compress_types), "content types kept compressed"});
    for (size_t i = 0; i < o->n_shown; i++)
        each(arg, &(struct config_value){o->shown[i].key, o->shown[i].value, o->shown[i].origin,
                                         o->shown[i].doc});
}
