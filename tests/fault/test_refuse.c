/* What the store refuses, with which code, and that the same call succeeds when the cause is gone.
 */
#define MIGRATION_TABLE
#include "fixture.h"
#include "sql.h"

#include <fcntl.h>
#include <grp.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int try_open(struct fixture *f, enum store_mode mode)
{
    struct store_options o = store_defaults(mode);
    struct store *s = NULL;
    o.timeout = DUR_MS(100);
    f->e = (struct pawl_err){0};
    int rc = open_store(f->path, &o, &s, &f->e);
    assert_true(rc == 0 || s == NULL);
    store_close(s);
    return rc;
}

static void refused(struct fixture *f, int code, const char *says)
{
    const enum store_mode modes[] = {STORE_READ, STORE_WRITE, STORE_CREATE, STORE_MIGRATE};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        int rc = try_open(f, modes[i]);
        if (rc != code || !strstr(f->e.msg, says))
            fail_msg("mode %zu: %s, not %s: %s", i, rc ? err_name(rc) : "success", err_name(code),
                     f->e.msg);
    }
}

static void close_fixture(struct fixture *f)
{
    store_close(f->s);
    f->s = NULL;
}

static void raw(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static int raw_count(struct fixture *f, const char *from)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", from);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return n;
}

static void write_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static void set_version(struct fixture *f, int version)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", version);
    raw(f, sql);
}

static void test_newer_schema(void **state)
{
    struct fixture *f = *state;
    add_plain(f, 0);
    close_fixture(f);
    raw(f, "PRAGMA user_version=99");
    refused(f, PAWL_ESCHEMA, "99");
    set_version(f, SCHEMA_VERSION);
    assert_int_equal(try_open(f, STORE_WRITE), 0);
}

/* A store as pawl made it when this was the newest schema; `rows` is run in it. */
static void make_schema(struct fixture *f, int version, const char *rows)
{
    AUTO_STR struct str sql = STR_INIT(STR_OUTPUT);
    unlink(f->path);
    raw(f, "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL");
    str_adds(&sql, "BEGIN; PRAGMA application_id=1885435756;");
    for (int i = 0; i < version; i++)
        str_addf(&sql, "%s INSERT INTO migration VALUES (%d, '%s', '%s', 1);", migrations[i].sql,
                 i + 1, migrations[i].name, migrations[i].checksum);
    str_addf(&sql, "%s COMMIT", rows);
    raw(f, str_cstr(&sql));
    set_version(f, version);
}

/* The first one, with jobs in it. */
static void make_first_schema(struct fixture *f)
{
    static const char jobs[] =
        "INSERT INTO queue (id, name) VALUES (1, 'q');"
        "INSERT INTO class (id, queue, kind, head_priority, head_id, n_queued, n_done)"
        " VALUES (1, 1, 'k', 3, 2, 2, 1);"
        "INSERT INTO lane (id, class, head_priority, head_id) VALUES (1, 1, 3, 2);"
        "INSERT INTO body (id, lane, payload, created_at) VALUES (1, 1, 'null', 1), (2, 1, '2', 1),"
        " (3, 1, '3', 1);"
        "INSERT INTO job (id, lane, priority, state, attempt, fence, available_at, finished_at)"
        " VALUES (1, 1, 0, 4, 1, 1, 1, 5), (2, 1, 3, 1, 0, 0, 1, NULL), (3, 1, 0, 1, 0, 0, 1, "
        "NULL);"
        "INSERT INTO meta VALUES ('next_job', 4);";
    make_schema(f, 1, jobs);
}

static void migrate_from(struct fixture *f, int version)
{
    struct store_options o = store_defaults(STORE_MIGRATE);
    int from, to;
    OK(open_store(f->path, &o, &f->s, &f->e));
    OK(f->s->ops->migrate(f->s, &from, &to, &f->e));
    assert_int_equal(from, version);
    assert_int_equal(to, SCHEMA_VERSION);
    store_close(f->s);
    f->s = open_again(f);
    assert_clean(f);
}

