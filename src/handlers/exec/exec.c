/* The exec handler's operations: payload in, process started, result out. */
#include "exec.h"

#include "exec_parts.h"
#include <unistd.h>

/* One attempt. */
struct exec_run {
    struct run *run;
    struct exec_attempt what;
    struct process *process;
    struct arena arena;
    struct exec_control control;
    bool cancelled;
    struct run_result result; /* while artifacts are being kept */
    struct str text;
};

static struct exec_handler *self_of(const struct handler *h)
{
    return (struct exec_handler *)h;
}

static const struct kind_conf *with_command(const struct kind_conf *kind)
{
    return kind && kind->command.n ? kind : NULL;
}

static int exec_validate(const struct handler *h, struct sv kind, struct sv payload,
                         struct pawl_err *err)
{
    struct exec_handler *self = self_of(h);
    struct exec_payload p;
    struct arena a;
    if (with_command(config_kind(self->config, kind)))
        return 0; /* any JSON is passed on as it is */
    arena_init(&a);
    int rc = exec_payload_read(payload, &a, &p, err);
    arena_done(&a);
    return rc;
}

static void run_free(struct exec_run *x)
{
    exec_control_done(&x->control);
    arena_done(&x->arena);
    str_done(&x->text);
    free(x);
}

static void on_line(void *arg, struct sv line, int64_t at, bool too_long)
{
    struct exec_run *x = arg;
    exec_control_line(&x->control, line, at, too_long);
}

static void finish(void *arg)
{
    struct exec_run *x = arg;
    struct run *r = x->run;
    r->finish(r, &x->result);
    run_free(x);
}

static void on_end(void *arg, const struct process_report *report)
{
    struct exec_run *x = arg;
    x->process = NULL;
    x->text = STR_INIT(64 << 10);
    x->result = exec_result(&x->what, report, &x->control, &x->text);
    bool well = x->result.end == RUN_DONE || x->result.end == RUN_SKIPPED;
    if (well && x->control.n_artifacts)
        exec_keep(&x->control, x->what.cwd, &x->result, &x->text, finish, x);
    else
        finish(x);
}

void exec_from_kind(const struct exec_handler *self, const struct kind_conf *kind,
                    struct process_spec *spec, struct exec_env *env)
{
    spec->grace = self->config->exec_grace;
    spec->no_new_privs = self->config->exec_no_new_privs;
    spec->log_head = self->config->log_head;
    spec->log_tail = self->config->log_tail;
    if (!kind)
        return;
    spec->idle_timeout = kind->idle_timeout;
    spec->cwd = kind->cwd;
    for (size_t i = 0; i < kind->env.n; i++)
        exec_env_set(env, kind->env.v[i]);
}

const char **exec_argv(struct arena *a, const struct string_list *command)
{
    const char **argv = arena_zalloc(a, command->n + 1, sizeof(*argv));
    for (size_t i = 0; i < command->n; i++)
        argv[i] = command->v[i];
    return argv;
}

static int from_payload(struct exec_run *x, struct process_spec *spec, struct exec_env *env,
                        struct pawl_err *err)
{
    struct exec_payload p;
    struct sv payload = x->run->job->payload;
    if (with_command(x->what.kind)) {
        spec->argv = exec_argv(&x->arena, &x->what.kind->command);
        spec->input = payload;
        return 0;
    }
    int rc = exec_payload_read(payload, &x->arena, &p, err);
    if (rc < 0)
        return rc;
    exec_payload_fill_slot(&p, x->run->slot, &x->arena);
    spec->argv = p.argv;
    spec->input = p.input;
    if (p.cwd)
        spec->cwd = p.cwd;
    for (size_t i = 0; p.env[i]; i++)
        exec_env_set(env, p.env[i]);
    return 0;
}

static int spawn(struct exec_handler *self, struct exec_run *x, struct exec_env *env,
                 struct pawl_err *err)
{
    struct run *r = x->run;
    struct process_spec spec = {
        .timeout = r->timeout, .log_dir = r->log_dir, .log_name = r->log_name};
    exec_env_begin(env, &self->inherited);
    exec_from_kind(self, x->what.kind, &spec, env);
    int rc = from_payload(x, &spec, env, err);
    if (rc < 0)
        return rc;
    exec_env_describe(env, r, clock_wall());
    spec.env = env->v;
    x->what.program = spec.argv[0];
    x->what.cwd = spec.cwd;
    struct process_events events = {.on_line = on_line, .on_exit = on_end, .arg = x};
    return process_spawn(self->zygote, self->loop, &spec, &events, &x->process, err);
}

/* Out of descriptors, or the zygote is dead: not the job's fault, so it costs no attempt. */
static void could_not_spawn(struct run *r, const struct pawl_err *err)
{
    r->finish(r, &(struct run_result){.end = RUN_FAILED,
                                      .cls = CLASS_TRANSIENT,
                                      .reason = sv_of(err->msg),
                                      .exit_code = -1,
                                      .retry_after = DUR_NONE,
                                      .asked = DUR_NONE});
}

static int exec_start(struct handler *h, struct run *r, struct pawl_err *err)
{
    struct exec_handler *self = self_of(h);
    struct pawl_err why = {0};
    struct exec_run *x = mem_zalloc(1, sizeof(*x));
    x->run = r;
    x->what.kind = config_kind(self->config, r->job->kind);
    x->what.timeout = r->timeout;
    x->what.plain = self->plain;
    arena_init(&x->arena);
    exec_control_init(&x->control, r, &x->arena);
    struct exec_env env = {.arena = &x->arena};
    int rc = spawn(self, x, &env, &why);
    exec_env_done(&env);
    if (rc == 0) {
        r->state = x;
        return 0;
    }
    run_free(x);
    if (rc == PAWL_EIO) {
        could_not_spawn(r, &why);
        return 0;
    }
    *err = why;
    return rc;
}

static void exec_cancel(struct handler *h, struct run *r, enum cancel_why why)
{
    (void)h;
    struct exec_run *x = r->state;
    if (!x->process)
        return; /* it has ended, and what it left is being kept */
    process_cancel(x->process, x->cancelled || why == CANCEL_LEASE_LOST);
    x->cancelled = true;
}

static void exec_free(struct handler *h)
{
    struct exec_handler *self = self_of(h);
    exec_env_done(&self->inherited);
    arena_done(&self->arena);
    free(self);
}

void handler_exec_plain(struct handler *h, char *const *environ_)
{
    static char all[] = "*";
    char *names[] = {all};
    const struct string_list every = {names, 1};
    struct exec_handler *self = self_of(h);
    self->plain = true;
    exec_env_inherit(&self->inherited, environ_, &every);
}

struct handler *handler_exec_new(struct zygote *z, struct loop *loop, const struct config *config)
{
    static const struct handler_ops ops = {.name = "exec",
                                           .validate = exec_validate,
                                           .start = exec_start,
                                           .cancel = exec_cancel,
                                           .check = exec_check,
                                           .check_cancel = exec_check_cancel,
                                           .free = exec_free};
    struct exec_handler *self = mem_zalloc(1, sizeof(*self));
    self->base.ops = &ops;
    self->zygote = z;
    self->loop = loop;
    self->config = config;
    arena_init(&self->arena);
    self->inherited.arena = &self->arena;
    exec_env_inherit(&self->inherited, environ, &config->pass_env);
    return &self->base;
}
