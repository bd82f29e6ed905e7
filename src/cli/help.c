/* Help on the terminal, from the command and option tables. */
#include "cli.h"
#include "mem.h"
#include <stdio.h>

enum { TEXT_WIDTH = 80 };

/* A screen has 24 lines, and the overview stays within: what is needed daily gets a line of its
 * own, limits, lake and administration their names. */
static void put_names(struct str *s, enum cmd_group group)
{
    const char *sep = "";
    for (size_t i = 0; i < n_commands; i++)
        if (commands[i].group == group) {
            str_addf(s, "%s%s", sep, commands[i].name);
            sep = ", ";
        }
    str_addc(s, '\n');
}

static void put_group(struct str *s, const struct out *o, enum cmd_group group)
{
    char head[16];
    snprintf(head, sizeof(head), "%-7s", group_names[group]);
    for (size_t i = 0; i < n_commands; i++) {
        if (commands[i].group != group)
            continue;
        out_styled(s, o->color, STYLE_BOLD, sv_of(head));
        if (group >= GROUP_LIMIT) {
            put_names(s, group);
            return;
        }
        str_addf(s, "%-9s%s\n", commands[i].name, commands[i].summary);
        snprintf(head, sizeof(head), "%-7s", "");
    }
}

void help_overview(struct out *o)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_adds(&s, "usage: pawl [--store URL] [--config FILE] [-o table|json|ndjson] COMMAND …\n"
                 "'pawl help COMMAND' explains one; the first step: pawl add -- echo hello\n\n");
    for (int group = 0; group < N_GROUPS; group++)
        put_group(&s, o, (enum cmd_group)group);
    out_put(o, str_sv(&s));
}

/* Words of one paragraph, broken at TEXT_WIDTH, every line indented. */
static void put_paragraph(struct str *s, struct sv text, int indent)
{
    int column = 0;
    while (text.p) {
        struct sv word = sv_cut(text, ' ', &text);
        if (!word.n)
            continue;
        if (column && column + 1 + (int)word.n > TEXT_WIDTH) {
            str_addc(s, '\n');
            column = 0;
        }
        if (column)
            str_addc(s, ' ');
        else
            str_addf(s, "%*s", indent, "");
        column = (column ? column + 1 : indent) + (int)word.n;
        str_add(s, word);
    }
    str_addc(s, '\n');
}

static void put_about(struct str *s, const char *about)
{
    struct sv rest = sv_of(about);
    while (rest.p) {
        const char *gap = memmem(rest.p, rest.n, "\n\n", 2);
        struct sv one = gap ? sv_make(rest.p, (size_t)(gap - rest.p)) : rest;
        put_paragraph(s, one, 0);
        str_addc(s, '\n');
        rest = gap ? sv_make(gap + 2, rest.n - one.n - 2) : SV_NONE;
    }
}

static void put_option(struct str *s, const struct opt *o)
{
    AUTO_STR struct str left = STR_INIT(STR_LINE);
    enum { LEFT = 28 };
    if (o->brief)
        str_addf(&left, "  -%c, ", o->brief);
    else
        str_adds(&left, "      ");
    str_addf(&left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    str_adds(s, str_cstr(&left));
    if (left.len + 2 > LEFT)
        str_addc(s, '\n');
    else
        str_addf(s, "%*s", (int)(LEFT - left.len), "");
    AUTO_STR struct str doc = STR_INIT(STR_LINE);
    put_paragraph(&doc, sv_of(o->doc), LEFT);
    str_adds(s, left.len + 2 > LEFT ? str_cstr(&doc) : str_cstr(&doc) + LEFT);
}

static void put_options(struct str *s, const char *title, const struct opt *opts)
{
    if (!opts->name)
        return;
    str_addf(s, "%s\n", title);
    for (; opts->name; opts++)
        if (!opts->hidden)
            put_option(s, opts);
    str_addc(s, '\n');
}

static void put_usage(struct str *s, const struct cmd *cmd)
{
    struct sv rest = sv_of(cmd->usage);
    const char *lead = "usage: ";
    do {
        struct sv line = sv_cut(rest, '\n', &rest);
        str_addf(s, "%spawl %s%s" SV_FMT "\n", lead, cmd->name, line.n ? " " : "", SV_ARG(line));
        lead = "       ";
    } while (rest.p);
    str_addc(s, '\n');
}

void help_command(struct out *o, const struct command *c)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    put_usage(&s, c->cmd);
    put_about(&s, c->cmd->about);
    put_options(&s, "Options:", c->cmd->opts);
    put_options(&s, "Everywhere:", global_opts);
    str_adds(&s, "Examples:\n");
    for (const struct example *e = c->cmd->examples; e->line; e++)
        str_addf(&s, "  %s\n      %s\n", e->line, e->doc);
    out_put(o, str_sv(&s));
}