static void test_older_schema(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    make_first_schema(f);
    const enum store_mode modes[] = {STORE_READ, STORE_WRITE, STORE_CREATE};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        assert_int_equal(try_open(f, modes[i]), PAWL_ESCHEMA);
    migrate_from(f, 1);
    assert_state(f, (job_id){1}, JOB_DONE);
    struct session w = start(f, "w");
    struct claim_result r = claim(f, &w, "k", 5);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.leases[0].id.v, 2);
    assert_sv(r.leases[0].payload, "2");
    assert_int_equal(add_plain(f, 0).v, 4);
    end(f, &w);
}

/* What is kept would cost more with an index over hashes than all the rest. */
static void test_schema_with_index_of_hashes(void **state)
{
    static const char artifact[] =
        "INSERT INTO queue (id, name) VALUES (1, 'q');"
        "INSERT INTO artifact (job, fence, queue, size, stored, codec, created_at, sha256, name, "
        "place) VALUES (7, 1, 1, 2, 2, 0, 1, zeroblob(32), 'a', 'files/00/00');";
    struct fixture *f = *state;
    close_fixture(f);
    make_schema(f, 4, artifact);
    assert_int_equal(raw_count(f, "sqlite_schema WHERE name = 'artifact_bytes'"), 1);
    migrate_from(f, 4);
    assert_int_equal(raw_count(f, "sqlite_schema WHERE name = 'artifact_bytes'"), 0);
    assert_int_equal(raw_count(f, "artifact"), 1);
}

static void test_changed_migration(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    raw(f, "UPDATE migration SET checksum = 'x'");
    struct store_options o = store_defaults(STORE_MIGRATE);
    int from, to;
    OK(open_store(f->path, &o, &f->s, &f->e));
    FAILS(f->s->ops->migrate(f->s, &from, &to, &f->e), PAWL_ESCHEMA);
}

static void test_foreign_database(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    raw(f, "PRAGMA application_id=1");
    refused(f, PAWL_ECORRUPT, "not pawl's");
    raw(f, "PRAGMA application_id=1885435756");
    assert_int_equal(try_open(f, STORE_WRITE), 0);
    assert_int_equal(unlink(f->path), 0);
    raw(f, "CREATE TABLE recipes (name TEXT)");
    refused(f, PAWL_ECORRUPT, "not pawl's");
}

static void test_triggers(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    raw(f, "CREATE TRIGGER evil AFTER INSERT ON job BEGIN DELETE FROM body; END");
    refused(f, PAWL_ECORRUPT, "triggers");
}

static void test_garbage_file(void **state)
{
    struct fixture *f = *state;
    char junk[8192], log[96];
    close_fixture(f);
    snprintf(log, sizeof(log), "%s-wal", f->path);
    assert_int_equal(unlink(log), 0);
    memset(junk, 'x', sizeof(junk));
    write_file(f->path, junk, sizeof(junk));
    refused(f, PAWL_ECORRUPT, f->path);
    write_file(f->path, "hello\n", 6);
    refused(f, PAWL_ECORRUPT, f->path);
}

static void test_damaged_pages(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 200; i++)
        add_plain(f, 0);
    close_fixture(f);
    raw(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    int fd = open(f->path, O_RDWR | O_CLOEXEC);
    struct stat st;
    char junk[4096];
    memset(junk, 0xa5, sizeof(junk));
    assert_int_equal(fstat(fd, &st), 0);
    for (off_t at = 2 * 4096; at < st.st_size; at += 4096)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
    close(fd);
    int rc = try_open(f, STORE_WRITE);
    assert_int_equal(rc, PAWL_ECORRUPT);
    assert_int_equal(err_exit_status(rc), 4);
}

