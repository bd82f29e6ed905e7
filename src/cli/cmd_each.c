/* pawl each: GNU parallel's common line on a durable queue. */
#include "each.h"
#include "fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { JOBS_MAX = 10000, JOBS_MANY = 256 };

static const struct opt opts[] = {
    {"jobs", 'j', "N|P%", "jobs at a time; one per CPU unless given; 0: 256"},
    {"queue", 0, "QUEUE", "a queue of this name; what else is in it runs too"},
    {"tag", 0, NULL, "the argument and a tab before each line of output"},
    {"keep-order", 'k', NULL, "output in the order of the input"},
    {"halt", 0, "WHEN", "[soon,|now,]fail=N or fail=P%: stop after so many failures"},
    {"joblog", 0, "FILE", "append a line for each job that ended, in GNU parallel's columns"},
    {"dry-run", 0, NULL, "print the commands, run nothing"},
    {"bar", 0, NULL, "progress on stderr"},
    {"eta", 0, NULL, "the same as --bar"},
    {"timeout", 0, "DUR|P%", "end a job after DUR (a number: seconds), or P% of the median"},
    {"retries", 0, "N", "try a job that fails N times in all; once unless given"},
    {"max-attempts", 0, "N", "the same as --retries"},
    {"arg-file", 'a', "FILE", "the same as :::: FILE"},
    {"null", '0', NULL, "inputs in files end with NUL instead of a line feed"},
    {"colsep", 0, "TEXT", "split each input at TEXT into {1} {2} …; \\t is a tab"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl each echo {} ::: a b c", "three jobs, as many at a time as there are CPUs"},
    {"seq 5 | pawl each -j 2 -k --tag 'echo {} | wc -c'", "one word with blanks is for the shell"},
    {"printf 'x.txt\\ny.txt\\n' >names && pawl each touch {} :::: names", "inputs from a file"},
    {"pawl each -k echo {1} and {2/.} ::: a b ::: dir/one.c two.c", "all combinations"},
    {"pawl each --joblog jobs.tsv --halt now,fail=1 --timeout 10s gzip -f {} ::: x.txt y.txt",
     "stop at the first failure"},
    {"pawl each --dry-run mv {} {.}.bak ::: x.txt.gz", "what would run"},
    EXAMPLE_END,
};

/* Everything of one line. */
struct line {
    struct cli *c;
    char cwd[PATH_MAX];
    struct each_template t;
    struct each_inputs in;
    struct each_place place;
    struct each_order order;
    struct each_feed feed;
    struct each_ends ends;
    struct str queue;
    int slots;
    int64_t attempts;
    struct worker_report report;
    struct dur took;
};

static void line_done(struct line *l)
{
    each_template_done(&l->t);
    each_inputs_done(&l->in);
    each_order_done(&l->order);
    each_ends_done(&l->ends);
    str_done(&l->queue);
}

/* ---- options ---- */

static int read_jobs(const struct cli *c, int *out, struct pawl_err *err)
{
    const char *word = args_get(&c->args, "jobs");
    int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN), n = 0;
    struct sv s = sv_of(word);
    cpus = cpus > 0 ? cpus : 1;
    *out = (int)cpus;
    if (!word)
        return 0;
    bool percent = s.n > 1 && s.p[s.n - 1] == '%', offset = s.n && strchr("+-", s.p[0]);
    struct sv digits = sv_make(s.p + offset, s.n - offset - percent);
    if ((percent && offset) || sv_to_i64(digits, 0, JOBS_MAX, &n) < 0)
        return err_set(err, PAWL_EUSAGE, "--jobs is '%s'; N, P%%, +N or -N is expected", word);
    if (percent)
        n = (n * cpus + 99) / 100;
    else if (offset)
        n = s.p[0] == '+' ? cpus + n : cpus - n;
    else if (n == 0)
        n = JOBS_MANY;
    *out = (int)(n < 1 ? 1 : n);
    return 0;
}

