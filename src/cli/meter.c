#include "meter.h"

#include "fd.h"
#include "mem.h"
#include <stdio.h>

enum {
    BUSY_MAX = 8000, /* while workers live */
    BUSY_SHORT_MS = 20,
    BUSY_LONG_MS = 45,
    ALONE_MIN = 8000,
    ALONE_SHORT_MS = 400, /* below: the batch may double */
    ALONE_LONG_MS = 900,  /* above: it halves */
};

void meter_start(struct meter *m, const struct cli *c)
{
    m->c = c;
    m->start = m->said = clock_boot();
}

struct dur meter_elapsed(const struct meter *m)
{
    return DUR_US(clock_boot().us - m->start.us);
}

double meter_per_second(const struct meter *m, int64_t n)
{
    struct dur d = meter_elapsed(m);
    return d.us > 0 ? (double)n * 1e6 / (double)d.us : 0;
}

bool meter_due(struct meter *m)
{
    struct boot now = clock_boot();
    int64_t pause_ms = m->c->talk ? 200 : meter_elapsed(m).us < DUR_S(600).us ? 10000 : 60000;
    if (m->c->quiet || now.us - m->said.us < pause_ms * 1000)
        return false;
    m->said = now;
    return true;
}

void meter_draw(const struct meter *m, struct sv text)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (m->c->talk)
        str_adds(&s, "\r\033[K");
    str_add(&s, text);
    if (!m->c->talk)
        str_addc(&s, '\n');
    if (fd_write_all(STDERR_FILENO, s.p, s.len) < 0)
        return; /* progress is a courtesy */
}

void meter_end(const struct meter *m)
{
    if (m->c->talk && !m->c->quiet && m->said.us != m->start.us)
        fputs("\r\033[K", stderr);
}

void batch_init(struct batch *b)
{
    *b = (struct batch){.size = BATCH_START};
}

/* A look that fails finds somebody. */
static bool no_worker_lives(struct cli *c)
{
    AUTO(arena_done) struct arena a;
    struct status_view s;
    struct pawl_err ignored;
    arena_init(&a);
    bool alone = c->store && c->store->ops->status(c->store, 0, &a, &s, &ignored) == 0;
    for (size_t i = 0; alone && i < s.n_sessions; i++)
        alone = !s.sessions[i].alive;
    return alone;
}

static void look_for_workers(struct batch *b, struct cli *c)
{
    struct boot now = clock_boot();
    if (b->looked.us && now.us - b->looked.us < DUR_S(1).us)
        return;
    b->looked = now;
    b->alone = no_worker_lives(c);
}

void batch_adapt(struct batch *b, struct cli *c, size_t n, struct dur took)
{
    look_for_workers(b, c);
    size_t least = b->alone ? ALONE_MIN : BATCH_START, most = b->alone ? BATCH_MAX : BUSY_MAX;
    int64_t few = b->alone ? ALONE_SHORT_MS : BUSY_SHORT_MS;
    int64_t many = b->alone ? ALONE_LONG_MS : BUSY_LONG_MS;
    if (took.us > DUR_MS(many).us)
        b->size /= 2;
    else if (took.us < DUR_MS(few).us && n >= b->size)
        b->size *= 2;
    b->size = b->size > most ? most : b->size < least ? least : b->size;
}
