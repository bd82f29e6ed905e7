/* What a C handler can ask and say about its attempt. */
#include "run.h"

#include <stdio.h>

struct pawl_run *run_new(struct run *run, pawl_handler *fn, void *arg)
{
    struct pawl_run *r = mem_zalloc(1, sizeof(*r));
    arena_init(&r->arena);
    held_fill(&r->held, run->job, &r->arena);
    r->run = run;
    r->fn = fn;
    r->arg = arg;
    r->asked = DUR_NONE;
    if (run->timeout.us > 0)
        r->deadline.us = clock_boot().us + run->timeout.us;
    return r;
}

void run_free(struct pawl_run *r)
{
    arena_done(&r->arena);
    free(r->children);
    free(r->result);
    free(r->error);
    free(r);
}

/* ---- the end ---- */

static void failed(struct pawl_run *r, enum fail_class cls, struct run_result *out)
{
    out->end = RUN_FAILED;
    out->cls = cls;
    out->asked = r->asked;
    if (r->throttled && cls != CLASS_FATAL) { /* what it waits for, its limits' gates wait for */
        out->cls = CLASS_TRANSIENT;
        out->throttled = true;
        out->retry_after = r->asked;
    }
    out->reason = r->error ? sv_of(r->error) : SV("the handler gave no reason");
}

/* Asked to end, it did. Only the timeout is the library's own doing: for the worker the attempt was
 * not cancelled, it failed. */
static void cancelled(struct pawl_run *r, char *text, size_t n_text, struct run_result *out)
{
    out->end = RUN_CANCELLED;
    if (atomic_load(&r->cancel) != PAWL_CANCEL_TIMEOUT)
        return;
    AUTO_STR struct str limit = STR_INIT(64);
    dur_format(r->run->timeout, &limit);
    snprintf(text, n_text, "timed out after %s", str_cstr(&limit));
    failed(r, CLASS_ERROR, out);
    if (!r->error)
        out->reason = sv_of(text);
}

static void set_end(struct pawl_run *r, char *text, size_t n_text, struct run_result *out)
{
    switch (r->outcome) {
    case PAWL_DONE:
        out->end = RUN_DONE;
        break;
    case PAWL_SKIPPED:
        out->end = RUN_SKIPPED;
        out->reason = sv_of(r->error);
        break;
    case PAWL_FAILED:
        failed(r, CLASS_FATAL, out);
        break;
    case PAWL_RETRY:
        failed(r, CLASS_ERROR, out);
        break;
    case PAWL_RETRY_TRANSIENT:
        failed(r, CLASS_TRANSIENT, out);
        break;
    case PAWL_RELEASE:
        out->end = RUN_RELEASED;
        break;
    case PAWL_CANCELLED:
        cancelled(r, text, n_text, out);
        break;
    default:
        snprintf(text, n_text, "the handler returned %d, which is no outcome", r->outcome);
        failed(r, CLASS_FATAL, out);
        out->reason = sv_of(text);
    }
}

void run_result(struct pawl_run *r, char *text, size_t n_text, struct run_result *out)
{
    *out = (struct run_result){.exit_code = -1, .retry_after = DUR_NONE, .asked = DUR_NONE};
    set_end(r, text, n_text, out);
    out->result = sv_of(r->result);
    if (r->outcome >= PAWL_DONE && r->outcome <= PAWL_FAILED) {
        out->children = r->children;
        out->n_children = r->n_children;
    }
}

/* ---- asking ---- */

const pawl_lease *pawl_run_lease(const pawl_run *run)
{
    return &run->held.face;
}

int pawl_run_cancelled(const pawl_run *run)
{
    return atomic_load(&run->cancel);
}

int pawl_run_sleep(pawl_run *run, int64_t ms)
{
    return run_sleep(run, ms_dur(ms > 0 ? ms : 0));
}

int64_t pawl_run_time_left_ms(const pawl_run *run)
{
    if (!run->deadline.us)
        return -1;
    int64_t left = run->deadline.us - clock_boot().us;
    return left > 0 ? us_ms(left) : 0;
}

/* ---- saying ---- */

int pawl_run_progress(pawl_run *run, const char *json, pawl_error *err)
{
    struct pawl_err e = {0};
    int rc = check_json(json, PROGRESS_MAX_BYTES, "progress", &e);
    if (rc == 0)
        run_progress(run, sv_of(json));
    return api_end(rc, err, &e);
}

int pawl_run_result(pawl_run *run, const char *json, pawl_error *err)
{
    struct pawl_err e = {0};
    int rc = check_json(json, RESULT_MAX_BYTES, "result", &e);
    if (rc == 0) {
        free(run->result);
        run->result = mem_strdup(json);
    }
    return api_end(rc, err, &e);
}

void pawl_run_error(pawl_run *run, const char *message)
{
    free(run->error);
    run->error = message ? mem_dup(message, strnlen(message, ERROR_MAX_BYTES)) : NULL;
}

void pawl_run_retry_after(pawl_run *run, int64_t ms)
{
    struct dur d = ms_dur(ms > 0 ? ms : 0);
    run->asked = d.us > DUR_MAX_US ? DUR_US(DUR_MAX_US) : d;
}

void pawl_run_throttled(pawl_run *run)
{
    run->throttled = true;
}

static struct sv kept(struct pawl_run *r, struct sv s)
{
    return s.p ? sv_make(arena_strndup(&r->arena, s.p, s.n), s.n) : s;
}

int pawl_run_add_child(pawl_run *run, const pawl_job *job, pawl_error *err)
{
    struct pawl_err e = {0};
    struct job_spec spec;
    if (!job)
        return api_usage(err, "pawl_run_add_child: job is NULL");
    if (run->n_children >= CHILDREN_MAX)
        return api_usage(err, "more than %d child jobs", CHILDREN_MAX);
    if (specs_read(job, 1, &spec, &e) < 0)
        return api_fail(err, &e);
    spec.queue = kept(run, spec.queue);
    spec.kind = kept(run, spec.kind);
    spec.key = kept(run, spec.key);
    spec.host = kept(run, spec.host);
    spec.payload = kept(run, spec.payload);
    ARRAY_GROW(run->children, run->n_children, run->cap_children);
    run->children[run->n_children++] = spec;
    return 0;
}
