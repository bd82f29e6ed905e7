/* docs/config.md, made from config.def and kinds.def. */
#include "load.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "Made from `src/config/config.def` by `tools/config_doc`; do not edit.\n"
    "\n"
    "Values come from four places, the later ones stronger: the default, the file, the "
    "environment, flags.\n"
    "The file is the one given with `--config`, else the one named by `PAWL_CONFIG`, else "
    "`pawl.yaml` in the current folder if there is one.\n"
    "`pawl config show` prints every value with its origin, `pawl config check` only checks.\n"
    "\n"
    "- Durations are written `500ms 10s 5m 2h 7d` (also `1h30m`), sizes `4096 256KiB 1MiB 1GiB`.\n"
    "- An unknown key, a wrong type, a value out of bounds, a key given twice: refused with file "
    "and line, exit 4.\n"
    "- An empty environment variable counts as not set. An unknown `PAWL_…` variable is refused; "
    "`PAWL_TEST_…` is ignored, and so are those that pawl sets for its jobs: `PAWL_JOB_ID`, "
    "`PAWL_ATTEMPT`, `PAWL_FENCE`, `PAWL_SLOT`, `PAWL_QUEUE`, `PAWL_KEY`, "
    "`PAWL_DEADLINE`.\n"
    "- The file holds mappings, lists and plain values only: no anchors, aliases, tags or further "
    "documents.\n"
    "- `${file:NAME}` anywhere in a value of the file is replaced by the content of "
    "`secrets_dir/NAME` without its last line feed, and shown as `***`.\n"
    "- A variable under `env:` whose name says that it is a secret (`…PASSWORD`, `…TOKEN`, "
    "`…SECRET`, `…API_KEY`) is refused in a file that everybody can read.\n"
    "- `worker.heartbeat` is at most a third of `worker.lease`, `retry.base` at most `retry.max`; "
    "where only the other one is set, the default gives way.\n";

static const char table_head[] = "| key | type | default | bounds | environment | meaning |\n"
                                 "|---|---|---|---|---|---|\n";

static const char structures[] =
    "\n## Pools\n"
    "\n"
    "`worker.pools` maps kinds to slots of their own, 1 to 100000; `\"*\"` (in quotes) serves "
    "every "
    "kind without a pool and is sized by `worker.slots` when it is not listed.\n"
    "Environment: `PAWL_WORKER_POOLS='parse=4,*=2'`. Flag: `--pool parse=4`, once a pool. Pools "
    "from "
    "a stronger place replace all others.\n"
    "\n## Environment of jobs\n"
    "\n"
    "`exec.pass_env` lists variables of the worker that jobs inherit besides the few they always "
    "get. Environment: `PAWL_EXEC_PASS_ENV='AWS_REGION,LANG'`.\n"
    "\n## Kinds\n"
    "\n"
    "`kinds` maps the name of a kind to what runs it. A job of that kind gets its whole payload on "
    "standard input. The built-in kinds `exec` and `noop` cannot be defined again. Only in the "
    "file.\n"
    "\n";

static const char example[] =
    "\n## Example\n"
    "\n"
    "```yaml\n"
    "store: sqlite:pawl.db\n"
    "worker: {slots: 8, pools: {parse: 4, \"*\": 2}, lease: 30s, heartbeat: 10s}\n"
    "retry: {max_attempts: 3, base: 2s, max: 5m}\n"
    "retention: {done: 30d, failed: 90d, keys: 90d}\n"
    "exec: {pass_env: [LANG], grace: 5s}\n"
    "kinds:\n"
    "  parse:\n"
    "    command: [parse-doc, --json]\n"
    "    timeout: 10m\n"
    "    idle_timeout: 2m\n"
    "    env: {PARSER_MODE: fast}\n"
    "    transient_exit: [75]\n"
    "    fatal_exit: [65]\n"
    "    transient_log: [\"429\", overloaded]\n"
    "```\n";

/* The part of a key before its dot, "" for a key without. */
static struct sv section_of(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot ? sv_make(key, (size_t)(dot - key)) : SV("");
}

/* A cell's bar would end it. */
static void add_cell(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            str_addc(out, '\\');
        str_addc(out, *text);
    }
}

static void add_bounds(struct str *out, const struct option *o)
{
    if (o->min)
        str_addf(out, "%s to %s%s", o->min, o->max, o->none ? ", none" : "");
    else if (o->choices)
        add_cell(out, o->choices);
}

static void add_row(struct str *out, const struct option *o)
{
    static const char *const types[] = {"text", "duration", "number", "boolean", "choice", "size"};
    char env[ENV_NAME_MAX];
    env_name(o->key, env);
    str_addf(out, "| `%s` | %s | `%s` | ", o->key, types[o->type], o->value);
    add_bounds(out, o);
    str_addf(out, " | `%s` | ", env);
    add_cell(out, o->doc);
    str_adds(out, " |\n");
}

static void add_section(struct str *out, struct sv section)
{
    str_addf(out, "\n## %s" SV_FMT "\n\n", section.n ? "" : "General", SV_ARG(section));
    str_adds(out, table_head);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (sv_eq(section_of(options[i].key), section))
            add_row(out, &options[i]);
}

static bool seen_before(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (sv_eq(section_of(options[k].key), section_of(options[i].key)))
            return true;
    return false;
}

static void add_kind_keys(struct str *out)
{
    static const struct {
        const char *name, *type, *bounds, *doc;
        bool exec_only;
    } keys[] = {
#define KEY(name_, read_, exec_only_, type_, bounds_, doc_)                                        \
    {#name_, type_, bounds_, doc_, exec_only_},
#include "kinds.def"
#undef KEY
    };
    str_adds(out, "| key | type | bounds | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        str_addf(out, "| `%s` | %s | %s | %s%s |\n", keys[i].name, keys[i].type, keys[i].bounds,
                 keys[i].doc, keys[i].exec_only ? " (handler exec)" : "");
}

void config_document(struct str *out)
{
    str_adds(out, head);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (!seen_before(i))
            add_section(out, section_of(options[i].key));
    str_adds(out, structures);
    add_kind_keys(out);
    str_adds(out, example);
}
