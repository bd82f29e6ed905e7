/* What an operator asks of the store itself: facts, checks, advice. */
#include "pg.h"

#include "text.h"
#include <stdio.h>

static int read_size(struct pg *p, int64_t *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_text(&a, sv_of(p->schema));
    int rc = db_query(p, STMT_SIZES, &a, &r, err);
    if (rc == 0)
        *out = res_i64(r, 0, 0);
    return rc;
}

/* "15.18" of "15.18 (Debian 15.18-0+deb12u1)" */
static struct sv server_version(const struct pg *p)
{
    const char *v = PQparameterStatus(p->conn, "server_version");
    return v ? sv_make(v, strcspn(v, " ")) : SV("of unknown version");
}

int pg_info(struct store *s, struct store_info *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct store_info info = {
        .schema_known = SCHEMA_VERSION, .durability = p->options.durability, .free_bytes = -1};
    int rc = pg_read_begin(p, err);
    if (rc < 0)
        return rc;
    rc = pg_migrate_check(p, &info.schema, err);
    if (rc == 0)
        rc = read_size(p, &info.bytes, err);
    if (rc == 0)
        snprintf(info.version, sizeof(info.version), "PostgreSQL " SV_FMT,
                 SV_ARG(server_version(p)));
    pg_read_end(p);
    if (rc < 0)
        return rc;
    snprintf(info.kind, sizeof(info.kind), "postgres");
    snprintf(info.location, sizeof(info.location), "%s", p->place);
    *out = info;
    return 0;
}

/* ---- checks ---- */

static const enum stmt_id checks[] = {
    STMT_CHECK_TWICE,        STMT_CHECK_BODIES,    STMT_CHECK_JOBS,      STMT_CHECK_STATES,
    STMT_CHECK_LANES,        STMT_CHECK_HEADS,     STMT_CHECK_COUNTS,    STMT_CHECK_OWNERS,
    STMT_CHECK_KEYS,         STMT_CHECK_KEYED,     STMT_CHECK_FENCES,    STMT_CHECK_ATTEMPTS,
    STMT_CHECK_POISON,       STMT_CHECK_RESULTS,   STMT_CHECK_IDS,       STMT_CHECK_PERMITS,
    STMT_CHECK_UNLIMITED,    STMT_CHECK_GATES,     STMT_CHECK_PARKED,    STMT_CHECK_LOCKS,
    STMT_CHECK_HELD,         STMT_CHECK_ARTIFACTS, STMT_CHECK_KEPT,      STMT_CHECK_FETCHES,
    STMT_CHECK_ARTIFACT_IDS, STMT_CHECK_ADMITTED,  STMT_CHECK_ELSEWHERE,
};

static int run_check(struct pg *p, enum stmt_id id, struct str *out, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(p, id, NULL, &r, err);
    for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
        str_add(out, res_sv(r, i, 0));
        str_addc(out, '\n');
    }
    return rc;
}

int pg_check(struct store *s, struct str *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    p->unlimited = true;
    int rc = pg_read_begin(p, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(checks); i++)
        rc = run_check(p, checks[i], out, err);
    pg_read_end(p);
    p->unlimited = false;
    return rc;
}

int pg_identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err)
{
    (void)err; /* read with the version, before anything else */
    snprintf(out, STORE_ID_LEN + 1, "%s", pg_of(s)->store_id);
    return 0;
}

int pg_backup(struct store *s, const char *file, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    err_set(err, PAWL_EUSAGE, "%s is backed up by PostgreSQL's own means", p->place);
    return err_hint(err, "pg_dump -n %s -Fc -f %s", p->schema, file);
}

/* ---- advice ---- */

/* More than these is worth a warning. */
enum { DEAD_ROWS_MANY = 100000, BACKLOG_MANY = 1000000, NOTIFY_FULL_PERCENT = 50 };
#define CLOCK_APART     DUR_S(5)
#define TRANSACTION_OLD DUR_S(300)

struct advising {
    struct pg *p;
    bool sees_all; /* what other roles do */
    store_advice_fn *say;
    void *arg;
};

static void say(const struct advising *a, bool good, const char *what, const char *fmt, ...)
    PAWL_PRINTF(4, 5);
static void say(const struct advising *a, bool good, const char *what, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    a->say(a->arg, good ? ADVICE_OK : ADVICE_WARN, what, sv_of(text));
}

static void add_age(struct str *out, const PGresult *r, int row, int col)
{
    dur_human(DUR_US(res_i64(r, row, col)), out);
}

static void advise_connection(const struct advising *a)
{
    struct pg *p = a->p;
    int lib = PQlibVersion();
    const char *tls = PQsslInUse(p->conn) ? PQsslAttribute(p->conn, "protocol") : NULL;
    const char *address = PQhostaddr(p->conn);
    say(a, true, "server", "PostgreSQL " SV_FMT ", libpq %d.%d", SV_ARG(server_version(p)),
        lib / 10000, lib % 10000);
    if (tls)
        say(a, true, "connection", "encrypted, %s", tls);
    else
        say(a, true, "connection", address && address[0] ? "not encrypted" : "a local socket");
    say(a, true, "prepared statements", "%s",
        p->options.no_prepare ? "off (postgres.prepare)" : "on");
}

static void advise_clock(const struct advising *a, int64_t apart_us)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    int64_t by = apart_us < 0 ? -apart_us : apart_us;
    dur_human(DUR_US(by), &s);
    if (by > CLOCK_APART.us)
        say(a, false, "clock",
            "the server's is %s %s this machine's; leases do not mind, --at does", str_cstr(&s),
            apart_us < 0 ? "behind" : "ahead of");
    else
        say(a, true, "clock", "server and this machine are %s apart", str_cstr(&s));
}