static int read_halt(const struct cli *c, struct each_halt *h, struct pawl_err *err)
{
    const char *word = args_get(&c->args, "halt");
    struct sv s = sv_of(word), rest;
    if (!word || !strcmp(word, "never"))
        return 0;
    h->when = HALT_SOON;
    if (sv_starts(s, SV("now,")) || sv_starts(s, SV("soon,"))) {
        h->when = s.p[0] == 'n' ? HALT_NOW : HALT_SOON;
        sv_cut(s, ',', &rest);
        s = rest;
    }
    bool good = sv_starts(s, SV("fail="));
    s = good ? sv_make(s.p + 5, s.n - 5) : s;
    h->percent = s.n > 1 && s.p[s.n - 1] == '%';
    s.n -= h->percent;
    if (good && sv_to_i64(s, 1, h->percent ? 100 : INT64_MAX / 200, &h->number) == 0)
        return 0;
    return err_set(err, PAWL_EUSAGE,
                   "--halt is '%s'; fail=N or fail=P%%, with 'soon,' or 'now,' before it, is "
                   "expected",
                   word);
}

static int read_timeout(const struct cli *c, struct line *l, struct pawl_err *err)
{
    const char *word = args_get(&c->args, "timeout");
    struct sv s = sv_of(word);
    int64_t n;
    if (!word)
        return 0;
    if (s.n > 1 && s.p[s.n - 1] == '%' &&
        sv_to_i64(sv_make(s.p, s.n - 1), 1, 1000000, &l->ends.limit_percent) == 0)
        return 0;
    if (sv_to_i64(s, 1, DUR_MAX_US / 1000000, &n) == 0) {
        l->feed.timeout = DUR_S(n);
        return 0;
    }
    if (dur_parse(s, false, &l->feed.timeout, NULL) == 0 && l->feed.timeout.us > 0)
        return 0;
    return err_set(err, PAWL_EUSAGE,
                   "--timeout is '%s'; a length such as 10s, or 200%% of the median, is expected",
                   word);
}

static int read_options(struct line *l, struct pawl_err *err)
{
    struct cli *c = l->c;
    l->attempts = 1;
    if (out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "each prints what its jobs print: it has no -o json");
    if (args_exclude(&c->args, "retries", "max-attempts", err) < 0 ||
        args_int(&c->args, "retries", 1, ATTEMPTS_MAX, &l->attempts, err) < 0 ||
        args_int(&c->args, "max-attempts", 1, ATTEMPTS_MAX, &l->attempts, err) < 0 ||
        read_jobs(c, &l->slots, err) < 0 || read_halt(c, &l->ends.halt, err) < 0 ||
        read_timeout(c, l, err) < 0)
        return PAWL_EUSAGE;
    l->ends.tag = args_has(&c->args, "tag");
    l->ends.order = args_has(&c->args, "keep-order") ? &l->order : NULL;
    return 0;
}

/* The command ends where the inputs begin. */
static int read_words(struct line *l, struct pawl_err *err)
{
    char *const *words = l->c->args.tail;
    size_t n = 0;
    while (n < l->c->args.n_tail && strncmp(words[n], ":::", 3) != 0)
        n++;
    if (!getcwd(l->cwd, sizeof(l->cwd)))
        return err_errno(err, PAWL_EIO, errno, "cannot tell the working directory");
    each_template_init(&l->t, words, n, sv_of(l->cwd));
    return each_inputs_init(&l->in, words + n, l->c->args.n_tail - n, &l->c->args, err);
}

static int open_joblog(struct line *l, struct pawl_err *err)
{
    static const char header[] =
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
    const char *path = args_get(&l->c->args, "joblog");
    struct stat st;
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, PAWL_EINPUT, errno, "cannot open the job log %s", path);
    l->ends.joblog = fd;
    if (fstat(fd, &st) == 0 && st.st_size == 0 && fd_write_all(fd, header, sizeof(header) - 1) < 0)
        return err_errno(err, PAWL_EIO, errno, "cannot write the job log %s", path);
    return 0;
}

/* ---- dry run ---- */

