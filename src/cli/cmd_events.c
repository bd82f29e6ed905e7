/* pawl events: the audit log. */
#include "event_out.h"
#include "mem.h"
#include "select.h"
#include "text.h"
#include <poll.h>
#include <stdio.h>

enum { TERMINAL_EVENTS = 50, FOLLOW_START = 10, POLL_MS = 200 };

static const struct opt opts[] = {
    {"follow", 'f', NULL, "go on printing as things happen"},
    {"queue", 0, "QUEUE", "events of jobs of this queue"},
    {"job", 0, "ID", "events of this job"},
    {"type", 0, "TYPE", "of this type, such as failed or claimed; several with commas"},
    {"since", 0, "DUR|TIME", "at or after TIME, or within the last DUR"},
    {"limit", 0, "N", "the newest N"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "something that happens"},
    {"pawl events --job 1", "the story of a job"},
    {"pawl events --type added,failed --since 1h -o ndjson", "for a script"},
    {"timeout 1 pawl events -f --queue default --type done || true", "as it happens"},
    EXAMPLE_END,
};

struct watching {
    struct cli *c;
    bool any; /* was printed */
};

static int unknown_type(struct sv word, struct pawl_err *err)
{
    static const char *const names[] = {
#define X(name, number, text, terminal, act) text,
#include "events.def"
#undef X
    };
    const char *near = sv_nearest(word, names, ARRAY_LEN(names));
    err_set(err, PAWL_EUSAGE, "--type: unknown type '" SV_FMT "'", SV_ARG(word));
    if (near)
        err_hint(err, "did you mean %s?", near);
    return PAWL_EUSAGE;
}

static int read_types(const struct cli *c, unsigned *out, struct pawl_err *err)
{
    const char *list;
    for (size_t i = 0; (list = args_nth(&c->args, "type", i)) != NULL; i++) {
        struct sv rest = sv_of(list);
        do {
            enum event_type t;
            struct sv word = sv_cut(rest, ',', &rest);
            if (event_parse(word, &t) < 0)
                return unknown_type(word, err);
            *out |= 1u << t;
        } while (rest.p);
    }
    return 0;
}

void event_write(struct jw *w, const struct event_view *e)
{
    jw_object(w);
    jw_kint(w, "id", e->id);
    jw_kwall(w, "at", e->at);
    jw_kstring(w, "type", sv_of(event_name(e->type)));
    if (e->job.v)
        jw_kint(w, "job", e->job.v);
    if (e->fence.v)
        jw_kint(w, "fence", e->fence.v);
    if (e->queue.p)
        jw_kstring(w, "queue", e->queue);
    if (e->kind.p)
        jw_kstring(w, "kind", e->kind);
    if (e->key.p)
        jw_kstring(w, "key", e->key);
    if (e->worker.p)
        jw_kstring(w, "worker", e->worker);
    if (e->detail.p) {
        jw_name(w, "detail");
        jw_raw(w, e->detail);
    }
    jw_end_object(w);
}

static void print_json(struct out *o, const struct event_view *e)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    event_write(&w, e);
    out_item(o, str_sv(&s));
}

static enum style event_style(const struct event_view *e)
{
    if (e->type == EVENT_FAILED || e->type == EVENT_LOST || e->type == EVENT_WORKER_LOST)
        return STYLE_RED;
    if (e->type == EVENT_DONE)
        return STYLE_GREEN;
    return STYLE_NONE;
}

static void add_word(struct str *s, const char *name, struct sv value)
{
    if (!value.p)
        return;
    str_addf(s, "  %s=", name);
    text_safe(s, value, 200);
}

static void print_line(struct out *o, const struct event_view *e)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    char type[32];
    wall_format(e->at, &s);
    snprintf(type, sizeof(type), "  %-14s", event_name(e->type));
    out_styled(&s, o->color, event_style(e), sv_of(type));
    if (e->job.v)
        str_addf(&s, "  job=%lld", (long long)e->job.v);
    if (e->fence.v)
        str_addf(&s, "  fence=%lld", (long long)e->fence.v);
    add_word(&s, "queue", e->queue);
    add_word(&s, "kind", e->kind);
    add_word(&s, "key", e->key);
    add_word(&s, "worker", e->worker);
    add_word(&s, "detail", e->detail);
    str_addc(&s, '\n');
    out_put(o, str_sv(&s));
}

static bool print(void *arg, const struct event_view *e)
{
    struct watching *w = arg;
    if (out_is_json(&w->c->out))
        print_json(&w->c->out, e);
    else
        print_line(&w->c->out, e);
    if (!w->any) /* the next one may be far: a reader should see that there is something */
        out_flush(&w->c->out);
    w->any = true;
    return !w->c->out.failed;
}

/* The cursor moves behind what was looked at, whether it was let through or not: no look passes the
 * same history twice. */
static int follow(struct watching *w, struct event_filter f, struct pawl_err *err)
{
    struct cli *c = w->c;
    struct event_cursor cursor = {0};
    f.follow = &cursor;
    int rc = c->store->ops->events(c->store, &f, print, w, err);
    f.last = 0;
    cli_catch_signals();
    while (rc == 0 && !cli_signal() && !c->out.failed) {
        out_flush(&c->out);
        poll(NULL, 0, POLL_MS);
        rc = c->store->ops->events(c->store, &f, print, w, err);
    }
    if (cli_signal())
        c->exit_status = 128 + cli_signal();
    return rc;
}

static int read_filter(const struct cli *c, struct event_filter *f, struct pawl_err *err)
{
    const char *job = args_get(&c->args, "job");
    f->queue = sv_of(args_get(&c->args, "queue"));
    if ((job && cli_job_id(job, &f->job, err) < 0) ||
        args_int(&c->args, "limit", 1, INT64_MAX / 2, &f->last, err) < 0 ||
        cli_since(c, "since", clock_wall(), &f->since, err) < 0 ||
        read_types(c, &f->types, err) < 0)
        return PAWL_EUSAGE;
    if (args_has(&c->args, "follow") && c->out.format == OUT_JSON)
        return err_set(err, PAWL_EUSAGE, "--follow has no end: use -o ndjson");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct event_filter f = {0};
    struct watching w = {.c = c};
    bool following = args_has(&c->args, "follow");
    if (read_filter(c, &f, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    bool bounded = f.last || f.since.us || f.job.v;
    if (!bounded && following)
        f.last = FOLLOW_START;
    else if (!bounded && c->out.terminal && !out_is_json(&c->out))
        f.last = TERMINAL_EVENTS;
    if (following)
        return follow(&w, f, err);
    rc = c->store->ops->events(c->store, &f, print, &w, err);
    if (out_is_json(&c->out))
        out_items_end(&c->out);
    return rc;
}

const struct cmd cmd_events = {
    .name = "events",
    .usage = "[OPTION]…",
    .about = "Prints what happened to jobs, queues and workers, oldest first. Each event was "
             "committed together with what it tells. On a terminal the newest 50 are shown.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
