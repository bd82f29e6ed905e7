/* The command line: one file per command, one line each in commands.def. This layer knows the
 * interfaces of store and worker, never a concrete one: src/app hands those in as struct cli_app.
 */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include "config.h"
#include "err.h"
#include "opt.h"
#include "out.h"
#include "store.h"
#include "worker.h"

/* What `run` and `bench` ask of a worker. All borrowed. */
struct run_request {
    const struct config *config;
    const struct pool_conf *pools; /* --pool: override the configured ones */
    size_t n_pools;
    const struct sv *queues; /* n 0: all */
    size_t n_queues;
    const char *const *kinds; /* n 0: every known one */
    size_t n_kinds;
    bool drain, no_fail;
    struct dur patience;     /* us < 0: not given */
    int64_t stop_after_jobs; /* 0: no limit */
    struct dur stop_after;   /* us 0: no limit */
    job_id only;             /* v != 0: just this job */
    const struct logger *log;
    enum worker_progress progress;
    bool plain; /* exec as in a shell: whole environment, no special exit status */
    const struct worker_guest *guest; /* NULL: none; its arg is also that of: */
    /* Everything is made, the worker's threads are not started; and they have ended. */
    int (*on_ready)(void *arg, struct loop *loop, struct pawl_err *err);
    void (*on_over)(void *arg);
};

/* What the application provides. */
struct cli_app {
    /* Open the store that config names. NOTFOUND where mode may not create one; USAGE for a kind of
     * store this build does not have. */
    int (*open_store)(const struct config *config, enum store_mode mode, struct store **out,
                      struct pawl_err *err);
    /* Kinds that need no configuration. */
    const char *const *kinds;
    size_t n_kinds;
    /* Would its handler run this payload? INPUT naming the member if not, CONFIG if something is to
     * be configured first; a kind that this configuration does not know passes. Made once for many
     * jobs; config is borrowed. */
    struct payload_check *(*check_new)(const struct config *config);
    int (*check)(const struct payload_check *c, struct sv kind, struct sv payload,
                 struct pawl_err *err);
    /* Whom a job with this payload, which was checked, talks to; nothing if that is not told. */
    void (*host)(const struct payload_check *c, struct sv kind, struct sv payload, struct str *out);
    void (*check_free)(struct payload_check *c);
    /* Run one worker in this process. Starts threads and processes: no store may be open here. */
    int (*run_worker)(const struct run_request *req, struct worker_report *out,
                      struct pawl_err *err);
    /* The SQL that `migrate` would run, from version `from` (-1: the store's present one). USAGE
     * for a store that has none to show. */
    int (*migration_sql)(const struct config *config, int from, struct str *out,
                         struct pawl_err *err);
    /* A place for a store of its own beside the configured one: appends its URL to `url`. */
    int (*scratch_new)(const struct config *config, struct str *url, struct pawl_err *err);
    void (*scratch_free)(const struct config *config, const char *url);
};

struct cli {
    const struct cli_app *app;
    const struct cmd *cmd;
    struct args args;
    struct out out;
    bool quiet;
    bool verbose;
    bool color_err;              /* color on stderr */
    bool talk;                   /* stderr is a terminal */
    struct config *config;       /* after cli_config() */
    struct store *store;         /* after cli_open() */
    struct payload_check *check; /* after cli_check() */
    int exit_status;             /* of a command that ended without an error; 0 unless it says so */
};

struct example {
    const char *line; /* a shell line that works in an empty folder after the ones before it */
    const char *doc;
};
/* A command. Its summary and group stand in commands.def. */
struct cmd {
    const char *name;
    const char *usage; /* what follows the name; lines are separated by \n */
    const char *about; /* paragraphs separated by an empty line */
    const struct opt *opts;
    const struct example *examples; /* ends with a row without a line */
    int min_args, max_args;         /* max -1: any number */
    bool takes_tail;                /* `-- CMD` */
    bool tail_anyway;               /* the first word that is no option begins the tail */
    int (*run)(struct cli *c, struct pawl_err *err);
};
#define OPT_END                                                                                    \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define EXAMPLE_END                                                                                \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

enum cmd_group {
    GROUP_START,
    GROUP_LOOK,
    GROUP_ACT,
    GROUP_LIMIT,
    GROUP_LAKE,
    GROUP_ADMIN,
    N_GROUPS
};
struct command {
    const char *name, *summary;
    enum cmd_group group;
    const struct cmd *cmd;
};
extern const struct command commands[];
extern const size_t n_commands;
extern const char *const group_names[N_GROUPS];
extern const struct opt global_opts[];
const struct command *command_find(struct sv name); /* NULL: unknown */
/* USAGE naming the nearest command. */
int command_unknown(const char *name, struct pawl_err *err);

/* The whole program: returns the exit status. */
int cli_main(const struct cli_app *app, int argc, char *const *argv);

/* Load the configuration: file, environment, --store, then `extra` "key=value" pairs. */
PAWL_MUST_USE int cli_config(struct cli *c, const char *const *extra, size_t n_extra,
                             struct pawl_err *err);
/* Configuration, then the store. Closed by cli_main. */
PAWL_MUST_USE int cli_open(struct cli *c, enum store_mode mode, struct pawl_err *err);

/* Is this a job its handler can run? After cli_config(). */
PAWL_MUST_USE int cli_check(struct cli *c, const struct job_spec *spec, struct pawl_err *err);
/* The same, and where the spec has no host and its payload tells one, that host, in the arena. */
PAWL_MUST_USE int cli_complete(struct cli *c, struct job_spec *spec, struct arena *a,
                               struct pawl_err *err);

/* A sentence on stderr, made harmless; not under -q. */
void cli_say(const struct cli *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* "pawl: warning: …", also under -q. */
void cli_warn(const struct cli *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* "pawl: MSG; HINT", and the JSON object under --json. */
void cli_error(const struct cli *c, const struct pawl_err *err);

/* Points in time on the command line: a length before now ("2h") or a time. */
PAWL_MUST_USE int cli_since(const struct cli *c, const char *option, struct wall now,
                            struct wall *out, struct pawl_err *err);
/* A job's id. USAGE. */
PAWL_MUST_USE int cli_job_id(const char *word, job_id *out, struct pawl_err *err);

/* Have SIGINT and SIGTERM noted instead of ending the process at once. */
void cli_catch_signals(void);
int cli_signal(void); /* the one that came, or 0 */

/* help.c, man.c */
void help_overview(struct out *o);
void help_command(struct out *o, const struct command *c);
PAWL_MUST_USE int man_page(struct out *o, const char *name, struct pawl_err *err);
void man_names(struct out *o); /* every page's file name, one a line */

/* complete.c: `pawl __complete WORD…`, asked by the shells' completions. The words after `pawl` up
 * to the one being typed; prints what that could be, WORD<TAB>DESCRIPTION a line, or a line that
 * tells the shell to complete by itself: ":files", ":folders", ":commands". Never an error. */
void complete_words(struct cli *c, char *const *words);

#endif
