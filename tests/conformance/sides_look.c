/* What the two stores show: the command line's JSON with ids as numbers and times masked, and what
 * that JSON leaves out. */
#include "sides.h"

#include "event_out.h"
#include "fingerprint.h"
#include "job_out.h"
#include "report.h"
#include "status.h"
#include "workers_out.h"
#include <stdio.h>
#include <unistd.h>

enum { NEAR_US = 1800 * 1000000 };
static const struct wall masks[] = {{1000000000000000}, {2000000000000000}, {3000000000000000}};

struct wall mask_wall(const struct sides *r, struct wall t)
{
    if (!t.us)
        return t;
    return masks[t.us < r->now.us - NEAR_US ? 0 : t.us <= r->now.us + NEAR_US ? 1 : 2];
}

int64_t mask_left(struct dur d)
{
    return d.us < 0 ? -1 : d.us > NEAR_US;
}

/* ---- jobs ---- */

static struct job_view masked_job(const struct sides *r, struct side *d, const struct job_view *job)
{
    struct job_view v = *job;
    v.id.v = ids_number(&d->jobs, job->id.v);
    v.parent.v = ids_number(&d->jobs, job->parent.v);
    v.claimed_at = mask_wall(r, job->claimed_at);
    v.lease_until = mask_wall(r, job->lease_until);
    v.available_at = mask_wall(r, job->available_at);
    v.created_at = mask_wall(r, job->created_at);
    v.finished_at = mask_wall(r, job->finished_at);
    struct attempt_view *attempts = arena_zalloc(&d->a, job->n_attempts + 1, sizeof(*attempts));
    for (size_t i = 0; i < job->n_attempts; i++) {
        attempts[i] = job->attempts[i];
        attempts[i].started_at = mask_wall(r, attempts[i].started_at);
        attempts[i].finished_at = mask_wall(r, attempts[i].finished_at);
    }
    v.attempts = attempts;
    return v;
}

static bool in_order(struct wall a, struct wall b)
{
    return !a.us || !b.us || a.us <= b.us;
}

/* What `show` says to people only, and the order of times. */
static void add_rest(struct str *out, const struct job_view *v, const struct job_view *raw)
{
    str_addf(out, " parent %lld cancel %d progress " SV_FMT " fingerprint %08x reason %d max %d",
             (long long)v->parent.v, v->cancel_asked, SV_ARG(v->progress), v->fingerprint,
             v->wait_reason, v->max_attempts);
    str_addf(out, " timeout %lld order %d%d%d\n", (long long)v->timeout.us,
             in_order(raw->created_at, raw->claimed_at),
             in_order(raw->created_at, raw->available_at),
             in_order(raw->claimed_at, raw->finished_at));
}

static void add_job(const struct sides *r, struct side *d, const struct job_view *job,
                    enum job_detail detail)
{
    struct job_view v = masked_job(r, d, job);
    struct jw w = jw_make(&d->text);
    job_write(&w, &v, detail, r->config);
    add_rest(&d->text, &v, job);
}

static void know(struct sides *r, int64_t number, const struct job_view *job)
{
    if (r->n_jobs == KNOWN_MAX)
        return;
    struct known *k = &r->jobs[r->n_jobs++];
    *k = (struct known){.id = number, .fence = job->fence.v, .state = job->state};
    snprintf(k->queue, sizeof(k->queue), SV_FMT, SV_ARG(job->queue));
    snprintf(k->key, sizeof(k->key), SV_FMT, SV_ARG(job->key));
}

bool look_at_job(void *arg, const struct job_view *job)
{
    struct looking *l = arg;
    if (l->note)
        ids_note(&l->d->jobs, job->id.v);
    if (l->note && l->d == l->r->side)
        know(l->r, ids_number(&l->d->jobs, job->id.v), job);
    add_job(l->r, l->d, job, JOB_FULL);
    return true;
}

static void show_list(struct sides *r)
{
    const struct selection all = {0};
    r->n_jobs = 0;
    counted(r, OP_list);
    EACH_SIDE(r, d)
    {
        struct looking l = {r, d, true};
        str_adds(&d->text, "list\n");
        answer(d, d->s->ops->list(d->s, &all, true, look_at_job, &l, &d->e));
    }
}

void show_job(struct sides *r, int64_t number)
{
    counted(r, OP_job_get);
    EACH_SIDE(r, d)
    {
        struct job_view v;
        job_id id = {ids_native(&d->jobs, number)};
        str_addf(&d->text, "show %lld\n", (long long)number);
        if (answer(d, d->s->ops->job_get(d->s, id, &d->a, &v, &d->e)) == 0)
            add_job(r, d, &v, JOB_COMPLETE);
    }
}

