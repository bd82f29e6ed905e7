/* pawl verify: are the bytes that rows speak of there and true, and is nothing else there? */
#include "select.h"
#include "table.h"
#include "verify.h"
#include "words.h"
#include <stdio.h>

#define MARGIN DUR_S(60) /* beyond a lease: a worker that was stopped may still write its row */

static const struct opt opts[] = {
    {"sample", 0, "P", "read only P percent of the artifacts, chosen at random"},
    {"repair", 0, NULL, "queue again what is missing or damaged, remove what no row names"},
    {"dry-run", 'n', NULL, "with --repair: only list"},
    {"yes", 'y', NULL, "do not ask"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl fetch http://127.0.0.1:8080/a", "a job for 'pawl run'"},
    {"pawl verify", "every artifact is read and compared with its row"},
    {"pawl verify --sample 1 --json", "one in a hundred, for a script"},
    {"pawl verify --repair --yes", "and put right what is not"},
    EXAMPLE_END,
};
static const struct column columns[] = {
    {"WHAT", false, 0, false}, {"JOB", true, 0, true},     {"NAME", false, 24, true},
    {"BYTES", true, 0, false}, {"PLACE", false, 0, false}, {"WHY", false, 0, false},
};

static void print_table(struct verify *v)
{
    struct table t;
    if (!v->n)
        return;
    table_begin(&t, &v->c->out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < v->n; i++) {
        const struct finding *f = &v->v[i];
        table_styled(&t, sv_of(finding_name(f->kind)), STYLE_RED);
        table_count(&t, f->job.v);
        table_text(&t, f->name);
        table_int(&t, f->bytes);
        table_text(&t, f->place);
        table_text(&t, sv_of(f->why));
    }
    table_end(&t);
    out_flush(&v->c->out);
}

static void write_finding(struct jw *w, const struct finding *f)
{
    char hex[SHA256_LEN * 2 + 1];
    jw_object(w);
    jw_kstring(w, "what", sv_of(finding_name(f->kind)));
    if (f->artifact) {
        jw_kint(w, "artifact", f->artifact);
        jw_kint(w, "job", f->job.v);
        jw_kstring(w, "name", f->name);
        jw_kstring(w, "sha256", sha256_text(f->sha256, hex));
    }
    jw_kint(w, "bytes", f->bytes);
    jw_kstring(w, "place", f->place);
    jw_kstring(w, "why", sv_of(f->why));
    jw_kstring_or_null(w, "stuck", f->stuck ? sv_of(f->stuck) : SV_NONE);
    jw_end_object(w);
}

static void write_repaired(struct jw *w, const struct verify *v, bool repaired)
{
    jw_name(w, "repaired");
    if (!repaired) {
        jw_null(w);
        return;
    }
    jw_object(w);
    jw_kint(w, "rows", v->repaired.rows);
    jw_kint(w, "jobs", v->repaired.jobs);
    jw_kint(w, "removed", v->repaired.removed);
    jw_kint(w, "cut", v->repaired.cut);
    jw_kint(w, "bytes", v->repaired.bytes);
    jw_kint(w, "left", v->repaired.left);
    jw_kint(w, "stuck", v->repaired.stuck);
    jw_kint(w, "unreached", v->repaired.unreached);
    jw_end_object(w);
}

static void print_json(struct verify *v, bool repaired)
{
    AUTO_STR struct str s = STR_INIT(STR_OUTPUT);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "artifacts", v->artifacts);
    jw_kint(&w, "checked", v->checked);
    jw_kint(&w, "bytes", v->bytes);
    jw_kint(&w, "objects", v->objects);
    jw_kint(&w, "segments", v->segments);
    for (int i = 0; i < N_FINDINGS; i++)
        jw_kint(&w, finding_name((enum finding_kind)i), v->count[i]);
    jw_kint(&w, "young", v->young);
    jw_name(&w, "findings");
    jw_array(&w);
    for (size_t i = 0; i < v->n; i++)
        write_finding(&w, &v->v[i]);
    jw_end_array(&w);
    write_repaired(&w, v, repaired);
    jw_kms(&w, "took_ms", meter_elapsed(&v->meter));
    jw_end_object(&w);
    out_object(&v->c->out, str_sv(&s));
}

static void say_result(const struct verify *v)
{
    static const char *const words[] = {"missing", "damaged", "without a row", "left over",
                                        "unreadable"};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_adds(&s, cli_signal() ? "interrupted: " : "");
    words_count(&s, v->checked);
    if (v->checked < v->artifacts) {
        str_adds(&s, " of ");
        words_count(&s, v->artifacts);
    }
    str_adds(&s, " artifacts read, ");
    words_bytes(&s, v->bytes);
    str_adds(&s, v->n ? ":" : ": all is well");
    for (int i = 0; i < N_FINDINGS; i++)
        if (v->count[i])
            str_addf(&s, " %lld %s,", (long long)v->count[i], words[i]);
    if (s.p[s.len - 1] == ',')
        s.p[--s.len] = '\0';
    if (v->young)
        str_addf(&s, "; %lld too young to judge", (long long)v->young);
    cli_say(v->c, "%s", str_cstr(&s));
}