static void advise_replication(const struct advising *a, const PGresult *r)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    long long standbys = res_i64(r, 0, 4);
    add_age(&s, r, 0, 3);
    if (res_int(r, 0, 2))
        say(a, true, "replication", "this is a read-only standby, %s behind",
            res_null(r, 0, 3) ? "unknown how far" : str_cstr(&s));
    else
        say(a, true, "replication", "primary, %lld standby%s attached, commits %s", standbys,
            standbys == 1 ? "" : "s", res_int(r, 0, 5) ? "wait for them" : "do not wait for them");
}

static void advise_notify(const struct advising *a, int percent)
{
    if (a->p->options.no_notify)
        say(a, true, "hints", "NOTIFY is off (postgres.notify): idle workers poll");
    else
        say(a, percent < NOTIFY_FULL_PERCENT, "hints",
            "NOTIFY on channel %s, the server's queue is %d%% full", a->p->schema, percent);
}

static int advise_server(struct advising *a, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    struct wall asked = clock_wall();
    int rc = db_query(a->p, STMT_ADVISE_SERVER, NULL, &r, err);
    if (rc < 0)
        return rc;
    int64_t now = (asked.us + clock_wall().us) / 2;
    a->sees_all = res_int(r, 0, 8);
    advise_connection(a);
    if (!res_int(r, 0, 1))
        say(a, false, "server's disk",
            "fsync or full_page_writes is off: a crash of its machine may take the whole database");
    advise_clock(a, res_i64(r, 0, 0) - now);
    advise_replication(a, r);
    advise_notify(a, res_int(r, 0, 6));
    if (!res_int(r, 0, 7))
        say(a, false, "autovacuum", "off: dead rows will pile up in the hot table");
    return 0;
}

static int advise_table(struct advising *a, struct pawl_err *err)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    AUTO_RESULT r = NULL;
    int rc = db_query(a->p, STMT_ADVISE_TABLE, NULL, &r, err);
    if (rc < 0 || !PQntuples(r))
        return rc;
    long long live = res_i64(r, 0, 0), dead = res_i64(r, 0, 1);
    add_age(&s, r, 0, 2);
    if (!res_null(r, 0, 2))
        str_adds(&s, " ago");
    say(a, dead < DEAD_ROWS_MANY || dead < live, "hot table",
        "%lld rows, %lld dead, last vacuum: %s", live, dead,
        res_null(r, 0, 2) ? "never" : str_cstr(&s));
    return 0;
}

static int advise_oldest(struct advising *a, struct pawl_err *err)
{
    AUTO_STR struct str age = STR_INIT(STR_LINE), query = STR_INIT(STR_LINE);
    AUTO_RESULT r = NULL;
    int rc = db_query(a->p, STMT_ADVISE_OLDEST, NULL, &r, err);
    if (rc < 0)
        return rc;
    if (!PQntuples(r)) {
        say(a, true, "oldest transaction", "none but this one%s",
            a->sees_all ? "" : "; to see other roles': GRANT pg_read_all_stats");
        return 0;
    }
    struct sv app = res_sv(r, 0, 1), role = res_sv(r, 0, 2), state = res_sv(r, 0, 3);
    bool old = res_i64(r, 0, 4) >= TRANSACTION_OLD.us;
    add_age(&age, r, 0, 4);
    text_safe(&query, res_sv(r, 0, 5), 120);
    say(a, !old, "oldest transaction", "%s, pid %d (" SV_FMT ", role " SV_FMT "), " SV_FMT ": %s%s",
        str_cstr(&age), res_int(r, 0, 0), SV_ARG(app), SV_ARG(role), SV_ARG(state),
        str_cstr(&query), old ? "; no dead row younger than it can be removed" : "");
    return 0;
}

static int advise_ghosts(struct advising *a, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(a->p, STMT_ADVISE_GHOSTS, NULL, &r, err);
    for (int i = 0; rc == 0 && i < PQntuples(r); i++)
        say(a, false, "oldest transaction", SV_FMT " keeps dead rows alive",
            SV_ARG(res_sv(r, i, 0)));
    return rc;
}

static int advise_backlog(struct advising *a, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(a->p, STMT_ADVISE_BACKLOG, NULL, &r, err);
    if (rc < 0)
        return rc;
    long long wakes = res_i64(r, 0, 0), deltas = res_i64(r, 0, 1);
    bool much = wakes > BACKLOG_MANY || deltas > BACKLOG_MANY;
    say(a, !much, "backlog", "%lld wakes, %lld counts to fold%s", wakes, deltas,
        much ? ": a worker does it, pawl run" : "");
    return 0;
}

static int advise_limits(struct advising *a, struct pawl_err *err)
{
    AUTO_RESULT r = NULL;
    int rc = db_query(a->p, STMT_ADVISE_LIMITS, NULL, &r, err);
    if (rc == 0 && res_i64(r, 0, 0))
        say(a, true, "limits", "%lld with %lld gates, %lld breakers not closed, %lld lanes wait",
            (long long)res_i64(r, 0, 0), (long long)res_i64(r, 0, 1), (long long)res_i64(r, 0, 2),
            (long long)res_i64(r, 0, 3));
    return rc;
}

int pg_advise(struct store *s, store_advice_fn *say_, void *arg, struct pawl_err *err)
{
    int (*const steps[])(struct advising *, struct pawl_err *) = {
        advise_server, advise_table, advise_oldest, advise_ghosts, advise_backlog, advise_limits};
    struct advising a = {.p = pg_of(s), .say = say_, .arg = arg};
    a.p->unlimited = true;
    int rc = pg_read_begin(a.p, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
        rc = steps[i](&a, err);
    pg_read_end(a.p);
    a.p->unlimited = false;
    return rc;
}
