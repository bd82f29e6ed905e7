#include "noop.h"

#include "json.h"
#include "text.h"

struct noop_handler {
    struct handler base;
    struct loop *loop;
};

/* What a payload asks for; views in the arena or the payload. */
struct wish {
    struct dur sleep;
    enum fail_class fail; /* CLASS_NONE: do not */
    int64_t fail_times;
    bool skip, throttled, timed_out;
    struct sv reason, result;
    struct dur retry_after;
    int64_t children;
};

/* A run that sleeps. */
struct nap {
    struct timer timer; /* first: on_time gets it */
    struct run *run;
    struct arena arena;
    struct wish wish;
};

struct reading {
    struct json doc;
    struct arena *arena;
    struct wish *wish;
    struct pawl_err *err;
};

static int mistyped(struct reading *r, const char *member, const char *expected)
{
    return err_set(r->err, PAWL_EINPUT, "payload: \"%s\" must be %s", member, expected);
}

static int read_text(struct reading *r, const char *member, uint32_t at, struct sv *out)
{
    if (json_type(&r->doc, at) != JSON_STRING)
        return mistyped(r, member, "a string");
    *out = json_string(&r->doc, at, r->arena);
    return 0;
}

static int read_dur(struct reading *r, const char *member, uint32_t at, struct dur *out)
{
    struct sv text;
    int rc = read_text(r, member, at, &text);
    if (rc == 0 && dur_parse(text, false, out, r->err) < 0)
        rc = err_wrap(r->err, "payload: \"%s\"", member);
    return rc;
}

static int read_class(struct reading *r, uint32_t at)
{
    static const enum fail_class classes[] = {CLASS_ERROR, CLASS_TRANSIENT, CLASS_FATAL};
    struct sv name = SV_NONE;
    if (read_text(r, "fail", at, &name) == 0)
        for (size_t i = 0; i < ARRAY_LEN(classes); i++)
            if (sv_eq(name, sv_of(fail_class_name(classes[i])))) {
                r->wish->fail = classes[i];
                return 0;
            }
    return mistyped(r, "fail", "\"error\", \"transient\" or \"fatal\"");
}

static int read_flag(struct reading *r, const char *member, uint32_t at, bool *out)
{
    *out = json_is_true(&r->doc, at);
    return json_type(&r->doc, at) == JSON_BOOL ? 0 : mistyped(r, member, "true or false");
}

static int read_member(struct reading *r, struct sv name, uint32_t at)
{
    struct wish *w = r->wish;
    if (sv_eq(name, SV("sleep")))
        return read_dur(r, "sleep", at, &w->sleep);
    if (sv_eq(name, SV("retry_after")))
        return read_dur(r, "retry_after", at, &w->retry_after);
    if (sv_eq(name, SV("reason")))
        return read_text(r, "reason", at, &w->reason);
    if (sv_eq(name, SV("fail")))
        return read_class(r, at);
    if (sv_eq(name, SV("fail_times")))
        return json_i64(&r->doc, at, 0, ATTEMPTS_MAX, &w->fail_times) == 0
                   ? 0
                   : mistyped(r, "fail_times", "a whole number from 0");
    if (sv_eq(name, SV("children")))
        return json_i64(&r->doc, at, 0, CHILDREN_MAX, &w->children) == 0
                   ? 0
                   : mistyped(r, "children", "a whole number up to 10000");
    if (sv_eq(name, SV("skip")))
        return read_flag(r, "skip", at, &w->skip);
    if (sv_eq(name, SV("throttled")))
        return read_flag(r, "throttled", at, &w->throttled);
    if (sv_eq(name, SV("timed_out")))
        return read_flag(r, "timed_out", at, &w->timed_out);
    if (sv_eq(name, SV("result"))) {
        w->result = json_source(&r->doc, at);
        return w->result.n <= RESULT_MAX_BYTES ? 0 : mistyped(r, "result", "smaller");
    }
    AUTO_STR struct str shown = STR_INIT(STR_LINE);
    text_safe(&shown, name, 64);
    return err_set(r->err, PAWL_EINPUT, "payload: unknown member \"%s\"", str_cstr(&shown));
}

static bool nothing_asked(struct sv payload)
{
    return payload.n == 0 || sv_eq(payload, SV("null")) || sv_eq(payload, SV("{}"));
}

