/* Sessions: begin, renew, end; what operators ask of workers and queues. */
#include "pg.h"

#include "hash.h"
#include "json.h"

static int insert_session(struct pg *p, const struct session_spec *spec, struct session *out,
                          struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_text(&a, sv_of(out->uid));
    arg_text(&a, sv_of(spec->name));
    arg_text(&a, sv_of(spec->host));
    arg_int(&a, spec->pid);
    arg_i64(&a, spec->lease.us);
    arg_int(&a, spec->slots);
    arg_text(&a, sv_of(spec->pools ? spec->pools : "{}"));
    arg_text(&a, sv_of(spec->filter ? spec->filter : "{}"));
    int rc = db_query(p, STMT_SESSION_INSERT, &a, &r, err);
    if (rc < 0)
        return rc;
    out->id.v = res_i64(r, 0, 0);
    return pg_add_event(p, EVENT_WORKER_STARTED, (job_id){0}, (fence_no){0}, out->id, SV_NONE, err);
}

int pg_session_begin(struct store *s, const struct session_spec *spec, struct session *out,
                     struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct session made = {.lock_fd = -1};
    rand_id(made.uid);
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, insert_session(p, spec, &made, err), err);
    if (rc == 0)
        *out = made;
    return rc;
}

static int fold_session(struct pg *p, session_id id, struct pawl_err *err)
{
    const enum stmt_id steps[] = {STMT_METRIC_FOLD, STMT_METRIC_DROP, STMT_REVOKED_DROP};
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, id.v);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
        rc = db_query(p, steps[i], &a, NULL, err);
    return rc;
}

int pg_session_over(struct pg *p, session_id id, bool lost, bool *out_ended, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, id.v);
    arg_bool(&a, lost);
    int rc = db_query(p, STMT_SESSION_END, &a, &r, err);
    if (rc < 0)
        return rc;
    *out_ended = PQntuples(r) == 1;
    return *out_ended ? fold_session(p, id, err) : 0;
}

/* Whatever the session still holds goes back unspent. */
static int release_held(struct pg *p, session_id id, struct pawl_err *err)
{
    enum { BATCH = 500 };
    AUTO_ARGS a;
    args_init(&a);
    arg_i64(&a, id.v);
    arg_int(&a, BATCH);
    for (;;) {
        AUTO_RESULT r = NULL;
        struct settle back[BATCH];
        enum settle_outcome outcomes[BATCH];
        int rc = db_query(p, STMT_OWNER_JOBS, &a, &r, err);
        if (rc < 0)
            return rc;
        int n = PQntuples(r);
        for (int i = 0; i < n; i++)
            back[i] = (struct settle){.id = {res_i64(r, i, 0)},
                                      .fence = {res_i64(r, i, 1)},
                                      .outcome = OUTCOME_RELEASED,
                                      .exit_code = -1};
        if (n && pg_settle_in_op(p, back, (size_t)n, NULL, outcomes, err) < 0)
            return err->code;
        if (n < BATCH)
            return 0;
    }
}

static int end_session(struct pg *p, session_id id, struct pawl_err *err)
{
    bool ended;
    if (release_held(p, id, err) < 0 || pg_session_over(p, id, false, &ended, err) < 0)
        return err->code;
    if (!ended)
        return 0; /* swept already */
    p->ready = true;
    return pg_add_event(p, EVENT_WORKER_ENDED, (job_id){0}, (fence_no){0}, id, SV_NONE, err);
}

int pg_session_end(struct store *s, struct session *session, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int rc = pg_op_begin(p, err);
    return rc < 0 ? rc : pg_op_end(p, end_session(p, session->id, err), err);
}

/* Only what changed since the last renewal is written. */
static void bind_metrics(struct pg *p, const struct renew_request *r, struct args *a)
{
    struct sv *names = arena_alloc(&a->arena, N_METRICS * sizeof(*names));
    int64_t *values = arena_alloc(&a->arena, N_METRICS * sizeof(*values));
    size_t n = 0;
    if (p->metrics_of.v != r->session->id.v) {
        memset(p->metrics_sent, 0, sizeof(p->metrics_sent));
        p->metrics_of = r->session->id;
    }
    for (int i = 0; r->metrics && i < N_METRICS; i++) {
        if (r->metrics[i] == p->metrics_sent[i])
            continue;
        char *name = arena_alloc(&a->arena, 64);
        metric_slot_name(i, name);
        names[n] = sv_of(name);
        values[n++] = r->metrics[i];
    }
    arg_texts(a, names, n);
    arg_i64s(a, values, n, NULL);
}

