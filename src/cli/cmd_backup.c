/* pawl backup: a consistent copy while the store is in use. */
#include "cli.h"

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a store"},
    {"pawl backup copy.db", "a copy of it"},
    {"pawl --store copy.db list", "which is a store itself"},
    EXAMPLE_END,
};

static int run(struct cli *c, struct pawl_err *err)
{
    const char *file = c->args.pos[0];
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = c->store->ops->backup(c->store, file, err);
    if (rc < 0)
        return rc;
    if (out_is_json(&c->out)) {
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kstring(&w, "file", sv_of(file));
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
    }
    cli_say(c, "copied to %s; the logs of attempts are not part of it", file);
    return 0;
}

const struct cmd cmd_backup = {
    .name = "backup",
    .usage = "FILE",
    .about = "Writes a consistent copy of the store into FILE, which must not exist, while "
             "workers go on. The copy is a store of its own.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
