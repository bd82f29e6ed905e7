/* The floor under `pawl bench`: a bare loop that makes the same row changes with the same schema
 * and durability, and nothing else: no leases to check, no lanes to merge, no threads, no jobs to
 * run. floor drain JOBS LANES clustered|interleaved BATCH FILE floor import JOBS BATCH FILE Prints
 * one line of JSON. */
#define MIGRATION_TABLE
#include "sql.h"

#include <openssl/sha.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *db;
static const char *file;
static int64_t statements, rows, commits, checkpoints, log_frames;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static void sql(const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die(text);
}

static sqlite3_stmt *prepare(const char *text)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK)
        die(text);
    return s;
}

static void run(sqlite3_stmt *s)
{
    if (sqlite3_step(s) != SQLITE_DONE)
        die(sqlite3_sql(s));
    sqlite3_reset(s);
    statements++;
    rows++;
}

static void bind(sqlite3_stmt *s, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(s, i + 1, v[i]);
}
#define BIND(s, ...)                                                                               \
    bind((s), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int64_t now_us(void)
{
    return (int64_t)(seconds() * 1e6);
}

static int on_commit(void *arg, sqlite3 *of, const char *name, int frames)
{
    (void)arg;
    (void)of;
    (void)name;
    log_frames = frames;
    return SQLITE_OK;
}

static void open_db(void)
{
    if (sqlite3_open(file, &db) != SQLITE_OK)
        die("open");
    sql("PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY");
    sqlite3_wal_hook(db, on_commit, NULL);
    sql(migrations[0].sql);
}

static void commit(void)
{
    sql("COMMIT");
    commits++;
    if (log_frames * (4096 + 24LL) > 16 << 20) {
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
        checkpoints++;
    }
}

struct adding {
    sqlite3_stmt *body, *job, *event, *key;
};

static struct adding prepare_adding(void)
{
    return (struct adding){
        prepare(
            "INSERT INTO body (id, lane, created_at, key, payload) VALUES (?1, ?2, ?3, ?4, ?5)"),
        prepare(
            "INSERT INTO job (id, lane, priority, state, available_at) VALUES (?1, ?2, 0, 1, ?3)"),
        prepare("INSERT INTO event (at, type, job) VALUES (?1, 1, ?2)"),
        prepare("INSERT INTO job_key (digest, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING"),
    };
}

static void add(struct adding *a, int64_t id, int64_t lane, const char *key)
{
    int64_t now = now_us();
    BIND(a->body, id, lane, now);
    sqlite3_bind_text(a->body, 4, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(a->body, 5, "{}", 2, SQLITE_STATIC);
    run(a->body);
    BIND(a->job, id, lane, now);
    run(a->job);
    BIND(a->event, now, id);
    run(a->event);
}

static int64_t lane_of(int64_t id, int64_t jobs, int64_t lanes, bool interleaved)
{
    return interleaved ? (id - 1) % lanes + 1 : (id - 1) * lanes / jobs + 1;
}

static void fill(int64_t jobs, int64_t lanes, bool interleaved)
{
    struct adding a = prepare_adding();
    sql("BEGIN; INSERT INTO queue (name) VALUES ('bench');"
        "INSERT INTO class (queue, kind, head_priority, head_id) VALUES (1, 'noop', 0, 1)");
    sqlite3_stmt *lane = prepare("INSERT INTO lane (class, host, head_priority, head_id)"
                                 " VALUES (1, ?1, 0, ?2)");
    for (int64_t i = 0; i < lanes; i++) {
        char host[32];
        snprintf(host, sizeof(host), "host%lld", (long long)i);
        sqlite3_bind_text(lane, 1, host, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(lane, 2, interleaved ? i + 1 : i * jobs / lanes + 1);
        run(lane);
    }
    for (int64_t id = 1; id <= jobs; id++) {
        add(&a, id, lane_of(id, jobs, lanes, interleaved), NULL);
        if (id % 10000 == 0) {
            commit();
            sql("BEGIN");
        }
    }
    commit();
}

struct draining {
    sqlite3_stmt *row, *claim, *end, *attempt, *event, *lane, *class_;
};

static struct draining prepare_draining(void)
{
    return (struct draining){
        prepare("SELECT j.priority, j.attempt, j.fence, b.key, b.payload, b.created_at"
                " FROM job j CROSS JOIN body b WHERE j.id = ?1 AND b.id = ?1"),
        prepare("UPDATE job SET state = 3, attempt = 1, fence = 1, owner = 1, claimed_at = ?2"
                " WHERE id = ?1"),
        prepare("UPDATE job SET state = 4, finished_at = ?2, owner = NULL WHERE id = ?1"),
        prepare(
            "INSERT INTO attempt (job, fence, attempt, session, started_at, finished_at, outcome,"
            " class) VALUES (?1, 1, 1, 1, ?2, ?2, 0, 0)"),
        prepare("INSERT INTO event (at, type, job, fence, session) VALUES (?1, ?2, ?3, 1, 1)"),
        prepare("UPDATE lane SET head_priority = ?2, head_id = ?3 WHERE id = ?1"),
        prepare("UPDATE class SET head_id = ?1, n_queued = n_queued - ?2, n_done = n_done + ?2"
                " WHERE id = 1"),
    };
}

static void claim_one(struct draining *d, int64_t id, int64_t now)
{
    sqlite3_bind_int64(d->row, 1, id);
    if (sqlite3_step(d->row) != SQLITE_ROW)
        die("claim");
    (void)sqlite3_column_text(d->row, 4);
    sqlite3_reset(d->row);
    statements++;
    BIND(d->claim, id, now);
    run(d->claim);
    BIND(d->event, now, 2, id);
    run(d->event);
}

static void settle_one(struct draining *d, int64_t id, int64_t now)
{
    BIND(d->end, id, now);
    run(d->end);
    BIND(d->attempt, id, now);
    run(d->attempt);
    BIND(d->event, now, 3, id);
    run(d->event);
}

/* The head of every lane that lost jobs moves on, once per batch and lane. */
static void move_heads(struct draining *d, int64_t from, int64_t to, int64_t jobs, int64_t lanes,
                       bool interleaved)
{
    int64_t last = 0;
    for (int64_t id = from; id <= to; id++) {
        int64_t lane = lane_of(id, jobs, lanes, interleaved);
        int64_t next = interleaved ? id + lanes : to + 1;
        if (!interleaved && lane == last)
            continue;
        last = lane;
        bool none = next > jobs || lane_of(next, jobs, lanes, interleaved) != lane;
        BIND(d->lane, lane, 0, next);
        if (none) {
            sqlite3_bind_null(d->lane, 2);
            sqlite3_bind_null(d->lane, 3);
        }
        run(d->lane);
    }
    BIND(d->class_, to + 1, to - from + 1);
    run(d->class_);
}

/* As the worker does it: one transaction settles a batch and claims the next. */
static void drain(int64_t jobs, int64_t lanes, bool interleaved, int64_t batch)
{
    struct draining d = prepare_draining();
    for (int64_t from = 1; from <= jobs + batch; from += batch) {
        int64_t now = now_us(), to = from + batch - 1 > jobs ? jobs : from + batch - 1;
        sql("BEGIN IMMEDIATE");
        for (int64_t id = from - batch > 0 ? from - batch : 1; id < from && id <= jobs; id++)
            settle_one(&d, id, now);
        for (int64_t id = from; id <= to; id++)
            claim_one(&d, id, now);
        if (from <= to)
            move_heads(&d, from, to, jobs, lanes, interleaved);
        commit();
    }
}

static void report(const char *name, int64_t jobs, double took)
{
    printf("{\"floor\":\"%s\",\"jobs\":%lld,\"per_s\":%.0f,\"rows_per_job\":%.2f,"
           "\"statements_per_job\":%.2f,\"fsyncs_per_job\":%.5f}\n",
           name, (long long)jobs, (double)jobs / took, (double)rows / (double)jobs,
           (double)statements / (double)jobs, (double)(commits + 2 * checkpoints) / (double)jobs);
}

struct digest {
    unsigned char d[16];
    int64_t id;
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static void import(int64_t jobs, int64_t batch)
{
    struct adding a = prepare_adding();
    struct digest *keys = calloc((size_t)batch, sizeof(*keys));
    sql("INSERT INTO queue (name) VALUES ('bench'); INSERT INTO class (queue, kind) VALUES (1, "
        "'noop');"
        "INSERT INTO lane (class) VALUES (1)");
    for (int64_t from = 1; from <= jobs; from += batch) {
        int64_t n = jobs - from + 1 < batch ? jobs - from + 1 : batch;
        sql("BEGIN IMMEDIATE");
        for (int64_t i = 0; i < n; i++) {
            unsigned char full[32];
            char key[40];
            int len = snprintf(key, sizeof(key), "bench/key-%lld", (long long)(from + i));
            SHA256((unsigned char *)key, (size_t)len, full);
            memcpy(keys[i].d, full, 16);
            keys[i].id = from + i;
        }
        qsort(keys, (size_t)n, sizeof(*keys), compare);
        for (int64_t i = 0; i < n; i++) {
            sqlite3_bind_blob(a.key, 1, keys[i].d, 16, SQLITE_STATIC);
            sqlite3_bind_int64(a.key, 2, keys[i].id);
            run(a.key);
        }
        for (int64_t i = 0; i < n; i++) {
            char key[40];
            snprintf(key, sizeof(key), "key-%lld", (long long)(from + i));
            add(&a, from + i, 1, key);
        }
        commit();
    }
    free(keys);
}

static void clear_counts(void)
{
    statements = rows = commits = checkpoints = 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "drain") == 0) {
        int64_t jobs = strtoll(argv[2], NULL, 10), lanes = strtoll(argv[3], NULL, 10);
        bool interleaved = strcmp(argv[4], "interleaved") == 0;
        file = argv[6];
        open_db();
        fill(jobs, lanes, interleaved);
        clear_counts();
        double from = seconds();
        drain(jobs, lanes, interleaved, strtoll(argv[5], NULL, 10));
        report("drain", jobs, seconds() - from);
    } else if (argc == 5 && strcmp(argv[1], "import") == 0) {
        int64_t jobs = strtoll(argv[2], NULL, 10);
        file = argv[4];
        open_db();
        clear_counts();
        double from = seconds();
        import(jobs, strtoll(argv[3], NULL, 10));
        report("import", jobs, seconds() - from);
    } else {
        fprintf(stderr, "usage: floor drain JOBS LANES clustered|interleaved BATCH FILE\n"
                        "       floor import JOBS BATCH FILE\n");
        return 2;
    }
    return 0;
}
