/* pawl export: what was kept, newest of each job and name. */
#include "artifacts_out.h"
#include "export.h"
#include "export_warc.h"
#include "meter.h"
#include "words.h"

enum { PAGE = 1000 }; /* rows of one look into the store */

static const struct opt opts[] = {
    {"queue", 0, "QUEUE", "artifacts of jobs of this queue"},
    {"name", 0, "VARIANT", "artifacts of this name"},
    {"format", 0, "FORMAT", "ndjson, sha256sum, files, warc or cdxj; ndjson unless given",
     .choices = "ndjson|sha256sum|files|warc|cdxj"},
    {"to", 0, "DIR", "with --format files: the folder they are written into"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl fetch http://127.0.0.1:8080/a http://127.0.0.1:8080/b", "two jobs for 'pawl run'"},
    {"pawl export >index.ndjson", "a line for each body: url, variant, status, sha256, path …"},
    {"pawl export --name body --format sha256sum >sums", "for sha256sum -c"},
    {"pawl export --queue fetch --format files --to pages", "copies, decompressed"},
    {"pawl export --format warc >pages.warc.gz", "one archive of all of it"},
    {"pawl export --format cdxj | LC_ALL=C sort >index.cdxj",
     "an index of a packed lake's segments"},
    EXAMPLE_END,
};

enum format { FORMAT_NDJSON, FORMAT_SHA256SUM, FORMAT_FILES, FORMAT_WARC, FORMAT_CDXJ };

struct exporting {
    struct cli *c;
    enum format format;
    const char *to;
    int folder; /* fd of `to`; -1: none */
    struct lake *lake;
    struct meter meter;
    struct str path, line;
    struct export_warc warc;
    int64_t n, bytes;
    int64_t unlisted, unread; /* left out: not in this format; the lake cannot read them */
};

static void exporting_done(struct exporting *x)
{
    lake_close(x->lake);
    if (x->folder >= 0)
        close(x->folder);
    str_done(&x->path);
    str_done(&x->line);
    export_warc_done(&x->warc);
}

/* Neither lines of JSON nor files: text of its own, or bytes. */
static bool is_own(enum format f)
{
    return f == FORMAT_SHA256SUM || f == FORMAT_WARC || f == FORMAT_CDXJ;
}

static void write_line(struct exporting *x, const struct artifact_view *v)
{
    char hex[SHA256_LEN * 2 + 1];
    str_clear(&x->line);
    struct jw w = jw_make(&x->line);
    jw_object(&w);
    jw_kstring_or_null(&w, "url", v->url);
    jw_kstring(&w, "variant", v->a.name);
    jw_kint_or_null(&w, "status", v->status, v->status != 0);
    jw_kstring(&w, "sha256", sha256_text(v->a.sha256, hex));
    jw_kint(&w, "size", v->a.size);
    jw_kstring_or_null(&w, "path", x->path.len ? str_sv(&x->path) : SV_NONE);
    jw_kstring_or_null(&w, "type", v->a.type);
    jw_kstring(&w, "queue", v->queue);
    jw_kint(&w, "job", v->job.v);
    jw_kwall(&w, "fetched_at", v->created_at);
    jw_end_object(&w);
    if (out_is_json(&x->c->out))
        out_item(&x->c->out, str_sv(&x->line));
    else /* lines all the same, but errors are words alone: nobody asked for JSON of those */
        out_object(&x->c->out, str_sv(&x->line));
}

/* As sha256sum -c reads it: a name with a backslash or a line end is escaped and says so. */
static void write_sum(struct exporting *x, const struct artifact_view *v)
{
    char hex[SHA256_LEN * 2 + 1];
    bool odd = strpbrk(str_cstr(&x->path), "\\\n\r") != NULL;
    str_clear(&x->line);
    str_addf(&x->line, "%s%s  ", odd ? "\\" : "", sha256_text(v->a.sha256, hex).p);
    for (size_t i = 0; i < x->path.len; i++) {
        char c = x->path.p[i];
        if (c == '\\' || c == '\n' || c == '\r')
            str_addf(&x->line, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : '\\');
        else
            str_addc(&x->line, c);
    }
    str_addc(&x->line, '\n');
    out_put(&x->c->out, str_sv(&x->line));
}

/* The file in the lake, or none where it is compressed. */
static int find_file(struct exporting *x, const struct artifact_view *v, struct pawl_err *err)
{
    if (v->a.codec != CODEC_NONE)
        return 0;
    int rc = lake_file(x->lake, &v->a, &x->path, err);
    if (rc == PAWL_EINPUT)
        str_clear(&x->path);
    return rc == PAWL_EINPUT ? 0 : rc;
}

static int export_record(struct exporting *x, const struct artifact_view *v, struct pawl_err *err)
{
    bool read = false;
    str_clear(&x->line);
    int rc = x->format == FORMAT_WARC ? export_warc(&x->warc, x->lake, v, &read, err)
                                      : export_cdxj(x->lake, v, &x->line, &read, err);
    if (rc < 0)
        return err_wrap(err, "job %lld, " SV_FMT, (long long)v->job.v, SV_ARG(v->a.name));
    if (!read) {
        x->unread++;
    } else if (x->format == FORMAT_CDXJ && !x->line.len) {
        x->unlisted++;
    } else {
        out_put(&x->c->out, str_sv(&x->line));
        x->n++;
        x->bytes += v->a.size;
    }
    return 0;
}

static int export_one(struct exporting *x, const struct artifact_view *v, struct pawl_err *err)
{
    if (x->format == FORMAT_WARC || x->format == FORMAT_CDXJ)
        return export_record(x, v, err);
    bool read = true;
    str_clear(&x->path);
    int rc = x->format == FORMAT_FILES
                 ? export_file(x->lake, x->folder, x->to, v, &x->path, &read, err)
                 : find_file(x, v, err);
    if (rc < 0)
        return err_wrap(err, "job %lld, " SV_FMT, (long long)v->job.v, SV_ARG(v->a.name));
    x->unread += !read;
    if (!read)
        return 0;
    if (x->format == FORMAT_SHA256SUM && !x->path.len) {
        x->unlisted++;
        return 0;
    }
    x->n++;
    x->bytes += v->a.size;
    if (x->format == FORMAT_SHA256SUM)
        write_sum(x, v);
    else
        write_line(x, v);
    return 0;
}

static void progress(struct exporting *x)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (x->c->out.terminal || !meter_due(&x->meter))
        return;
    words_count(&s, x->n);
    str_adds(&s, " artifacts, ");
    words_bytes(&s, x->bytes);
    meter_draw(&x->meter, str_sv(&s));
}

