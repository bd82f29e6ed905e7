/* docs/config.md, made from config.def, kinds.def, limits.def, alerts.def and alert_topics.def. */
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
    "- `worker.heartbeat` is at most a third of `worker.lease`, `retry.base` at most `retry.max`, "
    "`breaker.pause` at most `breaker.max_pause`; where only the other one is set, the default "
    "gives way.\n";

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
    "\n## Compression in the lake\n"
    "\n"
    "`lake.compress.types` lists content types whose bodies are kept compressed with zstd, such as "
    "`text/html`; `text/*` stands for all that begin so. Hashes and sizes are those of the bytes "
    "as they came, and `cat`, `export` and `verify` read through it. Nothing is compressed unless "
    "listed. Environment: `PAWL_LAKE_COMPRESS_TYPES='text/html,application/json'`.\n"
    "\n"
    "With `lake.mode: pack` the same types are deflated inside their segments, which are gzip "
    "then.\n"
    "\n## Kinds\n"
    "\n"
    "`kinds` maps the name of a kind to what runs it. A job of that kind gets its whole payload on "
    "standard input, or with handler `http` posted to its URL. The built-in kinds `exec`, `fetch` "
    "and `noop` cannot be defined again. Only in the file.\n"
    "\n";

static const char limits_head[] =
    "\n## Limits\n"
    "\n"
    "`limits` is a list of caps on what runs and starts at a time, over all workers of the store. "
    "Selectors (`queue`, `kind`, `host` or `hosts`) narrow down together; where several limits "
    "hold for a job, all must admit it. `pawl run` makes the list hold when its text, "
    "`claim_order` or `priority_aging` changed; what an operator set with `pawl limit set` wins "
    "until `pawl limit reset`. A file with none of the three leaves the store as it is. Limit "
    "`every-host` is built in (kind fetch, each host but this machine: `concurrency: 2`, `rate: "
    "1/s`); an entry of that name replaces it. Only in the file.\n"
    "\n";

static const char retention_text[] =
    "\n## Retention of one queue\n"
    "\n"
    "`retention.queues` maps the name of a queue to `done`, `failed` (durations, or none), "
    "`max_done` and `max_failed` (numbers, 0: no bound); what it does not say is as under "
    "`retention`. Only in the file.\n";

static const char alerts_head[] =
    "\n## Alerts\n"
    "\n"
    "`alerts` is a list of who is told of what, by a command or by a signed POST; docs/alerts.md "
    "shows what is sent. Only in the file.\n"
    "\n";

static const char example[] =
    "\n## Example\n"
    "\n"
    "```yaml\n"
    "store: sqlite:pawl.db\n"
    "worker: {slots: 8, pools: {parse: 4, \"*\": 2}, lease: 30s, heartbeat: 10s}\n"
    "retry: {max_attempts: 3, base: 2s, max: 5m}\n"
    "claim_order: fair\n"
    "limits:\n"
    "  - {name: each-host, each: host, concurrency: 2, rate: 1/s}\n"
    "  - {name: wikimedia, hosts: [\"*.wikipedia.org\", \"*.wikimedia.org\"], replaces: true,\n"
    "     concurrency: 3, rate: 200/min, breaker: {threshold: 10, pause: 5m}}\n"
    "  - {name: unpaywall, queue: unpaywall, concurrency: 2, breaker: none}\n"
    "breaker: {threshold: 5, pause: 60s}\n"
    "retention: {done: 30d, failed: 90d, keys: 90d, queues: {feed: {done: 1d, max_done: 100000}}}\n"
    "exec: {pass_env: [LANG], grace: 5s}\n"
    "lake: {path: lake, compress: {types: [text/html, \"application/*\"], level: 3}}\n"
    "fetch: {contact: you@example.org, robots: true}\n"
    "kinds:\n"
    "  parse:\n"
    "    command: [parse-doc, --json]\n"
    "    timeout: 10m\n"
    "    idle_timeout: 2m\n"
    "    env: {PARSER_MODE: fast}\n"
    "    transient_exit: [75]\n"
    "    fatal_exit: [65]\n"
    "    throttled_log: [\"429\", overloaded]\n"
    "    preflight: [parse-doc, --version]\n"
    "  hook:\n"
    "    handler: http\n"
    "    url: https://parser.example.org/jobs\n"
    "    timeout: 30s\n"
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
        const char *name, *type, *bounds, *doc, *handler;
    } keys[] = {
#define KEY(name_, read_, handler_, type_, bounds_, doc_) {#name_, type_, bounds_, doc_, handler_},
#include "kinds.def"
#undef KEY
    };
    str_adds(out, "| key | type | bounds | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        str_addf(out, "| `%s` | %s | %s | %s", keys[i].name, keys[i].type, keys[i].bounds,
                 keys[i].doc);
        if (keys[i].handler[0])
            str_addf(out, " (handler %s)", keys[i].handler);
        str_adds(out, " |\n");
    }
}

static void add_limit_keys(struct str *out)
{
    static const struct {
        const char *name, *type, *bounds, *doc;
    } keys[] = {
#define KEY(name_, read_, type_, bounds_, doc_) {#name_, type_, bounds_, doc_},
#include "limits.def"
#undef KEY
    };
    str_adds(out, "| key | type | bounds | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        str_addf(out, "| `%s` | %s | %s | %s |\n", keys[i].name, keys[i].type, keys[i].bounds,
                 keys[i].doc);
}

static void add_alert_keys(struct str *out)
{
    static const struct {
        const char *name, *type, *bounds, *doc;
    } keys[] = {
#define KEY(name_, read_, type_, bounds_, doc_) {#name_, type_, bounds_, doc_},
#include "alerts.def"
#undef KEY
    };
    static const struct {
        const char *name, *doc;
    } topics[] = {
#define X(name_, text_, doc_) {text_, doc_},
#include "alert_topics.def"
#undef X
    };
    str_adds(out, "| key | type | bounds | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        str_addf(out, "| `%s` | %s | %s | %s |\n", keys[i].name, keys[i].type, keys[i].bounds,
                 keys[i].doc);
    str_adds(out, "\n| on | told when |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        str_addf(out, "| `%s` | %s |\n", topics[i].name, topics[i].doc);
}

void config_document(struct str *out)
{
    str_adds(out, head);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (!seen_before(i))
            add_section(out, section_of(options[i].key));
    str_adds(out, structures);
    add_kind_keys(out);
    str_adds(out, limits_head);
    add_limit_keys(out);
    str_adds(out, retention_text);
    str_adds(out, alerts_head);
    add_alert_keys(out);
    str_adds(out, example);
}
