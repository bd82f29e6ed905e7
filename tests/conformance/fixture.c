/* The store under test and short words for its operations. */
#include "fixture.h"

#include <ftw.h>
#include <unistd.h>

struct store_options store_defaults(enum store_mode mode)
{
    /* The suite is about meaning; what survives a power cut is proven elsewhere. */
    return (struct store_options){
        .mode = mode, .timeout = DUR_S(10), .durability = DURABILITY_RELAXED, .keep_keys = HOUR};
}

struct store *open_again(struct fixture *f)
{
    struct store *s = NULL;
    struct store_options o = store_defaults(STORE_WRITE);
    OK(open_store(f->path, &o, &s, &f->e));
    return s;
}

void fixture_folder(struct fixture *f)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%.40s/pawl-store-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    place_name(f->dir, "p", f->path, sizeof(f->path));
    arena_init(&f->a);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_remove(struct fixture *f)
{
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_done(&f->a);
}

int fixture_setup(void **state)
{
    struct fixture *f = mem_zalloc(1, sizeof(*f));
    fixture_folder(f);
    struct store_options o = store_defaults(STORE_CREATE);
    OK(open_store(f->path, &o, &f->s, &f->e));
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->s)
        assert_clean(f);
    store_close(f->s);
    fixture_remove(f);
    free(f);
    return 0;
}

struct job_spec spec(const char *queue, const char *kind, int priority)
{
    struct job_spec s = job_spec_default();
    s.queue = sv_of(queue);
    s.kind = sv_of(kind);
    s.priority = priority;
    return s;
}

struct job_spec keyed(const char *queue, const char *key)
{
    struct job_spec s = spec(queue, "k", 0);
    s.key = sv_of(key);
    return s;
}

enum add_outcome add_dup(struct fixture *f, const struct job_spec *s, enum on_duplicate dup,
                         struct add_result *out)
{
    struct add_result r;
    OK(store_enqueue(f->s, s, 1, dup, &r, &f->e));
    if (out)
        *out = r;
    return r.outcome;
}

job_id add(struct fixture *f, const struct job_spec *s)
{
    struct add_result r;
    assert_int_equal(add_dup(f, s, DUPLICATE_SKIP, &r), ADD_CREATED);
    return r.id;
}

job_id add_plain(struct fixture *f, int priority)
{
    struct job_spec s = spec("q", "k", priority);
    return add(f, &s);
}

struct session start(struct fixture *f, const char *name)
{
    struct session w;
    struct session_spec s = {.name = name,
                             .host = "here",
                             .pid = (int)getpid(),
                             .slots = 4,
                             .pools = "{\"*\":4}",
                             .lease = HOUR};
    OK(f->s->ops->session_begin(f->s, &s, &w, &f->e));
    return w;
}

void expire(struct fixture *f, struct session *w)
{
    struct renew_request r = {.session = w, .lease = DUR_US(1)};
    struct renew_result out;
    OK(f->s->ops->renew(f->s, &r, &f->a, &out, &f->e));
    assert_false(out.stale);
}

void vanish(struct session *w)
{
    close(w->lock_fd);
    w->lock_fd = -1;
}

void end(struct fixture *f, struct session *w)
{
    OK(f->s->ops->session_end(f->s, w, &f->e));
}

struct claim_result claim(struct fixture *f, const struct session *w, const char *kind, int want)
{
    struct sv kinds[] = {sv_of(kind)};
    struct claim_pool pool = {kinds, 1, want};
    struct claim_request req = {.session = w, .pools = &pool, .n_pools = 1};
    struct claim_result out;
    OK(store_claim(f->s, &req, &f->a, &out, &f->e));
    return out;
}

struct lease claim_one(struct fixture *f, const struct session *w)
{
    struct claim_result r = claim(f, w, "k", 1);
    assert_int_equal(r.n, 1);
    return r.leases[0];
}

