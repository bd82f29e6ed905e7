#include "select.h"

#include "fingerprint.h"
#include "mem.h"

static int unknown_state(struct sv word, struct pawl_err *err)
{
    const char *names[N_JOB_STATES];
    for (int i = 0; i < N_JOB_STATES; i++)
        names[i] = job_state_name((enum job_state)i);
    const char *near = sv_nearest(word, names, N_JOB_STATES);
    err_set(err, PAWL_EUSAGE, "--state: unknown state '" SV_FMT "'", SV_ARG(word));
    if (near)
        return err_hint(err, "did you mean %s?", near);
    return err_hint(err, "states are blocked, queued, waiting, running, done, skipped, failed, "
                         "cancelled");
}

static int add_states(const char *list, unsigned *states, struct pawl_err *err)
{
    struct sv rest = sv_of(list);
    do {
        enum job_state s;
        struct sv word = sv_cut(rest, ',', &rest);
        if (job_state_parse(word, &s) < 0)
            return unknown_state(word, err);
        *states |= 1u << s;
    } while (rest.p);
    return 0;
}

static int read_states(const struct cli *c, unsigned *out, struct pawl_err *err)
{
    const char *list;
    for (size_t i = 0; (list = args_nth(&c->args, "state", i)) != NULL; i++)
        if (add_states(list, out, err) < 0)
            return PAWL_EUSAGE;
    return 0;
}

static int read_ids(const struct cli *c, struct selection *out, struct pawl_err *err)
{
    if (!c->args.n_pos)
        return 0;
    job_id *ids = mem_zalloc(c->args.n_pos, sizeof(*ids));
    out->ids = ids;
    out->n_ids = c->args.n_pos;
    for (size_t i = 0; i < c->args.n_pos; i++)
        if (cli_job_id(c->args.pos[i], &ids[i], err) < 0)
            return PAWL_EUSAGE;
    return 0;
}

static int read_all(const struct cli *c, struct wall now, struct selection *s, struct pawl_err *err)
{
    s->queue = sv_of(args_get(&c->args, "queue"));
    s->kind = sv_of(args_get(&c->args, "kind"));
    s->host = sv_of(args_get(&c->args, "host"));
    s->key = sv_of(args_get(&c->args, "key"));
    s->error = sv_of(args_get(&c->args, "error"));
    if (fingerprint_parse(s->error, &s->error_low, &s->error_high) == 0)
        s->error = SV_NONE;
    if (args_int(&c->args, "limit", 1, INT64_MAX / 2, &s->limit, err) < 0 ||
        cli_since(c, "since", now, &s->since, err) < 0 || read_states(c, &s->states, err) < 0 ||
        read_ids(c, s, err) < 0)
        return PAWL_EUSAGE;
    return 0;
}

int selection_read(const struct cli *c, struct wall now, struct selection *out,
                   struct pawl_err *err)
{
    struct selection s = {0};
    if (read_all(c, now, &s, err) < 0) {
        selection_done(&s);
        return PAWL_EUSAGE;
    }
    *out = s;
    return 0;
}

void selection_done(struct selection *s)
{
    free((void *)(uintptr_t)s->ids);
    s->ids = NULL;
    s->n_ids = 0;
}

int selection_error(const struct cli *c, struct selection *s, struct pawl_err *err)
{
    struct selection one = *s;
    int64_t n;
    one.limit = 1;
    if (!s->error_high)
        return 0;
    int rc = c->store->ops->count(c->store, &one, &n, err);
    if (rc < 0 || n)
        return rc;
    s->error = sv_of(args_get(&c->args, "error"));
    s->error_low = s->error_high = 0;
    return 0;
}

bool selection_given(const struct cli *c)
{
    static const char *const names[] = {"queue", "kind", "host", "state", "error", "key", "since"};
    if (c->args.n_pos)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (args_has(&c->args, names[i]))
            return true;
    return false;
}

unsigned states_terminal(void)
{
    unsigned bits = 0;
    for (int i = 0; i < N_JOB_STATES; i++)
        if (job_state_terminal((enum job_state)i))
            bits |= 1u << i;
    return bits;
}
