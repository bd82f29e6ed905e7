/* pawl import: JSON lines into the store, in batches, in constant memory. */
#include "cli.h"
#include "fd.h"
#include "job_out.h"
#include "lines.h"
#include "mem.h"
#include "meter.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    BAD_SHOWN = 10,
    KINDS_SEEN_MAX = 256,
};

static const struct opt opts[] = {
    {"queue", 0, "QUEUE", "the queue of lines that name none"},
    {"kind", 0, "KIND", "the kind of lines that name none"},
    {"limit", 0, "N", "read at most N lines"},
    {"skip-bad", 0, NULL, "leave out lines that are wrong, and say how many"},
    OPT_END,
};
static const struct example examples[] = {
    {"echo '{\"queue\":\"wiki\",\"key\":\"p1\",\"payload\":{\"command\":[\"echo\",\"hello\"]}}' "
     ">jobs.jsonl",
     "a file with one job"},
    {"pawl import jobs.jsonl", "adds it"},
    {"pawl import jobs.jsonl", "adds nothing: the key is known"},
    {"pawl import --queue later --skip-bad - <jobs.jsonl", "from standard input"},
    EXAMPLE_END,
};

struct import {
    struct cli *c;
    struct lines in;
    struct json doc;
    struct arena arena; /* decoded strings of the batch */
    struct job_spec fallback;
    struct job_spec *specs;
    struct add_result *results;
    size_t n;
    struct batch batch;
    int64_t limit, added, known, bad;
    bool skip_bad;
    char *kinds[KINDS_SEEN_MAX];
    size_t n_kinds;
    int64_t size; /* of the file; 0: unknown */
    struct meter meter;
};

static void import_done(struct import *im)
{
    for (size_t i = 0; i < im->n_kinds; i++)
        free(im->kinds[i]);
    lines_done(&im->in);
    json_done(&im->doc);
    arena_done(&im->arena);
    free(im->specs);
    free(im->results);
}

static void progress(struct import *im)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (!meter_due(&im->meter))
        return;
    if (im->size)
        str_addf(&s, "%3d %%  ", (int)(im->in.bytes * 100 / im->size));
    str_addf(&s, "%lld line%s, %lld added, %lld known, %.0f/s", (long long)im->in.number,
             im->in.number == 1 ? "" : "s", (long long)im->added, (long long)im->known,
             meter_per_second(&im->meter, im->added + im->known));
    meter_draw(&im->meter, str_sv(&s));
}

static int flush(struct import *im, struct pawl_err *err)
{
    if (!im->n)
        return 0;
    struct boot start = clock_boot();
    int rc = store_enqueue(im->c->store, im->specs, im->n, DUPLICATE_SKIP, im->results, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < im->n; i++)
        if (im->results[i].outcome == ADD_CREATED)
            im->added++;
        else
            im->known++;
    batch_adapt(&im->batch, im->c, im->n, DUR_US(clock_boot().us - start.us));
    im->n = 0;
    arena_reset(&im->arena);
    progress(im);
    return 0;
}

/* Warn once about a kind nobody knows. */
static void check_kind(struct import *im, struct sv kind)
{
    for (size_t i = im->n_kinds; i-- > 0;)
        if (sv_eq(kind, sv_of(im->kinds[i])))
            return;
    if (im->n_kinds == KINDS_SEEN_MAX)
        return;
    im->kinds[im->n_kinds++] = mem_dup(kind.p, kind.n);
    kind_warn(im->c, kind);
}

static int bad_line(struct import *im, struct pawl_err *err)
{
    im->bad++;
    err_wrap(err, "%s:%lld", im->in.name, (long long)im->in.number);
    if (im->skip_bad && err->code == PAWL_EINPUT) { /* else no line is to blame */
        if (im->bad <= BAD_SHOWN)
            cli_warn(im->c, "%s", err->msg);
        return 0;
    }
    struct pawl_err why = *err;
    int rc = flush(im, err); /* what came before the bad line counts */
    if (rc < 0)
        return rc;
    *err = why;
    if (err->code != PAWL_EINPUT) /* its hint says what to do */
        return err->code;
    return err_hint(err, "%lld line%s added before it%s", (long long)im->added,
                    im->added == 1 ? "" : "s", im->known ? ", the others were known" : "");
}

static int read_job(struct import *im, struct sv line, struct pawl_err *err)
{
    struct job_spec spec = im->fallback;
    if (json_parse(&im->doc, line, err) < 0 ||
        job_spec_from_json(&im->doc, 0, clock_wall(), &im->arena, &spec, err) < 0 ||
        cli_complete(im->c, &spec, &im->arena, err) < 0)
        return bad_line(im, err);
    check_kind(im, spec.kind);
    im->specs[im->n++] = spec;
    return im->n >= im->batch.size ? flush(im, err) : 0;
}

