#include "mem.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct arena_block {
    struct arena_block *prev;
    size_t size;
    alignas(16) char data[];
};

enum { ARENA_FIRST = 4096, ARENA_MAX = 1 << 20 };

static _Noreturn void out_of_memory(void)
{
    static const char msg[] = "pawl: out of memory; aborting, the store keeps its state\n";
    (void)!write(STDERR_FILENO, msg, sizeof(msg) - 1);
    abort();
}

static size_t product(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        out_of_memory();
    return total ? total : 1;
}

void *mem_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *mem_zalloc(size_t n, size_t size)
{
    void *p = calloc(1, product(n, size));
    if (!p)
        out_of_memory();
    return p;
}

void *mem_realloc(void *p, size_t n, size_t size)
{
    void *q = realloc(p, product(n, size));
    if (!q)
        out_of_memory();
    return q;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s));
}

void *mem_dup(const void *p, size_t n)
{
    char *q = mem_alloc(n + 1);
    if (n)
        memcpy(q, p, n);
    q[n] = '\0';
    return q;
}

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_done(struct arena *a)
{
    while (a->head) {
        struct arena_block *prev = a->head->prev;
        free(a->head);
        a->head = prev;
    }
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->head;
    if (!keep)
        return;
    a->head = keep->prev;
    struct arena rest = {.head = a->head};
    arena_done(&rest);
    keep->prev = NULL;
    a->head = keep;
    a->next = keep->data;
    a->left = keep->size;
}

static void add_block(struct arena *a, size_t need)
{
    size_t size = a->head ? a->head->size * 2 : ARENA_FIRST;
    if (size > ARENA_MAX)
        size = ARENA_MAX;
    if (size < need)
        size = need;
    struct arena_block *b = mem_alloc(sizeof(*b) + size);
    b->prev = a->head;
    b->size = size;
    a->head = b;
    a->next = b->data;
    a->left = size;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX - 15)
        out_of_memory();
    size = (size + 15) & ~(size_t)15;
    if (a->left < size)
        add_block(a, size);
    void *p = a->next;
    a->next += size;
    a->left -= size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n, size_t size)
{
    size_t total = product(n, size);
    return memset(arena_alloc(a, total), 0, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = '\0';
    return p;
}
