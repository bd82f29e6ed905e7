/* Stores by URL: sqlite:FILE or a path alone, postgres://… */
#include "stores.h"

#include "hash.h"
#include "mem.h"
#include "store_postgres.h"
#include "store_sqlite.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The scheme before the colon; none when a slash comes first or there is no colon. */
static struct sv scheme_of(const char *url)
{
    size_t n = strcspn(url, ":/");
    return url[n] == ':' && n > 0 ? sv_make(url, n) : SV_NONE;
}

static bool is_postgres(const char *url)
{
    struct sv scheme = scheme_of(url);
    return sv_eq(scheme, SV("postgres")) || sv_eq(scheme, SV("postgresql"));
}

/* The file of a SQLite store, pointing into the URL. */
static int sqlite_path(const char *url, const char **out, struct pawl_err *err)
{
    struct sv scheme = scheme_of(url);
    if (scheme.p && !sv_eq(scheme, SV("sqlite"))) {
        err_set(err, PAWL_EUSAGE, "store '%s': unknown kind of store '" SV_FMT "'", url,
                SV_ARG(scheme));
        return err_hint(err, "known: sqlite:FILE, postgres://USER@HOST/DATABASE");
    }
    const char *path = scheme.p ? url + scheme.n + 1 : url;
    if (!path[0])
        return err_set(err, PAWL_EUSAGE, "store '%s': no file is named", url);
    *out = path;
    return 0;
}

static int no_store(const char *path, struct pawl_err *err)
{
    bool plain = !strchr(path, '/');
    err_set(err, PAWL_ENOTFOUND, "no store at %s%s", plain ? "./" : "", path);
    return err_hint(err, "'pawl add' creates one; --store or PAWL_STORE names another");
}

static struct store_options options_of(const struct config *config, enum store_mode mode)
{
    return (struct store_options){
        .mode = mode,
        .timeout = config->store_timeout,
        .durability = strcmp(config->durability, "relaxed") ? DURABILITY_FULL : DURABILITY_RELAXED,
        .keep_keys = config->retention_keys,
        .schema = config->postgres_schema,
        .log_root = config->log_root,
        .no_notify = !config->postgres_notify,
        .no_prepare = !config->postgres_prepare,
    };
}

int stores_open(const struct config *config, enum store_mode mode, struct store **out,
                struct pawl_err *err)
{
    const char *path;
    struct store_options o = options_of(config, mode);
    if (is_postgres(config->store))
        return store_postgres_open(config->store, &o, out, err);
    if (sqlite_path(config->store, &path, err) < 0)
        return PAWL_EUSAGE;
    int rc = store_sqlite_open(path, &o, out, err);
    return rc == PAWL_ENOTFOUND ? no_store(path, err) : rc;
}

int stores_migration_sql(const struct config *config, int from, struct str *out,
                         struct pawl_err *err)
{
    struct store_options o = options_of(config, STORE_READ);
    if (is_postgres(config->store))
        return store_postgres_script(config->store, &o, from, out, err);
    err_set(err, PAWL_EUSAGE,
            "--sql is for PostgreSQL: a store in a file is migrated by pawl alone");
    return err_hint(err, "run 'pawl migrate'");
}

#define SCRATCH_SCHEMA "schema=pawl_bench_"

int stores_scratch_new(const struct config *config, struct str *url, struct pawl_err *err)
{
    const char *path;
    AUTO_STR struct str dir = STR_INIT(STR_LINE);
    if (is_postgres(config->store)) {
        char id[33];
        rand_id(id);
        str_addf(url, "%s%c" SCRATCH_SCHEMA "%.12s", config->store,
                 strchr(config->store, '?') ? '&' : '?', id);
        return 0;
    }
    if (sqlite_path(config->store, &path, err) < 0)
        return PAWL_EUSAGE;
    const char *slash = strrchr(path, '/');
    if (slash)
        str_add(&dir, sv_make(path, (size_t)(slash - path) + 1));
    str_adds(&dir, "pawl-bench-XXXXXX");
    if (!mkdtemp(dir.p))
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot make a folder beside %s", path);
    str_addf(url, "sqlite:%s/pawl.db", str_cstr(&dir));
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static void drop_schema(const struct config *config, const char *url)
{
    struct store_options o = options_of(config, STORE_WRITE);
    struct pawl_err ignored;
    o.timeout = DUR_S(60); /* a large one takes its time */
    if (strstr(url, SCRATCH_SCHEMA))
        (void)!store_postgres_drop(url, &o, &ignored);
}

void stores_scratch_free(const struct config *config, const char *url)
{
    const char *path;
    if (is_postgres(url)) {
        drop_schema(config, url);
        return;
    }
    if (sqlite_path(url, &path, NULL) < 0)
        return;
    AUTO_FREE char *dir = mem_strdup(path);
    *strrchr(dir, '/') = '\0';
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
