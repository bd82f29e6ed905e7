/* What an operator asks of the store itself: facts, checks, a copy. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

static int64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

int store_info(struct store *s, struct store_info *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int version = 0;
    int rc = migrate_check(q, &version, err);
    if (rc < 0)
        return rc;
    AUTO_FREE char *wal = side_path(q, "-wal");
    struct store_info info = {.schema = version,
                              .schema_known = SCHEMA_VERSION,
                              .bytes = file_bytes(q->path),
                              .log_bytes_pending = file_bytes(wal),
                              .durability = q->options.durability,
                              .free_bytes = -1};
    snprintf(info.kind, sizeof(info.kind), "sqlite");
    snprintf(info.location, sizeof(info.location), "%s", q->path);
    snprintf(info.version, sizeof(info.version), "SQLite %s", sqlite3_libversion());
    struct statvfs vfs;
    if (statvfs(q->path, &vfs) == 0)
        info.free_bytes = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize;
    *out = info;
    return 0;
}

/* Each query returns one text per thing that is not as it must be. */
static const char *const checks[] = {
    "PRAGMA integrity_check(20)",
    "SELECT 'job ' || id || ' has no body' FROM job WHERE id NOT IN (SELECT id FROM body) LIMIT 20",
    "SELECT 'body ' || id || ' has no job' FROM body WHERE id NOT IN (SELECT id FROM job) LIMIT 20",
    "SELECT 'lane ' || l.id || ': its head is not its best ready job' FROM lane l WHERE l.head_id "
    "IS"
    " NOT (SELECT id FROM job j WHERE j.state = 1 AND j.lane = l.id ORDER BY j.priority DESC, j.id"
    " LIMIT 1) OR l.head_priority IS NOT (SELECT priority FROM job j WHERE j.id = l.head_id) LIMIT "
    "20",
    "SELECT 'job ' || j.id || ' and its body lie in different lanes' FROM job j JOIN body b ON "
    "b.id ="
    " j.id WHERE j.lane <> b.lane LIMIT 20",
    "SELECT 'job ' || id || ' has the unknown state ' || state FROM job WHERE state NOT BETWEEN -1"
    " AND 7 LIMIT 20",
    "SELECT 'class ' || c.id || ': its head is not the best of its lanes' FROM class c WHERE"
    " c.head_id IS NOT (SELECT l.head_id FROM lane l WHERE l.class = c.id AND l.head_id IS NOT NULL"
    " AND l.parked IS NULL ORDER BY l.head_priority DESC, l.turn, l.head_id LIMIT 1) OR "
    "c.head_priority IS NOT (SELECT priority"
    " FROM job j WHERE j.id = c.head_id) LIMIT 20",
    "SELECT 'class ' || c.id || ': counts differ from its jobs' FROM class c LEFT JOIN (SELECT"
    " l.class, sum(j.state = 0) AS blocked, sum(j.state IN (-1, 1)) AS queued, sum(j.state = 2) AS "
    "waiting,"
    " sum(j.state = 3) AS running, sum(j.state = 4) AS done, sum(j.state = 5) AS skipped,"
    " sum(j.state = 6) AS failed, sum(j.state = 7) AS cancelled FROM job j JOIN lane l ON l.id = "
    "j.lane GROUP BY l.class) t ON"
    " t.class = c.id WHERE c.n_blocked IS NOT ifnull(t.blocked, 0) OR c.n_queued IS NOT"
    " ifnull(t.queued, 0) OR c.n_waiting IS NOT ifnull(t.waiting, 0) OR c.n_running IS NOT "
    "ifnull(t.running, 0) OR c.n_done IS NOT"
    " ifnull(t.done, 0) OR c.n_skipped IS NOT ifnull(t.skipped, 0) OR c.n_failed IS NOT"
    " ifnull(t.failed, 0) OR c.n_cancelled IS NOT ifnull(t.cancelled, 0) LIMIT 20",
    "SELECT 'job ' || id || ' runs without an owner' FROM job WHERE state = 3 AND owner IS NULL"
    " LIMIT 20",
    "SELECT 'job ' || id || ' is ' || state || ' but owned' FROM job WHERE state <> 3 AND owner IS"
    " NOT NULL LIMIT 20",
    "SELECT 'key of job ' || id || ' outlives it without an end' FROM job_key WHERE expires IS NULL"
    " AND id NOT IN (SELECT id FROM job) LIMIT 20",
    "SELECT 'job ' || id || ' has lost its key' FROM body WHERE key IS NOT NULL AND id NOT IN"
    " (SELECT id FROM job_key) LIMIT 20",
    "SELECT 'job ' || id || ' waits for no time' FROM job WHERE state = 2 AND available_at IS NULL"
    " AND id NOT IN (SELECT job FROM due) LIMIT 20",
    "SELECT 'job ' || job || ' is due but does not wait' FROM due WHERE job NOT IN (SELECT id FROM"
    " job WHERE state = 2 AND available_at IS NULL) LIMIT 20",
    "SELECT 'attempt ' || fence || ' of job ' || job || ' is left over' FROM attempt WHERE job NOT "
    "IN"
    " (SELECT id FROM job) LIMIT 20",
    "SELECT 'result of job ' || job || ' is left over' FROM result WHERE job NOT IN (SELECT id FROM"
    " job) LIMIT 20",
    "SELECT 'artifact ' || a.id || ' of job ' || a.job || ' is ahead of its fence ' || j.fence FROM"
    " artifact a JOIN job j ON j.id = a.job WHERE a.fence > j.fence LIMIT 20",
    "SELECT 'artifact ' || id || ' is of no queue' FROM artifact WHERE queue NOT IN (SELECT id FROM"
    " queue) LIMIT 20",
    "SELECT 'artifact ' || id || ' has no hash' FROM artifact WHERE length(sha256) <> 32 LIMIT 20",
    "SELECT 'fetch ' || fence || ' of job ' || job || ' has an artifact that does not exist' FROM"
    " fetch f WHERE artifact IS NOT NULL AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id ="
    " f.artifact AND a.job = f.job AND a.fence = f.fence) LIMIT 20",
    "SELECT 'fetch ' || fence || ' of job ' || job || ' is left over' FROM fetch f WHERE artifact"
    " IS NULL AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.job = f.job AND a.fence = f.fence)"
    " LIMIT 20",
    "SELECT 'job ' || job || ' is marked as poison but has not failed' FROM poison WHERE job NOT IN"
    " (SELECT id FROM job WHERE state = 6) LIMIT 20",
    "SELECT 'permit of job ' || job || ', which does not run' FROM permit WHERE job NOT IN"
    " (SELECT id FROM job WHERE state = 3) LIMIT 20",
    "SELECT 'job ' || job || ' was admitted to a host, but does not run' FROM admitted WHERE job"
    " NOT IN (SELECT id FROM job WHERE state = 3) LIMIT 20",
    "SELECT 'permit of job ' || job || ' for gate ' || gate || ', which does not exist' FROM permit"
    " WHERE gate NOT IN (SELECT id FROM gate) LIMIT 20",
    "SELECT 'gate ' || id || ' is of no limit' FROM gate WHERE limit_id NOT IN (SELECT id FROM "
    "limits"
    " WHERE text IS NOT NULL) LIMIT 20",
    "SELECT 'lane ' || id || ' is parked on gate ' || parked || ', which does not exist or which"
    " nobody looks at' FROM lane WHERE parked IS NOT NULL AND parked NOT IN (SELECT id FROM gate"
    " WHERE wake_at IS NOT NULL) LIMIT 20",
    "SELECT 'jobs ' || min(id) || ' and ' || max(id) || ' have one lock at the same time' FROM job"
    " WHERE lock IS NOT NULL AND state IN (1, 3) GROUP BY lock HAVING count(*) > 1 LIMIT 20",
    "SELECT 'job ' || min(id) || ' waits for a lock that nobody has' FROM job WHERE state = -1 AND"
    " lock NOT IN (SELECT lock FROM job WHERE lock IS NOT NULL AND state IN (1, 3)) GROUP BY lock"
    " LIMIT 20",
    "SELECT 'job ' || j.id || ' is held without a lock' FROM job j WHERE j.state = -1 AND j.lock IS"
    " NULL LIMIT 20",
    "SELECT 'job ' || j.id || ' and its body do not agree on its lock' FROM job j JOIN body b ON"
    " b.id = j.id WHERE (j.lock IS NULL) <> (b.lock IS NULL) LIMIT 20",
    "SELECT 'job ' || id || ' has an id that was not given out' FROM job WHERE id >= (SELECT value"
    " FROM meta WHERE key = 'next_job') LIMIT 20",
};

