/* pawl explain: why is this job not running? */
#include "cli.h"
#include "explain.h"
#include "mem.h"
#include "text.h"

enum { WALK_MAX = 100000 }; /* jobs looked at for the next one of a selection */

static const struct opt opts[] = {
    {"queue", 0, "QUEUE", "the job of this queue that would run next"},
    {"kind", 0, "KIND", "of this kind"},
    {"host", 0, "HOST", "for this host"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --queue nightly -- echo hello", "a job"},
    {"pawl pause nightly", "its queue is held"},
    {"pawl explain 1", "every reason, each with the command that ends it"},
    {"pawl explain --queue nightly", "the next job of a queue, and how many are behind it"},
    {"pawl explain 1 --json", "the same for a script"},
    EXAMPLE_END,
};

/* What was asked for, found. */
struct asked {
    job_id id;
    bool selected;  /* by flags, not by its id */
    int64_t behind; /* jobs of the same lane that do not run either, itself not counted */
    bool more;      /* there are more jobs than were looked at */
};

/* ---- the next job of a selection ---- */

struct walk {
    struct arena *a;
    struct job_view best; /* id.v 0: none yet */
    int64_t looked, same;
};

/* What would run sooner, of two jobs that are queued or wait. */
static bool sooner(const struct job_view *a, const struct job_view *b)
{
    if (a->state != b->state)
        return a->state == JOB_QUEUED || (b->state == JOB_BLOCKED && a->state == JOB_WAITING);
    if (a->state == JOB_WAITING && a->available_at.us != b->available_at.us)
        return a->available_at.us < b->available_at.us;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->id.v < b->id.v;
}

static bool find_best(void *arg, const struct job_view *job)
{
    struct walk *w = arg;
    if (w->best.id.v && !sooner(job, &w->best))
        return ++w->looked < WALK_MAX;
    w->best = *job;
    w->best.queue = sv_make(arena_strndup(w->a, job->queue.p, job->queue.n), job->queue.n);
    w->best.kind = sv_make(arena_strndup(w->a, job->kind.p, job->kind.n), job->kind.n);
    if (job->host.p)
        w->best.host = sv_make(arena_strndup(w->a, job->host.p, job->host.n), job->host.n);
    return ++w->looked < WALK_MAX;
}

static bool count_same(void *arg, const struct job_view *job)
{
    struct walk *w = arg;
    w->same += job->id.v != w->best.id.v && sv_eq(job->queue, w->best.queue) &&
               sv_eq(job->kind, w->best.kind) && sv_eq(job->host, w->best.host);
    return ++w->looked < WALK_MAX;
}

static struct selection selected(const struct cli *c)
{
    return (struct selection){.queue = sv_of(args_get(&c->args, "queue")),
                              .kind = sv_of(args_get(&c->args, "kind")),
                              .host = sv_of(args_get(&c->args, "host")),
                              .states = 1u << JOB_QUEUED | 1u << JOB_WAITING | 1u << JOB_BLOCKED};
}

static int find_next(struct cli *c, struct arena *a, struct asked *out, struct pawl_err *err)
{
    struct selection sel = selected(c);
    struct walk w = {.a = a};
    int rc = c->store->ops->list(c->store, &sel, false, find_best, &w, err);
    if (rc < 0)
        return rc;
    if (!w.best.id.v) {
        err_set(err, PAWL_ENOTFOUND, "no job of that selection waits to run");
        return err_hint(err, "'pawl list' with the same flags shows what there is");
    }
    out->more = w.looked >= WALK_MAX;
    w.looked = 0;
    rc = c->store->ops->list(c->store, &sel, false, count_same, &w, err);
    out->id = w.best.id;
    out->behind = w.same;
    return rc;
}

/* ---- printing ---- */

static void write_reason(struct jw *w, const struct reason *r)
{
    jw_object(w);
    jw_kstring(w, "code", sv_of(reason_name(r->code)));
    jw_kstring_or_null(w, "subject", r->subject);
    jw_kint_or_null(w, "used", r->used, r->used >= 0);
    jw_kint_or_null(w, "max", r->max, r->max >= 0);
    jw_name(w, "holders");
    jw_array(w);
    for (size_t i = 0; i < r->n_holders; i++)
        jw_int(w, r->holders[i].v);
    jw_end_array(w);
    jw_kwall(w, "since", r->since);
    jw_kwall(w, "until", r->until);
    jw_kstring_or_null(w, "fix", r->fix);
    jw_kstring(w, "text", r->text);
    jw_end_object(w);
}

static void print_json(struct cli *c, const struct asked *q, const struct explain_view *v,
                       const struct reason *r, size_t n)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "id", v->job.id.v);
    jw_kstring(&w, "state", sv_of(job_state_name(v->job.state)));
    jw_name(&w, "reasons");
    jw_array(&w);
    for (size_t i = 0; i < n; i++)
        write_reason(&w, &r[i]);
    jw_end_array(&w);
    jw_kint_or_null(&w, "position", v->position, v->position > 0);
    if (q->selected)
        jw_kint(&w, "behind", q->behind);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static void put_reason(struct str *s, const struct out *o, const struct reason *r)
{
    out_styled(s, o->color, r->code == REASON_READY ? STYLE_GREEN : STYLE_YELLOW, SV("- "));
    text_safe(s, r->text, 0);
    str_addc(s, '\n');
    if (r->fix.p)
        str_addf(s, "    " SV_FMT "\n", SV_ARG(r->fix)); /* quoted, and harmless by that */
}

