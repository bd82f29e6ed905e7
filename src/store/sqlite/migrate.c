/* The schema: all migrations in order, each with its checksum, in one transaction. */
#define MIGRATION_TABLE
#include "internal.h"

#include <stdio.h>

static int query_int(struct sq *q, const char *sql, int64_t *out, struct pawl_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(q->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(s, 0);
    int result = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sq_fail(q, rc, err, "schema");
    sqlite3_finalize(s);
    return result;
}

static int exec(struct sq *q, const char *sql, struct pawl_err *err)
{
    int rc = sqlite3_exec(q->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sq_fail(q, rc, err, "schema");
}

static int refuse_foreign(struct sq *q, struct pawl_err *err)
{
    err_set(err, PAWL_ECORRUPT, "%s is an SQLite database, but not pawl's", q->path);
    return err_hint(err, "choose another file with --store");
}

/* S48: triggers would run inside our transactions; we have none. */
static int refuse_triggers(struct sq *q, struct pawl_err *err)
{
    int64_t n = 0;
    int rc = query_int(q, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'", &n, err);
    if (rc == 0 && n)
        return err_set(err, PAWL_ECORRUPT, "%s has triggers that are not pawl's", q->path);
    return rc;
}

struct marks {
    int64_t app, tables, version;
};

/* In one snapshot: between two of them somebody else may create the store. */
static int read_marks(struct sq *q, struct marks *m, struct pawl_err *err)
{
    bool alone = sqlite3_get_autocommit(q->db);
    int rc = alone ? exec(q, "BEGIN", err) : 0;
    if (!rc)
        rc = query_int(q, "PRAGMA application_id", &m->app, err);
    if (!rc)
        rc = query_int(q, "SELECT count(*) FROM sqlite_schema", &m->tables, err);
    if (!rc)
        rc = query_int(q, "PRAGMA user_version", &m->version, err);
    if (alone && !sqlite3_get_autocommit(q->db))
        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int migrate_check(struct sq *q, int *out_version, struct pawl_err *err)
{
    struct marks m = {0};
    int rc = read_marks(q, &m, err);
    if (rc < 0)
        return rc;
    if (m.tables == 0 && (m.app == 0 || m.app == PAWL_APPLICATION_ID)) {
        *out_version = 0;
        return 0;
    }
    if (m.app != PAWL_APPLICATION_ID)
        return refuse_foreign(q, err);
    if (m.version > SCHEMA_VERSION) {
        err_set(err, PAWL_ESCHEMA, "%s has schema %lld, this pawl knows only up to %d", q->path,
                (long long)m.version, SCHEMA_VERSION);
        return err_hint(err, "use a newer pawl");
    }
    *out_version = (int)m.version;
    return refuse_triggers(q, err);
}

static int record(struct sq *q, size_t i, struct pawl_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc =
        sqlite3_prepare_v2(q->db, "INSERT INTO migration VALUES (?1, ?2, ?3, ?4)", -1, &s, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int(s, 1, migrations[i].version);
        bind_sv(s, 2, sv_of(migrations[i].name));
        bind_sv(s, 3, sv_of(migrations[i].checksum));
        sqlite3_bind_int64(s, 4, clock_wall().us);
        rc = sqlite3_step(s);
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? 0 : sq_fail(q, rc, err, "schema");
}

static int apply_from(struct sq *q, int version, struct pawl_err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(migrations); i++) {
        if (migrations[i].version <= version)
            continue;
        if (exec(q, migrations[i].sql, err) < 0 || record(q, i, err) < 0)
            return err_wrap(err, "migration %d (%s)", migrations[i].version, migrations[i].name);
    }
    char sql[64];
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA user_version=%d", SCHEMA_VERSION);
    return exec(q, sql, err);
}

/* A migration that was applied must be the one we know: a changed file is a changed meaning. */
static int check_checksums(struct sq *q, struct pawl_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(q->db, "SELECT version, checksum FROM migration", -1, &s, NULL);
    int result = 0;
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW)
            break;
        size_t v = (size_t)sqlite3_column_int64(s, 0);
        if (v < 1 || v > ARRAY_LEN(migrations) ||
            !sv_eq(column_sv(s, 1), sv_of(migrations[v - 1].checksum))) {
            result = err_set(err, PAWL_ESCHEMA,
                             "%s: migration %zu was applied with other content than this pawl's",
                             q->path, v);
            break;
        }
    }
    if (!result && rc != SQLITE_ROW && rc != SQLITE_DONE)
        result = sq_fail(q, rc, err, "schema");
    sqlite3_finalize(s);
    return result;
}

static int under_lock(struct sq *q, int (*body)(struct sq *, int, struct pawl_err *),
                      struct pawl_err *err)
{
    int version = 0;
    int rc = turnstile_enter(q, err);
    if (rc < 0)
        return rc;
    rc = exec(q, "BEGIN IMMEDIATE", err);
    if (!rc)
        rc = migrate_check(q, &version, err); /* again: somebody may have been faster */
    if (!rc)
        rc = body(q, version, err);
    if (!rc)
        rc = exec(q, "COMMIT", err);
    if (rc < 0 && !sqlite3_get_autocommit(q->db))
        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
    turnstile_leave(q);
    return rc;
}

static int create_body(struct sq *q, int version, struct pawl_err *err)
{
    if (version != 0)
        return 0;
    char sql[64];
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA application_id=%d", PAWL_APPLICATION_ID);
    int rc = exec(q, sql, err);
    return rc ? rc : apply_from(q, 0, err);
}

int migrate_create(struct sq *q, struct pawl_err *err)
{
    /* Page size, auto_vacuum and WAL cannot be changed later, or not inside a transaction. */
    int rc = turnstile_enter(q, err);
    if (rc < 0)
        return rc;
    rc = exec(q, "PRAGMA auto_vacuum=INCREMENTAL", err);
    if (!rc)
        rc = exec(q, "PRAGMA journal_mode=WAL", err);
    if (!rc)
        rc = exec(q, "PRAGMA synchronous=FULL", err);
    turnstile_leave(q);
    return rc ? rc : under_lock(q, create_body, err);
}

int store_migrate(struct store *s, int *out_from, int *out_to, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int version = 0;
    int rc = migrate_check(q, &version, err);
    if (!rc && version)
        rc = check_checksums(q, err);
    if (!rc && version < SCHEMA_VERSION)
        rc = under_lock(q, apply_from, err);
    if (rc < 0)
        return rc;
    *out_from = version;
    *out_to = SCHEMA_VERSION;
    return 0;
}
