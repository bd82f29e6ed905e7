/* Opening the file: refuse what cannot be trusted with a queue, pin every setting, find the clock.
 */
#include "internal.h"

#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* File systems on which locks or shared memory of another machine are not ours to rely on. */
static const struct {
    unsigned magic;
    const char *name;
} network_fs[] = {
    {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"},   {SMB2_SUPER_MAGIC, "SMB"},
    {CIFS_SUPER_MAGIC, "CIFS"}, {V9FS_MAGIC, "9p"},         {CEPH_SUPER_MAGIC, "Ceph"},
    {AFS_SUPER_MAGIC, "AFS"},   {CODA_SUPER_MAGIC, "Coda"}, {FUSE_SUPER_MAGIC, "FUSE"},
};

int sq_fail(struct sq *q, int rc, struct pawl_err *err, const char *doing)
{
    int code;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        code = PAWL_ELOCKED;
        break;
    case SQLITE_FULL:
        code = PAWL_EFULL;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        code = PAWL_ECORRUPT;
        break;
    case SQLITE_NOMEM:
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
        code = PAWL_EINTERNAL;
        break;
    default: /* IOERR, READONLY, CANTOPEN, PERM, … */
        code = PAWL_EUNREACHABLE;
    }
    const char *why = q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(rc);
    int sys = q->db ? sqlite3_system_errno(q->db) : 0;
    if ((rc & 0xff) == SQLITE_IOERR) {
        if (sys == ENOSPC)
            code = PAWL_EFULL;
        q->broken =
            true; /* I12: after a failed read, write or sync nothing it says can be trusted */
    }
    const char *kind = sqlite3_errstr(rc);
    if (strcmp(why, kind) == 0)
        err_set(err, code, "%s: %s: %s", q->path, doing, why);
    else
        err_set(err, code, "%s: %s: %s (%s)", q->path, doing, why, kind);
    if (q->broken && !q->cause.code)
        q->cause = *err;
    if (code == PAWL_ELOCKED)
        err_hint(err, "another program holds the database; try again");
    if (code == PAWL_EFULL)
        err_hint(err, "free some space and run the same command again");
    if (code == PAWL_ECORRUPT)
        err_hint(err, "restore a backup; 'pawl doctor' says more");
    return code;
}

static int check_file_system(const char *path, struct pawl_err *err)
{
    AUTO_FREE char *dir = mem_strdup(path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir ? 1 : 0] = '\0';
    struct statfs fs;
    if (statfs(slash ? dir : ".", &fs) < 0)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "no folder for %s", path);
    for (size_t i = 0; i < ARRAY_LEN(network_fs); i++)
        if ((unsigned)fs.f_type == network_fs[i].magic) {
            err_set(err, PAWL_EUNREACHABLE, "%s is on %s; SQLite needs a local file system", path,
                    network_fs[i].name);
            return err_hint(err, "put the store on a local disk");
        }
    return 0;
}

/* 1 = there, 0 = not there, < 0 = not to be used. */
static int check_file(const char *path, struct pawl_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot look at %s", path);
    }
    if (S_ISLNK(st.st_mode)) {
        err_set(err, PAWL_EUNREACHABLE, "%s is a symbolic link; two names for one store corrupt it",
                path);
        return err_hint(err, "name the file itself");
    }
    if (!S_ISREG(st.st_mode))
        return err_set(err, PAWL_EUNREACHABLE, "%s is not a regular file", path);
    if (st.st_mode & S_IWOTH) {
        err_set(err, PAWL_EUNREACHABLE, "%s is writable by everybody", path);
        return err_hint(err, "chmod o-w %s", path);
    }
    if (geteuid() != 0 && st.st_uid != geteuid() && !(st.st_mode & S_IWGRP))
        return err_set(err, PAWL_EUNREACHABLE, "%s belongs to another user", path);
    return 1;
}

static int pragma(struct sq *q, const char *sql, const char *expect, struct pawl_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(q->db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s);
    int result = 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        result = sq_fail(q, rc, err, sql);
    else if (expect && (rc != SQLITE_ROW || !sv_eq(column_sv(s, 0), sv_of(expect))))
        result = err_set(err, PAWL_EUNREACHABLE, "%s: '%s' did not take effect", q->path, sql);
    sqlite3_finalize(s);
    return result;
}

