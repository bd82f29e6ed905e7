#include "operating.h"

#include "copy.h"

struct limit_spec capped(const char *name, int concurrency)
{
    return cap_of(name, EACH_NONE, concurrency);
}

enum limit_outcome change(struct fixture *f, enum limit_act act, const struct limit_spec *s)
{
    enum limit_outcome out;
    OK(f->s->ops->limit_act(f->s, act, s, &out, &f->e));
    return out;
}

enum limit_outcome act_on(struct fixture *f, enum limit_act act, const char *name)
{
    struct limit_spec s = {.name = sv_of(name)};
    return change(f, act, &s);
}

struct limits all_limits(struct fixture *f)
{
    struct limits l;
    size_t n, kept = 0;
    OK(f->s->ops->policy(f->s, &f->a, &l.v, &n, &l.order, &l.aging, &f->e));
    for (size_t i = 0; i < n; i++)
        if (!l.v[i].unset)
            l.v[kept++] = l.v[i];
    l.n = kept;
    return l;
}

struct limits limits(struct fixture *f)
{
    struct limits l = all_limits(f);
    size_t n = 0;
    for (size_t i = 0; i < l.n; i++)
        if (!l.v[i].built_in)
            l.v[n++] = l.v[i];
    l.n = n;
    return l;
}

bool apply(struct fixture *f, const struct policy *p, const char *text)
{
    bool changed;
    OK(f->s->ops->policy_apply(f->s, p, sv_of(text), &changed, &f->e));
    return changed;
}

static bool keep_event(void *arg, const struct event_view *e)
{
    struct last *l = arg;
    l->n++;
    l->e = *e;
    l->e.detail =
        e->detail.p ? sv_make(arena_strndup(l->a, e->detail.p, e->detail.n), e->detail.n) : SV_NONE;
    return true;
}

struct last events(struct fixture *f, enum event_type type)
{
    struct last l = {.a = &f->a};
    struct event_filter filter = {.types = 1u << type};
    OK(f->s->ops->events(f->s, &filter, keep_event, &l, &f->e));
    return l;
}

void assert_says(struct sv detail, const char *text)
{
    if (!detail.p || !memmem(detail.p, detail.n, text, strlen(text)))
        fail_msg("\"" SV_FMT "\" does not say %s", SV_ARG(detail), text);
}

static bool keep_gate(void *arg, const struct gate_view *g)
{
    struct gate_list *l = arg;
    struct gate_view *v = &l->v[l->n++];
    *v = *g;
    v->limit = sv_make(arena_strndup(l->a, g->limit.p, g->limit.n), g->limit.n);
    v->value = sv_make(arena_strndup(l->a, g->value.p ? g->value.p : "", g->value.n), g->value.n);
    v->why = g->why.p ? sv_make(arena_strndup(l->a, g->why.p, g->why.n), g->why.n) : SV_NONE;
    return l->n < 16;
}

struct gate_list gates(struct fixture *f, const struct gate_filter *filter)
{
    struct gate_list l = {.a = &f->a};
    const struct gate_filter all = {0};
    OK(f->s->ops->gates(f->s, filter ? filter : &all, keep_gate, &l, &f->e));
    return l;
}

int breaker(struct fixture *f, const char *name, enum breaker_act act, struct dur pause,
            const char *reason)
{
    struct gate_filter filter = {.limit = sv_of(name)};
    int n;
    OK(f->s->ops->breaker_act(f->s, &filter, act, pause, sv_of(reason), &n, &f->e));
    return n;
}

static bool keep_lock(void *arg, const struct lock_view *l)
{
    struct lock_list *list = arg;
    struct lock_view *v = &list->v[list->n++];
    *v = *l;
    v->key = sv_make(arena_strndup(list->a, l->key.p, l->key.n), l->key.n);
    v->worker = l->worker.p ? sv_make(arena_strndup(list->a, l->worker.p, l->worker.n), l->worker.n)
                            : SV_NONE;
    return list->n < 16;
}

struct lock_list locks(struct fixture *f, const char *key)
{
    struct lock_list l = {.a = &f->a};
    OK(f->s->ops->locks(f->s, sv_of(key), keep_lock, &l, &f->e));
    return l;
}

job_id add_host(struct fixture *f, const char *host, int priority)
{
    struct job_spec s = spec("q", "k", priority);
    s.host = sv_of(host);
    return add(f, &s);
}

struct explain_view explain(struct fixture *f, job_id id)
{
    struct explain_view v;
    OK(f->s->ops->explain(f->s, id, &f->a, &v, &f->e));
    return v;
}

/* ---- copies ---- */

static void move_table(struct fixture *f, struct store *to, enum copy_table t)
{
    struct copy_value after[COPY_KEYS_MAX];
    struct copy_rows rows;
    bool any;
    copy_first_key(t, after);
    OK(to->ops->copy->last(to, t, &f->a, after, &any, &f->e));
    for (;;) {
        OK(f->s->ops->copy->read(f->s, t, after, &f->a, &rows, &f->e));
        if (!rows.n)
            return;
        OK(to->ops->copy->write(to, t, &rows, &f->e));
        copy_key_keep(t, copy_row(t, &rows, rows.n - 1), &f->a, after);
    }
}

struct store *copy_all(struct fixture *f, char path[80])
{
    struct store *to = NULL;
    struct store_options o = store_defaults(STORE_COPY);
    struct copy_facts facts;
    enum copy_begun begun;
    int64_t released;
    place_name(f->dir, "copy", path, 80);
    OK(open_store(path, &o, &to, &f->e));
    OK(f->s->ops->copy->facts(f->s, &facts, &f->e));
    OK(to->ops->copy->begin(to, &(struct copy_begin){.source = &facts}, &begun, &f->e));
    assert_int_equal(begun, COPY_BEGUN);
    OK(f->s->ops->copy->read_begin(f->s, &f->e));
    for (int t = 0; t < N_COPY_TABLES; t++)
        move_table(f, to, (enum copy_table)t);
    f->s->ops->copy->read_end(f->s);
    OK(to->ops->copy->finish(to, facts.next_job, &released, &f->e));
    return to;
}
