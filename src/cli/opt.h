/* Command-line options, GNU style: --name value, --name=value, -n value, -nvalue, clusters of short
 * flags, `--` ends them, options and arguments in any order. Each command has a const table; help,
 * manual and errors come from the same rows. */
#ifndef PAWL_CLI_OPT_H
#define PAWL_CLI_OPT_H

#include "clock.h"
#include "err.h"
#include "str.h"

/* One row; a table ends with a row without a name. */
struct opt {
    const char *name;
    char brief;      /* 0: no short form */
    const char *arg; /* what its value is called; NULL: a flag */
    const char *doc;
    bool hidden;         /* not in help and manual */
    const char *choices; /* its values, "a|b", for completion; NULL: any */
};
/* The option called `name`, or NULL. */
const struct opt *opt_find(const struct opt *const *tables, struct sv name);
/* The option whose value is the word after `word`, or NULL. */
const struct opt *opt_awaiting(const struct opt *const *tables, const char *word);

struct opt_value {
    const struct opt *opt;
    const char *value; /* borrowed from argv; NULL for a flag */
};
struct args {
    struct opt_value *given;
    size_t n_given, cap_given;
    const char **pos; /* arguments */
    size_t n_pos, cap_pos;
    char *const *tail; /* what follows `--`, when has_tail */
    size_t n_tail;
    bool has_tail;
};
void args_done(struct args *a);

/* Read argv[from…] by the tables (ended by NULL). Returns the index of the first word not read:
 * with first_only that is the first argument, else argc. USAGE, naming the nearest option. */
PAWL_MUST_USE int args_parse(struct args *a, char *const *argv, int from,
                             const struct opt *const *tables, bool first_only,
                             struct pawl_err *err);

/* Everything from here on is the tail. */
void args_take_tail(struct args *a, char *const *words);

bool args_has(const struct args *a, const char *name);
/* The last value given, or NULL. */
const char *args_get(const struct args *a, const char *name);
/* The i-th value of a repeated option, or NULL. */
const char *args_nth(const struct args *a, const char *name, size_t i);

/* Values by type; absent: 0 and nothing set. USAGE naming the option otherwise. */
PAWL_MUST_USE int args_int(const struct args *a, const char *name, int64_t min, int64_t max,
                           int64_t *out, struct pawl_err *err);
PAWL_MUST_USE int args_dur(const struct args *a, const char *name, bool allow_none, struct dur *out,
                           struct pawl_err *err);
/* One of `names` (ended by NULL); its index. */
PAWL_MUST_USE int args_choice(const struct args *a, const char *name, const char *const *names,
                              int *out, struct pawl_err *err);
/* The first argument as one of a command's words (ended by NULL), the first of them where there is
 * no argument: its index. USAGE naming the nearest. */
PAWL_MUST_USE int args_verb(const struct args *a, const char *command, const char *const *names,
                            struct pawl_err *err);
/* USAGE that both were given. */
PAWL_MUST_USE int args_exclude(const struct args *a, const char *one, const char *other,
                               struct pawl_err *err);

#endif