static void test_empty_file_is_no_store_but_may_become_one(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    assert_int_equal(unlink(f->path), 0);
    write_file(f->path, "", 0);
    assert_int_equal(try_open(f, STORE_READ), PAWL_ENOTFOUND);
    assert_int_equal(try_open(f, STORE_WRITE), PAWL_ENOTFOUND);
    assert_int_equal(try_open(f, STORE_CREATE), 0);
    assert_int_equal(try_open(f, STORE_READ), 0);
}

static void test_symbolic_link(void **state)
{
    struct fixture *f = *state;
    char real[96];
    close_fixture(f);
    snprintf(real, sizeof(real), "%s/real.db", f->dir);
    assert_int_equal(rename(f->path, real), 0);
    assert_int_equal(symlink(real, f->path), 0);
    refused(f, PAWL_EUNREACHABLE, "symbolic link");
}

static void test_world_writable(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    assert_int_equal(chmod(f->path, 0666), 0);
    refused(f, PAWL_EUNREACHABLE, "writable by everybody");
    assert_int_equal(chmod(f->path, 0600), 0);
    assert_int_equal(try_open(f, STORE_WRITE), 0);
}

static void test_folder_in_the_way(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    refused(f, PAWL_EUNREACHABLE, "not a regular file");
    char path[96];
    snprintf(path, sizeof(path), "%.60s/none/p.db", f->dir);
    snprintf(f->path, sizeof(f->path), "%s", path);
    assert_int_equal(try_open(f, STORE_CREATE), PAWL_EUNREACHABLE);
}

static void test_private_files(void **state)
{
    struct fixture *f = *state;
    static const char *const parts[] = {"", "-wal", "-shm", "-turn", "-write", "-wake"};
    add_plain(f, 0);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char path[96];
        struct stat st;
        snprintf(path, sizeof(path), "%s%s", f->path, parts[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 077, 0);
    }
}

static int wait_status(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Permissions do not bind root: there the look is taken as nobody. */
static int open_as_nobody(struct fixture *f, enum store_mode mode)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
                               setresuid(65534, 65534, 65534) < 0))
            _exit(99);
        _exit(err_exit_status(try_open(f, mode)));
    }
    return wait_status(pid);
}

static void give_to_nobody(const char *path)
{
    if (geteuid() == 0)
        assert_int_equal(chown(path, 65534, 65534), 0);
}

static void test_read_only_folder(void **state)
{
    struct fixture *f = *state;
    char inner[80];
    close_fixture(f);
    snprintf(inner, sizeof(inner), "%.60s/ro", f->dir);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chmod(f->dir, 0755), 0);
    give_to_nobody(inner);
    snprintf(f->path, sizeof(f->path), "%.70s/p.db", inner);
    assert_int_equal(chmod(inner, 0555), 0);
    assert_int_equal(open_as_nobody(f, STORE_CREATE), 6);
    assert_int_equal(chmod(inner, 0755), 0);
    assert_int_equal(open_as_nobody(f, STORE_CREATE), 0);
    assert_int_equal(open_as_nobody(f, STORE_WRITE), 0);
}

static void test_read_only_file(void **state)
{
    struct fixture *f = *state;
    close_fixture(f);
    if (geteuid() == 0) { /* as root: let the whole folder belong to nobody */
        char command[160];
        snprintf(command, sizeof(command), "chown -R 65534:65534 %s", f->dir);
        assert_int_equal(system(command), 0);
    }
    assert_int_equal(chmod(f->path, 0400), 0);
    assert_int_equal(open_as_nobody(f, STORE_WRITE), 6);
    assert_int_equal(chmod(f->path, 0600), 0);
    assert_int_equal(open_as_nobody(f, STORE_WRITE), 0);
}

/* ---- locks --------------------------------------------------------------------------------- */

static void with_timeout(struct fixture *f, struct dur timeout)
{
    struct store_options o = store_defaults(STORE_WRITE);
    o.timeout = timeout;
    store_close(f->s);
    OK(open_store(f->path, &o, &f->s, &f->e));
}

