/* JSON. The reader is strict (RFC 8259, valid UTF-8, no NUL, no lone surrogate, no duplicate
 * member, numbers within double range, bounded depth and node count) and keeps the source: every
 * node knows its span, so a payload is stored byte for byte as it was given. The writer escapes
 * everything and cannot emit an invalid document as long as calls are balanced.
 * Written by hand because no packaged library hands back a member's source bytes. */
#ifndef PAWL_BASE_JSON_H
#define PAWL_BASE_JSON_H

#include "err.h"
#include "mem.h"
#include "str.h"
#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum { JSON_MAX_DEPTH = 64, JSON_MAX_NODES = 100000 };

/* A node in document order. The children of an array follow it; those of an object are pairs
 * (string node, value node). `next` skips the whole subtree. */
struct json_node {
    enum json_type type;
    uint32_t start, end; /* span in the source, quotes and brackets included */
    uint32_t next;       /* index of the node after this subtree */
    uint32_t count;      /* elements or members */
    uint32_t escaped;    /* JSON_STRING: has backslashes */
};

struct json {
    struct sv src; /* borrowed */
    struct json_node *nodes;
    size_t n, cap;
};

/* Parse one document, the whole of src. May be called again on the same struct (nodes reused).
 * INPUT with the byte offset on failure. */
PAWL_MUST_USE int json_parse(struct json *doc, struct sv src, struct pawl_err *err);
void json_done(struct json *doc);
#define AUTO_JSON __attribute__((cleanup(json_done)))

/* Reading: nodes are indices into doc; 0 is the root. */
static inline enum json_type json_type(const struct json *doc, uint32_t i)
{
    return doc->nodes[i].type;
}
struct sv json_source(const struct json *doc, uint32_t i); /* the bytes as written */
/* The decoded string. Without escapes a view into the source, else a copy in the arena. */
struct sv json_string(const struct json *doc, uint32_t i, struct arena *a);
/* Whole number in [min,max]; -1 if it is not one. */
PAWL_MUST_USE int json_i64(const struct json *doc, uint32_t i, int64_t min, int64_t max,
                           int64_t *out);
bool json_is_true(const struct json *doc, uint32_t i);
/* Value of an object's member; 0 when absent (0 is the root and never a member's value). */
uint32_t json_member(const struct json *doc, uint32_t object, struct sv name);
/* Walk: for (uint32_t k = json_first(d, o); k != json_end(d, o); k = json_after(d, k)).
 * In an object k is the name, k + 1 its value, and json_after(d, k + 1) the next name. */
static inline uint32_t json_first(const struct json *doc, uint32_t i)
{
    (void)doc;
    return i + 1;
}
static inline uint32_t json_end(const struct json *doc, uint32_t i)
{
    return doc->nodes[i].next;
}
static inline uint32_t json_after(const struct json *doc, uint32_t i)
{
    return doc->nodes[i].next;
}
const char *json_type_name(enum json_type t);

/* Writing. Commas are placed by the writer. */
struct jw {
    struct str *out;
    uint64_t has_items; /* bit per depth */
    unsigned depth;
    bool after_name;
};
static inline struct jw jw_make(struct str *out)
{
    return (struct jw){.out = out};
}
void jw_object(struct jw *w); /* { */
void jw_array(struct jw *w);  /* [ */
void jw_end_object(struct jw *w);
void jw_end_array(struct jw *w);
void jw_name(struct jw *w, const char *name);
void jw_string(struct jw *w, struct sv s); /* invalid UTF-8 becomes U+FFFD */
void jw_int(struct jw *w, int64_t v);
void jw_double(struct jw *w, double v, int decimals); /* null unless finite */
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, struct sv json); /* already valid JSON */
/* name + value in one call */
void jw_kstring(struct jw *w, const char *name, struct sv s);
void jw_kint(struct jw *w, const char *name, int64_t v);
void jw_kbool(struct jw *w, const char *name, bool v);
/* The string, or null when s.p is NULL; JSON likewise; the number, or null unless it is known. */
void jw_kstring_or_null(struct jw *w, const char *name, struct sv s);
void jw_kraw_or_null(struct jw *w, const char *name, struct sv json);
void jw_kint_or_null(struct jw *w, const char *name, int64_t v, bool known);

#endif