static void say_repaired(const struct verify *v)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_addf(&s, "repaired: %lld row%s removed, %lld job%s queued again, %lld file%s deleted (",
             (long long)v->repaired.rows, v->repaired.rows == 1 ? "" : "s",
             (long long)v->repaired.jobs, v->repaired.jobs == 1 ? "" : "s",
             (long long)v->repaired.removed, v->repaired.removed == 1 ? "" : "s");
    words_bytes(&s, v->repaired.bytes);
    str_addc(&s, ')');
    if (v->repaired.cut)
        str_addf(&s, ", %lld segment%s made shorter", (long long)v->repaired.cut,
                 v->repaired.cut == 1 ? "" : "s");
    if (v->repaired.left)
        str_addf(&s, "; %lld left, a job may be using them: try again later",
                 (long long)v->repaired.left);
    if (v->repaired.stuck)
        str_addf(&s, "; %lld cannot be put right", (long long)v->repaired.stuck);
    if (v->repaired.unreached)
        str_addf(&s, "; %lld not reached", (long long)v->repaired.unreached);
    cli_say(v->c, "%s", str_cstr(&s));
}

/* Those that the list told of as something that can be repaired. */
static void say_stuck(const struct verify *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct finding *f = &v->v[i];
        if (f->stuck && f->kind != FOUND_UNREADABLE)
            cli_warn(v->c, SV_FMT " stays as it is: %s", SV_ARG(f->place), f->stuck);
    }
}

/* 1: go on with it. */
static int may_repair(struct verify *v, struct pawl_err *err)
{
    struct cli *c = v->c;
    int64_t n = (int64_t)v->n - v->count[FOUND_UNREADABLE];
    if (!args_has(&c->args, "repair") || args_has(&c->args, "dry-run") || !n || cli_signal())
        return 0;
    return act_confirm(c, "repair", "repaired", "finding", n, err);
}

static int conclude(struct verify *v, struct pawl_err *err)
{
    bool json = out_is_json(&v->c->out);
    if (!json)
        print_table(v);
    if (!json)
        say_result(v);
    int go = may_repair(v, err);
    int rc = go > 0 ? verify_repair(v, err) : go;
    if (json) {
        print_json(v, go > 0);
    } else if (go > 0) {
        say_stuck(v);
        say_repaired(v);
    }
    if (v->n && (go <= 0 || v->repaired.left || v->repaired.stuck))
        v->c->exit_status = err_exit_status(PAWL_EFAILED);
    if (cli_signal())
        v->c->exit_status = 128 + cli_signal();
    return rc;
}

/* A lake that is not there while rows speak of it is no finding for each of them: it is more likely
 * not mounted. Without rows there is nothing to compare. */
static int look(struct verify *v, struct pawl_err *err)
{
    struct pawl_err none = {0};
    int rc = verify_rows(v, err);
    if (rc < 0)
        return rc;
    if (!v->lake && cli_own_lake(v->c, cli_lake_mode(v->c), &v->lake, &none) < 0) {
        if (none.code == PAWL_ENOTFOUND)
            return 0;
        *err = none;
        return err->code;
    }
    return cli_signal() ? 0 : verify_lake(v, err);
}

static int read_share(const struct cli *c, double *out, struct pawl_err *err)
{
    const char *text = args_get(&c->args, "sample");
    struct sv rest, percent = sv_cut(sv_of(text), '%', &rest), part, whole;
    int64_t a, b = 0;
    if (!text)
        return 0;
    whole = sv_cut(percent, '.', &part);
    if (sv_to_i64(whole, 0, 100, &a) < 0 || rest.n || part.n > 2 ||
        (part.p && sv_to_i64(part, 0, 99, &b) < 0) || (!a && !b) || (a == 100 && b))
        return err_set(err, PAWL_EUSAGE, "--sample is '%s'; a percentage such as 5 or 0.5", text);
    *out = ((double)a + (double)b / (part.n == 1 ? 10 : 100)) / 100;
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(verify_done) struct verify v = {.c = c, .share = 1};
    arena_init(&v.arena);
    if (read_share(c, &v.share, err) < 0)
        return PAWL_EUSAGE;
    bool writes = args_has(&c->args, "repair") && !args_has(&c->args, "dry-run");
    if (!args_has(&c->args, "repair") && args_has(&c->args, "yes"))
        return err_set(err, PAWL_EUSAGE, "--yes belongs to --repair");
    int rc = cli_open(c, writes ? STORE_WRITE : STORE_READ, err);
    if (rc < 0)
        return rc;
    v.younger = DUR_US(c->config->worker_lease.us + MARGIN.us);
    cli_catch_signals();
    meter_start(&v.meter, c);
    rc = look(&v, err);
    meter_end(&v.meter);
    return rc < 0 ? rc : conclude(&v, err);
}

const struct cmd cmd_verify = {
    .name = "verify",
    .usage = "[--sample P] [--repair [-n] [--yes]]",
    .about =
        "Reads every artifact, or with --sample some, and compares size and hash with its row; "
        "then looks in the lake for bytes that no row names and for temporary files that nobody "
        "will finish. Exit status 0 when all is well, 1 with a list when something is not. What "
        "cannot be read now is listed as unreadable, with the reason, and stops nothing.\n\n"
        "--repair says what it found, asks on a terminal or needs --yes, and then deletes damaged "
        "and unnamed bytes, and queues again the jobs whose bytes are missing or damaged. What "
        "was written within worker.lease and a minute more is left alone: it may be a running "
        "job's. So a repair can go on beside workers; what it left is said, with exit status 1, "
        "and so is what it cannot put right, with the reason.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
