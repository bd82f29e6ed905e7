/* What the tests of the configuration share: a folder of their own with pawl.yaml in it, values as
 * they are shown, tables of files that are refused. */
#ifndef PAWL_TESTS_CONFIG_LAB_H
#define PAWL_TESTS_CONFIG_LAB_H

#include "unit.h"

#include "config.h"
#include <sys/stat.h>

/* Group set-up and tear-down: a new folder with an empty folder "secrets" is the current one. */
int enter_folder(void **state);
int leave_folder(void **state);

/* Names known to leave_folder() only. */
void write_file(const char *name, const char *text, mode_t mode);

/* Load with the given text as ./pawl.yaml (NULL: none). */
int load(const char *yaml, const char *const *env, const char *const *flags, size_t n_flags,
         struct config **out, struct pawl_err *err);
/* The same from the file alone, which is expected to be good. */
struct config *load_good(const char *yaml);

/* The value and where it comes from, as `pawl config` shows them. */
void assert_shown(const struct config *c, const char *key, const char *value, const char *origin);

/* One file and the message it is refused with. */
struct refusal {
    const char *yaml, *msg;
};
#define AT(line, text) "pawl.yaml:" line ": " text

void assert_refused(const struct refusal *rows, size_t n);

#endif
