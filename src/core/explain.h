/* Why is this job not running? A pure function from one snapshot of the store to every reason there
 * is, each with a command that changes it. The reasons stand in reasons.def. */
#ifndef PAWL_CORE_EXPLAIN_H
#define PAWL_CORE_EXPLAIN_H

#include "store.h"

enum reason_code {
#define X(code, name, text, fix) REASON_##code,
#include "reasons.def"
#undef X
    N_REASONS
};
const char *reason_name(enum reason_code c); /* "gate_full" */

/* Views point into the explain_view or the arena. */
struct reason {
    enum reason_code code;
    struct sv
        subject; /* a queue, a limit or LIMIT=VALUE, a lock's key, a kind, a worker, a state */
    struct sv limit, value; /* of a gate; p NULL otherwise */
    struct sv who;          /* a worker; p NULL: none */
    struct sv why;          /* of a breaker or a preflight; p NULL: not known */
    int64_t used, max;      /* -1: they do not apply */
    const job_id *holders;  /* jobs in its way: those that are known, 5 at most */
    size_t n_holders;
    struct wall since, until; /* us 0: no time, or not by time */
    struct sv text;           /* a sentence without a full stop; as raw as the names in it */
    struct sv fix;            /* a shell line, quoted and harmless; p NULL: nothing to do */
};

/* Every reason, in the order of the table; one at least. */
size_t explain_reasons(const struct explain_view *v, struct arena *a, struct reason **out);

#endif