static void print_page(struct cli *c, const struct asked *q, const struct explain_view *v,
                       const struct reason *r, size_t n)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    str_addf(&s, "job %lld is %s", (long long)v->job.id.v, job_state_name(v->job.state));
    if (v->position)
        str_addf(&s, ", number %s%lld in its queue", v->position_more ? "more than " : "",
                 (long long)v->position);
    if (q->selected && q->behind)
        str_addf(&s, ", with %s%lld like it behind", q->more ? "at least " : "",
                 (long long)q->behind);
    str_addc(&s, '\n');
    for (size_t i = 0; i < n; i++)
        put_reason(&s, &c->out, &r[i]);
    out_put(&c->out, str_sv(&s));
}

static int explain(struct cli *c, struct arena *a, const struct asked *q, struct pawl_err *err)
{
    struct explain_view v;
    struct reason *reasons;
    int rc = c->store->ops->explain(c->store, q->id, a, &v, err);
    if (rc < 0)
        return rc;
    size_t n = explain_reasons(&v, a, &reasons);
    if (out_is_json(&c->out))
        print_json(c, q, &v, reasons, n);
    else
        print_page(c, q, &v, reasons, n);
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    struct asked q = {.selected = args_has(&c->args, "queue") || args_has(&c->args, "kind") ||
                                  args_has(&c->args, "host")};
    struct arena a;
    if (q.selected == (c->args.n_pos == 1)) {
        err_set(err, PAWL_EUSAGE,
                q.selected ? "an id and a selection exclude each other" : "explain which job?");
        return err_hint(err, "pawl explain ID, or --queue, --kind, --host for the next one");
    }
    if (!q.selected && cli_job_id(c->args.pos[0], &q.id, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    if (q.selected)
        rc = find_next(c, &a, &q, err);
    if (rc == 0)
        rc = explain(c, &a, &q, err);
    arena_done(&a);
    return rc;
}

const struct cmd cmd_explain = {
    .name = "explain",
    .usage = "ID\n[--queue QUEUE] [--kind KIND] [--host HOST]",
    .about =
        "Says every reason why a job does not run now: its worker is gone, its queue is "
        "paused, it waits until a time, a limit is full and by whom, a rate, a throttled host, "
        "an open breaker, a lock and who holds it, a failing preflight, no worker for it, no "
        "free slot. Each comes with the command that changes it, to be pasted.\n\n"
        "With a selection it is about the job of it that would run next, and says how many of "
        "the same queue, kind and host are behind it.",
    .opts = opts,
    .examples = examples,
    .max_args = 1,
    .run = run,
};
