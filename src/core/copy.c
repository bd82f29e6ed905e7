/* Rows of a copy: their shapes, their comparison, their sums. */
#include "copy.h"

const struct copy_shape copy_shapes[N_COPY_TABLES] = {
#define X(id, name, n_keys, types, columns)                                                        \
    [COPY_##id] = {#name, types, columns, n_keys, sizeof(types) - 1},
#include "copy.def"
#undef X
};
#define X(id, name, n_keys, types, columns)                                                        \
    _Static_assert(sizeof(types) - 1 <= COPY_COLUMNS_MAX && (n_keys) <= COPY_KEYS_MAX, #name);
#include "copy.def"
#undef X

int copy_refuse(const char *place, struct pawl_err *err)
{
    err_set(err, PAWL_ECONFLICT, "%s: a copy into this store is not finished", place);
    return err_hint(err, "run the same 'pawl copy' again; it goes on where it stopped");
}

void copy_mark(const struct copy_facts *source, struct str *out)
{
    str_addf(out, "%s %s", source->id, source->stamp);
}

enum copy_begun copy_mark_meaning(struct sv mark, const struct copy_facts *source)
{
    struct sv stamp, id = sv_cut(mark, ' ', &stamp);
    if (!sv_eq(id, sv_of(source->id)))
        return COPY_OTHER;
    return sv_eq(stamp, sv_of(source->stamp)) ? COPY_RESUMED : COPY_CHANGED;
}

void copy_first_key(enum copy_table t, struct copy_value *out)
{
    for (int i = 0; i < copy_shapes[t].n_keys; i++)
        out[i] = (struct copy_value){.i = INT64_MIN, .s = SV("")};
}

void copy_key_keep(enum copy_table t, const struct copy_value *row, struct arena *a,
                   struct copy_value *out)
{
    for (int i = 0; i < copy_shapes[t].n_keys; i++) {
        out[i] = row[i];
        if (copy_shapes[t].types[i] != 'i')
            out[i].s.p = arena_strndup(a, row[i].s.p, row[i].s.n);
    }
}

int copy_row_differs(enum copy_table t, const struct copy_value *a, const struct copy_value *b)
{
    const struct copy_shape *shape = &copy_shapes[t];
    for (int i = 0; i < shape->n_columns; i++) {
        if (a[i].null != b[i].null)
            return i;
        if (a[i].null)
            continue;
        if (shape->types[i] == 'i' ? a[i].i != b[i].i : !sv_eq(a[i].s, b[i].s))
            return i;
    }
    return -1;
}

struct sv copy_column(enum copy_table t, int column)
{
    struct sv rest = sv_of(copy_shapes[t].columns), word;
    do
        word = sv_cut(rest, ' ', &rest);
    while (column-- > 0);
    return word;
}

void copy_key_text(enum copy_table t, const struct copy_value *row, struct str *out)
{
    for (int i = 0; i < copy_shapes[t].n_keys; i++) {
        if (i)
            str_addc(out, '/');
        if (copy_shapes[t].types[i] == 'i')
            str_addi(out, row[i].i);
        else if (copy_shapes[t].types[i] == 't')
            str_add(out, row[i].s);
        else
            for (size_t k = 0; k < row[i].s.n; k++)
                str_addf(out, "%02x", (unsigned char)row[i].s.p[k]);
    }
}

/* "n" null, "i42;", "t3:abc", "b2:.." */
static void encode(char type, const struct copy_value *v, struct str *out)
{
    if (v->null) {
        str_addc(out, 'n');
        return;
    }
    str_addc(out, type);
    str_addi(out, type == 'i' ? v->i : (int64_t)v->s.n);
    str_addc(out, type == 'i' ? ';' : ':');
    if (type != 'i')
        str_add(out, v->s);
}

void copy_sum_add(struct copy_sum *s, enum copy_table t, const struct copy_value *row,
                  struct str *scratch)
{
    str_clear(scratch);
    str_add(scratch, sv_make((const char *)s->digest, sizeof(s->digest)));
    for (int i = 0; i < copy_shapes[t].n_columns; i++)
        encode(copy_shapes[t].types[i], &row[i], scratch);
    sha256(str_sv(scratch), s->digest);
    s->rows++;
}

bool copy_sum_eq(const struct copy_sum *a, const struct copy_sum *b)
{
    return a->rows == b->rows && !memcmp(a->digest, b->digest, sizeof(a->digest));
}
