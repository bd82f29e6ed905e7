#include "rig_parts.h"

#include "json.h"
#include <stdlib.h>

struct rig rig;

static struct fake_run runs[256];
static size_t n_runs;
static struct timer cancel_timer, guard_timer;
static int only = -1;

void rig_cancel_only(int which)
{
    only = which;
}

static void on_cancel(struct timer *t)
{
    (void)t;
    for (size_t i = 0; i < n_runs; i++)
        if (!runs[i].over && (only < 0 || only == (int)i)) {
            runs[i].cancelled = true;
            rig.handler->ops->cancel(rig.handler, &runs[i].run, CANCEL_ASKED);
        }
}

void rig_event(void)
{
    if (++rig.events != rig.cancel_at)
        return;
    cancel_timer.on_time = on_cancel;
    loop_timer_set(rig.loop, &cancel_timer, DUR_US(0));
}

static void copy(char *to, size_t n, struct sv s)
{
    snprintf(to, n, SV_FMT, SV_ARG(s));
}

static void copy_record(struct ended *o, const struct fetch_record *f)
{
    o->f = *f;
    copy(o->final_url, sizeof(o->final_url), f->final_url);
    copy(o->etag, sizeof(o->etag), f->etag);
    copy(o->modified, sizeof(o->modified), f->last_modified);
    copy(o->encoding, sizeof(o->encoding), f->encoding);
    copy(o->type, sizeof(o->type), f->content_type);
    copy(o->redirects, sizeof(o->redirects), f->redirects);
    copy(o->headers, sizeof(o->headers), f->headers);
    copy(o->address, sizeof(o->address), f->address);
    copy(o->version, sizeof(o->version), f->http_version);
}

static void check_json(struct sv text)
{
    AUTO_JSON struct json doc = {0};
    if (text.p)
        assert_int_equal(json_parse(&doc, text, NULL), 0);
}

static void on_finish(struct run *r, const struct run_result *res)
{
    struct fake_run *f = (struct fake_run *)r;
    struct ended *o = f->out;
    assert_false(f->over);
    assert_int_equal(f->owed, 0); /* no answer is outstanding */
    f->over = true;
    check_json(res->result);
    o->r = *res;
    o->order = rig.finished;
    copy(o->reason, sizeof(o->reason), res->reason);
    copy(o->result, sizeof(o->result), res->result);
    copy(o->peer, sizeof(o->peer), res->peer);
    if (res->fetch) {
        check_json(res->fetch->redirects);
        check_json(res->fetch->headers);
        copy_record(o, res->fetch);
    }
    rig.running--;
    if (++rig.finished >= rig.wanted)
        loop_stop(rig.loop);
}

static void on_guard(struct timer *t)
{
    (void)t;
    fail_msg("no end within 30 s");
}

static void start(const struct job_given *j, struct ended *out)
{
    struct fake_run *f = &runs[n_runs++];
    const char *host = j->host ? j->host : HOST;
    struct pawl_err err = {0};
    *f = (struct fake_run){.out = out,
                           .lease = {.payload = sv_of(j->payload),
                                     .fence = {j->fence ? j->fence : 1},
                                     .host = *host ? sv_of(host) : SV_NONE}};
    f->run = (struct run){.job = &f->lease,
                          .timeout = j->timeout.us ? j->timeout : DUR_NONE,
                          .finish = on_finish,
                          .services = &fake_services};
    *out = (struct ended){.r = {.end = -1}};
    rig.running++;
    int rc = rig.handler->ops->start(rig.handler, &f->run, &err);
    if (rc == 0)
        return;
    f->over = true;
    out->r = (struct run_result){.end = RUN_FAILED,
                                 .cls = rc == PAWL_EINPUT ? CLASS_FATAL : CLASS_ERROR};
    snprintf(out->reason, sizeof(out->reason), "%s", err.msg);
    rig.finished++;
    rig.running--;
}

void rig_run(const struct job_given *jobs, size_t n, struct ended *out)
{
    n_runs = 0;
    rig.finished = 0;
    rig.wanted = (int)n;
    assert_true(n <= ARRAY_LEN(runs));
    for (size_t i = 0; i < n; i++)
        start(&jobs[i], &out[i]);
    guard_timer.on_time = on_guard;
    loop_timer_set(rig.loop, &guard_timer, DUR_S(30));
    if (rig.finished < rig.wanted)
        assert_int_equal(loop_run(rig.loop, NULL), 0);
    loop_timer_clear(rig.loop, &guard_timer);
    loop_timer_clear(rig.loop, &cancel_timer);
    assert_int_equal(rig.running, 0);
    assert_int_equal(rig.sinks, 0);
}

void check(const struct ended *e, int how, enum fail_class cls, const char *words)
{
    assert_true_msg((int)e->r.end == how && e->r.cls == cls && strstr(e->reason, words),
                    "end %d, class %s: %s (\"%s\" is expected)", e->r.end,
                    e->r.cls ? fail_class_name(e->r.cls) : "none", e->reason, words);
}

const struct ended *fetch(const char *payload)
{
    static struct ended e;
    struct job_given j = {.payload = payload};
    rig_run(&j, 1, &e);
    return &e;
}

const struct ended *get(const char *path, const char *more)
{
    char payload[4096];
    snprintf(payload, sizeof(payload), "{\"url\":\"%s\"%s}", at(path), more ? more : "");
    return fetch(payload);
}

void rig_again(void)
{
    struct rig fresh = {
        .loop = rig.loop, .config = rig.config, .handler = rig.handler, .kept = rig.kept};
    rig = fresh;
    str_clear(&rig.kept.bytes);
    site_forget_hits();
}

void rig_begin(const char *const *flags, size_t n)
{
    const char *all[16] = {"fetch.allow_private=true"};
    struct pawl_err err = {0};
    assert_true(n < ARRAY_LEN(all));
    for (size_t i = 0; i < n; i++)
        all[i + 1] = flags[i];
    rig = (struct rig){0};
    assert_int_equal(loop_new(&rig.loop, NULL), 0);
    if (config_make("test", all, n + 1, &rig.config, &err) < 0)
        fail_msg("%s", err.msg);
    rig.handler = handler_fetch_new(rig.loop, rig.config);
    site_begin(rig.loop, rig_event);
}

void rig_end(void)
{
    rig.handler->ops->free(rig.handler);
    site_end();
    rig_forget();
    str_done(&rig.kept.bytes);
    config_free(rig.config);
    loop_free(rig.loop);
}

int rig_plain(void **state)
{
    static const char *const flags[] = {"fetch.robots=false"};
    (void)state;
    rig_begin(flags, ARRAY_LEN(flags));
    return 0;
}

int rig_teardown(void **state)
{
    (void)state;
    rig_end();
    return 0;
}