/* ---- events ---- */

/* The time in the detail of a breaker's event. */
static struct sv masked_detail(const struct sides *r, struct sv detail, struct arena *a)
{
    static const char name[] = "\"until\":\"";
    char *text = detail.p ? arena_strndup(a, detail.p, detail.n) : NULL;
    char *at = text ? strstr(text, name) : NULL, *end = at ? strchr(at + sizeof(name), '"') : NULL;
    struct pawl_err ignored;
    struct wall t = {0};
    if (!end)
        return detail;
    at += sizeof(name) - 1;
    if (wall_parse(sv_make(at, (size_t)(end - at)), r->now, &t, &ignored) == 0)
        memset(at, t.us > r->now.us + NEAR_US ? '2' : '1', (size_t)(end - at));
    return sv_make(text, detail.n);
}

static void add_event(const struct sides *r, struct side *d, const struct event_view *e,
                      struct str *out)
{
    struct event_view v = *e;
    struct jw w = jw_make(out);
    v.id = ids_number(&d->events, e->id);
    v.at = mask_wall(r, e->at);
    v.job.v = ids_number(&d->jobs, e->job.v);
    v.detail = masked_detail(r, e->detail, &d->a);
    event_write(&w, &v);
    str_addc(out, '\n');
}

/* Jobs of which `show` may tell more than the list: not those that are new or gone. */
static void touch(struct sides *r, int64_t number, enum event_type type)
{
    if (type == EVENT_ADDED || type == EVENT_PRUNED)
        return;
    for (int i = 0; i < r->n_touched; i++)
        if (r->touched[i] == number)
            return;
    if (number > 0 && r->n_touched < TOUCHED_MAX)
        r->touched[r->n_touched++] = number;
}

static bool new_event(void *arg, const struct event_view *e)
{
    struct looking *l = arg;
    ids_note(&l->d->events, e->id);
    add_event(l->r, l->d, e, &l->d->text);
    touch(l->r, ids_number(&l->d->jobs, e->job.v), e->type);
    return true;
}

bool look_at_event(void *arg, const struct event_view *e)
{
    struct looking *l = arg;
    add_event(l->r, l->d, e, &l->d->text);
    return true;
}

/* In the order of what they say. */
struct lines {
    struct sides *r;
    struct side *d;
    char *v[512];
    size_t n;
};

