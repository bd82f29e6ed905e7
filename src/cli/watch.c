/* The loop of the live view: look, compose, draw, wait. */
#include "watch.h"

#include "mem.h"
#include "text.h"
#include "workers_out.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>

#define SOONEST DUR_MS(200) /* between two looks, however often the store calls */

struct view {
    struct cli *c;
    struct watch_options o;
    struct watch_ui ui;
    struct watch_data data;
    struct status_view status;
    struct arena arena; /* of the status */
    struct str attention;
    struct store_info info;
    struct frame shown;
    struct boot looked;
    bool quit;
};

static void note_attention(struct cli *c, struct sv line)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    out_styled(&s, c->out.color, STYLE_YELLOW, SV("! "));
    text_safe(&s, line, 0);
    str_addc(&s, '\n');
    out_put(&c->out, str_sv(&s));
}

/* The lines that status prints go into memory here. */
static void collect_attention(struct view *w)
{
    struct out real = w->c->out;
    str_clear(&w->attention);
    w->c->out.buf = w->attention;
    w->c->out.keep = true;
    status_attention(w->c, &w->status, w->data.rows, w->data.n_rows, &w->data.gates,
                     note_attention);
    w->attention = w->c->out.buf;
    w->c->out = real;
    w->data.attention = str_sv(&w->attention);
}

/* A store that is busy is no reason to end a view that may run for days. */
static int look(struct view *w, struct pawl_err *err)
{
    struct store *s = w->c->store;
    w->looked = clock_boot();
    arena_reset(&w->arena);
    w->data.gates = (struct gate_list){0};
    int rc = s->ops->status(s, WORKERS_RUNNING_MAX, &w->arena, &w->status, err);
    if (rc == 0)
        rc = status_gates(w->c, &w->arena, &w->data.gates, err);
    if (rc == PAWL_ELOCKED) {
        w->status = (struct status_view){.now = s->ops->now(s)};
        snprintf(w->ui.note, sizeof(w->ui.note), "%s", err->msg);
        rc = 0;
    }
    if (rc < 0)
        return rc;
    w->data.rows = status_rows(&w->status, &w->arena, &w->data.n_rows);
    w->data.status = &w->status;
    collect_attention(w);
    return 0;
}

static int draw(struct view *w, bool again, struct pawl_err *err)
{
    struct frame next;
    int cols, rows;
    screen_size(&cols, &rows);
    frame_init(&next, cols, rows, w->c->out.color);
    frame_compose(&next, &w->data, &w->ui);
    int rc = screen_draw(again ? NULL : &w->shown, &next);
    int failed = errno;
    frame_done(&w->shown);
    w->shown = next;
    return rc < 0 ? err_errno(err, PAWL_EIO, failed, "cannot write to the terminal") : 0;
}

/* Through a handle of its own: looking never needs more than to read. */
static void toggle_pause(struct view *w)
{
    AUTO_STORE struct store *s = NULL;
    struct pawl_err err = {0};
    bool changed;
    const struct queue_row *row = watch_selected(&w->data, &w->ui);
    if (!row)
        return;
    int rc = w->c->app->open_store(w->c->config, STORE_WRITE, &s, &err);
    if (rc == 0)
        rc = s->ops->pause(s, row->queue, !row->paused, &changed, &err);
    if (rc < 0)
        snprintf(w->ui.note, sizeof(w->ui.note), "%s", err.msg);
    else
        snprintf(w->ui.note, sizeof(w->ui.note), "queue " SV_FMT " is %s", SV_ARG(row->queue),
                 row->paused ? "running again" : "paused");
}

/* True if the store has to be looked at again. */
static bool take_keys(struct view *w)
{
    char buf[256];
    bool acted = false;
    size_t n = screen_read(buf, sizeof(buf));
    struct sv rest = sv_make(buf, n);
    w->quit |= n == 0; /* readable and nothing there: the terminal is gone */
    while (rest.n && !w->quit) {
        struct key key;
        size_t used = key_read(rest, &key);
        rest = sv_make(rest.p + used, rest.n - used);
        enum watch_act act = watch_key(&w->ui, &w->data, &key);
        w->quit |= act == WATCH_QUIT;
        if (act == WATCH_PAUSE && !acted) {
            toggle_pause(w);
            acted = true;
        }
    }
    return acted;
}

static struct dur until(const struct view *w, struct dur after)
{
    int64_t us = w->looked.us + after.us - clock_boot().us;
    return DUR_US(us > 0 ? us : 0);
}

static int live(struct view *w, struct pawl_err *err)
{
    struct store *s = w->c->store;
    int fd = s->ops->wake_fd(s);
    bool called = false;
    int rc = look(w, err);
    if (rc == 0)
        rc = draw(w, true, err);
    while (rc == 0 && !w->quit) {
        struct dur pause = called && w->o.interval.us > SOONEST.us ? SOONEST : w->o.interval;
        unsigned what = screen_wait(called ? -1 : fd, until(w, pause));
        if (what & SCREEN_END)
            break;
        if (what & SCREEN_FD) {
            s->ops->wake_clear(s);
            called = true;
        }
        bool acted = (what & SCREEN_KEY) && take_keys(w);
        bool due = until(w, called ? pause : w->o.interval).us == 0;
        if (acted || due) {
            called = false;
            rc = look(w, err);
        }
        if (rc == 0 && (acted || due || (what & (SCREEN_KEY | SCREEN_SIZE))))
            rc = draw(w, what & SCREEN_SIZE, err);
    }
    return rc;
}

static int watch_screen(struct cli *c, const struct watch_options *o, struct pawl_err *err)
{
    struct view w = {.c = c, .o = *o, .attention = STR_INIT(STR_OUTPUT)};
    int rc = c->store->ops->info(c->store, &w.info, err);
    if (rc == 0)
        rc = screen_enter(err);
    if (rc < 0)
        return rc;
    w.data.store = w.info.location;
    w.data.interval = o->interval;
    arena_init(&w.arena);
    rc = live(&w, err);
    screen_leave();
    if (screen_signal())
        c->exit_status = 128 + screen_signal();
    arena_done(&w.arena);
    str_done(&w.attention);
    frame_done(&w.shown);
    return rc;
}

static void print_separator(struct cli *c)
{
    AUTO_STR struct str s = STR_INIT(STR_LINE);
    if (out_is_json(&c->out))
        return;
    str_adds(&s, "---- ");
    wall_format(c->store->ops->now(c->store), &s);
    str_adds(&s, " ----\n");
    out_put(&c->out, str_sv(&s));
}

/* The page again and again: a log, a pipe, a terminal that is none. */
static int watch_plain(struct cli *c, const struct watch_options *o,
                       int (*page)(struct cli *c, struct pawl_err *err), struct pawl_err *err)
{
    cli_catch_signals();
    for (int64_t i = 1;; i++) {
        int rc = page(c, err);
        out_flush(&c->out);
        if (rc < 0 || c->out.failed || (o->count && i >= o->count))
            return rc;
        struct timespec t = {o->interval.us / 1000000, o->interval.us % 1000000 * 1000};
        while (!cli_signal() && nanosleep(&t, &t) < 0 && errno == EINTR)
            ;
        if (cli_signal()) {
            c->exit_status = 128 + cli_signal();
            return 0;
        }
        print_separator(c);
    }
}

int watch_run(struct cli *c, const struct watch_options *o,
              int (*page)(struct cli *c, struct pawl_err *err), struct pawl_err *err)
{
    if (screen_possible() && !out_is_json(&c->out) && !o->count)
        return watch_screen(c, o, err);
    return watch_plain(c, o, page, err);
}