static void bind_progress(const struct renew_request *r, struct args *a)
{
    size_t n = r->n_progress;
    int64_t *ids = arena_alloc(&a->arena, (n + 1) * sizeof(*ids));
    int64_t *fences = arena_alloc(&a->arena, (n + 1) * sizeof(*fences));
    struct sv *texts = arena_alloc(&a->arena, (n + 1) * sizeof(*texts));
    for (size_t i = 0; i < n; i++) {
        ids[i] = r->progress[i].id.v;
        fences[i] = r->progress[i].fence.v;
        texts[i] = r->progress[i].json;
    }
    arg_i64s(a, ids, n, NULL);
    arg_i64s(a, fences, n, NULL);
    arg_texts(a, texts, n);
}

static void read_asked(const PGresult *r, struct arena *arena, struct renew_result *out)
{
    size_t n, n2;
    out->command = (enum worker_command)res_int(r, 0, 0);
    int64_t *cancels = res_i64s(r, 0, 1, arena, &n);
    job_id *ids = arena_alloc(arena, (n + 1) * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i].v = cancels[i];
    out->cancels = ids;
    out->n_cancels = n;
    int64_t *jobs = res_i64s(r, 0, 2, arena, &n), *fences = res_i64s(r, 0, 3, arena, &n2);
    struct lease_ref *refs = arena_alloc(arena, (n + 1) * sizeof(*refs));
    for (size_t i = 0; i < n; i++)
        refs[i] = (struct lease_ref){{jobs[i]}, {fences[i]}};
    out->revoked = refs;
    out->n_revoked = n;
}

static int renew_in_op(struct pg *p, const struct renew_request *req, struct arena *arena,
                       struct renew_result *out, struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    args_init(&a);
    arg_i64(&a, req->session->id.v);
    arg_i64(&a, req->lease.us);
    arg_int(&a, req->running);
    bind_progress(req, &a);
    bind_metrics(p, req, &a);
    arg_text(&a, sv_of(req->preflight));
    int rc = db_query(p, STMT_SESSION_RENEW, &a, &r, err);
    if (rc < 0)
        return rc;
    if (res_null(r, 0, 0))
        out->stale = true;
    else
        read_asked(r, arena, out);
    return 0;
}

int pg_renew(struct store *s, const struct renew_request *req, struct arena *a,
             struct renew_result *out, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    struct renew_result result = {0};
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, renew_in_op(p, req, a, &result, err), err);
    if (rc < 0)
        return rc;
    if (req->metrics && !result.stale)
        memcpy(p->metrics_sent, req->metrics, sizeof(p->metrics_sent));
    *out = result;
    return 0;
}

static int ask_in_op(struct pg *p, struct sv name, enum worker_command c, int *out_n,
                     struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    args_init(&a);
    arg_text(&a, name);
    arg_int(&a, (int)c);
    int rc = db_query(p, STMT_SESSION_ASK, &a, &r, err);
    str_addf(&detail, "{\"command\":\"%s\"}", worker_command_name(c));
    for (int i = 0; rc == 0 && i < PQntuples(r); i++)
        rc = pg_add_event(p, EVENT_WORKER_ASKED, (job_id){0}, (fence_no){0},
                          (session_id){res_i64(r, i, 0)}, str_sv(&detail), err);
    if (rc == 0)
        *out_n = PQntuples(r);
    p->ready = true;
    return rc;
}

int pg_worker_ask(struct store *s, struct sv name, enum worker_command c, int *out_n,
                  struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    int n = 0;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, ask_in_op(p, name, c, &n, err), err);
    if (rc == 0)
        *out_n = n;
    return rc;
}

static int pause_in_op(struct pg *p, struct sv queue, bool paused, bool *out_changed,
                       struct pawl_err *err)
{
    AUTO_ARGS a;
    AUTO_RESULT r = NULL;
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    args_init(&a);
    arg_text(&a, queue);
    arg_bool(&a, paused);
    int rc = db_query(p, STMT_QUEUE_PAUSE, &a, &r, err);
    if (rc < 0)
        return rc;
    *out_changed = PQntuples(r) == 1;
    if (!*out_changed)
        return 0;
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "queue", queue);
    jw_end_object(&w);
    p->ready = true;
    return pg_add_event(p, paused ? EVENT_QUEUE_PAUSED : EVENT_QUEUE_RESUMED, (job_id){0},
                        (fence_no){0}, (session_id){0}, str_sv(&detail), err);
}

int pg_pause(struct store *s, struct sv queue, bool paused, bool *out_changed, struct pawl_err *err)
{
    struct pg *p = pg_of(s);
    bool changed = false;
    int rc = pg_op_begin(p, err);
    if (rc == 0)
        rc = pg_op_end(p, pause_in_op(p, queue, paused, &changed, err), err);
    if (rc == 0)
        *out_changed = changed;
    return rc;
}
