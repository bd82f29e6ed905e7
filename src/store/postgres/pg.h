/* Private to src/store/postgres. One struct for the handle; each .c file keeps one concern of it.
 */
#ifndef PAWL_STORE_POSTGRES_PG_H
#define PAWL_STORE_POSTGRES_PG_H

#include "pg_sql.h"
#include "store_postgres.h"
#include <libpq-fe.h>

/* What runs on the server must end before the client gives up on it. */
#define ANSWER_GRACE DUR_S(1)
/* Queued, but another job has its lock, or is to have it first; shown as queued. */
enum { STATE_HELD = -1 };
#define THROUGHPUT_SLOT_US ((int64_t)10 * 1000000)

struct peer; /* where a connection led */
/* The optional second connection that listens (wake.c). Used by the thread that owns the hint's
 * descriptor, never by the one that owns the handle, but for `met`. */
struct listener {
    PGconn *conn;
    int epoll_fd, timer_fd; /* -1 until asked for */
    enum { LISTEN_OFF, LISTEN_CONNECTING, LISTEN_ASKING, LISTEN_ON } phase;
    struct dur pause;           /* before the next try */
    _Atomic(struct peer *) met; /* put by the handle after connecting, taken by the listener */
    struct peer *peer;
};

struct pg {
    struct store base; /* first */
    PGconn *conn;      /* NULL: none, or lost */
    /* For PQconnectStartParams, made once by store_postgres_open (defaults added), ends with NULL.
     */
    const char **conn_keys, **conn_values;
    struct dur connect_timeout;
    char *place; /* the URL without its password, for messages */
    char *schema, *log_root;
    char store_id[STORE_ID_LEN + 1]; /* random, the store's own for ever */
    bool other_functions;            /* those in the schema are not of this binary */
    struct store_options options;
    char *texts[N_STMTS];   /* statements for a schema of another name; NULL: as written */
    bool prepared[N_STMTS]; /* on this connection */
    bool in_group;          /* between group_begin and group_commit */
    bool in_op;
    bool begun;         /* BEGIN was answered: a transaction is open */
    bool op_open;       /* this operation has its beginning: a BEGIN or a savepoint */
    bool savepoint;     /* this operation has one … */
    bool old_savepoint; /* … and one before it did, not released yet */
    bool group_lost;    /* the connection went in the middle of the group */
    bool ready;         /* this transaction made jobs ready or asked something: tell the others */
    bool freed;     /* it freed permits or locks, and no claim of it has looked since: the same */
    bool collided;  /* the last failure was a deadlock or the like: trying again may do */
    bool reading;   /* read_begin */
    bool unlimited; /* no time limit for statements: migrations, checks */
    int64_t xid;    /* of the open transaction; 0: none assigned yet */
    char era[64];   /* in which it was given: a server that took over or crashed counts anew */
    bool clock_set;
    int64_t clock_offset;    /* the server's time minus BOOTTIME */
    struct boot clock_at;    /* when it was read */
    struct wall server_seen; /* by the last sweep … */
    struct boot seen_at;     /* … at this time here */
    struct boot quiet_until; /* the server's clock jumped: no sweeping until then */
    int64_t wake_from;       /* claims look at wakes from here on … */
    int64_t wake_newest[2];  /* … the newest seen in this period and the one before */
    struct boot wake_turn, wake_full;
    struct dur wake_cost; /* of the last look at all of them */
    unsigned n_adds;
    int log_dir_fd; /* -1 until asked for */
    struct store_effort effort;
    int64_t metrics_sent[N_METRICS];
    session_id metrics_of;
    struct listener listener;
};

static inline struct pg *pg_of(struct store *s)
{
    return (struct pg *)s;
}

/* args.c: parameters of one statement in binary form. What they point to must outlive the query,
 * but for arrays and numbers, which are copied. */
