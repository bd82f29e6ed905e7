/* Ends of jobs put back into the order of the input. The feeder announces inputs, the loop brings
 * ends and takes what is next. */
#include "each.h"

/* What stands in the ring besides ends. */
static struct each_held pending, left_out;

void each_order_init(struct each_order *o)
{
    *o = (struct each_order){.next = 1};
    pthread_mutex_init(&o->lock, NULL);
}

void each_order_done(struct each_order *o)
{
    for (size_t i = 0; i < o->n; i++) {
        struct each_held *h = o->v[(o->head + i) % o->cap];
        if (h != &pending && h != &left_out)
            free(h);
    }
    free(o->v);
    pthread_mutex_destroy(&o->lock);
}

static void grow(struct each_order *o)
{
    size_t cap = o->cap ? o->cap * 2 : 256;
    struct each_held **v = mem_zalloc(cap, sizeof(struct each_held *));
    for (size_t i = 0; i < o->n; i++)
        v[i] = o->v[(o->head + i) % o->cap];
    free(o->v);
    o->v = v;
    o->cap = cap;
    o->head = 0;
}

static struct each_held **place(struct each_order *o, int64_t seq)
{
    bool there = seq >= o->next && seq < o->next + (int64_t)o->n;
    return there ? &o->v[(o->head + (size_t)(seq - o->next)) % o->cap] : NULL;
}

void each_order_expect(struct each_order *o, int64_t seq, bool expected)
{
    pthread_mutex_lock(&o->lock);
    if (seq == o->next + (int64_t)o->n) {
        if (o->n == o->cap)
            grow(o);
        o->v[(o->head + o->n++) % o->cap] = expected ? &pending : &left_out;
    } else if (!expected && place(o, seq)) {
        *place(o, seq) = &left_out;
    }
    pthread_mutex_unlock(&o->lock);
}

void each_order_end(struct each_order *o, struct each_held *h)
{
    pthread_mutex_lock(&o->lock);
    struct each_held **at = place(o, h->seq);
    if (at && (*at == &pending || *at == &left_out))
        *at = h;
    else
        free(h); /* an input of another run in the same queue */
    pthread_mutex_unlock(&o->lock);
}

struct each_held *each_order_take(struct each_order *o, bool any)
{
    struct each_held *found = NULL;
    pthread_mutex_lock(&o->lock);
    while (o->n && !found && (any || o->v[o->head] != &pending)) {
        struct each_held *h = o->v[o->head];
        o->head = (o->head + 1) % o->cap;
        o->n--;
        o->next++;
        found = h != &pending && h != &left_out ? h : NULL;
    }
    pthread_mutex_unlock(&o->lock);
    return found;
}
