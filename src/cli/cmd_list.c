/* pawl list: jobs by the selection flags. */
#include "job_out.h"
#include "select.h"
#include "table.h"

enum { TERMINAL_ROWS = 50 };

static const struct opt opts[] = {
    SELECT_OPTS,
    {"full", 0, NULL, "with payload and result, in json and ndjson"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --queue nightly -- echo hello", "something to list"},
    {"pawl list --state queued --queue nightly", "what waits in one queue"},
    {"pawl list --since 1h -o ndjson", "for a script: one JSON object a line"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"ID", true, 0, false},    {"QUEUE", false, 24, false}, {"KIND", false, 16, false},
    {"KEY", false, 32, false}, {"STATE", false, 0, false},  {"TRY", true, 0, false},
    {"PRIO", true, 0, false},  {"AGE", true, 0, false},     {"ERROR", false, 0, false},
};

struct listing {
    struct cli *c;
    struct table table;
    struct wall now;
    enum job_detail detail;
    int64_t shown;
    struct str line;
};

static bool print_json(void *arg, const struct job_view *job)
{
    struct listing *l = arg;
    str_clear(&l->line);
    struct jw w = jw_make(&l->line);
    job_write(&w, job, l->detail, l->c->config);
    out_item(&l->c->out, str_sv(&l->line));
    return !l->c->out.failed;
}

static bool print_row(void *arg, const struct job_view *job)
{
    struct listing *l = arg;
    table_int(&l->table, job->id.v);
    table_text(&l->table, job->queue);
    table_text(&l->table, job->kind);
    table_text(&l->table, job->key);
    table_styled(&l->table, sv_of(job_state_name(job->state)), job_state_style(job->state));
    table_int(&l->table, job->attempt);
    table_int(&l->table, job->priority);
    table_dur(&l->table,
              DUR_US(l->now.us > job->created_at.us ? l->now.us - job->created_at.us : 0));
    table_text(&l->table, job->error);
    l->shown++;
    return !l->c->out.failed;
}

static int say_more(struct cli *c, struct selection sel, int64_t shown, struct pawl_err *err)
{
    int64_t all;
    sel.limit = 0;
    int rc = c->store->ops->count(c->store, &sel, &all, err);
    if (rc == 0 && all > shown)
        cli_say(c, "… %lld more; --limit N shows more, -o ndjson all", (long long)(all - shown));
    if (rc == 0 && all == 0)
        cli_say(c, "no such jobs");
    return rc;
}

static int list_table(struct listing *l, struct selection sel, struct pawl_err *err)
{
    struct cli *c = l->c;
    bool cut = c->out.terminal && !sel.limit && !sel.n_ids;
    if (cut)
        sel.limit = TERMINAL_ROWS;
    table_begin(&l->table, &c->out, columns, ARRAY_LEN(columns));
    int rc = c->store->ops->list(c->store, &sel, false, print_row, l, err);
    table_end(&l->table);
    out_flush(&c->out);
    if (rc == 0 && (cut || l->shown == 0))
        rc = say_more(c, sel, l->shown, err);
    return rc;
}

static int list_json(struct listing *l, const struct selection *sel, struct pawl_err *err)
{
    struct cli *c = l->c;
    l->line = STR_INIT(PAYLOAD_MAX_BYTES * 2);
    int rc = c->store->ops->list(c->store, sel, l->detail == JOB_FULL, print_json, l, err);
    out_items_end(&c->out);
    str_done(&l->line);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(selection_done) struct selection sel = {0};
    struct listing l = {.c = c, .detail = args_has(&c->args, "full") ? JOB_FULL : JOB_BRIEF};
    if (l.detail == JOB_FULL && !out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "--full is for -o json and -o ndjson");
    if (selection_read(c, clock_wall(), &sel, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = selection_error(c, &sel, err);
    if (rc < 0)
        return rc;
    l.now = c->store->ops->now(c->store);
    return out_is_json(&c->out) ? list_json(&l, &sel, err) : list_table(&l, sel, err);
}

const struct cmd cmd_list = {
    .name = "list",
    .usage = "[ID]… [OPTION]…",
    .about = "Lists jobs in the order of their ids. Everything given must hold; nothing given "
             "lists all. On a terminal 50 are shown and the number of others is said; elsewhere "
             "and in ndjson there is no limit unless --limit sets one.\n\n"
             "--error takes a part of the message, or the fingerprint that 'pawl report' and "
             "'pawl show' print: failures that differ in numbers, paths and quoted words only "
             "share it, and its first four characters do. What looks like a fingerprint but is "
             "that of no selected job is taken as text.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
