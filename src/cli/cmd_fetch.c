/* pawl fetch: URLs become jobs of kind fetch, in batches, in constant memory. */
#include "fetch_add.h"
#include "http.h"
#include "words.h"

enum { BAD_SHOWN = 10 };

static const struct opt opts[] = {
    {"file", 'f', "FILE", "URLs from FILE, one a line; - is standard input"},
    VARIANT_OPT,
    {"queue", 0, "QUEUE", "the queue; 'fetch' unless given"},
    {"priority", 0, "N", "higher runs first; 0 unless given"},
    {"header", 'H', "'NAME: VALUE'", "send this header too; repeatable"},
    {"accept", 0, "STATUS",
     "keep the body of this status and of no other; repeatable; 200 to 299 unless given"},
    {"reject", 0, "TEXT", "a body with TEXT in it is a blocked page: tried again; repeatable"},
    {"no-robots", 0, NULL, "do not ask robots.txt for these"},
    {"refresh", 0, NULL, "fetch again what was fetched before, if it has changed"},
    {"older-than", 0, "DUR", "with --refresh: only what ended longer ago than DUR"},
    {"skip-bad", 0, NULL, "leave out lines that are no URLs, and say how many"},
    {"dry-run", 'n', NULL, "only say how many jobs it would be"},
    OPT_END,
};
static const struct example examples[] = {
    {"printf '%s\\n' '# pages' http://127.0.0.1:8080/a http://127.0.0.1:8080/b >urls.txt",
     "a list: one URL a line"},
    {"pawl fetch -f urls.txt", "two jobs; 'pawl run' fetches them"},
    {"pawl fetch -f urls.txt", "nothing new"},
    {"pawl fetch http://127.0.0.1:8080/wiki/Pawl --variant raw='{url}?action=raw' "
     "--variant html='{url}'",
     "one document in two variants, a job each"},
    {"pawl fetch --refresh --older-than 7d -f - <urls.txt",
     "again what is a week old; what has not changed costs one question"},
    EXAMPLE_END,
};

struct fetching {
    struct cli *c;
    struct url_list list;
    struct variants variants;
    struct fetch_spec spec;
    struct fetch_add add;
    struct arena arena; /* of the variants */
    struct checked_url given, asked;
    struct meter meter;
    bool skip_bad, checking; /* checking: nothing is added */
    bool payload_seen;       /* the handler has judged one */
    int64_t bad;
};

static void fetching_done(struct fetching *f)
{
    url_list_done(&f->list);
    fetch_spec_done(&f->spec);
    fetch_add_done(&f->add);
    checked_url_done(&f->given);
    checked_url_done(&f->asked);
    arena_done(&f->arena);
}

/* The same members for all but the URL, which is checked: one stands for the others, unless its
 * host has a right to know who asks. */
static bool to_be_judged(const struct fetching *f, struct sv host)
{
    return !f->payload_seen || (!f->c->config->fetch_contact[0] && !http_host_loopback(host));
}

static int add_variant(struct fetching *f, struct sv url, const struct variant *v,
                       struct pawl_err *err)
{
    const struct checked_url *asked = v->plain ? &f->given : &f->asked;
    int rc = v->plain ? 0 : variant_expand(v, url, &f->asked, err);
    bool judge = rc == 0 && to_be_judged(f, str_sv(&asked->host));
    if (rc < 0 || (f->checking && !judge))
        return rc;
    struct job_spec job = fetch_job(&f->spec, url, v, asked, &f->add.arena);
    rc = judge ? cli_check(f->c, &job, err) : 0;
    f->payload_seen = true;
    if (rc == 0 && !f->checking)
        f->add.specs[f->add.n++] = job;
    return rc;
}

static void progress(struct fetching *f)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    int64_t known = fetch_known(&f->add) + f->add.refreshed;
    if (!meter_due(&f->meter))
        return;
    if (f->list.size)
        str_addf(&s, "%3d %%  ", (int)(f->list.in.bytes * 100 / f->list.size));
    str_addf(&s, "%lld URLs%s", (long long)f->list.number, f->checking ? " checked" : "");
    if (!f->checking)
        str_addf(&s, ", %lld new, %lld known, %.0f/s", (long long)f->add.added, (long long)known,
                 meter_per_second(&f->meter, f->add.added + known));
    meter_draw(&f->meter, str_sv(&s));
}

static int flush(struct fetching *f, struct pawl_err *err)
{
    int rc = f->checking ? 0 : fetch_add_flush(&f->add, err);
    if (rc == 0)
        progress(f);
    return rc;
}