static int read_wish(struct sv payload, struct arena *a, struct wish *out, struct pawl_err *err)
{
    struct wish w = {.fail_times = INT64_MAX, .retry_after = DUR_NONE};
    struct reading r = {.arena = a, .wish = &w, .err = err};
    int rc = json_parse(&r.doc, payload, err);
    if (rc == 0 && json_type(&r.doc, 0) != JSON_OBJECT && json_type(&r.doc, 0) != JSON_NULL)
        rc = err_set(err, PAWL_EINPUT, "payload: an object or null is expected, not %s",
                     json_type_name(json_type(&r.doc, 0)));
    if (rc == 0 && json_type(&r.doc, 0) == JSON_OBJECT)
        for (uint32_t k = json_first(&r.doc, 0); k != json_end(&r.doc, 0) && rc == 0;
             k = json_after(&r.doc, k + 1))
            rc = read_member(&r, json_string(&r.doc, k, a), k + 1);
    json_done(&r.doc);
    if ((w.throttled || w.timed_out) && w.fail == CLASS_NONE)
        w.fail = CLASS_TRANSIENT;
    if (rc == 0)
        *out = w;
    return rc;
}

static int noop_validate(const struct handler *h, struct sv kind, struct sv payload,
                         struct pawl_err *err)
{
    (void)h;
    (void)kind;
    struct wish w;
    struct arena a;
    if (nothing_asked(payload))
        return 0;
    arena_init(&a);
    int rc = read_wish(payload, &a, &w, err);
    arena_done(&a);
    return rc;
}

static const struct run_result done = {
    .end = RUN_DONE, .exit_code = -1, .retry_after = {-1}, .asked = {-1}};

static struct job_spec *make_children(const struct lease *job, struct arena *a, int64_t n)
{
    struct job_spec *v = arena_zalloc(a, (size_t)n, sizeof(*v));
    for (int64_t i = 0; i < n; i++) {
        v[i] = job_spec_default();
        v[i].queue = job->queue;
        v[i].kind = job->kind;
    }
    return v;
}

static void fulfil(struct run *r, const struct wish *w, struct arena *a)
{
    struct run_result result = done;
    int tries = r->job->attempt + r->job->transient; /* transient failures cost no attempt */
    if (w->fail != CLASS_NONE && tries <= w->fail_times) {
        result.end = RUN_FAILED;
        result.cls = w->fail;
        result.retry_after = w->retry_after;
        result.throttled = w->throttled;
        result.timed_out = w->timed_out;
        result.reason = w->reason.p ? w->reason : SV("failed as asked");
    } else {
        result.end = w->skip ? RUN_SKIPPED : RUN_DONE;
        result.reason = w->skip ? w->reason : SV_NONE;
        result.result = w->result;
        result.children = w->children ? make_children(r->job, a, w->children) : NULL;
        result.n_children = (size_t)w->children;
    }
    r->finish(r, &result);
}

static void nap_free(struct nap *n)
{
    arena_done(&n->arena);
    free(n);
}

static void on_awake(struct timer *t)
{
    struct nap *n = (struct nap *)t;
    fulfil(n->run, &n->wish, &n->arena);
    nap_free(n);
}

static int noop_start(struct handler *h, struct run *r, struct pawl_err *err)
{
    struct noop_handler *self = (struct noop_handler *)h;
    if (nothing_asked(r->job->payload)) {
        r->finish(r, &done);
        return 0;
    }
    struct nap *n = mem_zalloc(1, sizeof(*n));
    arena_init(&n->arena);
    n->run = r;
    n->timer.on_time = on_awake;
    int rc = read_wish(r->job->payload, &n->arena, &n->wish, err);
    if (rc == 0 && n->wish.sleep.us > 0) {
        r->state = n;
        loop_timer_set(self->loop, &n->timer, n->wish.sleep);
        return 0;
    }
    if (rc == 0)
        fulfil(r, &n->wish, &n->arena);
    nap_free(n);
    return rc;
}

static void noop_cancel(struct handler *h, struct run *r, enum cancel_why why)
{
    (void)why;
    struct nap *n = r->state;
    struct run_result result = done;
    result.end = RUN_CANCELLED;
    loop_timer_clear(((struct noop_handler *)h)->loop, &n->timer);
    r->finish(r, &result);
    nap_free(n);
}

static void noop_free(struct handler *h)
{
    free(h);
}

struct handler *handler_noop_new(struct loop *loop)
{
    static const struct handler_ops ops = {.name = "noop",
                                           .validate = noop_validate,
                                           .start = noop_start,
                                           .cancel = noop_cancel,
                                           .free = noop_free};
    struct noop_handler *self = mem_zalloc(1, sizeof(*self));
    self->base.ops = &ops;
    self->loop = loop;
    return &self->base;
}