static int run_check(struct sq *q, const char *sql, struct str *out, struct pawl_err *err)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(q->db, sql, -1, &s, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW || sv_eq(column_sv(s, 0), SV("ok")))
            continue;
        str_add(out, column_sv(s, 0));
        str_addc(out, '\n');
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? 0 : sq_fail(q, rc, err, "check");
}

static int check_gates(struct sq *q, struct gate_entry *const *gates, size_t n, int64_t job,
                       struct str *out, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (gate_load(q, gates[i], err) < 0)
            return err->code;
        int rc = permit_has(q, gates[i], job, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            str_addf(out, "job %lld runs without a permit of limit " SV_FMT "\n", (long long)job,
                     SV_ARG(gates[i]->limit->spec.name));
    }
    return 0;
}

/* Which gates a lane has follows from the limits: no statement can say it. host p NULL: its own. */
static int check_host(struct sq *q, int64_t lane_id, int64_t job, struct sv host, struct str *out,
                      struct pawl_err *err)
{
    struct lane_entry *l;
    AUTO_FREE struct gate_entry **gates = NULL;
    if (names_lane_by_id(q, lane_id, &l, err) < 0)
        return err->code;
    size_t n = host_gates(q, l->cls, host.p ? host : l->host, &gates);
    return check_gates(q, gates, n, job, out, err);
}

