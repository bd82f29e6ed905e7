/* pawl lake: from one form into the other, and giving back the room of what nobody has. */
#include "lake_convert.h"
#include "segments.h"
#include "select.h"
#include "words.h"

#define MARGIN DUR_S(60) /* as that of verify */
enum { SHARE = 25 };     /* percent of a segment that must be dead before it is copied */

static const struct opt opts[] = {
    {"dead", 0, "P", "compact: copy segments of which at least P percent is dead; 25 unless given"},
    {"yes", 'y', NULL, "adopt: do not ask"},
    OPT_END,
};
static const struct example examples[] = {
    {"pawl fetch http://127.0.0.1:8080/a", "a job; when 'pawl run' has fetched it:"},
    {"pawl lake convert pack", "every artifact into segments of WARC, again to go on"},
    {"pawl lake compact --dead 10", "give back what nobody has any more"},
    {"pawl lake adopt", "the lake of a store that this one was copied from"},
    EXAMPLE_END,
};

static bool count_one(void *arg, const struct artifact_view *v)
{
    (void)v;
    *(bool *)arg = true;
    return false;
}

/* Without artifacts there need be no lake: then NOTFOUND is none, and *out stays NULL. */
static int need_lake(const struct cli *c, int rc, const struct pawl_err *e, struct pawl_err *err)
{
    bool any = false;
    const struct artifact_filter one = {.limit = 1};
    if (rc == PAWL_ENOTFOUND) {
        int looked = c->store->ops->artifacts(c->store, &one, count_one, &any, err);
        if (looked < 0 || !any)
            return looked;
    }
    if (rc < 0)
        *err = *e;
    return rc;
}

static int open_lake(const struct cli *c, enum lake_mode mode, struct lake **out,
                     struct pawl_err *err)
{
    struct pawl_err e = {0};
    int rc = cli_own_lake(c, mode, out, &e);
    return need_lake(c, rc, &e, err);
}

/* ---- convert ---- */

static void say_converted(const struct convert *v, const char *to)
{
    struct cli *c = v->c;
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (out_is_json(&c->out)) {
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kint(&w, "artifacts", v->seen);
        jw_kint(&w, "converted", v->moved);
        jw_kint(&w, "bytes", v->bytes);
        jw_kint(&w, "bad", v->bad);
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
        return;
    }
    words_count(&s, v->moved);
    str_adds(&s, " of ");
    words_count(&s, v->seen);
    str_addf(&s, " artifacts converted to %s, ", to);
    words_bytes(&s, v->bytes);
    if (v->bad)
        str_addf(&s, "; %lld could not be read: 'pawl verify' says why", (long long)v->bad);
    cli_say(c, "%s", str_cstr(&s));
    if (v->moved && !v->bad)
        cli_say(c, "what they left is taken away by 'pawl verify --repair', a lease from now");
}

static int convert(struct cli *c, struct pawl_err *err)
{
    AUTO_LAKE struct lake *lake = NULL;
    bool pack = !strcmp(c->args.pos[1], "pack");
    struct convert v = {.c = c, .pack = pack};
    int rc = open_lake(c, pack ? LAKE_PACK : LAKE_FILES, &lake, err);
    if (rc < 0)
        return rc;
    v.lake = lake;
    cli_catch_signals();
    meter_start(&v.meter, c);
    rc = lake ? convert_all(&v, err) : 0;
    meter_end(&v.meter);
    if (rc < 0)
        return rc;
    say_converted(&v, c->args.pos[1]);
    c->exit_status = cli_signal() ? 128 + cli_signal() : v.bad ? err_exit_status(PAWL_EFAILED) : 0;
    return 0;
}

/* ---- compact ---- */

static void say_compacted(struct cli *c, const struct segments *all,
                          const struct segments_result *r)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (out_is_json(&c->out)) {
        struct jw w = jw_make(&s);
        jw_object(&w);
        jw_kint(&w, "segments", (int64_t)all->n);
        jw_kint(&w, "removed", r->removed);
        jw_kint(&w, "cut", r->cut);
        jw_kint(&w, "copied", r->moved);
        jw_kint(&w, "left", r->left);
        jw_kint(&w, "stuck", r->stuck);
        jw_kint(&w, "rows", r->rows);
        jw_kint(&w, "bytes", r->bytes);
        jw_end_object(&w);
        out_object(&c->out, str_sv(&s));
        return;
    }
    str_addf(&s, "%zu segment%s: %lld removed, %lld cut, %lld copied without what is dead, ",
             all->n, all->n == 1 ? "" : "s", (long long)r->removed, (long long)r->cut,
             (long long)r->moved);
    words_bytes(&s, r->bytes);
    str_adds(&s, " given back");
    if (r->left)
        str_addf(&s, "; %lld left, in use or too young", (long long)r->left);
    if (r->stuck)
        str_addf(&s, "; %lld cannot be freed", (long long)r->stuck);
    cli_say(c, "%s", str_cstr(&s));
}

