/* One look at the events that came since the last: which alert each one is, and about what. Failed
 * jobs are asked for their errors afterwards, because no question is put to the store while it
 * answers another. */
#include "alerts_internal.h"

#include "fingerprint.h"
#include "json.h"
#include "text.h"
#include <stdio.h>

#define OLDEST DUR_S(86400) /* what happened before is no news */

struct seen {
    struct event_view e; /* strings in the arena */
};

struct look_at {
    struct alerts *a;
    struct arena arena;
    int64_t before;
    struct seen *v;
    size_t n, cap;
    int64_t over;
    job_id *ids; /* of failed jobs */
    size_t n_ids;
    struct job_view *jobs;
    size_t n_jobs;
};

/* Of the events that the configured alerts are about. */
static unsigned types_of(const struct config *c)
{
    static const unsigned types[N_ALERT_TOPICS] = {
        [ALERT_BREAKER] = 1u << EVENT_BREAKER_OPENED | 1u << EVENT_BREAKER_CLOSED,
        [ALERT_FAILED] = 1u << EVENT_FAILED,
        [ALERT_POISON] = 1u << EVENT_FAILED,
        [ALERT_WORKER_LOST] = 1u << EVENT_WORKER_LOST,
        [ALERT_DISK_LOW] = 1u << EVENT_DISK_LOW,
        [ALERT_DRAINED] = 1u << EVENT_DRAINED,
        [ALERT_DRAIN_STUCK] = 1u << EVENT_DRAIN_STUCK,
    };
    unsigned all = 1u << EVENT_WORKER_LOST; /* never none: that would be any */
    for (size_t i = 0; i < c->n_alerts; i++)
        for (int t = 0; t < N_ALERT_TOPICS; t++)
            if (c->alerts[i].on & 1u << t)
                all |= types[t];
    return all;
}

/* ---- collecting ---- */

static struct sv keep(struct arena *a, struct sv s)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

static bool collect(void *arg, const struct event_view *e)
{
    struct look_at *l = arg;
    if (l->n == EVENTS_MAX) {
        l->over++;
        return true;
    }
    ARRAY_GROW(l->v, l->n, l->cap);
    struct seen *s = &l->v[l->n++];
    *s = (struct seen){.e = *e};
    s->e.queue = keep(&l->arena, e->queue);
    s->e.kind = keep(&l->arena, e->kind);
    s->e.key = keep(&l->arena, e->key);
    s->e.worker = keep(&l->arena, e->worker);
    s->e.detail = keep(&l->arena, e->detail);
    if (e->type == EVENT_FAILED && l->n_ids < DETAILS_MAX)
        l->ids[l->n_ids++] = e->job;
    return true;
}

static bool collect_job(void *arg, const struct job_view *job)
{
    struct look_at *l = arg;
    struct job_view *j = &l->jobs[l->n_jobs++];
    *j = *job;
    j->queue = keep(&l->arena, job->queue);
    j->kind = keep(&l->arena, job->kind);
    j->key = keep(&l->arena, job->key);
    j->host = keep(&l->arena, job->host);
    struct sv error = job->error;
    error.n = error.n < 4 * ALERT_TEXT_MAX ? error.n : 4 * ALERT_TEXT_MAX;
    j->error = keep(&l->arena, error);
    return l->n_jobs < DETAILS_MAX;
}

/* Jobs that meanwhile run again or are gone are told about without their error. */
static int read_jobs(struct look_at *l, struct pawl_err *err)
{
    if (!l->n_ids)
        return 0;
    const struct selection sel = {
        .ids = l->ids, .n_ids = l->n_ids, .states = 1u << JOB_FAILED, .limit = DETAILS_MAX};
    l->jobs = arena_zalloc(&l->arena, DETAILS_MAX, sizeof(*l->jobs));
    return l->a->store->ops->list(l->a->store, &sel, false, collect_job, l, err);
}

static const struct job_view *job_of(const struct look_at *l, job_id id)
{
    size_t low = 0, high = l->n_jobs; /* in order of id */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->jobs[mid].id.v < id.v)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->n_jobs && l->jobs[low].id.v == id.v ? &l->jobs[low] : NULL;
}

