/* pawl doctor: is the store well, and is its place a good one? */
#include "cli.h"
#include "mem.h"
#include "text.h"
#include "workers_out.h"
#include <stdio.h>
#include <sys/stat.h>

static const struct opt opts[] = {OPT_END};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a store"},
    {"pawl doctor", "examine it"},
    {"pawl doctor --json", "the same for a script"},
    EXAMPLE_END,
};

enum { WAL_LARGE = 256 << 20, CLOCK_APART_S = 60 };

static void tell(struct cli *c, enum advice v, const char *what, const char *fmt, ...)
    PAWL_PRINTF(4, 5);
static void tell(struct cli *c, enum advice v, const char *what, const char *fmt, ...)
{
    static const char *const names[] = {"ok", "warn", "FAIL"};
    static const enum style styles[] = {STYLE_GREEN, STYLE_YELLOW, STYLE_RED};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    char detail[1024], head[8];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    if (v == ADVICE_FAIL)
        c->exit_status = err_exit_status(PAWL_EFAILED);
    if (out_is_json(&c->out)) {
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kstring(&w, "verdict", sv_of(v == ADVICE_FAIL ? "fail" : names[v]));
        jw_kstring(&w, "check", sv_of(what));
        jw_kstring(&w, "detail", sv_of(detail));
        jw_end_object(&w);
        out_item(&c->out, str_sv(&s));
        return;
    }
    snprintf(head, sizeof(head), "%-4s ", names[v]);
    out_styled(&s, c->out.color, styles[v], sv_of(head));
    str_addf(&s, "%s: ", what);
    text_safe(&s, sv_of(detail), 0);
    str_addc(&s, '\n');
    out_put(&c->out, str_sv(&s));
}

static void tell_advice(void *arg, enum advice v, const char *what, struct sv text)
{
    tell(arg, v, what, SV_FMT, SV_ARG(text));
}

/* What only that kind of store has. */
static int check_kind(struct cli *c, struct pawl_err *err)
{
    const struct store_ops *ops = c->store->ops;
    return ops->advise ? ops->advise(c->store, tell_advice, c, err) : 0;
}

static void check_space(struct cli *c, const struct store_info *info)
{
    int64_t free_mib = info->free_bytes >> 20, reserve = c->config->disk_reserve;
    if (c->store->ops->remote) {
        tell(c, ADVICE_OK, "size", "%lld KiB", (long long)(info->bytes >> 10));
        return;
    }
    if (info->free_bytes < 0)
        tell(c, ADVICE_WARN, "free space", "unknown");
    else if (info->free_bytes < reserve)
        tell(c, ADVICE_WARN, "free space", "%lld MiB, less than disk_reserve (%lld MiB)",
             (long long)free_mib, (long long)(reserve >> 20));
    else
        tell(c, ADVICE_OK, "free space", "%lld MiB", (long long)free_mib);
    tell(c, info->log_bytes_pending > WAL_LARGE ? ADVICE_WARN : ADVICE_OK, "size",
         "%lld KiB, write-ahead log %lld KiB", (long long)(info->bytes >> 10),
         (long long)(info->log_bytes_pending >> 10));
}

static int check_info(struct cli *c, struct pawl_err *err)
{
    struct store_info info;
    int rc = c->store->ops->info(c->store, &info, err);
    if (rc < 0)
        return rc;
    tell(c, ADVICE_OK, "store", "%s %s at %s", info.kind, info.version, info.location);
    tell(c, info.schema == info.schema_known ? ADVICE_OK : ADVICE_WARN, "schema",
         "%d, this pawl knows %d", info.schema, info.schema_known);
    if (info.durability == DURABILITY_FULL)
        tell(c, ADVICE_OK, "durability", "full: what was accepted survives power loss");
    else
        tell(c, ADVICE_WARN, "durability", "relaxed: a power loss takes the last seconds");
    check_space(c, &info);
    return check_kind(c, err);
}