/* A URL with all its variants, or none of it. */
static int add_url(struct fetching *f, struct sv url, struct pawl_err *err)
{
    size_t before = f->add.n;
    int rc = url_check(url, &f->given, err);
    for (size_t i = 0; rc == 0 && i < f->variants.n; i++)
        rc = add_variant(f, url, &f->variants.v[i], err);
    if (rc < 0)
        f->add.n = before;
    return rc;
}

/* Was it the line's fault, and may it be left out? */
static int bad_url(struct fetching *f, struct pawl_err *err)
{
    if (err->code != PAWL_EINPUT)
        return err->code;
    url_list_blame(&f->list, err);
    if (!f->skip_bad)
        return err->code;
    f->bad += !f->checking;
    if (!f->checking && f->bad <= BAD_SHOWN)
        cli_warn(f->c, "%s", err->msg);
    return 0;
}

static int step(struct fetching *f, bool *end, struct pawl_err *err)
{
    struct sv url;
    enum url_got got = URL_ONE;
    int rc = url_list_next(&f->list, &url, &got, err);
    if (rc == 0 && got == URL_ONE)
        rc = add_url(f, url, err);
    if (rc < 0)
        rc = bad_url(f, err);
    *end = got == URL_END;
    /* What a slow writer has sent should not wait; a file has it all. */
    bool due = got == URL_END || (got == URL_PAUSE && !f->list.again) || fetch_add_full(&f->add) ||
               (f->checking && f->list.number % BATCH_START == 0);
    return rc == 0 && due ? flush(f, err) : rc;
}

static int walk(struct fetching *f, struct pawl_err *err)
{
    bool end = false;
    int rc = 0;
    while (rc == 0 && !end && !cli_signal())
        rc = step(f, &end, err);
    return rc;
}

/* What can be read twice is read through first: one bad line, and nothing is added. */
static int check_all(struct fetching *f, struct pawl_err *err)
{
    if (!f->list.again)
        return 0;
    f->checking = true;
    int rc = walk(f, err);
    f->checking = false;
    arena_reset(&f->add.arena);
    if (rc < 0)
        return rc;
    return url_list_rewind(&f->list, err);
}

/* ---- what came of it ---- */

static void print_json(const struct fetching *f)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "urls", f->list.number);
    jw_kint(&w, "new", f->add.added);
    jw_kint(&w, "refreshed", f->add.refreshed);
    jw_kint(&w, "known", fetch_known(&f->add));
    jw_name(&w, "states");
    jw_object(&w);
    for (int i = 0; i < N_JOB_STATES; i++)
        jw_kint(&w, job_state_name((enum job_state)i), f->add.known[i]);
    jw_end_object(&w);
    jw_kint(&w, "younger", f->add.younger);
    jw_kint(&w, "bad", f->bad);
    jw_kbool(&w, "dry_run", f->add.dry_run);
    jw_kms(&w, "took_ms", meter_elapsed(&f->meter));
    jw_end_object(&w);
    out_object(&f->c->out, str_sv(&s));
}

/* " (9 991 done, 9 failed)" */
static void add_states(const struct fetching *f, struct str *s)
{
    static const enum job_state order[] = {JOB_DONE,    JOB_SKIPPED, JOB_FAILED,  JOB_CANCELLED,
                                           JOB_RUNNING, JOB_QUEUED,  JOB_WAITING, JOB_BLOCKED};
    const char *sep = " (";
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (!f->add.known[order[i]])
            continue;
        str_adds(s, sep);
        words_count(s, f->add.known[order[i]]);
        str_addf(s, " %s", job_state_name(order[i]));
        sep = ", ";
    }
    str_adds(s, *sep == ',' ? ")" : "");
}

static bool any_ended(const struct fetching *f)
{
    for (int i = 0; i < N_JOB_STATES; i++)
        if (f->add.known[i] && job_state_terminal((enum job_state)i))
            return true;
    return false;
}

static void summarize(const struct fetching *f)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    str_adds(&s, cli_signal() ? "interrupted: " : f->add.dry_run ? "would be: " : "");
    words_count(&s, f->add.added);
    str_adds(&s, " new, ");
    if (f->add.refresh) {
        words_count(&s, f->add.refreshed);
        str_adds(&s, " again, ");
    }
    words_count(&s, fetch_known(&f->add));
    str_adds(&s, " known");
    add_states(f, &s);
    if (f->add.younger) {
        str_adds(&s, ", ");
        words_count(&s, f->add.younger);
        str_adds(&s, " of them younger than ");
        dur_format(f->add.older_than, &s);
    }
    if (f->bad)
        str_addf(&s, ", %lld bad line%s left out", (long long)f->bad, f->bad == 1 ? "" : "s");
    if (!f->add.refresh && any_ended(f))
        str_adds(&s, "; --refresh fetches them again");
    cli_say(f->c, "%s", str_cstr(&s));
}

