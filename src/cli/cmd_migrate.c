/* pawl migrate: an older store is brought up to date. */
#include "cli.h"

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl migrate", "sets up a store where there is none"},
    {"pawl migrate --json", "versions before and after"},
    EXAMPLE_END,
};

static int run(struct cli *c, struct pawl_err *err)
{
    int from, to;
    int rc = cli_open(c, STORE_MIGRATE, err);
    if (rc == 0)
        rc = c->store->ops->migrate(c->store, &from, &to, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out)) {
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kint(&w, "from", from);
        jw_kint(&w, "to", to);
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
    } else if (from == to) {
        cli_say(c, "schema %d: up to date", to);
    } else {
        cli_say(c, "schema %d is now %d", from, to);
    }
    return 0;
}

const struct cmd cmd_migrate = {
    .name = "migrate",
    .usage = "",
    .about = "Brings the schema of an older store up to this version, in one transaction. Stop "
             "workers of the older version first and make a backup.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
