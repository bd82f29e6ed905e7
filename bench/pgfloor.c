/* The floor under pawl on PostgreSQL: bare libpq loops that make the same row changes in the same
 * tables, and nothing else: no leases to check, no lanes, no counts, no jobs to run.
 *   pgfloor drain URL BATCH           two connections drain the lane of the jobs that are there
 *   pgfloor copy URL JOBS BATCH keyed|plain   one connection, COPY of rows made beforehand
 * Prints one line of JSON. */
#include <endian.h>
#include <libpq-fe.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 2, OID_INT8 = 20, OID_INT8_ARRAY = 1016, DIGEST = 16, ROW_MAX = 256 };

static PGconn *db;
static const char *url;
static int64_t statements, jobs_done, commits;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "pgfloor: %s: %s\n", what, PQerrorMessage(db));
    exit(1);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static PGresult *checked(PGresult *r, const char *what)
{
    ExecStatusType s = PQresultStatus(r);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK && s != PGRES_COPY_IN)
        die(what);
    return r;
}

static void sql(const char *text)
{
    PQclear(checked(PQexec(db, text), text));
    statements++;
}

/* The best plans there are, whatever the statistics say: as pawl's functions do for themselves. */
static void connect_db(void)
{
    db = PQconnectdb(url);
    if (PQstatus(db) != CONNECTION_OK)
        die("connect");
    sql("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
        "SET enable_bitmapscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan");
}

/* ---- drain ---- */

/* $3 is where this connection took its last job: everything before it is somebody's. */
static const char claim_sql[] =
    "WITH u AS (UPDATE pawl.job SET state = 3, attempt = attempt + 1, fence = fence + 1,"
    " owner = $4, claimed_at = $5 WHERE id = ANY (ARRAY(SELECT id FROM pawl.job"
    " WHERE lane = $1 AND state = 1 AND (rank, id) > (0, $3) ORDER BY rank, id LIMIT $2"
    " FOR UPDATE SKIP LOCKED)) RETURNING id, fence, rank, attempt),"
    " e AS (INSERT INTO pawl.event (at, type, job, fence, session)"
    " SELECT $5, 2, id, fence, $4 FROM u)"
    " SELECT u.id, u.fence, u.rank, u.attempt, b.queue, b.kind, b.key, b.payload, b.created_at"
    " FROM u JOIN pawl.body b ON b.id = u.id";

static const char settle_sql[] =
    "WITH d AS (DELETE FROM pawl.job WHERE id = ANY ($1::bigint[]) RETURNING *),"
    " p AS (INSERT INTO pawl.settled (id, lane, fence, claimed_at, available_at, finished_at, rank,"
    " attempt, transient, lost, state, reason) SELECT id, lane, fence, claimed_at, available_at, "
    "$2,"
    " rank, attempt, transient, lost, 4, reason FROM d),"
    " a AS (INSERT INTO pawl.attempt (job, fence, session, started_at, finished_at, attempt, "
    "outcome,"
    " class) SELECT id, fence, owner, claimed_at, $2, attempt, 0, 0 FROM d)"
    " INSERT INTO pawl.event (at, type, job, fence, session) SELECT $2, 3, id, fence, owner FROM d";

/* What a batch holds, in the form in which it is sent back: an array of bigint. */
struct numbers {
    char *p;
    int n, len;
};

static void numbers_clear(struct numbers *a)
{
    a->n = 0;
    a->len = 20;
}

static void put_int(char *to, int32_t v)
{
    uint32_t be = htobe32((uint32_t)v);
    memcpy(to, &be, sizeof(be));
}

/* `v` is big-endian already, as it came. */
static void numbers_add(struct numbers *a, const char *v)
{
    put_int(a->p + a->len, 8);
    memcpy(a->p + a->len + 4, v, 8);
    a->len += 12;
    a->n++;
}

static void numbers_end(struct numbers *a)
{
    const int32_t head[] = {1, 0, OID_INT8, a->n, 1};
    for (int i = 0; i < 5; i++)
        put_int(a->p + 4 * (size_t)i, head[i]);
}

static PGresult *run(const char *name, int n, const char *const *values, const int *lengths)
{
    static const int binary[] = {1, 1, 1, 1, 1};
    statements++;
    return checked(PQexecPrepared(db, name, n, values, lengths, binary, 1), name);
}

static int64_t be64(int64_t v)
{
    return (int64_t)htobe64((uint64_t)v);
}

static void settle(struct numbers *ids)
{
    int64_t now = be64(now_us());
    numbers_end(ids);
    const char *values[] = {ids->p, (char *)&now};
    PGresult *r = run("settle", 2, values, (int[]){ids->len, 8});
    if (atoi(PQcmdTuples(r)) != ids->n)
        die("settle");
    jobs_done += ids->n;
    PQclear(r);
}

