/* The preflight of a kind: is the program there that its jobs will run, and does the configured
 * command, run as they would be, exit 0? */
#include "exec_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct checking {
    struct kind_check *check;
    struct exec_attempt what;
    struct arena arena;
    struct exec_control control; /* what it says on descriptor 3 does not count */
    struct process *process;
};

static void checking_free(struct checking *x)
{
    exec_control_done(&x->control);
    arena_done(&x->arena);
    free(x);
}

/* ---- the program of the jobs ---- */

static const char *path_of(const struct exec_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (!strncmp(env->v[i], "PATH=", 5))
            return env->v[i] + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

static int executable(int dir, const char *path)
{
    struct stat st;
    if (fstatat(dir, path, &st, 0) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return faccessat(dir, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

/* As the supervisor looks it up: in the PATH of the job's environment. 0 or an errno; the one that
 * says most. */
static int find_program(int dir, const char *name, const struct exec_env *env, struct arena *a)
{
    int error = ENOENT;
    if (strchr(name, '/'))
        return executable(dir, name);
    for (struct sv rest = sv_of(path_of(env)); rest.p;) {
        struct sv folder = sv_cut(rest, ':', &rest);
        AUTO_STR struct str path = STR_INIT(STR_LINE);
        str_add(&path, folder.n ? folder : SV("."));
        str_addc(&path, '/');
        str_adds(&path, name);
        int found = executable(dir, arena_strndup(a, str_cstr(&path), path.len));
        if (found == 0)
            return 0;
        error = found == EACCES ? EACCES : error;
    }
    return error;
}

/* What keeps the kind's own command from starting, into `why`; nothing if it would. */
static void judge_program(const struct kind_conf *kind, const struct exec_env *env, struct arena *a,
                          struct str *why)
{
    int dir = AT_FDCWD;
    if (!kind->command.n)
        return;
    if (kind->cwd)
        dir = open(kind->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && dir != AT_FDCWD) {
        str_addf(why, "cannot enter the working directory: %s (%s)", kind->cwd, strerror(errno));
        return;
    }
    const char *name = kind->command.v[0];
    int error = find_program(dir, name, env, a);
    if (error)
        str_addf(why, "%s: %s (%s)",
                 error == ENOENT ? "program not found" : "cannot execute the program", name,
                 strerror(error));
    if (dir >= 0)
        close(dir);
}

/* ---- the command ---- */

static void on_line(void *arg, struct sv line, int64_t at, bool too_long)
{
    (void)arg, (void)line, (void)at, (void)too_long;
}

static void on_end(void *arg, const struct process_report *report)
{
    struct checking *x = arg;
    struct kind_check *c = x->check;
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    struct run_result result = exec_result(&x->what, report, &x->control, &text);
    struct sv why = result.reason.n ? result.reason : SV("it was ended");
    c->state = NULL;
    c->finish(c, result.end == RUN_DONE, result.end == RUN_DONE ? SV_NONE : why);
    checking_free(x);
}

static int spawn(struct exec_handler *self, struct checking *x, const struct kind_conf *kind,
                 struct exec_env *env, struct pawl_err *err)
{
    struct process_spec spec = {.log_dir = -1};
    exec_from_kind(self, kind, &spec, env);
    spec.argv = exec_argv(&x->arena, &kind->preflight);
    spec.timeout = x->check->timeout;
    spec.idle_timeout = spec.grace = DUR_US(0);
    spec.env = env->v;
    x->what.program = spec.argv[0];
    x->what.cwd = spec.cwd;
    const struct process_events events = {.on_line = on_line, .on_exit = on_end, .arg = x};
    return process_spawn(self->zygote, self->loop, &spec, &events, &x->process, err);
}

static struct checking *checking_new(struct kind_check *c)
{
    struct checking *x = mem_zalloc(1, sizeof(*x));
    x->check = c;
    x->what = (struct exec_attempt){.timeout = c->timeout, .plain = true};
    arena_init(&x->arena);
    exec_control_init(&x->control, NULL, &x->arena);
    return x;
}

void exec_check(struct handler *h, struct kind_check *c)
{
    struct exec_handler *self = (struct exec_handler *)h;
    const struct kind_conf *kind = config_kind(self->config, c->kind);
    struct pawl_err err = {0};
    AUTO_STR struct str why = STR_INIT(STR_LINE);
    struct checking *x = checking_new(c);
    struct exec_env env = {.arena = &x->arena};
    exec_env_begin(&env, &self->inherited);
    for (size_t i = 0; i < kind->env.n; i++)
        exec_env_set(&env, kind->env.v[i]);
    judge_program(kind, &env, &x->arena, &why);
    if (!why.len && kind->preflight.n && spawn(self, x, kind, &env, &err) < 0)
        str_adds(&why, err.msg);
    exec_env_done(&env);
    if (x->process) {
        c->state = x;
        return;
    }
    checking_free(x);
    c->finish(c, !why.len, str_sv(&why));
}

void exec_check_cancel(struct handler *h, struct kind_check *c)
{
    (void)h;
    struct checking *x = c->state;
    if (x)
        process_cancel(x->process, true);
}
