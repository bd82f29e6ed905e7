/* Memory. Allocation never returns NULL: a process that cannot get memory aborts, and everything
 * pawl promises holds across an abort exactly as across kill -9 (leases, fences, group commit).
 * Untrusted sizes are bounded before they get here (struct str has a ceiling, JSON a node limit).
 */
#ifndef PAWL_BASE_MEM_H
#define PAWL_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

void *mem_alloc(size_t size);                      /* not zeroed */
void *mem_zalloc(size_t n, size_t size);           /* n*size checked, zeroed */
void *mem_realloc(void *p, size_t n, size_t size); /* n*size checked */
char *mem_strdup(const char *s);
void *mem_dup(const void *p, size_t n); /* n bytes plus a NUL */

/* Make room for one more element in a growing array: ARRAY_GROW(v, n, cap); v[n++] = x; */
#define ARRAY_GROW(v, n, cap)                                                                      \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (v) = mem_realloc((v), (cap), sizeof(*(v)));                                           \
        }                                                                                          \
    } while (0)

static inline void mem_freep(void *p)
{
    free(*(void **)p);
}
#define AUTO_FREE __attribute__((cleanup(mem_freep)))
#define AUTO(fn)  __attribute__((cleanup(fn)))
#define TAKE_PTR(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) take_ = (p);                                                                 \
        (p) = NULL;                                                                                \
        take_;                                                                                     \
    })

/* Arena: memory for the result of one call, freed at once. Blocks grow geometrically. */
/* Things that are needed again at once may be kept as spares, many at the most; but not where a
 * sanitizer is to see that somebody uses one that has gone. */
#ifdef __SANITIZE_ADDRESS__
#define MEM_SPARES(many) 0
#else
#define MEM_SPARES(many) (many)
#endif

struct arena_block;
struct arena {
    struct arena_block *head;
    char *next; /* first free byte of head */
    size_t left;
};
void arena_init(struct arena *a);
void arena_done(struct arena *a);
void arena_reset(struct arena *a);               /* keeps the newest block for reuse */
void *arena_alloc(struct arena *a, size_t size); /* 16-aligned, not zeroed */
void *arena_zalloc(struct arena *a, size_t n, size_t size);
char *arena_strndup(struct arena *a, const char *s, size_t n); /* NUL-terminated copy */

#endif
