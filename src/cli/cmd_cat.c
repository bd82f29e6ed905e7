/* pawl cat: the bytes of an artifact. */
#include "artifacts_out.h"
#include "text.h"

static const struct opt opts[] = {
    {"force", 0, NULL, "bytes as they are, onto a terminal too"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl fetch http://127.0.0.1:8080/a", "a job; when 'pawl run' has fetched it:"},
    {"pawl cat 1 >a.html || echo 'not fetched yet'", "what job 1 fetched"},
    {"pawl cat 1 body | wc -c", "the variant named body"},
    EXAMPLE_END,
};

/* Bytes on their way out. */
struct flow {
    struct out *out;
    bool harmless, binary, force;
    bool begun;
    struct str carry; /* the beginning of a character whose end has not come */
};

static bool looks_binary(struct sv s)
{
    s.n -= text_cut_short(s);
    return text_bad_utf8(s) < s.n;
}

static void put_harmless(struct flow *f, struct sv bytes)
{
    AUTO_STR struct str all = STR_INIT(STR_OUTPUT), safe = STR_INIT(STR_OUTPUT);
    str_add(&all, str_sv(&f->carry));
    str_add(&all, bytes);
    size_t rest = text_cut_short(str_sv(&all));
    str_clear(&f->carry);
    str_add(&f->carry, sv_make(all.p + all.len - rest, rest));
    text_safe_lines(&safe, sv_make(all.p, all.len - rest));
    out_put(f->out, str_sv(&safe));
}

static bool pass_on(void *arg, struct sv bytes)
{
    struct flow *f = arg;
    if (!f->begun && f->harmless && looks_binary(bytes)) {
        f->binary = true;
        return false;
    }
    f->begun = true;
    if (f->harmless)
        put_harmless(f, bytes);
    else
        out_put(f->out, bytes);
    return !f->out->failed && !cli_signal();
}

static int print(struct cli *c, const struct artifact_view *v, struct pawl_err *err)
{
    AUTO_LAKE struct lake *lake = NULL;
    struct flow f = {.out = &c->out,
                     .harmless = c->out.terminal && !args_has(&c->args, "force"),
                     .carry = STR_INIT(16)};
    int rc = cli_lake(c, &lake, err);
    cli_catch_signals();
    if (rc == 0)
        rc = lake_read(lake, &v->a, pass_on, &f, err);
    if (rc == 0 && f.carry.len)
        text_safe_lines(&c->out.buf, str_sv(&f.carry));
    str_done(&f.carry);
    if (rc == 0 && f.binary) {
        err_set(err, PAWL_EUSAGE, "these are no text, and standard output is a terminal");
        return err_hint(err, "send them into a file or a pipe, or say --force");
    }
    if (rc == 0 && cli_signal())
        c->exit_status = 128 + cli_signal();
    if (rc == PAWL_ENOTFOUND && lake)
        err_hint(err, "'pawl verify' finds what is missing, --repair fetches it again");
    return rc;
}

static void put_names(const struct artifact_list *l, struct str *s)
{
    for (size_t i = 0; i < l->n; i++) {
        str_adds(s, i ? ", " : "");
        text_safe(s, l->v[i].a.name, 0);
    }
}

/* Why there is not exactly one. */
static int not_one(struct cli *c, job_id id, const char *name, const struct artifact_list *all,
                   struct arena *a, struct pawl_err *err)
{
    AUTO_STR struct str names = STR_INIT(STR_LINE);
    struct job_view job;
    put_names(all, &names);
    if (all->n && !name) {
        err_set(err, PAWL_EUSAGE, "job %lld has several artifacts: %s", (long long)id.v,
                str_cstr(&names));
        return err_hint(err, "pawl cat %lld ARTIFACT", (long long)id.v);
    }
    if (all->n) {
        err_set(err, PAWL_ENOTFOUND, "job %lld has no artifact named '%s'", (long long)id.v, name);
        return err_hint(err, "it has %s", str_cstr(&names));
    }
    int rc = c->store->ops->job_get(c->store, id, a, &job, err);
    if (rc < 0)
        return rc;
    return err_set(err, PAWL_ENOTFOUND, "job %lld has no artifact: it is %s", (long long)id.v,
                   job_state_name(job.state));
}

static int choose(struct cli *c, job_id id, const char *name, struct arena *a,
                  const struct artifact_view **out, struct pawl_err *err)
{
    struct artifact_list all;
    const struct artifact_filter f = {.job = id, .newest = true};
    int rc = artifacts_load(c, &f, a, &all, err);
    if (rc < 0)
        return rc;
    const struct artifact_view *v = all.v; /* in the arena */
    *out = all.n == 1 && !name ? v : NULL;
    for (size_t i = 0; name && i < all.n; i++)
        if (sv_eq(v[i].a.name, sv_of(name)))
            *out = v + i;
    return *out ? 0 : not_one(c, id, name, &all, a, err);
}

static int run(struct cli *c, struct pawl_err *err)
{
    AUTO(arena_done) struct arena a;
    const struct artifact_view *found;
    const char *name = c->args.n_pos > 1 ? c->args.pos[1] : NULL;
    job_id id;
    arena_init(&a);
    if (out_is_json(&c->out))
        return err_set(err, PAWL_EUSAGE, "an artifact is bytes: cat has no -o json");
    if (cli_job_id(c->args.pos[0], &id, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_READ, err);
    if (rc == 0)
        rc = choose(c, id, name, &a, &found, err);
    return rc < 0 ? rc : print(c, found, err);
}

const struct cmd cmd_cat = {
    .name = "cat",
    .usage = "ID [ARTIFACT] [--force]",
    .about = "Prints the bytes that a job has kept: the newest artifact of that name, which for a "
             "fetch is the variant. A job with artifacts of several names needs one. What is "
             "compressed in the lake comes out as it went in.\n\n"
             "On a terminal text is made harmless, and what is no text is refused unless --force "
             "is given.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
