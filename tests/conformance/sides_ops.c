/* Operations that change something, with arguments by chance, on both sides. */
#include "sides.h"

#include <stdio.h>

enum { JOBS_WANTED = 10, JOBS_MANY = 20, BATCH_MAX = 12, LOAD_MIN = 200, LOAD_MORE = 40 };

/* ---- adding ---- */

static void add(struct sides *r, const struct job_spec *specs, size_t n, enum on_duplicate dup)
{
    counted(r, OP_enqueue);
    EACH_SIDE(r, d)
    {
        struct job_spec *here = arena_alloc(&d->a, n * sizeof(*here));
        struct add_result *out = arena_zalloc(&d->a, n, sizeof(*out));
        for (size_t i = 0; i < n; i++)
            here[i] = spec_for(d, &specs[i]);
        if (answer(d, store_enqueue(d->s, here, n, dup, out, &d->e)) < 0)
            continue;
        for (size_t i = 0; i < n; i++) { /* new ones rise, and are known by their order */
            if (out[i].outcome == ADD_CREATED)
                ids_note(&d->jobs, out[i].id.v);
            str_addf(&d->text, "%d %lld", out[i].outcome,
                     (long long)ids_number(&d->jobs, out[i].id.v));
            if (out[i].outcome != ADD_CREATED)
                str_addf(&d->text, " %s", job_state_name(out[i].state));
            str_addc(&d->text, '\n');
        }
    }
}

static void op_add(struct sides *r)
{
    struct job_spec specs[BATCH_MAX];
    int n = roll(r, 2) ? 1 : 1 + roll(r, BATCH_MAX);
    enum on_duplicate dup = (enum on_duplicate)roll(r, 3);
    say(r, "enqueue dup %d", dup);
    for (int i = 0; i < n; i++) {
        specs[i] = i && roll(r, 8) == 0 ? specs[i - 1] : pick_spec(r);
        if (roll(r, 400) == 0)
            specs[i].priority = PRIORITY_MAX + 1; /* out of bounds: all or none */
        say_spec(r, &specs[i]);
    }
    add(r, specs, (size_t)n, dup);
}

/* Many at once, which a store may load in another way: in a queue of their own, all new or with
 * some that exist. */
static void op_load(struct sides *r)
{
    int n = LOAD_MIN - 5 + roll(r, LOAD_MORE), keyed = roll(r, 3);
    enum on_duplicate dup = (enum on_duplicate)roll(r, 3);
    struct job_spec *specs = arena_alloc(&r->a, (size_t)n * sizeof(*specs));
    r->look = true;
    say(r, "enqueue %d at once, keyed %d, dup %d", n, keyed, dup);
    for (int i = 0; i < n; i++) {
        specs[i] = pick_spec(r);
        specs[i].queue = SV("load");
        specs[i].lock = SV_NONE;
        if (keyed < 2)
            specs[i].key = SV_NONE;
        if (keyed == 1) {
            char *key = arena_alloc(&r->a, 32);
            snprintf(key, 32, "load %ld %d", r->step, i);
            specs[i].key = sv_of(key);
        }
    }
    add(r, specs, (size_t)n, dup);
}

/* ---- operators ---- */

static bool note_time(void *arg, const struct event_view *e)
{
    struct wall *newest = arg;
    if (e->at.us > newest->us)
        *newest = e->at;
    return true;
}

struct wall after_all(struct side *d)
{
    const struct event_filter newest = {.last = 100}; /* ids may be given before times are */
    struct wall t = {0};
    answer(d, d->s->ops->note(d->s, EVENT_DRAINED, &d->workers[0], SV_NONE, &d->e));
    answer(d, d->s->ops->events(d->s, &newest, note_time, &t, &d->e));
    return (struct wall){t.us + 1};
}

static void act(struct sides *r, const struct act_request *req)
{
    counted(r, OP_act);
    EACH_SIDE(r, d)
    {
        struct act_request here = *req;
        struct act_result out;
        here.select = selection_for(d, &req->select);
        if (req->finished_before.us == r->now.us)
            here.finished_before = after_all(d);
        if (answer(d, d->s->ops->act(d->s, &here, &out, &d->e)) < 0)
            continue;
        bool start = out.cursor.v == here.select.after.v;
        str_addf(&d->text, "matched %lld changed %lld more %d cursor %lld\n",
                 (long long)out.matched, (long long)out.changed, out.more,
                 start ? -2LL : (long long)ids_number(&d->jobs, out.cursor.v));
    }
}

static struct job_change pick_change(struct sides *r)
{
    struct job_change c = {.has_priority = roll(r, 2),
                           .has_time = roll(r, 2),
                           .has_max_attempts = roll(r, 3) == 0,
                           .has_timeout = roll(r, 3) == 0,
                           .priority = roll(r, 5) - 2,
                           .max_attempts = 1 + roll(r, 5),
                           .timeout = roll(r, 2) ? DUR_S(9) : DUR_NONE,
                           .delay = roll(r, 2) ? LONG_TIME : DUR_US(0)};
    if (c.has_time && roll(r, 3) == 0)
        c.at.us = r->now.us + (roll(r, 3) ? 1 : -1) * LONG_TIME.us;
    if (roll(r, 4) == 0)
        c.payload = SV("{\"new\": 1}");
    say(r, " set p %d:%d time %d:%lld:%d max %d:%d timeout %d payload %d", c.has_priority,
        c.priority, c.has_time, (long long)c.delay.us, c.at.us ? (c.at.us > r->now.us ? 1 : -1) : 0,
        c.has_max_attempts, c.max_attempts, c.has_timeout, c.payload.p != NULL);
    return c;
}