static int compact(struct cli *c, struct pawl_err *err)
{
    AUTO_LAKE struct lake *lake = NULL;
    AUTO(segments_done) struct segments all;
    struct segments_result done = {0};
    int64_t share = SHARE;
    segments_init(&all, DUR_US(c->config->worker_lease.us + MARGIN.us));
    int rc = args_int(&c->args, "dead", 0, 100, &share, err);
    if (rc == 0)
        rc = open_lake(c, LAKE_PACK, &lake, err);
    if (rc < 0)
        return rc;
    cli_catch_signals();
    rc = lake ? segments_load(c, lake, &all, err) : 0;
    if (rc == 0 && lake && !cli_signal())
        rc = segments_reclaim(c, lake, &all, (double)share / 100, NULL, NULL, &done, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].why)
            cli_warn(c, "segment %s stays as it is: %s", all.v[i].name, all.v[i].why);
    say_compacted(c, &all, &done);
    c->exit_status = cli_signal() ? 128 + cli_signal()
                     : done.stuck ? err_exit_status(PAWL_EFAILED)
                                  : 0;
    return 0;
}

/* ---- adopt ---- */

static int adopt(struct cli *c, struct pawl_err *err)
{
    AUTO_LAKE struct lake *lake = NULL;
    char id[STORE_ID_LEN + 1], owner[LAKE_OWNER] = "";
    struct pawl_err e = {0};
    int rc = need_lake(c, cli_lake(c, &lake, &e), &e, err);
    if (rc == 0 && !lake) {
        cli_say(c, "there is no lake yet: it will be the store's that first keeps something");
        return 0;
    }
    if (rc == 0)
        rc = c->store->ops->identity(c->store, id, err);
    if (rc == 0)
        rc = lake_owner(lake, owner, err);
    if (rc < 0)
        return rc;
    if (!strcmp(owner, id)) {
        cli_say(c, "the lake is this store's already");
        return 0;
    }
    if (owner[0]) {
        cli_say(c,
                "the lake belongs to store %s, this one is %s: what only that one's rows name can "
                "be deleted afterwards",
                owner, id);
        int go = act_confirm(c, "adopt", "adopted", "lake", 1, err);
        if (go <= 0)
            return go;
    }
    rc = lake_adopt(lake, id, err);
    if (rc == 0)
        cli_say(c, "the lake is this store's now; 'pawl verify' compares them");
    return rc;
}

/* ---- the line ---- */

enum verb { CONVERT, COMPACT, ADOPT };
static const char *const verbs[] = {"convert", "compact", "adopt", NULL};

static int check_line(const struct cli *c, enum verb verb, struct pawl_err *err)
{
    const char *to = c->args.n_pos > 1 ? c->args.pos[1] : NULL;
    bool converts = verb == CONVERT;
    if (converts && (!to || (strcmp(to, "files") != 0 && strcmp(to, "pack") != 0))) {
        err_set(err, PAWL_EUSAGE, "lake convert: into which form?");
        return err_hint(err, "pawl lake convert files, or pack");
    }
    if (!converts && to)
        return err_set(err, PAWL_EUSAGE, "lake %s: unexpected '%s'", verbs[verb], to);
    if (verb != COMPACT && args_has(&c->args, "dead"))
        return err_set(err, PAWL_EUSAGE, "--dead belongs to 'lake compact'");
    if (verb != ADOPT && args_has(&c->args, "yes"))
        return err_set(err, PAWL_EUSAGE, "--yes belongs to 'lake adopt'");
    return 0;
}

static int run(struct cli *c, struct pawl_err *err)
{
    static int (*const acts[])(struct cli *, struct pawl_err *) = {convert, compact, adopt};
    int verb = args_verb(&c->args, "lake", verbs, err);
    if (verb < 0 || check_line(c, (enum verb)verb, err) < 0)
        return PAWL_EUSAGE;
    int rc = cli_open(c, STORE_WRITE, err);
    return rc < 0 ? rc : acts[verb](c, err);
}

const struct cmd cmd_lake = {
    .name = "lake",
    .usage = "convert files|pack\ncompact [--dead P]\nadopt [--yes]",
    .about =
        "convert copies every artifact that is not in this form into it, reads the copy back, and "
        "then lets its row name it. It can be stopped and run again, and goes on beside workers; "
        "those write in the form that lake.mode says. From files into a pack there is nothing that "
        "tells what was sent and answered, so the records are of type resource; from a pack into "
        "files such heads are left behind. Exit status 1: some could not be read.\n\n"
        "compact gives back the room of records that no artifact has any more: segments without "
        "any are removed, dead ends are cut off, and of segments with at least P percent dead the "
        "living records are copied into a new one. What was written within worker.lease and a "
        "minute more is left alone.\n\n"
        "A lake belongs to the store that first kept something in it: others neither write to it "
        "nor clean it up. adopt makes it this store's, after a restored backup or 'pawl copy'.",
    .opts = opts,
    .examples = examples,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
