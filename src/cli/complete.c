/* What a half-typed command line could go on with: the engine behind every shell's completion. What
 * is fixed comes from the command and option tables, what changes from the store, which is only
 * read: nothing is created, and every look is bounded. */
#include "cli.h"
#include "limits_out.h"
#include "mem.h"
#include "text.h"
#include <ctype.h>

enum {
    IDS_MAX = 50,      /* ids offered */
    HOSTS_WALK = 1000, /* jobs looked at for hosts */
    VALUES_MAX = 1000  /* gates and locks */
};

struct completion {
    struct cli *c;
    const struct opt *const *tables;
    const struct command *command; /* NULL: not named yet, */
    bool unknown;                  /* or nothing that is known */
    struct sv prefix;              /* of the typed word: stays as it is, such as "--queue=" */
    struct sv typed;               /* the rest of it: what candidates begin with */
    struct str *seen;              /* candidates so far, NUL after each: each once */
    int ids;
    int64_t ids_end; /* the first id beyond the range being looked at */
};

static bool seen_before(struct completion *k, struct sv word)
{
    for (size_t at = 0; at < k->seen->len; at += strlen(k->seen->p + at) + 1)
        if (sv_eq(sv_of(k->seen->p + at), word))
            return true;
    str_add(k->seen, word);
    str_addc(k->seen, '\0');
    return false;
}

/* A name that would not pass a terminal unchanged is not offered. I14 */
static bool harmless(struct sv word)
{
    AUTO_STR struct str safe = STR_INIT(STR_LINE);
    text_safe(&safe, word, 0);
    return sv_eq(str_sv(&safe), word);
}

static void offer(struct completion *k, struct sv word, struct sv doc)
{
    if (!word.n || !sv_starts(word, k->typed) || !harmless(word) || seen_before(k, word))
        return;
    AUTO_STR struct str safe = STR_INIT(STR_LINE);
    text_safe(&safe, doc, 120);
    out_put(&k->c->out, k->prefix);
    out_put(&k->c->out, word);
    out_putf(&k->c->out, "%s%s\n", doc.n ? "\t" : "", str_cstr(&safe));
}

static void tell_shell(struct completion *k, const char *what)
{
    out_putf(&k->c->out, "%s\n", what);
}

/* ---- fixed words ---- */

static void offer_choices(struct completion *k, struct sv choices)
{
    while (choices.p)
        offer(k, sv_cut(choices, '|', &choices), SV(""));
}

static void offer_commands(struct completion *k)
{
    for (size_t i = 0; i < n_commands; i++)
        offer(k, sv_of(commands[i].name), sv_of(commands[i].summary));
}

static void offer_options(struct completion *k)
{
    for (const struct opt *const *t = k->tables; *t; t++)
        for (const struct opt *o = *t; o->name; o++) {
            AUTO_STR struct str name = STR_INIT(STR_LINE);
            str_addf(&name, "--%s", o->name);
            if (!o->hidden)
                offer(k, str_sv(&name), sv_of(o->doc));
        }
}

static void offer_states(struct completion *k)
{
    for (int i = 0; i < N_JOB_STATES; i++)
        offer(k, sv_of(job_state_name((enum job_state)i)), SV(""));
}

static void offer_events(struct completion *k)
{
#define X(name, number, text, terminal, act) offer(k, SV(text), SV(""));
#include "events.def"
#undef X
}

static void offer_files(struct completion *k)
{
    tell_shell(k, ":files");
}

static void offer_folders(struct completion *k)
{
    tell_shell(k, ":folders");
}

static void offer_programs(struct completion *k)
{
    tell_shell(k, ":commands");
}

static void offer_settings(struct completion *k)
{
#define STRING(field, key, ...)   offer(k, SV(key), SV(""));
#define DURATION(field, key, ...) offer(k, SV(key), SV(""));
#define INTEGER(field, key, ...)  offer(k, SV(key), SV(""));
#define BOOLEAN(field, key, ...)  offer(k, SV(key), SV(""));
#define CHOICE(field, key, ...)   offer(k, SV(key), SV(""));
#define BYTES(field, key, ...)    offer(k, SV(key), SV(""));
#include "config.def"
#undef STRING
#undef DURATION
#undef INTEGER
#undef BOOLEAN
#undef CHOICE
#undef BYTES
}

/* ---- names in the store ---- */

