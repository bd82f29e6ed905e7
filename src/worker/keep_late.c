#include "keep_late.h"

static int lake_of(struct store_thread *st, struct pawl_err *err)
{
    const struct lake_options o = {.path = st->o->config->lake_path};
    return st->lake ? 0 : lake_open(&o, &st->lake, err);
}

static void give_back(struct settle *s, struct ended *e)
{
    s->outcome = OUTCOME_RELEASED;
    s->refund_attempt = true;
    s->artifacts = NULL;
    s->n_artifacts = 0;
    s->fetch = NULL;
    s->result = SV_NONE;
    e->why = "its artifact is gone";
}

/* A lake that cannot say is no reason to hold up the store: the job is done again. */
static void touch(struct store_thread *st, struct settle *s, struct ended *e)
{
    struct pawl_err err;
    bool there = true;
    int rc = lake_of(st, &err);
    for (size_t i = 0; rc == 0 && there && i < s->n_artifacts; i++)
        rc = lake_touch(st->lake, s->artifacts[i].place.p, &there, &err);
    if (rc < 0 || !there)
        give_back(s, e);
    e->kept = clock_boot();
}

/* A lake that is not there, or cannot say, has nothing of use. */
static bool has(struct store_thread *st, const struct artifact *a)
{
    struct pawl_err err;
    bool there = false;
    return a->place.p && lake_of(st, &err) == 0 &&
           lake_touch(st->lake, a->place.p, &there, &err) == 0 && there;
}

void keep_previous(struct store_thread *st, const struct ask_list *l)
{
    for (struct ask *q = l->first; q; q = q->next)
        if (q->kind == ASK_PREVIOUS && q->found && !has(st, &q->kept))
            q->found = false;
}

void keep_late(struct store_thread *st, struct turn *t)
{
    int64_t late = clock_boot().us - st->o->config->worker_lease.us / 2;
    for (size_t i = 0; i < t->n_settles; i++)
        if (t->settles[i].n_artifacts && t->ended[i].kept.us < late)
            touch(st, &t->settles[i], &t->ended[i]);
}
