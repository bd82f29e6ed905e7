/* Children of the command line: a part of pawl beside it, or a program that is fed a text. For a
 * process that has no threads yet. */
#ifndef PAWL_PROCESS_HELPER_H
#define PAWL_PROCESS_HELPER_H

#include "err.h"
#include "str.h"
#include <stdbool.h>
#include <sys/types.h>

struct helper {
    pid_t pid;
    int lifeline; /* the parent's end */
};
/* Fork a child that calls `body` and exits with what it returns. Its lifeline becomes readable when
 * the parent ends the helper or dies. FAILED when it cannot be started. */
PAWL_MUST_USE int helper_start(struct helper *h, int (*body)(void *arg, int lifeline), void *arg,
                               struct pawl_err *err);
/* Close the lifeline and wait for the child. */
void helper_end(struct helper *h);

/* Run a program of PATH with the text on its standard input; its words go nowhere. True if it took
 * the text and exited with 0. SIGPIPE must be ignored. */
bool helper_feed(char *const *argv, struct sv text);

#endif