static void claim(int64_t lane, int batch, int64_t *last, struct numbers *ids)
{
    int64_t numbers[] = {be64(lane), be64(batch), be64(*last), be64(1), be64(now_us())};
    const char *values[5];
    size_t payload = 0;
    for (int i = 0; i < 5; i++)
        values[i] = (char *)&numbers[i];
    PGresult *r = run("claim", 5, values, (int[]){8, 8, 8, 8, 8});
    numbers_clear(ids);
    for (int i = 0; i < PQntuples(r); i++) {
        int64_t id;
        memcpy(&id, PQgetvalue(r, i, 0), sizeof(id));
        id = be64(id);
        *last = id > *last ? id : *last;
        numbers_add(ids, PQgetvalue(r, i, 0));
        payload += strlen(PQgetvalue(r, i, 7));
    }
    if (ids->n && !payload)
        die("payload");
    PQclear(r);
}

static int64_t only_lane(void)
{
    PGresult *r = checked(PQexec(db, "SELECT lane FROM pawl.job LIMIT 1"), "lane");
    int64_t lane = PQntuples(r) ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : 0;
    PQclear(r);
    return lane;
}

/* As the worker does it: one transaction settles a batch and claims the next. */
static void drain(int batch)
{
    static const Oid claim_types[] = {OID_INT8, OID_INT8, OID_INT8, OID_INT8, OID_INT8};
    static const Oid settle_types[] = {OID_INT8_ARRAY, OID_INT8};
    struct numbers ids = {malloc(20 + 12 * (size_t)batch), 0, 0};
    int64_t last = 0, lane;
    connect_db();
    lane = only_lane();
    PQclear(checked(PQprepare(db, "claim", claim_sql, 5, claim_types), "claim"));
    PQclear(checked(PQprepare(db, "settle", settle_sql, 2, settle_types), "settle"));
    do {
        sql("BEGIN");
        if (ids.n)
            settle(&ids);
        claim(lane, batch, &last, &ids);
        sql("COMMIT");
        commits++;
    } while (ids.n);
    free(ids.p);
    PQfinish(db);
}

static void report(const char *name, int64_t jobs, double took)
{
    printf("{\"floor\":\"%s\",\"jobs\":%lld,\"per_s\":%.0f,\"statements_per_job\":%.4f,"
           "\"commits_per_job\":%.5f}\n",
           name, (long long)jobs, (double)jobs / took, (double)statements / (double)jobs,
           (double)commits / (double)jobs);
}

/* Each connection in a process of its own; what they did is added up in shared memory. */
static int drain_all(int batch)
{
    int64_t *sums = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double from = seconds();
    bool good = true;
    for (int i = 0; i < CONNECTIONS; i++)
        if (fork() == 0) {
            drain(batch);
            __atomic_fetch_add(&sums[0], jobs_done, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&sums[1], statements, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&sums[2], commits, __ATOMIC_SEQ_CST);
            exit(0);
        }
    for (int status; wait(&status) > 0;)
        good &= status == 0;
    double took = seconds() - from;
    statements = sums[1];
    commits = sums[2];
    if (good)
        report("drain", sums[0], took);
    return good ? 0 : 1;
}

/* ---- copy ---- */

/* Rows of one table and one batch in COPY's binary form. */
struct rows {
    char *p;
    size_t len;
};

static void put(struct rows *r, const void *p, size_t n)
{
    memcpy(r->p + r->len, p, n);
    r->len += n;
}

static void put_16(struct rows *r, int16_t v)
{
    uint16_t be = htobe16((uint16_t)v);
    put(r, &be, 2);
}

static void put_length(struct rows *r, int32_t v)
{
    uint32_t be = htobe32((uint32_t)v);
    put(r, &be, 4);
}

static void field_64(struct rows *r, int64_t v)
{
    uint64_t be = htobe64((uint64_t)v);
    put_length(r, 8);
    put(r, &be, 8);
}

static void field_32(struct rows *r, int32_t v)
{
    put_length(r, 4);
    put_length(r, v);
}

static void field_16(struct rows *r, int16_t v)
{
    put_length(r, 2);
    put_16(r, v);
}

static void field_text(struct rows *r, const char *s)
{
    put_length(r, s ? (int32_t)strlen(s) : -1);
    if (s)
        put(r, s, strlen(s));
}

static void begin(struct rows *r, int n)
{
    static const char head[19] = "PGCOPY\n\377\r\n\0";
    r->p = malloc((size_t)n * ROW_MAX + sizeof(head) + 2);
    r->len = 0;
    put(r, head, sizeof(head));
}

