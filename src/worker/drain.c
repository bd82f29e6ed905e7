/* When is there nothing left to do? Judged from the counts of every (queue, kind) that this
 * worker's filters admit, looked at together with a claim that found nothing. */
#include "worker_internal.h"

#include "json.h"
#include "text.h"
#include <stdio.h>

enum { NOTED_MAX = 20 }; /* queues and classes named in an event */

static bool in_list(const struct sv *v, size_t n, struct sv s)
{
    for (size_t i = 0; i < n; i++)
        if (sv_eq(v[i], s))
            return true;
    return n == 0;
}

static bool in_scope(struct worker *w, const struct class_view *c)
{
    if (!in_list(w->o->queues, w->o->n_queues, c->queue))
        return false;
    return !w->o->only_kinds || slots_kind(w, c->kind);
}

/* Does the list under `name` of a session's filter admit s? No list or an empty one admits all. */
static bool filter_admits(const struct json *doc, const char *name, struct sv s, struct arena *a)
{
    uint32_t list = json_member(doc, 0, sv_of(name));
    if (!list || json_type(doc, list) != JSON_ARRAY || doc->nodes[list].count == 0)
        return true;
    for (uint32_t k = json_first(doc, list); k != json_end(doc, list); k = json_after(doc, k))
        if (json_type(doc, k) == JSON_STRING && sv_eq(json_string(doc, k, a), s))
            return true;
    return false;
}

static bool session_serves(const struct session_view *s, const struct class_view *c)
{
    AUTO_JSON struct json doc = {0};
    AUTO(arena_done) struct arena a;
    struct pawl_err err;
    arena_init(&a);
    if (!s->filter.p || json_parse(&doc, s->filter, &err) < 0 || json_type(&doc, 0) != JSON_OBJECT)
        return true; /* unknown: assume it does, so that nothing is called stuck wrongly */
    return filter_admits(&doc, "queues", c->queue, &a) && filter_admits(&doc, "kinds", c->kind, &a);
}

/* Does that session say that the kind's preflight fails there? */
static bool fails_there(const struct session_view *s, struct sv kind)
{
    AUTO_JSON struct json doc = {0};
    struct pawl_err err;
    return s->preflight.n && json_parse(&doc, s->preflight, &err) == 0 &&
           json_type(&doc, 0) == JSON_OBJECT && json_member(&doc, 0, kind) != 0;
}

static bool served_elsewhere(struct worker *w, const struct status_view *v,
                             const struct class_view *c)
{
    for (size_t i = 0; i < v->n_sessions; i++)
        if (v->sessions[i].alive && v->sessions[i].id.v != w->session.id.v &&
            session_serves(&v->sessions[i], c) && !fails_there(&v->sessions[i], c->kind))
            return true;
    return false;
}

/* A lake that takes nothing now is waited for, as long as nobody says how long. */
static bool lake_stops(const struct worker *w, const struct kind *k)
{
    return lake_hold_why(w, k) && (w->o->patience.us >= 0 || w->o->only.v);
}

/* Why only a person can move what waits in this class; NULL: it moves by itself. */
static const char *stuck_reason(struct worker *w, const struct status_view *v,
                                const struct class_view *c)
{
    if (c->paused)
        return "the queue is paused";
    const struct kind *k = slots_kind(w, c->kind);
    bool ours = k && k->pool;
    const char *why = !ours              ? "no worker for this kind"
                      : preflight_why(k) ? "its preflight fails"
                      : lake_stops(w, k) ? "the lake takes nothing now"
                                         : NULL;
    return why && served_elsewhere(w, v, c) ? NULL : why;
}

/* How many jobs of the i-th class only a person can move, and why. */
static int64_t stuck_in(struct worker *w, const struct status_view *v, size_t i, const char **why)
{
    const struct class_view *c = &v->classes[i];
    int64_t waiting = c->n[JOB_QUEUED] + c->n[JOB_WAITING];
    int64_t behind = w->behind ? w->behind[i] : 0;
    *why = NULL;
    if (!waiting || !in_scope(w, c))
        return 0;
    *why = stuck_reason(w, v, c);
    if (*why)
        return waiting;
    if (behind)
        *why = "a breaker is open until somebody closes it";
    return behind < waiting ? behind : waiting;
}

static void summarise(struct worker *w, const struct status_view *v, struct look_summary *out)
{
    *out = (struct look_summary){.known = true, .ended = w->ended_jobs};
    for (size_t i = 0; i < v->n_classes; i++) {
        const struct class_view *c = &v->classes[i];
        if (!in_scope(w, c))
            continue;
        const char *why;
        out->failed += c->n[JOB_FAILED];
        out->left += c->n[JOB_RUNNING] + c->n[JOB_QUEUED] + c->n[JOB_WAITING];
        out->stuck += stuck_in(w, v, i, &why);
    }
}