/* One step of reading; *end is set when there is nothing more to do. */
static int step(struct import *im, bool *end, struct pawl_err *err)
{
    struct sv line;
    if (im->limit && im->in.number >= im->limit) {
        *end = true;
        return flush(im, err);
    }
    switch (lines_next(&im->in, &line)) {
    case LINES_ONE:
        line = sv_trim(line);
        return line.n ? read_job(im, line, err) : 0;
    case LINES_TOO_LONG:
        err_set(err, PAWL_EINPUT, "the line is longer than %d bytes", LINE_MAX_BYTES);
        return bad_line(im, err);
    case LINES_NEED:
        if (flush(im, err) < 0)
            return err->code;
        return lines_refill(&im->in, err);
    default:
        *end = true;
        return flush(im, err);
    }
}

static void print_json(const struct import *im)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "lines", im->in.number);
    jw_kint(&w, "added", im->added);
    jw_kint(&w, "known", im->known);
    jw_kint(&w, "bad", im->bad);
    jw_kms(&w, "took_ms", meter_elapsed(&im->meter));
    jw_end_object(&w);
    out_object(&im->c->out, str_sv(&s));
}

static void summarize(const struct import *im)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    meter_end(&im->meter);
    if (out_is_json(&im->c->out))
        print_json(im);
    str_addf(&s, "%lld added, %lld known", (long long)im->added, (long long)im->known);
    if (im->bad)
        str_addf(&s, ", %lld bad line%s left out", (long long)im->bad, im->bad == 1 ? "" : "s");
    str_adds(&s, " in ");
    dur_human(meter_elapsed(&im->meter), &s);
    str_addf(&s, " (%.0f/s)", meter_per_second(&im->meter, im->added + im->known));
    cli_say(im->c, "%s%s", cli_signal() ? "interrupted: " : "", str_cstr(&s));
}

static int import_all(struct import *im, struct pawl_err *err)
{
    bool end = false;
    int rc = 0;
    cli_catch_signals();
    meter_start(&im->meter, im->c);
    while (rc == 0 && !end && !cli_signal())
        rc = step(im, &end, err);
    if (rc < 0) {
        meter_end(&im->meter);
        if (out_is_json(&im->c->out))
            print_json(im);
        if (!err->hint[0] && (im->added || im->known))
            err_hint(err, "%lld line%s added before", (long long)im->added,
                     im->added == 1 ? " was" : "s were");
        return rc;
    }
    summarize(im);
    if (cli_signal())
        im->c->exit_status = 128 + cli_signal();
    return 0;
}

static int open_input(const char *name, struct import *im, int *fd, struct pawl_err *err)
{
    struct stat st;
    if (strcmp(name, "-") != 0)
        *fd = open(name, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return err_errno(err, errno == ENOENT ? PAWL_ENOTFOUND : PAWL_EINPUT, errno, "%s", name);
    if (fstat(*fd, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, PAWL_EINPUT, "%s: is a folder", name);
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        im->size = st.st_size;
    lines_init(&im->in, *fd, *fd == STDIN_FILENO ? "stdin" : name);
    return 0;
}

static void set_fallback(const struct cli *c, struct job_spec *s)
{
    *s = job_spec_default();
    if (args_has(&c->args, "queue"))
        s->queue = sv_of(args_get(&c->args, "queue"));
    if (args_has(&c->args, "kind"))
        s->kind = sv_of(args_get(&c->args, "kind"));
}

static int run(struct cli *c, struct pawl_err *err)
{
    const char *name = c->args.pos[0];
    AUTO_FD int opened = -1;
    int fd = STDIN_FILENO;
    AUTO(import_done) struct import im = {.c = c};
    batch_init(&im.batch);
    arena_init(&im.arena);
    set_fallback(c, &im.fallback);
    im.skip_bad = args_has(&c->args, "skip-bad");
    if (args_int(&c->args, "limit", 1, INT64_MAX / 2, &im.limit, err) < 0)
        return PAWL_EUSAGE;
    int rc = job_spec_check(&im.fallback, err);
    if (rc == 0)
        rc = open_input(name, &im, &fd, err);
    opened = fd == STDIN_FILENO ? -1 : fd;
    if (rc == 0)
        rc = cli_open(c, STORE_CREATE, err);
    if (rc < 0)
        return rc;
    im.specs = mem_zalloc(BATCH_MAX + 1, sizeof(*im.specs));
    im.results = mem_zalloc(BATCH_MAX + 1, sizeof(*im.results));
    return import_all(&im, err);
}

const struct cmd cmd_import = {
    .name = "import",
    .usage = "FILE|- [OPTION]…",
    .about =
        "Adds one job for every line of FILE, a JSON object each with the fields queue, kind, "
        "key, host, lock, priority, payload, max_attempts, timeout, at, in. An unknown field is "
        "refused with its line; what was added before stays. Lines whose key is known add "
        "nothing, so an import that was interrupted is simply run again.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
