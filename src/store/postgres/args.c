/* Parameters and results in PostgreSQL's binary form: integers in network order, text as it is,
 * arrays as a header and elements with their lengths. Nothing is ever quoted. */
#include "pg.h"

#include <endian.h>

enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };

void args_init(struct args *a)
{
    a->n = 0;
    arena_init(&a->arena);
}

void pg_args_done(struct args *a)
{
    arena_done(&a->arena);
}

static void put(struct args *a, Oid type, const void *value, size_t n)
{
    a->types[a->n] = type;
    a->values[a->n] = value;
    a->lengths[a->n] = (int)n;
    a->formats[a->n++] = 1;
}

static char *room(struct args *a, size_t n)
{
    return arena_alloc(&a->arena, n);
}

static void set_u32(char *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static void set_u64(char *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, 8);
}

void arg_i64(struct args *a, int64_t v)
{
    char *p = room(a, 8);
    set_u64(p, (uint64_t)v);
    put(a, OID_INT8, p, 8);
}

void arg_i64_or_null(struct args *a, int64_t v, bool null)
{
    if (null)
        put(a, OID_INT8, NULL, 0);
    else
        arg_i64(a, v);
}

void arg_int(struct args *a, int v)
{
    char *p = room(a, 4);
    set_u32(p, (uint32_t)v);
    put(a, OID_INT4, p, 4);
}

void arg_int_or_null(struct args *a, int v, bool null)
{
    if (null)
        put(a, OID_INT4, NULL, 0);
    else
        arg_int(a, v);
}

void arg_bool(struct args *a, bool v)
{
    char *p = room(a, 1);
    *p = v;
    put(a, OID_BOOL, p, 1);
}

void arg_text(struct args *a, struct sv v)
{
    put(a, OID_TEXT, v.p, v.n);
}

void arg_bytes(struct args *a, const void *p, size_t n)
{
    put(a, OID_BYTEA, p, n);
}

void arg_null_array(struct args *a, Oid type)
{
    put(a, type, NULL, 0);
}

/* The header of an array; returns where the elements go. */
static char *array_begin(struct args *a, Oid element, size_t n, size_t bytes, bool nulls,
                         char **out_start)
{
    char *p = room(a, 20 + bytes);
    *out_start = p;
    set_u32(p, n ? 1 : 0);
    set_u32(p + 4, nulls);
    set_u32(p + 8, element);
    if (!n)
        return p + 12;
    set_u32(p + 12, (uint32_t)n);
    set_u32(p + 16, 1);
    return p + 20;
}

static bool any_null(const bool *null, size_t n)
{
    for (size_t i = 0; null && i < n; i++)
        if (null[i])
            return true;
    return false;
}

void arg_i64s(struct args *a, const int64_t *v, size_t n, const bool *null)
{
    char *start;
    char *p = array_begin(a, OID_INT8, n, n * 12, any_null(null, n), &start);
    for (size_t i = 0; i < n; i++) {
        bool none = null && null[i];
        set_u32(p, none ? UINT32_MAX : 8);
        p += 4;
        if (none)
            continue;
        set_u64(p, (uint64_t)v[i]);
        p += 8;
    }
    put(a, OID_INT8_ARRAY, start, (size_t)(p - start));
}

void arg_ints(struct args *a, const int *v, size_t n, const bool *null)
{
    char *start;
    char *p = array_begin(a, OID_INT4, n, n * 8, any_null(null, n), &start);
    for (size_t i = 0; i < n; i++) {
        bool none = null && null[i];
        set_u32(p, none ? UINT32_MAX : 4);
        p += 4;
        if (none)
            continue;
        set_u32(p, (uint32_t)v[i]);
        p += 4;
    }
    put(a, OID_INT4_ARRAY, start, (size_t)(p - start));
}

static void put_strings(struct args *a, Oid element, Oid array, const struct sv *v, size_t n)
{
    char *start;
    size_t bytes = 0;
    bool nulls = false;
    for (size_t i = 0; i < n; i++) {
        bytes += 4 + (v[i].p ? v[i].n : 0);
        nulls |= !v[i].p;
    }
    char *p = array_begin(a, element, n, bytes, nulls, &start);
    for (size_t i = 0; i < n; i++) {
        set_u32(p, v[i].p ? (uint32_t)v[i].n : UINT32_MAX);
        p += 4;
        if (!v[i].p)
            continue;
        if (v[i].n)
            memcpy(p, v[i].p, v[i].n);
        p += v[i].n;
    }
    put(a, array, start, (size_t)(p - start));
}

void arg_texts(struct args *a, const struct sv *v, size_t n)
{
    put_strings(a, OID_TEXT, OID_TEXT_ARRAY, v, n);
}

void arg_blobs(struct args *a, const struct sv *v, size_t n)
{
    put_strings(a, OID_BYTEA, OID_BYTEA_ARRAY, v, n);
}

/* ---- results ---- */

static uint32_t get_u32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static int64_t get_i64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return (int64_t)be64toh(v);
}

int64_t res_i64(const PGresult *r, int row, int col)
{
    const char *p = PQgetvalue(r, row, col);
    switch (PQgetlength(r, row, col)) {
    case 8:
        return get_i64(p);
    case 4:
        return (int32_t)get_u32(p);
    case 2:
        return (int16_t)((unsigned char)p[0] << 8 | (unsigned char)p[1]);
    case 1:
        return p[0];
    default:
        return 0;
    }
}

int res_int(const PGresult *r, int row, int col)
{
    return (int)res_i64(r, row, col);
}

bool res_null(const PGresult *r, int row, int col)
{
    return PQgetisnull(r, row, col);
}

struct sv res_sv(const PGresult *r, int row, int col)
{
    if (PQgetisnull(r, row, col))
        return SV_NONE;
    return sv_make(PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col));
}

struct sv res_copy(const PGresult *r, int row, int col, struct arena *a)
{
    struct sv v = res_sv(r, row, col);
    return v.p ? sv_make(arena_strndup(a, v.p, v.n), v.n) : SV_NONE;
}

int64_t *res_i64s(const PGresult *r, int row, int col, struct arena *a, size_t *out_n)
{
    *out_n = 0;
    const char *p = PQgetvalue(r, row, col);
    if (PQgetisnull(r, row, col) || get_u32(p) == 0)
        return NULL;
    size_t n = get_u32(p + 12);
    int64_t *v = arena_alloc(a, n * sizeof(*v));
    p += 20;
    for (size_t i = 0; i < n; i++, p += 12)
        v[i] = get_i64(p + 4);
    *out_n = n;
    return v;
}
