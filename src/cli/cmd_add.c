/* pawl add: one job. */
#include "cli.h"
#include "follow.h"
#include "job_out.h"
#include "mem.h"
#include "payload.h"
#include <errno.h>
#include <limits.h>

static const struct opt opts[] = {
    {"queue", 0, "QUEUE", "the queue; 'default' unless given"},
    {"kind", 0, "KIND", "what runs it: exec, noop or a kind of the configuration"},
    {"key", 0, "KEY", "your own name for the job, unique in its queue"},
    {"priority", 0, "N", "higher runs first; 0 unless given"},
    {"host", 0, "HOST", "whom the job talks to; as its payload says unless given"},
    {"lock", 0, "LOCK", "of the jobs with this lock one runs at a time"},
    {"in", 0, "DUR", "not before DUR from now"},
    {"at", 0, "TIME", "not before TIME: RFC 3339, HH:MM or @unix"},
    {"timeout", 0, "DUR", "end an attempt that takes longer; 'none' for no limit"},
    {"max-attempts", 0, "N", "fail for good after N attempts"},
    {"cwd", 0, "DIR", "folder the command runs in; the current one unless given"},
    {"env", 0, "K[=V]", "environment of the command; K alone takes your value; repeatable"},
    {"payload", 0, "JSON|@FILE|-", "the job's data, from the line, a file or stdin"},
    {"on-duplicate", 0, "WHAT", "when the key exists: skip, requeue or fail",
     .choices = "skip|requeue|fail"},
    {"follow", 'f', NULL, "print its output until it is finished; its outcome is the exit status"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add -- echo hello", "a command, run in this folder"},
    {"pawl add --queue nightly --key report-1 --priority 5 -- sh -c 'date; uname'",
     "a keyed job: the same line again adds nothing"},
    {"pawl add --lock invoices -- echo first",
     "never at the same time as another job of that lock"},
    {"pawl add --kind noop --payload '{\"sleep\":\"10ms\"}' --in 1s", "another kind, later"},
    {"pawl run -q --queue seen --stop-after 1 & pawl add --queue seen --follow -- echo hello; wait",
     "add and watch, while a worker runs it"},
    EXAMPLE_END,
};

static int add_env(struct jw *w, const char *word, struct pawl_err *err)
{
    struct sv rest;
    struct sv name = sv_cut(sv_of(word), '=', &rest);
    AUTO_STR struct str key = STR_INIT(STR_LINE);
    str_add(&key, name);
    if (name.n == 0)
        return err_set(err, PAWL_EUSAGE, "--env is '%s'; NAME or NAME=VALUE is expected", word);
    if (!rest.p)
        rest = sv_of(getenv(str_cstr(&key)));
    if (!rest.p)
        return err_set(err, PAWL_EUSAGE, "--env %s: not set in your environment", word);
    jw_kstring(w, str_cstr(&key), rest);
    return 0;
}

/* {"command":[…],"cwd":…,"env":{…}} of `-- CMD ARG…`. */
static int exec_payload(const struct cli *c, struct str *out, struct pawl_err *err)
{
    char cwd[PATH_MAX];
    const char *dir = args_get(&c->args, "cwd"), *word;
    if (!realpath(dir ? dir : ".", cwd))
        return err_errno(err, PAWL_EINPUT, errno, "--cwd %s", dir ? dir : ".");
    struct jw w = jw_make(out);
    jw_object(&w);
    jw_name(&w, "command");
    jw_array(&w);
    for (size_t i = 0; i < c->args.n_tail; i++)
        jw_string(&w, sv_of(c->args.tail[i]));
    jw_end_array(&w);
    jw_kstring(&w, "cwd", sv_of(cwd));
    if (args_has(&c->args, "env")) {
        jw_name(&w, "env");
        jw_object(&w);
        for (size_t i = 0; (word = args_nth(&c->args, "env", i)) != NULL; i++)
            if (add_env(&w, word, err) < 0)
                return PAWL_EUSAGE;
        jw_end_object(&w);
    }
    jw_end_object(&w);
    return 0;
}

static int check_combination(const struct cli *c, struct pawl_err *err)
{
    const char *kind = args_get(&c->args, "kind");
    bool command = c->args.has_tail;
    if (args_exclude(&c->args, "in", "at", err) < 0)
        return PAWL_EUSAGE;
    if (command && !c->args.n_tail)
        return err_set(err, PAWL_EUSAGE, "no command after '--'");
    if (command && kind && strcmp(kind, "exec"))
        return err_set(err, PAWL_EUSAGE, "'-- CMD' is a job of kind exec, not %s", kind);
    if (command && args_has(&c->args, "payload"))
        return err_set(err, PAWL_EUSAGE, "--payload and '-- CMD' exclude each other");
    if (args_has(&c->args, "follow") && out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "a log is text: --follow has no -o json");
    if (!command && (args_has(&c->args, "cwd") || args_has(&c->args, "env")))
        return err_set(err, PAWL_EUSAGE, "--cwd and --env belong to '-- CMD'");
    if (!command && !args_has(&c->args, "payload") && (!kind || !strcmp(kind, "exec"))) {
        err_set(err, PAWL_EUSAGE, "nothing to run");
        return err_hint(err, "pawl add -- CMD ARG…, or --kind KIND --payload JSON");
    }
    return 0;
}

static int read_payload(const struct cli *c, struct str *out, struct pawl_err *err)
{
    const char *payload = args_get(&c->args, "payload");
    if (c->args.has_tail)
        return exec_payload(c, out, err);
    if (payload)
        return payload_read(payload, out, err);
    str_adds(out, "null");
    return 0;
}

static int read_time(const struct cli *c, struct job_spec *s, struct pawl_err *err)
{
    const char *at = args_get(&c->args, "at");
    if (!at || wall_parse(sv_of(at), clock_wall(), &s->at, err) == 0)
        return 0;
    err_wrap(err, "--at");
    return err->code = PAWL_EUSAGE;
}

static int read_spec(const struct cli *c, struct job_spec *s, struct pawl_err *err)
{
    int64_t priority = 0, attempts = 0;
    if (args_has(&c->args, "queue"))
        s->queue = sv_of(args_get(&c->args, "queue"));
    if (args_has(&c->args, "kind"))
        s->kind = sv_of(args_get(&c->args, "kind"));
    s->key = sv_of(args_get(&c->args, "key"));
    s->host = sv_of(args_get(&c->args, "host"));
    s->lock = sv_of(args_get(&c->args, "lock"));
    if (args_int(&c->args, "priority", PRIORITY_MIN, PRIORITY_MAX, &priority, err) < 0 ||
        args_int(&c->args, "max-attempts", 1, ATTEMPTS_MAX, &attempts, err) < 0 ||
        args_dur(&c->args, "in", false, &s->delay, err) < 0 ||
        args_dur(&c->args, "timeout", true, &s->timeout, err) < 0 || read_time(c, s, err) < 0)
        return PAWL_EUSAGE;
    if (args_has(&c->args, "timeout") && s->timeout.us == 0)
        return err_set(err, PAWL_EUSAGE, "--timeout is zero; write none for no limit");
    s->priority = (int)priority;
    s->max_attempts = (int)attempts;
    return job_spec_check(s, err);
}

static void print_result(struct cli *c, const struct add_result *r)
{
    static const char *const outcomes[] = {"created",  "exists",  "requeued",
                                           "replaced", "running", "conflict"};
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (args_has(&c->args, "follow")) {
        cli_say(c, "job %lld", (long long)r->id.v);
        return;
    }
    if (!out_is_json(&c->out)) {
        out_putf(&c->out, "%lld\n", (long long)r->id.v);
        return;
    }
    struct jw w = jw_make(&s);
    jw_object(&w);
    jw_kint(&w, "id", r->id.v);
    jw_kbool(&w, "created", r->outcome == ADD_CREATED);
    jw_kstring(&w, "outcome", sv_of(outcomes[r->outcome]));
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static int report(struct cli *c, const struct job_spec *s, const struct add_result *r,
                  struct pawl_err *err)
{
    if (r->outcome == ADD_CONFLICT)
        return err_set(
            err, PAWL_ECONFLICT, "key '" SV_FMT "' is taken in queue '" SV_FMT "': job %lld, %s",
            SV_ARG(s->key), SV_ARG(s->queue), (long long)r->id.v, job_state_name(r->state));
    print_result(c, r);
    if (r->outcome == ADD_RUNNING)
        return err_set(err, PAWL_ECONFLICT, "job %lld is running: left as it is",
                       (long long)r->id.v);
    if (r->outcome == ADD_EXISTS && c->talk && !out_is_json(&c->out))
        cli_say(c, "job %lld has this key already and is %s: nothing added", (long long)r->id.v,
                job_state_name(r->state));
    return 0;
}

/* Its output, however many attempts it takes, then its outcome. Running it is a worker's part. */
static int follow_job(struct cli *c, const struct add_result *r, struct pawl_err *err)
{
    struct follow f = {.c = c, .id = r->id, .tell = true, .all = r->outcome == ADD_CREATED};
    int rc =
        r->outcome == ADD_REQUEUED || r->outcome == ADD_REPLACED ? follow_from_now(&f, err) : 0;
    cli_catch_signals();
    if (rc == 0)
        rc = follow_to_end(&f, -1, err);
    if (rc == 0 && f.finished)
        return job_verdict(c, r->id, err);
    c->exit_status = cli_signal() ? 128 + cli_signal() : 0;
    return rc;
}

static int run(struct cli *c, struct pawl_err *err)
{
    static const char *const duplicates[] = {"skip", "requeue", "fail", NULL};
    AUTO_STR struct str payload = STR_INIT(PAYLOAD_MAX_BYTES + 2);
    AUTO(arena_done) struct arena arena;
    struct job_spec spec = job_spec_default();
    struct add_result result;
    int duplicate = DUPLICATE_SKIP;
    arena_init(&arena);
    if (check_combination(c, err) < 0 ||
        args_choice(&c->args, "on-duplicate", duplicates, &duplicate, err) < 0)
        return PAWL_EUSAGE;
    int rc = read_payload(c, &payload, err);
    if (rc < 0)
        return rc;
    spec.payload = sv_trim(str_sv(&payload));
    rc = read_spec(c, &spec, err);
    if (rc == 0)
        rc = cli_config(c, NULL, 0, err);
    if (rc == 0)
        rc = cli_complete(c, &spec, &arena, err);
    if (rc == 0)
        rc = cli_open(c, STORE_CREATE, err);
    if (rc < 0)
        return rc;
    kind_warn(c, spec.kind);
    rc = store_enqueue(c->store, &spec, 1, (enum on_duplicate)duplicate, &result, err);
    if (rc == 0)
        rc = report(c, &spec, &result, err);
    return rc == 0 && args_has(&c->args, "follow") ? follow_job(c, &result, err) : rc;
}

const struct cmd cmd_add = {
    .name = "add",
    .usage = "[OPTION]… -- CMD [ARG]…\n[OPTION]… --kind KIND [--payload JSON|@FILE|-]",
    .about = "Adds one job and prints its id, nothing else, on standard output. When the id is "
             "printed the job is safe: it survives kill -9 and power loss.\n\n"
             "With '-- CMD' the job is of kind exec: CMD runs in the current folder, without a "
             "shell. A job whose key exists in its queue is not added again: the id of the first "
             "is printed. --on-duplicate requeue runs a finished one again with the new data and "
             "replaces one that has not started; fail refuses with exit status 5.\n\n"
             "With --follow the id goes to standard error and the job's output to standard output, "
             "as a worker runs it, through all attempts. The exit status is 0 for a job that is "
             "done or skipped, 7 for one that failed or was cancelled. Ctrl-C ends the watching, "
             "not the job.",
    .opts = opts,
    .examples = examples,
    .max_args = 0,
    .takes_tail = true,
    .run = run,
};