static int pin_settings(struct sq *q, struct pawl_err *err)
{
    bool full = q->options.durability == DURABILITY_FULL;
    const struct {
        const char *sql, *expect;
    } settings[] = {
        {full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL},
        {"PRAGMA synchronous", full ? "2" : "1"},
        {"PRAGMA foreign_keys=OFF", NULL}, /* kept by the operations; checked by doctor */
        {"PRAGMA wal_autocheckpoint=0", "0"},
        {"PRAGMA journal_size_limit=16777216", "16777216"},
        {"PRAGMA temp_store=MEMORY", NULL},
        {"PRAGMA cell_size_check=ON", NULL},
        {"PRAGMA mmap_size=0", NULL},
        {"PRAGMA cache_size=-32768", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (pragma(q, settings[i].sql, settings[i].expect, err) < 0)
            return err->code;
    if (q->options.mode == STORE_READ && pragma(q, "PRAGMA query_only=ON", NULL, err) < 0)
        return err->code;
    return 0;
}

static int open_database(struct sq *q, bool create, struct pawl_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                SQLITE_OPEN_PRIVATECACHE | (create ? SQLITE_OPEN_CREATE : 0);
    const char *vfs = getenv("PAWL_TEST_VFS"); /* fault injection: a VFS the test registered */
    int rc = sqlite3_open_v2(q->path, &q->db, flags, vfs);
    if (rc != SQLITE_OK)
        return sq_fail(q, rc, err, "open");
    if (q->options.mode != STORE_READ && sqlite3_db_readonly(q->db, "main") == 1) {
        err_set(err, PAWL_EUNREACHABLE, "%s cannot be written", q->path);
        return err_hint(err, "look at its permissions and those of its folder");
    }
    sqlite3_extended_result_codes(q->db, 1);
    sqlite3_busy_timeout(q->db, (int)(q->options.timeout.us / 1000));
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

struct wall sq_now(const struct sq *q)
{
    return (struct wall){q->base_wall + clock_boot().us - q->base_boot};
}

static int boot_matches(struct sq *q, const char *boot_id, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_META_GET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("boot_id"));
    int rc = stmt_step(q, s, err, "clock");
    if (rc == 1)
        rc = sv_eq(column_sv(s, 0), sv_of(boot_id));
    return rc;
}

/* Base of the clock as stored: base_wall, base_boot. */
static int read_base(struct sq *q, struct pawl_err *err)
{
    int rc = meta_get(q, "base_wall", &q->base_wall, err);
    if (rc >= 0)
        rc = meta_get(q, "base_boot", &q->base_boot, err);
    return rc < 0 ? rc : 0;
}

static int high_water(struct sq *q, int64_t *out, struct pawl_err *err)
{
    AUTO_STMT s = stmt_get(q, STMT_LAST_EVENT_AT, err);
    if (!s)
        return err->code;
    int rc = stmt_step(q, s, err, "clock");
    *out = rc == 1 ? sqlite3_column_int64(s, 0) : 0;
    return rc < 0 ? rc : 0;
}

static int write_base(struct sq *q, const char *boot_id, struct pawl_err *err)
{
    sqlite3_stmt *s = stmt_get(q, STMT_META_SET, err);
    if (!s)
        return err->code;
    bind_sv(s, 1, SV("boot_id"));
    bind_sv(s, 2, sv_of(boot_id));
    int rc = stmt_run(q, s, err, "clock");
    if (!rc)
        rc = meta_set(q, "base_wall", q->base_wall, err);
    if (!rc)
        rc = meta_set(q, "base_boot", q->base_boot, err);
    if (!rc && (s = stmt_get(q, STMT_VOID_SESSIONS, err)))
        rc = stmt_run(q, s, err, "clock");
    return rc;
}

/* I13: a new boot rebases the clock to the wall, but never backwards, and voids all sessions in the
 * same transaction. A reader only computes what the next writer will store. */
static int rebase(struct sq *q, const char *boot_id, struct pawl_err *err)
{
    int64_t high = 0;
    int rc = high_water(q, &high, err);
    if (rc < 0)
        return rc;
    int64_t wall = clock_wall().us;
    q->base_wall = wall > high ? wall : high;
    q->base_boot = clock_boot().us;
    return q->options.mode == STORE_READ ? 0 : write_base(q, boot_id, err);
}

static int find_clock(struct sq *q, struct pawl_err *err)
{
    char boot_id[37];
    clock_boot_id(boot_id);
    int rc = boot_matches(q, boot_id, err);
    if (rc != 0)
        return rc < 0 ? rc : read_base(q, err);
    if (q->options.mode == STORE_READ)
        return rebase(q, boot_id, err);
    rc = op_begin(q, err);
    if (rc < 0)
        return rc;
    rc = boot_matches(q, boot_id, err); /* somebody else may have done it meanwhile */
    if (rc == 0)
        rc = rebase(q, boot_id, err);
    else if (rc > 0)
        rc = read_base(q, err);
    return op_end(q, rc, err);
}

static int prepare_schema(struct sq *q, bool create, struct pawl_err *err)
{
    int version = 0;
    int rc = migrate_check(q, &version, err);
    if (rc < 0)
        return rc;
    if (version == 0 && create)
        return migrate_create(q, err);
    if (version == 0) {
        err_set(err, PAWL_ENOTFOUND, "no store at %s (the file is empty)", q->path);
        return err_hint(err, "'pawl add' sets one up");
    }
    if (version < SCHEMA_VERSION && q->options.mode != STORE_MIGRATE) {
        err_set(err, PAWL_ESCHEMA, "%s has schema %d, this pawl works with %d", q->path, version,
                SCHEMA_VERSION);
        return err_hint(err, "run 'pawl migrate'");
    }
    return 0;
}

/* The file for its owner alone; SQLite gives its side files the same mode. Made without opening it:
 * a close would drop the locks that other handles of this process have on it. The umask would do
 * too, but it belongs to the whole process. */
static int make_file(const char *path, struct pawl_err *err)
{
    if (mknod(path, S_IFREG | 0600, 0) < 0 && errno != EEXIST)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot make %s", path);
    return 0;
}

/* Creation happens under the write lock, so that many may start at once. */
static int open_checked(struct sq *q, bool exists, bool create, struct pawl_err *err)
{
    int rc = 0;
    bool locked = create && !exists;
    if (q->options.mode != STORE_READ)
        rc = turnstile_open(q, err);
    if (!rc && locked)
        rc = turnstile_enter(q, err);
    if (!rc && locked) {
        rc = make_file(q->path, err);
        if (!rc)
            rc = open_database(q, true, err);
        if (!rc)
            rc = pragma(q, "PRAGMA page_size=4096", NULL, err);
    } else if (!rc) {
        rc = open_database(q, create, err);
    }
    if (locked)
        turnstile_leave(q);
    if (!rc)
        rc = prepare_schema(q, create, err);
    if (!rc)
        rc = pin_settings(q, err);
    if (!rc)
        tx_watch_log(q);
    return rc;
}

int conn_open(struct sq *q, struct pawl_err *err)
{
    bool create = q->options.mode >= STORE_CREATE;
    int exists = check_file(q->path, err);
    if (exists < 0)
        return exists;
    if (!exists && !create) {
        err_set(err, PAWL_ENOTFOUND, "no store at %s", q->path);
        return err_hint(err, "'pawl add' sets one up; --store names another");
    }
    int rc = check_file_system(q->path, err);
    if (!rc)
        rc = open_checked(q, exists, create, err);
    if (!rc && q->options.mode < STORE_COPY)
        rc = copy_check_mark(q, err);
    if (!rc && q->options.mode != STORE_MIGRATE)
        rc = find_clock(q, err);
    return rc;
}

void conn_close(struct sq *q)
{
    stmt_done_all(q);
    if (q->db)
        sqlite3_close_v2(q->db);
    q->db = NULL;
    turnstile_close(q);
}
