/* pawl.yaml.5: docs/config.md as roff. Both come from the option table; the little Markdown that
 * config_document() writes (headings, lists, tables, one block) is read here. */
#include "config.h"
#include "man.h"
#include <ctype.h>

enum { CELLS_MAX = 8 };

struct page {
    struct str *s;
    struct sv header[CELLS_MAX]; /* of the table being read */
    size_t n_header;             /* 0: in no table */
    bool block;
};

/* Words in backquotes become bold. */
static void put_inline(struct str *s, struct sv text)
{
    bool bold = false;
    while (text.p) {
        man_put(s, sv_cut(text, '`', &text));
        if (!text.p)
            break;
        bold = !bold;
        str_adds(s, bold ? "\\fB" : "\\fR");
    }
}

/* "| a | b \| c |" into cells; a bar behind a backslash belongs to its cell. */
static size_t split_row(struct sv line, struct sv cells[CELLS_MAX])
{
    size_t n = 0, from = 1;
    for (size_t i = 1; i < line.n && n < CELLS_MAX; i++)
        if (line.p[i] == '|' && line.p[i - 1] != '\\') {
            cells[n++] = sv_trim(sv_make(line.p + from, i - from));
            from = i + 1;
        }
    return n;
}

static void put_cell(struct str *s, struct sv cell)
{
    while (cell.p) {
        struct sv part = sv_cut(cell, '\\', &cell);
        put_inline(s, part);
    }
}

/* The first cell is the term, the last what it means, those between are in parentheses. */
static void put_row(struct page *p, struct sv line)
{
    struct sv cells[CELLS_MAX];
    size_t n = split_row(line, cells);
    const char *sep = " (";
    if (n < 2)
        return;
    str_adds(p->s, ".TP\n");
    put_cell(p->s, cells[0]);
    for (size_t i = 1; i + 1 < n; i++) {
        if (!cells[i].n || sv_eq(cells[i], SV("``")))
            continue;
        str_adds(p->s, sep);
        if (i < p->n_header && sv_eq(p->header[i], SV("default")))
            str_adds(p->s, "default ");
        put_cell(p->s, cells[i]);
        sep = ", ";
    }
    str_adds(p->s, *sep == ',' ? ")\n" : "\n");
    put_cell(p->s, cells[n - 1]);
    str_addc(p->s, '\n');
}

static void put_table_line(struct page *p, struct sv line)
{
    if (!p->n_header)
        p->n_header = split_row(line, p->header);
    else if (!sv_starts(line, SV("|---")))
        put_row(p, line);
}

static void put_heading(struct page *p, struct sv text)
{
    str_adds(p->s, ".SH ");
    for (size_t i = 0; i < text.n; i++)
        str_addc(p->s, (char)toupper((unsigned char)text.p[i]));
    str_addc(p->s, '\n');
}

static void put_block_edge(struct page *p)
{
    p->block = !p->block;
    str_adds(p->s, p->block ? ".nf\n" : ".fi\n");
}

static void put_line(struct page *p, struct sv line)
{
    bool table = sv_starts(line, SV("|"));
    if (!table)
        p->n_header = 0;
    if (sv_starts(line, SV("```"))) {
        put_block_edge(p);
    } else if (p->block) {
        man_put(p->s, line);
        str_addc(p->s, '\n');
    } else if (table) {
        put_table_line(p, line);
    } else if (sv_starts(line, SV("## "))) {
        put_heading(p, sv_make(line.p + 3, line.n - 3));
    } else if (line.n && !sv_starts(line, SV("# ")) && !sv_starts(line, SV("Made from "))) {
        bool item = sv_starts(line, SV("- "));
        str_adds(p->s, item ? ".IP \\(bu 2\n" : "");
        put_inline(p->s, item ? sv_make(line.p + 2, line.n - 2) : line);
        str_addc(p->s, '\n');
    }
}

void man_config_page(struct str *s)
{
    AUTO_STR struct str text = STR_INIT(STR_OUTPUT);
    struct page p = {.s = s};
    config_document(&text);
    man_title(s, "pawl.yaml", 5, "configuration of pawl");
    str_adds(s, ".SH DESCRIPTION\n");
    struct sv rest = str_sv(&text);
    while (rest.p)
        put_line(&p, sv_cut(rest, '\n', &rest));
    str_adds(s, ".SH SEE ALSO\n.BR pawl (1),\n.BR pawl\\-config (1)\n");
}