/* ---- details ---- */

static struct sv member(const struct json *doc, const char *name, struct arena *a)
{
    uint32_t v = doc->n ? json_member(doc, 0, sv_of(name)) : 0;
    return v && json_type(doc, v) == JSON_STRING ? json_string(doc, v, a) : SV_NONE;
}

static int64_t number(const struct json *doc, const char *name)
{
    int64_t n = 0;
    uint32_t v = doc->n ? json_member(doc, 0, sv_of(name)) : 0;
    return v && json_i64(doc, v, 0, INT64_MAX, &n) == 0 ? n : 0;
}

static void parse(struct json *doc, struct sv detail)
{
    struct pawl_err err;
    if (!detail.p || json_parse(doc, detail, &err) < 0 || json_type(doc, 0) != JSON_OBJECT)
        doc->n = 0;
}

/* ---- one event, one alert ---- */

static void tell(struct look_at *l, const struct seen *s, const struct alert_conf *alert,
                 const char *type, struct sv text, const struct str *message, struct sv sample)
{
    struct sv detail = s->e.detail;
    if (detail.n > ALERT_DETAIL_MAX)
        detail = SV_NONE;
    subjects_add(l->a, &(struct happening){.alert = alert,
                                           .type = type,
                                           .text = text,
                                           .message = str_sv(message),
                                           .sample = sample,
                                           .detail = detail,
                                           .number = s->e.id,
                                           .before = l->before,
                                           .at = s->e.at,
                                           .count = 1});
}

static void tell_breaker(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    bool opened = s->e.type == EVENT_BREAKER_OPENED;
    AUTO_JSON struct json doc = {0};
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE);
    parse(&doc, s->e.detail);
    struct sv value = member(&doc, "value", &l->arena), why = member(&doc, "why", &l->arena);
    struct sv until = member(&doc, "until", &l->arena);
    text_safe(&text, member(&doc, "limit", &l->arena), ALERT_TEXT_MAX);
    if (value.n) {
        str_addc(&text, ' ');
        text_safe(&text, value, ALERT_TEXT_MAX);
    }
    str_addf(&message, "breaker %s: %s", opened ? "opened" : "closed", str_cstr(&text));
    if (opened && until.n)
        str_addf(&message, " until " SV_FMT, SV_ARG(until));
    if (why.n) {
        str_adds(&message, ": ");
        text_safe(&message, why, ALERT_TEXT_MAX);
    }
    tell(l, s, alert, opened ? "breaker_opened" : "breaker_closed", str_sv(&text), &message,
         SV_NONE);
}

static void add_class(struct str *out, struct sv queue, struct sv kind)
{
    text_safe(out, queue, 100);
    str_addc(out, '/');
    text_safe(out, kind, 100);
}

static void tell_failed(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    const struct job_view *job = job_of(l, s->e.job);
    bool poison = job && job->cls == CLASS_LOST;
    bool as_poison = poison && alert->on & 1u << ALERT_POISON;
    if (!as_poison && !(alert->on & 1u << ALERT_FAILED))
        return;
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE),
                        sample = STR_INIT(STR_LINE);
    add_class(&text, s->e.queue, s->e.kind);
    str_addf(&message, "job %lld of ", (long long)s->e.job.v);
    str_add(&message, str_sv(&text));
    str_adds(&message, " failed for good");
    if (job) {
        char print[FINGERPRINT_TEXT];
        fingerprint_format(job->fingerprint, print);
        if (job->fingerprint)
            str_addf(&text, " %s", print);
        if (job->error.n) {
            str_adds(&message, ": ");
            text_safe(&message, job->error, ALERT_TEXT_MAX);
        }
        alert_sample(job, &sample);
    }
    tell(l, s, alert, as_poison ? "poison" : "failed", str_sv(&text), &message,
         job && !sample.overflow ? str_sv(&sample) : SV_NONE);
}

