/* Strings. `struct sv` is a borrowed view (pointer, length), never NUL-terminated by promise.
 * `struct str` is an owned, growing, always NUL-terminated buffer with a ceiling given at init:
 * what does not fit is dropped and `overflow` says so, so a writer checks once, at its end. */
#ifndef PAWL_BASE_STR_H
#define PAWL_BASE_STR_H

#include "err.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sv {
    const char *p;
    size_t n;
};

#define SV(lit)   ((struct sv){"" lit "", sizeof(lit) - 1})
#define SV_NONE   ((struct sv){NULL, 0})
#define SV_FMT    "%.*s"
#define SV_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct sv sv_of(const char *s)
{
    return (struct sv){s, s ? strlen(s) : 0};
}
static inline struct sv sv_make(const char *p, size_t n)
{
    return (struct sv){p, n};
}
bool sv_eq(struct sv a, struct sv b);
int sv_cmp(struct sv a, struct sv b); /* bytewise, shorter first */
bool sv_starts(struct sv s, struct sv prefix);
struct sv sv_trim(struct sv s); /* spaces, tabs, CR, LF off both ends */
/* Cut s at the first `sep`; *rest is what follows, or none. Returns the part before. */
struct sv sv_cut(struct sv s, char sep, struct sv *rest);
/* Decimal integer in [min, max], whole string. 0 or -1 (nothing set). */
PAWL_MUST_USE int sv_to_i64(struct sv s, int64_t min, int64_t max, int64_t *out);

struct str {
    char *p; /* NULL until the first append; use str_cstr() for a C string */
    size_t len, cap, max;
    bool overflow;
};

#define STR_INIT(max_) ((struct str){.max = (max_)})
enum {                        /* ceilings in use */
       STR_LINE = 64 << 10,   /* one log line, one message */
       STR_OUTPUT = 64 << 20, /* what a command prints in one go */
};

void str_done(struct str *s);
void str_clear(struct str *s); /* empty, memory kept */
void str_add(struct str *s, struct sv v);
void str_adds(struct str *s, const char *cstr);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) PAWL_PRINTF(2, 3);
void str_addi(struct str *s, int64_t v); /* decimal; the fast path */
const char *str_cstr(const struct str *s);
static inline struct sv str_sv(const struct str *s)
{
    return (struct sv){s->p, s->len};
}
#define AUTO_STR __attribute__((cleanup(str_done)))

/* Edit distance in bytes, at most `cap`: for "did you mean". */
int sv_distance(struct sv a, struct sv b, int cap);
/* Nearest of n names to `name`, or NULL when none is near enough to suggest. */
const char *sv_nearest(struct sv name, const char *const *names, size_t n);

#endif
