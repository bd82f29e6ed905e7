/* The schema: whether it is there and may be used, and all migrations in order, each with its
 * checksum, then the functions, in one transaction under an advisory lock. */
#define MIGRATION_TABLE
#include "pg.h"

#include "copy.h"
#include <stdio.h>

/* The oldest version whose binaries still work with a schema of version i + 1: those of the version
 * before go on while the new ones are rolled out. */
static const int oldest[] = {1, 2, 2, 2, 2};
_Static_assert(ARRAY_LEN(oldest) == ARRAY_LEN(migrations), "a migration without its oldest reader");

enum { SERVER_OLDEST = 130000 };

struct facts {
    bool is_name;
    bool standby, read_only;
    bool schema_there, may_create, may_use;
    bool has_tables, is_ours, may_read, may_write;
    char role[64], database[64];
};

/* ---- looking ---- */

static void copy_name(char out[64], struct sv name)
{
    snprintf(out, 64, SV_FMT, SV_ARG(name));
}

static int read_facts(struct pg *p, struct facts *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_text(&a, sv_of(p->schema));
    struct boot asked = clock_boot();
    int rc = db_query(p, STMT_FACTS, &a, &r, err);
    if (rc < 0)
        return rc;
    bool *flags[] = {&out->is_name,    &out->standby,  &out->read_only,  &out->schema_there,
                     &out->may_create, &out->may_use,  &out->has_tables, &out->is_ours,
                     &out->may_read,   &out->may_write};
    for (int i = 0; i < (int)ARRAY_LEN(flags); i++)
        *flags[i] = res_int(r, 0, i) != 0;
    int next = (int)ARRAY_LEN(flags);
    copy_name(out->role, res_sv(r, 0, next));
    copy_name(out->database, res_sv(r, 0, next + 1));
    pg_clock_set(p, asked, res_i64(r, 0, next + 2));
    return 0;
}

static int refuse_version(struct pg *p, int version, int reader, struct pawl_err *err)
{
    if (version < SCHEMA_VERSION && p->options.mode != STORE_MIGRATE) {
        err_set(err, PAWL_ESCHEMA, "%s: schema %s has version %d, this pawl works with %d",
                p->place, p->schema, version, SCHEMA_VERSION);
        return err_hint(err, "run 'pawl migrate'");
    }
    if (reader > SCHEMA_VERSION) {
        err_set(err, PAWL_ESCHEMA, "%s: schema %s has version %d, this pawl knows %d", p->place,
                p->schema, version, SCHEMA_VERSION);
        return err_hint(err, "use a newer pawl");
    }
    return 0;
}

/* Of a schema that is ours. `reader`: the oldest that may work with it. */
static int query_version(struct pg *p, int *out, int *out_reader, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, STMT_SCHEMA_VERSION, NULL, &r, err);
    if (rc < 0)
        return rc;
    if (!PQntuples(r))
        return err_set(err, PAWL_ECORRUPT, "%s: schema %s does not say its version", p->place,
                       p->schema);
    snprintf(p->store_id, sizeof(p->store_id), SV_FMT, SV_ARG(res_sv(r, 0, 2)));
    if (res_int(r, 0, 3) && p->options.mode < STORE_COPY)
        return copy_refuse(p->place, err);
    *out = res_int(r, 0, 0);
    *out_reader = res_int(r, 0, 1);
    p->other_functions = !sv_eq(res_sv(r, 0, 4), sv_of(functions_checksum));
    return 0;
}

static int read_version(struct pg *p, int *out, struct pawl_err *err)
{
    int version = 0, reader = 0;
    int rc = query_version(p, &version, &reader, err);
    if (rc == 0)
        rc = refuse_version(p, version, reader, err);
    if (rc == 0)
        *out = version;
    return rc;
}

/* ---- refusing ---- */

static int refuse_server(struct pg *p, struct pawl_err *err)
{
    int v = PQserverVersion(p->conn);
    if (v >= SERVER_OLDEST)
        return 0;
    err_set(err, PAWL_ESCHEMA, "%s: the server is PostgreSQL %d; pawl needs %d or later", p->place,
            v / 10000, SERVER_OLDEST / 10000);
    return err_hint(err, "upgrade the server");
}

static int refuse_read_only(struct pg *p, const struct facts *f, struct pawl_err *err)
{
    if (p->options.mode == STORE_READ || (!f->standby && !f->read_only))
        return 0;
    if (f->standby) {
        err_set(err, PAWL_EUNREACHABLE, "%s is a read-only standby", p->place);
        return err_hint(err, "name the primary, or both with a comma: pawl finds the one to write");
    }
    err_set(err, PAWL_EUNREACHABLE, "%s is read-only: default_transaction_read_only is on",
            p->place);
    return err_hint(err, "switch it off for role %s or database %s", f->role, f->database);
}

