#include "table.h"

#include "text.h"

enum { BLOCK_ROWS = 1000, GAP = 2 };

void table_begin(struct table *t, struct out *out, const struct column *columns, size_t n)
{
    *t = (struct table){.out = out, .columns = columns, .n_columns = n};
    t->widths = mem_zalloc(n, sizeof(*t->widths));
    for (size_t i = 0; i < n; i++)
        t->widths[i] = (int)strlen(columns[i].head);
    arena_init(&t->arena);
}

/* Columns on a terminal: one a character. Text is valid UTF-8 here. */
static int display_width(struct sv s)
{
    int n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static void put_padded(struct table *t, struct str *line, size_t col, const struct cell *c)
{
    bool last = col + 1 == t->n_columns;
    if (t->widths[col] < 0)
        return;
    int pad = t->widths[col] - c->width;
    if (t->columns[col].right)
        str_addf(line, "%*s", pad, "");
    out_styled(line, t->out->color, c->style, c->text);
    if (!t->columns[col].right && !last)
        str_addf(line, "%*s", pad, "");
    if (!last)
        str_addf(line, "%*s", GAP, "");
}

/* Of the first n columns with the gaps behind them. */
static int total_width(const struct table *t, size_t n)
{
    int total = 0;
    for (size_t i = 0; i < n; i++)
        total += t->widths[i] < 0 ? 0 : t->widths[i] + GAP;
    return total;
}

static bool all_dashes(const struct table *t, size_t col)
{
    for (size_t i = col; i < t->n_cells; i += t->n_columns)
        if (!sv_eq(t->cells[i].text, SV("-")))
            return false;
    return true;
}

/* Decided once, before the head is printed. */
static void leave_out(struct table *t)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->out->width && t->columns[i].may_go && all_dashes(t, i) &&
            total_width(t, t->n_columns) - GAP > t->out->width)
            t->widths[i] = -1;
}

/* The last column's text cut to what is left of the terminal's width. */
static struct cell fitted(const struct table *t, struct cell c)
{
    int room = t->out->width - total_width(t, t->n_columns - 1);
    if (t->out->width == 0 || c.width <= room || room < 8)
        return c;
    size_t i = 0;
    for (int n = 0; i < c.text.n; i++)
        if (((unsigned char)c.text.p[i] & 0xc0) != 0x80 && ++n >= room)
            break;
    c.text.n = i;
    c.width = room - 1;
    return c;
}

static void print_row(struct table *t, const struct cell *row)
{
    AUTO_STR struct str line = STR_INIT(STR_OUTPUT);
    for (size_t i = 0; i < t->n_columns; i++) {
        struct cell c = i + 1 == t->n_columns ? fitted(t, row[i]) : row[i];
        put_padded(t, &line, i, &c);
    }
    while (line.len && line.p[line.len - 1] == ' ')
        line.p[--line.len] = '\0';
    str_addc(&line, '\n');
    out_put(t->out, str_sv(&line));
}

static void print_head(struct table *t)
{
    struct cell *head = mem_zalloc(t->n_columns, sizeof(*head));
    for (size_t i = 0; i < t->n_columns; i++) {
        struct sv text = sv_of(t->columns[i].head);
        head[i] = (struct cell){text, STYLE_BOLD, (int)text.n};
    }
    print_row(t, head);
    free(head);
}

static void print_block(struct table *t)
{
    if (!t->headed) {
        leave_out(t);
        print_head(t);
    }
    t->headed = true;
    for (size_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns)
        print_row(t, t->cells + i);
    t->n_cells = 0;
    arena_reset(&t->arena);
}

/* Keeps a cell whose text is harmless already. */
static void add_cell(struct table *t, struct sv safe, enum style style)
{
    if (t->n_cells == BLOCK_ROWS * t->n_columns)
        print_block(t);
    size_t col = t->n_cells % t->n_columns;
    struct cell c = {sv_make(arena_strndup(&t->arena, safe.n ? safe.p : "", safe.n), safe.n), style,
                     display_width(safe)};
    if (t->widths[col] >= 0 && c.width > t->widths[col])
        t->widths[col] = c.width;
    ARRAY_GROW(t->cells, t->n_cells, t->cap_cells);
    t->cells[t->n_cells++] = c;
}

void table_styled(struct table *t, struct sv text, enum style style)
{
    AUTO_STR struct str safe = STR_INIT(STR_OUTPUT);
    size_t max = t->out->terminal ? t->columns[t->n_cells % t->n_columns].max : 0;
    if (text.n)
        text_safe(&safe, text, max);
    add_cell(t, text.n ? str_sv(&safe) : SV("-"), text.n ? style : STYLE_DIM);
}

void table_text(struct table *t, struct sv text)
{
    table_styled(t, text, STYLE_NONE);
}

void table_int(struct table *t, int64_t v)
{
    AUTO_STR struct str s = STR_INIT(64);
    str_addi(&s, v);
    add_cell(t, str_sv(&s), STYLE_NONE);
}

void table_count(struct table *t, int64_t v)
{
    if (v)
        table_int(t, v);
    else
        add_cell(t, SV("-"), STYLE_DIM);
}

void table_dur(struct table *t, struct dur d)
{
    AUTO_STR struct str s = STR_INIT(64);
    if (d.us >= 0)
        dur_human(d, &s);
    table_text(t, str_sv(&s));
}

void table_end(struct table *t)
{
    print_block(t);
    free(t->cells);
    free(t->widths);
    arena_done(&t->arena);
}
