/* Gates for people and scripts: those that matter most of any number, and how one is written. */
#ifndef PAWL_CLI_GATES_OUT_H
#define PAWL_CLI_GATES_OUT_H

#include "cli.h"
#include "mem.h"
#include "table.h"

enum {
    GATES_SHOWN = 5,     /* by status */
    GATES_LISTED = 50,   /* by limit show and breaker show, as a table */
    GATES_WRITTEN = 100, /* as JSON, by status */
};

struct gate_list {
    struct gate_view *v; /* in the arena; shut ones first, most lanes parked first */
    size_t n;
    int64_t gates, used, shut, parked; /* over all of them, also those not kept */
};

/* The `max` gates of the filter that matter most. */
PAWL_MUST_USE int gates_collect(struct cli *c, const struct gate_filter *f, size_t max,
                                struct arena *a, struct gate_list *out, struct pawl_err *err);
/* Does it hold back anything? Full with nothing behind it does not. */
bool gate_hinders(const struct gate_view *g);

/* LIMIT or LIMIT=VALUE, as it is. */
void gate_name(struct str *s, const struct gate_view *g);
/* Its object. */
void gate_write(struct jw *w, const struct gate_view *g);
/* The rows of `limit show` and `breaker list`. */
extern const struct column gate_columns[];
extern const size_t n_gate_columns;
void gate_row(struct table *t, const struct gate_view *g, struct wall now);
/* Cells of the short form in status: name, why, used, until, parked. */
void gate_cells(struct table *t, const struct gate_view *g, struct wall now);
/* LIMIT [VALUE], quoted for a shell. */
void gate_words_quoted(struct str *s, const struct gate_view *g);

#endif
