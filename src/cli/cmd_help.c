/* pawl help: a command explained; the manual's source for the build. */
#include "cli.h"

static const struct opt opts[] = {
    {"man", 0, "PAGE", "print a page of the manual as roff", .hidden = true},
    {"man-names", 0, NULL, "print the names of all pages of the manual", .hidden = true},
    {"examples", 0, NULL, "print every example of every command as shell lines", .hidden = true},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl help", "every command"},
    {"pawl help add", "one command with its options and examples"},
    EXAMPLE_END,
};

/* COMMAND<TAB>LINE for the test that runs them all. */
static void print_examples(struct out *o)
{
    for (size_t i = 0; i < n_commands; i++)
        for (const struct example *e = commands[i].cmd->examples; e->line; e++)
            out_putf(o, "%s\t%s\n", commands[i].name, e->line);
}

static int run(struct cli *c, struct pawl_err *err)
{
    const char *page = args_get(&c->args, "man");
    if (page)
        return man_page(&c->out, page, err);
    if (args_has(&c->args, "man-names")) {
        man_names(&c->out);
        return 0;
    }
    if (args_has(&c->args, "examples")) {
        print_examples(&c->out);
        return 0;
    }
    if (!c->args.n_pos) {
        help_overview(&c->out);
        return 0;
    }
    const struct command *command = command_find(sv_of(c->args.pos[0]));
    if (!command)
        return command_unknown(c->args.pos[0], err);
    help_command(&c->out, command);
    return 0;
}

const struct cmd cmd_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .about = "Lists the commands, or explains one. 'pawl COMMAND --help' does the same.",
    .opts = opts,
    .examples = examples,
    .max_args = 1,
    .run = run,
};
