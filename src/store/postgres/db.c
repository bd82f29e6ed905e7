/* The connection: statements go out in a pipeline, answers are waited for until a deadline.
 * Whatever an operation needs before its statement (BEGIN, settings, savepoint, preparation)
 * travels in the same round trip. A connection that fails or stays silent is closed; the next
 * operation opens a new one. */
#define STMT_TABLE
#include "pg.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* How long this operation may still wait, as a point in time; 0: for ever. */
static int64_t deadline_of(const struct pg *p)
{
    return p->unlimited ? 0 : clock_boot().us + p->options.timeout.us + ANSWER_GRACE.us;
}

/* Wait for the socket; false when the time is over. */
static bool wait_for(PGconn *c, short events, int64_t deadline)
{
    struct pollfd fd = {.fd = PQsocket(c), .events = events};
    for (;;) {
        int64_t left = deadline ? deadline - clock_boot().us : INT32_MAX;
        if (left <= 0)
            return false;
        int n = poll(&fd, 1, (int)((left + 999) / 1000 > 60000 ? 60000 : (left + 999) / 1000));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* ---- errors ---- */

/* Also of a class: "08". */
static bool is_state(const PGresult *r, const char *sqlstate)
{
    const char *s = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    return s && !strncmp(s, sqlstate, strlen(sqlstate));
}

static const struct {
    const char *state; /* SQLSTATE or its class */
    int code;
    const char *hint;
} states[] = {
    {"55P03", PAWL_ELOCKED, "another transaction holds it; store_timeout says how long to wait"},
    {"57014", PAWL_ELOCKED, "store_timeout or the server's statement_timeout ended it"},
    {"22023", PAWL_EINPUT, ""},
    {"40001", PAWL_ELOCKED, ""},
    {"40P01", PAWL_ELOCKED, ""},
    {"25006", PAWL_EUNREACHABLE, "name the primary in the URL, or add target_session_attrs"},
    {"42501", PAWL_EUNREACHABLE, "docs/postgres.md lists the grants each role needs"},
    {"53100", PAWL_EFULL, "the server's disk is full"},
    {"53", PAWL_EUNREACHABLE, ""},
    {"57P", PAWL_EUNREACHABLE, ""},
    {"08", PAWL_EUNREACHABLE, ""},
    {"25P03", PAWL_EUNREACHABLE,
     "this machine did not go on within the time for idle transactions"},
    {"25P04", PAWL_EUNREACHABLE, ""},
    {"28", PAWL_EUNREACHABLE, "check user and password: the URL, PGPASSWORD, ~/.pgpass"},
    {"3D000", PAWL_EUNREACHABLE, "create the database first"},
    {"XX001", PAWL_ECORRUPT, ""},
    {"XX002", PAWL_ECORRUPT, ""},
    {"58", PAWL_EIO, ""},
};

/* One line: libpq's messages have several. */
static void first_line(const char *text, char *out, size_t size)
{
    while (*text == '\n' || *text == ' ')
        text++;
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

static int lost(struct pg *p, struct pawl_err *err)
{
    char why[256];
    first_line(p->conn ? PQerrorMessage(p->conn) : "the connection was lost", why, sizeof(why));
    db_disconnect(p);
    return err_set(err, PAWL_EUNREACHABLE, "%s: %s", p->place, why[0] ? why : "connection lost");
}

/* A failed result (NULL: the connection's own state) as an error that says what failed. */
static int fail(struct pg *p, const PGresult *r, struct pawl_err *err)
{
    char why[256];
    if (!r || !PQresultErrorField(r, PG_DIAG_SQLSTATE))
        return lost(p, err);
    first_line(PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), why, sizeof(why));
    p->collided = is_state(r, "40001") || is_state(r, "40P01");
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (!is_state(r, states[i].state))
            continue;
        err_set(err, states[i].code, "%s: %s", p->place, why);
        if (states[i].hint[0])
            err_hint(err, "%s", states[i].hint);
        return states[i].code;
    }
    return err_set(err, PAWL_EINTERNAL, "%s: %s (SQLSTATE %s)", p->place, why,
                   PQresultErrorField(r, PG_DIAG_SQLSTATE));
}

/* ---- connecting ---- */

static int connect_failed(struct pg *p, PGconn *c, bool late, struct pawl_err *err)
{
    char why[256];
    first_line(late ? "no answer in time" : PQerrorMessage(c), why, sizeof(why));
    PQfinish(c);
    err_set(err, PAWL_EUNREACHABLE, "%s: %s", p->place, why);
    if (strstr(why, "password authentication failed") || strstr(why, "no password supplied"))
        err_hint(err, "check user and password: the URL, PGPASSWORD, ~/.pgpass");
    else if (strstr(why, "does not exist"))
        err_hint(err, "create it first");
    else
        err_hint(err, "is the server running there, and reachable from here?");
    return PAWL_EUNREACHABLE;
}

static void ignore_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

int db_connect(struct pg *p, struct pawl_err *err)
{
    if (p->conn)
        return 0;
    int64_t deadline = clock_boot().us + p->connect_timeout.us + ANSWER_GRACE.us;
    PGconn *c = PQconnectStartParams(p->conn_keys, p->conn_values, 0);
    PostgresPollingStatusType s = PGRES_POLLING_WRITING;
    bool late = false;
    if (!c)
        abort(); /* out of memory */
    if (PQstatus(c) == CONNECTION_BAD)
        return connect_failed(p, c, false, err);
    while (s != PGRES_POLLING_OK && s != PGRES_POLLING_FAILED && !late) {
        late = !wait_for(c, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline);
        s = late ? s : PQconnectPoll(c);
    }
    if (s != PGRES_POLLING_OK)
        return connect_failed(p, c, late, err);
    PQsetNoticeReceiver(c, ignore_notice, NULL);
    PQsetnonblocking(c, 1);
    PQenterPipelineMode(c);
    memset(p->prepared, 0, sizeof(p->prepared));
    p->conn = c;
    pg_listener_follow(p);
    p->begun = p->savepoint = false;
    p->xid = 0;
    return 0;
}

void db_disconnect(struct pg *p)
{
    if (p->conn)
        PQfinish(p->conn);
    p->conn = NULL;
    p->group_lost |= p->in_group && p->begun;
    p->begun = p->savepoint = false;
    p->metrics_of.v = 0; /* what a renewal wrote may be gone: send all again */
}

/* ---- text ---- */

char *db_in_schema(const struct pg *p, const char *sql)
{
    struct str out = STR_INIT(STR_OUTPUT);
    for (const char *at = sql, *hit; *at; at = hit) {
        hit = strstr(at, "pawl.");
        bool word = hit && (hit == sql || !strchr("abcdefghijklmnopqrstuvwxyz_", hit[-1]));
        const char *end = hit ? hit + (word ? 0 : 5) : at + strlen(at);
        str_add(&out, sv_make(at, (size_t)(end - at)));
        hit = end;
        if (word) {
            str_adds(&out, p->schema);
            hit += 4;
        }
    }
    return out.p ? out.p : mem_strdup("");
}

static const char *text_of(struct pg *p, enum stmt_id id)
{
    if (!strcmp(p->schema, "pawl"))
        return stmt_table[id].sql;
    if (!p->texts[id])
        p->texts[id] = db_in_schema(p, stmt_table[id].sql);
    return p->texts[id];
}

/* ---- sending ---- */

/* What was sent in one round trip and has to be answered. */
struct trip {
    int n;    /* answers to come before the sync */
    int want; /* which of them is the one asked for */
    int xid;  /* which tells the transaction's id; -1: none */
    bool begin, savepoint;
    struct {
        int at;
        enum stmt_id id;
    } prepares[4];
    int n_prepares;
};

static bool send_prepared(struct pg *p, struct trip *t, enum stmt_id id, const struct args *a)
{
    char name[16];
    int n = a ? a->n : 0;
    t->n++;
    p->effort.statements++;
    if (p->options.no_prepare)
        return PQsendQueryParams(p->conn, text_of(p, id), n, a ? a->types : NULL,
                                 a ? a->values : NULL, a ? a->lengths : NULL, a ? a->formats : NULL,
                                 1);
    snprintf(name, sizeof(name), "p%d", (int)id);
    if (!p->prepared[id]) {
        if (!PQsendPrepare(p->conn, name, text_of(p, id), n, a ? a->types : NULL))
            return false;
        t->prepares[t->n_prepares].at = t->n++ - 1;
        t->prepares[t->n_prepares++].id = id;
    }
    return PQsendQueryPrepared(p->conn, name, n, a ? a->values : NULL, a ? a->lengths : NULL,
                               a ? a->formats : NULL, 1);
}

static bool send_plain(struct pg *p, struct trip *t, const char *sql)
{
    t->n++;
    p->effort.statements++;
    return PQsendQueryParams(p->conn, sql, 0, NULL, NULL, NULL, NULL, 1);
}

/* BEGIN and what holds for this transaction alone, or a savepoint in one that is open. */
static bool send_before(struct pg *p, struct trip *t)
{
    if (p->begun && (!p->in_op || !p->in_group || p->op_open))
        return true;
    if (p->begun) {
        t->savepoint = true;
        return (!p->old_savepoint || send_plain(p, t, "RELEASE op")) &&
               send_plain(p, t, "SAVEPOINT op");
    }
    t->begin = true;
    if (!send_plain(p, t,
                    p->in_op || p->in_group ? "BEGIN"
                                            : "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        return false;
    AUTO_ARGS a;
    char timeout[24];
    args_init(&a);
    snprintf(timeout, sizeof(timeout), "%lld",
             p->unlimited ? 0LL : (long long)(p->options.timeout.us / 1000));
    arg_text(&a, sv_of(timeout));
    arg_bool(&a, p->options.durability == DURABILITY_RELAXED);
    return send_prepared(p, t, STMT_TX_SETTINGS, &a);
}

/* The next answer, or NULL when the connection failed or time is over. */
static PGresult *next_answer(struct pg *p, int64_t deadline)
{
    while (PQisBusy(p->conn)) {
        int flush = PQflush(p->conn);
        if (flush < 0 || !wait_for(p->conn, flush ? POLLIN | POLLOUT : POLLIN, deadline) ||
            !PQconsumeInput(p->conn))
            return NULL;
    }
    return PQgetResult(p->conn);
}

static bool failed(const PGresult *r)
{
    ExecStatusType s = PQresultStatus(r);
    return s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK && s != PGRES_PIPELINE_SYNC;
}

/* A prepared statement stays, whatever becomes of the transaction. */
static void note_prepared(struct pg *p, const struct trip *t, int at)
{
    for (int i = 0; i < t->n_prepares; i++)
        if (t->prepares[i].at == at)
            p->prepared[t->prepares[i].id] = true;
}

static void note_xid(struct pg *p, const PGresult *r)
{
    if (!PQntuples(r) || res_null(r, 0, 0))
        return;
    p->xid = res_i64(r, 0, 0);
    snprintf(p->era, sizeof(p->era), SV_FMT, SV_ARG(res_sv(r, 0, 1)));
}

/* Read every answer of the trip. 0 and *out the one asked for, or the first error. */
static int read_answers(struct pg *p, const struct trip *t, int64_t deadline, PGresult **out,
                        struct pawl_err *err)
{
    int rc = 0;
    for (int i = 0; i <= t->n; i++) {
        PGresult *r = next_answer(p, deadline);
        bool sync = r && PQresultStatus(r) == PGRES_PIPELINE_SYNC;
        if (!r || PQstatus(p->conn) == CONNECTION_BAD || (sync != (i == t->n))) {
            PQclear(r);
            int code = lost(p, err);
            return rc < 0 ? rc : code;
        }
        if (!sync)
            PQclear(next_answer(p, deadline)); /* the end mark of this answer */
        if (failed(r) && PQresultStatus(r) != PGRES_PIPELINE_ABORTED && rc == 0)
            rc = fail(p, r, err);
        if (!failed(r))
            note_prepared(p, t, i);
        if (i == t->xid && !failed(r))
            note_xid(p, r);
        if (i == t->want && !failed(r) && out)
            *out = r;
        else
            PQclear(r);
        if (!p->conn)
            return rc;
    }
    return rc;
}

static int finish_trip(struct pg *p, struct trip *t, bool sent, PGresult **out,
                       struct pawl_err *err)
{
    PGresult *mine = NULL;
    if (!sent || !PQpipelineSync(p->conn))
        return lost(p, err);
    int rc = read_answers(p, t, deadline_of(p), &mine, err);
    if (p->conn) {
        p->begun = PQtransactionStatus(p->conn) != PQTRANS_IDLE;
        p->savepoint |= t->savepoint;
        p->op_open |= t->begin || t->savepoint;
    }
    if (rc == 0 && out)
        *out = mine;
    else
        PQclear(mine);
    return rc;
}

int db_query(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err)
{
    struct trip t = {.xid = -1};
    if (!p->conn)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    bool sent = send_before(p, &t) && send_prepared(p, &t, id, a);
    t.want = t.n - 1;
    if (p->in_op && !p->xid) {
        /* Without limits go migrations too, which may not have the schema yet. */
        sent = sent && send_prepared(p, &t, p->unlimited ? STMT_TX_ID_BARE : STMT_TX_ID, NULL);
        t.xid = t.n - 1;
    }
    return finish_trip(p, &t, sent, out, err);
}

int db_look(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err)
{
    struct trip t = {.xid = -1};
    if (!p->conn)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    bool sent = send_before(p, &t) && send_prepared(p, &t, STMT_BY_INDEX, NULL) &&
                send_prepared(p, &t, id, a);
    t.want = t.n - 1;
    if (p->reading)
        sent = sent && send_plain(p, &t, "ROLLBACK");
    return finish_trip(p, &t, sent, out, err);
}

int db_plain(struct pg *p, const char *sql, PGresult **out, struct pawl_err *err)
{
    struct trip t = {.xid = -1};
    if (!p->conn)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    return finish_trip(p, &t, send_plain(p, &t, sql), out, err);
}

int db_query_alone(struct pg *p, enum stmt_id id, struct args *a, PGresult **out,
                   struct pawl_err *err)
{
    struct trip t = {.xid = -1};
    if (!p->conn)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    bool sent = send_prepared(p, &t, id, a);
    t.want = t.n - 1;
    return finish_trip(p, &t, sent, out, err);
}

/* ---- outside the pipeline ---- */

/* Scripts and COPY cannot travel in a pipeline: open the transaction first, then leave it. */
static int leave_pipeline(struct pg *p, struct pawl_err *err)
{
    struct trip t = {.xid = -1};
    if (!p->conn)
        return err_set(err, PAWL_EUNREACHABLE, "%s: the connection was lost", p->place);
    bool sent = send_before(p, &t);
    t.want = -1;
    if (t.n) {
        int rc = finish_trip(p, &t, sent, NULL, err);
        if (rc < 0)
            return rc;
    }
    return PQexitPipelineMode(p->conn) ? 0 : lost(p, err);
}

/* Read results until none is left; the first failure counts. */
static int read_rest(struct pg *p, int rc, bool *out_duplicate, struct pawl_err *err)
{
    int64_t deadline = deadline_of(p);
    for (;;) {
        PGresult *r = next_answer(p, deadline);
        if (!r && (PQstatus(p->conn) == CONNECTION_BAD || PQisBusy(p->conn))) {
            int code = lost(p, err);
            return rc < 0 ? rc : code;
        }
        if (!r)
            break;
        if (failed(r) && rc == 0) {
            if (out_duplicate)
                *out_duplicate = is_state(r, "23505");
            rc = fail(p, r, err);
        }
        PQclear(r);
        if (!p->conn)
            return rc;
    }
    p->begun = PQtransactionStatus(p->conn) != PQTRANS_IDLE;
    return PQenterPipelineMode(p->conn) ? rc : lost(p, err);
}

int db_script(struct pg *p, const char *sql, struct pawl_err *err)
{
    int rc = leave_pipeline(p, err);
    if (rc < 0)
        return rc;
    if (!PQsendQuery(p->conn, sql))
        return lost(p, err);
    return read_rest(p, 0, NULL, err);
}

int db_copy_begin(struct pg *p, enum stmt_id id, struct pawl_err *err)
{
    int rc = leave_pipeline(p, err);
    if (rc < 0)
        return rc;
    p->effort.statements++;
    if (!PQsendQuery(p->conn, text_of(p, id)))
        return lost(p, err);
    PGresult *r = next_answer(p, deadline_of(p));
    if (!r)
        return lost(p, err);
    bool in = PQresultStatus(r) == PGRES_COPY_IN;
    rc = in ? 0 : fail(p, r, err);
    PQclear(r);
    return in || !p->conn ? rc : read_rest(p, rc, NULL, err);
}

int db_copy_data(struct pg *p, const char *data, size_t n, struct pawl_err *err)
{
    int64_t deadline = deadline_of(p);
    for (;;) {
        int rc = PQputCopyData(p->conn, data, (int)n);
        if (rc > 0)
            return 0;
        if (rc < 0 || PQflush(p->conn) < 0 || !wait_for(p->conn, POLLIN | POLLOUT, deadline) ||
            !PQconsumeInput(p->conn))
            return lost(p, err);
    }
}

int db_copy_end(struct pg *p, bool *out_duplicate, struct pawl_err *err)
{
    int64_t deadline = deadline_of(p);
    int rc;
    *out_duplicate = false;
    while ((rc = PQputCopyEnd(p->conn, NULL)) == 0)
        if (PQflush(p->conn) < 0 || !wait_for(p->conn, POLLOUT, deadline))
            return lost(p, err);
    return rc < 0 ? lost(p, err) : read_rest(p, 0, out_duplicate, err);
}