static void tell_lost(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE);
    text_safe(&text, s->e.worker, ALERT_TEXT_MAX);
    str_addf(&message, "worker %s died or lost its lease", str_cstr(&text));
    tell(l, s, alert, "worker_lost", str_sv(&text), &message, SV_NONE);
}

static void tell_disk(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    AUTO_JSON struct json doc = {0};
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE);
    parse(&doc, s->e.detail);
    text_safe(&text, member(&doc, "host", &l->arena), ALERT_TEXT_MAX);
    str_addf(&message, "disk low on %s: %lld MiB free", str_cstr(&text),
             (long long)(number(&doc, "free") >> 20));
    tell(l, s, alert, "disk_low", str_sv(&text), &message, SV_NONE);
}

static void tell_drain(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    bool stuck = s->e.type == EVENT_DRAIN_STUCK;
    AUTO_JSON struct json doc = {0};
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE);
    parse(&doc, s->e.detail);
    text_safe(&text, s->e.worker, ALERT_TEXT_MAX);
    if (stuck)
        str_addf(&message, "drain stuck: only a person can move %lld job%s; ",
                 (long long)number(&doc, "stuck"), number(&doc, "stuck") == 1 ? "" : "s");
    else
        str_adds(&message, "drained: ");
    str_addf(&message, "%lld done, %lld failed", (long long)number(&doc, "done"),
             (long long)number(&doc, "failed"));
    tell(l, s, alert, stuck ? "drain_stuck" : "drained", str_sv(&text), &message, SV_NONE);
}

static void tell_one(struct look_at *l, const struct seen *s, const struct alert_conf *alert)
{
    static const struct {
        enum event_type type;
        unsigned topics;
        void (*tell)(struct look_at *, const struct seen *, const struct alert_conf *);
    } table[] = {
        {EVENT_BREAKER_OPENED, 1u << ALERT_BREAKER, tell_breaker},
        {EVENT_BREAKER_CLOSED, 1u << ALERT_BREAKER, tell_breaker},
        {EVENT_FAILED, 1u << ALERT_FAILED | 1u << ALERT_POISON, tell_failed},
        {EVENT_WORKER_LOST, 1u << ALERT_WORKER_LOST, tell_lost},
        {EVENT_DISK_LOW, 1u << ALERT_DISK_LOW, tell_disk},
        {EVENT_DRAINED, 1u << ALERT_DRAINED, tell_drain},
        {EVENT_DRAIN_STUCK, 1u << ALERT_DRAIN_STUCK, tell_drain},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].type == s->e.type && table[i].topics & alert->on)
            table[i].tell(l, s, alert);
}

static void tell_all(struct look_at *l)
{
    const struct config *c = l->a->o->config;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < c->n_alerts; k++)
            tell_one(l, &l->v[i], &c->alerts[k]);
    if (!l->over)
        return;
    pthread_mutex_lock(&l->a->lock);
    l->a->dropped += l->over;
    snprintf(l->a->trouble, sizeof(l->a->trouble), "too many events at a time");
    pthread_mutex_unlock(&l->a->lock);
}

static int look(struct look_at *l, struct pawl_err *err)
{
    struct alerts *a = l->a;
    struct event_filter f = {.follow = &a->cursor,
                             .types = types_of(a->o->config),
                             .since = {a->store->ops->now(a->store).us - OLDEST.us}};
    if (!a->cursor.v) /* a store without any event, or one that could not be asked at the start */
        f.since = a->from;
    struct event_cursor was = a->cursor;
    l->ids = arena_zalloc(&l->arena, DETAILS_MAX, sizeof(*l->ids));
    int rc = a->store->ops->events(a->store, &f, collect, l, err);
    if (rc == 0)
        rc = read_jobs(l, err);
    if (rc < 0)
        a->cursor = was; /* nothing of it was told */
    else
        tell_all(l);
    return rc;
}

int alerts_look(struct alerts *a, struct pawl_err *err)
{
    struct look_at l = {.a = a, .before = a->cursor.v};
    arena_init(&l.arena);
    int rc = look(&l, err);
    arena_done(&l.arena);
    free(l.v);
    return rc;
}
