/* What a claim costs in the store, without a worker: fill a store so that something stands in the
 * way, then take jobs and time the claims alone.
 *
 *   claim shut URL JOBS HOSTS SHUT    a limit on each host; the first SHUT have open breakers
 *   claim lock URL JOBS AHEAD         AHEAD jobs of one lock with a higher priority; its holder
 *   claim take URL CLAIMS BATCH WARM  CLAIMS claims of BATCH jobs, after claims for WARM jobs
 *
 * URL as for --store. `take` keeps the jobs of priority HOLDER while it runs and ends all others.
 */
#include "stores.h"

#include <stdio.h>
#include <unistd.h>

enum { FILL = 4000, HOLDER = 100, AHEAD = 10, HOST_MAX = 32, BATCH_MAX = 10000 };

struct bench {
    struct store *store;
    struct session session;
    struct arena arena;
    struct pawl_err err;
};

static int die(const struct bench *b, const char *what)
{
    fprintf(stderr, "claim: %s: %s\n", what, b->err.msg);
    exit(1);
}

static void open_bench(struct bench *b, const char *url, enum store_mode mode)
{
    AUTO_STR struct str flag = STR_INIT(STR_LINE);
    struct config *config = NULL;
    str_addf(&flag, "store=%s", url);
    const char *flags[] = {str_cstr(&flag)};
    arena_init(&b->arena);
    if (config_load(NULL, environ, flags, 1, &config, &b->err) < 0 ||
        stores_open(config, mode, &b->store, &b->err) < 0)
        die(b, url);
    config_free(config);
}

static void begin_session(struct bench *b)
{
    struct session_spec spec = {"bench:1",       "bench", getpid(),   BATCH_MAX,
                                "{\"*\":10000}", "{}",    DUR_S(3600)};
    if (b->store->ops->session_begin(b->store, &spec, &b->session, &b->err) < 0)
        die(b, "session");
}

static void end_bench(struct bench *b)
{
    if (b->session.id.v && b->store->ops->session_end(b->store, &b->session, &b->err) < 0)
        die(b, "end");
    arena_done(&b->arena);
    store_close(b->store);
}

/* What to add: over `hosts` hosts in turn (0: none). */
struct filling {
    int64_t jobs, hosts;
    int priority;
    const char *lock; /* NULL: none */
};

static void fill(struct bench *b, const struct filling *f)
{
    static struct job_spec specs[FILL];
    static struct add_result results[FILL];
    static char names[FILL][HOST_MAX];
    for (int64_t i = 0; i < f->jobs;) {
        size_t n = 0;
        for (; n < FILL && i < f->jobs; n++, i++) {
            specs[n] = job_spec_default();
            specs[n].queue = SV("bench");
            specs[n].kind = SV("noop");
            specs[n].priority = f->priority;
            if (f->lock)
                specs[n].lock = sv_of(f->lock);
            if (f->hosts) {
                snprintf(names[n], HOST_MAX, "h%06lld.example", (long long)(i % f->hosts));
                specs[n].host = sv_of(names[n]);
            }
        }
        if (store_enqueue(b->store, specs, n, DUPLICATE_SKIP, results, &b->err) < 0)
            die(b, "enqueue");
    }
}

/* One claim; its time in *took_us. */
static struct claim_result claim(struct bench *b, int want, int64_t *took_us)
{
    const struct sv kinds[] = {SV("noop")};
    const struct claim_pool pool = {.kinds = kinds, .n_kinds = 1, .want = want};
    const struct claim_request req = {.session = &b->session, .pools = &pool, .n_pools = 1};
    struct claim_result got;
    arena_reset(&b->arena);
    struct boot start = clock_boot();
    if (store_claim(b->store, &req, &b->arena, &got, &b->err) < 0)
        die(b, "claim");
    *took_us = clock_boot().us - start.us;
    return got;
}

/* All but the holder end: well, or as if the peer did not answer. */
static void settle(struct bench *b, const struct claim_result *got, bool well)
{
    static struct settle v[BATCH_MAX];
    static enum settle_outcome out[BATCH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < got->n; i++) {
        const struct lease *l = &got->leases[i];
        if (l->priority == HOLDER)
            continue;
        v[n++] = (struct settle){.id = l->id,
                                 .fence = l->fence,
                                 .outcome = well ? OUTCOME_DONE : OUTCOME_FAILED,
                                 .cls = well ? CLASS_NONE : CLASS_TRANSIENT,
                                 .error = well ? SV_NONE : SV("no answer"),
                                 .exit_code = -1,
                                 .retry_after = DUR_NONE,
                                 .hint = l->hint};
    }
    if (n && store_settle(b->store, v, n, out, &b->err) < 0)
        die(b, "settle");
}