static bool open_store(struct completion *k)
{
    struct pawl_err ignored;
    return k->c->store || cli_open(k->c, STORE_READ, &ignored) == 0;
}

static bool look(struct completion *k, struct arena *a, struct status_view *out)
{
    struct pawl_err ignored;
    arena_init(a);
    return open_store(k) && k->c->store->ops->status(k->c->store, IDS_MAX, a, out, &ignored) == 0;
}

static void offer_queues(struct completion *k)
{
    AUTO(arena_done) struct arena a;
    struct status_view s;
    if (look(k, &a, &s))
        for (size_t i = 0; i < s.n_classes; i++)
            offer(k, s.classes[i].queue, s.classes[i].paused ? SV("paused") : SV(""));
}

static void offer_kinds(struct completion *k)
{
    AUTO(arena_done) struct arena a;
    struct status_view s;
    for (size_t i = 0; i < k->c->app->n_kinds; i++)
        offer(k, sv_of(k->c->app->kinds[i]), SV("built in"));
    bool there = look(k, &a, &s);
    for (size_t i = 0; k->c->config && i < k->c->config->n_kinds; i++)
        offer(k, sv_of(k->c->config->kinds[i].name), SV("configured"));
    for (size_t i = 0; there && i < s.n_classes; i++)
        offer(k, s.classes[i].kind, SV(""));
}

static void offer_workers(struct completion *k)
{
    AUTO(arena_done) struct arena a;
    struct status_view s;
    if (look(k, &a, &s))
        for (size_t i = 0; i < s.n_sessions; i++)
            offer(k, s.sessions[i].name, s.sessions[i].alive ? SV("alive") : SV("gone"));
}

static bool each_host(void *arg, const struct job_view *job)
{
    offer(arg, job->host, SV(""));
    return true;
}

static void offer_hosts(struct completion *k)
{
    struct selection first = {.limit = HOSTS_WALK};
    struct pawl_err ignored;
    if (open_store(k) &&
        k->c->store->ops->list(k->c->store, &first, false, each_host, k, &ignored) < 0)
        return; /* what was found stays offered */
}

static void offer_limits(struct completion *k)
{
    AUTO(arena_done) struct arena a;
    struct limits l;
    struct pawl_err ignored;
    arena_init(&a);
    if (!open_store(k) || limits_load(k->c, &a, &l, &ignored) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        AUTO_STR struct str covers = STR_INIT(LIMIT_TEXT_MAX);
        limit_covers(&l.v[i].spec, &covers);
        offer(k, l.v[i].spec.name, str_sv(&covers));
    }
}

static bool each_value(void *arg, const struct gate_view *g)
{
    struct completion *k = arg;
    offer(k, g->value, sv_of(breaker_state_name(g->state.breaker)));
    return ++k->ids < VALUES_MAX;
}

/* Of the limit named before: the hosts, queues or kinds it has met. */
static void offer_values(struct completion *k)
{
    const struct args *args = &k->c->args;
    struct gate_filter f = {.limit = args->n_pos > 1 ? sv_of(args->pos[1]) : SV_NONE};
    struct pawl_err ignored;
    if (open_store(k) && k->c->store->ops->gates(k->c->store, &f, each_value, k, &ignored) < 0)
        return; /* what was found stays offered */
}

static bool each_lock(void *arg, const struct lock_view *l)
{
    struct completion *k = arg;
    offer(k, l->key, l->holder.id.v ? SV("held") : SV("free"));
    return ++k->ids < VALUES_MAX;
}

static void offer_locks(struct completion *k)
{
    struct pawl_err ignored;
    if (open_store(k) && k->c->store->ops->locks(k->c->store, SV_NONE, each_lock, k, &ignored) < 0)
        return; /* what was found stays offered */
}

static void offer_id(struct completion *k, const struct job_view *job)
{
    AUTO_STR struct str id = STR_INIT(64), doc = STR_INIT(STR_LINE);
    str_addi(&id, job->id.v);
    str_addf(&doc, "%s " SV_FMT " " SV_FMT, job_state_name(job->state), SV_ARG(job->queue),
             SV_ARG(job->key.p ? job->key : job->kind));
    if (k->ids < IDS_MAX && sv_starts(str_sv(&id), k->typed))
        k->ids++;
    offer(k, str_sv(&id), str_sv(&doc));
}

