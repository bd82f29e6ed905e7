/* pawl copy: everything a store holds into another one, of whatever kind. */
#include "copying.h"
#include "table.h"
#include "text.h"

static const struct opt opts[] = {
    {"replace", 0, NULL, "delete what DST holds first; begin an unfinished copy anew"},
    {"force", 0, NULL, "although workers of SRC have jobs in hand, or SRC changes meanwhile"},
    {"verify", 0, NULL, "copy nothing, only compare"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a store"},
    {"pawl copy pawl.db moved.db", "a copy of it"},
    {"pawl copy --verify pawl.db moved.db", "compares them"},
    {"pawl --store moved.db list", "it is a store itself"},
    EXAMPLE_END,
};

static int open_one(struct cli *c, const char *url, enum store_mode mode, struct store **out,
                    struct pawl_err *err)
{
    AUTO_STR struct str setting = STR_INIT(STR_LINE);
    str_addf(&setting, "store=%s", url);
    const char *extra[] = {str_cstr(&setting)};
    int rc = cli_config(c, extra, 1, err);
    return rc < 0 ? rc : c->app->open_store(c->config, mode, out, err);
}

/* ---- the report ---- */

static void print_table(const struct copying *k)
{
    static const struct column columns[] = {
        {.head = "TABLE"},
        {.head = "ROWS", .right = true},
        {.head = "COPIED", .right = true},
        {.head = "SUM"},
        {.head = "FIRST DIFFERENCE", .may_go = true},
    };
    struct table t;
    table_begin(&t, &k->c->out, columns, ARRAY_LEN(columns));
    for (int i = 0; i < N_COPY_TABLES; i++) {
        const struct compared *d = &k->tables[i];
        bool same = copy_sum_eq(&d->source, &d->target);
        table_text(&t, sv_of(copy_shapes[i].name));
        table_int(&t, d->source.rows);
        table_int(&t, d->target.rows);
        table_styled(&t, same ? SV("same") : SV("different"), same ? STYLE_GREEN : STYLE_RED);
        table_text(&t, d->first.len ? str_sv(&d->first) : SV("-"));
    }
    table_end(&t);
}

static void json_sum(struct jw *w, const char *rows, const char *sum, const struct copy_sum *s)
{
    char hex[2 * SHA256_LEN + 1];
    hex_encode(s->digest, sizeof(s->digest), hex);
    jw_kint(w, rows, s->rows);
    jw_kstring(w, sum, sv_of(hex));
}

static void json_table(struct jw *w, enum copy_table t, const struct compared *d)
{
    jw_object(w);
    jw_kstring(w, "table", sv_of(copy_shapes[t].name));
    json_sum(w, "source_rows", "source_sum", &d->source);
    json_sum(w, "target_rows", "target_sum", &d->target);
    jw_kbool(w, "equal", copy_sum_eq(&d->source, &d->target));
    jw_kstring_or_null(w, "first_difference", d->first.len ? str_sv(&d->first) : SV_NONE);
    jw_end_object(w);
}

static void print_json(const struct copying *k, bool finished)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kstring(&w, "source", sv_of(k->from_name));
    jw_kstring(&w, "target", sv_of(k->to_name));
    jw_kbool(&w, "equal", k->equal);
    jw_kbool(&w, "finished", finished);
    jw_kbool(&w, "resumed", k->resumed);
    jw_kint(&w, "released", k->released);
    jw_name(&w, "tables");
    jw_array(&w);
    for (int t = 0; t < N_COPY_TABLES; t++)
        json_table(&w, (enum copy_table)t, &k->tables[t]);
    jw_end_array(&w);
    jw_kms(&w, "took_ms", DUR_US(clock_boot().us - k->start.us));
    jw_end_object(&w);
    out_object(&k->c->out, str_sv(&s));
}

static int refuse_difference(const struct copying *k, bool verify, struct pawl_err *err)
{
    AUTO_STR struct str names = STR_INIT(STR_LINE);
    for (int t = 0; t < N_COPY_TABLES; t++)
        if (!copy_sum_eq(&k->tables[t].source, &k->tables[t].target))
            str_addf(&names, "%s%s", names.len ? ", " : "", copy_shapes[t].name);
    err_set(err, PAWL_EFAILED, "%s differs from %s: %s", k->to_name, k->from_name,
            str_cstr(&names));
    if (verify)
        return PAWL_EFAILED;
    return err_hint(err, "it stays marked as unfinished; --replace begins anew");
}