/* Page by page: the store is not held while the disk is read. */
static int export_page(struct exporting *x, struct artifact_filter *f, bool *more,
                       struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    struct artifact_list l;
    arena_init(&a);
    int rc = artifacts_load(x->c, f, &a, &l, err);
    if (rc == 0 && l.n && !x->lake)
        rc = cli_lake(x->c, &x->lake, err);
    for (size_t i = 0; rc == 0 && i < l.n && !cli_signal() && !x->c->out.failed; i++) {
        rc = export_one(x, &l.v[i], err);
        f->after = l.v[i].id;
        progress(x);
    }
    *more = rc == 0 && l.n == PAGE;
    return rc;
}

static void say_left_out(const struct exporting *x)
{
    if (x->unlisted)
        cli_say(x->c, "%lld %s artifact%s left out; --format %s", (long long)x->unlisted,
                x->format == FORMAT_CDXJ ? "unpacked" : "compressed or packed",
                x->unlisted == 1 ? "" : "s",
                x->format == FORMAT_CDXJ ? "warc has them" : "files writes them");
    if (x->unread)
        cli_warn(x->c, "%lld artifact%s left out: the lake cannot read %s; 'pawl verify' says why",
                 (long long)x->unread, x->unread == 1 ? "" : "s", x->unread == 1 ? "it" : "them");
}

static int export_all(struct exporting *x, struct pawl_err *err)
{
    struct artifact_filter f = {.queue = sv_of(args_get(&x->c->args, "queue")),
                                .name = sv_of(args_get(&x->c->args, "name")),
                                .newest = true,
                                .limit = PAGE};
    bool more = true;
    int rc = 0;
    cli_catch_signals();
    meter_start(&x->meter, x->c);
    while (rc == 0 && more && !cli_signal() && !x->c->out.failed)
        rc = export_page(x, &f, &more, err);
    meter_end(&x->meter);
    if (!is_own(x->format))
        out_items_end(&x->c->out);
    if (rc == 0)
        say_left_out(x);
    x->c->exit_status = cli_signal() ? 128 + cli_signal()
                        : x->unread  ? err_exit_status(PAWL_EFAILED)
                                     : 0;
    return rc;
}

static int read_line(struct exporting *x, struct pawl_err *err)
{
    static const char *const formats[] = {"ndjson", "sha256sum", "files", "warc", "cdxj", NULL};
    struct cli *c = x->c;
    int format = FORMAT_NDJSON;
    if (args_choice(&c->args, "format", formats, &format, err) < 0)
        return PAWL_EUSAGE;
    x->format = (enum format)format;
    x->to = args_get(&c->args, "to");
    if (!x->to != (x->format != FORMAT_FILES)) {
        err_set(err, PAWL_EUSAGE, x->to ? "--to belongs to --format files" : "files: where to?");
        return err_hint(err, "pawl export --format files --to DIR");
    }
    if (is_own(x->format) && out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "--format %s has no -o json", formats[format]);
    if (x->format == FORMAT_WARC && c->out.terminal) {
        err_set(err, PAWL_EUSAGE, "an archive is no text, and standard output is a terminal");
        return err_hint(err, "pawl export --format warc >FILE.warc.gz");
    }
    x->warc.out = &c->out;
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(exporting_done)
    struct exporting x = {
        .c = c, .folder = -1, .path = STR_INIT(STR_LINE), .line = STR_INIT(STR_OUTPUT)};
    int rc = read_line(&x, err);
    if (rc == 0)
        rc = cli_open(c, STORE_READ, err);
    if (rc == 0 && x.to)
        rc = export_folder(x.to, &x.folder, err);
    return rc < 0 ? rc : export_all(&x, err);
}

const struct cmd cmd_export = {
    .name = "export",
    .usage = "[--queue QUEUE] [--name VARIANT] [--format ndjson|sha256sum|warc|cdxj]\n"
             "[--queue QUEUE] [--name VARIANT] --format files --to DIR",
    .about =
        "Lists what jobs have kept, of each job and name the newest. ndjson is one object a line "
        "with url, variant, status, sha256, size, path (null where the lake has it compressed or "
        "packed), "
        "type, queue, job and fetched_at; url and status are null for what was not fetched.\n\n"
        "sha256sum prints lines for sha256sum -c, without those that are compressed or packed. "
        "files writes "
        "each artifact into DIR as JOB-VARIANT with an ending for its type, decompressed, and "
        "prints the lines of ndjson with these paths; a file is complete under its name or not "
        "there.\n\n"
        "warc is an archive in the form WARC/1.1, gzip: of a packed lake the records as they are, "
        "those that others refer to among them; of files records of type resource. cdxj is an "
        "index "
        "of the segments of a packed lake, a line for each artifact, to be sorted bytewise.\n\n"
        "What the lake cannot read is left out of files, warc and cdxj, and told: exit status 1.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
