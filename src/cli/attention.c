/* The `!` lines of status: each names a thing that needs a person and the command to paste. */
#include "job_out.h"
#include "status.h"
#include "text.h"
#include "workers_out.h"
#include <stdio.h>
#include <sys/statvfs.h>

enum { BREAKERS_SHOWN = 3, WHY_SHOWN = 200 };

struct attention {
    struct cli *c;
    void (*each)(struct cli *c, struct sv line);
};

static void tell(const struct attention *t, const char *fmt, ...) PAWL_PRINTF(2, 3);
static void tell(const struct attention *t, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    t->each(t->c, sv_of(line));
}

static const char *s_of(int64_t n)
{
    return n == 1 ? "" : "s";
}

static int64_t ready(const int64_t n[N_JOB_STATES])
{
    return n[JOB_QUEUED] + n[JOB_WAITING];
}

static void unknown_kinds(const struct attention *t, const struct status_view *s)
{
    for (size_t i = 0; i < s->n_classes; i++) {
        const struct class_view *v = &s->classes[i];
        AUTO_STR struct str word = STR_INIT(STR_LINE);
        if (!ready(v->n) || kind_known(t->c, s, v->kind))
            continue;
        text_shell(&word, v->kind);
        tell(t,
             "%lld job%s of kind '" SV_FMT "' in queue '" SV_FMT
             "' that no worker knows: add it to kinds: in pawl.yaml, or pawl cancel --kind %s",
             (long long)ready(v->n), s_of(ready(v->n)), SV_ARG(v->kind), SV_ARG(v->queue),
             str_cstr(&word));
    }
}

static void paused_queues(const struct attention *t, const struct queue_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        AUTO_STR struct str word = STR_INIT(STR_LINE);
        if (!rows[i].paused || !ready(rows[i].n))
            continue;
        text_shell(&word, rows[i].queue);
        tell(t, "queue '" SV_FMT "' is paused with %lld job%s: pawl resume %s",
             SV_ARG(rows[i].queue), (long long)ready(rows[i].n), s_of(ready(rows[i].n)),
             str_cstr(&word));
    }
}

static void dead_workers(const struct attention *t, const struct status_view *s)
{
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct session_view *v = &s->sessions[i];
        int64_t held = v->alive ? 0 : worker_running(s, v);
        if (held)
            tell(t,
                 "worker '" SV_FMT "' died holding %lld job%s, the next worker takes %s over: "
                 "pawl run",
                 SV_ARG(v->name), (long long)held, s_of(held), held == 1 ? "it" : "them");
    }
}

static void no_worker(const struct attention *t, const struct status_view *s,
                      const struct queue_row *rows, size_t n)
{
    int64_t jobs = 0;
    for (size_t i = 0; i < s->n_sessions; i++)
        if (s->sessions[i].alive)
            return;
    for (size_t i = 0; i < n; i++)
        jobs += rows[i].paused ? 0 : ready(rows[i].n);
    if (jobs)
        tell(t, "%lld job%s and no worker: pawl run", (long long)jobs, s_of(jobs));
}

static void open_breaker(const struct attention *t, const struct gate_view *g)
{
    AUTO_STR struct str name = STR_INIT(STR_LINE), words = STR_INIT(STR_LINE);
    gate_name(&name, g);
    gate_words_quoted(&words, g);
    tell(t, "the breaker of limit '%s' is %s%s" SV_FMT ": pawl breaker show %s", str_cstr(&name),
         breaker_state_name(g->state.breaker), g->why.n ? ", " : "",
         SV_ARG(sv_make(g->why.p, g->why.n < WHY_SHOWN ? g->why.n : WHY_SHOWN)), str_cstr(&words));
}

static void open_breakers(const struct attention *t, const struct gate_list *gates)
{
    size_t n = 0;
    for (size_t i = 0; i < gates->n; i++)
        if (gates->v[i].state.breaker != BREAKER_CLOSED && n++ < BREAKERS_SHOWN)
            open_breaker(t, &gates->v[i]);
    if (n > BREAKERS_SHOWN)
        tell(t, "and %s%zu more breaker%s: pawl breaker list",
             gates->shut > (int64_t)gates->n ? "at least " : "", n - BREAKERS_SHOWN,
             s_of((int64_t)n - BREAKERS_SHOWN));
}

static void preflights(const struct attention *t, const struct status_view *s)
{
    AUTO(arena_done) struct arena a;
    struct sv kind, why;
    arena_init(&a);
    for (size_t i = 0; i < s->n_sessions; i++)
        for (size_t k = 0; worker_preflight(&s->sessions[i], k, &a, &kind, &why); k++)
            tell(t, "preflight of kind '" SV_FMT "' fails on worker '" SV_FMT "': " SV_FMT,
                 SV_ARG(kind), SV_ARG(s->sessions[i].name),
                 SV_ARG(sv_make(why.p, why.n < WHY_SHOWN ? why.n : WHY_SHOWN)));
}

static void low_disk(const struct attention *t)
{
    struct store_info info;
    struct store *store = t->c->store;
    if (store->ops->info(store, &info, NULL) == 0 && info.free_bytes >= 0 &&
        info.free_bytes < t->c->config->disk_reserve)
        tell(t,
             "%lld MiB free beside the store, disk_reserve is %lld MiB: make room, or pawl prune",
             (long long)(info.free_bytes >> 20), (long long)(t->c->config->disk_reserve >> 20));
}

/* Also while nobody runs who would say so. */
static void low_lake(const struct attention *t)
{
    struct statvfs fs;
    const struct config *config = t->c->config;
    if (statvfs(config->lake_path, &fs) < 0)
        return;
    int64_t n = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    if (n < config->disk_reserve)
        tell(t,
             "%lld MiB free for the lake, disk_reserve is %lld MiB: what keeps bytes there waits",
             (long long)(n >> 20), (long long)(config->disk_reserve >> 20));
}

void status_attention(struct cli *c, const struct status_view *s, const struct queue_row *rows,
                      size_t n, const struct gate_list *gates,
                      void (*each)(struct cli *c, struct sv line))
{
    struct attention t = {c, each};
    unknown_kinds(&t, s);
    paused_queues(&t, rows, n);
    if (s->poisoned)
        tell(&t,
             "%lld poison job%s, each killed its workers: pawl list --state failed --error "
             "poison",
             (long long)s->poisoned, s_of(s->poisoned));
    open_breakers(&t, gates);
    preflights(&t, s);
    dead_workers(&t, s);
    no_worker(&t, s, rows, n);
    low_disk(&t);
    low_lake(&t);
}
