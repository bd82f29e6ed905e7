/* Arguments by chance: few names, so that they meet. */
#include "sides.h"

#include "fingerprint.h"
#include <stdio.h>

static const char *const queue_names[] = {"red", "green", "blue"};
const char *const kind_names[3] = {"k", "fetch", "parse"};
static const char *const host_names[] = {NULL, "a.example", "b.example"};
static const char *const payloads[] = {"null", "{\"n\":1}", "[1, 2.50,\t\"ä€\\u0001\"]",
                                       "{ \"b\" : {\"a\":[true]} }", "\"x\""};
static const char *const errors[] = {"exit 3", "cannot read /tmp/x17: no such file",
                                     "über 5%_ \\ 'x'", "HTTP 503", "timed out after 30 s"};

struct sv pick_queue(struct sides *r)
{
    return sv_of(queue_names[roll(r, 3)]);
}

struct sv pick_peer(struct sides *r)
{
    static const char *const peers[] = {"a.example", "b.example", "127.example", "127.0.0.1"};
    return sv_of(peers[roll(r, (int)ARRAY_LEN(peers))]);
}

struct sv pick_error(struct sides *r)
{
    return sv_of(errors[roll(r, (int)ARRAY_LEN(errors))]);
}

int64_t pick_job(struct sides *r)
{
    if (!r->n_jobs || roll(r, 20) == 0)
        return roll(r, 2) ? 1 + roll(r, (int)r->side[0].jobs.n + 1) : (int64_t)1 << 40;
    return r->jobs[roll(r, r->n_jobs)].id;
}

const struct known *pick_in(struct sides *r, enum job_state s)
{
    int from = r->n_jobs ? roll(r, r->n_jobs) : 0;
    for (int i = 0; i < r->n_jobs; i++) {
        const struct known *j = &r->jobs[(from + i) % r->n_jobs];
        if (j->state == s)
            return j;
    }
    return NULL;
}

/* Keys come into use slowly: new ones, held ones, those that a pruned job left. */
static struct sv pick_key(struct sides *r)
{
    char *key = arena_alloc(&r->a, 32);
    snprintf(key, 32, "key %ld", r->done / 10 + 30 - roll(r, 40));
    return sv_of(key);
}

/* A key of a job that is there. */
static void pick_held_key(struct sides *r, struct job_spec *s)
{
    const struct known *k = r->n_jobs ? &r->jobs[roll(r, r->n_jobs)] : NULL;
    if (!k || !k->key[0])
        return;
    s->queue = sv_of(arena_strndup(&r->a, k->queue, strlen(k->queue)));
    s->key = sv_of(arena_strndup(&r->a, k->key, strlen(k->key)));
}

static void pick_time(struct sides *r, struct job_spec *s)
{
    switch (roll(r, 20)) {
    case 0:
        s->delay = LONG_TIME;
        break;
    case 1:
        s->at.us = r->now.us + LONG_TIME.us;
        break;
    case 2:
        s->at.us = r->now.us - LONG_TIME.us;
        break;
    case 3: /* due with the next claim; a group's time stands still in one of the stores */
        s->delay = DUR_US(r->in_group ? 0 : 1);
        break;
    default:
        break;
    }
}

struct job_spec pick_spec(struct sides *r)
{
    static const struct dur timeouts[] = {{0}, {0}, {-1}, {30000000}};
    struct job_spec s = job_spec_default();
    s.queue = pick_queue(r);
    s.kind = sv_of(kind_names[roll(r, 3)]);
    s.host = sv_of(host_names[roll(r, 3)]);
    if (roll(r, 3))
        s.key = pick_key(r);
    if (roll(r, 5) == 0)
        pick_held_key(r, &s);
    s.payload = sv_of(payloads[roll(r, (int)ARRAY_LEN(payloads))]);
    s.priority = roll(r, 5) - 2;
    s.max_attempts = roll(r, 4);
    s.timeout = timeouts[roll(r, 4)];
    if (roll(r, 8) == 0)
        s.parent.v = pick_job(r);
    pick_time(r, &s);
    if (roll(r, 5) == 0) {
        s.lock = pick_lock(r);
        s.queue = SV("locked");
    }
    return s;
}

