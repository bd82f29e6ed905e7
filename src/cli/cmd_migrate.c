/* pawl migrate: an older store is brought up to date. */
#include "cli.h"
#include <limits.h>

static const struct opt opts[] = {
    {.name = "sql", .doc = "change nothing; print the SQL that would be run (PostgreSQL)"},
    {.name = "from",
     .arg = "VERSION",
     .doc = "with --sql: from this version of the schema, without looking; 0: none yet"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl migrate", "sets up a store where there is none"},
    {"pawl migrate --json", "versions before and after"},
    {"pawl --store postgres://db.example/work migrate --sql --from 0", "what sets up a schema"},
    EXAMPLE_END,
};

static int print_sql(struct cli *c, struct pawl_err *err)
{
    AUTO_STR struct str sql = STR_INIT(STR_OUTPUT);
    int64_t from = -1;
    int rc = args_int(&c->args, "from", 0, INT_MAX, &from, err);
    if (rc == 0)
        rc = cli_config(c, NULL, 0, err);
    if (rc == 0)
        rc = c->app->migration_sql(c->config, (int)from, &sql, err);
    if (rc == 0)
        out_put(&c->out, str_sv(&sql));
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    int from, to;
    if (args_has(&c->args, "sql"))
        return print_sql(c, err);
    if (args_has(&c->args, "from"))
        return err_set(err, PAWL_EUSAGE, "--from goes with --sql");
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
    .usage = "[--sql [--from VERSION]]",
    .about = "Brings the schema of an older store up to this version, in one transaction. Make a "
             "backup first. A store in a file: stop workers of the older version before. "
             "PostgreSQL: those of the version before go on while the new ones start; where "
             "migrations are run by hand, --sql prints what to run.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
