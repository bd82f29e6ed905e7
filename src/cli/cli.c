/* From argv to a command and back to an exit status. */
#include "cli.h"

#include "fd.h"
#include "mem.h"
#include "text.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define COMMAND(name, group, summary) extern const struct cmd cmd_##name;
#include "commands.def"
#undef COMMAND

const struct command commands[] = {
#define COMMAND(name, group, summary) {#name, summary, GROUP_##group, &cmd_##name},
#include "commands.def"
#undef COMMAND
};
const size_t n_commands = ARRAY_LEN(commands);
const char *const group_names[N_GROUPS] = {"Start", "Look", "Act", "Limits", "Lake", "Admin"};

const struct opt global_opts[] = {
    {"store", 0, "URL",
     "the store: sqlite:FILE or a path; else PAWL_STORE, the configuration, "
     "sqlite:pawl.db"},
    {"config", 0, "FILE", "configuration file; else PAWL_CONFIG, ./pawl.yaml"},
    {"output", 'o', "FORMAT", "table, json or ndjson", .choices = "table|json|ndjson"},
    {"json", 0, NULL, "the same as -o json"},
    {"color", 0, "WHEN", "auto, always or never", .choices = "auto|always|never"},
    {"quiet", 'q', NULL, "say less on stderr"},
    {"verbose", 'v', NULL, "say more on stderr"},
    {"help", 'h', NULL, "explain the command"},
    {"version", 0, NULL, "print the version"},
    OPT_END,
};

const struct command *command_find(struct sv name)
{
    for (size_t i = 0; i < n_commands; i++)
        if (sv_eq(name, sv_of(commands[i].name)))
            return &commands[i];
    return NULL;
}

int command_unknown(const char *name, struct pawl_err *err)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < n_commands; i++)
        names[i] = commands[i].name;
    const char *near = sv_nearest(sv_of(name), names, n_commands);
    err_set(err, PAWL_EUSAGE, "unknown command '%s'", name);
    if (near)
        return err_hint(err, "did you mean '%s'?", near);
    return err_hint(err, "'pawl help' lists them");
}

static void say(const struct cli *c, const char *prefix, const char *fmt, va_list ap)
{
    char text[2048];
    AUTO_STR struct str line = STR_INIT(STR_LINE);
    vsnprintf(text, sizeof(text), fmt, ap);
    out_styled(&line, c->color_err, STYLE_YELLOW, sv_of(prefix));
    text_safe(&line, sv_of(text), 0);
    str_addc(&line, '\n');
    if (fd_write_all(STDERR_FILENO, line.p, line.len) < 0)
        return; /* nowhere left to say so */
}

void cli_say(const struct cli *c, const char *fmt, ...)
{
    if (c->quiet)
        return;
    va_list ap;
    va_start(ap, fmt);
    say(c, "", fmt, ap);
    va_end(ap);
}

void cli_warn(const struct cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(c, "pawl: warning: ", fmt, ap);
    va_end(ap);
}

static void add_error_json(struct str *line, const struct pawl_err *err)
{
    AUTO_STR struct str json = STR_INIT(STR_LINE);
    struct jw w = jw_make(&json);
    jw_object(&w);
    jw_name(&w, "error");
    jw_object(&w);
    jw_kstring(&w, "code", sv_of(err_name(err->code)));
    jw_kstring(&w, "message", sv_of(err->msg));
    jw_kstring_or_null(&w, "hint", err->hint[0] ? sv_of(err->hint) : SV_NONE);
    jw_end_object(&w);
    jw_end_object(&w);
    text_safe_json(line, str_sv(&json));
    str_addc(line, '\n');
}

void cli_error(const struct cli *c, const struct pawl_err *err)
{
    AUTO_STR struct str line = STR_INIT(STR_LINE);
    out_styled(&line, c->color_err, STYLE_RED, SV("pawl: "));
    text_safe(&line, sv_of(err->msg[0] ? err->msg : err_text(err->code)), 0);
    if (err->hint[0]) {
        str_adds(&line, "; ");
        text_safe(&line, sv_of(err->hint), 0);
    }
    str_addc(&line, '\n');
    if (out_is_json(&c->out))
        add_error_json(&line, err);
    if (fd_write_all(STDERR_FILENO, line.p, line.len) < 0)
        return; /* nowhere left to say so */
}