enum { ARGS_MAX = 34 };
struct args {
    int n;
    Oid types[ARGS_MAX];
    const char *values[ARGS_MAX];
    int lengths[ARGS_MAX], formats[ARGS_MAX];
    struct arena arena;
};
void args_init(struct args *a);
void pg_args_done(struct args *a);
#define AUTO_ARGS __attribute__((cleanup(pg_args_done))) struct args
void arg_i64(struct args *a, int64_t v);
void arg_i64_or_null(struct args *a, int64_t v, bool null);
void arg_int(struct args *a, int v);
void arg_int_or_null(struct args *a, int v, bool null);
void arg_bool(struct args *a, bool v);
void arg_text(struct args *a, struct sv v); /* p NULL: null */
void arg_bytes(struct args *a, const void *p, size_t n);
/* Arrays. `null[i]` (may be NULL) says which elements are null; text elements with p NULL are. */
void arg_i64s(struct args *a, const int64_t *v, size_t n, const bool *null);
void arg_ints(struct args *a, const int *v, size_t n, const bool *null);
void arg_texts(struct args *a, const struct sv *v, size_t n);
void arg_blobs(struct args *a, const struct sv *v, size_t n); /* of bytes */
void arg_null_array(struct args *a, Oid type);                /* a null of that type */
enum {
    OID_BYTEA_ARRAY = 1001,
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_INT8_ARRAY = 1016
};

/* Results, in binary form. */
static inline void result_clearp(PGresult **r)
{
    PQclear(*r);
}
#define AUTO_RESULT __attribute__((cleanup(result_clearp))) PGresult *
int64_t res_i64(const PGresult *r, int row, int col); /* any width of integer, bool; null: 0 */
int res_int(const PGresult *r, int row, int col);
bool res_null(const PGresult *r, int row, int col);
struct sv res_sv(const PGresult *r, int row, int col);                    /* until PQclear */
struct sv res_copy(const PGresult *r, int row, int col, struct arena *a); /* p NULL for null */
/* An array of bigint; null: none. Returned in the arena. */
int64_t *res_i64s(const PGresult *r, int row, int col, struct arena *a, size_t *out_n);

/* db.c: the connection. */
int db_connect(struct pg *p, struct pawl_err *err); /* nothing to do when there is one */
void db_disconnect(struct pg *p);
/* One statement inside an operation or read: what is still needed before it (BEGIN, settings,
 * savepoint, preparation) goes in the same round trip. *out (may be NULL) is the result. */
int db_query(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err);
/* The same along indexes (pg_by_index), and a read outside of operations is over with it. */
int db_look(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err);
/* The same for SQL that is not in the table (migrations): several statements without parameters and
 * results. */
int db_script(struct pg *p, const char *sql, struct pawl_err *err);
/* One statement by itself, outside any transaction that is to be begun. */
int db_plain(struct pg *p, const char *sql, PGresult **out, struct pawl_err *err);
int db_query_alone(struct pg *p, enum stmt_id id, struct args *a, PGresult **out,
                   struct pawl_err *err);
/* COPY … FROM STDIN in binary form: begin, rows in any number of pieces, end. */
int db_copy_begin(struct pg *p, enum stmt_id id, struct pawl_err *err);
int db_copy_data(struct pg *p, const char *data, size_t n, struct pawl_err *err);
int db_copy_end(struct pg *p, bool *out_duplicate, struct pawl_err *err);
/* `pawl.` replaced by the configured schema; caller frees. */
char *db_in_schema(const struct pg *p, const char *sql);

/* tx.c: a writing operation is begun and ended by these; inside a group they are savepoints.
 * pg_op_end takes the operation's result, commits or rolls back, and returns the final result. */
int pg_op_begin(struct pg *p, struct pawl_err *err);
int pg_op_end(struct pg *p, int rc, struct pawl_err *err);
int pg_group_begin(struct store *s, struct pawl_err *err);
int pg_group_commit(struct store *s, struct pawl_err *err);
void pg_group_abort(struct store *s);
/* A consistent snapshot for several statements; inside an operation or group it is that one's. May
 * be nested once: list inside act. */