static void list_stuck(struct worker *w, const struct status_view *v)
{
    for (size_t i = 0; i < v->n_classes; i++) {
        const struct class_view *c = &v->classes[i];
        const struct kind *k = slots_kind(w, c->kind);
        const char *why, *fails = k ? preflight_why(k) : NULL;
        int64_t n = stuck_in(w, v, i, &why);
        if (why)
            LOG(&w->log, LOG_WARN, "stuck", LOG_S("queue", c->queue), LOG_S("kind", c->kind),
                LOG_I("jobs", n), LOG_S("why", sv_of(why)), LOG_S("preflight", sv_of(fails)),
                LOG_S("lake", sv_of(k && !fails ? lake_hold_why(w, k) : NULL)));
    }
}

/* --patience: what is stuck may yet be moved by somebody. */
static bool patient(struct worker *w)
{
    if (!w->seen.stuck || w->o->patience.us < 0)
        return false;
    struct boot now = loop_now(w->loop);
    if (!w->stuck_since.us)
        w->stuck_since = now;
    return now.us - w->stuck_since.us < w->o->patience.us;
}

static void note_queues(const struct worker *w, struct jw *j)
{
    jw_name(j, "queues");
    jw_array(j);
    for (size_t i = 0; i < w->o->n_queues && i < NOTED_MAX; i++)
        jw_string(j, w->o->queues[i]);
    jw_end_array(j);
}

static void note_stuck(struct worker *w, const struct status_view *v, struct jw *j)
{
    int n = 0;
    jw_kint(j, "stuck", w->seen.stuck);
    jw_name(j, "reasons");
    jw_array(j);
    for (size_t i = 0; i < v->n_classes && n < NOTED_MAX; i++) {
        const struct class_view *c = &v->classes[i];
        const char *why;
        int64_t jobs = stuck_in(w, v, i, &why);
        if (!why)
            continue;
        n++;
        jw_object(j);
        jw_kstring(j, "queue", c->queue);
        jw_kstring(j, "kind", c->kind);
        jw_kint(j, "jobs", jobs);
        jw_kstring(j, "why", sv_of(why));
        jw_end_object(j);
    }
    jw_end_array(j);
}

/* The end of a drain, for the audit and for alerts. */
static void note_end(struct worker *w, const struct status_view *v)
{
    struct note *note = &w->note;
    if (w->o->guest)
        return;
    str_clear(&note->detail);
    struct jw j = jw_make(&note->detail);
    jw_object(&j);
    note_queues(w, &j);
    jw_kint(&j, "done", w->report.done);
    jw_kint(&j, "failed", w->seen.failed - w->failed_base);
    if (w->seen.stuck)
        note_stuck(w, v, &j);
    jw_end_object(&j);
    note->type = note->detail.overflow ? 0 : w->seen.stuck ? EVENT_DRAIN_STUCK : EVENT_DRAINED;
}

static void drained(struct worker *w, const struct status_view *v)
{
    w->report.drained = true;
    w->report.stuck = w->seen.stuck;
    list_stuck(w, v);
    note_end(w, v);
    stop_claiming(w);
}

/* --job: its end, or whatever keeps it from ending. */
static void judge_only(struct worker *w, const struct look *seen)
{
    bool ended = seen->job_gone || job_state_terminal(seen->job.state);
    w->seen.stuck = 0;
    for (size_t i = 0; i < seen->status.n_classes && !ended; i++) {
        const struct class_view *c = &seen->status.classes[i];
        const char *why;
        if (sv_eq(c->queue, seen->job.queue) && sv_eq(c->kind, seen->job.kind) &&
            seen->job.state != JOB_RUNNING && stuck_in(w, &seen->status, i, &why))
            w->seen.stuck = 1;
    }
    if (ended || (w->seen.stuck && !patient(w))) {
        w->only_ended = w->report.drained = true;
        w->report.stuck = w->seen.stuck;
    }
}

void drain_judge(struct worker *w, const struct turn *t)
{
    const struct look *seen = &t->seen;
    if (seen->rc < 0)
        return;
    w->behind = seen->behind;
    if (seen->limited.known)
        w->limited = seen->limited;
    summarise(w, &seen->status, &w->seen);
    if (!w->base_known)
        w->failed_base = w->seen.failed;
    w->base_known = true;
    bool quiet = !w->n_running && !w->n_ready && !w->filling->n_settles;
    if (w->stopping != GO_ON || !quiet)
        return;
    if (w->o->only.v)
        judge_only(w, seen);
    else if (w->draining && t->all_in && w->seen.left == w->seen.stuck && !patient(w))
        drained(w, &seen->status);
    if (!w->seen.stuck)
        w->stuck_since.us = 0;
}

void drain_report(struct worker *w)
{
    int64_t failed = w->seen.failed - w->failed_base; /* by anyone in scope */
    if (w->draining && w->base_known && failed > w->report.failed)
        w->report.failed = failed;
}