static int print_command(void *arg, const struct each_input *in, struct pawl_err *err)
{
    struct line *l = arg;
    AUTO_STR struct str words = STR_INIT(PAYLOAD_MAX_BYTES), text = STR_INIT(PAYLOAD_MAX_BYTES);
    (void)err;
    each_expand(&l->t, in, &words);
    each_show_command(&l->t, str_sv(&words), "{%}", &text);
    str_addc(&text, '\n');
    out_put(&l->c->out, str_sv(&text));
    return 0;
}

/* ---- running ---- */

static int on_ready(void *arg, struct loop *loop, struct pawl_err *err)
{
    struct each_ends *e = arg;
    return each_feed_start(e->feed, loop, err);
}

static void on_over(void *arg)
{
    struct each_ends *e = arg;
    each_feed_stop(e->feed);
}

static enum worker_progress progress_of(const struct cli *c)
{
    if (c->quiet || !(args_has(&c->args, "bar") || args_has(&c->args, "eta")))
        return PROGRESS_NONE;
    return c->talk ? PROGRESS_BAR : PROGRESS_LINES;
}

static void prepare(struct line *l)
{
    const char *queue = args_get(&l->c->args, "queue");
    if (queue)
        str_adds(&l->queue, queue);
    else
        str_addf(&l->queue, "each-%s", l->t.hash);
    l->feed.c = l->ends.c = l->c;
    l->feed.t = &l->t;
    l->feed.in = &l->in;
    l->feed.order = l->ends.order;
    l->feed.queue = str_sv(&l->queue);
    l->feed.cwd = l->cwd;
    l->feed.max_attempts = (int)l->attempts;
    l->ends.feed = &l->feed;
}

static int drain(struct line *l, struct pawl_err *err)
{
    static const char *const kinds[] = {"exec"};
    char pool[] = "exec"; /* not "*": the configuration may have a pool for exec */
    struct cli *c = l->c;
    struct logger log = {.fd = STDERR_FILENO, .level = c->verbose ? LOG_INFO : LOG_WARN};
    struct pool_conf pools[] = {{pool, l->slots}};
    const struct sv queues[] = {str_sv(&l->queue)};
    struct run_request req = {.config = c->config,
                              .pools = pools,
                              .n_pools = 1,
                              .queues = queues,
                              .n_queues = 1,
                              .kinds = kinds,
                              .n_kinds = 1,
                              .drain = true,
                              .patience = DUR_NONE,
                              .log = &log,
                              .progress = progress_of(c),
                              .plain = true,
                              .guest = &l->ends.guest,
                              .on_ready = on_ready,
                              .on_over = on_over};
    struct boot start = clock_boot();
    int rc = c->app->run_worker(&req, &l->report, err);
    l->took = DUR_US(clock_boot().us - start.us);
    each_ends_flush(&l->ends);
    return rc;
}

/* ---- the end ---- */

static void say_summary(const struct line *l)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    const struct each_ends *e = &l->ends;
    str_addf(&s, "pawl: %lld done", (long long)e->done);
    if (l->feed.before)
        str_addf(&s, ", %lld done before", (long long)l->feed.before);
    str_adds(&s, " in ");
    dur_human(l->took, &s);
    cli_say(l->c, "%s", str_cstr(&s));
}

/* By this run, or by another worker on the same queue meanwhile. */
static int64_t failures(const struct line *l)
{
    bool own = !args_has(&l->c->args, "queue");
    return own && l->report.failed > l->ends.failed ? l->report.failed : l->ends.failed;
}

static int conclude(struct line *l, struct pawl_err *err)
{
    int64_t failed = failures(l), total = l->feed.total, done = l->ends.done + l->feed.before;
    if (l->report.signal) {
        cli_say(l->c, "pawl: interrupted; run the same line again to go on");
        l->c->exit_status = 128 + l->report.signal;
        return 0;
    }
    if (l->feed.err.code) {
        *err = l->feed.err;
        return err->code;
    }
    if (failed) {
        err_set(err, PAWL_EJOBS_FAILED, "%lld of %lld job%s failed, %lld done%s", (long long)failed,
                (long long)total, total == 1 ? "" : "s", (long long)done,
                l->ends.halted_at ? ", the others were not started" : "");
        return err_hint(err, "the same line again %s",
                        l->ends.halted_at ? "goes on" : "repeats them");
    }
    if (l->report.stuck) {
        err_set(err, PAWL_ETIMEOUT, "%lld job%s cannot go on by themselves",
                (long long)l->report.stuck, l->report.stuck == 1 ? "" : "s");
        return err_hint(err, "is the queue %s paused?", str_cstr(&l->queue));
    }
    return 0; /* output that reached nobody: cli_main tells */
}

