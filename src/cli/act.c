/* Acting on many jobs: the count first, then the question, then short transactions. */
#include "select.h"

#include "mem.h"
#include <stdio.h>
#include <unistd.h>

enum { BATCH = 2000 }; /* jobs in one transaction: well below 50 ms */

/* Every batch of the request until its limit. */
static int act_all(struct cli *c, struct act_request req, struct act_sum *sum, struct pawl_err *err)
{
    int64_t left = req.select.limit ? req.select.limit : INT64_MAX;
    struct act_result r = {.more = true};
    while (r.more && left > 0 && !cli_signal()) {
        req.max = left < BATCH ? (int)left : BATCH;
        req.select.limit = req.select.limit ? left : 0;
        int rc = c->store->ops->act(c->store, &req, &r, err);
        if (rc < 0)
            return rc;
        sum->matched += r.matched;
        sum->changed += r.changed;
        left -= r.changed;
        req.select.after = r.cursor;
    }
    return 0;
}

static int check_id(struct cli *c, job_id id, const struct act_words *words, struct pawl_err *err)
{
    struct arena a;
    struct job_view job;
    arena_init(&a);
    int rc = c->store->ops->job_get(c->store, id, &a, &job, err);
    if (rc == 0 && words->states && !(words->states & 1u << job.state)) {
        rc = err_set(err, PAWL_ECONFLICT, "cannot %s job %lld: it is %s", words->doing,
                     (long long)id.v, job_state_name(job.state));
        if (words->other)
            err_hint(err, "%s", words->other);
    }
    arena_done(&a);
    return rc;
}

static int check_ids(struct cli *c, const struct selection *s, const struct act_words *words,
                     struct pawl_err *err)
{
    for (size_t i = 0; i < s->n_ids; i++) {
        int rc = check_id(c, s->ids[i], words, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool answered_yes(const char *doing, const char *what, int64_t n)
{
    char line[16];
    fprintf(stderr, "%s %lld %s%s? [y/N] ", doing, (long long)n, what, n == 1 ? "" : "s");
    fflush(stderr);
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

int act_confirm(struct cli *c, const char *doing, const char *done, const char *what, int64_t n,
                struct pawl_err *err)
{
    if (args_has(&c->args, "yes") || n == 0)
        return 1;
    if (isatty(STDIN_FILENO) == 1 && c->talk)
        return answered_yes(doing, what, n);
    err_set(err, PAWL_EUSAGE, "%lld %s%s would be %s, and nobody is here to ask", (long long)n,
            what, n == 1 ? "" : "s", done);
    return err_hint(err, "say --yes to do it%s",
                    opt_find((const struct opt *const[]){c->cmd->opts, NULL}, SV("dry-run"))
                        ? ", --dry-run to look"
                        : "");
}

static void report(struct cli *c, const struct act_words *words, const struct act_sum *sum,
                   bool dry_run)
{
    if (out_is_json(&c->out)) {
        AUTO_STR struct str s = STR_INIT(STR_LINE);
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kint(&w, "matched", sum->matched);
        jw_kint(&w, "changed", sum->changed);
        jw_kbool(&w, "dry_run", dry_run);
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
        return;
    }
    cli_say(c, "%lld job%s %s%s", (long long)sum->changed, sum->changed == 1 ? "" : "s",
            dry_run ? "would be " : "", words->done);
}

int act_count(struct cli *c, struct act_request req, struct act_sum *out, struct pawl_err *err)
{
    struct act_sum sum = {0};
    req.dry_run = true;
    int rc = act_all(c, req, &sum, err);
    if (rc == 0)
        *out = sum;
    return rc;
}

/* The count of all requests, and whether to go on. */
static int impact(struct cli *c, const struct act_request *reqs, size_t n,
                  const struct act_words *words, struct act_sum *sum, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct act_sum one = {0};
        int rc = act_count(c, reqs[i], &one, err);
        if (rc < 0)
            return rc;
        sum->matched += one.matched;
        sum->changed += one.changed;
    }
    if (args_has(&c->args, "dry-run"))
        return 0;
    if (!out_is_json(&c->out))
        cli_say(c, "%lld job%s selected", (long long)sum->changed, sum->changed == 1 ? "" : "s");
    return act_confirm(c, words->doing, words->done, "job", sum->changed, err);
}

static int carry_out(struct cli *c, const struct act_request *reqs, size_t n,
                     const struct act_words *words, struct pawl_err *err)
{
    struct act_sum sum = {0};
    int rc = 0;
    cli_catch_signals();
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = act_all(c, reqs[i], &sum, err);
    if (rc == 0 || sum.changed)
        report(c, words, &sum, false);
    if (rc == 0 && cli_signal())
        c->exit_status = 128 + cli_signal();
    return rc;
}

int act_on_jobs(struct cli *c, const struct act_request *reqs, size_t n,
                const struct act_words *words, struct pawl_err *err)
{
    struct act_sum sum = {0};
    bool dry_run = args_has(&c->args, "dry-run"), ids = n && reqs[0].select.n_ids;
    int rc = ids ? check_ids(c, &reqs[0].select, words, err) : 0;
    if (rc < 0)
        return rc;
    if (ids && !dry_run)
        return carry_out(c, reqs, n, words, err);
    int go = impact(c, reqs, n, words, &sum, err);
    if (go < 0)
        return go;
    if (go)
        return carry_out(c, reqs, n, words, err);
    report(c, words, &sum, true);
    c->exit_status = dry_run ? 0 : err_exit_status(PAWL_EFAILED);
    return 0;
}