/* Nothing is there yet. */
static int refuse_create(struct pg *p, const struct facts *f, struct pawl_err *err)
{
    if (p->options.mode < STORE_CREATE) {
        err_set(err, PAWL_ENOTFOUND, "no store at %s in schema %s", p->place, p->schema);
        return err_hint(err, "'pawl add' sets one up; postgres.schema names another");
    }
    if (f->may_create)
        return 0;
    err_set(err, PAWL_EUNREACHABLE, "%s: permission denied: role %s may not create %s schema %s",
            p->place, f->role, f->schema_there ? "tables in" : "the", p->schema);
    if (f->schema_there)
        return err_hint(err, "GRANT USAGE, CREATE ON SCHEMA %s TO %s", p->schema, f->role);
    return err_hint(err, "GRANT CREATE ON DATABASE %s TO %s", f->database, f->role);
}

static int refuse_tables(struct pg *p, const struct facts *f, struct pawl_err *err)
{
    bool writes = p->options.mode != STORE_READ;
    if (!f->may_use) {
        err_set(err, PAWL_EUNREACHABLE, "%s: permission denied: role %s may not use schema %s",
                p->place, f->role, p->schema);
        return err_hint(err, "GRANT USAGE ON SCHEMA %s TO %s", p->schema, f->role);
    }
    if (!f->is_ours) {
        err_set(err, PAWL_ECORRUPT, "%s: schema %s has tables that are not pawl's", p->place,
                p->schema);
        return err_hint(err, "choose another one with postgres.schema");
    }
    if (f->may_read && (f->may_write || !writes))
        return 0;
    err_set(err, PAWL_EUNREACHABLE,
            "%s: permission denied: role %s may not %s the tables of schema %s", p->place, f->role,
            f->may_read ? "write" : "read", p->schema);
    return err_hint(err, "GRANT SELECT%s ON ALL TABLES IN SCHEMA %s TO %s; see docs/postgres.md",
                    writes ? ", INSERT, UPDATE, DELETE" : "", p->schema, f->role);
}

/* A word of SQL would have to be quoted everywhere. */
static int refuse_name(struct pg *p, const struct facts *f, struct pawl_err *err)
{
    if (f->is_name)
        return 0;
    return err_set(err, PAWL_ECONFIG, "postgres.schema: '%s' is a word of SQL", p->schema);
}

int pg_migrate_check(struct pg *p, int *out_version, struct pawl_err *err)
{
    struct facts f;
    int rc = read_facts(p, &f, err);
    if (rc == 0)
        rc = refuse_name(p, &f, err);
    if (rc == 0)
        rc = refuse_read_only(p, &f, err);
    if (rc < 0)
        return rc;
    if (!f.schema_there || !f.has_tables) {
        rc = refuse_create(p, &f, err);
        if (rc == 0)
            *out_version = 0;
        return rc;
    }
    rc = refuse_tables(p, &f, err);
    return rc < 0 ? rc : read_version(p, out_version, err);
}

/* ---- the script ---- */

/* The schema itself only where it is missing: the right to make one is asked for even if it exists.
 */
static void add_creation(struct str *out, const char *schema)
{
    str_addf(out,
             "DO $$ BEGIN\n    IF to_regnamespace('%s') IS NULL THEN\n        CREATE SCHEMA %s;\n"
             "    END IF;\nEND $$;\n",
             schema, schema);
}

static void add_first_rows(struct str *out, const char *schema)
{
    str_adds(out, "INSERT INTO pawl.meta (key, value) VALUES\n"
                  "    ('store_id', replace(gen_random_uuid()::text, '-', '')), ");
    str_addf(out, "('channel', '%s');\n", schema);
}

static void add_migration(struct str *out, size_t i)
{
    str_adds(out, migrations[i].sql);
    str_adds(out, "INSERT INTO pawl.migration (version, name, checksum, oldest, applied_at)\n");
    str_addf(
        out,
        "VALUES (%d, '%s', '%s', %d, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);\n",
        migrations[i].version, migrations[i].name, migrations[i].checksum, oldest[i]);
}

static void add_functions(struct str *out)
{
    str_adds(out, functions_sql);
    str_adds(out, "INSERT INTO pawl.meta (key, value) VALUES ('functions', '");
    str_adds(out, functions_checksum);
    str_adds(out, "')\nON CONFLICT (key) DO UPDATE SET value = excluded.value;\n");
}

/* Everything between the lock and COMMIT. `pawl.` still stands for the schema. */
static void add_steps(struct str *out, const char *schema, int from)
{
    if (from == 0)
        add_creation(out, schema);
    for (size_t i = 0; i < ARRAY_LEN(migrations); i++)
        if (migrations[i].version > from)
            add_migration(out, i);
    if (from == 0)
        add_first_rows(out, schema);
    add_functions(out);
}

/* Stops by itself where the schema is not of the version it was made for. */
static void add_guard(struct str *out, int from)
{
    str_adds(out, "DO $$ BEGIN\n    IF (SELECT max(version) FROM pawl.migration)");
    str_addf(out,
             " <> %d THEN\n        RAISE EXCEPTION 'not a schema of version %d';\n    END IF;\n"
             "END $$;\n",
             from, from);
}

