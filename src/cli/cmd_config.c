/* pawl config: is it right, and what does it say? */
#include "cli.h"
#include "mem.h"
#include "table.h"

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl config check", "is the configuration right?"},
    {"pawl config show", "every value and where it comes from"},
    {"PAWL_WORKER_SLOTS=4 pawl config show --json", "the same for a script"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"KEY", false, 0, false},
    {"VALUE", false, 48, false},
    {"FROM", false, 0, false},
};

static void show_row(void *arg, const struct config_value *v)
{
    struct table *t = arg;
    table_text(t, sv_of(v->key));
    table_text(t, sv_of(v->value));
    table_text(t, sv_of(v->origin));
}

static void show_json(void *arg, const struct config_value *v)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kstring(&w, "key", sv_of(v->key));
    jw_kstring_or_null(&w, "value", sv_of(v->value));
    jw_kstring(&w, "origin", sv_of(v->origin));
    jw_end_object(&w);
    out_item(arg, str_sv(&s));
}

static int show(struct cli *c)
{
    struct table t;
    if (out_is_json(&c->out)) {
        config_each(c->config, show_json, &c->out);
        out_items_end(&c->out);
        return 0;
    }
    table_begin(&t, &c->out, columns, ARRAY_LEN(columns));
    config_each(c->config, show_row, &t);
    table_end(&t);
    return 0;
}

static int check(struct cli *c)
{
    if (out_is_json(&c->out)) {
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kbool(&w, "ok", true);
        jw_kstring_or_null(&w, "file", sv_of(c->config->file));
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
    }
    cli_say(c, "%s: ok", c->config->file ? c->config->file : "no file; environment and defaults");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    const char *verb = c->args.pos[0];
    bool showing = !strcmp(verb, "show");
    if (!showing && strcmp(verb, "check") != 0) {
        err_set(err, PAWL_EUSAGE, "config: unknown word '%s'", verb);
        return err_hint(err, "check or show");
    }
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    return showing ? show(c) : check(c);
}

const struct cmd cmd_config = {
    .name = "config",
    .usage = "check\nshow",
    .about = "check reads the configuration as every command would and says what is wrong: file, "
             "line, key, what is allowed. show prints every value with its origin: a line of the "
             "file, an environment variable, a flag or the default. Secrets are masked.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
