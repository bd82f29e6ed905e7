/* The manual as roff, from the same tables as help: pawl.1, pawl-COMMAND.1, pawl-exit-codes.7;
 * pawl.yaml.5 is man_config.c's. */
#include "man.h"

#include "cli.h"
#include "mem.h"
#include <ctype.h>

void man_put(struct str *s, struct sv text)
{
    bool line_start = s->len == 0 || s->p[s->len - 1] == '\n';
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (line_start && (c == '.' || c == '\''))
            str_adds(s, "\\&");
        if (c == '\\')
            str_adds(s, "\\e");
        else if (c == '-')
            str_adds(s, "\\-");
        else
            str_addc(s, c);
        line_start = c == '\n';
    }
}

void man_title(struct str *s, const char *page, int section, const char *summary)
{
    AUTO_STR struct str upper = STR_INIT(STR_LINE);
    for (const char *p = page; *p; p++)
        str_addc(&upper, (char)toupper((unsigned char)*p));
    str_adds(s, ".TH ");
    man_put(s, str_sv(&upper));
    str_addf(s, " %d \"\" \"pawl %s\" \"pawl manual\"\n.SH NAME\n", section, PAWL_VERSION);
    man_put(s, sv_of(page));
    str_adds(s, " \\- ");
    man_put(s, sv_of(summary));
    str_addc(s, '\n');
}

static void put_paragraphs(struct str *s, const char *text)
{
    struct sv rest = sv_of(text);
    while (rest.p) {
        const char *gap = memmem(rest.p, rest.n, "\n\n", 2);
        struct sv one = gap ? sv_make(rest.p, (size_t)(gap - rest.p)) : rest;
        man_put(s, one);
        str_adds(s, "\n");
        if (gap)
            str_adds(s, ".PP\n");
        rest = gap ? sv_make(gap + 2, rest.n - one.n - 2) : SV_NONE;
    }
}

static void put_option(struct str *s, const struct opt *o)
{
    str_adds(s, ".TP\n");
    if (o->brief)
        str_addf(s, "\\fB\\-%c\\fR, ", o->brief);
    str_adds(s, "\\fB\\-\\-");
    man_put(s, sv_of(o->name));
    str_adds(s, "\\fR");
    if (o->arg) {
        str_adds(s, " \\fI");
        man_put(s, sv_of(o->arg));
        str_adds(s, "\\fR");
    }
    str_addc(s, '\n');
    man_put(s, sv_of(o->doc));
    str_addc(s, '\n');
}

static void put_options(struct str *s, const char *title, const struct opt *opts)
{
    if (!opts->name)
        return;
    str_addf(s, ".SH %s\n", title);
    for (; opts->name; opts++)
        if (!opts->hidden)
            put_option(s, opts);
}

static void put_synopsis(struct str *s, const struct cmd *cmd)
{
    struct sv rest = sv_of(cmd->usage);
    str_adds(s, ".SH SYNOPSIS\n.nf\n");
    do {
        struct sv line = sv_cut(rest, '\n', &rest);
        str_addf(s, "\\fBpawl %s\\fR ", cmd->name);
        man_put(s, line);
        str_addc(s, '\n');
    } while (rest.p);
    str_adds(s, ".fi\n");
}

static void put_examples(struct str *s, const struct example *e)
{
    str_adds(s, ".SH EXAMPLES\n");
    for (; e->line; e++) {
        str_adds(s, ".TP\n.B ");
        man_put(s, sv_of(e->line));
        str_addc(s, '\n');
        man_put(s, sv_of(e->doc));
        str_addc(s, '\n');
    }
}

static void command_page(struct str *s, const struct command *c)
{
    AUTO_STR struct str page = STR_INIT(STR_LINE);
    str_addf(&page, "pawl-%s", c->name);
    man_title(s, str_cstr(&page), 1, c->summary);
    put_synopsis(s, c->cmd);
    str_adds(s, ".SH DESCRIPTION\n");
    put_paragraphs(s, c->cmd->about);
    put_options(s, "OPTIONS", c->cmd->opts);
    put_options(s, "GENERAL OPTIONS", global_opts);
    put_examples(s, c->cmd->examples);
    str_adds(s, ".SH SEE ALSO\n.BR pawl (1),\n.BR pawl\\-exit\\-codes (7)\n");
}