int cli_config(struct cli *c, const char *const *extra, size_t n_extra, struct pawl_err *err)
{
    AUTO_STR struct str store = STR_INIT(STR_LINE);
    const char **flags = mem_zalloc(n_extra + 1, sizeof(*flags));
    size_t n = 0;
    if (args_has(&c->args, "store")) {
        str_addf(&store, "store=%s", args_get(&c->args, "store"));
        flags[n++] = str_cstr(&store);
    }
    for (size_t i = 0; i < n_extra; i++)
        flags[n++] = extra[i];
    struct config *loaded;
    int rc = config_load(args_get(&c->args, "config"), environ, flags, n, &loaded, err);
    free(flags);
    if (rc < 0)
        return rc;
    config_free(c->config);
    c->config = loaded;
    return 0;
}

int cli_check(struct cli *c, const struct job_spec *spec, struct pawl_err *err)
{
    if (!c->check)
        c->check = c->app->check_new(c->config);
    return c->app->check(c->check, spec->kind, spec->payload, err);
}

int cli_complete(struct cli *c, struct job_spec *spec, struct arena *a, struct pawl_err *err)
{
    AUTO_STR struct str host = STR_INIT(STR_LINE);
    int rc = cli_check(c, spec, err);
    if (rc < 0 || spec->host.p)
        return rc;
    c->app->host(c->check, spec->kind, spec->payload, &host);
    if (!host.len)
        return 0;
    rc = name_check(str_sv(&host), "host", err);
    if (rc == 0)
        spec->host = sv_make(arena_strndup(a, host.p, host.len), host.len);
    return rc;
}

int cli_open(struct cli *c, enum store_mode mode, struct pawl_err *err)
{
    if (!c->config && cli_config(c, NULL, 0, err) < 0)
        return err->code;
    return c->app->open_store(c->config, mode, &c->store, err);
}

int cli_since(const struct cli *c, const char *option, struct wall now, struct wall *out,
              struct pawl_err *err)
{
    const char *text = args_get(&c->args, option);
    struct dur ago;
    if (!text)
        return 0;
    if (dur_parse(sv_of(text), false, &ago, NULL) == 0) {
        *out = (struct wall){now.us > ago.us ? now.us - ago.us : 1};
        return 0;
    }
    if (wall_parse(sv_of(text), now, out, NULL) == 0)
        return 0;
    return err_set(err, PAWL_EUSAGE,
                   "--%s is '%s'; a length such as 2h or a time such as "
                   "2026-01-31T08:00:00Z is expected",
                   option, text);
}

int cli_job_id(const char *word, job_id *out, struct pawl_err *err)
{
    if (sv_to_i64(sv_of(word), 1, ((int64_t)1 << 53) - 1, &out->v) == 0)
        return 0;
    err_set(err, PAWL_EUSAGE, "'%s' is not a job id", word);
    return err_hint(err, "ids are the numbers 'pawl add' and 'pawl list' print");
}

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
    caught = sig;
}

void cli_catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART: reads and waits end */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

int cli_signal(void)
{
    return caught;
}

static int read_globals(struct cli *c, struct pawl_err *err)
{
    static const char *const formats[] = {"table", "json", "ndjson", NULL};
    static const char *const colors[] = {"auto", "always", "never", NULL};
    int format = args_has(&c->args, "json") ? OUT_JSON : OUT_TABLE, color = COLOR_AUTO;
    int rc = args_choice(&c->args, "output", formats, &format, err);
    c->out.format = (enum out_format)format;
    if (rc == 0)
        rc = args_choice(&c->args, "color", colors, &color, err);
    c->out.color = out_wants_color((enum out_color)color, STDOUT_FILENO) && !out_is_json(&c->out);
    c->color_err = out_wants_color((enum out_color)color, STDERR_FILENO);
    c->quiet = args_has(&c->args, "quiet");
    c->verbose = args_has(&c->args, "verbose");
    if (rc == 0)
        rc = args_exclude(&c->args, "quiet", "verbose", err);
    return rc;
}