int pg_read_begin(struct pg *p, struct pawl_err *err);
void pg_read_end(struct pg *p);
int pg_add_event(struct pg *p, enum event_type type, job_id job, fence_no fence, session_id session,
                 struct sv detail, struct pawl_err *err);

/* conninfo.c: fills place, schema (may be named in the URL) and the parameters. USAGE, CONFIG. */
int pg_conninfo(struct pg *p, const char *url, struct pawl_err *err);
void pg_conninfo_free(const char **keys, const char **values);

/* migrate.c: is there a store that this handle may use as its mode says? Makes one where it may. */
int pg_prepare(struct pg *p, struct pawl_err *err);
int pg_version_now(struct pg *p, int *out, struct pawl_err *err); /* 0: no store */
int pg_script(const struct pg *p, int from, struct str *out, struct pawl_err *err);
int pg_migrate_check(struct pg *p, int *out_version, struct pawl_err *err);
int pg_migrate(struct store *s, int *out_from, int *out_to, struct pawl_err *err);

struct wall pg_now(struct store *s);
/* The server's time came with an answer to a question asked then. */
void pg_clock_set(struct pg *p, struct boot asked, int64_t server_us);

/* The operations, one file each. */
int pg_enqueue(struct store *s, const struct job_spec *specs, size_t n, enum on_duplicate dup,
               struct add_result *out, struct pawl_err *err);
int pg_enqueue_in_op(struct pg *p, const struct job_spec *specs, size_t n, enum on_duplicate dup,
                     struct add_result *out, struct pawl_err *err);
/* load.c: all new, by COPY. *out_duplicate with an error: a key is taken, everything is undone and
 * the transaction goes on. */
int pg_load(struct pg *p, const struct job_spec *specs, size_t n, struct add_result *out,
            bool *out_duplicate, struct pawl_err *err);
int pg_claim(struct store *s, const struct claim_request *req, struct arena *a,
             struct claim_result *out, struct pawl_err *err);
int pg_held(struct store *s, const struct session *session, struct arena *a, struct lease **out,
            size_t *out_n, struct pawl_err *err);
int pg_settle(struct store *s, const struct settle *v, size_t n, enum settle_outcome *out,
              struct pawl_err *err);
/* End leases inside an operation; what settle, sweep and release do. `lost` marks those whose lost
 * lease counts although they end (may be NULL). */
int pg_settle_in_op(struct pg *p, const struct settle *v, size_t n, const bool *lost,
                    enum settle_outcome *out, struct pawl_err *err);
/* keep.c: what settles left behind besides their jobs; of those alone whose outcome is OK. */
int pg_keep(struct pg *p, const struct settle *v, size_t n, const enum settle_outcome *out,
            struct pawl_err *err);
int pg_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                     struct pawl_err *err);
int pg_session_end(struct store *s, struct session *session, struct pawl_err *err);
int pg_renew(struct store *s, const struct renew_request *req, struct arena *a,
             struct renew_result *out, struct pawl_err *err);
/* The session's row ends and its metrics join those of the gone; *out_ended false: it had before.
 */
int pg_session_over(struct pg *p, session_id id, bool lost, bool *out_ended, struct pawl_err *err);
int pg_worker_ask(struct store *s, struct sv name, enum worker_command c, int *out_n,
                  struct pawl_err *err);
int pg_pause(struct store *s, struct sv queue, bool paused, bool *out_changed,
             struct pawl_err *err);
int pg_sweep(struct store *s, const struct sweep_request *req, struct sweep_result *out,
             struct pawl_err *err);
/* A job an operator acts on, as it stands under its lock. */
struct target {
    int64_t id, fence;
    enum job_state state;
    struct wall finished_at;
    bool alive; /* running, and its session lives */
};
/* change.c: acts on jobs that have not ended, all of them in a state the act applies to. */
int pg_release(struct pg *p, const struct target *v, size_t n, struct pawl_err *err);
int pg_set(struct pg *p, const struct target *v, size_t n, const struct job_change *c,
           struct pawl_err *err);
int pg_act(struct store *s, const struct act_request *req, struct act_result *out,
           struct pawl_err *err);
