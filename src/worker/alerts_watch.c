/* What no event of a job tells: too many failures, too little room on the disk. */
#include "alerts_internal.h"

#include "json.h"
#include "text.h"
#include <stdio.h>
#include <sys/statvfs.h>

enum { QUEUES_MAX = 200 }; /* looked at for their rate at a time */
#define WINDOW     DUR_S(300)
#define DISK_AGAIN DUR_S(3600) /* while it lasts */

/* A report costs more than counts do: it is asked for where the counts since the last time leave
 * it possible that too many failed. */
struct queue_seen {
    char *name;
    int64_t well, failed;         /* jobs that ended so, counted now */
    int64_t well_was, failed_was; /* and the last time */
};

/* ---- failure rate ---- */

static struct queue_seen *queue_of(struct alerts *a, struct sv name)
{
    for (size_t i = 0; i < a->n_queues; i++)
        if (sv_eq(name, sv_of(a->queues[i].name)))
            return &a->queues[i];
    if (a->n_queues == QUEUES_MAX)
        return NULL;
    ARRAY_GROW(a->queues, a->n_queues, a->cap_queues);
    struct queue_seen *q = &a->queues[a->n_queues++];
    *q = (struct queue_seen){.name = mem_dup(name.p, name.n)};
    return q;
}

static void tell_rate(struct alerts *a, const struct alert_conf *alert, struct sv queue,
                      const struct report_view *r)
{
    int64_t failed = r->total.failed, all = failed + r->total.done + r->total.skipped;
    if (all < alert->min_jobs || failed * 100 < all * alert->failure_rate)
        return;
    AUTO_STR struct str text = STR_INIT(STR_LINE), message = STR_INIT(STR_LINE),
                        detail = STR_INIT(STR_LINE);
    text_safe(&text, queue, ALERT_TEXT_MAX);
    str_addf(&message, "%lld of %lld job%s of %s failed for good in 5 minutes (%lld %%)",
             (long long)failed, (long long)all, all == 1 ? "" : "s", str_cstr(&text),
             (long long)(failed * 100 / all));
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "queue", queue);
    jw_kint(&w, "failed", failed);
    jw_kint(&w, "ended", all);
    jw_kint(&w, "window_ms", WINDOW.us / 1000);
    jw_end_object(&w);
    subjects_add(a, &(struct happening){.alert = alert,
                                        .type = "failure_rate",
                                        .text = str_sv(&text),
                                        .message = str_sv(&message),
                                        .detail = str_sv(&detail),
                                        .number = r->now.us / alert->every.us,
                                        .before = INT64_MAX,
                                        .at = r->now,
                                        .count = 1});
}

static void judge_queue(struct alerts *a, struct queue_seen *q, struct wall now,
                        struct arena *arena)
{
    const struct config *c = a->o->config;
    struct report_view r;
    struct pawl_err err;
    struct wall since = {now.us - WINDOW.us};
    if (a->store->ops->report(a->store, since, sv_of(q->name), arena, &r, &err) < 0)
        return;
    for (size_t i = 0; i < c->n_alerts; i++)
        if (c->alerts[i].on & 1u << ALERT_FAILURE_RATE)
            tell_rate(a, &c->alerts[i], sv_of(q->name), &r);
}

static void count_ended(struct alerts *a, const struct status_view *v)
{
    for (size_t i = 0; i < a->n_queues; i++)
        a->queues[i].well = a->queues[i].failed = 0;
    for (size_t i = 0; i < v->n_classes; i++) {
        const struct class_view *c = &v->classes[i];
        struct queue_seen *q = queue_of(a, c->queue);
        if (!q)
            continue;
        q->well += c->n[JOB_DONE] + c->n[JOB_SKIPPED];
        q->failed += c->n[JOB_FAILED];
    }
}

static bool suspicious(struct queue_seen *q, int percent)
{
    int64_t failed = q->failed - q->failed_was, well = q->well - q->well_was;
    q->failed_was = q->failed;
    q->well_was = q->well;
    return failed > 0 && 200 * failed >= percent * (failed + (well > 0 ? well : 0));
}

void alerts_rates(struct alerts *a, struct arena *arena)
{
    const struct config *c = a->o->config;
    struct status_view v;
    struct pawl_err err;
    int percent = 0; /* the lowest asked for */
    for (size_t i = 0; i < c->n_alerts; i++)
        if (c->alerts[i].on & 1u << ALERT_FAILURE_RATE &&
            (!percent || c->alerts[i].failure_rate < percent))
            percent = c->alerts[i].failure_rate;
    arena_reset(arena);
    if (!percent || a->store->ops->status(a->store, 0, arena, &v, &err) < 0)
        return;
    count_ended(a, &v);
    for (size_t i = 0; i < a->n_queues; i++)
        if (suspicious(&a->queues[i], percent))
            judge_queue(a, &a->queues[i], v.now, arena);
}

void alerts_watch_done(struct alerts *a)
{
    for (size_t i = 0; i < a->n_queues; i++)
        free(a->queues[i].name);
    free(a->queues);
}

/* ---- disk ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Bytes free beside the store and beside the logs, whichever are fewer; -1: unknown. */
static int64_t free_bytes(struct alerts *a)
{
    struct store_info info;
    struct statvfs fs;
    struct pawl_err err;
    int dir;
    int64_t n = a->store->ops->info(a->store, &info, &err) == 0 ? info.free_bytes : -1;
    bool logs = a->store->ops->log_dir && !a->o->no_logs;
    if (logs && a->store->ops->log_dir(a->store, &dir, &err) == 0 && fstatvfs(dir, &fs) == 0)
        n = least(n, (int64_t)fs.f_bavail * (int64_t)fs.f_frsize);
    return n;
}

static void note_disk(struct alerts *a, int64_t n)
{
    AUTO_STR struct str detail = STR_INIT(STR_LINE);
    struct pawl_err err;
    struct jw w = jw_make(&detail);
    jw_object(&w);
    jw_kstring(&w, "host", sv_of(a->host));
    jw_kint(&w, "free", n);
    jw_kint(&w, "reserve", a->o->config->disk_reserve);
    jw_end_object(&w);
    (void)a->store->ops->note(a->store, EVENT_DISK_LOW, &a->session, str_sv(&detail), &err);
}

/* Every worker looks after its own machine; its event is told by the one whose duty it is. */
void alerts_disk(struct alerts *a)
{
    struct boot now = clock_boot();
    int64_t n = free_bytes(a);
    bool low = n >= 0 && n < a->o->config->disk_reserve;
    if (low && (!a->disk_low || now.us - a->disk_noted.us > DISK_AGAIN.us)) {
        note_disk(a, n);
        a->disk_noted = now;
    }
    a->disk_low = low;
}
