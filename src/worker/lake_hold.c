#include "lake_hold.h"

#include "text.h"
#include "worker_internal.h"

enum { WHY_SHOWN = 250 };
#define LOOK_EVERY  DUR_MS(250) /* while claims are made: one statvfs(2) */
#define AGAIN       DUR_S(1)    /* while it is held */
#define PAUSE_MAX   DUR_S(30)
#define TRIAL_BYTES (4 << 10) /* of a trial at least */

static void on_time(struct timer *t);

void lake_hold_init(struct worker *w)
{
    w->hold.next.on_time = on_time;
    w->hold.pause = AGAIN;
    w->hold.room = INT64_MAX;
}

void lake_hold_done(struct worker *w)
{
    loop_timer_clear(w->loop, &w->hold.next);
}

/* ---- what others ask ---- */

const char *lake_hold_why(const struct worker *w, const struct kind *k)
{
    return w->hold.held && k->keeps ? w->hold.why : NULL;
}

/* Of what is under way nothing may be on the disk yet; by what its kind kept so far it will take so
 * much. One may always go: a large body must not keep everything waiting for ever. */
size_t lake_hold_room(const struct worker *w, const struct kind *k)
{
    double under_way = 0;
    int running = 0;
    if (!k->keeps || k->mean_kept < 1)
        return SIZE_MAX;
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].keeps) {
            under_way += w->kinds[i].running * w->kinds[i].mean_kept;
            running += w->kinds[i].running;
        }
    double more = ((double)w->hold.room - under_way) / k->mean_kept;
    if (more < 1)
        return running ? 0 : 1;
    return more < 1e9 ? (size_t)more : SIZE_MAX;
}

/* ---- beginning and end ---- */

static bool any_keeps(const struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].keeps && w->kinds[i].pool)
            return true;
    return false;
}

/* Harmless and short: it goes to a log, a store and a terminal. True: it is another one. */
static bool set_why(struct lake_hold *h, struct sv why)
{
    AUTO_STR struct str clean = STR_INIT(STR_LINE);
    text_safe(&clean, why, WHY_SHOWN);
    size_t n = clean.len < HOLD_WHY_MAX - 1 ? clean.len : HOLD_WHY_MAX - 1;
    bool same = strlen(h->why) == n && !memcmp(h->why, str_cstr(&clean), n);
    memcpy(h->why, str_cstr(&clean), n);
    h->why[n] = '\0';
    return !same;
}

static void give_back(struct worker *w)
{
    for (size_t i = 0; i < w->n_kinds; i++)
        if (w->kinds[i].keeps)
            slots_give_back_kind(w, w->kinds[i].name, "the lake takes nothing now");
}

static void begin(struct worker *w, struct sv why)
{
    struct lake_hold *h = &w->hold;
    bool new = set_why(h, why);
    if (h->held) {
        if (new)
            preflight_tell(w);
        return;
    }
    h->held = true;
    LOG(&w->log, LOG_WARN, "lake_held", LOG_S("why", sv_of(h->why)));
    preflight_tell(w);
    give_back(w);
    w->look_due |= w->draining;
    loop_timer_set(w->loop, &h->next, h->pause);
    worker_soon(w);
}

static void end(struct worker *w)
{
    struct lake_hold *h = &w->hold;
    h->held = false;
    h->fruitless = h->refused;
    h->refused = false;
    h->need = 0;
    LOG(&w->log, LOG_INFO, "lake_good");
    preflight_tell(w);
    slots_wet(w);
    w->look_due |= w->draining;
    worker_soon(w);
}

/* ---- looking ---- */

/* False: too little, or it cannot be told; why. */
static bool room(struct worker *w, struct str *why)
{
    struct lake_hold *h = &w->hold;
    int64_t reserve = w->o->config->disk_reserve, n;
    struct pawl_err err;
    h->looked = loop_now(w->loop);
    if (keep_free(w, &n, &err) < 0) {
        h->refused = true; /* there may be room; whether it takes something has to be tried */
        str_adds(why, err.msg);
        return false;
    }
    h->room = n - reserve;
    if (h->room >= 0 && h->room >= h->need)
        return true;
    str_addf(why, "the lake is short of room: %lld MiB are free, ", (long long)(n >> 20));
    if (h->room < 0)
        str_addf(why, "disk_reserve is %lld MiB", (long long)(reserve >> 20));
    else
        str_addf(why, "%lld KiB did not fit", (long long)(h->need >> 10));
    return false;
}

void lake_hold_look(struct worker *w)
{
    struct lake_hold *h = &w->hold;
    AUTO_STR struct str why = STR_INIT(STR_LINE);
    bool due = !h->looked.us || loop_now(w->loop).us - h->looked.us >= LOOK_EVERY.us;
    if (!h->held && due && any_keeps(w) && !room(w, &why))
        begin(w, str_sv(&why));
}

static void on_time(struct timer *t)
{
    struct worker *w = OWNER(t, struct worker, hold.next);
    struct lake_hold *h = &w->hold;
    AUTO_STR struct str why = STR_INIT(STR_LINE);
    if (h->trying || w->stopping != GO_ON)
        return;
    if (h->refused)
        keep_anew(w);
    if (!room(w, &why)) {
        begin(w, str_sv(&why));
        loop_timer_set(w->loop, &h->next, AGAIN);
    } else if (h->refused) {
        h->trying = true;
        keep_try(w, h->need > TRIAL_BYTES ? h->need : TRIAL_BYTES);
    } else {
        end(w);
    }
}

/* ---- what is found out ---- */

void lake_hold_keeps(struct worker *w, struct kind *k)
{
    if (k->keeps)
        return;
    k->keeps = true;
    if (w->hold.held)
        preflight_tell(w);
}

void lake_hold_kept(struct worker *w, struct kind *k, int64_t n)
{
    k->mean_kept = k->mean_kept > 0 ? k->mean_kept + ((double)n - k->mean_kept) / 16 : (double)n;
    w->hold.room -= n; /* until the next look tells */
    w->hold.fruitless = false;
    w->hold.pause = AGAIN;
}

/* A trial is small: what is refused again right after one is asked for later and later. */
void lake_hold_refused(struct worker *w, int64_t n, const struct pawl_err *err)
{
    struct lake_hold *h = &w->hold;
    h->refused = true;
    if (err->code == PAWL_EFULL && n > h->need)
        h->need = n;
    if (!h->held && h->fruitless)
        h->pause.us = h->pause.us * 2 < PAUSE_MAX.us ? h->pause.us * 2 : PAUSE_MAX.us;
    begin(w, sv_of(err->msg));
}

void lake_hold_tried(struct worker *w, int rc, const struct pawl_err *err)
{
    struct lake_hold *h = &w->hold;
    h->trying = false;
    if (rc == 0) {
        end(w);
        return;
    }
    begin(w, sv_of(err->msg));
    loop_timer_set(w->loop, &h->next, AGAIN);
}