static int try_add(struct fixture *f)
{
    struct job_spec s = spec("q", "k", 0);
    struct add_result out;
    f->e = (struct pawl_err){0};
    return store_enqueue(f->s, &s, 1, DUPLICATE_SKIP, &out, &f->e);
}

static void test_locked_by_another_writer(void **state)
{
    struct fixture *f = *state;
    struct store *other = open_again(f);
    with_timeout(f, DUR_MS(50));
    OK(other->ops->group_begin(other, &f->e));
    assert_int_equal(try_add(f), PAWL_ELOCKED);
    assert_int_equal(err_exit_status(PAWL_ELOCKED), 5);
    struct selection all = {0};
    int64_t n;
    OK(f->s->ops->count(f->s, &all, &n, &f->e)); /* looking goes on */
    OK(other->ops->group_commit(other, &f->e));
    assert_int_equal(try_add(f), 0);
    store_close(other);
}

static void test_locked_in_another_process(void **state)
{
    struct fixture *f = *state;
    int go[2], stop[2];
    char byte, path[96];
    with_timeout(f, DUR_MS(50));
    assert_true(pipe2(go, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0);
    snprintf(path, sizeof(path), "%s-write", f->path);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        close(stop[1]);
        if (flock(fd, LOCK_EX) < 0 || write(go[1], "x", 1) != 1)
            _exit(1);
        _exit(read(stop[0], &byte, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(read(go[0], &byte, 1), 1);
    assert_int_equal(try_add(f), PAWL_ELOCKED);
    close(stop[1]);
    assert_int_equal(wait_status(pid), 0);
    assert_int_equal(try_add(f), 0);
    close(go[0]);
    close(go[1]);
    close(stop[0]);
}

static void test_locked_by_a_foreign_program(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;
    with_timeout(f, DUR_MS(50));
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(try_add(f), PAWL_ELOCKED);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(try_add(f), 0);
    sqlite3_close(db);
}

struct slow_reader {
    struct fixture *f;
    struct store *writer;
    int64_t took; /* µs of the slowest commit */
};

/* In the middle of a list, as when its output waits in a pager: others write past the point where
 * the log is folded back. */
static bool write_meanwhile(void *arg, const struct job_view *v)
{
    struct slow_reader *r = arg;
    struct fixture *f = r->f;
    enum { BIG = 6 << 20 };
    AUTO_FREE char *big = mem_alloc(BIG);
    (void)v;
    memset(big, '1', BIG);
    for (int i = 0; i < 5; i++) {
        struct job_spec s = spec("q", "k", 0);
        struct add_result out;
        s.payload = sv_make(big, BIG);
        int64_t from = clock_boot().us;
        OK(store_enqueue(r->writer, &s, 1, DUPLICATE_SKIP, &out, &f->e));
        int64_t took = clock_boot().us - from;
        r->took = took > r->took ? took : r->took;
    }
    return false;
}

static void test_slow_reader_holds_up_no_writer(void **state)
{
    struct fixture *f = *state;
    struct store_options o = store_defaults(STORE_WRITE);
    struct slow_reader r = {.f = f};
    o.timeout = DUR_S(60);
    OK(open_store(f->path, &o, &r.writer, &f->e));
    add_plain(f, 0);
    struct selection all = {0};
    OK(f->s->ops->list(f->s, &all, false, write_meanwhile, &r, &f->e));
    if (r.took >= DUR_S(30).us)
        fail_msg("a commit waited %lld ms for a reader", (long long)r.took / 1000);
    store_close(r.writer);
}

static void test_created_by_many_at_once(void **state)
{
    struct fixture *f = *state;
    enum { N = 8, ROUNDS = 4 };
    close_fixture(f);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[N];
        int go[2];
        char byte;
        snprintf(f->path, sizeof(f->path), "%.60s/r%d.db", f->dir, round);
        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        for (int i = 0; i < N; i++) {
            pids[i] = fork();
            if (pids[i])
                continue;
            close(go[1]);
            struct store_options o = store_defaults(STORE_CREATE);
            int rc = (int)read(go[0], &byte, 1);
            rc = open_store(f->path, &o, &f->s, &f->e);
            if (rc == 0)
                rc = try_add(f);
            if (rc < 0)
                fprintf(stderr, "# %s: %s\n", err_name(rc), f->e.msg);
            _exit(rc < 0);
        }
        close(go[1]); /* all start */
        int failed = 0;
        for (int i = 0; i < N; i++)
            failed += wait_status(pids[i]);
        close(go[0]);
        assert_int_equal(failed, 0);
        f->s = open_again(f);
        assert_clean(f);
        assert_int_equal(get(f, (job_id){N}).state, JOB_QUEUED);
        close_fixture(f);
    }
}

/* ---- full disk ----------------------------------------------------------------------------- */

static void fill_up(const char *path)
{
    static char block[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    close(fd);
}

/* Add until the disk is full; returns how many were acknowledged. */
static int add_until_full(struct fixture *f)
{
    int n = 0, rc;
    while ((rc = try_add(f)) == 0 && n < 10000)
        n++;
    assert_int_equal(rc, PAWL_EFULL);
    assert_int_equal(err_exit_status(rc), 6);
    assert_true(f->e.hint[0]);
    return n;
}

static void full_disk(struct fixture *f, const char *dir)
{
    char ballast[96];
    snprintf(ballast, sizeof(ballast), "%.80s/ballast", dir);
    struct store_options o = store_defaults(STORE_CREATE);
    o.durability = DURABILITY_FULL;
    fill_up(ballast);
    FAILS(open_store(f->path, &o, &f->s, &f->e), PAWL_EFULL); /* no room to begin with */
    assert_int_equal(unlink(ballast), 0);
    OK(open_store(f->path, &o, &f->s, &f->e));
    job_id first = add_plain(f, 0);
    fill_up(ballast);
    int n = add_until_full(f);
    assert_int_equal(unlink(ballast), 0);
    close_fixture(f);
    OK(open_store(f->path, &o, &f->s, &f->e));
    struct selection all = {0};
    int64_t there;
    OK(f->s->ops->count(f->s, &all, &there, &f->e));
    assert_int_equal(there, n + 1);
    assert_state(f, first, JOB_QUEUED);
    assert_int_equal(try_add(f), 0);
    assert_clean(f);
    close_fixture(f);
}

static void test_I12_full_disk(void **state)
{
    struct fixture *f = *state;
    char dir[80];
    close_fixture(f);
    snprintf(dir, sizeof(dir), "%.60s/small", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    if (mount("pawl-test", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") < 0) {
        print_message("# skipped: mounting a small tmpfs needs root\n");
        skip();
    }
    snprintf(f->path, sizeof(f->path), "%.70s/p.db", dir);
    full_disk(f, dir);
    assert_int_equal(umount(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_newer_schema),
        TEST(test_older_schema),
        TEST(test_schema_with_index_of_hashes),
        TEST(test_changed_migration),
        TEST(test_foreign_database),
        TEST(test_triggers),
        TEST(test_garbage_file),
        TEST(test_damaged_pages),
        TEST(test_empty_file_is_no_store_but_may_become_one),
        TEST(test_symbolic_link),
        TEST(test_world_writable),
        TEST(test_folder_in_the_way),
        TEST(test_private_files),
        TEST(test_read_only_folder),
        TEST(test_read_only_file),
        TEST(test_locked_by_another_writer),
        TEST(test_locked_in_another_process),
        TEST(test_locked_by_a_foreign_program),
        TEST(test_slow_reader_holds_up_no_writer),
        TEST(test_created_by_many_at_once),
        TEST(test_I12_full_disk),
    };
    return cmocka_run_group_tests_name("refuse", tests, NULL, NULL);
}