/* Those of them that have ended are queued again; how many. Ids rise. */
int pg_retry_ended(struct pg *p, const int64_t *ids, size_t n, int64_t *out, struct pawl_err *err);
int pg_job_get(struct store *s, job_id id, struct arena *a, struct job_view *out,
               struct pawl_err *err);
/* The same inside of a read. */
int pg_job_read(struct pg *p, job_id id, struct arena *a, struct job_view *out,
                struct pawl_err *err);
/* Output of attempts that are gone: the files of this machine. */
void pg_logs_remove(struct store *s, const struct lease_ref *v, size_t n);
int pg_list(struct store *s, const struct selection *sel, bool full,
            bool (*each)(void *arg, const struct job_view *job), void *arg, struct pawl_err *err);
/* The first `max` ids of what is selected, whatever its limit says. */
int pg_list_ids(struct pg *p, const struct selection *sel, int64_t *out, size_t max, size_t *out_n,
                struct pawl_err *err);
int pg_count(struct store *s, const struct selection *sel, int64_t *out, struct pawl_err *err);
int pg_events(struct store *s, const struct event_filter *f,
              bool (*each)(void *arg, const struct event_view *e), void *arg, struct pawl_err *err);
int pg_status(struct store *s, int max_running, struct arena *a, struct status_view *out,
              struct pawl_err *err);
/* For the rest of this transaction: walk along indexes, whatever the statistics say. */
int pg_by_index(struct pg *p, struct pawl_err *err);
/* One statement as a read of its own, along indexes: one round trip. */
int pg_look(struct pg *p, enum stmt_id id, struct args *a, PGresult **out, struct pawl_err *err);
/* Read a row of the job columns (list.sql) into a view. */
void pg_job_view_read(const PGresult *r, int row, bool full, struct arena *a, struct job_view *out);
/* artifacts.c, fetches.c, memory.c */
int pg_artifacts(struct store *s, const struct artifact_filter *f,
                 bool (*each)(void *arg, const struct artifact_view *v), void *arg,
                 struct pawl_err *err);
int pg_artifacts_move(struct store *s, const struct artifact_move *v, size_t n, int64_t *out_moved,
                      struct pawl_err *err);
int pg_artifacts_expire(struct store *s, struct wall before, int max, int64_t *out_rows,
                        bool *out_more, struct pawl_err *err);
int pg_artifacts_lost(struct store *s, const int64_t *ids, size_t n, int64_t *out_rows,
                      int64_t *out_jobs, struct pawl_err *err);
int pg_fetches(struct store *s, job_id job, bool (*each)(void *arg, const struct fetch_view *v),
               void *arg, struct pawl_err *err);
int pg_fetch_totals(struct store *s, struct wall since, struct sv queue, struct fetch_totals *out,
                    struct pawl_err *err);
int pg_remember(struct store *s, struct sv key, struct sv value, struct dur ttl,
                struct pawl_err *err);
int pg_recall(struct store *s, struct sv key, struct arena *a, struct sv *out,
              struct pawl_err *err);
int pg_report(struct store *s, struct wall since, struct sv queue, struct arena *a,
              struct report_view *out, struct pawl_err *err);
int pg_info(struct store *s, struct store_info *out, struct pawl_err *err);
extern const struct copy_ops pg_copy_ops; /* copy.c */
int pg_check(struct store *s, struct str *out, struct pawl_err *err);
int pg_identity(struct store *s, char out[STORE_ID_LEN + 1], struct pawl_err *err);
int pg_backup(struct store *s, const char *file, struct pawl_err *err);
int pg_advise(struct store *s, store_advice_fn *say, void *arg, struct pawl_err *err);
int pg_wake_fd(struct store *s);
void pg_wake_clear(struct store *s);
void pg_listener_close(struct listener *l);
/* The handle is connected: the listener goes where it went, without asking for names. */
void pg_listener_follow(struct pg *p);
int pg_log_dir(struct store *s, int *out_fd, struct pawl_err *err);

#endif