struct settle settle_of(const struct lease *l, enum outcome o)
{
    /* The hint may be handed back or not: the meaning is the same. */
    return (struct settle){.id = l->id,
                           .fence = l->fence,
                           .outcome = o,
                           .exit_code = -1,
                           .hint = l->id.v % 2 ? l->hint : (struct lease_hint){0}};
}

enum settle_outcome settle(struct fixture *f, const struct settle *v)
{
    enum settle_outcome out;
    OK(store_settle(f->s, v, 1, &out, &f->e));
    return out;
}

void settle_ok(struct fixture *f, const struct lease *l, enum outcome o)
{
    struct settle v = settle_of(l, o);
    assert_int_equal(settle(f, &v), SETTLE_OK);
}

struct sweep_result sweep(struct fixture *f, const struct session *self, int max_lost)
{
    struct sweep_request req = {
        .self = self, .max_sessions = 100, .max_jobs = 1000, .max_lost = max_lost};
    struct sweep_result out;
    OK(f->s->ops->sweep(f->s, &req, &out, &f->e));
    return out;
}

struct act_result act(struct fixture *f, enum act what, job_id id)
{
    struct act_request req = {.act = what, .select = {.ids = &id, .n_ids = 1}};
    struct act_result out;
    OK(f->s->ops->act(f->s, &req, &out, &f->e));
    return out;
}

struct job_view get(struct fixture *f, job_id id)
{
    struct job_view v;
    OK(f->s->ops->job_get(f->s, id, &f->a, &v, &f->e));
    return v;
}

void assert_state(struct fixture *f, job_id id, enum job_state state)
{
    assert_string_equal(job_state_name(get(f, id).state), job_state_name(state));
}

static bool count_event(void *arg, const struct event_view *e)
{
    (void)e;
    ++*(int *)arg;
    return true;
}

int n_events(struct fixture *f, job_id id, enum event_type type)
{
    int n = 0;
    struct event_filter filter = {.job = id, .types = 1u << type};
    OK(f->s->ops->events(f->s, &filter, count_event, &n, &f->e));
    return n;
}

static void describe(struct str *out, const struct job_view *v)
{
    str_addf(out, "%lld %s p%d a%d/%d t%d l%d f%lld c%d w" SV_FMT " at%lld end%lld ",
             (long long)v->id.v, job_state_name(v->state), v->priority, v->attempt, v->max_attempts,
             v->transient, v->lost, (long long)v->fence.v, v->cancel_asked, SV_ARG(v->worker),
             (long long)v->available_at.us, (long long)v->finished_at.us);
    str_addf(out, SV_FMT " " SV_FMT " " SV_FMT " e" SV_FMT " n%zu\n", SV_ARG(v->payload),
             SV_ARG(v->result), SV_ARG(v->progress), SV_ARG(v->error), v->n_attempts);
}

char *snapshot(struct fixture *f, job_id id)
{
    struct str s = STR_INIT(STR_LINE);
    struct job_view v = get(f, id);
    describe(&s, &v);
    char *kept = arena_strndup(&f->a, s.p, s.len);
    str_done(&s);
    return kept;
}

static bool describe_job(void *arg, const struct job_view *v)
{
    describe(arg, v);
    return true;
}

static bool describe_event(void *arg, const struct event_view *e)
{
    str_addf(arg, "event %lld\n", (long long)e->id);
    return true;
}

char *snapshot_all(struct fixture *f)
{
    struct str s = STR_INIT(STR_OUTPUT);
    struct selection all = {0};
    struct event_filter newest = {.last = 1};
    OK(f->s->ops->list(f->s, &all, true, describe_job, &s, &f->e));
    OK(f->s->ops->events(f->s, &newest, describe_event, &s, &f->e));
    char *kept = arena_strndup(&f->a, str_cstr(&s), s.len);
    str_done(&s);
    return kept;
}

void assert_clean(struct fixture *f)
{
    AUTO_STR struct str out = STR_INIT(STR_LINE);
    OK(f->s->ops->check(f->s, &out, &f->e));
    assert_string_equal(str_cstr(&out), "");
}
