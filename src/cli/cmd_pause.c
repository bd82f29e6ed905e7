/* pawl pause: a queue is held. */
#include "mem.h"
#include "pause.h"

static const struct opt opts[] = {PAUSE_OPTS, OPT_END};
static const struct example examples[] = {
    {"pawl add --queue nightly -- echo hello", "a queue with a job"},
    {"pawl pause nightly", "no job of it starts from now on"},
    {"pawl pause --all", "every queue"},
    EXAMPLE_END,
};

static int pause_one(struct cli *c, struct sv queue, bool paused, struct pawl_err *err)
{
    bool changed;
    const char *state = paused ? "paused" : "running";
    int rc = c->store->ops->pause(c->store, queue, paused, &changed, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out)) {
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kstring(&w, "queue", queue);
        jw_kbool(&w, "paused", paused);
        jw_kbool(&w, "changed", changed);
        jw_end_object(&w);
        out_item(&c->out, str_sv(&s));
    } else if (changed) {
        cli_say(c, "queue " SV_FMT " is %s", SV_ARG(queue), state);
    } else {
        cli_say(c, "queue " SV_FMT " was %s already", SV_ARG(queue), state);
    }
    return 0;
}

/* Classes are sorted by queue: each name once. */
static int pause_all(struct cli *c, bool paused, struct arena *a, struct pawl_err *err)
{
    struct status_view status;
    int rc = c->store->ops->status(c->store, 0, a, &status, err);
    for (size_t i = 0; rc == 0 && i < status.n_classes; i++)
        if (i == 0 || !sv_eq(status.classes[i].queue, status.classes[i - 1].queue))
            rc = pause_one(c, status.classes[i].queue, paused, err);
    return rc;
}

static int check_names(const struct cli *c, struct pawl_err *err)
{
    for (size_t i = 0; i < c->args.n_pos; i++) {
        struct job_spec probe = job_spec_default();
        probe.queue = sv_of(c->args.pos[i]);
        if (job_spec_check(&probe, err) < 0)
            return err->code;
    }
    return 0;
}

int pause_queues(struct cli *c, bool paused, struct pawl_err *err)
{
    bool all = args_has(&c->args, "all");
    struct arena a;
    if (all == (c->args.n_pos > 0))
        return err_set(err, PAWL_EUSAGE, "%s: name queues or say --all", c->cmd->name);
    int rc = check_names(c, err);
    if (rc == 0)
        rc = cli_open(c, paused ? STORE_CREATE : STORE_WRITE, err);
    if (rc < 0)
        return rc;
    arena_init(&a);
    if (all)
        rc = pause_all(c, paused, &a, err);
    for (size_t i = 0; rc == 0 && i < c->args.n_pos; i++)
        rc = pause_one(c, sv_of(c->args.pos[i]), paused, err);
    arena_done(&a);
    if (out_is_json(&c->out))
        out_items_end(&c->out);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    return pause_queues(c, true, err);
}

const struct cmd cmd_pause = {
    .name = "pause",
    .usage = "QUEUE…\n--all",
    .about = "Holds queues: from the moment the command returns no worker starts a job of them. "
             "What is running goes on. A queue can be paused before it has jobs.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
