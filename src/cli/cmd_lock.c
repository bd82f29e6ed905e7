/* pawl lock: who holds a lock, who waits for it. */
#include "cli.h"
#include "fields.h"
#include "mem.h"
#include "table.h"
#include "text.h"

enum { NEAR_MAX = 1000 }; /* locks looked at for a suggestion */

static const struct opt opts[] = {
    {"force", 0, NULL,
     "with release: also from a worker that lives; the job's processes are ended"},
    {"reason", 0, "TEXT", "with release: why; it is kept in the events"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl add --lock invoices -- echo first", "a job that wants a lock"},
    {"pawl lock list", "every lock that is held or wanted"},
    {"pawl lock show invoices --json", "one, for a script"},
    EXAMPLE_END,
};

static const struct column columns[] = {
    {"LOCK", false, 48, false}, {"JOB", true, 0, false},   {"WORKER", false, 32, false},
    {"HELD", true, 0, false},   {"LEASE", true, 0, false}, {"WAITING", true, 0, false},
    {"NEXT", true, 0, false},
};

static void write_lock(struct jw *w, const struct lock_view *l)
{
    bool held = l->holder.id.v != 0;
    jw_object(w);
    jw_kstring(w, "lock", l->key);
    jw_kint_or_null(w, "job", l->holder.id.v, held);
    jw_kint_or_null(w, "fence", l->holder.fence.v, held);
    jw_kstring_or_null(w, "worker", held ? l->worker : SV_NONE);
    jw_kwall(w, "since", held ? l->since : (struct wall){0});
    jw_kwall(w, "lease_until", held ? l->until : (struct wall){0});
    jw_kint(w, "waiting", l->waiting);
    jw_kint_or_null(w, "next", l->next.v, l->next.v != 0);
    jw_end_object(w);
}

/* ---- looking ---- */

struct listing {
    struct cli *c;
    struct table table;
    struct wall now;
    int64_t n;
};

static void put_row(struct listing *k, const struct lock_view *l)
{
    struct table *t = &k->table;
    bool held = l->holder.id.v != 0;
    table_text(t, l->key);
    table_count(t, l->holder.id.v);
    table_text(t, held ? l->worker : SV_NONE);
    table_dur(t, held ? DUR_US(k->now.us - l->since.us) : DUR_NONE);
    table_dur(t, held && l->until.us > k->now.us ? DUR_US(l->until.us - k->now.us) : DUR_NONE);
    table_count(t, l->waiting);
    table_count(t, l->next.v);
}

static bool list_lock(void *arg, const struct lock_view *l)
{
    struct listing *k = arg;
    if (!k->n++ && !out_is_json(&k->c->out))
        table_begin(&k->table, &k->c->out, columns, ARRAY_LEN(columns));
    if (!out_is_json(&k->c->out)) {
        put_row(k, l);
        return !k->c->out.failed;
    }
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    write_lock(&w, l);
    out_item(&k->c->out, str_sv(&s));
    return !k->c->out.failed;
}

static int list(struct cli *c, struct pawl_err *err)
{
    struct listing k = {.c = c, .now = c->store->ops->now(c->store)};
    int rc = c->store->ops->locks(c->store, SV_NONE, list_lock, &k, err);
    if (out_is_json(&c->out))
        out_items_end(&c->out);
    else if (k.n)
        table_end(&k.table);
    if (rc == 0 && k.n == 0)
        cli_say(c, "no lock is held or wanted; 'pawl add --lock LOCK' adds a job with one");
    return rc;
}

struct naming {
    struct arena a;
    const char *names[NEAR_MAX];
    size_t n;
};

static bool note_name(void *arg, const struct lock_view *l)
{
    struct naming *k = arg;
    k->names[k->n++] = arena_strndup(&k->a, l->key.p, l->key.n);
    return k->n < NEAR_MAX;
}

static int unknown(struct cli *c, const char *key, struct pawl_err *err)
{
    AUTO_FREE struct naming *k = mem_zalloc(1, sizeof(*k));
    struct pawl_err ignored;
    arena_init(&k->a);
    const char *near = NULL;
    if (c->store->ops->locks(c->store, SV_NONE, note_name, k, &ignored) == 0)
        near = sv_nearest(sv_of(key), k->names, k->n);
    err_set(err, PAWL_ENOTFOUND, "lock '%s' is neither held nor wanted", key);
    if (near)
        err_hint(err, "did you mean '%s'?", near);
    else
        err_hint(err, "'pawl lock list' lists them");
    arena_done(&k->a);
    return PAWL_ENOTFOUND;
}

static bool show_lock(void *arg, const struct lock_view *l)
{
    struct listing *k = arg;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    k->n++;
    if (out_is_json(&k->c->out)) {
        write_lock(&w, l);
        out_object(&k->c->out, str_sv(&s));
        return false;
    }
    str_addf(&s, "%-13s", "lock");
    text_safe(&s, l->key, 0);
    if (l->holder.id.v) {
        str_addf(&s, "\n%-13sjob %lld on ", "held by", (long long)l->holder.id.v);
        text_safe(&s, l->worker, 0);
        str_addc(&s, '\n');
        field_time(&s, "since", l->since);
        field_time(&s, "lease until", l->until);
    } else {
        str_addf(&s, "\n%-13snobody\n", "held by");
    }
    str_addf(&s, "%-13s%lld\n", "waiting", (long long)l->waiting);
    if (l->next.v)
        str_addf(&s, "%-13sjob %lld\n", "next", (long long)l->next.v);
    out_put(&k->c->out, str_sv(&s));
    return false;
}

static int show(struct cli *c, struct pawl_err *err)
{
    struct listing k = {.c = c};
    const char *key = c->args.pos[1];
    int rc = c->store->ops->locks(c->store, sv_of(key), show_lock, &k, err);
    return rc == 0 && k.n == 0 ? unknown(c, key, err) : rc;
}

/* ---- taking it away ---- */

static void report(struct cli *c, const char *key, struct lease_ref holder)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    struct jw w = jw_make(&s);
    if (!out_is_json(&c->out)) {
        cli_say(c, "lock %s released: job %lld is queued again, no attempt spent", key,
                (long long)holder.id.v);
        return;
    }
    jw_object(&w);
    jw_kstring(&w, "lock", sv_of(key));
    jw_kbool(&w, "released", true);
    jw_kint(&w, "job", holder.id.v);
    jw_kint(&w, "fence", holder.fence.v);
    jw_end_object(&w);
    out_object(&c->out, str_sv(&s));
}

