#include "asks.h"

#include "store_thread.h"
#include "worker_internal.h"

void asks_init(struct ask_list *l)
{
    l->first = NULL;
    l->last = &l->first;
}

static struct ask *add(struct run *r, enum ask_kind kind, struct sv name, void *arg)
{
    struct attempt *a = OWNER(r, struct attempt, run);
    struct ask *q = mem_zalloc(1, sizeof(*q));
    q->kind = kind;
    q->job = (struct lease_ref){a->lease->id, a->lease->fence};
    q->name = name.p ? mem_dup(name.p, name.n) : NULL;
    q->arg = arg;
    q->admission.outcome = ADMIT_STALE; /* what changes least, until it is answered */
    arena_init(&q->arena);
    *a->w->asks.last = q;
    a->w->asks.last = &q->next;
    worker_soon(a->w);
    return q;
}

void asks_admit(struct run *r, struct sv host, admission_fn *done, void *arg)
{
    add(r, ASK_ADMIT, host, arg)->done.admission = done;
}

void asks_pace(struct run *r, struct sv host, struct dur apart)
{
    add(r, ASK_PACE, host, NULL)->dur = apart;
}

void asks_recall(struct run *r, struct sv key, remembered_fn *done, void *arg)
{
    add(r, ASK_RECALL, key, arg)->done.remembered = done;
}

void asks_remember(struct run *r, struct sv key, struct sv value, struct dur ttl)
{
    struct ask *q = add(r, ASK_REMEMBER, key, NULL);
    q->value = STR_INIT(PAYLOAD_MAX_BYTES);
    str_add(&q->value, value);
    q->dur = ttl;
}

void asks_previous(struct run *r, previous_fn *done, void *arg)
{
    add(r, ASK_PREVIOUS, SV_NONE, arg)->done.previous = done;
}

void asks_kept(struct run *r, kept_before_fn *done, void *arg)
{
    add(r, ASK_KEPT, SV_NONE, arg)->done.kept = done;
}

/* ---- at the store ---- */

static struct sv copy(struct arena *a, struct sv s)
{
    return s.p ? sv_make(arena_strndup(a, s.p, s.n), s.n) : s;
}

/* The newest that kept its body; its views last for this call only. */
static bool on_fetch(void *arg, const struct fetch_view *v)
{
    struct ask *q = arg;
    if (!v->artifact)
        return true;
    q->record = v->f;
    struct sv *texts[] = {&q->record.url,     &q->record.final_url,     &q->record.variant,
                          &q->record.method,  &q->record.content_type,  &q->record.encoding,
                          &q->record.etag,    &q->record.last_modified, &q->record.headers,
                          &q->record.address, &q->record.http_version,  &q->record.redirects};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = copy(&q->arena, *texts[i]);
    q->kept_id = v->artifact;
    q->found = true;
    return false;
}

static bool on_artifact(void *arg, const struct artifact_view *v)
{
    struct ask *q = arg;
    if (v->id != q->kept_id)
        return true;
    q->kept = v->a;
    q->kept.name = q->kept.type = SV_NONE;
    q->kept.place = copy(&q->arena, v->a.place);
    return false;
}

static int find_kept(struct store *s, struct ask *q, struct pawl_err *err)
{
    const struct artifact_filter of = {.job = q->job.id};
    int rc = s->ops->fetches(s, q->job.id, on_fetch, q, err);
    return rc == 0 && q->found ? s->ops->artifacts(s, &of, on_artifact, q, err) : rc;
}

static int answer(struct store *s, struct ask *q, struct pawl_err *err)
{
    int gates;
    struct sv name = sv_of(q->name);
    switch (q->kind) {
    case ASK_ADMIT:
        return s->ops->admit(s, &q->job, name, &q->arena, &q->admission, err);
    case ASK_PACE:
        return s->ops->pace(s, &q->job, name, q->dur, &gates, err);
    case ASK_RECALL:
        return s->ops->recall(s, name, &q->arena, &q->remembered, err);
    case ASK_REMEMBER:
        return s->ops->remember(s, name, str_sv(&q->value), q->dur, err);
    case ASK_PREVIOUS: /* and whether its bytes are still there, by keep_previous() */
    case ASK_KEPT:
        return find_kept(s, q, err);
    }
    return 0;
}

int asks_answer(struct store *s, struct ask_list *l, struct pawl_err *err)
{
    for (struct ask *q = l->first; q; q = q->next) {
        int rc = answer(s, q, err);
        bool busy = rc == PAWL_ELOCKED && q->kind == ASK_PACE; /* others have the gates: let be */
        if (rc < 0 && store_failed(rc) && !busy)
            return rc;
    }
    return 0;
}

/* ---- back on the loop ---- */

static void tell(struct ask *q, bool answered)
{
    switch (q->kind) {
    case ASK_ADMIT:
        if (!answered)
            q->admission = (struct admission){.outcome = ADMIT_STALE};
        q->done.admission(q->arg, &q->admission);
        break;
    case ASK_RECALL:
        q->done.remembered(q->arg, answered ? q->remembered : SV_NONE);
        break;
    case ASK_PREVIOUS:
        q->done.previous(q->arg, answered && q->found ? &q->record : NULL);
        break;
    case ASK_KEPT:
        q->done.kept(q->arg, answered && q->kept.place.p ? &q->kept : NULL);
        break;
    case ASK_PACE:
    case ASK_REMEMBER:
        break;
    }
}

void asks_tell(struct ask_list *l, bool answered)
{
    struct ask *q = l->first;
    asks_init(l); /* what is told may ask again, in another list */
    while (q) {
        struct ask *next = q->next;
        tell(q, answered);
        arena_done(&q->arena);
        str_done(&q->value);
        free(q->name);
        free(q);
        q = next;
    }
}