int pg_script(const struct pg *p, int from, struct str *out, struct pawl_err *err)
{
    AUTO_STR struct str sql = STR_INIT(STR_OUTPUT);
    if (from > SCHEMA_VERSION)
        return err_set(err, PAWL_EUSAGE, "version %d is newer than this pawl's %d", from,
                       SCHEMA_VERSION);
    str_addf(out, "-- Schema %s of pawl from version %d to %d, to be run by its owner.\n",
             p->schema, from, SCHEMA_VERSION);
    if (from == SCHEMA_VERSION && !p->other_functions) {
        str_adds(out, "-- Nothing to do.\n");
        return 0;
    }
    str_adds(&sql, "BEGIN;\nSET LOCAL client_encoding = 'UTF8';\n"
                   "SELECT pg_advisory_xact_lock(hashtextextended('pawl.migrate', 0));\n");
    if (from > 0)
        add_guard(&sql, from);
    add_steps(&sql, p->schema, from);
    str_adds(&sql, "COMMIT;\n");
    AUTO_FREE char *text = db_in_schema(p, str_cstr(&sql));
    str_adds(out, text);
    return 0;
}

/* ---- doing ---- */

static int apply(struct pg *p, int from, struct pawl_err *err)
{
    AUTO_STR struct str sql = STR_INIT(STR_OUTPUT);
    if (from > SCHEMA_VERSION || (from == SCHEMA_VERSION && !p->other_functions))
        return 0;
    add_steps(&sql, p->schema, from);
    AUTO_FREE char *text = db_in_schema(p, str_cstr(&sql));
    if (db_script(p, text, err) < 0)
        return err_wrap(err, "migration to version %d", SCHEMA_VERSION);
    return 0;
}

/* Somebody else may have been faster: look again under the lock. */
static int under_lock(struct pg *p, bool create, struct pawl_err *err)
{
    int version = 0, rc = pg_op_begin(p, err);
    if (rc < 0)
        return rc;
    rc = db_query(p, STMT_MIGRATE_LOCK, NULL, NULL, err);
    if (rc == 0)
        rc = pg_migrate_check(p, &version, err);
    if (rc == 0 && (!create || version == 0))
        rc = apply(p, version, err);
    if (rc == 0)
        rc = read_version(p, &version, err); /* the id of the new store */
    return pg_op_end(p, rc, err);
}

static int create(struct pg *p, struct pawl_err *err)
{
    p->unlimited = true;
    int rc = under_lock(p, true, err);
    p->unlimited = false;
    return rc;
}

static int look(struct pg *p, int *out_version, struct pawl_err *err)
{
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_migrate_check(p, out_version, err);
    pg_read_end(p);
    return rc;
}

int pg_prepare(struct pg *p, struct pawl_err *err)
{
    int version = 0;
    int rc = db_connect(p, err);
    if (rc == 0)
        rc = refuse_server(p, err);
    if (rc == 0)
        rc = look(p, &version, err);
    if (rc == 0 && version == 0)
        rc = create(p, err);
    return rc;
}

static int version_in_read(struct pg *p, int *out, struct pawl_err *err)
{
    struct facts f;
    int reader, rc = read_facts(p, &f, err);
    if (rc < 0)
        return rc;
    if (!f.schema_there || !f.has_tables) {
        *out = 0;
        return 0;
    }
    rc = refuse_tables(p, &f, err);
    return rc < 0 ? rc : query_version(p, out, &reader, err);
}

int pg_version_now(struct pg *p, int *out, struct pawl_err *err)
{
    int rc = db_connect(p, err);
    if (rc == 0)
        rc = refuse_server(p, err);
    if (rc == 0)
        rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = version_in_read(p, out, err);
    pg_read_end(p);
    return rc;
}

/* A migration that was applied must be the one we know: a changed file is a changed meaning. */
static int check_checksums(struct pg *p, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = db_query(p, STMT_CHECKSUMS, NULL, &r, err);
    for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
        int v = res_int(r, i, 0);
        if (v <= SCHEMA_VERSION &&
            (v < 1 || !sv_eq(res_sv(r, i, 1), sv_of(migrations[v - 1].checksum))))
            rc = err_set(err, PAWL_ESCHEMA,
                         "%s: migration %d was applied with other content than this pawl's",
                         p->place, v);
    }
    pg_read_end(p);
    return rc;
}

int pg_migrate(struct store *s, int *out_from, int *out_to, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int version = 0;
    int rc = look(p, &version, err);
    if (rc == 0)
        rc = check_checksums(p, err);
    if (rc == 0 && (version < SCHEMA_VERSION || p->other_functions)) {
        p->unlimited = true;
        rc = under_lock(p, false, err);
        p->unlimited = false;
    }
    if (rc < 0)
        return rc;
    *out_from = version;
    *out_to = version > SCHEMA_VERSION ? version : SCHEMA_VERSION;
    return 0;
}
