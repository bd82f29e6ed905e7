/* Files that a job leaves: kept after its processes have ended and before its end is settled. */
#include "exec_parts.h"

struct exec_keeping {
    const struct exec_control *said;
    struct run_result *result;
    struct str *text;
    void (*done)(void *arg);
    void *arg;
    struct artifact *kept; /* in the attempt's arena, as is this */
    size_t left;
    int rc; /* of the first that failed */
};

/* A lake that takes nothing is nobody's fault: the job goes back as it came, and others wait. */
static void fail(struct exec_keeping *k, struct sv name, const struct kept *got)
{
    bool lakes = got->rc == PAWL_EFULL;
    k->rc = got->rc;
    str_clear(k->text);
    str_addf(k->text, "artifact '" SV_FMT "' cannot be kept: %s", SV_ARG(name), got->message);
    *k->result = (struct run_result){.end = lakes ? RUN_RELEASED : RUN_FAILED,
                                     .cls = lakes ? CLASS_NONE : CLASS_ERROR,
                                     .unfit = lakes,
                                     .reason = str_sv(k->text),
                                     .exit_code = k->result->exit_code,
                                     .retry_after = DUR_NONE,
                                     .asked = DUR_NONE,
                                     .log_bytes = k->result->log_bytes};
}

static void conclude(struct exec_keeping *k)
{
    if (k->rc == 0) {
        k->result->artifacts = k->kept;
        k->result->n_artifacts = k->said->n_artifacts;
    }
    k->done(k->arg);
}

struct exec_kept_one {
    struct exec_keeping *all;
    size_t at;
};

static void on_kept(void *arg, const struct kept *got)
{
    struct exec_kept_one *one = arg;
    struct exec_keeping *k = one->all;
    const struct exec_artifact *a = &k->said->artifacts[one->at];
    if (got->rc < 0 && k->rc == 0) {
        fail(k, a->name, got);
    } else if (got->rc == 0) {
        struct artifact *out = &k->kept[one->at];
        *out = got->what;
        out->name = a->name;
        out->type = a->type;
        out->place = sv_make(arena_strndup(k->said->arena, got->what.place.p, got->what.place.n),
                             got->what.place.n);
    }
    if (--k->left == 0)
        conclude(k);
}

static const char *full_path(struct arena *a, const char *cwd, const char *path)
{
    if (!cwd || path[0] == '/')
        return path;
    size_t n = strlen(cwd) + 1 + strlen(path);
    char *full = arena_alloc(a, n + 1);
    memcpy(full, cwd, strlen(cwd));
    full[strlen(cwd)] = '/';
    memcpy(full + strlen(cwd) + 1, path, strlen(path) + 1);
    return full;
}

void exec_keep(const struct exec_control *said, const char *cwd, struct run_result *result,
               struct str *text, void (*done)(void *arg), void *arg)
{
    struct arena *a = said->arena;
    struct run *r = said->run;
    struct exec_keeping *k = arena_zalloc(a, 1, sizeof(*k));
    *k = (struct exec_keeping){
        .said = said, .result = result, .text = text, .done = done, .arg = arg};
    k->left = said->n_artifacts;
    k->kept = arena_zalloc(a, said->n_artifacts, sizeof(*k->kept));
    if (!r->services) {
        const struct kept none = {.rc = PAWL_EINTERNAL, .message = "this worker has no lake"};
        fail(k, said->artifacts[0].name, &none);
        conclude(k);
        return;
    }
    for (size_t i = 0; i < said->n_artifacts; i++) {
        const struct exec_artifact *x = &said->artifacts[i];
        struct exec_kept_one *one = arena_zalloc(a, 1, sizeof(*one));
        *one = (struct exec_kept_one){k, i};
        r->services->keep_file(r, full_path(a, cwd, x->path), x->name, x->type, on_kept, one);
    }
}
