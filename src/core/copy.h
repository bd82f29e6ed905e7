/* Copying a store into another of any kind. A store is a set of tables as the domain sees them
 * (copy.def), read and written in pages in the order of their keys; the sum over a table is the
 * same on every store that holds the same. The source is only read. The target carries a mark from
 * `begin` to `finish`, and whoever opens it otherwise than with STORE_COPY is refused meanwhile. */
#ifndef PAWL_CORE_COPY_H
#define PAWL_CORE_COPY_H

#include "hash.h"
#include "store.h"

enum copy_table {
#define X(id, name, n_keys, types, columns) COPY_##id,
#include "copy.def"
#undef X
    N_COPY_TABLES
};
enum { COPY_COLUMNS_MAX = 28, COPY_KEYS_MAX = 3 };

struct copy_shape {
    const char *name, *types, *columns;
    int n_keys, n_columns;
};
extern const struct copy_shape copy_shapes[N_COPY_TABLES];

struct copy_value {
    bool null;
    int64_t i;   /* type i */
    struct sv s; /* types t, b */
};
/* n rows of the table's columns, one after another; all of it in the arena of the call. */
struct copy_rows {
    struct copy_value *v;
    size_t n;
};
/* How much `read` gives at a time: so many rows, or fewer when they are large. */
enum { COPY_PAGE_ROWS = 1000, COPY_PAGE_BYTES = 8 << 20 };

/* ---- what a store does for it ---- */

struct copy_facts {
    char id[64];    /* of the store, whatever the name it is reached by; the same for its backups */
    char stamp[64]; /* another one when anything has happened since */
    int64_t next_job;
    int64_t running, held; /* running jobs; those of them whose worker lives */
    int64_t workers;       /* that live */
    bool logs;             /* attempts have left output in files, which are not copied */
};

struct copy_begin {
    const struct copy_facts *source;
    bool replace; /* whatever the target holds goes first, an unfinished copy too */
};
enum copy_begun {
    COPY_BEGUN,
    COPY_RESUMED,   /* the same copy was begun before */
    COPY_NOT_EMPTY, /* there is something in it: unchanged */
    COPY_IN_USE,    /* workers live there: unchanged */
    COPY_OTHER,     /* a copy from another source is not finished: unchanged */
    COPY_CHANGED    /* this copy is not finished, but the source has changed: unchanged */
};

struct copy_ops {
    int (*facts)(struct store *s, struct copy_facts *out, struct pawl_err *err);
    /* One snapshot for all that is read until read_end. */
    int (*read_begin)(struct store *s, struct pawl_err *err);
    void (*read_end)(struct store *s);
    /* does: the next rows in the order of the key, those after the key `after` (copy_first_key()
     * for the first ones). outcome: n 0, there are no more. */
    int (*read)(struct store *s, enum copy_table t, const struct copy_value *after, struct arena *a,
                struct copy_rows *out, struct pawl_err *err);

    /* The target; STORE_COPY. */
    /* does: mark the store as being copied into. outcomes: enum copy_begun. */
    int (*begin)(struct store *s, const struct copy_begin *how, enum copy_begun *out,
                 struct pawl_err *err);
    /* does: the highest key that has arrived, in the arena. outcome: *out_any false, none has. */
    int (*last)(struct store *s, enum copy_table t, struct arena *a, struct copy_value *out_key,
                bool *out_any, struct pawl_err *err);
    /* does: add rows; those that are there already stay as they are. All or none. */
    int (*write)(struct store *s, enum copy_table t, const struct copy_rows *rows,
                 struct pawl_err *err);
    /* does: make the copy a store: ids go on above the highest, heads and counts are made from the
     * jobs. Sessions end as lost; their running jobs go back to the queue without an attempt spent,
     * or end if that was asked of them, as a sweep after a reboot does it. The mark goes.
     * atomic: all of it. outcome: how many jobs went back. errors: CONFLICT without a mark. */
    int (*finish)(struct store *s, int64_t next_job, int64_t *out_released, struct pawl_err *err);
};

/* The sentence for whoever opens a store with a mark. CONFLICT. */
int copy_refuse(const char *place, struct pawl_err *err);
/* The mark's text: "ID STAMP". */
void copy_mark(const struct copy_facts *source, struct str *out);
/* What a mark that is there means for a copy from `source`. */
enum copy_begun copy_mark_meaning(struct sv mark, const struct copy_facts *source);

/* ---- rows ---- */

/* A key before every other: COPY_KEYS_MAX values. */
void copy_first_key(enum copy_table t, struct copy_value *out);
/* A copy of the row's key that lasts with the arena. */
void copy_key_keep(enum copy_table t, const struct copy_value *row, struct arena *a,
                   struct copy_value *out);
static inline const struct copy_value *copy_row(enum copy_table t, const struct copy_rows *rows,
                                                size_t i)
{
    return rows->v + i * (size_t)copy_shapes[t].n_columns;
}
/* The first column in which they differ, or -1. */
int copy_row_differs(enum copy_table t, const struct copy_value *a, const struct copy_value *b);
struct sv copy_column(enum copy_table t, int column);
/* "17", "17/2" */
void copy_key_text(enum copy_table t, const struct copy_value *row, struct str *out);

/* Number of rows, and SHA-256 chained over them: each over the sum so far and the row. */
struct copy_sum {
    int64_t rows;
    unsigned char digest[SHA256_LEN];
};
void copy_sum_add(struct copy_sum *s, enum copy_table t, const struct copy_value *row,
                  struct str *scratch);
bool copy_sum_eq(const struct copy_sum *a, const struct copy_sum *b);

#endif