static void op_act(struct sides *r)
{
    static const char *const names[] = {"retry", "cancel", "prune", "release", "set"};
    struct act_request req = {.act = (enum act)roll(r, 5),
                              .dry_run = roll(r, 5) == 0,
                              .force = roll(r, 2),
                              .max = roll(r, 4) ? 1 + roll(r, 4) : 0};
    if (req.act == ACT_PRUNE && roll(r, 3) == 0)
        req.keep_newest = 1 + roll(r, 3);
    say(r, "%s dry %d force %d max %d", names[req.act], req.dry_run, req.force, req.max);
    if (req.act == ACT_RETRY)
        req.grant_attempts = roll(r, 3);
    if (req.act == ACT_PRUNE && !r->in_group && roll(r, 3) == 0)
        req.finished_before.us = r->now.us - roll(r, 2) * LONG_TIME.us;
    struct job_change c = req.act == ACT_SET ? pick_change(r) : (struct job_change){0};
    req.change = &c;
    say(r, " grant %d keep %lld before %+lld;", req.grant_attempts, (long long)req.keep_newest,
        req.finished_before.us ? (long long)(req.finished_before.us - r->now.us) : 0);
    pick_selection(r, &req.select);
    if (req.keep_newest && roll(r, 5)) { /* else it is refused */
        req.select.queue = pick_queue(r);
        req.select.states = 0xf0;
    }
    act(r, &req);
}

/* Jobs go, so that looking at all of them stays cheap: a load at once, else what has ended and,
 * where that is not enough, some of the rest. */
static void thin_out(struct sides *r)
{
    struct act_request prune = {.act = ACT_PRUNE, .select = {.states = 0xf0}, .max = KNOWN_MAX};
    struct act_request cancel = {.act = ACT_CANCEL, .select = {.states = 0x06}, .max = 3};
    if (r->n_jobs > LOAD_MIN / 2) {
        cancel.select.queue = prune.select.queue = SV("load");
        cancel.max = KNOWN_MAX;
    } else if (!r->in_group && roll(r, 4) == 0) {
        prune.finished_before = r->now; /* with the events of before */
    }
    say(r, "cancel %d of '" SV_FMT "', prune events %d", cancel.max, SV_ARG(cancel.select.queue),
        prune.finished_before.us != 0);
    if (cancel.max > 3 || roll(r, 3) == 0)
        act(r, &cancel);
    act(r, &prune);
}

static void op_pause(struct sides *r)
{
    struct sv queue = roll(r, 8) ? pick_queue(r) : SV("empty");
    bool to = roll(r, 6) == 0; /* a paused queue fills up */
    say(r, "pause " SV_FMT " %d", SV_ARG(queue), to);
    counted(r, OP_pause);
    EACH_SIDE(r, d)
    {
        bool changed = false;
        answer(d, d->s->ops->pause(d->s, queue, to, &changed, &d->e));
        str_addf(&d->text, "%d\n", changed);
    }
}

static void op_ask_worker(struct sides *r)
{
    char name[32];
    int w = roll(r, N_WORKERS + 1);
    enum worker_command c = (enum worker_command)(1 + roll(r, 4));
    snprintf(name, sizeof(name), "host%d:%d", w % 3, 100 + w);
    struct sv who = roll(r, 4) ? sv_of(name) : SV_NONE;
    say(r, "worker_ask '" SV_FMT "' %d", SV_ARG(who), c);
    counted(r, OP_worker_ask);
    EACH_SIDE(r, d)
    {
        int n = -1;
        answer(d, d->s->ops->worker_ask(d->s, who, c, &n, &d->e));
        str_addf(&d->text, "%d\n", n);
    }
}

void sides_change(struct sides *r)
{
    int what = roll(r, 1000);
    if (r->n_jobs > LOAD_MIN / 2 || (r->n_jobs > JOBS_MANY && roll(r, 4) == 0))
        thin_out(r);
    else if (what < 6)
        op_load(r);
    else if (what < (r->n_jobs < JOBS_WANTED ? 400 : r->n_jobs < JOBS_MANY ? 240 : 30))
        op_add(r);
    else if (what < 390)
        op_claim(r);
    else if (what < 650)
        op_settle(r);
    else if (what < 695)
        op_renew(r);
    else if (what < 790 && !r->in_group)
        op_session(r);
    else if (what < 830)
        op_sweep(r);
    else if (what < 920)
        op_act(r);
    else if (what < 946)
        op_pause(r);
    else if (what < 972)
        op_ask_worker(r);
    else
        op_held(r);
}
