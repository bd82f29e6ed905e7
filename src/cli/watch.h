/* `status --watch`: a live view in four parts. keys.c: bytes to keys, keys to what is shown;
 * frame.c: what is shown to lines of text; both pure. screen.c: lines to the terminal, and the
 * terminal back as it was. watch.c: the loop around them. */
#ifndef PAWL_CLI_WATCH_H
#define PAWL_CLI_WATCH_H

#include "status.h"

/* ---- what is shown ---- */

enum watch_filter { WATCH_ALL, WATCH_RUNNING, WATCH_FAILED, N_WATCH_FILTERS };
struct watch_ui {
    enum watch_filter filter;
    char text[65]; /* only what contains it in queue, kind or key; "": all */
    bool typing;   /* the text is being edited */
    bool help;
    char selected[NAME_MAX_BYTES + 1]; /* queue; one that is gone: the first */
    char note[256];                    /* what an action came to */
};
struct watch_data {
    const struct status_view *status;
    const struct queue_row *rows;
    size_t n_rows;
    struct gate_list gates; /* that are shut */
    struct sv attention;    /* lines, harmless already */
    const char *store;
    struct dur interval;
};
/* The queue that is selected, or NULL if none is shown. */
const struct queue_row *watch_selected(const struct watch_data *d, const struct watch_ui *ui);
bool watch_shows_queue(const struct watch_data *d, const struct watch_ui *ui,
                       const struct queue_row *row);

/* ---- keys ---- */

enum key_code {
    KEY_OTHER,
    KEY_TEXT,
    KEY_UP,
    KEY_DOWN,
    KEY_ENTER,
    KEY_ESCAPE,
    KEY_ERASE,
    KEY_CLEAR
};
struct key {
    enum key_code code;
    struct sv text; /* KEY_TEXT: one character, in the input */
};
/* The key at the beginning of what the terminal sent; returns its length. */
size_t key_read(struct sv input, struct key *out);
enum watch_act { WATCH_NOTHING, WATCH_QUIT, WATCH_PAUSE };
/* Apply a key to the view. What it asks beyond that is returned. */
enum watch_act watch_key(struct watch_ui *ui, const struct watch_data *d, const struct key *key);

/* ---- frames ---- */

/* Lines of text with styles, each at most `cols` wide, at most `rows` of them. */
struct frame {
    int cols, rows;
    bool color;
    struct str *lines;
    int n;
};
void frame_init(struct frame *f, int cols, int rows, bool color);
void frame_done(struct frame *f);
void frame_compose(struct frame *f, const struct watch_data *d, const struct watch_ui *ui);
/* Room for sections by turns, a line each, none beyond what it wants; a section that would get
 * fewer than `least` gets nothing. */
void frame_share(const int *want, int n, int room, int least, int *got);
/* Share done of a job's progress: a number of percent, {"percent":n} or {"done":n,"total":m}.
 * -1: it says nothing of the kind. */
int progress_percent(struct sv json);

/* ---- the terminal ---- */

/* Is there a terminal to take over? */
bool screen_possible(void);
/* Alternate screen, no cursor, keys unechoed; signals are noted. IO. */
PAWL_MUST_USE int screen_enter(struct pawl_err *err);
/* The terminal as it was. Safe in a signal handler, and when it is so already. */
void screen_leave(void);
void screen_size(int *cols, int *rows);
/* Wait for a key, `fd` (-1: none), a signal or the time: bits. */
enum { SCREEN_KEY = 1, SCREEN_FD = 2, SCREEN_SIZE = 4, SCREEN_END = 8 };
int screen_signal(void); /* the one that asked to end, or 0 */
unsigned screen_wait(int fd, struct dur longest);
/* What was typed; end of file is 0 bytes. */
size_t screen_read(char *buf, size_t size);
/* Bring the screen from one frame to the next in one write. before NULL: unknown. -1 with errno. */
int screen_draw(const struct frame *before, const struct frame *after);

/* ---- the loop ---- */

struct watch_options {
    struct dur interval;
    int64_t count; /* pages, then end; 0: until interrupted */
};
/* The live view, or without a terminal `page` again and again. */
PAWL_MUST_USE int watch_run(struct cli *c, const struct watch_options *o,
                            int (*page)(struct cli *c, struct pawl_err *err), struct pawl_err *err);

#endif
