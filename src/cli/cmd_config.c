/* pawl config: is it right, and what does it say? */
#include "alerts.h"
#include "cli.h"
#include "http.h"
#include "mem.h"
#include "table.h"
#include "text.h"

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl config check", "is the configuration right?"},
    {"pawl config show", "every value and where it comes from"},
    {"pawl config show worker.lease worker.slots", "some of them"},
    {"PAWL_WORKER_SLOTS=4 pawl config show --json", "the same for a script"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"KEY", false, 0, false},
    {"VALUE", false, 48, false},
    {"FROM", false, 0, false},
};

struct showing {
    struct cli *c;
    struct table table;
    bool *found; /* for each key asked for */
};

/* Every key unless some are named. */
static bool asked_for(struct showing *s, const char *key)
{
    const struct args *args = &s->c->args;
    bool asked = args->n_pos == 1;
    for (size_t i = 1; i < args->n_pos; i++)
        if (!strcmp(args->pos[i], key))
            asked = s->found[i] = true;
    return asked;
}

static void show_row(void *arg, const struct config_value *v)
{
    struct showing *s = arg;
    if (!asked_for(s, v->key))
        return;
    AUTO_STR struct str value = STR_INIT(STR_LINE);
    text_url(&value, sv_of(v->value));
    table_text(&s->table, sv_of(v->key));
    table_text(&s->table, str_sv(&value));
    table_text(&s->table, sv_of(v->origin));
}

static void show_json(void *arg, const struct config_value *v)
{
    struct showing *s = arg;
    if (!asked_for(s, v->key))
        return;
    AUTO_STR struct str line = STR_INIT(STR_OUTPUT), value = STR_INIT(STR_LINE);
    struct jw w = jw_make(&line);
    text_url(&value, sv_of(v->value));
    jw_object(&w);
    jw_kstring(&w, "key", sv_of(v->key));
    jw_kstring_or_null(&w, "value", v->value ? str_sv(&value) : SV_NONE);
    jw_kstring(&w, "origin", sv_of(v->origin));
    jw_end_object(&w);
    out_item(&s->c->out, str_sv(&line));
}

static int check_found(const struct showing *s, struct pawl_err *err)
{
    const struct args *args = &s->c->args;
    for (size_t i = 1; i < args->n_pos; i++)
        if (!s->found[i]) {
            err_set(err, PAWL_ENOTFOUND, "no setting '%s'", args->pos[i]);
            return err_hint(err, "'pawl config show' lists them");
        }
    return 0;
}

static int show(struct cli *c, struct pawl_err *err)
{
    AUTO_FREE bool *found = mem_zalloc(c->args.n_pos, sizeof(*found));
    struct showing s = {.c = c, .found = found};
    if (out_is_json(&c->out)) {
        config_each(c->config, show_json, &s);
        out_items_end(&c->out);
    } else {
        table_begin(&s.table, &c->out, columns, ARRAY_LEN(columns));
        config_each(c->config, show_row, &s);
        table_end(&s.table);
    }
    return check_found(&s, err);
}

static int check_url(const struct kind_conf *k, const char *key, const char *url,
                     struct pawl_err *err)
{
    struct pawl_err why = {0};
    if (!url || http_url_check(url, &why) == 0)
        return 0;
    const char *quoted = strrchr(why.msg, '"'); /* the URL may hold a secret: left out */
    return err_set(err, PAWL_ECONFIG, "kinds.%s.%s: %s", k->name, key,
                   quoted ? quoted + 3 : why.msg);
}

/* What jobs and checks of a kind would be refused for. */
static int check_kinds(const struct config *c, struct pawl_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_kinds; i++) {
        rc = check_url(&c->kinds[i], "url", c->kinds[i].url, err);
        if (rc == 0)
            rc = check_url(&c->kinds[i], "preflight.url", c->kinds[i].preflight_url, err);
    }
    return rc;
}

static int check(struct cli *c, struct pawl_err *err)
{
    int rc = alerts_check(c->config, err);
    if (rc == 0)
        rc = check_kinds(c->config, err);
    if (rc < 0)
        return rc;
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
    if (!showing && c->args.n_pos > 1)
        return err_set(err, PAWL_EUSAGE, "config check: unexpected '%s'", c->args.pos[1]);
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    return showing ? show(c, err) : check(c, err);
}

const struct cmd cmd_config = {
    .name = "config",
    .usage = "check\nshow [SETTING]…",
    .about =
        "check reads the configuration as every command would and says what is wrong: file, "
        "line, key, what is allowed. show prints every value, or those named, with its origin: a "
        "line of the file, an environment variable, a flag or the default. Secrets are masked.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