static void say_end(const struct copying *k)
{
    AUTO_STR struct str took = STR_INIT(STR_LINE);
    dur_human(DUR_US(clock_boot().us - k->start.us), &took);
    cli_say(k->c, "%s%s is a copy of %s now (%s)", k->resumed ? "gone on and finished: " : "",
            k->to_name, k->from_name, str_cstr(&took));
    if (k->released)
        cli_say(k->c, "%lld running job%s went back to the queue there", (long long)k->released,
                k->released == 1 ? "" : "s");
    if (k->facts.logs)
        cli_say(k->c, "the logs of attempts are files and stay with %s", k->from_name);
    if (k->facts.workers)
        cli_warn(k->c, "of %s %lld worker%s still alive; what both stores hold may run twice",
                 k->from_name, (long long)k->facts.workers,
                 k->facts.workers == 1 ? " is" : "s are");
}

/* ---- the command ---- */

static int stopped(struct cli *c, bool verify)
{
    if (!verify)
        cli_say(c, "interrupted: the same command goes on where it stopped");
    c->exit_status = 128 + cli_signal();
    return 0;
}

static int copy(struct copying *k, bool verify, struct pawl_err *err)
{
    bool stop = false, finished = false;
    int rc = copying_run(k, verify, &stop, err);
    if (rc < 0 && k->begun && !err->hint[0])
        err_hint(err, "the same command goes on where it stopped");
    if (rc < 0 || stop)
        return rc < 0 ? rc : stopped(k->c, verify);
    if (!verify && k->equal) {
        rc = copying_finish(k, err);
        finished = rc == 0;
    }
    if (out_is_json(&k->c->out))
        print_json(k, finished);
    else
        print_table(k);
    if (finished)
        say_end(k);
    return k->equal ? rc : refuse_difference(k, verify, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO_STR struct str from = STR_INIT(STR_LINE);
    AUTO_STR struct str to = STR_INIT(STR_LINE);
    AUTO(copying_done) struct copying k = {.c = c};
    const char *const *urls = c->args.pos;
    bool verify = args_has(&c->args, "verify");
    text_url(&from, sv_of(urls[0]));
    text_url(&to, sv_of(urls[1]));
    k.from_name = str_cstr(&from);
    k.to_name = str_cstr(&to);
    k.force = args_has(&c->args, "force");
    k.replace = args_has(&c->args, "replace");
    int rc = args_exclude(&c->args, "verify", "replace", err);
    if (rc == 0 && args_has(&c->args, "store"))
        rc = err_set(err, PAWL_EUSAGE, "copy names both stores itself, without --store");
    if (rc == 0)
        rc = open_one(c, urls[0], STORE_READ, &k.from, err);
    if (rc == 0)
        rc = open_one(c, urls[1], verify ? STORE_READ : STORE_COPY, &k.to, err);
    if (rc < 0)
        return rc;
    cli_catch_signals();
    return copy(&k, verify, err);
}

const struct cmd cmd_copy = {
    .name = "copy",
    .usage = "SRC DST [--replace] [--force]\nSRC DST --verify",
    .about =
        "Copies all that the store SRC holds into the store DST, which may be of another kind: "
        "jobs "
        "with their ids, keys, attempts and results, events, pauses, metrics. Ids go on above the "
        "highest. At the end every table of both is compared by its number of rows and a checksum, "
        "and only then DST may be used; until then every other command refuses it.\n\n"
        "SRC is only read, in one snapshot. End its workers before: jobs in hand of a living "
        "worker "
        "are refused without --force. Running jobs whose worker is gone arrive as queued, without "
        "an "
        "attempt spent. After the copy use DST alone: what is queued in both would run twice.\n\n"
        "An interrupted copy goes on when the same command is given again, whatever ended it. "
        "DST must be empty, or --replace given. The logs of attempts are files and are not copied. "
        "Exit status 1: the stores differ; 5: SRC or DST is in use, or DST is not empty.",
    .opts = opts,
    .examples = examples,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