static bool breaker_event(void *arg, const struct event_view *e)
{
    struct lines *l = arg;
    AUTO_STR struct str text = STR_INIT(STR_LINE);
    struct event_view v = *e;
    l->d->breakers_after = e->id;
    v.id = 0;
    add_event(l->r, l->d, &v, &text);
    if (l->n < ARRAY_LEN(l->v))
        l->v[l->n++] = arena_strndup(&l->d->a, text.p, text.len);
    return true;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void show_breaker_events(struct sides *r, struct side *d)
{
    struct lines l = {.r = r, .d = d};
    const struct event_filter f = {.after = d->breakers_after, .types = BREAKER_EVENTS};
    answer(d, d->s->ops->events(d->s, &f, breaker_event, &l, &d->e));
    qsort(l.v, l.n, sizeof(*l.v), compare_lines);
    for (size_t i = 0; i < l.n; i++)
        str_adds(&d->text, l.v[i]);
}

static void show_new_events(struct sides *r)
{
    counted(r, OP_events);
    r->n_touched = 0;
    EACH_SIDE(r, d)
    {
        struct looking l = {r, d, true};
        struct event_filter f = {.after = d->events.n ? d->events.v[d->events.n - 1] : 0,
                                 .types = ~BREAKER_EVENTS};
        str_adds(&d->text, "events\n");
        answer(d, d->s->ops->events(d->s, &f, new_event, &l, &d->e));
        show_breaker_events(r, d);
    }
}

static bool follow_event(void *arg, const struct event_view *e)
{
    struct looking *l = arg;
    add_event(l->r, l->d, e, &l->d->followed);
    return true;
}

static void drop_front(struct str *s, size_t n)
{
    memmove(s->p, s->p + n, s->len - n);
    s->len -= n;
    s->p[s->len] = 0;
}

/* A server may hold back what a transaction of somebody else could still precede: one side may be
 * behind the other, but not say something else. */
void sides_follow(struct sides *r)
{
    counted(r, OP_events);
    EACH_SIDE(r, d)
    {
        struct looking l = {.r = r, .d = d};
        struct event_filter f = {.follow = &d->cursor, .types = ~BREAKER_EVENTS};
        answer(d, d->s->ops->events(d->s, &f, follow_event, &l, &d->e));
    }
    struct str *a = &r->side[0].followed, *b = &r->side[1].followed;
    size_t n = a->len < b->len ? a->len : b->len;
    if (!n)
        return;
    str_add(&r->side[0].text, sv_make(a->p, n));
    str_add(&r->side[1].text, sv_make(b->p, n));
    drop_front(a, n);
    drop_front(b, n);
}

bool sides_follow_ends(struct sides *r)
{
    for (int tries = 0; tries < 600; tries++) {
        sides_follow(r);
        if (!r->side[0].followed.len && !r->side[1].followed.len)
            return true;
        usleep(50000);
    }
    return false;
}

/* ---- status and report ---- */

static int compare_jobs(const void *a, const void *b)
{
    const struct job_view *x = a, *y = b;
    return (x->id.v > y->id.v) - (x->id.v < y->id.v);
}

/* By id: those that are claimed in one group are so at the same time on one store and one after the
 * other on the other. */
static const struct job_view *masked_jobs(const struct sides *r, struct side *d,
                                          const struct job_view *v, size_t n)
{
    struct job_view *to = arena_zalloc(&d->a, n + 1, sizeof(*to));
    for (size_t i = 0; i < n; i++)
        to[i] = masked_job(r, d, &v[i]);
    qsort(to, n, sizeof(*to), compare_jobs);
    return to;
}

static bool by_claim(const struct status_view *s)
{
    for (size_t i = 1; i < s->n_running; i++)
        if (s->running[i - 1].claimed_at.us > s->running[i].claimed_at.us)
            return false;
    return true;
}

/* Rates depend on the moment: only what they are made of is compared. */
static void mask_status(const struct sides *r, struct side *d, struct status_view *s)
{
    struct class_view *classes = arena_zalloc(&d->a, s->n_classes + 1, sizeof(*classes));
    struct session_view *sessions = arena_zalloc(&d->a, s->n_sessions + 1, sizeof(*sessions));
    for (size_t i = 0; i < s->n_classes; i++) {
        classes[i] = s->classes[i];
        classes[i].first_created_at = mask_wall(r, classes[i].first_created_at);
        classes[i].done_last_minute = 0;
    }
    for (size_t i = 0; i < s->n_sessions; i++) {
        sessions[i] = s->sessions[i];
        sessions[i].started_at = mask_wall(r, sessions[i].started_at);
        sessions[i].renewed_at = mask_wall(r, sessions[i].renewed_at);
        sessions[i].lease_until = mask_wall(r, sessions[i].lease_until);
    }
    s->now = mask_wall(r, s->now);
    s->classes = classes;
    s->sessions = sessions;
    s->running = masked_jobs(r, d, s->running, s->n_running);
    s->last_done = masked_jobs(r, d, s->last_done, s->n_last_done);
    s->last_failed = masked_jobs(r, d, s->last_failed, s->n_last_failed);
}

/* Before the first slot of ten seconds leaves the minute, nothing depends on the moment. */
static void add_minute(const struct sides *r, struct side *d, const struct status_view *s)
{
    if (r->now.us - r->began.us > 40 * 1000000)
        return;
    for (size_t i = 0; i < s->n_classes; i++)
        str_addf(&d->text, " %lld", (long long)s->classes[i].done_last_minute);
}

/* The newest five that ended: jobs that end in one operation do so at the same time on one store
 * and one after the other on the other, so only which they are is compared, where these are all. */
static void add_newest(struct side *d, const char *name, const struct job_view *v, size_t n)
{
    int64_t sum = 0, squares = 0;
    for (size_t i = 0; n < 5 && i < n; i++) {
        sum += v[i].id.v;
        squares += v[i].id.v * v[i].id.v;
    }
    str_addf(&d->text, "%s %zu %lld %lld ", name, n, (long long)sum, (long long)squares);
}

static void add_classes(struct side *d, const struct status_view *s)
{
    for (size_t i = 0; i < s->n_classes; i++) {
        const struct class_view *c = &s->classes[i];
        str_addf(&d->text, "class " SV_FMT " " SV_FMT " %d %d", SV_ARG(c->queue), SV_ARG(c->kind),
                 c->paused, c->first_created_at.us != 0);
        for (int k = 0; k < N_JOB_STATES; k++)
            str_addf(&d->text, " %lld", (long long)c->n[k]);
        str_addf(&d->text, " retries %lld\n", (long long)c->retries);
    }
    for (size_t i = 0; i < s->n_sessions; i++)
        str_addf(&d->text, "filter " SV_FMT " running %d\n", SV_ARG(s->sessions[i].filter),
                 s->sessions[i].running);
}

static void add_status(const struct sides *r, struct side *d, struct status_view *s)
{
    size_t n;
    struct jw w = jw_make(&d->text);
    add_minute(r, d, s);
    str_addf(&d->text, "by claim %d\n", by_claim(s));
    mask_status(r, d, s);
    struct queue_row *rows = status_rows(s, &d->a, &n);
    status_write(&w, s, rows, n, NULL);
    str_addc(&d->text, '\n');
    add_newest(d, "done", s->last_done, s->n_last_done);
    add_newest(d, "failed", s->last_failed, s->n_last_failed);
    str_addf(&d->text, "poisoned %lld\n", (long long)s->poisoned);
    add_classes(d, s);
}

void show_status(struct sides *r, int max_running)
{
    counted(r, OP_status);
    EACH_SIDE(r, d)
    {
        struct status_view s;
        str_adds(&d->text, "status\n");
        if (answer(d, d->s->ops->status(d->s, max_running, &d->a, &s, &d->e)) == 0)
            add_status(r, d, &s);
    }
}

/* How long jobs took, and in which ten seconds they ended, is the machine's; that as many are told
 * of is not. */
static void mask_report(const struct sides *r, struct side *d, struct report_data *data)
{
    struct report_view *v = &data->view;
    struct report_error *errors = arena_zalloc(&d->a, v->n_errors + 1, sizeof(*errors));
    struct report_slow *slowest = arena_zalloc(&d->a, v->n_slowest + 1, sizeof(*slowest));
    struct report_slot *all = arena_zalloc(&d->a, 1, sizeof(*all));
    for (size_t i = 0; i < v->n_errors; i++) {
        errors[i] = v->errors[i];
        errors[i].sample.v = ids_number(&d->jobs, errors[i].sample.v);
    }
    for (size_t i = 0; i < v->n_slots; i++) {
        all->done += v->slots[i].done;
        all->skipped += v->slots[i].skipped;
    }
    for (size_t i = 0; i < v->n_slowest; i++)
        slowest[i].queue = slowest[i].kind = SV("any");
    v->now = masks[1];
    v->since.us = masks[1].us - 1000000;
    all->at = v->since;
    v->errors = errors;
    v->slowest = slowest;
    v->slots = all;
    v->n_slots = v->n_slots > 0;
    data->info.bytes = data->info.log_bytes_pending = 0;
    data->info.free_bytes = -1;
    mask_status(r, d, &data->status);
}

static int read_report(const struct sides *r, struct side *d, struct report_data *out)
{
    struct store *s = d->s;
    struct wall since = {r->now.us - NEAR_US};
    int rc = s->ops->status(s, 0, &d->a, &out->status, &d->e);
    if (rc == 0)
        rc = s->ops->report(s, since, out->queue, &d->a, &out->view, &d->e);
    return rc == 0 ? s->ops->info(s, &out->info, &d->e) : rc;
}

void show_report(struct sides *r, struct sv queue)
{
    counted(r, OP_status);
    counted(r, OP_report);
    counted(r, OP_info);
    EACH_SIDE(r, d)
    {
        struct report_data data = {.queue = queue};
        str_adds(&d->text, "report\n");
        if (answer(d, read_report(r, d, &data)) < 0)
            continue;
        str_addf(&d->text, "schema %d of %d, durability %d, %s%s\n", data.info.schema,
                 data.info.schema_known, data.info.durability,
                 data.info.bytes > 0 ? "" : "no size ", data.info.version[0] ? "" : "no version");
        mask_report(r, d, &data);
        struct jw w = jw_make(&d->text);
        report_write(&w, &data);
        str_addc(&d->text, '\n');
    }
}

void sides_show(struct sides *r)
{
    show_list(r);
    show_new_events(r);
    for (int i = 0; i < r->n_touched; i++)
        show_job(r, r->touched[i]);
    show_new_artifacts(r);
    show_status(r, WORKERS_RUNNING_MAX);
}

static void show_all_events(struct sides *r)
{
    counted(r, OP_events);
    EACH_SIDE(r, d)
    {
        struct looking l = {.r = r, .d = d};
        const struct event_filter f = {.types = ~BREAKER_EVENTS};
        answer(d, d->s->ops->events(d->s, &f, look_at_event, &l, &d->e));
    }
}

void sides_show_all(struct sides *r)
{
    for (int i = 0; i < r->n_jobs; i++)
        show_job(r, r->jobs[i].id);
    show_all_events(r);
    show_report(r, SV_NONE);
    show_policy(r);
    show_gates(r, &(const struct gate_filter){0});
    show_locks(r, SV_NONE);
    show_kept(r);
}