struct digest {
    unsigned char d[SHA256_DIGEST_LENGTH];
    int64_t id;
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST);
}

static void make_keys(struct rows *r, int64_t from, int n)
{
    struct digest *v = calloc((size_t)n, sizeof(*v));
    begin(r, n);
    for (int i = 0; i < n; i++) {
        char key[40];
        int len = snprintf(key, sizeof(key), "bench/key-%lld", (long long)(from + i));
        SHA256((unsigned char *)key, (size_t)len, v[i].d);
        v[i].id = from + i;
    }
    qsort(v, (size_t)n, sizeof(*v), compare);
    for (int i = 0; i < n; i++) {
        put_16(r, 2);
        put_length(r, DIGEST);
        put(r, v[i].d, DIGEST);
        field_64(r, v[i].id);
    }
    put_16(r, -1);
    free(v);
}

static void make_bodies(struct rows *r, int64_t from, int n, bool keyed)
{
    int64_t now = now_us();
    begin(r, n);
    for (int64_t id = from; id < from + n; id++) {
        char key[40];
        snprintf(key, sizeof(key), "key-%lld", (long long)id);
        put_16(r, 7);
        field_64(r, id);
        field_text(r, "bench");
        field_text(r, "noop");
        field_text(r, "");
        field_text(r, keyed ? key : NULL);
        field_text(r, "{}");
        field_64(r, now);
    }
    put_16(r, -1);
}

static void make_jobs(struct rows *r, int64_t from, int n)
{
    int64_t now = now_us();
    begin(r, n);
    for (int64_t id = from; id < from + n; id++) {
        put_16(r, 6);
        field_64(r, id);
        field_64(r, 4711);
        field_64(r, now);
        field_32(r, 0);
        field_16(r, 1);
        field_16(r, 0);
    }
    put_16(r, -1);
}

static void make_events(struct rows *r, int64_t from, int n)
{
    int64_t now = now_us();
    begin(r, n);
    for (int64_t id = from; id < from + n; id++) {
        put_16(r, 3);
        field_64(r, now);
        field_64(r, id);
        field_16(r, 1);
    }
    put_16(r, -1);
}

enum { KEYS, BODIES, JOBS, EVENTS, N_TABLES };
static const char *const copies[N_TABLES] = {
    "COPY pawl.job_key (digest, id) FROM STDIN (FORMAT binary)",
    "COPY pawl.body (id, queue, kind, host, key, payload, created_at) FROM STDIN (FORMAT binary)",
    "COPY pawl.job (id, lane, available_at, rank, state, reason) FROM STDIN (FORMAT binary)",
    "COPY pawl.event (at, job, type) FROM STDIN (FORMAT binary)",
};

static void copy_one(const char *into, const struct rows *r)
{
    sql(into);
    if (PQputCopyData(db, r->p, (int)r->len) != 1 || PQputCopyEnd(db, NULL) != 1)
        die(into);
    PQclear(checked(PQgetResult(db), into));
    if (PQgetResult(db))
        die(into);
}

static void copy_batch(const struct rows *tables, bool keyed)
{
    sql("BEGIN");
    for (int i = keyed ? KEYS : BODIES; i < N_TABLES; i++)
        copy_one(copies[i], &tables[i]);
    sql("COMMIT");
    commits++;
}

static int copy_all(int64_t jobs, int batch, bool keyed)
{
    size_t n = (size_t)((jobs + batch - 1) / batch);
    struct rows(*made)[N_TABLES] = calloc(n, sizeof(*made));
    for (size_t i = 0; i < n; i++) {
        int64_t from = (int64_t)i * batch + 1;
        int len = jobs - from + 1 < batch ? (int)(jobs - from + 1) : batch;
        if (keyed)
            make_keys(&made[i][KEYS], from, len);
        make_bodies(&made[i][BODIES], from, len, keyed);
        make_jobs(&made[i][JOBS], from, len);
        make_events(&made[i][EVENTS], from, len);
    }
    double from = seconds();
    connect_db();
    for (size_t i = 0; i < n; i++)
        copy_batch(made[i], keyed);
    report("copy", jobs, seconds() - from);
    return 0;
}

int main(int argc, char **argv)
{
    url = argc > 2 ? argv[2] : NULL;
    if (argc == 4 && strcmp(argv[1], "drain") == 0)
        return drain_all(atoi(argv[3]));
    if (argc == 6 && strcmp(argv[1], "copy") == 0)
        return copy_all(strtoll(argv[3], NULL, 10), atoi(argv[4]), strcmp(argv[5], "keyed") == 0);
    fprintf(stderr, "usage: pgfloor drain URL BATCH\n"
                    "       pgfloor copy URL JOBS BATCH keyed|plain\n");
    return 2;
}