static int check_permits(struct sq *q, struct str *out, struct pawl_err *err)
{
    int rc;
    AUTO_STMT s = stmt_get(q, STMT_RUNNING_LANES, err);
    AUTO_STMT more = stmt_get(q, STMT_ADMITTED_ALL, err);
    if (!s || !more || policy_load(q, err) < 0)
        return err->code;
    while ((rc = stmt_step(q, s, err, "check")) == 1)
        if (check_host(q, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), SV_NONE, out,
                       err) < 0)
            return err->code;
    while (rc == 0 && (rc = stmt_step(q, more, err, "check")) == 1) {
        if (check_host(q, sqlite3_column_int64(more, 0), sqlite3_column_int64(more, 1),
                       column_sv(more, 2), out, err) < 0)
            return err->code;
        rc = 0;
    }
    return rc;
}

int store_check(struct store *s, struct str *out, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(checks); i++)
        rc = run_check(q, checks[i], out, err);
    if (rc == 0)
        rc = check_permits(q, out, err);
    read_end(q);
    return rc;
}

static const char *file_system_name(long type)
{
    static const struct {
        long type;
        const char *name;
    } known[] = {{0xef53, "ext4"},      {0x58465342, "xfs"},       {0x9123683e, "btrfs"},
                 {0x2fc12fc1, "zfs"},   {0x794c7630, "overlayfs"}, {0xf2f52010, "f2fs"},
                 {0x01021994, "tmpfs"}, {0x858458f6, "ramfs"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].type == type)
            return known[i].name;
    return NULL;
}

int store_advise(struct store *s, store_advice_fn *say, void *arg, struct pawl_err *err)
{
    (void)err;
    struct statfs fs;
    char text[96];
    if (statfs(sq_of(s)->path, &fs) < 0)
        return 0;
    const char *name = file_system_name((long)fs.f_type);
    bool memory = name && (!strcmp(name, "tmpfs") || !strcmp(name, "ramfs"));
    if (name)
        snprintf(text, sizeof(text), "%s%s", name,
                 memory ? ": in memory, a power loss takes everything" : "");
    else
        snprintf(text, sizeof(text), "type 0x%lx is not known to keep its promises",
                 (long)fs.f_type);
    say(arg, name && !memory ? ADVICE_OK : ADVICE_WARN, "file system", sv_of(text));
    return 0;
}

static int read_id(struct sq *q, char out[STORE_ID_LEN + 1], struct pawl_err *err)
{
    AUTO_STMT st = stmt_get(q, STMT_META_GET, err);
    if (!st)
        return err->code;
    bind_sv(st, 1, SV("store_id"));
    int rc = stmt_step(q, st, err, "identity");
    if (rc == 1)
        snprintf(out, STORE_ID_LEN + 1, SV_FMT, SV_ARG(column_sv(st, 0)));
    return rc == 0 ? err_set(err, PAWL_ECORRUPT, "%s has no id", q->path) : rc < 0 ? rc : 0;
}

int store_identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    int rc = read_begin(q, err);
    if (rc < 0)
        return rc;
    rc = read_id(q, out, err);
    read_end(q);
    return rc;
}

/* A lake that is the original's must not take the copy's word for what may go. */
static int other_id(sqlite3 *db)
{
    return sqlite3_exec(db,
                        "UPDATE meta SET value = lower(hex(randomblob(16))) WHERE key = 'store_id'",
                        NULL, NULL, NULL);
}

/* By SQLite's backup interface: the file is never opened by anybody else (closing such a descriptor
 * would drop this process's locks on it). */
int store_backup(struct store *s, const char *file, struct pawl_err *err)
{
    struct sq *q = sq_of(s);
    sqlite3 *to = NULL;
    if (q->broken)
        return refuse_broken(q, err);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return err_set(err, PAWL_ECONFLICT, "%s exists already", file);
    if (fd < 0)
        return err_errno(err, PAWL_EUNREACHABLE, errno, "cannot create %s", file);
    close(fd);
    int rc = sqlite3_open_v2(file, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    sqlite3_backup *b = rc == SQLITE_OK ? sqlite3_backup_init(to, "main", q->db, "main") : NULL;
    if (b) {
        sqlite3_backup_step(b, -1);
        rc = sqlite3_backup_finish(b);
    } else if (to) {
        rc = sqlite3_errcode(to);
    }
    if (rc == SQLITE_OK)
        rc = other_id(to);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(to, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    int result = 0;
    if (rc != SQLITE_OK) {
        result = err_set(err, (rc & 0xff) == SQLITE_FULL ? PAWL_EFULL : PAWL_EUNREACHABLE,
                         "cannot copy %s to %s: %s", q->path, file,
                         to ? sqlite3_errmsg(to) : sqlite3_errstr(rc));
        (void)unlink(file);
    }
    sqlite3_close(to);
    return result;
}