static int check_arguments(const struct cli *c, struct pawl_err *err)
{
    const struct cmd *cmd = c->cmd;
    int n = (int)c->args.n_pos;
    if (c->args.has_tail && !cmd->takes_tail) {
        err_set(err, PAWL_EUSAGE, "%s takes nothing after '--'", cmd->name);
    } else if (n < cmd->min_args) {
        err_set(err, PAWL_EUSAGE, "%s: something is missing", cmd->name);
    } else if (cmd->max_args >= 0 && n > cmd->max_args) {
        err_set(err, PAWL_EUSAGE, "%s: unexpected '%s'", cmd->name, c->args.pos[cmd->max_args]);
    } else {
        return 0;
    }
    struct sv rest;
    struct sv line = sv_cut(sv_of(cmd->usage), '\n', &rest);
    return err_hint(err, "usage: pawl %s " SV_FMT, cmd->name, SV_ARG(line));
}

static int run_command(struct cli *c, struct pawl_err *err)
{
    int rc = read_globals(c, err);
    if (rc == 0)
        rc = check_arguments(c, err);
    return rc < 0 ? rc : c->cmd->run(c, err);
}

/* The words before and after the command's name. Sets c->cmd unless there is none. */
static int parse(struct cli *c, char *const *argv, const struct command **out, struct pawl_err *err)
{
    const struct opt *first[] = {global_opts, NULL};
    int at = args_parse(&c->args, argv, 1, first, true, err);
    *out = NULL;
    if (at < 0)
        return at;
    if (c->args.has_tail)
        return err_set(err, PAWL_EUSAGE, "a command is expected before '--'");
    if (!argv[at])
        return 0;
    *out = command_find(sv_of(argv[at]));
    if (!*out)
        return command_unknown(argv[at], err);
    c->cmd = (*out)->cmd;
    const struct opt *both[] = {global_opts, c->cmd->opts, NULL};
    int rc = args_parse(&c->args, argv, at + 1, both, c->cmd->tail_anyway, err);
    if (rc >= 0 && c->cmd->tail_anyway && !c->args.has_tail)
        args_take_tail(&c->args, argv + rc);
    return rc < 0 ? rc : 0;
}

static int dispatch(struct cli *c, char *const *argv, struct pawl_err *err)
{
    const struct command *command;
    if (argv[1] && !strcmp(argv[1], "__complete")) {
        complete_words(c, argv + 2);
        return 0;
    }
    int rc = parse(c, argv, &command, err);
    if (rc < 0) {
        struct pawl_err ignored;
        if (read_globals(c, &ignored) < 0)
            c->out.format = OUT_TABLE;
        return rc;
    }
    if (args_has(&c->args, "version")) {
        out_put(&c->out, SV("pawl " PAWL_VERSION "\n"));
        return 0;
    }
    if (command && !args_has(&c->args, "help"))
        return run_command(c, err);
    rc = read_globals(c, err);
    if (rc == 0 && command)
        help_command(&c->out, command);
    else if (rc == 0)
        help_overview(&c->out);
    return rc;
}

/* What was printed reached its reader, or the command has failed. */
static int finish_output(struct cli *c, int status)
{
    out_flush(&c->out);
    if (!c->out.failed)
        return status;
    if (c->out.failed_errno != EPIPE) {
        struct pawl_err err;
        err_errno(&err, PAWL_EIO, c->out.failed_errno, "cannot write standard output");
        cli_error(c, &err);
    }
    return status ? status : err_exit_status(PAWL_EIO);
}

int cli_main(const struct cli_app *app, int argc, char *const *argv)
{
    struct cli c = {.app = app};
    struct pawl_err err = {0};
    (void)argc;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, seen in finish_output */
    out_init(&c.out, STDOUT_FILENO);
    c.talk = isatty(STDERR_FILENO) == 1;
    int rc = dispatch(&c, argv, &err);
    int status = rc < 0 ? err_exit_status(rc) : c.exit_status;
    store_close(c.store);
    status = finish_output(&c, status);
    if (rc < 0)
        cli_error(&c, &err);
    c.app->check_free(c.check);
    config_free(c.config);
    args_done(&c.args);
    out_done(&c.out);
    return status;
}
