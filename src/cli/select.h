/* Which jobs: the flags that list, wait, retry, set and others share, and the rules of acting on
 * many at once (DESIGN §6): say the count first, ask on a terminal, need --yes elsewhere,
 * --dry-run. */
#ifndef PAWL_CLI_SELECT_H
#define PAWL_CLI_SELECT_H

#include "cli.h"

/* Rows for a command's option table. */
#define SELECT_OPTS                                                                                \
    {"queue", 0, "QUEUE", "jobs of this queue"}, {"kind", 0, "KIND", "jobs of this kind"},         \
        {"host", 0, "HOST", "jobs for this host"},                                                 \
        {"state", 0, "STATE",                                                                      \
         "in this state: blocked, queued, waiting, running, done, skipped, "                       \
         "failed or cancelled; several with commas"},                                              \
        {"error", 0, "TEXT",                                                                       \
         "whose last error contains TEXT or has this fingerprint, such as e3f1c2"},                \
        {"key", 0, "KEY", "with this key"},                                                        \
        {"since", 0, "DUR|TIME", "added at or after TIME, or within the last DUR"},                \
    {                                                                                              \
        "limit", 0, "N", "at most N jobs"                                                          \
    }
#define BULK_OPTS                                                                                  \
    {"dry-run", 'n', NULL, "only say how many jobs it would be"},                                  \
    {                                                                                              \
        "yes", 'y', NULL, "do not ask"                                                             \
    }

/* Read the flags and the ids among the arguments. The selection's views point into argv; its ids
 * are freed by selection_done(). */
PAWL_MUST_USE int selection_read(const struct cli *c, struct wall now, struct selection *out,
                                 struct pawl_err *err);
void selection_done(struct selection *s);
/* With the store open: an --error that looks like a fingerprint but is the fingerprint of no
 * selected job is a text after all. */
PAWL_MUST_USE int selection_error(const struct cli *c, struct selection *s, struct pawl_err *err);
/* Was anything given that narrows the choice? */
bool selection_given(const struct cli *c);
unsigned states_terminal(void); /* bits */

/* The words of an act. */
struct act_words {
    const char *doing; /* "retry": "retry 12 jobs?" */
    const char *done;  /* "retried": "12 jobs retried" */
    unsigned states;   /* an id in another state is a CONFLICT; 0: any */
    const char *other; /* why, said then */
};
/* May n things be acted on? --yes, or the person at the terminal says so. 1: go on, 0: the person
 * said no, USAGE where nobody is to be asked. */
PAWL_MUST_USE int act_confirm(struct cli *c, const char *doing, const char *done, const char *what,
                              int64_t n, struct pawl_err *err);
/* What the request would look at and what it would change. */
struct act_sum {
    int64_t matched, changed;
};
PAWL_MUST_USE int act_count(struct cli *c, struct act_request req, struct act_sum *out,
                            struct pawl_err *err);
/* Carry out the requests as one act by the rules above; with ids every one must exist (NOTFOUND)
 * and fit (CONFLICT). Says the result. */
PAWL_MUST_USE int act_on_jobs(struct cli *c, const struct act_request *reqs, size_t n,
                              const struct act_words *words, struct pawl_err *err);

#endif