static bool each_id(void *arg, const struct job_view *job)
{
    struct completion *k = arg;
    if (job->id.v >= k->ids_end || k->ids >= IDS_MAX)
        return false;
    offer_id(k, job);
    return true;
}

static void offer_ids_from(struct completion *k, int64_t first, int64_t end)
{
    struct selection range = {.after = {first - 1}, .limit = IDS_MAX};
    struct pawl_err ignored;
    k->ids_end = end;
    if (k->c->store->ops->list(k->c->store, &range, false, each_id, k, &ignored) < 0)
        k->ids = IDS_MAX;
}

/* Ids that begin with the typed digits: 12, 120 to 129, 1200 to 1299, … Each range is one look. */
static void offer_ids_like(struct completion *k)
{
    enum { DIGITS = 15 };
    int64_t first, span = 1;
    if (!k->typed.n)
        offer_ids_from(k, 1, INT64_MAX);
    else if (sv_to_i64(k->typed, 1, 1000000000, &first) == 0)
        for (size_t n = k->typed.n; n <= DIGITS && k->ids < IDS_MAX; n++, span *= 10)
            offer_ids_from(k, first * span, (first + 1) * span);
}

/* What runs and what ended last first: those are asked for most. */
static void offer_ids(struct completion *k)
{
    AUTO(arena_done) struct arena a;
    struct status_view s;
    if (!look(k, &a, &s))
        return;
    for (size_t i = 0; i < s.n_running; i++)
        offer_id(k, &s.running[i]);
    for (size_t i = 0; i < s.n_last_failed; i++)
        offer_id(k, &s.last_failed[i]);
    for (size_t i = 0; i < s.n_last_done; i++)
        offer_id(k, &s.last_done[i]);
    offer_ids_like(k);
}

/* ---- what a word of the usage stands for ---- */

static const struct {
    const char *name;
    void (*offer)(struct completion *k);
    bool commas; /* a list */
} sources[] = {
    {"QUEUE", offer_queues, false},     {"KIND", offer_kinds, false},
    {"HOST", offer_hosts, false},       {"ID", offer_ids, false},
    {"NAME", offer_workers, false},     {"WORKER", offer_workers, false},
    {"STATE", offer_states, true},      {"TYPE", offer_events, true},
    {"FILE", offer_files, false},       {"@FILE", offer_files, false},
    {"URL", offer_files, false},        {"DIR", offer_folders, false},
    {"ARG", offer_files, false},        {"CMD", offer_programs, false},
    {"COMMAND", offer_commands, false}, {"SETTING", offer_settings, false},
    {"LIMIT", offer_limits, false},     {"VALUE", offer_values, false},
    {"LOCK", offer_locks, false},
};

/* What stays of a list is up to its last comma. */
static void pass_list(struct completion *k)
{
    for (size_t i = k->typed.n; i-- > 0;)
        if (k->typed.p[i] == ',') {
            k->prefix.n += i + 1;
            k->typed = sv_make(k->typed.p + i + 1, k->typed.n - i - 1);
            return;
        }
}

static void offer_source(struct completion *k, struct sv name)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (sv_eq(name, sv_of(sources[i].name))) {
            if (sources[i].commas)
                pass_list(k);
            sources[i].offer(k);
        }
}

static void offer_value(struct completion *k, const struct opt *o)
{
    struct sv names = sv_of(o->arg);
    if (o->choices)
        offer_choices(k, sv_of(o->choices));
    else
        while (names.p) { /* "JSON|@FILE|-", "KIND=N" */
            struct sv ignored, name = sv_cut(names, '|', &names);
            offer_source(k, sv_cut(name, '=', &ignored));
        }
}

/* ---- arguments, as the usage lines name them ---- */

/* The word without the marks around it: "[ID]…" is ID. */
static struct sv bare(struct sv word, bool *out_repeats)
{
    const struct sv dots = SV("…");
    *out_repeats = false;
    if (word.n > dots.n && !memcmp(word.p + word.n - dots.n, dots.p, dots.n)) {
        *out_repeats = true;
        word.n -= dots.n;
    }
    if (word.n && word.p[0] == '[') {
        word.p++;
        word.n--;
    }
    if (word.n && word.p[word.n - 1] == ']')
        word.n--;
    return word;
}

