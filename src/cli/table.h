/* Tables for people. Cells are made harmless (I14), columns are as wide as their content, the last
 * one is cut at the terminal's width. Long tables are printed in blocks, so memory stays bounded.
 */
#ifndef PAWL_CLI_TABLE_H
#define PAWL_CLI_TABLE_H

#include "mem.h"
#include "out.h"

struct column {
    const char *head;
    bool right;  /* numbers */
    size_t max;  /* longest text shown, in bytes of input, on a terminal; 0: any */
    bool may_go; /* left out on a narrow terminal when every cell is "-" */
};
struct cell {
    struct sv text; /* in the arena */
    enum style style;
    int width;
};
struct table {
    struct out *out;
    const struct column *columns;
    size_t n_columns;
    struct cell *cells;
    size_t n_cells, cap_cells;
    int *widths; /* -1: the column is left out */
    bool headed;
    struct arena arena;
};

void table_begin(struct table *t, struct out *out, const struct column *columns, size_t n);
/* Cells from left to right; a full row starts the next one. */
void table_text(struct table *t, struct sv text);
void table_styled(struct table *t, struct sv text, enum style style);
void table_int(struct table *t, int64_t v);
/* As an int, but "-" for 0: counts that are mostly nothing. */
void table_count(struct table *t, int64_t v);
void table_dur(struct table *t, struct dur d); /* "-" when us < 0 */
/* Print what is left and free. */
void table_end(struct table *t);

#endif