static int fetch_all(struct fetching *f, struct pawl_err *err)
{
    struct pawl_err why;
    int rc = walk(f, err);
    if (rc == PAWL_EINPUT || rc == PAWL_ECONFIG) { /* of a stream: what came before counts */
        why = *err;
        rc = flush(f, err);
        if (rc == 0) {
            *err = why;
            rc = why.code;
        }
    }
    meter_end(&f->meter);
    if (out_is_json(&f->c->out))
        print_json(f);
    if (rc < 0) {
        if (!err->hint[0] && f->add.added)
            err_hint(err, "%lld job%s added before it", (long long)f->add.added,
                     f->add.added == 1 ? " was" : "s were");
        return rc;
    }
    summarize(f);
    f->c->exit_status = cli_signal() ? 128 + cli_signal() : 0;
    return 0;
}

/* ---- the line ---- */

/* A dry run looks, and a store that is not there yet has none of them. */
static int open_store(struct fetching *f, struct pawl_err *err)
{
    int rc = cli_open(f->c, f->add.dry_run ? STORE_READ : STORE_CREATE, err);
    return f->add.dry_run && rc == PAWL_ENOTFOUND ? 0 : rc;
}

static int read_line(struct fetching *f, struct pawl_err *err)
{
    struct cli *c = f->c;
    const char *file = args_get(&c->args, "file");
    if (!file == !c->args.n_pos) {
        err_set(err, PAWL_EUSAGE,
                file ? "URLs come from --file or the line, not both" : "nothing to fetch");
        return err_hint(err, "pawl fetch URL…, or pawl fetch -f FILE");
    }
    if (args_has(&c->args, "older-than") && !args_has(&c->args, "refresh"))
        return err_set(err, PAWL_EUSAGE, "--older-than belongs to --refresh");
    f->skip_bad = args_has(&c->args, "skip-bad");
    f->add.refresh = args_has(&c->args, "refresh");
    f->add.dry_run = args_has(&c->args, "dry-run");
    if (args_dur(&c->args, "older-than", false, &f->add.older_than, err) < 0 ||
        variants_read(c, &f->arena, &f->variants, err) < 0)
        return PAWL_EUSAGE;
    int rc = fetch_spec_read(c, &f->spec, err);
    return rc < 0 ? rc : url_list_open(&f->list, c, file, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(fetching_done) struct fetching f = {.c = c, .list = {.fd = -1}};
    arena_init(&f.arena);
    checked_url_init(&f.given);
    checked_url_init(&f.asked);
    fetch_add_init(&f.add, c);
    int rc = read_line(&f, err);
    if (rc == 0)
        rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    cli_catch_signals();
    meter_start(&f.meter, c);
    rc = check_all(&f, err);
    if (rc == 0)
        rc = open_store(&f, err);
    return rc < 0 ? rc : fetch_all(&f, err);
}

const struct cmd cmd_fetch = {
    .name = "fetch",
    .usage = "URL… [OPTION]…\n-f FILE|- [OPTION]…",
    .about =
        "Adds a job of kind fetch for every URL and variant; workers fetch them politely and keep "
        "each body in the lake, complete and with its hash, or say why not. A file has one URL a "
        "line; blank lines and those that begin with # are passed over. A line that is no URL is "
        "refused with its number and nothing is added, unless --skip-bad leaves it out; of "
        "standard input what came before stays.\n\n"
        "A variant is another request for the same document: {url} in its template stands for the "
        "URL, as it is and wherever it is; all else, other braces too, is taken literally, so "
        "'{url}?action=raw' of a URL that has a ? already has two. Job and artifact bear the "
        "variant's name; the key is 'VARIANT URL', so a URL is added once for each queue and "
        "variant. Known ones are counted and left as they are. --refresh queues those again that "
        "have ended: the server is asked whether the page changed, and what has not is skipped "
        "without a new body. What is queued or running is left alone.\n\n"
        "Hosts other than this machine need fetch.contact in the configuration: who runs this, "
        "for the User-Agent. Each host gets one request a second, two at a time, unless limits "
        "say otherwise ('pawl plan' shows what that means); robots.txt is obeyed unless "
        "fetch.robots or --no-robots says otherwise.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .run = run,
};