static int run_line(struct line *l, struct pawl_err *err)
{
    int rc = each_place_init(&l->place, l->c, &l->t, l->attempts, err);
    if (rc == 0 && !args_has(&l->c->args, "queue"))
        rc = each_place_clear(l->c, str_sv(&l->queue), err);
    if (rc == 0)
        rc = drain(l, err);
    if (rc == 0)
        rc = conclude(l, err);
    if (rc == 0)
        say_summary(l);
    bool well = rc == 0 && l->c->exit_status == 0 && !l->c->out.failed;
    each_place_done(&l->place, l->c, well);
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(line_done) struct line l = {.c = c, .queue = STR_INIT(STR_LINE)};
    each_order_init(&l.order);
    each_ends_init(&l.ends);
    int rc = read_options(&l, err);
    if (rc == 0)
        rc = read_words(&l, err);
    if (rc < 0)
        return rc;
    if (args_has(&c->args, "dry-run"))
        return each_inputs_walk(&l.in, print_command, NULL, &l, err);
    if (l.in.source[0].file && !strcmp(l.in.source[0].file, "-") && isatty(STDIN_FILENO))
        cli_say(c, "pawl: reading inputs from the terminal; Ctrl-D ends them");
    prepare(&l);
    rc = open_joblog(&l, err);
    return rc < 0 ? rc : run_line(&l, err);
}

const struct cmd cmd_each = {
    .name = "each",
    .usage = "[OPTION]… [--] CMD [ARG]… [::: INPUT… | :::: FILE…]…",
    .about =
        "Runs CMD once for each input, as GNU parallel does, but every job is kept in a store: "
        "after a crash, kill -9 or Ctrl-C the same line again goes on, in whatever order the "
        "inputs come; what was done is not run again, what failed or is new is.\n\n"
        "Inputs follow ::: or are the lines of the files after :::: (- is standard input), else "
        "of standard input. Several sources give all combinations. In CMD {} is the input, {.} "
        "without its ending, {/} its last part, {//} its folder, {/.} the last part without "
        "ending, {1} {2} {1.} … those of one source or column, {#} its number, {%} the number of "
        "the slot it runs in. Where none of them occurs {} is added at the end. Without CMD each "
        "input is a line for sh.\n\n"
        "Several words are a program and its arguments, never read by a shell. A CMD of one word "
        "that holds blanks or characters special to the shell is run by sh -c, every value put in "
        "quoted. (GNU parallel gives both to a shell.) Jobs get the whole environment and an empty "
        "standard input.\n\n"
        "What a job wrote, standard output and error together, is printed when it has ended, never "
        "mixed with another's. Jobs are tried once unless --retries says more, with the pauses of "
        "retry.base.\n\n"
        "--halt soon lets running jobs end, now ends them (they run again next time); a percentage "
        "is of all inputs and needs three failures. --timeout P% holds for jobs that start after "
        "three were done.\n\n"
        "The store is the one that --store, PAWL_STORE or the configuration names, or ./pawl.db if "
        "there is one: a line whose jobs are done there has nothing to do. Otherwise it is a "
        "private one in the state folder ($XDG_STATE_HOME or ~/.local/state, pawl/each-…), removed "
        "when all inputs ended well. The queue is each-… after the command and the folder; inputs "
        "of an earlier run that are not given any more do not run.\n\n"
        "Exit status 0: all done. 7: some failed. 5: the same command is running here already. "
        "130, 143: interrupted, state saved.",
    .opts = opts,
    .examples = examples,
    .max_args = -1,
    .takes_tail = true,
    .tail_anyway = true,
    .run = run,
};