static void check_integrity(struct cli *c)
{
    AUTO_STR struct str found = STR_INIT(STR_OUTPUT);
    struct pawl_err err;
    if (c->store->ops->check(c->store, &found, &err) < 0) {
        tell(c, ADVICE_FAIL, "integrity", "%s", err.msg);
        return;
    }
    if (!found.len)
        tell(c, ADVICE_OK, "integrity", "no errors");
    struct sv rest = str_sv(&found);
    while (rest.n) {
        struct sv line = sv_cut(rest, '\n', &rest);
        if (line.n)
            tell(c, ADVICE_FAIL, "integrity", SV_FMT, SV_ARG(line));
    }
}

static void check_logs(struct cli *c)
{
    struct pawl_err err;
    struct stat st;
    int fd;
    int rc = c->store->ops->log_dir(c->store, &fd, &err);
    if (rc == PAWL_ENOTFOUND)
        tell(c, ADVICE_OK, "log folder", "not there yet: no job has run here");
    else if (rc < 0)
        tell(c, ADVICE_FAIL, "log folder", "%s", err.msg);
    else if (fstat(fd, &st) == 0 && (st.st_mode & 022))
        tell(c, ADVICE_WARN, "log folder", "others may write in it (mode %o)",
             (unsigned)st.st_mode & 0777);
    else
        tell(c, ADVICE_OK, "log folder", "there, mode %o", (unsigned)st.st_mode & 0777);
}

static int check_workers(struct cli *c, struct pawl_err *err)
{
    struct arena a;
    struct status_view s;
    size_t alive = 0;
    arena_init(&a);
    int rc = c->store->ops->status(c->store, WORKERS_RUNNING_MAX, &a, &s, err);
    for (size_t i = 0; rc == 0 && i < s.n_sessions; i++) {
        const struct session_view *v = &s.sessions[i];
        int64_t held = worker_running(&s, v);
        alive += v->alive;
        if (!v->alive)
            tell(c, ADVICE_WARN, "worker",
                 "'" SV_FMT "' is dead and holds %lld job%s until a worker sweeps it up: pawl run",
                 SV_ARG(v->name), (long long)held, held == 1 ? "" : "s");
    }
    if (rc == 0)
        tell(c, ADVICE_OK, "workers", "%zu alive", alive);
    arena_done(&a);
    return rc;
}

static void check_clock(struct cli *c)
{
    if (c->store->ops->remote)
        return; /* its advice says it */
    int64_t apart = c->store->ops->now(c->store).us - clock_wall().us;
    int64_t s = (apart < 0 ? -apart : apart) / 1000000;
    if (s > CLOCK_APART_S)
        tell(c, ADVICE_WARN, "clock",
             "the store's clock and the wall clock are %lld s apart: the "
             "wall clock was set since the machine started",
             (long long)s);
    else
        tell(c, ADVICE_OK, "clock", "store and wall clock agree");
}

static int examine(struct cli *c, struct pawl_err *err)
{
    int rc = check_info(c, err);
    if (rc == 0)
        check_integrity(c);
    if (rc == 0)
        check_logs(c);
    if (rc == 0)
        rc = check_workers(c, err);
    if (rc == 0)
        check_clock(c);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    tell(c, ADVICE_OK, "pawl", "%s", PAWL_VERSION);
    int rc = cli_config(c, NULL, 0, err);
    if (rc < 0)
        return rc;
    tell(c, ADVICE_OK, "configuration", "%s", c->config->file ? c->config->file : "no file");
    rc = cli_open(c, STORE_READ, err);
    if (rc == PAWL_ENOTFOUND || rc == PAWL_EUSAGE)
        return rc;
    if (rc < 0)
        tell(c, ADVICE_FAIL, "store", "%s", err->msg);
    else
        rc = examine(c, err);
    if (out_is_json(&c->out))
        out_items_end(&c->out);
    return c->store ? rc : 0;
}

const struct cmd cmd_doctor = {
    .name = "doctor",
    .usage = "",
    .about = "Examines the store and its surroundings: version and schema, the integrity of the "
             "data, log folder, workers, clock; of a file its file system and the free space; of "
             "PostgreSQL versions, dead rows of the hot table and who holds the oldest "
             "transaction. One line a check: ok, warn or FAIL. Exit status 1 if any failed. On a "
             "large store it takes a while.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .run = run,
};