static void set_limit(struct bench *b)
{
    struct breaker_spec breaker = {.threshold = 1,
                                   .min_calls = 20,
                                   .window = DUR_S(60),
                                   .pause = DUR_S(3600),
                                   .max_pause = DUR_S(3600)};
    struct limit_spec spec = limit_default(&breaker);
    enum limit_outcome out;
    spec.name = SV("each-host");
    spec.each = EACH_HOST;
    spec.concurrency = 1000;
    if (b->store->ops->limit_act(b->store, LIMIT_SET, &spec, &out, &b->err) < 0)
        die(b, "limit");
}

/* One job of each of the first `hosts` hosts runs first; `shut` of them find that nobody answers.
 */
static void meet_hosts(struct bench *b, int64_t hosts, int64_t shut)
{
    fill(b, &(struct filling){.jobs = hosts, .hosts = hosts, .priority = AHEAD});
    for (int64_t met = 0; met < hosts;) {
        int64_t took;
        int want = shut > met && shut - met < 1000 ? (int)(shut - met) : 1000;
        struct claim_result got = claim(b, want, &took);
        if (!got.n && !got.busy)
            die(b, "a host has no job to run");
        settle(b, &got, met >= shut);
        met += (int64_t)got.n;
    }
}

static void fill_shut(struct bench *b, int64_t jobs, int64_t hosts, int64_t shut)
{
    begin_session(b);
    set_limit(b);
    meet_hosts(b, hosts, shut);
    fill(b, &(struct filling){.jobs = jobs, .hosts = hosts});
}

static void fill_lock(struct bench *b, int64_t jobs, int64_t ahead)
{
    fill(b, &(struct filling){.jobs = 1, .priority = HOLDER, .lock = "bench"});
    fill(b, &(struct filling){.jobs = ahead, .priority = AHEAD, .lock = "bench"});
    fill(b, &(struct filling){.jobs = jobs});
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void take(struct bench *b, int64_t claims, int batch, int64_t warm)
{
    AUTO_FREE int64_t *took = mem_zalloc((size_t)claims, sizeof(*took));
    int64_t first = 0, unused, jobs = 0, sum = 0;
    begin_session(b);
    struct claim_result got = claim(b, batch, &first);
    for (int64_t done = (int64_t)got.n; done < warm && got.n; done += (int64_t)got.n) {
        settle(b, &got, true);
        got = claim(b, batch, &unused);
    }
    settle(b, &got, true);
    for (int64_t i = 0; i < claims; i++) {
        got = claim(b, batch, &took[i]);
        settle(b, &got, true);
        jobs += (int64_t)got.n;
        sum += took[i];
    }
    qsort(took, (size_t)claims, sizeof(*took), by_value);
    printf("{\"claims\":%lld,\"jobs\":%lld,\"first_us\":%lld,\"mean_us\":%.1f,\"p50_us\":%lld,"
           "\"p99_us\":%lld}\n",
           (long long)claims, (long long)jobs, (long long)first, (double)sum / (double)claims,
           (long long)took[claims / 2], (long long)took[claims * 99 / 100]);
}

int main(int argc, char **argv)
{
    int64_t n[3] = {0};
    struct bench b = {0};
    bool known = argc > 3;
    for (int i = 3; i < argc && i < 6; i++)
        known = known && sv_to_i64(sv_of(argv[i]), 0, 100000000, &n[i - 3]) == 0;
    if (known && argc == 6 && !strcmp(argv[1], "shut")) {
        open_bench(&b, argv[2], STORE_CREATE);
        fill_shut(&b, n[0], n[1], n[2]);
    } else if (known && argc == 5 && !strcmp(argv[1], "lock")) {
        open_bench(&b, argv[2], STORE_CREATE);
        fill_lock(&b, n[0], n[1]);
    } else if (known && argc == 6 && !strcmp(argv[1], "take") && n[0] && n[1] &&
               n[1] <= BATCH_MAX) {
        open_bench(&b, argv[2], STORE_WRITE);
        take(&b, n[0], (int)n[1], n[2]);
    } else {
        fprintf(stderr, "usage: claim shut URL JOBS HOSTS SHUT | lock URL JOBS AHEAD | "
                        "take URL CLAIMS BATCH WARM\n");
        return 2;
    }
    end_bench(&b);
    return 0;
}