static bool is_argument(struct sv word)
{
    return word.n && word.p[0] != '-' && word.p[0] != '|' && !sv_eq(word, SV("OPTION"));
}

static bool fits_choice(struct sv names, struct sv word)
{
    while (names.p)
        if (sv_eq(sv_cut(names, '|', &names), word))
            return true;
    return false;
}

/* The argument at `position` of one usage line, or none. */
static struct sv argument_of(struct completion *k, struct sv line, size_t position)
{
    const struct args *args = &k->c->args;
    size_t at = 0;
    while (line.p) {
        bool repeats, value_follows;
        struct sv raw = sv_cut(line, ' ', &line), word = bare(raw, &repeats);
        const struct opt *o =
            sv_starts(word, SV("--")) ? opt_find(k->tables, sv_make(word.p + 2, word.n - 2)) : NULL;
        value_follows = o && o->arg && line.p;
        if (value_follows)
            sv_cut(line, ' ', &line);
        if (!is_argument(word))
            continue;
        if (at == position || repeats)
            return word;
        if (islower((unsigned char)word.p[0]) && !fits_choice(word, sv_of(args->pos[at])))
            return SV_NONE;
        at++;
    }
    return SV_NONE;
}

static void offer_argument(struct completion *k)
{
    struct sv usage = sv_of(k->command->cmd->usage);
    while (usage.p) {
        struct sv line = sv_cut(usage, '\n', &usage);
        struct sv names = argument_of(k, line, k->c->args.n_pos);
        while (names.p) {
            struct sv name = sv_cut(names, '|', &names);
            if (name.n && islower((unsigned char)name.p[0]))
                offer(k, name, SV(""));
            else
                offer_source(k, name);
        }
    }
}

/* ---- the line ---- */

/* After `--`: a program, then its arguments. */
static void offer_tail(struct completion *k)
{
    tell_shell(k, k->c->args.n_tail ? ":files" : ":commands");
}

/* "--queue=ni" is both in one word. */
static void offer_option_or_value(struct completion *k)
{
    const char *eq = memchr(k->typed.p, '=', k->typed.n);
    if (!eq) {
        offer_options(k);
        return;
    }
    struct sv name = sv_make(k->typed.p + 2, (size_t)(eq - k->typed.p) - 2);
    const struct opt *o = opt_find(k->tables, name);
    size_t skip = (size_t)(eq - k->typed.p) + 1;
    k->prefix.n = skip;
    k->typed = sv_make(eq + 1, k->typed.n - skip);
    if (o && o->arg)
        offer_value(k, o);
}

static void offer_next(struct completion *k, const struct opt *awaiting)
{
    if (k->c->args.has_tail)
        offer_tail(k);
    else if (awaiting)
        offer_value(k, awaiting);
    else if (sv_starts(k->typed, SV("--")))
        offer_option_or_value(k);
    else if (sv_starts(k->typed, SV("-")))
        offer_options(k);
    else if (k->command)
        offer_argument(k);
    else if (!k->unknown)
        offer_commands(k);
}

/* Options and arguments before the typed word. What is wrong among them does not matter here: it
 * is said when the command is run. */
static void read_words(struct completion *k, char *const *words, const struct opt **both)
{
    struct pawl_err ignored;
    int at = args_parse(&k->c->args, words, 0, k->tables, true, &ignored);
    if (at < 0 || !words[at])
        return;
    k->command = command_find(sv_of(words[at]));
    k->unknown = !k->command;
    if (k->unknown)
        return;
    both[1] = k->command->cmd->opts;
    if (args_parse(&k->c->args, words, at + 1, k->tables, false, &ignored) < 0)
        return;
}

void complete_words(struct cli *c, char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    const char *typed = n ? words[n - 1] : "";
    size_t n_before = n ? n - 1 : 0;
    AUTO_FREE char **before = mem_zalloc(n_before + 1, sizeof(*before));
    AUTO_STR struct str seen = STR_INIT(STR_OUTPUT);
    const struct opt *tables[] = {global_opts, NULL, NULL};
    struct completion k = {.c = c, .tables = tables, .seen = &seen};
    if (n_before)
        memcpy(before, words, n_before * sizeof(*before));
    k.typed = sv_of(typed);
    k.prefix = sv_make(typed, 0);
    read_words(&k, before, tables);
    offer_next(&k, n_before ? opt_awaiting(tables, before[n_before - 1]) : NULL);
}
