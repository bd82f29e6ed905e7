/* Standard output: data only, buffered, in one of three formats. A failed write is remembered and
 * makes the command fail; a reader that went away makes it end quietly. */
#ifndef PAWL_CLI_OUT_H
#define PAWL_CLI_OUT_H

#include "clock.h"
#include "json.h"
#include "str.h"

enum out_format { OUT_TABLE, OUT_JSON, OUT_NDJSON };
enum out_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* A look for a word; only where color is on. */
enum style { STYLE_NONE, STYLE_BOLD, STYLE_DIM, STYLE_GREEN, STYLE_RED, STYLE_YELLOW, STYLE_BLUE };

struct out {
    int fd;
    struct str buf;
    enum out_format format;
    bool terminal; /* stdout is one */
    bool color;
    int width;   /* columns of the terminal; 0: unlimited */
    bool keep;   /* all stays in buf until out_flush() */
    bool failed; /* nothing more is written */
    int failed_errno;
    int64_t items; /* written by out_item so far */
};

void out_init(struct out *o, int fd);
/* Decide about color for a stream: the flag, NO_COLOR, TERM=dumb, is it a terminal. */
bool out_wants_color(enum out_color flag, int fd);
void out_done(struct out *o);
void out_flush(struct out *o);
void out_put(struct out *o, struct sv s);
void out_putf(struct out *o, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* The text in a style, if there is color. */
void out_styled(struct str *to, bool color, enum style style, struct sv text);
static inline bool out_is_json(const struct out *o)
{
    return o->format != OUT_TABLE;
}

/* A list: one line an item in ndjson, one array in json. */
void out_item(struct out *o, struct sv json);
void out_items_end(struct out *o);
/* A single object. */
void out_object(struct out *o, struct sv json);

/* Members the shapes of DESIGN §6 have in common. */
void jw_kwall(struct jw *w, const char *name, struct wall t); /* null when us is 0 */
void jw_kms(struct jw *w, const char *name, struct dur d);    /* null when us < 0 */

#endif