static void put_command_list(struct str *s)
{
    enum cmd_group group = N_GROUPS;
    str_adds(s, ".SH COMMANDS\n");
    for (size_t i = 0; i < n_commands; i++) {
        if (commands[i].group != group)
            str_addf(s, ".SS %s\n", group_names[commands[i].group]);
        group = commands[i].group;
        str_addf(s, ".TP\n.BR pawl\\-%s (1)\n", commands[i].name);
        man_put(s, sv_of(commands[i].summary));
        str_addc(s, '\n');
    }
}

static void main_page(struct str *s)
{
    man_title(s, "pawl", 1, "a durable work queue and the runner that empties it");
    str_adds(s, ".SH SYNOPSIS\n\\fBpawl\\fR [\\fB\\-\\-store\\fR \\fIURL\\fR] "
                "[\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-o\\fR table|json|ndjson] "
                "\\fICOMMAND\\fR …\n.SH DESCRIPTION\n");
    put_paragraphs(s, "pawl keeps jobs in a store and runs them with retries, time limits and "
                      "logs. What was accepted is finished or visibly failed, once, also across "
                      "kill -9 and power loss.\n\n"
                      "Standard output is data, standard error is words. Lengths of time are "
                      "written 500ms, 10s, 5m, 2h, 7d; times in RFC 3339.");
    put_command_list(s);
    put_options(s, "OPTIONS", global_opts);
    str_adds(s, ".SH ENVIRONMENT\n");
    put_paragraphs(s, "Every key of the configuration has a twin: PAWL_ and the key in capitals, "
                      "dots as underscores, such as PAWL_STORE or PAWL_WORKER_SLOTS. PAWL_CONFIG "
                      "names the file. NO_COLOR turns color off.");
    str_adds(s, ".SH FILES\n.TP\n.I pawl.db\nthe store, unless another is named\n"
                ".TP\n.I pawl.yaml\nthe configuration, read if it exists\n"
                ".SH SEE ALSO\n.BR pawl.yaml (5),\n.BR pawl\\-exit\\-codes (7)\n");
}

static void put_status(struct str *s, int status)
{
    static const struct {
        int status;
        const char *name, *text;
    } codes[] = {
#define X(name, exit_status, json, text) {exit_status, json, text},
#include "errors.def"
#undef X
    };
    const char *sep = "";
    str_addf(s, ".TP\n.B %d\n", status);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].status == status) {
            str_adds(s, sep);
            man_put(s, sv_of(codes[i].text));
            str_addf(s, " (\\fI%s\\fR)", codes[i].name);
            sep = ";\n";
        }
    str_addc(s, '\n');
}

static void exit_page(struct str *s)
{
    man_title(s, "pawl-exit-codes", 7, "exit statuses of pawl");
    str_adds(s, ".SH DESCRIPTION\n");
    put_paragraphs(s, "Every command ends with one of these. In parentheses the code in "
                      "{\"error\":{\"code\":…}} that --json writes to standard error.");
    str_adds(s, ".TP\n.B 0\nall is well\n");
    for (int status = 1; status <= 8; status++)
        put_status(s, status);
    str_adds(s, ".TP\n.B 130, 143\ninterrupted by SIGINT or SIGTERM; the state is saved\n"
                ".SH SEE ALSO\n.BR pawl (1)\n");
}

int man_page(struct out *o, const char *name, struct pawl_err *err)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct sv page = sv_of(name), section;
    const struct command *c = NULL;
    if (!sv_starts(page, SV("pawl.yaml")))
        page = sv_cut(page, '.', &section);
    if (sv_starts(page, SV("pawl-")))
        c = command_find(sv_make(page.p + 5, page.n - 5));
    if (sv_eq(page, SV("pawl")))
        main_page(&s);
    else if (sv_eq(page, SV("pawl-exit-codes")))
        exit_page(&s);
    else if (sv_eq(page, SV("pawl.yaml.5")) || sv_eq(page, SV("pawl.yaml")))
        man_config_page(&s);
    else if (c)
        command_page(&s, c);
    else
        return err_set(err, PAWL_ENOTFOUND, "no page '%s' in the manual", name);
    out_put(o, str_sv(&s));
    return 0;
}

void man_names(struct out *o)
{
    out_put(o, SV("pawl.1\n"));
    for (size_t i = 0; i < n_commands; i++)
        out_putf(o, "pawl-%s.1\n", commands[i].name);
    out_put(o, SV("pawl.yaml.5\npawl-exit-codes.7\n"));
}