static int release(struct cli *c, struct pawl_err *err)
{
    const char *key = c->args.pos[1];
    enum lock_outcome outcome;
    struct lease_ref holder = {0};
    int rc =
        c->store->ops->lock_release(c->store, sv_of(key), args_has(&c->args, "force"),
                                    sv_of(args_get(&c->args, "reason")), &outcome, &holder, err);
    if (rc < 0)
        return rc;
    if (outcome == LOCK_FREE) {
        err_set(err, PAWL_ENOTFOUND, "nobody holds lock '%s'", key);
        return err_hint(err, "'pawl lock list' lists those that are held or wanted");
    }
    if (outcome == LOCK_HELD) {
        err_set(err, PAWL_ECONFLICT,
                "lock '%s' not released: job %lld holds it and its worker lives", key,
                (long long)holder.id.v);
        return err_hint(err, "--force ends its processes and queues it again, no attempt spent");
    }
    report(c, key, holder);
    return 0;
}

/* ---- the line ---- */

static const char *const names[] = {"list", "show", "release", NULL};
static const struct {
    size_t args; /* the verb included */
    enum store_mode mode;
    int (*run)(struct cli *c, struct pawl_err *err);
} verbs[] = {
    {1, STORE_READ, list},
    {2, STORE_READ, show},
    {2, STORE_WRITE, release},
};

static int check_line(const struct cli *c, int verb, struct pawl_err *err)
{
    const char *name = names[verb], *reason = args_get(&c->args, "reason");
    bool releases = verbs[verb].run == release;
    if (c->args.n_pos > verbs[verb].args)
        return err_set(err, PAWL_EUSAGE, "lock %s: unexpected '%s'", name,
                       c->args.pos[verbs[verb].args]);
    if (c->args.n_pos && c->args.n_pos < verbs[verb].args)
        return err_set(err, PAWL_EUSAGE, "lock %s: which one?", name);
    if (!releases && (reason || args_has(&c->args, "force")))
        return err_set(err, PAWL_EUSAGE, "--force and --reason belong to 'lock release'");
    if (releases && (!reason || !*reason)) {
        err_set(err, PAWL_EUSAGE, "lock release: no reason given");
        return err_hint(err, "--reason TEXT is kept in the events");
    }
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    int verb = args_verb(&c->args, "lock", names, err);
    if (verb < 0 || check_line(c, verb, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, verbs[verb].mode, err);
    return rc < 0 ? rc : verbs[verb].run(c, err);
}

const struct cmd cmd_lock = {
    .name = "lock",
    .usage = "[list]\nshow LOCK\nrelease LOCK [--force] --reason TEXT",
    .about = "Of all jobs added with the same --lock one runs at a time, over all workers; the "
             "others wait, higher priority first, then the older. A lock is held by the lease of "
             "the job that runs: it is free when the job ends, is given back or its worker is "
             "lost, and never before.\n\n"
             "release takes it from its holder, which is fenced off and queued again without "
             "costing an attempt. That is meant for workers that cannot be reached; one that lives "
             "needs --force. Exit status 5: it was left alone.",
    .opts = opts,
    .examples = examples,
    .max_args = 2,
    .run = run,
};
