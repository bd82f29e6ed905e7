/* pawl bench: what this machine does, in a scratch store. */
#include "bench.h"
#include "mem.h"
#include "table.h"
#include <sys/resource.h>

enum { JOBS_MAX = 100000000, LATENCY_MAX = 100000 };

static const struct opt opts[] = {
    {"jobs", 0, "N", "how many jobs; drain 100000, exec 1000, latency 100 unless given"},
    {"lanes", 0, "N", "drain: over N hosts"},
    {"interleaved", 0, NULL, "drain: hosts take turns instead of following one another"},
    {"slots", 'j', "N", "jobs at a time; drain 1000, exec one per CPU unless given"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl bench drain --jobs 2000", "adding and running jobs that do nothing"},
    {"pawl bench exec --jobs 50 -j 2 --json", "running /bin/true"},
    {"pawl bench latency --jobs 5", "from commit in one process to start in another"},
    EXAMPLE_END,
};

/* One figure of the result. */
static void put(struct cli *c, struct jw *w, struct table *t, const char *name, double v,
                int places)
{
    if (out_is_json(&c->out)) {
        jw_name(w, name);
        jw_double(w, v, places);
        return;
    }
    AUTO_STR struct str s = STR_INIT(64);
    str_addf(&s, "%.*f", places, v);
    table_text(t, sv_of(name));
    table_text(t, str_sv(&s));
}

struct figure {
    const char *name;
    double value;
    int places;
};

static void report(struct cli *c, const struct figure *f, size_t n)
{
    static const struct column columns[] = {{"MEASURE", false, 0, false},
                                            {"VALUE", true, 0, false}};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    struct table t;
    bool json = out_is_json(&c->out);
    if (json)
        jw_object(&w);
    else
        table_begin(&t, &c->out, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++)
        put(c, &w, &t, f[i].name, f[i].value, f[i].places);
    if (json) {
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
    } else {
        table_end(&t);
    }
}

static double per_second(int64_t jobs, struct dur took)
{
    return took.us > 0 ? (double)jobs * 1e6 / (double)took.us : 0;
}

static double peak_rss(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024;
}

static int fill_and_drain(struct bench *b, const struct bench_jobs *j, int64_t slots,
                          struct pawl_err *err)
{
    struct dur fill = DUR_NONE, drain = DUR_NONE;
    int rc = bench_fill(b, j, &fill, err);
    if (rc == 0)
        rc = bench_drain(b, j->kind, (int)slots, j->jobs, &drain, err);
    struct store_effort effort = {0};
    if (rc == 0)
        rc = bench_effort(b, &effort, err);
    if (rc < 0)
        return rc;
    double jobs = (double)j->jobs;
    struct figure figures[] = {
        {"jobs", (double)j->jobs, 0},
        {"lanes", j->lanes ? (double)j->lanes : 1, 0},
        {"slots", (double)slots, 0},
        {"enqueue_per_s", per_second(j->jobs, fill), 1},
        {"drain_per_s", per_second(j->jobs, drain), 1},
        {"enqueue_ms", (double)fill.us / 1000, 1},
        {"drain_ms", (double)drain.us / 1000, 1},
        {"rss_bytes", peak_rss(), 0},
        {"rows_per_job", (double)effort.rows / jobs, 2},
        {"statements_per_job", (double)effort.statements / jobs, 2},
        {"fsyncs_per_job", (double)effort.syncs / jobs, 5},
    };
    report(b->c, figures, ARRAY_LEN(figures));
    return 0;
}

static int drain(struct bench *b, struct pawl_err *err)
{
    const struct args *a = &b->c->args;
    struct bench_jobs j = {.kind = "noop", .payload = "null", .jobs = 100000};
    int64_t slots = 1000;
    j.interleaved = args_has(a, "interleaved");
    if (args_int(a, "jobs", 1, JOBS_MAX, &j.jobs, err) < 0 ||
        args_int(a, "lanes", 1, JOBS_MAX, &j.lanes, err) < 0 ||
        args_int(a, "slots", 1, 100000, &slots, err) < 0)
        return PAWL_EUSAGE;
    if (j.interleaved && !j.lanes)
        return err_set(err, PAWL_EUSAGE, "--interleaved has no effect without --lanes");
    return fill_and_drain(b, &j, slots, err);
}

static int exec(struct bench *b, struct pawl_err *err)
{
    const struct args *a = &b->c->args;
    struct bench_jobs j = {
        .kind = "exec", .payload = "{\"command\":[\"/bin/true\"]}", .jobs = 1000};
    int64_t slots = sysconf(_SC_NPROCESSORS_ONLN);
    if (args_int(a, "jobs", 1, JOBS_MAX, &j.jobs, err) < 0 ||
        args_int(a, "slots", 1, 100000, &slots, err) < 0)
        return PAWL_EUSAGE;
    return fill_and_drain(b, &j, slots, err);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int latency(struct bench *b, struct pawl_err *err)
{
    int64_t n = 100;
    if (args_int(&b->c->args, "jobs", 1, LATENCY_MAX, &n, err) < 0)
        return PAWL_EUSAGE;
    AUTO_FREE int64_t *v = mem_zalloc((size_t)n, sizeof(*v));
    int rc = bench_latency(b, v, (size_t)n, err);
    if (rc < 0)
        return rc;
    qsort(v, (size_t)n, sizeof(*v), by_value);
    struct figure figures[] = {
        {"jobs", (double)n, 0},
        {"p50_ms", (double)v[n / 2] / 1000, 3},
        {"p99_ms", (double)v[n * 99 / 100] / 1000, 3},
        {"max_ms", (double)v[n - 1] / 1000, 3},
    };
    report(b->c, figures, ARRAY_LEN(figures));
    return 0;
}

/* An option that the measurement does not use is refused, not ignored. */
static int check_options(const struct cli *c, const char *verb, struct pawl_err *err)
{
    bool is_drain = !strcmp(verb, "drain");
    if (!is_drain && (args_has(&c->args, "lanes") || args_has(&c->args, "interleaved")))
        return err_set(err, PAWL_EUSAGE, "--lanes and --interleaved belong to bench drain");
    if (!strcmp(verb, "latency") && args_has(&c->args, "slots"))
        return err_set(err, PAWL_EUSAGE, "bench latency has no --slots");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    static const struct {
        const char *name;
        int (*measure)(struct bench *b, struct pawl_err *err);
    } verbs[] = {{"drain", drain}, {"exec", exec}, {"latency", latency}};
    AUTO(bench_done) struct bench b = {0};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (!strcmp(c->args.pos[0], verbs[i].name)) {
            if (check_options(c, verbs[i].name, err) < 0)
                return PAWL_EUSAGE;
            int rc = bench_begin(&b, c, err);
            return rc < 0 ? rc : verbs[i].measure(&b, err);
        }
    err_set(err, PAWL_EUSAGE, "bench: unknown word '%s'", c->args.pos[0]);
    return err_hint(err, "drain, exec or latency");
}

const struct cmd cmd_bench = {
    .name = "bench",
    .usage = "drain [--jobs N] [--lanes N [--interleaved]] [-j N]\nexec [--jobs N] [-j N]\n"
             "latency [--jobs N]",
    .about = "Measures pawl on this machine, in a scratch store beside the configured one, which "
             "is not touched. drain adds N jobs that do nothing and runs them by the real worker; "
             "exec does the same with /bin/true; latency measures from the commit of a job in one "
             "process to its start in an idle worker of another.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