void say_spec(struct sides *r, const struct job_spec *s)
{
    say(r, " [" SV_FMT " " SV_FMT " host '" SV_FMT "' key '" SV_FMT "' p%d", SV_ARG(s->queue),
        SV_ARG(s->kind), SV_ARG(s->host), SV_ARG(s->key), s->priority);
    say(r, " lock '" SV_FMT "' max %d delay %lld at %d parent %lld]", SV_ARG(s->lock),
        s->max_attempts, (long long)s->delay.us, s->at.us ? (s->at.us > r->now.us ? 1 : -1) : 0,
        (long long)s->parent.v);
}

struct job_spec spec_for(const struct side *d, const struct job_spec *s)
{
    struct job_spec v = *s;
    v.parent.v = s->parent.v ? ids_native(&d->jobs, s->parent.v) : 0;
    return v;
}

static void pick_ids(struct sides *r, struct selection *out)
{
    size_t n = 1 + (size_t)roll(r, 6);
    job_id *ids = arena_alloc(&r->a, n * sizeof(*ids));
    say(r, " ids");
    for (size_t i = 0; i < n; i++) {
        ids[i].v = pick_job(r);
        say(r, " %lld", (long long)ids[i].v);
    }
    out->ids = ids;
    out->n_ids = n;
}

static void pick_error_filter(struct sides *r, struct selection *out)
{
    static const enum fail_class classes[] = {CLASS_ERROR, CLASS_TRANSIENT, CLASS_FATAL};
    struct sv text = pick_error(r);
    if (roll(r, 2)) {
        out->error = sv_make(text.p, roll(r, 2) ? text.n : 4);
        say(r, " error '" SV_FMT "'", SV_ARG(out->error));
        return;
    }
    out->error_low = out->error_high = fingerprint(classes[roll(r, 3)], text);
    say(r, " fingerprint %08x of " SV_FMT, out->error_low, SV_ARG(text));
}

void pick_selection(struct sides *r, struct selection *out)
{
    *out = (struct selection){0};
    if (roll(r, 3) == 0)
        pick_ids(r, out);
    if (roll(r, 6) == 0)
        out->queue = pick_queue(r);
    if (roll(r, 8) == 0)
        out->kind = sv_of(kind_names[roll(r, 3)]);
    if (roll(r, 12) == 0)
        out->host = sv_of(host_names[1 + roll(r, 2)]);
    if (roll(r, 15) == 0)
        out->key = pick_key(r);
    if (roll(r, 3) == 0)
        out->states = roll(r, 2) ? 1u << roll(r, N_JOB_STATES) : (unsigned)roll(r, 256);
    if (roll(r, 10) == 0)
        pick_error_filter(r, out);
    if (roll(r, 8) == 0)
        out->since.us = r->now.us + (roll(r, 5) ? -1 : 1) * LONG_TIME.us;
    if (roll(r, 6) == 0)
        out->limit = 1 + roll(r, 8);
    if (roll(r, 8) == 0)
        out->after.v = pick_job(r);
    say(r, " queue '" SV_FMT "' kind '" SV_FMT "' host '" SV_FMT "' key '" SV_FMT "'",
        SV_ARG(out->queue), SV_ARG(out->kind), SV_ARG(out->host), SV_ARG(out->key));
    say(r, " states %02x since %+lld limit %lld after %lld", out->states,
        out->since.us ? (long long)(out->since.us - r->now.us) : 0, (long long)out->limit,
        (long long)out->after.v);
}

struct selection selection_for(struct side *d, const struct selection *s)
{
    struct selection v = *s;
    job_id *ids = arena_alloc(&d->a, (s->n_ids + 1) * sizeof(*ids));
    for (size_t i = 0; i < s->n_ids; i++)
        ids[i].v = ids_native(&d->jobs, s->ids[i].v);
    v.ids = ids;
    v.after.v = s->after.v ? ids_native(&d->jobs, s->after.v) : 0;
    return v;
}
