/* The URL as libpq's parameters: what it says itself, then defaults for what nobody has set,
 * neither in the URL nor in the environment nor in a service file. */
#include "pg.h"

#include "text.h"
#include <stdio.h>

struct list {
    const char **keys, **values;
    size_t n, cap;
};

static void list_add(struct list *l, const char *key, const char *value)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->keys = mem_realloc(l->keys, l->cap, sizeof(*l->keys));
        l->values = mem_realloc(l->values, l->cap, sizeof(*l->values));
    }
    l->keys[l->n] = key ? mem_strdup(key) : NULL;
    l->values[l->n++] = value ? mem_strdup(value) : NULL;
}

void pg_conninfo_free(const char **keys, const char **values)
{
    for (size_t i = 0; keys && keys[i]; i++) {
        free((char *)keys[i]);
        free((char *)values[i]);
    }
    free(keys);
    free(values);
}

static const char *value_of(const PQconninfoOption *o, const char *key)
{
    for (; o && o->keyword; o++)
        if (!strcmp(o->keyword, key))
            return o->val;
    return NULL;
}

/* ---- the URL's text ---- */

/* `schema` is ours, the rest is libpq's: taken out of the URL. The last one wins. */
static void take_schema(const char *url, struct str *out, char **schema)
{
    struct sv query, base = sv_cut(sv_of(url), '?', &query);
    char before = '?';
    str_add(out, base);
    while (query.n) {
        struct sv parameter = sv_cut(query, '&', &query);
        if (sv_starts(parameter, SV("schema="))) {
            free(*schema);
            *schema = mem_dup(parameter.p + 7, parameter.n - 7);
            continue;
        }
        str_addc(out, before);
        str_add(out, parameter);
        before = '&';
    }
}

static bool is_schema_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= 63 && !s[n] && !(s[0] >= '0' && s[0] <= '9') && strncmp(s, "pg_", 3) != 0;
}

/* ---- defaults ---- */

/* Everything libpq would use, without connecting: an sslmode that does not exist stops it after all
 * sources were read and before the first packet. NULL and err set if one of them is unusable. */
static PQconninfoOption *in_effect(const struct pg *p, const struct list *l, struct pawl_err *err)
{
    struct list probe = {0};
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->keys[i], "sslmode") != 0)
            list_add(&probe, l->keys[i], l->values[i]);
    list_add(&probe, "sslmode", "none of them");
    list_add(&probe, "password", "none"); /* no look into the password file, which may warn */
    list_add(&probe, NULL, NULL);
    PGconn *c = PQconnectStartParams(probe.keys, probe.values, 0);
    PQconninfoOption *o = c ? PQconninfo(c) : NULL;
    pg_conninfo_free(probe.keys, probe.values);
    if (!o)
        abort(); /* out of memory */
    if (!value_of(o, "sslmode")) {
        const char *why = PQerrorMessage(c);
        err_set(err, PAWL_ECONFIG, "%s: %.*s", p->place, (int)strcspn(why, "\n"), why);
        PQconninfoFree(o);
        o = NULL;
    }
    PQfinish(c);
    return o;
}

static bool has_key(const struct list *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->keys[i], key))
            return true;
    return false;
}

static void add_default(struct list *l, const PQconninfoOption *o, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    if (!value_of(o, key))
        list_add(l, key, text);
}

static int count_hosts(const PQconninfoOption *o)
{
    const char *hosts = value_of(o, "hostaddr");
    int n = 1;
    for (const char *c = hosts ? hosts : value_of(o, "host"); c && (c = strchr(c, ',')); c++)
        n++;
    return n;
}

/* With several hosts whoever writes looks for the one that can be written. */
static void add_target(struct list *l, enum store_mode mode)
{
    if (mode != STORE_READ && !getenv("PGTARGETSESSIONATTRS") &&
        !has_key(l, "target_session_attrs"))
        list_add(l, "target_session_attrs", "read-write");
}

/* libpq looks at connect_timeout only where it waits by itself, which it does not here. */
static struct dur connect_timeout(const struct pg *p, const PQconninfoOption *o)
{
    const char *text = value_of(o, "connect_timeout");
    int64_t s = 0;
    if (!text || sv_to_i64(sv_of(text), 1, INT32_MAX, &s) < 0)
        return p->options.timeout;
    return DUR_S(s);
}

/* A dead peer is noticed after keepalives of 5 + 3 × 2 s, or when sent data, or the wish to
 * connect, is not acknowledged: then it is the next host's turn, while there is time. */
static void add_defaults(struct pg *p, struct list *l, const PQconninfoOption *o)
{
    int hosts = count_hosts(o);
    p->connect_timeout = connect_timeout(p, o);
    add_default(l, o, "keepalives_idle", 5);
    add_default(l, o, "keepalives_interval", 2);
    add_default(l, o, "keepalives_count", 3);
    add_default(l, o, "tcp_user_timeout", p->connect_timeout.us / 1000 / hosts);
    if (hosts > 1)
        add_target(l, p->options.mode);
    if (!has_key(l, "fallback_application_name"))
        list_add(l, "fallback_application_name", "pawl");
    list_add(l, "client_encoding", "UTF8"); /* ours is; at the start, so that a pooler keeps it */
}

/* ---- together ---- */

static int refuse_url(const struct pg *p, const char *url, char *why, struct pawl_err *err)
{
    /* libpq quotes the URL, with the password. */
    if (!strcmp(p->place, url) && why)
        err_set(err, PAWL_EUSAGE, "store '%s': %.*s", p->place, (int)strcspn(why, "\n"), why);
    else
        err_set(err, PAWL_EUSAGE, "store '%s' is not a URL of PostgreSQL", p->place);
    PQfreemem(why);
    return err_hint(err, "postgres://USER@HOST:PORT/DATABASE; special characters as %%XX");
}

static int parse(struct pg *p, const char *url, struct list *l, struct pawl_err *err)
{
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    char *why = NULL;
    take_schema(url, &text, &p->schema);
    if (!is_schema_name(p->schema)) {
        err_set(err, PAWL_ECONFIG, "postgres.schema: '%s' is not a name for a schema", p->schema);
        return err_hint(err, "a-z, 0-9 and _, at most 63, no digit first and no pg_");
    }
    PQconninfoOption *o = PQconninfoParse(str_cstr(&text), &why);
    if (!o)
        return refuse_url(p, url, why, err);
    for (const PQconninfoOption *i = o; i->keyword; i++)
        if (i->val && strcmp(i->keyword, "client_encoding") != 0)
            list_add(l, i->keyword, i->val);
    PQconninfoFree(o);
    return 0;
}

int pg_conninfo(struct pg *p, const char *url, struct pawl_err *err)
{
    struct list l = {0};
    AUTO_STR struct str place = STR_INIT(STR_LINE);
    text_url(&place, sv_of(url));
    p->place = mem_strdup(str_cstr(&place));
    int rc = parse(p, url, &l, err);
    PQconninfoOption *o = rc == 0 ? in_effect(p, &l, err) : NULL;
    if (o)
        add_defaults(p, &l, o);
    PQconninfoFree(o);
    list_add(&l, NULL, NULL);
    p->conn_keys = l.keys;
    p->conn_values = l.values;
    return rc == 0 && !o ? err->code : rc;
}
