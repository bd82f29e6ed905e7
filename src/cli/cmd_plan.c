/* pawl plan: how long a list of fetches takes, and why, before it is run. */
#include "plan.h"
#include "url_list.h"

enum { HOSTS_SHOWN = 20 };

static const struct opt opts[] = {
    {"queue", 0, "QUEUE", "what is queued there; with URL-FILE: as if they were added there"},
    VARIANT_OPT,
    {"limit", 0, "N", "list N hosts; 20 unless given"},
    OPT_END,
};
static const struct example examples[] = {
    {"printf '%s\\n' https://example.org/a https://example.org/b >urls.txt", "a list"},
    {"pawl plan urls.txt", "as if they were added; nothing is, and no store is needed"},
    {"pawl plan urls.txt --variant raw='{url}?action=raw' --variant html='{url}'",
     "each in two variants"},
    {"pawl fetch http://127.0.0.1:8080/a", "something in the queue"},
    {"pawl plan --queue fetch --json", "what is queued, for a script"},
    EXAMPLE_END,
};

static int load(struct cli *c, struct plan *p, struct arena *a, struct pawl_err *err)
{
    struct sv queue = sv_of(args_get(&c->args, "queue"));
    const char *file = c->args.n_pos ? c->args.pos[0] : NULL;
    int rc = cli_open(c, STORE_READ, err);
    if (rc == PAWL_ENOTFOUND && file)
        rc = 0;
    if (rc == 0)
        rc = file ? plan_load_file(c, p, queue, file, err) : plan_load_queue(c, p, queue, err);
    if (rc == 0)
        rc = plan_load_limits(c, p, a, err);
    if (rc == 0)
        rc = plan_load_past(c, p, err);
    if (rc < 0)
        return rc;
    plan_load_room(c, p);
    plan_work_out(p);
    rc = plan_load_gates(c, p, err);
    if (rc == 0)
        plan_work_out(p);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    AUTO(plan_done) struct plan p;
    int64_t shown = HOSTS_SHOWN;
    arena_init(&a);
    plan_init(&p);
    if (args_int(&c->args, "limit", 1, INT32_MAX, &shown, err) < 0)
        return PAWL_EUSAGE;
    if (args_has(&c->args, "variant") && !c->args.n_pos)
        return err_set(err, PAWL_EUSAGE, "--variant belongs to a file of URLs");
    int rc = cli_config(c, NULL, 0, err);
    cli_catch_signals();
    if (rc == 0)
        rc = load(c, &p, &a, err);
    if (rc < 0)
        return rc;
    if (cli_signal()) {
        c->exit_status = 128 + cli_signal();
        return 0;
    }
    if (out_is_json(&c->out))
        plan_write(c, &p, (size_t)shown);
    else if (p.items)
        plan_print(c, &p, (size_t)shown);
    else if (c->args.n_pos)
        cli_say(c, "%s: there is no URL in it",
                strcmp(c->args.pos[0], "-") ? c->args.pos[0] : "stdin");
    else
        cli_say(c, "nothing to fetch is queued");
    return 0;
}

const struct cmd cmd_plan = {
    .name = "plan",
    .usage = "[--queue QUEUE]\nFILE|- [--queue QUEUE] [--variant VARIANT=TEMPLATE]…",
    .about =
        "Works out what fetching will take, for what is queued or waiting or for a file of URLs: "
        "items by host, the limit that binds each, the time until all is done, and the disk it "
        "needs. Nothing is changed, and for a file no store is needed. A URL that stands in "
        "a file twice counts once, as 'pawl fetch' adds it.\n\n"
        "A limit lets its items through in the longer of so many starts at its rate and so many "
        "fetches over its permits; a host is done when the slowest of its limits is, and all when "
        "the slowest limit or the worker's slots are. Limits are those of the store and the "
        "configuration, and for every host but this machine two at a time and one a second unless "
        "the limit every-host says otherwise. The duration of a fetch and the size of a body are "
        "the mean of those so far, else 500ms and 64 KiB, which is said. Failures, answers that "
        "ask "
        "to wait, and files that are there already are not foreseen.",
    .opts = opts,
    .examples = examples,
    .max_args = 1,
    .run = run,
};
